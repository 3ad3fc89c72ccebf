//! `inspect` from end to end: files, wheels, folders, installed packages; broken and hostile files; and, with
//! `-- --ignored`, the agreement with NVIDIA's `cuobjdump` on real wheels of the package index.

#[path = "../binaries/mod.rs"]
mod binaries;

mod cuobjdump;
mod hostile;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use binaries::{Library, PTX, SASS, SPECIFIC, archive, extension};
use serde_json::Value;

/// Runs the program in a folder: exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
    let output = command.arg("inspect").args(arguments).current_dir(folder).output().expect("the program");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (_, out, err) = run(folder, &[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}\n{out}{err}"))
}

fn folder_with(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    folder
}

const NAME: &str = "selective_scan_cuda.cpython-311-x86_64-linux-gnu.so";

#[test]
fn a_library_tells_what_it_holds_and_was_built_for() {
    let folder = folder_with(&[(NAME, extension(&[80, 90]).elf())]);
    let (code, out, err) = run(folder.path(), &[NAME, "--gpu", "5090,4090"]);
    assert_eq!(code, 1, "{err}");
    let wanted = format!(
        "{NAME}\n  machine code   80 90\n  PTX            none\n  \
         built for      torch 2.4 to 2.7, C++ strings of the old ABI, CUDA 12, x86_64, glibc 2.32, Python 3.11\n  \
         on 5090 (120)  does not run: its machine code is for 80 90, none of which runs on 120, and there is no PTX\n  \
         on 4090 (89)   runs natively: sm_80 code\n"
    );
    assert_eq!(out, wanted);
    assert_eq!(run(folder.path(), &[NAME, "--gpu", "H100"]).0, 0);
    assert_eq!(run(folder.path(), &[NAME]).0, 0);
}

#[test]
fn without_a_gpu_the_hint_names_the_option_of_this_command() {
    let folder = folder_with(&[(NAME, extension(&[80, 90]).elf())]);
    let (code, out, err) = run(folder.path(), &[NAME, "--gpu", "native"]);
    // Where there is a GPU, the file is told to fit or not.
    let refused = code == 2 && err.contains("hint: name the architecture: --gpu 120, or the GPU: --gpu 5090");
    assert!(refused || out.contains("  on "), "{code}\n{out}{err}");
}

#[test]
fn machine_code_and_ptx_are_told_apart_in_elf_and_pe() {
    let parts = vec![vec![(SASS, 90, SPECIFIC), (PTX, 120, 0x8011), (SASS, 120, 0x1_008_011)]; 2];
    let library = Library { parts, ..Library::default() };
    for (name, bytes) in [("a.so", library.elf()), ("a.pyd", library.pe()), ("a.dll", library.pe())] {
        let folder = folder_with(&[(name, bytes)]);
        let document = json(folder.path(), &[name, "--gpu", "120"]);
        let file = &document["files"][0];
        let wanted = serde_json::json!({ "sm_90a": 2, "sm_120": 2, "compute_120": 2 });
        assert_eq!(file["codes"], wanted, "{name}");
        assert_eq!((&file["ptx-version"], &file["gpus"][0]["verdict"]), (&"9.0".into(), &"native".into()));
    }
}

#[test]
fn ptx_before_nvlink_still_counts_and_objects_hold_only_that() {
    let part = vec![(SASS, 80, 0), (PTX, 90, 0)];
    let linked = Library {
        parts: vec![vec![(SASS, 80, 0)]],
        relocatable: vec![part.clone(); 2],
        ..Library::default()
    };
    let object = Library { relocatable: vec![part], ..Library::default() };
    let folder = folder_with(&[("linked.so", linked.elf()), ("one.o", object.elf())]);
    let document = json(folder.path(), &["linked.so", "--gpu", "120"]);
    let file = &document["files"][0];
    assert_eq!(file["codes"], serde_json::json!({ "sm_80": 1 }));
    assert_eq!(file["relocatable"], serde_json::json!({ "sm_80": 2, "compute_90": 2 }));
    assert_eq!(file["gpus"][0]["verdict"], "jit");
    let document = json(folder.path(), &["one.o"]);
    assert_eq!(document["files"][0]["codes"], serde_json::json!({ "sm_80": 1, "compute_90": 1 }));
}

#[test]
fn static_libraries_are_read_member_by_member() {
    let folder = folder_with(&[("libx.a", archive("one.o", &extension(&[120]).elf()))]);
    let (code, out, err) = run(folder.path(), &["./libx.a", "--gpu", "120"]);
    assert_eq!((code, out.contains("machine code  120\n")), (0, true), "{out}{err}");
}

/// A wheel; deflated, so that a bomb stays small.
fn wheel(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).expect("a member");
        zip.write_all(bytes).expect("written");
    }
    zip.finish().expect("a wheel").into_inner()
}

#[test]
fn wheels_and_folders_show_each_file_and_name_those_without_code() {
    let none = Library::default().elf();
    let files = [("m/a.so", extension(&[90]).elf()), ("m/b.so", none.clone()), ("m/x.py", b"x".to_vec())];
    let folder = folder_with(&[
        ("m-1-py3-none-any.whl", wheel(&files)),
        ("build/m/a.so", extension(&[120]).elf()),
        ("build/b.so", none),
    ]);
    let (code, out, err) = run(folder.path(), &["m-1-py3-none-any.whl"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.starts_with("m/a.so\n  machine code  90\n") && out.ends_with("\nno GPU code in b.so\n"),
        "{out}"
    );
    let (code, out, _) = run(folder.path(), &["m-1-py3-none-any.whl", "./build", "--gpu", "90"]);
    assert_eq!(code, 1);
    assert!(out.contains("m/a.so\n") && out.contains("  on 90         does not run"), "{out}");
    let (code, _, err) = run(folder.path(), &["./nothing"]);
    assert_eq!(
        (code, err.contains("./nothing does not exist") && err.contains("hint: ")),
        (2, true),
        "{err}"
    );
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    let (code, _, err) = run(folder.path(), &["./empty"]);
    assert_eq!((code, err.contains("./empty holds no library and no object")), (2, true), "{err}");
}

#[test]
fn a_file_of_a_folder_that_is_broken_is_shown_and_the_rest_too() {
    let whole = extension(&[120]).elf();
    let cut = whole[..whole.len() - 100].to_vec();
    let folder = folder_with(&[("f/a.so", whole), ("f/b.so", cut), ("f/c.so", b"GROUP ( /lib/x )".to_vec())]);
    let (code, out, _) = run(folder.path(), &["./f"]);
    assert_eq!(code, 1);
    assert!(out.contains("a.so\n  machine code  120\n") && out.contains("not read: b.so: "), "{out}");
    assert!(out.contains("not read: c.so: it is no ELF or PE file"), "{out}");
    let (code, out, err) = run(folder.path(), &["f/b.so"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("error: cannot inspect f/b.so: ") && err.contains("hint: "), "{err}");
}

/// An environment with packages in the shape that pip leaves.
fn environment() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("python3");
    let made = command.args(["-m", "venv", "--without-pip"]).arg(folder.path().join("e")).output();
    assert!(made.expect("python3").status.success(), "python3 -m venv");
    let python = folder.path().join("e/bin/python");
    let site = Command::new(&python).args(["-c", "import site; print(site.getsitepackages()[0])"]).output();
    let site = String::from_utf8(site.expect("python").stdout).expect("UTF-8").trim().to_string();
    let put = |name: &str, bytes: &[u8]| {
        let path = Path::new(&site).join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    };
    put("mamba_ssm/__init__.py", b"");
    put(NAME, &extension(&[90]).elf());
    put("mamba_ssm-2.2.4.dist-info/METADATA", b"Metadata-Version: 2.1\nName: mamba-ssm\nVersion: 2.2.4\n");
    put("mamba_ssm-2.2.4.dist-info/RECORD", format!("mamba_ssm/__init__.py,,\n{NAME},,\n").as_bytes());
    put("loose/__init__.py", b"");
    put("loose/deep/a.so", &extension(&[120]).elf());
    (folder, python.display().to_string())
}

#[test]
fn installed_packages_and_modules_are_found_by_name() {
    let (folder, python) = environment();
    for name in ["mamba-ssm", "mamba_ssm", "selective_scan_cuda"] {
        let module =
            if name == "selective_scan_cuda" { NAME.split('.').next().expect("a name") } else { name };
        let (code, out, err) = run(folder.path(), &[module, "--python", &python]);
        assert_eq!(
            (code, out.contains(NAME) && out.contains("machine code  90\n")),
            (0, true),
            "{name}: {out}{err}"
        );
    }
    let (code, out, err) = run(folder.path(), &["loose", "--python", &python]);
    assert_eq!((code, out.contains("loose/deep/a.so\n")), (0, true), "{out}{err}");
    fs::create_dir(folder.path().join("there")).expect("a folder");
    let (code, _, err) = run(folder.path(), &["there", "--python", &python]);
    assert_eq!(
        (code, err.contains("hint: for what lies here: mambapatch inspect ./there")),
        (2, true),
        "{err}"
    );
    let (code, _, err) = run(folder.path(), &["nowhere", "--python", &python]);
    assert_eq!((code, err.contains("no module and no package `nowhere` is installed\n")), (2, true), "{err}");
}

#[test]
fn a_gpu_must_be_known() {
    let folder = folder_with(&[("a.so", extension(&[90]).elf())]);
    let (code, _, err) = run(folder.path(), &["a.so", "--gpu", "9050"]);
    assert_eq!((code, err.contains("`9050` is no GPU architecture")), (2, true), "{err}");
}

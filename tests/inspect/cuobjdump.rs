//! The agreement with `cuobjdump --list-elf --list-ptx` on what the package index has.
//!
//! Ignored unless asked for (`-- --ignored`), on Linux: cuobjdump and the wheels below, about 0.8 GB, are fetched once with pip and
//! kept in `MAMBAPATCH_TOOLCHAIN` (else in the target folder).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use mambapatch::engine::arch::{Arch, Code, Variant};
use mambapatch::kernels::inspect::{Binary, read};
use zip::ZipArchive;

const CUOBJDUMP: &str = "nvidia-cuda-cuobjdump==13.2.51";
/// LZ4 and zstd, `a` variants, nvlink, PTX, x86-64 and aarch64, nvcc 11.0 to 13.2.
const WHEELS: [(&str, &str); 8] = [
    ("bitsandbytes==0.50.2", "manylinux_2_24_x86_64"),
    ("bitsandbytes==0.50.2", "manylinux_2_24_aarch64"),
    ("bitsandbytes==0.42.0", "manylinux_2_24_x86_64"),
    ("xformers==0.0.35", "manylinux_2_28_x86_64"),
    ("torchvision==0.29.2", "manylinux_2_28_x86_64"),
    ("ctranslate2==4.8.5", "manylinux_2_28_x86_64"),
    ("xgboost==3.2.0", "manylinux_2_28_x86_64"),
    ("torch==2.11.0", "manylinux_2_28_x86_64"),
];

fn kept() -> PathBuf {
    let root = std::env::var_os("MAMBAPATCH_TOOLCHAIN").filter(|value| !value.is_empty());
    root.map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).to_path_buf(), PathBuf::from).join("cuobjdump")
}

/// The wheel of a package, fetched unless it is there.
fn fetch(package: &str, platform: &str) -> PathBuf {
    let folder = kept().join(format!("{package}-{platform}"));
    let wheel = || {
        fs::read_dir(&folder)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
    };
    if wheel().is_none() {
        let python = std::env::var_os("MAMBAPATCH_TEST_PYTHON").unwrap_or("python3".into());
        let mut command = Command::new(python);
        command.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-cache-dir",
            "--only-binary=:all:",
        ]);
        command.args([
            "--implementation",
            "cp",
            "--python-version",
            "3.11",
            "--abi",
            "cp311",
            "--abi",
            "none",
        ]);
        command
            .arg(format!("--platform={platform}"))
            .arg("--platform=manylinux2014_x86_64")
            .arg("--dest")
            .arg(&folder)
            .arg(package);
        let output = command.output().expect("pip");
        assert!(output.status.success(), "{package}: {}", String::from_utf8_lossy(&output.stderr));
    }
    wheel().unwrap_or_else(|| panic!("no wheel of {package}"))
}

fn cuobjdump() -> PathBuf {
    let mut archive =
        ZipArchive::new(File::open(fetch(CUOBJDUMP, "manylinux2014_x86_64")).expect("the wheel"))
            .expect("a zip");
    let program = kept().join("cuobjdump");
    let name = archive.file_names().flatten().find(|name| name.ends_with("/bin/cuobjdump"));
    let name = name.expect("the program").into_owned();
    if !program.exists() {
        io::copy(
            &mut archive.by_name(&name).expect("the program"),
            &mut File::create(&program).expect("a file"),
        )
        .expect("unpacked");
        #[cfg(unix)]
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("executable");
    }
    program
}

/// How many pieces cuobjdump lists of each code; the error, where it gives up.
fn listed(program: &Path, file: &Path, all: bool) -> Result<BTreeMap<String, usize>, String> {
    let mut command = Command::new(program);
    command.args(all.then_some("-all")).args(["--list-elf", "--list-ptx"]).arg(file);
    let output = command.output().expect("cuobjdump");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if let Some(fatal) = said.lines().find(|line| line.contains("fatal")) {
        return Err(fatal.to_string());
    }
    let mut pieces = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let kind = if line.starts_with("PTX file") { "compute" } else { "sm" };
        let name = line.rsplit("sm_").next().and_then(|rest| rest.split('.').next()).unwrap_or_default();
        *pieces.entry(format!("{kind}_{name}")).or_insert(0) += 1;
    }
    Ok(pieces)
}

/// What was read, named as cuobjdump does: it leaves out the `f` of machine code.
fn ours(binary: &Binary, all: bool) -> BTreeMap<String, usize> {
    let mut code = binary.code.clone();
    if all {
        code.add(&binary.relocatable);
    }
    let mut pieces = BTreeMap::new();
    for (code, count) in code.pieces() {
        let name = match code {
            Code::Sass(arch) if arch.variant == Variant::Family => Code::Sass(Arch::plain(arch.number)),
            other => other,
        };
        *pieces.entry(name.to_string()).or_insert(0) += count;
    }
    pieces
}

#[test]
#[ignore = "needs cuobjdump and real wheels, 0.8 GB of the package index"]
fn what_is_read_is_what_cuobjdump_lists() {
    let program = cuobjdump();
    let (mut same, mut refused) = (0, 0);
    for (package, platform) in WHEELS {
        let mut archive =
            ZipArchive::new(File::open(fetch(package, platform)).expect("the wheel")).expect("a zip");
        let names: Vec<String> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
        for name in names.iter().filter(|name| name.contains(".so")) {
            let file = tempfile::Builder::new().suffix(".so").tempfile().expect("a file");
            io::copy(&mut archive.by_name(name).expect("a member"), &mut file.as_file()).expect("unpacked");
            let binary =
                read(&mut file.reopen().expect("a file")).unwrap_or_else(|error| panic!("{name}: {error}"));
            if binary.code.is_empty() && binary.relocatable.is_empty() {
                continue;
            }
            for all in [false, true] {
                match listed(&program, file.path(), all) {
                    Ok(listed) => assert_eq!(ours(&binary, all), listed, "{package} {name}, all: {all}"),
                    // Its own fault: it takes no machine code that nvlink of CUDA 12.0 to 12.2 linked.
                    Err(fatal) => {
                        assert!(fatal.contains("Invalid ELF"), "{name}: {fatal}");
                        println!("cuobjdump gives up on {package} {platform} {name}: {fatal}");
                        refused += 1;
                        break;
                    }
                }
                same += usize::from(all);
            }
        }
    }
    println!("{same} files agree; cuobjdump gives up on {refused}");
    assert!(same >= 30, "{same}");
}

//! `doctor` on machines made of fake tools: what is found, what is said of it, and that `diagnose` decides by it.

#![cfg(unix)]

#[path = "../binaries/mod.rs"]
mod binaries;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use binaries::{Library, extension};
use serde_json::Value;

/// A machine: a folder of tools, a Python, and nothing else on the search path.
struct Machine {
    root: tempfile::TempDir,
}

struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Machine {
    fn bare() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("bin")).expect("a folder");
        fs::create_dir_all(root.path().join("work")).expect("a folder");
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A tool that prints a text, whatever it is asked.
    fn tool(&self, name: &str, says: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, format!("#!/bin/sh\n/bin/cat <<'END'\n{says}\nEND\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    fn toolkit(&self, home: &str, release: &str) {
        self.tool(
            &format!("{home}/bin/nvcc"),
            &format!("Cuda compilation tools, release {release}, V{release}.88"),
        );
        self.tool(&format!("{home}/bin/ptxas"), &format!("ptxas: release {release}, V{release}.88"));
    }

    /// A real Python with a PyTorch of this CUDA, as far as files tell, and packages.
    fn python(&self, cuda: &str, packages: &[(&str, &str, &str, Vec<u8>)]) -> String {
        let made =
            Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(self.path("env")).output();
        assert!(made.expect("python3").status.success());
        let python = self.path("env/bin/python");
        let site =
            Command::new(&python).args(["-c", "import site; print(site.getsitepackages()[0])"]).output();
        let site = PathBuf::from(String::from_utf8(site.expect("python").stdout).expect("UTF-8").trim());
        let put = |name: &str, bytes: &[u8]| {
            let path = site.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        };
        let version = format!("__version__ = '2.6.0+cu'\ncuda: Optional[str] = '{cuda}'\n");
        put("torch/__init__.py", b"raise ImportError('torch must not be imported')\n");
        put("torch/version.py", version.as_bytes());
        put("torch-2.6.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0\n");
        let offered = vec![
            "_ZN3c104cuda9SetDeviceEa",
            "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
            "_ZN3c1021throwNullDataPtrErrorEv",
        ];
        put("torch/lib/libc10.so", &Library { exports: offered, ..Library::default() }.elf());
        put("torch/lib/libtorch_cuda.so", &Library { needed: vec![], ..extension(&[90, 120]) }.elf());
        for (package, version, file, bytes) in packages {
            let info = format!("{}-{version}.dist-info", package.replace('-', "_"));
            put(file, bytes);
            put(
                &format!("{info}/METADATA"),
                format!("Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n").as_bytes(),
            );
            put(&format!("{info}/RECORD"), format!("{file},,\n").as_bytes());
        }
        python.display().to_string()
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
        command.args(arguments).current_dir(self.path("work")).env_clear();
        command.env("PATH", self.path("bin")).envs(variables.iter().copied());
        let output = command.output().expect("the program");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    fn json(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Value {
        let run = self.run(&[arguments, &["--format", "json"]].concat(), variables);
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}\n{}{}", run.out, run.err))
    }

    /// All tools that a build wants.
    fn whole(&self) {
        self.tool("bin/nvidia-smi", "12.0, NVIDIA GeForce RTX 5090, 580.65.06");
        self.tool("bin/c++", "c++ (Debian 12.2.0-14) 12.2.0");
        self.tool("bin/ninja", "1.13.0");
        self.tool("bin/getconf", "glibc 2.36");
        self.toolkit("cuda-12.8", "12.8");
    }
}

/// The verdicts on a subject: level and text.
fn verdicts(document: &Value, subject: &str) -> Vec<(String, String)> {
    let all = document["verdicts"].as_array().expect("verdicts");
    let ours = all
        .iter()
        .filter(|verdict| verdict["subject"].as_str().is_some_and(|name| name.starts_with(subject)));
    let text = |verdict: &Value, key: &str| verdict[key].as_str().unwrap_or_default().to_string();
    ours.map(|verdict| (text(verdict, "level"), text(verdict, "what"))).collect()
}

#[test]
fn a_machine_without_anything_gets_an_answer() {
    let machine = Machine::bare();
    let run = machine.run(&["doctor"], &[]);
    assert_eq!(run.code, 1, "{}", run.err);
    // A toolkit in a usual place of the machine that runs this is found all the same.
    for part in ["GPU       no NVIDIA GPU was found", "x  Python    none was found", "x  compiler  no gcc"] {
        assert!(run.out.contains(part), "{part}\n{}", run.out);
    }
    assert!(run.out.ends_with("type next:\n  pip install torch\n"), "{}", run.out);
}

#[test]
fn a_fit_machine_is_fit_and_torch_is_not_imported() {
    let machine = Machine::bare();
    machine.whole();
    let home = machine.path("cuda-12.8").display().to_string();
    let python = machine.python(
        "12.8",
        &[(
            "mamba-ssm",
            "2.2.4",
            "selective_scan_cuda.cpython-311-x86_64-linux-gnu.so",
            extension(&[90, 120]).elf(),
        )],
    );
    let document = machine.json(&["doctor", "--python", &python], &[("CUDA_HOME", &home)]);
    assert_eq!(
        (&document["fit"], &document["type"]),
        (&true.into(), &"mambapatch apply mamba-ssm --host".into()),
        "{document:#}"
    );
    let facts = &document["facts"];
    assert_eq!(facts["gpus"][0], serde_json::json!({ "name": "NVIDIA GeForce RTX 5090", "arch": "120" }));
    assert_eq!(facts["torch"]["codes"], serde_json::json!(["sm_90", "sm_120"]));
    assert_eq!((&facts["torch"]["cxx11-abi"], &facts["torch"]["cuda"]), (&false.into(), &"12.8".into()));
    assert_eq!(facts["extensions"][0]["codes"], serde_json::json!(["sm_90", "sm_120"]));
    assert_eq!(verdicts(&document, "mamba-ssm")[0].0, "good");
    let run = machine.run(&["doctor", "--python", &python], &[("CUDA_HOME", &home)]);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(
        run.out.contains("  +  nvcc             12.8 in ") && run.out.contains("this machine can build"),
        "{}",
        run.out
    );
}

#[test]
fn an_extension_of_another_torch_is_found_by_its_symbols() {
    let machine = Machine::bare();
    machine.whole();
    let other = Library { imports: vec!["_ZN3c104cuda9SetDeviceEab", "memcpy"], ..extension(&[120]) };
    let python = machine.python("12.8", &[("causal-conv1d", "1.4.0", "causal_conv1d_cuda.so", other.elf())]);
    let document = machine.json(&["doctor", "--python", &python], &[]);
    let found = verdicts(&document, "causal-conv1d");
    assert_eq!(found[0].0, "bad");
    assert!(
        found[0].1.contains("takes _ZN3c104cuda9SetDeviceEab, which this PyTorch does not have"),
        "{}",
        found[0].1
    );
    let facts = machine.path("work/facts.json");
    fs::write(&facts, document.to_string()).expect("a file");
    fs::write(machine.path("work/log"), "NameError: name 'selective_scan_cuda' is not defined\n")
        .expect("a file");
    let run = machine.run(&["diagnose", "log", "--facts", "facts.json"], &[]);
    let told = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("causal-conv1d was compiled against another PyTorch"), "{}{}", run.out, run.err);
}

#[test]
fn an_extension_without_the_gpu_and_a_toolkit_of_another_major_are_bad() {
    let machine = Machine::bare();
    machine.whole();
    machine.toolkit("cuda-13.0", "13.0");
    let home = machine.path("cuda-13.0").display().to_string();
    let python = machine
        .python("12.8", &[("mamba-ssm", "2.2.4", "selective_scan_cuda.so", extension(&[80, 90]).elf())]);
    let document = machine.json(
        &["doctor", "--python", &python],
        &[("CUDA_HOME", &home), ("CUDA_PATH", &machine.path("cuda-12.8").display().to_string())],
    );
    let nvcc = verdicts(&document, "nvcc");
    assert!(
        nvcc.iter().any(|(level, what)| level == "bad" && what.contains("PyTorch was built with CUDA 12.8")),
        "{nvcc:?}"
    );
    let old = machine.path("cuda-12.8").display().to_string();
    assert!(
        document["type"].as_str().is_some_and(|command| command.contains(&format!("CUDA_HOME={old} "))),
        "{document:#}"
    );
    let found = verdicts(&document, "mamba-ssm");
    assert!(found[0].0 == "bad" && found[0].1.contains("nothing for your GPU (sm_120)"), "{found:?}");
}

#[test]
fn copies_that_stand_before_each_other_are_named() {
    let machine = Machine::bare();
    machine.whole();
    let library = || extension(&[120]).elf();
    let python = machine.python("12.8", &[("mamba-ssm", "2.2.4", "mamba_ssm/a.so", library())]);
    let site = Path::new(&python).parent().and_then(Path::parent).expect("the environment");
    let record = walk(site)
        .into_iter()
        .find(|path| path.ends_with("mamba_ssm-2.2.4.dist-info/RECORD"))
        .expect("RECORD");
    fs::write(&record, "mamba_ssm/a.so,,\nmamba_ssm/__init__.py,,\n").expect("a file");
    let copy = machine.path("work/mamba-1p1p1/mamba_ssm");
    fs::create_dir_all(&copy).expect("a folder");
    fs::write(copy.join("__init__.py"), "").expect("a file");
    let document = machine.json(&["doctor", "--python", &python], &[]);
    let found = verdicts(&document, "shadow");
    assert!(found[0].0 == "warn" && found[0].1.contains("lies in ./mamba-1p1p1/mamba_ssm too"), "{found:?}");
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = |path: PathBuf| if path.is_dir() && !path.is_symlink() { walk(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

#[test]
fn nvidia_smi_that_knows_no_capability_is_no_gpu_of_a_known_kind() {
    let machine = Machine::bare();
    machine.tool("bin/nvidia-smi", "Field \"compute_cap\" is not a valid field to query.");
    let document = machine.json(&["doctor"], &[]);
    assert_eq!(document["facts"]["gpus"], serde_json::json!([]));
    assert_eq!(document["fit"], false);
}

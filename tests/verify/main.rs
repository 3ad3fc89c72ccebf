//! `verify` on small modules in environments of their own: real files for the loader, smoke tests of a private patch set,
//! and a stand-in for PyTorch that has a GPU or none.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// An environment, a folder to type in, and a folder of patch sets.
struct Place {
    root: tempfile::TempDir,
    site: PathBuf,
}

struct Run {
    code: i32,
    out: String,
    err: String,
}

/// A Python module in C, written out so that no header is needed.
const MODULE: &str = r#"
struct definition { long count; void *type, *init; long index; void *copy; const char *name, *doc; long size;
                    void *methods, *slots, *traverse, *clear, *free; };
static struct definition definition = { 1, 0, 0, 0, 0, "NAME", 0, -1, 0, 0, 0, 0, 0 };
extern void *PyModule_Create2(void *, int);
void *PyInit_NAME(void) { BODY; return PyModule_Create2(&definition, 1013); }
"#;

const GPU: &str = "__version__ = '2.11.0'\nclass cuda:\n    is_available = lambda: True\n    get_device_name = lambda: 'A GPU'\n";
const NO_GPU: &str = "__version__ = '2.11.0'\nclass cuda:\n    is_available = lambda: False\n";

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let made = Command::new("python3")
            .args(["-m", "venv", "--without-pip"])
            .arg(root.path().join("env"))
            .status();
        assert!(made.expect("python3").success());
        let script = "import site; print(site.getsitepackages()[0])";
        let site = Command::new(root.path().join("env/bin/python")).args(["-c", script]).output();
        let site = PathBuf::from(String::from_utf8(site.expect("python").stdout).expect("UTF-8").trim());
        fs::create_dir(root.path().join("here")).expect("a folder");
        Self { root, site }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A file of the environment.
    fn put(&self, name: &str, text: &str) -> &Self {
        write(&self.site.join(name), text);
        self
    }

    /// A patch set whose upstream is the module `kernels`.
    fn smoke(&self, script: &str) -> &Self {
        let upstream = "url = \"https://example.org/kernels\"\ndistribution = \"some-kernels\"\nmodule = \"kernels\"\n\
            floor = \"11.0\"\ntested-through = \"1.0\"\npatches = []\n\
            [[recognise]]\nfile = \"setup.py\"\npattern = 'name=.some-kernels'\n";
        write(&self.path("sets/some-kernels/upstream.toml"), upstream);
        write(&self.path("sets/some-kernels/smoke.py"), script);
        self
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
        command.arg("verify").args(arguments).arg("--python").arg(self.path("env/bin/python"));
        if self.path("sets").is_dir() {
            command.arg("--patchsets").arg(self.path("sets"));
        }
        for name in ["PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"] {
            command.env_remove(name);
        }
        command.env("MAMBAPATCH_CONFIG", self.path("config")).env("HOME", self.path("home"));
        let ended = command.current_dir(self.path("here")).output().expect("mambapatch");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Run { code: ended.status.code().unwrap_or(-1), out: text(ended.stdout), err: text(ended.stderr) }
    }

    fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let run = self.run(&[arguments, &["--format", "json"]].concat());
        let document: Value = serde_json::from_str(&run.out).expect(&run.out);
        (run.code, document["subjects"][0].clone())
    }

    /// Every file of the environment, with its size.
    fn files(&self) -> BTreeMap<PathBuf, u64> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path("env")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let kind = entry.file_type().expect("a type");
                if kind.is_dir() {
                    folders.push(entry.path())
                }
                files.insert(entry.path(), entry.metadata().expect("a file").len());
            }
        }
        files
    }
}

impl Run {
    fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        for word in words {
            assert!(self.out.contains(word) || self.err.contains(word), "{word}: {}{}", self.out, self.err);
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// A compiled module; `body` runs when it is loaded.
fn compile(path: &Path, name: &str, body: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let source = path.with_extension("c");
    fs::write(&source, MODULE.replace("NAME", name).replace("BODY", body)).expect("a file");
    let ended = Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(path).arg(&source).output();
    let ended = ended.expect("cc");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    fs::remove_file(source).expect("a file");
}

fn wheel(path: &Path, files: &[(&str, &[u8])]) {
    let mut archive = zip::ZipWriter::new(fs::File::create(path).expect("a file"));
    for (name, bytes) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).expect("a member");
        archive.write_all(bytes).expect("a member");
    }
    archive.finish().expect("a wheel");
}

/// What a smoke test prints of a check.
fn check(error: &str) -> String {
    format!("print('''{{\"check\": \"conv\", \"tolerance\": 1e-3, \"error\": {error}}}''')\n")
}

#[test]
fn a_module_is_imported_and_its_compiled_files_are_loaded() {
    let place = Place::new();
    place.put("knn/__init__.py", "__version__ = '0.3'\nprint('noise')\n");
    compile(&place.site.join("knn/_C.so"), "_C", "");
    place
        .run(&["knn"])
        .says(0, &["knn 0.3: Python 3.", "imported", "loaded", "_C.so", "no smoke test is known"]);
    let (code, document) = place.json(&["knn"]);
    assert_eq!((code, document["verdict"].as_str()), (0, Some("imported")));
    assert_eq!(document["files"][0].as_str(), place.site.join("knn/_C.so").to_str());
}

#[test]
fn what_lies_in_the_current_folder_does_not_count() {
    let place = Place::new();
    place.put("knn.py", "");
    write(&place.path("here/knn/__init__.py"), "raise ImportError('the wrong one')\n");
    place.run(&["knn"]).says(0, &["imported"]);
}

#[test]
fn the_error_of_the_loader_is_shown_with_its_cause() {
    let place = Place::new();
    place.put("torch/__init__.py", NO_GPU).put("torch/version.py", "__version__ = '2.11.0'\n");
    let symbol = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";
    let body = format!("extern int {symbol}; static int *held; held = &{symbol}; {symbol} = 1");
    compile(&place.site.join("selective_scan_cuda.so"), "selective_scan_cuda", &body);
    let run = place.run(&["selective_scan_cuda"]);
    run.says(2, &["not imported: selective_scan_cuda", &format!("undefined symbol: {symbol}"), "cause:"]);
    let (code, document) = place.json(&["selective_scan_cuda"]);
    assert_eq!((code, document["verdict"].as_str()), (2, Some("not-imported")));
    assert!(document["causes"].as_array().is_some_and(|causes| !causes.is_empty()), "{document}");
}

#[test]
fn a_module_that_hides_the_error_of_its_file_hides_it_not_here() {
    let place = Place::new();
    place.put("knn/__init__.py", "try:\n    from . import _C\nexcept ImportError:\n    _C = None\n");
    compile(&place.site.join("knn/_C.so"), "_C", "extern int nowhere(void); nowhere()");
    place.run(&["knn"]).says(2, &["cannot load", "knn/_C.so", "undefined symbol: nowhere"]);
}

/// A library that is linked with a runtime of CUDA which is not there.
fn library(path: &Path, runtime: &str, source: &str) {
    let folder = path.parent().expect("a folder");
    let (stub, code) = (folder.join(runtime), folder.join("library.c"));
    let compile = |out: &Path, text: &str, more: &[&std::ffi::OsStr]| {
        write(&code, text);
        let soname = format!("-Wl,-soname,{}", out.file_name().expect("a name").to_string_lossy());
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-w", &soname, "-o"]).arg(out).arg(&code).args(more);
        assert!(command.status().expect("cc").success());
    };
    compile(&stub, "void cudaFree(void) {}", &[]);
    compile(path, source, &[stub.as_os_str()]);
    [stub, code].iter().for_each(|file| fs::remove_file(file).expect("a file"));
}

#[test]
fn a_library_for_another_toolkit_is_told_and_fails_nothing() {
    const CODE: &str = "extern void cudaFree(void); void run(void) { cudaFree(); }";
    let place = Place::new();
    place.put("bits/__init__.py", "");
    library(&place.site.join("bits/libbits_cuda118.so"), "libcudart.so.11.0", CODE);
    library(&place.site.join("bits/libbits_cuda117_nocublaslt.so"), "libcudart.so.11.0", CODE);
    let told = [
        "bits: Python 3.",
        "libbits_cuda117_nocublaslt.so, libbits_cuda118.so",
        "there is no libcudart.so.11.0",
    ];
    place.run(&["bits"]).says(0, &told);
    let (code, document) = place.json(&["bits"]);
    assert_eq!(
        (code, &document["other-toolkits"][1]["lacks"]),
        (0, &"libcudart.so.11.0".into()),
        "{document}"
    );
    place
        .run(&[place.site.join("bits/libbits_cuda118.so").to_str().expect("UTF-8")])
        .says(2, &["cannot load"]);
    // What is not for another toolkit by its name, is a module, or is for the toolkit of PyTorch, must load.
    let refused = |name: &str, code: &str| {
        let file = place.site.join("bits").join(name);
        library(&file, "libcudart.so.11.0", code);
        place.run(&["bits"]).says(2, &["cannot load", name, "libcudart.so.11.0", "cause:"]);
        fs::remove_file(file).expect("a file");
    };
    refused("libbits.so", CODE);
    refused("lib_cuda118.so", &format!("{CODE} void PyInit_lib_cuda118(void) {{}}"));
    place.put("torch/__init__.py", &format!("{NO_GPU}class version:\n    cuda = '11.8'\n"));
    place.run(&["bits"]).says(2, &["cannot load", "libcudart.so.11.0"]);
}

#[test]
fn a_file_for_another_python_is_told() {
    let place = Place::new();
    place.put("knn/__init__.py", "import torch\n");
    compile(&place.site.join("knn/_C.cpython-27-x86_64-linux-gnu.so"), "_C", "");
    let run = place.run(&["knn"]);
    run.says(2, &["is for Python 2.7, and this is Python 3.", "--python", "hint:"]);
    assert!(!run.out.contains("cause:"), "that of another error: {}", run.out);
    fs::remove_file(place.site.join("knn/_C.cpython-27-x86_64-linux-gnu.so")).expect("a file");
    place.run(&["knn"]).says(2, &["cannot import knn", "No module named 'torch'", "cause:"]);
}

#[test]
fn a_crash_ends_its_own_process_only() {
    let place = Place::new();
    place.put("knn.py", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n");
    place.run(&["knn"]).says(2, &["cannot import knn", "SIGSEGV"]);
}

#[test]
fn what_is_not_installed_is_told() {
    let place = Place::new();
    place.run(&["knn"]).says(2, &["no module and no package `knn` is installed", "hint:"]);
    place.run(&[]).says(2, &["none of causal_conv1d, mamba_ssm is installed", "hint:"]);
    place.run(&["./knn"]).says(2, &["does not exist"]);
    place.run(&["/bin/sh"]).says(2, &["/bin/sh is no compiled extension", "hint:"]);
    write(&place.path("here/tree/setup.py"), "");
    place.run(&["./tree"]).says(2, &["holds no compiled file", "mambapatch verify MODULE"]);
}

#[test]
fn a_smoke_test_passes_or_is_wrong_by_its_numbers() {
    let place = Place::new();
    place.put("torch.py", GPU).put("kernels/__init__.py", "__version__ = '1.0'\n");
    for (error, code, verdict) in [
        ("9e-4", 0, "passed"),
        ("1.1e-3", 1, "wrong"),
        ("null", 1, "wrong"),
        ("NaN", 1, "wrong"),
        ("-1", 1, "wrong"),
    ] {
        place.smoke(&check(error));
        let (ended, document) = place.json(&["kernels"]);
        assert_eq!((ended, document["verdict"].as_str()), (code, Some(verdict)), "{error}");
        assert_eq!(document["gpu"], "A GPU");
        assert_eq!(document["checks"].as_array().map(Vec::len), Some(1));
        assert_eq!(document["checks"][0]["passed"], verdict == "passed");
    }
    place.smoke(&check("9e-4"));
    place.run(&[]).says(0, &["kernels 1.0", "A GPU", "conv", "9.0e-4", "1e-3", "verified: 1 checks passed"]);
    place.smoke(&[check("1e-4"), check("2")].concat());
    place.run(&["some-kernels"]).says(1, &["2.0e0", "wrong: 1 of 2 checks failed"]);
}

#[test]
fn a_smoke_test_that_ends_badly_has_failed() {
    let place = Place::new();
    place.put("torch.py", GPU).put("kernels/__init__.py", "");
    let raise =
        "raise RuntimeError('CUDA error: no kernel image is available for execution on the device')\n";
    place.smoke(&[&check("1e-4"), raise].concat());
    place.run(&["kernels"]).says(1, &["no kernel image is available", "wrong: 1 of 2", "cause:"]);
    place.smoke("import os\nos.abort()\n");
    place.run(&["kernels"]).says(1, &["SIGABRT", "wrong: 1 of 1"]);
    place.smoke("");
    place.run(&["kernels"]).says(1, &["it checked nothing"]);
}

#[test]
fn without_a_gpu_it_goes_as_far_as_the_import() {
    let place = Place::new();
    place.put("kernels/__init__.py", "").smoke("raise SystemExit('it ran')");
    place.run(&["kernels"]).says(0, &["imported; not run:", "no GPU (PyTorch is not installed)"]);
    place.put("torch.py", NO_GPU);
    place.run(&["kernels"]).says(0, &["imported; not run:", "no GPU (torch 2.11.0 finds none)"]);
    assert_eq!(place.json(&["kernels"]).1["verdict"], "not-run");
}

#[test]
fn a_wheel_is_verified_without_being_installed_and_nothing_is_written() {
    let place = Place::new();
    place.put("torch.py", GPU).put("kernels/__init__.py", "raise ImportError('the installed one')\n");
    place.smoke(&["import kernels\nassert kernels.__version__ == '2.0'\n", &check("0")].concat());
    compile(&place.path("_kernels.so"), "_kernels", "");
    let code = fs::read(place.path("_kernels.so")).expect("a file");
    let path = place.path("here/some_kernels-2.0-py3-none-any.whl");
    let module = b"__version__ = '2.0'\nimport _kernels\n";
    wheel(&path, &[("kernels/__init__.py", module), ("_kernels.so", &code)]);
    let before = place.files();
    let (ended, document) = place.json(&["./some_kernels-2.0-py3-none-any.whl"]);
    assert_eq!((ended, document["verdict"].as_str()), (0, Some("passed")), "{document}");
    assert_eq!(document["release"], "2.0");
    assert_eq!(document["files"].as_array().map(Vec::len), Some(1));
    assert_eq!(place.files(), before);
    assert!(!place.path("home").exists());
}

#[test]
fn a_wheel_of_another_extension_is_imported() {
    let place = Place::new();
    let metadata = b"Metadata-Version: 2.1\nName: knn-cuda\nVersion: 0.3\n";
    let record = b"knn/__init__.py,,\nknn_cuda-0.3.dist-info/RECORD,,\n";
    let path = place.path("here/knn_cuda-0.3-py3-none-any.whl");
    wheel(
        &path,
        &[
            ("knn/__init__.py", b""),
            ("knn_cuda-0.3.dist-info/METADATA", metadata),
            ("knn_cuda-0.3.dist-info/RECORD", record),
        ],
    );
    let (code, document) = place.json(&["knn_cuda-0.3-py3-none-any.whl"]);
    assert_eq!((code, document["modules"][0]["name"].as_str()), (0, Some("knn")), "{document}");
}

#[test]
fn a_wheel_that_reaches_out_of_its_folder_is_refused() {
    let place = Place::new();
    wheel(&place.path("here/knn-1-py3-none-any.whl"), &[("../../evil.py", b"")]);
    place.run(&["knn-1-py3-none-any.whl"]).says(2, &["cannot unpack", "hint:"]);
    fs::write(place.path("here/cut-1-py3-none-any.whl"), "PK").expect("a file");
    place.run(&["cut-1-py3-none-any.whl"]).says(2, &["cannot unpack", "hint:"]);
}

#[test]
fn a_tree_is_verified_as_it_was_built_in_place_or_as_it_is_installed() {
    let place = Place::new();
    place.put("torch.py", GPU).put("kernels/__init__.py", "__version__ = 'installed'\n").smoke(&check("0"));
    write(&place.path("here/tree/setup.py"), "setup(name='some-kernels')\n");
    write(&place.path("here/tree/kernels/__init__.py"), "__version__ = 'in place'\n");
    assert_eq!(place.json(&["./tree"]).1["release"], "installed");
    compile(&place.path("here/tree/_kernels.so"), "_kernels", "");
    let (code, document) = place.json(&["./tree"]);
    assert_eq!((code, document["release"].as_str()), (0, Some("in place")), "{document}");
    assert_eq!(document["files"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_tree_of_another_extension_is_loaded_where_it_was_built() {
    let place = Place::new();
    compile(&place.path("here/other/ops/_C.so"), "_C", "");
    place.run(&["./other"]).says(0, &["loaded", "_C.so"]);
    place.run(&["./other/ops/_C.so"]).says(0, &["loaded", "_C.so"]);
    compile(&place.path("here/other/ops/_C.so"), "_C", "extern int nowhere(void); nowhere()");
    place.run(&["./other"]).says(2, &["undefined symbol: nowhere"]);
}

//! A machine with a Python that has pip (a stand-in that runs the tree's setup.py), PyTorch as far as files tell, and
//! toolkits made of scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::binaries::extension;

/// What stands where pip does: it checks how it is called, and lets setup.py make the wheel.
const PIP: &str = r#"
import os, subprocess, sys, sysconfig, zipfile
words = sys.argv[1:]
if words[0] == "install":
    assert "--no-deps" in words and "--force-reinstall" in words, words
    print("installing", words[-1])
    zipfile.ZipFile(words[-1]).extractall(sysconfig.get_path("purelib"))
    sys.exit(0)
for flag in ["-v", "--no-build-isolation", "--no-deps", "--no-cache-dir"]:
    assert flag in words, flag
assert words[0] == "wheel" and "-m" not in words, words
into, tree = words[words.index("--wheel-dir") + 1], words[-1]
sys.exit(subprocess.call([sys.executable, "setup.py", into], cwd=tree))
"#;

/// The setup.py of an extension for sm_80; what it does when it runs is appended.
const SETUP: &str = r#"
import os, sys, zipfile
from packaging.version import Version as _unused
# CUDAExtension, nvcc
flags = ["-gencode", "arch=compute_80,code=sm_80"]
INIT = "print('imported')\n"
into, here = sys.argv[1], os.path.dirname(os.path.abspath(__file__))

def wheel(*libraries, name="some_extension-1.0-py3-none-any.whl", ending=".so"):
    with zipfile.ZipFile(os.path.join(into, name), "w") as file:
        file.writestr("some_extension/__init__.py", INIT)
        file.writestr("some_extension-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some-extension\nVersion: 1.0\n")
        file.writestr("some_extension-1.0.dist-info/RECORD", "some_extension/__init__.py,,\n")
        for library in libraries:
            file.write(os.path.join(here, library), f"some_extension/{library[:-3]}{ending}")

def compiled():
    """The libraries for the architectures of the flags."""
    return [f"for-{flag.split('sm_')[1]}.so" for flag in flags if "sm_" in flag]

with open(os.path.join(here, "ran.txt"), "w") as file:
    for name in ["CUDA_HOME", "MAX_JOBS", "NVCC_THREADS", "PATH", "DIST_EXTRA_CONFIG"]:
        file.write(f"{name}={os.environ[name]}\n")
    link = os.path.join(os.environ["CUDA_HOME"], "lib64", "libcudart.so")
    file.write(f"libcudart={os.path.realpath(link)}\n")
"#;

/// A build that goes well.
pub const GOOD: &str = r#"
print("building 'some_extension' extension")
print("[1/2] nvcc -c one.cu -o one.o", flush=True)
print("[2/2] nvcc -c two.cu -o two.o", flush=True)
wheel(*compiled())
"#;

/// What a run said.
#[derive(Debug)]
pub struct Run {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The machine.
pub struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    /// With PyTorch of CUDA 13.0, that toolkit among its packages, and an extension in `work/ext`.
    pub fn new(build: &str) -> Self {
        let machine = Self { root: tempfile::tempdir().expect("a folder") };
        ["bin", "work", "state", "home"].iter().for_each(|name| machine.folder(name));
        let environment = machine.path("env");
        let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(environment).output();
        assert!(made.expect("python3").status.success());
        machine.package("pip", "25.0", &[("pip/__init__.py", ""), ("pip/__main__.py", PIP)]);
        machine.package("setuptools", "80.0", &[]);
        machine.package(
            "packaging",
            "25.0",
            &[("packaging/__init__.py", ""), ("packaging/version.py", "Version = str\n")],
        );
        machine.package("ninja", "1.13", &[]);
        machine.torch("13.0");
        machine.tool("env/bin/ninja", "echo 1.13.0");
        machine.toolkit_of_packages();
        for arch in [80, 90, 120] {
            machine.write(&format!("work/ext/for-{arch}.so"), extension(&[arch]).elf());
        }
        machine.write("work/ext/setup.py", format!("{SETUP}{build}"));
        machine.write("work/ext/one.cu", "__global__ void one() {}\n");
        machine
    }

    /// A path below the root.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().expect("a folder").join(name)
    }

    fn folder(&self, name: &str) {
        fs::create_dir_all(self.path(name)).expect("a folder");
    }

    /// Writes a file below the root.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    /// A file below the root, as text.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A program of the machine.
    pub fn tool(&self, name: &str, does: &str) {
        self.write(name, format!("#!/bin/sh\n{does}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("executable");
    }

    /// An nvcc.
    pub fn toolkit(&self, home: &str, release: &str) {
        self.tool(&format!("{home}/bin/nvcc"), &format!("echo 'release {release}, V{release}.88'"));
    }

    fn site(&self) -> String {
        let lib = fs::read_dir(self.path("env/lib")).expect("the environment").flatten().next();
        let name = lib.expect("a folder").file_name().to_string_lossy().into_owned();
        format!("env/lib/{name}/site-packages")
    }

    /// An installed package.
    pub fn package(&self, name: &str, version: &str, files: &[(&str, &str)]) {
        let site = self.site();
        let info = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
        self.write(&format!("{site}/{name}-{version}.dist-info/METADATA"), info);
        files.iter().for_each(|(file, text)| self.write(&format!("{site}/{file}"), text));
    }

    /// Takes a package away.
    pub fn without(&self, name: &str, version: &str) {
        let site = self.site();
        fs::remove_dir_all(self.path(&format!("{site}/{name}-{version}.dist-info"))).expect("a package");
        let _ = fs::remove_dir_all(self.path(&format!("{site}/{name}")));
    }

    /// PyTorch; nothing imports it.
    pub fn torch(&self, cuda: &str) {
        let cuda = if cuda.is_empty() { "None".to_string() } else { format!("'{cuda}'") };
        let version = format!("__version__ = '2.11.0+cu'\ncuda: Optional[str] = {cuda}\n");
        let raises = "raise ImportError('torch must not be imported')\n";
        self.package("torch", "2.11.0", &[("torch/__init__.py", raises), ("torch/version.py", &version)]);
    }

    /// PyTorch, so far that it can be imported; it finds no GPU.
    pub fn torch_that_imports(&self) {
        let text = "__version__ = '2.11.0'\nclass cuda:\n    is_available = staticmethod(lambda: False)\n";
        self.write(&format!("{}/torch/__init__.py", self.site()), text);
    }

    /// CUDA 13.0 as the packages of Python have it: no lib64, no libcudart.so.
    fn toolkit_of_packages(&self) {
        let home = format!("{}/nvidia/cu13", self.site());
        self.toolkit(&home, "13.0");
        let parts =
            ["nvvm/bin/cicc", "include/cuda_runtime.h", "include/crt/host_config.h", "include/nv/target"];
        let all = parts.into_iter().chain(["lib/libcudart.so.13"]);
        all.for_each(|part| self.write(&format!("{home}/{part}"), ""));
    }

    /// The home of that toolkit.
    pub fn home_of_packages(&self) -> PathBuf {
        self.path(&format!("{}/nvidia/cu13", self.site()))
    }

    /// The program in `work`, on this machine alone.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
        command.args(arguments).current_dir(self.path("work")).env_clear();
        command.env("PATH", self.path("bin")).env("VIRTUAL_ENV", self.path("env"));
        command.env("HOME", self.path("home")).env("MAMBAPATCH_STATE", self.path("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Builds `work/ext` for sm_120 with more flags.
    pub fn build(&self, flags: &[&str]) -> Run {
        let arguments = [&["build", "./ext", "--only-arch", "120"], flags].concat();
        Run::of(self.command(&arguments).output().expect("the program"))
    }

    /// The same, begun; how signals are taken, as env says it.
    #[cfg(target_os = "linux")]
    pub fn begin(&self, signals: &str, flags: &[&str]) -> Child {
        let arguments = [&["build", "./ext", "--only-arch", "120"], flags].concat();
        let build = self.command(&arguments);
        // A test run in the background has these signals ignored, and mambapatch would leave them so.
        let mut command = Command::new("/usr/bin/env");
        command
            .args(["--default-signal=INT,HUP,TERM", signals])
            .arg(build.get_program())
            .args(build.get_args());
        command.current_dir(self.path("work")).env_clear();
        command.envs(build.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program")
    }

    /// The wheels in a folder of `work`.
    pub fn wheels(&self, folder: &str) -> Vec<String> {
        names(&self.path("work").join(folder))
    }

    /// The log of the only build.
    pub fn log(&self) -> String {
        let logs = names(&self.path("state/logs"));
        assert_eq!(logs.len(), 1, "{logs:?}");
        self.text(&format!("state/logs/{}", logs[0]))
    }

    /// A line of what setup.py saw.
    pub fn seen(&self, name: &str) -> String {
        let text = self.text("work/ext/ran.txt");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("{name}\n{text}")).to_string()
    }
}

/// The names in a folder; none where it is not there.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

impl Run {
    /// What a finished process left.
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }

    /// Fails unless it ended so, and said all of this on standard error.
    #[track_caller]
    pub fn ends(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{self:#?}");
        parts.iter().for_each(|part| assert!(self.err.contains(part), "{part}\n{}\n{}", self.err, self.out));
    }
}

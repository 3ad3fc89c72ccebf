//! A Python environment that really builds: PyTorch 2.11 of CUDA 13.0, its libraries, and the compiler, from packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::say;

/// PyTorch 2.11.0 and, of what it asks for, all without which it cannot be imported: triton and nvrtc are not among that.
/// nvvm and crt are pinned with nvcc, cusolver is there for its headers.
const PACKAGES: [&str; 32] = [
    "pip==25.3",
    "setuptools==80.9.0",
    "wheel==0.45.1",
    "packaging==25.0",
    "ninja==1.13.0",
    "torch==2.11.0",
    "filelock",
    "typing-extensions",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "markupsafe",
    "fsspec",
    "nvidia-cublas==13.1.0.3",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-cupti==13.0.85",
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cudnn-cu13==9.19.0.56",
    "nvidia-cufft==12.0.0.61",
    "nvidia-cufile==1.15.1.6",
    "nvidia-curand==10.4.0.35",
    "nvidia-cusolver==12.0.4.66",
    "nvidia-cusparse==12.6.3.3",
    "nvidia-cusparselt-cu13==0.8.0",
    "nvidia-nccl-cu13==2.28.9",
    "nvidia-nvjitlink==13.0.88",
    "nvidia-nvshmem-cu13==3.4.5",
    "nvidia-nvtx==13.0.85",
    "nvidia-nvvm==13.0.88",
];

/// A virtual environment.
#[derive(Debug, Clone)]
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment, made unless it is there already; half a one is made anew.
    pub fn get() -> Self {
        static MADE: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
        let _alone = MADE.lock().unwrap_or_else(|broken| broken.into_inner());
        let root = std::env::var_os("MAMBAPATCH_TOOLCHAIN").filter(|value| !value.is_empty());
        let root = root.map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).to_path_buf(), PathBuf::from);
        let digest = Sha256::digest(PACKAGES.join(" "));
        let pins: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let folder = root.join(format!("torch-2.11-{}-{pins}", std::env::consts::ARCH));
        let environment = Self { folder: folder.clone() };
        if !folder.join("whole").exists() {
            let _ = fs::remove_dir_all(&folder);
            environment.make();
            fs::write(folder.join("whole"), "").expect("a file can be written");
        }
        environment
    }

    fn make(&self) {
        let (python, began) =
            (std::env::var_os("MAMBAPATCH_TEST_PYTHON").unwrap_or("python3".into()), Instant::now());
        say(
            "making an environment of PyTorch 2.11.0 and nvcc 13.0, about 2.3 GB to fetch and 4.2 GB on disk",
        );
        // Without pip: Debian's python3 has no ensurepip.
        run(Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(&self.folder));
        let install =
            ["-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:"];
        let site = "import sysconfig; print(sysconfig.get_path('purelib'))";
        let site = run(Command::new(self.python()).args(["-c", site]));
        run(Command::new(&python).args(install).args(["--target", site.trim(), PACKAGES[0]]));
        run(Command::new(self.python()).args(install).args(PACKAGES));
        say(&format!("made after {} s", began.elapsed().as_secs()));
    }

    /// What VIRTUAL_ENV names.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its Python.
    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }
}

/// What a program that ends well prints.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("python can be run");
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

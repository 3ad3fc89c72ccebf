//! nvcc and the headers of CUDA and PyTorch, taken from packages; nothing of them is installed or imported.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::say;

/// What PyTorch 2.11.0 was built with, pinned one by one: where nvvm and crt are not those of nvcc, every compile dies
/// in ptxas. The libraries of mathematics are there for their headers: ATen/cuda/CUDAContext.h includes them.
const PACKAGES: [&str; 11] = [
    "torch==2.11.0",
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cublas==13.1.0.3",
    "nvidia-cusparse==12.6.3.3",
    "nvidia-cusolver==12.0.4.66",
    "nvidia-curand==10.4.0.35",
    "nvidia-cuda-profiler-api==13.0.85",
];

/// What is unpacked of them: no library that is only linked.
const PARTS: [&str; 4] = ["torch/include/", "nvidia/cu13/bin/", "nvidia/cu13/include/", "nvidia/cu13/nvvm/"];

/// A compiler and its headers.
#[derive(Debug, Clone)]
pub struct Toolchain {
    folder: PathBuf,
}

impl Toolchain {
    /// The toolchain, fetched unless it is there already.
    pub fn get() -> Self {
        static FETCHED: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
        let _alone = FETCHED.lock().unwrap_or_else(|broken| broken.into_inner());
        let root = std::env::var_os("MAMBAPATCH_TOOLCHAIN").filter(|value| !value.is_empty());
        let root = root.map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).to_path_buf(), PathBuf::from);
        let folder = root.join(format!("nvcc-13.0-{}-{}", std::env::consts::ARCH, Self::pins()));
        if !folder.is_dir() {
            fs::create_dir_all(&root).expect("a folder can be made");
            fetch(&root, &folder);
        }
        Self { folder }
    }

    /// A name for exactly these packages.
    pub fn pins() -> String {
        let digest = Sha256::digest(PACKAGES.join(" "));
        digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }

    /// nvcc.
    pub fn nvcc(&self) -> PathBuf {
        self.cuda().join("bin/nvcc")
    }

    /// CUDA_HOME.
    pub fn cuda(&self) -> PathBuf {
        self.folder.join("nvidia/cu13")
    }

    /// The folders that hold PyTorch's headers.
    pub fn torch(&self) -> [PathBuf; 2] {
        ["torch/include", "torch/include/torch/csrc/api/include"].map(|folder| self.folder.join(folder))
    }
}

/// Fetches beside the final place and renames, so that half a toolchain is never taken for one.
fn fetch(root: &Path, folder: &Path) {
    let temporary = tempfile::tempdir_in(root).expect("a temporary folder");
    let (wheels, tree) = (temporary.path().join("wheels"), temporary.path().join("tree"));
    say(&format!("fetching {}", PACKAGES.join(" ")));
    for package in PACKAGES {
        download(package, &wheels);
        for wheel in fs::read_dir(&wheels).expect("the folder of wheels") {
            let wheel = wheel.expect("a wheel").path();
            unpack(&wheel, &tree).unwrap_or_else(|error| panic!("{}: {error}", wheel.display()));
            fs::remove_file(wheel).expect("a wheel can be removed");
        }
    }
    fs::rename(tree, folder).expect("the toolchain can be moved to its place");
}

fn download(package: &str, into: &Path) {
    let python = std::env::var_os("MAMBAPATCH_TEST_PYTHON").unwrap_or("python3".into());
    let machine = std::env::consts::ARCH;
    let mut command = Command::new(python);
    command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]);
    command.args(["--implementation", "cp", "--python-version", "3.11", "--abi", "cp311", "--abi", "none"]);
    for glibc in ["manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"] {
        command.arg(format!("--platform={glibc}_{machine}"));
    }
    command.arg("--dest").arg(into).arg(package);
    let output = command.stdin(Stdio::null()).output().expect("pip can be run");
    assert!(output.status.success(), "{package}: {}", String::from_utf8_lossy(&output.stderr));
}

fn unpack(wheel: &Path, into: &Path) -> io::Result<()> {
    let mut archive = ZipArchive::new(File::open(wheel)?)?;
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number)?;
        let Some(path) = entry.enclosed_name().filter(|_| entry.is_file()) else { continue };
        if !PARTS.iter().any(|part| path.starts_with(part)) {
            continue;
        }
        let path = into.join(path);
        fs::create_dir_all(path.parent().unwrap_or(into))?;
        io::copy(&mut entry, &mut File::create(&path)?)?;
        set_mode(&path, entry.unix_mode())?;
    }
    Ok(())
}

/// The compiler must be executable.
fn set_mode(path: &Path, mode: Option<u32>) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(mode) = mode {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o777))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

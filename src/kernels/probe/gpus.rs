//! GPUs and driver: nvidia-smi, else what the driver tells in /proc, else the board's name.

use std::fs;
use std::process::Command;

use crate::engine::arch::Arch;
use crate::engine::catalogue::{Catalogue, GpuMatch};
use crate::kernels::facts::{Driver, Gpu};
use crate::kernels::process::output;

/// The GPUs of this machine, and their driver.
pub fn gpus() -> (Vec<Gpu>, Option<Driver>) {
    let query = "--query-gpu=compute_cap,name,driver_version";
    let listed = output(Command::new("nvidia-smi").args([query, "--format=csv,noheader"]));
    if let Some(text) = listed {
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split(',').map(str::trim).collect()).collect();
        let version = rows.iter().find_map(|row| row.get(2)).map(ToString::to_string);
        let gpus = rows.iter().filter_map(|row| gpu(row)).collect();
        return (gpus, Some(Driver { version, cuda: driver_cuda() }));
    }
    let version =
        fs::read_to_string("/proc/driver/nvidia/version").ok().and_then(|text| driver_version(&text));
    let gpus: Vec<Gpu> = models().into_iter().map(named).collect();
    let driver = version.map(|version| Driver { version: Some(version), cuda: None });
    (gpus, driver)
}

/// The architectures, each once.
pub fn arches(gpus: &[Gpu]) -> Vec<Arch> {
    let mut arches: Vec<Arch> = gpus.iter().filter_map(|gpu| gpu.arch.as_ref()?.parse().ok()).collect();
    arches.sort();
    arches.dedup();
    arches
}

fn gpu(row: &[&str]) -> Option<Gpu> {
    let arch: Arch = row.first()?.parse().ok()?;
    Some(Gpu { name: row.get(1).map(ToString::to_string), arch: Some(arch.to_string()) })
}

/// The head of what nvidia-smi prints: `CUDA Version: 13.0`, since 590 `CUDA UMD Version: 13.1`.
fn driver_cuda() -> Option<String> {
    let text = output(&mut Command::new("nvidia-smi"))?;
    let after = text.split_once("CUDA Version:").or_else(|| text.split_once("CUDA UMD Version:"))?.1;
    let version = after.split_whitespace().next()?;
    version.parse::<crate::engine::toolkit::Toolkit>().ok().map(|toolkit| toolkit.to_string())
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  …`.
fn driver_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    line.split_whitespace().find(is_version).map(String::from)
}

/// The names of GPUs that the driver or the board tells.
fn models() -> Vec<String> {
    let folders = fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten();
    let texts = folders.filter_map(|entry| fs::read_to_string(entry.path().join("information")).ok());
    let mut models: Vec<String> = texts
        .filter_map(|text| {
            Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_string())
        })
        .collect();
    if models.is_empty() {
        let board = fs::read_to_string("/proc/device-tree/model").unwrap_or_default();
        let board = board.trim_matches(['\0', ' ', '\n']);
        models.extend(board.contains("Jetson").then(|| board.to_string()));
    }
    models
}

fn named(name: String) -> Gpu {
    let arch = match Catalogue::shipped().find_gpu(&name) {
        GpuMatch::One(gpu) => Some(gpu.arch.to_string()),
        _ => None,
    };
    Gpu { name: Some(name), arch }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_versions_are_read() {
        let one = gpu(&["12.0", "NVIDIA GeForce RTX 5090", "580.65.06"]).expect("a GPU");
        assert_eq!(
            (one.arch.as_deref(), one.name.as_deref()),
            (Some("120"), Some("NVIDIA GeForce RTX 5090"))
        );
        assert_eq!(gpu(&["[N/A]", "x"]), None);
        let text =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\nGCC version: 12.2.0\n";
        assert_eq!(driver_version(text).as_deref(), Some("580.65.06"));
        assert_eq!(named("NVIDIA GeForce RTX 5090".into()).arch.as_deref(), Some("120"));
        assert_eq!(named("unheard of".into()).arch, None);
    }
}

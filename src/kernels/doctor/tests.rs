use super::*;

fn judged(facts: &str) -> Vec<Verdict> {
    let facts: Facts = serde_json::from_str(facts).expect(facts);
    verdicts(&facts, Catalogue::shipped())
}

/// The verdict of a subject that is worst.
fn on(verdicts: &[Verdict], subject: &str) -> (Level, String, String) {
    let ours = verdicts.iter().filter(|verdict| verdict.subject == subject);
    let worst =
        ours.max_by_key(|verdict| verdict.level).unwrap_or_else(|| panic!("{subject}: {verdicts:#?}"));
    (worst.level, worst.what.clone(), worst.command.clone().unwrap_or_default())
}

const GOOD: &str = r#"{
    "system": "linux", "machine": "x86_64", "cores": 8, "memory": 64, "glibc": "2.36", "ninja": "1.13",
    "gpus": [{"name": "NVIDIA GeForce RTX 5090", "arch": "120"}],
    "driver": {"version": "580.65.06", "cuda": "13.0"},
    "toolkits": [{"nvcc": "/usr/local/cuda-12.8/bin/nvcc", "version": "12.8"},
                 {"nvcc": "/usr/local/cuda-13.0/bin/nvcc", "version": "13.0", "ptxas": "13.0", "by": "PATH"}],
    "python": {"path": "/env/bin/python", "version": "3.11.7"},
    "torch": {"version": "2.11.0+cu130", "cuda": "13.0", "cxx11-abi": true, "codes": ["sm_90", "sm_120"]},
    "compilers": [{"kind": "gcc", "version": "13.3.0", "path": "/usr/bin/c++", "by": "PATH"}],
    "extensions": [{"package": "mamba-ssm", "version": "2.2.6", "file": "/env/selective_scan_cuda.so",
                    "codes": ["sm_120"], "torch": "2.10 to 2.13", "cuda": 13}]
}"#;

/// The facts of a fit machine, with some of them others.
fn with(changes: &str) -> Vec<Verdict> {
    let mut facts: serde_json::Value = serde_json::from_str(GOOD).expect("facts");
    let changes: serde_json::Value = serde_json::from_str(changes).expect(changes);
    for (name, value) in changes.as_object().expect("an object") {
        facts[name] = value.clone();
    }
    judged(&facts.to_string())
}

#[test]
fn a_fit_machine_is_told_how_to_go_on() {
    let verdicts = judged(GOOD);
    assert!(is_fit(&verdicts), "{verdicts:#?}");
    assert_eq!(next(&verdicts), "mambapatch apply mamba-ssm --host");
    assert_eq!(on(&verdicts, "nvcc").0, Level::Note);
    assert_eq!(on(&verdicts, "room").0, Level::Good);
}

#[test]
fn every_part_may_be_missing() {
    let verdicts = judged("{}");
    assert!(!is_fit(&verdicts));
    assert_eq!(on(&verdicts, "Python").0, Level::Bad);
    assert_eq!(next(&verdicts), "pip install torch");
    for (name, nothing) in
        [("gpus", "[]"), ("driver", "null"), ("glibc", "null"), ("extensions", "[]"), ("memory", "null")]
    {
        let verdicts = with(&format!("{{\"{name}\": {nothing}}}"));
        assert!(is_fit(&verdicts), "{name}: {verdicts:#?}");
    }
    for (name, nothing) in [("torch", "null"), ("toolkits", "[]"), ("compilers", "[]"), ("python", "null")] {
        assert!(!is_fit(&with(&format!("{{\"{name}\": {nothing}}}"))), "{name}");
    }
}

/// What is changed, and the subject that is then bad, with parts of what is said and typed.
const BAD: &[(&str, &str, &str, &str)] = &[
    (
        r#"{"torch": {"version": "2.8.0+cu128", "cuda": "12.8", "codes": ["sm_120"]}, "extensions": []}"#,
        "nvcc",
        "another major",
        "export CUDA_HOME=/usr/local/cuda-12.8 ",
    ),
    (
        r#"{"torch": {"version": "2.5.1+cu124", "cuda": "13.0", "codes": ["sm_90"]}}"#,
        "PyTorch",
        "no code for your GPU (sm_120)",
        "pip install --upgrade torch",
    ),
    (r#"{"torch": {"version": "2.11.0"}}"#, "PyTorch", "without CUDA", "pip install --upgrade torch"),
    (r#"{"toolkits": []}"#, "nvcc", "no CUDA toolkit", "cuda-toolkit[nvcc,nvvm,crt,cccl]==13.0.*"),
    (
        r#"{"toolkits": [{"nvcc": "/x/bin/nvcc", "version": "13.0", "ptxas": "13.5"}]}"#,
        "nvcc",
        "its ptxas is of 13.5",
        "--force-reinstall",
    ),
    (r#"{"gpus": [{"arch": "61"}], "extensions": []}"#, "nvcc", "does not compile for your GPU (sm_61)", ""),
    (r#"{"variables": {"CUDA_HOME": "/nowhere"}}"#, "nvcc", "CUDA_HOME is /nowhere", "unset CUDA_HOME"),
    (
        r#"{"variables": {"TORCH_CUDA_ARCH_LIST": "12.0;compute"}}"#,
        "variable",
        "unknown: compute",
        "unset TORCH_CUDA_ARCH_LIST",
    ),
    (
        r#"{"compilers": [{"kind": "gcc", "version": "16.1.0", "path": "/usr/bin/c++", "by": "PATH"}]}"#,
        "compiler",
        "CUDA 13.0 takes gcc 15 at most",
        "export CC=gcc-15 CXX=g++-15",
    ),
    (
        r#"{"compilers": [{"kind": "msvc", "version": "19.50", "path": "cl.exe", "by": "VCToolsVersion"}]}"#,
        "compiler",
        "MSVC below 19.50",
        "",
    ),
    (r#"{"driver": {"version": "550.54.15", "cuda": "12.4"}}"#, "driver", "needs 580", ""),
    (
        r#"{"extensions": [{"package": "mamba-ssm", "version": "2.2.4", "file": "/e/a.so", "codes": ["sm_90"], "torch": "2.10 to 2.13", "cuda": 13}]}"#,
        "mamba-ssm 2.2.4",
        "nothing for your GPU (sm_120)",
        "mambapatch apply mamba-ssm@v2.2.4 --host",
    ),
    (
        r#"{"extensions": [{"package": "flash-attn", "version": "2.8.3", "file": "/e/a.so", "torch": "2.4", "cuda": 12}]}"#,
        "flash-attn 2.8.3",
        "loads CUDA 12, PyTorch was built with CUDA 13.0",
        "--no-binary flash-attn flash-attn==2.8.3",
    ),
    (
        r#"{"extensions": [{"package": "x", "version": "1", "file": "/e/a.so", "missing": ["_ZN3c10x"]}]}"#,
        "x 1",
        "takes _ZN3c10x",
        "--no-binary x",
    ),
    (
        r#"{"extensions": [{"package": "x", "version": "1", "file": "/e/a.so", "broken": "cut"}]}"#,
        "x 1",
        "cut",
        "--no-binary x",
    ),
    (
        r#"{"extensions": [{"package": "x", "version": "1", "file": "/e/a.so", "glibc": "2.38"}]}"#,
        "x 1",
        "needs glibc 2.38",
        "--no-binary x",
    ),
];

#[test]
fn what_does_not_fit_is_bad_and_has_a_command() {
    for (changes, subject, what, command) in BAD {
        let verdicts = with(changes);
        let (level, said, typed) = on(&verdicts, subject);
        assert_eq!(level, Level::Bad, "{changes}: {said}");
        assert!(said.contains(what) && typed.contains(command), "{changes}: {said}: {typed}");
        assert!(!is_fit(&verdicts));
    }
}

#[test]
fn pytorchs_own_table_and_the_c_library_count() {
    let old = r#""toolkits": [{"nvcc": "/x/bin/nvcc", "version": "12.8"}], "torch": {"version": "2.8.0+cu128", "cuda": "12.8", "codes": ["sm_120"]}, "extensions": []"#;
    let verdicts = with(&format!(
        r#"{{{old}, "compilers": [{{"kind": "gcc", "version": "14.3.0", "path": "c++", "by": "CXX"}}]}}"#
    ));
    let (level, what, command) = on(&verdicts, "compiler");
    assert!(
        level == Level::Bad
            && what.contains("PyTorch takes gcc below 14")
            && command.contains("TORCH_DONT_CHECK"),
        "{what}"
    );
    let verdicts = with(&format!(r#"{{{old}, "glibc": "2.42"}}"#));
    assert_eq!(on(&verdicts, "glibc").0, Level::Bad);
    let verdicts = with(r#"{"glibc": "2.42"}"#);
    assert_eq!(on(&verdicts, "glibc").0, Level::Good);
}

#[test]
fn what_may_go_wrong_does_not_make_a_machine_unfit() {
    for (changes, subject, level) in [
        (r#"{"ninja": null}"#, "ninja", Level::Warn),
        (r#"{"memory": 8}"#, "room", Level::Note),
        (r#"{"gpus": []}"#, "GPU", Level::Note),
        (
            r#"{"shadows": [{"module": "mamba_ssm", "packages": ["mamba-ssm", "vim-mamba"]}]}"#,
            "shadow",
            Level::Warn,
        ),
        (
            r#"{"shadows": [{"module": "mamba_ssm", "packages": ["mamba-ssm"], "folder": "./mamba-1p1p1/mamba_ssm"}]}"#,
            "shadow",
            Level::Warn,
        ),
        (
            r#"{"torch": {"version": "2.9.0+rocm6.4", "hip": "6.4"}, "extensions": []}"#,
            "PyTorch",
            Level::Note,
        ),
        (
            r#"{"extensions": [{"package": "bitsandbytes", "version": "1", "file": "/e/a.so", "codes": ["sm_90"], "cuda": 12}]}"#,
            "bitsandbytes 1",
            Level::Note,
        ),
    ] {
        let verdicts = with(changes);
        assert_eq!(on(&verdicts, subject).0, level, "{changes}");
        assert!(is_fit(&verdicts), "{changes}");
    }
}

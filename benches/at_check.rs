//! One name renamed in a large C++ tree: `mambapatch` beside ast-grep's command line, on the same files, in the same run.
//!
//! `MAMBAPATCH_HEADERS` names a folder of C++ and CUDA sources: the headers of the torch wheel (`torch/include`) and of
//! nvidia-cuda-cccl (`nvidia/cu13/include/cccl`) side by side. They hold no `AT_CHECK`, so the folder is copied, and the
//! statements of it that begin a line with `TORCH_CHECK(` are turned into what they were before PyTorch 1.5. Renaming
//! them must give back the folder, byte for byte, whoever does it. The header that defines TORCH_CHECK is left out: no
//! extension has it in its tree, and mambapatch leaves a tree alone that defines the new name itself. Nor is anything
//! planted in files with code for ROCm, which mambapatch leaves and ast-grep does not.
//!
//! The patch is `torch-api/at-check` with one change: its glob names the folder, so that vendored libraries, as CCCL is
//! one, are not left out.
//!
//! ast-grep (`pip install ast-grep-cli`) is found on the search path, or named by `AST_GREP`. Run with
//! `cargo bench --bench at_check`. The figures are ratios of one run on one machine, never limits of a test.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

/// The endings that the patch looks at.
const ENDINGS: [&str; 11] = ["cpp", "cc", "cxx", "c", "cu", "cuh", "h", "hh", "hpp", "hxx", "inl"];

/// A tree of no known upstream that wants `torch-api`.
const UPSTREAM: &str = r#"
url = "https://example.invalid/headers"
distribution = "headers"
module = "headers"
floor = "11.6"
tested-through = "1.0"
patches = []
uses = ["torch-api"]
recognise = [{ file = "headers.txt", pattern = "^headers$" }]
"#;

fn main() -> ExitCode {
    let Some(headers) = std::env::var_os("MAMBAPATCH_HEADERS").map(PathBuf::from) else {
        eprintln!("not run: MAMBAPATCH_HEADERS names no folder of headers");
        return ExitCode::from(2);
    };
    let ast_grep = std::env::var("AST_GREP").unwrap_or_else(|_| "ast-grep".to_string());
    if Command::new(&ast_grep).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("not run: {ast_grep} is not there; pip install ast-grep-cli");
        return ExitCode::from(2);
    }
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let tree = scratch.path().join("tree");
    let planted = plant(&headers, &tree.join("sources"));
    println!("{} files, {} of them with {} planted places", planted.files, planted.holding, planted.places);
    write(&scratch.path().join("sets/headers/upstream.toml"), UPSTREAM.as_bytes());
    write(&scratch.path().join("sets/torch-api/at-check.toml"), the_patch().as_bytes());
    write(&tree.join("headers.txt"), b"headers\n");
    let globs: Vec<String> = ENDINGS.iter().map(|ending| format!("\"*.{ending}\"")).collect();
    let config = format!("ruleDirs: []\nlanguageGlobs:\n  cpp: [{}]\n", globs.join(", "));
    write(&scratch.path().join("sgconfig.yml"), config.as_bytes());
    check_results(&ast_grep, scratch.path(), &headers);
    let theirs = || ast_grep_in(&ast_grep, scratch.path(), "tree", false);
    let ours = || mambapatch_in(scratch.path(), &["diff", "./tree"]);
    let (theirs, ours) = side_by_side(&theirs, &ours);
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("the diff of the whole tree: ast-grep {theirs:.1?}, mambapatch {ours:.1?}, ratio {ratio:.2}");
    ExitCode::SUCCESS
}

/// The shipped patch, for all of the folder.
fn the_patch() -> String {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("patchsets/torch-api/at-check.toml");
    let shipped = std::fs::read_to_string(shipped).expect("the patch is read");
    assert!(shipped.contains("\"**/*"), "its glob has changed");
    shipped.replace("\"**/*", "\"sources/**/*")
}

/// What was planted.
#[derive(Default)]
struct Planted {
    files: usize,
    holding: usize,
    places: usize,
}

/// Copies the sources of a folder, with `AT_CHECK` in place of `TORCH_CHECK` in some statements.
fn plant(from: &Path, into: &Path) -> Planted {
    let mut planted = Planted::default();
    for path in sources(from) {
        let text = std::fs::read(from.join(&path)).expect("a source is read");
        if String::from_utf8_lossy(&text).lines().any(|line| line.starts_with("#define TORCH_CHECK(")) {
            continue;
        }
        let for_rocm = holds(&text, b"USE_ROCM");
        let (old, places) = if for_rocm { (text, 0) } else { with_at_check(&text) };
        planted.files += 1;
        planted.holding += usize::from(places > 0);
        planted.places += places;
        write(&into.join(&path), &old);
    }
    assert!(planted.places > 0, "nothing was planted: {} holds no TORCH_CHECK", from.display());
    planted
}

fn holds(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// The text with the old name where a line begins with `TORCH_CHECK(`, but for lines of macros, which ast-grep does not
/// look into.
fn with_at_check(text: &[u8]) -> (Vec<u8>, usize) {
    let (mut old, mut places, mut continued) = (Vec::with_capacity(text.len()), 0, false);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let goes_on = line.trim_ascii_end().ends_with(b"\\");
        let indent = line.len() - line.trim_ascii_start().len();
        match line[indent..].strip_prefix(b"TORCH_CHECK(") {
            Some(rest) if !continued && !goes_on => {
                places += 1;
                old.extend([&line[..indent], b"AT_CHECK(", rest].concat());
            }
            _ => old.extend_from_slice(line),
        }
        continued = goes_on;
    }
    (old, places)
}

/// The sources below a folder, relative to it.
fn sources(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
            let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) {
                found.push(path.strip_prefix(root).expect("below the root").to_path_buf());
            }
        }
    }
    found
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, bytes).expect("a file is written");
}

/// Lets both rename a copy each, and compares the copies with the folder that the tree was made from.
fn check_results(ast_grep: &str, scratch: &Path, headers: &Path) {
    for copy in ["theirs", "ours"] {
        for path in sources(&scratch.join("tree")) {
            write(
                &scratch.join(copy).join(&path),
                &std::fs::read(scratch.join("tree").join(&path)).expect("read"),
            );
        }
        write(&scratch.join(copy).join("headers.txt"), b"headers\n");
    }
    output(&mut ast_grep_in(ast_grep, scratch, "theirs", true));
    output(&mut mambapatch_in(scratch, &["apply", "./ours", "--no-commit"]));
    let differing = |copy: &str| {
        let same = |path: &PathBuf| {
            std::fs::read(scratch.join(copy).join("sources").join(path)).ok()
                == std::fs::read(headers.join(path)).ok()
        };
        sources(&scratch.join("tree/sources")).into_iter().filter(|path| !same(path)).collect::<Vec<_>>()
    };
    let (theirs, ours) = (differing("theirs"), differing("ours"));
    assert!(
        ours.is_empty() && theirs.is_empty(),
        "not the headers again: mambapatch {ours:?}, ast-grep {theirs:?}"
    );
    println!("both give back the headers byte for byte");
}

fn ast_grep_in(program: &str, scratch: &Path, folder: &str, update: bool) -> Command {
    let mut command = command(program, scratch);
    command.args([
        "run",
        "--config",
        "sgconfig.yml",
        "-l",
        "cpp",
        "-p",
        "AT_CHECK",
        "-r",
        "TORCH_CHECK",
        "--no-ignore",
    ]);
    command.args(["hidden", folder]).args(update.then_some("-U"));
    command
}

fn mambapatch_in(scratch: &Path, arguments: &[&str]) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_mambapatch"), scratch);
    command.args(["--patchsets", "sets", "-q"]).args(arguments).args(["--patch", "at-check"]);
    command
}

fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stderr(Stdio::inherit()).env("NO_COLOR", "1");
    command.env("XDG_STATE_HOME", folder.join("state"));
    command
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{command:?} fails");
    output.stdout
}

/// Times both sides in turn; the median of each.
fn side_by_side(theirs: &dyn Fn() -> Command, ours: &dyn Fn() -> Command) -> (Duration, Duration) {
    let time = |make: &dyn Fn() -> Command| {
        let start = Instant::now();
        output(&mut make());
        start.elapsed()
    };
    let (mut one, mut other): (Vec<Duration>, Vec<Duration>) =
        (0..ROUNDS).map(|_| (time(theirs), time(ours))).unzip();
    one.sort();
    other.sort();
    (one[ROUNDS / 2], other[ROUNDS / 2])
}

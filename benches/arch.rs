//! One architecture added: `mambapatch` beside ast-grep's command line, on the same files, in the same run.
//!
//! Needs the folder of local mirrors that `MAMBAPATCH_MIRRORS` names and ast-grep (`pip install ast-grep-cli`; the
//! program is found on the search path, or named by `AST_GREP`). Run with `cargo bench --bench arch`. The figures are
//! ratios of one run on one machine, never limits of a test.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use git2::Repository;

const ROUNDS: usize = 25;

/// What a careful user of ast-grep would write for these files: after the guard of 90, unless 120 is there.
const RULE: &str = r#"
id: add-arch-120
language: python
rule:
  all:
    - kind: if_statement
      has: { field: condition, pattern: 'bare_metal_version >= Version("11.8")' }
    - not:
        inside:
          kind: module
          stopBy: end
          has: { stopBy: end, pattern: 'cc_flag.append("arch=compute_120,code=sm_120")' }
fix: |-
  if bare_metal_version >= Version("11.8"):
      cc_flag.append("-gencode")
      cc_flag.append("arch=compute_90,code=sm_90")
  if bare_metal_version >= Version("12.8"):
      cc_flag.append("-gencode")
      cc_flag.append("arch=compute_120,code=sm_120")
"#;

const UPSTREAMS: [(&str, &str); 2] =
    [("mamba-ssm", "state-spaces+mamba/repo"), ("causal-conv1d", "Dao-AILab+causal-conv1d/repo")];

fn main() -> ExitCode {
    let Some(mirrors) = std::env::var_os("MAMBAPATCH_MIRRORS").map(PathBuf::from) else {
        eprintln!("not run: MAMBAPATCH_MIRRORS names no folder of mirrors");
        return ExitCode::from(2);
    };
    let ast_grep = std::env::var("AST_GREP").unwrap_or_else(|_| "ast-grep".to_string());
    if Command::new(&ast_grep).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("not run: {ast_grep} is not there; pip install ast-grep-cli");
        return ExitCode::from(2);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("rule.yml"), RULE).expect("the rule is written");
    let counts: Vec<usize> = UPSTREAMS
        .iter()
        .map(|(id, mirror)| extract(&mirrors.join(mirror), &folder.path().join(id)))
        .collect();
    one_file(&ast_grep, folder.path());
    all_tags(&ast_grep, folder.path(), &counts);
    ExitCode::SUCCESS
}

/// Writes `<tag>/setup.py` of every tag of a mirror into a folder; gives how many.
fn extract(mirror: &Path, into: &Path) -> usize {
    let repository = Repository::open(mirror).expect("the mirror opens");
    let names = repository.tag_names(None).expect("its tags are listed");
    let mut count = 0;
    for name in names.iter().filter_map(|name| name.ok().flatten()) {
        let tree =
            repository.revparse_single(&format!("{name}^{{tree}}")).and_then(|object| object.peel_to_tree());
        let blob = tree.and_then(|tree| {
            tree.get_name("setup.py")
                .map(|entry| entry.id())
                .map_or_else(|| Err(git2::Error::from_str("no setup.py")), |id| repository.find_blob(id))
        });
        let blob = blob.expect("setup.py is there at every tag");
        let folder = into.join(name);
        std::fs::create_dir_all(&folder).expect("a folder for each tag");
        std::fs::write(folder.join("setup.py"), blob.content()).expect("setup.py is written");
        count += 1;
    }
    count
}

fn one_file(ast_grep: &str, folder: &Path) {
    let file = folder.join("mamba-ssm/v2.2.4/setup.py");
    let theirs = || command(ast_grep, folder, &["scan", "-r", "rule.yml", &file.display().to_string()]);
    let ours =
        || command(env!("CARGO_BIN_EXE_mambapatch"), folder, &["diff", "v2.2.4", "--add-arch", "120", "-q"]);
    report("one file, from the mirror to the diff", side_by_side(&[&theirs], &[&ours]));
}

fn all_tags(ast_grep: &str, folder: &Path, counts: &[usize]) {
    let theirs = || command(ast_grep, folder, &["scan", "-r", "rule.yml", "mamba-ssm", "causal-conv1d"]);
    let matrix = |id: &'static str| {
        move || command(env!("CARGO_BIN_EXE_mambapatch"), folder, &["matrix", id, "--add-arch", "120", "-q"])
    };
    let (mamba, conv) = (matrix("mamba-ssm"), matrix("causal-conv1d"));
    let title = format!("{} tags", counts.iter().sum::<usize>());
    report(&title, side_by_side(&[&theirs], &[&mamba, &conv]));
    let found = output(&mut theirs()).matches("add-arch-120").count();
    let needed: usize =
        [mamba(), conv()].iter_mut().map(|command| output(command).matches("needed\n").count()).sum();
    println!("    ast-grep changes {found} files; mambapatch finds the patch needed at {needed} tags");
}

fn command(program: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stderr(Stdio::null()).env("NO_COLOR", "1");
    command
}

fn output(command: &mut Command) -> String {
    String::from_utf8_lossy(&command.output().expect("it runs").stdout).into_owned()
}

type Make<'a> = &'a dyn Fn() -> Command;

/// Times both sides in turn; the median of each.
fn side_by_side(theirs: &[Make<'_>], ours: &[Make<'_>]) -> (Duration, Duration) {
    let time = |makes: &[Make<'_>]| {
        let start = Instant::now();
        makes.iter().for_each(|make| {
            output(&mut make());
        });
        start.elapsed()
    };
    let (mut one, mut other): (Vec<Duration>, Vec<Duration>) =
        (0..ROUNDS).map(|_| (time(theirs), time(ours))).unzip();
    one.sort();
    other.sort();
    (one[ROUNDS / 2], other[ROUNDS / 2])
}

fn report(title: &str, (theirs, ours): (Duration, Duration)) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{title}: ast-grep {theirs:.1?}, mambapatch {ours:.1?}, ratio {ratio:.2}");
}

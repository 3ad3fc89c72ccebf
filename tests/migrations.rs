//! The fixtures that name units in `compiles`, by nvcc 13.0 and g++ with the headers of PyTorch 2.11: before, they stop
//! with what the case says; after, they compile.
//!
//! Ignored unless asked for (`-- --ignored`), on Linux with g++; the toolchain is that of `tests/nvcc`. Without
//! `MAMBAPATCH_FULL=1` the cases that need PyTorch's headers are left out, since these take most of the time.
//! `MAMBAPATCH_CASE=thc` compiles the cases whose name holds that text.

mod cases;
#[path = "harness/mod.rs"]
mod harness;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use cases::{Case, Expected, cases, write_tree};
use harness::toolchain::Toolchain;
use harness::{is_set, say, tally};
use mambapatch::engine::source::Sources;

/// A unit of a case, as it is before or after.
struct Unit<'a> {
    name: String,
    path: &'a str,
    tree: &'a Sources,
    /// What the compiler says; nothing where it takes the unit.
    stops: &'a str,
}

#[test]
#[ignore = "needs nvcc 13.0, 3.7 GB of the package index"]
fn what_stops_before_compiles_afterwards() {
    let toolchain = Toolchain::get();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let cases = cases(&root, false).unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
    let only = std::env::var("MAMBAPATCH_CASE").unwrap_or_default();
    let all: Vec<Unit<'_>> = cases.iter().filter(|case| case.name.contains(&only)).flat_map(units).collect();
    let (wanted, left): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|unit| is_set("MAMBAPATCH_FULL") || !includes_torch(unit.tree));
    if !left.is_empty() {
        say(&format!(
            "NOT RUN: {} units need the headers of PyTorch; MAMBAPATCH_FULL=1 does them",
            left.len()
        ));
    }
    tally("units of fixtures compile, or stop, as their cases say", compiled(&toolchain, &wanted));
}

fn units(case: &Case) -> Vec<Unit<'_>> {
    let unit = |side: &str, path, tree, stops| Unit {
        name: format!("{} {path} {side}", case.name),
        path,
        tree,
        stops,
    };
    let before =
        case.file.compiles.iter().map(|(path, stops)| unit("before", path, &case.before, stops.as_str()));
    let after = match &case.expected {
        Some(Expected::After(tree)) => Some(tree),
        _ => None,
    };
    let after = after.into_iter().flat_map(|tree| case.file.compiles.keys().map(move |path| (path, tree)));
    before.chain(after.map(|(path, tree)| unit("after", path, tree, ""))).collect()
}

fn includes_torch(tree: &Sources) -> bool {
    let roots: [&[u8]; 3] = [b"#include <ATen/", b"#include <torch/", b"#include <c10/"];
    tree.iter().any(|(_, bytes)| roots.iter().any(|root| memchr::memmem::find(bytes, root).is_some()))
}

/// Compiles side by side; of each unit its name and what is wrong.
fn compiled(toolchain: &Toolchain, units: &[Unit<'_>]) -> Vec<(String, Vec<String>)> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let faults = fault(toolchain, unit).into_iter().collect();
            done.lock().expect("no worker panics").push((unit.name.clone(), faults));
        }
    };
    std::thread::scope(|scope| {
        (0..available_parallelism().map_or(1, usize::from)).for_each(|_| drop(scope.spawn(work)));
    });
    done.into_inner().expect("no worker panics")
}

fn fault(toolchain: &Toolchain, unit: &Unit<'_>) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tree = folder.path().join("tree");
    write_tree(&tree, unit.tree).expect("a tree can be written");
    let mut command = compiler(toolchain, unit.path, &folder.path().join("unit.o"));
    let output = command.current_dir(&tree).stdin(Stdio::null()).output().expect("a compiler can be run");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let as_said = match unit.stops {
        "" => output.status.success(),
        stops => !output.status.success() && said.contains(stops),
    };
    let wanted = if unit.stops.is_empty() { "it does not compile" } else { "it does not stop as expected" };
    (!as_said).then(|| format!("{}: {wanted}\n{said}", unit.name))
}

fn compiler(toolchain: &Toolchain, unit: &str, object: &Path) -> Command {
    let is_cuda = unit.ends_with(".cu");
    let mut command = if is_cuda { Command::new(toolchain.nvcc()) } else { Command::new("g++") };
    for folder in toolchain.torch() {
        command.arg("-I").arg(folder);
    }
    if is_cuda {
        command.args(["-gencode", "arch=compute_120,code=sm_120", "-Xcicc", "-O0", "-Xptxas", "-O0"]);
    } else {
        command.arg("-fsyntax-only").arg("-I").arg(toolchain.cuda().join("include"));
    }
    command.args(["-std=c++17", "-w", "-c", unit, "-o"]).arg(object).env("LC_ALL", "C");
    command
}

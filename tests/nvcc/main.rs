//! The real nvcc of CUDA 13.0 on a backward kernel of mamba-ssm: unpatched it stops, patched by the engine it compiles,
//! and the object holds code for sm_120.
//!
//! Ignored unless asked for (`-- --ignored`), on Linux with g++: compiler and headers are taken from packages of the user's
//! index, about 0.7 GB once; they stay in `MAMBAPATCH_TOOLCHAIN` (else in the target folder). With mirrors,
//! older shapes of the kernel are compiled too.

#[path = "../harness/mod.rs"]
mod harness;

mod fatbin;
mod whole;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use harness::releases::{self, Release};
use harness::runs::{self, Matrix};
use harness::say;
use harness::toolchain::Toolchain;
use harness::wish::Wish;
use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::patchset::bind::Bound;
use mambapatch::engine::patchset::shipped;
use mambapatch::engine::plan::plan;
use mambapatch::engine::source::Sources;
use mambapatch::engine::tag::SourceVersion;

const KERNELS: &str = "csrc/selective_scan";
const UNIT: &str = "csrc/selective_scan/selective_scan_bwd_fp32_real.cu";

/// What a compile gave.
struct Compiled {
    /// The object, if there is one.
    object: Option<Vec<u8>>,
    /// All that nvcc said.
    said: String,
}

/// A release of mamba-ssm patched as the flags say.
fn patched(release: &Release, flags: &str) -> Sources {
    let wish: Wish = flags.parse().expect("flags");
    let sets = shipped::texts().load().expect("the shipped patch sets load");
    let upstream = sets.upstream(&release.upstream).expect("a patch set");
    let version = SourceVersion::Release(release.tag().expect("a release"));
    let bound = Bound::new(upstream, version, &wish.request, Catalogue::shipped()).expect("bound");
    let proved = plan(&bound, &release.files).expect("planned").prove(&bound).expect("proved");
    proved.plan().after.clone()
}

/// Compiles one file of a source tree with the flags that its own setup.py gives to nvcc 13.0.
fn compile(toolchain: &Toolchain, sources: &Sources, unit: &str) -> Compiled {
    let setup = sources.get("setup.py").expect("a setup.py");
    let flags = runs::run_text(unit, &String::from_utf8_lossy(setup), &Matrix::of(&["13.0"]));
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(sources, folder.path());
    let began = Instant::now();
    let compiled = run_nvcc(toolchain, folder.path(), unit, &flags.cuda("13.0").nvcc);
    let result = if compiled.object.is_some() { "compiles" } else { "stops" };
    say(&format!("{unit} {result} after {:.0} s", began.elapsed().as_secs_f32()));
    compiled
}

/// Compiles one file below a folder.
fn run_nvcc(toolchain: &Toolchain, tree: &Path, unit: &str, flags: &[String]) -> Compiled {
    let object = tree.join("unit.o");
    let mut command = Command::new(toolchain.nvcc());
    for include in toolchain.torch().iter().chain([&tree.join(KERNELS)]) {
        command.arg("-I").arg(include);
    }
    command.args(flags).args(["-Xcompiler", "-fPIC", "-c", unit, "-o"]).arg(&object);
    let output = command.current_dir(tree).stdin(Stdio::null()).output().expect("nvcc can be run");
    let said = [output.stdout, output.stderr].concat();
    let object = if output.status.success() { fs::read(object).ok() } else { None };
    Compiled { object, said: String::from_utf8_lossy(&said).into_owned() }
}

fn write(sources: &Sources, folder: &Path) {
    for (path, bytes) in sources.iter() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, bytes).expect("a file can be written");
    }
}

fn sdist(version: &str) -> Release {
    let all = releases::releases();
    let found = all.into_iter().find(|one| one.upstream == "mamba-ssm" && one.version == version);
    found.unwrap_or_else(|| panic!("mamba-ssm {version} is needed"))
}

/// The patched release compiles, and holds nothing but code for sm_120.
fn compiles_for_120(toolchain: &Toolchain, release: &Release) {
    let sources = patched(release, "--cuda 13.0 --only-arch 120");
    let compiled = compile(toolchain, &sources, UNIT);
    let object = compiled.object.unwrap_or_else(|| panic!("{}\n{}", release.name(), compiled.said));
    assert_eq!(fatbin::codes(&object), ["sm_120"], "{}", release.name());
    say(&format!("{} patched with --cuda 13.0 --only-arch 120: sm_120 code by nvcc 13.0", release.name()));
}

#[test]
#[ignore = "needs nvcc 13.0, 3.7 GB of the package index"]
fn the_real_compiler_takes_what_is_patched_and_stops_at_what_is_not() {
    let toolchain = Toolchain::get();
    let release = sdist("2.2.5");
    let stops = |sources: &Sources, wanted: &[&str]| {
        let compiled = compile(&toolchain, sources, UNIT);
        assert!(compiled.object.is_none(), "it compiled");
        for wanted in wanted {
            assert!(compiled.said.contains(wanted), "{wanted}\n{}", compiled.said);
        }
    };
    stops(&release.files, &["Unsupported gpu architecture 'compute_53'"]);
    let arches_alone = patched(&release, "--cuda 13.0 --only-arch 120 --skip-patch cuda-13");
    let names = ["LaneId", "CTA_SYNC"].map(|name| format!("namespace \"cub\" has no member \"{name}\""));
    stops(&arches_alone, &names.each_ref().map(String::as_str));
    compiles_for_120(&toolchain, &release);
}

/// From v2.1.0 on the lane is taken modulo a macro of the file, which must be the width of a warp.
#[test]
#[ignore = "needs nvcc 13.0, 3.7 GB of the package index"]
fn the_lane_is_taken_modulo_32() {
    let toolchain = Toolchain::get();
    let mut sources = patched(&sdist("2.2.5"), "--cuda 13.0 --only-arch 120");
    let probe = format!("{KERNELS}/probe.cu");
    let text = "#include \"reverse_scan.cuh\"\n\
                static_assert(WARP_THREADS == 32 && (WARP_THREADS - 1) == 31);\n\
                static_assert((77u & (WARP_THREADS - 1)) == 77u % 32u);\n";
    sources.insert(probe.clone(), text.as_bytes());
    let compiled = compile(&toolchain, &sources, &probe);
    assert!(compiled.object.is_some(), "{}", compiled.said);
    sources.insert(probe.clone(), text.replace("== 31", "== 63").as_bytes());
    let compiled = compile(&toolchain, &sources, &probe);
    assert!(
        compiled.object.is_none() && compiled.said.contains("static assertion failed"),
        "{}",
        compiled.said
    );
}

/// What the other tests rely on.
#[test]
#[ignore = "needs nvcc 13.0, 3.7 GB of the package index"]
fn an_object_tells_what_it_holds() {
    let toolchain = Toolchain::get();
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("small.cu"), "__global__ void small() {}\n").expect("a file can be written");
    let values = ["arch=compute_90,code=sm_90", "arch=compute_120,code=[sm_120,compute_120]"];
    let flags: Vec<String> = values.iter().flat_map(|value| ["-gencode", value].map(String::from)).collect();
    let compiled = run_nvcc(&toolchain, folder.path(), "small.cu", &flags);
    let object = compiled.object.unwrap_or_else(|| panic!("{}", compiled.said));
    assert_eq!(fatbin::codes(&object), ["compute_120", "sm_120", "sm_90"]);
    assert_eq!(inspected(&object), ["sm_90", "sm_120", "compute_120"]);
    let values = ["arch=compute_90a,code=sm_90a", "arch=compute_120f,code=[sm_121,compute_120f]"];
    let flags: Vec<String> = values.iter().flat_map(|value| ["-gencode", value].map(String::from)).collect();
    let flags = [flags, vec!["-rdc=true".to_string()]].concat();
    let compiled = run_nvcc(&toolchain, folder.path(), "small.cu", &flags);
    let object = compiled.object.unwrap_or_else(|| panic!("{}", compiled.said));
    assert_eq!(inspected(&object), ["sm_90a", "sm_121f", "compute_120f"]);
}

/// What `inspect` reads in an object.
fn inspected(object: &[u8]) -> Vec<String> {
    let binary = mambapatch::kernels::inspect::read(&mut std::io::Cursor::new(object)).expect("an object");
    binary.code.pieces().keys().map(ToString::to_string).collect()
}

/// The two older shapes of the kernel.
#[test]
#[ignore = "needs nvcc 13.0 and mirrors (MAMBAPATCH_MIRRORS)"]
fn older_releases_compile() {
    let toolchain = Toolchain::get();
    ["v2.0.4", "v2.2.4"].iter().for_each(|version| compiles_for_120(&toolchain, &sdist(version)));
}

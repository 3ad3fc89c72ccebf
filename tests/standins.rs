//! The harness for real releases, tried on itself: it must agree with what is known of every release, and it must be
//! able to fail.

mod families;
mod harness;

use std::sync::LazyLock;

use families::{FAMILIES, TOOLKITS};
use harness::flags::Flags;
use harness::laws::{self, Catalogue};
use harness::releases::{self, Release};
use harness::runs::{self, Matrix, Run, SetupRuns};

const KEEP: [&str; 3] = ["--hip", "--env", "MAMBA_KEEP_CUDA_BUILD=TRUE"];

/// The two lines that sed recipes append, at the column where sed leaves them.
const APPENDED: &str =
    "    cc_flag.append(\"-gencode\")\n    cc_flag.append(\"arch=compute_120,code=sm_120\")\n";

fn arches(run: &Run) -> String {
    Flags::of(&run.nvcc).arches.join(" ")
}

fn run_small(matrix: &Matrix) -> Vec<SetupRuns> {
    let setups: Vec<_> = FAMILIES
        .iter()
        .map(|family| {
            let files = [("setup.py", family.setup().into_bytes())].into_iter().collect();
            (format!("family {}", family.name), files)
        })
        .collect();
    runs::run(&setups, matrix)
}

/// `sed '/compute_90/a\    …'`.
fn after_90(text: &str, appended: &str) -> String {
    let line =
        |line: &str| if line.contains("compute_90") { format!("{line}{appended}") } else { line.to_string() };
    text.split_inclusive('\n').map(line).collect()
}

fn family_faults(family: &families::Family, runs: &SetupRuns) -> Vec<String> {
    let mut faults = Vec::new();
    for (toolkit, wanted) in TOOLKITS.iter().zip(family.arches) {
        let run = runs.cuda(toolkit);
        let found = run.error.clone().unwrap_or_else(|| arches(run));
        if found != wanted {
            faults.push(format!("{}, CUDA {toolkit}: `{wanted}` expected, `{found}` found", runs.name));
        }
    }
    let hip = runs.hip();
    if hip.ok != family.hip || !arches(hip).is_empty() {
        faults.push(format!("{}, ROCm: {:?} with `{}`", runs.name, hip.error, arches(hip)));
    }
    faults
}

#[test]
fn a_small_setup_gives_the_architectures_of_its_family() {
    let runs = run_small(&Matrix::of(&TOOLKITS).with(&KEEP));
    let cases =
        FAMILIES.iter().zip(&runs).map(|(family, runs)| (runs.name.clone(), family_faults(family, runs)));
    harness::tally("small setup.py per family", cases);
    for hip in runs.iter().map(SetupRuns::hip).filter(|run| run.ok) {
        assert!(hip.nvcc.contains(&"--offload-arch=native".to_string()), "{:?}", hip.nvcc);
    }
}

#[test]
fn a_process_for_every_run_and_an_own_packaging_change_nothing() {
    let matrix = Matrix::of(&TOOLKITS).with(&KEEP);
    let setup = FAMILIES[4].setup();
    let forked = runs::run_text("family E", &setup, &matrix);
    for option in [["--isolation", "process"], ["--packaging", "own"]] {
        let other = runs::run_text("family E", &setup, &matrix.clone().with(&option));
        assert_eq!(forked.runs, other.runs, "{option:?}");
    }
}

#[test]
fn the_machine_is_the_one_asked_for() {
    let setup = FAMILIES[2].setup();
    let run = |toolkit, options: &[&str]| {
        runs::run_text("small", &setup, &Matrix::of(&[toolkit]).with(options)).runs.remove(0)
    };
    let error = |run: Run| run.error.expect("an error");
    assert!(error(run("11.5", &[])).starts_with("RuntimeError: CUDA 11.6"));
    assert_eq!(error(run("12.8", &["--no-nvcc"])), "NameError: name 'bare_metal_version' is not defined");
    assert!(run("12.8", &["--no-nvcc"]).warnings[0].contains("nvcc was not found"));
    assert!(run("12.8", &["--cpu-torch"]).ok, "this shape asks for torch.version.cuda only for the wheel");
    let rocm = Matrix::of(&[]).with(&["--hip", "--env", "HIP_ARCHITECTURES=gfx942"]);
    let hip = runs::run_text("small", &setup, &rocm);
    assert!(hip.hip().nvcc.contains(&"--offload-arch=gfx942".to_string()), "{hip:?}");
}

#[test]
fn the_wheel_command_is_tried_with_three_downloads() {
    let setup = FAMILIES[2].setup();
    let options = ["--bdist-wheel", "--package-version", "9.8.7", "--torch", "2.9.1+cu128"];
    let run = |more: &[&str]| {
        runs::run_text("small", &setup, &Matrix::of(&["12.8"]).with(&options).with(more)).runs.remove(0)
    };
    let plain = run(&[]);
    let guess = plain.wheel_guess.as_ref().and_then(|guess| guess.file.clone()).expect("a guess");
    assert!(
        guess.starts_with("small_ext-9.8.7+cu12torch2.9cxx11abiTRUE-cp")
            && guess.ends_with("-linux_x86_64.whl"),
        "{guess}"
    );
    let taken = plain.wheel("ok");
    assert!(
        !taken.built
            && taken.moved.as_deref().is_some_and(|moved| moved.starts_with("dist/small_ext-9.8.7-"))
    );
    assert_eq!(taken.requests[0].file, Some(guess));
    let built = plain.wheel("http-error");
    assert!(built.built && built.moved.is_none() && built.error.is_none());
    let offline = plain.wheel("url-error");
    assert!(!offline.built && offline.error.as_deref().is_some_and(|error| error.starts_with("URLError")));
    let forced = run(&["--env", "SMALL_FORCE_BUILD=TRUE"]);
    assert!(forced.bdist_wheel.iter().all(|build| build.built && build.requests.is_empty()));
    let arm = run(&["--machine", "aarch64"]).wheel_guess.and_then(|guess| guess.file).expect("a guess");
    assert!(arm.ends_with("-linux_aarch64.whl"), "{arm}");
}

#[test]
fn sed_lines_are_found_to_be_wrong() {
    let before = run_small(&Matrix::default());
    for (family, before) in FAMILIES.iter().zip(&before) {
        let text = after_90(&family.setup(), APPENDED);
        let after = runs::run_text(&before.name, &text, &Matrix::default());
        let faults = laws::expect_added(before, &after, "120", "12.8").join("\n");
        println!("{faults}");
        let wanted = match family.name {
            "A" | "B" => vec!["CUDA 12.3: 120 must not be in"],
            "C" => vec!["CUDA 12.3: 120 must not be in", "ROCm: nvcc flags of small_cuda changed"],
            _ => vec!["CUDA 12.8: setup.py fails: IndentationError"],
        };
        for wanted in wanted {
            assert!(faults.contains(wanted), "{}: {wanted}\n{faults}", family.name);
        }
    }
}

/// The text of family C with one more block behind the last guard.
fn with_block(block: &str) -> String {
    let end = "            cc_flag.append(\"arch=compute_90,code=sm_90\")\n";
    let text = FAMILIES[2].setup();
    assert_eq!(text.matches(end).count(), 1);
    text.replace(end, &format!("{end}{block}"))
}

fn guarded(guard: &str, lines: &[&str]) -> String {
    let lines: String =
        lines.iter().map(|line| format!("            cc_flag.append(\"{line}\")\n")).collect();
    format!("        if {guard}:\n{lines}")
}

#[test]
fn a_right_edit_is_right_and_every_wrong_one_is_reported() {
    let value = "arch=compute_120,code=sm_120";
    let right = r#"bare_metal_version >= Version("12.8")"#;
    let both = format!("-gencode {value}");
    let cases = [
        (guarded(right, &["-gencode", value]), ""),
        (guarded(right, &["-gencode=arch=compute_120,code=sm_120"]), ""),
        (guarded(right, &["-gencode", "arch=compute_120a,code=sm_120a"]), "120 is missing"),
        (guarded(right, &["-gencode", "arch=compute_120,code=compute_120"]), "120+PTX must not be"),
        (guarded(right, &["-gencode", "arch=compute_90,code=sm_120"]), "code=sm_120 must not be"),
        (guarded(right, &[value]), "without -gencode"),
        (guarded(right, &["-gencode"]), "`-gencode` without a value"),
        (guarded(right, &[&both]), "option and value in one string"),
        (guarded(right, &["-gencode", value, "-gencode", value]), "120 stands 2 times"),
        (guarded(right, &["-gencode", value, "-O3"]), "other flags changed"),
        (
            guarded(r#"bare_metal_version > Version("12.8")"#, &["-gencode", value]),
            "CUDA 12.8: 120 is missing",
        ),
        (
            guarded(r#"bare_metal_version >= Version("12.3")"#, &["-gencode", value]),
            "CUDA 12.3: 120 must not",
        ),
        (guarded("bare_metal >= 3", &["-gencode", value]), "fails: NameError"),
        (String::new(), "120 is missing"),
    ];
    let before = runs::run_text("family C", &FAMILIES[2].setup(), &Matrix::default());
    for (block, wanted) in cases {
        let after = runs::run_text("family C", &with_block(&block), &Matrix::default());
        let faults = laws::expect_added(&before, &after, "120", "12.8").join("\n");
        assert_eq!(faults.is_empty(), wanted.is_empty(), "{block}\n{faults}");
        assert!(faults.contains(wanted), "{block}\n{wanted}\n{faults}");
    }
}

#[test]
fn only_some_architectures() {
    let matrix = Matrix::default();
    let [before, after] = [&FAMILIES[2], &families::ONLY_90_120]
        .map(|family| runs::run_text(family.name, &family.setup(), &matrix));
    let wanted = [("90", "11.8"), ("120", "12.8")];
    assert_eq!(laws::expect_only(&before, &after, &wanted), Vec::<String>::new());
    let faults = laws::expect_only(&before, &before, &wanted).join("\n");
    assert!(faults.contains("CUDA 12.3: 53 must not be in"), "{faults}");
    assert!(faults.contains("CUDA 12.8: 120 is missing from"), "{faults}");
}

#[test]
fn only_what_a_toolkit_accepts() {
    let (matrix, catalogue) = (Matrix::default(), Catalogue::measured());
    let run = |family: &families::Family| runs::run_text(family.name, &family.setup(), &matrix);
    let (before, until, dropped) =
        (run(&FAMILIES[2]), run(&families::C_FOR_13), run(&families::C_WITHOUT_OLD));
    assert_eq!(laws::expect_accepted(&before, &until, "13.0", &catalogue), Vec::<String>::new());
    let faults = laws::expect_accepted(&before, &before, "13.0", &catalogue).join("\n");
    for refused in ["53", "62", "70", "72"] {
        assert!(faults.contains(&format!("CUDA 13.0: {refused} must not be in")), "{faults}");
    }
    let faults = laws::expect_accepted(&before, &dropped, "13.0", &catalogue).join("\n");
    assert!(faults.contains("CUDA 12.9: 53 is missing from 80 87 90"), "{faults}");
    let (accepted, added) = (laws::accepted("13.0", &catalogue), laws::added("120", "12.8"));
    let faults = laws::expect(&before, &until, &laws::both(&accepted, &added)).join("\n");
    assert!(faults.contains("CUDA 13.0: 120 is missing"), "{faults}");
}

#[test]
fn the_catalogue_of_the_harness() {
    let catalogue = Catalogue::measured();
    let accepted = [("11.8", "90"), ("12.8", "120a"), ("12.9", "120f"), ("13.0", "110"), ("12.9", "53+PTX")];
    let refused =
        [("11.6", "90"), ("12.8", "120f"), ("13.0", "101"), ("13.0", "72"), ("12.3", "120"), ("12.0", "37")];
    for (toolkit, arch) in accepted {
        assert!(catalogue.accepts(toolkit, arch), "{toolkit} {arch}");
    }
    for (toolkit, arch) in refused {
        assert!(!catalogue.accepts(toolkit, arch), "{toolkit} {arch}");
    }
}

/// Every release as it is, run once for all tests.
static UNPATCHED: LazyLock<Vec<(Release, SetupRuns)>> =
    LazyLock::new(|| run_releases(Release::setup, &Matrix::default()));

/// Every release at hand with its runs.
fn run_releases(patch: impl Fn(&Release) -> String, matrix: &Matrix) -> Vec<(Release, SetupRuns)> {
    let releases = releases::releases();
    let setups: Vec<_> = releases
        .iter()
        .map(|release| {
            let mut files = release.files.clone();
            files.insert("setup.py", patch(release).into_bytes());
            (release.name(), files)
        })
        .collect();
    let runs = runs::run(&setups, matrix);
    releases.into_iter().zip(runs).collect()
}

#[test]
fn every_real_release_gives_the_architectures_of_its_family() {
    let runs = run_releases(Release::setup, &Matrix::of(&TOOLKITS).with(&KEEP));
    assert!(releases::mirrors().is_none() || runs.len() >= 76, "{} releases in the mirrors", runs.len());
    let cases =
        runs.iter().map(|(release, runs)| (release.name(), family_faults(families::of(release), runs)));
    harness::tally("releases with the architectures of their family", cases);
}

/// What a release changes beside its architectures.
const RELEASED: [&str; 3] =
    ["name and version changed", "the requirements changed", "include folders changed"];

#[test]
fn upstream_itself_added_100_as_a_patch_must() {
    let find = |version| UNPATCHED.iter().find(|(one, _)| one.name() == version).map(|(_, runs)| runs);
    let pairs =
        [("mamba-ssm v2.2.4", "mamba-ssm v2.2.5"), ("causal-conv1d v1.5.0.post8", "causal-conv1d v1.5.1")];
    for (before, after) in pairs {
        let (Some(before), Some(after)) = (find(before), find(after)) else { continue };
        let mut faults = laws::expect_added(before, after, "100", "12.8");
        faults.retain(|fault| !RELEASED.iter().any(|known| fault.contains(known)));
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// 89 beside 90, under the guard that stands there already.
fn with_89(release: &Release) -> String {
    let text = release.setup();
    let line = text.lines().find(|line| line.contains("compute_90")).expect("every release names 90");
    let indent = &line[..line.len() - line.trim_start().len()];
    let pair = ["-gencode", "arch=compute_89,code=sm_89"];
    let appended: String = pair.iter().map(|flag| format!("{indent}cc_flag.append(\"{flag}\")\n")).collect();
    after_90(&text, &appended)
}

#[test]
fn a_right_edit_is_right_on_every_real_release() {
    let after = run_releases(with_89, &Matrix::default());
    let pairs = UNPATCHED.iter().zip(&after);
    let cases = pairs.map(|((release, before), (_, after))| {
        (release.name(), laws::expect_added(before, after, "89", "11.8"))
    });
    harness::tally("releases with 89 from CUDA 11.8 on", cases);
}

#[test]
fn sed_lines_are_wrong_on_every_real_release() {
    let after = run_releases(|release| after_90(&release.setup(), APPENDED), &Matrix::default());
    for ((release, before), (_, after)) in UNPATCHED.iter().zip(&after) {
        let faults = laws::expect_added(before, after, "120", "12.8").join("\n");
        let wanted = match families::of(release).name {
            "A" | "B" | "C" => "CUDA 12.3: 120 must not be in",
            _ => "CUDA 12.8: setup.py fails: IndentationError",
        };
        assert!(faults.contains(wanted), "{}: {wanted}\n{faults}", release.name());
    }
}

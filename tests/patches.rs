//! Every shipped patch but gpu-arch, on small sources of each shape and on every real release at hand: what setup.py
//! does before and after, and nothing else.

mod families;
mod harness;
mod patched;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use harness::laws::Catalogue as Measured;
use harness::runs::{Matrix, Run};
use mambapatch::engine::arch::Code;
use mambapatch::engine::environment::Environment;
use mambapatch::engine::ops::gencode::ArchWish;
use mambapatch::engine::patchset::select::{Request, choose};
use mambapatch::engine::source::Sources;
use patched::{
    CASES, Case, GENERATION, KEEP, SETS, by_name, compare, differs, one, patched, runs_become, same, unless,
    version, with_flags,
};

#[test]
fn cxx20_follows_the_torch_that_is_there() {
    let cases = patched("cxx20", "setup.py", |case| case.is(">=1.0.1", ">=1.3.0"));
    let cxx20 = |flags: &[String]| flags.iter().map(|flag| flag.replace("c++17", "c++20")).collect();
    for torch in ["2.14.0", "2.15.0a0+git1", "3.0.1"] {
        let matrix = Matrix::of(&["12.8", "13.0"]).with(&KEEP).with(&["--hip", "--torch", torch]);
        compare(&format!("C++20 with torch {torch}"), &cases, &matrix, |case, before, after| {
            let standard = after.cuda("12.8").cxx.contains(&"-std=c++20".to_string());
            let mut faults = runs_become(before, after, |run| with_flags(run, cxx20));
            faults.extend(unless(standard == case.is(">=1.0.1", "<0"), "the standard for CUDA is wrong"));
            faults
        });
    }
    for (torch, toolkit) in [("1.12.1+cu116", "11.8"), ("2.13.0", "13.0")] {
        let matrix = one(toolkit, &["--hip", "--torch", torch]);
        compare(&format!("C++17 with torch {torch}"), &cases, &matrix, |_, before, after| {
            same(before, after)
        });
    }
}

#[test]
fn cxx20_takes_upstreams_own_cure() {
    for case in CASES.iter().filter(|case| case.is(">=1.0.1", ">=1.3.0")) {
        let text =
            String::from_utf8(case.sources.get("setup.py").expect("setup.py").to_vec()).expect("UTF-8");
        let mut sources = case.sources.clone();
        sources.insert("setup.py", text.replace("-std=c++17", "-std=c++20").into_bytes());
        let cured = Case {
            name: case.name.clone(),
            upstream: case.upstream.clone(),
            version: case.version.clone(),
            sources,
        };
        assert!(cured.planned(&by_name("cxx20")).is_empty(), "{}", case.name);
    }
}

#[test]
fn no_nvcc_lets_setup_py_run_and_changes_nothing_with_nvcc() {
    let cases = patched("no-nvcc", "setup.py", |_| true);
    let matrix = Matrix::default();
    compare("with nvcc all is as before", &cases, &matrix, |_, before, after| {
        let rocm_cannot_be = before.hip().error.is_some();
        let pairs = before.runs.iter().zip(&after.runs).filter(|(had, _)| !(had.hip && rocm_cannot_be));
        pairs.flat_map(|(had, has)| differs(&has.environment(), had, has)).collect()
    });
    let matrix = one("12.8", &["--no-nvcc", "--bdist-wheel"]);
    compare("setup.py runs without nvcc", &cases, &matrix, |_, before, after| {
        let (had, has) = (before.cuda("12.8"), after.cuda("12.8"));
        let kinds: Vec<_> =
            has.ext_modules.iter().map(|one| (one.kind.as_str(), one.sources.is_empty())).collect();
        let warned = has.warnings.iter().any(|warning| warning.contains("nvcc was not found"));
        let name_error = had.error.as_deref() == Some("NameError: name 'bare_metal_version' is not defined");
        let faults = [
            unless(name_error, format!("{:?} before", had.error)),
            unless(has.ok && warned && kinds == [("cpp", false)], format!("{has:#?}")),
        ];
        let mut faults: Vec<_> = faults.into_iter().flatten().collect();
        if faults.is_empty() {
            faults.extend(unless(has.wheel("ok").moved.is_some(), "the prebuilt wheel is not used"));
            faults.extend(unless(has.wheel("http-error").built, "the build is not reached"));
        }
        faults
    });
}

#[test]
fn no_nvcc_lets_setup_py_run_with_a_torch_for_cpus() {
    let cases = patched("no-nvcc", "setup.py", |_| true);
    // v1.3.0 of causal-conv1d refuses to run where torch sees no GPU, and says so.
    let cases: Vec<_> = cases.into_iter().filter(|(case, _)| !case.is("<0", "==1.3.0")).collect();
    let matrix = one("12.8", &["--cpu-torch", "--no-nvcc"]);
    compare("setup.py runs without nvcc and CUDA", &cases, &matrix, |_, before, after| {
        let runs = [before, after].map(|runs| runs.cuda("12.8"));
        unless(!runs[0].ok && runs[1].ok, format!("{:?} became {:?}", runs[0].error, runs[1].error))
            .into_iter()
            .collect()
    });
    let matrix = one("12.8", &["--cpu-torch"]);
    compare("setup.py runs with nvcc and without torch's CUDA", &cases, &matrix, |case, before, after| {
        if !case.is(">=2.3.2", "<0") {
            return same(before, after);
        }
        let runs = [before, after].map(|runs| runs.cuda("12.8"));
        let type_error = runs[0].error.as_deref().is_some_and(|error| error.starts_with("TypeError"));
        unless(type_error && runs[1].ok, format!("{:?} became {:?}", runs[0].error, runs[1].error))
            .into_iter()
            .collect()
    });
}

/// Prints, for each Python text of the JSON list on stdin, the names that it imports or uses.
const NAMES: &str = "
import ast, json, sys
for text in json.load(sys.stdin):
    tree = ast.parse(text)
    compile(tree, 'generation.py', 'exec')
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.name for node in nodes if isinstance(node, ast.alias)}
    docs = [ast.get_docstring(node) or '' for node in nodes if isinstance(node, (ast.FunctionDef, ast.Module))]
    print(json.dumps([sorted(names), docs]))
";

fn names(texts: &[String]) -> Vec<(Vec<String>, Vec<String>)> {
    let python = std::env::var_os("MAMBAPATCH_TEST_PYTHON").unwrap_or("python3".into());
    let mut child = Command::new(python)
        .args(["-c", NAMES])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let json = serde_json::to_vec(texts).expect("JSON");
    child.stdin.take().expect("a pipe").write_all(&json).expect("Python reads");
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "a text does not compile");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON of Python")).collect()
}

#[test]
fn transformers_5_leaves_no_removed_name() {
    let cases = patched("transformers-5", GENERATION, |case| case.is("<2.3.0", "<0"));
    let cases: Vec<_> = cases.iter().filter(|(case, _)| case.is("<2.3.0", "<0")).collect();
    let text = |sources: &Sources| {
        String::from_utf8(sources.get(GENERATION).expect("a file").to_vec()).expect("UTF-8")
    };
    let before = names(&cases.iter().map(|(case, _)| text(&case.sources)).collect::<Vec<_>>());
    let after = names(&cases.iter().map(|(_, after)| text(after)).collect::<Vec<_>>());
    let removed = ["GreedySearchDecoderOnlyOutput", "SampleDecoderOnlyOutput"];
    let pairs = cases.iter().zip(before.iter().zip(&after));
    harness::tally(
        "no name is left that transformers 5 removed",
        pairs.map(|((case, _), (had, has))| {
            let mut wanted: Vec<_> =
                had.0.iter().filter(|name| !removed.contains(&name.as_str())).cloned().collect();
            wanted.retain(|name| name != "output_cls");
            wanted.push("GenerateDecoderOnlyOutput".to_string());
            wanted.sort();
            let docs = has.1.iter().all(|doc| removed.iter().all(|name| !doc.contains(name)));
            let fault = unless(wanted == has.0 && docs, format!("{}: {:?}", case.name, has));
            (case.name.clone(), fault.into_iter().collect())
        }),
    );
    let upstream = CASES.iter().find(|case| case.name == "mamba-ssm v2.3.0");
    let last = cases.iter().find(|(case, _)| case.name == "mamba-ssm v2.2.6.post3");
    if let (Some(upstream), Some((_, after))) = (upstream, last) {
        assert_eq!(text(after), text(&upstream.sources), "what upstream did in v2.3.0");
    }
}

fn wheels(options: &[&str]) -> Matrix {
    Matrix::of(&["12.8"]).with(&["--bdist-wheel"]).with(options)
}

#[test]
fn force_build_never_downloads() {
    let cases = patched("force-build", "setup.py", |_| true);
    let forced = ["--env", "MAMBA_FORCE_BUILD=FALSE", "--env", "CAUSAL_CONV1D_FORCE_BUILD=FALSE"];
    for (what, options) in
        [("by itself", &[][..]), ("against the environment", &forced), ("with KEEP", &KEEP)]
    {
        compare(&format!("never downloads, {what}"), &cases, &wheels(options), |case, before, after| {
            let (had, has) = (before.cuda("12.8"), after.cuda("12.8"));
            let downloads = had.bdist_wheel.iter().all(|wheel| !wheel.requests.is_empty());
            let pure = case.is_main_of_mamba() && what != "with KEEP";
            let builds = has.bdist_wheel.iter().all(|wheel| {
                wheel.requests.is_empty() && wheel.built && wheel.moved.is_none() && wheel.error.is_none()
            });
            [
                unless(downloads != pure, format!("before: {:?}", had.bdist_wheel)),
                unless(builds && has.bdist_wheel.len() == 3, format!("after: {:?}", has.bdist_wheel)),
                unless(has.ext_modules.len() == 1, "no kernels are built"),
            ]
            .into_iter()
            .flatten()
            .collect()
        });
    }
    compare("nothing else changes", &cases, &Matrix::default(), |_, before, after| same(before, after));
    let refused = one("12.8", &["--env", "MAMBA_KEEP_CUDA_BUILD=FALSE"]);
    compare("kernels can be refused", &cases, &refused, |_, before, after| same(before, after));
}

#[test]
fn offline_wheel_builds_where_nothing_answers() {
    let cases = patched("offline-wheel", "setup.py", |_| true);
    compare("builds without a network", &cases, &wheels(&KEEP), |_, before, after| {
        let had = before.cuda("12.8").wheel("url-error");
        let dies = !had.built && had.error.as_deref().is_some_and(|error| error.starts_with("URLError"));
        let mut faults = runs_become(before, after, |run| {
            let mut run = run.clone();
            for wheel in run.bdist_wheel.iter_mut().filter(|wheel| wheel.download == "url-error") {
                (wheel.built, wheel.error) = (true, None);
            }
            run
        });
        faults.extend(unless(dies, format!("before: {had:?}")));
        faults
    });
    compare("nothing else changes", &cases, &Matrix::default(), |_, before, after| same(before, after));
}

#[test]
fn aarch64_names_the_machine() {
    let cases = patched("aarch64", "setup.py", |case| case.is("<2.3.2", "<1.6.2"));
    for machine in ["x86_64", "aarch64"] {
        let matrix = wheels(&KEEP).with(&["--machine", machine]);
        compare(&format!("wheels for {machine}"), &cases, &matrix, |_, before, after| {
            let name =
                |run: &Run| run.wheel_guess.as_ref().and_then(|guess| guess.file.clone()).unwrap_or_default();
            let wanted = name(before.cuda("12.8")).replace("linux_x86_64", &format!("linux_{machine}"));
            let found = name(after.cuda("12.8"));
            let right = found == wanted && found.ends_with(&format!("-linux_{machine}.whl"));
            unless(right, format!("{wanted} was wanted, not {found}")).into_iter().collect()
        });
    }
    for platform in ["darwin", "win32"] {
        let matrix = wheels(&KEEP).with(&["--platform", platform]);
        compare(&format!("wheels for {platform}"), &cases, &matrix, |_, before, after| same(before, after));
    }
    compare("nothing else changes", &cases, &Matrix::default(), |_, before, after| same(before, after));
}

/// A setup.py of a later release of causal-conv1d than the mirrors have.
fn later(text: &str) -> Case {
    Case {
        name: "causal-conv1d 1.7.0".to_string(),
        upstream: "causal-conv1d".to_string(),
        version: version("1.7.0", "causal-conv1d"),
        sources: [("setup.py", text.as_bytes())].into_iter().collect(),
    }
}

#[test]
fn aarch64_takes_what_upstream_did_later() {
    let text = "import platform\n\ndef get_platform():\n    if platform.machine() in (\"aarch64\", \"arm64\"):\n        \
                return \"linux_aarch64\"\n    return \"linux_x86_64\"\n";
    assert!(later(text).planned(&by_name("aarch64")).is_empty());
}

#[test]
fn offline_wheel_takes_both_errors_named() {
    for errors in
        ["urllib.error.HTTPError, urllib.error.URLError", "urllib.error.URLError, urllib.error.HTTPError"]
    {
        let text = format!("try:\n    download()\nexcept ({errors}):\n    build()\n");
        assert!(later(&text).planned(&by_name("offline-wheel")).is_empty());
    }
}

#[test]
fn honour_arch_list_lets_the_variable_decide() {
    let cases = patched("honour-arch-list", "setup.py", |_| true);
    compare("without the variable", &cases, &Matrix::default(), |_, before, after| same(before, after));
    let empty = Matrix::default().with(&["--env", "TORCH_CUDA_ARCH_LIST="]);
    compare("with an empty variable", &cases, &empty, |_, before, after| same(before, after));
    let set = Matrix::default().with(&["--env", "TORCH_CUDA_ARCH_LIST=8.6;12.0+PTX"]);
    compare("with the variable", &cases, &set, |_, before, after| {
        let arches = |flags: &[String]| flags.iter().any(|flag| flag.contains("arch="));
        let plain = |flags: &[String]| {
            flags.iter().filter(|flag| *flag != "-gencode" && !flag.starts_with("arch=")).cloned().collect()
        };
        let had = before.runs.iter().filter(|run| !run.hip).all(|run| arches(&run.nvcc));
        let mut faults =
            runs_become(before, after, |run| if run.hip { run.clone() } else { with_flags(run, plain) });
        faults.extend(unless(had, "no architectures before"));
        faults
    });
}

/// C++ without strings and comments, which words are not code in.
fn code(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let apart = regex::Regex::new(r#"(?s)//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*""#).expect("a pattern");
    apart.replace_all(&text, " ").into_owned()
}

/// Whether a conditional stands among the arguments of a macro.
fn has_split_macro(code: &str) -> bool {
    let arguments = |start: usize| {
        let mut depth = 0;
        let rest = &code[start..];
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        });
        &rest[..end.unwrap_or(rest.len())]
    };
    let calls = code.match_indices("BOOL_SWITCH(").map(|(at, name)| arguments(at + name.len() - 1));
    calls
        .flat_map(str::lines)
        .any(|line| line.trim_start().starts_with("#if") || line.trim_start().starts_with("#e"))
}

/// No MSVC is at hand: what it refuses is looked for by another reader.
#[test]
fn msvc_finds_nothing_that_it_refuses() {
    let words = regex::Regex::new(
        r"\b(and|or|not|M_LOG2E)\b|[^c] constexpr bool CONST_NAME|^ +constexpr int kNRows = 1",
    )
    .expect("a pattern");
    let refused = |sources: &Sources| {
        let kernels = sources.iter().filter(|(path, _)| path.starts_with("csrc/") && !path.ends_with(".py"));
        let wrong = kernels.filter(|(_, bytes)| {
            let code = code(bytes);
            code.lines().any(|line| words.is_match(line)) || has_split_macro(&code)
        });
        wrong.map(|(path, _)| path.to_string()).collect::<Vec<_>>()
    };
    let mut changed = 0;
    let faults = CASES.iter().map(|case| {
        let (before, plan) = (refused(&case.sources), case.planned(&by_name("msvc")));
        let files: Vec<_> = plan.diffs().into_iter().map(|diff| diff.path).collect();
        changed += usize::from(!files.is_empty());
        let faults = [
            unless(files == before, format!("{}: {files:?} change, {before:?} would be refused", case.name)),
            unless(
                refused(&plan.after).is_empty(),
                format!("{}: {:?} is refused", case.name, refused(&plan.after)),
            ),
        ];
        (case.name.clone(), faults.into_iter().flatten().collect())
    });
    harness::tally("what MSVC refuses is gone, and no other file changes", faults.collect::<Vec<_>>());
    println!("msvc: changes {changed} of {} trees, each proved", CASES.len());
}

/// Everything at once, for the newest of everything.
fn everything(case: &Case) -> Request {
    let upstream = SETS.upstream(&case.upstream).expect("a shipped set");
    let environment = Environment {
        cuda: vec!["13.0".parse().expect("a toolkit")],
        torch: Some("2.14".parse().expect("a release")),
        machine: Some("aarch64".to_string()),
        packages: BTreeMap::from([("transformers".to_string(), Some("5.0.0".parse().expect("a release")))]),
        ..Environment::default()
    };
    let wish =
        ArchWish { add: vec![Code::Sass("120".parse().expect("an architecture"))], ..ArchWish::default() };
    let patches = upstream.patches.iter().map(|patch| patch.id.clone()).collect();
    Request { wish, environment, patches, ..Request::default() }
}

#[test]
fn all_patches_fit_together() {
    let patched = CASES.iter().map(|case| (case, case.planned(&everything(case)).after));
    let patched: Vec<_> = patched.collect();
    println!("all patches at once: {} trees, each proved", patched.len());
    let measured = Measured::measured();
    let matrix = one("13.0", &["--torch", "2.14.0", "--machine", "aarch64", "--bdist-wheel"]);
    compare("all patches at once", &patched, &matrix, |case, _, after| {
        let run = after.cuda("13.0");
        let flags = harness::flags::Flags::of(&run.nvcc);
        let refused = flags.arches.iter().any(|arch| !measured.accepts("13.0", arch));
        let standard = !run.cxx.iter().chain(&run.nvcc).any(|flag| flag == "-std=c++17");
        let built = run.bdist_wheel.iter().all(|wheel| wheel.built && wheel.requests.is_empty());
        let right = run.ok && !refused && flags.arches.contains(&"120".to_string()) && standard && built;
        unless(right, format!("{}: {run:#?}", case.name)).into_iter().collect()
    });
}

#[test]
fn the_environment_chooses_the_patches_that_it_needs() {
    let chosen = |environment: Environment| {
        let upstream = SETS.upstream("mamba-ssm").expect("a shipped set");
        let request = Request { environment, ..Request::default() };
        let (chosen, _) = choose(upstream, &request).expect("no unknown name");
        chosen.iter().map(|patch| patch.id.trim_start_matches("mamba-ssm/").to_string()).collect::<Vec<_>>()
    };
    let torch =
        |text: &str| Environment { torch: Some(text.parse().expect("a release")), ..Environment::default() };
    assert_eq!(chosen(torch("2.14.0")), ["cxx20"]);
    assert_eq!(chosen(torch("2.13.1")), [""; 0]);
    let machine = Environment { machine: Some("aarch64".to_string()), ..Environment::default() };
    assert_eq!(chosen(machine), ["aarch64"]);
    let packages = BTreeMap::from([("transformers".to_string(), Some("5.1.0".parse().expect("a release")))]);
    assert_eq!(chosen(Environment { packages, ..Environment::default() }), ["transformers-5"]);
}

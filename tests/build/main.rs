//! `build` on machines made of stand-ins: what is asked, chosen, refused and proved. The real thing is built by
//! `tests/nvcc`.

#![cfg(unix)]

#[path = "../binaries/mod.rs"]
mod binaries;

mod machine;
#[cfg(target_os = "linux")]
mod stopped;

use std::process::Command;

use machine::{GOOD, Machine, Run, names};

#[test]
fn what_was_shown_is_compiled_and_proved() {
    let machine = Machine::new(GOOD);
    let run = machine.build(&["--yes", "--jobs", "3"]);
    run.ends(
        0,
        &[
            "done: files in ",
            "to take it back: ",
            "compiled 1 of 2",
            "compiled 2 of 2",
            "done: ",
            "--no-deps --force-reinstall",
        ],
    );
    assert!(run.out.contains("+flags = [\"-gencode\", \"arch=compute_120,code=sm_120\"]"), "{}", run.out);
    assert!(run.out.contains("some_extension/for-120.so\n  machine code  120"), "{}", run.out);
    assert_eq!(machine.wheels("dist"), ["some_extension-1.0-py3-none-any.whl"]);
    assert!(machine.log().contains("[2/2] nvcc -c two.cu"), "{}", machine.log());
    assert_eq!(machine.seen("MAX_JOBS"), "3");
    assert!(machine.seen("PATH").starts_with(&machine.path("env/bin").display().to_string()));
}

/// The wheel's name, its log, how long it took, what it holds and what compiled it.
#[test]
fn json_is_one_document() {
    let machine = Machine::new(GOOD);
    let run = machine.build(&["--yes", "--format", "json", "--out", "some/where"]);
    run.ends(0, &["+flags = "]);
    let document: serde_json::Value = serde_json::from_str(&run.out).expect("a document");
    let build = &document["build"];
    let wheel = machine.path("work/some/where/some_extension-1.0-py3-none-any.whl");
    assert_eq!(build["wheel"], wheel.display().to_string());
    assert_eq!(build["codes"], serde_json::json!(["sm_120"]));
    assert_eq!(build["environment"]["cuda"], "13.0");
    assert_eq!(build["environment"]["python"], machine.path("env/bin/python").display().to_string());
    assert!(build["seconds"].is_number() && build["log"].is_string(), "{build}");
    assert!(document["result"]["done"] == "files" && wheel.is_file(), "{document}");
}

#[test]
fn nothing_is_written_before_someone_agreed() {
    let machine = Machine::new(GOOD);
    let before = machine.text("work/ext/setup.py");
    let run = machine.build(&[]);
    run.ends(2, &["there is no terminal to ask on", "hint: ", "--yes"]);
    assert!(run.out.contains("+flags"), "the diff is shown all the same: {}", run.out);
    for (answer, code) in [("n", 1), ("", 1), ("y", 0)] {
        let said = answered(&machine, answer);
        assert!(said.contains("write this and compile") && said.contains("[y/N]"), "{said}");
        assert!(said.contains(&format!("exit {code}\n")), "{answer}: {said}");
        let untouched = machine.text("work/ext/setup.py") == before && machine.wheels("dist").is_empty();
        assert_eq!(untouched, code == 1, "{said}");
    }
    assert_eq!(machine.wheels("dist").len(), 1);
}

/// What is said on a terminal where a person answers.
fn answered(machine: &Machine, answer: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/build/answer.py");
    let mut command = Command::new(machine.path("env/bin/python"));
    let build = machine.command(&[]);
    command.arg(script).arg(answer).arg(build.get_program());
    command.args(["build", "./ext", "--only-arch", "120", "--color", "never"]);
    command.current_dir(machine.path("work")).env_clear();
    command.envs(build.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run = Run::of(command.output().expect("python"));
    assert_eq!(run.code, 0, "{run:#?}");
    run.out
}

#[test]
fn what_the_build_imports_must_be_there() {
    let machine = Machine::new(GOOD);
    machine.without("packaging", "25.0");
    let pyproject = "[build-system]\nrequires = [\"setuptools>=81\", \"ninja\", \"wheel\"]\n";
    machine.write("work/ext/pyproject.toml", pyproject);
    let run = machine.build(&["--yes"]);
    let python = machine.path("env/bin/python").display().to_string();
    run.ends(2, &["setuptools>=81 (80.0 is there), wheel, packaging\n"]);
    run.ends(2, &[&format!("hint: {python} -m pip install 'setuptools>=81' 'wheel' 'packaging'")]);
    assert!(!machine.path("work/ext/ran.txt").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_anything_is_compiled() {
    let machine = Machine::new(GOOD);
    machine.write("work/file", "");
    machine.build(&["--yes", "--out", "file/dist"]).ends(2, &["cannot write to file/dist"]);
    assert!(!machine.path("work/ext/ran.txt").exists());
}

#[test]
fn a_toolkit_that_was_named_and_is_not_there_is_said() {
    let machine = Machine::new(GOOD);
    let run = machine.build(&["--yes", "--cuda", "12.9"]);
    run.ends(0, &["no nvcc of a toolkit that was named fits: CUDA 13.0 compiles", "13.0, CUDA_HOME="]);
}

#[test]
fn without_ninja_it_is_said_and_goes_on() {
    let machine =
        Machine::new("print('  /some/bin/nvcc -I. -c one.cu -o one.o', flush=True)\nwheel(*compiled())\n");
    std::fs::remove_file(machine.path("env/bin/ninja")).expect("ninja");
    let run = machine.build(&["--yes"]);
    run.ends(0, &["ninja is missing, so one file is compiled at a time", "compiled 1, "]);
}

#[test]
fn the_toolkit_is_that_of_torch() {
    let machine = Machine::new(GOOD);
    machine.toolkit("cuda-11.8", "11.8");
    machine.toolkit("cuda-12.8", "12.8");
    std::os::unix::fs::symlink(machine.path("cuda-12.8/bin/nvcc"), machine.path("bin/nvcc")).expect("a link");
    let arguments = ["build", "./ext", "--only-arch", "120", "--yes"];
    let mut command = machine.command(&arguments);
    command.env("CUDA_HOME", machine.path("cuda-11.8"));
    let run = Run::of(command.output().expect("the program"));
    let home = machine.home_of_packages();
    run.ends(0, &[&format!("13.0, CUDA_HOME={}", home.display()), "another toolkit fits PyTorch"]);
    assert_eq!(machine.seen("libcudart"), home.join("lib/libcudart.so.13").display().to_string());
    assert!(!home.join("lib64").exists(), "the environment was changed");
    assert!(!std::path::Path::new(&machine.seen("CUDA_HOME")).exists(), "links are left");
}

#[test]
fn toolkits_of_other_majors_are_not_taken() {
    let machine = Machine::new(GOOD);
    machine.torch("12.8");
    machine.toolkit("cuda-11.8", "11.8");
    std::os::unix::fs::symlink(machine.path("cuda-11.8/bin/nvcc"), machine.path("bin/nvcc")).expect("a link");
    let run = machine.build(&["--yes"]);
    run.ends(2, &["no nvcc of CUDA 12 was found", "11.8 (", "13.0 (", "hint: install CUDA 12.8"]);
}

#[test]
fn an_environment_that_cannot_build_is_refused() {
    let machine = Machine::new(GOOD);
    machine.torch("");
    machine.build(&["--yes"]).ends(2, &["PyTorch 2.11.0+cu", "was built without CUDA"]);
    machine.without("torch", "2.11.0");
    machine.build(&["--yes"]).ends(2, &["PyTorch is not installed in", "hint: ", "--python"]);
    machine.without("pip", "25.0");
    machine.build(&["--yes"]).ends(2, &["has no pip, and uv is not on the search path", "ensurepip"]);
    machine.build(&["--yes", "--python", "nowhere/python"]).ends(2, &["nowhere/python cannot be run"]);
    let run = Run::of(machine.command(&["build", "./ext", "--yes"]).output().expect("the program"));
    run.ends(2, &["hint: say what to do: --add-arch 120"]);
}

#[test]
fn a_plan_is_shown_without_what_would_compile_it() {
    let machine = Machine::new(GOOD);
    let named = ["--dry-run", "--cuda", "13.0", "--torch", "2.11"];
    let shown = ["it cannot be compiled here: ", "nothing was written and nothing compiled"];
    let run = machine.build(&["--dry-run"]);
    machine.without("torch", "2.11.0");
    let without = machine.build(&named);
    without.ends(0, &[&shown[..], &["PyTorch is not installed in"]].concat());
    assert!(!run.out.is_empty() && run.out == without.out, "{}{}", run.out, without.out);
    machine.build(&named[..3]).ends(2, &["PyTorch is not installed in"]);
    machine.build(&["--dry-run"]).ends(2, &["PyTorch is not installed in"]);
    machine.build(&named[1..]).ends(2, &["PyTorch is not installed in"]);
    machine.without("pip", "25.0");
    machine.build(&named).ends(0, &shown);
}

#[test]
fn a_failing_build_is_explained() {
    let machine = Machine::new(
        "print(\"nvcc fatal   : Unsupported gpu architecture 'compute_53'\", file=sys.stderr)\nsys.exit(1)\n",
    );
    let run = machine.build(&["--yes"]);
    run.ends(2, &["cause: ", "compute_53", "the build failed after", "hint: mambapatch diagnose "]);
    assert!(machine.log().contains("Unsupported gpu architecture"));
    let run = machine.build(&["--yes", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&run.out).expect("a document");
    assert!(document["error"]["notes"][0].as_str().expect("a cause").contains("53"), "{document}");
    assert!(machine.wheels("dist").is_empty());
}

#[test]
fn a_wheel_must_hold_what_was_asked_for() {
    for (build, says) in [
        ("wheel('for-90.so')\n", "lacks sm_120: it holds sm_90"),
        ("wheel()\n", "holds no GPU code: the build left CUDA out"),
        ("pass\n", "left 0 wheels instead of one"),
        ("wheel('for-120.so')\nwheel('for-120.so', name='b-1.0-py3-none-any.whl')\n", "left 2 wheels"),
    ] {
        let machine = Machine::new(build);
        let run = machine.build(&["--yes"]);
        run.ends(2, &[says, "hint: "]);
        assert_eq!(machine.wheels("dist"), Vec::<String>::new(), "{build}");
    }
}

#[test]
fn a_tree_that_needs_no_patch_is_built_all_the_same() {
    let machine = Machine::new(GOOD);
    let run =
        machine.command(&["build", "./ext", "--only-arch", "80", "--yes"]).output().expect("the program");
    Run::of(run).ends(0, &["nothing is patched", "done: "]);
    assert_eq!(machine.wheels("dist").len(), 1);
}

#[test]
fn the_wheel_is_installed_and_verified() {
    // An object is inspected like a library, and no Python loads it.
    let good = GOOD.replace("compiled())", "compiled(), ending='.o')");
    let machine = Machine::new(&good);
    machine.torch_that_imports();
    let run = machine.build(&["--yes", "--install"]);
    run.ends(0, &["done: ", "installed: into "]);
    assert!(!run.err.contains("next"), "nothing is left to be typed: {}", run.err);
    assert!(!run.err.contains("--force-reinstall"), "what is done is not to be typed: {}", run.err);
    assert!(run.out.contains("for-120.o") && run.out.contains("some_extension"), "{}", run.out);
    assert!(machine.log().contains("installing "), "{}", machine.log());
    let broken = good.replace("wheel(", "INIT = 'import nowhere_to_be_found'\nwheel(");
    let machine = Machine::new(&broken);
    machine.torch_that_imports();
    let run = machine.build(&["--yes", "--install", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&run.out).expect("a document");
    assert!(document["verified"].to_string().contains("nowhere_to_be_found"), "{document}");
    assert_eq!(run.code, 2, "{document}");
    assert_eq!(machine.wheels("dist").len(), 1);
}

/// A branch with a commit, as `apply` makes it, and the build on it; again, the branch is there already.
#[test]
fn a_git_checkout_gets_a_branch() {
    let machine = Machine::new(GOOD);
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@host.test",
            "-c",
            "commit.gpgsign=false",
        ]);
        let output = command.args(words).current_dir(machine.path("work/ext")).output().expect("git");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "start"]);
    let run = machine.build(&["--yes", "--branch", "ours"]);
    run.ends(0, &["done: branch ours in ", "1 commit", "done: "]);
    assert_eq!(git(&["log", "--format=%s", "main..ours"]).lines().count(), 1);
    let tree = git(&["rev-parse", "ours^{tree}"]);
    let kept = std::fs::read_to_string(machine.path(&format!("state/builds/{}.json", tree.trim())));
    assert!(kept.expect("what it showed, for a pull request").contains("\"sm_120\""));
    assert_eq!(git(&["branch", "--show-current"]).trim(), "ours");
    assert_eq!(git(&["status", "--short"]), "?? ran.txt\n", "what setup.py of this test wrote");
    machine.build(&["--yes"]).ends(0, &["nothing is patched", "done: "]);
}

/// uv, for a Python without pip.
#[test]
fn uv_builds_where_there_is_no_pip() {
    let machine = Machine::new(GOOD);
    machine.without("pip", "25.0");
    let uv = "while [ \"$1\" != --out-dir ]; do all=\"$all $1\"; shift; done; echo uv$all; cd \"$3\"; exec \"$PYTHON\" setup.py \"$2\"";
    machine.tool("bin/uv", &uv.replace("$PYTHON", &machine.path("env/bin/python").display().to_string()));
    let run = machine.build(&["--yes"]);
    let python = machine.path("env/bin/python").display().to_string();
    run.ends(0, &["(uv)", &format!("uv pip install --python {python} --no-deps --force-reinstall")]);
    let said = format!("uv build --wheel --no-build-isolation --no-cache --python {python}");
    assert!(machine.log().contains(&said), "{}", machine.log());
    assert_eq!(machine.wheels("dist").len(), 1);
}

#[test]
fn a_tree_without_a_project_names_what_lies_below() {
    let machine = Machine::new(GOOD);
    let ext = machine.path("work/ext");
    std::fs::create_dir_all(machine.path("work/all/ops")).expect("a folder");
    std::fs::rename(ext, machine.path("work/all/ops/ext")).expect("a folder");
    let run =
        machine.command(&["build", "./all", "--only-arch", "120", "--yes"]).output().expect("the program");
    Run::of(run).ends(2, &["neither setup.py nor pyproject.toml", "hint: build that folder of it: ops/ext"]);
    assert_eq!(names(&machine.path("state/logs")), Vec::<String>::new());
}

use std::collections::BTreeMap;

use super::*;
use crate::engine::arch::parse_codes;
use crate::engine::catalogue::Catalogue;
use crate::engine::environment::Environment;
use crate::engine::ops::gencode::ArchWish;
use crate::engine::syntax::Passes;
use proptest::prelude::*;

const NAMES: [&str; 3] = ["*CUDA_ARCHITECTURES", "CUDA_ARCHS", "CMAKE_CUDA_ARCHITECTURES_ALL"];

/// What is asked for: `120 -70 =90 @13.0 t2.6` adds 120, drops 70, wants 90 only, with CUDA 13.0 and torch 2.6.
struct Asked {
    wish: ArchWish,
    cuda: Vec<Toolkit>,
    torch: Option<pep440_rs::Version>,
}

fn asked(text: &str) -> Asked {
    let mut asked = Asked { wish: ArchWish::default(), cuda: Vec::new(), torch: None };
    for word in text.split_whitespace() {
        let codes = |text: &str| parse_codes(text).unwrap_or_else(|error| panic!("{error}"));
        match word.as_bytes()[0] {
            b't' => asked.torch = Some(word[1..].parse().expect("version")),
            b'@' => asked.cuda.push(word[1..].parse().expect("toolkit")),
            b'-' => asked.wish.drop.extend(codes(&word[1..])),
            b'=' => asked.wish.only.extend(codes(&word[1..])),
            _ => asked.wish.add.extend(codes(word)),
        }
    }
    asked
}

fn plan(path: &str, text: &str, asked: &Asked) -> (String, Vec<OpPlan>) {
    let files = Files::new(&["**/*".to_string()]).expect("glob");
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let names = Names { torch: names(&["TORCH_CUDA_ARCH_LIST"]), others: names(&NAMES) };
    let mut sources: Sources = [(path, text.as_bytes())].into_iter().collect();
    let toolchain =
        Toolchain { catalogue: Catalogue::shipped(), floor: Toolkit::new(11, 0), cuda: &asked.cuda };
    let (passes, earlier) = (Passes::of(&Environment::default(), Catalogue::shipped()), BTreeMap::new());
    let aim =
        Aim { wish: &asked.wish, toolchain, torch: asked.torch.as_ref(), passes: &passes, earlier: &earlier };
    let mut plans = Vec::new();
    for what in [Lists::Named(names), Lists::Flags] {
        let plan = WordsOp { files: files.clone(), what }.plan(&sources, aim).expect("plan");
        if let Some(edits) = plan.edits.get(path) {
            let new = edits.apply(sources.get(path).expect("file"));
            sources.insert(path, new);
        }
        plans.push(plan);
    }
    (String::from_utf8(sources.get(path).expect("file").to_vec()).expect("utf-8"), plans)
}

/// The text afterwards; planned again, it must stay.
fn settled(path: &str, text: &str, ask: &str) -> String {
    let (new, _) = plan(path, text, &asked(ask));
    let (again, plans) = plan(path, &new, &asked(ask));
    assert_eq!(again, new, "{text}");
    assert!(plans.iter().all(|plan| plan.outcome.word() != "changed"), "{plans:?}");
    new
}

fn outcome(path: &str, text: &str, ask: &str) -> String {
    let (new, plans) = plan(path, text, &asked(ask));
    assert_eq!(new, text);
    let told = plans.iter().find(|plan| plan.outcome.word() != "not-applicable");
    told.map_or("not-applicable".to_string(), |plan| {
        format!("{}: {}", plan.outcome.word(), plan.outcome.detail())
    })
}

#[test]
fn makefiles_keep_their_continuations_and_tabs() {
    let text = "A := -gencode arch=compute_60,code=sm_60 \\\n\t\t-gencode=arch=compute_75,code=sm_75 \\\n\t\t-O2\n\t@echo $(A)\n";
    assert_eq!(
        settled("Makefile", text, "@13.0"),
        "A := -gencode=arch=compute_75,code=sm_75 \\\n\t\t-O2\n\t@echo $(A)\n"
    );
    assert_eq!(
        settled("Makefile", text, "120 @13.0"),
        "A := -gencode=arch=compute_75,code=sm_75 \\\n\t\t-gencode=arch=compute_120,code=sm_120 \\\n\t\t-O2\n\t@echo $(A)\n"
    );
    assert_eq!(
        settled("Makefile", text, "-60 -75 120"),
        "A := -gencode=arch=compute_120,code=sm_120 \\\n\t\t-O2\n\t@echo $(A)\n"
    );
    let crlf = text.replace('\n', "\r\n");
    assert_eq!(
        settled("Makefile", &crlf, "120 @13.0"),
        settled("Makefile", text, "120 @13.0").replace('\n', "\r\n")
    );
}

#[test]
fn makefile_accumulators_get_lines() {
    let text = "F += -gencode arch=compute_60,code=sm_60 -O2\nF += -gencode arch=compute_70,code=sm_70\n";
    assert_eq!(settled("x.mk", text, "120"), format!("{text}F += -gencode arch=compute_120,code=sm_120\n"));
    assert_eq!(settled("x.mk", text, "120 @13.0"), "F += -O2\nF += -gencode arch=compute_120,code=sm_120\n");
    assert_eq!(settled("x.mk", text, "-70"), "F += -gencode arch=compute_60,code=sm_60 -O2\n");
}

#[test]
fn shell_strings_and_commands_are_read() {
    let text = "#!/bin/sh\nA=\"-gencode arch=compute_60,code=sm_60 \\\n   -gencode arch=compute_80,code=sm_80 \"\n# -gencode arch=compute_90,code=sm_90\n";
    assert_eq!(
        settled("make.sh", text, "120 @13.0"),
        "#!/bin/sh\nA=\"-gencode arch=compute_80,code=sm_80 \\\n   -gencode arch=compute_120,code=sm_120 \"\n# -gencode arch=compute_90,code=sm_90\n"
    );
    let command = "nvcc -c a.cu -Xcompiler -fPIC -gencode arch=compute_60,code=sm_60 -o a.o && echo -gencode arch=compute_60,code=sm_60\n";
    assert_eq!(
        settled("make.sh", command, "120 -60"),
        command.replacen("60,code=sm_60", "120,code=sm_120", 1)
    );
}

#[test]
fn one_flag_has_room_for_one() {
    let text = "nvcc -c a.cu -arch=sm_52\nnvcc -c b.cu -arch sm_61 -O2\n";
    assert_eq!(settled("a.sh", text, "=120"), "nvcc -c a.cu -arch=sm_120\nnvcc -c b.cu -arch sm_120 -O2\n");
    assert_eq!(settled("a.sh", text, "120 @13.0"), settled("a.sh", text, "=120"));
    assert_eq!(
        settled("a.sh", "nvcc -arch=sm_52 a.cu\n", "=90 =120"),
        "nvcc -gencode arch=compute_90,code=sm_90 -gencode arch=compute_120,code=sm_120 a.cu\n"
    );
    let told = outcome("a.sh", text, "120");
    assert!(
        told.starts_with("reported: ") && told.contains("a.sh line 2") && told.contains("--only-arch 120"),
        "{told}"
    );
    assert!(
        outcome("a.sh", "nvcc -arch=native\nclang -arch arm64\nnvcc -arch=$A\n", "120")
            .starts_with("not-app")
    );
    assert!(outcome("a.sh", "nvcc -arch=sm_120 a.cu\n", "12.0+PTX").starts_with("already"));
}

#[test]
fn dockerfiles_hold_lists() {
    let text = "# ENV TORCH_CUDA_ARCH_LIST=\"6.0\"\nENV TORCH_CUDA_ARCH_LIST=\"6.0 6.1 7.0+PTX\"\n";
    assert_eq!(settled("Dockerfile", text, "120 @13.0"), text.replace("6.0 6.1 7.0+PTX", "12.0+PTX"));
    assert_eq!(settled("Dockerfile", text, "120"), text.replace("7.0+PTX", "7.0+PTX 12.0"));
    assert_eq!(settled("Dockerfile", text, "=80"), text.replace("6.0 6.1 7.0+PTX", "8.0"));
    let several = "ENV A=1 TORCH_CUDA_ARCH_LIST='8.0;9.0' \\\n    B=2\n";
    assert_eq!(settled("a.Dockerfile", several, "120"), several.replace("9.0", "9.0;12.0"));
    assert_eq!(
        settled("Dockerfile", "ENV TORCH_CUDA_ARCH_LIST 8.0 9.0\n", "120"),
        "ENV TORCH_CUDA_ARCH_LIST 8.0 9.0 12.0\n"
    );
    assert_eq!(
        settled("Dockerfile", "ARG TORCH_CUDA_ARCH_LIST=8.0\n", "120"),
        "ARG TORCH_CUDA_ARCH_LIST=\"8.0;12.0\"\n"
    );
    let left = "RUN echo 'TORCH_CUDA_ARCH_LIST=8.0' >> x\nARG TORCH_CUDA_ARCH_LIST\nENV TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST}\nENV TORCH_CUDA_ARCH_LIST=\"\"\n";
    assert!(outcome("Dockerfile", left, "120 @13.0").starts_with("not-applicable"));
}

#[test]
fn names_are_those_of_torch() {
    let text = "ARG TORCH_CUDA_ARCH_LIST=\"Kepler;Kepler+Tesla;Pascal;Volta;Turing\"\n";
    assert_eq!(settled("Dockerfile", text, "120 @13.0"), "ARG TORCH_CUDA_ARCH_LIST=\"Turing;12.0\"\n");
    assert_eq!(
        settled("Dockerfile", "ENV TORCH_CUDA_ARCH_LIST=Volta\n", "120 @13.0"),
        "ENV TORCH_CUDA_ARCH_LIST=12.0+PTX\n"
    );
}

#[test]
fn torch_checks_its_own_list() {
    let text = "ENV TORCH_CUDA_ARCH_LIST=\"8.0 9.0\"\n";
    assert!(outcome("Dockerfile", text, "120 t2.6").contains("120 is not added: torch 2.6 refuses it"));
    assert_eq!(settled("Dockerfile", text, "120 t2.7"), text.replace("9.0", "9.0 12.0"));
    assert_eq!(settled("Dockerfile", &text.replace("9.0", "10.1"), "t2.9"), text.replace(" 9.0", ""));
    assert_eq!(settled("a.sh", "CUDA_ARCHS=\"8.0\"\n", "120 t2.6"), "CUDA_ARCHS=\"8.0;12.0\"\n");
}

#[test]
fn scripts_export_lists_and_hand_them_on() {
    assert_eq!(
        settled("b.sh", "export TORCH_CUDA_ARCH_LIST=8.0\n", "120"),
        "export TORCH_CUDA_ARCH_LIST=\"8.0;12.0\"\n"
    );
    assert_eq!(
        settled("b.sh", "cmake -DCMAKE_CUDA_ARCHITECTURES=\"70;80\" ..\n", "120 @13.0"),
        "cmake -DCMAKE_CUDA_ARCHITECTURES=\"80;120\" ..\n"
    );
    assert_eq!(settled("b.sh", "CUDA_ARCHS=\"75,80\" make\n", "120"), "CUDA_ARCHS=\"75,80,120\" make\n");
}

#[test]
fn branches_of_scripts_are_lists_of_their_own() {
    let text = "if [ $A ]; then\n  CUDA_ARCHS=\"70 80\"\nelse\n  CUDA_ARCHS=\"80\"\nfi\n";
    let both = text.replace("\"70 80\"", "\"80 120\"").replace("=\"80\"", "=\"80;120\"");
    assert_eq!(settled("b.sh", text, "120 @13.0"), both);
    for (name, text) in [
        ("a.sh", "if [ $A = 1 ]; then\n  export TORCH_CUDA_ARCH_LIST=\"6.0;8.0\"\nfi\n"),
        ("CMakeLists.txt", "if(A)\n  set(CMAKE_CUDA_ARCHITECTURES_ALL 60 80)\nendif()\n"),
    ] {
        assert_eq!(settled(name, text, "-60 -80"), text, "a value does not become empty");
    }
    let make = "ifeq ($(A),1)\nCUDA_ARCHS := 70 80\nelse\nCUDA_ARCHS := 80\nendif\n";
    assert_eq!(
        settled("Makefile", make, "120"),
        make.replace("70 80", "70 80 120").replace("= 80\n", "= 80 120\n")
    );
}

#[test]
fn cmake_lists_keep_their_form() {
    let cases = [
        ("set(CMAKE_CUDA_ARCHITECTURES 70 75)\n", "set(CMAKE_CUDA_ARCHITECTURES 75 120)\n"),
        (
            "set(CMAKE_CUDA_ARCHITECTURES \"70;75;86\" CACHE STRING \"70;75\")\n",
            "set(CMAKE_CUDA_ARCHITECTURES \"75;86;120\" CACHE STRING \"70;75\")\n",
        ),
        ("set(CMAKE_CUDA_ARCHITECTURES 70;75)\n", "set(CMAKE_CUDA_ARCHITECTURES 75;120)\n"),
        (
            "set_target_properties(a b PROPERTIES X 1 CUDA_ARCHITECTURES \"70;86\" Y 2)\n",
            "set_target_properties(a b PROPERTIES X 1 CUDA_ARCHITECTURES \"86;120\" Y 2)\n",
        ),
        (
            "set_property(TARGET a PROPERTY CUDA_ARCHITECTURES 70 75)\n",
            "set_property(TARGET a PROPERTY CUDA_ARCHITECTURES 75 120)\n",
        ),
        (
            "set(CMAKE_CUDA_ARCHITECTURES 70-real 80-real 80-virtual)\n",
            "set(CMAKE_CUDA_ARCHITECTURES 80-real 80-virtual 120-real)\n",
        ),
        (
            "set(CMAKE_CUDA_ARCHITECTURES 70-real 70-virtual)\n",
            "set(CMAKE_CUDA_ARCHITECTURES 120-real 120-virtual)\n",
        ),
        ("list(APPEND MY_CUDA_ARCHITECTURES 75 80)\n", "list(APPEND MY_CUDA_ARCHITECTURES 75 80 120)\n"),
        ("set(CUDA_ARCHS \"7.0\" \"7.5\")\n", "set(CUDA_ARCHS \"7.5\" \"12.0\")\n"),
        (
            "set(ENV{TORCH_CUDA_ARCH_LIST} \"7.0 8.0+PTX\")\n",
            "set(ENV{TORCH_CUDA_ARCH_LIST} \"8.0+PTX 12.0\")\n",
        ),
        ("set(CUDA_ARCHS\n  70 # old\n  75 # new\n)\n", "set(CUDA_ARCHS\n  75 # new\n  120\n)\n"),
    ];
    for (text, wanted) in cases {
        assert_eq!(settled("CMakeLists.txt", text, "120 @13.0"), wanted);
    }
    let left = [
        ("native", "not-applicable"),
        ("all-major", "not-applicable"),
        ("OFF", "not-applicable"),
        ("${X}", "reported"),
        ("$<IF:1,70,80>", "reported"),
    ];
    for (left, wanted) in left {
        let text = format!(
            "set(CMAKE_CUDA_ARCHITECTURES {left})\n#set(CMAKE_CUDA_ARCHITECTURES 70)\n#[[\nset(CUDA_ARCHS 70)\n]]\n"
        );
        assert!(outcome("a.cmake", &text, "120 @13.0").starts_with(wanted), "{left}");
    }
}

#[test]
fn findcuda_strings_keep_what_stands_beside() {
    let text = "set(F \"${F} -gencode arch=compute_30,code=sm_30 -O2\")\nset(F \"${F} -gencode arch=compute_80,code=sm_80\")\n";
    assert_eq!(
        settled("CMakeLists.txt", text, "120 @13.0"),
        "set(F \"${F} -O2\")\nset(F \"${F} -gencode arch=compute_80,code=sm_80\")\nset(F \"${F} -gencode arch=compute_120,code=sm_120\")\n"
    );
    let list = "list(APPEND CUDA_NVCC_FLAGS -O3;-gencode arch=compute_60,code=sm_60)\n";
    assert_eq!(settled("a.cmake", list, "120 -60"), list.replace("60,code=sm_60", "120,code=sm_120"));
    let pair = "list(APPEND F \"-gencode\" \"arch=compute_80,code=[sm_80,compute_80]\")\n";
    assert_eq!(
        settled("a.cmake", pair, "90"),
        "list(APPEND F \"-gencode\" \"arch=compute_80,code=[sm_80,compute_80]\" \"-gencode\" \"arch=compute_90,code=sm_90\")\n"
    );
    let bracket = "set(F \"-gencode arch=compute_70,code=[sm_70,compute_70]\")\n";
    assert_eq!(settled("a.cmake", bracket, "120 @13.0"), bracket.replace("_70", "_120"));
    let genexp =
        "target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-gencode arch=compute_70,code=sm_70>)\n";
    assert!(
        outcome("a.cmake", genexp, "120").contains("line 1 is not understood"),
        "{}",
        outcome("a.cmake", genexp, "120")
    );
}

#[test]
fn guards_of_cmake_are_evaluated_and_written() {
    let text = "set(A \"${A} -gencode arch=compute_60,code=sm_60\")\nif(CUDA_VERSION VERSION_GREATER \"10.9\")\n  set(A \"${A} -gencode arch=compute_80,code=sm_80\")\nendif()\n";
    assert_eq!(
        settled("a.cmake", text, "120"),
        format!(
            "{text}if(CUDA_VERSION VERSION_GREATER \"12.6\")\n  set(A \"${{A}} -gencode arch=compute_120,code=sm_120\")\nendif()\n"
        )
    );
    let dead =
        "if(CUDA_VERSION VERSION_LESS 13)\n  set(CUDA_ARCHS 60 70)\nelse()\n  set(CUDA_ARCHS 80)\nendif()\n";
    assert_eq!(settled("a.cmake", dead, "120 @13.0"), dead.replace("(CUDA_ARCHS 80)", "(CUDA_ARCHS 80 120)"));
    assert_eq!(settled("a.cmake", dead, "90 @12.8"), dead.replace("60 70", "60 70 90"));
    let hip = "if(USE_ROCM)\n  set(CUDA_ARCHS 60)\nelse()\n  set(CUDA_ARCHS 80)\nendif()\n";
    assert_eq!(settled("a.cmake", hip, "120"), hip.replace("80", "80 120"));
}

#[test]
fn current_lists_are_left() {
    let text = "if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL \"13.0\")\n  list(APPEND CMAKE_CUDA_ARCHITECTURES_ALL 75 100 110 120)\nelse()\n  set(CMAKE_CUDA_ARCHITECTURES_ALL 50 70)\n  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL \"12.8\")\n    list(APPEND CMAKE_CUDA_ARCHITECTURES_ALL 100 101 120 121)\n  endif()\nendif()\n";
    for ask in ["120", "100 120 @13.0", "120 @12.8", "100 120 @12.8 @13.0", "@13.0"] {
        let told = outcome("CMakeLists.txt", text, ask);
        assert!(!told.starts_with("changed"), "{ask}: {told}");
    }
    let told = outcome("CMakeLists.txt", text, "120 @12.8");
    assert!(told.contains("121 is compiled with CUDA 12.8 too, which does not know it yet"), "{told}");
}

#[test]
fn ladders_of_scripts_are_read() {
    let ladder = "if [[ \"${CUDA_MAJOR}\" == \"11\" ]]; then\n  export TORCH_CUDA_ARCH_LIST=\"6.0;8.0\"\n\
                  elif [[ \"${CUDA_MAJOR}\" == \"12\" ]]; then\n  if [ $CUDA_MINOR -lt 8 ]; then\n    \
                  export TORCH_CUDA_ARCH_LIST=\"6.0;9.0\"\n  else\n    export TORCH_CUDA_ARCH_LIST=\"6.0;9.0;12.0\"\n  fi\n\
                  else\n  export TORCH_CUDA_ARCH_LIST=\"7.5;9.0;12.0\"\nfi\n";
    for ask in ["120 @13.0", "120 @12.8", "@12.4 @13.0"] {
        assert_eq!(settled("a.sh", ladder, ask), ladder, "{ask}");
    }
    let newer = settled("a.sh", ladder, "103 @13.0");
    assert_eq!(newer, ladder.replace("7.5;9.0;12.0", "7.5;9.0;10.3;12.0"));
    let unsure = ladder.replace("== \"11\" ]]; then", "== \"11\" ]] && [ -n \"$OLD\" ]; then");
    let pruned = settled("a.sh", &unsure, "@13.0");
    assert_eq!(pruned, unsure.replace("6.0;8.0", "8.0"), "what the condition says is not known");
    for (name, text) in [
        ("a.sh", "if [ $A = 1 ]; then\n  export TORCH_CUDA_ARCH_LIST=\"6.0;8.0\"\nfi\n"),
        ("CMakeLists.txt", "if(A)\n  set(CMAKE_CUDA_ARCHITECTURES_ALL 60 80)\nendif()\n"),
    ] {
        assert_eq!(settled(name, text, "-60 -80"), text, "a value does not become empty");
    }
    let make = "ifeq ($(A),1)\nX += -gencode arch=compute_90,code=sm_90\nelse ifeq ($(A),2)\n\
                X += -gencode arch=compute_80,code=sm_80\nendif\nY = -gencode arch=compute_70,code=sm_70\n";
    assert_eq!(
        plan("Makefile", make, &asked("@13.0")).0.lines().count(),
        6,
        "the last list is all that there is"
    );
}

#[test]
fn lists_of_kernels_are_reported() {
    let text = "set(CUDA_ARCHS \"9.0a\")\ncuda_archs_intersection(MARLIN_ARCHS \"8.0;8.6\" \"${CUDA_ARCHS}\")\nf(OTHER \"8.0\")\n";
    let told = outcome("CMakeLists.txt", text, "120");
    assert!(told.contains("120 is not put there: compiled for sm_90a alone"), "{told}");
    assert!(
        told.contains("lists given to cuda_archs_intersection are left") && told.ends_with(": line 2"),
        "{told}"
    );
}

#[test]
fn nothing_is_emptied_and_conflicts_are_told() {
    let text = "ENV TORCH_CUDA_ARCH_LIST=\"6.0\"\n";
    assert!(
        outcome("Dockerfile", text, "@13.0")
            .contains("`TORCH_CUDA_ARCH_LIST` of Dockerfile: CUDA 13.0 refuses all of it")
    );
    assert!(outcome("Dockerfile", text, "-60").contains("nothing would be left"));
    let told = outcome("Dockerfile", "ENV TORCH_CUDA_ARCH_LIST=\"8.0\"\n", "120 @12.4 @13.0");
    assert!(told.contains("120 is not added: CUDA 12.4 refuses it"), "{told}");
    assert_eq!(
        settled("Dockerfile", "ENV TORCH_CUDA_ARCH_LIST=\"8.0 12.0\"\n", "@12.4"),
        "ENV TORCH_CUDA_ARCH_LIST=\"8.0\"\n"
    );
    assert!(outcome(".github/a.sh", "nvcc -arch=sm_52\n", "120 @13.0").starts_with("not-applicable"));
}

/// Lists in all the forms that are read, of some of these architectures.
fn form(form: usize, arches: &[u16]) -> (&'static str, String) {
    let join = |separator: &str, one: &dyn Fn(&u16) -> String| {
        arches.iter().map(one).collect::<Vec<_>>().join(separator)
    };
    let gencode = |arch: &u16| format!("-gencode arch=compute_{arch},code=sm_{arch}");
    let dotted = |arch: &u16| format!("{}.{}", arch / 10, arch % 10);
    let number = |arch: &u16| arch.to_string();
    match form {
        0 => (
            "Makefile",
            format!("# {}\nA := -O3 {} -lineinfo # end\n", join(" ", &gencode), join(" \\\n\t", &gencode)),
        ),
        1 => ("a.sh", format!("export A=\"{} \" # no\nnvcc $A x.cu\n", join(" \\\n  ", &gencode))),
        2 => ("Dockerfile", format!("ENV TORCH_CUDA_ARCH_LIST=\"{}\"\n", join(" ", &dotted))),
        3 => ("CMakeLists.txt", format!("set(CUDA_ARCHS {})\n", join(" ", &number))),
        4 => (
            "CMakeLists.txt",
            format!("set(CUDA_ARCHS\n{}\n)\n", join("\n", &|arch| format!("  {arch} # {arch}"))),
        ),
        5 => {
            ("CMakeLists.txt", join("\n", &|arch| format!("set(F \"${{F}} {} -O1\")", gencode(arch))) + "\n")
        }
        6 => (
            "CMakeLists.txt",
            join("\n", &|arch| format!("list(APPEND CUDA_ARCHS \"{}\")", dotted(arch))) + "\n",
        ),
        _ => ("x.mk", join("\n", &|arch| format!("F += {}", gencode(arch))) + "\n"),
    }
}

/// The architectures of a file, by a reading of its own: numbers behind `sm_`, or all of a list, comments left out.
fn named(text: &str) -> Vec<u16> {
    let code: String =
        text.lines().map(|line| line.split('#').next().unwrap_or_default().to_string() + "\n").collect();
    let is_flags = code.contains("sm_");
    let pattern = if is_flags { r"sm_(\d+)" } else { r"\b(\d+\.\d|\d\d\d?)\b" };
    let pattern = regex::Regex::new(pattern).expect("regex");
    pattern.captures_iter(&code).map(|found| found[1].replace('.', "").parse().expect("number")).collect()
}

proptest! {
    /// What is wanted is there once, what was dropped or refused is gone, the rest stays in its order, comments stay.
    #[test]
    fn the_law_holds_in_every_form(
        which in 0usize..8,
        arches in prop::sample::subsequence(vec![60u16, 70, 75, 80, 86, 90], 1..=6),
        add in prop::sample::subsequence(vec![75u16, 86, 100, 120], 1..=3),
        drop in prop::sample::subsequence(vec![60u16, 80, 90], 0..=2),
        cuda in prop::sample::subsequence(vec!["12.8", "13.0"], 0..=2),
    ) {
        let (path, text) = form(which, &arches);
        let ask: Vec<String> = add.iter().map(u16::to_string)
            .chain(drop.iter().map(|arch| format!("-{arch}")))
            .chain(cuda.iter().map(|cuda| format!("@{cuda}"))).collect();
        let new = settled(path, &text, &ask.join(" "));
        let goes = |arch: &u16| drop.contains(arch) || (cuda.contains(&"13.0") && *arch < 75);
        let mut wanted: Vec<u16> = arches.iter().copied().filter(|arch| !goes(arch)).collect();
        let rest: Vec<u16> = named(&new).into_iter().filter(|arch| wanted.contains(arch)).collect();
        prop_assert_eq!(&rest, &wanted, "{}", new);
        wanted.extend(add.iter().filter(|arch| !arches.contains(arch) || drop.contains(arch)));
        wanted.sort_unstable();
        wanted.dedup();
        let mut found = named(&new);
        prop_assert!(found.is_sorted(), "{}", new);
        found.sort_unstable();
        prop_assert_eq!(found, wanted, "{}", new);
        prop_assert_eq!(new.matches("-O1").count(), text.matches("-O1").count());
        prop_assert_eq!(new.lines().next().filter(|line| line.starts_with('#')), text.lines().next().filter(|line| line.starts_with('#')));
    }

    /// Whatever stands in a file, planning ends, and planning again changes nothing more.
    #[test]
    fn no_text_makes_it_stumble(
        path in prop::sample::select(vec!["Makefile", "a.sh", "Dockerfile", "CMakeLists.txt"]),
        words in prop::collection::vec(prop::sample::select(vec![
            "set(CUDA_ARCHS ", "CUDA_ARCHS", "=", ":= ", "\"", "'", "70", "7.5+PTX", ";", " ", "\\\n", "\n", ")", "(", "#",
            "-gencode", " arch=compute_70,code=sm_70", "-arch=sm_60 ", "${CUDA_ARCHS}", "if(CUDA_VERSION GREATER 9) ", "endif()\n",
            "list(APPEND CUDA_ARCHS ", "ENV ", "export ", "&& ", "$(", "<<EOF", "80-real", ",",
        ]), 0..24),
    ) {
        let text = words.concat();
        let (new, _) = plan(path, &text, &asked("120 @13.0"));
        let (again, _) = plan(path, &new, &asked("120 @13.0"));
        prop_assert_eq!(again, new);
    }
}

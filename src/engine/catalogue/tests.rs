use super::*;

/// What the compilers of each toolkit say that they know (11.0 to 11.6: what documents say).
const MEASURED: &[(&str, &str)] = &[
    ("11.0", KEPLER_TO_80),
    ("11.1", KEPLER_TO_86),
    ("11.2", KEPLER_TO_86),
    ("11.3", KEPLER_TO_86),
    ("11.4", KEPLER_TO_86),
    ("11.5", KEPLER_TO_87),
    ("11.6", KEPLER_TO_87),
    ("11.7", KEPLER_TO_87),
    ("11.8", "35 37 50 52 53 60 61 62 70 72 75 80 86 87 89 90"),
    ("12.0", MAXWELL_TO_90A),
    ("12.1", MAXWELL_TO_90A),
    ("12.2", MAXWELL_TO_90A),
    ("12.3", MAXWELL_TO_90A),
    ("12.4", MAXWELL_TO_90A),
    ("12.5", MAXWELL_TO_90A),
    ("12.6", MAXWELL_TO_90A),
    ("12.8", "50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a 100 100a 101 101a 120 120a"),
    (
        "12.9",
        "50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a 100 100a 100f 101 101a 101f 103 103a 103f \
         120 120a 120f 121 121a 121f",
    ),
    ("13.0", TURING_TO_121),
    ("13.1", TURING_TO_121),
    ("13.2", TURING_TO_121),
    ("13.3", TURING_TO_121),
    ("13.4", WITH_107),
    ("13.5", WITH_107),
];
const KEPLER_TO_80: &str = "35 37 50 52 53 60 61 62 70 72 75 80";
const KEPLER_TO_86: &str = "35 37 50 52 53 60 61 62 70 72 75 80 86";
const KEPLER_TO_87: &str = "35 37 50 52 53 60 61 62 70 72 75 80 86 87";
const MAXWELL_TO_90A: &str = "50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a";
const TURING_TO_121: &str = "75 80 86 87 88 89 90 90a 100 100a 100f 103 103a 103f 110 110a 110f \
                             120 120a 120f 121 121a 121f";
const WITH_107: &str = "75 80 86 87 88 89 90 90a 100 100a 100f 103 103a 103f 107 107a 107f 110 110a 110f \
                        120 120a 120f 121 121a 121f";

fn shipped() -> &'static Catalogue {
    Catalogue::shipped()
}

fn arch(text: &str) -> Arch {
    text.parse().expect(text)
}

fn toolkit(text: &str) -> Toolkit {
    text.parse().expect(text)
}

fn known_by(version: &str) -> String {
    let known = shipped().arches().filter(|row| shipped().knows(toolkit(version), row.arch));
    known.map(|row| row.arch.to_string()).collect::<Vec<_>>().join(" ")
}

fn gpu(name: &str) -> String {
    let list = |gpus: Vec<Gpu<'_>>| {
        gpus.iter().map(|gpu| format!("{}={}", gpu.name, gpu.arch)).collect::<Vec<_>>().join(", ")
    };
    match shipped().find_gpu(name) {
        GpuMatch::One(gpu) => gpu.arch.to_string(),
        GpuMatch::Several(gpus) => format!("several: {}", list(gpus)),
        GpuMatch::Unknown(gpus) => format!("unknown: {}", list(gpus)),
    }
}

#[test]
fn each_toolkit_knows_what_its_compiler_says() {
    let versions: Vec<String> = shipped().toolkits().iter().map(|row| row.version.to_string()).collect();
    assert_eq!(versions, MEASURED.iter().map(|(version, _)| *version).collect::<Vec<_>>());
    for (version, arches) in MEASURED {
        assert_eq!(known_by(version), *arches, "CUDA {version}");
    }
}

#[test]
fn first_and_last_toolkits_are_the_measured_ones() {
    let span = |text| {
        let row = shipped().arch(arch(text)).expect(text);
        (row.since.map(|t| t.to_string()), row.last.map(|t| t.to_string()))
    };
    let some = |text: &str| Some(text.to_string());
    for (since, arches) in [("12.8", "120 100"), ("12.9", "121 103"), ("13.0", "110 88"), ("13.4", "107")] {
        for text in arches.split(' ') {
            assert_eq!(span(text), (some(since), None), "{text}");
        }
    }
    assert_eq!(span("101"), (some("12.8"), some("12.9")));
    for (last, arches) in [("11.8", "35 37"), ("12.9", "50 52 53 60 61 62 70 72")] {
        for text in arches.split(' ') {
            assert_eq!(span(text), (None, some(last)), "{text}");
        }
    }
    assert_eq!(shipped().arch(arch("101")).expect("row").renamed_to, Some(arch("110")));
}

#[test]
fn toolkits_between_and_beyond_the_rows_are_answered() {
    assert_eq!(shipped().newest(), toolkit("13.5"));
    assert_eq!(known_by("12.7"), known_by("12.6"));
    assert_eq!(known_by("99.0"), known_by("13.5"));
    assert!(shipped().knows(toolkit("10.2"), arch("70")) && !shipped().knows(toolkit("10.2"), arch("80")));
    assert!(!shipped().knows(toolkit("13.0"), arch("125")));
    assert_eq!(shipped().first_refusing(arch("53")), Some(toolkit("13.0")));
    assert_eq!(shipped().first_refusing(arch("35")), Some(toolkit("12.0")));
    assert_eq!(shipped().first_refusing(arch("101")), Some(toolkit("13.0")));
    assert_eq!(shipped().first_refusing(arch("75")), None);
    assert_eq!(shipped().first_refusing(arch("125")), None);
}

/// Asked of ptxas 12.9.86 and of nvcc and ptxas 13.5.37.
#[test]
fn gencode_values_are_taken_as_nvcc_takes_them() {
    let takes = |version, from, code| {
        let gencode: Gencode = format!("arch=compute_{from},code={code}").parse().expect("gencode");
        shipped().takes(toolkit(version), &gencode)
    };
    for (from, code) in [
        ("80", "sm_86"),
        ("75", "sm_120f"),
        ("90", "sm_90a"),
        ("90a", "sm_90a"),
        ("100f", "sm_103"),
        ("100f", "sm_100a"),
        ("103f", "sm_107"),
        ("120f", "sm_121"),
        ("90", "[sm_90,compute_90]"),
        ("80", "lto_86"),
    ] {
        assert!(takes("13.5", from, code), "{from} {code}");
    }
    for (from, code) in [
        ("86", "sm_80"),
        ("90a", "sm_90"),
        ("90a", "sm_100a"),
        ("120a", "sm_121"),
        ("100f", "sm_110"),
        ("100f", "sm_120"),
        ("103f", "sm_100"),
        ("80", "compute_86"),
        ("90", "[sm_90,compute_80]"),
        ("70", "sm_75"),
    ] {
        assert!(!takes("13.5", from, code), "{from} {code}");
    }
    assert!(takes("12.9", "101f", "sm_101") && !takes("12.9", "100f", "sm_101"));
    assert!(takes("12.8", "120", "sm_120") && !takes("12.8", "120f", "sm_120"));
    assert!(!takes("13.0", "100f", "sm_107") && takes("99.0", "100f", "sm_107"));
}

#[test]
fn gpus_are_found_as_people_type_them() {
    for (name, arch) in [
        ("RTX 5090", "120"),
        ("5090", "120"),
        ("rtx5090", "120"),
        ("rtx-5090", "120"),
        ("NVIDIA GeForce RTX 5090", "120"),
        ("RTX 5070 Ti", "120"),
        ("5070ti", "120"),
        ("RTX PRO 6000", "120"),
        ("GB10", "121"),
        ("dgx spark", "121"),
        ("B200", "100"),
        ("B300", "103"),
        ("H100", "90"),
        ("A100", "80"),
        ("4090", "89"),
        ("Tesla V100", "70"),
        ("P100", "60"),
        ("A6000", "86"),
        ("Jetson AGX Thor", "110"),
        ("thor", "110"),
        ("Orin NX", "87"),
        ("TX2", "62"),
        ("Jetson Nano", "53"),
    ] {
        assert_eq!(gpu(name), arch, "{name}");
    }
}

#[test]
fn names_of_several_gpus_and_of_none_are_told_apart() {
    assert_eq!(gpu("TITAN X"), "several: TITAN X=52, TITAN X=61");
    assert_eq!(gpu("RTX 6000"), "several: Quadro RTX 6000=75, RTX 6000=75, RTX 6000=89");
    for part_of_a_name in ["RTX", "Blackwell", "Ti", "D", "Jetson", "TITAN", "NVIDIA"] {
        assert!(gpu(part_of_a_name).starts_with("unknown: "), "{part_of_a_name}: {}", gpu(part_of_a_name));
    }
    assert_eq!(gpu("RTX 5900"), "unknown: RTX 5090=120, RTX 5000=89, Quadro RTX 5000=75");
    assert_eq!(gpu("H101"), "unknown: H100=90");
    assert_eq!(gpu("090"), "unknown: RTX 5090=120, RTX 4090=89, RTX 3090=86");
    assert_eq!(gpu("banana"), "unknown: ");
    assert_eq!(gpu(""), "unknown: ");
}

#[test]
fn numbers_that_are_no_architecture_get_a_hint() {
    let near = |text| {
        let arches = shipped().nearest_arches(text);
        arches.iter().map(Arch::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(near("125"), "121 120");
    assert_eq!(near("sm_91"), "90 89 88");
    assert_eq!(near("88a"), "88 89 87");
    assert_eq!(near("12"), "121 120");
    assert_eq!(near("12O"), "121 120");
    assert_eq!(near("1200"), "120 100");
    assert_eq!(near("banana"), "");
    assert_eq!(near(""), "");
}

#[test]
fn a_name_stands_in_two_rows_only_where_two_products_have_it() {
    let mut names: Vec<&str> = shipped().arches().flat_map(|row| &row.gpus).map(String::as_str).collect();
    names.sort_unstable();
    let mut twice: Vec<&str> =
        names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    twice.dedup();
    assert_eq!(twice, ["RTX 3000", "RTX 4000", "RTX 5000", "RTX 6000", "TITAN X"]);
}

#[test]
fn torch_demands_its_standard_and_its_compiler() {
    let standard = |text: &str| shipped().cxx_standard(&text.parse().expect(text));
    assert_eq!(standard("2.0.1"), None);
    assert_eq!(standard("2.1"), Some(17));
    assert_eq!(standard("2.13.0+cu130"), Some(17));
    assert_eq!(standard("2.14.0"), Some(20));
    assert_eq!(standard("2.14.0.dev20260101+cu130"), Some(20));
    let below = |text| shipped().torch_gcc(toolkit(text)).map(|row| row.below);
    assert_eq!((below("12.8"), below("12.1"), below("11.6")), (Some(14), None, Some(12)));
    assert!(shipped().torch_wheels().iter().all(|wheel| !wheel.arches.is_empty()));
}

#[test]
fn torch_checks_its_list_of_architectures() {
    let takes = |torch: &str, arch: &str| {
        shipped().torch_takes(&torch.parse().expect(torch), arch.parse().expect(arch))
    };
    assert!(takes("2.11.0+cu130", "120") && takes("2.11", "12.0a") && takes("2.11", "3.5"));
    assert!(!takes("2.6", "120") && takes("2.7", "120") && !takes("2.6.0", "100a"));
    assert!(takes("2.8", "101") && !takes("2.9", "101") && takes("2.9", "110"));
    assert!(!takes("2.11", "120f") && takes("1.13", "120"));
    let since = |arch: &str| shipped().torch_since(arch.parse().expect(arch)).map(ToString::to_string);
    assert_eq!((since("120"), since("100f")), (Some("2.7".to_string()), None));
}

#[test]
fn compilers_drivers_and_traps_are_answered() {
    let row = shipped().toolkit(toolkit("12.8")).expect("row");
    assert_eq!(
        (row.gcc, row.clang, row.msvc),
        (Some(14), Some(19), Some(MsvcRange { from: 1910, below: 1950 }))
    );
    assert_eq!(shipped().toolkit(toolkit("99.0")).expect("row").version, toolkit("13.5"));
    assert!(shipped().toolkit(toolkit("12.7")).is_none());
    let floor = shipped().driver_floor(toolkit("12.8")).expect("row");
    assert_eq!(floor.linux.as_deref(), Some("525"));
    let traps = |version, name| -> Vec<&str> {
        let all = shipped().advisories().iter();
        all.filter(|a| a.glibc.is_none() && a.concerns(toolkit(version), arch(name)))
            .map(|a| &*a.id)
            .collect()
    };
    assert_eq!(traps("13.0", "120a"), ["nested-divergence", "mxfp4-on-120"]);
    assert_eq!(traps("13.0", "90"), ["nested-divergence"]);
    assert!(traps("13.3", "120").is_empty());
}

#[test]
fn ptx_names_the_first_toolkit_that_writes_it() {
    let first = |text| shipped().toolkit_of_ptx(toolkit(text)).map(|toolkit| toolkit.to_string());
    assert_eq!(first("8.5").as_deref(), Some("12.5"));
    assert_eq!(first("8.6").as_deref(), Some("12.8"));
    assert_eq!(first("9.0").as_deref(), Some("13.0"));
    assert_eq!(first("10.0"), None);
    assert!(shipped().toolkits().iter().all(|row| row.ptx.is_some()));
}

#[test]
fn every_row_names_its_source() {
    let catalogue = shipped();
    let sources = (catalogue.arches.iter().map(|row| &row.source))
        .chain(catalogue.toolkits.iter().map(|row| &row.source))
        .chain(catalogue.driver_floors.iter().map(|row| &row.source))
        .chain(catalogue.advisories.iter().map(|row| &row.source))
        .chain(catalogue.cxx_standards.iter().map(|row| &row.source))
        .chain(catalogue.torch_arches.iter().map(|row| &row.source))
        .chain(catalogue.torch_gccs.iter().map(|row| &row.source))
        .chain(catalogue.torch_wheels.iter().map(|row| &row.source))
        .chain(catalogue.arch_names.iter().map(|row| &row.source));
    assert!(sources.into_iter().all(|source| source.len() > 10));
}

const ARCH: &str = "[[arch]]\nname = \"120\"\nsince = \"12.8\"\nsource = \"s\"\n";
const TOOLKIT: &str = "[[toolkit]]\nversion = \"12.8\"\nsource = \"s\"\n";

fn refusal(arches: &str, toolkits: &str) -> String {
    Catalogue::parse(arches, toolkits, "").expect_err("must be refused").to_string()
}

#[test]
fn mistakes_name_file_line_and_valid_keys() {
    assert!(Catalogue::parse(ARCH, TOOLKIT, "").is_ok());
    let message = refusal(&ARCH.replace("since", "sinse"), TOOLKIT);
    for part in ["catalogue/arches.toml", "line 3", "unknown field `sinse`", "`since`", "`renamed-to`"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let message = refusal(&ARCH.replace("120", "12x"), TOOLKIT);
    assert!(message.contains("line 2") && message.contains("`12x` is not a GPU architecture"), "{message}");
    let message = refusal(ARCH, &TOOLKIT.replace("12.8", "12"));
    assert!(message.contains("catalogue/toolkits.toml") && message.contains("line 2"), "{message}");
}

#[test]
fn contradictions_name_file_and_row() {
    assert_eq!(refusal(ARCH, "toolkit = []"), "catalogue/toolkits.toml: there is no `[[toolkit]]`");
    assert_eq!(
        refusal(ARCH, &TOOLKIT.repeat(2)),
        "catalogue/toolkits.toml: `[[toolkit]]` must ascend: `12.8` follows `12.8`"
    );
    assert_eq!(
        refusal(&ARCH.replace("12.8", "12.7"), TOOLKIT),
        "catalogue/arches.toml: arch `120` names CUDA 12.7, which toolkits.toml does not have"
    );
    assert_eq!(
        refusal(&ARCH.replace("120", "120f"), TOOLKIT),
        "catalogue/arches.toml: arch `120f`: exactly the `f` architectures have a `family`"
    );
    assert_eq!(
        refusal(&format!("{ARCH}renamed-to = \"130\"\n"), TOOLKIT),
        "catalogue/arches.toml: arch `120` names `130`, which is no row"
    );
    assert_eq!(
        refusal(&format!("{ARCH}renamed-to = \"120\"\n"), TOOLKIT),
        "catalogue/arches.toml: arch `120`: `renamed-to` and `renamed-from` must name each other"
    );
}

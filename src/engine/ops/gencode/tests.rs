use super::*;
use crate::engine::arch::parse_codes;
use crate::engine::syntax::Language;

const HEAD: &str = "\
cc_flag = []
if HIP_BUILD:
    cc_flag.append(\"-DX\")
else:
    if CUDA_HOME is not None:
        if bare_metal_version < Version(\"11.6\"):
            raise RuntimeError()

    cc_flag.append(\"-gencode\")
    cc_flag.append(\"arch=compute_53,code=sm_53\")
    cc_flag.append(\"-gencode\")
    cc_flag.append(\"arch=compute_70,code=sm_70\")
    cc_flag.append(\"-gencode\")
    cc_flag.append(\"arch=compute_80,code=sm_80\")

    if bare_metal_version >= Version(\"11.8\"):
        cc_flag.append(\"-gencode\")
        cc_flag.append(\"arch=compute_90,code=sm_90\")
";
const TAIL: &str = "

# HACK
nvcc = [\"-O3\"] + cc_flag
";

fn op() -> GencodeOp {
    let pattern = |text| Pattern::new(Language::Python, text).expect(text);
    let entry = pattern("cc_flag.append(\"-gencode\")\ncc_flag.append(\"$GENCODE\")");
    let from = pattern("bare_metal_version >= Version(\"$FIRST\")");
    let until = pattern("bare_metal_version <= Version(\"$LAST\")");
    let files = crate::engine::ops::files::Files::new(&["setup.py".to_string()]).expect("glob");
    GencodeOp::new(files, &entry, Some(&from), Some(&until)).expect("op")
}

fn codes(text: &str) -> Vec<Code> {
    text.split_whitespace().flat_map(|arch| parse_codes(arch).expect(arch)).collect()
}

fn plan(text: &str, wish: &ArchWish, cuda: &[&str]) -> Result<(String, GencodePlan), GencodeError> {
    let cuda: Vec<Toolkit> = cuda.iter().map(|version| version.parse().expect(version)).collect();
    let toolchain = Toolchain { catalogue: Catalogue::shipped(), floor: Toolkit::new(11, 6), cuda: &cuda };
    let parse = |text: &[u8]| Parsed::new(Language::Python, text.into()).expect("parses");
    let plan = op().plan(&parse(text.as_bytes()), wish, toolchain)?;
    let new = plan.edits.apply(text.as_bytes());
    let again = op().plan(&parse(&new), wish, toolchain)?;
    assert!(
        again.edits.is_empty(),
        "a second run changes nothing: {:?}\n{}",
        again.how,
        String::from_utf8_lossy(&new)
    );
    Ok((String::from_utf8(new).expect("utf-8"), plan))
}

fn add(arches: &str) -> ArchWish {
    ArchWish { add: codes(arches), ..ArchWish::default() }
}

fn added(text: &str, arches: &str, cuda: &[&str]) -> String {
    plan(text, &add(arches), cuda).expect("plan").0
}

/// What each toolkit compiles, refused flags in brackets.
fn compiled(text: &str, toolkit: &str) -> String {
    let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("parses");
    let toolchain = Toolchain { catalogue: Catalogue::shipped(), floor: Toolkit::new(11, 6), cuda: &[] };
    let all = op().compiled(&parsed, &[toolkit.parse().expect(toolkit)], toolchain).remove(0);
    let label = |one: &Compiled| {
        let label = settle::labels(one.gencode.codes.clone());
        if one.accepted { label } else { format!("[{label}]") }
    };
    all.iter().map(label).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_new_arch_gets_a_guard_after_the_last_entry() {
    let expected = format!(
        "{HEAD}    if bare_metal_version >= Version(\"12.8\"):
        cc_flag.append(\"-gencode\")
        cc_flag.append(\"arch=compute_120,code=sm_120\")
{TAIL}"
    );
    let text = format!("{HEAD}{TAIL}");
    assert_eq!(added(&text, "120", &[]), expected);
    assert_eq!(compiled(&expected, "12.3"), "53 70 80 90");
    assert_eq!(compiled(&expected, "12.8"), "53 70 80 90 120");
    assert_eq!(compiled(&expected, "13.0"), "[53] [70] 80 90 120");
}

#[test]
fn several_arches_share_guards_in_ascending_order() {
    let new = added(&format!("{HEAD}{TAIL}"), "121 120 89 75 100", &[]);
    assert_eq!(compiled(&new, "11.7"), "53 70 75 80");
    assert_eq!(compiled(&new, "12.3"), "53 70 75 80 89 90");
    assert_eq!(compiled(&new, "12.8"), "53 70 75 80 89 90 100 120");
    assert_eq!(compiled(&new, "12.9"), "53 70 75 80 89 90 100 120 121");
    assert_eq!(new.matches("Version(\"12.8\")").count(), 1);
}

#[test]
fn a_given_toolkit_is_asked_for_nothing_it_refuses() {
    let new = added(&format!("{HEAD}{TAIL}"), "120", &["13.0"]);
    assert_eq!(compiled(&new, "13.0"), "80 90 120");
    assert_eq!(compiled(&new, "12.9"), "53 70 80 90 120");
    assert!(new.contains(
        "    if bare_metal_version <= Version(\"12.9\"):
        cc_flag.append(\"-gencode\")
        cc_flag.append(\"arch=compute_53,code=sm_53\")
        cc_flag.append(\"-gencode\")
        cc_flag.append(\"arch=compute_70,code=sm_70\")
    cc_flag.append(\"-gencode\")
"
    ));
}

#[test]
fn only_one_arch_leaves_no_empty_guard() {
    let text = format!("{HEAD}{TAIL}");
    let wish = ArchWish { only: codes("120"), ..ArchWish::default() };
    let (new, _) = plan(&text, &wish, &["13.0"]).expect("plan");
    assert_eq!(compiled(&new, "13.0"), "120");
    assert_eq!(compiled(&new, "12.3"), "");
    assert!(!new.contains("11.8") && !new.contains("\n\n\n\n"), "{new}");
    assert!(new.contains("RuntimeError()\n\n    if bare_metal_version >= Version(\"12.8\"):"), "{new}");
}

#[test]
fn arches_are_dropped_with_their_ptx_and_bounds_are_kept() {
    let text = format!("{HEAD}{TAIL}");
    let wish = ArchWish { add: codes("12.0+PTX 61 101"), drop: codes("70"), ..ArchWish::default() };
    let (new, _) = plan(&text, &wish, &[]).expect("plan");
    assert_eq!(compiled(&new, "12.8"), "53 61 80 90 101 120 120 (PTX)");
    assert_eq!(compiled(&new, "13.0"), "[53] 80 90 120 120 (PTX)");
    assert!(
        new.contains(
            "if bare_metal_version >= Version(\"12.8\") and bare_metal_version <= Version(\"12.9\"):"
        )
    );
    let wish = ArchWish { drop: codes("120"), ..ArchWish::default() };
    assert_eq!(compiled(&plan(&new, &wish, &[]).expect("plan").0, "13.0"), "[53] 80 90");
}

#[test]
fn hand_edits_are_repaired() {
    let wanted = added(&format!("{HEAD}{TAIL}"), "120", &[]);
    let unguarded =
        "    cc_flag.append(\"-gencode\")\n    cc_flag.append(\"arch=compute_120,code=sm_120\")\n";
    let alone = "    cc_flag.append(\"arch=compute_120,code=sm_120\")\n";
    let one_string = "    cc_flag.append(\"-gencode arch=compute_120,code=sm_120\")\n";
    for edit in [unguarded, alone, one_string] {
        assert_eq!(added(&format!("{HEAD}{edit}{TAIL}"), "120", &[]), wanted, "{edit}");
    }
    let outside = unguarded.replace("    cc_flag", "cc_flag");
    assert_eq!(added(&format!("{HEAD}{outside}{TAIL}"), "120", &[]), wanted);
    assert_eq!(added(&format!("{HEAD}{outside}{outside}{TAIL}"), "120", &[]), wanted);
    let doubled = wanted.replace(
        "        cc_flag.append(\"-gencode\")\n        cc_flag.append(\"arch=compute_120,code=sm_120\")\n",
        &"        cc_flag.append(\"-gencode\")\n        cc_flag.append(\"arch=compute_120,code=sm_120\")\n"
            .repeat(2),
    );
    assert_eq!(added(&doubled, "120", &[]), wanted);
}

#[test]
fn half_done_edits_of_other_arches_are_reported() {
    let text = format!("{HEAD}    cc_flag.append(\"arch=compute_86,code=sm_86\")\n{TAIL}");
    let (_, plan) = plan(&text, &add("120"), &[]).expect("plan");
    assert_eq!(plan.reported.len(), 1);
    assert!(plan.reported[0].contains("without `-gencode`"), "{:?}", plan.reported);
}

#[test]
fn a_late_arch_is_satisfied_unless_a_given_toolkit_needs_it() {
    let guard = "    if bare_metal_version >= Version(\"13.0\"):
        cc_flag.append(\"-gencode\")
        cc_flag.append(\"arch=compute_121,code=sm_121\")  # Spark
";
    let text = format!("{HEAD}{guard}{TAIL}");
    let (new, late) = plan(&text, &add("121"), &[]).expect("plan");
    assert_eq!(new, text);
    assert!(late.remarks[0].contains("CUDA 12.9"), "{:?}", late.remarks);
    let moved = added(&text, "121", &["12.9"]);
    assert_eq!(compiled(&moved, "12.9"), "53 70 80 90 121");
    assert!(!moved.contains("13.0"), "{moved}");
}

#[test]
fn the_style_of_the_file_is_kept() {
    let text = format!("{HEAD}{TAIL}");
    let wanted = added(&text, "120", &["13.0"]);
    let variants: [fn(&str) -> String; 4] = [
        |text| text.replace('\n', "\r\n"),
        |text| text.replace("    ", "\t"),
        |text| text.replace('"', "'"),
        |text| format!("\u{feff}{text}").trim_end().to_string(),
    ];
    for variant in variants {
        assert_eq!(added(&variant(&text), "120", &["13.0"]), variant(&wanted));
    }
}

#[test]
fn elif_nesting_and_reversed_comparisons_are_read() {
    let text = "\
cc_flag = []
if Version('12.8') <= bare_metal_version:
    cc_flag.append('-gencode')
    cc_flag.append('arch=compute_100,code=sm_100')
elif bare_metal_version >= Version('11.8') and bare_metal_version < Version('12.8'):
    cc_flag.append('-gencode')
    cc_flag.append('arch=compute_90,code=sm_90')
else:
    cc_flag.append('-gencode')
    cc_flag.append('arch=compute_80,code=sm_80')
f(cc_flag)
";
    assert_eq!(compiled(text, "11.7"), "80");
    assert_eq!(compiled(text, "12.3"), "90");
    assert_eq!(compiled(text, "13.0"), "100");
    let new = added(text, "120", &[]);
    assert_eq!(compiled(&new, "13.0"), "100 120");
    let wish = ArchWish { drop: codes("90"), ..ArchWish::default() };
    let (new, _) = plan(text, &wish, &[]).expect("plan");
    assert!(new.contains("    pass\n"), "{new}");
}

#[test]
fn lists_that_nothing_reads_and_unknown_spellings_have_no_anchor() {
    let unused = HEAD;
    assert!(matches!(plan(unused, &add("120"), &[]), Err(GencodeError::NoAnchor { unused: true, .. })));
    let other = "flags += ['-gencode=arch=compute_90,code=sm_90']\nf(flags)\n";
    let Err(GencodeError::NoAnchor { nearest, .. }) = plan(other, &add("120"), &[]) else {
        panic!("no anchor")
    };
    assert_eq!(nearest.map(|(line, _)| line), Some(1));
}

#[test]
fn entries_that_share_a_line_are_read_but_not_moved() {
    let text = format!(
        "{HEAD}    x = 1; cc_flag.append(\"-gencode\"); cc_flag.append(\"arch=compute_61,code=sm_61\")\n{TAIL}"
    );
    assert_eq!(compiled(&text, "12.3"), "53 70 80 90 61");
    let wish = ArchWish { drop: codes("61"), ..ArchWish::default() };
    assert!(matches!(plan(&text, &wish, &[]), Err(GencodeError::SharedLine { .. })));
}

#[test]
fn each_branch_of_an_unknown_choice_compiles_what_is_wanted_where_hip_stands_beside() {
    let entry =
        "    cc_flag.append(\"-gencode\")\n    cc_flag.append(\"arch=compute_90,code=sm_90\")\n".to_string();
    let new = "    if bare_metal_version >= Version(\"12.8\"):\n        cc_flag.append(\"-gencode\")\n        cc_flag.append(\"arch=compute_120,code=sm_120\")\n";
    let file = |inner: &str| {
        format!(
            "if HIP_BUILD:\n    cc_flag.append(\"-DX\")\nelif WINDOWS:\n{inner}else:\n{inner}nvcc = cc_flag\n"
        )
    };
    let (text, _) = plan(&file(&entry), &add("120"), &[]).expect("plan");
    assert_eq!(text, file(&format!("{entry}{new}")));
}

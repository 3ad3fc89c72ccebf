use super::*;
use proptest::prelude::*;

use crate::engine::arch::{Arch, Code, parse_codes};
use crate::engine::catalogue::Catalogue;
use crate::engine::environment::Environment;
use crate::engine::ops::gencode::{ArchWish, Toolchain};
use crate::engine::syntax::Language;
use crate::engine::syntax::Passes;
use crate::engine::syntax::language::Parsed;
use std::collections::BTreeMap;

fn settled(text: &str, add: &str, drop: &str, only: &str) -> String {
    let op = ListOp {
        files: Files::new(&["setup.py".to_string()]).expect("glob"),
        which: Which::Named("ARCHES".into()),
    };
    let codes =
        |text: &str| text.split_whitespace().flat_map(|arch| parse_codes(arch).expect(arch)).collect();
    let wish = ArchWish { add: codes(add), drop: codes(drop), only: codes(only) };
    let sources: Sources = [("setup.py", text.as_bytes())].into_iter().collect();
    let toolchain = Toolchain { catalogue: Catalogue::shipped(), floor: Toolkit::new(11, 0), cuda: &[] };
    let passes = Passes::of(&Environment::default(), Catalogue::shipped());
    let earlier = BTreeMap::new();
    let aim = Aim { wish: &wish, toolchain, torch: None, passes: &passes, earlier: &earlier };
    let plan = op.plan(&sources, aim).expect("plan");
    let new =
        plan.edits.get("setup.py").map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
    String::from_utf8(new).expect("utf-8")
}

fn listed(text: &str, add: &str, drop: &str) -> String {
    settled(text, add, drop, "")
}

#[test]
fn notation_separator_and_layout_are_kept() {
    assert_eq!(
        listed("ARCHES = [\"80\", \"90\"]\n", "120 100", ""),
        "ARCHES = [\"80\", \"90\", \"100\", \"120\"]\n"
    );
    assert_eq!(listed("ARCHES = '8.0;9.0+PTX'\n", "12.0", ""), "ARCHES = '8.0;9.0+PTX;12.0'\n");
    assert_eq!(listed("ARCHES = {80, 90}\n", "75", "90"), "ARCHES = {75, 80}\n");
    let lines = "ARCHES = (\n    'sm_80',\n    'sm_90',\n)\n";
    assert_eq!(listed(lines, "120", ""), lines.replace("'sm_90',", "'sm_90',\n    'sm_120',"));
    assert_eq!(listed("ARCHES = [\"120\"]\n", "120", ""), "ARCHES = [\"120\"]\n");
    assert_eq!(
        listed("ARCHES = [\n  80,\n  90\n]\n", "86 120", ""),
        "ARCHES = [\n  80,\n  86,\n  90,\n  120\n]\n"
    );
}

#[test]
fn several_neighbours_may_go() {
    assert_eq!(listed("ARCHES = [60, 61, 70, 80]\n", "", "60 61"), "ARCHES = [70, 80]\n");
    assert_eq!(listed("ARCHES = [60, 61, 70, 80]\n", "", "70 80"), "ARCHES = [60, 61]\n");
    assert_eq!(settled("ARCHES = ('60', '61', '90')\n", "", "", "90"), "ARCHES = ('90',)\n");
    assert_eq!(settled("ARCHES = [60, 61]\n", "", "", "90"), "ARCHES = [90]\n");
    let lines = "ARCHES = [\n    60,  # a\n    61,  # b\n    70  # c\n]\n";
    assert_eq!(settled(lines, "", "60 70", ""), "ARCHES = [\n    61,  # b\n]\n");
    assert_eq!(settled(lines, "80", "70", ""), "ARCHES = [\n    60,  # a\n    61,  # b\n    80,\n]\n");
}

#[test]
fn ptx_belongs_to_its_architecture() {
    assert_eq!(listed("ARCHES = '8.0 9.0'\n", "9.0+PTX 12.0+PTX", ""), "ARCHES = '8.0 9.0+PTX 12.0+PTX'\n");
    assert_eq!(listed("ARCHES = '8.0;9.0+PTX'\n", "", "compute_90"), "ARCHES = '8.0;9.0'\n");
    assert_eq!(listed("ARCHES = '8.0;9.0+PTX'\n", "", "90"), "ARCHES = '8.0'\n");
}

#[test]
fn the_list_may_stand_within_a_call() {
    for text in [
        "ARCHES = os.getenv('X', '80')\n",
        "ARCHES = set(['80'])\n",
        "ARCHES = '80'.split(';')\n",
        "os.environ['ARCHES'] = '80'\n",
    ] {
        let added = listed(text, "120", "");
        assert!(added.contains("80;120") || added.contains("80', '120"), "{added}");
    }
}

/// What the flags of a text become, and what is said of them.
fn flags(text: &str, wish: &ArchWish, cuda: &[Toolkit]) -> (String, Outcome) {
    let spellings = ["'-gencode', '$GENCODE',", "'-gencode=$GENCODE',", "'-arch=$CODE',"];
    let spellings = spellings.map(|text| Spelling::new(text).expect(text)).to_vec();
    let files = Files::new(&["setup.py".to_string()]).expect("glob");
    let op = ListOp { files, which: Which::Flags(spellings) };
    let sources: Sources = [("setup.py", text.as_bytes())].into_iter().collect();
    let toolchain = Toolchain { catalogue: Catalogue::shipped(), floor: Toolkit::new(11, 0), cuda };
    let passes = Passes::of(&Environment::default(), Catalogue::shipped());
    let earlier = BTreeMap::new();
    let aim = Aim { wish, toolchain, torch: None, passes: &passes, earlier: &earlier };
    let plan = op.plan(&sources, aim).expect("plan");
    let new =
        plan.edits.get("setup.py").map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
    (String::from_utf8(new).expect("utf-8"), plan.outcome)
}

/// The values of all flags of a text, in order.
fn values(text: &str) -> Vec<crate::engine::arch::Gencode> {
    let words =
        text.split(['"', '\'', ' ', '\n']).filter_map(|word| word.find("arch=compute").map(|at| &word[at..]));
    words.filter_map(|word| word.parse().ok()).collect()
}

proptest! {
    /// Whatever the list and the wish: what comes out is Python, is settled, keeps its order, holds what the given
    /// toolkits take and nothing else, and what is no flag stays.
    #[test]
    fn any_list_is_settled_once(
        arches in prop::collection::vec(prop::sample::select(vec![50, 60, 70, 75, 80, 86, 90, 100, 120]), 1..7),
        ptx in any::<bool>(),
        layout in 0..4usize,
        add in prop::sample::select(vec![vec![], vec![120], vec![100, 120], vec![75]]),
        drop in prop::sample::select(vec![vec![], vec![80]]),
        cuda in prop::sample::select(vec![vec![], vec![(12, 8)], vec![(13, 0)], vec![(12, 8), (13, 0)]]),
    ) {
        let code = |number: &u16| Code::Sass(Arch::plain(*number));
        let wish = ArchWish {
            add: add.iter().map(code).collect(),
            drop: drop.iter().map(code).collect(),
            only: Vec::new(),
        };
        let cuda: Vec<Toolkit> = cuda.into_iter().map(|(major, minor)| Toolkit::new(major, minor)).collect();
        let mut elements = vec!["'-O3'".to_string()];
        elements.extend(arches.iter().map(|arch| match layout {
            0 | 1 => format!("'-gencode', 'arch=compute_{arch},code=sm_{arch}'"),
            _ => format!("'-gencode=arch=compute_{arch},code=sm_{arch}'"),
        }));
        elements.extend(arches.last().filter(|_| ptx).map(|arch| match layout {
            0 | 1 => format!("'-gencode', 'arch=compute_{arch},code=compute_{arch}'"),
            _ => format!("'-gencode=arch=compute_{arch},code=compute_{arch}'"),
        }));
        elements.push("'-lineinfo'".to_string());
        let text = match layout % 2 {
            0 => format!("flags = [{}]\n", elements.join(", ")),
            _ => format!("flags = [\n    {},  # last\n]\n", elements.join(",\n    ")),
        };
        let (new, outcome) = flags(&text, &wish, &cuda);
        let parsed = Parsed::new(Language::Python, new.as_bytes().into()).expect("parses");
        prop_assert_eq!(parsed.syntax_errors(), 0, "{}", &new);
        prop_assert_eq!(&flags(&new, &wish, &cuda).0, &new);
        prop_assert!(new.contains("'-O3'") && new.contains("'-lineinfo'") && new.contains("# last") == text.contains("# last"));
        let (before, after) = (values(&text), values(&new));
        prop_assert!(!after.is_empty());
        let mut kept = after.iter().filter(|value| before.contains(value));
        let in_order: Vec<_> = before.iter().filter(|value| after.contains(value)).collect();
        prop_assert!(in_order.iter().all(|value| kept.next() == Some(*value)), "{}", &new);
        if matches!(outcome, Outcome::Changed { .. }) {
            let catalogue = Catalogue::shipped();
            let takes = |value: &crate::engine::arch::Gencode| cuda.iter().all(|cuda| catalogue.takes(*cuda, value));
            prop_assert!(after.iter().all(takes), "{}", &new);
            let gives = |wanted: &Code| after.iter().flat_map(|value| &value.codes).any(|code| code.arch() == wanted.arch());
            prop_assert!(wish.add.iter().all(gives), "{}", &new);
        }
    }
}

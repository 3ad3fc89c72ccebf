use super::*;
use crate::engine::arch::parse_codes;
use crate::engine::catalogue::Catalogue;
use crate::engine::environment::Environment;
use crate::engine::ops::gencode::{ArchWish, Toolchain};
use crate::engine::syntax::Passes;
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

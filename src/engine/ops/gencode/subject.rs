//! Comparisons of the toolkit's version as people write them, for a source whose way of writing is not known.

use tree_sitter::Node;

use crate::engine::syntax::language::{Parsed, significant_children};
use crate::engine::toolkit::Toolkit;

/// What an expression says of the toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// `cuda_version`, `torch.version.cuda`
    Whole,
    /// `cuda_major`
    Major,
    /// `bare_metal_minor`
    Minor,
}

/// The numbers that an expression stands for with a toolkit; `None` where it does not speak of one.
pub fn subject(node: Node<'_>, parsed: &Parsed, toolkit: Toolkit) -> Option<Vec<u64>> {
    let (major, minor) = (toolkit.major.into(), toolkit.minor.into());
    match kind_of(node, parsed)? {
        Subject::Whole => Some(vec![major, minor]),
        Subject::Major => Some(vec![major]),
        Subject::Minor => Some(vec![minor]),
    }
}

fn kind_of(node: Node<'_>, parsed: &Parsed) -> Option<Subject> {
    match node.kind() {
        "identifier" | "attribute" => by_name(&parsed.text(node).to_lowercase()),
        "call" => kind_of(converted(node, parsed)?, parsed),
        "subscript" => {
            let whole = kind_of(node.child_by_field_name("value")?, parsed)? == Subject::Whole;
            match parsed.text(node.child_by_field_name("subscript")?).as_str() {
                "0" if whole => Some(Subject::Major),
                "1" if whole => Some(Subject::Minor),
                _ => None,
            }
        }
        "tuple" => {
            let parts: Vec<_> = named(node).iter().map(|part| kind_of(*part, parsed)).collect();
            (parts == [Some(Subject::Major), Some(Subject::Minor)]).then_some(Subject::Whole)
        }
        "parenthesized_expression" => kind_of(node.named_child(0)?, parsed),
        _ => None,
    }
}

fn by_name(name: &str) -> Option<Subject> {
    const OTHERS: [&str; 8] = ["torch", "python", "sys.", "gcc", "cudnn", "numpy", "rocm", "hip"];
    let is_torchs = name == "torch.version.cuda";
    if !is_torchs && OTHERS.iter().any(|other| name.contains(other)) {
        return None;
    }
    let is_toolkit = ["cuda", "nvcc", "bare_metal", "toolkit"].iter().any(|word| name.contains(word));
    let is_version = is_torchs || ["version", "bare_metal", "_ver"].iter().any(|word| name.contains(word));
    match () {
        () if name.ends_with("major") => Some(Subject::Major),
        () if name.ends_with("minor") => Some(Subject::Minor),
        () => (is_toolkit && is_version).then_some(Subject::Whole),
    }
}

/// The numbers of a version that is written out: `Version("12.8")`, `"12.8"`, `(12, 8)`, `12`, `12080`.
pub fn version(node: Node<'_>, parsed: &Parsed) -> Option<Vec<u64>> {
    let text = parsed.text(node);
    match node.kind() {
        "integer" => match text.parse().ok()? {
            long if long >= 1000 => Some(vec![long / 1000, long % 1000 / 10]),
            number => Some(vec![number]),
        },
        "float" => numbers(&text),
        "string" => numbers(text.trim_matches(['"', '\''])),
        "call" => version(converted(node, parsed)?, parsed),
        "tuple" | "list" => named(node).iter().map(|part| parsed.text(*part).parse().ok()).collect(),
        "parenthesized_expression" => version(node.named_child(0)?, parsed),
        _ => None,
    }
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split('.').map(|number| number.parse().ok()).collect()
}

/// What a call only converts.
fn converted<'t>(call: Node<'t>, parsed: &Parsed) -> Option<Node<'t>> {
    const CONVERTING: [&str; 7] =
        ["int", "float", "str", "Version", "parse", "LooseVersion", "parse_version"];
    let function = parsed.text(call.child_by_field_name("function")?);
    let converts = CONVERTING.contains(&function.rsplit('.').next().unwrap_or_default());
    let arguments = named(call.child_by_field_name("arguments")?);
    arguments.first().copied().filter(|_| converts && arguments.len() == 1)
}

fn named(node: Node<'_>) -> Vec<Node<'_>> {
    significant_children(node).into_iter().filter(Node::is_named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::catalogue::Catalogue;
    use crate::engine::ops::gencode::guard::Evaluation;
    use crate::engine::ops::gencode::worlds::{Truth, World, Worlds};
    use crate::engine::syntax::Language;
    use crate::engine::syntax::language::descendants;

    /// Which of 11.8, 12.8 and 13.0 get to `here()`: `Y`, `n`, `?`.
    fn reached(text: &str) -> String {
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("parses");
        let toolkits = [(11, 8), (12, 8), (13, 0)].map(|(major, minor)| Toolkit::new(major, minor));
        let worlds = Worlds::new(Catalogue::shipped(), Toolkit::new(11, 0), &toolkits);
        let evaluation = Evaluation { parsed: &parsed, forms: &[], any: true, worlds: &worlds };
        let here = descendants(parsed.root()).find(|node| parsed.text(*node) == "here()").expect("here");
        let reached = evaluation.reached(here);
        let letter = |toolkit| match reached.at(worlds.position(World::Cuda(toolkit)).expect("world")) {
            Truth::No => 'n',
            Truth::Maybe => '?',
            Truth::Yes => 'Y',
        };
        toolkits.into_iter().map(letter).collect()
    }

    fn under(condition: &str) -> String {
        reached(&format!("if {condition}:\n    here()\n"))
    }

    #[test]
    fn the_toolkit_is_compared_in_many_ways() {
        for condition in [
            "bare_metal_version >= Version('12.8')",
            "parse(nvcc_version) >= parse('12.8')",
            "float(torch.version.cuda) >= 12.8",
            "cuda_version >= (12, 8)",
            "CUDA_VERSION >= 12080",
            "(int(cuda_major), int(cuda_minor)) >= (12, 8)",
            "Version('12.8') <= cuda_version",
        ] {
            assert_eq!(under(condition), "nYY", "{condition}");
        }
        assert_eq!(under("major == 12 and minor <= 8"), "nYn");
        assert_eq!(under("int(bare_metal_major) < 12"), "Ynn");
        assert_eq!(under("cuda_version[0] >= 13"), "nnY");
    }

    #[test]
    fn other_versions_tell_nothing() {
        for condition in [
            "TORCH_MAJOR >= 2",
            "torch_version >= Version('2.0')",
            "sys.version_info.major >= 3",
            "cudnn_version >= 8000",
            "CUDA_HOME is not None",
            "gcc_major > 9",
        ] {
            assert_eq!(under(condition), "???", "{condition}");
        }
    }

    #[test]
    fn a_ladder_lets_each_toolkit_into_one_branch() {
        let ladder = |branch: usize| {
            let call = |at| if at == branch { "here()" } else { "pass" };
            let (first, second, third) = (call(0), call(1), call(2));
            format!(
                "if major == 11:\n    {first}\nelif cuda_version < Version('13.0'):\n    {second}\nelse:\n    {third}\n"
            )
        };
        assert_eq!([0, 1, 2].map(|branch| reached(&ladder(branch))), ["Ynn", "nYn", "nnY"]);
        assert_eq!(reached("x = here() if cuda_version >= Version('12.0') else other()\n"), "nYY");
    }
}

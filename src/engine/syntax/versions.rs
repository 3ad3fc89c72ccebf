//! Versions as Python files speak of them: the toolkit's and PyTorch's, compared in many ways.

use tree_sitter::Node;

use super::assigned::{assigned, returned};
use super::language::{Parsed, descendants_holding, significant_children};

/// Whose version an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// `cuda_version`, `bare_metal_major`, `torch.version.cuda`
    Toolkit,
    /// `torch.__version__`, `TORCH_MAJOR`
    Torch,
}

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Major,
    Minor,
}

/// A version that a file compares, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Whose.
    pub whose: Whose,
    part: Part,
}

impl Subject {
    /// The numbers that it stands for, where the version is `major.minor`.
    pub fn numbers(self, major: u64, minor: u64) -> Vec<u64> {
        match self.part {
            Part::Whole => vec![major, minor],
            Part::Major => vec![major],
            Part::Minor => vec![minor],
        }
    }

    /// Whether it is the whole version.
    pub fn is_whole(self) -> bool {
        self.part == Part::Whole
    }
}

/// What an expression says of a version; `None` where it does not speak of one.
pub fn subject(node: Node<'_>, parsed: &Parsed) -> Option<Subject> {
    parsed.subjects.get(&node.id(), || read(node, parsed))
}

fn read(node: Node<'_>, parsed: &Parsed) -> Option<Subject> {
    match node.kind() {
        "identifier" => by_name(node, parsed).or_else(|| followed(node, parsed)),
        "attribute" => by_name(node, parsed),
        "call" => of_call(node, parsed),
        "subscript" => {
            let (value, index) = (node.child_by_field_name("value")?, node.child_by_field_name("subscript")?);
            match index.kind() {
                "slice" => subject(value, parsed).filter(|it| it.is_whole()),
                _ => element(value, (parsed.text(index).parse().ok()?, 2), parsed),
            }
        }
        "tuple" => match named(node).iter().map(|part| subject(*part, parsed)).collect::<Vec<_>>().as_slice()
        {
            [Some(major), Some(minor)] if major.whose == minor.whose => {
                let pair = (major.part, minor.part) == (Part::Major, Part::Minor);
                pair.then_some(Subject { part: Part::Whole, ..*major })
            }
            _ => None,
        },
        "parenthesized_expression" => subject(node.named_child(0)?, parsed),
        _ => None,
    }
}

/// What a name holds that does not say so itself.
fn followed(name: Node<'_>, parsed: &Parsed) -> Option<Subject> {
    let found = assigned(name, parsed)?;
    match found.element {
        Some(at) => element(found.value, at, parsed),
        None => subject(found.value, parsed),
    }
}

/// What a call gives: what it only converts or splits, what the function returns, or what its name says.
fn of_call(call: Node<'_>, parsed: &Parsed) -> Option<Subject> {
    if let Some(inner) = converted(call, parsed).or_else(|| split(call, parsed)) {
        return subject(inner, parsed);
    }
    let function = call.child_by_field_name("function")?;
    match returned(call, parsed) {
        Some(value) => subject(value, parsed),
        None => by_name(function, parsed).filter(|_| !gives_output_too(function, parsed)),
    }
}

/// An element of a value of so many: of a version its major and its minor number.
fn element(value: Node<'_>, (index, count): (usize, usize), parsed: &Parsed) -> Option<Subject> {
    if matches!(value.kind(), "tuple" | "list" | "expression_list") {
        return subject(*named(value).get(index)?, parsed);
    }
    if value.kind() == "call" {
        if let Some(value) = returned(value, parsed) {
            return element(value, (index, count), parsed);
        }
        let function = value.child_by_field_name("function")?;
        if gives_output_too(function, parsed) {
            let part = match (index, count) {
                (1, 2) => Part::Whole,
                (1, 3) => Part::Major,
                (2, 3) => Part::Minor,
                _ => return None,
            };
            return Some(Subject { whose: Whose::Toolkit, part });
        }
    }
    let whole = subject(value, parsed).filter(|it| it.is_whole())?;
    let part = [Part::Major, Part::Minor].get(index).copied()?;
    Some(Subject { part, ..whole })
}

/// `get_cuda_bare_metal_version` of apex, copied widely: what nvcc prints, then its version.
fn gives_output_too(function: Node<'_>, parsed: &Parsed) -> bool {
    parsed.text(function).contains("bare_metal_version")
}

/// What a call splits at dots: `version` of `version.split(".")`.
fn split<'t>(call: Node<'t>, parsed: &Parsed) -> Option<Node<'t>> {
    let function = call.child_by_field_name("function").filter(|function| function.kind() == "attribute")?;
    let splits = parsed.text(function.child_by_field_name("attribute")?) == "split";
    function.child_by_field_name("object").filter(|_| splits)
}

fn by_name(node: Node<'_>, parsed: &Parsed) -> Option<Subject> {
    let name = parsed.text(node).to_lowercase();
    let part = match () {
        () if name.ends_with("major") => Part::Major,
        () if name.ends_with("minor") => Part::Minor,
        () => Part::Whole,
    };
    let is_version = ["version", "bare_metal", "_ver"].iter().any(|word| name.contains(word));
    let whose = match (whose(&name), part) {
        // `major` alone is what it was read from.
        (None, Part::Major | Part::Minor) if matches!(name.as_str(), "major" | "minor") => {
            origin(node, parsed)
        }
        (whose, Part::Major | Part::Minor) => whose,
        (whose, Part::Whole) => whose.filter(|_| is_version),
    };
    Some(Subject { whose: whose?, part })
}

/// Whose version a text is about, in small letters.
fn whose(text: &str) -> Option<Whose> {
    const OTHERS: [&str; 9] = ["python", "sys.", "gcc", "cudnn", "numpy", "rocm", "hip", "driver", "nccl"];
    let is_toolkit = ["cuda", "nvcc", "bare_metal", "toolkit"].iter().any(|word| text.contains(word));
    match () {
        () if text.contains("torch.version.cuda") => Some(Whose::Toolkit),
        () if OTHERS.iter().any(|other| text.contains(other)) => None,
        () if text.contains("torch") => (!is_toolkit).then_some(Whose::Torch),
        () => is_toolkit.then_some(Whose::Toolkit),
    }
}

/// Whose version a name holds, by what it is assigned.
fn origin(name: Node<'_>, parsed: &Parsed) -> Option<Whose> {
    let text = parsed.text(name);
    let offsets = parsed.offsets_of(&text);
    let assigned = descendants_holding(parsed.root(), &offsets).filter(|node| node.kind() == "assignment");
    let mut values = assigned.filter_map(|node| {
        let (left, right) = (node.child_by_field_name("left")?, node.child_by_field_name("right")?);
        let is_it =
            parsed.text(left).split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == text);
        is_it.then(|| whose(&parsed.text(right).to_lowercase()))?
    });
    values.next()
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
    const CONVERTING: [&str; 9] =
        ["int", "float", "str", "tuple", "list", "Version", "parse", "LooseVersion", "parse_version"];
    let function = parsed.text(call.child_by_field_name("function")?);
    let converts = CONVERTING.contains(&function.rsplit('.').next().unwrap_or_default());
    let arguments = named(call.child_by_field_name("arguments")?);
    match arguments.as_slice() {
        [one] if converts => Some(*one),
        // Each of the numbers: `map(int, version.split("."))`.
        [each, all] if function == "map" && parsed.text(*each) == "int" => Some(*all),
        _ => None,
    }
}

fn named(node: Node<'_>) -> Vec<Node<'_>> {
    significant_children(node).into_iter().filter(Node::is_named).collect()
}

/// `torch.version.cuda.startswith("11.")`: whose version is asked how it begins, and with what.
pub fn beginning(call: Node<'_>, parsed: &Parsed) -> Option<(Subject, String)> {
    let function = call.child_by_field_name("function").filter(|_| call.kind() == "call")?;
    let asked = function.child_by_field_name("attribute").filter(|word| parsed.text(*word) == "startswith");
    let object = function.child_by_field_name("object").filter(|_| asked.is_some())?;
    let whole = subject(object, parsed).filter(|it| it.is_whole())?;
    let arguments = named(call.child_by_field_name("arguments")?);
    let [text] = arguments.as_slice() else { return None };
    let text = parsed.text(*text).trim_matches(['"', '\'']).to_string();
    let is_version = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_version.then_some((whole, text))
}

/// Whether a release begins so; `None` where more than its first two numbers would decide.
pub fn begins(numbers: &[u64], with: &str) -> Option<bool> {
    let have = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
    match have.starts_with(with) {
        true => Some(true),
        false if with.starts_with(&have) => None,
        false => Some(false),
    }
}

/// Compares versions of any length; missing numbers are zero.
pub fn compare(one: &[u64], other: &[u64]) -> std::cmp::Ordering {
    let length = one.len().max(other.len());
    let padded =
        |numbers: &[u64]| (0..length).map(|at| numbers.get(at).copied().unwrap_or(0)).collect::<Vec<_>>();
    padded(one).cmp(&padded(other))
}

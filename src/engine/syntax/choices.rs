//! Which branches of a Python file an environment never takes: those of an `if` that compares the version of PyTorch or
//! of the toolkit.

use std::cmp::Ordering;
use std::ops::Range;

use tree_sitter::Node;

use super::branches::DeadCode;
use super::condition::Truth;
use super::language::{Parsed, descendants_holding, significant_children};
use super::passes::{Macro, Pass, Passes};
use super::versions::{self, Subject, Whose};

/// The branches of a file, read once for all environments.
#[derive(Debug, Clone)]
pub struct Choices(Vec<Vec<Branch>>);

/// A branch: what it is taken by, if by anything, and its code.
#[derive(Debug, Clone)]
struct Branch {
    condition: Option<Condition>,
    body: Range<usize>,
}

/// What a condition asks of versions.
#[derive(Debug, Clone)]
enum Condition {
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    /// A version beside one that is written out, and the orderings in which it holds.
    Compares {
        subject: Subject,
        with: Vec<u64>,
        holds: fn(Ordering) -> bool,
    },
    /// `torch.version.cuda.startswith("11.")`
    Begins {
        subject: Subject,
        text: String,
    },
    /// Anything else.
    Unknown,
}

impl Choices {
    /// Reads them.
    pub fn of(parsed: &Parsed) -> Self {
        let offsets = parsed.offsets_of("if ");
        let branches = descendants_holding(parsed.root(), &offsets).filter_map(|node| match node.kind() {
            "if_statement" => Some(clauses(node, parsed)),
            "conditional_expression" => Some(alternatives(node, parsed)),
            _ => None,
        });
        Self(branches.collect())
    }

    /// The dead code of the file. What an environment does not decide is taken.
    pub fn dead_code(&self, passes: &Passes) -> DeadCode {
        let passes: Vec<Pass<'_>> = passes.iter().collect();
        let untaken = |branches: &Vec<Branch>| {
            let taken = |at: &usize| passes.iter().any(|pass| is_taken(branches, *at, pass));
            let untaken = (0..branches.len()).filter(|at| !taken(at));
            untaken.map(|at| branches[at].body.clone()).collect::<Vec<_>>()
        };
        DeadCode::at(self.0.iter().flat_map(untaken).collect())
    }
}

/// `if … elif … else`
fn clauses(statement: Node<'_>, parsed: &Parsed) -> Vec<Branch> {
    let mut cursor = statement.walk();
    let others = statement.children(&mut cursor).filter(|child| child.kind().ends_with("_clause"));
    let branch = |node: Node<'_>| {
        let body = node.child_by_field_name("consequence").or(node.child_by_field_name("body"))?;
        let condition = node.child_by_field_name("condition").map(|node| condition(node, parsed));
        Some(Branch { condition, body: body.byte_range() })
    };
    let all: Vec<Node<'_>> = std::iter::once(statement).chain(others).collect();
    all.into_iter().filter_map(branch).collect()
}

/// `… if … else …`
fn alternatives(expression: Node<'_>, parsed: &Parsed) -> Vec<Branch> {
    let parts: Vec<Node<'_>> = significant_children(expression).into_iter().filter(Node::is_named).collect();
    match parts.as_slice() {
        [then, asked, other] => vec![
            Branch { condition: Some(condition(*asked, parsed)), body: then.byte_range() },
            Branch { condition: None, body: other.byte_range() },
        ],
        _ => Vec::new(),
    }
}

fn condition(node: Node<'_>, parsed: &Parsed) -> Condition {
    let of =
        |node: Option<Node<'_>>| Box::new(node.map_or(Condition::Unknown, |node| condition(node, parsed)));
    let part = |field: &str| of(node.child_by_field_name(field));
    match node.kind() {
        "parenthesized_expression" => *of(node.named_child(0)),
        "not_operator" => Condition::Not(part("argument")),
        "boolean_operator" => {
            let is_and = node.child_by_field_name("operator").is_some_and(|word| word.kind() == "and");
            let (left, right) = (part("left"), part("right"));
            if is_and { Condition::And(left, right) } else { Condition::Or(left, right) }
        }
        "comparison_operator" => comparison(node, parsed).unwrap_or(Condition::Unknown),
        "call" => {
            let begins = versions::beginning(node, parsed);
            begins.map_or(Condition::Unknown, |(subject, text)| Condition::Begins { subject, text })
        }
        _ => Condition::Unknown,
    }
}

/// A comparison of a version with one that is written out.
fn comparison(node: Node<'_>, parsed: &Parsed) -> Option<Condition> {
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).filter(|child| !child.is_extra()).collect();
    let [left, operator, right] = children.as_slice() else { return None };
    // What is written out is seen at once; what a name holds has to be looked for.
    let compared = |one: Node<'_>, other: Node<'_>| {
        let with = versions::version(other, parsed)?;
        Some((versions::subject(one, parsed)?, with))
    };
    let (subject, with, is_turned) = match compared(*left, *right) {
        Some((subject, with)) => (subject, with, false),
        None => compared(*right, *left).map(|(subject, with)| (subject, with, true))?,
    };
    let holds: fn(Ordering) -> bool = match (operator.kind(), is_turned) {
        ("<", false) | (">", true) => Ordering::is_lt,
        ("<=", false) | (">=", true) => Ordering::is_le,
        (">", false) | ("<", true) => Ordering::is_gt,
        (">=", false) | ("<=", true) => Ordering::is_ge,
        ("==", _) => Ordering::is_eq,
        ("!=", _) => Ordering::is_ne,
        _ => return None,
    };
    Some(Condition::Compares { subject, with, holds })
}

/// Whether a branch may be taken: no branch before it is for certain, and its own condition may hold.
fn is_taken(branches: &[Branch], at: usize, pass: &Pass<'_>) -> bool {
    let holds = |branch: &Branch| branch.condition.as_ref().map_or(Truth::Yes, |asked| asked.truth(pass));
    branches[..at].iter().all(|before| holds(before) != Truth::Yes) && holds(&branches[at]) != Truth::No
}

impl Condition {
    fn truth(&self, pass: &Pass<'_>) -> Truth {
        let of = |holds: Option<bool>| match holds {
            Some(true) => Truth::Yes,
            Some(false) => Truth::No,
            None => Truth::Maybe,
        };
        match self {
            Self::Not(inner) => inner.truth(pass).not(),
            Self::And(left, right) => left.truth(pass).and(right.truth(pass)),
            Self::Or(left, right) => left.truth(pass).not().and(right.truth(pass).not()).not(),
            Self::Compares { subject, with, holds } => {
                of(given(*subject, pass).map(|have| holds(versions::compare(&have, with))))
            }
            Self::Begins { subject, text } => {
                of(given(*subject, pass).and_then(|have| versions::begins(&have, text)))
            }
            Self::Unknown => Truth::Maybe,
        }
    }
}

/// The numbers that a version has in a run; `None` where the environment does not tell.
fn given(subject: Subject, pass: &Pass<'_>) -> Option<Vec<u64>> {
    let number = |name: &str| match pass.get(name.as_bytes()) {
        Macro::Defined(number) if number.low == number.high => u64::try_from(number.low).ok(),
        _ => None,
    };
    let (major, minor) = match subject.whose {
        Whose::Torch => (number("TORCH_VERSION_MAJOR")?, number("TORCH_VERSION_MINOR")?),
        Whose::Toolkit => number("CUDA_VERSION").map(|version| (version / 1000, version % 1000 / 10))?,
    };
    Some(subject.numbers(major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    /// The lines that are dead with CUDA 12.8 or 13.0 and torch 2.11.
    fn dead(text: &str) -> Vec<usize> {
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("parses");
        let dead = Choices::of(&parsed).dead_code(&Passes::of_texts(&["12.8", "13.0"], Some("2.11")));
        let starts = |line: usize| text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
        let first = |line: usize| {
            starts(line) + text.lines().nth(line).map_or(0, |it| it.len() - it.trim_start().len())
        };
        (0..text.lines().count()).filter(|line| dead.holds(first(*line))).map(|line| line + 1).collect()
    }

    #[test]
    fn branches_for_other_releases_are_dead() {
        let text = "if TORCH_MAJOR >= 2 and TORCH_MINOR >= 1:\n    new()\nelse:\n    old()\n";
        assert_eq!(dead(text), [4]);
        assert_eq!(dead("if not (TORCH_MAJOR >= 2 and TORCH_MINOR >= 1):\n    old()\n"), [2]);
        let ladder = "if Version(torch.__version__) < Version('1.5'):\n    a()\nelif cuda_version >= Version('13.0'):\n    b()\nelif cuda_version >= Version('12.0'):\n    c()\nelse:\n    d()\n";
        assert_eq!(dead(ladder), [2, 8]);
        assert_eq!(dead("if torch.version.cuda.startswith('11'):\n    a()\nelse:\n    b()\n"), [2]);
        assert_eq!(dead("x = [\n    old() if torch_version < (2, 0) else\n    new()\n]\n"), [2]);
    }

    #[test]
    fn what_nothing_decides_is_taken() {
        assert!(
            dead("if sys.version_info.major < 3:\n    a()\nelif FLAG:\n    b()\nelse:\n    c()\n").is_empty()
        );
        assert!(dead("if TORCH_MAJOR < 2 or FLAG:\n    a()\nelse:\n    b()\n").is_empty());
        assert!(dead("if major < 2:\n    a()\n").is_empty());
    }
}

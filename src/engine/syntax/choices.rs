//! Which branches of a Python file an environment never takes: those of an `if` that compares the version of PyTorch or
//! of the toolkit.

use std::ops::Range;

use tree_sitter::Node;

use super::branches::DeadCode;
use super::condition::Truth;
use super::language::{Parsed, descendants_holding, significant_children};
use super::passes::{Macro, Pass, Passes};
use super::versions::{self, Subject, Whose};

/// The dead code of a file. What an environment does not decide is taken.
pub fn dead_code(parsed: &Parsed, passes: &Passes) -> DeadCode {
    let passes: Vec<Pass<'_>> = passes.iter().collect();
    let offsets = parsed.offsets_of("if ");
    let mut dead = Vec::new();
    for node in descendants_holding(parsed.root(), &offsets) {
        let branches = match node.kind() {
            "if_statement" => clauses(node),
            "conditional_expression" => alternatives(node),
            _ => continue,
        };
        let taken = |at: &usize| passes.iter().any(|pass| is_taken(&branches, *at, parsed, pass));
        let untaken = (0..branches.len()).filter(|at| !taken(at));
        dead.extend(untaken.map(|at| branches[at].body.clone()));
    }
    DeadCode::at(dead)
}

/// A branch: what it is taken by, if by anything, and its code.
struct Branch<'t> {
    condition: Option<Node<'t>>,
    body: Range<usize>,
}

/// `if … elif … else`
fn clauses<'t>(statement: Node<'t>) -> Vec<Branch<'t>> {
    let mut cursor = statement.walk();
    let others = statement.children(&mut cursor).filter(|child| child.kind().ends_with("_clause"));
    let branch = |node: Node<'t>| {
        let body = node.child_by_field_name("consequence").or(node.child_by_field_name("body"))?;
        Some(Branch { condition: node.child_by_field_name("condition"), body: body.byte_range() })
    };
    let all: Vec<Node<'t>> = std::iter::once(statement).chain(others).collect();
    all.into_iter().filter_map(branch).collect()
}

/// `… if … else …`
fn alternatives(expression: Node<'_>) -> Vec<Branch<'_>> {
    let parts: Vec<Node<'_>> = significant_children(expression).into_iter().filter(Node::is_named).collect();
    match parts.as_slice() {
        [then, condition, other] => vec![
            Branch { condition: Some(*condition), body: then.byte_range() },
            Branch { condition: None, body: other.byte_range() },
        ],
        _ => Vec::new(),
    }
}

/// Whether a branch may be taken: no branch before it is for certain, and its own condition may hold.
fn is_taken(branches: &[Branch<'_>], at: usize, parsed: &Parsed, pass: &Pass<'_>) -> bool {
    let holds =
        |branch: &Branch<'_>| branch.condition.map_or(Truth::Yes, |condition| truth(condition, parsed, pass));
    branches[..at].iter().all(|before| holds(before) != Truth::Yes) && holds(&branches[at]) != Truth::No
}

fn truth(node: Node<'_>, parsed: &Parsed, pass: &Pass<'_>) -> Truth {
    let part =
        |field: &str| node.child_by_field_name(field).map_or(Truth::Maybe, |part| truth(part, parsed, pass));
    match node.kind() {
        "parenthesized_expression" => {
            node.named_child(0).map_or(Truth::Maybe, |inner| truth(inner, parsed, pass))
        }
        "not_operator" => part("argument").not(),
        "boolean_operator" => {
            let is_and = node.child_by_field_name("operator").is_some_and(|word| word.kind() == "and");
            let (left, right) = (part("left"), part("right"));
            if is_and { left.and(right) } else { left.not().and(right.not()).not() }
        }
        "comparison_operator" => comparison(node, parsed, pass).unwrap_or(Truth::Maybe),
        "call" => beginning(node, parsed, pass).unwrap_or(Truth::Maybe),
        _ => Truth::Maybe,
    }
}

/// `torch.version.cuda.startswith("11.")`
fn beginning(call: Node<'_>, parsed: &Parsed, pass: &Pass<'_>) -> Option<Truth> {
    let (subject, text) = versions::beginning(call, parsed)?;
    let begins = versions::begins(&given(subject, pass)?, &text)?;
    Some(if begins { Truth::Yes } else { Truth::No })
}

/// A comparison of a version with one that is written out.
fn comparison(node: Node<'_>, parsed: &Parsed, pass: &Pass<'_>) -> Option<Truth> {
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).filter(|child| !child.is_extra()).collect();
    let [left, operator, right] = children.as_slice() else { return None };
    let numbers = |node: Node<'_>| given(versions::subject(node, parsed)?, pass);
    let (have, wanted) = match numbers(*left) {
        Some(have) => (have, versions::version(*right, parsed)?),
        None => (versions::version(*left, parsed)?, numbers(*right)?),
    };
    let ordering = versions::compare(&have, &wanted);
    let holds = match operator.kind() {
        "<" => ordering.is_lt(),
        "<=" => ordering.is_le(),
        ">" => ordering.is_gt(),
        ">=" => ordering.is_ge(),
        "==" => ordering.is_eq(),
        "!=" => ordering.is_ne(),
        _ => return None,
    };
    Some(if holds { Truth::Yes } else { Truth::No })
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
        let dead = dead_code(&parsed, &Passes::of_texts(&["12.8", "13.0"], Some("2.11")));
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

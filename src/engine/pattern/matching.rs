//! Finding the places of a file that a pattern describes.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::compile::{Kind, Pattern, PatternNode, literal_content};
use super::metavariable::Piece;
use crate::engine::syntax::language::{Parsed, ancestors, descendants, significant_children};

/// What a metavariable stands for at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Its bytes in the file.
    pub range: Range<usize>,
    /// Its text.
    pub text: String,
}

/// What the metavariables of a pattern stand for at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings(BTreeMap<String, Bound>);

impl Bindings {
    /// What one metavariable stands for, named without its `$`.
    pub fn get(&self, name: &str) -> Option<&Bound> {
        self.0.get(name)
    }

    /// All metavariables in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bound)> {
        self.0.iter().map(|(name, bound)| (name.as_str(), bound))
    }

    /// The same with a name bound; none where it stands for another text already.
    fn binding(&self, name: &Option<String>, parsed: &Parsed, range: Range<usize>) -> Option<Self> {
        let mut bound = self.clone();
        bound.bind(name, parsed, range).then_some(bound)
    }

    /// Binds a name; `false` where it stands for another text already.
    fn bind(&mut self, name: &Option<String>, parsed: &Parsed, range: Range<usize>) -> bool {
        let Some(name) = name else { return true };
        let text = String::from_utf8_lossy(&parsed.bytes[range.clone()]).into_owned();
        match self.0.get(name) {
            Some(bound) => same_code(&bound.text, &text),
            None => {
                self.0.insert(name.clone(), Bound { range, text });
                true
            }
        }
    }
}

fn same_code(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// A place of a file that a pattern describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// From the first byte to the last.
    pub range: Range<usize>,
    /// The nodes that were matched, one after the other; one for a pattern of one node.
    pub nodes: Vec<Range<usize>>,
    /// What the metavariables stand for.
    pub bindings: Bindings,
    /// Whether the grammar could not read this place for certain.
    pub uncertain: bool,
}

impl Pattern {
    /// All places in a file, macro bodies included, in order. A place within another is found too, and one that can be
    /// read in several ways (which argument is the `$X` of `f($$$A, $X, $$$B)`?) in each of them.
    pub fn find_all(&self, parsed: &Parsed) -> Vec<Match> {
        if parsed.language != self.language || !self.may_match(&parsed.bytes) {
            return Vec::new();
        }
        let offsets = self.words.iter().map(|word| parsed.offsets_of(word)).min_by_key(Vec::len);
        let mut found = match &offsets {
            Some(offsets) => self.find_among(parsed, parsed.nodes_holding(offsets)),
            None => self.find_among(parsed, parsed.nodes()),
        };
        found.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end), one.uncertain));
        // A node that several trees show is one place, and certain if it is in one of them.
        let mut places: Vec<Match> = Vec::new();
        for one in found {
            let same = |other: &&Match| other.range == one.range;
            if !places.iter().rev().take_while(same).any(|other| other.bindings == one.bindings) {
                places.push(one);
            }
        }
        places
    }

    fn find_among<'t>(&self, parsed: &Parsed, nodes: impl Iterator<Item = Node<'t>>) -> Vec<Match> {
        match self.nodes.as_slice() {
            [pattern] => nodes.flat_map(|node| self.readings(pattern, parsed, node)).collect(),
            several => nodes
                .filter(|node| node.named_child_count() >= several.len())
                .flat_map(|parent| self.match_children(parsed, parent))
                .collect(),
        }
    }

    /// Matches a pattern of one node at exactly this node.
    pub fn match_node(&self, parsed: &Parsed, node: Node<'_>) -> Option<Match> {
        let [pattern] = self.nodes.as_slice() else { return None };
        self.readings(pattern, parsed, node).into_iter().next()
    }

    /// Every way in which a node is what the pattern describes.
    fn readings(&self, pattern: &PatternNode, parsed: &Parsed, node: Node<'_>) -> Vec<Match> {
        let found = solutions(pattern, node, parsed, &Bindings::default()).into_iter();
        let of = |bindings| Match {
            range: node.byte_range(),
            nodes: vec![node.byte_range()],
            uncertain: parsed.is_uncertain(node) && !carries_errors(node, &bindings),
            bindings,
        };
        found.map(of).collect()
    }

    fn match_children(&self, parsed: &Parsed, parent: Node<'_>) -> Vec<Match> {
        let children: Vec<Node<'_>> =
            significant_children(parent).into_iter().filter(Node::is_named).collect();
        children.windows(self.nodes.len()).filter_map(|window| self.match_siblings(parsed, window)).collect()
    }

    /// Matches a pattern of several nodes at exactly these siblings; as many as the pattern has are looked at.
    pub fn match_siblings(&self, parsed: &Parsed, siblings: &[Node<'_>]) -> Option<Match> {
        let siblings = siblings.get(..self.nodes.len())?;
        let mut bindings = Bindings::default();
        let all = self.nodes.iter().zip(siblings).all(|(pattern, node)| {
            let node = if matches!(pattern, PatternNode::Branch { kind, .. } if kind.name == "expression_statement") {
                *node
            } else {
                bare(*node)
            };
            let found = solutions(pattern, node, parsed, &bindings).into_iter().next();
            found.map(|found| bindings = found).is_some()
        });
        all.then(|| Match {
            range: siblings.first().map_or(0, Node::start_byte)..siblings.last().map_or(0, Node::end_byte),
            nodes: siblings.iter().map(Node::byte_range).collect(),
            bindings,
            uncertain: siblings.iter().any(|node| parsed.is_uncertain(*node)),
        })
    }

    /// How many nodes follow each other in the pattern.
    pub fn length(&self) -> usize {
        self.nodes.len()
    }

    /// The part of a pattern of several nodes that is one of them, as a pattern of its own.
    pub fn part(&self, index: usize) -> Option<Pattern> {
        self.nodes.get(index).map(|node| self.with_node(node))
    }

    /// The two sides of a comparison, each as a pattern of its own.
    pub fn comparison(&self) -> Option<(Pattern, Pattern)> {
        let [PatternNode::Branch { kind, children }] = self.nodes.as_slice() else { return None };
        let [left, _, right] = children.as_slice() else { return None };
        matches!(kind.name.as_str(), "comparison_operator" | "binary_expression")
            .then(|| (self.with_node(left), self.with_node(right)))
    }

    /// Whether the pattern speaks of a metavariable.
    pub fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| mentions(node, name))
    }
}

/// Whether all that the grammar cannot read in a node lies within `{…}` blocks that metavariables stand for: then it is
/// carried along, and what is around it was read.
fn carries_errors(node: Node<'_>, bindings: &Bindings) -> bool {
    let bound = |block: Node<'_>| {
        let range = block.byte_range();
        bindings.iter().any(|(_, bound)| bound.range.start <= range.start && range.end <= bound.range.end)
    };
    let carried = |error: Node<'_>| {
        let mut outer = ancestors(error).take_while(|outer| *outer != node);
        outer.any(|outer| outer.kind() == "compound_statement" && bound(outer))
    };
    let mut errors = descendants(node).filter(|node| node.is_error() || node.is_missing());
    !ancestors(node).any(|outer| outer.is_error()) && errors.all(carried)
}

/// A single statement's expression where the pattern itself is an expression.
fn bare(node: Node<'_>) -> Node<'_> {
    match node.named_child(0) {
        Some(child) if node.kind() == "expression_statement" && node.named_child_count() == 1 => child,
        _ => node,
    }
}

fn mentions(node: &PatternNode, name: &str) -> bool {
    match node {
        PatternNode::One(bound) | PatternNode::Many(bound) => bound.as_deref() == Some(name),
        PatternNode::Literal(pieces) => {
            pieces.iter().any(|piece| matches!(piece, Piece::Any(Some(bound)) if bound == name))
        }
        PatternNode::Leaf { .. } => false,
        PatternNode::Branch { children, .. } => children.iter().any(|child| mentions(child, name)),
    }
}

/// How many ways to read one place are looked at.
const READINGS: usize = 32;

/// Every way in which a node is what a pattern describes, given what names stand for already.
fn solutions(pattern: &PatternNode, node: Node<'_>, parsed: &Parsed, bindings: &Bindings) -> Vec<Bindings> {
    match pattern {
        PatternNode::Branch { kind, .. } if node.kind_id() != kind.id => Vec::new(),
        PatternNode::Branch { children, .. } => {
            list_solutions(children, &significant_children(node), parsed, bindings)
        }
        PatternNode::Leaf { kind, text } => {
            is_leaf(node, kind, text, parsed).then(|| bindings.clone()).into_iter().collect()
        }
        PatternNode::One(_) if !node.is_named() => Vec::new(),
        PatternNode::One(name) | PatternNode::Many(name) => {
            bindings.binding(name, parsed, node.byte_range()).into_iter().collect()
        }
        PatternNode::Literal(pieces) => {
            let mut bound = bindings.clone();
            let fits = literal_content(node)
                .is_some_and(|content| match_pieces(pieces, content, parsed, &mut bound));
            fits.then_some(bound).into_iter().collect()
        }
    }
}

/// The word of a directive may be written `#  include`.
fn is_leaf(node: Node<'_>, kind: &Kind, text: &str, parsed: &Parsed) -> bool {
    let same_kind = node.kind_id() == kind.id || (is_name(&kind.name) && is_name(node.kind()));
    let same_text = || kind.name.starts_with('#') || parsed.bytes[node.byte_range()] == *text.as_bytes();
    node.child_count() == 0 && same_kind && same_text()
}

fn is_name(kind: &str) -> bool {
    kind.ends_with("identifier")
}

fn list_solutions(
    patterns: &[PatternNode],
    nodes: &[Node<'_>],
    parsed: &Parsed,
    bindings: &Bindings,
) -> Vec<Bindings> {
    let Some((pattern, rest)) = patterns.split_first() else {
        return if nodes.is_empty() { vec![bindings.clone()] } else { Vec::new() };
    };
    let firsts: Vec<(usize, Bindings)> = match (pattern, nodes.first()) {
        (PatternNode::Many(name), _) => {
            let named = nodes.iter().take_while(|node| node.is_named()).count();
            let bound =
                |length: usize| Some((length, bindings.binding(name, parsed, span(&nodes[..length]))?));
            (0..=named).filter_map(bound).collect()
        }
        (_, None) => Vec::new(),
        (_, Some(node)) => {
            solutions(pattern, *node, parsed, bindings).into_iter().map(|bound| (1, bound)).collect()
        }
    };
    let ways =
        firsts.into_iter().flat_map(|(length, bound)| list_solutions(rest, &nodes[length..], parsed, &bound));
    ways.take(READINGS).collect()
}

fn span(nodes: &[Node<'_>]) -> Range<usize> {
    match (nodes.first(), nodes.last()) {
        (Some(first), Some(last)) => first.start_byte()..last.end_byte(),
        _ => 0..0,
    }
}

/// Matches the content of a string literal; a metavariable takes as little as it can.
fn match_pieces(pieces: &[Piece], content: Range<usize>, parsed: &Parsed, bindings: &mut Bindings) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return content.is_empty() };
    let bytes = &parsed.bytes[content.clone()];
    match piece {
        Piece::Text(text) => {
            bytes.starts_with(text.as_bytes())
                && match_pieces(rest, content.start + text.len()..content.end, parsed, bindings)
        }
        Piece::Any(name) => (0..=bytes.len()).any(|length| {
            let mut bound = bindings.clone();
            let taken = content.start..content.start + length;
            let fits = bound.bind(name, parsed, taken.clone())
                && match_pieces(rest, taken.end..content.end, parsed, &mut bound);
            if fits {
                *bindings = bound;
            }
            fits
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    fn found(language: Language, pattern: &str, text: &str) -> Vec<Match> {
        let parsed = Parsed::new(language, text.as_bytes().into()).expect("parses");
        Pattern::new(language, pattern).expect(pattern).find_all(&parsed)
    }

    fn python(pattern: &str, text: &str) -> usize {
        found(Language::Python, pattern, text).len()
    }

    fn cpp(pattern: &str, text: &str) -> usize {
        found(Language::Cpp, pattern, text).len()
    }

    #[test]
    fn quotes_layout_comments_and_trailing_commas_do_not_matter() {
        assert_eq!(python("f(\"-O3\", $X)", "f('-O3',  # why\n  y,\n)\n"), 1);
        assert_eq!(python("v >= Version(\"$V\")", "if v >= Version('12.8'): pass\n"), 1);
        assert_eq!(python("v >= Version(\"$V\")", "v <= Version('12.8')\n"), 0);
        assert_eq!(python("f($X)", "# f(1)\ns = 'f(2)'\n"), 0);
    }

    #[test]
    fn statements_match_consecutive_siblings() {
        let pattern = "a.append(\"-gencode\")\na.append(\"$GENCODE\")";
        let text = "if x:\n    a.append('-gencode')  # c\n\n    # own line\n    a.append('arch=1')\na.append('-gencode')\n";
        let all = found(Language::Python, pattern, text);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].bindings.get("GENCODE").map(|bound| bound.text.as_str()), Some("arch=1"));
    }

    #[test]
    fn elements_match_consecutive_elements() {
        let pattern = "'-gencode', '$GENCODE',";
        assert_eq!(python(pattern, "x = ['-O3', '-gencode', 'arch=1', '-gencode', 'arch=2']\n"), 2);
        assert_eq!(python(pattern, "f('-gencode', \"arch=1\")\n"), 1);
    }

    #[test]
    fn the_same_name_means_the_same_text_and_lists_may_be_empty() {
        assert_eq!(python("$X == $X", "a == a\na == b\n"), 1);
        assert_eq!(python("f($$$A, $X.type(), $$$B)", "f(x.type())\nf(a, x.type(), b, c)\nf(a)\n"), 2);
        assert_eq!(python("f($$$A, $X.type(), $$$B)", "f(x.type(), a, y.type())\n"), 2);
        assert_eq!(python("f($$$A, 1, $$$B)", "f(1)\n"), 1);
    }

    #[test]
    fn strings_are_looked_into() {
        assert_eq!(python("\"-std=$S\"", "x = ['-std=c++17', '-O3', f\"-std=c++20\"]\n"), 2);
        assert_eq!(python("\"$_.py\"", "x = 'a.py'\n"), 1);
    }

    #[test]
    fn a_block_that_nobody_reads_is_carried_along() {
        let pattern = "f($$$A, $X.type(), $$$B)";
        let uncertain = |text: &str| found(Language::Cpp, pattern, text)[0].uncertain;
        assert!(!uncertain("void g() { f(x.type(), [&] { a(); b ?? c; }); }\n"));
        assert!(uncertain("void g() { f(x.type(), b ?? c); }\n"));
        assert!(uncertain("void g() { f(x.type(), [&](int ?? a) { b(); }); }\n"));
    }

    #[test]
    fn macro_bodies_belong_to_the_code() {
        let text = "#define CHECK(x) \\\n  AT_CHECK(x.is_cuda(), #x \" must be\")\nvoid f() { AT_CHECK(1); }\n// AT_CHECK(2)\n";
        assert_eq!(cpp("AT_CHECK($$$A)", text), 2);
        assert_eq!(cpp("cub::CTA_SYNC()", "void f() { cub::CTA_SYNC(); x::CTA_SYNC(); }\n"), 1);
        assert_eq!(cpp("cub::LaneId()", "struct A { A() : lane(cub::LaneId()), b(0) {} };\n"), 1);
    }
}

//! Finding the places of a file that a pattern describes.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::compile::{Kind, Pattern, PatternNode, literal_content};
use super::metavariable::Piece;
use super::qualified::{is_end_of_longer, without_global};
use crate::engine::syntax::Language;
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

    /// These with one name more; `None` where it stands for another text already.
    fn with(&self, name: &Option<String>, parsed: &Parsed, range: Range<usize>) -> Option<Self> {
        let Some(name) = name else { return Some(self.clone()) };
        let range = with_stringizing(parsed, range);
        let text = String::from_utf8_lossy(&parsed.bytes[range.clone()]).into_owned();
        match self.0.get(name) {
            Some(bound) => same_code(&bound.text, &text).then(|| self.clone()),
            None => {
                let mut more = self.clone();
                more.0.insert(name.clone(), Bound { range, text });
                Some(more)
            }
        }
    }
}

/// The `#` before a parameter of a macro belongs to it; no tree shows it.
fn with_stringizing(parsed: &Parsed, range: Range<usize>) -> Range<usize> {
    let before = &parsed.bytes[..range.start];
    let blanks = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let hash = before.len() - blanks;
    match before[..hash] {
        [.., b'#', b'#'] => range,
        [.., b'#'] if parsed.language == Language::Cpp && !range.is_empty() => hash - 1..range.end,
        _ => range,
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
    /// All places in a file, macro bodies included, in order. A place within another is found too.
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
            [_] => nodes.flat_map(|node| self.match_all(parsed, node)).collect(),
            several => nodes
                .filter(|node| node.named_child_count() >= several.len())
                .flat_map(|parent| self.match_children(parsed, parent))
                .collect(),
        }
    }

    /// Matches a pattern of one node at exactly this node; of several ways, the first.
    pub fn match_node(&self, parsed: &Parsed, node: Node<'_>) -> Option<Match> {
        self.match_all(parsed, node).into_iter().next()
    }

    /// Every way in which a pattern of one node matches at exactly this node: `f($$$, $X, $$$)` matches at each
    /// argument.
    fn match_all(&self, parsed: &Parsed, node: Node<'_>) -> Vec<Match> {
        let [pattern] = self.nodes.as_slice() else { return Vec::new() };
        if is_end_of_longer(pattern, node) {
            return Vec::new();
        }
        let ways = matches(pattern, node, parsed, &Bindings::default());
        let one = |bindings| Match {
            range: node.byte_range(),
            nodes: vec![node.byte_range()],
            uncertain: parsed.is_uncertain(node) && !carries_errors(node, &bindings),
            bindings,
        };
        distinct(ways, pattern).into_iter().map(one).collect()
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
        for (pattern, node) in self.nodes.iter().zip(siblings) {
            let whole =
                matches!(pattern, PatternNode::Branch { kind, .. } if kind.name == "expression_statement");
            let node = if whole { *node } else { bare(*node) };
            bindings = matches(pattern, node, parsed, &bindings).into_iter().next()?;
        }
        Some(Match {
            range: siblings.first().map_or(0, Node::start_byte)..siblings.last().map_or(0, Node::end_byte),
            nodes: siblings.iter().map(Node::byte_range).collect(),
            uncertain: siblings
                .iter()
                .any(|node| parsed.is_uncertain(*node) && !carries_errors(*node, &bindings)),
            bindings,
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

/// Whether all that the grammar cannot read in a node is what metavariables stand for: then it is carried along as it
/// is, and what is around it was read.
fn carries_errors(node: Node<'_>, bindings: &Bindings) -> bool {
    let carried = |wrong: Node<'_>| {
        let within =
            |bound: &Bound| bound.range.start <= wrong.start_byte() && wrong.end_byte() <= bound.range.end;
        bindings.iter().any(|(_, bound)| within(bound))
    };
    let mut wrong = descendants(node).filter(|node| node.is_error() || node.is_missing());
    !ancestors(node).any(|outer| outer.is_error()) && wrong.all(carried)
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

/// Of ways that differ only in how `$$$X` divide a list, the first.
fn distinct(ways: Vec<Bindings>, pattern: &PatternNode) -> Vec<Bindings> {
    let single = |way: &Bindings| {
        way.iter()
            .filter(|(name, _)| !takes_many(pattern, name))
            .map(|(_, bound)| bound.range.clone())
            .collect()
    };
    let mut seen: Vec<Vec<Range<usize>>> = Vec::new();
    let mut is_new = |way: &Bindings| {
        let key = single(way);
        let new = !seen.contains(&key);
        seen.push(key);
        new
    };
    ways.into_iter().filter(|way| is_new(way)).collect()
}

fn takes_many(node: &PatternNode, name: &str) -> bool {
    match node {
        PatternNode::Many(bound) => bound.as_deref() == Some(name),
        PatternNode::Branch { children, .. } => children.iter().any(|child| takes_many(child, name)),
        PatternNode::One(_) | PatternNode::Literal(_) | PatternNode::Leaf { .. } => false,
    }
}

/// The children that a pattern must account for: what the grammar could not read is among them.
fn all_of(node: Node<'_>) -> Vec<Node<'_>> {
    let mut children = significant_children(node);
    if node.has_error() {
        let mut cursor = node.walk();
        children.extend(node.children(&mut cursor).filter(|child| child.is_error() && child.is_extra()));
        children.sort_by_key(Node::start_byte);
    }
    children
}

/// Every way in which a pattern matches at a node, given what is bound.
fn matches(pattern: &PatternNode, node: Node<'_>, parsed: &Parsed, bindings: &Bindings) -> Vec<Bindings> {
    let node = without_global(pattern, node);
    let fits = match pattern {
        PatternNode::One(_) => node.is_named(),
        PatternNode::Many(_) => true,
        PatternNode::Literal(_) => literal_content(node).is_some(),
        PatternNode::Leaf { kind, text } => is_leaf(node, kind, text, parsed),
        PatternNode::Branch { kind, .. } => {
            node.kind_id() == kind.id || (is_template(&kind.name) && is_template(node.kind()))
        }
    };
    match (pattern, literal_content(node)) {
        _ if !fits => Vec::new(),
        (PatternNode::One(name) | PatternNode::Many(name), _) => {
            bindings.with(name, parsed, node.byte_range()).into_iter().collect()
        }
        (PatternNode::Literal(pieces), Some(content)) => match_pieces(pieces, content, parsed, bindings),
        (PatternNode::Branch { children, .. }, _) => match_list(children, &all_of(node), parsed, bindings),
        (PatternNode::Leaf { .. } | PatternNode::Literal(_), _) => vec![bindings.clone()],
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

/// `T<A>`, which the grammar calls by three names: where a type stands, where a function does, behind a `.`
fn is_template(kind: &str) -> bool {
    matches!(kind, "template_type" | "template_function" | "template_method")
}

fn match_list(
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
            let taken = (0..=named)
                .filter_map(|length| Some((length, bindings.with(name, parsed, span(&nodes[..length]))?)));
            taken.collect()
        }
        (_, Some(node)) => {
            matches(pattern, *node, parsed, bindings).into_iter().map(|bound| (1, bound)).collect()
        }
        (_, None) => Vec::new(),
    };
    firsts.iter().flat_map(|(length, bound)| match_list(rest, &nodes[*length..], parsed, bound)).collect()
}

fn span(nodes: &[Node<'_>]) -> Range<usize> {
    match (nodes.first(), nodes.last()) {
        (Some(first), Some(last)) => first.start_byte()..last.end_byte(),
        _ => 0..0,
    }
}

/// Every way in which the content of a string literal matches.
fn match_pieces(
    pieces: &[Piece],
    content: Range<usize>,
    parsed: &Parsed,
    bindings: &Bindings,
) -> Vec<Bindings> {
    let Some((piece, rest)) = pieces.split_first() else {
        return if content.is_empty() { vec![bindings.clone()] } else { Vec::new() };
    };
    match piece {
        Piece::Text(text) if parsed.bytes[content.clone()].starts_with(text.as_bytes()) => {
            match_pieces(rest, content.start + text.len()..content.end, parsed, bindings)
        }
        Piece::Text(_) => Vec::new(),
        Piece::Any(name) => {
            let taken = |end| Some((end, bindings.with(name, parsed, content.start..end)?));
            let taken = ends(rest, content.clone(), &parsed.bytes).into_iter().filter_map(taken);
            taken.flat_map(|(end, bound)| match_pieces(rest, end..content.end, parsed, &bound)).collect()
        }
    }
}

/// Where a metavariable of a string may end, given what follows it.
fn ends(rest: &[Piece], content: Range<usize>, bytes: &[u8]) -> Vec<usize> {
    match rest.first() {
        None => vec![content.end],
        Some(Piece::Text(text)) => {
            let found = memchr::memmem::find_iter(&bytes[content.clone()], text.as_bytes());
            found.map(|at| content.start + at).collect()
        }
        Some(Piece::Any(_)) => (content.start..=content.end).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let pair = "\"A\": $X,";
        assert_eq!(python(pair, "f({'A': 1})\nx = {**e, 'B': 1, 'A': y}\nz = ['A']\n"), 2);
        assert_eq!(python("f(\"$A-$B$C\")", "f('a-b')\n"), 2);
    }

    #[test]
    fn the_same_name_means_the_same_text_and_lists_may_be_empty() {
        assert_eq!(python("$X == $X", "a == a\na == b\n"), 1);
        assert_eq!(python("f($$$A, $X.type(), $$$B)", "f(x.type())\nf(a, x.type(), b, c)\nf(a)\n"), 2);
    }

    #[test]
    fn every_argument_and_every_part_of_a_string_is_found() {
        let bound = |pattern: &str, text: &str| {
            let name = |found: &Match| found.bindings.get("X").map(|bound| bound.text.clone());
            found(Language::Python, pattern, text).iter().filter_map(name).collect::<Vec<_>>()
        };
        assert_eq!(bound("f($$$A, $X.type(), $$$B)", "f(x.type(), 1, y.type())\n"), ["x", "y"]);
        assert_eq!(bound("\"$X-O$_\"", "s = '-O2 -c -O3'\n"), ["", "-O2 -c "]);
        assert_eq!(python("f($$$A, $$$B)", "f(1, 2, 3)\n"), 1);
        assert_eq!(python("f($$$A, 1, $$$B)", "f(1)\n"), 1);
    }

    #[test]
    fn strings_are_looked_into() {
        assert_eq!(python("\"-std=$S\"", "x = ['-std=c++17', '-O3', f\"-std=c++20\"]\n"), 2);
        assert_eq!(python("\"$_.py\"", "x = 'a.py'\n"), 1);
    }

    #[test]
    fn macro_bodies_belong_to_the_code() {
        let text = "#define CHECK(x) \\\n  AT_CHECK(x.is_cuda(), #x \" must be\")\nvoid f() { AT_CHECK(1); }\n// AT_CHECK(2)\n";
        assert_eq!(cpp("AT_CHECK($$$A)", text), 2);
        assert_eq!(cpp("cub::CTA_SYNC()", "void f() { cub::CTA_SYNC(); x::CTA_SYNC(); }\n"), 1);
        assert_eq!(cpp("$_ && f($X)", "void g() { if (a && f(1)) x = a < b && f(2); }\n"), 2);
        assert_eq!(cpp("cub::LaneId()", "struct A { A() : lane(cub::LaneId()), b(0) {} };\n"), 1);
    }

    #[test]
    fn a_template_is_one_thing_wherever_it_stands() {
        let text = "void f(cub::Int2Type<1> a) {\n  g(cub::Int2Type<2>());\n  cub::Int2Type<N> x;\n}\n";
        assert_eq!(cpp("cub::Int2Type<$N>", text), 3);
        assert_eq!(cpp("$X.data<$T>()", "void f() { g(x.data<float>(), y[0].data<T>(), z.data()); }\n"), 2);
    }

    #[test]
    fn headers_match_in_quotes_and_in_brackets() {
        let text = "#include <cub/cub.cuh>\n#include \"cub/block/block_scan.cuh\"\n#include <cubic/a.h>\n";
        assert_eq!(cpp("#include <cub/$_>", text), 2);
        assert_eq!(cpp("#include \"cub/cub.cuh\"", text), 1);
    }

    #[test]
    fn base_classes_match() {
        let text = "struct A : public thrust::unary_function<int, T> {};\n\
                    struct B : public thrust::unary_function<int, T>, public C {};\n";
        assert_eq!(cpp(": public thrust::unary_function<$$$>", text), 1);
        assert_eq!(cpp(": public thrust::unary_function<$$$>, $NEXT, $$$REST", text), 1);
    }

    #[test]
    fn only_what_is_not_copied_makes_a_match_uncertain() {
        let uncertain = |pattern: &str, text: &str| {
            found(Language::Cpp, pattern, text).iter().map(|found| found.uncertain).collect::<Vec<_>>()
        };
        let text = "void f() { THArgCheck(x, 1, y ?? z); }\n";
        assert_eq!(uncertain("THArgCheck($C, $N, $$$M)", text), [false]);
        assert_eq!(uncertain("THArgCheck($C, $N, $$$)", text), [true]);
        let text = "#define CHECK(x) THArgCheck(x.ok(), 1, #x \" is wrong\")\n";
        let all = found(Language::Cpp, "THArgCheck($C, $N, $$$M)", text);
        let message = all[0].bindings.get("M").map(|bound| bound.text.as_str());
        assert_eq!(message, Some("#x \" is wrong\""));
    }
}

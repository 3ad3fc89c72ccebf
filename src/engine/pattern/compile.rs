//! From the text of a pattern to what the matcher compares.

use tree_sitter::Node;

use super::metavariable::{self, Metavariable, Piece};
use crate::engine::syntax::language::{Language, Parsed, significant_children};

/// A piece of source code with metavariables, ready to be matched.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As it was written.
    pub text: String,
    /// Whose code it is.
    pub language: Language,
    pub(super) nodes: Vec<PatternNode>,
    pub(super) words: Vec<String>,
}

/// The kind of a node: its name, and the number by which the grammar's nodes are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub name: String,
    pub id: u16,
}

impl Kind {
    fn of(node: Node<'_>) -> Self {
        Self { name: node.kind().to_string(), id: node.kind_id() }
    }
}

/// What one place of a pattern wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatternNode {
    /// A named node, whatever it is.
    One(Option<String>),
    /// Any number of nodes.
    Many(Option<String>),
    /// A string literal with this content, whatever its quotes and prefix.
    Literal(Vec<Piece>),
    /// A node without children.
    Leaf { kind: Kind, text: String },
    /// A node with these children; comments and commas do not count.
    Branch { kind: Kind, children: Vec<PatternNode> },
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The grammar cannot read it.
    #[error("the pattern is no valid {language:?} code: `{text}`")]
    Syntax {
        /// The pattern.
        text: String,
        /// Whose code it should be.
        language: Language,
    },
    /// Nothing is in it.
    #[error("the pattern is empty")]
    Empty,
    /// It would match everywhere.
    #[error("the pattern `{text}` is a metavariable alone and would match everything")]
    Everything {
        /// The pattern.
        text: String,
    },
}

impl Pattern {
    /// Compiles a pattern: one expression or statement, several statements that follow each other, or several
    /// elements of a list or pairs of a dictionary (a text that ends in a comma).
    pub fn new(language: Language, text: &str) -> Result<Self, PatternError> {
        let written = text.trim();
        if written.is_empty() {
            return Err(PatternError::Empty);
        }
        let encoded = metavariable::encode(written);
        let nodes = frames(language, &encoded)
            .iter()
            .find_map(|frame| frame.read(language, &encoded))
            .ok_or_else(|| PatternError::Syntax { text: written.to_string(), language })?;
        if matches!(nodes.as_slice(), [PatternNode::One(_) | PatternNode::Many(_)]) {
            return Err(PatternError::Everything { text: written.to_string() });
        }
        let words = words(&nodes);
        Ok(Self { text: written.to_string(), language, nodes, words })
    }

    /// A pattern of one of the nodes of this one.
    pub(super) fn with_node(&self, node: &PatternNode) -> Self {
        let nodes = vec![node.clone()];
        Self { words: words(&nodes), nodes, text: self.text.clone(), language: self.language }
    }

    /// The functions, macros and types that it speaks of by name: `THCudaMalloc`, `cub::CTA_SYNC`.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.nodes.iter().for_each(|node| collect_names(node, &mut names));
        names
    }

    /// Whether a file can hold a match at all, judged without parsing it.
    pub fn may_match(&self, bytes: &[u8]) -> bool {
        self.words.iter().all(|word| memchr::memmem::find(bytes, word.as_bytes()).is_some())
    }
}

/// The code around a pattern that makes it a whole file, and where the pattern then is.
struct Frame {
    before: &'static str,
    after: &'static str,
    container: &'static str,
    take: Take,
}

/// What of the container is the pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Take {
    /// Its children.
    Children,
    /// Its children; of a single statement, the expression.
    Expression,
    /// Itself.
    Whole,
}

fn frames(language: Language, text: &str) -> Vec<Frame> {
    let frame = |before, after, container, take| Frame { before, after, container, take };
    let (elements, bases) = (text.ends_with(','), text.starts_with(':') && !text.starts_with("::"));
    match language {
        Language::Python if elements => {
            vec![frame("[", "]", "list", Take::Children), frame("{", "}", "dictionary", Take::Children)]
        }
        Language::Python => vec![frame("", "\n", "module", Take::Expression)],
        Language::Cmake => vec![frame("", "\n", "source_file", Take::Expression)],
        Language::Cpp if elements => {
            vec![frame("void f() { x = {", "}; }", "initializer_list", Take::Children)]
        }
        Language::Cpp if bases => vec![frame("struct S ", " {};", "base_class_clause", Take::Whole)],
        Language::Cpp if text.ends_with([';', '}']) || ends_in_directive(text) => {
            vec![
                frame("void f() {\n", "\n}", "compound_statement", Take::Children),
                frame("", "\n", "translation_unit", Take::Children),
            ]
        }
        // By itself `a && b` would declare a reference.
        Language::Cpp if text.contains(" && ") => {
            vec![frame("void f() {\nreturn ", ";\n}", "return_statement", Take::Expression)]
        }
        Language::Cpp => {
            vec![
                frame("void f() {\n", ";\n}", "compound_statement", Take::Expression),
                frame("", "\n", "translation_unit", Take::Expression),
            ]
        }
    }
}

/// Whether the last line of a text is a directive, as `#endif` is.
fn ends_in_directive(text: &str) -> bool {
    text.lines().next_back().is_some_and(|line| line.trim_start().starts_with('#'))
}

impl Frame {
    fn read(&self, language: Language, text: &str) -> Option<Vec<PatternNode>> {
        let whole = format!("{}{text}{}", self.before, self.after);
        let parsed = Parsed::new(language, whole.into_bytes().into()).ok()?;
        if parsed.root().has_error() {
            return None;
        }
        let container = crate::engine::syntax::language::descendants(parsed.root())
            .find(|node| node.kind() == self.container && node.start_byte() <= self.before.len())?;
        let children: Vec<Node<'_>> =
            significant_children(container).into_iter().filter(Node::is_named).collect();
        match children.as_slice() {
            _ if self.take == Take::Whole => Some(vec![convert(&parsed, container)]),
            [] => None,
            [only] if self.take == Take::Expression => Some(vec![convert(&parsed, without_statement(*only))]),
            several => Some(several.iter().map(|node| convert(&parsed, *node)).collect()),
        }
    }
}

/// The expression of an expression statement, which may stand anywhere; other nodes as they are.
fn without_statement(node: Node<'_>) -> Node<'_> {
    match node.named_child(0) {
        Some(child) if node.kind() == "expression_statement" && node.named_child_count() == 1 => child,
        _ => node,
    }
}

fn convert(parsed: &Parsed, node: Node<'_>) -> PatternNode {
    let text = parsed.text(node);
    match metavariable::decode(text.trim_end_matches(';')) {
        Some(Metavariable::One(name)) if node.kind() != "block" => return PatternNode::One(name),
        Some(Metavariable::Many(name)) if node.kind() != "block" => return PatternNode::Many(name),
        _ => {}
    }
    if let Some(content) = literal_content(node) {
        let content = String::from_utf8_lossy(&parsed.bytes[content]).into_owned();
        return PatternNode::Literal(metavariable::pieces(&content));
    }
    if node.child_count() == 0 {
        return PatternNode::Leaf { kind: Kind::of(node), text };
    }
    let children = significant_children(node).into_iter().map(|child| convert(parsed, child)).collect();
    PatternNode::Branch { kind: Kind::of(node), children }
}

/// The range between the quotes of a string literal, or between the brackets of an included header's name.
pub(super) fn literal_content(node: Node<'_>) -> Option<std::ops::Range<usize>> {
    match node.kind() {
        "string" | "string_literal" => {
            let last = node.child_count().checked_sub(1)?;
            Some(node.child(0)?.end_byte()..node.child(last)?.start_byte())
        }
        "system_lib_string" => Some(node.start_byte() + 1..node.end_byte() - 1),
        _ => None,
    }
}

fn collect_names(node: &PatternNode, names: &mut Vec<String>) {
    match node {
        PatternNode::Leaf { kind, text } if kind.name == "type_identifier" => names.push(text.clone()),
        PatternNode::Branch { kind, .. } if kind.name == "qualified_identifier" => {
            names.extend(whole_name(node))
        }
        PatternNode::Branch { kind, children } => {
            if let (Some(callee @ PatternNode::Leaf { .. }), "call_expression") =
                (children.first(), kind.name.as_str())
            {
                names.extend(whole_name(callee));
            }
            children.iter().for_each(|child| collect_names(child, names));
        }
        _ => {}
    }
}

/// The text of a name, where no metavariable stands in it.
fn whole_name(node: &PatternNode) -> Option<String> {
    match node {
        PatternNode::Leaf { text, .. } => Some(text.clone()),
        PatternNode::Branch { children, .. } => children.iter().map(whole_name).collect(),
        _ => None,
    }
}

/// Texts that every match holds.
fn words(nodes: &[PatternNode]) -> Vec<String> {
    let mut words = Vec::new();
    nodes.iter().for_each(|node| collect_words(node, &mut words));
    words
}

fn collect_words(node: &PatternNode, words: &mut Vec<String>) {
    let mut add = |text: &str| {
        let is_word = text.bytes().any(|byte| byte.is_ascii_alphanumeric());
        if is_word && !words.iter().any(|word| word == text) {
            words.push(text.to_string());
        }
    };
    match node {
        PatternNode::One(_) | PatternNode::Many(_) => {}
        PatternNode::Literal(pieces) => pieces.iter().for_each(|piece| match piece {
            Piece::Text(text) => add(text),
            Piece::Any(_) => {}
        }),
        // The word of a directive may be written `#  include`.
        PatternNode::Leaf { kind, .. } if kind.name.starts_with('#') => {}
        PatternNode::Leaf { text, .. } => add(text),
        PatternNode::Branch { children, .. } => children.iter().for_each(|child| collect_words(child, words)),
    }
}

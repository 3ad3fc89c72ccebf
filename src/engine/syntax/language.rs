//! The languages that are parsed, and parsed files.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tree_sitter::{Node, Parser};

use super::choices::Choices;
use super::reading::Reading;
use super::versions::Subject;
use super::{DeadCode, Passes, indentation};
use crate::engine::memo::Memo;

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// `.py`
    Python,
    /// C++ and CUDA: `.cpp .cc .cu .cuh .h .hpp …`
    Cpp,
    /// `CMakeLists.txt`, `.cmake`
    Cmake,
}

impl Language {
    /// By the ending of a path; `None` where no grammar reads it.
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let (_, ending) = name.rsplit_once('.')?;
        match ending {
            "cmake" => Some(Self::Cmake),
            "txt" if name == "CMakeLists.txt" => Some(Self::Cmake),
            "py" | "pyi" => Some(Self::Python),
            "cpp" | "cc" | "cxx" | "c" | "cu" | "cuh" | "h" | "hh" | "hpp" | "hxx" | "inl" => Some(Self::Cpp),
            _ => None,
        }
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
            Self::Cmake => tree_sitter_cmake::LANGUAGE.into(),
        }
    }

    /// What begins a comment that goes to the end of the line.
    pub fn line_comment(self) -> &'static str {
        match self {
            Self::Python | Self::Cmake => "#",
            Self::Cpp => "//",
        }
    }

    /// Whether its grammar spells a word out, as it does keywords.
    pub(super) fn spells(self, word: &str) -> bool {
        self.grammar().id_for_node_kind(word, false) != 0
    }

    pub(crate) fn parser(self) -> Parser {
        let mut parser = Parser::new();
        // A grammar that the linked tree-sitter cannot load is a build error of ours; parsing then yields nothing,
        // which every caller treats as a file that cannot be read.
        let _ = parser.set_language(&self.grammar());
        parser
    }
}

/// A file, parsed. Offsets into the trees are offsets into the bytes.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The grammar that read it.
    pub language: Language,
    /// The bytes as they lie on disk.
    pub bytes: Arc<[u8]>,
    reading: Reading,
    wrong: OnceLock<Vec<usize>>,
    choices: OnceLock<Choices>,
    /// What expressions say of a version.
    pub(super) subjects: Memo<usize, Option<Subject>>,
}

/// A file that is not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseFailed {
    /// No tree came of it.
    #[error("the parser gave up")]
    GaveUp,
    /// Python refuses it too.
    #[error("it is indented more than {} levels deep, which Python does not take", indentation::DEEPEST)]
    TooDeep,
}

impl Parsed {
    /// Parses a file, and in C++ the bodies of its macros too.
    pub fn new(language: Language, bytes: Arc<[u8]>) -> Result<Self, ParseFailed> {
        // The grammar's scanner aborts the program beyond 511 levels.
        if language == Language::Python && indentation::depth(&bytes) > indentation::DEEPEST {
            return Err(ParseFailed::TooDeep);
        }
        let reading = Reading::new(language, readable(&bytes)).ok_or(ParseFailed::GaveUp)?;
        Ok(Self {
            language,
            bytes,
            reading,
            wrong: OnceLock::new(),
            choices: OnceLock::new(),
            subjects: Memo::default(),
        })
    }

    /// The root of the file. Macro bodies, and branches that cannot stand beside others, are not below it.
    pub fn root(&self) -> Node<'_> {
        self.reading.root()
    }

    /// All nodes of code, each before its children, macro bodies and all branches included. A node that encloses a
    /// branch may come twice, with the same range.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        self.reading.nodes(|_| true)
    }

    /// The same, less what holds none of these offsets; they ascend. Few offsets make a short walk.
    pub fn nodes_holding(&self, offsets: &[usize]) -> impl Iterator<Item = Node<'_>> {
        self.reading.nodes(|node| holds_one(node, offsets))
    }

    /// The smallest named node that holds a stretch, in a macro body too.
    pub fn node_at(&self, range: &Range<usize>) -> Option<Node<'_>> {
        self.reading.node_at(range)
    }

    /// Whether the trees show a stretch as it is. What they do not show (a `#if` within an expression, a `;` that a
    /// macro lacks) must not be edited: nobody knows what it means there.
    pub fn shows(&self, range: &Range<usize>) -> bool {
        self.reading.shows(range)
    }

    /// The text of a node; bytes that are no UTF-8 are shown as replacement characters.
    pub fn text(&self, node: Node<'_>) -> String {
        String::from_utf8_lossy(&self.bytes[node.byte_range()]).into_owned()
    }

    /// The name of the macro whose body holds a node.
    pub fn definition(&self, node: Node<'_>) -> Option<String> {
        let body = self.reading.body_at(node.start_byte())?;
        Some(String::from_utf8_lossy(&self.bytes[body.name.clone()]).into_owned())
    }

    /// Where a word stands in the file, in code or not, ascending.
    pub fn offsets_of(&self, word: &str) -> Vec<usize> {
        memchr::memmem::find_iter(&self.bytes, word.as_bytes()).collect()
    }

    /// The code that is never taken in an environment, by the preprocessor or by an `if` of Python: nothing in it needs to be patched.
    pub fn dead_code(&self, passes: &Passes) -> DeadCode {
        match self.language {
            Language::Python => self.choices.get_or_init(|| Choices::of(self)).dead_code(passes),
            Language::Cmake => DeadCode::default(),
            Language::Cpp => DeadCode::of(&self.bytes, passes),
        }
    }

    /// Whether a place is a string of Python that is a statement: a docstring, which is text.
    pub fn is_bare_string(&self, range: &Range<usize>) -> bool {
        let node = self.root().descendant_for_byte_range(range.start, range.end);
        let string = node.filter(|node| self.language == Language::Python && node.kind() == "string");
        string.and_then(|node| node.parent()).is_some_and(|parent| parent.kind() == "expression_statement")
    }

    /// How many places of the file itself are wrong by its grammar.
    pub fn syntax_errors(&self) -> usize {
        self.wrong_places().len()
    }

    /// Where the first place begins that is wrong by the grammar.
    pub fn first_error(&self) -> Option<usize> {
        self.wrong_places().iter().min().copied()
    }

    /// Where they begin; looked for once.
    fn wrong_places(&self) -> &[usize] {
        self.wrong.get_or_init(|| {
            let mut wrong: Vec<usize> = self.reading.wrong().collect();
            if self.language == Language::Python {
                let misplaced = indentation::misplaced(self.root(), &self.bytes);
                wrong.extend(misplaced.iter().map(Node::start_byte));
            }
            wrong
        })
    }

    /// The places of the file itself that are wrong by its grammar, in order; of what lies within another, the outer one.
    /// What is lacking is empty.
    pub fn unread(&self) -> Vec<Range<usize>> {
        let lacking = self.wrong_places().iter().map(|at| *at..*at);
        let mut places: Vec<Range<usize>> = self.reading.unread().chain(lacking).collect();
        places.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut end = None;
        places.retain(|range| {
            let is_new = end.is_none_or(|end| range.end > end);
            end = end.max(Some(range.end));
            is_new
        });
        places
    }

    /// How many bytes of the file itself lie in places that the grammar could not read.
    pub fn unread_bytes(&self) -> usize {
        self.reading.unread().map(|range| range.len()).sum()
    }

    /// Whether a node overlaps a place that the grammar could not read.
    pub fn is_uncertain(&self, node: Node<'_>) -> bool {
        node.has_error() || ancestors(node).any(|ancestor| ancestor.is_error())
    }
}

/// Text of equal length that every grammar reads: bytes that are no UTF-8 become an ASCII letter.
fn readable(bytes: &Arc<[u8]>) -> Arc<[u8]> {
    if std::str::from_utf8(bytes).is_ok() {
        return bytes.clone();
    }
    let mut text = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.extend_from_slice(chunk.valid().as_bytes());
        text.extend(chunk.invalid().iter().map(|_| b'x'));
    }
    text.into()
}

/// All nodes below and with `root`, each before its children.
pub fn descendants(root: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    descendants_where(root, |_| true)
}

/// The nodes below and with `root` that hold one of these offsets, each before its children. The offsets ascend; what
/// holds none is not entered, so that few offsets make a short walk.
pub fn descendants_holding<'t>(root: Node<'t>, offsets: &[usize]) -> impl Iterator<Item = Node<'t>> {
    descendants_where(root, |node| holds_one(node, offsets))
}

/// Whether a node holds one of these offsets; they ascend.
fn holds_one(node: Node<'_>, offsets: &[usize]) -> bool {
    let next = offsets.partition_point(|offset| *offset < node.start_byte());
    offsets.get(next).is_some_and(|offset| *offset < node.end_byte())
}

/// The nodes below and with `root` for which `enter` holds, and for which it holds all the way down.
pub(super) fn descendants_where<'t>(
    root: Node<'t>,
    enter: impl Fn(Node<'t>) -> bool,
) -> impl Iterator<Item = Node<'t>> {
    let mut cursor = root.walk();
    let mut done = !enter(root);
    let mut entered = true;
    std::iter::from_fn(move || {
        while !done {
            let node = cursor.node();
            let was_entered = std::mem::replace(&mut entered, true);
            if !(was_entered && cursor.goto_first_child()) {
                while !cursor.goto_next_sibling() {
                    if !cursor.goto_parent() {
                        done = true;
                        break;
                    }
                }
            }
            if !done {
                entered = enter(cursor.node());
            }
            if was_entered {
                return Some(node);
            }
        }
        None
    })
}

/// The parent, its parent, and so on.
pub fn ancestors(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    std::iter::successors(node.parent(), Node::parent)
}

/// The children that are neither comments nor missing; commas are left out, and so is what the grammar could not read.
pub fn significant_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    let children = node.children(&mut cursor);
    children.filter(|child| !child.is_extra() && !child.is_missing() && child.kind() != ",").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(language: Language, text: &[u8]) -> Parsed {
        Parsed::new(language, text.into()).expect("parses")
    }

    #[test]
    fn latin_1_and_a_bom_are_read_without_moving_offsets() {
        let latin = parse(Language::Python, b"# caf\xe9\nx = 1  # \xe9\n");
        assert_eq!(latin.syntax_errors(), 0);
        let bom = parse(Language::Python, b"\xef\xbb\xbfx = 1\r\n");
        assert_eq!(bom.syntax_errors(), 0);
        let name = descendants(bom.root()).find(|node| node.kind() == "identifier").expect("name");
        assert_eq!(name.byte_range(), 3..4);
    }

    #[test]
    fn a_short_walk_meets_exactly_the_nodes_that_hold_an_offset() {
        let text = "def f():\n    x = 'arch'\ny = [1, 'arch', g('a')]\n";
        let parsed = parse(Language::Python, text.as_bytes());
        let offsets = parsed.offsets_of("arch");
        let holds = |node: &Node<'_>| offsets.iter().any(|offset| node.byte_range().contains(offset));
        let long: Vec<_> = descendants(parsed.root()).filter(holds).map(|node| node.id()).collect();
        let short: Vec<_> = descendants_holding(parsed.root(), &offsets).map(|node| node.id()).collect();
        assert_eq!(short, long);
        assert!(descendants_holding(parsed.root(), &[]).next().is_none());
    }

    #[test]
    fn languages_go_by_the_ending() {
        assert_eq!(Language::of_path("csrc/a.b/scan.cuh"), Some(Language::Cpp));
        assert_eq!(Language::of_path("setup.py"), Some(Language::Python));
        assert_eq!(Language::of_path("csrc/CMakeLists.txt"), Some(Language::Cmake));
        assert_eq!(Language::of_path("requirements.txt"), None);
        assert_eq!(Language::of_path("a.py/Makefile"), None);
    }
}

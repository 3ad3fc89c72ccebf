//! What the grammar makes of a text: one tree, further trees for branches that cannot stand beside each other, and a
//! tree for each macro body.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tree_sitter::{Node, Tree};

use super::branches::directives;
use super::cuda::{self, View};
use super::language::{Language, ancestors, descendants_where};
use super::macros::{self, Body};

/// The trees of a file; offsets into them are offsets into the file.
#[derive(Debug, Clone)]
pub struct Reading {
    tree: Tree,
    /// What the tree does not show, in order.
    hidden: Vec<Range<usize>>,
    others: Vec<Other>,
    /// Branches that no tree shows.
    unseen: Vec<Range<usize>>,
    text: Arc<[u8]>,
    /// Parsed when the first of them is asked for.
    bodies: OnceLock<Bodies>,
}

/// The bodies of macros.
#[derive(Debug, Clone, Default)]
struct Bodies {
    parsed: Vec<Body>,
    /// What lies in bodies and their trees do not show, in order.
    hidden: Vec<Range<usize>>,
}

impl Bodies {
    fn of(text: &[u8]) -> Self {
        let bodies = cuda::bodies(text, &directives(text));
        Self { parsed: macros::parse(&bodies), hidden: bodies.hidden }
    }
}

/// A tree that shows other branches than the first.
#[derive(Debug, Clone)]
struct Other {
    tree: Tree,
    hidden: Vec<Range<usize>>,
    branches: Vec<Range<usize>>,
}

impl Reading {
    /// Parses a text.
    pub fn new(language: Language, text: Arc<[u8]>) -> Option<Self> {
        match language {
            Language::Python | Language::Cmake => {
                let reading = Self::plain(language, text)?;
                Some(Self { bodies: Bodies::default().into(), ..reading })
            }
            Language::Cpp => Self::of_cpp(text),
        }
    }

    fn plain(language: Language, text: Arc<[u8]>) -> Option<Self> {
        Some(Self::of_tree(language.parser().parse(&text, None)?, text))
    }

    fn of_tree(tree: Tree, text: Arc<[u8]>) -> Self {
        let (hidden, others, unseen) = (Vec::new(), Vec::new(), Vec::new());
        Self { tree, hidden, others, unseen, text, bodies: OnceLock::new() }
    }

    fn of_cpp(text: Arc<[u8]>) -> Option<Self> {
        let reading = Self::of_views(&text)?;
        if reading.root().has_error() {
            let plain = Self::plain(Language::Cpp, text)?;
            if plain.unknown() < reading.unknown() {
                return Some(plain);
            }
        }
        Some(reading)
    }

    fn of_views(text: &Arc<[u8]>) -> Option<Self> {
        let mut parser = Language::Cpp.parser();
        let mut views = cuda::views(text, &directives(text)).into_iter();
        let first = views.next()?;
        let mut reading = Self::of_tree(parser.parse(&first.text, None)?, text.clone());
        reading.hidden = first.hidden;
        reading.unseen = first.unseen;
        for View { text, hidden, branches, .. } in views {
            reading.others.push(Other { tree: parser.parse(&text, None)?, hidden, branches });
        }
        Some(reading)
    }

    fn bodies(&self) -> &Bodies {
        self.bodies.get_or_init(|| Bodies::of(&self.text))
    }

    /// How much is not known: bytes, then places.
    fn unknown(&self) -> (usize, usize) {
        (self.unread().map(|range| range.len()).sum(), self.wrong().count())
    }

    /// The root of the file.
    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// All nodes for which `enter` holds all the way down, each before its children: of the file, of its macro bodies, and
    /// of branches that the tree of the file does not show.
    pub fn nodes<'t>(&'t self, enter: impl Fn(Node<'t>) -> bool + Clone) -> impl Iterator<Item = Node<'t>> {
        let (in_body, in_branch) = (enter.clone(), enter.clone());
        let bodies = self.bodies().parsed.iter().flat_map(move |body| {
            let enter = in_body.clone();
            descendants_where(body.root(), move |node| body.touches(node) && enter(node))
        });
        let others = self.others.iter().flat_map(move |other| {
            let enter = in_branch.clone();
            descendants_where(other.tree.root_node(), move |node| other.touches(node) && enter(node))
        });
        descendants_where(self.root(), enter).chain(bodies).chain(others)
    }

    /// The smallest named node that holds a stretch, in the tree that shows it.
    pub fn node_at(&self, range: &Range<usize>) -> Option<Node<'_>> {
        let holds = |outer: &&Range<usize>| outer.start <= range.start && range.end <= outer.end;
        let body = self.body_at(range.start).map(Body::root);
        let other = || self.others.iter().find(|other| other.branches.iter().any(|branch| holds(&branch)));
        let root =
            body.or_else(|| other().map(|other| other.tree.root_node())).unwrap_or_else(|| self.root());
        root.named_descendant_for_byte_range(range.start, range.end)
    }

    /// The macro body that holds an offset.
    pub fn body_at(&self, offset: usize) -> Option<&Body> {
        let bodies = &self.bodies().parsed;
        let next = bodies.partition_point(|body| body.range.end <= offset);
        bodies.get(next).filter(|body| body.range.start <= offset)
    }

    /// Whether one of the trees shows all of a stretch as it is.
    pub fn shows(&self, range: &Range<usize>) -> bool {
        match self.body_at(range.start) {
            Some(_) => is_clear(range, &self.bodies().hidden),
            None => {
                is_clear(range, &self.hidden)
                    || self.others.iter().any(|other| is_clear(range, &other.hidden))
            }
        }
    }

    /// Where the grammar is at a loss, in the file and in its branches.
    pub fn wrong(&self) -> impl Iterator<Item = usize> {
        let is_wrong = |node: &Node<'_>| node.is_error() || node.is_missing();
        let first = descendants_where(self.root(), |node| node.has_error()).filter(is_wrong);
        let others = self.others.iter().flat_map(move |other| other.broken().filter(is_wrong));
        let unseen = self.unseen.iter().map(|range| range.start);
        first.chain(others).map(|node| node.start_byte()).chain(unseen)
    }

    /// What the grammar could not read, in the file and in its branches.
    pub fn unread(&self) -> impl Iterator<Item = Range<usize>> {
        let is_outermost =
            |node: &Node<'_>| node.is_error() && !ancestors(*node).any(|ancestor| ancestor.is_error());
        let first = descendants_where(self.root(), |node| node.has_error()).filter(is_outermost);
        let others = self.others.iter().flat_map(move |other| other.broken().filter(is_outermost));
        let nodes = first.chain(others).map(|node| node.byte_range());
        nodes.chain(self.unseen.iter().cloned())
    }
}

/// Whether nothing hidden lies in a stretch, or around one that is empty.
fn is_clear(range: &Range<usize>, hidden: &[Range<usize>]) -> bool {
    let overlaps = |hidden: &Range<usize>| match range.is_empty() {
        true => hidden.start < range.start && range.start < hidden.end,
        false => hidden.start < range.end && range.start < hidden.end,
    };
    !hidden.iter().any(overlaps)
}

impl Other {
    /// Whether a node lies, with a part of it, in one of the branches.
    fn touches(&self, node: Node<'_>) -> bool {
        let next = self.branches.partition_point(|branch| branch.end <= node.start_byte());
        self.branches.get(next).is_some_and(|branch| branch.start < node.end_byte())
    }

    /// The nodes that lie in the branches alone and hold what the grammar is at a loss with.
    fn broken(&self) -> impl Iterator<Item = Node<'_>> {
        let within = |node: &Node<'_>| {
            let next = self.branches.partition_point(|branch| branch.end < node.end_byte());
            self.branches.get(next).is_some_and(|branch| branch.start <= node.start_byte())
        };
        descendants_where(self.tree.root_node(), |node| node.has_error() && self.touches(node)).filter(within)
    }
}

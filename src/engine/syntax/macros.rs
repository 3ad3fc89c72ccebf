//! Bodies of `#define`s, which the C++ grammar leaves as opaque text.

use std::ops::Range;

use tree_sitter::{Node, Parser, Tree};

use super::cuda::Bodies;
use super::language::{Language, descendants_where};
use super::tokens::{Kind, tokens};

/// The body of a macro, parsed by itself; offsets are those of the file.
#[derive(Debug, Clone)]
pub struct Body {
    /// Where the name of the macro stands.
    pub name: Range<usize>,
    /// Where the body stands.
    pub range: Range<usize>,
    tree: Tree,
}

impl Body {
    /// The root of the body.
    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// Whether a node lies, with a part of it, in the body; the others are of the frame.
    pub fn touches(&self, node: Node<'_>) -> bool {
        self.range.start < node.end_byte() && node.start_byte() < self.range.end
    }
}

/// Code around a body that makes it a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    before: String,
    after: String,
}

/// A body may be statements, declarations, or members of a class.
const FRAMES: [(&str, &str); 3] = [("void f(){", ";}"), ("", ""), ("struct S{", "};")];

impl Frame {
    /// A frame that has the brackets, too, which the body lacks.
    fn around(body: &[u8], (before, after): (&str, &str)) -> Self {
        let (mut lacking, mut open) = (Vec::new(), Vec::new());
        for token in tokens(body).filter(|token| token.kind == Kind::Punctuation) {
            match body[token.start] {
                b'(' => open.push(")"),
                b'[' => open.push("]"),
                b'{' => open.push("}"),
                b')' | b']' | b'}' if !open.is_empty() => drop(open.pop()),
                b')' => lacking.push("f("),
                b']' => lacking.push("a["),
                b'}' => lacking.push("{"),
                _ => {}
            }
        }
        let joined = |texts: Vec<&str>| texts.into_iter().rev().collect::<String>();
        Self { before: format!("{before}{}", joined(lacking)), after: format!("{}{after}", joined(open)) }
    }
}

/// Parses each macro body in the frame that fits best.
///
/// `\` continuations are white space to the grammar, so a body of several lines is read whole.
pub fn parse(bodies: &Bodies) -> Vec<Body> {
    if bodies.places.is_empty() {
        return Vec::new();
    }
    let mut parser = Language::Cpp.parser();
    let places = bodies.places.iter();
    places.filter_map(|(name, range)| body(&mut parser, &bodies.text, name.clone(), range.clone())).collect()
}

fn body(parser: &mut Parser, text: &[u8], name: Range<usize>, range: Range<usize>) -> Option<Body> {
    let mut best: Option<(usize, Tree)> = None;
    for frame in FRAMES {
        let frame = Frame::around(&text[range.clone()], frame);
        let tree = framed(parser, text, range.clone(), &frame)?;
        let wrong = wrong(&tree);
        if best.as_ref().is_none_or(|(least, _)| wrong < *least) {
            best = Some((wrong, tree));
        }
        if wrong == 0 {
            break;
        }
    }
    best.map(|(_, tree)| Body { name, range, tree })
}

fn wrong(tree: &Tree) -> usize {
    let broken = descendants_where(tree.root_node(), |node| node.has_error());
    broken.filter(|node| node.is_error() || node.is_missing()).count()
}

/// Parses a stretch as if the frame stood around it.
fn framed(parser: &mut Parser, text: &[u8], range: Range<usize>, frame: &Frame) -> Option<Tree> {
    let start = range.start.checked_sub(frame.before.len())?;
    let end = range.end + frame.after.len();
    let point = tree_sitter::Point::new(0, 0);
    let whole = tree_sitter::Range { start_byte: start, end_byte: end, start_point: point, end_point: point };
    parser.set_included_ranges(&[whole]).ok()?;
    let mut read = |offset: usize, _| {
        match offset {
            _ if offset < range.start => frame.before.as_bytes().get(offset.saturating_sub(start)..),
            _ if offset < range.end => text.get(offset..range.end),
            _ => frame.after.as_bytes().get(offset - range.end..),
        }
        .unwrap_or_default()
    };
    parser.parse_with_options(&mut read, None, None)
}

//! C++ texts that differ in names alone: the grammar reads both alike, and no parse is needed to know it.

use std::collections::BTreeMap;

use super::branches::directives;
use super::cuda::{self, View};
use super::language::{Language, descendants};
use super::tokens::{Kind, Token, tokens};

/// Whether two texts differ in names alone, so that whatever is wrong by the grammar in one is wrong in the other. The
/// names may be no words of the grammar's, and all that stands between them is the same.
pub fn differ_in_names(before: &[u8], after: &[u8]) -> bool {
    let mut names = Names::default();
    names.differ_alone(before, after) && {
        let (before, after) = (views(before), views(after));
        let mut pairs = before.iter().zip(&after);
        before.len() == after.len() && pairs.all(|(before, after)| names.differ_in_view(before, after))
    }
}

fn views(text: &[u8]) -> Vec<View> {
    cuda::views(text, &directives(text))
}

/// Words that differ, and whether each is a name like any other.
#[derive(Default)]
struct Names(BTreeMap<Vec<u8>, bool>);

impl Names {
    fn differ_in_view(&mut self, before: &View, after: &View) -> bool {
        before.unseen.len() == after.unseen.len() && self.differ_alone(&before.text, &after.text)
    }

    fn differ_alone(&mut self, before: &[u8], after: &[u8]) -> bool {
        let (old, new) = (Pieces::of(before), Pieces::of(after));
        old.tokens.len() == new.tokens.len()
            && old.rest() == new.rest()
            && (0..old.tokens.len()).all(|at| {
                let (one, other) = (old.text(at), new.text(at));
                old.gap(at) == new.gap(at)
                    && (one == other
                        || (old.is_name(at) && new.is_name(at) && self.hold(one) && self.hold(other)))
            })
    }

    fn hold(&mut self, word: &[u8]) -> bool {
        *self.0.entry(word.to_vec()).or_insert_with(|| is_plain(word))
    }
}

/// Whether the grammar takes a word for a name, wherever it stands.
fn is_plain(word: &[u8]) -> bool {
    if std::str::from_utf8(word).map_or(true, |word| Language::Cpp.spells(word)) {
        return false;
    }
    // The names of types such as `int` are not spelt out one by one.
    let statement = [b"void f() { ", word, b"; }"].concat();
    let tree = Language::Cpp.parser().parse(&statement, None);
    let is_name = |node: tree_sitter::Node<'_>| node.start_byte() == 11 && node.kind() == "identifier";
    tree.is_some_and(|tree| descendants(tree.root_node()).any(is_name))
}

/// A text as tokens and what stands between them.
struct Pieces<'b> {
    bytes: &'b [u8],
    tokens: Vec<Token>,
}

impl<'b> Pieces<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        Self { bytes, tokens: tokens(bytes).collect() }
    }

    fn text(&self, at: usize) -> &'b [u8] {
        self.tokens[at].text(self.bytes)
    }

    /// A word that is not the keyword of a directive.
    fn is_name(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| self.tokens[before].kind);
        self.tokens[at].kind == Kind::Word && before != Some(Kind::Directive)
    }

    fn gap(&self, at: usize) -> &'b [u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.tokens[before].end);
        &self.bytes[start..self.tokens[at].start]
    }

    fn rest(&self) -> &'b [u8] {
        &self.bytes[self.tokens.last().map_or(0, |last| last.end)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Parsed;

    const TEXT: &str = "#include <a.h>\n#define CHECK(x) \\\n  OLD(x, \"OLD\")\n__global__ void f(int a) {\n  \
                        OLD(a, 1)\n#if OLD\n  g<<<1, 2>>>(OLD);\n#endif\n  int b = (OLD;\n}\n// OLD\n";

    fn errors(text: &str) -> usize {
        Parsed::new(Language::Cpp, text.as_bytes().into()).expect("parses").syntax_errors()
    }

    fn with(name: &str) -> String {
        TEXT.replace("OLD(", &format!("{name}(")).replace("(OLD", &format!("({name}"))
    }

    #[test]
    fn a_name_for_a_name_leaves_what_the_grammar_reads() {
        for name in ["OLD", "NEW_CHECK", "a_name", "torch"] {
            assert!(differ_in_names(TEXT.as_bytes(), with(name).as_bytes()), "{name}");
            assert_eq!(errors(TEXT), errors(&with(name)), "{name}");
        }
    }

    #[test]
    fn anything_else_must_be_parsed() {
        for word in ["if", "int", "size_t", "this", "nullptr", "__device__", "a::b", "b(", "1", "final", "#x"]
        {
            assert!(!differ_in_names(TEXT.as_bytes(), with(word).as_bytes()), "{word}");
        }
        for (old, new) in
            [("// OLD", "// NEW"), ("\"OLD\"", "\"NEW\""), ("(a, 1)", "(a,1)"), ("}\n", "}\n\n")]
        {
            assert!(!differ_in_names(TEXT.as_bytes(), TEXT.replace(old, new).as_bytes()), "{new:?}");
        }
        assert!(!differ_in_names(b"#old x\n", b"#define x\n") && !differ_in_names(b"a \"b\"", b"a u8\"b\""));
    }
}

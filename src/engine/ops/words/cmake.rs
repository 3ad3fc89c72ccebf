//! Reading CMake by its grammar: the commands that set variables, properties and flags, and the conditions around them.

use std::ops::Range;

use tree_sitter::Node;

use super::condition::{Token, truth};
use super::outline::{Outline, Sequence};
use crate::engine::ops::gencode::worlds::{Presence, Worlds};
use crate::engine::syntax::language::{Parsed, significant_children};
use crate::engine::syntax::words::Word;

/// Reads a file.
pub fn read(parsed: &Parsed, worlds: &Worlds) -> Outline {
    let mut reader = Reader { parsed, worlds, outline: Outline::new(worlds, true) };
    reader.body(parsed.root(), 0);
    reader.outline
}

/// The arguments of every command of a file, without their order of evaluation.
pub fn argument_lists(parsed: &Parsed) -> Vec<Vec<Word>> {
    let commands = crate::engine::syntax::language::descendants(parsed.root());
    commands.filter(|node| node.kind() == "normal_command").map(|node| arguments(node, parsed)).collect()
}

struct Reader<'a> {
    parsed: &'a Parsed,
    worlds: &'a Worlds,
    outline: Outline,
}

impl Reader<'_> {
    fn body(&mut self, body: Node<'_>, block: usize) {
        for child in significant_children(body) {
            match child.kind() {
                "normal_command" => self.command(child, block),
                "if_condition" => self.conditional(child, block),
                "foreach_loop" | "while_loop" | "block_def" | "body" => self.body(child, block),
                "function_def" | "macro_def" => {
                    let own = self.outline.block(block, &self.worlds.everywhere(), None);
                    self.body(child, own);
                }
                _ => {}
            }
        }
    }

    /// `if … elseif … else … endif`: each branch is reached where its condition holds and none before it did.
    fn conditional(&mut self, node: Node<'_>, outer: usize) {
        let children = significant_children(node);
        let single = children.iter().filter(|child| child.kind().starts_with("else")).count() == 0;
        let alone = single.then(|| node.byte_range());
        let (mut rest, mut reached) = (self.worlds.everywhere(), self.worlds.everywhere());
        for child in &children {
            match child.kind() {
                "if_command" | "elseif_command" => {
                    let condition = self.condition(*child);
                    reached = rest.and(&condition);
                    rest = rest.and(&condition.negated());
                }
                "else_command" => reached = rest.clone(),
                _ => {}
            }
            if child.kind() == "body" {
                let block = self.outline.block(outer, &reached, alone.clone());
                self.body(*child, block);
            }
        }
    }

    fn condition(&self, command: Node<'_>) -> Presence {
        let lists = significant_children(command).into_iter().filter(|child| child.kind() == "argument_list");
        let tokens: Vec<Token> = lists.flat_map(significant_children).map(|child| self.token(child)).collect();
        self.worlds.presence(|world| truth(&tokens, world))
    }

    fn token(&self, node: Node<'_>) -> Token {
        match node.kind() {
            "(" => Token::Open,
            ")" => Token::Close,
            _ => Token::Word(argument(node, self.parsed).text),
        }
    }

    fn command(&mut self, node: Node<'_>, block: usize) {
        let Some(name) = node.child(0).map(|name| self.parsed.text(name).to_lowercase()) else { return };
        self.outline.blocks[block].commands += 1;
        let words = arguments(node, self.parsed);
        for value in values(&name, &words) {
            let mut sequence = Sequence {
                name: value.name.map(str::to_string),
                owner: value.owner,
                resets: value.resets,
                words: value.words.to_vec(),
                holder: None,
                bare: false,
                command: node.byte_range(),
                block,
            };
            sequence.resets &= !self.mentions_itself(&sequence);
            self.outline.add(sequence, &self.parsed.bytes);
        }
    }

    /// Whether a value goes on from the old one: `set(FLAGS "${FLAGS} -O2")`.
    fn mentions_itself(&self, sequence: &Sequence) -> bool {
        let own = sequence.name.as_ref().map(|name| format!("${{{name}}}"));
        own.is_some_and(|own| sequence.words.iter().any(|word| word.text.contains(&own)))
    }
}

/// A part of a command that is a value.
struct Value<'a> {
    name: Option<&'a str>,
    owner: String,
    resets: bool,
    words: &'a [Word],
}

/// The values that a command gives, by the rules of the commands that CMake itself has.
fn values<'a>(command: &str, words: &'a [Word]) -> Vec<Value<'a>> {
    let value = |name: &'a Word, resets, words| {
        let name = name.text.strip_prefix("ENV{").and_then(|name| name.strip_suffix('}')).unwrap_or(&name.text);
        vec![Value { name: Some(name), owner: String::new(), resets, words }]
    };
    match (command, words) {
        ("set", [name, rest @ ..]) => value(name, true, before(rest, &["CACHE", "PARENT_SCOPE"])),
        ("list", [action, name, rest @ ..]) if is(action, &["APPEND", "PREPEND"]) => value(name, false, rest),
        ("list", [action, name, _, rest @ ..]) if is(action, &["INSERT"]) => value(name, false, rest),
        ("list", _) => Vec::new(),
        ("string", [action, name, rest @ ..]) if is(action, &["APPEND", "PREPEND"]) => value(name, false, rest),
        ("string" | "message", _) => Vec::new(),
        ("set_target_properties", _) => properties(words),
        ("set_property", _) => property(words).into_iter().collect(),
        _ => vec![Value { name: None, owner: command.to_string(), resets: false, words }],
    }
}

/// `set_target_properties(targets… PROPERTIES name value name value …)`
fn properties(words: &[Word]) -> Vec<Value<'_>> {
    let targets = before(words, &["PROPERTIES"]);
    let pairs = words.get(targets.len() + 1..).unwrap_or_default().chunks_exact(2);
    pairs
        .map(|pair| Value {
            name: Some(&pair[0].text),
            owner: texts(targets),
            resets: true,
            words: &pair[1..],
        })
        .collect()
}

/// `set_property(TARGET targets… [APPEND] PROPERTY name value…)`
fn property(words: &[Word]) -> Option<Value<'_>> {
    let targets = before(words, &["PROPERTY", "APPEND", "APPEND_STRING"]);
    let appends = words.get(targets.len()).is_some_and(|word| word.text != "PROPERTY");
    let start = words.iter().position(|word| word.text == "PROPERTY")?;
    let name = words.get(start + 1)?;
    let owner = texts(targets);
    Some(Value { name: Some(&name.text), owner, resets: !appends, words: &words[start + 2..] })
}

fn texts(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn is(word: &Word, keywords: &[&str]) -> bool {
    word.quoted.is_empty() && keywords.contains(&word.text.as_str())
}

/// The words before the first of these keywords.
fn before<'a>(words: &'a [Word], keywords: &[&str]) -> &'a [Word] {
    let end = words.iter().position(|word| is(word, keywords));
    &words[..end.unwrap_or(words.len())]
}

fn arguments(command: Node<'_>, parsed: &Parsed) -> Vec<Word> {
    let lists = significant_children(command).into_iter().filter(|child| child.kind() == "argument_list");
    let all = lists.flat_map(significant_children).filter(|child| child.kind() == "argument");
    all.map(|child| argument(child, parsed)).collect()
}

/// An argument; one without quotes that holds `;` is a list, as if it stood in quotes.
fn argument(node: Node<'_>, parsed: &Parsed) -> Word {
    let range = node.byte_range();
    let kind = node.named_child(0).map_or("", |child| child.kind());
    let inner: Option<Range<usize>> = match kind {
        "quoted_argument" => Some(range.start + 1..range.end.saturating_sub(1).max(range.start + 1)),
        "unquoted_argument" if parsed.bytes[range.clone()].contains(&b';') => Some(range.clone()),
        _ => None,
    };
    let text = inner.clone().unwrap_or(range.clone());
    let text = String::from_utf8_lossy(&parsed.bytes[text]).into_owned();
    Word { range, text, quoted: inner.into_iter().collect() }
}

//! Reading CMake by its grammar: the commands that set variables, properties and flags, and the conditions around them.

use tree_sitter::Node;

use super::called::Function;
use super::condition::{Token, holds_from, may_choose, truth};
use super::outline::{Guard, Outline, Sequence};
use crate::engine::ops::choice::Choice;
use crate::engine::ops::gencode::worlds::{Presence, Worlds};
use crate::engine::syntax::language::{Parsed, significant_children};
use crate::engine::syntax::words::{Word, inside};

/// Reads a file.
pub fn read(parsed: &Parsed, worlds: &Worlds) -> Outline {
    let mut reader = Reader { parsed, worlds, outline: Outline::new(worlds, true) };
    reader.body(parsed.root(), 0);
    reader.outline
}

/// The arguments of every command of a file but those that are only told, without their order of evaluation.
pub fn argument_lists(parsed: &Parsed) -> Vec<Vec<Word>> {
    let commands = crate::engine::syntax::language::descendants(parsed.root());
    let tells =
        |node: &Node<'_>| node.child(0).is_some_and(|name| parsed.text(name).eq_ignore_ascii_case("message"));
    let commands = commands.filter(|node| node.kind() == "normal_command" && !tells(node));
    commands.map(|node| arguments(node, parsed)).collect()
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
                "foreach_loop" => {
                    self.loop_values(child, block);
                    self.body(child, block);
                }
                "while_loop" | "block_def" | "body" => self.body(child, block),
                "function_def" | "macro_def" => {
                    let own = self.outline.block(block, &self.worlds.everywhere(), None);
                    self.outline.functions.extend(self.function(child, own));
                    self.body(child, own);
                }
                _ => {}
            }
        }
    }

    /// `if … elseif … else … endif`: each branch is reached where its condition holds and none before it did.
    fn conditional(&mut self, node: Node<'_>, outer: usize) {
        let children = significant_children(node);
        let has_else = children.iter().any(|child| child.kind() == "else_command");
        let single = !children.iter().any(|child| child.kind().starts_with("else"));
        let alone = single.then(|| node.byte_range());
        let guard = self.guard(node).filter(|_| single);
        let (mut rest, mut reached) = (self.worlds.everywhere(), self.worlds.everywhere());
        let mut choice = None;
        for child in &children {
            match child.kind() {
                "if_command" | "elseif_command" => {
                    let condition = self.condition(*child);
                    reached = rest.and(&condition);
                    rest = rest.and(&condition.negated());
                    choice = self.choice(*child).or(choice);
                }
                "else_command" => reached = rest.clone(),
                _ => {}
            }
            if child.kind() == "body" {
                let block = self.outline.block(outer, &reached, alone.clone());
                self.outline.blocks[block].guard = guard.clone();
                self.outline.blocks[block].choice = choice.clone();
                self.outline.blocks[block].one_of = has_else.then_some(node.start_byte());
                self.body(*child, block);
            }
        }
    }

    fn condition(&self, command: Node<'_>) -> Presence {
        let tokens = self.tokens(command);
        self.worlds.presence(|world| truth(&tokens, world))
    }

    /// The condition that may choose an architecture.
    fn choice(&self, command: Node<'_>) -> Option<Choice> {
        let chooses = may_choose(&self.tokens(command), self.worlds);
        chooses.then(|| Choice::at(command.byte_range(), &self.parsed.bytes))
    }

    fn tokens(&self, command: Node<'_>) -> Vec<Token> {
        let lists = significant_children(command).into_iter().filter(|child| child.kind() == "argument_list");
        lists.flat_map(significant_children).flat_map(|child| self.token(child)).collect()
    }

    /// The condition of a conditional, where it can be written anew.
    fn guard(&self, node: Node<'_>) -> Option<Guard> {
        let of_kind = |kind: &str| significant_children(node).into_iter().find(|child| child.kind() == kind);
        let (opening, closing) = (of_kind("if_command")?, of_kind("endif_command")?);
        let exclusive = holds_from(&self.tokens(opening))?;
        let version = arguments(opening, self.parsed).pop()?;
        Some(Guard {
            whole: node.byte_range(),
            opening: opening.byte_range(),
            closing: closing.byte_range(),
            version: version.quoted.first().cloned().unwrap_or(version.range),
            exclusive,
        })
    }

    fn function(&self, node: Node<'_>, block: usize) -> Option<Function> {
        let is_opening = |child: &Node<'_>| matches!(child.kind(), "function_command" | "macro_command");
        let opening = significant_children(node).into_iter().find(is_opening)?;
        let words = arguments(opening, self.parsed);
        let (name, parameters) = words.split_first()?;
        let parameters = parameters.iter().map(|word| word.text.clone()).collect();
        Some(Function { name: name.text.to_lowercase(), parameters, block })
    }

    fn token(&self, node: Node<'_>) -> Vec<Token> {
        match node.kind() {
            "(" => vec![Token::Open],
            ")" => vec![Token::Close],
            _ => argument(node, self.parsed).into_iter().map(|word| Token::Word(word.text)).collect(),
        }
    }

    /// What a loop gives its variable: `foreach(SM 70 80)`, `foreach(SM IN LISTS SMS)`.
    fn loop_values(&mut self, node: Node<'_>, block: usize) {
        let opening = significant_children(node).into_iter().find(|child| child.kind() == "foreach_command");
        let Some(opening) = opening else { return };
        let words = arguments(opening, self.parsed);
        let is_range = words.iter().any(|word| is(word, &["RANGE"]));
        let Some((name, rest)) = words.split_first().filter(|_| !is_range) else { return };
        let by_name = rest.iter().any(|word| is(word, &["LISTS"]));
        let values = rest.iter().filter(|word| !is(word, &["IN", "LISTS", "ITEMS"]));
        let value = |word: &Word| match by_name {
            true => Word { text: format!("${{{}}}", word.text), ..word.clone() },
            false => word.clone(),
        };
        let (name, command) = (name.text.clone(), opening.byte_range());
        let sequence = Sequence::of_loop(name, values.map(value).collect(), (command, block));
        let sequence = Sequence { scope: Some(node.byte_range()), ..sequence };
        self.outline.add(sequence, &self.parsed.bytes);
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
                default: None,
                command: node.byte_range(),
                block,
                scope: None,
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
        let name =
            name.text.strip_prefix("ENV{").and_then(|name| name.strip_suffix('}')).unwrap_or(&name.text);
        vec![Value { name: Some(name), owner: String::new(), resets, words }]
    };
    match (command, words) {
        ("set", [name, rest @ ..]) => value(name, true, before(rest, &["CACHE", "PARENT_SCOPE"])),
        ("list", [action, name, rest @ ..]) if is(action, &["APPEND", "PREPEND"]) => value(name, false, rest),
        ("list", [action, name, _, rest @ ..]) if is(action, &["INSERT"]) => value(name, false, rest),
        ("list", _) => Vec::new(),
        ("string", [action, name, rest @ ..]) if is(action, &["APPEND", "PREPEND"]) => {
            value(name, false, rest)
        }
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
    all.flat_map(|child| argument(child, parsed)).collect()
}

/// An argument; one without quotes that holds `;` is several.
fn argument(node: Node<'_>, parsed: &Parsed) -> Vec<Word> {
    let range = node.byte_range();
    match node.named_child(0).map_or("", |child| child.kind()) {
        "quoted_argument" => {
            let inner = range.start + 1..range.end.saturating_sub(1).max(range.start + 1);
            let text = String::from_utf8_lossy(&parsed.bytes[inner.clone()]).into_owned();
            vec![Word { range, text, quoted: vec![inner] }]
        }
        "unquoted_argument" => inside(&parsed.bytes, range),
        _ => vec![Word { range, text: parsed.text(node), quoted: Vec::new() }],
    }
}

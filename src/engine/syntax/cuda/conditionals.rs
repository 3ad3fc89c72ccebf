//! `#if`s in places where the grammar reads none: in lists and expressions, around half a statement.
//!
//! Such a conditional is hidden, and one of its branches is shown. The others are shown in further views, so that
//! nothing is lost to a search.

use std::ops::Range;

use super::part::is_macro_like;
use crate::engine::syntax::branches::{DeadCode, Directive};
use crate::engine::syntax::passes::Passes;
use crate::engine::syntax::tokens::{Kind, Token, tokens};

/// What a view shows.
#[derive(Debug, Default)]
pub struct Shown {
    /// Its code, without comments and directives.
    pub tokens: Vec<Token>,
    /// What is hidden of the file.
    pub hidden: Vec<Range<usize>>,
    /// The branches that no earlier view shows.
    pub branches: Vec<Range<usize>>,
    /// The branches that no view shows.
    pub unseen: Vec<Range<usize>>,
}

/// A file has at most so many views; of a conditional with more branches the rest is not seen.
const MOST_VIEWS: usize = 4;

/// Conditionals that are nested deeper are not looked at.
const DEEPEST: usize = 60;

/// What the views of a file show.
pub fn shown(bytes: &[u8], directives: &[Directive]) -> Vec<Shown> {
    let items = Builder::new(bytes, directives).build();
    let mut views = Vec::new();
    for index in 0..MOST_VIEWS {
        let mut walk = Walk { bytes, index, shown: Shown::default(), open: Vec::new(), is_new: index == 0 };
        walk.show(&items, None);
        if index > 0 && walk.shown.branches.is_empty() {
            break;
        }
        views.push(walk.shown);
    }
    views
}

/// A piece of a file.
enum Item {
    Token(Token),
    /// A directive that is no conditional.
    Line(Range<usize>),
    /// A comment within a directive, which ends it for the grammar.
    Comment(Range<usize>),
    Conditional(Conditional),
}

/// A `#if` with all that belongs to it.
struct Conditional {
    /// The lines `#if`, `#elif`, `#else`, `#endif`.
    lines: Vec<Range<usize>>,
    /// What lies between them; those that are built for CUDA first.
    branches: Vec<Branch>,
}

struct Branch {
    items: Vec<Item>,
    range: Range<usize>,
}

struct Builder<'b> {
    bytes: &'b [u8],
    dead: DeadCode,
    /// The conditionals that are open; each ends with the branch that is being read.
    open: Vec<Conditional>,
    top: Vec<Item>,
    ignored: usize,
}

impl<'b> Builder<'b> {
    fn new(bytes: &'b [u8], directives: &[Directive]) -> Self {
        let dead = DeadCode::among(directives, bytes, &Passes::unknown());
        Self { bytes, dead, open: Vec::new(), top: Vec::new(), ignored: 0 }
    }

    fn build(mut self) -> Vec<Item> {
        let mut directive: Option<(usize, Option<Token>)> = None;
        for token in tokens(self.bytes) {
            match (token.kind, &mut directive) {
                (Kind::Comment, Some(_)) => self.comment(token),
                (Kind::Comment, None) => {}
                (Kind::Directive, _) => directive = Some((token.start, None)),
                (Kind::DirectiveEnd, _) => {
                    if let Some((start, name)) = directive.take() {
                        self.line(start..token.end, name);
                    }
                }
                (_, Some((_, name))) => *name = name.or(Some(token)),
                (_, None) => self.push(Item::Token(token)),
            }
        }
        while !self.open.is_empty() {
            self.close(self.bytes.len()..self.bytes.len());
        }
        self.top
    }

    fn push(&mut self, item: Item) {
        let branch = self.open.last_mut().and_then(|open| open.branches.last_mut());
        branch.map_or(&mut self.top, |branch| &mut branch.items).push(item);
    }

    fn comment(&mut self, token: Token) {
        if token.text(self.bytes).starts_with(b"/*") {
            self.push(Item::Comment(token.range()));
        }
    }

    fn line(&mut self, range: Range<usize>, name: Option<Token>) {
        match name.map_or(&b""[..], |name| name.text(self.bytes)) {
            b"if" | b"ifdef" | b"ifndef" if self.open.len() >= DEEPEST => self.ignored += 1,
            b"if" | b"ifdef" | b"ifndef" => {
                let branch = Branch { items: Vec::new(), range: range.end..range.end };
                self.open.push(Conditional { lines: vec![range], branches: vec![branch] });
            }
            b"elif" | b"else" | b"elifdef" | b"elifndef" if self.ignored == 0 => self.next_branch(range),
            b"endif" if self.ignored > 0 => self.ignored -= 1,
            b"endif" => self.close(range),
            _ => self.push(Item::Line(range)),
        }
    }

    fn next_branch(&mut self, line: Range<usize>) {
        let Some(open) = self.open.last_mut() else { return };
        open.end_branch(line.start);
        open.branches.push(Branch { items: Vec::new(), range: line.end..line.end });
        open.lines.push(line);
    }

    fn close(&mut self, line: Range<usize>) {
        let Some(mut closed) = self.open.pop() else { return };
        closed.end_branch(line.start);
        closed.lines.push(line);
        closed.branches.sort_by_key(|branch| self.dead.holds(branch.range.start));
        self.push(Item::Conditional(closed));
    }
}

impl Conditional {
    fn end_branch(&mut self, end: usize) {
        if let Some(branch) = self.branches.last_mut() {
            branch.range.end = end;
        }
    }

    /// The branch that a view shows.
    fn branch(&self, view: usize) -> &Branch {
        &self.branches[view.min(self.branches.len() - 1)]
    }
}

/// A bracket that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Parenthesis,
    Enumerators,
    Braces,
}

struct Walk<'b> {
    bytes: &'b [u8],
    /// Which view this is.
    index: usize,
    shown: Shown,
    open: Vec<Open>,
    /// Whether no earlier view shows what is shown here.
    is_new: bool,
}

impl Walk<'_> {
    /// Shows a row of items; `next` is the first token behind them.
    fn show(&mut self, items: &[Item], next: Option<Token>) {
        for (at, item) in items.iter().enumerate() {
            match item {
                Item::Token(token) => self.token(*token),
                Item::Line(range) => {
                    if !self.may_hold_directive() || self.open.last() == Some(&Open::Enumerators) {
                        self.shown.hidden.push(range.clone());
                    }
                }
                Item::Comment(range) => self.shown.hidden.push(range.clone()),
                Item::Conditional(conditional) => {
                    let next = items.get(at + 1).map_or(next, |item| match item {
                        Item::Token(token) => Some(*token),
                        _ => None,
                    });
                    self.conditional(conditional, next);
                }
            }
        }
    }

    fn token(&mut self, token: Token) {
        match token.text(self.bytes) {
            b"(" | b"[" => self.open.push(Open::Parenthesis),
            b"{" if self.is_enum() => self.open.push(Open::Enumerators),
            b"{" => self.open.push(Open::Braces),
            b")" | b"]" | b"}" => drop(self.open.pop()),
            _ => {}
        }
        self.shown.tokens.push(token);
    }

    /// Whether a `{` would follow `enum class Name : type`.
    fn is_enum(&self) -> bool {
        let before = self.shown.tokens.iter().rev().take(9).map(|token| token.text(self.bytes));
        before
            .take_while(|text| !matches!(*text, b";" | b"{" | b"}" | b"(" | b")"))
            .any(|text| text == b"enum")
    }

    /// Whether the grammar takes a directive here: between statements, or between enumerators.
    fn may_hold_directive(&self) -> bool {
        let last = self.shown.tokens.last().map_or(&b""[..], |token| token.text(self.bytes));
        match self.open.last() {
            Some(Open::Parenthesis) => false,
            Some(Open::Enumerators) => matches!(last, b"{" | b","),
            Some(Open::Braces) | None => matches!(last, b"" | b";" | b"{" | b"}" | b":"),
        }
    }

    fn conditional(&mut self, conditional: &Conditional, next: Option<Token>) {
        if self.may_hold_directive() && self.is_whole(conditional, next) {
            for branch in &conditional.branches_in_order() {
                self.show(&branch.items, None);
            }
            return;
        }
        self.shown.hidden.extend(conditional.lines.iter().cloned());
        let unseen = conditional.branches.iter().skip(MOST_VIEWS).map(|branch| branch.range.clone());
        self.shown.unseen.extend(unseen);
        let shown = conditional.branch(self.index);
        for branch in &conditional.branches {
            if std::ptr::eq(branch, shown) {
                self.show_one(branch, conditional.branches.len() > self.index, next);
            } else {
                self.shown.hidden.push(branch.range.clone());
            }
        }
    }

    fn show_one(&mut self, branch: &Branch, has_own: bool, next: Option<Token>) {
        let is_first = has_own && !self.is_new;
        if is_first {
            self.shown.branches.push(branch.range.clone());
            self.is_new = true;
        }
        self.show(&branch.items, next);
        self.is_new &= !is_first;
    }

    /// Whether each branch is a row of whole statements (or enumerators).
    fn is_whole(&self, conditional: &Conditional, next: Option<Token>) -> bool {
        let goes_on = |token: Option<Token>| {
            token.is_some_and(|token| {
                matches!(token.text(self.bytes), b"else" | b"catch" | b"." | b"," | b"?" | b";" | b"=")
            })
        };
        !goes_on(next)
            && conditional.branches.iter().all(|branch| {
                let mut summary = Summary::default();
                summary.add(self.bytes, &branch.items, self.index);
                let ends = match summary.last {
                    None => true,
                    Some(last) => {
                        self.open.last() == Some(&Open::Enumerators)
                            || matches!(last.text(self.bytes), b";" | b"}" | b":")
                            || (summary.is_macro && last.is(self.bytes, ")"))
                    }
                };
                ends && summary.is_balanced() && !goes_on(summary.first)
            })
    }
}

impl Conditional {
    /// The branches as they follow each other in the file.
    fn branches_in_order(&self) -> Vec<&Branch> {
        let mut branches: Vec<&Branch> = self.branches.iter().collect();
        branches.sort_by_key(|branch| branch.range.start);
        branches
    }
}

/// What is to be known of a branch to tell whether it can stand by itself.
#[derive(Default)]
struct Summary {
    first: Option<Token>,
    last: Option<Token>,
    depth: isize,
    lowest: isize,
    /// Whether it is one macro, or a row of them.
    is_macro: bool,
}

impl Summary {
    fn add(&mut self, bytes: &[u8], items: &[Item], view: usize) {
        for item in items {
            match item {
                Item::Token(token) => self.token(bytes, *token),
                Item::Line(_) | Item::Comment(_) => {}
                Item::Conditional(conditional) => self.add(bytes, &conditional.branch(view).items, view),
            }
        }
    }

    fn token(&mut self, bytes: &[u8], token: Token) {
        let text = token.text(bytes);
        if self.depth == 0 {
            let is_name = is_macro_like(text) && !text.starts_with(b"__");
            self.is_macro = (self.is_macro || self.first.is_none()) && (is_name || text == b"(");
        }
        match text {
            b"(" | b"[" | b"{" => self.depth += 1,
            b")" | b"]" | b"}" => self.depth -= 1,
            _ => {}
        }
        self.lowest = self.lowest.min(self.depth);
        self.first = self.first.or(Some(token));
        self.last = Some(token);
    }

    fn is_balanced(&self) -> bool {
        self.depth == 0 && self.lowest == 0
    }
}

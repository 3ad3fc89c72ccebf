//! Architectures that statements add to a list of architectures: `archs.append("80")`, `archs += ["80", "86"]`.

use tree_sitter::Node;

use super::element::{Element, Spelling};
use super::find::{File, Holder, name_of, token};
use super::write::{Container, ContainerKind};
use super::{InFile, Reader};
use crate::engine::arch::Code;
use crate::engine::ops::flow::{added_with, begins, branches};
use crate::engine::ops::givers::{Beside, Share, is_certain};
use crate::engine::syntax::language::significant_children;

/// What gives a list its architectures: its literal, or what a statement adds.
struct Part<'a> {
    node: Node<'a>,
    holder: Holder,
    branches: Vec<Node<'a>>,
}

impl<'a> File<'a> {
    /// Whether a literal names architectures, or is empty and statements add some.
    pub(super) fn holds_arches(&self, list: Node<'a>) -> bool {
        let is_empty = || significant_children(list).into_iter().all(|child| !child.is_named());
        self.names_arches(list)
            || (list.kind() == "list" && is_empty() && self.added_to(list).next().is_some())
    }

    /// A list of architectures, and what statements add to it. What is wanted is put into the literal, or where that
    /// is empty, into the last list that is always added.
    pub(super) fn push_arches(&self, list: Node<'a>, reader: Reader, found: &mut InFile) {
        let nodes: Vec<Node<'a>> = std::iter::once(list).chain(self.added_to(list)).collect();
        let part = |node: &Node<'a>| {
            let (holder, branches) = (self.one(*node, list, reader), branches(*node));
            Part { node: *node, holder, branches }
        };
        let all: Vec<Part<'a>> = nodes.iter().map(part).collect();
        let is_always = |part: &&Part<'a>| part.branches.iter().all(|one| all[0].branches.contains(one));
        let lists = || all[1..].iter().filter(|part| part.node.kind() == "list").filter(is_always);
        let last = || lists().next_back().map(|part| part.node);
        let adder = if self.names_arches(list) { Some(list) } else { last() };
        if adder.is_none() {
            found.reported.extend(self.unfilled(list, &all));
        }
        let shares: Vec<Share> = all.iter().map(|part| self.share((part, list), adder, &all)).collect();
        for (part, share) in all.into_iter().zip(shares) {
            found.push(Holder { adds: Some(part.node) == adder, share, ..part.holder });
        }
    }

    /// What is said of a list that statements fill one by one, where nothing serves what is wanted.
    fn unfilled(&self, list: Node<'a>, all: &[Part<'a>]) -> Option<String> {
        let elements = all.iter().flat_map(|part| &part.holder.elements);
        let codes: Vec<Code> = elements.flat_map(|element| element.codes()).copied().collect();
        let is_missing = |wanted: Code| !codes.iter().any(|code| code.serves(wanted));
        let missing: Vec<String> =
            self.aim.wish.wanted().filter(|wanted| is_missing(*wanted)).map(|code| code.label()).collect();
        let name = name_of(list, self.parsed);
        (!missing.is_empty())
            .then(|| format!("{name} is filled by statements: add {} beside them by hand", missing.join(" ")))
    }

    /// What statements add to the list that a literal begins.
    fn added_to(&self, list: Node<'a>) -> impl Iterator<Item = Node<'a>> {
        let name = begins(list).filter(|_| list.kind() != "string");
        let nodes = name.map(|name| self.flow.named(&self.flow.place(name))).unwrap_or_default();
        let added = nodes.into_iter().filter_map(|node| added_with(node, self.parsed));
        added.filter(|added| self.names_arches(*added)).collect::<Vec<_>>().into_iter()
    }

    fn one(&self, node: Node<'a>, list: Node<'a>, reader: Reader) -> Holder {
        if node == list || matches!(node.kind(), "list" | "tuple" | "set") {
            return self.bare(node, reader);
        }
        let range = node.byte_range();
        let elements = Element::read_all(&[token(node, self.parsed)], &self.parsed.bytes, &Spelling::bare());
        let container = Container { range, kind: ContainerKind::Single };
        Holder { container, ..self.holder(node, elements, reader) }
    }

    /// What the others have to do with one of these.
    fn share(&self, (own, list): (&Part<'a>, Node<'a>), adder: Option<Node<'a>>, all: &[Part<'a>]) -> Share {
        let is_beside = |part: &&Part<'a>| {
            let mut apart = part.branches.iter().filter(|branch| !own.branches.contains(branch));
            part.node != own.node && apart.all(|branch| is_certain(*branch, &self.evaluation()))
        };
        let flags = all.iter().filter(is_beside).flat_map(|Part { holder, .. }| {
            let flags = holder.elements.iter().filter_map(|element| element.flag.as_ref());
            flags.map(|flag| Beside { gencode: flag.gencode.clone(), toolkits: holder.toolkits.clone() })
        });
        let name = name_of(list, self.parsed);
        let left_to = adder.filter(|adder| *adder != own.node).map(|_| name.clone());
        Share { left_to, part_of: Some(name).filter(|_| own.node != list), beside: flags.collect() }
    }
}

//! Architectures that statements add to a list of architectures: `archs.append("80")`, `archs += ["80", "86"]`.

use tree_sitter::Node;

use super::element::{Element, Spelling};
use super::find::{File, Holder, name_of, token};
use super::flow::{added_with, begins, branches, scope, spelt};
use super::givers::{Beside, Share, is_certain};
use super::write::{Container, ContainerKind};
use super::{InFile, Reader};
use crate::engine::arch::Code;
use crate::engine::syntax::language::{descendants_holding, significant_children};

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
        let all: Vec<(Node<'a>, Holder)> =
            nodes.iter().map(|node| (*node, self.one(*node, list, reader))).collect();
        let is_always =
            |node: &Node<'a>| branches(*node).iter().all(|branch| branches(list).contains(branch));
        let lists = || nodes.iter().filter(|node| *node != &list && node.kind() == "list" && is_always(node));
        let adder = if self.names_arches(list) { Some(list) } else { lists().next_back().copied() };
        if adder.is_none() {
            found.reported.extend(self.unfilled(list, &all));
        }
        let shares: Vec<Share> = all.iter().map(|(node, _)| self.share((*node, list), adder, &all)).collect();
        for ((node, holder), share) in all.into_iter().zip(shares) {
            found.push(Holder { adds: Some(node) == adder, share, ..holder });
        }
    }

    /// What is said of a list that statements fill one by one, where nothing serves what is wanted.
    fn unfilled(&self, list: Node<'a>, all: &[(Node<'a>, Holder)]) -> Option<String> {
        let elements = all.iter().flat_map(|(_, holder)| &holder.elements);
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
        let place = |name| (spelt(name, self.parsed), scope(name, self.parsed));
        let offsets = name.map(|name| self.parsed.offsets_of(&self.parsed.text(name))).unwrap_or_default();
        let nodes = descendants_holding(self.parsed.root(), &offsets);
        let is_it = |node: &Node<'a>| name.is_some_and(|name| place(*node) == place(name));
        let added = nodes.filter(is_it).filter_map(|node| added_with(node, self.parsed));
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
    fn share(
        &self,
        (own, list): (Node<'a>, Node<'a>),
        adder: Option<Node<'a>>,
        all: &[(Node<'a>, Holder)],
    ) -> Share {
        let around = branches(own);
        let is_beside = |node: Node<'a>| {
            let mut apart = branches(node).into_iter().filter(|branch| !around.contains(branch));
            node != own && apart.all(|branch| is_certain(branch, &self.evaluation()))
        };
        let others = all.iter().filter(|(node, _)| is_beside(*node));
        let flags = others.flat_map(|(_, holder)| {
            let flags = holder.elements.iter().filter_map(|element| element.flag.as_ref());
            flags.map(|flag| Beside { gencode: flag.gencode.clone(), toolkits: holder.toolkits.clone() })
        });
        let name = name_of(list, self.parsed);
        let left_to = adder.filter(|adder| *adder != own).map(|_| name.clone());
        Share { left_to, part_of: Some(name).filter(|_| own != list), beside: flags.collect() }
    }
}

//! Lists that PyTorch reads from TORCH_CUDA_ARCH_LIST.

use tree_sitter::Node;

use super::each::is_told;
use super::find::{File, elsewhere};
use super::resolve::{Origin, resolve};
use super::{InFile, Reader};
use crate::engine::arch::{Code, parse_codes};
use crate::engine::pattern::Match;
use crate::engine::source::line_of;
use crate::engine::syntax::language::{Parsed, descendants, descendants_holding};

/// What stands before the value on a command line.
const GIVEN: &str = "TORCH_CUDA_ARCH_LIST=";

impl File<'_> {
    /// A list that PyTorch reads; names of generations and the like are a matter for a person.
    pub(super) fn of_torch(&self, one: &Match, found: &mut InFile) {
        let line = line_of(&self.parsed.bytes, one.range.start);
        for value in self.values_in(one) {
            match resolve(value, self.parsed) {
                Origin::Literal { node, .. } if self.holds_arches(node) => {
                    self.push_arches(node, Reader::Torch, found);
                }
                Origin::Literal { node, .. } if self.may_name_arches(node) => {
                    let text = self.parsed.text(node);
                    found.reported.push(format!("line {line}: {text} is no plain list of architectures"));
                }
                Origin::Unknown if self.is_put_together(value) => {
                    let text = self.parsed.text(value);
                    let what = "is put together: see to it that it holds what is wanted";
                    found.reported.push(format!("line {line}: {text} {what}"));
                }
                origin @ (Origin::Machine | Origin::Unknown) if is_computed(value) => {
                    found.remarks.push(format!("line {line} {}", elsewhere(origin, self.parsed)));
                }
                _ => {}
            }
        }
    }

    /// Whether an expression holds strings that name architectures.
    fn is_put_together(&self, value: Node<'_>) -> bool {
        let names_one =
            |node: Node<'_>| self.bare_elements(node).iter().any(|element| element.flag.is_some());
        descendants(value).any(|node| node.kind() == "string" && names_one(node))
    }

    /// Lists within command lines, which are not as they should be: `"TORCH_CUDA_ARCH_LIST=7.0 pip install ."`.
    pub(super) fn in_commands(&self) -> Vec<String> {
        let offsets = self.parsed.offsets_of(GIVEN);
        let strings =
            descendants_holding(self.parsed.root(), &offsets).filter(|node| node.kind() == "string");
        let told = |node: Node<'_>| {
            let is_text = self.parsed.is_bare_string(&node.byte_range()) || is_description(node, self.parsed);
            let codes = given(&self.parsed.text(node));
            let is_right = codes.is_empty() || self.are_right(&codes);
            let line = line_of(&self.parsed.bytes, node.start_byte());
            let what = "gives TORCH_CUDA_ARCH_LIST within a command: change it by hand";
            (!is_text && !is_right && !is_told(node, self.parsed)).then(|| format!("line {line} {what}"))
        };
        strings.filter_map(told).collect()
    }
}

/// Whether a string is what a package index shows: `"long_description": "..."`, `long_description="..."`.
fn is_description(node: Node<'_>, parsed: &Parsed) -> bool {
    let field = |name| node.parent().and_then(|parent| parent.child_by_field_name(name));
    let name = field("key").or_else(|| field("name")).or_else(|| field("left"));
    name.is_some_and(|name| parsed.text(name).to_ascii_lowercase().contains("description"))
}

/// Whether a value is no constant, such as None.
fn is_computed(value: Node<'_>) -> bool {
    !matches!(value.kind(), "none" | "true" | "false" | "string" | "integer")
}

/// The architectures that a command line gives PyTorch.
fn given(text: &str) -> Vec<Code> {
    let Some((_, behind)) = text.split_once(GIVEN) else { return Vec::new() };
    let value = match behind.chars().next() {
        Some(quote @ ('"' | '\'')) => behind[1..].split(quote).next(),
        _ => behind.split([' ', '"', '\'', '\n']).next(),
    };
    let words = value.unwrap_or_default().split([';', ' ', ',']).filter(|word| word.contains('.'));
    words.flat_map(|word| parse_codes(word.trim_end_matches('\\')).unwrap_or_default()).collect()
}

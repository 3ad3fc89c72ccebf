//! Where the lanes of a warp may part in CUDA, as far as one function tells.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use tree_sitter::Node;

use super::condition::scope_of;
use crate::engine::syntax::language::{Parsed, ancestors, descendants};

/// A name that speaks of a lane or a thread: `lane_id`, `warpLane`, `tid`; not `planes`.
static LANE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("^threadIdx$|(^|_)(?i:lane|tid)([^s]|$)|[a-z](Lane|Tid)([^s]|$)").ok());
/// What makes the number of a warp of that of a thread: ` / 32`, ` >> 5`, `) / WARP_SIZE`.
static OF_WARP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(\.[xyz])?[\s)]*(/\s*(32|\w*(?i:warp)\w*)|>>\s*(5|\w*(?i:warp)\w*))\b").ok()
});
static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b[A-Za-z_]\w*").ok());

const LOOPS: [&str; 4] = ["for_statement", "while_statement", "do_statement", "for_range_loop"];
/// The same for all threads of a block.
const SAME: [&str; 5] = ["blockIdx", "blockDim", "gridDim", "warpSize", "NULL"];

/// Whether what stands somewhere is computed from the number of a thread, in the function around; the number of its warp
/// is the same for all lanes.
pub(super) fn varies(range: &Range<usize>, parsed: &Parsed) -> bool {
    let scope = scope_of(range, parsed);
    let Some(function) = parsed.node_at(&scope) else { return false };
    let assigned: Vec<(String, String)> =
        descendants(function).filter_map(|node| assignment(node, parsed)).collect();
    let mut names: Vec<&str> = Vec::new();
    loop {
        let new = |(name, value): &&(String, String)| {
            !names.contains(&name.as_str()) && speaks_of_lanes(value, &names)
        };
        let more: Vec<&str> = assigned.iter().filter(new).map(|(name, _)| name.as_str()).collect();
        if more.is_empty() {
            return speaks_of_lanes(&String::from_utf8_lossy(&parsed.bytes[range.clone()]), &names);
        }
        names.extend(more);
    }
}

/// `int x = value`, `x = value`, `x[1] += value`: the name and the value.
fn assignment(node: Node<'_>, parsed: &Parsed) -> Option<(String, String)> {
    let (name, value) = match node.kind() {
        "init_declarator" => ("declarator", "value"),
        "assignment_expression" => ("left", "right"),
        _ => return None,
    };
    let (target, value) = (node.child_by_field_name(name)?, node.child_by_field_name(value)?);
    let name = descendants(target).find(|one| one.kind() == "identifier")?;
    Some((parsed.text(name), parsed.text(value)))
}

fn speaks_of_lanes(text: &str, names: &[&str]) -> bool {
    let matches = |regex: &LazyLock<Option<Regex>>, text: &str| {
        regex.as_ref().is_some_and(|regex| regex.is_match(text))
    };
    let mut words = WORD.iter().flat_map(|word| word.find_iter(text));
    words.any(|word| {
        let counts = names.contains(&word.as_str()) || matches(&LANE, word.as_str());
        counts && !matches(&OF_WARP, &text[word.end()..])
    })
}

/// Whether lanes may have left before a place: by a `return`, `break` or `continue` in front of it, or in a loop around
/// both, under a condition that need not be the same for all; or by the end of a loop that a macro makes of the threads.
pub(super) fn is_behind_exit(range: &Range<usize>, parsed: &Parsed) -> bool {
    is_in_loop_of_macro(range, parsed) || is_behind_statement(range, parsed)
}

/// `CUDA_KERNEL_LOOP(i, n) { … }`: the last threads leave it first.
fn is_in_loop_of_macro(range: &Range<usize>, parsed: &Parsed) -> bool {
    let is_macro = |block: Node<'_>| {
        let before = parsed.bytes[..block.start_byte()].trim_ascii_end();
        let head = before.rsplit(|byte| matches!(byte, b';' | b'{' | b'}')).next().unwrap_or_default();
        let name = head.split(|byte| *byte == b'(').next().unwrap_or_default().trim_ascii();
        let name = name.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
        head.ends_with(b")") && name.ends_with(b"KERNEL_LOOP")
    };
    let mut blocks = parsed.node_at(range).into_iter().flat_map(ancestors);
    blocks.any(|node| node.kind() == "compound_statement" && is_macro(node))
}

fn is_behind_statement(range: &Range<usize>, parsed: &Parsed) -> bool {
    let scope = scope_of(range, parsed);
    let Some(function) = parsed.node_at(&scope) else { return false };
    let is_exit = |node: &Node<'_>| {
        matches!(node.kind(), "return_statement" | "break_statement" | "continue_statement")
            && !(node.start_byte() <= range.start && range.end <= node.end_byte())
    };
    let mut exits = descendants(function).filter(is_exit);
    exits.any(|exit| leaves(exit, range) && parts(exit, function, parsed))
}

/// Whether what an exit leaves holds a place that is run after it.
fn leaves(exit: Node<'_>, range: &Range<usize>) -> bool {
    let around = |node: &Node<'_>| node.start_byte() <= range.start && range.end <= node.end_byte();
    let is_loop = |node: &Node<'_>| LOOPS.contains(&node.kind());
    let before = exit.end_byte() <= range.start;
    let mut outer = ancestors(exit);
    match exit.kind() {
        "return_statement" => {
            let lambda = |node: Node<'_>| node.kind() == "lambda_expression" && !around(&node);
            !ancestors(exit).any(lambda) && (before || outer.any(|node| is_loop(&node) && around(&node)))
        }
        "continue_statement" => before && outer.find(is_loop).is_some_and(|node| around(&node)),
        _ => {
            let owner = outer.find(|node| is_loop(node) || node.kind() == "switch_statement");
            owner.is_some_and(|node| is_loop(&node) && around(&node))
        }
    }
}

/// Whether lanes may part at a condition that an exit stands under.
fn parts(exit: Node<'_>, function: Node<'_>, parsed: &Parsed) -> bool {
    let within = ancestors(exit).take_while(|node| node.id() != function.id());
    let choices = within.filter(|node| matches!(node.kind(), "if_statement" | "switch_statement"));
    let mut conditions = choices.filter_map(|node| node.child_by_field_name("condition"));
    conditions.any(|condition| !is_same_for_all(condition, function, parsed))
}

/// Whether an expression speaks of nothing but constants, the grid and the parameters of a kernel.
fn is_same_for_all(expression: Node<'_>, function: Node<'_>, parsed: &Parsed) -> bool {
    let parameters = kernel_parameters(function, parsed);
    let mut names = descendants(expression).filter(|node| node.kind() == "identifier");
    names.all(|name| {
        let name = parsed.text(name);
        let is_constant = !name.bytes().any(|byte| byte.is_ascii_lowercase());
        is_constant || SAME.contains(&name.as_str()) || parameters.contains(&name)
    })
}

/// The names of the parameters of a `__global__` function.
fn kernel_parameters(function: Node<'_>, parsed: &Parsed) -> Vec<String> {
    let (Some(declarator), Some(body)) =
        (function.child_by_field_name("declarator"), function.child_by_field_name("body"))
    else {
        return Vec::new();
    };
    let start = parsed.bytes[..function.start_byte()].iter().rposition(|byte| matches!(byte, b';' | b'}'));
    let head = &parsed.bytes[start.unwrap_or_default()..body.start_byte()];
    if memchr::memmem::find(head, b"__global__").is_none() {
        return Vec::new();
    }
    let parameters = descendants(declarator).filter(|node| node.kind() == "parameter_declaration");
    let declared = parameters.filter_map(|node| node.child_by_field_name("declarator"));
    let names = declared.filter_map(|node| descendants(node).find(|one| one.kind() == "identifier"));
    names.map(|name| parsed.text(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    /// Of each `$(…)` in the body of a kernel or another function, whether something holds for it.
    fn each(text: &str, holds: fn(&Range<usize>, &Parsed) -> bool) -> Vec<bool> {
        let parsed = Parsed::new(Language::Cpp, text.replace('$', "S").as_bytes().into()).expect("parses");
        let starts = text.match_indices("$(").map(|(at, _)| at);
        starts
            .map(|at| at..at + text[at..].find(')').expect("an end") + 1)
            .map(|range| holds(&range, &parsed))
            .collect()
    }

    fn varying(body: &str) -> Vec<bool> {
        each(&format!("__global__ void f(int *x, int n) {{\n{body}\n}}\n"), varies)
    }

    fn behind(body: &str) -> Vec<bool> {
        each(&format!("__global__ void f(int *x, int n) {{\n{body}\n}}\n"), is_behind_exit)
    }

    #[test]
    fn what_is_computed_from_a_thread_varies() {
        assert_eq!(varying("$(threadIdx.x); $(lane_id); $(warpLane + 1); $(tid);"), [true; 4]);
        assert_eq!(varying("$(n); $(blockIdx.x); $(plane); $(num_lanes); $(threadIdx.x / 32);"), [false; 5]);
        assert_eq!(varying("int i = blockIdx.x * blockDim.x + threadIdx.x; int j = i * 2; $(x[j]);"), [true]);
        assert_eq!(varying("int k; k = threadIdx.x; $(k < n);"), [true]);
        assert_eq!(
            varying("int i = blockIdx.x + threadIdx.x; int warp = (i) >> 5; $(warp); $(i / WARP_SIZE);"),
            [false; 2]
        );
        assert_eq!(varying("for (int i = 16; i > 0; i /= 2) $(i);"), [false]);
    }

    #[test]
    fn an_early_return_parts_the_lanes_where_its_condition_may() {
        assert_eq!(
            behind("int i = threadIdx.x; $(0); if (i >= n) return; $(1); if (n > 3) { $(2); }"),
            [false, true, true]
        );
        assert_eq!(behind("if (n == 0 || blockIdx.x >= MAX) return; $(0);"), [false]);
        assert_eq!(behind("if (n > 3) { if (x[threadIdx.x]) { n = 1; return; } } $(0);"), [true]);
        assert_eq!(behind("auto g = [&] { if (x[threadIdx.x]) return; }; $(0);"), [false]);
        assert_eq!(behind("for (;;) { $(0); if (x[threadIdx.x]) return; } return;"), [true]);
        let device = "__device__ int f(int n) { if (n > 3) return 0; return $(1); }\n";
        assert_eq!(each(device, is_behind_exit), [true]);
    }

    #[test]
    fn break_and_continue_part_the_lanes_of_their_loop() {
        let each = "for (int k = 0; k < n; k++) { $(0); if (x[threadIdx.x]) continue; $(1); } $(2);";
        assert_eq!(behind(each), [false, true, false]);
        let all = "while (n--) { $(0); if (x[threadIdx.x]) break; $(1); } $(2);";
        assert_eq!(behind(all), [true, true, false]);
        assert_eq!(behind("CUDA_1D_KERNEL_LOOP(i, n) { int y = 1; $(0); } $(1);"), [true, false]);
        assert_eq!(
            behind("int y = 1;\n#pragma unroll\nCUDA_KERNEL_LOOP(i, f(n))\n{ if (n) { $(0); } }"),
            [true]
        );
        assert_eq!(behind("for (;;) { switch (x[threadIdx.x]) { case 0: break; } $(0); }"), [false]);
    }
}

//! Includes that come with an op: once in each file that it changes.

use crate::engine::edit::Edits;
use crate::engine::syntax::includes::{Condition, Include, conditions, guard, includes};
use crate::engine::syntax::lexed::Lexed;
use crate::engine::syntax::tokens::Kind;
use crate::engine::syntax::{DeadCode, Passes, style};

/// What a changed file includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `<cuda/std/functional>`
    pub header: String,
    /// The places that need it; empty: it is not known which do.
    pub places: Vec<usize>,
}

/// Adds to what a file includes; a header that is wanted already is wanted for more places.
pub fn want(all: &mut Vec<Wanted>, more: impl IntoIterator<Item = Wanted>) {
    for Wanted { header, places } in more {
        match all.iter_mut().find(|wanted| wanted.header == header) {
            Some(wanted) => wanted.places.extend(places),
            None => all.push(Wanted { header, places }),
        }
    }
}

/// Adds to the edits of a file the includes that the changed file still lacks.
pub fn add(bytes: &[u8], edits: &mut Edits, wanted: &[Wanted], passes: &Passes) {
    let edited: Vec<usize> = edits.iter().map(|edit| edit.range.start).collect();
    for Wanted { header, places } in wanted {
        let around = conditions_around(bytes, if places.is_empty() { &edited } else { places });
        let new = edits.apply(bytes);
        let ground = Ground { dead: DeadCode::of(&new, passes), around: around.as_deref() };
        if let Some((at, text)) = insertion(&new, header, &ground) {
            edits.insert_in_result(at, &text);
        }
    }
}

/// Where the line would stand that includes a header for some places; none where the file has it already.
pub(super) fn line_for(bytes: &[u8], header: &str, (places, dead): (&[usize], &DeadCode)) -> Option<usize> {
    let around = conditions_around(bytes, places);
    let ground = Ground { dead: dead.clone(), around: around.as_deref() };
    let (at, _) = insertion(bytes, header, &ground)?;
    Some(at.saturating_sub(1))
}

/// What decides where an include counts, and where it goes.
struct Ground<'a> {
    dead: DeadCode,
    /// The conditions around all that needs it, outer ones first; none where nothing does.
    around: Option<&'a [Condition]>,
}

impl Ground<'_> {
    /// Whether what stands below some conditions is there wherever it is needed.
    fn covers(&self, conditions: &[Condition]) -> bool {
        self.around.is_none_or(|around| conditions.iter().all(|condition| around.contains(condition)))
    }
}

/// The conditions that all of these places stand below; none where there is no place.
pub(super) fn conditions_around(bytes: &[u8], places: &[usize]) -> Option<Vec<Condition>> {
    let lexed = Lexed::of(bytes);
    let guard = guard(&lexed);
    let each = places.iter().map(|place| conditions(&lexed, guard, *place));
    each.reduce(|common, one| common.into_iter().filter(|condition| one.contains(condition)).collect())
}

/// Where an include goes, and the lines of it; none where the file has it already. It goes below a condition only with
/// other includes, where all that needs it stands below that condition too.
fn insertion(bytes: &[u8], include: &str, ground: &Ground<'_>) -> Option<(usize, Vec<u8>)> {
    let lexed = Lexed::of(bytes);
    let path = include.trim_matches(['<', '>', '"']).as_bytes();
    let includes = includes(&lexed);
    let there = |there: &Include| {
        there.path == path
            && !ground.dead.holds(there.end.saturating_sub(1))
            && ground.covers(&there.conditions)
    };
    if includes.iter().any(there) {
        return None;
    }
    let fits = |there: &&Include| {
        let bare = there.conditions.is_empty();
        there.top && (bare || (ground.around.is_some() && ground.covers(&there.conditions)))
    };
    let deepest = includes.iter().filter(fits).map(|there| there.conditions.len()).max().unwrap_or_default();
    let places = || includes.iter().rev().filter(fits).filter(|there| there.conditions.len() == deepest);
    let family = |path: &[u8]| path.split(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let of_family = places().find(|there| family(&there.path) == family(path));
    let alike = places().find(|there| there.system == include.starts_with('<'));
    match of_family.or(alike).or(places().next()) {
        Some(after) => Some(beside(bytes, include, after)),
        None => Some(alone(&lexed, include)),
    }
}

/// A line after another include's, written as that one is.
fn beside(bytes: &[u8], include: &str, after: &Include) -> (usize, Vec<u8>) {
    let newline = style::newline(bytes).as_bytes();
    let line = [&after.head, include.as_bytes()].concat();
    let ended = bytes[..after.end].ends_with(b"\n");
    (after.end, if ended { [&line, newline].concat() } else { [newline, &line].concat() })
}

/// A paragraph after the comment, the `#pragma once` or the guard that a file begins with.
fn alone(lexed: &Lexed<'_>, include: &str) -> (usize, Vec<u8>) {
    let bytes = lexed.bytes;
    let newline = style::newline(bytes).as_bytes();
    let (at, first) = match opening_end(lexed) {
        Some(end) => (end, false),
        None => (if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }, true),
    };
    let mut text = Vec::new();
    if !first {
        let ended = bytes[..at].ends_with(b"\n");
        text.extend_from_slice(&newline.repeat(if ended { 1 } else { 2 }));
    }
    text.extend_from_slice(b"#include ");
    text.extend_from_slice(include.as_bytes());
    let next = &bytes[at..style::line_end(bytes, at)];
    if at < bytes.len() {
        text.extend_from_slice(&newline.repeat(if style::is_blank(next) { 1 } else { 2 }));
    } else if first {
        text.extend_from_slice(newline);
    }
    (at, text)
}

/// Where the lines end that belong before every include.
fn opening_end(lexed: &Lexed<'_>) -> Option<usize> {
    let bytes = lexed.bytes;
    let guard = guard(lexed);
    let mut end = None;
    for (index, token) in lexed.all.iter().enumerate() {
        let line_end = style::line_end(bytes, token.range.end);
        let next = &bytes[line_end..style::line_end(bytes, line_end)];
        match (token.kind, token.directive) {
            (Kind::Comment, None) if style::is_blank(next) => end = Some(line_end),
            (Kind::Comment, _) => {}
            (_, Some(directive)) if is_opening(lexed, directive, guard) => {
                let last = lexed.directives[directive].end - 1;
                if index == last {
                    end = Some(line_end);
                }
            }
            _ => break,
        }
    }
    end
}

/// Whether a directive is `#pragma once`, or one of the two that begin the guard.
fn is_opening(lexed: &Lexed<'_>, directive: usize, guard: Option<usize>) -> bool {
    let once = lexed.of_directive(directive).get(2).is_some_and(|index| lexed.text(*index) == b"once");
    (lexed.keyword(directive) == b"pragma" && once)
        || guard.is_some_and(|guard| directive == guard || directive == guard + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::catalogue::Catalogue;
    use crate::engine::edit::Edit;
    use crate::engine::environment::Environment;

    const FUNCTIONAL: &str = "<cuda/std/functional>";

    fn wanted(header: &str) -> Vec<Wanted> {
        vec![Wanted { header: header.to_string(), places: Vec::new() }]
    }

    fn passes() -> Passes {
        Passes::of(&Environment::default(), Catalogue::shipped())
    }

    /// The text with an include added, twice.
    fn with(include: &str, text: &str) -> String {
        let added = |text: &str| {
            let mut edits = Edits::new();
            add(text.as_bytes(), &mut edits, &wanted(include), &passes());
            String::from_utf8(edits.apply(text.as_bytes())).expect("utf-8")
        };
        let once = added(text);
        assert_eq!(added(&once), once);
        once
    }

    fn functional(text: &str) -> String {
        with(FUNCTIONAL, text)
    }

    #[test]
    fn a_definition_that_may_be_there_is_no_guard() {
        let text = "#ifndef INFINITY\n#define INFINITY 1e30f\n#endif\n\nint a() {}\n";
        assert_eq!(with("<cstdint>", text), format!("#include <cstdint>\n\n{text}"));
        let guarded = "#ifndef A_H\n#define A_H\nint a();\n#endif  // A_H\n/* end */\n";
        let wanted = guarded.replace("#define A_H\n", "#define A_H\n\n#include <cstdint>\n\n");
        assert_eq!(with("<cstdint>", guarded), wanted);
    }

    #[test]
    fn an_include_follows_its_family() {
        let text = "#include <cub/cub.cuh>\n#include <cuda/atomic>\n#include <vector>\n\nint a() {}\n";
        let after = |line: &str| text.replace(line, &format!("{line}#include <cuda/std/functional>\n"));
        assert_eq!(functional(text), after("#include <cuda/atomic>\n"));
        let alike =
            "#include \"a.h\"\n#  include <vector> // why\nusing namespace at;\n#include \"b.h\"\nint a;\n";
        let wanted = alike.replace("// why\n", "// why\n#  include <cuda/std/functional>\n");
        assert_eq!(functional(alike), wanted);
        let quoted = "#include \"a.h\"\n#include \"b.h\"\n";
        assert_eq!(functional(quoted), format!("{quoted}#include <cuda/std/functional>\n"));
        assert_eq!(with("\"c.h\"", quoted), format!("{quoted}#include \"c.h\"\n"));
    }

    #[test]
    fn an_include_that_is_there_counts_in_any_spelling() {
        for there in
            ["#include \"cuda/std/functional\"\n", "#ifdef A\n# include <cuda/std/functional>\n#endif\n"]
        {
            assert_eq!(functional(there), there);
        }
        let dead = "#include <a.h>\n#if 0\n#include <cuda/std/functional>\n#endif\n// #include <cuda/std/functional>\n";
        assert_eq!(functional(dead), dead.replacen("<a.h>\n", "<a.h>\n#include <cuda/std/functional>\n", 1));
    }

    #[test]
    fn an_include_never_goes_into_a_condition_or_into_code() {
        let text = "#include <a.h>\n#if A\n#include <cuda/atomic>\n#endif\nint f() { return 1; }\n#include <cuda/b.inl>\n";
        assert_eq!(functional(text), text.replacen("<a.h>\n", "<a.h>\n#include <cuda/std/functional>\n", 1));
        let guarded = "// c\n#ifndef X_H\n#define X_H\n#include <a.h>\n#endif  // X_H\n";
        assert_eq!(
            functional(guarded),
            guarded.replace("<a.h>\n", "<a.h>\n#include <cuda/std/functional>\n")
        );
    }

    #[test]
    fn an_include_stands_below_the_condition_of_all_that_needs_it() {
        let changed = |text: &str, old: &str| {
            let mut edits = Edits::new();
            for (at, _) in text.match_indices(old) {
                edits.insert(Edit { range: at..at + old.len(), text: b"new".to_vec() }).expect("no overlap");
            }
            add(text.as_bytes(), &mut edits, &wanted(FUNCTIONAL), &passes());
            String::from_utf8(edits.apply(text.as_bytes())).expect("utf-8").replace("new", old)
        };
        let line = "#include <cuda/std/functional>\n";
        let text = "#include <a.h>\n#ifdef GPU\n#include <b.h>\n#endif\n#ifdef GPU\nvoid f() { x(); }\n#endif\nint g() { y(); }\n";
        assert_eq!(changed(text, "x"), text.replace("<b.h>\n", &format!("<b.h>\n{line}")));
        assert_eq!(changed(text, "y"), text.replace("<a.h>\n", &format!("<a.h>\n{line}")));
        assert_eq!(changed(text, "()"), text.replace("<a.h>\n", &format!("<a.h>\n{line}")));
        let there = text.replace("<b.h>", "<cuda/std/functional>");
        assert_eq!(changed(&there, "x"), there);
        assert_eq!(changed(&there, "y"), there.replace("<a.h>\n", &format!("<a.h>\n{line}")));
        let other = text.replacen("#ifdef GPU", "#ifndef GPU", 1);
        assert_eq!(changed(&other, "x"), other.replace("<a.h>\n", &format!("<a.h>\n{line}")));
    }

    #[test]
    fn a_file_without_includes_gets_it_after_its_opening() {
        let line = "#include <cuda/std/functional>";
        assert_eq!(functional("int f() {}\n"), format!("{line}\n\nint f() {{}}\n"));
        assert_eq!(functional("// about f\nint f() {}\n"), format!("{line}\n\n// about f\nint f() {{}}\n"));
        assert_eq!(
            functional("// license\n\nint f() {}\n"),
            format!("// license\n\n{line}\n\nint f() {{}}\n")
        );
        let once = "/* license\n */\n#pragma once\nint f();\n";
        assert_eq!(functional(once), once.replace("once\n", &format!("once\n\n{line}\n\n")));
        let guard = "#if !defined(A)\n#define A 1\n\nint f();\n#endif";
        assert_eq!(functional(guard), guard.replace("A 1\n", &format!("A 1\n\n{line}\n")));
        assert_eq!(
            functional("#ifdef A\nint f();\n#endif\n"),
            format!("{line}\n\n#ifdef A\nint f();\n#endif\n")
        );
        assert_eq!(functional(""), format!("{line}\n"));
        assert_eq!(functional("// c"), format!("// c\n\n{line}"));
    }

    #[test]
    fn newlines_and_a_byte_order_mark_stay() {
        let line = "#include <cuda/std/functional>";
        let crlf = "#include <a.h>\r\nint a;\r\n";
        assert_eq!(functional(crlf), format!("#include <a.h>\r\n{line}\r\nint a;\r\n"));
        assert_eq!(functional("#include <a.h>"), format!("#include <a.h>\n{line}"));
        assert_eq!(functional("\u{feff}int a;\r\n"), format!("\u{feff}{line}\r\n\r\nint a;\r\n"));
    }

    #[test]
    fn includes_go_by_the_text_that_other_edits_leave() {
        let text = b"#include <THC/THC.h>\nint a;\n";
        let mut edits = Edits::new();
        edits.insert(Edit { range: 9..20, text: b"<ATen/cuda/CUDAContext.h>".to_vec() }).expect("one edit");
        let wanted = ["<ATen/cuda/CUDAContext.h>", "<ATen/ceil_div.h>"].map(wanted).concat();
        add(text, &mut edits, &wanted, &passes());
        let new = edits.apply(text);
        assert_eq!(new, b"#include <ATen/cuda/CUDAContext.h>\n#include <ATen/ceil_div.h>\nint a;\n");
        assert_eq!(edits.reverse(text).apply(&new), text);
    }
}

//! The direction of the modules, read from the sources: who may name whom, who prints, how long files and functions
//! are. The reader is a small lexer: comments and literals are blanked, `use` trees are spelt out. It does not see
//! what a macro of another crate makes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 60;
const LONG_FUNCTION_LINES: usize = 40;

/// What the files of a module must not name.
const FORBIDDEN: [(&str, &[&str]); 5] = [
    ("engine", &["git2", "clap", "ureq", "std::fs", "std::env", "std::process", "std::net"]),
    ("engine", &["crate::checkout", "crate::deliver", "crate::kernels", "crate::cli"]),
    ("checkout", &["crate::cli"]),
    ("deliver", &["crate::cli"]),
    ("kernels", &["crate::cli"]),
];

/// The only modules that may name what begins with `tree_sitter`.
const PARSING: [&str; 3] = ["engine::syntax", "engine::pattern", "engine::ops"];

/// The only module that prints, and that says a person agreed to what was shown.
const PRINTING: &str = "cli::terminal";

/// A source file: its path from `src/`, and its text.
#[derive(Clone, Copy)]
struct File<'a> {
    path: &'a str,
    text: &'a str,
}

/// Everything that is wrong with a file.
fn faults(file: File<'_>) -> Vec<String> {
    let (code, module) = (code_only(file.text), module_of(file.path));
    let lines = file.text.lines().count();
    let mut faults = Vec::new();
    for (at, name) in names(&code, &module) {
        if !may_name(&module, &name) {
            faults.push(format!("{}:{} names {name}", file.path, line_of(&code, at)));
        }
    }
    for found in PRINT.find_iter(&code).filter(|_| !is_within(&module, PRINTING)) {
        faults.push(format!("{}:{} prints: {}", file.path, line_of(&code, found.start()), found.as_str()));
    }
    if lines > FILE_LINES {
        faults.push(format!("{} has {lines} lines, more than {FILE_LINES}", file.path));
    }
    for function in functions(&code).iter().filter(|function| function.lines > FUNCTION_LINES) {
        faults.push(format!("{}:{} {function}, more than {FUNCTION_LINES}", file.path, function.line));
    }
    faults
}

static PRINT: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:print|println|eprint|eprintln|dbg)!"));
static USE: LazyLock<Regex> = LazyLock::new(|| regex(r"\buse\s+([^;]+);"));
static PATH: LazyLock<Regex> = LazyLock::new(|| regex(r"\b[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| regex(r"\bfn\s+(\w+)"));

fn regex(text: &str) -> Regex {
    Regex::new(text).expect(text)
}

fn may_name(module: &str, name: &str) -> bool {
    let forbidden = FORBIDDEN.iter().filter(|(within, _)| is_within(module, within));
    let is_forbidden = forbidden.flat_map(|(_, paths)| *paths).any(|path| is_within(name, path));
    let parses = name.split("::").next().is_some_and(|first| first.starts_with("tree_sitter"));
    let prints = matches!(name.rsplit("::").next(), Some("stdout" | "stderr"));
    let approves = is_within(name, "Approval::given") || name.ends_with("::Approval::given");
    !is_forbidden
        && (!parses || PARSING.iter().any(|owner| is_within(module, owner)))
        && ((!prints && !approves) || is_within(module, PRINTING))
}

/// Whether a path is another one or lies below it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// `engine::ops` for `engine/ops/mod.rs`, `cli::terminal` for `cli/terminal.rs`, nothing for `lib.rs`.
fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs").trim_end_matches("mod").trim_end_matches('/');
    if matches!(path, "lib" | "main") { String::new() } else { path.replace('/', "::") }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// All paths of two parts and more, `use` trees spelt out, `self` and `super` resolved: where, and what.
fn names(code: &str, module: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for found in USE.captures_iter(code) {
        let at = found.get(0).map_or(0, |whole| whole.start());
        names.extend(spelt_out("", &found[1]).into_iter().map(|name| (at, resolved(&name, module))));
    }
    for found in PATH.find_iter(code) {
        let name: String = found.as_str().split_whitespace().collect();
        names.push((found.start(), resolved(&name, module)));
    }
    names
}

/// The paths of a `use` tree: `a::{b, c::{self, d}}` is `a::b`, `a::c`, `a::c::d`.
fn spelt_out(before: &str, tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or(tree).trim();
        let whole: String = format!("{before}{name}").split_whitespace().collect();
        return vec![whole.trim_end_matches("::self").trim_end_matches("::*").to_string()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let before = format!("{before}{}", head.trim());
    split_at_commas(inner).iter().flat_map(|part| spelt_out(&before, part)).collect()
}

fn split_at_commas(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in text.chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match (letter, depth) {
            (',', 0) => parts.push(String::new()),
            _ => parts.last_mut().expect("one").push(letter),
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// `crate::…` for what `self` and `super` begin. A `mod tests { … }` within the file counts as the file itself, so
/// that its `super` goes one step too far up: towards a fault, never past one.
fn resolved(name: &str, module: &str) -> String {
    let mut here: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    let mut rest: Vec<&str> = name.split("::").filter(|part| !part.is_empty()).collect();
    if !matches!(rest.first(), Some(&"self" | &"super")) {
        return rest.join("::");
    }
    while matches!(rest.first(), Some(&"self" | &"super")) {
        if rest.remove(0) == "super" {
            here.pop();
        }
    }
    ["crate"].into_iter().chain(here).chain(rest).collect::<Vec<_>>().join("::")
}

/// A function and how long it is, from its `fn` to its closing brace.
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

impl std::fmt::Display for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` has {} lines", self.name, self.lines)
    }
}

fn functions(code: &str) -> Vec<Function> {
    let function = |found: regex::Captures<'_>| {
        let start = found.get(0)?.start();
        let lines = code[start..start + body_end(&code[start..])?].lines().count();
        Some(Function { name: found[1].to_string(), line: line_of(code, start), lines })
    };
    FUNCTION.captures_iter(code).filter_map(function).collect()
}

/// Where the body of the function ends that the text begins with; nothing where it has none.
fn body_end(text: &str) -> Option<usize> {
    let (mut brackets, mut braces) = (0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' if braces == 1 => return Some(at + 1),
            '}' => braces -= 1,
            ';' if brackets == 0 && braces == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The text with comments, strings and characters blanked; every newline stays.
fn code_only(text: &str) -> String {
    static NO_CODE: LazyLock<Regex> = LazyLock::new(|| {
        let (line, block) = (r"//[^\n]*", r"(?s:/\*.*?\*/)");
        let raw = r####"(?s:\bb?r"[^"]*"|\bb?r#".*?"#|\bb?r##".*?"##)"####;
        let string = r##"(?s:"(?:\\.|[^"\\])*")"##;
        let letter = r"'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'";
        regex(&format!("{line}|{block}|{raw}|{string}|{letter}"))
    });
    let blank = |found: &regex::Captures<'_>| -> String {
        found[0].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }).collect()
    };
    NO_CODE.replace_all(text, blank).into_owned()
}

/// All files below `src/`: path to text.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut open) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(&root).expect("below src").to_string_lossy().replace('\\', "/");
                files.insert(name, std::fs::read_to_string(&path).expect("UTF-8"));
            }
        }
    }
    files
}

#[test]
fn the_sources_keep_to_the_architecture() {
    let sources = sources();
    for required in ["engine/mod.rs", "checkout/mod.rs", "cli/terminal.rs", "main.rs"] {
        assert!(
            sources.contains_key(required),
            "{required} is gone: is this test still about these sources?"
        );
    }
    let files = sources.iter().map(|(path, text)| File { path, text });
    let faults: Vec<String> = files.flat_map(faults).collect();
    for (path, text) in &sources {
        for function in functions(&code_only(text)).iter().filter(|one| one.lines > LONG_FUNCTION_LINES) {
            println!("warning: src/{path}:{} {function}", function.line);
        }
    }
    println!("{} files read", sources.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The faults of a text that lies at a path.
fn of(path: &str, text: &str) -> Vec<String> {
    faults(File { path, text })
}

#[test]
fn a_violation_is_found() {
    let found = [
        ("engine/ops/list.rs", "use std::{io, fs::{self, File}};", "engine/ops/list.rs:1 names std::fs"),
        (
            "engine/tag.rs",
            "fn f() {\n    std :: env\n    ::var(\"X\");\n}",
            "engine/tag.rs:2 names std::env::var",
        ),
        ("engine/tag.rs", "pub(crate) use git2::Oid;", "engine/tag.rs:1 names git2::Oid"),
        ("engine/plan/mod.rs", "use super::super::cli::style;", "names crate::cli::style"),
        ("engine/mod.rs", "use super::kernels as k;", "names crate::kernels"),
        ("checkout/http.rs", "fn f(t: &crate::cli::terminal::Terminal) {}", "names crate::cli::terminal"),
        ("kernels/host.rs", "use crate::{cli::style, engine};", "names crate::cli::style"),
        ("plan.rs", "use tree_sitter_cpp::LANGUAGE;", "names tree_sitter_cpp::LANGUAGE"),
        ("engine/plan/mod.rs", "fn f(n: tree_sitter::Node<'_>) {}", "names tree_sitter::Node"),
        ("checkout/cache.rs", "fn f() { let c = '\"'; eprintln!(\"{c}\"); }", "prints: eprintln!"),
        ("cli/apply.rs", "use std::io; fn f() { io::stdout().flush(); }", "names io::stdout"),
        ("cli/apply.rs", "use anstream::{stderr, AutoStream};", "names anstream::stderr"),
        ("cli/build/mod.rs", "fn f() { g(Approval::given()) }", "names Approval::given"),
        ("kernels/build/mod.rs", "use crate::kernels::build::Approval::given;", "Approval::given"),
    ];
    for (path, text, fault) in found {
        let faults = of(path, text);
        assert!(faults.iter().any(|found| found.contains(fault)), "{text}: {faults:?}");
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    let allowed = [
        ("engine/ops/list.rs", "use tree_sitter::Node;"),
        (
            "engine/tag.rs",
            "//! std::fs, println!\n/* git2::Oid */ const A: &str = \"std::fs \\\" eprintln!\";",
        ),
        ("engine/tag.rs", "const A: &str = r#\"use std::fs; \"git2::x\" \"#; fn f<'a>(a: &'a str) {}"),
        ("engine/tag.rs", "use std::fmt; use super::toolkit::Toolkit; mod tests { use super::*; }"),
        ("checkout/http.rs", "fn f() { command.stdout(Stdio::null()); output.stderr; std::fs::read(p); }"),
        ("cli/terminal.rs", "fn f() { std::io::stdout(); println!(); Approval::given(); }"),
        ("cli/apply.rs", "use crate::checkout::Checkout;"),
    ];
    for (path, text) in allowed {
        assert_eq!(of(path, text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn length_is_measured() {
    let long = format!("fn f(a: [u8; 4]) {{\n{}}}\n", "    g('}', \"{\");\n".repeat(FUNCTION_LINES));
    assert_eq!(of("a.rs", &long), ["a.rs:1 `f` has 62 lines, more than 60"]);
    let short = format!("trait T {{ fn f(a: [u8; 4]);\n fn g() {{}} }}\n{}", "// x\n".repeat(FILE_LINES - 2));
    assert_eq!(of("a.rs", &short), Vec::<String>::new());
    assert_eq!(of("a.rs", &format!("{short}\n")), ["a.rs has 501 lines, more than 500"]);
}

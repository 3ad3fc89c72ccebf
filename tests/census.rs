//! Every place where a renamed name stands is edited or explained: counted by a reader of its own, which shares no code
//! with the engine.
//!
//! It runs over the shipped fixtures; over a folder of checkouts where `MAMBAPATCH_CORPUS` names one.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::environment::Environment;
use mambapatch::engine::ops::files::Files;
use mambapatch::engine::ops::rename::RenameOp;
use mambapatch::engine::ops::right_for::RightFor;
use mambapatch::engine::ops::{Op, OpPlan};
use mambapatch::engine::patchset::shipped;
use mambapatch::engine::source::Sources;
use mambapatch::engine::syntax::{Language, Passes};
use regex::bytes::Regex;

/// Frequent names, which no patch renames, in places of all kinds.
const OTHERS: [&str; 8] = [
    "at::Tensor",
    "torch::Tensor",
    "cudaStream_t",
    "TORCH_CHECK",
    "AT_ERROR",
    "THCudaCheck",
    "std::min",
    "cub::Sum",
];

/// What a reader of this file makes of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Code,
    Comment,
    Literal,
}

static TEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?s-u)(?P<comment>//(?:[^\\\n]|\\\r?\n|\\)*|/\*.*?(?:\*/|\z))|(?P<raw>\b(?:u8|[uUL])?R"[^()\\\s"]{0,16}\()|(?P<number>\b[0-9](?:'?[A-Za-z0-9_.])*)|(?P<literal>"(?:[^"\\\n]|\\\r?\n|\\.)*"|'(?:[^'\\\n]|\\\r?\n|\\.)*')"#,
    )
    .expect("an expression")
});

/// What each byte of a C++ text is. Comments and literals are found by regular expressions, raw strings by their ends.
fn what_bytes_are(text: &[u8]) -> Vec<Is> {
    let mut is = vec![Is::Code; text.len()];
    let mut at = 0;
    while let Some(found) = TEXT.captures_at(text, at) {
        let whole = found.get(0).expect("the whole");
        let mut end = whole.end();
        let kind = match () {
            () if found.name("comment").is_some() => Is::Comment,
            () if found.name("number").is_some() => Is::Code,
            () => Is::Literal,
        };
        if found.name("raw").is_some() {
            let quote = whole.as_bytes().iter().position(|byte| *byte == b'"').expect("a quote");
            let delimiter = &whole.as_bytes()[quote + 1..whole.len() - 1];
            let close = [b")", delimiter, b"\""].concat();
            let rest = text[end..].windows(close.len()).position(|window| window == close);
            end = rest.map_or(text.len(), |rest| end + rest + close.len());
        }
        is[whole.start()..end].fill(kind);
        at = end;
    }
    is
}

/// Where a name stands in a text, as whole words.
fn places(text: &[u8], name: &str) -> Vec<usize> {
    let spelt = regex::escape(name).replace("::", r"\s*::\s*");
    let spelt = Regex::new(&format!("(?-u){spelt}")).expect("an expression");
    let word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(byte) || *byte > 127)
    };
    let before = |at: usize| at.checked_sub(1).and_then(|at| text.get(at));
    let whole =
        |found: &regex::bytes::Match<'_>| !word(before(found.start())) && !word(text.get(found.end()));
    spelt.find_iter(text).filter(whole).map(|found| found.start()).collect()
}

/// How often a name stands in comments, in literals, and elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    code: usize,
    comment: usize,
    literal: usize,
}

/// The lines of a file on which the name stands, and what the places are.
fn counted(text: &[u8], name: &str) -> (Vec<usize>, Counts) {
    let (places, is) = (places(text, name), what_bytes_are(text));
    let mut counts = Counts::default();
    for place in &places {
        match is[*place] {
            Is::Code => counts.code += 1,
            Is::Comment => counts.comment += 1,
            Is::Literal => counts.literal += 1,
        }
    }
    let line = |at: &usize| 1 + text[..*at].iter().filter(|byte| **byte == b'\n').count();
    (places.iter().map(line).collect(), counts)
}

/// The same as a plan tells it.
fn told(plan: &OpPlan, path: &str) -> (Vec<usize>, Counts) {
    let edited = plan.sites.iter().filter(|_| !plan.edits.is_empty());
    let mut lines: Vec<usize> = edited.filter(|site| site.path == path).map(|site| site.line).collect();
    let mut counts = Counts { code: lines.len(), ..Counts::default() };
    // A bare word is no place of the qualified name.
    let left = plan.left.iter().filter(|left| left.site.path == path && !left.why.contains("`using`"));
    for left in left {
        lines.push(left.site.line);
        match left.why.as_str() {
            "comment" => counts.comment += 1,
            "string" | "raw string" | "character" => counts.literal += 1,
            _ => counts.code += 1,
        }
    }
    lines.sort_unstable();
    (lines, counts)
}

/// The files of a tree in a language that is parsed as C++.
fn sources(root: &Path) -> Sources {
    let (mut sources, mut open) = (Sources::new(), vec![root.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
            let name = path.strip_prefix(root).expect("below").to_string_lossy().replace('\\', "/");
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() && Language::of_path(&name) == Some(Language::Cpp) {
                sources.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    sources
}

/// All renames of the shipped sets, and those of names that no patch renames.
fn renames() -> Vec<RenameOp> {
    let mut texts = shipped::texts();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("patchsets");
    let sets = std::fs::read_dir(folder).expect("patchsets").map(|entry| entry.expect("an entry").path());
    let is_data = |set: &Path| set.ends_with("catalogue") || set.ends_with("diagnose");
    let shared = sets.filter(|set| !set.join("upstream.toml").exists() && !is_data(set));
    let shared: Vec<String> =
        shared.map(|set| format!("'{}'", set.file_name().expect("a name").display())).collect();
    let upstream = format!(
        "url = 'u'\ndistribution = 'd'\nmodule = 'm'\nfloor = '11.6'\ntested-through = '1.0'\npatches = []\nrecognise = []\n\
         uses = [{}]\n",
        shared.join(", ")
    );
    texts.insert("corpus/upstream.toml", &upstream, None);
    let sets = texts.load().unwrap_or_else(|error| panic!("{error}"));
    let ops = sets.upstreams.iter().flat_map(|upstream| &upstream.patches).flat_map(|patch| &patch.ops);
    let mut renames: Vec<RenameOp> = ops
        .filter_map(|op| match &op.op {
            Op::Rename(op) => Some(op.clone()),
            _ => None,
        })
        .collect();
    assert!(renames.iter().any(|op| op.from == "AT_CHECK"), "the sets still rename AT_CHECK");
    let everywhere = ["cu", "cuh", "cpp", "cc", "cxx", "c", "h", "hh", "hpp", "hxx", "inl"];
    let everywhere: Vec<String> = everywhere.iter().map(|ending| format!("**/*.{ending}")).collect();
    renames.extend(OTHERS.map(|from| RenameOp {
        files: Files::new(&everywhere).expect("globs"),
        from: from.to_string(),
        to: "other::renamed<>".to_string(),
        include: Vec::new(),
        right_for: RightFor::default(),
        otherwise: None,
        unless: Vec::new(),
        brought_by: Default::default(),
    }));
    renames
}

/// Plans one rename on a tree, counts, applies it, and plans it again; gives the faults and how many places there were.
fn check(op: &RenameOp, sources: &Sources, totals: &mut BTreeMap<String, [usize; 2]>) -> Vec<String> {
    let passes = Passes::of(&Environment::default(), Catalogue::shipped());
    let plan = op.plan(sources, &passes).expect("a plan");
    let mut faults = Vec::new();
    let mut after = sources.clone();
    for (path, bytes) in sources.iter().filter(|(path, _)| op.files.contains(path)) {
        let (expected, found) = (counted(bytes, &op.from), told(&plan, path));
        if expected != found {
            faults.push(format!("{path}: {} stands at {expected:?}, and {found:?} was told", op.from));
        }
        let total = totals.entry(op.from.clone()).or_default();
        total[0] += expected.0.len();
        if let Some(edits) = plan.edits.get(path) {
            total[1] += plan.sites.iter().filter(|site| site.path == *path).count();
            let new = edits.apply(bytes);
            if edits.reverse(bytes).apply(&new) != bytes[..] {
                faults.push(format!("{path}: {} cannot be taken back", op.from));
            }
            after.insert(path, new);
        }
    }
    let again = op.plan(&after, &passes).expect("a plan");
    if !again.edits.is_empty() {
        faults.push(format!("{} is renamed once more in {:?}", op.from, again.edits.keys().next()));
    }
    faults
}

fn check_trees(trees: &[(String, Sources)]) {
    let (mut faults, mut totals) = (Vec::new(), BTreeMap::new());
    for op in renames() {
        for (name, sources) in trees {
            faults
                .extend(check(&op, sources, &mut totals).into_iter().map(|fault| format!("{name}: {fault}")));
        }
    }
    for (name, [places, edited]) in totals {
        // Past the capture of the test runner, so that it is seen.
        let _ = writeln!(std::io::stderr(), "census: {name} stands at {places} places, {edited} are edited");
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_place_in_the_fixtures_is_edited_or_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let cases =
        folders(&root).into_iter().flat_map(|upstream| folders(&upstream)).map(|case| case.join("before"));
    check_trees(&trees(cases.collect()));
}

#[test]
#[ignore = "needs checkouts (MAMBAPATCH_CORPUS)"]
fn every_place_in_a_corpus_is_edited_or_explained() {
    let corpus = std::env::var_os("MAMBAPATCH_CORPUS").expect("MAMBAPATCH_CORPUS names a folder");
    check_trees(&trees(folders(Path::new(&corpus))));
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_dir()).collect()
}

fn trees(roots: Vec<PathBuf>) -> Vec<(String, Sources)> {
    roots.iter().map(|root| (root.display().to_string(), sources(root))).collect()
}

#[test]
fn the_reader_of_this_test_tells_code_from_text() {
    let text = br#"A // A
"A" 'A' 1'000 A R"x(A)" )x" A /* A */ A "\" A
A"#;
    let (lines, counts) = counted(text, "A");
    assert_eq!(lines, [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3]);
    assert_eq!(counts, Counts { code: 6, comment: 2, literal: 3 });
}

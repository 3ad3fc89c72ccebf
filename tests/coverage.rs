//! How much of real CUDA sources is read, and what is dead in them. `MAMBAPATCH_CORPUS` names folders, with `:` between
//! them; each folder in one is a project, and gets a line of the table. Without it nothing is measured.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::environment::Environment;
use mambapatch::engine::ops::files::Files;
use mambapatch::engine::source::{Sources, line_of};
use mambapatch::engine::syntax::census::{Name, Place};
use mambapatch::engine::syntax::tokens::{Kind, tokens};
use mambapatch::engine::syntax::{DeadCode, Language, Parsed, Passes};
use tree_sitter::{Node, Parser};

/// What a grammar made of some files.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    files: usize,
    places: usize,
    bytes: usize,
}

/// What the plain grammar made of some files, and what it made of them after the rewriting.
#[derive(Debug, Default, Clone, Copy)]
struct Total {
    files: usize,
    plain: Count,
    rewritten: Count,
}

impl Count {
    fn of((places, bytes): (usize, usize)) -> Self {
        Self { files: usize::from(places > 0), places, bytes }
    }

    fn add(&mut self, more: Self) {
        self.files += more.files;
        self.places += more.places;
        self.bytes += more.bytes;
    }

    fn cells(self) -> String {
        format!("{:>5} {:>6} {:>8}", self.files, self.places, self.bytes)
    }
}

impl Total {
    fn of(plain: (usize, usize), rewritten: (usize, usize)) -> Self {
        Self { files: 1, plain: Count::of(plain), rewritten: Count::of(rewritten) }
    }

    fn add(&mut self, more: Self) {
        self.files += more.files;
        self.plain.add(more.plain);
        self.rewritten.add(more.rewritten);
    }

    fn show(self, name: &str) {
        println!("{name:<45} {:>5} | {} | {}", self.files, self.plain.cells(), self.rewritten.cells());
    }
}

/// The C++ files of a project.
fn sources(root: &Path) -> Sources {
    let mut sources = Sources::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("folder").map(|entry| entry.expect("entry").path()) {
            let path = entry.to_str().expect("UTF-8");
            if entry.is_symlink() {
                continue;
            }
            if entry.is_dir() {
                open.push(entry);
            } else if Language::of_path(path) == Some(Language::Cpp) {
                sources.insert(path, std::fs::read(&entry).expect("file"));
            }
        }
    }
    sources
}

/// The projects of the corpus.
fn projects() -> Vec<PathBuf> {
    let folders = std::env::var_os("MAMBAPATCH_CORPUS").expect("MAMBAPATCH_CORPUS names folders");
    let list = |folder: PathBuf| {
        std::fs::read_dir(folder).expect("corpus").map(|entry| entry.expect("entry").path())
    };
    let mut projects: Vec<PathBuf> =
        std::env::split_paths(&folders).flat_map(list).filter(|path| path.is_dir()).collect();
    projects.sort();
    projects
}

/// What the plain grammar makes of a file: places, and bytes in them.
fn plain(parser: &mut Parser, bytes: &[u8]) -> (usize, usize) {
    let text: Vec<u8> = bytes
        .utf8_chunks()
        .flat_map(|chunk| [chunk.valid().as_bytes().to_vec(), vec![b'x'; chunk.invalid().len()]])
        .flatten()
        .collect();
    let tree = parser.parse(&text, None).expect("parses");
    let mut found = (0, 0);
    count(tree.root_node(), false, &mut found);
    found
}

fn count(node: Node<'_>, in_error: bool, found: &mut (usize, usize)) {
    found.0 += usize::from(node.is_error() || node.is_missing());
    if node.is_error() && !in_error {
        found.1 += node.byte_range().len();
    }
    if node.has_error() {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        children.into_iter().for_each(|child| count(child, in_error || node.is_error(), found));
    }
}

#[test]
#[ignore = "needs checkouts (MAMBAPATCH_CORPUS)"]
fn cuda_is_read_and_never_worse_than_plain_cpp() {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_cpp::LANGUAGE.into()).expect("grammar");
    let own = Files::new(&["**/*".to_string()]).expect("glob");
    let (mut own_total, mut others_total) = (Total::default(), Total::default());
    for project in projects() {
        let (mut total, sources) = (Total::default(), sources(&project));
        for (path, bytes) in sources.iter() {
            let (places, unread) = plain(&mut parser, bytes);
            let parsed = Parsed::new(Language::Cpp, bytes.clone()).expect(path);
            assert!(
                parsed.unread_bytes() <= unread || parsed.syntax_errors() < places,
                "{path} is read worse"
            );
            let more = Total::of((places, unread), (parsed.syntax_errors(), parsed.unread_bytes()));
            if own.contains(path.trim_start_matches('/')) { total.add(more) } else { others_total.add(more) }
        }
        own_total.add(total);
        total.show(&project.file_name().unwrap_or_default().to_string_lossy());
    }
    own_total.show("all");
    others_total.show("code of others in them");
}

/// The words of a file's code, and those of them that no tree shows as a word of its own: macros and words of CUDA
/// that decorate declarations, for the most part.
fn words(parsed: &Parsed) -> (usize, BTreeMap<String, usize>) {
    let leaves = parsed.nodes().filter(|node| node.child_count() == 0);
    let shown: HashSet<Range<usize>> = leaves.map(|node| node.byte_range()).collect();
    let (mut count, mut unseen, mut in_directive) = (0, BTreeMap::new(), false);
    for token in tokens(&parsed.bytes) {
        match token.kind {
            Kind::Directive => in_directive = true,
            Kind::DirectiveEnd => in_directive = false,
            Kind::Word if !in_directive => {
                count += 1;
                if !shown.contains(&token.range()) {
                    let word = String::from_utf8_lossy(token.text(&parsed.bytes)).into_owned();
                    *unseen.entry(word).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    (count, unseen)
}

#[test]
#[ignore = "needs checkouts (MAMBAPATCH_CORPUS)"]
fn nearly_every_word_of_code_is_seen() {
    let own = Files::new(&["**/*".to_string()]).expect("glob");
    let (mut all, mut unseen) = (0, BTreeMap::<String, usize>::new());
    for project in projects() {
        let sources = sources(&project);
        for (path, bytes) in own.of(&sources) {
            let (count, more) = words(&Parsed::new(Language::Cpp, bytes.clone()).expect(path));
            all += count;
            more.into_iter().for_each(|(word, count)| *unseen.entry(word).or_default() += count);
        }
    }
    let lost: usize = unseen.values().sum();
    let mut often: Vec<(String, usize)> = unseen.into_iter().collect();
    often.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    println!("{all} words of code, {lost} not seen: {:?}", &often[..often.len().min(40)]);
    assert!(lost * 20 <= all, "one in twenty is not seen");
}

/// The warp shuffles that CUDA 9 replaced.
const OLD: [&str; 4] = ["__shfl", "__shfl_up", "__shfl_down", "__shfl_xor"];

#[test]
#[ignore = "needs checkouts (MAMBAPATCH_CORPUS)"]
fn old_warp_shuffles_stand_in_dead_branches() {
    let cuda = ["12.8", "13.0"].map(|version| version.parse().expect(version));
    let environment = Environment { cuda: cuda.to_vec(), ..Environment::default() };
    let own = Files::new(&["**/*".to_string()]).expect("glob");
    let (mut dead, mut alive) = (0, 0);
    for project in projects() {
        let sources = sources(&project);
        let passes = Passes::of(&environment, Catalogue::shipped()).in_tree(&sources);
        for (path, bytes) in own.of(&sources) {
            let code = DeadCode::of(bytes, &passes);
            let found = OLD.iter().flat_map(|name| Name::new(name).census(bytes).occurrences);
            let places = found.filter(|found| matches!(found.place, Place::Code | Place::MacroBody(_)));
            for at in places.map(|found| found.range.start) {
                let live = !code.holds(at);
                *(if live { &mut alive } else { &mut dead }) += 1;
                if live {
                    println!("alive: {path}, line {}", line_of(bytes, at));
                }
            }
        }
    }
    println!("old warp shuffles: {dead} dead, {alive} alive");
    assert!(dead >= alive, "most of them are left for old toolkits and for HIP");
}

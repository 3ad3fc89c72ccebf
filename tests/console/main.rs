//! The console blocks of README.md and the book are run, and print what they show.
//!
//! - `$ mambapatch …` and `$ git …` are run by `sh`, all commands of a document in one folder; `$ cd DIR` holds to the
//!   end of its block. Both outputs are compared, the standard error output after what came before it.
//! - `...` alone on a line stands for any lines, `[..]` for any part of a line.
//! - A command must end well, unless `$ echo $?` follows: that shows its exit status.
//! - A block with `file=PATH` behind its language is written to that file.
//! - `selective_scan_cuda.cpython-311-x86_64-linux-gnu.so` lies in that folder, for `inspect`.
//! - A block `console,ignore` is not run; the HTML comment before it says why.
//!
//! The sources are small ones in the shape of the upstreams. Where `MAMBAPATCH_MIRRORS` names mirrors of the real ones,
//! the blocks are run a second time, with those.

#[path = "../binaries/mod.rs"]
mod binaries;

mod blocks;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::{Block, Kind, Step, blocks_of};
use sources::{Upstreams, write};

/// What was done for one document.
#[derive(Debug, Default)]
struct Tally {
    blocks: usize,
    commands: usize,
    ignored: usize,
}

/// One document's folder, with the environment of a user who has nothing but git and mambapatch.
struct Session<'a> {
    upstreams: &'a Upstreams,
    folder: tempfile::TempDir,
    status: i32,
}

impl<'a> Session<'a> {
    fn new(upstreams: &'a Upstreams) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let session = Self { upstreams, folder, status: 0 };
        write(&session.home().join(".gitconfig"), upstreams.git_config().as_bytes());
        std::fs::create_dir_all(session.work()).expect("a folder");
        let library = binaries::extension(&[80, 90]).elf();
        write(&session.work().join("selective_scan_cuda.cpython-311-x86_64-linux-gnu.so"), &library);
        session
    }

    fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("a folder").join("you")
    }

    fn work(&self) -> PathBuf {
        self.home().join("src")
    }

    /// Runs a command; both outputs, with the home folder as `/home/you`.
    fn run(&mut self, line: &str, folder: &Path) -> String {
        let home = self.home();
        let program = Path::new(env!("CARGO_BIN_EXE_mambapatch"));
        let path = std::env::var("PATH").expect("PATH");
        let path = format!("{}:{path}", program.parent().expect("a folder").display());
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{{ {line}\n}} 2>&1")).current_dir(folder);
        command.env_clear().env("PATH", path).env("HOME", &home).env("LC_ALL", "C").env("NO_COLOR", "1");
        let own = [("CACHE", ".cache"), ("CONFIG", ".config"), ("STATE", ".local/state")];
        for (name, below) in own {
            command.env(format!("XDG_{name}_HOME"), home.join(below));
        }
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_ALLOW_PROTOCOL", "file");
        command.env("PIP_CONFIG_FILE", "/dev/null").env("PIP_INDEX_URL", self.upstreams.index_url());
        command.envs(self.upstreams.mirrors().map(|mirrors| ("MAMBAPATCH_MIRRORS", mirrors)));
        let output = command.output().expect("sh");
        self.status = output.status.code().unwrap_or(-1);
        let home = home.to_string_lossy().into_owned();
        String::from_utf8_lossy(&output.stdout).replace(&home, "/home/you")
    }

    /// What differs in a block from what it shows.
    fn block(&mut self, block: &Block, tally: &mut Tally) -> Vec<String> {
        match &block.kind {
            Kind::File { path, text } => {
                write(&self.work().join(path), text.as_bytes());
                Vec::new()
            }
            Kind::Ignored { reason } => {
                tally.ignored += 1;
                let missing =
                    reason.is_none().then(|| format!("line {}: ignored without a reason", block.line));
                missing.into_iter().collect()
            }
            Kind::Console(steps) => {
                tally.blocks += 1;
                let mut folder = self.work();
                steps.iter().filter_map(|step| self.step(step, &mut folder, tally)).collect()
            }
        }
    }

    fn step(&mut self, step: &Step, folder: &mut PathBuf, tally: &mut Tally) -> Option<String> {
        let fault = |what: &str| Some(format!("line {}: $ {}\n{what}", step.line, step.command));
        let mut words = step.command.split_whitespace();
        let shown = match (words.next(), words.next()) {
            (Some("cd"), Some(into)) => {
                *folder = folder.join(into);
                return (!folder.is_dir()).then(|| fault("no such folder"))?;
            }
            (Some("echo"), Some("$?")) => format!("{}\n", self.status),
            (Some("mambapatch" | "git"), _) => {
                tally.commands += 1;
                self.run(&step.command, folder)
            }
            _ => return fault("only mambapatch, git, cd and `echo $?` are run here"),
        };
        if let Some(difference) = blocks::difference(&step.shown, &shown) {
            return fault(&difference);
        }
        let unseen = step.command.split_whitespace().next() != Some("echo") && !step.status_follows;
        (unseen && self.status != 0).then(|| fault(&format!("ends with {}", self.status)))?
    }
}

/// README.md and the chapters of the book.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let chapters = std::fs::read_dir(root.join("book/src")).expect("the book");
    let mut documents: Vec<PathBuf> = chapters.map(|entry| entry.expect("an entry").path()).collect();
    documents.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    documents.sort();
    documents.insert(0, root.join("README.md"));
    documents
}

fn run_all(upstreams: &Upstreams, how: &str) {
    let mut faults = Vec::new();
    let mut whole = Tally::default();
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("UTF-8");
        let name = document.file_name().expect("a name").to_string_lossy().into_owned();
        let (mut session, mut tally) = (Session::new(upstreams), Tally::default());
        for block in blocks_of(&text) {
            let found = session.block(&block, &mut tally);
            faults.extend(found.into_iter().map(|fault| format!("{name}, {fault}")));
        }
        println!("{how}: {name}: {} blocks, {} commands", tally.blocks, tally.commands);
        assert!(name != "README.md" || tally.blocks > 0, "README.md shows nothing that is run");
        whole.blocks += tally.blocks;
        whole.commands += tally.commands;
        whole.ignored += tally.ignored;
    }
    println!("{how}: {} blocks, {} commands ran; {} ignored", whole.blocks, whole.commands, whole.ignored);
    assert!(whole.blocks > 1 && whole.commands > 0, "no block was run");
    assert!(faults.is_empty(), "{} faults\n\n{}", faults.len(), faults.join("\n\n"));
}

#[test]
fn the_blocks_show_what_is_printed() {
    run_all(&Upstreams::small(), "small sources");
}

#[test]
fn the_blocks_are_true_of_the_real_releases() {
    match std::env::var_os("MAMBAPATCH_MIRRORS") {
        Some(mirrors) => run_all(&Upstreams::real(Path::new(&mirrors)), "mirrors"),
        None => println!("mirrors: none are given by MAMBAPATCH_MIRRORS"),
    }
}

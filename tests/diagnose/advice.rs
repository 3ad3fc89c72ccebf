//! What the rules advise can be typed, and the patches that they name are there where they are named for.

use clap::Parser;
use mambapatch::cli::args::Cli;
use mambapatch::engine::patchset::{PatchSets, Upstream, shipped};
use mambapatch::kernels::diagnose::{Case, Rules};

/// The sets that a tree can be of, and not those that only others use.
fn sets() -> PatchSets {
    shipped::texts().load().expect("the shipped patch sets load")
}

/// The sets that a case is about: those that its patches are named with, where they are sets of trees; else all.
fn meant<'a>(case: &Case, sets: &'a PatchSets) -> Vec<&'a Upstream> {
    let named = |set: &&Upstream| case.patches.iter().any(|patch| patch.starts_with(&format!("{}/", set.id)));
    let named: Vec<&Upstream> = sets.upstreams.iter().filter(named).collect();
    if named.is_empty() { sets.upstreams.iter().collect() } else { named }
}

/// What follows `--patch` in a command.
fn typed_patches(command: &str) -> Vec<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[0] == "--patch").map(|pair| pair[1]).collect()
}

#[test]
fn a_patch_is_advised_where_the_set_has_it() {
    let sets = sets();
    let mut advised = 0;
    for rule in &Rules::shipped().rules {
        for case in &rule.cases {
            for patch in &case.patches {
                let has = |set: &&Upstream| set.patch(patch).is_some();
                let there = match patch.contains('/') {
                    true => sets.upstreams.iter().any(|set| has(&set)),
                    false => sets.upstreams.iter().all(|set| has(&set)),
                };
                assert!(there, "{}: {patch}: without its set's name it must be in each", rule.id);
                advised += 1;
            }
            for patch in case.commands.iter().flat_map(|command| typed_patches(command)) {
                let lacks = meant(case, &sets).into_iter().find(|set| set.patch(patch).is_none());
                assert!(
                    lacks.is_none(),
                    "{}: --patch {patch}, which {} lacks",
                    rule.id,
                    lacks.expect("one").id
                );
            }
        }
    }
    assert!(advised > 20, "{advised}");
}

#[test]
fn our_own_commands_can_be_typed() {
    let fact = regex::Regex::new(r"\{[a-z.-]+\}").expect("a pattern");
    let mut tried = 0;
    for rule in &Rules::shipped().rules {
        for command in rule.cases.iter().flat_map(|case| &case.commands) {
            let filled = fact.replace_all(command, "12.0").replace("$(which python)", "python");
            if filled.starts_with("mambapatch ") {
                let refused = Cli::try_parse_from(filled.split_whitespace()).err();
                assert!(refused.is_none(), "{}: {command}\n{refused:?}", rule.id);
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "{tried}");
}

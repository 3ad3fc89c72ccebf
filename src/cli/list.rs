//! `list`: upstreams; of one upstream, its releases and patches.

use serde_json::{Value, json};

use super::Answer;
use super::args::{Everywhere, ListArgs};
use super::explain::wanted;
use super::failure::Failure;
use super::json as documents;
use super::planned::{infos, options, patch_sets};
use super::style::{DIM, STRONG, columns, paint};
use super::terminal::Terminal;
use crate::checkout::Releases;
use crate::engine::patchset::{Patch, PatchSets, Upstream};
use crate::engine::tag::Tag;

/// Lists what is known.
pub fn list(args: &ListArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let sets = patch_sets(everywhere)?;
    sets.unused_notes().for_each(|note| terminal.note(&note));
    let Some(name) = &args.upstream else {
        let text = if terminal.is_json() {
            documents::text(&sets.upstreams.iter().map(upstream_document).collect())
        } else {
            upstreams(&sets)
        };
        terminal.show(&text)?;
        return Ok(Answer::Yes);
    };
    let users = users(&sets, name);
    if sets.upstream(name).is_none() && !users.is_empty() {
        let text = if terminal.is_json() { shared_document(name, &users) } else { shared(name, &users) };
        terminal.show(&text)?;
        return Ok(Answer::Yes);
    }
    let upstream = find(&sets, name)?;
    let tags = releases(args, everywhere, upstream, &sets, terminal);
    if terminal.is_json() {
        let mut document = upstream_document(upstream);
        document["releases"] = tags.iter().map(Tag::to_string).collect();
        terminal.answer(documents::text(&document).as_bytes())?;
    } else {
        terminal.show(&one(upstream, &tags))?;
    }
    Ok(Answer::Yes)
}

/// The upstream of a name.
pub fn find<'a>(sets: &'a PatchSets, name: &str) -> Result<&'a Upstream, Failure> {
    let known = || sets.upstreams.iter().map(|upstream| upstream.id.clone()).collect();
    sets.upstream(name).ok_or_else(|| Failure::UnknownUpstream { name: name.to_string(), known: known() })
}

/// The releases that can be had; that none can be had is a note, since the patches are known all the same.
fn releases(
    args: &ListArgs,
    everywhere: &Everywhere,
    upstream: &Upstream,
    sets: &PatchSets,
    terminal: &mut Terminal,
) -> Vec<Tag> {
    let infos = infos(sets);
    let Some(info) = infos.iter().find(|info| info.id == upstream.id) else { return Vec::new() };
    let options = options(&args.source, everywhere);
    match Releases::open(info, &options, &mut |progress| terminal.progress(progress)) {
        Ok(releases) => releases.tags(),
        Err(error) => {
            terminal.note(&format!("its releases are not known: {error}"));
            Vec::new()
        }
    }
}

/// One line an upstream, the fallback last.
fn upstreams(sets: &PatchSets) -> String {
    let head = ["upstream", "tested through", "patches"].map(|cell| paint(DIM, cell)).to_vec();
    let row = |upstream: &Upstream| {
        vec![paint(STRONG, &upstream.id), upstream.tested_through(), patch_names(upstream).join(" ")]
    };
    let (known, fallback): (Vec<&Upstream>, Vec<&Upstream>) =
        sets.upstreams.iter().partition(|upstream| upstream.project.is_some());
    let rows = known.into_iter().chain(fallback).map(row);
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>(), "")
}

/// The own patches by name; `SET/*` for a set that is used.
fn patch_names(upstream: &Upstream) -> Vec<String> {
    let name = |patch: &Patch| match patch.id.split_once('/') {
        Some((set, name)) if set == upstream.id => name.to_string(),
        Some((set, _)) => format!("{set}/*"),
        None => patch.id.clone(),
    };
    let mut names: Vec<String> = upstream.patches.iter().map(name).collect();
    names.dedup();
    names
}

fn one(upstream: &Upstream, tags: &[Tag]) -> String {
    let (what, tested) = match &upstream.project {
        Some(project) => (project.url.as_str(), format!("tested through v{}", project.tested_through)),
        None => {
            ("any source tree that is no known upstream's", "name a folder: ./some-extension".to_string())
        }
    };
    let head = paint(STRONG, "patches");
    let mut text = format!("{}  {what}\n  {tested}\n\n{head}\n", paint(STRONG, &upstream.id));
    text.push_str(&table(upstream.patches.iter()));
    if !tags.is_empty() {
        text.push_str(&format!("\n{}\n", paint(STRONG, "releases")));
        for row in tags.chunks(8) {
            let names: Vec<String> = row.iter().map(|tag| format!("v{tag}")).collect();
            text.push_str(&format!("  {}\n", names.join(" ")));
        }
    }
    text
}

/// Patches with their titles, and by what each is chosen.
fn table<'a>(patches: impl Iterator<Item = &'a Patch>) -> String {
    let row = |patch: &Patch| vec![patch.id.clone(), patch.title.clone(), paint(DIM, &wanted(&patch.wanted))];
    columns(&patches.map(row).collect::<Vec<_>>(), "  ")
}

/// The upstreams that use a set which is none itself.
fn users<'a>(sets: &'a PatchSets, name: &str) -> Vec<&'a Upstream> {
    let uses = |upstream: &&Upstream| upstream.patches.iter().any(|patch| patch.is_of(name));
    sets.upstreams.iter().filter(uses).collect()
}

/// The patches of a set that upstreams use, each once.
fn shared_patches<'a>(name: &str, users: &[&'a Upstream]) -> Vec<&'a Patch> {
    let of_set = users.iter().flat_map(|upstream| &upstream.patches).filter(|patch| patch.is_of(name));
    let mut once = std::collections::BTreeSet::new();
    of_set.filter(|patch| once.insert(&patch.id)).collect()
}

fn shared(name: &str, users: &[&Upstream]) -> String {
    let ids: Vec<&str> = users.iter().map(|upstream| upstream.id.as_str()).collect();
    let table = table(shared_patches(name, users).into_iter());
    let (name, head) = (paint(STRONG, name), paint(STRONG, "patches"));
    format!("{name}  used by {}\n\n{head}\n{table}", ids.join(", "))
}

fn shared_document(name: &str, users: &[&Upstream]) -> String {
    let ids: Vec<&str> = users.iter().map(|upstream| upstream.id.as_str()).collect();
    let patches: Vec<Value> = shared_patches(name, users).into_iter().map(patch_document).collect();
    documents::text(&json!({ "id": name, "used-by": ids, "patches": patches }))
}

fn patch_document(patch: &Patch) -> Value {
    json!({ "id": patch.id, "title": patch.title, "wanted": wanted(&patch.wanted),
        "upstream-status": patch.upstream_status.to_string() })
}

fn upstream_document(upstream: &Upstream) -> Value {
    json!({
        "id": upstream.id,
        "url": upstream.project.as_ref().map(|project| &project.url),
        "distribution": upstream.project.as_ref().map(|project| &project.distribution),
        "tested-through": documents::tested_through(upstream),
        "patches": upstream.patches.iter().map(patch_document).collect::<Vec<_>>(),
    })
}

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
use crate::engine::patchset::{PatchSets, Upstream};
use crate::engine::tag::Tag;

/// Lists what is known.
pub fn list(args: &ListArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let sets = patch_sets(everywhere)?;
    let Some(name) = &args.upstream else {
        let text = if terminal.is_json() {
            documents::text(&sets.upstreams.iter().map(upstream_document).collect())
        } else {
            upstreams(&sets)
        };
        terminal.show(&text)?;
        return Ok(Answer::Yes);
    };
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

fn upstreams(sets: &PatchSets) -> String {
    let head = ["upstream", "tested through", "patches"].map(|cell| paint(DIM, cell)).to_vec();
    let row = |upstream: &Upstream| {
        let patches: Vec<&str> =
            upstream.patches.iter().filter_map(|patch| patch.id.rsplit('/').next()).collect();
        vec![paint(STRONG, &upstream.id), format!("v{}", upstream.tested_through), patches.join(" ")]
    };
    columns(&std::iter::once(head).chain(sets.upstreams.iter().map(row)).collect::<Vec<_>>(), "")
}

fn one(upstream: &Upstream, tags: &[Tag]) -> String {
    let mut text = format!("{}  {}\n", paint(STRONG, &upstream.id), upstream.url);
    text.push_str(&format!(
        "  tested through v{}\n\n{}\n",
        upstream.tested_through,
        paint(STRONG, "patches")
    ));
    let rows: Vec<Vec<String>> = upstream
        .patches
        .iter()
        .map(|patch| vec![patch.id.clone(), patch.title.clone(), paint(DIM, &wanted(&patch.wanted))])
        .collect();
    text.push_str(&columns(&rows, "  "));
    if !tags.is_empty() {
        text.push_str(&format!("\n{}\n", paint(STRONG, "releases")));
        for row in tags.chunks(8) {
            let names: Vec<String> = row.iter().map(|tag| format!("v{tag}")).collect();
            text.push_str(&format!("  {}\n", names.join(" ")));
        }
    }
    text
}

fn upstream_document(upstream: &Upstream) -> Value {
    let patch = |patch: &crate::engine::patchset::Patch| {
        json!({ "id": patch.id, "title": patch.title, "wanted": wanted(&patch.wanted),
            "upstream-status": patch.upstream_status.to_string() })
    };
    json!({
        "id": upstream.id,
        "url": upstream.url,
        "distribution": upstream.distribution,
        "tested-through": upstream.tested_through.to_string(),
        "patches": upstream.patches.iter().map(patch).collect::<Vec<_>>(),
    })
}

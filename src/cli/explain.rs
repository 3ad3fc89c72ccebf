//! `explain`: what a patch or an op does, where, why, and since which release.

use serde_json::{Value, json};

use super::Answer;
use super::args::{Everywhere, ExplainArgs};
use super::failure::Failure;
use super::json as documents;
use super::planned::patch_sets;
use super::style::{DIM, STRONG, columns, paint};
use super::terminal::Terminal;
use crate::checkout::target::nearest;
use crate::engine::patchset::{Needed, Patch, PatchOp, PatchSets, Upstream, Wanted};

/// Explains every patch or op of the name.
pub fn explain(
    args: &ExplainArgs,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Answer, Failure> {
    let sets = patch_sets(everywhere)?;
    sets.unused_notes().for_each(|note| terminal.note(&note));
    let found = find(&sets, &args.id);
    if found.is_empty() {
        return Err(unknown(&sets, &args.id));
    }
    if terminal.is_json() {
        let documents: Vec<Value> =
            found.iter().map(|(upstream, patch, ops)| document(upstream, patch, ops)).collect();
        terminal.answer(documents::text(&Value::Array(documents)).as_bytes())?;
    } else {
        let texts: Vec<String> =
            found.iter().map(|(upstream, patch, ops)| text(upstream, patch, ops)).collect();
        terminal.show_long(&texts.join("\n"))?;
    }
    Ok(Answer::Yes)
}

type Found<'a> = (&'a Upstream, &'a Patch, Vec<&'a PatchOp>);

/// Patches of that id or name, those of the set of that name, or those that hold the op of that id. A set that several
/// use counts once.
fn find<'a>(sets: &'a PatchSets, id: &str) -> Vec<Found<'a>> {
    let mut found: Vec<Found<'a>> = Vec::new();
    for upstream in &sets.upstreams {
        for patch in &upstream.patches {
            let named = is_named(&patch.id, id) || patch.is_of(id);
            let ops: Vec<&PatchOp> = patch.ops.iter().filter(|op| named || is_named(&op.id, id)).collect();
            if !ops.is_empty() && !found.iter().any(|(_, other, _)| other.id == patch.id) {
                found.push((upstream, patch, ops));
            }
        }
    }
    found
}

/// Whether a name is this id, or the end of it: `cuda-13/rewrite-2`.
fn is_named(id: &str, name: &str) -> bool {
    id == name || id.strip_suffix(name).is_some_and(|set| set.ends_with('/'))
}

fn unknown(sets: &PatchSets, id: &str) -> Failure {
    let patches = sets.upstreams.iter().flat_map(|upstream| &upstream.patches);
    let ids = patches.flat_map(|patch| {
        let short = patch.id.rsplit('/').next().into_iter();
        short.chain([patch.id.as_str()]).chain(patch.ops.iter().map(|op| op.id.as_str()))
    });
    Failure::UnknownId { id: id.to_string(), nearest: nearest(id, ids, 3) }
}

fn text(upstream: &Upstream, patch: &Patch, ops: &[&PatchOp]) -> String {
    let mut text = format!("{}  {}\n\n", paint(STRONG, &patch.id), patch.title);
    patch.why.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    let mut rows = vec![
        vec!["wanted".to_string(), wanted(&patch.wanted)],
        vec!["upstream".to_string(), patch.upstream_status.to_string()],
    ];
    if upstream.project.is_some() {
        rows.push(vec!["tested through".to_string(), upstream.tested_through()]);
    }
    if !patch.references.is_empty() {
        rows.push(vec!["references".to_string(), patch.references.join(", ")]);
    }
    if let Some(origin) = &patch.replaced_by {
        rows.push(vec!["comes from".to_string(), origin.clone()]);
    }
    text.push('\n');
    text.push_str(&columns(&rows, "  "));
    for op in ops {
        text.push_str(&format!("\n  {}", paint(STRONG, &op.id)));
        text.push_str(&paint(DIM, &format!("  in {}", op.op.files())));
        text.push_str(&format!("{}\n", tags(op)));
        for (key, code) in op.op.parts() {
            text.push_str(&format!("    {}\n", paint(DIM, key)));
            code.lines().for_each(|line| text.push_str(&format!("      {line}\n")));
        }
    }
    text
}

fn tags(op: &PatchOp) -> String {
    let tags = op.tags.to_string();
    if tags.is_empty() { String::new() } else { paint(DIM, &format!(", releases {tags}")) }
}

/// By what a patch is chosen, in words.
pub fn wanted(wanted: &Wanted) -> String {
    match wanted {
        Wanted::ByArch => "by --add-arch, --drop-arch, --only-arch or --cuda".to_string(),
        Wanted::ByEnvironment(needed) => format!("with {}", needs(needed)),
        Wanted::ByName => "by --patch alone".to_string(),
    }
}

fn needs(needed: &Needed) -> String {
    let range = |name: &str, range: &Option<crate::engine::tag::TagRange>| {
        range.as_ref().map(|range| format!("{name} {range}"))
    };
    let parts = [range("CUDA", &needed.cuda), range("torch", &needed.torch), range("Python", &needed.python)];
    let machine = needed.machine.as_ref().map(|machine| format!("a machine of {machine}"));
    let packages = needed.packages.iter().map(|(name, range)| format!("{name} {range}"));
    parts.into_iter().flatten().chain(machine).chain(packages).collect::<Vec<_>>().join(", ")
}

fn document(upstream: &Upstream, patch: &Patch, ops: &[&PatchOp]) -> Value {
    let op = |op: &&PatchOp| {
        json!({
            "id": op.id,
            "kind": op.op.kind(),
            "files": op.op.files().globs(),
            "tags": op.tags.to_string(),
            "code": op.op.parts().into_iter().map(|(key, code)| (key.to_string(), Value::from(code))).collect::<serde_json::Map<_, _>>(),
        })
    };
    json!({
        "id": patch.id,
        "title": patch.title,
        "why": patch.why,
        "references": patch.references,
        "wanted": wanted(&patch.wanted),
        "upstream-status": patch.upstream_status.to_string(),
        "tested-through": documents::tested_through(upstream),
        "ops": ops.iter().map(op).collect::<Vec<_>>(),
    })
}

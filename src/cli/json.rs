//! Answers as JSON. Keys are stable; new ones may come.

use serde_json::{Value, json};

use super::failure::Report;
use super::planned::Planned;
use crate::engine::ops::gencode::Compiled;
use crate::engine::ops::{Left, Site};
use crate::engine::patchset::Upstream;
use crate::engine::plan::effect::{Effect, EffectRow};
use crate::engine::plan::understood::Understood;
use crate::engine::plan::{OpReport, PatchPlan};

/// What stopped a command.
pub fn failure(report: &Report) -> Value {
    json!({ "error": {
        "message": report.error,
        "site": report.site.as_ref().map(site),
        "notes": report.notes,
        "hint": report.hint,
    } })
}

/// A plan: the target, what each op found, the effect, and the diff.
pub fn planned(planned: &Planned<'_>) -> Value {
    let plan = planned.proved.plan();
    json!({
        "target": {
            "label": planned.target.label,
            "upstream": planned.bound.upstream.id,
            "version": planned.target.reference,
        },
        "patches": plan.patches.iter().map(patch).collect::<Vec<_>>(),
        "effect": plan.effect(&planned.bound).iter().flat_map(effect).collect::<Vec<_>>(),
        "understood": plan.understood().iter().map(understood).collect::<Vec<_>>(),
        "diff": String::from_utf8_lossy(&planned.proved.diff()),
        "notes": planned.notes(),
    })
}

fn patch(patch: &PatchPlan) -> Value {
    json!({
        "id": patch.id,
        "title": patch.title,
        "files": patch.changes.keys().collect::<Vec<_>>(),
        "ops": patch.ops.iter().map(op).collect::<Vec<_>>(),
    })
}

fn op(report: &OpReport) -> Value {
    json!({
        "id": report.id,
        "outcome": report.outcome.word(),
        "detail": report.outcome.detail(),
        "sites": report.sites.iter().map(site).collect::<Vec<_>>(),
        "left": report.left.iter().map(left).collect::<Vec<_>>(),
        "remarks": report.remarks,
    })
}

fn site(site: &Site) -> Value {
    json!({ "path": site.path, "line": site.line, "text": site.text })
}

fn left(left: &Left) -> Value {
    let mut value = site(&left.site);
    value["why"] = json!(left.why);
    value["for-a-person"] = json!(left.open);
    value
}

fn understood(row: &Understood) -> Value {
    json!({ "path": row.path, "bytes": row.size, "places-not-read": row.places, "bytes-not-read": row.unread })
}

/// A row a toolkit, each with its file.
fn effect(file: &Effect) -> Vec<Value> {
    let flags = |flags: &[Compiled]| {
        flags
            .iter()
            .map(|flag| {
                let codes: Vec<String> = flag.gencode.codes.iter().map(ToString::to_string).collect();
                json!({ "gencode": flag.gencode.to_string(), "codes": codes, "accepted": flag.accepted })
            })
            .collect::<Vec<_>>()
    };
    let row = |row: &EffectRow| {
        let (before, after) = (flags(&row.before), flags(&row.after));
        json!({ "file": file.path, "list": file.list, "cuda": row.toolkit.to_string(), "before": before, "after": after })
    };
    file.rows.iter().map(row).collect()
}

/// The newest release that a set was tested on; `null` for the fallback.
pub fn tested_through(upstream: &Upstream) -> Value {
    upstream.project.as_ref().map(|project| project.tested_through.to_string()).into()
}

/// A document as it is printed.
pub fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

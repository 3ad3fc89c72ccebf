//! Outcomes and effects as tables.

use super::style::{BAD, DIM, GOOD, STRONG, WARN, columns, paint};
use crate::engine::ops::Outcome;
use crate::engine::ops::gencode::Compiled;
use crate::engine::plan::effect::EffectRow;
use crate::engine::plan::{OpReport, Plan};

/// What each op found.
pub fn outcomes(plan: &Plan, verbose: bool) -> String {
    let reports: Vec<&OpReport> = plan.patches.iter().flat_map(|patch| &patch.ops).collect();
    let rows: Vec<Vec<String>> = reports
        .iter()
        .map(|report| {
            let detail = report.outcome.detail();
            vec![
                sign(&report.outcome),
                report.id.clone(),
                paint(word_style(&report.outcome), report.outcome.word()),
                detail,
            ]
        })
        .collect();
    let mut text = format!("{}\n{}", paint(STRONG, "outcome"), columns(&rows, "  "));
    for report in reports {
        for remark in &report.remarks {
            text.push_str(&format!("  {} {}: {remark}\n", paint(WARN, "remark"), report.files));
        }
        let sites =
            report.sites.iter().filter(|_| verbose || matches!(report.outcome, Outcome::Reported { .. }));
        for site in sites {
            text.push_str(&paint(DIM, &format!("      {}:{}: {}", site.path, site.line, site.text.trim())));
            text.push('\n');
        }
    }
    text
}

fn sign(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Changed { .. } => paint(GOOD, "+"),
        Outcome::AlreadySatisfied { .. } => paint(DIM, "="),
        Outcome::NotApplicable { .. } => paint(DIM, "-"),
        Outcome::Reported { .. } => paint(WARN, "!"),
    }
}

fn word_style(outcome: &Outcome) -> anstyle::Style {
    match outcome {
        Outcome::Changed { .. } => GOOD,
        Outcome::AlreadySatisfied { .. } | Outcome::NotApplicable { .. } => DIM,
        Outcome::Reported { .. } => WARN,
    }
}

/// What each toolkit compiles, before and after.
pub fn effect(rows: &[EffectRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let same = rows.iter().all(|row| row.before == row.after);
    let head = if same { vec!["CUDA", "compiles"] } else { vec!["CUDA", "before", "after"] };
    let mut lines = vec![head.into_iter().map(|cell| paint(DIM, cell)).collect::<Vec<_>>()];
    for row in rows {
        let mut line = vec![row.toolkit.to_string(), flags(&row.before, &row.after, BAD)];
        if !same {
            let after = if row.before == row.after {
                paint(DIM, "the same")
            } else {
                flags(&row.after, &row.before, GOOD)
            };
            line.push(after);
        }
        lines.push(line);
    }
    let mut text = format!("{}\n{}", paint(STRONG, "effect"), columns(&lines, "  "));
    let refused = rows.iter().any(|row| row.after.iter().chain(&row.before).any(|flag| !flag.accepted));
    if refused {
        text.push_str(&paint(DIM, "  ! this nvcc refuses the architecture, and the build stops"));
        text.push('\n');
    }
    text
}

/// The results of a toolkit; those that `other` lacks stand out.
fn flags(flags: &[Compiled], other: &[Compiled], strong: anstyle::Style) -> String {
    if flags.is_empty() {
        return paint(DIM, "nothing");
    }
    let cell = |flag: &Compiled| {
        let labels: Vec<String> = flag.gencode.codes.iter().map(|code| code.label()).collect();
        let label = format!("{}{}", labels.join("+"), if flag.accepted { "" } else { "!" });
        match () {
            () if !flag.accepted => paint(BAD, &label),
            () if !other.contains(flag) => paint(strong.bold(), &label),
            () => label,
        }
    };
    flags.iter().map(cell).collect::<Vec<_>>().join(" ")
}

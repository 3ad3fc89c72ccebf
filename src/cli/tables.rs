//! Outcomes and effects as tables.

use super::style::{BAD, DIM, GOOD, STRONG, WARN, columns, paint};
use crate::engine::arch::Code;
use crate::engine::ops::gencode::Compiled;
use crate::engine::ops::{Outcome, Site};
use crate::engine::plan::effect::{Effect, EffectRow};
use crate::engine::plan::understood::Understood;
use crate::engine::plan::{OpReport, Plan};

/// How many ops a table shows in full; of more, those that found nothing to do are only counted.
const ALL: usize = 12;

/// What each op found.
pub fn outcomes(plan: &Plan, verbose: bool) -> String {
    let reports: Vec<&OpReport> = plan.patches.iter().flat_map(|patch| &patch.ops).collect();
    if reports.is_empty() {
        let none = if plan.patches.is_empty() {
            "these flags choose no patch"
        } else {
            "the patches that were chosen have no op for this release"
        };
        return format!("{}\n  {}\n", paint(STRONG, "outcome"), paint(DIM, none));
    }
    let is_idle = |report: &OpReport| {
        matches!(report.outcome, Outcome::AlreadySatisfied { .. } | Outcome::NotApplicable { .. })
            && report.remarks.is_empty()
            && !report.left.iter().any(|left| left.open)
    };
    let brief = !verbose && reports.len() > ALL;
    let (idle, shown): (Vec<&OpReport>, Vec<&OpReport>) =
        reports.iter().partition(|report| brief && is_idle(report));
    let mut text = format!("{}\n{}", paint(STRONG, "outcome"), outcome_rows(&shown));
    if !idle.is_empty() {
        let count = format!("  {} more found nothing to do; -v shows them", idle.len());
        text.push_str(&format!("{}\n", paint(DIM, &count)));
    }
    shown.iter().for_each(|report| text.push_str(&details(report, verbose)));
    text
}

fn outcome_rows(reports: &[&OpReport]) -> String {
    let row = |report: &&OpReport| {
        let word = paint(word_style(&report.outcome), report.outcome.word());
        vec![sign(&report.outcome), report.id.clone(), word, detail(&report.outcome)]
    };
    columns(&reports.iter().map(row).collect::<Vec<_>>(), "  ")
}

/// The details in one line; of many long ones, their number.
fn detail(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Changed { how } if is_long(how) => format!("{} changes", how.len()),
        other => other.detail(),
    }
}

fn is_long(how: &[String]) -> bool {
    how.len() > 1 && how.iter().map(String::len).sum::<usize>() > 120
}

/// What stands below the table: details that are too long for it, remarks, and the places of what needs a person.
fn details(report: &OpReport, verbose: bool) -> String {
    let mut text = String::new();
    if let Outcome::Changed { how } = &report.outcome
        && is_long(how)
    {
        each_once(how).iter().for_each(|how| text.push_str(&format!("      {how}\n")));
    }
    // An op that looks at many files says itself which one it means.
    let files = if report.files.contains('*') { String::new() } else { format!(" {}:", report.files) };
    for remark in each_once(&report.remarks) {
        text.push_str(&format!("  {}{files} {remark}\n", paint(WARN, "remark")));
    }
    let all = verbose || matches!(report.outcome, Outcome::Reported { .. });
    for site in report.sites.iter().filter(|_| all) {
        text.push_str(&place(site, ""));
    }
    for left in report.left.iter().filter(|left| verbose || left.open) {
        text.push_str(&place(&left.site, &format!("left, {}: ", left.why)));
    }
    text
}

/// Equal lines as one, with their number.
fn each_once(lines: &[String]) -> Vec<String> {
    let mut counted: Vec<(&String, usize)> = Vec::new();
    for line in lines {
        match counted.iter_mut().find(|(other, _)| *other == line) {
            Some((_, count)) => *count += 1,
            None => counted.push((line, 1)),
        }
    }
    let text = |(line, count): (&String, usize)| match count {
        1 => line.clone(),
        count => format!("{line} ({count} times)"),
    };
    counted.into_iter().map(text).collect()
}

/// A place with its line of code.
fn place(site: &Site, what: &str) -> String {
    paint(DIM, &format!("      {}:{}: {what}{}", site.path, site.line, site.text.trim())) + "\n"
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

/// How much of each file was understood. Of many files, those that were read whole share a line.
pub fn understood(rows: &[Understood]) -> String {
    const MOST: usize = 8;
    let row = |row: &&Understood| {
        let what = match row.places {
            0 => "all of it".to_string(),
            1 => format!("all but 1 place ({} of {} bytes)", row.unread, row.size),
            places => format!("all but {places} places ({} of {} bytes)", row.unread, row.size),
        };
        vec![row.path.clone(), what]
    };
    let (partly, whole): (Vec<&Understood>, Vec<&Understood>) = rows.iter().partition(|row| row.places > 0);
    let lines: Vec<Vec<String>> = match rows.len() {
        0 => return String::new(),
        count if count <= MOST => rows.iter().map(|it| row(&it)).collect(),
        _ => {
            let rest = vec![format!("{} other files", whole.len()), "all of each".to_string()];
            partly.iter().map(row).chain((!whole.is_empty()).then_some(rest)).collect()
        }
    };
    format!("{}\n{}", paint(STRONG, "understood"), columns(&lines, "  "))
}

/// What each toolkit compiles, before and after; one table for the lists that have the same.
pub fn effect(files: &[Effect]) -> String {
    let table = |group: &Vec<&Effect>| {
        let title =
            if files.len() == 1 { "effect".to_string() } else { format!("effect of {}", paths(group)) };
        let Effect { rows, guarded, .. } = group[0];
        let mut text = format!("{}\n{}", paint(STRONG, &title), effect_columns(rows, "  "));
        if has_refused(rows) {
            let left = rows.iter().find(|row| refuses(&row.after)).filter(|_| *guarded);
            let cure =
                left.map_or(String::new(), |row| format!("; add --cuda {} to build there", row.toolkit));
            text.push_str(&paint(DIM, &format!("  {REFUSED}{cure}")));
            text.push('\n');
        }
        text
    };
    alike(files).iter().map(table).collect()
}

/// The same tables for people who do not have this program: without colours, and without its flags.
pub fn effect_for_others(files: &[Effect]) -> String {
    let table = |group: &Vec<&Effect>| {
        let title = if files.len() == 1 { String::new() } else { format!("{}\n", paths(group)) };
        let legend = if has_refused(&group[0].rows) { format!("{REFUSED}\n") } else { String::new() };
        let columns = effect_columns(&group[0].rows, "");
        format!("{title}{}{legend}", anstream::adapter::strip_str(&columns))
    };
    alike(files).iter().map(table).collect()
}

const REFUSED: &str = "! refused by the nvcc of that CUDA";

/// The lists that have the same effect, together.
fn alike(files: &[Effect]) -> Vec<Vec<&Effect>> {
    let mut alike: Vec<Vec<&Effect>> = Vec::new();
    for file in files {
        match alike.iter_mut().find(|others| others[0].rows == file.rows) {
            Some(others) => others.push(file),
            None => alike.push(vec![file]),
        }
    }
    alike
}

/// The files and their lists: `setup.py`, or `Makefile (ARCH, SM)`.
fn paths(group: &[&Effect]) -> String {
    let of_file = |effects: &[&Effect]| {
        let lists: Vec<&str> = effects.iter().filter_map(|one| one.list.as_deref()).collect();
        let path = &effects[0].path;
        if lists.is_empty() { path.clone() } else { format!("{path} ({})", lists.join(", ")) }
    };
    group.chunk_by(|one, other| one.path == other.path).map(of_file).collect::<Vec<_>>().join(", ")
}

fn refuses(flags: &[Compiled]) -> bool {
    flags.iter().any(|flag| !flag.accepted)
}

fn has_refused(rows: &[EffectRow]) -> bool {
    rows.iter().any(|row| refuses(&row.before) || refuses(&row.after))
}

/// What goes and what is new is marked also where nothing is coloured.
fn effect_columns(rows: &[EffectRow], indent: &str) -> String {
    let same = rows.iter().all(|row| row.before == row.after);
    let head = if same { vec!["CUDA", "compiles"] } else { vec!["CUDA", "before", "after"] };
    let mut lines = vec![head.into_iter().map(|cell| paint(DIM, cell)).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| {
        let before = cell(&row.before, &row.after, Mark { sign: "-", style: BAD });
        let toolkit = row.toolkit.to_string();
        if same { vec![toolkit, before] } else { vec![toolkit, before, after(row)] }
    }));
    columns(&lines, indent)
}

/// How a label that the other side lacks is marked.
#[derive(Clone, Copy)]
struct Mark {
    sign: &'static str,
    style: anstyle::Style,
}

/// `the same`; `… +120` where nothing goes; else everything.
fn after(row: &EffectRow) -> String {
    let new = Mark { sign: "+", style: GOOD };
    if row.before == row.after {
        return paint(DIM, "the same");
    }
    if row.after.is_empty() {
        // Without any flag nvcc compiles for its own default, which fits nobody's GPU.
        return paint(BAD, "nothing");
    }
    if row.before.is_empty() || !lacking(&row.before, &row.after).is_empty() {
        return cell(&row.after, &row.before, new);
    }
    let added: Vec<String> =
        lacking(&row.after, &row.before).into_iter().map(|at| marked(&row.after[at], Some(new))).collect();
    format!("{} {}", paint(DIM, "…"), added.join(" "))
}

/// The results of a toolkit; those that `other` lacks are marked.
fn cell(flags: &[Compiled], other: &[Compiled], mark: Mark) -> String {
    if flags.is_empty() {
        return paint(DIM, "nothing");
    }
    let lacking = lacking(flags, other);
    let one = |(at, flag)| marked(flag, lacking.contains(&at).then_some(mark));
    flags.iter().enumerate().map(one).collect::<Vec<_>>().join(" ")
}

/// Which of these flags the others lack; the second of two equal ones needs a second one there.
fn lacking(flags: &[Compiled], other: &[Compiled]) -> Vec<usize> {
    let mut left: Vec<&Compiled> = other.iter().collect();
    let mut found = Vec::new();
    for (at, flag) in flags.iter().enumerate() {
        match left.iter().position(|other| *other == flag) {
            Some(same) => drop(left.remove(same)),
            None => found.push(at),
        }
    }
    found
}

/// What a flag compiles: `120`, `120 120 (PTX)`.
fn marked(flag: &Compiled, mark: Option<Mark>) -> String {
    let refused = if flag.accepted { "" } else { "!" };
    let one = |code: &Code| match mark {
        Some(mark) => paint(mark.style.bold(), &format!("{}{}{refused}", mark.sign, code.label())),
        None if !flag.accepted => paint(BAD, &format!("{}{refused}", code.label())),
        None => code.label(),
    };
    flag.gencode.codes.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_counted() {
        let lines = ["a", "b", "a"].map(String::from);
        assert_eq!(each_once(&lines), ["a (2 times)", "b"]);
    }

    #[test]
    fn each_code_of_a_flag_has_its_mark() {
        let gencode = "arch=compute_35,code=[sm_35,compute_35]".parse().expect("gencode");
        let flag = Compiled { gencode, accepted: false };
        let text = marked(&flag, Some(Mark { sign: "-", style: BAD }));
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "-35! -35 (PTX)!");
    }

    fn flags(text: &str) -> Vec<Compiled> {
        let flag = |word: &str| Compiled {
            gencode: format!("arch=compute_{0},code=sm_{0}", word.trim_end_matches('!'))
                .parse()
                .expect("gencode"),
            accepted: !word.ends_with('!'),
        };
        text.split_whitespace().map(flag).collect()
    }

    fn row(before: &str, after: &str) -> String {
        let toolkit = crate::engine::toolkit::Toolkit::new(13, 0);
        let rows = [EffectRow { toolkit, before: flags(before), after: flags(after) }];
        let text = anstream::adapter::strip_str(&effect_columns(&rows, "")).to_string();
        text.lines().nth(1).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_changes_is_seen_without_colours() {
        assert_eq!(row("80 90", "80 90 120"), "13.0 80 90 … +120");
        assert_eq!(row("53! 80", "80 120"), "13.0 -53! 80 80 +120");
        assert_eq!(row("80", "80"), "13.0 80");
        assert_eq!(row("", "80"), "13.0 nothing +80");
        assert_eq!(row("80 120 120", "80 120"), "13.0 80 120 -120 80 120");
    }
}

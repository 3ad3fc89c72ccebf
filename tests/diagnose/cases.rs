//! The rules, one by one.

use std::collections::{BTreeMap, BTreeSet};

use mambapatch::kernels::diagnose::{Rules, how_to_know};
use serde::Deserialize;

use crate::{first, told};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    rule: String,
    log: String,
    facts: Option<String>,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    not_known: Vec<String>,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Reports {
    report: BTreeMap<String, (String, String)>,
}

fn cases() -> Vec<Case> {
    toml::from_str::<Cases>(include_str!("cases.toml")).expect("cases.toml").case
}

#[test]
fn each_log_gets_its_cause() {
    for Case { rule, log, facts, says, types, not_known } in cases() {
        let diagnosis = told(&log, facts.as_deref());
        assert_eq!(first(&diagnosis), rule, "{log}");
        let cause = &diagnosis.causes[0];
        let text = format!("{} {}", cause.cause, cause.remedy);
        says.iter().for_each(|part| assert!(text.contains(part), "{part}\n{log}\n{cause:#?}"));
        let commands = cause.commands.join("\n");
        types.iter().for_each(|part| assert!(commands.contains(part), "{part}\n{log}\n{cause:#?}"));
        let missing: Vec<&String> = cause.missing.iter().collect();
        not_known.iter().for_each(|name| assert!(missing.contains(&name), "{name}\n{log}\n{cause:#?}"));
        for name in &cause.missing {
            assert!(
                how_to_know(name).is_some() || name.contains('.'),
                "{name} of {rule}: no command tells it"
            );
        }
    }
}

#[test]
fn each_rule_has_a_log_and_an_answer_without_any_fact() {
    let rules = &Rules::shipped().rules;
    let with_log: BTreeSet<String> = cases().into_iter().map(|case| case.rule).collect();
    let ids: BTreeSet<String> = rules.iter().map(|rule| rule.id.clone()).collect();
    assert_eq!(ids, with_log);
    assert_eq!(ids.len(), rules.len(), "an id stands twice");
    for case in cases() {
        let diagnosis = told(&case.log, None);
        let cause = &diagnosis.causes[0];
        assert!(!cause.cause.is_empty() && !cause.remedy.is_empty(), "{}: {cause:#?}", case.rule);
        let nothing_helps = cause.cause.contains("macOS");
        assert!(nothing_helps || !cause.commands.is_empty(), "{}: {cause:#?}", case.rule);
    }
}

#[test]
fn each_rule_ends_in_a_case_that_always_holds_and_refines_rules_that_exist() {
    let rules = &Rules::shipped().rules;
    for rule in rules {
        let last = rule.cases.last().expect("a case");
        assert!(last.when.is_empty(), "{}", rule.id);
        for refined in &rule.refines {
            assert!(rules.iter().any(|other| other.id == *refined), "{}: {refined}", rule.id);
        }
    }
}

/// Logs of builds that really failed, cut to what matters: the folder names of their machine are others, nothing else.
#[test]
fn logs_of_builds_that_really_failed_are_explained() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnose/real");
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).expect("the logs").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let log = std::fs::read_to_string(entry.path()).expect(&name);
        let diagnosis = told(&log, None);
        assert_eq!(Some(first(&diagnosis)), name.split('-').next(), "{name}: {:#?}", diagnosis.causes);
        tried += 1;
    }
    assert!(tried >= 9, "{tried}");
}

#[test]
fn harmless_lines_match_nothing() {
    let log = include_str!("harmless.log");
    for line in log.lines() {
        let diagnosis = told(line, None);
        assert!(diagnosis.causes.is_empty(), "{line}\n{:#?}", diagnosis.causes);
    }
    let diagnosis = told(log, None);
    assert!(diagnosis.causes.is_empty(), "{:#?}", diagnosis.causes);
}

#[derive(Deserialize)]
struct Near {
    near: BTreeMap<String, String>,
}

/// The words of a text, without what only a regular expression has.
fn words(text: &str) -> BTreeSet<String> {
    let text = regex::Regex::new(r"\\[sbdw]|\(\?P?<?\w*[>:]?").expect("a pattern").replace_all(text, " ");
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| word.len() > 3).map(str::to_lowercase).collect()
}

#[test]
fn each_rule_has_a_harmless_line_that_comes_near() {
    let near: Near = toml::from_str(include_str!("near.toml")).expect("near.toml");
    let rules = &Rules::shipped().rules;
    let ids: BTreeSet<&String> = rules.iter().map(|rule| &rule.id).collect();
    assert_eq!(ids, near.near.keys().collect());
    for rule in rules {
        let line = &near.near[&rule.id];
        let shared: Vec<String> = words(&rule.find.join(" ")).intersection(&words(line)).cloned().collect();
        assert!(shared.len() > 1, "{}: {line} shares only {shared:?}", rule.id);
        let causes = told(line, None).causes;
        assert!(causes.is_empty(), "{}: {line}\n{causes:#?}", rule.id);
    }
}

/// Reports that a rule comes from, though they quote no error: questions, recipes, a compile error in words.
const WITHOUT_QUOTE: [&str; 4] = ["U001", "U003", "U044", "U158"];

#[test]
fn each_report_of_a_rule_is_tried() {
    let reports: Reports = toml::from_str(include_str!("reports.toml")).expect("reports.toml");
    for rule in &Rules::shipped().rules {
        for report in rule.reports.iter().filter(|report| !WITHOUT_QUOTE.contains(&report.as_str())) {
            assert!(reports.report.contains_key(report), "{} names {report}", rule.id);
        }
    }
}

#[test]
fn public_reports_get_their_cause() {
    let reports: Reports = toml::from_str(include_str!("reports.toml")).expect("reports.toml");
    for (report, (rule, log)) in &reports.report {
        assert_eq!(first(&told(log, None)), rule, "{report}: {log}");
    }
    let quoted: BTreeSet<&String> = reports.report.keys().collect();
    println!("{} reports", quoted.len());
    assert!(quoted.len() >= 91);
}

#[test]
fn what_was_said_first_counts_within_a_rank_and_the_rest_follows() {
    let log = "ninja: build stopped: subcommand failed.\n\
               a.cu(4): error: namespace \"cub\" has no member \"LaneId\"\n\
               error: #error C++20 or later compatible compiler is required to use ATen.\n\
               RuntimeError: CUDA error: no kernel image is available for execution on the device\n";
    let ids: Vec<String> = told(log, None).causes.into_iter().map(|cause| cause.id).collect();
    assert_eq!(ids, ["D19", "D17", "D03", "D12"]);
}

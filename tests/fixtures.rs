//! Every case below `fixtures/`: planned, compared byte for byte, proved, planned again, and taken back.
//!
//! `MAMBAPATCH_BLESS=1 cargo test --test fixtures` writes `after/` anew from what the engine gives. Read the change
//! before you commit it: the fixtures are what the engine is held against.
//! `MAMBAPATCH_CASE=crlf cargo test --test fixtures` runs the cases whose name holds that text.

mod cases;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use cases::{Case, Expected, cases, tree, write_tree};
use mambapatch::engine::arch::{Code, parse_codes};
use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::environment::Environment;
use mambapatch::engine::ops::Left;
use mambapatch::engine::ops::gencode::{ArchWish, Compiled};
use mambapatch::engine::patchset::bind::Bound;
use mambapatch::engine::patchset::load::Texts;
use mambapatch::engine::patchset::select::Request;
use mambapatch::engine::patchset::{PatchSets, Upstream, shipped};
use mambapatch::engine::plan::effect::EffectRow;
use mambapatch::engine::plan::prove::ProvedPlan;
use mambapatch::engine::plan::{Plan, PlanError, plan};
use mambapatch::engine::source::Sources;
use mambapatch::engine::tag::SourceVersion;
use mambapatch::engine::toolkit::Toolkit;

type Checked = Result<(), String>;

#[test]
fn every_fixture() {
    let bless = std::env::var("MAMBAPATCH_BLESS").is_ok_and(|value| value == "1");
    let only = std::env::var("MAMBAPATCH_CASE").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let all = cases(&root, bless).unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
    let cases: Vec<&Case> = all.iter().filter(|case| case.name.contains(&only)).collect();
    assert!(!cases.is_empty(), "no case below {} has `{only}` in its name", root.display());
    let faults: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            check(case, bless).err().map(|f| format!("== {}: {}\n{f}", case.name, case.file.about))
        })
        .collect();
    let held = cases.len() - faults.len();
    // Past the capture of the test runner, so that it is seen.
    let _ = writeln!(std::io::stderr(), "fixtures: {held} of {} cases hold", cases.len());
    assert!(faults.is_empty(), "{} of {} cases fail\n{}", faults.len(), cases.len(), faults.join("\n\n"));
}

static SHIPPED: LazyLock<PatchSets> =
    LazyLock::new(|| texts().load().unwrap_or_else(|error| panic!("{error}")));

/// The shipped sets. A set that upstreams use has no upstream of its own: its cases are trees of one that uses it alone.
fn texts() -> Texts {
    let mut texts = shipped::texts();
    for set in ["cuda-api", "selective-scan", "torch-api"] {
        let user = format!(
            "url = ''\ndistribution = ''\nmodule = ''\nfloor = '10.0'\ntested-through = '1.0'\npatches = []\n\
             uses = ['{set}']\nrecognise = []\n"
        );
        texts.insert(&format!("user of {set}/upstream.toml"), &user, None);
    }
    texts
}

/// The shipped patch sets, with the case's own beside or instead of them.
fn own_sets(case: &Case) -> Result<PatchSets, String> {
    let mut texts = texts();
    for (path, bytes) in case.patch_sets.iter() {
        texts.insert(path, &String::from_utf8_lossy(bytes), Some(&case.name));
    }
    texts.load().map_err(|error| format!("patch sets: {error}"))
}

fn check(case: &Case, bless: bool) -> Checked {
    let own;
    let sets = if case.patch_sets.is_empty() {
        &*SHIPPED
    } else {
        own = own_sets(case)?;
        &own
    };
    let user = format!("user of {}", case.upstream);
    let upstream = sets.upstream(&case.upstream).or_else(|| sets.upstream(&user));
    let upstream = upstream.ok_or_else(|| format!("no patch set is named `{}`", case.upstream))?;
    let request = request(case)?;
    let version = version(&case.file.version)?;
    let bound = Bound::new(upstream, version, &request, Catalogue::shipped());
    let found = bound.map_err(|error| error.to_string()).and_then(|bound| {
        let found = plan(&bound, &case.before).map_err(|error| told(&error));
        found.map(|plan| (plan, bound))
    });
    match (found, &case.expected) {
        (Err(error), Some(Expected::Error(wanted))) if error.contains(wanted) => Ok(()),
        (Err(error), Some(Expected::Error(wanted))) => {
            Err(format!("another error than expected\nexpected: {wanted}\nfound:    {error}"))
        }
        (Err(error), _) => Err(format!("error: {error}")),
        (Ok((plan, _)), Some(Expected::Error(wanted))) => {
            Err(format!("`{wanted}` was expected and this was planned\n{}", diff(&case.before, &plan.after)))
        }
        (Ok((plan, bound)), expected) => check_plan(case, expected.as_ref(), plan, &bound, bless),
    }
}

/// An error with the place that it speaks of.
fn told(error: &PlanError) -> String {
    match error.no_anchor() {
        None => error.to_string(),
        Some(missing) => {
            let nearest = missing.nearest.as_ref();
            let nearest =
                nearest.map(|site| format!("; nearest is line {}: {}", site.line, site.text.trim()));
            format!("no-anchor: {error}{}", nearest.unwrap_or_default())
        }
    }
}

fn check_plan(
    case: &Case,
    expected: Option<&Expected>,
    plan: Plan,
    bound: &Bound<'_>,
    bless: bool,
) -> Checked {
    let wanted = match expected {
        Some(Expected::After(after)) => after,
        _ => &case.before,
    };
    let blessed = bless && !matches!(expected, Some(Expected::Unchanged)) && plan.after != *wanted;
    if blessed {
        write_tree(&case.folder.join("after"), &plan.after).map_err(|error| error.to_string())?;
    }
    let found = plan.after.clone();
    check_outcomes(case, &plan, bound)?;
    check_effect(case, &plan, bound.upstream)?;
    let changes = !plan.is_empty();
    let proved = plan.prove(bound).map_err(|error| format!("{error}\n{}", diff(&case.before, &found)))?;
    if !blessed && found != *wanted {
        return Err(diff(wanted, &found));
    }
    if !changes && !blessed && matches!(expected, Some(Expected::After(_))) {
        return Err("`after/` is the same as `before/`: say `unchanged = true`".to_string());
    }
    check_again(bound, if blessed { &found } else { wanted })?;
    check_diffs(case, &proved, &found)
}

/// The settled tree is planned once more, as it was read: nothing changes.
fn check_again(bound: &Bound<'_>, after: &Sources) -> Checked {
    let again = plan(bound, after).map_err(|error| format!("planned again: {}", told(&error)))?;
    if again.is_empty() && again.after == *after {
        return Ok(());
    }
    Err(format!("planned again, it changes once more\n{}", diff(after, &again.after)))
}

/// `git apply` takes the diff, and the reverse diff gives back the tree.
fn check_diffs(case: &Case, proved: &ProvedPlan, after: &Sources) -> Checked {
    if proved.diff().is_empty() {
        return Ok(());
    }
    let there = applied(&case.before, &proved.diff())?;
    if there != *after {
        return Err(format!("the diff leads elsewhere\n{}", diff(after, &there)));
    }
    let back = applied(after, &proved.reverse_diff())?;
    if back != case.before {
        return Err(format!("the reverse diff leads elsewhere\n{}", diff(&case.before, &back)));
    }
    Ok(())
}

fn applied(sources: &Sources, patch: &[u8]) -> Result<Sources, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = folder.path().join("tree");
    let file = folder.path().join("patch");
    write_tree(&root, sources)
        .and_then(|()| std::fs::write(&file, patch))
        .map_err(|error| error.to_string())?;
    let mut git = Command::new("git");
    git.args(["-c", "core.autocrlf=false", "apply", "--whitespace=nowarn"]).arg(&file).current_dir(&root);
    git.env("GIT_CEILING_DIRECTORIES", folder.path())
        .env("GIT_CONFIG_GLOBAL", "")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.output().map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git apply: {}", String::from_utf8_lossy(&output.stderr)));
    }
    tree(&root)
}

fn check_outcomes(case: &Case, plan: &Plan, bound: &Bound<'_>) -> Checked {
    let ops: Vec<_> = plan.patches.iter().flat_map(|patch| &patch.ops).collect();
    let found = |id: &str| ops.iter().find(|op| op.id == id).map_or("not planned", |op| op.outcome.word());
    for (id, wanted) in &case.file.outcomes {
        if found(id) != wanted {
            let all: Vec<String> = ops
                .iter()
                .map(|op| format!("{} {}: {}", op.id, op.outcome.word(), op.outcome.detail()))
                .collect();
            return Err(format!("{id}: `{wanted}` was expected\n{}\n{}", all.join("\n"), changes(plan)));
        }
    }
    let left = |left: &Left| format!("{} line {}: {}", left.site.path, left.site.line, left.why);
    let said = ops.iter().flat_map(|op| {
        op.remarks.iter().cloned().chain(op.left.iter().map(left)).chain([op.outcome.detail()])
    });
    let said: Vec<String> = said.chain(bound.notes.iter().cloned()).collect();
    let unsaid: Vec<&String> =
        case.file.remarks.iter().filter(|text| !said.iter().any(|said| said.contains(*text))).collect();
    if !unsaid.is_empty() {
        return Err(format!("nothing says {unsaid:?}, but\n{}\n{}", said.join("\n"), changes(plan)));
    }
    let changed = ops.iter().any(|op| op.outcome.word() == "changed");
    if changed == plan.is_empty() {
        return Err(format!("the outcomes do not fit the edits: {said:?}\n{}", changes(plan)));
    }
    Ok(())
}

fn check_effect(case: &Case, plan: &Plan, upstream: &Upstream) -> Checked {
    let toolkits: Vec<Toolkit> =
        case.file.compiled.keys().map(|text| parsed(text)).collect::<Result<_, _>>()?;
    let environment = Environment { cuda: toolkits.clone(), ..Environment::default() };
    let request = Request { environment, ..Request::default() };
    if toolkits.is_empty() {
        return Ok(());
    }
    let bound = Bound::new(upstream, version(&case.file.version)?, &request, Catalogue::shipped());
    let bound = bound.map_err(|error| error.to_string())?;
    let rows: Vec<EffectRow> = plan.effect(&bound).into_iter().flat_map(|file| file.rows).collect();
    for (toolkit, wanted) in &case.file.compiled {
        let toolkit: Toolkit = parsed(toolkit)?;
        let row = rows.iter().find(|row| row.toolkit == toolkit);
        let found = row.map_or(String::new(), |row| labels(&row.after));
        if found != *wanted {
            let table = rows.iter().map(|row| format!("{}: {}", row.toolkit, labels(&row.after)));
            let table: Vec<String> = table.collect();
            return Err(format!(
                "CUDA {toolkit}: `{wanted}` was expected\n{}\n{}",
                table.join("\n"),
                changes(plan)
            ));
        }
    }
    Ok(())
}

fn labels(compiled: &[Compiled]) -> String {
    let label = |one: &Compiled| {
        let names: Vec<String> = one.gencode.codes.iter().map(Code::label).collect();
        if one.accepted { names.join(" ") } else { format!("[{}]", names.join(" ")) }
    };
    compiled.iter().map(label).collect::<Vec<_>>().join(" ")
}

fn request(case: &Case) -> Result<Request, String> {
    let file = &case.file;
    let codes = |arches: &[String]| -> Result<Vec<Code>, String> {
        let codes: Result<Vec<Vec<Code>>, _> = arches.iter().map(|arch| parse_codes(arch)).collect();
        Ok(codes.map_err(|error| error.to_string())?.concat())
    };
    let wish = ArchWish {
        add: codes(&file.add_arch)?,
        drop: codes(&file.drop_arch)?,
        only: codes(&file.only_arch)?,
    };
    let environment = Environment {
        cuda: file.cuda.iter().map(|text| parsed(text)).collect::<Result<_, _>>()?,
        torch: file.torch.as_ref().map(|text| parsed(text)).transpose()?,
        ..Environment::default()
    };
    let (patches, skip) = (file.patches.clone(), file.skip_patches.clone());
    Ok(Request { wish, environment, patches, skip, accept_advisory: false })
}

fn version(text: &str) -> Result<SourceVersion, String> {
    match text.strip_prefix("after ") {
        Some(tag) => parsed(tag).map(SourceVersion::After),
        None if text == "unknown" => Ok(SourceVersion::Unknown),
        None => parsed(text).map(SourceVersion::Release),
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Every file that differs, line by line, with what cannot be seen written out.
fn diff(wanted: &Sources, found: &Sources) -> String {
    let paths: BTreeSet<&str> = wanted.paths().chain(found.paths()).collect();
    let differing = paths.into_iter().filter(|path| wanted.get(path) != found.get(path));
    let shown = |sources: &Sources, path: &str| {
        let bytes = sources.get(path).map(|bytes| bytes.to_vec()).unwrap_or_default();
        bytes.split_inclusive(|byte| *byte == b'\n').map(visible).collect::<String>()
    };
    let one = |path: &str| {
        let (wanted, found) = (shown(wanted, path), shown(found, path));
        let diff = similar::TextDiff::from_lines(wanted.as_str(), found.as_str());
        format!("{}", diff.unified_diff().header(&format!("expected/{path}"), &format!("found/{path}")))
    };
    differing.map(one).collect::<Vec<_>>().join("\n")
}

/// `\t`, `\r`, blanks at the end, a missing newline and bytes that are no ASCII are written out.
fn visible(line: &[u8]) -> String {
    let (text, newline) = match line.strip_suffix(b"\n") {
        Some(text) => (text, ""),
        None => (line, " (no newline)"),
    };
    let text = text.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'");
    let blank = if text.ends_with(' ') { "$" } else { "" };
    format!("{text}{blank}{newline}\n")
}

fn changes(plan: &Plan) -> String {
    diff(&plan.before, &plan.after)
}

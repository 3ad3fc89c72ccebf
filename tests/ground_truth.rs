//! Upstream's own changes as the measure: where a release added an architecture, the patched release before it must hold
//! the same lines at the same place. It needs git mirrors (`MAMBAPATCH_MIRRORS`).

mod harness;

use harness::releases::{self, Release};
use mambapatch::engine::arch::parse_codes;
use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::environment::Environment;
use mambapatch::engine::ops::gencode::ArchWish;
use mambapatch::engine::patchset::bind::Bound;
use mambapatch::engine::patchset::select::Request;
use mambapatch::engine::patchset::shipped;
use mambapatch::engine::plan::plan;
use mambapatch::engine::tag::SourceVersion;

/// A release, what is added to it, and the release in which upstream added it, with the lines that it added.
struct Change {
    upstream: &'static str,
    before: &'static str,
    add: &'static str,
    after: &'static str,
    /// The lines between which upstream put them; they are the same in both releases.
    above: &'static str,
    lines: &'static [&'static str],
}

const GUARD: &str = "        if bare_metal_version >= Version(\"12.8\"):";
const FLAG: &str = "            cc_flag.append(\"-gencode\")";
const SM_90: &str = "            cc_flag.append(\"arch=compute_90,code=sm_90\")";
const SM_100: &str = "            cc_flag.append(\"arch=compute_100,code=sm_100\")";
const SM_120: &str = "            cc_flag.append(\"arch=compute_120,code=sm_120\")";

const CHANGES: [Change; 4] = [
    Change {
        upstream: "mamba-ssm",
        before: "v2.2.4",
        add: "100",
        after: "v2.2.5",
        above: SM_90,
        lines: &[GUARD, FLAG, SM_100],
    },
    Change {
        upstream: "mamba-ssm",
        before: "v2.2.5",
        add: "120",
        after: "v2.2.6",
        above: SM_100,
        lines: &[FLAG, SM_120],
    },
    Change {
        upstream: "causal-conv1d",
        before: "v1.5.0.post8",
        add: "100",
        after: "v1.5.1",
        above: SM_90,
        lines: &[GUARD, FLAG, SM_100],
    },
    Change {
        upstream: "causal-conv1d",
        before: "v1.5.2",
        add: "120",
        after: "v1.5.3",
        above: SM_100,
        lines: &[FLAG, SM_120],
    },
];

#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn a_patch_adds_the_lines_that_upstream_added() {
    let folder = releases::mirrors().expect("MAMBAPATCH_MIRRORS names mirrors");
    let releases = releases::from_mirrors(&folder);
    let cases = CHANGES.iter().map(|change| {
        let name = format!("{} {} + {}", change.upstream, change.before, change.add);
        (
            name.clone(),
            faults(change, &releases).into_iter().map(|fault| format!("{name}: {fault}")).collect(),
        )
    });
    harness::tally("changes of upstream's own", cases);
}

fn faults(change: &Change, releases: &[Release]) -> Vec<String> {
    let find = |version| {
        let found = releases.iter().find(|one| one.upstream == change.upstream && one.version == version);
        found.map(Release::setup).ok_or(format!("{version} is not in the mirror"))
    };
    let (before, after) = match (find(change.before), find(change.after)) {
        (Ok(before), Ok(after)) => (before, after),
        (before, after) => return [before, after].into_iter().filter_map(Result::err).collect(),
    };
    let patched = match patched(change, releases) {
        Ok(patched) => patched,
        Err(error) => return vec![error],
    };
    let wanted = [&[change.above], change.lines].concat().join("\n");
    let mut faults = Vec::new();
    for (text, name) in [(&after, "upstream"), (&patched, "the patch")] {
        let times = text.matches(&wanted).count();
        if times != 1 {
            faults.push(format!("{name} has these lines {times} times:\n{wanted}"));
        }
    }
    let below = |text: &str| {
        text.find(&wanted).map(|at| text[at + wanted.len()..].lines().nth(1).map(str::to_string))
    };
    let old = before.lines().skip_while(|line| *line != change.above).nth(1).map(str::to_string);
    if below(&patched) != Some(old) {
        faults.push("the lines below are not those of the release".to_string());
    }
    if patched.replacen(&format!("{}\n", change.lines.join("\n")), "", 1) != before {
        faults.push("the patch changes something else too".to_string());
    }
    faults
}

/// setup.py of the release before, patched and proved.
fn patched(change: &Change, releases: &[Release]) -> Result<String, String> {
    let release = releases.iter().find(|one| one.upstream == change.upstream && one.version == change.before);
    let release = release.ok_or("no such release")?;
    let sets = shipped::texts().load().map_err(|error| error.to_string())?;
    let upstream = sets.upstream(change.upstream).ok_or("no such upstream")?;
    let add = parse_codes(change.add).map_err(|error| error.to_string())?;
    let request = Request {
        wish: ArchWish { add, ..ArchWish::default() },
        environment: Environment::default(),
        ..Request::default()
    };
    let version = SourceVersion::Release(release.tag().ok_or("no tag")?);
    let bound =
        Bound::new(upstream, version, &request, Catalogue::shipped()).map_err(|error| error.to_string())?;
    let plan = plan(&bound, &release.files).map_err(|error| error.to_string())?;
    let proved = plan.prove(&bound).map_err(|error| error.to_string())?;
    let setup = proved.plan().after.get("setup.py").ok_or("no setup.py")?;
    String::from_utf8(setup.to_vec()).map_err(|error| error.to_string())
}

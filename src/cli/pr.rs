//! `pr`: a series of patches for upstream, and its push.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::apply::{branch_name, line, parameters};
use super::args::{Everywhere, PrArgs};
use super::diff::show;
use super::failure::Failure;
use super::next::quoted;
use super::planned::{Asked, Place, Planned, asked, infos, options, planned_at, target};
use super::standing::{Row, rows};
use super::style::{DIM, STRONG, paint};
use super::terminal::Terminal;
use super::{Answer, evidence, json as documents, tables};
use crate::checkout::git::{Push, push};
use crate::checkout::{CheckoutOptions, Releases, TargetSpec, Wanted};
use crate::deliver::links::{Links, links};
use crate::deliver::pull_request::{Folder, Offer, Order, Series, TEXT};
use crate::engine::ops::Outcome;
use crate::engine::patchset::UpstreamStatus;
use crate::engine::patchset::select::choose;
use crate::engine::plan::{PatchPlan, Plan};
use crate::engine::tag::{SourceVersion, Tag};

/// What came of it.
enum Done {
    /// Upstream has all of it; since which release, where one has it.
    Nothing { since: Option<Tag> },
    /// A series was made.
    Offered(Box<Offered>),
}

/// A series that lies in a folder, and was pushed perhaps.
struct Offered {
    series: Series,
    folder: Folder,
    branch: String,
    pushed: Option<Pushed>,
}

/// Where a branch was pushed to.
struct Pushed {
    address: String,
    links: Option<Links>,
}

/// Makes the series, shows it, and pushes it.
pub fn pr(args: &PrArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let mut asked = asked(&args.wish, everywhere, terminal)?;
    let spec = base(args, &asked)?;
    leave_out_unwanted(&spec, &mut asked, terminal)?;
    let place = Place { spec: &spec, source: &args.source, everywhere, other: None };
    let planned = planned_at(place, &asked, terminal)?;
    if !terminal.is_json() {
        show(&planned, terminal)?;
    }
    let done = if planned.proved.plan().is_empty() {
        let reported = planned.proved.plan().patches.iter().flat_map(|patch| &patch.ops);
        let reported = reported.into_iter().any(|op| matches!(op.outcome, Outcome::Reported { .. }));
        let since = if reported { None } else { since(&planned, place, &asked, terminal) };
        Done::Nothing { since }
    } else {
        offer(&planned, args, &options(&args.source, everywhere))?
    };
    if terminal.is_json() {
        let mut document = documents::planned(&planned);
        document["result"] = result(&done);
        terminal.answer(documents::text(&document).as_bytes())?;
    } else {
        tell(&done, &planned, args, terminal);
    }
    Ok(Answer::Yes)
}

/// What the series stands on: `--base`, else REF, else the branch that upstream works on.
fn base(args: &PrArgs, asked: &Asked) -> Result<TargetSpec, Failure> {
    let TargetSpec::Upstream { id, wanted, by_default } = target(&args.upstream, asked)? else {
        return Err(Failure::PathForUpstream { typed: args.upstream.clone() });
    };
    let wanted = match (&args.offer.base, wanted) {
        (Some(base), _) => Wanted::Ref(base.clone()),
        (None, Wanted::Newest) => Wanted::DefaultBranch,
        (None, wanted) => wanted,
    };
    Ok(TargetSpec::Upstream { id, wanted, by_default })
}

/// Takes out what upstream has said no to, or what is not meant for it, and says so; and what was offered before.
fn leave_out_unwanted(spec: &TargetSpec, asked: &mut Asked, terminal: &mut Terminal) -> Result<(), Failure> {
    let TargetSpec::Upstream { id, .. } = spec else { return Ok(()) };
    let Some(upstream) = asked.sets.upstream(id) else { return Ok(()) };
    let (chosen, _) =
        choose(upstream, &asked.request).map_err(crate::engine::patchset::bind::BindError::from)?;
    for patch in chosen {
        if patch.upstream_status == UpstreamStatus::Submitted {
            terminal.note(&format!("{} was offered before: {}", patch.id, patch.references.join(", ")));
        }
        if matches!(patch.upstream_status, UpstreamStatus::Rejected | UpstreamStatus::Inappropriate) {
            terminal.note(&format!("left out: {} is {} for upstream", patch.id, patch.upstream_status));
            let is_it = |named: &String| upstream.patch(named).is_some_and(|other| other.id == patch.id);
            asked.request.patches.retain(|named| !is_it(named));
            asked.request.skip.push(patch.id.clone());
        }
    }
    Ok(())
}

/// The first release from which on all that was asked for is there.
fn since(planned: &Planned<'_>, place: Place<'_>, asked: &Asked, terminal: &mut Terminal) -> Option<Tag> {
    let infos = infos(&asked.sets);
    let info = infos.iter().find(|info| info.id == planned.bound.upstream.id)?;
    let releases = Releases::open(info, &options(place.source, place.everywhere), &mut |_| {}).ok()?;
    let rows = rows(&releases, planned.bound.upstream, asked, terminal).ok()?;
    let newest = match &planned.bound.version {
        SourceVersion::Release(tag) | SourceVersion::After(tag) => tag,
        SourceVersion::Unknown => return None,
    };
    let known = rows.iter().rev().skip_while(|row| row.tag > *newest);
    let settled = |row: &&Row| row.standings.iter().all(|standing| standing.is_settled());
    known.take_while(settled).last().map(|row| row.tag.clone())
}

/// Makes the series, writes its folder, and pushes its branch.
fn offer(planned: &Planned<'_>, args: &PrArgs, options: &CheckoutOptions) -> Result<Done, Failure> {
    let target = &planned.target;
    let no_repository = || Failure::NoRepository { label: target.label.clone() };
    let source = target.repository().ok_or_else(no_repository)?;
    let base = target.commit().ok_or_else(no_repository)?;
    let address = args.offer.push.as_deref().map(|remote| address(remote, source)).transpose()?;
    let branch = args.offer.branch.clone().unwrap_or_else(|| branch_name(planned));
    let changing = planned.proved.plan().patches.iter().filter(|patch| !patch.changes.is_empty());
    let offers: Vec<Offer> = changing.map(|patch| offered(patch, planned)).collect();
    let order = Order {
        source,
        base,
        base_name: &target.reference,
        label: &target.label,
        branch: &branch,
        parameters: &command(planned, args),
        offers: &offers,
        effect: &tables::effect_for_others(&planned.proved.plan().effect(&planned.bound)),
        built: &evidence::told,
        signoff: args.offer.signoff,
    };
    let out = match &args.offer.out {
        Some(out) => options.full_path(out),
        None => options.current_dir.join(default_folder(planned)),
    };
    let series = order.make(&out)?;
    let folder = series.write(&out)?;
    let variables = &options.variables;
    let pushed = address.map(|address| {
        let current_dir = &options.current_dir;
        push(Push { folder: series.repository(), url: &address, branch: &branch, variables, current_dir })
            .map_err(crate::deliver::DeliverError::from)?;
        let upstream = planned.bound.upstream.project.as_ref().map_or("", |project| &project.url);
        let links = links(upstream, &address, (&target.reference, &branch));
        Ok::<_, Failure>(Pushed { address, links })
    });
    let pushed = pushed.transpose()?;
    Ok(Done::Offered(Box::new(Offered { series, folder, branch, pushed })))
}

/// The address of a remote: itself, or that of the source's remote of this name.
fn address(remote: &str, source: &crate::checkout::git::GitRepository) -> Result<String, Failure> {
    if remote.contains(['/', '\\', ':']) || remote.starts_with(['.', '~']) {
        return Ok(remote.to_string());
    }
    let unknown = || Failure::NoRemote { name: remote.to_string(), repository: source.path() };
    source.push_address(remote).ok_or_else(unknown)
}

fn default_folder(planned: &Planned<'_>) -> PathBuf {
    let base = planned.target.reference.replace(['/', '\\'], "-");
    format!("{}-{base}-pr", planned.bound.upstream.id).into()
}

fn offered(patch: &PatchPlan, planned: &Planned<'_>) -> Offer {
    let (before, after) = (patch.before.clone(), patch.after.clone());
    let alone = Plan { patches: vec![patch.clone()], before, after };
    let effect = alone.effect(&planned.bound);
    let changes = effect.iter().flat_map(|file| &file.rows).any(|row| row.before != row.after);
    let changed = patch.ops.iter().filter(|op| matches!(op.outcome, Outcome::Changed { .. }));
    Offer {
        title: patch.title.clone(),
        why: patch.why.clone(),
        references: patch.references.clone(),
        does: changed.map(|op| op.outcome.detail()).collect(),
        effect: if changes { tables::effect_for_others(&effect) } else { String::new() },
        files: patch.changes.iter().map(|(path, change)| (path.clone(), change.after.to_vec())).collect(),
    }
}

/// The command that makes the same series again.
fn command(planned: &Planned<'_>, args: &PrArgs) -> String {
    let flags = parameters(planned.bound.request, &planned.bound.by_name());
    let signoff = if args.offer.signoff { " --signoff" } else { "" };
    format!("mambapatch pr {}@{} {flags}{signoff}", planned.bound.upstream.id, planned.target.reference)
}

fn tell(done: &Done, planned: &Planned<'_>, args: &PrArgs, terminal: &mut Terminal) {
    let offered = match done {
        Done::Offered(offered) => offered,
        Done::Nothing { since } => {
            let label = &planned.target.label;
            return terminal.tell(&match since {
                Some(tag) => format!("nothing to upstream since v{tag}: {label} has it\n"),
                None => format!("nothing to upstream: {}\n", planned.nothing()),
            });
        }
    };
    let (folder, path) = (&offered.folder, offered.folder.path.display());
    let count = offered.series.mails().len();
    let patches = if count == 1 { "1 patch".to_string() } else { format!("{count} patches") };
    let (word, what) = match folder.already {
        true => ("nothing to do", format!("{path} holds these {patches} already")),
        false => ("done", format!("{patches} in {path}")),
    };
    terminal.tell(&line(word, &what));
    for name in &folder.kept {
        terminal.note(&format!("{name} was changed by hand and stays as it is"));
    }
    if let Some(pushed) = &offered.pushed {
        let address = crate::checkout::http::without_credentials(&pushed.address);
        terminal.tell(&line("done", &format!("branch {} at {address}", paint(STRONG, &offered.branch))));
    }
    terminal.tell(&next(offered, planned, args));
}

/// What to type next.
fn next(offered: &Offered, planned: &Planned<'_>, args: &PrArgs) -> String {
    let am = format!("git am {}", offered.mails());
    let steps = match &offered.pushed {
        Some(Pushed { links: Some(links), .. }) => vec![
            (links.compare.clone(), "opens the pull request on the web"),
            (offered.gh(links, &planned.target.reference), "opens it from here"),
        ],
        Some(_) => vec![(
            am,
            "the branch lies at no fork of upstream's that is known to have a page; the mails work everywhere",
        )],
        None => vec![
            (am, "in a clone at the base, to try them"),
            (
                format!("{} --push git@github.com:YOU/{}.git", again(planned, args), fork(planned)),
                "pushes to your fork",
            ),
        ],
    };
    let step =
        |(command, why): &(String, &str)| format!("  {command}\n  {}\n", paint(DIM, &format!("    # {why}")));
    format!("\n{}\n{}", paint(STRONG, "next"), steps.iter().map(step).collect::<String>())
}

impl Offered {
    /// The mails, as `git am` takes them.
    fn mails(&self) -> String {
        let flag = if self.series.title.starts_with('[') { "--keep-non-patch " } else { "" };
        format!("{flag}{}/*.patch", quoted(&self.folder.path))
    }

    /// The command that opens the pull request.
    fn gh(&self, links: &Links, base: &str) -> String {
        let title = self.series.title.replace('\'', r"'\''");
        let text = quoted(&self.folder.path.join(TEXT));
        let Links { repository, head, .. } = links;
        format!(
            "gh pr create --repo {repository} --base {base} --head {head} --title '{title}' --body-file {text}"
        )
    }
}

/// The command of this run, with its folder and branch.
fn again(planned: &Planned<'_>, args: &PrArgs) -> String {
    let mut command = command(planned, args);
    for (flag, value) in
        [("--out", args.offer.out.as_deref().map(quoted)), ("--branch", args.offer.branch.clone())]
    {
        command.push_str(&value.map_or(String::new(), |value| format!(" {flag} {value}")));
    }
    command
}

fn fork(planned: &Planned<'_>) -> String {
    let url = planned.bound.upstream.project.as_ref().map_or("", |project| &project.url);
    crate::checkout::git::owner_and_name(url).map_or_else(|| "REPOSITORY".to_string(), |(_, name)| name)
}

fn result(done: &Done) -> Value {
    match done {
        Done::Nothing { since } => json!({ "done": "nothing", "since": since.as_ref().map(Tag::to_string) }),
        Done::Offered(offered) => json!({
            "done": if offered.folder.already { "nothing" } else { "series" },
            "folder": offered.folder.path,
            "title": offered.series.title,
            "patches": offered.series.mails(),
            "branch": offered.branch,
            "tip": offered.series.tip,
            "kept": offered.folder.kept,
            "pushed": offered.pushed.as_ref().map(|pushed| json!({
                "to": crate::checkout::http::without_credentials(&pushed.address),
                "compare": pushed.links.as_ref().map(|links| &links.compare),
            })),
        }),
    }
}

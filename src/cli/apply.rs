//! `apply`: shows the diff, then makes a branch with one commit per patch, or writes into the files.

use serde_json::{Value, json};

use super::args::{ApplyArgs, Everywhere, PlaceArgs};
use super::diff::show;
use super::failure::Failure;
use super::next;
use super::planned::{Planned, asked, planned};
use super::style::{GOOD, STRONG, paint};
use super::terminal::Terminal;
use super::{Answer, json as documents};
use crate::checkout::{Checkout, CheckoutError, CommitToMake, Committed, InPlace, Origin, Written};
use crate::engine::arch::Code;
use crate::engine::patchset::select::Request;
use crate::engine::plan::PatchPlan;
use crate::engine::tag::SourceVersion;
use crate::signals::Held;

/// What was written.
pub enum Done {
    /// The tree is as it should be.
    Nothing,
    /// It would be written.
    DryRun,
    /// A branch was made, or was there already.
    Branch {
        /// Where.
        checkout: Checkout,
        /// Which.
        committed: Committed,
    },
    /// Files were written in place.
    Files {
        /// Where.
        checkout: Checkout,
        /// Which.
        written: Written,
    },
}

/// Patches a target.
pub fn apply(args: &ApplyArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let asked = asked(&args.plan.wish, everywhere, terminal)?;
    let planned = planned(&args.plan, everywhere, &asked, terminal)?;
    refuse_into_of_local(&planned, &args.place)?;
    if !terminal.is_json() {
        show(&planned, terminal)?;
    }
    let done = write(&planned, &args.place)?;
    if terminal.is_json() {
        let mut document = documents::planned(&planned);
        document["result"] = result(&done);
        terminal.answer(documents::text(&document).as_bytes())?;
    } else {
        tell(&done, &planned, terminal);
        if let Done::Branch { checkout, .. } | Done::Files { checkout, .. } = &done {
            terminal.tell(&next::steps(&planned, checkout));
        }
    }
    Ok(Answer::Yes)
}

/// A folder of the user's is patched where it lies, also when nothing is to be done.
pub fn refuse_into_of_local(planned: &Planned<'_>, place: &PlaceArgs) -> Result<(), Failure> {
    match &planned.target.origin {
        Origin::WorkTree { folder, .. } | Origin::Folder { folder } if place.into.is_some() => {
            Err(CheckoutError::IntoOfLocal { folder: folder.clone() }.into())
        }
        _ => Ok(()),
    }
}

/// Writes what is planned: a branch, or files in place.
pub fn write(planned: &Planned<'_>, place: &PlaceArgs) -> Result<Done, Failure> {
    let plan = planned.proved.plan();
    if plan.is_empty() {
        return Ok(Done::Nothing);
    }
    if place.dry_run {
        return Ok(Done::DryRun);
    }
    // What is made is made whole, or nothing of it stays.
    let held = Held::signals();
    let checkout = planned.target.prepare_checkout(place.into.as_deref())?;
    match write_to(&checkout, planned, (place, &held)) {
        Ok(Wrote::Branch(committed)) => Ok(Done::Branch { checkout, committed }),
        Ok(Wrote::Files(written)) => Ok(Done::Files { checkout, written }),
        Err(failure) => {
            checkout.take_back();
            Err(failure)
        }
    }
}

enum Wrote {
    Branch(Committed),
    Files(Written),
}

fn write_to(
    checkout: &Checkout,
    planned: &Planned<'_>,
    (place, held): (&PlaceArgs, &Held),
) -> Result<Wrote, Failure> {
    if held.is_stopped() {
        return Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into());
    }
    let plan = planned.proved.plan();
    if place.no_commit || !checkout.is_git() {
        let files: Vec<(String, Vec<u8>)> =
            plan.diffs().into_iter().map(|file| (file.path, file.after)).collect();
        let reverse = planned.proved.reverse_diff();
        let how = InPlace { reverse_patch: &reverse, allow_dirty: place.allow_dirty };
        return Ok(Wrote::Files(checkout.write_in_place(&files, how)?));
    }
    let branch = place.branch.clone().unwrap_or_else(|| branch_name(planned));
    let changing = plan.patches.iter().filter(|patch| !patch.changes.is_empty());
    let commits: Vec<CommitToMake> = changing.map(|patch| commit(patch, planned)).collect();
    Ok(Wrote::Branch(checkout.commit(&branch, &commits)?))
}

/// `mambapatch/v2.2.4+sm120+cuda13.0`, parts present only.
pub fn branch_name(planned: &Planned<'_>) -> String {
    let request = planned.bound.request;
    let mut parts = vec![state(planned)];
    let wish = &request.wish;
    let named = |prefix: &'static str, codes: &[Code]| {
        codes.iter().map(|code| format!("{prefix}{}", code.to_string().replace('_', ""))).collect::<Vec<_>>()
    };
    parts.extend(named("", &wish.add));
    parts.extend(named("only-", &wish.only));
    parts.extend(named("drop-", &wish.drop));
    parts.extend(request.environment.cuda.iter().map(|toolkit| format!("cuda{toolkit}")));
    parts.extend(request.environment.torch.iter().map(|torch| format!("torch{torch}")));
    parts.extend(planned.bound.by_name().iter().map(|id| id.rsplit('/').next().unwrap_or(id).to_string()));
    parts.extend(request.skip.iter().map(|id| format!("no-{}", id.rsplit('/').next().unwrap_or(id))));
    format!("mambapatch/{}", parts.join("+"))
}

/// The tag, else the commit: a branch moves on, and its name would say nothing.
fn state(planned: &Planned<'_>) -> String {
    let target = &planned.target;
    let prefix = planned.bound.upstream.project.as_ref().map_or("v", |project| &project.tag_prefix);
    match (&target.version, &target.origin) {
        (SourceVersion::Release(tag), _) => format!("{prefix}{tag}"),
        (_, Origin::Commit { commit, .. } | Origin::WorkTree { commit, .. }) => {
            commit.chars().take(12).collect()
        }
        _ => target.reference.clone(),
    }
}

/// The title, the reason and its references, then trailers that say how the commit came to be.
pub fn commit(patch: &PatchPlan, planned: &Planned<'_>) -> CommitToMake {
    let mut message = format!("{}\n\n{}\n", patch.title, patch.why);
    if !patch.references.is_empty() {
        message.push_str(&format!("\nReferences: {}\n", patch.references.join(", ")));
    }
    message.push_str(&format!("\nPatch-Set: {}\n", patch.id));
    message.push_str(&format!(
        "Patch-Parameters: {}\n",
        parameters(planned.bound.request, &planned.bound.by_name())
    ));
    message.push_str(&format!("{}: {}\n", crate::checkout::git::TRAILER, env!("CARGO_PKG_VERSION")));
    let files = patch.changes.iter().map(|(path, change)| (path.clone(), change.after.to_vec())).collect();
    CommitToMake { message, files }
}

/// The flags that give the same plan again.
pub fn parameters(request: &Request, patches: &[String]) -> String {
    let wish = &request.wish;
    let codes = |flag: &str, codes: &[Code]| {
        codes.iter().map(|code| format!("{flag} {}", written(*code))).collect::<Vec<_>>()
    };
    let mut flags = codes("--add-arch", &wish.add);
    flags.extend(codes("--drop-arch", &wish.drop));
    flags.extend(codes("--only-arch", &wish.only));
    flags.extend(request.environment.cuda.iter().map(|toolkit| format!("--cuda {toolkit}")));
    flags.extend(request.environment.torch.iter().map(|torch| format!("--torch {torch}")));
    flags.extend(patches.iter().map(|id| format!("--patch {id}")));
    flags.extend(request.skip.iter().map(|id| format!("--skip-patch {id}")));
    if request.accept_advisory {
        flags.push("--accept-advisory".to_string());
    }
    flags.join(" ")
}

/// An architecture as a flag takes it.
pub fn written(code: Code) -> String {
    match code {
        Code::Sass(arch) => arch.to_string(),
        Code::Ptx(_) | Code::Lto(_) => code.to_string(),
    }
}

/// What was written, and how to take it back.
pub fn tell(done: &Done, planned: &Planned<'_>, terminal: &mut Terminal) {
    match done {
        Done::Nothing => {
            terminal.tell(&line("nothing to do", &planned.nothing()));
            let chosen = !planned.proved.plan().patches.is_empty();
            next::unpatched(planned).into_iter().filter(|_| chosen).for_each(|text| terminal.tell(&text));
        }
        Done::DryRun => terminal.note("nothing was written (--dry-run)"),
        Done::Branch { checkout, committed } => {
            let folder = checkout.folder().display();
            let what = format!("branch {} in {folder}", paint(STRONG, &committed.branch));
            if committed.already {
                terminal.tell(&line("nothing to do", &format!("{what} holds it already")));
            } else {
                let count = committed.commits.len();
                let commits = if count == 1 { "1 commit".to_string() } else { format!("{count} commits") };
                terminal.tell(&line("done", &format!("{what}, {commits}")));
            }
            if committed.own_identity && !committed.already {
                terminal.note("git knows no name of yours, so the commits carry that of mambapatch");
            }
        }
        Done::Files { checkout, written } => {
            terminal.tell(&line(
                "done",
                &format!("files in {}: {}", checkout.folder().display(), written.files.join(", ")),
            ));
            if let Some(reverse) = &written.reverse_patch {
                let [folder, reverse] = [checkout.folder(), reverse].map(next::quoted);
                let undo = format!("patch -p1 -d {folder} < {reverse}");
                terminal.note(&format!("to take it back: {undo}"));
            }
            if !written.parted.is_empty() {
                let files = written.parted.join(", ");
                terminal.note(&format!("other hard links keep the old content: those of {files}"));
            }
        }
    }
}

/// A word in colour, and what it is about.
pub fn line(word: &str, text: &str) -> String {
    format!("{} {text}\n", paint(GOOD.bold(), &format!("{word}:")))
}

/// What was written, as a document.
pub fn result(done: &Done) -> Value {
    match done {
        Done::Nothing => json!({ "done": "nothing" }),
        Done::DryRun => json!({ "done": "dry-run" }),
        Done::Branch { checkout, committed } => json!({
            "done": if committed.already { "nothing" } else { "branch" },
            "folder": checkout.folder(),
            "branch": committed.branch,
            "commits": committed.commits,
            "tip": committed.tip,
        }),
        Done::Files { checkout, written } => json!({
            "done": "files",
            "folder": checkout.folder(),
            "files": written.files,
            "reverse-patch": written.reverse_patch,
            "parted": written.parted,
        }),
    }
}

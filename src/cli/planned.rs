//! The part of the road that apply, diff and check share: from what was typed to a proved plan.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::args::{Everywhere, PlanArgs, SourceArgs};
use super::failure::{Failure, Unplanned};
use super::request::request;
use super::terminal::Terminal;
use super::{unknown, unread};
use crate::checkout::{
    CheckoutOptions, Origin, Progress, Recognise, Target, TargetSpec, UpstreamInfo, resolve,
};
use crate::engine::catalogue::Catalogue;
use crate::engine::ops::Outcome;
use crate::engine::ops::files::{Files, Standing};
use crate::engine::patchset::bind::Bound;
use crate::engine::patchset::load::{Texts, is_part};
use crate::engine::patchset::select::Request;
use crate::engine::patchset::{PatchSets, Project, Upstream, shipped};
use crate::engine::plan::plan;
use crate::engine::plan::prove::ProvedPlan;
use crate::engine::source::Sources;

/// The upstream of a REF that names none.
pub const DEFAULT_UPSTREAM: &str = "mamba-ssm";

/// A target with its proved plan.
pub struct Planned<'a> {
    /// What was found.
    pub target: Target,
    /// The patch set, joined with the target and the request.
    pub bound: Bound<'a>,
    /// The plan.
    pub proved: ProvedPlan,
    /// Whether anything in the tree is CUDA.
    pub is_cuda: bool,
    /// Whether nothing was left unread that may hold what patches are for.
    pub is_read: bool,
    /// The folders of private patch sets that were given.
    pub patch_sets: Vec<PathBuf>,
}

impl Planned<'_> {
    /// Why nothing is to be done, for a plan that changes nothing.
    pub fn nothing(&self) -> String {
        if self.proved.plan().patches.is_empty() {
            return "these flags choose no patch".to_string();
        }
        if self.bound.upstream.project.is_none() && !self.is_cuda {
            return format!("there is no CUDA extension in {}", self.target.label);
        }
        let label = &self.target.label;
        let ops = || self.proved.plan().patches.iter().flat_map(|patch| &patch.ops);
        if ops().any(|op| matches!(op.outcome, Outcome::Reported { .. })) {
            return format!("no edit is left to make in {label}; what is reported is for a person");
        }
        if !self.bound.request.wish.is_empty() && ops().any(|op| !op.remarks.is_empty()) {
            return format!("no edit is left to make in {label}; the remarks say what else decides");
        }
        if !self.is_read {
            return format!("no edit is left to make in {label}; the notes say what was not looked at");
        }
        format!("{label} is as it should be")
    }

    /// What the person should know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.bound.notes.clone();
        if self.bound.upstream.project.is_none() && self.is_cuda {
            notes.extend(unknown::without_arches(self));
            notes.extend(unknown::own_cub(self));
        }
        if self.bound.upstream.project.is_some() && !self.target.carries_kernels() {
            let label = &self.target.label;
            notes.push(format!("{label} carries no kernels (.cu), so it cannot be compiled; git has them"));
        }
        notes
    }
}

/// The shipped patch sets, those of the user's configuration folder, and those of `--patchsets`.
pub fn patch_sets(everywhere: &Everywhere) -> Result<PatchSets, Failure> {
    let mut texts = shipped::texts();
    let variables = crate::checkout::Variables::of_process();
    if let Some(folder) =
        variables.config_folder().map(|folder| folder.join("patchsets")).filter(|folder| folder.is_dir())
    {
        read_folder(&folder, &mut texts)?;
    }
    for folder in &everywhere.patchsets {
        read_folder(folder, &mut texts)?;
    }
    Ok(texts.load()?)
}

fn read_folder(folder: &Path, texts: &mut Texts) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |cause: std::io::Error| Failure::PatchSets { path, cause: cause.to_string() }
    };
    let (mut loose, mut has_sets) = (None, false);
    for set in std::fs::read_dir(folder).map_err(failed(folder))? {
        let set = set.map_err(failed(folder))?.path();
        if set.file_name().and_then(|name| name.to_str()).is_some_and(|name| !shipped::is_set(name)) {
            continue;
        }
        if !set.is_dir() {
            loose = loose.or_else(|| set.extension().is_some_and(|ending| ending == "toml").then_some(set));
            continue;
        }
        for file in std::fs::read_dir(&set).map_err(failed(&set))? {
            let file = file.map_err(failed(&set))?.path();
            if is_part(&file.to_string_lossy()) {
                let toml = std::fs::read_to_string(&file).map_err(failed(&file))?;
                texts.insert(&name_of(&file), &toml, Some(&folder.display().to_string()));
                has_sets = true;
            }
        }
    }
    match loose.filter(|_| !has_sets) {
        Some(file) => {
            let cause = "it lies in no folder of a set".to_string();
            Err(Failure::PatchSets { path: file, cause })
        }
        None => Ok(()),
    }
}

/// `SET/FILE.toml`
fn name_of(file: &Path) -> String {
    let parts: Vec<_> =
        file.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

/// What the edge needs to know of the upstreams.
pub fn infos(sets: &PatchSets) -> Vec<UpstreamInfo> {
    let recognise = |project: &Project| {
        let rules = project.recognise.iter();
        rules.map(|rule| Recognise { file: rule.file.clone(), pattern: rule.pattern.clone() }).collect()
    };
    let info = |upstream: &Upstream| {
        let project = upstream.project.as_ref()?;
        Some(UpstreamInfo {
            id: upstream.id.clone(),
            distribution: project.distribution.clone(),
            git_url: Some(project.url.clone()),
            recognise: recognise(project),
            tag_prefix: project.tag_prefix.clone(),
        })
    };
    sets.upstreams.iter().filter_map(info).collect()
}

/// How sources are looked for.
pub fn options(source: &SourceArgs, everywhere: &Everywhere) -> CheckoutOptions {
    let mut options = CheckoutOptions::of_process();
    options.source = source.source.clone();
    options.index = source.index.clone();
    options.offline = everywhere.offline;
    options.default_upstream = DEFAULT_UPSTREAM.to_string();
    options
}

/// Where a target is looked for.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// What is looked for.
    pub spec: &'a TargetSpec,
    /// Where sources come from.
    pub source: &'a SourceArgs,
    /// What holds for every command.
    pub everywhere: &'a Everywhere,
    /// An upstream that no patch set is for.
    pub other: Option<&'a UpstreamInfo>,
}

/// Finds the target, reads what the patches look at, plans and proves.
pub fn planned<'a>(
    args: &PlanArgs,
    everywhere: &Everywhere,
    asked: &'a Asked,
    terminal: &mut Terminal,
) -> Result<Planned<'a>, Failure> {
    let spec = target(&args.target, asked)?;
    planned_at(Place { spec: &spec, source: &args.source, everywhere, other: None }, asked, terminal)
}

/// What a TARGET names.
pub fn target(typed: &str, asked: &Asked) -> Result<TargetSpec, Failure> {
    if let Some(set) = asked.sets.fallback().filter(|set| set.id == typed) {
        return Err(Failure::NoReleases { set: set.id.clone() });
    }
    Ok(TargetSpec::parse(typed, &infos(&asked.sets), DEFAULT_UPSTREAM)?)
}

/// A target that was found, with what is to be planned on it.
pub struct Found<'a> {
    /// What was found.
    pub target: Target,
    /// The patch set, joined with the target and the request.
    pub bound: Bound<'a>,
    /// The files that the patches look at.
    pub sources: Sources,
    /// Whether anything in it is CUDA.
    pub is_cuda: bool,
    /// Whether nothing was left unread that may hold what patches are for.
    pub is_read: bool,
    /// The folders of private patch sets that were given.
    pub patch_sets: Vec<PathBuf>,
}

impl<'a> Found<'a> {
    /// Plans and proves.
    pub fn planned(self) -> Result<Planned<'a>, Failure> {
        let proved = prove(&self.target, &self.bound, &self.sources)?;
        let changing = proved.plan().patches.iter().flat_map(|patch| patch.changes.keys());
        self.target.refuse_unwritable(changing.map(String::as_str))?;
        let Self { target, bound, is_cuda, is_read, patch_sets, .. } = self;
        Ok(Planned { target, bound, proved, is_cuda, is_read, patch_sets })
    }
}

/// Finds the target, reads what the patches look at, plans and proves.
pub fn planned_at<'a>(
    place: Place<'_>,
    asked: &'a Asked,
    terminal: &mut Terminal,
) -> Result<Planned<'a>, Failure> {
    find_at(place, asked, terminal)?.planned()
}

/// Finds the target and reads what the patches look at.
pub fn find_at<'a>(
    place: Place<'_>,
    asked: &'a Asked,
    terminal: &mut Terminal,
) -> Result<Found<'a>, Failure> {
    let upstreams: Vec<UpstreamInfo> = infos(&asked.sets).into_iter().chain(place.other.cloned()).collect();
    let options = options(place.source, place.everywhere);
    let target =
        resolve(place.spec, &upstreams, &options, &mut |progress: Progress| terminal.progress(progress))?;
    let upstream = match &target.upstream {
        Some(id) => asked.sets.upstream(id),
        None => asked.sets.fallback(),
    };
    let upstream = upstream.ok_or_else(|| not_recognised(&target, &asked.sets))?;
    check_floor(upstream, &asked.request)?;
    let mut bound = Bound::new(upstream, target.version.clone(), &asked.request, Catalogue::shipped())?;
    let (mut sources, skipped) = read(&target, upstream)?;
    bound.notes.extend(asked.sets.unused_notes());
    bound.notes.extend(skipped_note(&bound, &skipped));
    let unnamed =
        named(&target.unnamed).map(|names| format!("left out, as their names are no UTF-8: {names}"));
    bound.notes.extend(unnamed);
    bound.notes.extend(links(&target, upstream));
    let is_cuda = upstream.project.is_some() || unknown::is_cuda(&target, &sources)?;
    let mut is_read = true;
    if upstream.project.is_none() {
        bound.notes.extend(unknown::notes(&target, upstream, &upstreams)?);
        let label = &target.label;
        let nothing = "no .cu file, and no file that names nvcc or CUDA's API";
        bound.notes.extend((!is_cuda).then(|| format!("nothing in {label} is CUDA: {nothing}")));
        if !is_cuda && !unknown::is_torch(&sources) {
            sources = Sources::default();
        }
        bound.notes.extend(unknown::leave_out_made(&mut sources));
        let mut not_read = unknown::leave_out(&mut sources, LARGEST);
        not_read.extend(unread::notes(&sources));
        is_read = not_read.is_empty();
        bound.notes.extend(not_read);
    }
    let patch_sets = place.everywhere.patchsets.clone();
    Ok(Found { target, bound, sources, is_cuda, is_read, patch_sets })
}

/// Refuses a toolkit with which no release of the upstream is built.
pub fn check_floor(upstream: &Upstream, request: &Request) -> Result<(), Failure> {
    let below = request.environment.cuda.iter().find(|cuda| **cuda < upstream.floor);
    below.map_or(Ok(()), |cuda| {
        let (upstream, floor) = (upstream.id.clone(), upstream.floor);
        Err(Failure::BelowFloor { upstream, cuda: *cuda, floor })
    })
}

/// The largest file that is parsed: ten times the largest source that an upstream has.
const LARGEST: usize = 4 << 20;

/// The files that the patches of a set look at, and the paths that they leave out.
fn read(target: &Target, upstream: &Upstream) -> Result<(Sources, Vec<String>), Failure> {
    let files = Files::new(&upstream.globs());
    let skipped = RefCell::new(Vec::new());
    let wanted = |path: &str| {
        let standing = files.as_ref().map_or(Standing::Without, |files| files.standing(path));
        if matches!(standing, Standing::LeftOut(_)) {
            skipped.borrow_mut().push(path.to_string());
        }
        standing == Standing::Within
    };
    let sources = target.read(&wanted)?;
    Ok((sources, skipped.into_inner()))
}

/// What tells of links that stand where the patches look.
fn links(target: &Target, upstream: &Upstream) -> Option<String> {
    let files = Files::new(&upstream.globs()).ok()?;
    let links: Vec<String> = target.links.iter().filter(|path| files.contains(path)).cloned().collect();
    named(&links).map(|names| format!("left out, as they are symbolic links: {names}"))
}

/// What tells of the folders that the wanted ops leave out.
fn skipped_note(bound: &Bound<'_>, paths: &[String]) -> Option<String> {
    let ops = bound.patches.iter().flat_map(|patch| &patch.ops);
    let files: Vec<&Files> = ops.map(|op| op.op.files()).collect();
    let folder = |path: &'_ String| files.iter().find_map(|files| files.skipped(path)).map(str::to_string);
    let folders: BTreeSet<String> = paths.iter().filter_map(folder).collect();
    let names = named(&folders.into_iter().collect::<Vec<_>>())?;
    Some(format!("left out as code of others or for HIP: {names}"))
}

/// The first of some names, and how many more there are.
pub fn named(names: &[String]) -> Option<String> {
    const MOST: usize = 8;
    let first = &names[..names.len().min(MOST)];
    let more = names.len() - first.len();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!first.is_empty()).then(|| format!("{}{rest}", first.join(", ")))
}

/// Plans and proves what is bound on the sources of a target.
pub fn prove(target: &Target, bound: &Bound<'_>, sources: &Sources) -> Result<ProvedPlan, Failure> {
    check_size(sources)?;
    let failed = |error| {
        Failure::Plan(Box::new(Unplanned {
            error,
            set: bound.upstream.id.clone(),
            through: bound.upstream.project.as_ref().map(|_| bound.upstream.tested_through()),
            label: target.label.clone(),
            stays: bound.catalogue.best_for(&bound.request.environment.cuda, None),
        }))
    };
    let plan = plan(bound, sources).map_err(failed)?;
    Ok(plan.prove(bound)?)
}

/// Refuses what no person wrote before a grammar is let loose on it.
pub fn check_size(sources: &Sources) -> Result<(), Failure> {
    match sources.iter().find(|(_, bytes)| bytes.len() > LARGEST) {
        Some((path, bytes)) => Err(Failure::TooLarge { path: path.to_string(), bytes: bytes.len() }),
        None => Ok(()),
    }
}

/// The patch sets and what was asked for.
pub struct Asked {
    /// All patch sets.
    pub sets: PatchSets,
    /// What to do.
    pub request: Request,
}

/// Reads the patch sets and what to do; tells what the host has.
pub fn asked(
    wish: &super::args::WishArgs,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Asked, Failure> {
    let sets = patch_sets(everywhere)?;
    let (request, notes) = request(wish, Catalogue::shipped())?;
    if request.is_empty() {
        return Err(crate::engine::patchset::bind::BindError::NothingAsked.into());
    }
    notes.iter().for_each(|note| terminal.note(note));
    Ok(Asked { sets, request })
}

fn not_recognised(target: &Target, sets: &PatchSets) -> Failure {
    let known = |upstream: &Upstream| {
        let rules = upstream.project.iter().flat_map(|project| &project.recognise);
        let rules: Vec<String> =
            rules.map(|rule| format!("`{}` in {}", rule.pattern.as_str(), rule.file)).collect();
        format!("{} is known by {}", upstream.id, rules.join(" and "))
    };
    let place = match &target.origin {
        Origin::WorkTree { folder, .. } | Origin::Folder { folder } => folder.display().to_string(),
        Origin::Sdist { file_name } => file_name.clone(),
        Origin::Commit { repository, .. } => repository.display().to_string(),
    };
    Failure::NotRecognised { place, known: sets.upstreams.iter().map(known).collect() }
}

//! `gencode` for a source whose names are not known: `$LIST` stands for any list that flags are added to, and guards
//! are written as the file writes them.

use super::guard::{Evaluation, GuardForm, Known};
use super::known::known_if;
use super::reach::begun_again;
use super::worlds::{Truth, Worlds};
use super::{ArchWish, Compiled, GencodeError, GencodeOp, GencodeOpError, GencodePlan, Listed, Toolchain};
use crate::engine::arch::{Code, Gencode};
use crate::engine::edit::Edits;
use crate::engine::ops::emptied;
use crate::engine::ops::file_plan::{FilePlan, plan_files};
use crate::engine::ops::files::Files;
use crate::engine::ops::givers::Givers;
use crate::engine::ops::list::{asks_for_arch, taken_out_in};
use crate::engine::ops::one_chip;
use crate::engine::ops::{Aim, OpError, OpPlan};
use crate::engine::pattern::Pattern;
use crate::engine::source::{Sources, line_of};
use crate::engine::syntax::language::{Parsed, ancestors, descendants, descendants_holding};
use crate::engine::syntax::versions::{self, Whose};
use crate::engine::toolkit::Toolkit;

/// Statements that add one flag to any list.
#[derive(Debug, Clone)]
pub struct AnyGencodeOp {
    /// The build files.
    pub files: Files,
    /// The spellings of one entry, each with `$LIST` and `$GENCODE`.
    pub entries: Vec<Pattern>,
}

/// A list that statements add flags to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct List {
    name: String,
    /// The number of the spelling that comes first.
    spelling: usize,
    /// Where its entries stand, the first first.
    starts: Vec<usize>,
    /// Where their values stand.
    values: Vec<usize>,
    line: usize,
    gencodes: Vec<Gencode>,
    /// Whether an entry is only added where its architecture is asked for by name.
    on_request: bool,
}

impl AnyGencodeOp {
    /// Whether a file can hold such statements, judged without parsing it.
    pub fn may_hold(&self, bytes: &[u8]) -> bool {
        self.entries.iter().any(|entry| entry.may_match(bytes))
    }

    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources, aim: Aim<'_>) -> Result<OpPlan, OpError> {
        let plan = |parsed: &Parsed, _: &str| Ok(self.plan_file(parsed, aim));
        let nothing = "no statement adds an architecture to a list";
        plan_files((&self.files, sources), |bytes| self.may_hold(bytes), plan, (nothing, aim))
    }

    /// What to do to a file: list by list, each on the text that the one before left.
    fn plan_file(&self, parsed: &Parsed, aim: Aim<'_>) -> FilePlan {
        let mut plan = FilePlan::default();
        let mut text = parsed.bytes.to_vec();
        let toolchain = aim.toolchain;
        let worlds = Worlds::new(toolchain.catalogue, toolchain.floor, toolchain.cuda);
        let known = Known::default();
        let evaluation =
            Evaluation { parsed, forms: &[], any: true, worlds: &worlds, plain: Truth::Maybe, known: &known };
        let givers = Givers::of(parsed, evaluation, aim);
        for list in self.lists(parsed) {
            let Ok(current) = Parsed::new(parsed.language, text.clone().into()) else { continue };
            plan.lines.push(list.line);
            match self.plan_list((&list, &givers), (parsed, &current), aim) {
                Ok(one) => {
                    text = one.edits.apply(&text);
                    let named = |texts: Vec<String>| {
                        texts.into_iter().map(|text| format!("`{}`: {text}", list.name)).collect::<Vec<_>>()
                    };
                    plan.how.extend(named(one.how));
                    plan.remarks.extend(named(one.remarks));
                    plan.reported.extend(one.reported);
                }
                Err(why) => plan.reported.push(format!("`{}`: {why}", list.name)),
            }
        }
        plan.edits = Edits::between_lines(&parsed.bytes, &text);
        plan
    }

    /// The flags that each toolkit is given, list by list.
    pub fn compiled(&self, parsed: &Parsed, toolkits: &[Toolkit], toolchain: Toolchain<'_>) -> Vec<Listed> {
        let lists = self.lists(parsed).into_iter().filter(|list| !list.on_request);
        let listed = |list: List| {
            let mut given = self.op(&list, parsed).ok()?.compiled(parsed, toolkits, toolchain);
            for flags in &mut given {
                let mut seen: Vec<Compiled> = Vec::new();
                flags.retain(|flag| {
                    !seen.contains(flag) && {
                        seen.push(flag.clone());
                        true
                    }
                });
            }
            Some(Listed { name: format!("`{}`", list.name), line: list.line, adds: true, given })
        };
        lists.filter_map(listed).collect()
    }

    fn plan_list(
        &self,
        (list, givers): (&List, &Givers<'_>),
        (parsed, current): (&Parsed, &Parsed),
        Aim { wish, toolchain, .. }: Aim<'_>,
    ) -> Result<GencodePlan, String> {
        let left = |why: &str| {
            let remarks = vec![why.to_string()];
            let (how, reported) = (Vec::new(), Vec::new());
            Ok(GencodePlan { edits: Edits::new(), how, remarks, reported, line: list.line })
        };
        if list.on_request {
            return left("each arch is added only where it is asked for by name");
        }
        if let Some(line) = begun_again(parsed, &list.name, &list.starts) {
            return Err(format!(
                "line {line} gives this name to another list; each has to be seen to by hand, or take two names"
            ));
        }
        let op = self.op(list, parsed).map_err(|error| error.to_string())?;
        let wish = if op.from.is_some() { wish.clone() } else { list.without_guards(wish, toolchain) };
        let share = givers.of_statements(&list.values);
        let elsewhere = share.elsewhere(&wish, toolchain);
        let have: Vec<Code> = list.gencodes.iter().flat_map(|one| one.codes.clone()).collect();
        let serves = |code: &Code| have.iter().any(|have| have.serves(*code)) || elsewhere.contains(code);
        if let Some(why) =
            one_chip::left(&have, &wish.wanted().filter(|code| !serves(code)).collect::<Vec<_>>())
        {
            return Err(why);
        }
        if let Some(why) = list.taken_out(parsed, &wish, toolchain) {
            return Err(why);
        }
        let op = GencodeOp { elsewhere, others_stay: share.leaves_all(&wish, toolchain), ..op };
        let plan = op.plan(current, &wish, toolchain).map_err(|error| refused(&error, toolchain))?;
        let wants = |toolkit: Toolkit| {
            wish.wanted().any(|code| toolchain.catalogue.takes(toolkit, &Gencode::of(code)))
        };
        let stays = |flag: &Gencode, toolkit: Toolkit| {
            let kept = flag.codes.iter().any(|code| wish.keeps(*code));
            wants(toolkit) || (kept && toolchain.catalogue.takes(toolkit, flag))
        };
        match givers.emptied(&list.values, stays).filter(|_| !plan.edits.is_empty()) {
            Some(line) => {
                let why = emptied::why(&wish, (toolchain.cuda, None), toolchain.catalogue);
                Err(format!("line {line}: {why}"))
            }
            None => Ok(plan),
        }
    }

    fn op(&self, list: &List, parsed: &Parsed) -> Result<GencodeOp, GencodeOpError> {
        let (before, from) = self.entries.split_at(list.spelling);
        let spellings = from.iter().chain(before);
        let of_list =
            |entry: &Pattern| Pattern::new(entry.language, &entry.text.replace("$LIST", &list.name)).ok();
        let entries: Vec<Pattern> = spellings.filter_map(of_list).collect();
        let guard = |form: Option<String>| form.and_then(|form| Pattern::new(parsed.language, &form).ok());
        let style = guard_style(parsed, &list.starts);
        let (first, last) = (style.as_ref().map(GuardStyle::from), style.as_ref().map(GuardStyle::until));
        let op = GencodeOp::of_entries(
            self.files.clone(),
            &entries,
            (guard(first).as_ref(), guard(last).as_ref()),
        )?;
        let before = style.map_or_else(String::new, |style| style.before);
        let behind = |form: Option<GuardForm>| form.map(|form| form.behind(&before));
        Ok(GencodeOp { any: true, from: behind(op.from), until: behind(op.until), ..op })
    }

    /// The lists of a file, in the order of their first entries.
    fn lists(&self, parsed: &Parsed) -> Vec<List> {
        let mut lists: Vec<List> = Vec::new();
        for (spelling, entry) in self.entries.iter().enumerate() {
            for found in entry.find_all(parsed) {
                let bound = |name| found.bindings.get(name).map(|bound| bound.text.clone());
                let (Some(name), Some(Ok(gencode))) =
                    (bound("LIST"), bound("GENCODE").map(|text| text.parse::<Gencode>()))
                else {
                    continue;
                };
                let value = found.bindings.get("GENCODE").map(|value| value.range.start);
                let start = found.range.start;
                let line = line_of(&parsed.bytes, start);
                let on_request = is_on_request(start, parsed);
                let (starts, values, gencodes) = (vec![start], value.into_iter().collect(), vec![gencode]);
                let one = List { name, spelling, starts, values, line, gencodes, on_request };
                match lists.iter_mut().find(|list| list.name == one.name) {
                    Some(list) => list.add(one),
                    None => lists.push(one),
                }
            }
        }
        lists.sort_by_key(|list| list.line);
        lists
    }
}

impl List {
    fn add(&mut self, other: List) {
        self.gencodes.extend(other.gencodes);
        self.on_request |= other.on_request;
        if other.starts < self.starts {
            (self.line, self.spelling) = (other.line, other.spelling);
        }
        self.starts.extend(other.starts);
        self.values.extend(other.values);
        self.starts.sort_unstable();
    }

    /// What is said where a flag has to go that a statement takes out again: without it, that statement would fail.
    fn taken_out(&self, parsed: &Parsed, wish: &ArchWish, toolchain: Toolchain<'_>) -> Option<String> {
        let takes = |flag: &Gencode| {
            let mut cuda = toolchain.cuda.iter();
            cuda.all(|toolkit| toolchain.catalogue.takes(*toolkit, flag))
        };
        let goes = |flag: &&Gencode| !takes(flag) || !flag.codes.iter().all(|code| wish.keeps(*code));
        self.gencodes.iter().filter(goes).find_map(|flag| {
            let line = taken_out_in(&flag.to_string(), parsed)?;
            Some(format!("line {line} takes `{flag}` out again: take out both by hand"))
        })
    }

    /// Where no guard can be written, what a given toolkit refuses goes.
    fn without_guards(&self, wish: &ArchWish, toolchain: Toolchain<'_>) -> ArchWish {
        let takes = |gencode: &Gencode| {
            toolchain.cuda.iter().all(|toolkit| toolchain.catalogue.takes(*toolkit, gencode))
        };
        let refused = self.gencodes.iter().filter(|gencode| !takes(gencode));
        let mut wish = wish.clone();
        wish.drop.extend(refused.flat_map(|gencode| gencode.codes.clone()));
        wish
    }
}

/// An error as a person should read it.
fn refused(error: &GencodeError, toolchain: Toolchain<'_>) -> String {
    match error {
        GencodeError::NoGuardForm { .. } => {
            "the given toolkits do not all take what is wanted, and the file compares no toolkit".to_string()
        }
        GencodeError::NothingLeft => match toolchain.catalogue.best_for(toolchain.cuda, None) {
            Some(arch) => format!("no toolkit takes what would be left: name more, --add-arch {arch}"),
            None => "the given toolkits take no architecture together: give one --cuda".to_string(),
        },
        other => other.to_string(),
    }
}

/// Whether the `if`s around a place ask for an architecture by name: `"90" in archs`.
fn is_on_request(offset: usize, parsed: &Parsed) -> bool {
    let Some(node) = parsed.root().named_descendant_for_byte_range(offset, offset) else { return false };
    let conditions = ancestors(node).filter_map(|outer| outer.child_by_field_name("condition"));
    conditions.into_iter().any(|condition| descendants(condition).any(|inner| asks_for_arch(inner, parsed)))
}

/// Whether a guard for a toolkit can be written at a place.
pub(in crate::engine::ops) fn can_be_guarded(place: usize, parsed: &Parsed) -> bool {
    guard_style(parsed, &[place]).is_some()
}

/// How a file compares the toolkit with a version: `bare_metal_version`, `Version`, and what is asked before it.
struct GuardStyle {
    toolkit: String,
    version: String,
    before: String,
}

impl GuardStyle {
    fn from(&self) -> String {
        format!("{} >= {}(\"$FIRST\")", self.toolkit, self.version)
    }

    fn until(&self) -> String {
        format!("{} <= {}(\"$LAST\")", self.toolkit, self.version)
    }
}

/// The first comparison of the toolkit with a version that a call reads from a string, where the toolkit is known at
/// all these places already.
fn guard_style(parsed: &Parsed, places: &[usize]) -> Option<GuardStyle> {
    let mut offsets = ["ersion(", "parse("].map(|word| parsed.offsets_of(word)).concat();
    offsets.sort_unstable();
    let nodes = descendants_holding(parsed.root(), &offsets);
    let mut styles = nodes.filter(|node| node.kind() == "comparison_operator").filter_map(|node| {
        let (left, right) = (node.named_child(0)?, node.named_child(1)?);
        let function = right.child_by_field_name("function").filter(|_| right.kind() == "call")?;
        let string = right.child_by_field_name("arguments")?.named_child(0)?;
        let whole = versions::subject(left, parsed).filter(|it| it.whose == Whose::Toolkit && it.is_whole());
        whole.filter(|_| string.kind() == "string" && versions::version(right, parsed).is_some())?;
        let before = places.iter().map(|place| known_if(left, *place, parsed)).collect::<Option<Vec<_>>>()?;
        let before = before.into_iter().max()?;
        Some(GuardStyle { toolkit: parsed.text(left), version: parsed.text(function), before })
    });
    styles.next()
}

//! `gencode` for a source whose names are not known: `$LIST` stands for any list that flags are added to, and guards
//! are written as the file writes them.

use tree_sitter::Node;

use super::guard::{ANY_TOOLKIT, GuardForm};
use super::reach::begun_again;
use super::{ArchWish, GencodeError, GencodeOp, GencodeOpError, GencodePlan, Listed, Toolchain};
use crate::engine::arch::{Code, Gencode};
use crate::engine::edit::Edits;
use crate::engine::ops::file_plan::{FilePlan, plan_files};
use crate::engine::ops::files::Files;
use crate::engine::ops::list::asks_for_arch;
use crate::engine::ops::one_chip;
use crate::engine::ops::{Aim, OpError, OpPlan};
use crate::engine::pattern::Pattern;
use crate::engine::source::{Sources, line_of};
use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};
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
        for list in self.lists(parsed) {
            let Ok(current) = Parsed::new(parsed.language, text.clone().into()) else { continue };
            plan.lines.push(list.line);
            match self.plan_list(&list, &current, aim.wish, aim.toolchain) {
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
            let given = self.op(&list, parsed).ok()?.compiled(parsed, toolkits, toolchain);
            Some(Listed { name: format!("`{}`", list.name), line: list.line, given })
        };
        lists.filter_map(listed).collect()
    }

    fn plan_list(
        &self,
        list: &List,
        parsed: &Parsed,
        wish: &ArchWish,
        toolchain: Toolchain<'_>,
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
        let have: Vec<Code> = list.gencodes.iter().flat_map(|one| one.codes.clone()).collect();
        let missing = wish.wanted().filter(|code| !have.iter().any(|have| have.serves(*code)));
        if let Some(why) = one_chip::left(&have, &missing.collect::<Vec<_>>()) {
            return Err(why);
        }
        let op = self.op(list, parsed).map_err(|error| error.to_string())?;
        let wish = if op.from.is_some() { wish.clone() } else { list.without_guards(wish, toolchain) };
        op.plan(parsed, &wish, toolchain).map_err(|error| refused(&error, toolchain))
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
                let start = found.range.start;
                let line = line_of(&parsed.bytes, start);
                let on_request = is_on_request(start, parsed);
                let one =
                    List { name, spelling, starts: vec![start], line, gencodes: vec![gencode], on_request };
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
        self.starts.sort_unstable();
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

/// What must be asked before a name is read at a place, with its `and`: nothing where it is assigned before it, or a
/// parameter, in a function around it or in the file itself; `CUDA_HOME is not None` where it is assigned under that
/// alone. Where it may have no value for another reason, none.
fn known_if(name: Node<'_>, place: usize, parsed: &Parsed) -> Option<String> {
    if name.kind() != "identifier" {
        return Some(String::new());
    }
    let text = parsed.text(name);
    let is_it = |node: Node<'_>| descendants(node).any(|inner| parsed.text(inner) == text);
    let offsets = parsed.offsets_of(&text);
    let defined = descendants_holding(parsed.root(), &offsets).filter(|node| {
        let left = node.child_by_field_name("left").filter(|_| node.kind() == "assignment");
        left.is_some_and(is_it) || (node.kind() == "parameters" && is_it(*node))
    });
    let in_sight = |node: &Node<'_>| {
        node.end_byte() <= place && function(*node).is_none_or(|scope| scope.byte_range().contains(&place))
    };
    let asked: Vec<Vec<Node<'_>>> =
        defined.filter(in_sight).map(|node| branches_without(node, place)).collect();
    let deleted = |node: Node<'_>| node.kind() == "delete_statement" && is_it(node) && in_sight(&node);
    if asked.is_empty() || descendants_holding(parsed.root(), &offsets).any(deleted) {
        return None;
    }
    let is_each_branch = asked.iter().enumerate().any(|(at, one)| {
        let others = &asked[..at];
        others.iter().any(|other| whole_if(other) == whole_if(one) && other.last() != one.last())
    });
    // The file itself reads it there.
    let here = parsed.root().descendant_for_byte_range(place, place).and_then(function);
    let reads = |node: Node<'_>| {
        let compares = node.kind() == "comparison_operator" && is_it(node) && function(node) == here;
        compares && branches_without(node, place).is_empty()
    };
    let is_read = descendants_holding(parsed.root(), &offsets).any(reads);
    let always = is_each_branch || is_read || asked.iter().any(Vec::is_empty);
    if always { Some(String::new()) } else { before(asked.last()?, parsed) }
}

/// The function around a node.
fn function(node: Node<'_>) -> Option<Node<'_>> {
    ancestors(node).find(|outer| outer.kind() == "function_definition")
}

/// The `if` that the outermost of some branches belongs to.
fn whole_if<'t>(branches: &[Node<'t>]) -> Option<Node<'t>> {
    ancestors(*branches.last()?).find(|outer| outer.kind() == "if_statement")
}

/// The branches of `if`s around a node that are not around a place too.
fn branches_without(node: Node<'_>, place: usize) -> Vec<Node<'_>> {
    let is_branch = |outer: &Node<'_>| {
        let kinds = ["if_statement", "elif_clause", "else_clause"];
        outer.kind() == "block" && outer.parent().is_some_and(|parent| kinds.contains(&parent.kind()))
    };
    ancestors(node).filter(is_branch).filter(|branch| !branch.byte_range().contains(&place)).collect()
}

/// `CUDA_HOME is not None and `, where this branch is all of one `if` that asks just that; nothing has to be asked where
/// the other branch leaves the program.
fn before(branches: &[Node<'_>], parsed: &Parsed) -> Option<String> {
    let [branch] = branches else { return None };
    let statement = branch.parent().filter(|parent| parent.kind() == "if_statement")?;
    let others =
        significant_children(statement).into_iter().filter(|child| child.kind().ends_with("_clause"));
    let others: Vec<Node<'_>> = others.collect();
    if !others.is_empty() {
        let leaves = |clause: &Node<'_>| {
            descendants(*clause).any(|node| node.kind() == "raise_statement" || parsed.text(node) == "exit")
        };
        return others.iter().all(leaves).then(String::new);
    }
    let condition = statement.child_by_field_name("condition").map(|condition| parsed.text(condition))?;
    ANY_TOOLKIT.contains(&condition.as_str()).then(|| format!("{condition} and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    /// What must be asked before `v` is read in the last line.
    fn asked(text: &str) -> Option<String> {
        let text = format!("{text}\nif CUDA_HOME:\n    v\nhere()\n");
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("python");
        let (at, place) = (text.rfind("v\n").expect("name"), text.rfind("here").expect("place"));
        let name = parsed.root().named_descendant_for_byte_range(at, at).expect("name");
        known_if(name, place, &parsed)
    }

    #[test]
    fn a_guard_asks_first_whether_its_name_has_a_value() {
        let plain = Some(String::new());
        assert_eq!(asked("v = get()"), plain);
        assert_eq!(asked("w = get()"), None);
        let home = "if CUDA_HOME is not None:\n    _, v = get()";
        assert_eq!(asked(home), Some("CUDA_HOME is not None and ".to_string()));
        assert_eq!(asked(&format!("{home}\nif v >= 1: pass")), plain);
        assert_eq!(
            asked(&format!("{home}\n    if v >= 1: pass")),
            Some("CUDA_HOME is not None and ".to_string())
        );
        assert_eq!(asked("if a or b:\n    v = get()"), None);
        assert_eq!(asked("if a:\n    v = get()\nelse:\n    v = None"), plain);
        assert_eq!(asked("if a:\n    v = get()\nelse:\n    raise OSError"), plain);
        assert_eq!(asked("if a:\n    v = get()\nelif b:\n    print()"), None);
        assert_eq!(asked("if a:\n    if b:\n        v = get()"), None);
        assert_eq!(asked("if a:\n    v = get()\nif b:\n    v = get()"), None);
        assert_eq!(asked("def f():\n    v = get()"), None);
        assert_eq!(asked("def f():\n    v = get()\n    if v < 1: pass"), None);
        assert_eq!(asked("v = get()\ndel v"), None);
        assert_eq!(
            asked(&format!("{home}\ndef f():\n    if v < 1: pass")),
            Some("CUDA_HOME is not None and ".to_string())
        );
        let within = "if a:\n    v = get()\n    v >= Version(\"1\")\n";
        let parsed = Parsed::new(Language::Python, within.as_bytes().into()).expect("python");
        let place = within.rfind("v >=").expect("place");
        let name = parsed.root().named_descendant_for_byte_range(place, place).expect("name");
        assert_eq!(known_if(name, place, &parsed), plain);
    }
}

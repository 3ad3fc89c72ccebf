//! What gives a list of a Python file its flags: literals, and statements that add single flags. One of them adds what
//! is wanted.

use std::collections::BTreeSet;
use std::rc::Rc;

use tree_sitter::Node;

use super::Aim;
use super::flow::{Ends, Flow, Place, begins, branches, chooser, exclude_each_other, list_added_to};
use super::gencode::any::can_be_guarded;
use super::gencode::guard::{ANY_TOOLKIT, Evaluation};
use super::gencode::{ArchWish, Toolchain};
use super::list::resolve::{Origin, resolve};
use super::list::{is_compared, name_of};
use super::one_chip;
use crate::engine::arch::{Code, Gencode};
use crate::engine::catalogue::Catalogue;
use crate::engine::memo::Memo;
use crate::engine::source::line_of;
use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};
use crate::engine::toolkit::Toolkit;

/// The two names of an option.
const OPTIONS: [&str; 2] = ["-gencode", "--generate-code"];

/// What gives one list its flags beside others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// What adds what is wanted to the same list, where something else does.
    pub left_to: Option<String>,
    /// The list that it is a part of.
    pub part_of: Option<String>,
    /// What others give the list wherever this does.
    pub beside: Vec<Beside>,
}

/// A flag that stands elsewhere, in the same list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The flag.
    pub gencode: Gencode,
    /// The toolkits that are given it.
    pub toolkits: Vec<Toolkit>,
}

impl Share {
    /// What is wanted that others add, or give to every toolkit in question that takes it.
    pub fn elsewhere(&self, wish: &ArchWish, toolchain: Toolchain<'_>) -> Vec<Code> {
        let all: Vec<Toolkit> = match toolchain.cuda {
            [] => toolchain.catalogue.toolkits().iter().map(|row| row.version).collect(),
            given => given.to_vec(),
        };
        let readers = all.into_iter().filter(|toolkit| *toolkit >= toolchain.floor).collect::<Vec<_>>();
        let taking = |code: Code| {
            let takes = |toolkit: &&Toolkit| toolchain.catalogue.takes(**toolkit, &Gencode::of(code));
            readers.iter().filter(takes).copied().collect::<Vec<_>>()
        };
        wish.wanted().filter(|code| self.left_to.is_some() || self.serves(*code, &taking(*code))).collect()
    }

    /// Whether others leave a toolkit something to compile for.
    pub fn leaves(&self, wish: &ArchWish, toolkit: Toolkit, catalogue: &Catalogue) -> bool {
        let waits =
            self.left_to.is_some() && wish.wanted().any(|code| catalogue.takes(toolkit, &Gencode::of(code)));
        waits
            || self.beside.iter().any(|other| {
                other.toolkits.contains(&toolkit)
                    && catalogue.takes(toolkit, &other.gencode)
                    && other.gencode.codes.iter().any(|code| wish.keeps(*code))
            })
    }

    /// The same for all given toolkits; where none is given, for some.
    pub fn leaves_all(&self, wish: &ArchWish, toolchain: Toolchain<'_>) -> bool {
        let leaves = |toolkit: Toolkit| self.leaves(wish, toolkit, toolchain.catalogue);
        match toolchain.cuda {
            [] => toolchain.catalogue.toolkits().iter().any(|row| leaves(row.version)),
            given => given.iter().all(|toolkit| leaves(*toolkit)),
        }
    }

    /// Whether others give some toolkits what serves a result.
    pub fn serves(&self, code: Code, toolkits: &[Toolkit]) -> bool {
        self.beside.iter().any(|other| {
            other.gencode.codes.iter().any(|have| have.serves(code))
                && toolkits.iter().all(|toolkit| other.toolkits.contains(toolkit))
        })
    }
}

/// One of them.
struct Giver<'t> {
    /// A list, or a string that is added.
    node: Node<'t>,
    /// The list that it is added to, or begins, and its place.
    list: Option<(Node<'t>, Place)>,
    /// The statement around it, not those around that.
    statement: Option<Node<'t>>,
    /// Whether a statement adds it to what the list holds already.
    is_added: bool,
    /// Whether it is one flag alone.
    is_one: bool,
    /// Whether it is one flag that is joined to a list of which the file does not tell what it holds, or to one for a
    /// chip alone.
    is_joined: bool,
    ends: Rc<Ends>,
    branches: Vec<Node<'t>>,
    /// Those of the branches that something else than the toolkit decides about.
    open: Vec<Node<'t>>,
    /// The toolkits with which the program may get to it.
    toolkits: Vec<Toolkit>,
    gencodes: Vec<Gencode>,
}

/// All of a file.
pub struct Givers<'t> {
    parsed: &'t Parsed,
    flow: Flow<'t>,
    /// The toolkits that it must build with.
    given: &'t [Toolkit],
    /// Those in question that take something which is wanted.
    needed: Vec<Toolkit>,
    all: Vec<Giver<'t>>,
}

impl<'t> Givers<'t> {
    /// Those of a file.
    pub fn of(parsed: &'t Parsed, evaluation: Evaluation<'t>, aim: Aim<'t>) -> Self {
        let Toolchain { catalogue, cuda: given, .. } = aim.toolchain;
        let wants = |toolkit: &Toolkit| {
            aim.wish.wanted().any(|code| catalogue.takes(*toolkit, &Gencode::of(code)))
                && (given.is_empty() || given.contains(toolkit))
        };
        let needed = evaluation.worlds.toolkits().into_iter().filter(wants).collect();
        let offsets = parsed.offsets_of("compute_");
        let strings = descendants_holding(parsed.root(), &offsets).filter(|node| node.kind() == "string");
        let flow = Flow::new(parsed);
        let mut all: Vec<Giver<'t>> = Vec::new();
        for string in strings {
            let Some(gencode) = flag(&parsed.text(string)) else { continue };
            let in_list = string.parent().filter(|parent| matches!(parent.kind(), "list" | "tuple" | "set"));
            let node = in_list.unwrap_or(string);
            match all.iter_mut().rfind(|giver| giver.node == node) {
                Some(giver) => giver.gencodes.push(gencode),
                None if is_compared(node) => {}
                None => all.extend(Giver::new(node, gencode, (&flow, &evaluation))),
            }
        }
        for giver in &mut all {
            giver.is_one = is_one_flag(giver.node, parsed);
        }
        let sums = Memo::default();
        let chips = all.iter().filter(|giver| giver.is_for_one_chip());
        let chips: Vec<Rc<Ends>> = chips.map(|giver| Rc::clone(&giver.ends)).collect();
        for giver in all.iter_mut().filter(|giver| giver.is_one && !giver.is_added) {
            let beside = chips.iter().any(|ends| ends.hold(&giver.ends)) && !giver.is_for_one_chip();
            giver.is_joined = sum_around(giver.node)
                .is_some_and(|sum| beside || !sums.get(&sum.id(), || is_sum_known(sum, parsed)));
        }
        Self { parsed, flow, given, needed, all }
    }

    /// Whether a literal is one flag of which only a person can tell whether it stands for all architectures.
    pub fn is_joined(&self, literal: Node<'t>) -> bool {
        self.all.iter().any(|giver| giver.node == literal && giver.is_joined)
    }

    /// The part of a literal.
    pub fn of_literal(&self, literal: Node<'t>) -> Share {
        let Some(own) = self.all.iter().find(|giver| giver.node == literal) else { return Share::default() };
        let others = self.all.iter().filter(|other| other.node != own.node && !other.is_for_one_chip());
        let mut literals = others.filter(|other| other.adds_as_literal());
        let left_to = self.successor(own).or_else(|| literals.find(|other| self.covers(other, own)));
        self.share(left_to, &[own])
    }

    /// The part of statements that add single flags to one list, whose values begin at these places.
    pub fn of_statements(&self, places: &[usize]) -> Share {
        let is_own = |giver: &&Giver<'t>| {
            giver.is_statement() && places.iter().any(|place| giver.node.byte_range().contains(place))
        };
        let own: Vec<&Giver<'t>> = self.all.iter().filter(is_own).collect();
        let adds = |other: &Giver<'t>| {
            other.is_statement() || (other.adds_as_literal() && self.successor(other).is_none())
        };
        let covers = |other: &Giver<'t>| own.iter().all(|one| self.covers(other, one));
        let mut others = self.others(&own).filter(|other| !other.is_for_one_chip());
        let left_to = others.find(|other| covers(other) && adds(other));
        self.share(left_to, &own)
    }

    fn share(&self, left_to: Option<&Giver<'t>>, own: &[&Giver<'t>]) -> Share {
        let name = left_to.map(|other| self.name(other));
        Share { left_to: name.clone(), part_of: name, beside: self.beside(own) }
    }

    /// What its list is called.
    fn name(&self, giver: &Giver<'t>) -> String {
        match giver.list.as_ref().filter(|_| giver.is_statement()) {
            Some((list, _)) => format!("`{}`", self.parsed.text(*list)),
            None => name_of(giver.node, self.parsed),
        }
    }

    /// A statement that adds what is wanted to the list of a literal: the program comes to it whenever it came to the
    /// literal, or under a condition for the toolkit, beside which another one can be written.
    fn successor(&self, literal: &Giver<'t>) -> Option<&Giver<'t>> {
        let has_guard = |place: Node<'t>| can_be_guarded(place.start_byte(), self.parsed);
        self.all.iter().find(|other| {
            let is_for_one = || other.toolkits.iter().any(|toolkit| self.needed.contains(toolkit));
            let is_there = || {
                self.is_there_with(other, literal)
                    || (self.is_certain_beside(other, literal) && is_for_one() && has_guard(other.node))
            };
            let is_same = other.ends.hold(&literal.ends) && self.is_same_list(literal, other);
            other.is_statement() && !other.is_for_one_chip() && is_same && is_there()
        })
    }

    /// Whether the program comes to a giver whenever it comes to another one, with all given toolkits.
    fn is_there_with(&self, other: &Giver<'t>, own: &Giver<'t>) -> bool {
        let all_given =
            || !self.given.is_empty() && self.given.iter().all(|toolkit| other.toolkits.contains(toolkit));
        other.is_reached_with(own) || (self.is_certain_beside(other, own) && all_given())
    }

    /// Whether a giver is there wherever another one is; of two that both are, the later one counts.
    fn covers(&self, other: &Giver<'t>, own: &Giver<'t>) -> bool {
        let holds =
            |one: &Giver<'t>, two: &Giver<'t>| one.ends.hold(&two.ends) && self.is_there_with(one, two);
        let is_first_choice =
            !holds(own, other) || own.is_joined || other.node.start_byte() > own.node.start_byte();
        holds(other, own) && is_first_choice && self.is_same_list(own, other)
    }

    /// Whether the name that two givers share, if any, stands for one list from the first to the second.
    fn is_same_list(&self, one: &Giver<'t>, two: &Giver<'t>) -> bool {
        let (early, late) =
            if one.node.start_byte() < two.node.start_byte() { (one, two) } else { (two, one) };
        let (Some((_, first)), Some((_, second))) = (&early.list, &late.list) else { return true };
        if !first.is_like(second) || early.statement == late.statement {
            return true;
        }
        let Some(from) = early.statement else { return true };
        let between = from.end_byte()..late.node.start_byte();
        let begun = self.flow.begun(second);
        let mut begun = begun.iter().filter(|other| between.contains(&other.start_byte()));
        late.is_added && begun.all(|other| exclude_each_other(*other, early.node))
    }

    /// Whether the conditions around a giver that are not around another one all speak of the toolkit.
    fn is_certain_beside(&self, other: &Giver<'t>, own: &Giver<'t>) -> bool {
        other.open.iter().all(|branch| own.branches.contains(branch))
    }

    /// A line of statements that add flags, given by where their values begin, at which a given toolkit would get nothing
    /// any more: nothing of what `stays` for it is there with them.
    pub fn emptied(&self, places: &[usize], stays: impl Fn(&Gencode, Toolkit) -> bool) -> Option<usize> {
        let own = self
            .all
            .iter()
            .filter(|giver| places.iter().any(|place| giver.node.byte_range().contains(place)));
        let left = |own: &Giver<'t>, toolkit: Toolkit| {
            self.all.iter().any(|other| {
                other.gencodes.iter().any(|gencode| stays(gencode, toolkit))
                    && other.ends.hold(&own.ends)
                    && self.is_same_list(own, other)
                    && self.is_certain_beside(other, own)
                    && other.toolkits.contains(&toolkit)
            })
        };
        let is_emptied = |own: &&Giver<'t>| {
            let mut given = self.given.iter().filter(|toolkit| own.toolkits.contains(toolkit));
            given.any(|toolkit| !left(own, *toolkit))
        };
        let emptied =
            own.filter(is_emptied).map(|giver| line_of(&self.parsed.bytes, giver.node.start_byte()));
        emptied.min()
    }

    /// What others give the same list wherever these do.
    fn beside(&self, own: &[&Giver<'t>]) -> Vec<Beside> {
        let is_beside = |other: &&Giver<'t>| {
            own.iter().all(|one| {
                other.ends.hold(&one.ends)
                    && self.is_same_list(one, other)
                    && self.is_certain_beside(other, one)
            })
        };
        let flags = self.others(own).filter(is_beside).flat_map(|other| {
            let beside =
                |gencode: &Gencode| Beside { gencode: gencode.clone(), toolkits: other.toolkits.clone() };
            other.gencodes.iter().map(beside)
        });
        flags.collect()
    }

    /// All but these; none beside none.
    fn others<'s>(&'s self, own: &[&Giver<'t>]) -> impl Iterator<Item = &'s Giver<'t>> + use<'s, 't> {
        let ids: BTreeSet<usize> = own.iter().map(|one| one.node.id()).collect();
        self.all.iter().filter(move |other| !ids.is_empty() && !ids.contains(&other.node.id()))
    }
}

impl<'t> Giver<'t> {
    /// `None` for what is neither a list nor added to one.
    fn new(
        node: Node<'t>,
        gencode: Gencode,
        (flow, evaluation): (&Flow<'t>, &Evaluation<'t>),
    ) -> Option<Self> {
        let added_to = list_added_to(node, evaluation.parsed);
        if node.kind() == "string" && added_to.is_none() {
            return None;
        }
        let list = added_to.or_else(|| begins(node));
        let branches = branches(node);
        let is_open = |branch: &Node<'t>| !is_certain(*branch, evaluation);
        Some(Self {
            node,
            list: list.map(|name| (name, flow.place(name))),
            statement: statement_of(node),
            is_added: added_to.is_some(),
            is_one: false,
            is_joined: false,
            ends: flow.ends(node),
            open: branches.iter().copied().filter(is_open).collect(),
            branches,
            toolkits: evaluation.toolkits(node),
            gencodes: vec![gencode],
        })
    }

    /// Whether a statement adds one flag, and other such statements can stand beside it.
    fn is_statement(&self) -> bool {
        self.is_added && self.is_one
    }

    /// Whether what is wanted is put into the literal itself. Only a person can tell for what one flag stands that is
    /// joined to another list.
    fn adds_as_literal(&self) -> bool {
        !self.is_statement() && !self.is_joined
    }

    /// Whether it is left as it is, whatever is wanted.
    fn is_for_one_chip(&self) -> bool {
        let codes: Vec<Code> = self.gencodes.iter().flat_map(|gencode| gencode.codes.clone()).collect();
        one_chip::are_all_specific(&codes)
    }

    /// Whether the program comes to this whenever it comes to the other.
    fn is_reached_with(&self, other: &Self) -> bool {
        self.branches.iter().all(|branch| other.branches.contains(branch))
    }
}

/// Whether the toolkit alone decides about a branch, or nothing but whether there is one.
pub fn is_certain(branch: Node<'_>, evaluation: &Evaluation<'_>) -> bool {
    let certain = |condition: Node<'_>| {
        let asks_for_any = ANY_TOOLKIT.contains(&evaluation.parsed.text(condition).as_str());
        asks_for_any || evaluation.presence(condition).is_certain()
    };
    let Some(owner) = branch.parent() else { return false };
    match chooser(branch).filter(|statement| statement.kind() == "if_statement") {
        Some(statement) => {
            let clauses = significant_children(statement).into_iter();
            let clauses = clauses.filter(|child| child.kind() == "elif_clause");
            let mut owners = std::iter::once(statement).chain(clauses);
            owners.all(|one| one.child_by_field_name("condition").is_some_and(certain))
        }
        None => owner.kind() == "conditional_expression" && owner.named_child(1).is_some_and(certain),
    }
}

/// The statement around a node, not those around that.
fn statement_of(node: Node<'_>) -> Option<Node<'_>> {
    ancestors(node).find(|outer| outer.kind().ends_with("_statement"))
}

/// The sum that a literal is a part of.
fn sum_around(literal: Node<'_>) -> Option<Node<'_>> {
    ancestors(literal).take_while(|outer| outer.kind() == "binary_operator").last()
}

/// Whether nothing but literals stands in a sum.
fn is_sum_known(sum: Node<'_>, parsed: &Parsed) -> bool {
    let mut open = vec![sum];
    while let Some(node) = open.pop() {
        match node.kind() {
            "binary_operator" => open.extend(significant_children(node).into_iter().filter(Node::is_named)),
            _ if !matches!(resolve(node, parsed), Origin::Literal { .. }) => return false,
            _ => {}
        }
    }
    true
}

/// The flag that a string spells, or its value.
fn flag(text: &str) -> Option<Gencode> {
    let text = text.trim_matches(['"', '\'']);
    let value = OPTIONS.iter().find_map(|option| text.strip_prefix(option)?.strip_prefix('='));
    value.unwrap_or(text).parse().ok()
}

/// Whether a string, or a list, that holds a flag holds nothing else.
fn is_one_flag(node: Node<'_>, parsed: &Parsed) -> bool {
    let items: Vec<Node<'_>> = significant_children(node).into_iter().filter(Node::is_named).collect();
    match (node.kind(), items.as_slice()) {
        ("string", _) | (_, [_]) => true,
        (_, [option, _]) => OPTIONS.contains(&parsed.text(*option).trim_matches(['"', '\''])),
        _ => false,
    }
}

/// The statement that adds this to a list and does nothing else.
pub fn adding_statement<'t>(added: Node<'t>, parsed: &Parsed) -> Option<Node<'t>> {
    list_added_to(added, parsed)?;
    let statement = statement_of(added).filter(|statement| statement.kind() == "expression_statement")?;
    let is_it = |adding: Node<'t>| added.parent() == Some(adding) || ancestors(added).nth(1) == Some(adding);
    statement.named_child(0).is_some_and(is_it).then_some(statement)
}

/// Whether something stands beside a statement that stays: not only others that add flags.
pub fn leaves_a_block(statement: Node<'_>) -> bool {
    let siblings = statement.parent().map(significant_children).unwrap_or_default();
    let adds = |one: &Node<'_>| {
        let inner = one.named_child(0).filter(|_| one.kind() == "expression_statement");
        inner.is_some_and(|inner| matches!(inner.kind(), "call" | "assignment" | "augmented_assignment"))
    };
    // A statement that holds such ones may go with them.
    let holds_one = |one: &Node<'_>| {
        descendants(*one).any(|inner| inner.kind() == "augmented_assignment" || inner.kind() == "attribute")
    };
    let stays = |one: &Node<'_>| !adds(one) && (one.named_child_count() == 0 || !holds_one(one));
    siblings.iter().any(|other| *other != statement && stays(other))
}

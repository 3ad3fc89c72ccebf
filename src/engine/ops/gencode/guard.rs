//! Reading guards by evaluating them, and writing new ones.

use tree_sitter::Node;

use super::worlds::{Presence, Truth, World, Worlds};
use crate::engine::memo::Memo;
use crate::engine::ops::choice::{Choice, may_choose};
use crate::engine::pattern::{Pattern, Template, Unbound};
use crate::engine::syntax::language::{Parsed, ancestors};
use crate::engine::syntax::versions::{self, Whose};
use crate::engine::toolkit::Toolkit;

/// How a source says "from this toolkit on": `bare_metal_version >= Version("$FIRST")`.
#[derive(Debug, Clone)]
pub struct GuardForm {
    template: Template,
    subject: Pattern,
    version: Pattern,
    name: &'static str,
}

impl GuardForm {
    /// Reads a comparison of the toolkit with `$FIRST`, `$LAST` or `$GONE`; `None` where it is none.
    pub fn new(pattern: &Pattern) -> Option<Self> {
        let name = ["FIRST", "LAST", "GONE"].into_iter().find(|name| pattern.has(name))?;
        let (subject, version) = pattern.comparison()?;
        Some(Self { template: Template::new(&pattern.text), subject, version, name })
    }

    /// The same, which asks something else first: `CUDA_HOME is not None and `.
    pub fn behind(self, before: &str) -> Self {
        Self { template: Template::new(&format!("{before}{}", self.template)), ..self }
    }

    /// As it was written.
    pub fn text(&self) -> String {
        self.template.to_string()
    }

    /// The condition for one toolkit: the first that knows, the last that knows, or the first that refuses.
    pub fn write(&self, bounds: Bounds) -> Result<String, Unbound> {
        self.template.fill(|name| {
            let toolkit = match name {
                "FIRST" => bounds.first,
                "LAST" => bounds.last,
                "GONE" => bounds.gone,
                _ => None,
            };
            toolkit.map(|toolkit| toolkit.to_string())
        })
    }
}

/// The toolkits between which an architecture is known; `None`: no bound on that side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// The first that knows it.
    pub first: Option<Toolkit>,
    /// The last that knows it.
    pub last: Option<Toolkit>,
    /// The first that refuses it.
    pub gone: Option<Toolkit>,
}

/// What holds wherever there is a toolkit. Before a comparison of its version it only keeps a name from being read that
/// has no value; alone it is a condition that nobody knows, whose branches are places of their own.
pub const ANY_TOOLKIT: [&str; 2] = ["CUDA_HOME is not None", "CUDA_HOME"];

/// Evaluates the conditions of one file.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'a> {
    /// The file.
    pub parsed: &'a Parsed,
    /// How it compares the toolkit.
    pub forms: &'a [GuardForm],
    /// Whether comparisons of the toolkit count that are written in any other way.
    pub any: bool,
    /// The circumstances.
    pub worlds: &'a Worlds,
    /// What a condition that cannot be read counts as where it chooses no architecture.
    pub plain: Truth,
    /// What was found out already.
    pub known: &'a Known,
}

/// In which worlds conditions hold that were looked at, by their nodes and by what counts for those that cannot be read.
pub type Known = Memo<(usize, Truth), Presence>;

impl Evaluation<'_> {
    /// In which worlds a condition holds.
    pub fn presence(&self, condition: Node<'_>) -> Presence {
        let look = || self.worlds.presence(|world| self.truth(condition, world));
        self.known.get(&(condition.id(), self.plain), look)
    }

    fn truth(&self, node: Node<'_>, world: World) -> Truth {
        let is_plain = || self.plain != Truth::Maybe && !may_choose(&self.parsed.text(node));
        match self.told(node, world) {
            Truth::Maybe if is_plain() => self.plain,
            told => told,
        }
    }

    /// Whether something may choose an architecture there that cannot be read.
    fn may_choose(&self, condition: Node<'_>) -> bool {
        let is_open = |plain| {
            let presence = Evaluation { plain, ..*self }.presence(condition);
            let mut worlds = self.worlds.iter().enumerate();
            worlds.any(|(at, world)| world != World::Hip && presence.at(at) == Truth::Maybe)
        };
        is_open(Truth::Yes) || is_open(Truth::No)
    }

    /// The innermost condition around a node that may choose an architecture.
    pub fn choice(&self, node: Node<'_>) -> Option<Choice> {
        let pairs = std::iter::successors(Some(node), Node::parent).zip(ancestors(node));
        let mut around = pairs.flat_map(|(inner, outer)| deciding(inner, outer));
        let found = around.find(|(condition, _)| self.may_choose(*condition));
        found.map(|(condition, _)| Choice::at(condition.byte_range(), &self.parsed.bytes))
    }

    fn told(&self, node: Node<'_>, world: World) -> Truth {
        let part = |field: &str| {
            node.child_by_field_name(field).map_or(Truth::Maybe, |part| self.truth(part, world))
        };
        match node.kind() {
            "parenthesized_expression" => {
                node.named_child(0).map_or(Truth::Maybe, |inner| self.truth(inner, world))
            }
            "not_operator" => !part("argument"),
            "boolean_operator" => {
                let first = node.child_by_field_name("left").map(|left| self.parsed.text(left));
                let asks_first = first.is_some_and(|first| ANY_TOOLKIT.contains(&first.as_str()));
                let (left, right) = (part("left"), part("right"));
                let is_and = node.child_by_field_name("operator").is_some_and(|word| word.kind() == "and");
                match is_and {
                    true if self.any && asks_first && world != World::Hip => right,
                    true => left.min(right),
                    false => left.max(right),
                }
            }
            "comparison_operator" => self.comparison(node, world),
            "true" => Truth::Yes,
            "false" | "none" => Truth::No,
            "integer" => Truth::of(self.parsed.text(node) != "0"),
            "call" if self.any && versions::beginning(node, self.parsed).is_some() => {
                self.beginning(node, world).unwrap_or(Truth::Maybe)
            }
            _ if self.speaks_of_hip(node) => Truth::of(world == World::Hip),
            _ => Truth::Maybe,
        }
    }

    /// `torch.version.cuda.startswith("11.")`
    fn beginning(&self, call: Node<'_>, world: World) -> Option<Truth> {
        let World::Cuda(toolkit) = world else { return None };
        let (subject, text) = versions::beginning(call, self.parsed)?;
        let numbers = subject.numbers(toolkit.major.into(), toolkit.minor.into());
        versions::begins(&numbers, &text).filter(|_| subject.whose == Whose::Toolkit).map(Truth::of)
    }

    /// In which worlds a node is reached, as far as the `if`s around it decide.
    pub fn reached(&self, node: Node<'_>) -> Presence {
        let mut reached = self.worlds.everywhere();
        let mut inner = node;
        while let Some(outer) = inner.parent() {
            reached = reached.and(&self.let_through(inner, outer));
            inner = outer;
        }
        reached
    }

    /// The toolkits with which the program may get to a node.
    pub fn toolkits(&self, node: Node<'_>) -> Vec<Toolkit> {
        let reached = self.reached(node);
        let reaches = |(at, world)| match world {
            World::Cuda(toolkit) if reached.at(at) != Truth::No => Some(toolkit),
            World::Cuda(_) | World::Hip => None,
        };
        self.worlds.iter().enumerate().filter_map(reaches).collect()
    }

    /// Where a node lets one of its children be reached.
    fn let_through(&self, inner: Node<'_>, outer: Node<'_>) -> Presence {
        deciding(inner, outer).into_iter().fold(self.worlds.everywhere(), |all, (condition, holds)| {
            let presence = self.presence(condition);
            all.and(&if holds { presence } else { presence.negated() })
        })
    }

    fn speaks_of_hip(&self, node: Node<'_>) -> bool {
        names_hip(&self.parsed.text(node))
    }

    /// `a < b <= c`: each neighbouring pair must hold.
    fn comparison(&self, node: Node<'_>, world: World) -> Truth {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).filter(|child| !child.is_extra()).collect();
        let pairs = children.windows(3).step_by(2);
        pairs.map(|pair| self.pair(pair[0], pair[1].kind(), pair[2], world)).min().unwrap_or(Truth::Maybe)
    }

    fn pair(&self, left: Node<'_>, operator: &str, right: Node<'_>, world: World) -> Truth {
        if let Some(is_hip) = self.platform(left, right) {
            return match operator {
                "is" | "==" => Truth::of((world == World::Hip) == is_hip),
                "is not" | "!=" => Truth::of((world == World::Hip) != is_hip),
                _ => Truth::Maybe,
            };
        }
        let World::Cuda(toolkit) = world else { return Truth::Maybe };
        let ordering = match self.subject(left, toolkit).zip(self.version(right)) {
            Some((have, wanted)) => versions::compare(&have, &wanted),
            None => match self.version(left).zip(self.subject(right, toolkit)) {
                Some((wanted, have)) => versions::compare(&wanted, &have),
                None => return Truth::Maybe,
            },
        };
        match operator {
            "<" => Truth::of(ordering.is_lt()),
            "<=" => Truth::of(ordering.is_le()),
            ">" => Truth::of(ordering.is_gt()),
            ">=" => Truth::of(ordering.is_ge()),
            "==" => Truth::of(ordering.is_eq()),
            "!=" => Truth::of(ordering.is_ne()),
            _ => Truth::Maybe,
        }
    }

    /// Whether the equality of two expressions means a HIP build (`HIP_BUILD == True`, `TARGET == "rocm"`) or a CUDA
    /// build (`torch.version.hip is None`, `TARGET == "cuda"`); `None`: it tells nothing of the kind.
    fn platform(&self, left: Node<'_>, right: Node<'_>) -> Option<bool> {
        if right.kind() == "string" {
            let text = self.parsed.text(right).to_lowercase();
            let text = text.trim_matches(['"', '\'']);
            return if text == "cuda" { Some(false) } else { names_hip(text).then_some(true) };
        }
        match right.kind() {
            "none" | "false" if self.speaks_of_hip(left) => Some(false),
            "true" if self.speaks_of_hip(left) => Some(true),
            _ => None,
        }
    }

    /// The numbers of the toolkit that an expression stands for: the version itself or its `.major`.
    fn subject(&self, node: Node<'_>, toolkit: Toolkit) -> Option<Vec<u64>> {
        let is_subject =
            |node| self.forms.iter().any(|form| form.subject.match_node(self.parsed, node).is_some());
        if is_subject(node) {
            return Some(vec![toolkit.major.into(), toolkit.minor.into()]);
        }
        if self.any {
            let subject = versions::subject(node, self.parsed).filter(|it| it.whose == Whose::Toolkit);
            return subject.map(|it| it.numbers(toolkit.major.into(), toolkit.minor.into()));
        }
        let attribute = node.child_by_field_name("attribute")?;
        (self.parsed.text(attribute) == "major" && is_subject(node.child_by_field_name("object")?))
            .then(|| vec![toolkit.major.into()])
    }

    fn version(&self, node: Node<'_>) -> Option<Vec<u64>> {
        if self.any {
            return versions::version(node, self.parsed);
        }
        if node.kind() == "integer" {
            return numbers(&self.parsed.text(node));
        }
        self.forms.iter().find_map(|form| {
            let found = form.version.match_node(self.parsed, node)?;
            numbers(&found.bindings.get(form.name)?.text)
        })
    }
}

/// The conditions by which a node lets one of its children be reached, and whether each must hold.
fn deciding<'t>(inner: Node<'t>, outer: Node<'t>) -> Vec<(Node<'t>, bool)> {
    let condition = |node: Node<'t>| node.child_by_field_name("condition");
    let is = |field: &str| outer.child_by_field_name(field) == Some(inner);
    match outer.kind() {
        "if_statement" | "elif_clause" if is("consequence") => {
            condition(outer).into_iter().map(|condition| (condition, true)).collect()
        }
        "if_statement" if matches!(inner.kind(), "elif_clause" | "else_clause") => {
            let mut cursor = outer.walk();
            let clauses = outer.children(&mut cursor).filter(|clause| clause.kind() == "elif_clause");
            let before = clauses.filter(|clause| clause.start_byte() < inner.start_byte());
            let all = std::iter::once(outer).chain(before).collect::<Vec<_>>();
            all.into_iter().filter_map(condition).map(|condition| (condition, false)).collect()
        }
        "conditional_expression" => {
            match (outer.named_child(0), outer.named_child(1), outer.named_child(2)) {
                (Some(then), Some(when), _) if then == inner => vec![(when, true)],
                (_, Some(when), Some(other)) if other == inner => vec![(when, false)],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// Whether one of the words of a text means AMD's platform: `HIP_BUILD`, `hipcc`, `is_rocm`; not `chips`.
pub fn names_hip(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| {
        let word =
            ["is", "use", "with", "has"].iter().find_map(|before| word.strip_prefix(before)).unwrap_or(word);
        word.contains("rocm")
            || matches!(word, "hip" | "hipcc" | "hipify" | "hipbuild" | "hiphome" | "hipcub")
    })
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split('.').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::catalogue::Catalogue;
    use crate::engine::syntax::Language;
    use crate::engine::syntax::language::descendants;

    /// The toolkits (of 11.8, 12.8, 13.0, then HIP) in which a condition holds, as `Y`, `n` and `?`.
    fn truths(condition: &str) -> String {
        let parsed =
            Parsed::new(Language::Python, format!("if {condition}:\n    pass\n").into_bytes().into())
                .expect("parses");
        let forms: Vec<GuardForm> = ["v >= Version(\"$FIRST\")", "v <= Version(\"$LAST\")"]
            .iter()
            .map(|text| GuardForm::new(&Pattern::new(Language::Python, text).expect(text)).expect(text))
            .collect();
        let worlds = Worlds::new(Catalogue::shipped(), Toolkit::new(11, 6), &[]);
        let node = descendants(parsed.root()).find(|node| node.kind() == "if_statement").expect("if");
        let condition = node.child_by_field_name("condition").expect("condition");
        let presence = Evaluation {
            parsed: &parsed,
            forms: &forms,
            any: false,
            worlds: &worlds,
            plain: Truth::Maybe,
            known: &Known::default(),
        }
        .presence(condition);
        let shown = [(11, 8), (12, 8), (13, 0)].map(|(major, minor)| World::Cuda(Toolkit::new(major, minor)));
        let at = |world| presence.at(worlds.position(world).expect("world"));
        let letter = |truth| match truth {
            Truth::Yes => 'Y',
            Truth::No => 'n',
            Truth::Maybe => '?',
        };
        shown.into_iter().chain([World::Hip]).map(|world| letter(at(world))).collect()
    }

    #[test]
    fn guards_are_evaluated_for_each_toolkit() {
        assert_eq!(truths("v >= Version('12.8')"), "nYY?");
        assert_eq!(truths("not v >= Version('12.8')"), "Ynn?");
        assert_eq!(truths("Version(\"12.8\") <= v < Version(\"13\")"), "nYn?");
        assert_eq!(truths("(v < Version('12.8.1')) and X"), "??n?");
        assert_eq!(truths("v > Version('12.8') or False"), "nnY?");
        assert_eq!(truths("v.major >= 13"), "nnY?");
        assert_eq!(truths("CUDA_HOME is not None"), "????");
    }

    #[test]
    fn hip_is_a_world_of_its_own() {
        assert_eq!(truths("HIP_BUILD"), "nnnY");
        assert_eq!(truths("not torch.version.hip"), "YYYn");
        assert_eq!(truths("torch.version.hip is None"), "YYYn");
        assert_eq!(truths("HIP_BUILD is True"), "nnnY");
        assert_eq!(truths("TARGET == 'rocm'"), "nnnY");
        assert_eq!(truths("TARGET != \"cuda\""), "nnnY");
        assert_eq!(truths("chips"), "????");
        assert_eq!(truths("not IS_ROCM and v >= Version('12.8')"), "nYYn");
    }

    /// Which of 11.8, 12.8 and 13.0 get to `here()`: `Y`, `n`, `?`.
    fn reached(text: &str) -> String {
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("parses");
        let toolkits = [(11, 8), (12, 8), (13, 0)].map(|(major, minor)| Toolkit::new(major, minor));
        let worlds = Worlds::new(Catalogue::shipped(), Toolkit::new(11, 0), &toolkits);
        let known = Known::default();
        let evaluation = Evaluation {
            parsed: &parsed,
            forms: &[],
            any: true,
            worlds: &worlds,
            plain: Truth::Maybe,
            known: &known,
        };
        let here = descendants(parsed.root()).find(|node| parsed.text(*node) == "here()").expect("here");
        let reached = evaluation.reached(here);
        let letter = |toolkit| match reached.at(worlds.position(World::Cuda(toolkit)).expect("world")) {
            Truth::No => 'n',
            Truth::Maybe => '?',
            Truth::Yes => 'Y',
        };
        toolkits.into_iter().map(letter).collect()
    }

    fn under(condition: &str) -> String {
        reached(&format!("if {condition}:\n    here()\n"))
    }

    #[test]
    fn the_toolkit_is_compared_in_many_ways() {
        for condition in [
            "bare_metal_version >= Version('12.8')",
            "parse(nvcc_version) >= parse('12.8')",
            "float(torch.version.cuda) >= 12.8",
            "cuda_version >= (12, 8)",
            "CUDA_VERSION >= 12080",
            "(int(cuda_major), int(cuda_minor)) >= (12, 8)",
            "Version('12.8') <= cuda_version",
        ] {
            assert_eq!(under(condition), "nYY", "{condition}");
        }
        assert_eq!(
            reached("_, major, minor = nvcc_version()\nif major == 12 and minor <= 8:\n    here()\n"),
            "nYn"
        );
        assert_eq!(under("int(bare_metal_major) < 12"), "Ynn");
        assert_eq!(under("cuda_version[0] >= 13"), "nnY");
        assert_eq!(under("torch.version.cuda.startswith('11')"), "Ynn");
        assert_eq!(under("not cuda_version.startswith('12.8')"), "YnY");
        assert_eq!(under("cuda_version.startswith('12.8.1')"), "n?n");
    }

    #[test]
    fn a_name_that_says_nothing_is_what_it_was_assigned() {
        let guarded =
            |lines: &str, condition: &str| reached(&format!("{lines}if {condition}:\n    here()\n"));
        for (lines, condition) in [
            ("_, v = get_cuda_bare_metal_version(CUDA_HOME)\n", "v >= Version('12.8')"),
            ("v = get_cuda_bare_metal_version(CUDA_HOME)[1]\n", "v >= Version('12.8')"),
            ("r, a, b = get_cuda_bare_metal_version(CUDA_HOME)\n", "(int(a), int(b)) >= (12, 8)"),
            ("v = parse(torch.version.cuda)\nw = v\n", "w >= parse('12.8')"),
            ("v = get_cuda_version()\n", "v >= Version('12.8')"),
            ("a, b = map(int, torch.version.cuda.split('.')[:2])\n", "(a, b) >= (12, 8)"),
            ("v = tuple(int(x) for x in y)\nw = torch.version.cuda.split('.')\n", "float(w[0]) >= 12.8"),
            ("def ask(x):\n    return 'raw', Version(nvcc_version)\n_, v = ask(1)\n", "v >= Version('12.8')"),
            ("def ask():\n    v = Version(torch.version.cuda)\n    return v\n", "ask() >= Version('12.8')"),
        ] {
            let expected = if condition.contains("w[0]") { "nnY" } else { "nYY" };
            assert_eq!(guarded(lines, condition), expected, "{lines}{condition}");
        }
        for lines in [
            "v = Version(torch.version.cuda)\nv = 1\n",
            "v, _ = get_cuda_bare_metal_version(CUDA_HOME)\n",
            "v = get_cuda_bare_metal_version(CUDA_HOME)\n",
            "v = torch.cuda.get_device_capability()\n",
            "v = torch.cuda.nccl.version()\n",
            "v = Version(torch.__version__)\n",
            "v = cuda_driver_version()\n",
            "v = v\n",
            "def f():\n    v = Version(torch.version.cuda)\n",
        ] {
            assert_eq!(guarded(lines, "v >= Version('12.8')"), "???", "{lines}");
        }
        let (version, compared) = ("v = Version(torch.version.cuda)\n", "v >= Version('12.8')");
        let plain = guarded(version, compared);
        assert_eq!(guarded(version, &format!("CUDA_HOME is not None and {compared}")), plain);
        assert_ne!(plain, "???");
    }

    #[test]
    fn other_versions_tell_nothing() {
        for condition in [
            "TORCH_MAJOR >= 2",
            "torch_version >= Version('2.0')",
            "sys.version_info.major >= 3",
            "cudnn_version >= 8000",
            "CUDA_HOME is not None",
            "CUDA_HOME is not None and ROOT",
            "torch.__version__.startswith('2')",
            "name.startswith('11')",
            "gcc_major > 9",
            "major >= 2",
        ] {
            assert_eq!(under(condition), "???", "{condition}");
        }
    }

    #[test]
    fn a_ladder_lets_each_toolkit_into_one_branch() {
        let ladder = |branch: usize| {
            let call = |at| if at == branch { "here()" } else { "pass" };
            let (first, second, third) = (call(0), call(1), call(2));
            format!(
                "if cuda_major == 11:\n    {first}\nelif cuda_version < Version('13.0'):\n    {second}\nelse:\n    {third}\n"
            )
        };
        assert_eq!([0, 1, 2].map(|branch| reached(&ladder(branch))), ["Ynn", "nYn", "nnY"]);
        assert_eq!(reached("x = here() if cuda_version >= Version('12.0') else other()\n"), "nYY");
    }
}

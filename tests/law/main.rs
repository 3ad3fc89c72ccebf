//! The arch law, tried on random build files: what each toolkit compiles is worked out by a small interpreter of this
//! test's own, before and after, and compared with what was wished for.
//!
//! `PROPTEST_CASES=100000 cargo test --test law` tries longer.

mod interpreter;
mod setups;

use std::collections::BTreeSet;

use interpreter::{Flag, World, run};
use mambapatch::engine::arch::{Code, Gencode, parse_codes};
use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::environment::Environment;
use mambapatch::engine::ops::gencode::ArchWish;
use mambapatch::engine::patchset::bind::{BindError, Bound};
use mambapatch::engine::patchset::select::Request;
use mambapatch::engine::patchset::{PatchSets, shipped};
use mambapatch::engine::plan::plan;
use mambapatch::engine::source::Sources;
use mambapatch::engine::syntax::{Language, Parsed};
use mambapatch::engine::tag::SourceVersion;
use mambapatch::engine::toolkit::Toolkit;
use proptest::prelude::*;
use setups::{Setup, setups};

/// What is asked for.
#[derive(Debug, Clone)]
struct Wish {
    add: Vec<&'static str>,
    drop: Vec<&'static str>,
    only: Vec<&'static str>,
    cuda: Vec<Toolkit>,
}

const ARCHES: [&str; 21] = [
    "37", "53", "60", "61", "70", "72", "75", "80", "86", "87", "89", "90", "100", "101", "103", "107",
    "110", "120", "121", "120a", "120f",
];

fn arches(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&ARCHES[..]), 0..=most)
}

fn toolkits() -> Vec<Toolkit> {
    let rows = Catalogue::shipped().toolkits().iter().map(|row| row.version);
    rows.filter(|toolkit| *toolkit >= Toolkit::new(11, 6)).collect()
}

fn wishes() -> impl Strategy<Value = Wish> {
    let cuda = prop::collection::vec(prop::sample::select(toolkits()), 0..=2);
    let ptx = prop::sample::select(&[None, None, None, Some("12.0+PTX"), Some("compute_90")][..]);
    let flags = (arches(3), arches(2), prop_oneof![3 => Just(Vec::new()), 1 => arches(3)]);
    (flags, cuda, ptx).prop_map(|((mut add, drop, mut only), cuda, ptx)| {
        add.extend(ptx);
        // What is added beside `--only-arch` must be among those that it names.
        if !only.is_empty() {
            only.extend(add.iter().copied());
        }
        Wish { add, drop, only, cuda }
    })
}

fn codes(arches: &[&str]) -> Vec<Code> {
    arches.iter().flat_map(|arch| parse_codes(arch).expect(arch)).collect()
}

fn sets() -> &'static PatchSets {
    static SETS: std::sync::LazyLock<PatchSets> =
        std::sync::LazyLock::new(|| shipped::texts().load().expect("the shipped patch sets"));
    &SETS
}

/// Why nothing was patched.
enum Unpatched {
    /// The wish contradicts itself, nothing would be left, or an entry shares its line.
    Refused,
    /// There is no entry.
    NoAnchor(String),
    /// It was planned, and cannot be proved.
    Unproved(String),
}

/// Plans and proves.
fn patched(text: &[u8], wish: &Wish) -> Result<Vec<u8>, Unpatched> {
    let arches = ArchWish { add: codes(&wish.add), drop: codes(&wish.drop), only: codes(&wish.only) };
    let environment = Environment { cuda: wish.cuda.clone(), ..Environment::default() };
    let skip = vec!["cuda-13".to_string()];
    let request = Request { wish: arches, environment, skip, accept_advisory: true, patches: Vec::new() };
    let upstream = sets().upstream("mamba-ssm").expect("mamba-ssm");
    let version = SourceVersion::Release("2.2.4".parse().expect("a tag"));
    let bound = match Bound::new(upstream, version, &request, Catalogue::shipped()) {
        Ok(bound) => bound,
        Err(BindError::NothingAsked | BindError::Contradiction { .. } | BindError::Refused { .. }) => {
            return Err(Unpatched::Refused);
        }
        Err(error) => return Err(Unpatched::Unproved(error.to_string())),
    };
    let sources: Sources = [("setup.py", text)].into_iter().collect();
    let planned = match plan(&bound, &sources) {
        Ok(planned) => planned,
        Err(error) if error.no_anchor().is_some() => return Err(Unpatched::NoAnchor(error.to_string())),
        Err(error) if REFUSALS.iter().any(|text| error.to_string().contains(text)) => {
            return Err(Unpatched::Refused);
        }
        Err(error) => return Err(Unpatched::Unproved(error.to_string())),
    };
    let after = planned.after.get("setup.py").expect("setup.py").to_vec();
    let proved = planned.prove(&bound);
    proved.map_err(|error| Unpatched::Unproved(format!("{error}\n{}", shown(&after))))?;
    Ok(after)
}

const REFUSALS: [&str; 3] =
    ["no architecture would be left", "shares its line", "no block of the file can take"];

fn is_gencode(flag: &Flag) -> bool {
    matches!(flag, Flag::Gencode(_))
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Every way in which the result breaks the law.
fn faults(setup: &Setup, before: &[u8], after: &[u8], wish: &Wish) -> Vec<String> {
    let law = Law::new(before, wish);
    let mut faults = Vec::new();
    // Where no entry is reached whatever the toolkit, the source compiles nothing at all.
    let at_all = |small| {
        worlds().iter().any(|(_, world)| world.small == small && run(before, *world).iter().any(is_gencode))
    };
    let at_all = [false, true].map(at_all);
    for (toolkit, world) in worlds().into_iter().filter(|(_, world)| at_all[usize::from(world.small)]) {
        let (had, has) = (run(before, world), run(after, world));
        let found = law.of_toolkit(toolkit, world.small, &had, &has);
        faults.extend(found.into_iter().map(|fault| format!("{world:?}: {fault}\n  {had:?}\n  {has:?}")));
    }
    for small in [true, false] {
        let world = World { toolkit: None, small };
        let (had, has) = (run(before, world), run(after, world));
        if setup.hip && has.iter().any(|flag| matches!(flag, Flag::Gencode(one) if law.serves_wanted(one))) {
            faults.push(format!("HIP is given what is wanted: {had:?} {has:?}"));
        }
        if law.others(&had) != law.others(&has) {
            faults.push(format!("HIP: other flags changed: {had:?} {has:?}"));
        }
    }
    faults
}

/// All worlds with a toolkit.
fn worlds() -> Vec<(Toolkit, World)> {
    let both = |toolkit| [true, false].map(|small| (toolkit, World { toolkit: Some(toolkit), small }));
    toolkits().into_iter().flat_map(both).collect()
}

struct Law<'a> {
    wish: &'a Wish,
    wanted: Vec<Code>,
    dropped: Vec<Code>,
    /// Wanted results that some toolkit which knows them had before, by the value of `SMALL`.
    had: [Vec<Code>; 2],
}

impl<'a> Law<'a> {
    fn new(before: &[u8], wish: &'a Wish) -> Self {
        let wanted = codes(&[wish.only.clone(), wish.add.clone()].concat());
        let gives = |small: bool, code: Code| {
            let worlds = worlds().into_iter().filter(|(_, world)| world.small == small);
            let mut known = worlds.filter(|(toolkit, _)| knows(*toolkit, &Gencode::of(code)));
            known.any(|(_, world)| gencodes(&run(before, world)).iter().any(|gencode| serves(gencode, code)))
        };
        let had =
            [false, true].map(|small| wanted.iter().copied().filter(|code| gives(small, *code)).collect());
        Self { wish, wanted, dropped: codes(&wish.drop), had }
    }

    fn serves_wanted(&self, gencode: &Gencode) -> bool {
        self.wanted.iter().any(|code| serves(gencode, *code))
    }

    /// Whether an entry must go.
    fn is_unwanted(&self, gencode: &Gencode) -> bool {
        let dropped =
            self.dropped.iter().any(|drop| gencode.codes.iter().any(|code| code.arch().serves(drop.arch())));
        dropped || (!self.wish.only.is_empty() && !self.serves_wanted(gencode))
    }

    fn of_toolkit(&self, toolkit: Toolkit, small: bool, had: &[Flag], has: &[Flag]) -> Vec<String> {
        let mut faults = Vec::new();
        let now: Vec<&Gencode> = gencodes(has);
        for code in &self.wanted {
            let present = now.iter().any(|gencode| serves(gencode, *code) && knows(toolkit, gencode));
            let known = knows(toolkit, &Gencode::of(*code));
            let late = self.had[usize::from(small)].contains(code) && !self.wish.cuda.contains(&toolkit);
            if known && !present && !late {
                faults.push(format!("{} is missing", code.label()));
            }
        }
        for gencode in &now {
            let ours = self.serves_wanted(gencode) || self.wish.cuda.contains(&toolkit);
            if ours && !knows(toolkit, gencode) {
                faults.push(format!("{gencode} is refused"));
            }
            if self.is_unwanted(gencode) {
                faults.push(format!("{gencode} must not be there"));
            }
        }
        if self.others(had) != self.others(has) {
            faults.push("other flags changed".to_string());
        }
        faults.extend(self.kept(toolkit, &gencodes(had), &now));
        faults
    }

    /// Flags that are none of ours; half-done ones of what was asked about are repaired or go.
    fn others<'f>(&self, flags: &'f [Flag]) -> Vec<&'f Flag> {
        let asked = |word: &str| {
            let value = word.strip_prefix("-gencode ").unwrap_or(word).parse::<Gencode>();
            value.is_ok_and(|gencode| self.serves_wanted(&gencode) || self.touches_unwanted(&gencode))
        };
        let ours = |flag: &Flag| match flag {
            Flag::Other(word) => asked(word),
            Flag::Gencode(_) => true,
        };
        flags.iter().filter(|flag| !ours(flag)).collect()
    }

    /// Whether a part of an entry must go.
    fn touches_unwanted(&self, gencode: &Gencode) -> bool {
        let wanted = |code: &Code| self.wanted.iter().any(|wanted| code.serves(*wanted));
        self.is_unwanted(gencode) || (!self.wish.only.is_empty() && !gencode.codes.iter().all(wanted))
    }

    /// What nobody asked about stands there as often as before and in the same order. What some toolkit refuses may
    /// have moved under a guard, and stand there once.
    fn kept(&self, toolkit: Toolkit, had: &[&Gencode], now: &[&Gencode]) -> Option<String> {
        let asked = |gencode: &Gencode| self.serves_wanted(gencode) || self.is_unwanted(gencode);
        let movable = |gencode: &Gencode| !self.wish.cuda.iter().all(|cuda| knows(*cuda, gencode));
        let fixed = |all: &[&Gencode]| -> Vec<Gencode> {
            all.iter().filter(|one| !asked(one) && !movable(one)).map(|one| (*one).clone()).collect()
        };
        if fixed(had) != fixed(now) {
            return Some("what nobody asked about changed".to_string());
        }
        let moved = |all: &[&Gencode]| -> BTreeSet<Gencode> {
            let known = all.iter().filter(|one| !asked(one) && movable(one) && knows(toolkit, one));
            known.map(|one| (*one).clone()).collect()
        };
        (!moved(had).is_subset(&moved(now))).then(|| "a toolkit lost what it takes".to_string())
    }
}

fn gencodes(flags: &[Flag]) -> Vec<&Gencode> {
    flags
        .iter()
        .filter_map(|flag| if let Flag::Gencode(gencode) = flag { Some(gencode) } else { None })
        .collect()
}

fn serves(gencode: &Gencode, wanted: Code) -> bool {
    gencode.codes.iter().any(|code| code.serves(wanted))
}

fn knows(toolkit: Toolkit, gencode: &Gencode) -> bool {
    Catalogue::shipped().takes(toolkit, gencode)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64),
    ) })]

    #[test]
    fn the_arch_law_holds(setup in setups(), wish in wishes()) {
        let before = setup.text();
        match patched(&before, &wish) {
            Ok(after) => {
                let faults = faults(&setup, &before, &after, &wish);
                prop_assert!(faults.is_empty(), "{}\n{}\n=====\n{}", faults.join("\n"), shown(&before), shown(&after));
            }
            Err(Unpatched::Refused) => {}
            Err(Unpatched::NoAnchor(error)) => {
                let reached = worlds().iter().any(|(_, world)| run(&before, *world).iter().any(is_gencode));
                prop_assert!(!reached, "{}\n{}", error, shown(&before));
            }
            Err(Unpatched::Unproved(error)) => prop_assert!(false, "{}\n{}", error, shown(&before)),
        }
    }

    #[test]
    fn no_text_makes_it_panic(
        lines in prop::collection::vec((0usize..4, prop::sample::select(&PIECES[..])), 0..30),
        wish in wishes(),
    ) {
        let text: String = lines.iter().map(|(depth, piece)| format!("{}{piece}\n", "    ".repeat(*depth))).collect();
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("parses");
        if let Err(Unpatched::Unproved(error)) = patched(text.as_bytes(), &wish) {
            prop_assert!(parsed.syntax_errors() > 0, "{}\n{}", error, text);
        }
    }
}

/// Lines that make sense alone and none together.
const PIECES: [&str; 20] = [
    "cc_flag.append(\"-gencode\")",
    "cc_flag.append(\"-gencode\"); cc_flag.append(\"arch=compute_80,code=sm_80\")",
    "cc_flag.append(\"arch=compute_120,code=sm_120\")",
    "cc_flag.append(\"arch=compute_70,code=sm_70\")",
    "cc_flag.append('-gencode=arch=compute_90,code=[sm_90,compute_90]')",
    "cc_flag.append(\"-gencode arch=compute_53,code=sm_53\")",
    "cc_flag.append(\"--generate-code\")",
    "cc_flag = []",
    "if bare_metal_version >= Version(\"12.8\"):",
    "if bare_metal_version <= Version('12.9'):",
    "elif bare_metal_version > Version(\"13\"):",
    "else:",
    "if HIP_BUILD: cc_flag.append(\"-gencode\"); cc_flag.append(\"arch=compute_120,code=sm_120\")",
    "if False:",
    "def flags():",
    "return cc_flag",
    "for x in y:",
    "# cc_flag.append(\"-gencode\")",
    "\"\"\"",
    "pass",
];

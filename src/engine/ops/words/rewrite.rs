//! `rewrite` in words: words that follow each other become others; quotes, blanks and all else on the line stay.

use std::collections::BTreeMap;
use std::ops::Range;

use regex::Regex;

use super::cmake::argument_lists;
use super::is_hidden;
use super::items::prints;
use crate::engine::edit::{Edit, Edits};
use crate::engine::ops::files::Files;
use crate::engine::ops::gencode::worlds::Worlds;
use crate::engine::ops::{Aim, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::source::Sources;
use crate::engine::syntax::Language;
use crate::engine::syntax::words::{Command, Dialect, Word, commands, inside};

/// Words that others replace, or that are reported.
#[derive(Debug, Clone)]
pub struct WordsRewrite {
    /// Where to look.
    pub files: Files,
    /// What must not be left; any of them.
    pub find: Vec<Phrase>,
    /// What stands there instead; `None`: matches are reported.
    pub replace: Option<String>,
    /// What the text of a metavariable must match.
    pub conditions: BTreeMap<String, Regex>,
    /// What a person should do about a reported match.
    pub advice: Option<String>,
}

/// Words with metavariables: `CMAKE_CXX_STANDARD $OLD`, `-std=c++$OLD`.
#[derive(Debug, Clone)]
pub struct Phrase {
    /// As it was written.
    pub text: String,
}

/// A text that is no phrase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` has no word that says something")]
pub struct NoPhrase {
    /// What was read.
    pub text: String,
}

/// Words that match a phrase.
struct Found<'a> {
    words: &'a [Word],
    values: BTreeMap<String, String>,
}

impl Phrase {
    /// Reads words with blanks between them; `$X` is a part of a word.
    pub fn new(text: &str) -> Result<Self, NoPhrase> {
        let text = text.trim().to_string();
        let says =
            metavariables(&text).any(|piece| matches!(piece, Piece::Text(text) if !text.trim().is_empty()));
        if says || text.contains(' ') { Ok(Self { text }) } else { Err(NoPhrase { text }) }
    }

    /// Whether it has a metavariable, which then stands for something in every match.
    pub fn has(&self, name: &str) -> bool {
        metavariables(&self.text).any(|piece| matches!(piece, Piece::Variable(own) if own == name))
    }

    /// The words that begin here, where they match.
    fn at<'a>(&self, words: &'a [Word], holds: &dyn Fn(&str, &str) -> bool) -> Option<Found<'a>> {
        let patterns: Vec<&str> = self.text.split_whitespace().collect();
        let words = words.get(..patterns.len())?;
        let mut values = BTreeMap::new();
        let fits = patterns.iter().zip(words).all(|(pattern, word)| {
            let pieces: Vec<Piece<'_>> = metavariables(pattern).collect();
            fits(&pieces, &word.text, &mut values, holds)
        });
        fits.then_some(Found { words, values })
    }
}

/// Whether a text is made of these pieces; the shortest values that hold are taken.
fn fits(
    pieces: &[Piece<'_>],
    text: &str,
    values: &mut BTreeMap<String, String>,
    holds: &dyn Fn(&str, &str) -> bool,
) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return text.is_empty() };
    let name = match first {
        Piece::Text(own) => {
            return text.strip_prefix(own).is_some_and(|text| fits(rest, text, values, holds));
        }
        Piece::Variable(name) => *name,
    };
    let known = values.get(name).cloned();
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let found = ends.any(|end| {
        let (value, behind) = text.split_at(end);
        let is_same = known.as_ref().is_none_or(|known| known == value);
        if name != "_" {
            values.insert(name.to_string(), value.to_string());
        }
        (is_same || name == "_") && holds(name, value) && fits(rest, behind, values, holds)
    });
    if !found {
        match known {
            Some(known) => values.insert(name.to_string(), known),
            None => values.remove(name),
        };
    }
    found
}

/// A piece of a word of a phrase.
enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

fn metavariables(word: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let named = rest.strip_prefix('$').map(|rest| {
            rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
                .unwrap_or(rest.len())
        });
        let (piece, length) = match named.filter(|length| *length > 0) {
            Some(length) => (Piece::Variable(&rest[1..=length]), length + 1),
            None => {
                let end = rest[1..].find('$').map_or(rest.len(), |end| end + 1);
                (Piece::Text(&rest[..end]), end)
            }
        };
        rest = &rest[length..];
        Some(piece)
    })
}

/// The metavariables of a text.
pub fn variables(text: &str) -> Vec<&str> {
    let named = metavariables(text).filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    });
    named.collect()
}

impl WordsRewrite {
    /// The words that it speaks of.
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        let find = self.find.iter().map(|phrase| ("find", phrase.text.clone()));
        let replace = self.replace.iter().map(|text| ("replace", text.clone()));
        let advice = self.advice.iter().map(|text| ("advice", text.clone()));
        std::iter::once(("in", "words".to_string())).chain(find).chain(replace).chain(advice).collect()
    }

    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources, aim: Aim<'_>) -> Result<OpPlan, OpError> {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: "no place is left".to_string() });
        for (path, bytes) in self.files.of(sources).filter(|(path, _)| !is_hidden(path)) {
            let mut edits = Edits::new();
            let lists = word_lists(sources, path, bytes)?;
            let found: Vec<Found<'_>> = lists.iter().flat_map(|words| self.matches(words)).collect();
            let dead = if found.is_empty() { Vec::new() } else { dead(sources, (path, bytes), aim)? };
            let is_dead =
                |one: &Found<'_>| dead.iter().any(|range| range.contains(&one.words[0].range.start));
            for found in found.into_iter().filter(|found| !is_dead(found)) {
                let new = self.edits(&found, bytes);
                if self.replace.is_none() || new.iter().any(|edit| !edits.iter().any(|other| other == edit)) {
                    plan.sites.push(Site::of(path, bytes, found.words[0].range.start));
                }
                let overlap = |overlap| OpError::Overlap { path: path.to_string(), overlap };
                new.into_iter().try_for_each(|edit| edits.insert(edit)).map_err(overlap)?;
            }
            if !edits.is_empty() {
                plan.edits.insert(path.to_string(), edits);
            }
        }
        plan.sites.dedup();
        if let Some(outcome) = self.outcome(plan.sites.len()) {
            plan.outcome = outcome;
        }
        Ok(plan)
    }

    fn outcome(&self, count: usize) -> Option<Outcome> {
        let places = crate::engine::ops::rename::places(count);
        match (count, &self.replace) {
            (0, _) => None,
            (_, Some(_)) => Some(Outcome::Changed { how: vec![format!("rewrites {places}")] }),
            (_, None) => {
                let advice = self.advice.clone().unwrap_or_else(|| "needs a person".to_string());
                Some(Outcome::Reported { advice: format!("{places}: {advice}") })
            }
        }
    }

    /// The places in a list of words.
    fn matches<'a>(&'a self, words: &'a [Word]) -> impl Iterator<Item = Found<'a>> {
        // It stands for nothing only where its condition says so.
        let holds = |name: &str, value: &str| {
            self.conditions.get(name).map_or(!value.is_empty(), |regex| regex.is_match(value))
        };
        (0..words.len())
            .filter_map(move |at| self.find.iter().find_map(|phrase| phrase.at(&words[at..], &holds)))
    }

    /// The words that differ, each by itself, where they are as many as before.
    fn edits(&self, found: &Found<'_>, bytes: &[u8]) -> Vec<Edit> {
        let Some(replace) = &self.replace else { return Vec::new() };
        let filled: Vec<String> = replace.split_whitespace().map(|word| fill(word, &found.values)).collect();
        let places: Option<Vec<Range<usize>>> = found.words.iter().map(|word| place(word, bytes)).collect();
        let Some(places) = places else { return Vec::new() };
        if filled.len() == places.len() {
            let pairs = places.into_iter().zip(filled).zip(found.words);
            let differing = pairs.filter(|((_, new), word)| *new != word.text);
            return differing.map(|((range, new), _)| Edit { range, text: new.into() }).collect();
        }
        let whole = places.first().zip(places.last()).map(|(first, last)| first.start..last.end);
        whole.into_iter().map(|range| Edit { range, text: filled.join(" ").into() }).collect()
    }
}

/// The bytes that a word is written in, without its quotes; nothing where it is not written as it reads.
fn place(word: &Word, bytes: &[u8]) -> Option<Range<usize>> {
    let inner = word.quoted.first().cloned().unwrap_or(word.range.clone());
    (bytes.get(inner.clone())? == word.text.as_bytes()).then_some(inner)
}

fn fill(word: &str, values: &BTreeMap<String, String>) -> String {
    let piece = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_string(),
        Piece::Variable(name) => values.get(name).cloned().unwrap_or_default(),
    };
    metavariables(word).map(piece).collect()
}

/// The commands of branches that no toolkit in question takes.
fn dead(
    sources: &Sources,
    file: (&str, &[u8]),
    Aim { toolchain, .. }: Aim<'_>,
) -> Result<Vec<Range<usize>>, OpError> {
    let worlds = Worlds::ever(toolchain.catalogue);
    let accepted = Worlds::new(toolchain.catalogue, toolchain.floor, &[]).toolkits();
    let given = if toolchain.cuda.is_empty() { &accepted } else { toolchain.cuda };
    let outline = super::outline(sources, file, &worlds)?;
    Ok(outline.map(|outline| outline.dead(&worlds, given)).unwrap_or_default())
}

/// All words of a file: those of a command, those within a string; of commands that only print, none.
fn word_lists(sources: &Sources, path: &str, bytes: &[u8]) -> Result<Vec<Vec<Word>>, OpError> {
    let lists = match parse(sources, path)? {
        Some(parsed) if parsed.language == Language::Cmake => argument_lists(parsed),
        Some(_) => Vec::new(),
        None => {
            let prints = |words: &[Word]| words.iter().find(|word| word.text != "RUN").is_some_and(prints);
            let all = commands(Dialect::of_path(path), bytes).into_iter();
            let all = all.filter(|command| !prints(&command.words));
            let lists = all.flat_map(|Command { words, arrays, .. }| {
                std::iter::once(words).chain(arrays.into_iter().map(|array| array.elements))
            });
            lists.collect()
        }
    };
    let strings: Vec<Vec<Word>> = lists
        .iter()
        .flatten()
        .flat_map(|word| word.quoted.iter().map(|range| inside(bytes, range.clone())))
        .collect();
    Ok(lists.into_iter().chain(strings).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::catalogue::Catalogue;
    use crate::engine::environment::Environment;
    use crate::engine::ops::gencode::{ArchWish, Toolchain};
    use crate::engine::syntax::Passes;
    use crate::engine::toolkit::Toolkit;

    fn rewritten(path: &str, text: &str, find: &str, replace: &str) -> String {
        let wish = ArchWish::default();
        let toolchain = Toolchain {
            catalogue: Catalogue::shipped(),
            floor: Toolkit::new(11, 0),
            cuda: &[Toolkit::new(13, 0)],
        };
        let (passes, earlier) = (Passes::of(&Environment::default(), toolchain.catalogue), BTreeMap::new());
        let aim = Aim { wish: &wish, toolchain, torch: None, passes: &passes, earlier: &earlier };
        let op = WordsRewrite {
            files: Files::new(&["**/*".to_string()]).expect("glob"),
            find: find.split('|').map(|text| Phrase::new(text).expect(text)).collect(),
            replace: Some(replace.to_string()),
            conditions: [("OLD", "^(11|14)$"), ("A", "^(.*,)?$"), ("B", "^(,.*)?$")]
                .map(|(name, regex)| (name.to_string(), Regex::new(regex).expect(regex)))
                .into(),
            advice: None,
        };
        let mut sources: Sources = [(path, text.as_bytes())].into_iter().collect();
        let plan = op.plan(&sources, aim).expect("plan");
        let new = plan.edits.get(path).map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
        sources.insert(path, new.clone());
        assert!(op.plan(&sources, aim).expect("plan").edits.is_empty());
        String::from_utf8(new).expect("utf-8")
    }

    #[test]
    fn flags_become_others_wherever_they_stand() {
        let text = "CXXFLAGS += -O2  -std=c++14 $(A) # -std=c++14\nX = \"-std=c++11\" -std=c++17\n";
        let wanted = "CXXFLAGS += -O2  -std=c++17 $(A) # -std=c++14\nX = \"-std=c++17\" -std=c++17\n";
        assert_eq!(rewritten("Makefile", text, "-std=c++$OLD", "-std=c++17"), wanted);
        let text = "set(F \"${F} --std=c++14 -O2\")\n# --std=c++14\n";
        assert_eq!(
            rewritten("CMakeLists.txt", text, "--std=c++$OLD", "--std=c++17"),
            text.replacen("14", "17", 1)
        );
        let text = "echo -std=c++14\ng++ '-std=c++14' a.cc\n";
        assert_eq!(
            rewritten("a.sh", text, "-std=c++$OLD", "-std=c++17"),
            text.replace("'-std=c++14", "'-std=c++17")
        );
    }

    #[test]
    fn words_that_follow_each_other_are_one_place() {
        let text = "set(CMAKE_CXX_STANDARD   14)\nset_target_properties(a PROPERTIES CXX_STANDARD \"11\")\nset(CMAKE_CXX_STANDARD 17)\nset(X 14)\n";
        let wanted = text.replace("   14", "   17").replace("\"11\"", "\"17\"");
        let properties = "PROPERTIES CXX_STANDARD $OLD|PROPERTIES CXX_STANDARD $OLD";
        assert_eq!(
            rewritten("CMakeLists.txt", text, properties, "PROPERTIES CXX_STANDARD 17"),
            wanted.replace("   17", "   14")
        );
        assert_eq!(
            rewritten("CMakeLists.txt", text, "CMAKE_CXX_STANDARD $OLD", "CMAKE_CXX_STANDARD 17"),
            wanted.replace("\"17\"", "\"11\"")
        );
    }

    #[test]
    fn a_metavariable_may_stand_for_nothing_where_its_condition_says_so() {
        let text = "F = -std=c++14 -fPIC,-std=c++11 -std=c++14,-O2 x-std=c++14\n";
        let wanted = "F = -std=c++17 -fPIC,-std=c++17 -std=c++17,-O2 x-std=c++14\n";
        assert_eq!(rewritten("Makefile", text, "$A-std=c++$OLD$B", "$A-std=c++17$B"), wanted);
    }

    #[test]
    fn branches_that_no_given_toolkit_takes_stay() {
        let text = "if(CUDA_VERSION VERSION_LESS 11.0)\n  set(F \"-std=c++11 -O2\")\nelseif(USE_HIP)\n  \
                    set(F -std=c++11)\nelseif(CMAKE_VERSION VERSION_LESS 3.8)\n  set(F -std=c++11)\nendif()\n";
        let wanted = text.replace("F -std=c++11", "F -std=c++17");
        assert_eq!(rewritten("CMakeLists.txt", text, "-std=c++$OLD", "-std=c++17"), wanted);
        let text = "if [ $CUDA_MAJOR -lt 11 ]; then\nF=-std=c++11\nelse\nF=-std=c++11\nfi\n";
        let wanted = "if [ $CUDA_MAJOR -lt 11 ]; then\nF=-std=c++11\nelse\nF=-std=c++17\nfi\n";
        assert_eq!(rewritten("a.sh", text, "F=-std=c++$OLD", "F=-std=c++17"), wanted);
    }

    #[test]
    fn a_phrase_says_something() {
        assert!(Phrase::new("").is_err() && Phrase::new("$X").is_err() && Phrase::new("$X 14").is_ok());
    }
}

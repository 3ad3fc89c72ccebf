//! Conditions of CMake, and simple ones of scripts, evaluated for each toolkit.

use std::cmp::Ordering;

use crate::engine::ops::choice;
use crate::engine::ops::gencode::guard::names_hip;
use crate::engine::ops::gencode::worlds::{Truth, World, Worlds};
use crate::engine::toolkit::Toolkit;

/// A piece of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// `(`
    Open,
    /// `)`
    Close,
    /// What an argument says.
    Word(String),
}

/// Whether a condition holds in a world.
pub fn truth(tokens: &[Token], world: World) -> Truth {
    Reader { tokens, world, at: 0, plain: Truth::Maybe }.condition()
}

/// Whether something may choose an architecture there that cannot be read.
pub fn may_choose(tokens: &[Token], worlds: &Worlds) -> bool {
    let is_open = |plain| {
        let truth = |world| Reader { tokens, world, at: 0, plain }.condition();
        worlds.iter().any(|world| world != World::Hip && truth(world) == Truth::Maybe)
    };
    is_open(Truth::Yes) || is_open(Truth::No)
}

/// A test of a script, `[[ "$CUDA_MAJOR" -lt 12 ]]`, where it compares one number of the toolkit.
pub fn of_script(words: &[&str]) -> Option<Vec<Token>> {
    let [subject, operator, number] = match words {
        ["[", inner @ .., "]"] | ["[[", inner @ .., "]]"] | ["test", inner @ ..] => inner.try_into().ok()?,
        _ => return None,
    };
    let subject = subject.strip_prefix('$')?;
    let name = subject.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(subject);
    let is_number = number.parse::<u16>().is_ok();
    Subject::of(name).filter(|subject| is_number && subject.is_single())?;
    let (negated, operator) = match operator {
        "-lt" => (false, "LESS"),
        "-le" => (false, "LESS_EQUAL"),
        "-gt" => (false, "GREATER"),
        "-ge" => (false, "GREATER_EQUAL"),
        "-eq" | "=" | "==" => (false, "EQUAL"),
        "-ne" | "!=" => (true, "EQUAL"),
        _ => return None,
    };
    let words = [name, operator, number].map(|word| Token::Word(word.to_string()));
    let not = negated.then(|| Token::Word("NOT".to_string()));
    Some(not.into_iter().chain(words).collect())
}

/// Whether a condition compares the toolkit so that it holds from a version on; then whether that very version is left
/// out.
pub fn holds_from(tokens: &[Token]) -> Option<bool> {
    let [Token::Word(left), Token::Word(operator), Token::Word(right)] = tokens else { return None };
    let subject = Subject::of(left).filter(|subject| !subject.is_single())?;
    let is_version =
        right.split('.').count() == 2 && right.split('.').all(|part| part.parse::<u16>().is_ok());
    match operator.strip_prefix("VERSION_").unwrap_or(operator) {
        "GREATER_EQUAL" if is_version => Some(false),
        // nvcc reports a third number: 12.8.93 is greater than 12.8.
        "GREATER" if is_version => Some(subject == Subject::Short || !operator.starts_with("VERSION_")),
        _ => None,
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    world: World,
    at: usize,
    /// What a test that cannot be read counts as where it chooses no architecture.
    plain: Truth,
}

impl<'a> Reader<'a> {
    fn word(&self, ahead: usize) -> Option<&'a str> {
        match self.tokens.get(self.at + ahead) {
            Some(Token::Word(text)) => Some(text),
            _ => None,
        }
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let is_it = self.word(0).is_some_and(|word| word == keyword);
        self.at += usize::from(is_it);
        is_it
    }

    /// `AND` and `OR` bind alike, from left to right.
    fn condition(&mut self) -> Truth {
        let mut all = self.test();
        loop {
            if self.keyword("AND") {
                all = all.min(self.test());
            } else if self.keyword("OR") {
                all = all.max(self.test());
            } else {
                return all;
            }
        }
    }

    fn test(&mut self) -> Truth {
        if self.keyword("NOT") {
            return !self.test();
        }
        if self.tokens.get(self.at) == Some(&Token::Open) {
            self.at += 1;
            let inner = self.condition();
            self.at += 1;
            return inner;
        }
        let start = self.at;
        let told = self.plain_test();
        let words = self.tokens[start..self.at.min(self.tokens.len())].iter();
        let words =
            words.filter_map(|token| if let Token::Word(word) = token { Some(word.as_str()) } else { None });
        let is_plain = || !choice::may_choose(&words.collect::<Vec<_>>().join(" "));
        if told == Truth::Maybe && self.plain != Truth::Maybe && is_plain() { self.plain } else { told }
    }

    fn plain_test(&mut self) -> Truth {
        let Some(left) = self.word(0) else { return Truth::Maybe };
        if let (Some(operator), Some(right)) = (self.word(1).filter(|word| is_comparison(word)), self.word(2))
        {
            self.at += 3;
            return self.comparison(left, operator, right);
        }
        let is_unary = self.word(1).is_some_and(|word| !matches!(word, "AND" | "OR"));
        self.at += 1 + usize::from(is_unary);
        if is_unary { Truth::Maybe } else { self.constant(left) }
    }

    fn constant(&self, word: &str) -> Truth {
        match word.to_uppercase().as_str() {
            "ON" | "TRUE" | "YES" | "1" => Truth::Yes,
            "OFF" | "FALSE" | "NO" | "0" => Truth::No,
            _ if names_hip(word) => Truth::of(self.world == World::Hip),
            _ => Truth::Maybe,
        }
    }

    fn comparison(&self, left: &str, operator: &str, right: &str) -> Truth {
        if operator == "STREQUAL" && names_hip(right) {
            return Truth::of(self.world == World::Hip);
        }
        let World::Cuda(toolkit) = self.world else { return Truth::Maybe };
        let ordering = match (Subject::of(left), Subject::of(right)) {
            (Some(subject), None) => subject.compare(toolkit, operator, right),
            (None, Some(subject)) => subject.compare(toolkit, operator, left).map(Ordering::reverse),
            _ => None,
        };
        let Some(ordering) = ordering else { return Truth::Maybe };
        let operator = operator.strip_prefix("VERSION_").unwrap_or(operator);
        Truth::of(match operator {
            "LESS" => ordering.is_lt(),
            "LESS_EQUAL" => ordering.is_le(),
            "GREATER" => ordering.is_gt(),
            "GREATER_EQUAL" => ordering.is_ge(),
            "EQUAL" => ordering.is_eq(),
            _ => return Truth::Maybe,
        })
    }
}

fn is_comparison(word: &str) -> bool {
    let plain = word.strip_prefix("VERSION_").unwrap_or(word);
    matches!(plain, "LESS" | "LESS_EQUAL" | "GREATER" | "GREATER_EQUAL" | "EQUAL")
        || matches!(word, "STREQUAL" | "STRLESS" | "STRGREATER" | "MATCHES" | "IN_LIST" | "PATH_EQUAL")
        || matches!(word, "STRLESS_EQUAL" | "STRGREATER_EQUAL" | "IS_NEWER_THAN")
}

/// A variable that holds the release of the toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// `12.8`
    Short,
    /// `12.8.93`
    Full,
    /// `12`
    Major,
    /// `8`
    Minor,
}

impl Subject {
    fn of(text: &str) -> Option<Self> {
        let name = text.strip_prefix("${").and_then(|name| name.strip_suffix('}')).unwrap_or(text);
        match name {
            "CUDA_VERSION" | "CUDA_VERSION_STRING" | "CUDA_VERSION_SHORT" => Some(Self::Short),
            "CMAKE_CUDA_COMPILER_VERSION" | "CUDAToolkit_VERSION" | "CUDA_COMPILER_VERSION" => {
                Some(Self::Full)
            }
            "CUDA_VERSION_MAJOR" | "CUDAToolkit_VERSION_MAJOR" | "CUDA_MAJOR_VERSION" | "CUDA_MAJOR" => {
                Some(Self::Major)
            }
            "CUDA_VERSION_MINOR" | "CUDAToolkit_VERSION_MINOR" | "CUDA_MINOR_VERSION" | "CUDA_MINOR" => {
                Some(Self::Minor)
            }
            _ => None,
        }
    }

    /// Whether it is one number of the release.
    fn is_single(self) -> bool {
        matches!(self, Self::Major | Self::Minor)
    }

    /// How the toolkit compares; `None` where a number that is not known would decide.
    fn compare(self, toolkit: Toolkit, operator: &str, with: &str) -> Option<Ordering> {
        let numbers: Vec<u64> = with.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let (major, minor) = (u64::from(toolkit.major), u64::from(toolkit.minor));
        if !operator.starts_with("VERSION_") && !self.is_single() {
            // Plain comparisons are of decimal numbers: 12.10 is 12.1.
            let have: f64 = format!("{major}.{minor}").parse().ok()?;
            return have.partial_cmp(&with.parse().ok()?);
        }
        let have = match self {
            Self::Major => vec![major],
            Self::Minor => vec![minor],
            Self::Short | Self::Full => vec![major, minor],
        };
        let length = have.len().max(numbers.len().min(2));
        let padded = |numbers: &[u64]| -> Vec<u64> {
            (0..length).map(|at| numbers.get(at).copied().unwrap_or(0)).collect()
        };
        let ordering = padded(&have).cmp(&padded(&numbers));
        // nvcc reports a third number, which is never zero.
        match (ordering, self, numbers.len()) {
            (Ordering::Equal, Self::Full, 0..=2) => Some(Ordering::Greater),
            (Ordering::Equal, Self::Short | Self::Full, 3..) if numbers.get(2) != Some(&0) => None,
            _ => Some(ordering),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 11.8, 12.8, 13.0, then HIP, as `Y`, `n` and `?`.
    fn truths(condition: &str) -> String {
        let spaced = condition.replace('(', " ( ").replace(')', " ) ");
        let token = |text: &str| match text {
            "(" => Token::Open,
            ")" => Token::Close,
            text => Token::Word(text.trim_matches('"').to_string()),
        };
        let tokens: Vec<Token> = spaced.split_whitespace().map(token).collect();
        let toolkits =
            [(11, 8), (12, 8), (13, 0)].map(|(major, minor)| World::Cuda(Toolkit::new(major, minor)));
        let letter = |world| match truth(&tokens, world) {
            Truth::Yes => 'Y',
            Truth::No => 'n',
            Truth::Maybe => '?',
        };
        toolkits.into_iter().chain([World::Hip]).map(letter).collect()
    }

    #[test]
    fn versions_are_compared_by_part() {
        assert_eq!(truths("CUDA_VERSION VERSION_GREATER_EQUAL 12.8"), "nYY?");
        assert_eq!(truths("CUDA_VERSION VERSION_LESS \"12.8\""), "Ynn?");
        assert_eq!(truths("12.8 VERSION_LESS ${CUDA_VERSION}"), "nnY?");
        assert_eq!(truths("CUDA_VERSION GREATER 8.9"), "YYY?");
        assert_eq!(truths("CUDA_VERSION_MAJOR EQUAL 12"), "nYn?");
        assert_eq!(truths("CUDAToolkit_VERSION_MAJOR VERSION_LESS 12"), "Ynn?");
    }

    #[test]
    fn the_compiler_has_a_third_number() {
        assert_eq!(truths("CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER 12.8"), "nYY?");
        assert_eq!(truths("${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 13.0"), "nnY?");
        assert_eq!(truths("CMAKE_CUDA_COMPILER_VERSION VERSION_LESS_EQUAL 12.8"), "Ynn?");
        assert_eq!(truths("CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8.61"), "Y?n?");
    }

    #[test]
    fn simple_conditions_can_be_written_for_another_toolkit() {
        let form = |text: &str| {
            let tokens: Vec<Token> = text.split(' ').map(|word| Token::Word(word.to_string())).collect();
            holds_from(&tokens)
        };
        assert_eq!(form("CUDA_VERSION VERSION_GREATER_EQUAL 11.8"), Some(false));
        assert_eq!(form("CUDA_VERSION GREATER 8.9"), Some(true));
        assert_eq!(form("CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER 12.0"), Some(false));
        assert_eq!(form("CUDA_VERSION VERSION_LESS 11.8"), None);
        assert_eq!(form("CUDA_VERSION_MAJOR GREATER 11"), None);
        assert_eq!(form("NOT CUDA_VERSION VERSION_GREATER 11.8"), None);
    }

    #[test]
    fn tests_of_scripts_compare_single_numbers() {
        let said = |test: &str| {
            let words: Vec<&str> = test.split(' ').collect();
            let tokens = of_script(&words)?;
            let toolkits = [(11, 8), (12, 4), (13, 0)].map(|(major, minor)| Toolkit::new(major, minor));
            Some(toolkits.map(|toolkit| truth(&tokens, World::Cuda(toolkit)) == Truth::Yes))
        };
        assert_eq!(said("[[ ${CUDA_MAJOR} == 11 ]]"), Some([true, false, false]));
        assert_eq!(said("[ $CUDA_MINOR -lt 8 ]"), Some([false, true, true]));
        assert_eq!(said("test $CUDA_VERSION_MAJOR -ne 12"), Some([true, false, true]));
        assert_eq!(said("[[ $CUDA_VERSION == 12.8 ]]"), None);
        assert_eq!(said("[[ $CUDA_MAJOR == 11 && $X == 1 ]]"), None);
        assert_eq!(said("[ -z $CUDA_MAJOR ]"), None);
    }

    #[test]
    fn conditions_are_put_together() {
        assert_eq!(truths("NOT CUDA_VERSION VERSION_LESS 12 AND NOT WIN32"), "n???");
        assert_eq!(truths("(CUDA_VERSION VERSION_LESS 12) OR (CUDA_VERSION VERSION_LESS 13)"), "YYn?");
        assert_eq!(truths("NOT DEFINED X AND CUDA_VERSION VERSION_LESS 12"), "?nn?");
        assert_eq!(truths("USE_ROCM"), "nnnY");
        assert_eq!(truths("VLLM_GPU_LANG STREQUAL \"HIP\""), "nnnY");
        assert_eq!(truths("TRUE"), "YYYY");
        assert_eq!(truths("X IN_LIST Y"), "????");
    }
}

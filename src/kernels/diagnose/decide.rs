//! Conditions on facts, which hold, do not hold, or cannot be decided; and texts with facts in them.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

/// Facts by name; several values where there are several GPUs. What is absent is not known.
pub type Names = BTreeMap<String, Vec<String>>;

/// `nvcc < arch.since`, `system == 'windows'`, `isolated`, `!isolated`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    name: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    True,
    False,
    Compare(Operator, Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    More,
    MoreOrEqual,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    Name(String),
    Value(String),
}

/// A text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no condition such as `nvcc < arch.since`, `system == 'windows'`, `isolated` or `!isolated`"
)]
pub struct NotACondition {
    text: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// These facts are not known.
    Unknown(BTreeSet<String>),
}

const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::MoreOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::More),
];

impl FromStr for Condition {
    type Err = NotACondition;

    fn from_str(text: &str) -> Result<Self, NotACondition> {
        let wrong = || NotACondition { text: text.to_string() };
        let name = |text: &str| is_name(text).then(|| text.to_string()).ok_or_else(wrong);
        for (sign, operator) in OPERATORS {
            if let Some((left, right)) = text.split_once(sign) {
                let test = Test::Compare(operator, operand(right.trim()).ok_or_else(wrong)?);
                return Ok(Self { name: name(left.trim())?, test });
            }
        }
        match text.trim().strip_prefix('!') {
            Some(rest) => Ok(Self { name: name(rest)?, test: Test::False }),
            None => Ok(Self { name: name(text.trim())?, test: Test::True }),
        }
    }
}

fn operand(text: &str) -> Option<Operand> {
    if let Some(value) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Some(Operand::Value(value.to_string()));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(Operand::Value(text.to_string()));
    }
    is_name(text).then(|| Operand::Name(text.to_string()))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c))
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Condition {
    /// Whether it holds, as far as the facts tell. A comparison with several values holds if one does.
    pub fn holds(&self, names: &Names) -> Truth {
        let other = match &self.test {
            Test::Compare(_, Operand::Name(name)) => Some(name),
            _ => None,
        };
        let missing: BTreeSet<String> = [Some(&self.name), other]
            .into_iter()
            .flatten()
            .filter(|name| !names.contains_key(*name))
            .cloned()
            .collect();
        if !missing.is_empty() {
            return Truth::Unknown(missing);
        }
        let values = names.get(&self.name).map_or(&[][..], Vec::as_slice);
        let truth = match &self.test {
            Test::True => values.iter().any(|value| value == "true"),
            Test::False => values.iter().all(|value| value == "false"),
            Test::Compare(operator, operand) => {
                let others = match operand {
                    Operand::Value(value) => std::slice::from_ref(value),
                    Operand::Name(name) => names.get(name).map_or(&[][..], Vec::as_slice),
                };
                values.iter().any(|value| others.iter().any(|other| compare(*operator, value, other)))
            }
        };
        if truth { Truth::Yes } else { Truth::No }
    }
}

/// Versions are compared as numbers, so that 12.10 is more than 12.9; other texts can only be equal.
fn compare(operator: Operator, left: &str, right: &str) -> bool {
    let order = match (numbers(left), numbers(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => return (left == right) == (operator != Operator::NotEqual) && operator.is_equality(),
    };
    match operator {
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::More => order.is_gt(),
        Operator::MoreOrEqual => order.is_ge(),
    }
}

impl Operator {
    fn is_equality(self) -> bool {
        matches!(self, Operator::Equal | Operator::NotEqual)
    }
}

/// `[12, 8]` of `12.8`, and of `12.8.0`: zeros at the end do not count.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let mut numbers: Vec<u64> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    while numbers.len() > 1 && numbers.last() == Some(&0) {
        numbers.pop();
    }
    Some(numbers)
}

/// All conditions together.
pub fn all(conditions: &[Condition], names: &Names) -> Truth {
    let mut missing = BTreeSet::new();
    for condition in conditions {
        match condition.holds(names) {
            Truth::Yes => {}
            Truth::No => return Truth::No,
            Truth::Unknown(more) => missing.extend(more),
        }
    }
    if missing.is_empty() { Truth::Yes } else { Truth::Unknown(missing) }
}

/// A text with its `{facts}` filled in, several values separated by commas; the facts that are not known otherwise.
pub fn filled(template: &str, names: &Names) -> Result<String, BTreeSet<String>> {
    let (mut text, mut missing, mut rest) = (String::new(), BTreeSet::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
            text.push('{');
            rest = after;
            continue;
        };
        match names.get(name) {
            Some(values) => text.push_str(&values.join(", ")),
            None => drop(missing.insert(name.to_string())),
        }
        rest = after;
    }
    text.push_str(rest);
    if missing.is_empty() { Ok(text) } else { Err(missing) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let names = [
            ("nvcc", "12.10"),
            ("gpu", "86 120"),
            ("isolated", "true"),
            ("system", "linux"),
            ("arch.since", "12.8"),
        ];
        names
            .iter()
            .map(|(name, values)| (name.to_string(), values.split(' ').map(String::from).collect()))
            .collect()
    }

    fn truth(text: &str) -> Truth {
        text.parse::<Condition>().expect(text).holds(&names())
    }

    #[test]
    fn conditions_hold_or_not_or_cannot_be_decided() {
        for yes in [
            "nvcc > 12.9",
            "nvcc >= arch.since",
            "gpu == 120",
            "gpu < 87",
            "isolated",
            "system == 'linux'",
            "system != 'windows'",
            "nvcc == 12.10.0",
        ] {
            assert_eq!(truth(yes), Truth::Yes, "{yes}");
        }
        for no in ["nvcc < 12.9", "!isolated", "gpu == 90", "system == 'windows'", "system < 'windows'"] {
            assert_eq!(truth(no), Truth::No, "{no}");
        }
        for (text, name) in
            [("torch > 2.1", "torch"), ("nvcc < torch.cuda", "torch.cuda"), ("!windows", "windows")]
        {
            assert_eq!(truth(text), Truth::Unknown(BTreeSet::from([name.to_string()])), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for bad in ["", "nvcc <", "< 1", "Nvcc", "a b", "x == 'y", "!", "x = 1"] {
            assert!(bad.parse::<Condition>().is_err(), "{bad}");
        }
    }

    #[test]
    fn texts_are_filled() {
        assert_eq!(filled("{nvcc} of {gpu}, {Not} {", &names()), Ok("12.10 of 86, 120, {Not} {".into()));
        assert_eq!(filled("{torch} {x}", &names()), Err(BTreeSet::from(["torch".into(), "x".into()])));
    }
}

//! The conditions of `#if` and `#elif`, evaluated as far as the values of macros are known.

use super::passes::{Macro, Pass};
use super::tokens::{Kind, Token};

/// A value of the preprocessor, as far as it is known: some number from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// It is not below this.
    pub low: i64,
    /// It is not above this.
    pub high: i64,
}

/// What is known of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    Yes,
    /// It does not hold.
    No,
    /// Nobody knows.
    Maybe,
}

impl Number {
    /// Any number.
    pub const ANY: Self = Self { low: i64::MIN, high: i64::MAX };

    /// Exactly this one.
    pub const fn exactly(value: i64) -> Self {
        Self { low: value, high: value }
    }

    /// Whether it is not zero.
    pub fn truth(self) -> Truth {
        match (self.low, self.high) {
            (0, 0) => Truth::No,
            (low, high) if low > 0 || high < 0 => Truth::Yes,
            _ => Truth::Maybe,
        }
    }

    fn exact(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    fn less(self, other: Self) -> Truth {
        match () {
            () if self.high < other.low => Truth::Yes,
            () if self.low >= other.high => Truth::No,
            () => Truth::Maybe,
        }
    }

    fn equal(self, other: Self) -> Truth {
        match (self.exact(), other.exact()) {
            (Some(one), Some(two)) if one == two => Truth::Yes,
            _ if self.high < other.low || other.high < self.low => Truth::No,
            _ => Truth::Maybe,
        }
    }

    /// An operation that is monotone in each side: its bounds are among its values at the bounds.
    fn at_corners(self, other: Self, operation: impl Fn(i64, i64) -> Option<i64>) -> Self {
        let corners =
            [(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)];
        let values: Option<Vec<i64>> = corners.into_iter().map(|(one, two)| operation(one, two)).collect();
        let bounds = values.and_then(|values| Some((*values.iter().min()?, *values.iter().max()?)));
        bounds.map_or(Self::ANY, |(low, high)| Self { low, high })
    }

    fn exactly_if(self, other: Self, operation: impl Fn(i64, i64) -> Option<i64>) -> Self {
        let value = self.exact().zip(other.exact()).and_then(|(one, two)| operation(one, two));
        value.map_or(Self::ANY, Self::exactly)
    }
}

impl Truth {
    /// The number that a condition is.
    fn number(self) -> Number {
        match self {
            Truth::Yes => Number::exactly(1),
            Truth::No => Number::exactly(0),
            Truth::Maybe => Number { low: 0, high: 1 },
        }
    }

    /// The opposite.
    pub fn not(self) -> Self {
        match self {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Maybe => Truth::Maybe,
        }
    }

    /// Both hold.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Truth::No, _) | (_, Truth::No) => Truth::No,
            (Truth::Yes, Truth::Yes) => Truth::Yes,
            _ => Truth::Maybe,
        }
    }
}

/// Evaluates a condition; what cannot be read may be true.
pub fn evaluate(bytes: &[u8], tokens: &[Token], pass: &Pass<'_>) -> Truth {
    let mut reader = Reader { bytes, tokens, at: 0, depth: 0, pass };
    let value = reader.ternary();
    value.filter(|_| reader.at == tokens.len()).map_or(Truth::Maybe, Number::truth)
}

/// The deepest nesting that is read.
const DEEPEST: usize = 100;

/// Binary operators and how strongly they bind; longer ones first.
const OPERATORS: [(&str, u8); 21] = [
    ("||", 1),
    ("or", 1),
    ("&&", 2),
    ("and", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("not_eq", 6),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

struct Reader<'a> {
    bytes: &'a [u8],
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    pass: &'a Pass<'a>,
}

impl Reader<'_> {
    /// One expression; none where the nesting is too deep to be read.
    fn ternary(&mut self) -> Option<Number> {
        self.depth += 1;
        let value = if self.depth > DEEPEST { None } else { self.choice() };
        self.depth -= 1;
        value
    }

    fn choice(&mut self) -> Option<Number> {
        let condition = self.binary(1)?;
        if !self.take("?") {
            return Some(condition);
        }
        let first = self.ternary()?;
        let second = self.take(":").then(|| self.ternary())??;
        Some(match condition.truth() {
            Truth::Yes => first,
            Truth::No => second,
            Truth::Maybe => Number { low: first.low.min(second.low), high: first.high.max(second.high) },
        })
    }

    fn binary(&mut self, weakest: u8) -> Option<Number> {
        let mut left = self.unary()?;
        while let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= weakest) {
            self.take(operator);
            let right = self.binary(strength + 1)?;
            left = combine(operator, left, right);
        }
        Some(left)
    }

    fn operator(&self) -> Option<(&'static str, u8)> {
        OPERATORS.into_iter().find(|(operator, _)| self.length_of(operator).is_some())
    }

    fn unary(&mut self) -> Option<Number> {
        self.depth += 1;
        let value = if self.depth > DEEPEST { None } else { self.operand() };
        self.depth -= 1;
        value
    }

    fn operand(&mut self) -> Option<Number> {
        Some(match () {
            () if self.take("!") || self.take("not") => self.unary()?.truth().not().number(),
            () if self.take("-") => Number::exactly(0).at_corners(self.unary()?, i64::checked_sub),
            () if self.take("~") => self.unary()?.exactly_if(Number::exactly(0), |value, _| Some(!value)),
            () if self.take("+") => self.unary()?,
            () if self.take("(") => {
                let value = self.ternary()?;
                self.take(")").then_some(value)?
            }
            () => self.primary()?,
        })
    }

    fn primary(&mut self) -> Option<Number> {
        let token = *self.tokens.get(self.at)?;
        self.at += 1;
        match token.kind {
            Kind::Number => Some(integer(token.text(self.bytes)).map_or(Number::ANY, Number::exactly)),
            Kind::Literal => Some(Number::ANY),
            Kind::Word if token.is(self.bytes, "defined") => self.defined(),
            Kind::Word if token.is(self.bytes, "true") => Some(Number::exactly(1)),
            Kind::Word if token.is(self.bytes, "false") => Some(Number::exactly(0)),
            Kind::Word if self.is_next("(") => self.call(),
            Kind::Word => Some(match self.pass.get(token.text(self.bytes)) {
                Macro::Undefined => Number::exactly(0),
                Macro::Defined(value) | Macro::Perhaps(value) => value,
            }),
            _ => None,
        }
    }

    fn defined(&mut self) -> Option<Number> {
        let parenthesised = self.take("(");
        let name = self.tokens.get(self.at).filter(|token| token.kind == Kind::Word)?;
        self.at += 1;
        (!parenthesised || self.take(")")).then(|| self.pass.is_defined(name.text(self.bytes)).number())
    }

    /// A macro with arguments: nobody knows its value.
    fn call(&mut self) -> Option<Number> {
        let mut open = 0usize;
        loop {
            let token = self.tokens.get(self.at)?;
            self.at += 1;
            match token.text(self.bytes) {
                b"(" => open += 1,
                b")" if open == 1 => return Some(Number::ANY),
                b")" => open -= 1,
                _ => {}
            }
        }
    }

    fn is_next(&self, text: &str) -> bool {
        self.length_of(text).is_some()
    }

    fn take(&mut self, text: &str) -> bool {
        let length = self.length_of(text);
        self.at += length.unwrap_or(0);
        length.is_some()
    }

    /// How many tokens a word or operator is, if it comes next.
    fn length_of(&self, text: &str) -> Option<usize> {
        let next = self.tokens.get(self.at..)?;
        let first = next.first()?;
        if first.kind == Kind::Word {
            return first.is(self.bytes, text).then_some(1);
        }
        let last = next.get(text.len() - 1)?;
        (self.bytes.get(first.start..last.end) == Some(text.as_bytes())).then_some(text.len())
    }
}

fn combine(operator: &str, left: Number, right: Number) -> Number {
    let divisor = right.exact().filter(|divisor| *divisor != 0);
    match operator {
        "||" | "or" => left.truth().not().and(right.truth().not()).not().number(),
        "&&" | "and" => left.truth().and(right.truth()).number(),
        "==" => left.equal(right).number(),
        "!=" | "not_eq" => left.equal(right).not().number(),
        "<" => left.less(right).number(),
        ">" => right.less(left).number(),
        "<=" => right.less(left).not().number(),
        ">=" => left.less(right).not().number(),
        "+" => left.at_corners(right, i64::checked_add),
        "-" => left.at_corners(right, i64::checked_sub),
        "*" => left.at_corners(right, i64::checked_mul),
        "/" if divisor.is_some() => left.at_corners(right, i64::checked_div),
        "%" => left.exactly_if(right, i64::checked_rem),
        "<<" => {
            left.exactly_if(right, |one, two| u32::try_from(two).ok().and_then(|two| one.checked_shl(two)))
        }
        ">>" => {
            left.exactly_if(right, |one, two| u32::try_from(two).ok().and_then(|two| one.checked_shr(two)))
        }
        "&" => left.exactly_if(right, |one, two| Some(one & two)),
        "|" => left.exactly_if(right, |one, two| Some(one | two)),
        "^" => left.exactly_if(right, |one, two| Some(one ^ two)),
        _ => Number::ANY,
    }
}

/// `10`, `0x1F`, `010`, `0b1`, `1'000`, with any suffix.
pub fn integer(text: &[u8]) -> Option<i64> {
    let text: String = std::str::from_utf8(text).ok()?.replace('\'', "").to_ascii_lowercase();
    let digits = |text: &str, base| i64::from_str_radix(text.trim_end_matches(['u', 'l', 'z']), base).ok();
    match text.as_bytes() {
        [b'0', b'x', ..] => digits(&text[2..], 16),
        [b'0', b'b', ..] => digits(&text[2..], 2),
        [b'0', b'0'..=b'9', ..] => digits(&text[1..], 8),
        _ => digits(&text, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::super::passes::Passes;
    use super::super::tokens::tokens;
    use super::*;

    /// For CUDA 12.8 (device code for 50 and newer) and torch 2.6.
    fn truth(text: &str) -> Truth {
        let passes = Passes::of_texts(&["12.8"], Some("2.6.0"));
        let tokens: Vec<Token> = tokens(text.as_bytes()).collect();
        evaluate(text.as_bytes(), &tokens, &passes.iter().last().expect("device pass"))
    }

    #[test]
    fn what_the_environment_decides_is_decided() {
        for yes in [
            "1",
            "CUDA_VERSION >= 9000",
            "defined(CUDART_VERSION) && CUDART_VERSION/1000 == 12",
            "defined CUDA_VERSION and not defined USE_ROCM",
            "__CUDA_ARCH__ >= 300 || FOO",
            "!(__CUDA_ARCH__ < 0x1F)",
            "CUB_VERSION >= 200700 && CCCL_MAJOR_VERSION == 2",
            "TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6)",
            "FOO ? 1 : 2",
            "(1 << 4) == 020 && 1'000L == 1000 && -1 < 0 && (7 & 4) != 0",
            "CUDA_VERSION * 10 > 100000U && CUDA_VERSION - 12080 == 0",
        ] {
            assert_eq!(truth(yes), Truth::Yes, "{yes}");
        }
        for no in [
            "0",
            "false",
            "__HIP__ == 1",
            "CUDA_VERSION < 9000 && FOO",
            "__CUDA_ARCH__ < 500",
            "!TORCH_VERSION_MAJOR",
        ] {
            assert_eq!(truth(no), Truth::No, "{no}");
        }
    }

    #[test]
    fn everything_else_is_unknown() {
        for maybe in [
            "FOO",
            "defined(__CUDACC_VER_MAJOR__)",
            "__CUDA_ARCH__ >= 860",
            "__CUDA_ARCH__ == 900",
            "__has_include(<cuda/std/functional>)",
            "AT_LEAST(1, (2), 3) && 1",
            "CUDA_VERSION >",
            "1 1",
            "",
            "1 / 0",
            "'a' == 97",
            "9223372036854775807 + 1",
        ] {
            assert_eq!(truth(maybe), Truth::Maybe, "{maybe}");
        }
        assert_eq!(truth(&"(".repeat(100_000)), Truth::Maybe);
        assert_eq!(truth(&"!".repeat(100_000)), Truth::Maybe);
    }
}

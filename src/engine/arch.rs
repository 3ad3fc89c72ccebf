//! GPU architectures and the nvcc flags that compile for them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

/// What an `a` or `f` behind the number means to nvcc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// `120`: runs on this chip and on later ones of its major.
    Plain,
    /// `120f`: this chip and later ones of its family.
    Family,
    /// `120a`: exactly this chip.
    Specific,
}

/// A GPU architecture: `120`, `90a`, `100f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// Compute capability times ten: 12.0 is 120.
    pub number: u16,
    /// The `a` or `f` behind it.
    pub variant: Variant,
}

/// A text that is no GPU architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a GPU architecture")]
pub struct NotAnArch {
    /// What was read.
    pub text: String,
}

impl Arch {
    /// An architecture without `a` or `f`.
    pub const fn plain(number: u16) -> Self {
        Self { number, variant: Variant::Plain }
    }

    /// The compute capability as PyTorch writes it: `12.0`, `9.0a`.
    pub fn capability(&self) -> String {
        format!("{}.{}{}", self.number / 10, self.number % 10, self.suffix())
    }

    fn suffix(&self) -> &'static str {
        match self.variant {
            Variant::Plain => "",
            Variant::Family => "f",
            Variant::Specific => "a",
        }
    }

    /// Whether code for `self` serves a wish for `wanted`: the same, or an `a`/`f` variant of a plain one.
    pub fn serves(&self, wanted: Arch) -> bool {
        *self == wanted || (wanted.variant == Variant::Plain && self.number == wanted.number)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.suffix())
    }
}

impl FromStr for Arch {
    type Err = NotAnArch;

    /// Reads `120`, `120a`, `12.0`, `9.0a`.
    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        let not_an_arch = || NotAnArch { text: text.to_string() };
        let (digits, variant) = match text.as_bytes().last() {
            Some(b'a') => (&text[..text.len() - 1], Variant::Specific),
            Some(b'f') => (&text[..text.len() - 1], Variant::Family),
            _ => (text, Variant::Plain),
        };
        let number = match digits.split_once('.') {
            Some((major, minor)) if is_number(major) && minor.len() == 1 && is_number(minor) => {
                format!("{major}{minor}")
            }
            None if is_number(digits) && (2..=3).contains(&digits.len()) => digits.to_string(),
            _ => return Err(not_an_arch()),
        };
        let number = number.parse().map_err(|_| not_an_arch())?;
        Ok(Self { number, variant })
    }
}

impl<'de> Deserialize<'de> for Arch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

fn is_number(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// One result of a compilation: machine code or intermediate code for an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// `sm_120`: machine code (SASS).
    Sass(Arch),
    /// `compute_120`: PTX, translated by the driver.
    Ptx(Arch),
    /// `lto_120`: intermediate code for link-time optimisation.
    Lto(Arch),
}

impl Code {
    /// The architecture that it is for.
    pub fn arch(&self) -> Arch {
        match self {
            Code::Sass(arch) | Code::Ptx(arch) | Code::Lto(arch) => *arch,
        }
    }

    /// Whether having `self` serves a wish for `wanted`.
    pub fn serves(&self, wanted: Code) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(&wanted) && self.arch().serves(wanted.arch())
    }

    /// How tables name it: `120`, `120+PTX` for PTX alone is `120 (PTX)`.
    pub fn label(&self) -> String {
        match self {
            Code::Sass(arch) => arch.to_string(),
            Code::Ptx(arch) => format!("{arch} (PTX)"),
            Code::Lto(arch) => format!("{arch} (LTO)"),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Code::Sass(arch) => write!(f, "sm_{arch}"),
            Code::Ptx(arch) => write!(f, "compute_{arch}"),
            Code::Lto(arch) => write!(f, "lto_{arch}"),
        }
    }
}

impl FromStr for Code {
    type Err = NotAnArch;

    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        let not_an_arch = || NotAnArch { text: text.to_string() };
        let (kind, arch) = text.split_once('_').ok_or_else(not_an_arch)?;
        if arch.contains('.') {
            return Err(not_an_arch());
        }
        let arch = arch.parse()?;
        match kind {
            "sm" => Ok(Code::Sass(arch)),
            "compute" => Ok(Code::Ptx(arch)),
            "lto" => Ok(Code::Lto(arch)),
            _ => Err(not_an_arch()),
        }
    }
}

/// The value of a `-gencode` flag: `arch=compute_120,code=sm_120`, `arch=compute_90,code=[sm_90,compute_90]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gencode {
    /// The architecture of the intermediate code (`arch=compute_…`).
    pub virtual_arch: Arch,
    /// What is made of it (`code=…`), at least one.
    pub codes: Vec<Code>,
}

impl Gencode {
    /// The usual value for one result: `sm_120` gives `arch=compute_120,code=sm_120`.
    pub fn of(code: Code) -> Self {
        Self { virtual_arch: code.arch(), codes: vec![code] }
    }

    /// Every architecture that nvcc must know to take the flag.
    pub fn arches(&self) -> impl Iterator<Item = Arch> + '_ {
        std::iter::once(self.virtual_arch).chain(self.codes.iter().map(Code::arch))
    }

    /// The architecture that places the flag in an ascending list.
    pub fn order(&self) -> (Arch, bool) {
        let first = self.codes.iter().map(Code::arch).min().unwrap_or(self.virtual_arch);
        (first, matches!(self.codes.first(), Some(Code::Ptx(_))))
    }
}

impl fmt::Display for Gencode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arch=compute_{},code=", self.virtual_arch)?;
        match self.codes.as_slice() {
            [code] => code.fmt(f),
            codes => {
                let names: Vec<String> = codes.iter().map(Code::to_string).collect();
                write!(f, "[{}]", names.join(","))
            }
        }
    }
}

impl FromStr for Gencode {
    type Err = NotAnArch;

    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        let not_an_arch = || NotAnArch { text: text.to_string() };
        let (arch, codes) = text
            .trim()
            .strip_prefix("arch=")
            .and_then(|rest| rest.split_once(",code="))
            .ok_or_else(not_an_arch)?;
        let Code::Ptx(virtual_arch) = arch.parse()? else { return Err(not_an_arch()) };
        // In a command line the shell takes them: code="sm_80,compute_80".
        let codes = codes.trim_matches(['"', '\\']);
        let codes = codes.strip_prefix('[').and_then(|codes| codes.strip_suffix(']')).unwrap_or(codes);
        let codes = codes.split(',').map(|code| code.trim().parse()).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { virtual_arch, codes })
    }
}

/// Reads an architecture as people write it: `120`, `12.0`, `sm_120`, `100f`, `12.0+PTX` (both results),
/// `compute_120` (PTX alone).
pub fn parse_codes(text: &str) -> Result<Vec<Code>, NotAnArch> {
    if let Some(arch) = text.strip_suffix("+PTX").or_else(|| text.strip_suffix("+ptx")) {
        let arch = arch.strip_prefix("sm_").unwrap_or(arch).parse()?;
        return Ok(vec![Code::Sass(arch), Code::Ptx(arch)]);
    }
    match text.split_once('_') {
        Some(("sm" | "compute", _)) => text.parse().map(|code| vec![code]),
        Some(_) => Err(NotAnArch { text: text.to_string() }),
        None => text.parse().map(|arch| vec![Code::Sass(arch)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_read_as_people_write_them() {
        let sass = |number| vec![Code::Sass(Arch::plain(number))];
        assert_eq!(parse_codes("120"), Ok(sass(120)));
        assert_eq!(parse_codes("12.0"), Ok(sass(120)));
        assert_eq!(parse_codes("sm_90"), Ok(sass(90)));
        assert_eq!(parse_codes("compute_120"), Ok(vec![Code::Ptx(Arch::plain(120))]));
        assert_eq!(
            parse_codes("12.0+PTX"),
            Ok(vec![Code::Sass(Arch::plain(120)), Code::Ptx(Arch::plain(120))])
        );
        assert_eq!(
            parse_codes("9.0a"),
            Ok(vec![Code::Sass(Arch { number: 90, variant: Variant::Specific })])
        );
        for bad in ["", "banana", "1", "12.00", "sm-120", "lto_120", "120x", "1200", "sm_", "+PTX", "ß0"] {
            assert!(parse_codes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn gencode_values_survive_the_round_trip() {
        for text in [
            "arch=compute_120,code=sm_120",
            "arch=compute_100f,code=sm_100",
            "arch=compute_90,code=[sm_90,compute_90]",
            "arch=compute_90,code=compute_90",
        ] {
            assert_eq!(text.parse::<Gencode>().expect(text).to_string(), text);
        }
        for bad in ["compute_120", "arch=sm_120,code=sm_120", "arch=compute_120", "arch=compute_120,code="] {
            assert!(bad.parse::<Gencode>().is_err(), "{bad}");
        }
    }

    #[test]
    fn variants_count_as_the_plain_architecture() {
        let specific: Arch = "120a".parse().expect("arch");
        assert!(specific.serves(Arch::plain(120)) && !Arch::plain(120).serves(specific));
    }
}

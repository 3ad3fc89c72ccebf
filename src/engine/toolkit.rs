//! Releases of the CUDA toolkit.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

/// A release of the CUDA toolkit: `12.8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toolkit {
    /// `12` of `12.8`.
    pub major: u16,
    /// `8` of `12.8`.
    pub minor: u16,
}

/// A text that is no release of the CUDA toolkit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a CUDA version such as 12.8")]
pub struct NotAToolkit {
    /// What was read.
    pub text: String,
}

impl Toolkit {
    /// The release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Toolkit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Toolkit {
    type Err = NotAToolkit;

    /// Reads `12.8` and `12.8.1`; the third number does not count.
    fn from_str(text: &str) -> Result<Self, NotAToolkit> {
        let numbers: Option<Vec<u16>> = text.split('.').map(number).collect();
        match numbers.as_deref() {
            Some([major, minor] | [major, minor, _]) => Ok(Self::new(*major, *minor)),
            _ => Err(NotAToolkit { text: text.to_string() }),
        }
    }
}

/// Digits alone: `u16::from_str` would take a `+` too.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl<'de> Deserialize<'de> for Toolkit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_and_ordered_as_numbers() {
        assert_eq!("12.8".parse(), Ok(Toolkit::new(12, 8)));
        assert_eq!("12.8.1".parse(), Ok(Toolkit::new(12, 8)));
        assert_eq!(Toolkit::new(12, 8).to_string(), "12.8");
        assert!(Toolkit::new(9, 2) < Toolkit::new(11, 0) && Toolkit::new(12, 9) < Toolkit::new(12, 10));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["", "12", "12.", ".8", "V12.8", "12.8.1.2", "12.8a", "+12.8", "12.-8", "99999.0", "1２.8"]
        {
            assert!(bad.parse::<Toolkit>().is_err(), "{bad}");
        }
    }
}

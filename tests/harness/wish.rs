//! What to do, as it is typed on the command line.

use mambapatch::engine::arch::parse_codes;
use mambapatch::engine::patchset::select::Request;

/// Flags that were read.
pub struct Wish {
    pub request: Request,
}

impl std::str::FromStr for Wish {
    type Err = String;

    fn from_str(flags: &str) -> Result<Self, String> {
        let mut request = Request::default();
        let mut words = flags.split_whitespace();
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} without a value"))?;
            let codes = || parse_codes(value).map_err(|error| error.to_string());
            match flag {
                "--add-arch" => request.wish.add.extend(codes()?),
                "--drop-arch" => request.wish.drop.extend(codes()?),
                "--only-arch" => request.wish.only.extend(codes()?),
                "--cuda" => request.environment.cuda.push(value.parse().map_err(|_| value.to_string())?),
                "--torch" => request.environment.torch = value.parse().ok(),
                "--patch" => request.patches.push(value.to_string()),
                "--skip-patch" => request.skip.push(value.to_string()),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(Self { request })
    }
}

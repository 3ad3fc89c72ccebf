//! Reads the architectures out of a list of nvcc flags, apart from the engine's own reader.

/// A list of nvcc flags, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flags {
    /// What is compiled for, in order: `90`, `120a`, `90+PTX`; an unequal pair as it is written.
    pub arches: Vec<String>,
    /// Everything else, in order.
    pub others: Vec<String>,
    /// What nvcc would refuse: a value without `-gencode`, a `-gencode` without a value, both in one string.
    pub faults: Vec<String>,
}

impl Flags {
    /// Takes a list apart.
    pub fn of(nvcc: &[String]) -> Self {
        let mut flags = Self::default();
        let mut words = nvcc.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if !is_option(word) {
                flags.take(word);
            } else if let Some(value) = words.next_if(|value| value.starts_with("arch=")) {
                flags.gencode(value);
            } else {
                flags.faults.push(format!("`{word}` without a value"));
            }
        }
        flags
    }

    fn take(&mut self, word: &str) {
        match word.split_once(['=', ' ']) {
            Some((option, value)) if is_option(option) && word.as_bytes()[option.len()] == b'=' => {
                self.gencode(value);
            }
            Some((option, _)) if is_option(option) => {
                self.faults.push(format!("option and value in one string: `{word}`"));
            }
            Some(("arch", _)) => self.faults.push(format!("`{word}` without -gencode")),
            _ => self.others.push(word.to_string()),
        }
    }

    fn gencode(&mut self, value: &str) {
        match compiled(value) {
            Some(arches) => self.arches.extend(arches),
            None => self.faults.push(format!("an unreadable value: `{value}`")),
        }
    }
}

fn is_option(word: &str) -> bool {
    ["-gencode", "--generate-code"].contains(&word)
}

/// `arch=compute_90,code=[sm_90,compute_90]` gives `90` and `90+PTX`.
fn compiled(value: &str) -> Option<Vec<String>> {
    let (from, codes) = value.strip_prefix("arch=compute_")?.split_once(",code=")?;
    let codes = codes.strip_prefix('[').and_then(|codes| codes.strip_suffix(']')).unwrap_or(codes);
    codes.split(',').map(|code| one(from, code)).collect()
}

fn one(from: &str, code: &str) -> Option<String> {
    let (kind, arch) = code.split_once('_')?;
    let readable = is_arch(from) && is_arch(arch);
    match kind {
        "sm" | "compute" if !readable => None,
        "sm" if arch == from => Some(arch.to_string()),
        "compute" if arch == from => Some(format!("{arch}+PTX")),
        "sm" | "compute" => Some(format!("arch=compute_{from},code={code}")),
        _ => None,
    }
}

fn is_arch(text: &str) -> bool {
    let digits = text.trim_end_matches(['a', 'f']);
    (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether code for `arch` serves a wish for `wanted`: the same, or an `a` or `f` variant of it.
pub fn serves(arch: &str, wanted: &str) -> bool {
    matches!(arch.strip_prefix(wanted), Some("" | "a" | "f"))
}

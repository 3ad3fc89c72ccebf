//! Conditions that may choose an architecture. Nothing tells what `if with_volta:` asks, and an entry for sm_70 under it
//! may be what the name means: with sm_120 in its place the branch would be another thing. So what stands under such
//! a condition may be extended, and what is not wanted or refused may go, but it is never exchanged: where nothing of
//! what was there would stay beside what comes, a person must look. Conditions that ask whether CUDA is there, on which
//! system the build runs, or whether architectures were named already choose none.

use std::ops::Range;

use crate::engine::arch::Code;
use crate::engine::ops::gencode::settle::labels;
use crate::engine::source::line_of;

/// The words that conditions about anything else than architectures are made of.
const PLAIN: &[&str] = &[
    // Whether CUDA is there and wanted.
    "cuda",
    "cudatoolkit",
    "cudart",
    "toolkit",
    "nvcc",
    "nvidia",
    "gpu",
    "gpus",
    "cpu",
    "torch",
    "home",
    "root",
    "dir",
    "path",
    "bin",
    "file",
    "force",
    "use",
    "with",
    "without",
    "has",
    "have",
    "enable",
    "enabled",
    "disable",
    "disabled",
    "build",
    "compile",
    "compiler",
    "id",
    "loaded",
    "found",
    "available",
    "device",
    "count",
    "ext",
    "extension",
    "extensions",
    "op",
    "ops",
    "kernel",
    "kernels",
    "only",
    "no",
    "skip",
    "support",
    "installed",
    "language",
    // Whether architectures were named.
    "arch",
    "archs",
    "arches",
    "architecture",
    "architectures",
    "list",
    "flag",
    "flags",
    "target",
    "cmake",
    "defined",
    // The system, and how the build is run.
    "sys",
    "platform",
    "system",
    "name",
    "main",
    "win",
    "win32",
    "windows",
    "nt",
    "linux",
    "darwin",
    "macos",
    "apple",
    "unix",
    "posix",
    "msvc",
    "uname",
    "debug",
    "release",
    "type",
    // What joins them.
    "is",
    "not",
    "in",
    "none",
    "true",
    "false",
    "on",
    "off",
    "yes",
    "y",
    "n",
    "z",
    "d",
    "f",
    "o",
    "0",
    "1",
    "if",
    "os",
    "env",
    "environ",
    "environment",
    "get",
    "getenv",
    "exists",
    "isfile",
    "isdir",
    "join",
    "which",
    "shutil",
    "len",
    "str",
    "int",
    "bool",
    "upper",
    "lower",
    "strip",
    "startswith",
    "self",
    "args",
    "argv",
    "option",
    "options",
    "test",
    "equal",
    "strequal",
    "matches",
    "greater",
    "and",
    "or",
    "ifeq",
    "ifneq",
    "ifdef",
    "ifndef",
    "else",
    "elif",
    "elseif",
    "shell",
    "command",
    "v",
];

/// How the names of lists of architectures end: who asks for one asks whether it was given.
const LISTS: &[&str] = &["architectures", "archs", "arches", "arch_list"];

/// Whether what a condition asks may be for an architecture, judged by its words.
pub fn may_choose(condition: &str) -> bool {
    let lower = condition.to_lowercase();
    let names = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_list = |name: &&str| LISTS.iter().any(|end| name.ends_with(end));
    let mut words = names.filter(|name| !is_list(name)).flat_map(|name| name.split('_'));
    !lower.contains("cmake_version") && words.any(|word| !(word.is_empty() || PLAIN.contains(&word)))
}

/// A condition that may choose an architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As it is written, in one line.
    pub condition: String,
    /// Its line, from 1.
    pub line: usize,
}

impl Choice {
    /// The condition that stands in these bytes.
    pub fn at(range: Range<usize>, bytes: &[u8]) -> Self {
        let line = line_of(bytes, range.start);
        let text = String::from_utf8_lossy(bytes.get(range).unwrap_or_default()).into_owned();
        Self { condition: text.split_whitespace().collect::<Vec<_>>().join(" "), line }
    }

    /// Why what stands under it is left, where every architecture would go and others come.
    pub fn exchanged(&self, before: &[Code], after: &[Code]) -> Option<String> {
        let stays = |code: &Code| before.iter().any(|old| old.arch().number == code.arch().number);
        let is_exchanged = !before.is_empty() && !after.is_empty() && !after.iter().any(stays);
        is_exchanged.then(|| {
            let (old, new) = (labels(before.to_vec()), labels(after.to_vec()));
            let Self { condition, line } = self;
            format!(
                "{old} not exchanged for {new}: `{condition}` (line {line}) may ask for an architecture; see what that \
                 branch is for, and change it by hand"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_about_cuda_the_system_and_what_was_named_choose_nothing() {
        let plain = [
            "torch.cuda.is_available()",
            "CUDA_HOME is not None",
            "os.getenv(\"FORCE_CUDA\", \"0\") == \"1\"",
            "\"TORCH_CUDA_ARCH_LIST\" not in os.environ",
            "__name__ == \"__main__\"",
            "os.name == 'nt'",
            "DEFINED CMAKE_CUDA_ARCHITECTURES",
            "[ -z $TORCH_CUDA_ARCH_LIST ]",
            "CMAKE_VERSION VERSION_LESS 3.23.0",
            "CMAKE_BUILD_TYPE STREQUAL Debug",
        ];
        assert_eq!(plain.iter().filter(|text| may_choose(text)).collect::<Vec<_>>(), Vec::<&&str>::new());
        let choosing =
            ["some_flag", "USE_VOLTA", "cuda_arch == '70'", "args.fast", "\"90\" in archs", "torch >= 1.8"];
        assert_eq!(choosing.iter().filter(|text| !may_choose(text)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn only_what_loses_everything_is_exchanged() {
        let codes = |text: &str| -> Vec<Code> {
            text.split_whitespace().map(|code| code.parse().expect("code")).collect()
        };
        let choice = Choice::at(3..13, b"if with_volta:\n");
        assert_eq!(choice, Choice { condition: "with_volta".to_string(), line: 1 });
        let is_left = |before: &str, after: &str| choice.exchanged(&codes(before), &codes(after)).is_some();
        assert!(is_left("sm_70 sm_80", "sm_120"));
        assert!(!is_left("sm_70 sm_80", "sm_80 sm_120") && !is_left("sm_90a", "sm_90"));
        assert!(!is_left("sm_70", "") && !is_left("", "sm_120"));
    }
}

//! Build files that their grammar cannot read, which may hold flags that no op finds.

use std::ops::Range;
use std::sync::Arc;

use super::planned::named;
use crate::engine::source::{Sources, line_of};
use crate::engine::syntax::Language;

/// What a file names that may choose how CUDA is compiled.
const CHOOSES: [&str; 8] = [
    "gencode",
    "generate-code",
    "arch=compute_",
    "nvcc",
    "CUDAExtension",
    "cpp_extension",
    "TORCH_CUDA_ARCH_LIST",
    "ext_modules",
];

/// Where each build file cannot be read. Broken code is told as what a grammar does not know: the grammars know less than
/// Python and CMake do.
pub fn notes(sources: &Sources) -> Vec<String> {
    let told = |(path, bytes): (&str, &Arc<[u8]>)| {
        let language = Language::of_path(path)?;
        let name = match language {
            Language::Python => "Python",
            Language::Cmake => "CMake",
            Language::Cpp => return None,
        };
        if !is_build_file(path, language, bytes) {
            return None;
        }
        let lines: Vec<String> =
            sources.parsed(path)?.ok()?.unread().into_iter().map(|range| lines(range, bytes)).collect();
        let word = if matches!(lines.as_slice(), [one] if !one.contains('-')) { "line" } else { "lines" };
        let lines = named(&lines)?;
        Some(format!(
            "{path}: {word} {lines} cannot be read as {name}, and what stands there was not looked at"
        ))
    };
    sources.iter().filter_map(told).collect()
}

/// `3`, or `3-8`.
fn lines(range: Range<usize>, bytes: &[u8]) -> String {
    let text = bytes.get(range.clone()).unwrap_or_default().trim_ascii_end();
    let (first, last) = (line_of(bytes, range.start), line_of(bytes, range.start + text.len()));
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Whether a file is one by which extensions are compiled: others need not be understood.
fn is_build_file(path: &str, language: Language, bytes: &[u8]) -> bool {
    let holds = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
    match language {
        Language::Python => {
            path.rsplit('/').next() == Some("setup.py") || CHOOSES.iter().any(|word| holds(word))
        }
        Language::Cmake => ["CUDA", "cuda", "nvcc"].iter().any(|word| holds(word)),
        Language::Cpp => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &str = "CUDAExtension('x', [], {'nvcc': ['-gencode', 'arch=compute_80,code=sm_80']})";

    /// The lines that are told of a file, in a tree of its own.
    fn told(path: &str, text: &str) -> String {
        let notes = notes(&Sources::from_iter([(path, text.as_bytes())])).join("; ");
        let lines = notes.strip_prefix(path).and_then(|rest| rest.strip_prefix(": line"));
        let lines = lines.map(|rest| rest.trim_start_matches(['s', ' ']));
        let (lines, _) =
            lines.and_then(|rest| rest.split_once(" cannot be read as ")).unwrap_or((&notes, ""));
        lines.to_string()
    }

    #[test]
    fn python_that_cannot_be_read_is_told() {
        let head = "from setuptools import setup\n\n";
        let cases = [
            (format!("setup([{FLAGS}])\nf(f\"arch={{x"), "4"),
            (format!("setup([{FLAGS})\n"), "3"),
            (format!("setup([{FLAGS}\n"), "3"),
            (format!("\"\"\" {FLAGS}\nsetup()\n"), "3"),
            (format!("setup([{FLAGS}], 'x)\n"), "3"),
            (format!("if a:\n    b = 1\n      c = {FLAGS}\n"), "5"),
            (format!("print \"building\"\nsetup({FLAGS})\n"), ""),
            (format!("setup({FLAGS}, f'{{a!r:>{{b}}}}')\n"), ""),
            (format!("x = = 1\nsetup({FLAGS})\ny = = 1\n"), "3, 5"),
        ];
        for (text, lines) in cases {
            assert_eq!(told("ext/setup.py", &format!("{head}{text}")), lines, "{text}");
        }
        assert_eq!(told("model.py", "def f(:\n"), "");
        assert_eq!(told("build_ext.py", &format!("def f(:\n    return {FLAGS}\n")), "1");
        assert_eq!(told("a.cu", "__global__ void f(\n"), "");
    }

    #[test]
    fn cmake_that_cannot_be_read_is_told() {
        let flags = "set(CMAKE_CUDA_ARCHITECTURES 80)\n";
        let cases = [
            ("project(x LANGUAGES CUDA\n", "1-2"),
            ("message(\"open)\n", "1-2"),
            ("if(A\n", "1-2"),
            ("message(\"${A\nB}\")\n", "1-3"),
            ("project(x)\n", ""),
        ];
        for (text, lines) in cases {
            assert_eq!(told("CMakeLists.txt", &format!("{text}{flags}")), lines, "{text}");
        }
        assert_eq!(told("CMakeLists.txt", "project(x\n"), "");
    }
}

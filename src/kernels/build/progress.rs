//! How far a build is, from what it prints.

use std::sync::LazyLock;

use regex::Regex;

/// How many files are compiled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Units {
    /// Done so far; without ninja, begun.
    pub done: usize,
    /// In all, where ninja says it.
    pub total: Option<usize>,
}

/// Counts what is compiled.
#[derive(Debug, Default)]
pub struct Count {
    units: Units,
    /// Units of the extensions before the present one.
    before: usize,
    /// What ninja said last.
    last: (usize, usize),
}

impl Count {
    /// The new count, where a line changes it: ninja's `[3/20] nvcc …`; without ninja, a compiler's own command.
    pub fn line(&mut self, line: &str) -> Option<Units> {
        static NINJA: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*\[(\d+)/(\d+)\] \S"));
        static COMPILER: LazyLock<Regex> = LazyLock::new(|| {
            pattern(r"^\s*\S*(?:nvcc|cc|c\+\+|g\+\+|clang|cl\.exe)\S* .*\s[-/]c\s.*\.(?:cu|cpp|cc|cxx|c)\b")
        });
        if let Some(found) = NINJA.captures(line) {
            let (at, of) = (found[1].parse().ok()?, found[2].parse().ok()?);
            self.ninja(at, of);
        } else if self.units.total.is_none() && COMPILER.is_match(line) {
            self.units.done += 1;
        } else {
            return None;
        }
        Some(self.units)
    }

    /// A second extension begins again at 1.
    fn ninja(&mut self, at: usize, of: usize) {
        if at <= self.last.0 {
            self.before += self.last.0;
        }
        self.last = (at, of);
        self.units = Units { done: self.before + at, total: Some(self.before + of) };
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<(usize, Option<usize>)> {
        let mut count = Count::default();
        text.lines().filter_map(|line| count.line(line)).map(|units| (units.done, units.total)).collect()
    }

    #[test]
    fn ninja_counts_and_begins_again_for_a_second_extension() {
        let text = "building 'a'\n  [1/2] /usr/bin/nvcc -c a.cu -o a.o\n  [2/2] c++ -c a.cpp -o b.o\n[1/3] nvcc\n[2/3] x\n";
        assert_eq!(counts(text), [(1, Some(2)), (2, Some(2)), (3, Some(5)), (4, Some(5))]);
        assert_eq!(counts("[1/2]\narray[1/2] x\n"), []);
    }

    #[test]
    fn compilers_are_counted_without_ninja() {
        let text = "  /usr/local/cuda/bin/nvcc -I. -c csrc/a.cu -o build/a.o -O3\n  g++ -shared a.o -o a.so\n  x86_64-linux-gnu-gcc -Wall -c b.cpp -o b.o\n";
        assert_eq!(counts(text), [(1, None), (2, None)]);
    }
}

//! Generator expressions of CMake around flags: `$<$<COMPILE_LANGUAGE:CUDA>:-gencode=arch=…;-O3>`.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::engine::syntax::words::Word;

/// What begins an expression of which the flags reach nvcc in every build: others may hold or not.
const HEADS: [&str; 4] = [
    "$<BUILD_INTERFACE:",
    "$<BUILD_LOCAL_INTERFACE:",
    "$<$<COMPILE_LANGUAGE:CUDA>:",
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:",
];

/// The words of a string, or the arguments of a command, in which the marks of an expression around flags for nvcc are
/// words of their own.
pub fn unwrapped(words: Vec<Word>, is_string: bool, bytes: &[u8]) -> Vec<Word> {
    let mut unwrapped = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (head, depth) = head(&words[at].text);
        let end = Some(&words[at..])
            .filter(|_| depth > 0)
            .and_then(|words| closing(words, (head, depth), is_string, bytes));
        let Some(last) = end.map(|end| at + end) else {
            unwrapped.push(words[at].clone());
            at += 1;
            continue;
        };
        for (place, word) in words.iter().enumerate().take(last + 1).skip(at) {
            let Range { mut start, mut end } = word.range.clone();
            let (opens, closes) = (place == at, place == last);
            let whole = start..end;
            start += if opens { head } else { 0 };
            end -= if closes { depth } else { 0 };
            let pieces = [(opens, whole.start..start), (start < end, start..end), (closes, end..whole.end)];
            let pieces = pieces.into_iter().filter(|(is_there, _)| *is_there).map(|(_, range)| range);
            unwrapped.extend(pieces.map(|range| plain(range, bytes)));
        }
        at = last + 1;
    }
    unwrapped
}

fn plain(range: Range<usize>, bytes: &[u8]) -> Word {
    let text = String::from_utf8_lossy(&bytes[range.clone()]).into_owned();
    Word { range, text, quoted: Vec::new() }
}

/// The bytes of the known heads that a text begins with, and how many they are.
fn head(text: &str) -> (usize, usize) {
    let (mut length, mut depth) = (0, 0);
    while let Some(head) = HEADS.iter().find(|head| text[length..].starts_with(**head)) {
        length += head.len();
        depth += 1;
    }
    (length, depth)
}

/// The word that ends an expression of a depth behind its head; nothing where blanks stand within a string, which nvcc
/// gets as one word, or where a flag and its value are arguments of their own, of which CMake drops one that comes twice.
fn closing(words: &[Word], (head, depth): (usize, usize), is_string: bool, bytes: &[u8]) -> Option<usize> {
    let mut open = depth;
    for (at, word) in words.iter().enumerate() {
        let text = word.text.get(if at == 0 { head } else { 0 }..)?;
        let is_list = at == 0 || bytes[words[at - 1].range.end..word.range.start].contains(&b';');
        let fits = if is_string { is_list } else { !is_half(text) };
        if word.text.len() != word.range.len() || !fits {
            return None;
        }
        let inner = text.strip_suffix(&">".repeat(depth));
        if open == depth && inner.is_some_and(|inner| balance(inner, 0) == Some(0)) {
            return Some(at);
        }
        open = balance(text, open).filter(|open| *open >= depth)?;
    }
    None
}

/// Whether a text is a flag that has its value in the next word.
fn is_half(text: &str) -> bool {
    ["-gencode", "--generate-code", "-arch", "--gpu-architecture"].iter().any(|flag| text.ends_with(flag))
}

/// How many expressions are open behind a text; nothing where it closes more than are open.
fn balance(text: &str, open: usize) -> Option<usize> {
    let marks = text.as_bytes().iter().enumerate();
    marks.filter(|(_, byte)| matches!(byte, b'<' | b'>')).try_fold(open, |open, (at, byte)| match byte {
        b'<' if text[..at].ends_with('$') => Some(open + 1),
        b'>' => open.checked_sub(1),
        _ => Some(open),
    })
}

/// The words within expressions that hold an architecture beside one of their marks: it cannot be changed, so that the
/// others must not be either.
pub fn sealed(words: &[Word]) -> Vec<Range<usize>> {
    let mut sealed: Vec<Range<usize>> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if !word.text.starts_with("$<") || sealed.last().is_some_and(|last| at < last.end) {
            continue;
        }
        let mut open = 0;
        let behind = words[at..].iter().position(|word| {
            open = balance(&word.text, open).unwrap_or(0);
            open == 0
        });
        let end = behind.map_or(words.len(), |behind| at + behind + 1);
        let is_mark = |word: &&Word| word.text.starts_with("$<") || word.text.ends_with('>');
        if words[at..end]
            .iter()
            .filter(is_mark)
            .any(|word| word.text.contains("arch=") || is_half(&word.text))
        {
            sealed.push(at..end);
        }
    }
    sealed
}

/// Whether a word is a mark of an expression, and nothing else.
pub fn is_mark(word: &Word) -> bool {
    let (head, depth) = head(&word.text);
    (depth > 0 && head == word.text.len())
        || (!word.text.is_empty() && word.text.bytes().all(|byte| byte == b'>'))
}

/// The marks of expressions of which every word goes.
pub fn emptied(words: &[Word], gone: &BTreeSet<usize>) -> Vec<usize> {
    let opening = |at: &usize| is_mark(&words[*at]) && words[*at].text.starts_with('$');
    let marks = (0..words.len()).filter(opening).filter_map(|head| {
        let tail = words[head + 1..].iter().position(is_mark).map(|length| head + 1 + length)?;
        (head + 1..tail).all(|at| gone.contains(&at)).then_some([head, tail])
    });
    marks.flatten().collect()
}

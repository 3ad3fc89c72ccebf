//! Flags that are made of a variable of which the file does not tell what it holds.

use std::collections::BTreeSet;

use super::items::{self, Asked, Item};
use super::made;
use super::outline::{Outline, Sequence};
use super::taken::taken;
use crate::engine::arch::parse_codes;
use crate::engine::source::line_of;
use crate::engine::syntax::words::Dialect;

/// What flags of architectures have in them.
const MARKS: [&str; 3] = ["-arch", "arch=", "sm_"];

/// What a person should look at; `items` are the entries of named lists that were read.
pub fn told(outline: &Outline, items: &[Item], (path, bytes): (&str, &[u8])) -> Vec<String> {
    let unread = items::asked(outline).into_iter().filter(|asked| !is_told(asked, outline, items));
    let mut seen = BTreeSet::new();
    let told = |Asked { variable, place, .. }: Asked| {
        let line = line_of(bytes, place.start);
        let made = seen.insert((variable.clone(), line)).then_some(line)?;
        let values = innermost(outline, &variable, place.start);
        let (what, line) = match values {
            Some(values) => {
                let words: Vec<&str> = values.words.iter().map(|word| word.text.as_str()).collect();
                (
                    format!("makes flags of each of `{}`", words.join(" ")),
                    line_of(bytes, values.command.start),
                )
            }
            None => (format!("makes a flag of `{variable}`"), made),
        };
        Some(format!(
            "{path} line {line} {what}, for which the file has no list: see to it that it holds what is wanted"
        ))
    };
    let mut told: Vec<String> = unread.filter_map(told).collect();
    told.dedup();
    told
}

/// Calls of a makefile that nothing ends, on the lines that speak of architectures.
pub fn unclosed(outline: &Outline, (path, bytes): (&str, &[u8])) -> Vec<String> {
    if Dialect::of_path(path) != Dialect::Make || outline.is_cmake {
        return Vec::new();
    }
    let speaks =
        |one: &&Sequence| one.words.iter().any(|word| MARKS.iter().any(|mark| word.text.contains(mark)));
    let told = |one: &Sequence| {
        let (word, text) = one.words.iter().find_map(|word| Some((word, made::unclosed(bytes, word)?)))?;
        let line = line_of(bytes, word.range.start);
        Some(format!("{path} line {line}: nothing on it ends `{text}`, and what stands there was not read"))
    };
    outline.sequences.iter().filter(speaks).filter_map(told).collect()
}

/// The values of the innermost loop that gives a variable its value at a place.
fn innermost<'a>(outline: &'a Outline, variable: &str, at: usize) -> Option<&'a Sequence> {
    let loops = outline.sequences.iter().filter(|one| one.gives(variable, &(at..at + 1)));
    loops.max_by_key(|one| one.scope.as_ref().map(|scope| scope.start))
}

/// Whether what a variable holds is read, or told otherwise.
fn is_told(asked: &Asked, outline: &Outline, items: &[Item]) -> bool {
    let (variable, at) = (&asked.variable, asked.place.start);
    let is_read = |one: &Sequence| {
        let mut own =
            items.iter().filter(|item| !item.parts.is_empty()).map(|item| &outline.sequences[item.sequence]);
        own.any(|own| {
            own.command == one.command && own.names().any(|name| one.names().any(|other| name == other))
        })
    };
    let is_list_read = |name: &str| {
        let mut values = outline.sequences.iter().filter(|one| one.names().any(|own| own == name)).peekable();
        // What the file does not give at all is told with the list that takes it.
        values.peek().is_none() || values.any(is_read)
    };
    if let Some(values) = innermost(outline, variable, at) {
        return is_read(values) || taken(values).is_some_and(|name| is_list_read(&name));
    }
    // What nothing in the file gives, a person does.
    let is_read_in = |one: &Sequence| {
        one.words.first().is_some_and(|word| word.text == "read")
            && one.words.iter().any(|word| word.text == *variable)
    };
    let is_given = |one: &Sequence| one.names().any(|name| name == variable) || is_read_in(one);
    let is_parameter = outline.functions.iter().any(|function| function.has(variable));
    let is_number = variable.bytes().all(|byte| byte.is_ascii_digit());
    let holds = |one: &Sequence| {
        one.names().any(|name| name == variable)
            && one.words.iter().any(|word| parse_codes(&word.text).is_ok())
    };
    let is_made_of_loop = |one: &Sequence| {
        one.name.as_ref() == Some(variable)
            && one.words.iter().any(|word| {
                outline.sequences.iter().any(|values| {
                    values.is_of_loop()
                        && values.scope.as_ref().is_some_and(|scope| scope.contains(&word.range.start))
                })
            })
    };
    let is_given = outline.sequences.iter().any(is_given);
    !is_given
        || is_parameter
        || is_number
        || outline.sequences.iter().any(|one| holds(one) || is_made_of_loop(one))
}

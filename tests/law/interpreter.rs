//! Works out what a small build file gives to the compiler, by reading it line by line as Python would. It shares no
//! code with the engine.

use mambapatch::engine::arch::Gencode;
use mambapatch::engine::toolkit::Toolkit;

/// A flag that the compiler is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flag {
    /// `-gencode` and its value, in one word or two.
    Gencode(Gencode),
    /// Something else, right or wrong.
    Other(String),
}

/// What a build file is run with.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// The toolkit; none for HIP.
    pub toolkit: Option<Toolkit>,
    /// The value of a name that the engine knows nothing of.
    pub small: bool,
}

/// The flags in a world.
pub fn run(text: &[u8], world: World) -> Vec<Flag> {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n");
    let lines: Vec<(usize, String)> =
        text.trim_start_matches('\u{feff}').lines().map(line).filter(|(_, code)| !code.is_empty()).collect();
    let mut words = Vec::new();
    block(&lines, world, &mut words);
    flags(&words)
}

/// The column and the code of a line, without its comment.
fn line(line: &str) -> (usize, String) {
    let mut quote = None;
    let mut end = line.len();
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => {
                end = at;
                break;
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    let code = line[..end].trim_end();
    (code.len() - code.trim_start().len(), code.trim_start().to_string())
}

fn block(lines: &[(usize, String)], world: World, words: &mut Vec<String>) {
    let Some((column, _)) = lines.first() else { return };
    let mut at = 0;
    let mut taken = false;
    while let Some((own, code)) = lines.get(at) {
        assert_eq!(own, column, "a line at a wrong column: {code}");
        let end = lines[at + 1..].iter().position(|(inner, _)| inner <= column);
        let body = at + 1..end.map_or(lines.len(), |end| at + 1 + end);
        at = body.end;
        let (header, inline) = header(code);
        let enter = match header {
            None => false,
            Some(("if", condition)) => {
                taken = holds(&condition, world);
                taken
            }
            Some(("elif", condition)) => {
                let enter = !taken && holds(&condition, world);
                taken |= enter;
                enter
            }
            Some(_) => !taken,
        };
        match header_kind(code) {
            false => statements(code, words),
            true if enter && !inline.is_empty() => statements(&inline, words),
            true if enter => block(&lines[body], world, words),
            true => {}
        }
    }
}

fn header_kind(code: &str) -> bool {
    ["if ", "elif ", "else:"].iter().any(|word| code.starts_with(word))
}

/// `if CONDITION:` and what follows on the same line.
fn header(code: &str) -> (Option<(&'static str, String)>, String) {
    let Some(word) =
        ["if", "elif", "else"].into_iter().find(|word| code.starts_with(word) && header_kind(code))
    else {
        return (None, String::new());
    };
    let colon = code.find(':').expect("a colon");
    (Some((word, code[word.len()..colon].trim().to_string())), code[colon + 1..].trim().to_string())
}

/// What `cc_flag.append(…)` adds; several on a line are parted by `;`.
fn statements(code: &str, words: &mut Vec<String>) {
    for statement in code.split(';').map(str::trim) {
        if let Some(word) = statement.strip_prefix("cc_flag.append(") {
            words.push(word.trim_end_matches(')').trim_matches(['"', '\'']).to_string());
        }
    }
}

fn flags(words: &[String]) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let option = ["-gencode", "--generate-code"].contains(&word.as_str());
        let joined = word.strip_prefix("-gencode=").or_else(|| word.strip_prefix("--generate-code="));
        let value = joined.or_else(|| words.peek().filter(|_| option).map(|value| value.as_str()));
        match value.and_then(|value| value.parse().ok()) {
            Some(gencode) => {
                flags.push(Flag::Gencode(gencode));
                if joined.is_none() {
                    words.next();
                }
            }
            None => flags.push(Flag::Other(word.clone())),
        }
    }
    flags
}

/// Evaluates a condition, from `or` down to a comparison.
fn holds(condition: &str, world: World) -> bool {
    let condition = condition.trim();
    if let Some((left, right)) = parted(condition, " or ") {
        return holds(left, world) || holds(right, world);
    }
    if let Some((left, right)) = parted(condition, " and ") {
        return holds(left, world) && holds(right, world);
    }
    if let Some(inner) = condition.strip_prefix("not ") {
        return !holds(inner, world);
    }
    match condition {
        "HIP_BUILD" => world.toolkit.is_none(),
        "SMALL" => world.small,
        "CUDA_HOME is not None" | "True" => true,
        "False" | "0" => false,
        _ if condition.starts_with('(') => holds(&condition[1..condition.len() - 1], world),
        // With HIP, a name that does not exist: nothing of ours may ask.
        _ => world.toolkit.is_some_and(|toolkit| compare(condition, toolkit)),
    }
}

/// Parts a text at the first word outside of parentheses.
fn parted<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(word) => {
                return Some((&text[..at], &text[at + word.len()..]));
            }
            _ => {}
        }
    }
    None
}

/// `bare_metal_version >= Version("12.8")`, with two or three operands in any order.
fn compare(condition: &str, toolkit: Toolkit) -> bool {
    let words: Vec<&str> = condition.split(' ').collect();
    words.windows(3).step_by(2).all(|three| {
        let ordering = number(three[0], toolkit).cmp(&number(three[2], toolkit));
        match three[1] {
            ">=" => ordering.is_ge(),
            "<=" => ordering.is_le(),
            ">" => ordering.is_gt(),
            "<" => ordering.is_lt(),
            "==" => ordering.is_eq(),
            "!=" => ordering.is_ne(),
            other => panic!("`{other}` in `{condition}`"),
        }
    })
}

fn number(word: &str, toolkit: Toolkit) -> (u16, u16) {
    if word == "bare_metal_version" {
        return (toolkit.major, toolkit.minor);
    }
    let text = word.trim_start_matches("Version(").trim_end_matches(')').trim_matches(['"', '\'']);
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or_else(|_| panic!("`{word}`")));
    (parts.next().expect("a number"), parts.next().unwrap_or(0))
}

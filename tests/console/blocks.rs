//! The code blocks of a Markdown document, and the comparison of what they show.

/// A code block that matters here.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of its fence, from 1.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
}

/// What a block is.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// Commands and what they print.
    Console(Vec<Step>),
    /// Commands that are not run.
    Ignored {
        /// Why, from the HTML comment before it.
        reason: Option<String>,
    },
    /// The content of a file.
    File {
        /// Where, from the folder of the document.
        path: String,
        /// What.
        text: String,
    },
}

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Its line, from 1.
    pub line: usize,
    /// Without the `$`.
    pub command: String,
    /// What the document shows below it.
    pub shown: Vec<String>,
    /// Whether the next command is `echo $?`.
    pub status_follows: bool,
}

/// All blocks of a document that matter here.
pub fn blocks_of(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = document.lines().enumerate();
    let mut before = "";
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.trim().is_empty()) else {
            before = if line.trim().is_empty() { before } else { line };
            continue;
        };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
        if let Some(kind) = kind(info.trim(), &body, (number + 2, before)) {
            blocks.push(Block { line: number + 1, kind });
        }
        before = "";
    }
    blocks
}

fn kind(info: &str, body: &[&str], (first, before): (usize, &str)) -> Option<Kind> {
    if let Some((_, path)) = info.split_once(" file=") {
        return Some(Kind::File { path: path.to_string(), text: body.join("\n") + "\n" });
    }
    match info {
        "console" => Some(Kind::Console(steps(body, first))),
        "console,ignore" => {
            let reason = before.strip_prefix("<!--").and_then(|text| text.strip_suffix("-->"));
            Some(Kind::Ignored { reason: reason.map(|text| text.trim().to_string()) })
        }
        _ => None,
    }
}

fn steps(body: &[&str], first: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (at, line) in body.iter().enumerate() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), last) => {
                if let Some(last) = last {
                    last.status_follows = command == "echo $?";
                }
                let (line, command, shown) = (first + at, command.to_string(), Vec::new());
                steps.push(Step { line, command, shown, status_follows: false });
            }
            (None, Some(last)) => last.shown.push(line.trim_end().to_string()),
            (None, None) => panic!("line {}: a console block begins with `$ `", first + at),
        }
    }
    steps
}

/// How what was printed differs from what is shown.
pub fn difference(shown: &[String], printed: &str) -> Option<String> {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    if lines_match(&shown, &printed) {
        return None;
    }
    let (shown, printed) = (shown.join("\n") + "\n", printed.join("\n") + "\n");
    let diff = similar::TextDiff::from_lines(&shown, &printed);
    Some(diff.unified_diff().header("shown", "printed").to_string())
}

fn lines_match(shown: &[&str], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"...", rest)), _) => (0..=printed.len()).any(|length| lines_match(rest, &printed[length..])),
        (Some((one, rest)), Some((other, others))) => line_matches(one, other) && lines_match(rest, others),
        _ => false,
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    match shown.split_once("[..]") {
        None => shown == printed,
        Some((start, rest)) => printed.strip_prefix(start).is_some_and(|printed| {
            let ends = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
            ends.into_iter().any(|at| line_matches(rest, &printed[at..]))
        }),
    }
}

#[test]
fn blocks_are_read() {
    let document = "x\n```console\n$ a b\n1\n\n2\n$ echo $?\n0\n```\n<!-- slow -->\n\n```console,ignore\n$ c\n```\n\
                    ```console,ignore\n$ d\n```\n```toml file=a/b.toml\nx = 1\n```\n```toml\ny = 1\n```\n";
    let blocks = blocks_of(document);
    let Kind::Console(steps) = &blocks[0].kind else { panic!("{blocks:?}") };
    assert_eq!((steps[0].line, steps[0].command.as_str(), steps[0].status_follows), (3, "a b", true));
    assert_eq!(steps[0].shown, ["1", "", "2"]);
    assert_eq!(blocks[1].kind, Kind::Ignored { reason: Some("slow".into()) });
    assert_eq!(blocks[2].kind, Kind::Ignored { reason: None });
    assert_eq!(blocks[3].kind, Kind::File { path: "a/b.toml".into(), text: "x = 1\n".into() });
    assert_eq!(blocks.len(), 4);
}

#[test]
fn what_differs_is_found() {
    let shown = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let same = [("a\n...\nd", "a\nb\nc\nd\n"), ("a\n...", "a\n"), ("x [..] z[..]", "x y z\n"), ("", "")];
    for (one, other) in same {
        assert_eq!(difference(&shown(one), other), None, "{one}");
    }
    for (one, other) in [("a", "b\n"), ("a\n...\nd", "a\nb\n"), ("a", ""), ("", "a\n"), ("x [..] z", "x z\n")]
    {
        assert!(difference(&shown(one), other).is_some(), "{one}");
    }
}

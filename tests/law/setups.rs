//! Random build files in the shape of the upstreams' setup.py.

use proptest::prelude::*;

/// A build file, and how it is written.
#[derive(Debug, Clone)]
pub struct Setup {
    statements: Vec<Statement>,
    /// Whether a HIP branch stands beside.
    pub hip: bool,
    /// Whether the flags stand under `if CUDA_HOME is not None:`.
    nested: bool,
    style: Style,
}

#[derive(Debug, Clone)]
enum Statement {
    Entry {
        value: String,
        form: Form,
        comment: Option<&'static str>,
    },
    Other(&'static str),
    Note(&'static str),
    Blank,
    Guard {
        clauses: Vec<(String, Vec<Statement>)>,
        otherwise: Option<Vec<Statement>>,
    },
    /// A guard and its entry on one line.
    Line {
        condition: String,
        value: String,
    },
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Pair,
    Line,
    Word,
    Long,
    /// The value without its flag.
    Alone,
    /// Both in one string.
    OneString,
}

#[derive(Debug, Clone)]
struct Style {
    step: &'static str,
    newline: &'static str,
    quote: char,
    bom: bool,
    end: bool,
}

const NUMBERS: [&str; 17] = [
    "50", "53", "60", "61", "62", "70", "72", "75", "80", "86", "87", "90", "100", "103", "110", "120", "121",
];
const VERSIONS: [&str; 12] =
    ["11.6", "11.8", "12", "12.0", "12.3", "12.8", "12.8.0", "12.9", "13", "13.0", "13.4", "14.0"];

fn styles() -> impl Strategy<Value = Style> {
    let step = prop::sample::select(&["    ", "  ", "\t", "        "][..]);
    let newline = prop::sample::select(&["\n", "\n", "\r\n"][..]);
    let quote = prop::sample::select(&['"', '"', '\''][..]);
    (step, newline, quote, prop::bool::weighted(0.1), prop::bool::weighted(0.9))
        .prop_map(|(step, newline, quote, bom, end)| Style { step, newline, quote, bom, end })
}

fn values() -> impl Strategy<Value = String> {
    let number = prop::sample::select(&NUMBERS[..]);
    (number, 0..20u8).prop_map(|(arch, kind)| match kind {
        0 => format!("arch=compute_{arch},code=compute_{arch}"),
        1 => format!("arch=compute_{arch},code=[sm_{arch},compute_{arch}]"),
        2 => "arch=compute_120a,code=sm_120a".to_string(),
        3 => "arch=compute_90a,code=sm_90a".to_string(),
        _ => format!("arch=compute_{arch},code=sm_{arch}"),
    })
}

fn entries() -> impl Strategy<Value = Statement> {
    let form = prop_oneof![20 => Just(Form::Pair), 1 => Just(Form::Line), 1 => Just(Form::Word), 1 => Just(Form::Long), 1 => Just(Form::Alone), 1 => Just(Form::OneString)];
    let comment =
        prop::option::weighted(0.15, prop::sample::select(&["# Jetson", "# don't \"ask\"", "# if x:"][..]));
    (values(), form, comment).prop_map(|(value, form, comment)| Statement::Entry { value, form, comment })
}

fn comparisons() -> impl Strategy<Value = String> {
    let version = prop::sample::select(&VERSIONS[..]);
    let operator = prop::sample::select(&[">=", ">=", ">=", "<=", "<=", ">", "<", "==", "!="][..]);
    let second = prop::sample::select(&VERSIONS[..]);
    (version, operator, second, 0..10u8).prop_map(|(version, operator, second, kind)| match kind {
        0 => format!("Version(\"{version}\") <= bare_metal_version"),
        1 => format!("Version(\"{version}\") <= bare_metal_version < Version(\"{second}\")"),
        _ => format!("bare_metal_version {operator} Version(\"{version}\")"),
    })
}

fn conditions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        20 => comparisons(),
        1 => Just("False".to_string()),
        1 => Just("0".to_string()),
        1 => Just("True".to_string()),
        1 => Just("not HIP_BUILD".to_string()),
        1 => Just("SMALL".to_string()),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            2 => (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one}) and ({two})")),
            2 => (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one}) or ({two})")),
            1 => inner.prop_map(|one| format!("not ({one})")),
        ]
    })
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let leaf = prop_oneof![
        30 => entries(),
        2 => prop::sample::select(&["-DX", "-O3", "--threads"][..]).prop_map(Statement::Other),
        3 => prop::sample::select(&["# Ampere", "# cc_flag.append(\"-gencode\")"][..]).prop_map(Statement::Note),
        3 => Just(Statement::Blank),
        1 => (comparisons(), values()).prop_map(|(condition, value)| Statement::Line { condition, value }),
    ];
    let statement = leaf.prop_recursive(2, 12, 5, |inner| {
        let body = prop::collection::vec(inner, 1..5);
        let clause = (conditions(), body.clone());
        (prop::collection::vec(clause, 1..=2), prop::option::weighted(0.2, body))
            .prop_map(|(clauses, otherwise)| Statement::Guard { clauses, otherwise })
    });
    prop::collection::vec(statement, 1..10)
}

/// Build files of all sorts.
pub fn setups() -> impl Strategy<Value = Setup> {
    (statements(), any::<bool>(), any::<bool>(), styles())
        .prop_map(|(statements, hip, nested, style)| Setup { statements, hip, nested, style })
}

impl Setup {
    /// The bytes of the file.
    pub fn text(&self) -> Vec<u8> {
        let mut lines = vec!["cc_flag = []".to_string()];
        let mut depth = 0;
        if self.hip {
            lines.extend(["if HIP_BUILD:", "    cc_flag.append(\"-DHIP\")", "else:"].map(str::to_string));
            depth = 1;
        }
        if self.nested {
            lines.push(format!("{}if CUDA_HOME is not None:", "    ".repeat(depth)));
            depth += 1;
        }
        write(&self.statements, depth, &mut lines);
        if !self.statements.iter().any(is_code) {
            lines.push(format!("{}pass", "    ".repeat(depth)));
        }
        lines.push("nvcc = [\"-O3\"] + cc_flag".to_string());
        self.style.dress(&lines)
    }
}

impl Style {
    fn dress(&self, lines: &[String]) -> Vec<u8> {
        let line = |line: &String| {
            let code = line.trim_start_matches("    ");
            let depth = (line.len() - code.len()) / 4;
            let (code, comment) = code.split_once("  #").unwrap_or((code, ""));
            let comment = if comment.is_empty() { String::new() } else { format!("  #{comment}") };
            let code = if code.starts_with('#') {
                code.to_string()
            } else {
                code.replace('"', &self.quote.to_string())
            };
            format!("{}{code}{comment}", self.step.repeat(depth))
        };
        let mut text = lines.iter().map(line).collect::<Vec<_>>().join(self.newline);
        if self.end {
            text.push_str(self.newline);
        }
        if self.bom { format!("\u{feff}{text}").into_bytes() } else { text.into_bytes() }
    }
}

fn is_code(statement: &Statement) -> bool {
    !matches!(statement, Statement::Note(_) | Statement::Blank)
}

fn write(statements: &[Statement], depth: usize, lines: &mut Vec<String>) {
    let indent = "    ".repeat(depth);
    for statement in statements {
        match statement {
            Statement::Entry { value, form, comment } => {
                let comment = comment.map(|comment| format!("  {comment}")).unwrap_or_default();
                let append = |word: &str| format!("cc_flag.append(\"{word}\")");
                match form {
                    Form::Pair => {
                        lines.push(format!("{indent}{}", append("-gencode")));
                        lines.push(format!("{indent}{}{comment}", append(value)));
                    }
                    Form::Line => {
                        lines.push(format!("{indent}{}; {}{comment}", append("-gencode"), append(value)))
                    }
                    Form::Word => {
                        lines.push(format!("{indent}{}{comment}", append(&format!("-gencode={value}"))))
                    }
                    Form::Alone => lines.push(format!("{indent}{}{comment}", append(value))),
                    Form::OneString => {
                        lines.push(format!("{indent}{}{comment}", append(&format!("-gencode {value}"))));
                    }
                    Form::Long => {
                        lines.push(format!("{indent}{}", append("--generate-code")));
                        lines.push(format!("{indent}{}{comment}", append(value)));
                    }
                }
            }
            Statement::Other(flag) => lines.push(format!("{indent}cc_flag.append(\"{flag}\")")),
            Statement::Note(note) => lines.push(format!("{indent}{note}")),
            Statement::Blank => lines.push(String::new()),
            Statement::Guard { clauses, otherwise } => guard(clauses, otherwise.as_deref(), depth, lines),
            Statement::Line { condition, value } => lines.push(format!(
                "{indent}if {condition}: cc_flag.append(\"-gencode\"); cc_flag.append(\"{value}\")"
            )),
        }
    }
}

fn guard(
    clauses: &[(String, Vec<Statement>)],
    otherwise: Option<&[Statement]>,
    depth: usize,
    lines: &mut Vec<String>,
) {
    let indent = "    ".repeat(depth);
    let body = |body: &[Statement], lines: &mut Vec<String>| {
        write(body, depth + 1, lines);
        if !body.iter().any(is_code) {
            lines.push(format!("{indent}    pass"));
        }
    };
    for (index, (condition, statements)) in clauses.iter().enumerate() {
        lines.push(format!("{indent}{} {condition}:", if index == 0 { "if" } else { "elif" }));
        body(statements, lines);
    }
    if let Some(statements) = otherwise {
        lines.push(format!("{indent}else:"));
        body(statements, lines);
    }
}

//! The program from end to end: wrappings, standard input, facts, exit codes, JSON.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn run(folder: &Path, arguments: &[&str], input: Option<&[u8]>) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
    command.arg("diagnose").args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    let mut stdin = child.stdin.take().expect("standard input");
    // A program that has read enough is no error.
    let _ = stdin.write_all(input.unwrap_or_default());
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

const LOG: &str =
    "building 'selective_scan_cuda' extension\nnvcc fatal   : Unsupported gpu architecture 'compute_120'\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
    put("build.log", LOG.as_bytes());
    put("nothing.json", b"{}");
    put("facts.json", br#"{"facts": {"gpus": [{"arch": "89"}], "unheard-of": 1}, "verdicts": []}"#);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(LOG.as_bytes()).expect("packed");
    put("build.log.gz", &packed.finish().expect("packed"));
    folder
}

#[test]
fn a_log_is_explained_with_what_to_type() {
    let folder = folder();
    let run = run(folder.path(), &["build.log", "--facts", "nothing.json"], None);
    assert_eq!(run.code, 0, "{}", run.err);
    let start = "cause: nvcc refuses an architecture (D01)\n  build.log:2  nvcc fatal   : Unsupported gpu \
                 architecture 'compute_120'\n\n  The build asks for sm_120 (";
    assert!(run.out.starts_with(start), "{}", run.out);
    assert!(
        run.out.contains("\n  $ mambapatch doctor\n") && run.out.contains("\nnote: gpu would decide"),
        "{}",
        run.out
    );
    assert!(run.out.lines().all(|line| line.len() <= 200), "{}", run.out);
}

#[test]
fn packed_logs_standard_input_and_windows_text_are_read() {
    let folder = folder();
    let wide: Vec<u8> =
        "\u{feff}".encode_utf16().chain(LOG.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for (arguments, input) in [
        (vec!["build.log.gz"], None),
        (vec!["-"], Some(LOG.as_bytes())),
        (vec![], Some(LOG.as_bytes())),
        (vec!["-"], Some(wide.as_slice())),
    ] {
        let arguments = [arguments, vec!["--facts", "facts.json"]].concat();
        let run = run(folder.path(), &arguments, input);
        assert_eq!(
            (run.code, run.out.contains("Your GPU is sm_89")),
            (0, true),
            "{arguments:?}\n{}{}",
            run.out,
            run.err
        );
    }
}

#[test]
fn an_unknown_cause_is_no_answer_and_shows_the_first_error() {
    let folder = folder();
    let log = "ok\nFAILED: a.o\n/usr/bin/c++ -c a.cpp\na.cpp:3:1: error: expected ';'\nb.cpp:9:9: error: later\n\
               ninja: build stopped: subcommand failed.\nerror: subprocess-exited-with-error\n";
    let answer = run(folder.path(), &["-", "--facts", "nothing.json"], Some(log.as_bytes()));
    assert_eq!(answer.code, 1);
    assert!(answer.out.starts_with("not known: no known cause in 7 lines\n"), "{}", answer.out);
    assert!(answer.out.contains("line 4  a.cpp:3:1: error: expected ';'\n"), "{}", answer.out);
    let answer = run(folder.path(), &["-", "--facts", "nothing.json"], Some(b"all is well\n"));
    assert_eq!((answer.code, answer.out.as_str()), (1, "not known: no known cause in 1 lines\n"));
}

#[test]
fn json_has_all_of_it() {
    let folder = folder();
    let run = run(folder.path(), &["build.log", "--facts", "facts.json", "--format", "json"], None);
    let document: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let cause = &document["causes"][0];
    assert_eq!((&cause["id"], &cause["site"]["line"]), (&"D01".into(), &2.into()));
    assert_eq!(cause["type"], serde_json::json!(["mambapatch apply . --only-arch native"]));
    assert_eq!((run.code, document["lines"].as_u64()), (0, Some(2)));
}

#[test]
fn an_empty_log_is_an_error() {
    let folder = folder();
    fs::write(folder.path().join("empty.log"), "").expect("a file");
    for (log, input, fact) in
        [("empty.log", None, "empty.log is empty"), ("-", Some(&b""[..]), "standard input is empty")]
    {
        let run = run(folder.path(), &[log, "--facts", "facts.json"], input);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{}", run.err);
        let told =
            run.err.contains(&format!("error: {fact}\n")) && run.err.contains("hint: write both streams");
        assert!(told, "{}", run.err);
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let folder = folder();
    fs::write(folder.path().join("cut.gz"), [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1]).expect("a file");
    fs::write(folder.path().join("bad.json"), "{").expect("a file");
    for (arguments, what) in [
        (vec!["nowhere.log"], "cannot read nowhere.log"),
        (vec!["cut.gz", "--facts", "nothing.json"], "cannot read cut.gz"),
        (vec!["build.log", "--facts", "bad.json"], "cannot read bad.json"),
        (vec!["build.log", "--facts", "nowhere.json"], "cannot read nowhere.json"),
    ] {
        let run = run(folder.path(), &arguments, None);
        let whole = run.err.contains(what) && run.err.contains("hint: ");
        assert_eq!((run.code, run.out.as_str(), whole), (2, "", true), "{arguments:?}\n{}", run.err);
    }
}

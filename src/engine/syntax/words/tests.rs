use super::*;

fn read(dialect: Dialect, text: &str) -> Vec<String> {
    let line =
        |command: &Command| command.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>().join("|");
    commands(dialect, text.as_bytes()).iter().map(line).collect()
}

#[test]
fn dialects_go_by_the_name() {
    assert_eq!(Dialect::of_path("a/Makefile.cuda"), Dialect::Make);
    assert_eq!(Dialect::of_path("a.mk"), Dialect::Make);
    assert_eq!(Dialect::of_path("docker/Dockerfile-dev"), Dialect::Docker);
    assert_eq!(Dialect::of_path("cu12.Dockerfile"), Dialect::Docker);
    assert_eq!(Dialect::of_path("make.sh"), Dialect::Shell);
}

#[test]
fn comments_are_no_words() {
    assert_eq!(read(Dialect::Shell, "a b # c\n# d\ne a#b\n"), ["a|b", "e|a#b"]);
    assert_eq!(read(Dialect::Make, "A := b# c \\\n d\nB = 1\n"), ["A|:=|b", "B|=|1"]);
    let docker = "ENV A=1 \\\n# no\n  # no\n\n B=2\n# C=3\nRUN x # y\n";
    assert_eq!(read(Dialect::Docker, docker), ["ENV|A=1|B=2", "RUN|x"]);
    assert_eq!(read(Dialect::Shell, "a \\\n# b\nc\n"), ["a", "c"]);
}

#[test]
fn lines_are_continued_and_quotes_seen_through() {
    assert_eq!(read(Dialect::Shell, "A=\"b \\\n  c\" d \\\r\n\te\n"), ["A=b   c|d|e"]);
    assert_eq!(read(Dialect::Shell, "A='it is' B=\"a\\\"b\"\n"), ["A=it is|B=a\"b"]);
    assert_eq!(read(Dialect::Make, "M = don't do\nN = 1\n"), ["M|=|don't|do", "N|=|1"]);
    assert_eq!(read(Dialect::Shell, "a && b; c | (d)\n"), ["a", "b", "c", "d"]);
    assert_eq!(
        read(Dialect::Make, "export A ?= 1;2\nB:=3;4\na: b;c\n\tD=1;e\n"),
        ["export|A|?=|1;2", "B:=3;4", "a:|b", "c", "D=1", "e"]
    );
    assert_eq!(
        read(Dialect::Docker, "ENV A=1;2\nRUN a;b\narg B=(1)\n"),
        ["ENV|A=1;2", "RUN|a", "b", "arg|B=(1)"]
    );
    assert_eq!(read(Dialect::Make, "$(N)_F = 1;2\n)-a=3 (4\n"), ["$(N)_F|=|1;2", ")-a=3|(4"]);
    assert_eq!(read(Dialect::Make, "X := $(foreach d,$(L),-I$(d)) y\n"), ["X|:=|$(foreach d,$(L),-I$(d))|y"]);
}

#[test]
fn arrays_are_no_commands_of_their_own() {
    let text = "A=(60 \"70\" # c\n  80)\nlocal B+=(-x) C=1 && (d)\nE=(a;b)\n";
    assert_eq!(read(Dialect::Shell, text), ["A=", "local|B+=|C=1", "d", "E=", "a", "b"]);
    let arrays: Vec<(String, Vec<String>)> = commands(Dialect::Shell, text.as_bytes())
        .into_iter()
        .flat_map(|command| command.arrays)
        .map(|array| (array.holder.text, array.elements.into_iter().map(|word| word.text).collect()))
        .collect();
    let wanted = [("A=", vec!["60", "70", "80"]), ("B+=", vec!["-x"])];
    let wanted =
        wanted.map(|(name, words)| (name.to_string(), words.into_iter().map(str::to_string).collect()));
    assert_eq!(arrays, wanted);
}

#[test]
fn here_documents_are_left_out() {
    let text = "cat > f <<'EOF'\nnvcc -arch=sm_52 don't\nEOF\na\ncat << END\nx\nb <<< y\nc\n";
    assert_eq!(read(Dialect::Shell, text), ["cat|>|f|<<EOF", "a", "cat|<<|END", "x", "b|<<<|y", "c"]);
    assert_eq!(read(Dialect::Docker, "RUN <<EOF\na\nEOF\nRUN b\n"), ["RUN|<<EOF", "RUN|b"]);
}

#[test]
fn a_string_is_read_as_words() {
    let text = "\"70;75 \\\n\t${A B} -x\"";
    let words = inside(text.as_bytes(), 1..text.len() - 1);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    assert_eq!(texts, ["70", "75", "${A B}", "-x"]);
    assert!(words.iter().all(|word| text[word.range.clone()] == word.text));
}

#[test]
fn expansions_say_their_defaults() {
    let read = |text: &str| -> Vec<String> {
        let found = commands(Dialect::Shell, text.as_bytes()).remove(0).words.remove(0);
        let told = |one: Expansion| {
            let sign = if one.assigns { "=" } else { "-" };
            format!("{}{sign}{}", one.variable, &text[one.default])
        };
        expansions(text.as_bytes(), &found).into_iter().map(told).collect()
    };
    assert_eq!(read("A=${A:-\"6.0 7.0\"}"), ["A-6.0 7.0"]);
    assert_eq!(read("compute_${CC-70},code=sm_${1:=80}"), ["CC-70", "1=80"]);
    assert_eq!(read("${A:-${B:-'c'}}"), ["A-c"]);
    assert!(read("\"${A:-70}\"${A}${A:?70}${A:+70}$A$(b)").is_empty());
    assert_eq!(inside(b"6.0\\;7.0", 0..8).len(), 2);
}

#[test]
fn nothing_makes_it_stumble() {
    for text in
        ["", "\\", "\"", "'", "$(", "${", "$(\n)", "a\\", "<<", "a <<EOF", "\u{fe}\n", "#", "\\\n", "()"]
    {
        for dialect in [Dialect::Shell, Dialect::Make, Dialect::Docker] {
            commands(dialect, text.as_bytes());
            inside(text.as_bytes(), 0..text.len());
        }
    }
}

use super::load::{LoadError, Texts};
use super::shipped;

#[test]
fn the_shipped_patch_sets_load() {
    let sets = shipped::texts().load().unwrap_or_else(|error| panic!("{error}"));
    let ids: Vec<&str> = sets.upstreams.iter().map(|upstream| upstream.id.as_str()).collect();
    assert!(ids.contains(&"mamba-ssm") && ids.contains(&"causal-conv1d"), "{ids:?}");
}

const UPSTREAM: &str = "url = 'u'\ndistribution = 'd'\nmodule = 'm'\nfloor = '11.6'\ntested-through = '1.0'\npatches = ['p']\nrecognise = []\n";
const PATCH: &str = "title = 't'\nwhy = 'w'\nreferences = []\nupstream-status = 'pending'\n";

fn fault(upstream: &str, patch: &str) -> String {
    let mut texts = Texts::default();
    texts.insert("x/upstream.toml", upstream, None);
    texts.insert("x/p.toml", patch, Some("/private"));
    match texts.load() {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    }
}

#[test]
fn mistakes_are_pointed_at() {
    let ops = "[[list]]\nfile = 'setup.py'\nname = 'A'\n";
    assert_eq!(fault(UPSTREAM, &format!("{PATCH}{ops}")), "");
    let unknown = fault(UPSTREAM, &format!("{PATCH}[[list]]\nfile = 'setup.py'\nnam = 'A'\n"));
    assert!(
        unknown.contains("line 7, column 1") && unknown.contains("expected one of `tags`, `in`, `file`"),
        "{unknown}"
    );
    assert!(unknown.contains("/private/x/p.toml"), "{unknown}");
    let no_reason = fault(UPSTREAM, &format!("{}{ops}", PATCH.replace("'w'", "' '")));
    assert!(no_reason.contains("`why`"), "{no_reason}");
    let missing = fault(UPSTREAM, &format!("{}{ops}", PATCH.replace("why = 'w'\n", "")));
    assert!(missing.contains("missing field `why`"), "{missing}");
    let pattern = fault(UPSTREAM, &format!("{PATCH}[[gencode]]\nfile = 'setup.py'\nentry = 'f($GENCODE'\n"));
    assert!(pattern.contains("`entry` is wrong"), "{pattern}");
    let value = fault(UPSTREAM, &format!("{PATCH}[[gencode]]\nfile = 'setup.py'\nentry = 'f(1)'\n"));
    assert!(value.contains("no `$GENCODE`"), "{value}");
    let status = fault(UPSTREAM, &format!("{}{ops}", PATCH.replace("pending", "maybe")));
    assert!(status.contains("`maybe` is none of"), "{status}");
    let named = fault(&UPSTREAM.replace("['p']", "['p', 'q']"), &format!("{PATCH}{ops}"));
    assert!(named.contains("x/q.toml"), "{named}");
}

/// What stands under the carets, with its line.
fn marked(fault: &str) -> (usize, String) {
    let lines: Vec<&str> = fault.lines().collect();
    let at = lines.iter().position(|line| line.contains("| ") && line.ends_with('^')).expect(fault);
    let (number, code) = lines[at - 1].split_once(" | ").expect(fault);
    let carets = lines[at].split_once("| ").expect(fault).1;
    let begin = carets.find('^').expect(fault);
    (number.parse().expect(fault), code[begin..carets.len()].to_string())
}

#[test]
fn a_caret_stands_under_every_value() {
    const CPP: &str = "[[rewrite]]\npaths = ['**/*.cu']\n";
    const CODE: &str = "[[rewrite]]\nfile = 'setup.py'\nfind = ['f($X)']\n";
    for (ops, line, value) in [
        ("[[rewrite]]\nfile = 'setup.py'\nfind = [\n  'f($X)',\n  'f($X',\n]\n".into(), 9, "'f($X'"),
        (format!("{CODE}expect = 'many'\n"), 8, "'many'"),
        (format!("{CODE}replace = 'g($Y)'\n"), 8, "'g($Y)'"),
        (format!("{CODE}expect = '1..=x'\n"), 8, "'1..=x'"),
        (format!("{CODE}tags = '> twelve'\n"), 8, "'> twelve'"),
        (format!("{CODE}where.X.regex = '('\n"), 8, "'('"),
        (format!("{CODE}[rewrite.where.X]\nregex = '('\n"), 9, "'('"),
        (format!("{CODE}where.X.not = ['a', 'f(']\n"), 8, "'f('"),
        (format!("{CODE}where.Y.unused = true\n"), 8, "Y"),
        (format!("{CODE}needed = {{ torch = 'new' }}\n"), 8, "'new'"),
        (format!("{CODE}needed.packages.numpy = 'new'\n"), 8, "'new'"),
        (format!("{CODE}{CODE}replace = 'g($X'\n"), 11, "'g($X'"),
        ("[[rewrite]]\nfile = 'a[.py'\nfind = ['f($X)']\n".into(), 6, "'a[.py'"),
        ("[[rewrite]]\npaths = ['**/*.py', '{']\nfind = ['f($X)']\n".into(), 6, "'{'"),
        ("[[rewrite]]\nfile = 'a.txt'\nfind = ['f($X)']\n".into(), 6, "'a.txt'"),
        (format!("{CPP}find = ['f($X)']\nreplace = ''\ninclude = ['<a>', 'b']\n"), 9, "'b'"),
        (CODE.replace("f($X)", "f($HERE)"), 7, "'f($HERE)'"),
        (format!("{CODE}unless = ['a', 'g($$$HERE)']\n"), 8, "'g($$$HERE)'"),
        (format!("{CODE}where.X.not = ['$HERE']\n"), 8, "'$HERE'"),
        (format!("{CODE}inside = ['a', 'h($HERE, $HERE)']\n"), 8, "'h($HERE, $HERE)'"),
        ("[[gencode]]\nfile = 'setup.py'\nentry = \"\"\"\nf($GENCODE\n\"\"\"\n".into(), 7, "\"\"\""),
        ("[[list]]\nfile = 'setup.py'\n".into(), 5, "[[list]]"),
        (String::new(), 1, "t"),
    ] {
        let fault = fault(UPSTREAM, &format!("{PATCH}{ops}"));
        assert!(fault.starts_with(&format!("/private/x/p.toml:{line}: `")), "{fault}");
        assert_eq!(marked(&fault), (line, value.to_string()), "{fault}");
    }
    let patch = format!("{PATCH}[[list]]\nfile = 'setup.py'\nname = 'A'\n");
    for (old, new, value) in [
        ("floor = '11.6'", "floor = 'new'", "'new'"),
        ("tested-through = '1.0'", "tested-through = '?'", "'?'"),
        ("patches = ['p']", "patches = ['p', 'q']", "'q'"),
        ("patches = ['p']", "patches = ['p']\nuses = ['y']", "'y'"),
        ("patches = ['p']", "patches = []", "[]"),
    ] {
        let fault = fault(&UPSTREAM.replace(old, new), &patch);
        assert!(fault.starts_with("x/upstream.toml:"), "{fault}");
        assert_eq!(marked(&fault).1, value, "{fault}");
    }
    let recognise = "[[recognise]]\nfile = 'a'\npattern = 'x'\n[[recognise]]\nfile = 'a'\npattern = '('\n";
    let fault = fault(&UPSTREAM.replace("recognise = []\n", recognise), &patch);
    assert_eq!(marked(&fault), (12, "'('".to_string()), "{fault}");
}

#[test]
fn mistakes_in_ops_on_code_are_pointed_at() {
    let rename = |paths: &str, more: &str| {
        fault(UPSTREAM, &format!("{PATCH}[[rename]]\npaths = ['{paths}']\nfrom = 'A'\nto = 'B'\n{more}"))
    };
    assert_eq!(rename("**/*.cu", "include = ['<a/b.h>', '\"c.h\"']\n"), "");
    assert!(rename("**/*.py", "").contains("in C++ and CUDA only"));
    assert!(rename("**/*.cu", "include = ['a.h']\n").contains("`include` is wrong: `a.h` is not like"));
    let rewrite = "[[rewrite]]\npaths = ['**/*.cu']\nfind = ['f($X)']\nreplace = ''\nwhere.Y.unused = true\n";
    assert!(fault(UPSTREAM, &format!("{PATCH}{rewrite}")).contains("or `not-inside` speaks of `$Y`"));
    let right = rewrite.replace(".Y.", ".X.");
    assert_eq!(fault(UPSTREAM, &format!("{PATCH}{right}")), "");
    let inside = "inside = ['if ($_) $HERE;', 'h($HERE, $HEREBY)']\nnot-inside = ['f($HERE)']\n";
    assert_eq!(fault(UPSTREAM, &format!("{PATCH}{right}{inside}")), "");
}

#[test]
fn mistakes_about_what_a_replacement_is_right_for_are_pointed_at() {
    let rewrite = |more: &str| {
        fault(UPSTREAM, &format!("{PATCH}[[rewrite]]\npaths = ['**/*.cu']\nfind = ['f($X)']\n{more}"))
    };
    let right_for = "replace = 'g($X)'\nright-for = { cuda = '>=12.5', rocm = false }\n";
    assert_eq!(rewrite(right_for), "");
    assert_eq!(
        rewrite(&format!("{right_for}otherwise = {{ replace = 'h($X)', include = ['<h.h>'] }}\n")),
        ""
    );
    assert!(
        rewrite(&format!("{right_for}otherwise = {{ replace = 'h(' }}\n")).contains("`otherwise` is wrong")
    );
    assert!(rewrite("right-for = { rocm = false }\n").contains("it belongs to `replace`"));
    assert!(rewrite("replace = ''\nright-for = { rocm = true }\n").contains("it names no toolkits"));
    assert!(rewrite("replace = ''\nright-for = { cuda = 'new' }\n").contains("`right-for.cuda` is wrong"));
    assert!(rewrite("replace = ''\notherwise = { replace = 'x' }\n").contains("it belongs to `right-for`"));
}

#[test]
fn mistakes_about_units_are_pointed_at() {
    let rewrite = |more: &str| {
        fault(UPSTREAM, &format!("{PATCH}[[rewrite]]\npaths = ['**/*.cu']\nfind = ['f($X)']\n{more}"))
    };
    assert_eq!(rewrite("include = ['<a.h>']\nbrought-by = ['b/*.h', '!b/c.h']\n"), "");
    assert_eq!(rewrite("read-by = ['**/*.cpp']\nadvice = 'a'\n"), "");
    assert!(rewrite("include = ['<a.h>', '<b.h>']\n").contains("it is one header"));
    assert!(rewrite("include = ['<a.h>']\nadvice = 'a'\n").contains("takes no `advice`"));
    assert!(rewrite("brought-by = ['b.h']\n").contains("`brought-by` is wrong"));
    assert!(rewrite("include = ['<a.h>']\nbrought-by = ['{']\n").contains("`brought-by` is wrong"));
    assert!(rewrite("replace = ''\nread-by = ['**/*.cpp']\n").contains("`read-by` is wrong"));
    assert!(rewrite("where.X.relative = true\n").contains("in Python only"));
    let lanes = |more: &str| {
        fault(UPSTREAM, &format!("{PATCH}[[rewrite]]\npaths = ['**/*.py']\nfind = ['f($X)']\n{more}"))
    };
    assert!(lanes("where.X.varies = true\n").contains("in CUDA only"));
    assert!(lanes("behind-exit = true\n").contains("in CUDA only"));
    assert!(rewrite("where.X.computed = true\n").contains("in Python only"));
    let python = "[[rewrite]]\npaths = ['**/*.py']\nfind = ['f($X)']\ninclude = ['import os']\n";
    assert_eq!(fault(UPSTREAM, &format!("{PATCH}{python}replace = 'g($X)'\n")), "");
    assert!(fault(UPSTREAM, &format!("{PATCH}{python}")).contains("it is for C++ files"));
    let other = fault(UPSTREAM, &format!("{PATCH}{}replace = ''\n", python.replace("import os", "<os>")));
    assert!(other.contains("`<os>` is not like"), "{other}");
}

#[test]
fn a_file_that_its_set_does_not_name_is_refused() {
    let mut texts = shipped::texts();
    texts.insert("mamba-ssm/other.toml", PATCH, None);
    assert!(matches!(texts.load(), Err(LoadError::Unnamed { .. })));
}

#[test]
fn the_fallback_has_a_form_of_its_own() {
    let fallback = "fallback = true\nfloor = '11.0'\npatches = ['p']\n";
    let patch = format!("{PATCH}[[list]]\nfile = 'setup.py'\nname = 'A'\n");
    assert_eq!(fault(fallback, &patch), "");
    let project = fault(&format!("{fallback}url = 'u'\n"), &patch);
    assert!(project.contains("unknown field `url`, expected one of `fallback`, `floor`"), "{project}");
    let known = fault(&UPSTREAM.replace("url = 'u'\n", ""), &patch);
    assert!(known.contains("missing field `url`"), "{known}");
    let mut texts = shipped::texts();
    texts.insert("second/upstream.toml", "fallback = true\nfloor = '11.0'\npatches = []\n", None);
    let second = texts.load().expect_err("two of them").to_string();
    assert!(second.contains("second/upstream.toml:1: `fallback`"), "{second}");
}

#[test]
fn files_of_words_have_keys_of_their_own() {
    let words = |op: &str| fault(UPSTREAM, &format!("{PATCH}{op}"));
    assert_eq!(words("[[list]]\nin = 'words'\npaths = ['**/*.sh']\nnames = ['A', '*_B']\n"), "");
    assert_eq!(words("[[gencode]]\nin = 'words'\npaths = ['**/*.sh']\n"), "");
    let rewrite = "[[rewrite]]\nin = 'words'\npaths = ['**/*.sh']\nfind = ['-std=c++$OLD']\n";
    assert_eq!(words(&format!("{rewrite}where.OLD.regex = '^14$'\nreplace = '-std=c++17'\n")), "");
    assert!(words(&format!("{rewrite}where.NEW.regex = '^14$'\n")).contains("`find` has no `$NEW`"));
    assert!(words(&format!("{rewrite}replace = '$X'\n")).contains("`replace` is wrong: `find` has no `$X`"));
    assert!(words(&format!("{rewrite}expect = '1'\n")).contains("of words only"));
    assert!(words("[[list]]\nin = 'words'\npaths = ['**/*.sh']\n").contains("a list in words has a name"));
    assert!(words("[[gencode]]\nin = 'words'\npaths = ['a.sh']\nentry = 'x'\n").contains("only `paths`"));
    assert!(
        words("[[list]]\nin = 'text'\nfile = 'a'\n").contains("unknown variant `text`, expected `words`")
    );
    assert!(
        words("[[list]]\nin = 'words'\nfile = 'a'\nname = 'A'\nfind = ['x']\n").contains("of words only")
    );
}

#[test]
fn each_shipped_set_is_used() {
    assert!(shipped::texts().load().expect("loads").unused.is_empty());
}

#[test]
fn a_private_set_that_nothing_uses_is_named_and_its_faults_are_found() {
    let mut texts = shipped::texts();
    texts.insert("torch-api/mine.toml", "title = ", Some("/sets"));
    assert!(texts.load().is_err());
    let mut texts = shipped::texts();
    let patch = "title = 't'\nwhy = 'w'\nreferences = []\nupstream-status = 'pending'\n[[rewrite]]\nfile = 'a.py'\n\
                 find = ['f($X)']\nreplace = 'g($X)'\n";
    texts.insert("more/mine.toml", patch, Some("/sets"));
    texts.insert("more/smoke.py", "", Some("/sets"));
    assert_eq!(texts.load().expect("loads").unused, ["/sets/more"]);
    texts.insert("more/other.toml", "title = ", Some("/sets"));
    assert!(texts.load().expect_err("fault").to_string().starts_with("/sets/more/other.toml cannot be read"));
}

use super::*;

/// The files that lack `<h>` at `need();`, of files that are told by their lines; `<brings>` brings it.
fn lacking(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Sources = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let places = sources.iter().filter_map(|(path, bytes)| {
        let text = std::str::from_utf8(bytes).expect("utf-8");
        let all: Vec<usize> = text.match_indices("need()").map(|(at, _)| at).collect();
        (!all.is_empty()).then_some((path, all))
    });
    let places = places.collect();
    let reach = Reach::of(&sources, &Passes::unknown());
    let lacking = reach.lacking(&places, ("h", |header| header == "brings"));
    lacking.into_iter().map(str::to_string).collect()
}

#[test]
fn a_file_lacks_what_no_unit_has_read_before_it() {
    let need = "void f() { need(); }\n";
    let with = |before: &str| format!("{before}{need}");
    assert_eq!(lacking(&[("a.cu", need)]), ["a.cu"]);
    for has in ["#include <h>\n", "#include \"h\"\n", "#include <brings>\n"] {
        assert!(lacking(&[("a.cu", &with(has))]).is_empty(), "{has}");
    }
    assert_eq!(lacking(&[("a.cu", "#include \"b.h\"\n#include <h>\n"), ("b.h", need)]), ["b.h"]);
    assert!(lacking(&[("a.cu", "#include <h>\n#include \"b.h\"\n"), ("b.h", need)]).is_empty());
    assert!(lacking(&[("a.cu", &with("#include \"b.h\"\n")), ("b.h", "#include <h>\n")]).is_empty());
    assert_eq!(lacking(&[("a.cu", &format!("{need}#include <brings>\n"))]), ["a.cu"]);
    assert!(lacking(&[("a.h", need)]).is_empty());
    assert_eq!(lacking(&[("a.h", &with("#include <other>\n"))]), ["a.h"]);
}

#[test]
fn a_header_that_no_unit_reads_lacks_nothing_unless_the_includes_do_not_tell() {
    let header = ("objc/a.h", "#include <other>\nvoid f() { need(); }\n");
    let beside = |path: &str, text: &str| lacking(&[header, (path, text)]);
    assert_eq!(beside("b.h", "#include <b>\n"), ["objc/a.h"]);
    assert!(beside("b.cpp", "#include <b>\n").is_empty());
    assert!(lacking(&[header, ("b.cpp", ""), ("c.h", "#include \"objc/a.h\"\n")]).is_empty());
    assert_eq!(beside("b.cpp", "#include \"objc/a.h\"\n"), ["objc/a.h"]);
    assert_eq!(beside("b.cpp", "#include <copied/a.h>\n"), ["objc/a.h"]);
    assert_eq!(beside("b.cpp", "#  include HEADER\n"), ["objc/a.h"]);
    let python = [header, ("b.cpp", ""), ("jit.py", "load_inline('#include <a.h>')\n")];
    assert_eq!(lacking(&python), ["objc/a.h"]);
    let objective = [header, ("b.cpp", ""), ("c.mm", "#include \"a.h\"\n")];
    assert!(lacking(&objective).is_empty());
}

#[test]
fn all_files_of_a_unit_read_what_one_of_them_includes() {
    let files = [
        ("a.cu", "#include <h/x.h>\n#include \"b.h\"\n"),
        ("b.h", ""),
        ("c.cu", "#include \"d.h\"\n#include \"b.h\""),
        ("d.h", "#include <other>\n"),
    ];
    let sources: Sources = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let reach = Reach::of(&sources, &Passes::unknown());
    let reading = reach.reading_one(|header| header.starts_with("h/"));
    assert_eq!(reading.into_iter().collect::<Vec<_>>(), ["a.cu", "b.h"]);
    assert_eq!(reach.reading_one(|header| header == "other").len(), 3);
}

#[test]
fn a_source_without_includes_may_be_text_for_nvrtc() {
    let need = "void f() { need(); }\n";
    let beside = |python: &str| {
        lacking(&[("a.cu", need), ("b.cu", &format!("#include <other>\n{need}")), ("jit.py", python)])
    };
    assert_eq!(beside("import torch\n"), ["a.cu", "b.cu"]);
    for python in ["cupy.RawModule(code=text)\n", "SourceModule(text)\n", "from cuda import nvrtc\n"] {
        assert_eq!(beside(python), ["b.cu"], "{python}");
    }
}

#[test]
fn one_file_of_a_unit_gets_it_and_each_unit_counts() {
    let need = "void f() { need(); }\n";
    let user = format!("#include \"b.h\"\n{need}");
    assert_eq!(lacking(&[("a.cu", &user), ("b.h", need)]), ["b.h"]);
    assert_eq!(
        lacking(&[
            ("a.cu", "#include <h>\n#include \"b.h\"\n"),
            ("c.cu", "#include \"b.h\"\n"),
            ("b.h", need)
        ]),
        ["b.h"]
    );
    assert_eq!(lacking(&[("a.cu", "#include \"b.h\"\n"), ("c.cu", need), ("b.h", "")]), ["c.cu"]);
    assert_eq!(
        lacking(&[("a.h", "#include \"b.h\"\nvoid f() { need(); }"), ("b.h", "#include \"a.h\"\n")]),
        ["a.h"]
    );
}

#[test]
fn a_condition_of_the_same_file_must_be_that_of_the_place() {
    let half = "#ifdef X\n#include <h>\n#endif\n";
    assert_eq!(lacking(&[("a.cu", &format!("{half}void f() {{ need(); }}\n"))]), ["a.cu"]);
    assert!(lacking(&[("a.cu", &format!("{half}#ifdef X\nvoid f() {{ need(); }}\n#endif\n"))]).is_empty());
    assert!(lacking(&[("a.cu", "#include \"b.h\"\nvoid f() { need(); }\n"), ("b.h", half)]).is_empty());
    for always in [
        "#ifdef __cplusplus\n#include <h>\n#else\n#include <h.h>\n#endif\n",
        "#if defined(_MSC_VER) && _MSC_VER < 1600\nint x;\n#else\n#include <h>\n#endif\n",
        "#ifdef _WIN32\n#elif !defined(__APPLE__)\n#include <h>\n#endif\n",
    ] {
        assert!(lacking(&[("a.cu", &format!("{always}void f() {{ need(); }}\n"))]).is_empty(), "{always}");
    }
    let dead = "#if 0\n#include <h>\n#include \"b.h\"\n#endif\nvoid f() { need(); }\n";
    assert_eq!(lacking(&[("a.cu", dead), ("b.h", "#include <h>\n")]), ["a.cu"]);
}

#[test]
fn a_macro_needs_it_where_it_is_used() {
    let shim = "#define F() need()\n";
    assert!(lacking(&[("a.cu", "#include \"b.h\"\n#include <h>\n"), ("b.h", shim)]).is_empty());
    assert_eq!(lacking(&[("a.cu", "#include \"b.h\"\n"), ("b.h", shim)]), ["b.h"]);
}

#[test]
fn includes_are_found_beside_and_by_the_end_of_their_path() {
    let to = |path: &str, text: &str, others: &[&str]| {
        let texts = others.iter().map(|other| (*other, "")).chain([(path, text)]);
        let sources: Sources = texts.map(|(path, text)| (path, text.as_bytes())).collect();
        let reach = Reach::of(&sources, &Passes::unknown());
        reach.lines(path).iter().map(|line| line.to.map(str::to_string)).collect::<Vec<_>>()
    };
    let found = |path: &str| vec![Some(path.to_string())];
    assert_eq!(to("a/b/c.cu", "#include \"../u.h\"\n", &["a/u.h", "a/b/u.h"]), found("a/u.h"));
    assert_eq!(to("a/b/c.cu", "#include \"u.h\"\n", &["a/u.h", "u.h"]), found("a/u.h"));
    assert_eq!(to("a/b/c.cu", "#include <x/u.h>\n", &["x/u.h", "a/x/u.h"]), found("a/x/u.h"));
    assert_eq!(to("a/b/c.cu", "#include <u.h>\n", &["a/my_u.h"]), [None]);
}

#[test]
fn a_unit_stops_at_the_first_place_that_it_comes_to() {
    let files = [("a.cpp", "#include \"b.h\"\nx"), ("b.h", "#include <c.h>\nx"), ("c.h", "x"), ("d.h", "")];
    let sources: Sources = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let reach = Reach::of(&sources, &Passes::unknown());
    assert_eq!(reach.units().collect::<Vec<_>>(), ["a.cpp"]);
    let first = |places: &[(&'static str, usize)]| {
        reach.first("a.cpp", &places.iter().map(|(path, at)| (*path, vec![*at])).collect())
    };
    assert_eq!(first(&[("a.cpp", 15), ("b.h", 15), ("c.h", 0)]), Some(("c.h", 0)));
    assert_eq!(first(&[("a.cpp", 15), ("b.h", 15)]), Some(("b.h", 15)));
    assert_eq!(first(&[("a.cpp", 0), ("c.h", 0)]), Some(("a.cpp", 0)));
    assert_eq!(first(&[("d.h", 0)]), None);
}

use regex::Regex;

use super::*;
use crate::engine::catalogue::Catalogue;
use crate::engine::environment::Environment;
use crate::engine::ops::OpPlan;

fn python(text: &str) -> Pattern {
    Pattern::new(Language::Python, text).expect(text)
}

fn cpp(text: &str) -> Pattern {
    Pattern::new(Language::Cpp, text).expect(text)
}

fn by(text: &str, pattern: Option<Pattern>) -> Replacement {
    Replacement { text: Template::new(text), pattern }
}

fn empty(glob: &str) -> RewriteOp {
    RewriteOp {
        files: Files::new(&[glob.to_string()]).expect("glob"),
        find: Vec::new(),
        replace: None,
        right_for: RightFor::default(),
        otherwise: None,
        conditions: Vec::new(),
        inside: Vec::new(),
        not_inside: Vec::new(),
        behind_exit: false,
        unless: Vec::new(),
        beside: Vec::new(),
        accept: Vec::new(),
        expect: None,
        include: Vec::new(),
        brought_by: Headers::default(),
        read_by: None,
        advice: None,
    }
}

fn cxx20() -> RewriteOp {
    let replace = "\"-std=c++20\" if NEW else \"-std=c++17\"";
    RewriteOp {
        find: vec![python("\"-std=c++17\"")],
        replace: Some(by(replace, Some(python(replace)))),
        not_inside: vec![python("$_ if $_ else $_")],
        accept: vec![python("\"-std=c++20\"")],
        expect: Some(2..=4),
        ..empty("setup.py")
    }
}

/// An op on C++ files.
fn rewrite(find: &[&str], replace: &str) -> RewriteOp {
    let find = find.iter().map(|text| cpp(text)).collect();
    RewriteOp { find, replace: Some(by(replace, None)), ..empty("**/*.cu") }
}

fn condition(name: &str) -> Condition {
    Condition {
        name: name.into(),
        regex: None,
        not: Vec::new(),
        declared: Vec::new(),
        kind: None,
        unused: false,
        relative: false,
        varies: false,
        computed: false,
    }
}

fn passes(cuda: &[&str]) -> Passes {
    let cuda = cuda.iter().map(|text| text.parse().expect("toolkit")).collect();
    Passes::of(&Environment { cuda, ..Environment::default() }, Catalogue::shipped())
}

fn planned(op: &RewriteOp, path: &str, text: &str) -> Result<(String, OpPlan), OpError> {
    let sources: Sources = [(path, text.as_bytes())].into_iter().collect();
    let plan = op.plan(&sources, Ground { passes: &passes(&["13.0"]), earlier: &BTreeMap::new() })?;
    let new = plan.edits.get(path).map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
    Ok((String::from_utf8(new).expect("utf-8"), plan))
}

fn plan(op: &RewriteOp, text: &str) -> Result<(String, OpPlan), OpError> {
    planned(op, "setup.py", text)
}

/// The result of an op on C++, which must be a fixed point.
fn rewritten(op: &RewriteOp, text: &str) -> (String, OpPlan) {
    let (new, found) = planned(op, "a.cu", text).expect("plan");
    assert_eq!(planned(op, "a.cu", &new).expect("plan").0, new, "rewritten twice");
    (new, found)
}

#[test]
fn a_rewrite_is_a_fixed_point_and_keeps_the_rest() {
    let text = "x = ['-O3',  '-std=c++17', # std\n]\ny = '-std=c++20'\n# \"-std=c++17\"\n";
    let (new, _) = plan(&cxx20(), text).expect("plan");
    assert_eq!(new, text.replacen("'-std=c++17'", "'-std=c++20' if NEW else '-std=c++17'", 1));
    let (again, second) = plan(&cxx20(), &new).expect("plan");
    assert_eq!(again, new);
    assert_eq!(second.outcome.word(), "already-satisfied");
}

#[test]
fn an_accepted_form_counts_as_a_place_once() {
    let satisfied = |text: &str| plan(&cxx20(), text).map(|(_, plan)| plan.outcome.word());
    assert_eq!(satisfied("x = ['-std=c++20']\ny = ['-std=c++20']\n"), Ok("already-satisfied"));
    let done = "x = ['-std=c++20' if NEW else '-std=c++17']\n";
    assert!(matches!(satisfied(done), Err(OpError::NoAnchor(_))));
    assert_eq!(satisfied(&format!("{done}y = '-std=c++20'\n")), Ok("already-satisfied"));
}

#[test]
fn unmet_expectations_name_what_was_looked_for() {
    let error = plan(&cxx20(), "x = ['-std=c++14']\n").expect_err("no anchor");
    let OpError::NoAnchor(missing) = error else { panic!("{error}") };
    let NoAnchor { looked_for, nearest, .. } = *missing;
    assert_eq!(looked_for, "\"-std=c++17\"");
    assert_eq!(nearest.map(|site| site.line), Some(1));
}

#[test]
fn without_a_replacement_matches_are_reported() {
    let op = RewriteOp { replace: None, expect: None, ..cxx20() };
    let (new, plan) = plan(&op, "x = ['-std=c++17']\n").expect("plan");
    assert_eq!((new.as_str(), plan.outcome.word()), ("x = ['-std=c++17']\n", "reported"));
}

/// `AT_DISPATCH_…(x.type(), …)`, but not of a device.
fn dispatch() -> RewriteOp {
    let find = ["$M($$$A, $X.type(), $$$B)", "$M($$$A, $X->type(), $$$B)"];
    let regex = Some(Regex::new("^AT_DISPATCH_").expect("regex"));
    let not = vec![cpp("$_.device()"), cpp("$_->device()")];
    RewriteOp {
        conditions: vec![Condition { regex, ..condition("M") }, Condition { not, ..condition("X") }],
        ..rewrite(&find, "$M($$$A, $X.scalar_type(), $$$B)")
    }
}

#[test]
fn conditions_choose_among_matches() {
    let text = "void f() {\n  AT_DISPATCH_ALL(x.type(), \"a\", [&] { g(y.type()); });\n  OTHER(x.type());\n\
                  AT_DISPATCH_ALL(x.device().type(), 1);\n  AT_DISPATCH_AND(kHalf, xs[0].type(), \"b\", h);\n}\n";
    let wanted =
        text.replacen("(x.type()", "(x.scalar_type()", 1).replacen("xs[0].type()", "xs[0].scalar_type()", 1);
    assert_eq!(rewritten(&dispatch(), text).0, wanted);
}

#[test]
fn conditions_hold_in_macro_bodies_and_for_each_argument() {
    let text = "#define D(x) \\\n  AT_DISPATCH_ALL(x.device().type(), x.type(), g(x.device().type()))\n";
    assert_eq!(rewritten(&dispatch(), text).0, text.replacen(" x.type()", " x.scalar_type()", 1));
    let both = "void f() { AT_DISPATCH_ALL(x.type(), a, (*y).type(), b); }\n";
    assert_eq!(rewritten(&dispatch(), both).0, both.replace(".type()", ".scalar_type()"));
}

#[test]
fn an_alias_of_the_same_function_is_found() {
    let declared = vec![cpp("auto $T = $_.type();"), cpp("const auto& $T = $_.type();")];
    let regex = Some(Regex::new("^AT_DISPATCH_").expect("regex"));
    let op = RewriteOp {
        find: vec![cpp("$M($T, $$$)")],
        conditions: vec![Condition { regex, ..condition("M") }, Condition { declared, ..condition("T") }],
        advice: Some("declare it by scalar_type()".into()),
        ..empty("**/*.cu")
    };
    let text = "void f() {\n  const auto& t = x.type();\n  AT_DISPATCH_ALL(t, 1);\n  AT_DISPATCH_ALL(u, 1);\n}\n\
                void g() {\n  AT_DISPATCH_ALL(t, 1);\n}\n";
    let (_, found) = rewritten(&op, text);
    assert_eq!(found.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [3]);
    assert_eq!(found.outcome.detail(), "1 place: declare it by scalar_type()");
}

#[test]
fn dead_code_and_own_names_are_left() {
    let op = rewrite(&["THError($$$A)"], "TORCH_CHECK(false, $$$A)");
    let text = "#if CUDA_VERSION < 9000\nint a = THError(1);\n#else\nint b = THError(2);\n#endif\n";
    let (new, found) = rewritten(&op, text);
    assert_eq!(new, text.replace("THError(2)", "TORCH_CHECK(false, 2)"));
    assert_eq!(found.outcome.detail(), "rewrites 1 place; left: code that is never taken (1)");
    let own = "#ifndef THError\n#define THError(...) g(__VA_ARGS__)\n#endif\nvoid f() { THError(1); }\n";
    let (new, found) = rewritten(&op, own);
    assert_eq!((new.as_str(), found.outcome.word()), (own, "already-satisfied"));
    assert!(found.outcome.detail().contains("a.cu line 2 defines `THError` itself, as a macro"));
}

#[test]
fn an_unreadable_place_is_left_unless_places_are_counted() {
    let op = rewrite(&["THError($$$)"], "TORCH_CHECK(false)");
    let text = "void f() { THError(1); }\nvoid g() { THError(1 ?? 2); }\n";
    let (new, found) = rewritten(&op, text);
    assert_eq!(new, text.replace("THError(1);", "TORCH_CHECK(false);"));
    assert_eq!(found.open().map(|left| left.site.line).collect::<Vec<_>>(), [2]);
    let counted = RewriteOp { expect: Some(1..=usize::MAX), ..op };
    assert!(matches!(planned(&counted, "a.cu", text), Err(OpError::CannotEdit { .. })));
}

/// `THCState *s = …;` goes where nothing uses it.
fn state() -> RewriteOp {
    let unused = Condition { unused: true, ..condition("S") };
    let find = ["THCState *$S = $_;", "extern THCState *$S;"];
    RewriteOp { conditions: vec![unused], ..rewrite(&find, "") }
}

#[test]
fn a_declaration_goes_with_its_line_where_nothing_uses_it() {
    let text =
        "extern THCState *state;\n\nvoid f() {\n  int a;\n\n  THCState *state = g(); // TODO\n\n  h(a);\n}\n";
    let (new, found) = rewritten(&state(), text);
    assert_eq!(new, "void f() {\n  int a;\n\n  h(a);\n}\n");
    assert_eq!(found.sites.len(), 2);
    let outer = "extern THCState *state;\nvoid f() {\n  h(state);\n}\n#define H h(state)\n#if 0\nh(t);\n#endif\nextern THCState *t;\n";
    let (new, found) = rewritten(&state(), outer);
    assert_eq!(new, outer.replace("extern THCState *t;\n", ""));
    assert_eq!(found.left[0].why, "`state` is still used in line 3");
    let used = "void f() {\n  THCState *s = g();\n  h(s);\n}\n";
    let (new, found) = rewritten(&state(), used);
    assert_eq!((new.as_str(), found.outcome.word()), (used, "reported"));
    assert_eq!(found.left[0].why, "`s` is still used in line 3");
}

#[test]
fn a_use_that_an_earlier_op_takes_away_does_not_count() {
    let text = "void f() {\n  THCState *s = g();\n  h(THCState_getCurrentStream(s));\n}\n";
    let uses = rewrite(&["THCState_getCurrentStream($_)"], "at::cuda::getCurrentCUDAStream()");
    let (_, first) = planned(&uses, "a.cu", text).expect("plan");
    let sources: Sources = [("a.cu", text.as_bytes())].into_iter().collect();
    let ground = Ground { passes: &passes(&[]), earlier: &first.edits };
    let second = state().plan(&sources, ground).expect("plan");
    let mut edits = first.edits["a.cu"].clone();
    edits.merge(second.edits["a.cu"].clone()).expect("no overlap");
    let wanted = "void f() {\n  h(at::cuda::getCurrentCUDAStream());\n}\n";
    assert_eq!(String::from_utf8_lossy(&edits.apply(text.as_bytes())), wanted);
}

#[test]
fn a_statement_that_goes_leaves_no_hole() {
    let gone = |text: &str| rewritten(&rewrite(&["old($$$)"], ""), text).0;
    let cases = [
        ("void f() {\n  old(1);\n\n  g();\n}\n", "void f() {\n  g();\n}\n"),
        ("void f() {\n  g();\n\n  old(1);  /* why */\n}\n", "void f() {\n  g();\n}\n"),
        ("void f() {\n  g();\n\n  old(1);\n  old(2);\n\n  h();\n}\n", "void f() {\n  g();\n\n  h();\n}\n"),
        ("void f() {\n  g(); old(1); h();\n}\n", "void f() {\n  g(); h();\n}\n"),
        ("void f() { old(1); }\n", "void f() { }\n"),
        (
            "void f() {\n  if (a) old(1);\n  else\n    old(2);\n}\n",
            "void f() {\n  if (a) ;\n  else\n    ;\n}\n",
        ),
        ("void f() {\r\n\told(1);\r\n\tg();\r\n}", "void f() {\r\n\tg();\r\n}"),
        ("#define A(x) \\\n  g(x);   \\\n  old(x); \\\n  h(x)\n", "#define A(x) \\\n  g(x);   \\\n  h(x)\n"),
        ("#define A(x) \\\n  g(x); \\\n  old(x);\nint a;\n", "#define A(x) \\\n  g(x);\nint a;\n"),
        ("#define A(x) old(x); g(x)\n", "#define A(x) g(x)\n"),
    ];
    for (text, wanted) in cases {
        assert_eq!(gone(text), wanted, "{text}");
    }
    let include = rewrite(&["#include <THC/THC.h>"], "");
    let text = "#include <a.h>\n#include <THC/THC.h> // old\n#include <b.h>\n";
    assert_eq!(rewritten(&include, text).0, "#include <a.h>\n#include <b.h>\n");
    let python = RewriteOp { find: vec![python("old()")], replace: Some(by("", None)), ..empty("setup.py") };
    assert_eq!(plan(&python, "a = 1\nold()  # why\nb = 2\n").expect("plan").0, "a = 1\nb = 2\n");
}

#[test]
fn includes_are_rewritten_as_code() {
    let op =
        rewrite(&["#include <THC/THC.h>", "#include \"THC/THC.h\""], "#include <ATen/cuda/CUDAContext.h>");
    let text = "#include <a.h>\n#  include <THC/THC.h>\n#include \"THC/THC.h\"\nint a;\n";
    let wanted =
        "#include <a.h>\n#  include <ATen/cuda/CUDAContext.h>\n#include <ATen/cuda/CUDAContext.h>\nint a;\n";
    assert_eq!(rewritten(&op, text).0, wanted);
}

#[test]
fn lists_and_launches_are_rewritten() {
    let op = rewrite(&["THCudaMalloc($_, $N)"], "c10::cuda::CUDACachingAllocator::raw_alloc($N)");
    let text = "void f() { float *p = (float *)THCudaMalloc(state, n * sizeof(float)); }\n";
    let wanted =
        "void f() { float *p = (float *)c10::cuda::CUDACachingAllocator::raw_alloc(n * sizeof(float)); }\n";
    assert_eq!(rewritten(&op, text).0, wanted);
    let check = rewrite(&["THArgCheck($C, $_, $$$M)"], "TORCH_CHECK($C, $$$M)");
    let text = "void f() { THArgCheck(a > 0, 2, \"x %d\", a); THArgCheck(b, 3, \"y\"); }\n";
    let wanted = "void f() { TORCH_CHECK(a > 0, \"x %d\", a); TORCH_CHECK(b, \"y\"); }\n";
    assert_eq!(rewritten(&check, text).0, wanted);
}

#[test]
fn a_type_in_sight_and_a_neighbour_in_the_file_decide() {
    let tensor = Condition { kind: Some(Regex::new(r"\bTensor\b").expect("regex")), ..condition("X") };
    let op = RewriteOp { conditions: vec![tensor], ..rewrite(&["$X.data<$T>()"], "$X.data_ptr<$T>()") };
    let text = "#define D(x) x.data<int>()\nvoid f(const at::Tensor &x, Blob<int> b) {\n  \
                g(x.data<int>(), b.data<int>(), h().data<int>(), unknown.data<int>());\n}\n";
    let wanted = text.replace(".data<", ".data_ptr<").replace("b.data_ptr", "b.data");
    assert_eq!(rewritten(&op, text).0, wanted);
    let op = RewriteOp {
        beside: vec![Pattern::new(Language::Cpp, "using namespace cub;").expect("pattern")],
        ..rewrite(&["Sum()"], "::cuda::std::plus<>()")
    };
    let text = "using namespace cub;\nvoid f() { g(Sum()); }\n";
    assert_eq!(rewritten(&op, text).0, text.replace("Sum", "::cuda::std::plus<>"));
    let alone = "void f() { g(Sum()); }\n";
    assert_eq!(rewritten(&op, alone).0, alone);
}

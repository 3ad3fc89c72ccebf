use super::*;
use crate::engine::catalogue::Catalogue;
use crate::engine::environment::Environment;
use crate::engine::ops::rewrite::Headers;

const NAMES: [(&str, &str); 4] = [
    ("AT_CHECK", "TORCH_CHECK"),
    ("THCudaCheck", "C10_CUDA_CHECK"),
    ("THCCeilDiv", "at::ceil_div"),
    ("cub::Sum", "::cuda::std::plus<>"),
];

fn op(from: &str) -> RenameOp {
    let (from, to) = NAMES.iter().find(|(name, _)| *name == from).expect("a known name");
    let files = Files::new(&["**/*.cpp".to_string(), "**/*.cu".to_string()]).expect("globs");
    let (from, to) = (from.to_string(), to.to_string());
    let (include, unless, right_for) = (Vec::new(), Vec::new(), RightFor::default());
    let brought_by = Headers::default();
    RenameOp { files, from, to, include, right_for, otherwise: None, unless, brought_by }
}

/// The files after the op, in the order of their paths, and what it found.
fn renamed_tree(from: &str, files: &[(&str, &str)]) -> (Vec<String>, OpPlan) {
    let sources: Sources = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let passes = Passes::of(&Environment::default(), Catalogue::shipped());
    let plan = op(from).plan(&sources, &passes).expect("plan");
    let new =
        |path: &str, bytes: &[u8]| plan.edits.get(path).map_or(bytes.to_vec(), |edits| edits.apply(bytes));
    let texts = sources.iter().map(|(path, bytes)| String::from_utf8(new(path, bytes)).expect("utf-8"));
    (texts.collect(), plan)
}

fn renamed(from: &str, text: &str) -> (String, OpPlan) {
    let (mut texts, plan) = renamed_tree(from, &[("a.cu", text)]);
    let again = renamed_tree(from, &[("a.cu", &texts[0])]);
    assert_eq!(again.0[0], texts[0], "renamed twice");
    (texts.remove(0), plan)
}

/// Why places were left.
fn reasons(plan: &OpPlan) -> Vec<&str> {
    plan.left.iter().map(|left| left.why.as_str()).collect()
}

#[test]
fn code_and_macro_bodies_are_renamed_and_strings_and_comments_are_not() {
    let text = "#define CHECK_CUDA(x) \\\n    AT_CHECK(x.is_cuda(), #x \" is no AT_CHECK\")\n// AT_CHECK\nvoid f() { AT_CHECK(a); }\n";
    let (new, plan) = renamed("AT_CHECK", text);
    assert_eq!(new, text.replace("    AT_CHECK", "    TORCH_CHECK").replace("{ AT_CHECK", "{ TORCH_CHECK"));
    assert_eq!(plan.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(reasons(&plan), ["string", "comment"]);
    let told = "renames 2 places of `AT_CHECK` to `TORCH_CHECK`; left: string (1), comment (1)";
    assert_eq!(plan.outcome.detail(), told);
}

#[test]
fn every_position_of_a_qualified_name_is_renamed() {
    let text = "f(cub::Sum());\ng(cub::Sum{}, x);\ncub::Sum op;\nBlockReduce(t).Reduce(x, cub :: Sum());\n\
                Foo<cub::Sum>(a);\nFoo<Bar<cub::Sum>> b;\nusing Op = ::cub::Sum;\nint y = c ?d:cub::Sum()(1, 2);\n\
                template <typename T=cub::Sum> struct A:cub::Sum {};\n";
    let (new, plan) = renamed("cub::Sum", text);
    let wanted = "f(::cuda::std::plus<>());\ng(::cuda::std::plus<>{}, x);\n::cuda::std::plus<> op;\n\
                  BlockReduce(t).Reduce(x, ::cuda::std::plus<>());\nFoo<::cuda::std::plus<>>(a);\n\
                  Foo<Bar<::cuda::std::plus<>>> b;\nusing Op = ::cuda::std::plus<>;\n\
                  int y = c ?d: ::cuda::std::plus<>()(1, 2);\n\
                  template <typename T=::cuda::std::plus<>> struct A: ::cuda::std::plus<> {};\n";
    assert_eq!(new, wanted);
    assert!(plan.left.is_empty());
    let (new, _) =
        renamed("THCudaCheck", "THCudaCheck(cudaMalloc(&p, n));\nTHCudaCheck(f(x));\n::THCudaCheck(e);\n");
    assert_eq!(new, "C10_CUDA_CHECK(cudaMalloc(&p, n));\nC10_CUDA_CHECK(f(x));\n::C10_CUDA_CHECK(e);\n");
}

#[test]
fn what_a_using_brings_in_is_for_a_person() {
    let (new, plan) = renamed("cub::Sum", "using namespace cub;\nvoid f() { g(Sum()); g(cub::Sum()); }\n");
    assert_eq!(new, "using namespace cub;\nvoid f() { g(Sum()); g(::cuda::std::plus<>()); }\n");
    assert_eq!(plan.open().map(|left| left.site.line).collect::<Vec<_>>(), [2]);
    let alone = renamed("cub::Sum", "using cub::Sum;\nvoid f() { g(Sum()); }\n").1;
    assert_eq!((alone.outcome.word(), alone.open().count()), ("reported", 2));
    assert!(alone.outcome.detail().contains("using-declaration (1)"), "{:?}", alone.outcome);
}

#[test]
fn a_name_that_the_tree_defines_itself_is_left_alone() {
    let uses = "void f() { AT_CHECK(a); }  // AT_CHECK\n";
    let definitions = [
        "#define AT_CHECK TORCH_CHECK\n",
        "#ifndef AT_CHECK\n#define AT_CHECK TORCH_CHECK\n#endif\n",
        "template <typename T>\n__device__ void AT_CHECK(T a) {}\n",
        "using AT_CHECK = int;\n",
    ];
    for definition in definitions {
        let files = [("include/compat.h", definition), ("src/a.cpp", uses)];
        let (texts, plan) = renamed_tree("AT_CHECK", &files);
        assert_eq!(texts, [definition, uses]);
        assert!(plan.outcome.detail().contains("include/compat.h line"), "{:?}", plan.outcome);
        assert!(plan.outcome.detail().contains("itself"), "{:?}", plan.outcome);
        assert_eq!(reasons(&plan)[reasons(&plan).len() - 2..], ["the tree's own name", "comment"]);
    }
}

#[test]
fn definitions_in_text_and_in_dead_code_do_not_count() {
    let uses = "void f() { AT_CHECK(a); }\n";
    for text in [
        "// #define AT_CHECK x\n",
        "const char *s = R\"(\n#define AT_CHECK x\n)\";\n",
        "#if 0\n#define AT_CHECK x\n#endif\n",
        "#ifdef USE_ROCM\n#define AT_CHECK x\n#endif\n",
    ] {
        let (texts, plan) = renamed_tree("AT_CHECK", &[("a.cpp", uses), ("b.h", text)]);
        assert_eq!((texts[0].as_str(), texts[1].as_str()), ("void f() { TORCH_CHECK(a); }\n", text));
        assert_eq!(plan.sites.len(), 1);
    }
}

#[test]
fn shims_by_the_old_name_stay() {
    let use_of_it = "void f() { AT_CHECK(a); }\n";
    for shim in [
        "#ifndef TORCH_CHECK\n#define TORCH_CHECK AT_CHECK\n#endif\n",
        "#ifdef TORCH_CHECK\n#define CHECK TORCH_CHECK\n#else\n#define CHECK AT_CHECK\n#endif\n",
        "#ifdef AT_CHECK\n#define CHECK AT_CHECK\n#else\n#define CHECK TORCH_CHECK\n#endif\n",
        "#if !defined(TORCH_CHECK) && 1\n#define CHECK(x) AT_CHECK(x)\n#endif\n",
    ] {
        let (new, plan) = renamed("AT_CHECK", &format!("{shim}{use_of_it}"));
        assert_eq!(new, format!("{shim}void f() {{ TORCH_CHECK(a); }}\n"));
        assert_eq!(
            plan.sites.len() + plan.left.len(),
            format!("{shim}{use_of_it}").matches("AT_CHECK").count()
        );
    }
}

#[test]
fn a_new_name_that_the_tree_takes_for_itself_is_for_a_person() {
    let files = [("a.h", "#define TORCH_CHECK AT_CHECK\n"), ("b.cpp", "void f() { AT_CHECK(a); }\n")];
    let (texts, plan) = renamed_tree("AT_CHECK", &files);
    assert_eq!(texts, files.map(|(_, text)| text));
    let told =
        "a.h line 1 defines `TORCH_CHECK` itself, as a macro; 1 place of `AT_CHECK` may have to become it";
    assert_eq!((plan.outcome.word(), plan.outcome.detail().as_str()), ("reported", told));
    assert_eq!(plan.open().map(|left| left.site.path.as_str()).collect::<Vec<_>>(), ["b.cpp"]);
}

#[test]
fn dead_branches_stay_and_unknown_ones_do_not() {
    let text = "#if CUDA_VERSION >= 9000\nint a = AT_CHECK(1);\n#else\nint b = AT_CHECK(2);\n#endif\n#ifdef FOO\nint c = AT_CHECK(3);\n#else\nint d = AT_CHECK(4);\n#endif\n#ifdef __HIP_PLATFORM_AMD__\nint e = AT_CHECK(5);\n#endif\n";
    let cuda = vec!["13.0".parse().expect("toolkit")];
    let passes = Passes::of(&Environment { cuda, ..Environment::default() }, Catalogue::shipped());
    let sources: Sources = [("a.cu", text.as_bytes())].into_iter().collect();
    let plan = op("AT_CHECK").plan(&sources, &passes).expect("plan");
    assert_eq!(plan.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [2, 7, 9]);
    assert_eq!(reasons(&plan), ["code that is never taken"; 2]);
}

#[test]
fn bytes_around_stay_as_they_are() {
    let text =
        b"\xef\xbb\xbf// caf\xe9 \"\r\nvoid f() { AT_CHECK(a, \"\xe9\"); }\r\n#error don't\r\n\tAT_CHECK(b)";
    let sources: Sources = [("a.cu", &text[..])].into_iter().collect();
    let passes = Passes::of(&Environment::default(), Catalogue::shipped());
    let plan = op("AT_CHECK").plan(&sources, &passes).expect("plan");
    let new = plan.edits["a.cu"].apply(text);
    let wanted = b"\xef\xbb\xbf// caf\xe9 \"\r\nvoid f() { TORCH_CHECK(a, \"\xe9\"); }\r\n#error don't\r\n\tTORCH_CHECK(b)";
    assert_eq!(new, wanted);
}

proptest::proptest! {
    #[test]
    fn token_soup_is_renamed_once_and_counted_whole(
        pieces in proptest::collection::vec(proptest::sample::select(SOUP), 0..40),
        from in proptest::sample::select(&["AT_CHECK", "cub::Sum"][..]),
    ) {
        let text = pieces.concat();
        let (new, plan) = renamed(from, &text);
        let edits = plan.edits.get("a.cu").cloned().unwrap_or_default();
        proptest::prop_assert_eq!(edits.reverse(text.as_bytes()).apply(new.as_bytes()), text.as_bytes());
        let back: Vec<u8> = edits.reverse(text.as_bytes()).apply(new.as_bytes());
        proptest::prop_assert_eq!(back, text.into_bytes());
        proptest::prop_assert!(plan.sites.is_empty() == plan.edits.is_empty() || plan.outcome.detail().contains("itself"));
    }
}

/// Pieces from which random texts are made.
const SOUP: &[&str] = &[
    "cub",
    "::",
    "Sum",
    "cub::Sum",
    "AT_CHECK",
    "TORCH_CHECK",
    " ",
    " ",
    "\n",
    "\n",
    "\\\n",
    " \\\r\n",
    "#",
    "\n#define ",
    "\n#ifdef ",
    "\n#else\n",
    "\n#endif\n",
    "##",
    "\"",
    "'",
    "R\"(",
    ")\"",
    "/*",
    "*/",
    "//",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ";",
    ",",
    "using ",
    "namespace ",
    "int ",
    "=",
    ".",
    "->",
    "1'0",
    "\u{e9}",
    ":",
];

#[test]
fn a_macro_that_is_chosen_and_never_used_stays() {
    let shim = "#if OWN_HIP\n#define SUM hipcub::Sum()\n#else\n#define SUM cub::Sum()\n#endif\n";
    let (new, plan) = renamed("cub::Sum", shim);
    assert_eq!(new, shim);
    assert_eq!(plan.outcome.detail(), "no `cub::Sum` is left; left: `SUM`, a macro that nothing uses (1)");
    let used = format!("{shim}int x = reduce(SUM);\n");
    let (new, _) = renamed("cub::Sum", &used);
    assert_eq!(new, used.replace(" cub::Sum", " ::cuda::std::plus<>"));
    let once = "#define SUM cub::Sum()\n";
    assert_eq!(renamed("cub::Sum", once).0, once.replace("cub::Sum", "::cuda::std::plus<>"));
}

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tree_sitter::Node;

use super::{bodies, views};
use crate::engine::pattern::Pattern;
use crate::engine::syntax::branches::directives;
use crate::engine::syntax::{Language, Parsed};

fn parse(text: &str) -> Parsed {
    Parsed::new(Language::Cpp, text.as_bytes().into()).expect("parses")
}

/// The texts of the places that a pattern describes.
fn found(text: &str, pattern: &str) -> Vec<String> {
    let pattern = Pattern::new(Language::Cpp, pattern).expect(pattern);
    let matches = pattern.find_all(&parse(text)).into_iter();
    matches.filter(|found| !found.uncertain).map(|found| text[found.range].to_string()).collect()
}

fn first_view(text: &str) -> String {
    let views = views(text.as_bytes(), &directives(text.as_bytes()));
    String::from_utf8(views[0].text.clone()).expect("utf-8")
}

/// Each of these is read without an error.
fn is_read(texts: &[&str]) {
    for text in texts {
        assert_eq!(parse(text).syntax_errors(), 0, "{text}\n{}", first_view(text));
    }
}

#[test]
fn a_launch_is_read_with_all_that_stands_in_it() {
    is_read(&[
        "void f() { k<<<g, b>>>(x); }",
        "void f() { ns::k<T, 3><<<grid(n), dim3(1, 2), 0, s>>>(x, y); }",
        "void f() { k<<<f<g<h>>(n), 1>>>(x); k<a<b>><<<n<3 ? 1 : 2, 1>>>(); }",
        "void f() { k << <g, b >> > (x); (kernel) <<<1, 1>>>(); }",
        "template <class T> struct A { B<C<D<T>>> x; };",
        "#define LAUNCH(k) k<<<g, b>>>(x)\n",
    ]);
    assert_eq!(first_view("auto& operator<<<T>(int a);"), "auto& operator<<<T>(int a);");
    let text = "void f() { k<T><<<GET(n), 1, 0, s>>>(a.data<float>()); }\n#define L(x) k<<<GET(x), 1>>>(x)\n";
    assert_eq!(found(text, "GET($X)"), ["GET(n)", "GET(x)"]);
    assert_eq!(found(text, "$X.data<float>()"), ["a.data<float>()"]);
    assert_eq!(found(text, "$K<<<$G, $B>>>($$$A)"), ["k<<<GET(x), 1>>>(x)"]);
    assert_eq!(found("void f() { k(g, b)(x); }", "$K<<<$G, $B>>>($$$A)"), [""; 0]);
}

#[test]
fn decorations_are_read_as_attributes() {
    is_read(&[
        "template <int N> __global__ void __launch_bounds__(N * 2, 4) k(const float* __restrict x) {}",
        "__global__ __launch_bounds__(256) void k(const __grid_constant__ P p) { extern __shared__ float s[]; }",
        "struct __align__(16) A { __device__ __forceinline__ A() : x(f()) {} __host__ __device__ ~A(); int x; };",
        "struct A { __device__ A()\n  : lane_id(cub::LaneId())\n {} int lane_id; };",
        "void f() { auto g = [=] __host__ __device__ (int i) { return i; }; auto h = [] GPU_LAMBDA (int i) {}; }",
        "__constant__ float c[3];\nstatic __device__ __constant__ int d = 1;\n__managed__ int m;",
        "DS_D_INLINE float f(float x) { return x; }\nTV_HOST_DEVICE_INLINE const T &g(int);\nHST_DVC std::pair<A, B> h();",
        "class EXPORT_API A { HST_DVC explicit A(int); HST_DVC A(); HST_DVC operator T() const; HST_DVC ~A(); };",
        "TYPE_T f(TYPE const &x, TYPE_T y);\nFILE *g(void);\nDWORD x = 1;",
        "struct A { __device__ friend bool operator==(A, A); };\ntemplate <class T>\nBOUNDS_1(256)\n__global__ void k() {}",
        "float x[3] __attribute__((aligned(64))) = {0};\nstruct A {\n  alignas(16)\n  float x[4];\n};",
        "REAL operator+(REAL a);\nstruct B { HST_DVC operator bool() const; T HST_DVC operator*(T) const; };",
    ]);
    let text = "__global__ void a() { f(); }\nvoid b() { f(); }\n";
    assert_eq!(found(text, "__global__ void $F() { f(); }"), ["__global__ void a() { f(); }"]);
    assert_eq!(found(text, "void $F() { f(); }"), ["void b() { f(); }"]);
}

#[test]
fn expressions_of_dependent_types_are_read() {
    is_read(&[
        "void f() { typename T::Load(smem).Load(x, y); typename T::V v; typename A<B>::C c(1); }",
        "void f() { auto x = unsigned(y) << 3; asm volatile(\"a\" :: \"r\"(x)); it.operator++(); }",
        "using T = typename std::conditional<sizeof(S) >= 4, S, float>::type;",
        "template class A<ns::half, 512>; template struct B<int>;",
        "auto p = (void (A::*)(int))&A::f; typedef enum : int { X } E;",
        "struct S { S(T const &x = {1}, U const &y = {}) {} };",
        "void f() { if (not a) { g(); } if IN_BOUNDS(i, n) { g(); } try { g(); } CATCH_ALL; }",
    ]);
    assert_eq!(
        found("void f() { typename T::Load(cub::LaneId()).Load(x); }", "cub::LaneId()"),
        ["cub::LaneId()"]
    );
}

#[test]
fn macros_that_are_statements_are_read() {
    is_read(&[
        "void f() {\n  TORCH_CHECK(a, \"b\")\n  int x = 1;\n  gpuErrchk(g())\n}",
        "MAKE_thing(half, unsigned char)\nMAKE_thing(float, int)\nvoid f() {}",
        "void f() { CUDA_1D_KERNEL_LOOP(i, n * m) { g(i); } CUDA_KERNEL_LOOP(i, n) { g(i); } }",
        "void f() { CALL(float, const int*, true); CALL_IF(1) CALL_IF(2) else throw 1; }",
        "void f() { DISPATCH(x.type(), 0, \"n\", using T = A<b, c>; k<<<g, b>>>(x);) g(); }",
        "void f() { D1(a, 0, \"n\", D2(b, 1, \"m\", g<S, T>(x); return;)); RETURNS(return x;); }",
        "void f() { CHECK(, debug); g(ROCM_ONLY((void *)) kernel, 1); }",
        "LIB_NAMESPACE_BEGIN\ntemplate <class T> void f();\nstruct A { int x; MACRO };",
    ]);
    let text = "void f() { DISPATCH(x.type(), 0, \"n\", k(x.type()); return;) }";
    assert_eq!(found(text, "$X.type()"), ["x.type()", "x.type()"]);
    assert_eq!(
        found("void f() {\n  AT_CHECK(a)\n  AT_CHECK(b)\n}", "AT_CHECK($X)"),
        ["AT_CHECK(a)", "AT_CHECK(b)"]
    );
}

#[test]
fn a_function_whose_name_looks_like_a_macro_keeps_its_parameters() {
    let text = "inline int GET_BLOCKS(const int N, float) { return N; }\n\
                __global__ void ARF_kernel(const long n, const uint8 k) { CALL(float); }\n";
    assert_eq!(found(text, "return N;"), ["return N;"]);
    let view = first_view(text);
    assert!(
        view.contains("(const int N, float)") && view.contains("(const long n, const uint8 k)"),
        "{view}"
    );
    is_read(&[text]);
}

#[test]
fn what_only_seems_to_be_there_is_not_shown() {
    let text = "void f() { D(x, \"n\", g(); ) }\nvoid g() {\n  CHECK(a)\n  h(); }\n";
    let parsed = parse(text);
    let shows = |part: &str| {
        let at = text.find(part).expect(part);
        parsed.shows(&(at..at + part.len()))
    };
    assert!(shows("D(x") && shows("g(); ") && shows("CHECK(a)") && shows("h()"));
    assert!(!shows("\"n\",") && !shows("g(); )") && !shows("CHECK(a)\n  h()"));
    let after = text.find(")\n  h").expect("macro") + 1;
    assert!(parsed.shows(&(after..after)));
}

#[test]
fn a_conditional_within_a_statement_shows_each_of_its_branches() {
    is_read(&[
        "struct A { A() :\n#ifndef USE_ROCM\n a(f())\n#else\n a(g())\n#endif\n {} int a; };",
        "void f() { g(a,\n#ifdef X\n b,\n#endif\n c); }",
        "#ifdef X\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\n",
        "void f() {\n if (a) { g(); }\n#ifdef X\n else if (b) { g(); }\n#endif\n else { h(); }\n}\n",
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\nvoid f();\n#ifdef __cplusplus\n}\n#endif\n",
        "auto x = f()\n    .a()\n#ifdef X\n    .b()\n#endif\n    ;\n",
        "#if A\n __device__ __noinline__\n#else\n DS_INLINE\n#endif\nstatic float f();\n",
        "enum E { A,\n#if X\n B,\n#endif\n C };\nint x[] = { 1,\n#if X\n 2,\n#endif\n 3 };\n",
        "void f() { for (int i = 0; i < 3; i++)\n#pragma unroll\n for (int j = 0; j < 3; j++) g(); }\n",
        "#if defined(A) and not defined(B) or __has_cpp_attribute(clang::x)\n#define C /* d */ 1\n#endif\n",
    ]);
    let text = "void f() { g(x.type(),\n#ifdef USE_ROCM\n a(x.type()),\n#elif X\n b(x.type()),\n#else\n c(x.type()),\n#endif\n  x.type()); }";
    assert_eq!(found(text, "$F(x.type())"), ["a(x.type())", "b(x.type())", "c(x.type())"]);
    assert_eq!(found(text, "x.type()").len(), 5);
    assert_eq!(found(text, "g(x.type(), b($_), x.type())").len(), 1);
    let open =
        "#if A\nAT_DISPATCH(x.type(), [&] {\n#else\nAT_DISPATCH_2(x.type(), [&] {\n#endif\n f(); });\n";
    assert_eq!(found(&format!("void f() {{\n{open}}}"), "$M(x.type(), $_)").len(), 2);
}

#[test]
fn branches_beyond_the_last_view_are_not_understood() {
    let branches: String = (1..8).map(|index| format!("#elif X == {index}\n a({index}),\n")).collect();
    let text = format!("void f() {{ g(\n#if X\n a(0),\n{branches}#endif\n 1); }}");
    let parsed = parse(&text);
    assert_eq!((found(&text, "a($X)").len(), parsed.syntax_errors()), (4, 4));
    assert!(parsed.unread_bytes() > 0);
}

#[test]
fn bodies_of_macros_are_read() {
    let text = "#define CHECK(x) \\\n    AT_CHECK(x.type().is_cuda(), #x \" must be\") /* a */ && 1\n\
                #define CASE(T, ...) case T: { using t = T; return __VA_ARGS__(); }\n\
                #define LOOP(n) for (int i = 0; \\\r\n i < n.type(); i++)\n\
                #define OPEN namespace a { void f() { b.type();\n\
                #define MEMBERS(T) T(const T&) = delete; int v = c.type();\n\
                #define PASTE(a) d_##a.type() + a ## _e.type() AT_ ## CHECK(f)\n\
                #ifdef X\n#define Y(...) g.type(__VA_OPT__(,) ##__VA_ARGS__)\n#endif\n";
    let places = found(text, "$X.type()");
    assert_eq!(places, ["x.type()", "n.type()", "b.type()", "c.type()", "d_##a.type()", "a ## _e.type()"]);
    assert_eq!(found(text, "AT_CHECK($$$A)").len(), 1);
    assert_eq!(found(text, "return __VA_ARGS__();").len(), 1);
}

#[test]
fn the_frame_of_a_macro_body_is_no_code() {
    let parsed = parse("#define A(xyz) xyz(1); g()\n#define B } f(h\n");
    let text = |node: Node<'_>| parsed.text(node);
    let names =
        parsed.nodes().filter(|node| node.kind() == "identifier" && node.child_count() == 0).map(text);
    assert_eq!(names.collect::<Vec<_>>(), ["A", "xyz", "B", "xyz", "g", "f", "h"]);
}

#[test]
fn bytes_stay_in_their_places() {
    let text = b"\xef\xbb\xbf// caf\xe9 \xb0\xa1\r\n#define A(x) \\\r\n  k<<<1, 2>>>(x, \"\xb0\xa1\")\r\nvoid f() {\r\n  CHECK(\"\xe9\")\r\n  k<<<1, 2>>>(\"\xe9\");\r\n}";
    let parsed = Parsed::new(Language::Cpp, text[..].into()).expect("parses");
    assert_eq!(parsed.syntax_errors(), 0);
    let pattern = Pattern::new(Language::Cpp, "k<<<$A, $B>>>($$$C)").expect("pattern");
    let ranges: Vec<&[u8]> = pattern.find_all(&parsed).into_iter().map(|found| &text[found.range]).collect();
    assert_eq!(ranges, [&b"k<<<1, 2>>>(x, \"\xb0\xa1\")"[..], b"k<<<1, 2>>>(\"\xe9\")"]);
}

/// Pieces of C++ that mean something to the rewriting, and some that break it.
const PIECES: [&str; 44] = [
    "<<<",
    ">>>",
    "<",
    ">",
    ">=",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "::",
    "*",
    "&",
    "=",
    "~",
    ".",
    "\"",
    "'",
    "\n",
    "\r\n",
    "\\\n",
    " ",
    "#if X\n",
    "#else\n",
    "#elif 0\n",
    "#endif\n",
    "#define A_B(x) ",
    "##",
    "/* ",
    "*/",
    "// ",
    "R\"(",
    "typename ",
    "__device__ ",
    "__launch_bounds__",
    "MACRO",
    "template",
    "operator",
    "float ",
    "\u{e9}",
];

fn source() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => proptest::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        3 => "[a-z]{1,3} ?".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 1..3),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

#[test]
fn an_operator_of_several_lines_keeps_them() {
    let text = b"x.operator// the next\n<<<(y);\n";
    let view = &views(text, &directives(text))[0];
    assert!(view.text.iter().zip(text).all(|(now, was)| *was != b'\n' || now == was), "{:?}", view.text);
}

proptest! {
    #[test]
    fn no_text_panics_and_all_keep_their_length_and_newlines(bytes in source()) {
        let directives = directives(&bytes);
        for view in views(&bytes, &directives) {
            prop_assert_eq!(view.text.len(), bytes.len());
            let is_changed = |at: usize| view.text[at] != bytes[at];
            let is_told = |at: usize| view.hidden.iter().any(|hidden| hidden.contains(&at));
            for at in (0..bytes.len()).filter(|at| bytes[*at] == b'\n' && is_changed(*at)) {
                // The one end of a statement that finds no other place.
                prop_assert!(view.text[at] == b';' && is_told(at));
            }
        }
        prop_assert_eq!(bodies(&bytes, &directives).text.len(), bytes.len());
        let parsed = Parsed::new(Language::Cpp, bytes.clone().into()).expect("parses");
        for node in parsed.nodes() {
            prop_assert!(node.end_byte() <= bytes.len() + 200);
        }
        let size = bytes.len();
        prop_assert!(parsed.unread_bytes() <= size * 5 && parsed.shows(&(size..size)));
    }
}

#[test]
fn the_rewriting_takes_time_in_proportion() {
    let repeated = [
        "<",
        "<<<",
        ">>>",
        "k<<<",
        "(",
        "A_B(",
        "A_B(x",
        "A_B ::",
        "struct ",
        "f(",
        "{",
        "__launch_bounds__(a, ",
        "#if X\n",
        "#if X\na(\n#else\nb(\n#endif\n",
        "typename a::",
        "#define A_B(x) f( \\\n",
        "x##",
        "'",
        "R\"(",
        "a<b,",
        "*A_B ",
    ];
    let time = |text: &str| {
        let start = Instant::now();
        let directives = directives(text.as_bytes());
        views(text.as_bytes(), &directives);
        bodies(text.as_bytes(), &directives);
        start.elapsed()
    };
    for piece in repeated {
        let taken = time(&piece.repeat(100_000 / piece.len()));
        assert!(taken < Duration::from_secs(5), "{piece}: {taken:?}");
    }
}

use super::*;

/// The places of a name in a text, in order, each as the text up to the next blank and what it is there.
fn places(name: &str, text: &str) -> Vec<Place> {
    Name::new(name).census(text.as_bytes()).occurrences.into_iter().map(|found| found.place).collect()
}

fn place(name: &str, text: &str) -> Place {
    let found = places(name, text);
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found.into_iter().next().expect("one")
}

fn body(name: &str) -> Place {
    Place::MacroBody(name.to_string())
}

#[test]
fn every_kind_of_text_is_told_apart() {
    let cases = [
        ("void f() { AT_CHECK(a); }", Place::Code),
        ("#define CHECK(x) AT_CHECK(x)", body("CHECK")),
        ("#define CHECK(x) \\\r\n  do { f(); AT_CHECK(x); \\\r\n  } while (0)\r\n", body("CHECK")),
        ("#define CHECK AT_CHECK", body("CHECK")),
        ("#define CHECK (AT_CHECK)", body("CHECK")),
        ("#define AT_CHECK TORCH_CHECK", Place::Definition("macro")),
        ("# /* c */ define AT_CHECK(x) f(x)", Place::Definition("macro")),
        ("#ifndef AT_CHECK", Place::Condition),
        ("#if defined(A) || \\\n  defined(AT_CHECK)", Place::Condition),
        ("#undef AT_CHECK", Place::Directive),
        ("#include <AT_CHECK.h>", Place::Directive),
        ("#pragma message(AT_CHECK)", Place::Directive),
        ("// AT_CHECK(a)", Place::Comment),
        ("// a \\\n AT_CHECK(a)", Place::Comment),
        ("f(/* AT_CHECK", Place::Comment),
        ("f(\"AT_CHECK\")", Place::String),
        ("f(\"a AT_CHECK", Place::Code),
        ("f(R\"x(\n\"AT_CHECK)\" )x\")", Place::RawString),
        ("f('AT_CHECK')", Place::Character),
        ("x = 1'000; AT_CHECK(y);", Place::Code),
        ("#error don't\nAT_CHECK(y);", Place::Code),
        ("#define F(x) AT_CHECK##x", Place::Pasted),
        ("#define F(x) x ## AT_CHECK(1)", Place::Pasted),
        ("#define F(AT_CHECK) 1", Place::Parameter),
        ("x.AT_CHECK(1);", Place::Member),
        ("x -> AT_CHECK(1);", Place::Member),
        ("other::AT_CHECK(1);", Place::Qualified),
        ("X<int>::AT_CHECK(1);", Place::Qualified),
        ("return ::AT_CHECK(1);", Place::Code),
        ("a = b ? c :AT_CHECK(1);", Place::Code),
        ("a\\\n\n= AT_CHECK", Place::Code),
        ("// caf\u{e9} AT_CHECK", Place::Comment),
    ];
    for (text, expected) in cases {
        assert_eq!(place("AT_CHECK", text), expected, "{text}");
    }
    assert_eq!(places("AT_CHECK", "XAT_CHECK AT_CHECK_ AT_CHECK1 \u{e9}AT_CHECK"), []);
    let latin = Name::new("AT_CHECK").census(b"// caf\xe9 AT_CHECK\r\nAT_CHECK(1);\r\n");
    assert_eq!(
        latin.occurrences.iter().map(|found| &found.place).collect::<Vec<_>>(),
        [&Place::Comment, &Place::Code]
    );
}

#[test]
fn qualified_names_are_whole() {
    let cases = [
        ("cub::Sum()", Place::Code),
        ("f(cub :: Sum{}, 1)", Place::Code),
        ("::cub::Sum op;", Place::Code),
        ("static ::cub::Sum op;", Place::Code),
        ("typename T::template X<cub::Sum>", Place::Code),
        ("cub::Sum::type x;", Place::Code),
        ("#define OP cub::Sum()", body("OP")),
        ("other::cub::Sum()", Place::Qualified),
        ("cub::\nSum()", Place::Split),
        ("cub:: /* c */ Sum()", Place::Split),
        ("using cub::Sum;", Place::Imported),
        ("using Op = cub::Sum;", Place::Code),
        ("struct A : public cub::Sum {};", Place::Code),
        ("// cub :: Sum", Place::Comment),
        ("\"cub::Sum\"", Place::String),
        ("using namespace cub; f(Sum());", Place::Bare),
    ];
    for (text, expected) in cases {
        assert_eq!(place("cub::Sum", text), expected, "{text}");
    }
    for text in ["hipcub::Sum()", "Sum()", "cub::Sum_", "cub.Sum", "using namespace cub; x.Sum(); y::Sum();"]
    {
        assert_eq!(places("cub::Sum", text), [], "{text}");
    }
    let global = Name::new("cub::Sum").census(b"x = ::cub::Sum();");
    assert_eq!(global.occurrences[0].range, 4..14);
    let imported = places("cub::Sum", "using ::cub::Sum;\nvoid f() { g(Sum()); }");
    assert_eq!(imported, [Place::Imported, Place::Bare]);
}

#[test]
fn what_a_file_defines_itself_is_found() {
    let defined = [
        "int THCCeilDiv(int a, int b) { return (a + b - 1) / b; }",
        "template <typename T>\n__host__ __device__ __forceinline__ T THCCeilDiv(T a, T b) {\n}",
        "template <typename T, typename U = std::pair<int, int>>\nstatic inline T\nTHCCeilDiv(T a, U b)\n{\n}",
        "__device__ __launch_bounds__(256) int THCCeilDiv(int a) noexcept { }",
        "[[nodiscard]] constexpr auto THCCeilDiv(int a) -> int { }",
        "extern \"C\" int THCCeilDiv(int, int);",
        "const char *THCCeilDiv(int a);",
        "template <> int THCCeilDiv<int>(int a, int b) { }",
        "template <class T, std::enable_if_t<(sizeof(T) > 4), int> = 0> T THCCeilDiv(T a) { }",
        "auto THCCeilDiv = [](int a, int b) { return a; };",
        "const int THCCeilDiv[2] = {1, 2};",
        "using THCCeilDiv = int;",
        "using other::THCCeilDiv;",
        "typedef int THCCeilDiv;",
        "struct THCCeilDiv { int a; };",
        "struct __align__(16) THCCeilDiv : A {};",
        "class EXPORT THCCeilDiv final {};",
        "enum class THCCeilDiv { a };",
        "struct THCCeilDiv;",
        "namespace THCCeilDiv {}",
        "#define THCCeilDiv(a, b) (((a) + (b) - 1) / (b))",
        "#define DEFINE(T) inline T THCCeilDiv(T a, T b) { return a; }",
    ];
    for text in defined {
        assert!(matches!(place("THCCeilDiv", text), Place::Definition(_)), "{text}");
    }
}

#[test]
fn uses_are_no_definitions() {
    let used = [
        "int n = THCCeilDiv(a, b);",
        "int n = x * THCCeilDiv(a, b);",
        "return THCCeilDiv(a, b);",
        "else THCCeilDiv(a, b);",
        "if (x) THCCeilDiv(a, b);",
        "if constexpr (x) THCCeilDiv(a, b);",
        "CHECK_INPUT(x)\nTHCCeilDiv(a, b);",
        "BEGIN\nTHCCeilDiv(a, b);",
        "ok && THCCeilDiv(a, b);",
        "dim3 grid(THCCeilDiv(a, b), 1);",
        "std::cout << THCCeilDiv(a, b);",
        "case 1: THCCeilDiv(a, b);",
        "x = c ? d : THCCeilDiv(a, b);",
        "THCCeilDiv(f(x));",
        "THCCeilDiv *s = g();",
        "struct THCCeilDiv *s = g();",
        "f<THCCeilDiv>(a < b);",
        "do THCCeilDiv(a); while (0);",
        "#define F(x) THCCeilDiv(x);",
        "#define F THCCeilDiv(x);",
        "[&] { THCCeilDiv(x); };",
    ];
    for text in used {
        assert!(matches!(place("THCCeilDiv", text), Place::Code | Place::MacroBody(_)), "{text}");
    }
}

#[test]
fn a_namespace_of_the_tree_defines_the_qualified_name() {
    let defined = |text: &str| Name::new("cub::Sum").census(text.as_bytes()).definitions.len();
    assert_eq!(defined("namespace cub {\nstruct Sum {\n};\n}"), 1);
    assert_eq!(defined("namespace a::cub { template <class T> struct Sum { }; }"), 1);
    assert_eq!(defined("namespace cub = hipcub; int Sum;"), 1);
    assert_eq!(defined("#define cub hipcub\n// Sum"), 1);
    assert_eq!(defined("struct Sum { }; cub::Max x;"), 0);
    assert_eq!(defined("namespace cub { } namespace mine { struct Sum {}; }"), 0);
    assert_eq!(defined("namespace cub { struct A { }; } struct Sum {};"), 0);
    assert_eq!(defined("namespace cub { struct A { int Sum() { return 1; } }; }"), 0);
    let outer = |text: &str| Name::new("cub::Sum").census(text.as_bytes()).definitions[0].outer.join("::");
    assert_eq!(outer("namespace a { namespace b::cub { struct Sum {}; } }"), "a::b");
    assert_eq!(outer("namespace a { namespace cub = hipcub; } // Sum"), "a");
    assert_eq!(outer("namespace { inline namespace v1 { namespace cub { struct Sum {}; } } }"), "");
}

proptest::proptest! {
    #[test]
    fn token_soup_is_read_without_a_panic(
        pieces in proptest::collection::vec(proptest::sample::select(SOUP), 0..40)
    ) {
        let text = pieces.concat();
        let census = Name::new("cub::Sum").census(text.as_bytes());
        for pair in census.occurrences.windows(2) {
            proptest::prop_assert!(pair[0].range.end <= pair[1].range.start);
        }
        let whole = |found: &Occurrence| text[found.range.clone()].ends_with("Sum");
        proptest::prop_assert!(census.occurrences.iter().all(whole));
    }
}

/// Pieces from which random texts are made.
const SOUP: &[&str] = &[
    "cub",
    "::",
    "Sum",
    "cub::Sum",
    " ",
    "\n",
    "\\\n",
    "\\\r\n",
    "#",
    "define ",
    "ifdef ",
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
];

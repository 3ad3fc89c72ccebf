//! Which namespaces a name of a file is looked for in.

use super::declared::Scope;
use super::lexed::Lexed;

/// Whether a name at a place is looked for in a namespace too: the place lies in it, or the file says `using namespace`
/// of it. A leading `::` looks nowhere else than outside.
pub fn looks_in(bytes: &[u8], at: usize, namespace: &[String]) -> bool {
    let names = || namespace.iter().map(String::as_bytes);
    let lexed = Lexed::of(bytes);
    if names().next().is_none() {
        return true;
    }
    let Some(index) = lexed.all.iter().position(|token| token.range.end > at) else { return false };
    if lexed.text(index) == b"::" {
        return false;
    }
    let around = Scope { lexed: &lexed, from: 0 }.around(index);
    around.len() >= namespace.len() && around.iter().copied().zip(names()).all(|(one, other)| one == other)
        || uses(&lexed, namespace)
}

/// Whether a file says `using namespace a::b;`, or of the last of them alone.
fn uses(lexed: &Lexed<'_>, namespace: &[String]) -> bool {
    let says = |index: usize| {
        let after = std::iter::successors(lexed.after(index), |index| lexed.after(*index));
        let words = after.map(|index| lexed.text(index)).take_while(|text| *text != b";");
        let words: Vec<&[u8]> = words.filter(|text| *text != b"::").take(namespace.len() + 2).collect();
        let Some((b"namespace", used)) = words.split_first().map(|(first, used)| (*first, used)) else {
            return false;
        };
        let mut pairs = used.iter().rev().zip(namespace.iter().rev());
        !used.is_empty() && pairs.all(|(one, other)| *one == other.as_bytes())
    };
    (0..lexed.all.len()).any(|index| lexed.text(index) == b"using" && says(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(text: &str, namespace: &[&str]) -> bool {
        let at = text.find('$').expect("a place");
        let namespace: Vec<String> = namespace.iter().map(|name| name.to_string()).collect();
        looks_in(text.replace('$', "").as_bytes(), at, &namespace)
    }

    #[test]
    fn a_place_looks_in_the_namespaces_around_it_and_in_those_that_the_file_uses() {
        let inside = "namespace a { namespace b { struct S { void f() { $cub::Max m; } }; } }";
        assert!(looks(inside, &["a"]) && looks(inside, &["a", "b"]) && looks(inside, &[]));
        assert!(!looks(inside, &["b"]) && !looks(inside, &["a", "b", "c"]));
        assert!(!looks("namespace a { void f(); } void g() { $cub::Max m; }", &["a"]));
        assert!(looks("using namespace a; void g() { $cub::Max m; }", &["a"]));
        assert!(looks("namespace a { using namespace b; } void g() { $cub::Max m; }", &["a", "b"]));
        assert!(!looks("using namespace c; using a::x; void g() { $cub::Max m; }", &["a"]));
        assert!(!looks("namespace a { void f() { $::cub::Max m; } }", &["a"]));
    }
}

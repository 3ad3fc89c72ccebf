//! Templates: the text of a pattern, filled in.

use super::matching::Bindings;
use super::metavariable;
use crate::engine::syntax::style;

/// A piece of source code whose metavariables are filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
}

/// A metavariable that nothing stands for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing stands for `${name}` in `{template}`")]
pub struct Unbound {
    /// Its name, without `$`.
    pub name: String,
    /// The template.
    pub template: String,
}

impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}

impl Template {
    /// A template; blank lines around it do not count.
    pub fn new(text: &str) -> Self {
        Self { text: text.trim_matches('\n').trim_end().to_string() }
    }

    /// The text with each metavariable replaced by its value.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, Unbound> {
        metavariable::substitute(&self.text, value)
            .map_err(|name| Unbound { name, template: self.text.clone() })
    }

    /// The text with what a match bound; an empty `$$$X` takes its comma along, and quotes follow the match.
    pub fn fill_match(&self, bindings: &Bindings, matched: &str) -> Result<String, Unbound> {
        let empty = |name: &str| bindings.get(name).is_some_and(|bound| bound.text.is_empty());
        let mut text = match style::sole_quote(matched) {
            Some(quote) => style::requote(&self.text, quote),
            None => self.text.clone(),
        };
        for (name, _) in bindings.iter().filter(|(name, _)| empty(name)) {
            text = without_empty(&text, name);
        }
        Template { text }.fill(|name| bindings.get(name).map(|bound| bound.text.clone()))
    }
}

/// The text without `$$$NAME` and the comma beside it.
fn without_empty(text: &str, name: &str) -> String {
    let variable = format!("$$${name}");
    [
        format!("{variable}, "),
        format!("{variable},"),
        format!(", {variable}"),
        format!(",{variable}"),
        variable,
    ]
    .iter()
    .find(|written| text.contains(written.as_str()))
    .map_or_else(|| text.to_string(), |written| text.replacen(written.as_str(), "", 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::pattern::Pattern;
    use crate::engine::syntax::{Language, Parsed};

    fn rewritten(find: &str, replace: &str, text: &str) -> String {
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("parses");
        let found = Pattern::new(Language::Python, find).expect(find).find_all(&parsed);
        Template::new(replace).fill_match(&found[0].bindings, &text[found[0].range.clone()]).expect("filled")
    }

    #[test]
    fn an_empty_list_takes_its_comma_along() {
        let (find, replace) = ("f($$$A, $X.type(), $$$B)", "f($$$A, $X.scalar(), $$$B)");
        assert_eq!(rewritten(find, replace, "f(x.type())\n"), "f(x.scalar())");
        assert_eq!(rewritten(find, replace, "f(a, x.type())\n"), "f(a, x.scalar())");
        assert_eq!(rewritten(find, replace, "f(x.type(), b, c)\n"), "f(x.scalar(), b, c)");
    }

    #[test]
    fn quotes_follow_the_match() {
        assert_eq!(rewritten("f(\"a\")", "f(\"b\", \"c\")", "f('a')\n"), "f('b', 'c')");
    }

    #[test]
    fn a_name_without_value_is_an_error() {
        let error = Template::new("f($X)").fill(|_| None).expect_err("unbound");
        assert_eq!(error.name, "X");
    }
}

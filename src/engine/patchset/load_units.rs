//! What ops say of includes and translation units, from TOML.

use super::fault::{At, LoadError};
use super::schema::RewriteSpec;
use crate::engine::ops::files::Files;
use crate::engine::ops::rewrite::Headers;
use crate::engine::syntax::Language;

impl At<'_> {
    /// `<path>` and `"path"` of C++ files, `import name` of Python.
    pub(super) fn include(self, language: Language, texts: &[String]) -> Result<Vec<String>, LoadError> {
        let is_include = |text: &&String| {
            let inner = [('<', '>'), ('"', '"')]
                .into_iter()
                .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close));
            match language {
                Language::Cpp => inner.is_some_and(|path| !path.trim().is_empty()),
                Language::Python => text.strip_prefix("import ").is_some_and(|name| !name.is_empty()),
                Language::Cmake => false,
            }
        };
        match texts.iter().find(|text| !is_include(text)) {
            Some(text) => {
                let like = "`<path>` in a C++ file, or `import name` in Python";
                Err(self.wrong_text("include", text, format!("`{text}` is not like {like}")))
            }
            None => Ok(texts.to_vec()),
        }
    }

    /// `brought-by` and `read-by` of a rewrite that says nothing that contradicts them.
    pub(super) fn units(
        self,
        language: Language,
        spec: &RewriteSpec,
    ) -> Result<(Headers, Option<Files>), LoadError> {
        let only_include = spec.replace.is_none() && !spec.include.is_empty();
        if spec.replace.is_none() && spec.right_for.is_some() {
            return Err(self.wrong("right-for", "it belongs to `replace`"));
        }
        if only_include && language != Language::Cpp {
            return Err(self.wrong("include", "without `replace` it is for C++ files"));
        }
        if only_include && spec.include.len() > 1 {
            return Err(self.wrong("include", "without `replace` it is one header; write one op for each"));
        }
        if only_include && (spec.advice.is_some() || spec.expect.is_some() || !spec.accept.is_empty()) {
            let known = "`include` without `replace` takes no `advice`, `expect` or `accept`";
            return Err(self.wrong("include", known));
        }
        if !only_include && !spec.brought_by.is_empty() {
            return Err(self.wrong("brought-by", "it belongs to `include` without `replace`"));
        }
        if !spec.read_by.is_empty() && (language != Language::Cpp || spec.replace.is_some() || only_include) {
            return Err(self.wrong("read-by", "only reports about C++ files ask who reads them"));
        }
        let headers =
            Headers::new(&spec.brought_by).map_err(|error| self.wrong_glob("brought-by", &error))?;
        let units =
            (!spec.read_by.is_empty()).then(|| self.files_of("read-by", &spec.read_by)).transpose()?;
        Ok((headers, units))
    }
}

//! How many places an op expects.

use std::ops::RangeInclusive;

use super::{NoAnchor, OpError, RewriteOp, Site, count, places};
use crate::engine::source::{Sources, line_text};

impl RewriteOp {
    /// Fails where they are fewer or more, unless there is another cure.
    pub(super) fn check_expected(
        &self,
        sources: &Sources,
        found: usize,
        done: usize,
        cured: bool,
    ) -> Result<(), OpError> {
        let Some(expect) = &self.expect else { return Ok(()) };
        let too_few = found + done < *expect.start();
        if cured || !(too_few || found > *expect.end()) {
            return Ok(());
        }
        let looked_for = self.find.first().map_or_else(String::new, |pattern| pattern.text.clone());
        let fact = format!("{} of `{looked_for}` where {} expected", places(found), expected(expect));
        let path = self.files.to_string();
        let nearest = self.nearest(sources, &looked_for);
        Err(OpError::NoAnchor(Box::new(NoAnchor { fact, path, looked_for, nearest })))
    }

    /// The line that has most in common with what was looked for.
    fn nearest(&self, sources: &Sources, looked_for: &str) -> Option<Site> {
        let lines = self.files.of(sources).flat_map(|(path, bytes)| {
            let count = bytes.split(|byte| *byte == b'\n').count();
            (1..=count).map(move |line| Site { path: path.to_string(), line, text: line_text(bytes, line) })
        });
        let ratio = |site: &Site| similar::TextDiff::from_chars(site.text.trim(), looked_for).ratio();
        let close = lines.map(|site| (ratio(&site), site)).filter(|(ratio, _)| *ratio > 0.5);
        close.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, site)| site)
    }
}

fn expected(expect: &RangeInclusive<usize>) -> String {
    format!("{} {}", count(expect), if *expect == (1..=1) { "was" } else { "were" })
}

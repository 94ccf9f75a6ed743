//! The patterns of questions. They are limited, so that an agent's pattern cannot keep the run busy.

use regex_lite::{Regex, RegexBuilder};

pub(crate) const PATTERN_BYTES: usize = 4 << 10;
/// The smallest and the largest size of a compiled pattern, in bytes. Each step between them doubles the size.
pub(crate) const COMPILED_BYTES: (usize, usize) = (1 << 10, 64 << 10);
/// The largest product of the size of a compiled pattern and the length of an answer: a tenth of a second of work.
const PRODUCT: usize = 128 << 20;

#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// The length of the longest answer that is checked against the pattern, in bytes.
    longest: usize,
}

impl Pattern {
    /// `None`: the dialect is not supported, or the pattern is too large.
    pub(crate) fn new(pattern: &str) -> Option<Pattern> {
        if pattern.len() > PATTERN_BYTES {
            return None;
        }
        let sizes = std::iter::successors(Some(COMPILED_BYTES.0), |size| Some(size * 2));
        sizes.take_while(|size| *size <= COMPILED_BYTES.1).find_map(|size| {
            let regex = RegexBuilder::new(pattern).size_limit(size).build().ok()?;
            Some(Pattern { regex, longest: PRODUCT / size })
        })
    }

    /// Searches only the beginning of a text that is too long. Returns the first group, or the whole match without one.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let text = &text[..text.floor_char_boundary(self.longest)];
        let found = self.regex.captures(text)?;
        found.get(1).or(found.get(0)).map(|found| found.as_str())
    }

    /// Whether a text matches, or is too long to be checked.
    pub(crate) fn allows(&self, text: &str) -> bool {
        text.len() > self.longest || self.regex.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn only_patterns_of_a_bounded_size_are_checked() {
        let checked = |pattern: &str| Pattern::new(pattern).is_some();
        assert!(checked(r"^\d{4}-\d{2}-\d{2}$") && checked(&format!("^({})$", "word|".repeat(200))));
        for large in ["^(?:a?){100000}b$", "(?:(?:a{1000}){1000}){1000}", &"a".repeat(5000), "(?<=look)behind"] {
            assert!(!checked(large), "{large}");
        }
    }

    #[test]
    fn a_larger_pattern_is_checked_for_shorter_answers_only() {
        let (small, large) = (Pattern::new("^a*$").unwrap(), Pattern::new("^(?:a?){300}$").unwrap());
        assert!(small.longest > 8 * large.longest && large.longest > 1000);
        assert!(!small.allows("b") && !large.allows("b"));
        assert!(large.allows(&"b".repeat(large.longest + 1)), "the product is beyond the limit");
    }
}

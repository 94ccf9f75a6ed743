//! The name of a specification or a plan, which is also the name of its file or folder.

use crate::protocol::workflow::{NAME_LENGTH, is_name, is_name_letter};
use std::ffi::OsStr;
use std::fmt;

/// The minimum length of a name that is cut at a `-`, in characters.
const LEAST: usize = 20;
/// The characters that a name has inside only.
const INNER: [char; 2] = ['-', '_'];
const FALLBACK: &str = "spec";

/// A name: 1 to 50 lower-case letters and digits of any script, `-` and `_`, with a letter or a digit at both ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slug(String);

impl Slug {
    pub fn parse(text: &str) -> Option<Slug> {
        is_name(text).then(|| Slug(text.to_owned()))
    }

    /// The name made from the first line of a description that is not blank.
    pub fn of_description(description: &str) -> Slug {
        Slug::made(description.lines().find(|line| !line.trim().is_empty()).unwrap_or_default())
    }

    pub fn of_file(file: &OsStr) -> Slug {
        let text = file.to_string_lossy();
        Slug::made(text.strip_suffix(".md").unwrap_or(&text))
    }

    fn made(text: &str) -> Slug {
        let mut name: Vec<char> = Vec::new();
        for c in text.chars() {
            let before = name.len();
            name.extend(c.to_lowercase().filter(|c| is_name_letter(*c)));
            if name.len() > before || name.is_empty() {
                // A name begins with a letter or a digit.
            } else if c == '_' {
                name.push('_');
            } else if name.last() != Some(&'-') {
                name.push('-');
            }
            // One character over the limit shows that the name must be cut; what is trimmed at the end does not count.
            if name.len() > NAME_LENGTH && !name.ends_with(&['-']) && !name.ends_with(&['_']) {
                name.truncate(NAME_LENGTH);
                if let Some(at) = name.iter().rposition(|c| *c == '-').filter(|at| *at >= LEAST) {
                    name.truncate(at);
                }
                break;
            }
        }
        let name: String = name.into_iter().collect();
        let name = name.trim_end_matches(INNER);
        Slug(if name.is_empty() { FALLBACK.to_owned() } else { name.to_owned() })
    }

    /// This name with a number at its end: `name-2`.
    pub fn numbered(&self, number: u32) -> Slug {
        let end = format!("-{number}");
        let start: String = self.0.chars().take(NAME_LENGTH - end.len()).collect();
        Slug(format!("{}{end}", start.trim_end_matches(INNER)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Slug;
    use proptest::prelude::*;

    #[test]
    fn a_name_comes_from_the_first_non_blank_line() {
        let long = "a".repeat(60);
        for (description, name) in [
            ("Add a login page", "add-a-login-page"),
            ("\n \t\n  Über-Login: v2!\nmore", "über-login-v2"),
            ("日本語", "日本語"),
            ("Größe ändern…", "größe-ändern"),
            ("İstanbul", "istanbul"),
            ("", "spec"),
            ("---", "spec"),
            ("a  --  b", "a-b"),
            ("Fix user_id in HTTP_API", "fix-user_id-in-http_api"),
            ("__init__ of _x_ _", "init__-of-_x"),
            ("a-_!_b", "a-_-_b"),
            ("___", "spec"),
            (&long, &long[..50]),
            // Cut to 50 characters, then before the last `-`.
            (
                "the quick brown fox jumps over the lazy dog and then some",
                "the-quick-brown-fox-jumps-over-the-lazy-dog-and",
            ),
            // Exactly 50 characters stay, even if unusable characters follow.
            (
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbb!",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbb",
            ),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbb c", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ] {
            assert_eq!(Slug::of_description(description).as_str(), name, "{description:?}");
        }
        // A cut at a `-` must leave at least 20 characters.
        let early = format!("{}-{}", "a".repeat(19), "b".repeat(60));
        assert_eq!(Slug::of_description(&early).as_str(), &early[..50]);
        let enough = format!("{}-{}", "a".repeat(20), "b".repeat(60));
        assert_eq!(Slug::of_description(&enough).as_str(), "a".repeat(20));
        // The trimmed end does not count toward the limit, and the cut leaves no `_` at the end.
        let whole = "a".repeat(50);
        assert_eq!(Slug::of_description(&format!("{whole}_ _")).as_str(), whole);
        assert_eq!(Slug::of_description(&format!("{}__b", "a".repeat(49))).as_str(), "a".repeat(49));
        assert_eq!(Slug::of_description(&format!("{}_-{}", "a".repeat(30), "b".repeat(60))).as_str(), "a".repeat(30));
    }

    #[test]
    fn a_plan_is_named_after_the_file_of_its_specification() {
        for (file, name) in [
            ("login.md", "login"),
            ("user_login.md", "user_login"),
            ("My Spec.md", "my-spec"),
            ("x.draft.md", "x-draft"),
            (".md", "spec"),
        ] {
            assert_eq!(Slug::of_file(file.as_ref()).as_str(), name, "{file}");
        }
    }

    #[test]
    fn invalid_names_are_refused() {
        for good in ["a", "0", "a-b", "a--b", "a_b", "a_-b", "ä", &"x".repeat(50)] {
            assert!(Slug::parse(good).is_some(), "{good}");
        }
        for bad in ["", "-", "-a", "a-", "_", "_a", "a_", "A", "a b", "a/b", "a.b", "Ä", "a\n", &"x".repeat(51)] {
            assert!(Slug::parse(bad).is_none(), "{bad:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_description_yields_a_valid_name(description in "\\PC{0,80}|(.|\n){0,200}|[a-z _-]{0,200}") {
            let name = Slug::of_description(&description);
            prop_assert_eq!(Slug::parse(name.as_str()), Some(name));
        }
    }
}

//! Names in messages: whether a name that a user typed may be shown, and which known name the user probably meant.

use std::fmt;

/// The maximum length of a name that is shown or compared, in bytes. All known names are shorter.
const LONGEST: usize = 64;

/// A typed name that may be shown: 1 to 64 ASCII letters, digits, `-`, `_` and `.`. Other text could be a misplaced
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    /// Wraps the name. `None`: it may not be shown.
    pub(crate) fn new(text: &'a str) -> Option<Name<'a>> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        ((1..=LONGEST).contains(&text.len()) && text.bytes().all(fits)).then_some(Name(text))
    }

    /// Like [`Name::new`], for the name of a field or a variable, which has neither `-` nor `.`.
    pub(crate) fn of_field(text: &'a str) -> Option<Name<'a>> {
        Name::new(text).filter(|_| !text.contains(['-', '.']))
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

/// An unknown name that a user typed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unknown<'a> {
    /// The kind of name, such as `flag` or `key`.
    pub what: &'a str,
    /// The dashes in front of the name and of the known names.
    pub dashes: &'a str,
    /// The name, without its dashes.
    pub typed: &'a str,
    /// The place where the name was read, after a space: ` in FILE, line 3`.
    pub place: &'a str,
}

impl Unknown<'_> {
    /// The message: the name, and the closest of the `known` names. `otherwise`: the sentence if none is close.
    pub(crate) fn message<'k>(&self, known: impl Iterator<Item = &'k str>, otherwise: &str) -> String {
        let Unknown { what, dashes, typed, place } = self;
        let shown = Name::new(typed).map(|name| format!(" {dashes}{name}")).unwrap_or_default();
        let meant = nearest(typed, known).map(|name| format!("Did you mean {dashes}{name}?"));
        format!("Unknown {what}{shown}{place}. {}", meant.as_deref().unwrap_or(otherwise)).trim_end().to_owned()
    }
}

/// A space and a sentence that names the closest of the `known` names. Empty if none is close.
pub(crate) fn hint<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(typed, known).map(|name| format!(" Did you mean {name}?")).unwrap_or_default()
}

/// The closest name in `known`, if at most a third of it differs.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if typed.len() > LONGEST {
        return None;
    }
    known
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Joins words as `a, b or c`.
pub(crate) fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The number of characters to insert, remove or change. A permutation of the characters counts as one change.
fn distance(a: &str, b: &str) -> usize {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    if a != b && sorted(a) == sorted(b) { 1 } else { edits(a, b) }
}

/// The number of characters to insert, remove or change.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{Name, Unknown, either};

    #[test]
    fn only_a_plain_short_name_is_shown() {
        for good in ["a", "timeot_s", "agents.x.comand", "--flag", &"x".repeat(64)] {
            assert_eq!(Name::new(good).map(|name| name.to_string()).as_deref(), Some(good));
        }
        for bad in ["", "a b", "ä", "a/b", "a=b", "a\n", "\u{202e}a", &"x".repeat(65)] {
            assert_eq!(Name::new(bad), None, "{bad:?}");
        }
        assert!(Name::of_field("timeout_s").is_some() && Name::of_field("A1_").is_some());
        assert!(Name::of_field("a-b").is_none() && Name::of_field("a.b").is_none());
    }

    #[test]
    fn a_message_shows_only_safe_names_and_suggests_the_intended_one() {
        let unknown = |typed| Unknown { what: "flag", dashes: "--", typed, ..Unknown::default() };
        let known = || ["agent", "model"].into_iter();
        assert_eq!(unknown("agnt").message(known(), "See help."), "Unknown flag --agnt. Did you mean --agent?");
        assert_eq!(unknown("zzz").message(known(), "See help."), "Unknown flag --zzz. See help.");
        assert_eq!(unknown("a gent").message(known(), "See help."), "Unknown flag. Did you mean --agent?");
        assert_eq!(unknown(&"agent".repeat(99)).message(known(), ""), "Unknown flag.");
        let placed = Unknown { what: "key", typed: "modle", place: " in f.json, line 3", ..Unknown::default() };
        assert_eq!(placed.message(known(), ""), "Unknown key modle in f.json, line 3. Did you mean model?");
    }

    #[test]
    fn words_are_joined_as_a_choice() {
        assert_eq!(
            (either(&["a"]), either(&["a", "b"]), either(&["a", "b", "c"])),
            ("a".into(), "a or b".into(), "a, b or c".into())
        );
    }
}

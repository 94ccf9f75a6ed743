//! Names in messages: how a name that a user typed is shown, and which known name the user probably meant.

use crate::redact::{MASK, Redactor};

/// The maximum length of a name that is shown or compared. All known names are shorter.
const LONGEST: usize = 64;

/// A typed value that may be shown, because it looks like a name: 1 to 64 ASCII letters, digits, `-`, `_` and `.`.
/// `None`: it may not be shown.
pub(crate) fn plain_name(text: &str) -> Option<&str> {
    ((1..=LONGEST).contains(&text.len()) && text.chars().all(is_plain)).then_some(text)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The name of a field, key, flag or variable as messages show it: its first 64 characters, with `?` for every
/// character that a [`plain_name`] may not have. Redacts first, because a secret that lost a character would no longer
/// be found.
pub(crate) fn shown(name: &str, redactor: &Redactor) -> String {
    if let Some(name) = plain_name(name) {
        return name.to_owned();
    }
    if name.is_empty() {
        return "\"\"".to_owned();
    }
    let cut: String = redactor.redact_uncleaned(name).chars().take(LONGEST).collect();
    let plain = |part: &str| part.replace(|c| !is_plain(c), "?");
    cut.split(MASK).map(plain).collect::<Vec<_>>().join(MASK)
}

/// The text in which a name was expected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Typed<'a> {
    /// The name of a flag or key. It is always [`shown`].
    Name(&'a str),
    /// Such as a command or an agent. Only a [`plain_name`] is shown, because other text could be a misplaced prompt.
    Value(&'a str),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown<'a> {
    /// Such as `flag` or `key`.
    pub what: &'a str,
    /// The dashes in front of the name and of the known names.
    pub dashes: &'a str,
    /// Without its dashes.
    pub typed: Typed<'a>,
    /// The place where the name was read, after a space: ` in FILE, line 3`.
    pub place: &'a str,
}

impl Unknown<'_> {
    /// The message: the name, and the closest of the `known` names. `otherwise`: the sentence if none is close.
    pub(crate) fn message<'k>(&self, known: impl Iterator<Item = &'k str>, otherwise: &str) -> String {
        let Unknown { what, dashes, typed, place } = self;
        let (typed, name) = match typed {
            Typed::Name(typed) => (typed, Some(shown(typed, &Redactor::new()))),
            Typed::Value(typed) => (typed, plain_name(typed).map(str::to_owned)),
        };
        let shown = name.map(|name| format!(" {dashes}{name}")).unwrap_or_default();
        let meant = nearest(typed, known).map(|name| format!("Did you mean {dashes}{name}?"));
        format!("Unknown {what}{shown}{place}. {}", meant.as_deref().unwrap_or(otherwise)).trim_end().to_owned()
    }
}

/// Begins with a space. Empty if none is close.
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

/// The closest name in `known` that differs in at most this number of letters.
pub(crate) fn within<'a>(letters: usize, typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Each character that only one of them has is a difference. Most names end here, at a fraction of the cost.
    let may_be_near = |name: &&str| typed.chars().filter(|letter| !name.contains(*letter)).nth(letters).is_none();
    let near = known.filter(|name| typed.len() <= LONGEST && may_be_near(name) && distance(typed, name) <= letters);
    near.min_by_key(|name| distance(typed, name))
}

/// `a, b or c`.
pub(crate) fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// A permutation of the characters counts as one change.
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
    use super::{Typed, Unknown, either, plain_name, shown};
    use crate::redact::Redactor;

    #[test]
    fn only_a_plain_short_name_is_shown() {
        for good in ["a", "timeot_s", "agents.x.comand", "--flag", &"x".repeat(64)] {
            assert_eq!(plain_name(good), Some(good));
        }
        for bad in ["", "a b", "ä", "a/b", "a=b", "a\n", "\u{202e}a", &"x".repeat(65)] {
            assert_eq!(plain_name(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn any_name_is_shown_by_its_first_64_characters_without_special_ones() {
        let token = format!("ghp_{}", "Ab1".repeat(12));
        let mut redactor = Redactor::new();
        redactor.add("pass word 9!");
        for (name, wanted) in [
            ("max-turns", "max-turns"),
            ("a.b_c", "a.b_c"),
            ("", "\"\""),
            ("a b\n\u{202e}é/", "a?b????"),
            (&"x".repeat(65), &"x".repeat(64)),
            (&"é".repeat(65), &"?".repeat(64)),
            (&format!("my {token}"), "my?[redacted]"),
            ("my pass word 9!", "my?[redacted]"),
            (&format!("{}{}", "-".repeat(60), token), &format!("{}?red", "-".repeat(60))),
        ] {
            assert_eq!(shown(name, &redactor), wanted, "{name}");
        }
    }

    #[test]
    fn a_message_shows_only_safe_names_and_suggests_the_intended_one() {
        let unknown = |typed| Unknown { what: "flag", dashes: "--", typed: Typed::Name(typed), place: "" };
        let known = || ["agent", "model"].into_iter();
        assert_eq!(unknown("agnt").message(known(), "See help."), "Unknown flag --agnt. Did you mean --agent?");
        assert_eq!(unknown("zzz").message(known(), "See help."), "Unknown flag --zzz. See help.");
        assert_eq!(unknown("a gent").message(known(), "See help."), "Unknown flag --a?gent. Did you mean --agent?");
        let long = format!("Unknown flag --{}.", "agent".repeat(99).split_at(64).0);
        assert_eq!(unknown(&"agent".repeat(99)).message(known(), ""), long);
        let (what, place, dashes) = ("key", " in f.json, line 3", "");
        let placed = Unknown { what, dashes, typed: Typed::Name("modle"), place };
        assert_eq!(placed.message(known(), ""), "Unknown key modle in f.json, line 3. Did you mean model?");
        let value = |typed| Unknown { what: "agent", dashes: "", typed: Typed::Value(typed), place: "" };
        assert_eq!(value("modle").message(known(), ""), "Unknown agent modle. Did you mean model?");
        assert_eq!(value("fix it").message(known(), "See help."), "Unknown agent. See help.");
    }

    #[test]
    fn words_are_joined_as_a_choice() {
        assert_eq!(
            (either(&["a"]), either(&["a", "b"]), either(&["a", "b", "c"])),
            ("a".into(), "a or b".into(), "a, b or c".into())
        );
    }
}

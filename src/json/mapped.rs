//! Changes the strings of a JSON text.

use super::decode::unescape;
use super::put_string;
use super::scan::literal_len;
use std::borrow::Cow;
use std::collections::HashMap;

/// Passes every string that is a value, never a key, through `change`. Keeps numbers and the order of keys, and drops
/// white space between tokens. `raw` must be valid JSON.
pub fn map_strings(raw: &str, change: &mut dyn FnMut(&str) -> String) -> String {
    mapped(raw, &mut KeyChange::Never, &mut |text| change(text).into())
}

/// A function that changes a string, or returns it borrowed if it stays the same.
pub type Change<'c> = &'c mut dyn for<'a> FnMut(&'a str) -> Cow<'a, str>;

/// Like [`map_strings`], but keys pass through `change` too, and a string that stays the same may keep its escapes.
/// Distinct keys of one object stay distinct: if `change` makes some of them equal, all but the first get a number.
pub fn map_keys_and_strings(raw: &str, change: Change<'_>) -> String {
    // Usually no key changes, and the keys need not be tracked.
    let mut wanted = KeyChange::Wanted(false);
    let out = mapped(raw, &mut wanted, change);
    match wanted {
        KeyChange::Wanted(true) => mapped(raw, &mut KeyChange::Tracked(Keys::default()), change),
        KeyChange::Wanted(false) | KeyChange::Never | KeyChange::Tracked(_) => out,
    }
}

enum KeyChange {
    /// Keys do not pass through the change.
    Never,
    /// Keys stay as they are, but the value records whether a key would change.
    Wanted(bool),
    Tracked(Keys),
}

fn mapped(raw: &str, keys: &mut KeyChange, change: Change<'_>) -> String {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(first) = rest.bytes().next() {
        if first != b'"' {
            if !matches!(first, b' ' | b'\t' | b'\r' | b'\n') {
                out.push(first);
            }
            if let KeyChange::Tracked(keys) = keys {
                keys.pass(first);
            }
            rest = &rest[1..];
            continue;
        }
        let (literal, after) = rest.split_at(literal_len(rest));
        let text = unescape(literal.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default());
        if after.trim_start().starts_with(':') {
            match keys {
                KeyChange::Never => put_string(&text, &mut out),
                KeyChange::Wanted(wanted) => {
                    *wanted |= change(&text) != text;
                    put_string(&text, &mut out);
                }
                KeyChange::Tracked(keys) => put_string(&keys.changed(text.into_owned(), change), &mut out),
            }
        } else {
            let changed = change(&text);
            // Half a surrogate pair has no other form than its escape.
            if matches!(changed, Cow::Borrowed(same) if same == text) && is_safe(literal) {
                out.extend_from_slice(literal.as_bytes());
            } else {
                put_string(&changed, &mut out);
            }
        }
        rest = after;
    }
    String::from_utf8(out).unwrap_or_default()
}

fn is_safe(literal: &str) -> bool {
    literal.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The keys of the objects around the current position, the innermost object last.
#[derive(Default)]
struct Keys(Vec<ObjectKeys>);

#[derive(Default)]
struct ObjectKeys {
    /// The new name of each key.
    changed: HashMap<String, String>,
    /// The names in use, each with the last number that was appended to it.
    written: HashMap<String, usize>,
}

impl Keys {
    fn pass(&mut self, character: u8) {
        match character {
            b'{' => self.0.push(ObjectKeys::default()),
            b'}' => drop(self.0.pop()),
            _ => {}
        }
    }

    fn changed(&mut self, key: String, change: Change<'_>) -> String {
        let wanted = change(&key).into_owned();
        let Some(ObjectKeys { changed, written }) = self.0.last_mut() else { return wanted };
        if let Some(same) = changed.get(&key) {
            return same.clone();
        }
        let mut number = written.get(&wanted).copied().unwrap_or(0);
        let mut name = wanted.clone();
        while written.contains_key(&name) {
            number = number.max(1) + 1;
            name = format!("{wanted} {number}");
        }
        written.insert(wanted, number);
        written.entry(name.clone()).or_default();
        changed.insert(key, name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::{map_keys_and_strings, map_strings};
    use crate::json::Fields;
    use std::collections::HashSet;

    #[test]
    fn map_strings_keeps_numbers_order_and_keys() {
        let raw = "{ \"b\" : 1.50e3 , \"a\":[\"x\\n\", {\"x\":\"\\ud800\"}], \"n\":123456789012345678901234 }";
        let out = map_strings(raw, &mut |s| s.replace('x', "y"));
        assert_eq!(out, "{\"b\":1.50e3,\"a\":[\"y\\n\",{\"x\":\"\u{fffd}\"}],\"n\":123456789012345678901234}");
    }

    #[test]
    fn keys_that_become_equal_get_numbers() {
        let raw = r#"{"x1":{"x1":"x"},"x 2":["x3"],"x2":0,"x1":1,"a":{},"x3":2,"x":[{"x":"x9"}]}"#;
        let out = map_keys_and_strings(raw, &mut |s| s.trim_end_matches(|c: char| c.is_ascii_digit()).into());
        assert_eq!(out, r#"{"x":{"x":"x"},"x ":["x"],"x 2":0,"x":1,"a":{},"x 3":2,"x 4":[{"x":"x"}]}"#);
    }

    #[test]
    fn many_keys_that_become_equal_take_linear_time() {
        let fields: Vec<String> = (0..200_000).map(|n| format!("\"k{n}\":{n}")).collect();
        let out = map_keys_and_strings(&format!("{{{}}}", fields.join(",")), &mut |_| "k".into());
        assert!(out.ends_with("\"k 200000\":199999}"));
        assert_eq!(Fields::parse(&out).unwrap().iter().map(|(key, _)| key).collect::<HashSet<_>>().len(), 200_000);
    }
}

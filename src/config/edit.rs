//! Edits of one value in the text of a JSON object. Everything else stays as written: unknown keys, order, blanks.

use crate::json::{Fields, to_line};
use serde_json::value::RawValue;
use std::ops::Range;

const INDENT: &str = "  ";

/// `value`: JSON. Creates missing objects on the path. `None`: a part of the path is not an object.
pub(super) fn set(text: &str, path: &[&str], value: &str) -> Option<String> {
    set_at(text, 0, path, value)
}

fn set_at(object: &str, depth: usize, path: &[&str], value: &str) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let fields = Fields::parse(object)?;
    let made = |old: Option<&str>| match rest {
        [] => Some(value.to_owned()),
        rest => set_at(old.unwrap_or("{}"), depth + 1, rest, value),
    };
    if let Some(old) = fields.get(first) {
        let at = place(object, old);
        return Some(format!("{}{}{}", &object[..at.start], made(Some(old.get()))?, &object[at.end..]));
    }
    let pair = format!("{}{}: {}", INDENT.repeat(depth + 1), to_line(first), made(None)?);
    Some(match fields.iter().last() {
        Some((_, last)) => {
            let end = place(object, last).end;
            format!("{},\n{pair}{}", &object[..end], &object[end..])
        }
        None => {
            let (start, end) = (object.find('{')?, object.rfind('}')?);
            format!("{}{{\n{pair}\n{}}}{}", &object[..start], INDENT.repeat(depth), &object[end + 1..])
        }
    })
}

/// `None`: the path has no value.
pub(super) fn unset(text: &str, path: &[&str]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let fields = Fields::parse(text)?;
    if !rest.is_empty() {
        let old = fields.get(first)?;
        let at = place(text, old);
        return Some(format!("{}{}{}", &text[..at.start], unset(old.get(), rest)?, &text[at.end..]));
    }
    let pairs: Vec<(&str, &RawValue)> = fields.iter().collect();
    let index = pairs.iter().rposition(|(key, _)| key == first)?;
    let end = place(text, pairs[index].1).end;
    let cut = match (index.checked_sub(1), pairs.get(index + 1)) {
        // From the end of the previous value, including the comma.
        (Some(before), _) => place(text, pairs[before].1).end..end,
        // Through the comma after the value; the blanks before the next key stay.
        (None, Some(_)) => text.find('{')? + 1..end + text[end..].find(',')? + 1,
        (None, None) => text.find('{')? + 1..text.rfind('}')?,
    };
    let left = format!("{}{}", &text[..cut.start], &text[cut.end..]);
    // A repeated key must be removed each time.
    Some(unset(&left, path).unwrap_or(left))
}

/// The position of a value in the text from which it was read.
pub(super) fn place(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + value.get().len()
}

#[cfg(test)]
mod tests {
    use super::{set, unset};

    #[test]
    fn only_the_value_changes() {
        let text = "{ \"b\" : 1,\n\n    \"own\":{\"x\":[1, 2]}, \"a\":\t\"old\"}\n";
        let changed = set(text, &["a"], "\"new\"").unwrap();
        assert_eq!(changed, text.replace("old", "new"));
        assert_eq!(set(text, &["own", "x"], "3").unwrap(), text.replace("[1, 2]", "3"));
        assert_eq!(unset(&set(text, &["c"], "1").unwrap(), &["c"]).unwrap(), text);
    }

    #[test]
    fn new_keys_come_last_and_objects_are_made() {
        let one = set("{}\n", &["debug", "enabled"], "true").unwrap();
        assert_eq!(one, "{\n  \"debug\": {\n    \"enabled\": true\n  }\n}\n");
        let two = set(&one, &["debug", "log_dir"], "\"x\"").unwrap();
        assert_eq!(two, "{\n  \"debug\": {\n    \"enabled\": true,\n    \"log_dir\": \"x\"\n  }\n}\n");
        assert_eq!(unset(&two, &["debug", "enabled"]).unwrap(), "{\n  \"debug\": {\n    \"log_dir\": \"x\"\n  }\n}\n");
        assert_eq!(unset(&two, &["debug"]).unwrap(), "{}\n");
    }

    #[test]
    fn a_value_that_is_not_an_object_stays_unchanged() {
        assert_eq!(set("{\"debug\":1}", &["debug", "enabled"], "true"), None);
        assert_eq!(unset("{\"debug\":1}", &["debug", "enabled"]), None);
        assert_eq!(unset("{\"a\":1}", &["b"]), None);
    }

    #[test]
    fn a_repeated_key_is_removed_each_time() {
        assert_eq!(unset("{\"a\":1,\"b\":\"}\",\"a\":{\"a\":2}}", &["a"]).unwrap(), "{\"b\":\"}\"}");
    }
}

//! The detail of a permission question: the action and every other field of the tool's input, because the user approves
//! all of them.

use crate::json::{Object, Raw, to_line};

/// The field with the model's description of a call, which does not change the call.
const PROSE: &str = "description";

pub(super) fn with_rest(action: &str, input: &Object<'_>, shown: &[&str]) -> String {
    let is_shown = |name: &str, value: Raw<'_>| (name == PROSE || shown.contains(&name)) && value.is_string();
    join(action, rest(input, is_shown))
}

/// A line for each field that is not shown: its name, and its value as JSON. `is_shown` gets each field's name and value,
/// because a look-up per field would take quadratic time.
pub(super) fn rest<'a>(input: &Object<'a>, is_shown: impl Fn(&str, Raw<'a>) -> bool) -> Vec<String> {
    let hidden = input.iter().filter(|(name, value)| value.get() != "null" && !is_shown(name, *value));
    // A name with a line break could look like two fields.
    hidden.map(|(name, value)| format!("{}: {}", to_line(&name).trim_matches('"'), value.get())).collect()
}

/// Joins an action and the lines of the fields that it does not show, the shortest first.
pub(super) fn join(action: &str, mut fields: Vec<String>) -> String {
    if fields.is_empty() {
        return action.to_owned();
    }
    fields.sort_by_key(String::len);
    let action = action.trim_end_matches('\n');
    let lines = std::iter::once(action).chain(fields.iter().map(String::as_str));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::with_rest;
    use crate::json::Object;
    use serde_json::json;

    fn detail(action: &str, input: &serde_json::Value, shown: &[&str]) -> String {
        with_rest(action, &Object::parse(&input.to_string()).unwrap(), shown)
    }

    #[test]
    fn fields_that_the_action_does_not_show_are_listed() {
        for (input, wanted) in [
            (json!({"command": "npm test", "description": "Run the tests", "n": null}), "npm test"),
            (json!({"command": "npm test", "run_in_background": true}), "npm test\nrun_in_background: true"),
            (json!({"command": "npm test", "timeout": 5, "cwd": "/x\ny"}), "npm test\ntimeout: 5\ncwd: \"/x\\ny\""),
            (json!({"command": "npm test", "a\nb": {"c": [1]}}), "npm test\na\\nb: {\"c\":[1]}"),
        ] {
            assert_eq!(detail("npm test", &input, &["command"]), wanted);
        }
        assert_eq!(detail("", &json!({"command": ["rm", "a"]}), &["command"]), "command: [\"rm\",\"a\"]");
        assert_eq!(detail("+a\n", &json!({}), &[]), "+a\n");
    }
}

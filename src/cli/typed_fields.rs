//! Fields of run.start in the forms that a person types in a flag, a variable or `config set`: JSON, plain text,
//! policies as pairs, MCP servers in the format of other programs, and `@FILE`.

use crate::json::to_line;
use crate::protocol::fields::Options;
use crate::protocol::mcp_server::{EXPECTED, SERVERS, by_name};
use crate::protocol::read::Problem;
use crate::protocol::words::Category;
use serde_json::value::{RawValue, to_raw_value};
use std::path::Path;

/// The fields that a person may also write in a shorter form, or as `@FILE`.
const PERMISSIONS: &str = "permissions";
const MCP_SERVERS: &str = "mcp_servers";
const OUTPUT_SCHEMA: &str = "output_schema";

/// The file that `@FILE` names, for a field that accepts one.
pub fn file<'a>(field: &str, text: &'a str) -> Option<&'a Path> {
    let path = text.strip_prefix('@').filter(|path| !path.is_empty())?;
    matches!(field, MCP_SERVERS | OUTPUT_SCHEMA).then(|| Path::new(path))
}

/// Error: the mistake, as the rest of a sentence about the value.
pub fn value(field: &str, text: &str) -> Result<Box<RawValue>, String> {
    let fits = |raw: Box<RawValue>| match Options::default().set(field, &raw) {
        Ok(()) => Ok(raw),
        Err(problem) => Err(clause(field, &problem)),
    };
    let special = match field {
        PERMISSIONS => policies(text),
        MCP_SERVERS => by_name(text)?,
        _ => None,
    };
    if let Some(raw) = special {
        return fits(raw);
    }
    let plain = || to_raw_value(text).map_err(|_| "must be text".to_owned()).and_then(fits);
    match serde_json::from_str::<Box<RawValue>>(text) {
        // A text may look like JSON, such as a model named 12.
        Ok(raw) => fits(raw).or_else(|why| plain().map_err(|_| why)),
        Err(_) => plain(),
    }
}

/// The mistake in a field's typed text, as the rest of a sentence about it.
pub fn clause(field: &str, problem: &Problem) -> String {
    match (problem, field) {
        (Problem::Field { .. }, PERMISSIONS) => {
            let categories: Vec<&str> = Category::ALL.iter().map(|category| category.word()).collect();
            let categories = categories.join(", ");
            format!(
                "must be ask, allow, deny or read-only, or pairs such as read=allow,*=deny. The categories are {categories}, and * for the rest"
            )
        }
        (Problem::Field { expected: SERVERS, .. }, MCP_SERVERS) => EXPECTED.into(),
        _ => problem.clause(),
    }
}

/// Converts `a=x,b=y` to an object. Keeps a repeated name, so that the reader of the field refuses it.
fn policies(text: &str) -> Option<Box<RawValue>> {
    let pairs: Option<Vec<(&str, &str)>> = text.split(',').map(|pair| pair.split_once('=')).collect();
    let pairs = pairs?.into_iter().map(|(name, word)| format!("{}:{}", to_line(&name.trim()), to_line(&word.trim())));
    RawValue::from_string(format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))).ok()
}

#[cfg(test)]
mod tests {
    use super::{file, value};
    use std::path::Path;

    fn json(field: &str, text: &str) -> String {
        value(field, text).unwrap().get().to_owned()
    }

    #[test]
    fn text_that_is_not_valid_json_for_the_field_is_used_unchanged() {
        for (field, text, wanted) in [
            ("model", "12", "\"12\""),
            ("model", "a\"b", "\"a\\\"b\""),
            ("timeout_s", "12", "12"),
            ("permissions", "deny", "\"deny\""),
            ("permissions", r#"{"edit":"deny"}"#, r#"{"edit":"deny"}"#),
            ("permissions", "read=allow, edit = ask,*=deny", r#"{"read":"allow","edit":"ask","*":"deny"}"#),
        ] {
            assert_eq!(json(field, text), wanted, "{text}");
        }
    }

    #[test]
    fn servers_may_be_an_object_by_name() {
        let text =
            r#"{"mcpServers":{"a":{"type":"stdio","command":"x","args":["1"]},"b":{"command":"y","env":{"K":"v"}}}}"#;
        let list = r#"[{"name":"a","command":"x","args":["1"]},{"name":"b","command":"y","env":{"K":"v"}}]"#;
        assert_eq!(json("mcp_servers", text), list);
        assert_eq!(json("mcp_servers", list), list);
        assert_eq!(json("mcp_servers", r#"{"mcpServers":{}}"#), "[]");
        for (text, why) in [
            (r#"{"mcpServers":{"a":{"command":"x"},"a":{"command":"private"}}}"#, "repeats a key"),
            (r#"{"mcpServers":{"a":{"command":"x","command":"private"}}}"#, "repeats a key"),
            (r#"{"mcpServers":{"a":"private"}}"#, "must be a list of"),
            (r#"{"mcpServers":["private"]}"#, "must be a list of"),
            (r#"{"mcpServers":{"a":{"command":7731}}}"#, "must be a list of"),
            (r#"{"servers":{}}"#, "must be a list of"),
        ] {
            let said = value("mcp_servers", text).unwrap_err();
            assert!(said.contains(why) && !said.contains("private") && !said.contains("7731"), "{text}: {said}");
        }
    }

    #[test]
    fn errors_do_not_show_the_value() {
        for (field, text, why) in [
            ("timeout_s", "-7731", "must be a number of seconds above 0"),
            ("permissions", "read=allow,private", "must be ask, allow, deny or read-only, or pairs"),
            ("permissions", "private=allow", "must be ask, allow, deny or read-only, or pairs"),
            ("permissions", "read=allow,read=deny", "repeats a key"),
            ("max_turns", "null", "must be a whole number"),
        ] {
            let said = value(field, text).unwrap_err();
            assert!(said.contains(why) && !said.contains("private") && !said.contains("7731"), "{text}: {said}");
        }
    }

    #[test]
    fn only_some_fields_accept_a_file() {
        assert_eq!(file("mcp_servers", "@a/b.json"), Some(Path::new("a/b.json")));
        assert_eq!(file("output_schema", "@x"), Some(Path::new("x")));
        assert_eq!((file("model", "@x"), file("mcp_servers", "@"), file("mcp_servers", "x")), (None, None, None));
    }
}

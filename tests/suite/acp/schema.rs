//! The published schema of the Agent Client Protocol, version 1, and a check of messages against it.
//!
//! `schema.json` is `schema/v1/schema.json` of the npm package `@agentclientprotocol/sdk` 2.4.0 (Apache License 2.0),
//! without its titles and descriptions. Beyond the schema, a key that it does not know is a mistake.

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("schema.json")).expect("JSON"));

/// Checks a value against a definition.
#[track_caller]
pub(super) fn check(definition: &str, value: &Value) {
    let schema = &SCHEMA["$defs"][definition];
    assert!(schema.is_object(), "the schema lacks {definition}");
    if let Err(wrong) = whole(schema, value) {
        panic!("{definition}: {wrong}\n{value}");
    }
}

/// The keys of the value that a schema knows. Error: the value does not fit.
type Known = Result<BTreeSet<String>, String>;

/// Checks a value, which may only have known keys.
#[track_caller]
fn whole(schema: &Value, value: &Value) -> Result<(), String> {
    let known = fits(schema, value)?;
    let keys = value.as_object().into_iter().flat_map(|object| object.keys());
    // Extensions have a key of their own.
    let unknown: Vec<&String> = keys.filter(|key| *key != "_meta" && !known.contains(*key)).collect();
    if unknown.is_empty() || is_open(schema) { Ok(()) } else { Err(format!("unknown keys {unknown:?}")) }
}

/// Whether any object fits.
#[track_caller]
fn is_open(schema: &Value) -> bool {
    let object = schema.as_object().expect("a schema");
    object.get("additionalProperties").is_some()
        || !["properties", "$ref", "anyOf", "oneOf", "allOf"].iter().any(|key| object.contains_key(*key))
}

#[track_caller]
fn fits(schema: &Value, value: &Value) -> Known {
    let mut known = BTreeSet::new();
    let rules = schema.as_object().ok_or("a schema must be an object")?;
    for (rule, of) in rules {
        match rule.as_str() {
            "$ref" => {
                let name = of.as_str().and_then(|of| of.strip_prefix("#/$defs/")).expect("a local reference");
                known.extend(fits(&SCHEMA["$defs"][name], value)?);
            }
            "anyOf" | "oneOf" => {
                let branches: Vec<Known> = of.as_array().expect("a list").iter().map(|of| fits(of, value)).collect();
                let wrong = || format!("none of {branches:?}");
                known.extend(branches.iter().find_map(|known| known.clone().ok()).ok_or_else(wrong)?);
            }
            "allOf" => {
                for of in of.as_array().expect("a list") {
                    known.extend(fits(of, value)?);
                }
            }
            "type" => {
                let types = of.as_array().cloned().unwrap_or_else(|| vec![of.clone()]);
                let is = types.iter().any(|of| is_a(of.as_str().expect("a type"), value));
                is.then_some(()).ok_or_else(|| format!("{value} is no {of}"))?;
            }
            "not" => fits(of, value).is_err().then_some(()).ok_or_else(|| format!("{value} is {of}"))?,
            "const" => (of == value).then_some(()).ok_or_else(|| format!("{value} is not {of}"))?,
            "enum" => {
                let is = of.as_array().expect("a list").contains(value);
                is.then_some(()).ok_or_else(|| format!("{value} is not in {of}"))?;
            }
            "minimum" | "maximum" => {
                let (limit, number) = (of.as_f64().expect("a number"), value.as_f64().unwrap_or_default());
                let is = if rule == "minimum" { number >= limit } else { number <= limit };
                is.then_some(()).ok_or_else(|| format!("{value} exceeds {rule} {of}"))?;
            }
            "minLength" => {
                let long =
                    value.as_str().is_none_or(|text| text.chars().count() as u64 >= of.as_u64().expect("a number"));
                long.then_some(()).ok_or("too short")?;
            }
            "required" => {
                for key in of.as_array().expect("a list") {
                    let key = key.as_str().expect("a key");
                    value.get(key).ok_or_else(|| format!("{key} is missing"))?;
                }
            }
            "properties" => {
                for (key, of) in of.as_object().expect("an object") {
                    if let Some(value) = value.get(key) {
                        whole(of, value).map_err(|wrong| format!("{key}: {wrong}"))?;
                        known.insert(key.clone());
                    }
                }
            }
            "additionalProperties" if of.is_boolean() => {}
            "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    whole(of, value).map_err(|wrong| format!("{key}: {wrong}"))?;
                    known.insert(key.clone());
                }
            }
            "items" => {
                for value in value.as_array().into_iter().flatten() {
                    whole(of, value)?;
                }
            }
            // Hints for code generators, and formats of numbers.
            "default" | "format" | "discriminator" | "description" => {}
            rule if rule.starts_with("x-") => {}
            rule => panic!("the check does not know {rule}"),
        }
    }
    Ok(known)
}

#[track_caller]
fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        name => panic!("the check does not know the type {name}"),
    }
}

#[test]
fn the_check_finds_mistakes() {
    use serde_json::json;
    let fits = |definition: &str, value: &Value| whole(&SCHEMA["$defs"][definition], value).is_ok();
    assert!(fits("PromptResponse", &json!({"stopReason": "end_turn", "_meta": {"x": 1}})));
    for wrong in [json!({}), json!({"stopReason": "done"}), json!({"stopReason": "end_turn", "more": 1}), json!([])] {
        assert!(!fits("PromptResponse", &wrong), "{wrong}");
    }
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}});
    assert!(fits("SessionNotification", &json!({"sessionId": "s", "update": chunk})));
    let tool = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "run"});
    assert!(!fits("SessionNotification", &json!({"sessionId": "s", "update": tool})));
}

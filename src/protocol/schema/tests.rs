//! Tests of the check of results.

use super::OutputSchema;
use crate::protocol::limits::VIOLATIONS;
use crate::protocol::text::Json;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn schema(value: &Value) -> OutputSchema {
    OutputSchema::read(&raw(value)).unwrap_or_else(|why| panic!("{value}: {why}"))
}

/// The violations of a result, each as `PATH: KEYWORD`.
fn violations(of: &Value, result: &Value) -> Vec<String> {
    let keyword = |text: &str| text.rsplit_once('(').map_or(text, |(_, word)| word.trim_end_matches(')')).to_owned();
    let found = schema(of).check(&Json::from(raw(result)));
    found.iter().map(|one| format!("{}: {}", one.path.unredacted(), keyword(one.text.unredacted()))).collect()
}

#[test]
fn each_keyword_is_checked() {
    let tree = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties":
        {"left": {"$ref": "#/$defs/tree"}, "n": {"type": "integer"}}, "additionalProperties": false}}});
    for (of, good, bad, wanted) in [
        (json!({"type": "integer"}), json!(3.0), json!(3.5), ": type"),
        (json!({"type": ["string", "null"]}), json!(null), json!(1), ": type"),
        (json!({"properties": {"a": {"type": "string"}}}), json!({"b": 1}), json!({"a": 1}), "/a: type"),
        (json!({"required": ["a"]}), json!({"a": null}), json!({}), ": required"),
        (json!({"additionalProperties": false}), json!({}), json!({"a": 1}), ": additionalProperties"),
        (json!({"additionalProperties": {"type": "null"}}), json!({"a": null}), json!({"a/~": 1}), "/a~1~0: type"),
        (json!({"items": {"type": "number"}}), json!([1, 2.5]), json!([1, "2"]), "/1: type"),
        (json!({"enum": ["a", {"b": [1]}]}), json!({"b": [1.0]}), json!({"b": [2]}), ": enum"),
        (json!({"const": 1}), json!(1.0), json!("1"), ": const"),
        (
            json!({"anyOf": [{"type": "null"}, {"minimum": 3}]}),
            json!(4),
            json!(2),
            ": fits none of the schemas in anyOf",
        ),
        (tree, json!({"left": {"left": {"n": 1}}}), json!({"left": {"left": {"n": "x"}}}), "/left/left/n: type"),
        (json!({"pattern": "^a+$"}), json!("aa"), json!("ab"), ": pattern"),
        (json!({"format": "date"}), json!("2028-02-29"), json!("2026-02-29"), ": format"),
        (json!({"minLength": 2}), json!("éé"), json!("é"), ": minLength"),
        (json!({"maxLength": 1}), json!("é"), json!("éé"), ": maxLength"),
        (json!({"minItems": 1}), json!([0]), json!([]), ": minItems"),
        (json!({"maxItems": 1}), json!([0]), json!([0, 0]), ": maxItems"),
        (json!({"minProperties": 1}), json!({"a": 0}), json!({}), ": minProperties"),
        (json!({"maxProperties": 0}), json!({}), json!({"a": 0}), ": maxProperties"),
        (json!({"minimum": 1}), json!(1), json!(0.9), ": minimum"),
        (json!({"maximum": 1}), json!(1), json!(1.1), ": maximum"),
        (json!({"exclusiveMinimum": 1}), json!(1.1), json!(1), ": exclusiveMinimum"),
        (json!({"exclusiveMaximum": 1}), json!(0), json!(1), ": exclusiveMaximum"),
        (json!({"multipleOf": 0.1}), json!(0.3), json!(0.35), ": multipleOf"),
    ] {
        assert_eq!(violations(&of, &good), [""; 0], "{of}, {good}");
        assert_eq!(violations(&of, &bad), [wanted], "{of}, {bad}");
        assert_eq!(schema(&of).unchecked(), [""; 0]);
    }
}

#[test]
fn formats_are_checked() {
    for (name, good, bad) in [
        ("time", &["10:00:00Z", "23:59:60.5+01:30"][..], &["10:00:00", "24:00:00Z", "10:00:00.Z", "1:00:00Z", "Z"][..]),
        ("date-time", &["2026-02-20T10:00:00Z"], &["2026-02-20 10:00:00Z", "2026-02-20", "é"]),
        ("duration", &["P1Y2M3DT4H5M6S", "PT1S", "P2W"], &["P", "PT", "P1DT", "P1M1Y", "1D", "P1W1D", "PéD"]),
        ("email", &["a.b+c@example.org"], &["a", "a@", "@b", "a b@c", "a@b@c", "a@-b"]),
        ("hostname", &["a", "a-1.example"], &["", ".", "-a", "a_b", "a..b"]),
        ("ipv4", &["127.0.0.1"], &["127.0.0", "::1", "300.0.0.1"]),
        ("ipv6", &["::1"], &["127.0.0.1", ":::"]),
        ("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567", "123e4567-e89b-12d3-a456-42661417400g"]),
        ("uri", &["https://example.org/a?b#c", "urn:x"], &["example.org", "https:", "1a:b", "a: b"]),
    ] {
        let of = json!({"format": name});
        good.iter().for_each(|text| assert_eq!(violations(&of, &json!(text)), [""; 0], "{name}, {text}"));
        bad.iter().for_each(|text| assert_eq!(violations(&of, &json!(text)), [": format"], "{name}, {text}"));
    }
}

#[test]
fn what_is_not_a_schema_is_refused() {
    for (of, named) in [
        (json!([]), "object"),
        (json!({"type": "text"}), "type"),
        (json!({"type": []}), "type"),
        (json!({"properties": ["a"]}), "properties"),
        (json!({"properties": {"a": 1}}), "each schema"),
        (json!({"required": "a"}), "required"),
        (json!({"enum": "a"}), "enum"),
        (json!({"items": [{}]}), "each schema"),
        (json!({"anyOf": []}), "anyOf"),
        (json!({"minimum": "1"}), "minimum"),
        (json!({"maxLength": -1}), "lengths"),
        (json!({"multipleOf": 0}), "multipleOf"),
        (json!({"pattern": 1}), "pattern"),
        (json!({"format": 1}), "format"),
        (json!({"$ref": "#/$defs/nothing"}), "$ref"),
        (json!({"$ref": 1}), "$ref"),
        (json!({"$defs": []}), "$defs"),
        (json!({"$ref": "#"}), "refers to itself"),
        (json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}), "refers to itself"),
    ] {
        let why = OutputSchema::read(&raw(&of)).expect_err(&of.to_string());
        assert!(why.contains(named), "{of}: {why}");
    }
}

#[test]
fn keywords_that_are_not_checked_are_named() {
    let of = json!({"uniqueItems": true, "items": {"not": {}, "format": "iri"}, "pattern": "(?<=a)b", "$ref": "other.json",
        "title": "T", "a b": 1, "$dynamicRef": "#x"});
    assert_eq!(schema(&of).unchecked(), ["$dynamicRef", "$ref", "?", "format", "not", "pattern", "uniqueItems"]);
    let of = json!({"patternProperties": {"^x": {}}, "additionalProperties": false});
    assert_eq!(schema(&of).unchecked(), ["additionalProperties", "patternProperties"]);
    assert_eq!(violations(&of, &json!({"x": 1})), [""; 0]);
    let of = json!({"prefixItems": [{}], "items": {"type": "null"}});
    assert_eq!(violations(&of, &json!([1, null])), [""; 0]);
}

#[test]
fn a_schema_is_strict_if_each_object_requires_all_its_properties() {
    let object = |required: Value, more: Value| {
        json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": required, "additionalProperties": more})
    };
    assert!(schema(&object(json!(["a"]), json!(false))).is_strict());
    for loose in
        [object(json!([]), json!(false)), object(json!(["a"]), json!(true)), json!({"type": "object"}), json!({})]
    {
        assert!(!schema(&loose).is_strict(), "{loose}");
    }
    for (of, takes) in [
        (json!({"type": "array"}), false),
        (json!({"anyOf": [{"type": "object"}]}), false),
        (json!({"type": ["object"]}), true),
        (json!({"properties": {}}), true),
    ] {
        assert_eq!(schema(&of).takes_object(), takes, "{of}");
    }
    for (of, wanted) in [
        ("{ \"z\": 1,\n\"a\": {} }", r#"{"type":"object","z":1,"a":{}}"#),
        ("{ }", r#"{"type":"object"}"#),
        (r#"{"z":1,"type":"object"}"#, r#"{"z":1,"type":"object"}"#),
    ] {
        let schema = OutputSchema::read(&RawValue::from_string(of.trim().to_owned()).unwrap()).unwrap();
        assert_eq!(schema.of_objects().get(), wanted);
    }
}

#[test]
fn hostile_schemas_end_soon() {
    // Each schema tries the next one twice, so that the last would be tried 2^60 times.
    let mut twice: BTreeMap<String, Value> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"anyOf": [next, next]}))
        })
        .collect();
    twice.insert("d60".into(), json!(false));
    let of = json!({"$ref": "#/$defs/d0", "$defs": twice});
    assert_eq!(violations(&of, &json!(1)), [": takes too many steps to check: use a simpler schema"]);
    let mut chain: BTreeMap<String, Value> =
        (0..4000).map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
    chain.insert("d4000".into(), json!({"type": "null"}));
    let of = json!({"$ref": "#/$defs/d0", "$defs": chain});
    assert_eq!(violations(&of, &json!(null)), [""; 0]);
    assert_eq!(violations(&of, &json!(1)), [": type"]);
    let many = violations(&json!({"items": false}), &json!(vec![0; 1000]));
    assert_eq!(many.len(), VIOLATIONS);
}

/// Any JSON, with the keywords of a schema among its names.
fn anything() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        "type|properties|required|additionalProperties|items|enum|const|anyOf|\\$ref|\\$defs|pattern|format|minLength|a",
        "#|#/\\$defs/a|#/items|object|array|date|\\^a",
    ];
    let leaf = prop_oneof![
        words.clone().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(words.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_is_read_and_checked_without_a_panic(of in anything(), result in anything()) {
        if let Ok(schema) = OutputSchema::read(&raw(&of)) {
            let found = schema.check(&Json::from(raw(&result)));
            assert!(found.len() <= VIOLATIONS);
            assert_eq!(found, schema.check(&Json::from(raw(&result))));
        }
    }

    #[test]
    fn a_value_fits_the_schema_that_names_it_alone(value in anything()) {
        assert_eq!(violations(&json!({"const": value}), &value), [""; 0]);
        assert_eq!(violations(&json!({"enum": [1, value]}), &value), [""; 0]);
    }
}

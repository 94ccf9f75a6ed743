//! The memory that values take, by their length.

use crate::inside::play;
use crate::workload::{Dialect, Events};
use serde_json::value::RawValue;
use spektacular::protocol::inbound;
use spektacular::protocol::limits;
use spektacular::protocol::schema::OutputSchema;
use spektacular::protocol::text::Json;

/// The memory of a value, as a multiple of its length.
const TIMES: usize = 16;
/// The memory of a message in work, as a multiple of its size. The message itself is one of the four times.
const MESSAGE_TIMES: usize = 3;
/// The memory that everything takes beside.
const FIXED: usize = 2 << 20;

/// The largest amount of memory that `work` holds, in bytes.
fn peak(work: impl FnOnce()) -> usize {
    usize::try_from(allocation_counter::measure(work).bytes_max).unwrap()
}

/// A list of this element, of about this length.
fn list(element: &str, bytes: usize) -> String {
    format!("[{}]", vec![element; bytes / (element.len() + 1) - 1].join(","))
}

/// An object with numbered fields, of about this length.
fn fields(value: &str, bytes: usize) -> String {
    let one = |number: usize| format!("\"{number:06x}\":{value}");
    let all: Vec<String> = (0..bytes / (one(0).len() + 1) - 1).map(one).collect();
    format!("{{{}}}", all.join(","))
}

fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap()
}

/// Texts of about this length, of which some took 190 times as much.
fn texts(bytes: usize) -> [String; 6] {
    let text = "x".repeat(bytes - 2);
    [
        list("1", bytes),
        list("{}", bytes),
        list("{\"a\":1}", bytes),
        list("[[]]", bytes),
        fields("1", bytes),
        format!("\"{text}\""),
    ]
}

#[test]
fn a_schema_takes_little_memory_whether_it_is_read_or_refused() {
    // Within the limit, with the words around the texts.
    let bytes = limits::FIELD_BYTES - 100;
    let places = texts(bytes).into_iter().flat_map(|text| {
        ["enum", "const", "anyOf", "properties", "required", "$defs", "title"]
            .map(|keyword| format!("{{\"{keyword}\":{text}}}"))
    });
    let described = format!("{{\"description\":\"{}\"}}", "x".repeat(90));
    let schemas = places.chain([format!("{{\"properties\":{}}}", fields(&described, bytes))]);
    let mut read = 0;
    for schema in schemas.map(raw) {
        let peak = peak(|| read += usize::from(OutputSchema::read(&schema).is_ok()));
        let about = &schema.get()[..40];
        assert!(peak < TIMES * schema.get().len() + FIXED, "{about}: {} KiB", peak >> 10);
    }
    assert!(read > 10, "only {read} schemas are valid");
}

#[test]
fn a_structured_result_takes_little_memory() {
    let schemas = [
        r#"{"items":{"type":["integer","object","array"],"additionalProperties":{"type":"integer"}}}"#,
        r#"{"anyOf":[{"required":["zzz"]},{"items":{"enum":[2,{"b":1}]}},{"type":"null"}]}"#,
    ];
    for schema in schemas {
        let schema = OutputSchema::read(&raw(schema.to_owned())).unwrap();
        for result in texts(limits::RESULT_BYTES).map(|text| Json::from(raw(text))) {
            let peak = peak(|| drop(schema.check(&result)));
            let (text, about) = (result.unredacted(), &result.unredacted()[..20]);
            assert!(peak < TIMES * text.len() + FIXED, "{about}: {} KiB", peak >> 10);
        }
    }
}

#[test]
fn a_result_above_its_limit_does_not_fit() {
    let schema = OutputSchema::read(&raw("{}".to_owned())).unwrap();
    for (bytes, fits) in [(limits::RESULT_BYTES, true), (limits::RESULT_BYTES + 1, false)] {
        let found = schema.check(&Json::from(raw(format!("\"{}\"", "x".repeat(bytes - 2)))));
        assert_eq!(found.is_empty(), fits, "{bytes}: {found:?}");
    }
}

#[test]
fn a_long_message_of_an_agent_takes_the_memory_of_its_line() {
    const BYTES: usize = 10_000_000;
    let dialect = Dialect::Claude;
    let steps = dialect.script(&dialect.lines(Events::Messages(BYTES), 1));
    let peak = play(dialect, &steps, "", false).peak;
    assert!(peak < (BYTES * 5 / 4) as u64, "{} KiB", peak >> 10);
}

#[test]
fn a_run_start_takes_little_memory() {
    // An eighth of the limit: in a debug build, the whole takes minutes.
    let bytes = limits::INBOUND_LINE_BYTES / 8;
    let field = |name: &str, value: &str| format!(",\"{name}\":{value}");
    let names =
        ["add_dirs", "allowed_tools", "agent_args", "env_allow", "secrets", "mcp_servers", "output_schema", "env"];
    let mut payloads: Vec<String> = names.iter().map(|name| field(name, &list("\"a\"", bytes))).collect();
    payloads
        .extend(["env", "permissions", "metadata", "output_schema"].map(|name| field(name, &fields("\"a\"", bytes))));
    payloads.push(format!(",{}", fields("1", bytes).trim_matches(['{', '}'])));
    payloads.push(field("system_prompt", &format!("\"{}\"", "x".repeat(limits::PROMPT_BYTES))));
    for payload in payloads {
        let line = format!(r#"{{"v":"1","type":"run.start","payload":{{"prompt":"Go on"{payload}}}}}"#);
        let peak = peak(|| drop(inbound::parse(line.as_bytes())));
        assert!(peak < MESSAGE_TIMES * line.len() + FIXED, "{}: {} KiB", &line[50..90], peak >> 10);
    }
}

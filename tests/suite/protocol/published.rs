//! `protocol schema`, `types`, `examples` and the sections of the reference agree with the program: the files are generated
//! here from the declarations.

mod catalogue;
mod examples;
mod outline;
mod python;
mod schema;
mod typescript;

use crate::pages::page::{frames, hold, lines};
use crate::pages::reference::real;
use crate::playback::case;
use crate::support::Case;
use crate::support::schema::{Validator, check_frame};
use serde_json::{Value, json};
use spektacular::protocol::fields::FIELDS;
use spektacular::protocol::messages::{MESSAGES, ProgressKind, TYPES};
use spektacular::protocol::outbound::ProtocolVersion;
use spektacular::protocol::publish::{
    EXAMPLES, Language, MessageSet, REFERENCE, UnknownParts, schema, section, section_names, version,
};
use spektacular::protocol::request::Options;
use spektacular::protocol::workflow::WorkflowOptions;

#[track_caller]
fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The first sentences of each generated file.
fn about() -> [String; 2] {
    let ProtocolVersion { spektacular, .. } = ProtocolVersion::OURS;
    [
        format!("The spektacular protocol {}, from spektacular {spektacular}.", version()),
        "A later minor version may add frame types, kinds, fields and codes: ignore those that you do not know.".into(),
    ]
}

/// A change of what is published shows in these files.
#[test]
fn the_published_files_are_what_the_declarations_say() {
    let all = &MessageSet::All;
    for (name, committed, generated) in [
        ("schema.json", schema(all, UnknownParts::Allowed), schema::schema(all, UnknownParts::Allowed)),
        ("schema_strict.json", schema(all, UnknownParts::Refused), schema::schema(all, UnknownParts::Refused)),
        ("clients/spektacular-types.ts", Language::TypeScript.types().to_owned(), typescript::typescript()),
        ("clients/spektacular_types.py", Language::Python.types().to_owned(), python::python()),
        ("examples.jsonl", EXAMPLES.to_owned(), examples::examples()),
    ] {
        hold(&format!("src/protocol/publish/{name}"), &committed, &generated);
    }
}

#[test]
fn a_schema_of_some_messages_is_the_part_of_the_whole_that_they_reach() {
    let types = TYPES.iter().map(|kind| MessageSet::Type((*kind).to_owned()));
    for scope in types.chain([MessageSet::All, MessageSet::Inbound, MessageSet::Outbound]) {
        for unknown in [UnknownParts::Allowed, UnknownParts::Refused] {
            assert_eq!(schema(&scope, unknown), schema::schema(&scope, unknown), "{scope:?} {unknown:?}");
        }
    }
}

#[test]
fn descriptions_are_for_readers_of_any_language() {
    let schema = schema(&MessageSet::All, UnknownParts::Allowed);
    for text in [&schema, Language::TypeScript.types(), Language::Python.types()] {
        for word in ["`None`", "[`", "::", "`Some`"] {
            let line = text.lines().find(|line| line.contains(word) && !line.contains("json-schema"));
            assert_eq!(line, None, "{word} is a word of Rust");
        }
        assert_eq!(
            text.matches("From level full.").count(),
            6,
            "the kinds reasoning, commands and todo, and three fields of tool"
        );
    }
}

#[test]
fn golden_frames_and_examples_fit_the_schema() {
    let (open, whole) = (
        Validator::new(&MessageSet::Outbound, UnknownParts::Allowed),
        Validator::new(&MessageSet::All, UnknownParts::Allowed),
    );
    let inbound = Validator::new(&MessageSet::Inbound, UnknownParts::Allowed);
    let mut count = 0;
    for case in case::all() {
        for line in case.expected().lines() {
            let frame = parsed(&line.replace("[TS]", "2026-02-20T10:00:00.000Z"));
            let checked = check_frame(&frame).and_then(|()| open.check(&frame)).and_then(|()| whole.check(&frame));
            assert_eq!(checked, Ok(()), "{}: {line}", case.name);
            count += 1;
        }
    }
    assert!(count > 1000, "{count} frames");
    for line in real().into_iter().flat_map(|(most, least)| [most, least]).chain(frames()) {
        let frame = parsed(&line);
        assert_eq!(check_frame(&frame).and_then(|()| open.check(&frame)), Ok(()), "{line}");
    }
    for line in lines("json in") {
        let message = parsed(&line);
        assert_eq!(inbound.check(&message).and_then(|()| whole.check(&message)), Ok(()), "{line}");
    }
}

#[test]
fn examples_show_each_message_and_each_kind_once() {
    let (inbound, outbound) = (Validator::new(&MessageSet::Inbound, UnknownParts::Refused), check_frame);
    let mut forms: Vec<(String, String)> = Vec::new();
    for line in EXAMPLES.lines() {
        let message = parsed(line);
        let kind = message["type"].as_str().unwrap();
        let is_inbound = MESSAGES.iter().any(|message| message.name == kind);
        assert_eq!(if is_inbound { inbound.check(&message) } else { outbound(&message) }, Ok(()), "{line}");
        let keys: Vec<&str> = ["value", "declined", "value_from", "prompt", "end"].into_iter().collect();
        let key = keys.into_iter().find(|key| is_inbound && !message["payload"][*key].is_null());
        forms.push((kind.into(), message["payload"]["kind"].as_str().or(key).unwrap_or_default().into()));
    }
    let shown =
        |kind: &str, form: &str| forms.iter().filter(|(is, of)| is == kind && (of == form || form == "*")).count();
    for kind in TYPES {
        assert!(shown(kind, "*") > 0, "no example of {kind}");
    }
    for kind in ProgressKind::NAMES {
        assert_eq!(shown("run.progress", kind), 1, "{kind}");
    }
    for form in ["value", "declined", "value_from", "prompt", "end"] {
        assert_eq!(shown("run.input", form), 1, "{form}");
    }
    for (kind, count) in [("confirm", 1), ("select", 2), ("text", 1), ("secret", 1), ("file_path", 1)] {
        assert_eq!(shown("run.question", kind), count, "{kind}; one select is a permission");
    }
}

/// A reader of frames must accept the additions of later minor versions. A message must not have a field that this
/// version lacks.
#[test]
fn only_a_strict_schema_refuses_what_a_later_version_may_send() {
    let open = Validator::new(&MessageSet::Outbound, UnknownParts::Allowed);
    let frame = |kind: &str, payload: Value| json!({"v": "1", "id": "msg_1", "ts": "2026-02-20T10:00:00.000Z", "type": kind, "run_id": "r", "payload": payload});
    let progress = |payload: Value| frame("run.progress", payload);
    for later in [
        frame("run.paused", json!({"any": 1})),
        progress(json!({"kind": "weather", "text": "t", "degrees": 3})),
        progress(json!({"kind": "warning", "text": "t", "code": "new_code"})),
        progress(json!({"kind": "status", "text": "t", "status": "running", "since": 1})),
        progress(json!({"kind": "plan", "text": "t", "entries": [{"text": "a", "status": "pending", "note": "n"}]})),
    ] {
        assert_eq!(open.check(&later), Ok(()), "{later}");
        assert!(check_frame(&later).is_err(), "{later}");
    }
    // Version 1 has no other words in these places, and a later kind has a text too.
    for wrong in [
        progress(json!({"kind": "status", "text": "t", "status": "sleeping"})),
        progress(json!({"kind": "weather"})),
        json!({"v": "2", "id": "msg_1", "ts": "2026-02-20T10:00:00.000Z", "type": "run.paused", "run_id": "r", "payload": {}}),
    ] {
        assert!(open.check(&wrong).is_err(), "{wrong}");
    }
}

/// A change of a message.
enum Change {
    Set(&'static str, Value),
    Remove(&'static str),
    Rename(&'static str, &'static str),
}
use Change::{Remove, Rename, Set};

impl Change {
    #[track_caller]
    fn apply(&self, message: &mut Value) {
        let (Set(path, _) | Remove(path) | Rename(path, _)) = self;
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = message.pointer_mut(parent).unwrap_or_else(|| panic!("no {path}")).as_object_mut().unwrap();
        let old = parent.remove(key);
        match self {
            Set(_, value) => drop(parent.insert(key.into(), value.clone())),
            Remove(_) => assert!(old.is_some(), "no {path}"),
            Rename(_, name) => drop(parent.insert((*name).into(), old.unwrap_or_else(|| panic!("no {path}")))),
        }
    }
}

/// The first example of a type, and of a kind or with a key in its payload.
#[track_caller]
fn example(kind: &str, form: &str) -> Value {
    let all = lines("json in").into_iter().chain(lines("json out")).map(|line| parsed(&line));
    let fits = |message: &Value| {
        let payload = &message["payload"];
        let has_form = match &payload["kind"] {
            Value::String(word) => word == form,
            _ => payload.get(form).is_some(),
        };
        message["type"] == kind && (form.is_empty() || has_form)
    };
    all.into_iter().find(fits).unwrap_or_else(|| panic!("no example of {kind} {form}"))
}

#[track_caller]
fn refuses(refused: impl Fn(&Value) -> bool, mistakes: Vec<(&str, &str, Change)>) -> usize {
    for (kind, form, change) in &mistakes {
        let mut message = example(kind, form);
        assert!(!refused(&message), "{message}");
        change.apply(&mut message);
        assert!(refused(&message), "accepted: {message}");
    }
    mistakes.len()
}

#[test]
fn mistakes_in_messages_are_refused() {
    let inbound = Validator::new(&MessageSet::Inbound, UnknownParts::Allowed);
    let servers = |server: Value| Set("/payload/mcp_servers", json!([server]));
    let count = refuses(
        |message| inbound.check(message).is_err(),
        vec![
            ("run.start", "", Remove("/v")),
            ("run.start", "", Set("/v", json!(1))),
            ("run.start", "", Rename("/type", "kind")),
            ("run.start", "", Set("/type", json!("run.begin"))),
            ("run.start", "", Set("/id", json!(7))),
            ("run.start", "", Set("/id", json!("x".repeat(129)))),
            ("run.start", "", Set("/run_id", json!("a b"))),
            ("run.start", "", Remove("/payload")),
            ("run.start", "", Rename("/payload/prompt", "promt")),
            ("run.start", "", Set("/payload/prompt", json!(""))),
            ("run.start", "", Rename("/payload/timeout_s", "timeout")),
            ("run.start", "", Set("/payload/timeout_s", json!(0))),
            ("run.start", "", Set("/payload/timeout_s", json!("1800"))),
            ("run.start", "", Set("/payload/heartbeat_s", json!(-1))),
            ("run.start", "", Set("/payload/max_turns", json!(1.5))),
            ("run.start", "", Set("/payload/max_frame_bytes", json!(1024))),
            ("run.start", "", Set("/payload/max_frame_bytes", json!(67_108_865))),
            ("run.start", "", Set("/payload/permissions", json!("readonly"))),
            ("run.start", "", Set("/payload/permissions", json!({"write": "allow"}))),
            ("run.start", "", Set("/payload/permissions", json!({"edit": "yes"}))),
            ("run.start", "", Set("/payload/progress", json!("verbose"))),
            ("run.start", "", Set("/payload/interactive", json!("true"))),
            ("run.start", "", Set("/payload/env", json!({"1A": "b"}))),
            ("run.start", "", Set("/payload/env", json!({"A": 1}))),
            ("run.start", "", Set("/payload/env_allow", json!(["A*B"]))),
            ("run.start", "", Set("/payload/secrets", json!(["a", ""]))),
            ("run.start", "", Set("/payload/images", json!(vec!["a.png"; 21]))),
            ("run.start", "", Set("/payload/metadata", json!([1]))),
            ("run.start", "", servers(json!({"command": "x"}))),
            ("run.start", "", servers(json!({"name": "a", "command": "x", "url": "https://h"}))),
            ("run.start", "", servers(json!({"name": "a", "url": "ftp://h"}))),
            ("run.start", "", servers(json!({"name": "a", "url": "https://h", "transport": "ws"}))),
            ("run.start", "", Set("/payload/workflow", json!({"attempts": 11}))),
            ("run.start", "", Set("/payload/workflow", json!({"name": "A B"}))),
            ("run.input", "value", Rename("/payload/question_id", "id")),
            ("run.input", "value", Set("/payload/declined", json!(true))),
            ("run.input", "declined", Set("/payload/declined", json!(false))),
            ("run.input", "value_from", Set("/payload/value_from", json!({"env": "A", "file": "b"}))),
            ("run.input", "value_from", Set("/payload/value_from", json!("A"))),
            ("run.input", "prompt", Set("/payload/prompt", json!(""))),
            ("run.input", "prompt", Set("/payload/when", json!("soon"))),
            ("run.input", "prompt", Set("/payload/value", json!(1))),
            ("run.input", "end", Set("/payload/end", json!(false))),
            ("run.cancel", "", Rename("/payload/reason", "why")),
            ("run.cancel", "scope", Set("/payload/scope", json!("all"))),
        ],
    );
    assert!(count >= 40, "{count}");
}

#[test]
fn mistakes_in_frames_are_refused() {
    let open = Validator::new(&MessageSet::Outbound, UnknownParts::Allowed);
    refuses(
        |frame| open.check(frame).is_err() && check_frame(frame).is_err(),
        vec![
            ("run.started", "", Set("/ts", json!("2026-02-20T10:00:00Z"))),
            ("run.started", "", Set("/id", json!("msg_0"))),
            ("run.started", "", Remove("/run_id")),
            ("run.started", "", Rename("/payload/capabilities", "can")),
            ("run.started", "", Set("/payload/protocol/minor", json!("1"))),
            ("run.started", "", Remove("/payload/config/timeout_s")),
            ("run.progress", "text", Remove("/payload/text")),
            ("run.progress", "text", Set("/payload/withdrawn", json!(false))),
            ("run.progress", "tool", Set("/payload/state", json!("done"))),
            ("run.progress", "tool", Set("/payload/locations", json!([{"line": 1}]))),
            ("run.question", "select", Remove("/payload/multiple")),
            ("run.question", "select", Set("/payload/options", json!(["a"]))),
            ("run.question", "select", Set("/payload/kind", json!("choice"))),
            ("run.question", "select", Remove("/payload/required")),
            ("run.artifact", "", Set("/payload/size_bytes", json!(1.5))),
            ("run.completed", "", Remove("/payload/structured_output")),
            ("run.completed", "", Set("/payload/artifacts", json!(null))),
            ("run.completed", "", Set("/payload/usage/cost_usd", json!("0.1"))),
            ("run.failed", "", Set("/payload/retryable", json!(null))),
            ("run.failed", "", Set("/payload/code", json!(1))),
            ("run.cancelled", "", Set("/payload/source", json!("user"))),
        ],
    );
    // A reader may not refuse a field that it does not know, but a frame of this version may not have one.
    refuses(
        |frame| check_frame(frame).is_err(),
        vec![
            ("run.progress", "tool", Set("/payload/exitcode", json!(0))),
            ("run.question", "select", Set("/payload/allowOther", json!(true))),
            ("run.failed", "", Set("/payload/detail", json!({"httpStatus": 429}))),
            ("run.completed", "", Set("/payload/usage/tokens", json!(1))),
        ],
    );
}

/// The values that the program accepts for a field are those that the schema accepts.
#[test]
fn the_schema_of_run_start_accepts_what_the_program_accepts() {
    let inbound = Validator::new(&MessageSet::Inbound, UnknownParts::Allowed);
    let long = "x".repeat(1025);
    let mut values: Vec<Value> = ["", "a", "A", "a_1", "-a", "fail", "warn", "ask", "read-only", "full", "/x", &long]
        .into_iter()
        .flat_map(|text| [json!(text), json!([text]), json!({ "A": text }), json!({ "read": text })])
        .collect();
    values.extend([-1.0, 0.0, 0.5, 1.5].map(|number| json!(number)));
    values
        .extend([0, 1, 2, 10, 11, 16_383, 16_384, 67_108_864, 67_108_865, 1_000_000_000_000_000_i64].map(|n| json!(n)));
    values.extend([
        json!(true),
        json!(1e16),
        json!([]),
        json!({}),
        json!([1]),
        json!(["A*"]),
        json!(["*"]),
        json!(["A*B"]),
    ]);
    values.extend([
        json!({"1A": "b"}),
        json!({"*": "deny"}),
        json!({"rea": "ask"}),
        json!(vec!["a"; 20]),
        json!(vec!["a"; 21]),
    ]);
    values.push(json!([{"name": "a", "command": "b", "args": null}]));
    values.push(json!([{"name": "a", "url": "HTTP://h:1/p?q#f", "headers": {}}]));
    values
        .extend(["https://", "https://u@h", "https://:1", "https://h h"].map(|url| json!([{"name": "a", "url": url}])));
    let agree = |name: &str, value: &Value, accepts: bool, payload: Value| {
        let checked = inbound.check(&json!({"v": "1", "type": "run.start", "payload": payload}));
        assert_eq!(checked.is_ok(), accepts, "{name}: {value}: {checked:?}");
    };
    for value in &values {
        let raw = serde_json::value::to_raw_value(value).unwrap();
        for field in FIELDS {
            let accepts = Options::default().set(field.name, &raw).is_ok();
            // A pattern cannot describe a JSON Schema.
            if field.name != "output_schema" || accepts {
                let mut payload = json!({"prompt": "p"});
                payload[field.name] = value.clone();
                agree(field.name, value, accepts, payload);
            }
        }
        for name in WorkflowOptions::NAMES {
            let accepts = WorkflowOptions::default().set(name, &raw).is_ok();
            agree(name, value, accepts, json!({"prompt": "p", "workflow": {*name: value}}));
        }
    }
}

#[test]
fn a_section_is_found_by_its_heading_or_by_a_name_in_it() {
    let head = |name: &str| section(name).unwrap_or_else(|| panic!("no {name}")).lines().next().unwrap().to_owned();
    for (name, heading) in [
        ("changes", "## Changes"),
        ("Questions and answers", "## Questions and answers"),
        ("when-nobody-answers", "### When nobody answers"),
        // A heading wins over a field or kind of nearly its name.
        ("questions", "## Questions and answers"),
        ("conversation", "## Conversations"),
        ("permission", "## Permissions"),
        ("artifact", "## Artifacts"),
        ("secret", "## Secrets"),
        ("values", "### Values"),
        ("run.question", "### run.question"),
        ("run.failed", "### run.completed, run.failed, run.cancelled"),
        ("max_frame_bytes", "### run.start"),
        ("run.question.timeout_s", "### run.question"),
        ("rate_limited", "## Failure codes, exit codes"),
        ("exit codes", "## Failure codes, exit codes"),
        ("short_secret", "## Warning codes"),
        ("question_resolved", "### run.progress"),
        ("min_selected", "### Validation"),
    ] {
        assert_eq!(head(name), heading, "{name}");
    }
    let alone = section("run.start.max_turns").unwrap();
    let lines: Vec<&str> = alone.lines().collect();
    assert!(
        matches!(lines[..], ["### run.start", "", _, rule, row] if rule.starts_with("|---") && row.starts_with("| `max_turns` |")),
        "{alone}"
    );
    let whole = section("Conversations").unwrap();
    assert!(whole.contains("\n### At a terminal\n") && !whole.contains("\n## Failure codes"), "{whole}");
    assert!(
        section("timeout_s").unwrap().ends_with("\nSee also: run.question.\n"),
        "{}",
        section("timeout_s").unwrap()
    );
    let near = section("conversation").unwrap();
    assert!(near.contains("\n### At a terminal\n") && near.contains("\nSee also: run.start"), "{near}");
    assert_eq!(section("rate_limit"), None);
    for name in section_names() {
        assert!(
            section(name).is_some_and(|text| text.len() < REFERENCE.len())
                || REFERENCE.starts_with(&format!("# {name}\n"))
        );
    }
    // Everything that a message has leads to a section.
    let fields = FIELDS.iter().map(|field| field.name);
    for name in fields.chain(ProgressKind::NAMES.iter().copied()).chain(TYPES.iter().copied()) {
        assert!(section(name).is_some(), "{name}");
    }
}

#[test]
fn the_command_prints_what_its_words_and_flags_name() {
    let case = Case::new();
    let printed = |args: &[&str]| {
        let did = case.run(&[&["protocol"], args].concat());
        assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{args:?}");
        did.out
    };
    assert_eq!(printed(&["schema"]), schema(&MessageSet::All, UnknownParts::Allowed));
    assert_eq!(printed(&["schema", "--outbound", "--strict"]), schema(&MessageSet::Outbound, UnknownParts::Refused));
    assert_eq!(printed(&["types", "ts"]), Language::TypeScript.types());
    assert_eq!(printed(&["types", "python"]), Language::Python.types());
    assert_eq!(printed(&["examples"]), EXAMPLES);
    assert_eq!(printed(&["when", "nobody", "answers"]), section("When nobody answers").unwrap());
    assert_eq!(printed(&["version"]), "1.2\n");
    assert_eq!(
        parsed(&printed(&["version", "--output", "json"])),
        json!({"v": "1", "minor": 2, "spektacular": env!("CARGO_PKG_VERSION")})
    );
    for kind in TYPES {
        let one = parsed(&printed(&["schema", "--type", kind]));
        assert!(one["$defs"].as_object().unwrap().len() < 50, "{kind}");
        // The checks of frames use these too.
        assert!(one["$ref"].as_str().is_some_and(|name| one.pointer(&name[1..]).is_some()), "{one}");
    }
    for (args, meant) in [
        (&["run.qestion"][..], "Unknown section run.qestion. Did you mean run.question?"),
        (&["zzzz"], "Unknown section zzzz. Give a heading, a message, a kind, a field or a code"),
        (&["schema", "x"], "protocol schema takes no arguments."),
        (&["schema", "--type", "run.progres"], "Did you mean run.progress?"),
        (&["schema", "--inbound", "--type", "run.start"], "Give only one of --inbound, --outbound and --type."),
        (&["types"], "Missing language: ts or python."),
        (&["types", "pyton"], "The language must be ts or python. Did you mean python?"),
        (&["types", "ts", "python"], "Too many words: protocol types takes one language"),
    ] {
        let did = case.run(&[&["protocol"], args].concat());
        assert!(did.refused(2).contains(meant), "{args:?}: {}", did.err);
    }
}

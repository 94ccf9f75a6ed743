//! Tests of the lines in and the frames out: malformed and ignored lines, the order of checks, the length of frames.

use crate::length::by_length;
use crate::support;

use serde_json::{Value, json};
use spektacular::protocol::limits;
use support::agent::{Script, bash};
use support::{Case, Outcome, RUN, Session, run, start_line};

/// A value in every malformed line, which no output may contain.
const ECHO: &str = "zq-echo-7731";

fn depth(levels: usize) -> String {
    // The message is one level, and its payload is the second.
    let inner = levels - 2;
    let deep =
        format!("{}{}{}", r#"{"a":"#.repeat(inner - 1), format_args!("{{\"b\":\"{ECHO}\"}}"), "}".repeat(inner - 1));
    format!(r#"{{"v":"1","type":"run.other","payload":{{"x":{deep}}}}}"#)
}

/// Every kind of malformed line, in the protocol's order.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let head = r#"{"v":"1","type":"run.other""#;
    let mut rows: Vec<(&'static str, Vec<u8>)> = [
        ("no JSON", ECHO.to_owned()),
        ("an array", format!(r#"["1","run.other",{{"x":"{ECHO}"}}]"#)),
        ("a string", format!(r#""{ECHO}""#)),
        ("a number", "7731".to_owned()),
        ("null", "null".to_owned()),
        ("cut off", format!(r#"{head},"payload":{{"x":"{ECHO}"#)),
        ("two objects", format!(r#"{head},"x":"{ECHO}"}} {head}}}"#)),
        ("a trailing comma", format!(r#"{head},"x":"{ECHO}",}}"#)),
        ("not a number", format!(r#"{head},"x":NaN,"y":"{ECHO}"}}"#)),
        ("a leading zero", format!(r#"{head},"x":01,"y":"{ECHO}"}}"#)),
        ("single quotes", format!("{{'v':'1','type':'{ECHO}'}}")),
        ("a raw TAB in a string", format!("{head},\"x\":\"\t{ECHO}\"}}")),
        ("a raw NUL in a string", format!("{head},\"x\":\"\0{ECHO}\"}}")),
        ("a known key twice", format!(r#"{head},"v":"1","x":"{ECHO}"}}"#)),
        ("type twice", format!(r#"{head},"type":"{ECHO}"}}"#)),
        (
            "a known key twice in the payload",
            format!(r#"{{"v":"1","type":"run.cancel","payload":{{"reason":"{ECHO}","reason":"b"}}}}"#),
        ),
        ("type a number", format!(r#"{{"v":"1","type":5,"x":"{ECHO}"}}"#)),
        ("type null", format!(r#"{{"v":"1","type":null,"x":"{ECHO}"}}"#)),
        ("type missing", format!(r#"{{"v":"1","x":"{ECHO}"}}"#)),
        ("id a number", format!(r#"{head},"id":7731,"x":"{ECHO}"}}"#)),
        ("id null", format!(r#"{head},"id":null,"x":"{ECHO}"}}"#)),
        ("id too long", format!(r#"{head},"id":"{}"}}"#, ECHO.repeat(11))),
        ("run_id a number", format!(r#"{head},"run_id":7731}}"#)),
        ("payload an array", format!(r#"{head},"payload":["{ECHO}"]}}"#)),
        ("payload a string", format!(r#"{head},"payload":"{ECHO}"}}"#)),
        ("payload null", format!(r#"{head},"payload":null,"x":"{ECHO}"}}"#)),
        ("too deep", depth(200)),
        ("far too deep", depth(10_000)),
        ("only brackets", "[".repeat(100_000)),
    ]
    .into_iter()
    .map(|(name, line)| (name, line.into_bytes()))
    .collect();
    let mut bad = format!(r#"{head},"x":"{ECHO}"#).into_bytes();
    bad.extend_from_slice(b"\xff\xfe\"}");
    rows.push(("not UTF-8", bad));
    rows.push(("UTF-16", "{}".encode_utf16().flat_map(u16::to_be_bytes).collect()));
    rows
}

/// The reason by which an error refuses such a line.
fn reason(name: &str) -> &'static str {
    match name {
        "a known key twice" | "type twice" | "a known key twice in the payload" => "it has a key twice in one object",
        "too deep" | "far too deep" | "only brackets" => "it is nested deeper than 128 levels",
        name if name.starts_with("type ") => "its `type` must be a string",
        name if name.starts_with("id ") => "its `id` must be a string of at most 128 characters",
        name if name.starts_with("run_id ") => "its `run_id` must be a string",
        name if name.starts_with("payload ") => "its `payload` must be an object",
        _ => "it is not a JSON object in UTF-8",
    }
}

fn first_line(line: &[u8]) -> Outcome {
    let mut session = Case::with(Script::hello()).spawn();
    session.send_raw(line).send_raw(b"\n");
    session.finish()
}

/// A run that waits for an answer, and the message that ends it.
fn waiting() -> (Session, support::Frame) {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    (session, question)
}

fn end(mut session: Session, question: &support::Frame) -> Outcome {
    session.answer(question, json!("deny"));
    let outcome = session.finish();
    outcome.completed();
    outcome
}

#[test]
fn a_malformed_line_before_the_start_fails_the_run_and_is_not_echoed() {
    for (name, line) in malformed() {
        let outcome = first_line(&line);
        assert_eq!(outcome.terminal().text("code"), "invalid_message", "{name}: {}", outcome.terminal().raw);
        let message = format!("The line is not a message: {}. Send one JSON object per line.", reason(name));
        assert_eq!(outcome.terminal().text("message"), message, "{name}");
        assert_eq!(outcome.frames.len(), 1, "{name}");
        assert_eq!(outcome.exit_code, Some(3), "{name}");
        outcome.never_shows(ECHO);
        assert!(!outcome.log().ran(), "{name}");
    }
}

#[test]
fn a_malformed_line_after_the_start_is_a_warning_in_its_place() {
    let (mut session, question) = waiting();
    for (name, line) in malformed() {
        session.send_raw(&line).send_raw(b"\n");
        let after = session.send("run.something", json!({}));
        let first = session.until_progress("warning");
        assert_eq!(first.text("code"), "malformed_message", "{name}: {}", first.raw);
        assert_eq!(first.text("text"), format!("A line on stdin was ignored: {}", reason(name)), "{name}");
        let second = session.until_progress("warning");
        assert_eq!((second.text("code"), &second["reply_to"]), ("unknown_type", &json!(after)), "{name}");
    }
    end(session, &question).never_shows(ECHO);
}

#[test]
fn a_line_of_16_mib_is_read_and_a_longer_one_is_malformed() {
    let of_length = |length: usize, line: &dyn Fn(&str) -> String| {
        let line = line(&"x".repeat(length - line("").len()));
        assert_eq!(line.len(), length);
        line
    };
    let start = |fill: &str| start_line(&format!(r#"{{"prompt":"hi","unknown":"{fill}"}}"#));
    let mut session = Case::with(Script::hello()).spawn();
    session.send_line(&of_length(limits::INBOUND_LINE_BYTES, &start));
    session.finish().completed();
    let outcome = first_line(of_length(limits::INBOUND_LINE_BYTES + 1, &start).as_bytes());
    assert_eq!(outcome.terminal().text("code"), "invalid_message");
    assert!(outcome.terminal().text("message").contains("it is longer than 16 MiB"), "{}", outcome.terminal().raw);

    let other = |fill: &str| format!(r#"{{"v":"1","type":"run.other","payload":{{"x":"{ECHO}{fill}"}}}}"#);
    let (mut session, question) = waiting();
    session.send_line(&of_length(limits::INBOUND_LINE_BYTES, &other));
    session.until_warning("unknown_type");
    session.send_line(&of_length(limits::INBOUND_LINE_BYTES + 1, &other));
    let warning = session.until_warning("malformed_message");
    assert_eq!(warning.text("text"), "A line on stdin was ignored: it is longer than 16 MiB");
    end(session, &question).never_shows(ECHO);
}

#[test]
fn a_line_without_an_end_is_malformed_as_soon_as_it_is_too_long() {
    let endless = vec![b'x'; limits::INBOUND_LINE_BYTES + 1];
    let mut session = Case::with(Script::hello()).spawn();
    // stdin stays open.
    session.send_raw(&endless);
    assert_eq!(session.finish().terminal().text("code"), "invalid_message");

    let (mut session, question) = waiting();
    session.send_raw(&endless);
    session.until_warning("malformed_message");
    session.send_raw(b"yy\n");
    end(session, &question).completed();
}

#[test]
fn a_bom_blank_lines_and_carriage_returns_do_no_harm() {
    let start = start_line(r#"{"prompt":"hi"}"#);
    for input in [
        format!("\u{feff}{start}\n"),
        format!("{start}\r\n"),
        format!("\n\r\n  \n{start}\n\n\r\n"),
        format!("\u{feff}\r\n{start}\r\n"),
    ] {
        let mut session = Case::with(Script::hello()).spawn();
        session.send_raw(input.as_bytes());
        let outcome = session.finish();
        outcome.completed();
        assert!(outcome.progress("warning").is_empty(), "{input:?}");
    }
}

#[test]
fn a_line_without_its_newline_was_not_delivered() {
    let mut session = Case::with(Script::hello()).spawn();
    session.send_raw(start_line(r#"{"prompt":"hi"}"#).as_bytes()).close_stdin();
    session.finish().failed("no_start");

    let script = Script::new().sh(r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#).done("ok");
    let mut session = Case::with(script).spawn();
    session.start(json!({})).send_raw(br#"{"v":"1","type":"run.cancel"}"#).close_stdin();
    session.until_progress("session");
    std::fs::write(session.log().path("go"), "").unwrap();
    session.finish().completed();
}

#[test]
fn a_line_in_two_writes_is_one_line() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({"heartbeat_s": 0.1}));
    let question = session.until("run.question");
    let line = format!(r#"{{"v":"1","id":"odd","type":"run.odd","run_id":"{RUN}"}}"#);
    let (first, rest) = line.split_at(20);
    session.send_raw(first.as_bytes());
    session.until_progress("heartbeat");
    session.send_raw(rest.as_bytes()).send_raw(b"\n");
    assert_eq!(session.until_progress("warning")["reply_to"], "odd");
    end(session, &question);
}

#[test]
fn any_v_but_the_string_1_fails_before_the_start() {
    for v in [r#""v":"2","#, r#""v":1,"#, r#""v":null,"#, r#""v":"1.0","#, r#""v":"","#, r#""v":["1"],"#, ""] {
        let outcome = first_line(
            format!(r#"{{{v}"id":"a","type":"run.start","run_id":"r.1","payload":{{"prompt":"hi"}}}}"#).as_bytes(),
        );
        let payload = outcome.failed("unsupported_version");
        assert_eq!(payload["detail"]["supported"], json!(["1"]), "{v}");
        assert_eq!(outcome.terminal()["reply_to"], "a", "{v}");
        assert_eq!(outcome.terminal()["run_id"], "r.1", "{v}");
        assert_eq!(outcome.frames.len(), 1, "{v}");
    }
}

#[test]
fn any_v_but_the_string_1_fails_a_running_run_too() {
    for v in [r#""v":"2","#, r#""v":1,"#, ""] {
        let (mut session, _question) = waiting();
        session.send_line(&format!(r#"{{{v}"type":"run.cancel","run_id":"{RUN}"}}"#));
        let outcome = session.finish();
        assert_eq!(outcome.failed("unsupported_version")["detail"]["supported"], json!(["1"]), "{v}");
        assert_eq!(outcome.exit_code, Some(3));
    }
}

#[test]
fn a_frame_before_the_start_has_the_messages_run_id_if_that_is_valid() {
    for (given, kept) in [("r:1_2.3-4", true), ("not valid", false), ("", false)] {
        let outcome = first_line(format!(r#"{{"v":"2","type":"run.start","run_id":"{given}"}}"#).as_bytes());
        outcome.failed("unsupported_version");
        let run_id = outcome.frames[0]["run_id"].as_str().unwrap();
        assert!(if kept { run_id == given } else { run_id.starts_with("run_") }, "{given:?} became {run_id:?}");
    }
}

#[test]
fn an_unknown_type_is_ignored_with_a_warning() {
    let (mut session, question) = waiting();
    let id = session.send("run.dance", json!({"question_id": question.text("question_id")}));
    assert_eq!(session.until_warning("unknown_type")["reply_to"], json!(id));
    end(session, &question);
}

#[test]
fn a_message_for_another_run_is_ignored_with_a_warning() {
    let (mut session, question) = waiting();
    session.send_line(r#"{"v":"1","id":"other","type":"run.cancel","run_id":"another-run"}"#);
    assert_eq!(session.until_warning("unknown_run")["reply_to"], "other");
    assert!(end(session, &question).progress("status").iter().all(|f| f.text("status") != "cancelling"));
}

#[test]
fn a_second_start_is_ignored_with_a_warning() {
    let (mut session, question) = waiting();
    let id = session.send("run.start", json!({"prompt": "again"}));
    assert_eq!(session.until_warning("duplicate_start")["reply_to"], json!(id));
    assert_eq!(end(session, &question).log().prompts(), ["go"]);
}

#[test]
fn a_message_without_an_id_is_answered_without_reply_to() {
    let (mut session, question) = waiting();
    session.send_line(r#"{"v":"1","type":"run.dance"}"#);
    assert_eq!(session.until_warning("unknown_type").get("reply_to"), None);
    end(session, &question);
}

#[test]
fn warnings_from_before_the_start_are_held_until_after_it() {
    let mut session = Case::with(Script::hello()).spawn();
    session.send_line(r#"{"v":"1","id":"a","type":"run.dance"}"#);
    session.send_line(r#"{"v":"1","id":"b","type":"run.input","payload":{"question_id":"q_1","value":"x"}}"#);
    session.start(json!({}));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.frames[0]["reply_to"], "start");
    let warnings: Vec<(&str, &str)> =
        outcome.progress("warning").iter().map(|f| (f.text("code"), f["reply_to"].as_str().unwrap())).collect();
    assert_eq!(warnings, [("unknown_type", "a"), ("unknown_question", "b")]);
}

#[test]
fn at_most_64_warnings_are_held() {
    let mut session = Case::with(Script::hello()).spawn();
    for number in 0..200 {
        session.send_line(&format!(r#"{{"v":"1","id":"u{number}","type":"run.dance"}}"#));
    }
    session.start(json!({}));
    let outcome = session.finish();
    outcome.completed();
    let count = outcome.warnings("unknown_type").len();
    assert!((1..=64).contains(&count), "{count} warnings were held");
}

#[test]
fn warnings_without_a_valid_start_go_to_stderr() {
    let mut session = Case::with(Script::hello()).spawn();
    session.send_line(r#"{"v":"1","id":"a","type":"run.dance"}"#).close_stdin();
    let outcome = session.finish();
    outcome.failed("no_start");
    assert!(outcome.stderr.lines().count() >= 2, "stderr: {}", outcome.stderr);
}

#[test]
fn the_checks_come_in_the_order_malformed_version_type_run_payload() {
    let before = [
        (r#"{"v":"2","type":5}"#, "invalid_message"),
        (r#"{"v":"2","type":"run.dance"}"#, "unsupported_version"),
        (r#"{"v":"2","type":"run.start","payload":[]}"#, "invalid_message"),
        (r#"{"v":"2","type":"run.start","payload":{"prompt":5}}"#, "unsupported_version"),
        (r#"{"v":"1","type":"run.start","run_id":"not valid","payload":{"prompt":5}}"#, "invalid_request"),
    ];
    for (line, code) in before {
        let outcome = first_line(line.as_bytes());
        outcome.failed(code);
        if code == "invalid_request" {
            assert!(outcome.terminal().text("message").contains("run_id"), "{}", outcome.terminal().raw);
        }
    }
    let (mut session, question) = waiting();
    for (line, code) in [
        (r#"{"v":"1","type":"run.dance","run_id":"another"}"#, "unknown_type"),
        (r#"{"v":"1","type":"run.input","run_id":"another","payload":{}}"#, "unknown_run"),
        (r#"{"v":"1","type":"run.dance","run_id":5}"#, "malformed_message"),
    ] {
        session.send_line(line);
        assert_eq!(session.until_progress("warning").text("code"), code, "{line}");
    }
    end(session, &question);
}

#[test]
fn unknown_fields_are_ignored_whatever_they_hold() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for odd in [r#""\ud800""#, "1e999", &deep, r#"{"a":1,"a":2}"#, "null"] {
        let mut session = Case::with(Script::hello()).spawn();
        let start = start_line(&format!(r#"{{"prompt":"hi","unknown":{odd}}}"#));
        session.send_line(&start.replacen('{', &format!(r#"{{"extra":{odd},"extra":1,"#), 1));
        let outcome = session.finish();
        outcome.completed();
        // The warning names unknown fields of the payload. Unknown fields of the envelope are ignored.
        let warnings: Vec<&str> = outcome.progress("warning").iter().map(|frame| frame.text("text")).collect();
        assert_eq!(warnings, ["Ignored an unknown field of run.start: unknown"], "{odd}");
    }
}

#[test]
fn escaped_keys_and_an_id_of_128_characters_are_fine() {
    let mut session = Case::with(Script::hello()).spawn();
    let id = "ä".repeat(128);
    let line = format!(r#"{{"\u0076":"1","id":"{id}","type":"run\u002estart","payload":{{"prompt":"hi"}}}}"#);
    session.send_line(&line);
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.frames[0]["reply_to"], json!(id));
}

#[test]
fn a_long_text_is_split_into_several_frames_that_join_again() {
    let text: String = (0..9000).map(|n| format!("{n} ä\"\n")).collect();
    let script = Script::new().say("msg_1", &text).done(&text);
    let outcome = run(Case::with(script), json!({"max_frame_bytes": 16384}));
    assert!(outcome.progress("text").len() > 1);
    assert_eq!(outcome.said(), text);
    assert_eq!(outcome.completed()["text"].as_str(), Some(text.as_str()), "it fits into sixteen frames");
    assert_eq!(outcome.completed().get("message_id"), Some(&Value::Null));
}

#[test]
fn the_pieces_of_a_long_message_fill_their_frames() {
    // Plain text, and text that grows when it is escaped: a control character takes six bytes as JSON.
    for unit in ["plain words, ", "\u{1b}\"\\\n", "\u{e4}\u{1}"] {
        let text = unit.repeat((1 << 20) / unit.len());
        for max in by_length(&[256 << 10][..], &[256 << 10, 16 << 10]).iter().copied() {
            let outcome =
                run(Case::with(Script::new().say("msg_1", &text).done("ok")), json!({"max_frame_bytes": max}));
            outcome.completed();
            assert!(outcome.said() == text, "{unit:?} at {max}: the pieces do not join");
            let lengths: Vec<usize> = outcome.progress("text").iter().map(|frame| frame.raw.len() + 1).collect();
            let (last, full) = lengths.split_last().unwrap();
            assert!(full.len() > 3 && *last <= max, "{unit:?} at {max}: {lengths:?}");
            assert!(full.iter().all(|length| (max - 1024..=max).contains(length)), "{unit:?} at {max}: {lengths:?}");
        }
    }
}

#[test]
fn a_text_beyond_the_limit_of_the_last_frame_is_cut_and_says_where_it_is_whole() {
    let text: String = (0..60_000).map(|n| format!("{n} ")).collect();
    let script = Script::new().say("msg_1", &text).done(&text);
    let outcome = run(Case::with(script), json!({"max_frame_bytes": 16384}));
    let payload = outcome.completed();
    assert_eq!(payload["truncated"], true);
    let id = payload["message_id"].as_str().expect("the message_id whose pieces are whole");
    let pieces: String =
        outcome.progress("text").iter().filter(|f| f.text("message_id") == id).map(|f| f.text("text")).collect();
    assert_eq!(pieces, text);
}

#[test]
fn a_long_tool_output_is_cut_to_the_frame_and_a_long_command_is_whole() {
    let long = "y".repeat(100_000);
    let script = Script::new()
        .ask("req-1", "toolu_1", "Bash", bash(&format!("echo {long}")))
        .tool_result("toolu_1", &long)
        .say("msg_1", "ok")
        .done("ok");
    let mut session = Case::with(script).spawn();
    session.start(json!({"max_frame_bytes": 120_000, "progress": "full"}));
    let question = session.until("run.question");
    assert_eq!(question["payload"]["subject"]["detail"].as_str().map(str::len), Some(100_005));
    session.answer(&question, json!("allow_once"));
    let outcome = session.finish();
    outcome.completed();
    let with_output = outcome.progress("tool").into_iter().find(|f| !f.text("output").is_empty()).expect("output");
    assert!(with_output["payload"]["truncated"] == true && with_output.text("output").len() <= 64 << 10);
    let answer = outcome.log().answer();
    assert_eq!(answer["updatedInput"]["command"].as_str().map(str::len), Some(100_005), "the agent's input is whole");
}

#[test]
fn a_text_with_every_kind_of_line_end_fits_one_line_and_is_unchanged() {
    let text = "a\u{85}b\u{2028}c\u{2029}d\u{b}e\u{c}f\u{1c}g\u{7f}h\r\ni\u{202e}j\u{9b}k";
    let outcome = run(Case::with(Script::new().say("msg_1", text).done(text)), json!({"metadata": {"t": text}}));
    assert_eq!(outcome.completed()["text"], text);
    assert_eq!(outcome.said(), text);
    assert_eq!(outcome.completed()["metadata"]["t"], text);
}

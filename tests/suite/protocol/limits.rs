//! Tests of long lines, long prompts, and a run inside a run.

use crate::support;

use serde_json::json;
use support::agent::{Script, quote, success, text};
use support::{Case, RUN, procs, read, run};

/// The size of the agent's long text, in bytes.
const LONG: usize = 10_000_000;

/// An agent that writes a line of [`LONG`] bytes and then waits.
fn long_winded() -> Script {
    let line = text("msg_1", "@@").to_string();
    let (head, tail) = line.split_once("@@").unwrap();
    let say =
        format!("printf %s {}; head -c {LONG} /dev/zero | tr '\\0' x; printf '%s\\n' {}", quote(head), quote(tail));
    Script::new().sh(&say)
}

#[test]
fn a_line_of_ten_megabytes_is_passed_on_in_less_than_32_mebibytes() {
    let script = long_winded().out(&text("msg_2", "after it")).sh("listen");
    let mut session = Case::with(script).spawn();
    session.start(json!({}));
    session.until_text("after it");
    let (peak, program) = (procs::peak_kib(session.pid()), procs::program_kib(session.pid()));
    // The line, and the text in it.
    assert!(peak - program < 32 << 10, "{peak} KiB, {program} of them the program itself");
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    let first: usize = outcome
        .progress("text")
        .iter()
        .filter(|frame| frame.payload()["message_id"] == "m_1")
        .map(|frame| frame.text("text").len())
        .sum();
    assert_eq!(first, LONG);
}

#[test]
fn a_final_answer_that_is_too_long_is_cut_and_names_the_message_that_is_whole() {
    let long = "word ".repeat(100_000);
    let outcome = run(
        Case::with(Script::new().say("msg_1", &long).out(&success(&long)).sh("listen")),
        json!({"max_frame_bytes": 16384}),
    );
    let end = outcome.completed();
    let message = end["message_id"].as_str().expect("the message that is whole");
    assert_eq!(end["truncated"], true);
    assert!(long.starts_with(end["text"].as_str().unwrap()));
    let pieces = outcome.progress("text");
    let joined: String =
        pieces.iter().filter(|f| f.payload()["message_id"] == message).map(|f| f.text("text")).collect();
    assert!(joined == long, "the pieces do not join to the message");
}

#[test]
fn the_agents_stderr_is_mirrored_only_if_asked_for_and_redacted() {
    let script = || Script::new().sh("echo 'to the log: hunter2-Zq7731' >&2").say("msg_1", "ok").done("ok");
    let payload = json!({"secrets": ["hunter2-Zq7731"]});
    let mut quiet = Case::with(script()).spawn();
    quiet.start(payload.clone());
    assert_eq!(quiet.finish().stderr, "");
    let mut session = Case::with(script()).args(&["--mirror-stderr"]).spawn();
    session.start(payload);
    assert_eq!(session.finish_unchecked().stderr, "to the log: [redacted]\n");
}

#[test]
fn lines_on_stderr_carry_the_id_of_the_run_if_asked_for() {
    let script = Script::new().sh("echo 'from the agent' >&2; exit 1");
    let mut session = Case::with(script).args(&["--mirror-stderr", "--log-id"]).spawn();
    session.start(json!({}));
    let outcome = session.finish_unchecked();
    let stderr = &outcome.stderr;
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(lines.len() == 2 && lines[0] == format!("[{RUN}] from the agent"), "{stderr}");
    assert!(lines[1].starts_with(&format!("[{RUN}] spektacular: agent_exited: ")), "{stderr}");
}

#[test]
fn a_line_of_stderr_of_any_length_is_mirrored_in_parts() {
    // A character and a secret lie over the ends of reads and parts.
    let secret = "hunter2-Zq7731";
    let line = |fill: &str| format!("{}{secret}{}é{secret}", fill.repeat(65_530), fill.repeat(65_529));
    let text = ["a", "é"].map(|fill| line(fill) + "\n").concat() + "short\n";
    let script = Script::new().sh(r#"cat "$SHOWN" >&2"#).say("msg_1", "ok").done("ok");
    let case = Case::with(script).args(&["--mirror-stderr"]);
    let file = case.path("shown");
    std::fs::write(&file, &text).unwrap();
    // A file takes everything at once. A pipe whose reader is late loses a part.
    let case = case.env("SHOWN", file.to_str().unwrap()).shell("exec \"$@\" 2>said");
    let outcome = run(case, json!({"secrets": [secret]}));
    let said = &read(&outcome.case().path("work/said"));
    let joined = |text: &str| text.replace('\n', "");
    assert!(joined(said) == joined(&text.replace(secret, "[redacted]")), "{} bytes", said.len());
    assert!(said.lines().count() > 4 && said.ends_with("\nshort\n"));
}

#[test]
fn a_run_inside_a_run_ends_without_the_outer_one() {
    // The agent of the outer run runs spektacular itself, with an agent that leaves a process behind.
    let inner = r#"mkdir -p inner/bin && printf '#!/bin/sh\nread -r line\nsetsid sleep 300 &\necho $! >"%s/inner-child"\necho "{\"type\":\"result\",\"is_error\":false,\"result\":\"inner\"}"\ncat >/dev/null\n' "$D" >inner/bin/claude
chmod +x inner/bin/claude
sleep 301 & echo $! >"$D/outer-child"
PATH="$PWD/inner/bin:$PATH" "$SPEK" adhoc "inner task" </dev/null >"$D/inner-out" 2>&1
kill -0 "$(cat "$D/outer-child")" && note "outer child lives"
while kill -0 "$(cat "$D/inner-child")" 2>/dev/null; do sleep 0.01; done; note "inner child gone""#;
    let script = Script::new().sh(inner).say("msg_1", "ok").done("ok");
    let case = Case::with(script).env("SPEK", env!("CARGO_BIN_EXE_spektacular"));
    let outcome = run(case, json!({}));
    outcome.completed();
    assert!(outcome.log().text("inner-out").lines().any(|line| line == "inner"));
    assert!(outcome.log().noted("outer child lives"), "the inner run ended what is the outer agent's");
    assert!(outcome.log().noted("inner child gone"), "the inner run left a process behind");
    assert_eq!(outcome.warnings("leaked_process").len(), 1, "the outer run ended the outer agent's child");
}

#[test]
fn a_structured_result_that_readers_of_json_reject_is_null_and_truncated() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (output, whole) in [
        (nested(120), true),
        (nested(129), false),
        (nested(5000), false),
        ("[1.5e308]".to_owned(), true),
        ("[1e999]".to_owned(), false),
    ] {
        let result = success("done").to_string().replacen('{', &format!("{{\"structured_output\":{output},"), 1);
        let case = Case::with(Script::new().raw(&result).sh("listen"));
        let outcome = run(case, json!({"output_schema": {"type": "array"}}));
        let end = outcome.completed();
        assert_eq!(end["structured_output"].is_null(), !whole, "{output}");
        assert_eq!(end["truncated"] == true, !whole, "{output}");
    }
}

#[test]
fn every_part_of_a_question_gives_way_to_the_limit_of_a_frame() {
    let long = "p".repeat(40_000);
    for property in [
        json!({"type": "string", "pattern": long}),
        json!({"type": "string", "default": long}),
        json!({"type": "string", "title": long, "description": long}),
        json!({"type": "string", "enum": [long, "b"], "default": long}),
    ] {
        let schema = json!({"type": "object", "properties": {"field": property}});
        let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create",
            "params": {"mode": "form", "message": "Fill in", "requestedSchema": schema}});
        let result =
            |id: u64, result: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let agent = format!(
            "#!/bin/sh\nread -r l; echo {}\nread -r l; echo {}\nread -r l; echo {}\nread -r l; echo {}\ncat >/dev/null\n",
            quote(&result(1, json!({"protocolVersion": 1, "agentCapabilities": {}}))),
            quote(&result(2, json!({"sessionId": "s"}))),
            quote(&ask.to_string()),
            quote(&result(3, json!({"stopReason": "end_turn"}))),
        );
        let mut session = Case::new().program("opencode", &agent).spawn();
        session.start(json!({"agent": "opencode", "max_frame_bytes": 16_384}));
        let question = session.until("run.question");
        let id = question.payload()["question_id"].clone();
        session.send("run.input", json!({"question_id": id, "declined": true}));
        let outcome = session.finish();
        outcome.completed();
        assert!(outcome.frames.iter().all(|frame| frame.raw.len() < 16_384), "a frame is above its limit");
    }
}

//! Tests of pipes that close, fill up or tear, and of agents that die, write nonsense or cannot be started.

use crate::support;

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spektacular::protocol::limits::AGENT_LINE_BYTES;
use support::agent::{MODEL, SESSION, Script, bash, error_result, init, quote, success, text};
use support::machine::not_checked;
use support::{Case, Outcome, Session, io, procs, run, slack};

/// Prints `count` texts of 10 KB and counts them in `$D/count`. Zero: prints forever.
fn flood(count: usize) -> Script {
    flood_of(count, 10_000)
}

/// Like [`flood`], with texts of `bytes` bytes.
fn flood_of(count: usize, bytes: usize) -> Script {
    let line = text("msg_flood", &"z".repeat(bytes)).to_string();
    Script::new().sh(&format!("LINE={}", quote(&line))).sh(&format!(
        r#"i=0
        while [ {count} = 0 ] || [ $i -lt {count} ]; do
            i=$((i + 1)); out "$LINE"; echo $i >"$D/count"
        done
        note flooded"#
    ))
}

fn flooded(session: &Session) -> usize {
    session.log().text("count").trim().parse().unwrap_or(0)
}

/// Waits until the agent is blocked: it has printed something, and prints nothing more.
fn wait_held_up(session: &Session) {
    session.wait_until("the flood to be held up", || {
        let before = flooded(session);
        before > 10 && !io::wait_for(Duration::from_millis(400), || flooded(session) != before)
    });
}

#[track_caller]
fn assert_74(mut session: Session, since: Instant, limit: Duration) {
    assert_eq!(session.wait_exit(), (Some(74), None));
    assert!(since.elapsed() < limit + slack(), "{:?}", since.elapsed());
    session.close_stdout();
    let outcome = session.finish_unchecked();
    assert!(outcome.left.is_empty(), "left: {:?}", outcome.left);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
}

#[test]
fn a_cancel_is_served_while_nobody_reads_stdout_and_exits_with_74() {
    let mut session = Case::with(flood(0)).unread().spawn();
    session.start(json!({}));
    wait_held_up(&session);
    session.cancel();
    assert_74(session, Instant::now(), Duration::from_secs(5));
}

#[test]
fn a_deadline_is_served_while_nobody_reads_stdout() {
    let mut session = Case::with(flood(0)).unread().spawn();
    session.start(json!({"timeout_s": 2}));
    wait_held_up(&session);
    assert_74(session, Instant::now(), Duration::from_secs(2 + 5));
}

#[test]
fn a_reader_that_comes_back_after_a_cancel_gets_every_frame() {
    // Short lines, so that all waiting frames pass within the second that an unread stdout has after a stop.
    let mut session = Case::with(flood_of(0, 2_000)).unread().spawn();
    session.start(json!({}));
    wait_held_up(&session);
    session.cancel();
    session.read_stdout();
    session.finish().cancelled();
}

#[test]
fn a_slow_reader_holds_up_the_agent_and_gets_every_line() {
    let mut session = Case::with(flood(1000).say("msg_last", "last").done("last")).unread().spawn();
    session.start(json!({}));
    wait_held_up(&session);
    assert!(!session.log().noted("flooded"), "the program swallowed ten megabytes");
    session.read_stdout();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "last");
    assert_eq!(outcome.said().len(), 1000 * 10_000 + "last".len());
}

/// Two pipes and a buffer hold 64 KiB each. Between them wait at most 32 lines, which a unit test of their reader counts,
/// and at most twice 128 frames or twice 256 KiB of them.
#[test]
fn few_lines_wait_for_a_reader_whether_they_are_short_or_long() {
    for bytes in [10, 30_000] {
        let line = text("msg_flood", &"z".repeat(bytes)).to_string().len();
        let frame = bytes + 200;
        let most = 2 * (64 << 10) / line + 32 + (64 << 10) / frame + 256.min((512 << 10) / frame) + 5;
        let mut session = Case::with(flood_of(0, bytes)).unread().spawn();
        session.start(json!({}));
        wait_held_up(&session);
        let printed = flooded(&session);
        assert!((5..=most).contains(&printed), "{printed} lines of {bytes} bytes wait somewhere, not {most}");
    }
}

#[test]
fn a_closed_stdout_stops_a_silent_and_a_talking_agent() {
    let silent = Script::new().say("msg_1", "now").sh("listen");
    let talking = Script::new().say("msg_1", "now").sh(r#"while :; do out "$LINE"; sleep 0.05; done"#);
    let line = text("msg_2", "more").to_string();
    for script in [silent, Script::bare().sh(&format!("LINE={}", quote(&line))).sh(&talking.body())] {
        let mut session = Case::with(script).spawn();
        session.start(json!({}));
        session.until_text("now");
        session.close_stdout();
        assert_74(session, Instant::now(), Duration::from_secs(1 + 3));
    }
}

#[test]
fn a_closed_stdout_is_noticed_with_a_question_open() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({}));
    session.until("run.question");
    session.close_stdout();
    assert_74(session, Instant::now(), Duration::from_secs(1 + 3));
}

#[test]
fn a_full_disk_at_stdout_exits_with_74_and_a_message_on_stderr() {
    let mut session = Case::with(Script::hello()).stdout_to("/dev/full").spawn();
    session.start(json!({}));
    let outcome = session.finish_unchecked();
    assert_eq!(outcome.exit_code, Some(74));
    assert!(outcome.stderr.starts_with("spektacular: "), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert!(outcome.left.is_empty());
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn descriptors_that_are_closed_at_the_start_are_noticed() {
    let session = Case::with(Script::hello()).shell(r#"exec "$@" <&-"#).spawn();
    session.finish().failed("no_start");
    let mut session = Case::with(Script::hello()).shell(r#"exec "$@" >&-"#).spawn();
    session.start(json!({}));
    let outcome = session.finish_unchecked();
    assert_eq!(outcome.exit_code, Some(74));
}

#[test]
fn an_open_file_of_the_caller_reaches_the_agent() {
    let script = Script::new().sh("echo reached >&7").done("Done");
    let outcome = run(Case::with(script).shell(r#"exec 7>../log/inherited; exec "$@""#), json!({}));
    outcome.completed();
    assert_eq!(outcome.log().text("inherited"), "reached\n");
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn a_stdout_that_takes_nothing_is_74_for_a_person_too() {
    let undelivered = "spektacular: undelivered: ";
    for (shell, code) in [("exec \"$@\" >/dev/full", 74), ("exec \"$@\" >&-", 74), ("exec \"$@\" >/dev/null", 0)] {
        let said = Case::with(Script::hello()).shell(shell).cli(&["--yes", "hi"]);
        let stderr = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(code), "{shell}: {stderr}");
        let lines = stderr.lines().filter(|line| line.starts_with(undelivered)).count();
        assert_eq!(lines, usize::from(code == 74), "{shell}: {stderr}");
    }
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn a_closed_stdout_is_noticed_while_the_parent_opens_and_closes_files() {
    let busy = "\"$@\" >&- & while kill -0 $!; do exec 8</dev/null; exec 9</dev/null 8<&-; exec 9<&-; done 2>/dev/null; wait $!";
    for _ in 0..5 {
        let said = Case::with(Script::hello()).shell(busy).cli(&["--yes", "hi"]);
        assert_eq!(said.status.code(), Some(74), "{}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn a_reader_that_stops_after_a_few_lines_ends_a_persons_run_silently() {
    let script = Script::new().say("m1", "first\nsecond\n").sh("listen");
    let case = Case::with(script).shell("{ \"$@\" 2>../said; echo $? >../code; } | head -n 1");
    let out = case.cli(&["hi"]).stdout;
    assert_eq!(String::from_utf8(out).unwrap(), "first\n");
    let said = support::read(&case.path("said"));
    assert!(support::read(&case.path("code")) == "74\n" && !said.contains("spektacular:"), "{said}");
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "stdout closed at the start")]
fn a_closed_stdout_is_noticed_without_proc() {
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return not_checked("a_closed_stdout_is_noticed_without_proc", "unshare cannot make a mount namespace here");
    }
    let shell = "exec unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$@\" >&-' sh \"$@\"";
    let mut session = Case::with(Script::hello()).shell(shell).spawn();
    session.start(json!({}));
    let outcome = session.finish_unchecked();
    assert_eq!(outcome.exit_code, Some(74), "{}", outcome.stderr);
}

#[test]
fn non_blocking_pipes_tear_no_frame() {
    let mut session = Case::with(flood(300).say("msg_last", "last").sh("listen")).nonblocking().unread().spawn();
    session.send_raw(br#"{"v":"1","type":"run.start","#);
    session.send_raw(b"\"payload\":{\"prompt\":\"hi\"}}\n");
    wait_held_up(&session);
    session.read_stdout();
    session.until_text("last");
    session.send_line(r#"{"v":"1","type":"run.cancel"}"#);
    let outcome = session.finish();
    outcome.cancelled();
    assert_eq!(outcome.said().len(), 300 * 10_000 + "last".len());
}

#[test]
fn an_endless_line_of_the_agents_is_skipped_in_bounded_memory() {
    // Twice the maximum length of a line: a program that holds the whole line needs more memory than this.
    let line = 2 * AGENT_LINE_BYTES + (16 << 20);
    let flood = format!(r"head -c {line} /dev/zero | tr '\0' x; echo");
    let script = Script::new().sh(&flood).say("msg_1", "after it").sh("listen");
    let mut session = Case::with(script).spawn();
    session.start(json!({"idle_timeout_s": 0}));
    session.until_warning("agent_output_unparsed");
    session.until_text("after it");
    let peak = procs::peak_kib(session.pid());
    assert!(peak < line as u64 >> 10, "{peak} KiB");
    session.cancel();
    session.finish().cancelled();
}

#[test]
fn text_that_is_not_quite_utf8_or_json_is_repaired() {
    let line = |inner: &[u8]| {
        let whole = text("msg_1", "@@").to_string();
        let (head, tail) = whole.split_once("@@").unwrap();
        [head.as_bytes(), inner, tail.as_bytes(), b"\n"].concat()
    };
    let rows: [(&str, Vec<u8>, &str); 5] = [
        ("bad UTF-8", line(b"a\xffb"), "a\u{fffd}b"),
        ("a lone surrogate", line(br"a\ud800b"), "a\u{fffd}b"),
        ("an escaped NUL", line(br"a\u0000b"), "a"),
        ("a byte order mark", [b"\xef\xbb\xbf".to_vec(), line(b"ab")].concat(), "ab"),
        ("a carriage return", [&line(b"ab")[..line(b"ab").len() - 1], b"\r\n"].concat(), "ab"),
    ];
    for (name, bytes, expected) in rows {
        let outcome = run(Case::with(Script::new().bytes(&bytes).done("ok")), json!({}));
        outcome.completed();
        assert!(outcome.said().contains(expected), "{name}: {:?}", outcome.said());
        assert!(outcome.warnings("agent_output_unparsed").is_empty(), "{name}");
    }
}

#[test]
fn noise_of_the_agents_is_a_warning_in_its_place_without_its_content() {
    let script = Script::new()
        .say("msg_1", "one")
        .raw("zq-noise-7731 is no JSON")
        .say("msg_2", "two")
        .raw(r#"["zq-noise-7731"]"#)
        .raw(r#"{"type":"zq-noise-7731"}"#)
        .say("msg_3", "three")
        .done("three");
    let outcome = run(Case::with(script), json!({}));
    outcome.completed();
    let order = texts_and_warnings(&outcome);
    assert_eq!(order[..3], ["one", "agent_output_unparsed", "two"]);
    assert_eq!(order.last(), Some(&"three"));
    outcome.never_shows("zq-noise-7731");
}

/// The texts and the warnings of a run, in order.
fn texts_and_warnings(outcome: &Outcome) -> Vec<&str> {
    let shown = outcome.frames.iter().filter(|f| f.is_progress("text") || f.is_progress("warning"));
    shown.map(|f| if f.is_progress("text") { f.text("text") } else { f.text("code") }).collect()
}

#[test]
fn a_message_without_a_required_field_becomes_a_warning() {
    let event = |event: Value| json!({"type": "stream_event", "event": event});
    let message = |kind: &str, message: Value| json!({"type": kind, "message": message});
    let blocks = |kind: &str, block: Value| message(kind, json!({"id": "m", "content": [block]}));
    let ask = |request: Value| json!({"type": "control_request", "request_id": "zq-noise-7731", "request": request});
    for line in [
        json!({}),
        json!({"type": 5}),
        json!({"type": "assistant"}),
        message("assistant", json!("zq-noise-7731")),
        message("assistant", json!({"id": "m"})),
        message("assistant", json!({"id": "m", "content": "zq-noise-7731"})),
        blocks("assistant", json!("zq-noise-7731")),
        blocks("assistant", json!({"text": "zq-noise-7731"})),
        blocks("assistant", json!({"type": "text"})),
        blocks("assistant", json!({"type": "text", "text": ["zq-noise-7731"]})),
        blocks("assistant", json!({"type": "tool_use", "id": "zq-noise-7731"})),
        json!({"type": "user"}),
        message("user", json!("zq-noise-7731")),
        message("user", json!({"content": {"a": 1}})),
        blocks("user", json!({"type": "tool_result", "content": "zq-noise-7731"})),
        json!({"type": "stream_event"}),
        event(json!("zq-noise-7731")),
        event(json!({"index": 0})),
        event(json!({"type": "message_start"})),
        event(json!({"type": "content_block_delta", "index": 0})),
        event(json!({"type": "content_block_delta", "delta": {"type": "text_delta"}})),
        json!({"type": "system"}),
        json!({"type": "result"}),
        json!({"type": "control_request"}),
        json!({"type": "control_request", "request_id": "zq-noise-7731"}),
        ask(json!({"subtype": "can_use_tool", "tool_name": "Bash"})),
        json!({"type": "control_cancel_request"}),
    ] {
        let script = Script::new().say("msg_1", "one").out(&line).say("msg_2", "two").done("two");
        let outcome = run(Case::with(script), json!({}));
        outcome.completed();
        assert_eq!(texts_and_warnings(&outcome), ["one", "agent_output_unparsed", "two"], "{line}");
        outcome.never_shows("zq-noise-7731");
    }
}

#[test]
fn every_readable_part_of_a_message_is_used() {
    let mut line = text("msg_1", "one");
    line["message"]["content"].as_array_mut().unwrap().insert(0, json!({"type": "text"}));
    line["message"]["content"].as_array_mut().unwrap().push(json!({"type": "text", "text": "two"}));
    let outcome = run(Case::with(Script::new().out(&line).done("two")), json!({}));
    outcome.completed();
    assert_eq!(texts_and_warnings(&outcome), ["one", "two", "agent_output_unparsed"]);
}

#[test]
fn irrelevant_messages_cause_no_warning() {
    let mut script = Script::new();
    for line in [
        json!({"type": "system", "subtype": "status", "status": null}),
        json!({"type": "system", "subtype": "later_versions"}),
        json!({"type": "user", "message": {"role": "user", "content": "a synthetic line"}}),
        json!({"type": "assistant", "message": {"id": "m", "content": []}}),
        json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "redacted_thinking", "data": "x"}]}}),
        json!({"type": "assistant", "error": "server_error"}),
        json!({"type": "stream_event", "event": {"type": "ping"}}),
        json!({"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "signature_delta"}}}),
        json!({"type": "control_response"}),
        json!({"type": "control_request", "request_id": "r-1", "request": {"subtype": "later_versions"}}),
        json!({"type": "keep_alive"}),
    ] {
        script = script.out(&line);
    }
    let outcome = run(Case::with(script.say("msg_1", "ok").done("ok")), json!({"progress": "full"}));
    outcome.completed();
    assert!(outcome.progress("warning").is_empty(), "{:?}", texts_and_warnings(&outcome));
}

#[test]
fn a_result_without_is_error_is_no_error_unless_its_subtype_says_so() {
    let without = |fields: Value| {
        let mut line = success("the answer");
        line.as_object_mut().unwrap().remove("is_error");
        fields.as_object().unwrap().iter().for_each(|(name, value)| line[name] = value.clone());
        Case::with(Script::new().out(&line).sh("listen"))
    };
    for fields in [json!({}), json!({"subtype": null}), json!({"is_error": "no"})] {
        assert_eq!(run(without(fields.clone()), json!({})).completed()["text"], "the answer", "{fields}");
    }
    run(without(json!({"subtype": "error_max_turns"})), json!({})).failed("limit_reached");
}

#[test]
fn a_session_id_in_the_other_spelling_is_one() {
    let mut line = init();
    line["sessionId"] = line["session_id"].take();
    let script = Script::bare().sh("prompt").out(&line).say("msg_1", "ok").done("ok");
    let outcome = run(Case::with(script), json!({}));
    assert_eq!(outcome.completed()["session_id"], SESSION);
    assert!(outcome.progress("warning").is_empty());

    // Without any of them the session is not known. A later line may still name it.
    line.as_object_mut().unwrap().remove("sessionId");
    let script = Script::bare().sh("prompt").out(&line).out(&init()).say("msg_1", "ok").done("ok");
    let outcome = run(Case::with(script), json!({}));
    assert_eq!(outcome.completed()["session_id"], SESSION);
    assert_eq!(outcome.warnings("agent_output_unparsed").len(), 1);
}

#[test]
fn blank_lines_and_carriage_returns_of_the_agents_change_nothing() {
    let plain = run(Case::with(Script::hello()), json!({}));
    // Every line from the agent ends with CRLF and has blank lines before and after it.
    let crlf = r#"out() { printf '\n\r\n \t\n%s\r\n\n' "$1"; }"#;
    let blank = run(Case::with(Script::bare().sh(crlf).sh(&Script::hello().body())), json!({}));
    let told = |outcome: &Outcome| -> Vec<(String, String)> {
        outcome.frames.iter().map(|frame| (frame.kind().to_owned(), frame.text("text").to_owned())).collect()
    };
    assert_eq!(told(&blank), told(&plain));
    blank.completed();
}

#[test]
fn half_a_line_and_then_death_is_a_warning_and_agent_exited() {
    let outcome = run(Case::with(Script::new().bytes(br#"{"type":"assis"#).sh("exit 5")), json!({}));
    let payload = outcome.failed("agent_exited");
    assert_eq!(payload["agent_exit"]["code"], 5);
    assert_eq!(outcome.warnings("agent_output_unparsed").len(), 1);
}

#[test]
fn the_first_result_counts_and_nothing_after_it_makes_a_second_end() {
    let script = Script::new()
        .say("msg_1", "first")
        .result("first")
        .out(&error_result(json!({"subtype": "error_during_execution"})))
        .result("second")
        .sh("listen");
    let outcome = run(Case::with(script), json!({}));
    assert_eq!(outcome.completed()["text"], "first");
}

#[test]
fn an_agent_that_exits_without_a_result_failed_with_any_status() {
    for (end, code, signal) in [
        ("exit 0", json!(0), Value::Null),
        ("exit 3", json!(3), Value::Null),
        ("kill -SEGV $$", Value::Null, json!(11)),
        ("kill -KILL $$", Value::Null, json!(9)),
    ] {
        let outcome = run(Case::with(Script::new().say("msg_1", "so far").sh(end)), json!({}));
        let payload = outcome.failed("agent_exited");
        assert_eq!((&payload["agent_exit"]["code"], &payload["agent_exit"]["signal"]), (&code, &signal), "{end}");
        assert_eq!(outcome.said(), "so far", "{end}");
    }
}

#[test]
fn a_death_with_a_question_open_resolves_it() {
    let script = Script::new().out(&support::agent::can_use("req-1", "t", "Bash", &bash("x"))).sh("exit 1");
    let outcome = run(Case::with(script), json!({}));
    outcome.failed("agent_exited");
    assert_eq!(outcome.resolutions(), ["withdrawn"]);
}

#[test]
fn a_start_that_the_system_refuses_has_a_failure_code() {
    let elf = [b"\x7fELF".as_slice(), &[0; 20]].concat();
    let rows: [(&str, Vec<u8>, u32, &str); 7] = [
        ("not executable", b"#!/bin/sh\nexit 0\n".to_vec(), 0o644, "agent_start_failed"),
        ("a missing interpreter", b"#!/no/such/interpreter\n".to_vec(), 0o755, "agent_start_failed"),
        ("a carriage return in the first line", b"#!/bin/sh\r\nexit 0\r\n".to_vec(), 0o755, "agent_start_failed"),
        ("a cut binary", elf, 0o755, "agent_start_failed"),
        ("an empty file", Vec::new(), 0o755, "agent_start_failed"),
        ("env without the interpreter", b"#!/usr/bin/env no-such-node\n".to_vec(), 0o755, "agent_start_failed"),
        ("exit 126", b"#!/bin/sh\nexit 126\n".to_vec(), 0o755, "agent_start_failed"),
    ];
    for (name, content, mode, code) in rows {
        let outcome = run(Case::new().agent_file(&content, mode), json!({}));
        assert_eq!(outcome.terminal().text("code"), code, "{name}: {}", outcome.terminal().raw);
        assert_eq!(outcome.frames[0].kind(), "run.started", "{name}");
        assert_eq!(outcome.exit_code, Some(4), "{name}");
    }
}

/// A file that the kernel refuses must not reach a shell, which would run what it can of it.
#[test]
#[cfg_attr(not(feature = "linux"), ignore = "a program in a format of another machine")]
fn a_program_in_no_format_of_this_machine_reaches_no_shell() {
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let with = |bytes: &[u8]| [bytes, b"\ntouch ../log/shell\n"].concat();
    let mut foreign = own[..4096].to_vec();
    foreign[18] = 22;
    for (name, content) in [
        ("a cut binary", with(&own[..60])),
        ("a binary for another processor", with(&foreign)),
        ("random bytes", with(&[0xf3, 0x01, 0x80, 0x02])),
        ("a text", with(b"true")),
    ] {
        let outcome = run(Case::new().agent_file(&content, 0o755), json!({}));
        let failed = outcome.failed("agent_start_failed");
        assert!(failed["agent_exit"].is_null(), "{name}: {failed}");
        assert_eq!(failed["message"], "The agent's program cannot run on this machine: reinstall it.", "{name}");
        assert!(!outcome.log().path("shell").exists(), "{name}");
    }
}

#[test]
fn a_pipe_as_the_agents_program_is_refused_at_once() {
    let case = Case::new()
        .file("home/.config/spektacular/config.json", r#"{"agents":{"mine":{"driver":"lines","command":"./pipe"}}}"#);
    assert!(case.command("mkfifo").args(["-m", "755", "pipe"]).status().unwrap().success());
    run(case, json!({"agent": "mine"})).failed("agent_start_failed");
}

#[test]
fn a_missing_agent_is_reported_after_run_started() {
    let outcome = run(Case::new(), json!({}));
    let payload = outcome.failed("agent_not_found");
    assert!(payload["agent_exit"].is_null());
    assert_eq!(outcome.exit_code, Some(4));
    assert_eq!(outcome.frames[0].kind(), "run.started");
}

#[test]
fn few_descriptors_end_the_run_in_order_or_not_at_all() {
    for limit in [5, 6, 7, 8, 10, 12, 14, 16, 18, 20] {
        let case = Case::with(Script::hello()).shell(&format!(r#"ulimit -n {limit}; exec "$@""#));
        let mut session = case.spawn();
        session.start(json!({}));
        let outcome = session.finish();
        match limit {
            5..8 => drop(outcome.failed("resource_exhausted").clone()),
            _ => assert!(matches!(outcome.exit_code, Some(0 | 1 | 4 | 70)), "{limit}: {:?}", outcome.exit_code),
        }
    }
}

#[test]
fn a_prompt_of_a_megabyte_arrives_whole() {
    let prompt: String = (0..100_000).map(|n| format!("{n:09} ")).collect();
    let outcome = run(Case::with(Script::hello()), json!({"prompt": prompt}));
    outcome.completed();
    assert!(outcome.log().prompts() == [prompt], "the prompt was changed");
}

#[test]
fn an_agent_that_never_reads_its_stdin_can_be_cancelled_and_timed_out() {
    let prompt = "0123456789".repeat(100_000);
    let deaf = || Case::with(Script::bare().sh("while :; do sleep 1; done")).spawn();
    let mut session = deaf();
    session.start(json!({"prompt": prompt}));
    session.wait_until("the agent", || session.log().ran());
    session.cancel();
    let asked = Instant::now();
    let outcome = session.finish();
    outcome.cancelled();
    assert!(outcome.ended - asked < Duration::from_secs(4) + slack());

    let mut session = deaf();
    session.start(json!({"prompt": prompt, "start_timeout_s": 0.5}));
    session.finish().failed("start_timeout");
}

#[test]
fn a_flood_on_stderr_blocks_nothing_and_its_tail_is_short() {
    let noise = "yes zq-stderr-7731 | head -c 50000000 >&2";
    let outcome = run(Case::with(Script::new().sh(noise).say("msg_1", "ok").done("ok")), json!({}));
    outcome.completed();
    outcome.never_shows("zq-stderr-7731");
    let outcome = run(Case::with(Script::bare().sh(noise).sh("exit 1")), json!({}));
    let tail = outcome.failed("agent_start_failed")["detail"]["stderr_tail"].as_str().unwrap();
    assert!(tail.contains("\nzq-stderr-7731\n") && (7 << 10..=8 << 10).contains(&tail.len()), "{} bytes", tail.len());
}

#[track_caller]
fn assert_idle(session: &Session, state: &str) {
    let before = procs::cpu_ticks(session.pid());
    // No event: the test measures two idle seconds.
    io::wait_for(Duration::from_secs(2), || false);
    let used = procs::cpu_ticks(session.pid()) - before;
    assert!(used <= 2, "{state}: {used} ticks of 10 ms in two seconds");
}

#[test]
fn waiting_costs_no_processor_time() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({}));
    let asked = session.until("run.question");
    assert_idle(&session, "a question is open");
    session.answer(&asked, json!("deny"));
    session.finish().completed();

    let mut session = Case::with(Script::new().say("msg_1", "now").sh("listen")).spawn();
    session.start(json!({}));
    session.until_text("now");
    assert_idle(&session, "the agent is silent");
    session.close_stdin();
    assert_idle(&session, "stdin is at its end");
    session.signal(rustix::process::Signal::TERM);
    session.finish().cancelled();

    let mut session = Case::with(flood(0)).unread().spawn();
    session.start(json!({}));
    wait_held_up(&session);
    assert_idle(&session, "stdout is blocked");
}

/// The agent's report of a provider error, and its exit.
fn provider_error(class: &str, fields: Value) -> Script {
    let mut message = text("msg_1", fields["result"].as_str().unwrap_or(""));
    message["error"] = json!(class);
    message["message"]["model"] = json!("<synthetic>");
    Script::new().out(&message).out(&error_result(fields)).sh("RC=1\nlisten")
}

fn api(status: u16, text: &str) -> Value {
    json!({"api_error_status": status, "result": text, "stop_reason": "stop_sequence", "terminal_reason": "api_error"})
}

#[test]
fn the_agents_error_has_a_failure_code() {
    let limit = |subtype: &str, reason: &str| json!({"subtype": subtype, "terminal_reason": reason, "errors": ["x"]});
    let too_long =
        json!({"api_error_status": 400, "result": "Prompt is too long", "terminal_reason": "prompt_too_long"});
    let login = json!({"result": "Not logged in · Please run /login", "api_error_status": null});
    let rows = [
        ("authentication_failed", api(401, "Invalid API key · Fix external API key"), "auth_required"),
        ("authentication_failed", api(403, "Failed to authenticate. API Error: 403"), "auth_required"),
        ("authentication_failed", login, "auth_required"),
        ("model_not_found", api(404, "There's an issue with the selected model"), "model_not_found"),
        ("rate_limit", api(429, "API Error: Request rejected (429)"), "rate_limited"),
        ("server_error", api(500, "API Error: 500 at 127.0.0.1:1"), "provider_unavailable"),
        ("overloaded", api(529, "API Error: Repeated 529 Overloaded errors"), "provider_unavailable"),
        ("invalid_request", too_long, "context_exceeded"),
        ("billing_error", api(400, "Credit balance is too low"), "quota_exceeded"),
        ("x", limit("error_max_turns", "max_turns"), "limit_reached"),
        ("x", limit("error_max_budget_usd", "budget_exhausted"), "limit_reached"),
        ("unknown", api(418, "API Error: 418"), "agent_error"),
    ];
    for (class, fields, code) in rows {
        let outcome: Outcome = run(Case::with(provider_error(class, fields.clone())), json!({}));
        let payload = outcome.failed(code);
        let retryable = matches!(code, "rate_limited" | "provider_unavailable");
        assert_eq!(payload["retryable"], retryable, "{code}");
        if let Some(status) = fields["api_error_status"].as_u64() {
            assert_eq!(payload["detail"]["http_status"], status, "{code}");
        }
        let words = fields["result"].as_str().or(fields["errors"][0].as_str()).unwrap();
        assert_eq!(payload["detail"]["agent_message"], words, "{code}");
        assert!(!payload["message"].as_str().unwrap().contains("127.0.0.1"), "the sentence is ours: {payload}");
    }
}

fn refused_with(text: &str) -> Case {
    Case::with(provider_error("invalid_request", api(400, text)))
}

#[test]
fn the_agents_own_words_are_clean_redacted_and_then_cut() {
    let secret = "hunter2-Zq7731/x+y";
    let said = |text: &str| -> (Value, Value) {
        let outcome = run(refused_with(text), json!({"secrets": [secret]}));
        let payload = outcome.failed("agent_error").clone();
        for form in [secret, &secret[..10], &secret[10..], "\u{1b}"] {
            outcome.never_shows(form);
        }
        (payload["detail"]["agent_message"].clone(), payload["truncated"].clone())
    };
    assert_eq!(
        said("\u{1b}[31mBad\u{1b}[0m request to 127.0.0.1:9.\nDo less.\n").0,
        "Bad request to 127.0.0.1:9.\nDo less."
    );
    assert_eq!(said(&format!("No access with {secret}.")).0, "No access with [redacted].");
    // An escape sequence does not hide a secret.
    assert_eq!(said(&format!("With {}\u{1b}[1m{}.", &secret[..5], &secret[5..])).0, "With [redacted].");
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Too \"large\"."}});
    assert_eq!(said(&body.to_string()).0, "Too \"large\".");
    // The text is cut at a character, and no possible place of the cut shows a part of the secret.
    for before in 4096 - 40..4096 + 2 {
        let text = format!("{}{secret}{}", "x".repeat(before), "\u{e4}".repeat(100));
        let (words, truncated) = said(&text);
        let words = words.as_str().unwrap().to_owned();
        assert!((4095..=4096).contains(&words.len()) && truncated == true, "{before}: {} bytes", words.len());
    }
    assert_eq!(said(&"x".repeat(4096)), (json!("x".repeat(4096)), Value::Null));
    let outcome = run(refused_with(" \u{1b}[0m"), json!({}));
    assert_eq!(outcome.failed("agent_error")["detail"], json!({"http_status": 400}));
}

#[test]
fn a_person_reads_the_agents_own_words_below_the_sentence() {
    for flags in [&["hi"][..], &["-v", "hi"], &["-q", "hi"]] {
        let case = refused_with("\u{1b}[2Jmax_tokens is too large.\nAt most 8192 are allowed.");
        let output = case.cli(flags);
        let stderr = String::from_utf8(output.stderr).unwrap();
        let wanted = "spektacular: agent_error: Claude Code reported an error: see what it says, below.\n  \
                      max_tokens is too large.\n  At most 8192 are allowed.\n";
        assert!(stderr.contains(wanted), "{flags:?}: {stderr}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_missing_model_is_named_if_it_has_the_form_of_a_name() {
    let message = |payload: Value| {
        let script = provider_error("model_not_found", api(404, "There's an issue with the selected model"));
        let outcome = run(Case::with(script), payload);
        outcome.never_shows("my-secret-model");
        outcome.failed("model_not_found")["message"].as_str().unwrap().to_owned()
    };
    let named =
        |name: &str| format!("The model {name} does not exist, or your account may not use it: choose another model.");
    let nameless = "The model does not exist, or your account may not use it: choose another model.";
    assert_eq!(message(json!({"model": "anthropic/opus-9.9:v1"})), named("anthropic/opus-9.9:v1"));
    assert_eq!(message(json!({"model": "two words"})), nameless);
    assert_eq!(message(json!({"model": "m".repeat(65)})), nameless);
    assert_eq!(message(json!({"model": "my-secret-model", "secrets": ["my-secret-model"]})), named("[redacted]"));
    // If run.start names no model, the agent's own choice counts.
    assert_eq!(message(json!({})), named(MODEL));
}

/// The next attempt at the session would fail in the same way, so the last line shows only its id.
#[test]
fn a_refused_login_or_model_suggests_no_resume() {
    let rows = [
        ("authentication_failed", api(401, "Invalid API key · Fix external API key"), "auth_required", false),
        ("model_not_found", api(404, "There's an issue with the selected model"), "model_not_found", false),
        ("server_error", api(503, "API Error: 503"), "provider_unavailable", true),
    ];
    for (class, fields, code, suggested) in rows {
        let script = provider_error(class, fields);
        let output = Case::with(script).cli(&["go"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(code) && stderr.contains(&format!("session {SESSION}")), "{stderr}");
        assert_eq!(stderr.contains("resume with --continue"), suggested, "{code}: {stderr}");
    }
}

#[test]
fn the_status_of_a_provider_that_fails_is_named() {
    for (status, text, message) in [
        (Some(503), "API Error: 503", "The provider failed with HTTP status 503: try again later."),
        (None, "Unable to connect", "The provider could not be reached or failed: try again later."),
    ] {
        let mut fields = api(0, text);
        fields["api_error_status"] = json!(status);
        let outcome = run(Case::with(provider_error("server_error", fields)), json!({}));
        assert_eq!(outcome.failed("provider_unavailable")["message"], message);
    }
}

#[test]
fn an_error_in_a_message_is_reported_even_without_a_result() {
    let mut line = text("msg_1", "Your plan ended yesterday.");
    line["error"] = json!("billing_error");
    let result = error_result(json!({"subtype": "error_during_execution", "result": null}));
    for (script, code) in [
        (Script::new().out(&line).sh("exit 1"), "agent_exited"),
        (Script::new().out(&line).out(&result), "quota_exceeded"),
    ] {
        let outcome = run(Case::with(script), json!({}));
        let payload = outcome.failed(code);
        assert_eq!(payload["detail"]["agent_message"], "Your plan ended yesterday.");
    }
}

#[test]
fn a_session_that_the_agent_does_not_know_is_session_not_found() {
    let mut result = error_result(json!({
        "subtype": "error_during_execution", "num_turns": 0, "stop_reason": null,
        "errors": ["No conversation found with session ID: 11111111-2222-4333-8444-555555555555"]
    }));
    for key in ["result", "terminal_reason"] {
        result.as_object_mut().unwrap().remove(key);
    }
    let script = Script::bare().sh("prompt").out(&result).sh("echo 'No conversation found' >&2\nRC=1\nlisten");
    let payload = json!({"session_id": "11111111-2222-4333-8444-555555555555"});
    run(Case::with(script), payload).failed("session_not_found");
}

#[test]
fn the_agents_result_takes_precedence_over_its_exit_status() {
    let script = Script::new().say("msg_1", "ok").out(&success("ok")).sh("RC=9\nlisten");
    let outcome = run(Case::with(script), json!({}));
    assert_eq!(outcome.completed()["agent_exit"]["code"], 9);
    let retry = json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 2, "retry_delay_ms": 1.5,
        "error_status": 529, "error": "overloaded"});
    let script = Script::bare().sh("prompt").out(&init()).out(&retry).say("msg_1", "ok").done("ok");
    let outcome = run(Case::with(script), json!({}));
    outcome.completed();
    assert_eq!(outcome.warnings("agent_retrying").len(), 1);
    assert!(outcome.progress("status").iter().any(|f| f.text("status") == "retrying"));
}

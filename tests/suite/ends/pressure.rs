//! Tests of pressure from outside: floods on stdin, a full stderr, a last frame that nobody reads, secrets at the
//! places where texts are cut.

use crate::support::{Case, in_time, io, limit, run, start_line};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

const JSON: &[&str] = &["adhoc", "--output", "json"];

/// An agent that reads its first line and then runs `script`.
fn agent(script: &str) -> Case {
    Case::new().script("bin/claude", &format!("read -r line\n{script}"))
}

#[test]
fn a_flood_of_messages_starves_neither_the_clock_nor_the_agent() {
    let mut seconds = 0.5;
    in_time(|| {
        seconds *= 2.0;
        let case = agent(r#"echo '{"type":"system","subtype":"init","session_id":"s"}'; cat >/dev/null"#);
        let mut session = case.spawn();
        session.start(json!({"timeout_s": seconds}));
        // More than is read until the run has ended.
        session.send_raw("{\"v\":\"1\",\"type\":\"run.dance\"}\n".repeat(500_000).as_bytes());
        let outcome = session.finish();
        outcome.failed("timeout");
        assert_eq!(outcome.exit_code, Some(5));
        let heard = outcome.progress("session").len() == 1;
        if heard { Ok(()) } else { Err(format!("the agent was not heard in {seconds} s")) }
    });
}

/// A case in which the agent of this name runs `script`.
fn any_agent(name: &str, script: &str) -> Case {
    let config = json!({"agents": {"cmd": {"driver": "lines", "command": "cmd"}}});
    let case = Case::new().file("home/.config/spektacular/config.json", &config.to_string());
    case.script(&format!("bin/{name}"), &format!("if [ \"$1\" = --version ]; then exit 1; fi\n{script}"))
}

/// An agent of each dialect.
const AGENTS: [&str; 4] = ["cmd", "claude", "codex", "gemini"];

#[test]
fn blank_lines_stop_neither_the_agent_nor_its_end() {
    for name in AGENTS {
        for count in [30, 1000, 20_000] {
            let script = format!("head -c {count} /dev/zero | tr '\\0' '\\n'; : >passed; exec sleep 60");
            let mut session = any_agent(name, &script).spawn();
            session.start(json!({"agent": name}));
            session.wait_until("all blank lines", || session.case().path("work/passed").exists());
            session.cancel();
            session.finish().cancelled();
        }
    }
}

#[test]
fn a_character_that_the_end_of_a_line_cuts_is_replaced() {
    for name in AGENTS {
        let outcome = run(any_agent(name, "printf 'W\\357\\206\\n\\211In\\n'"), json!({"agent": name}));
        match name {
            "cmd" => assert_eq!(outcome.completed()["text"], "W\u{fffd}\n\u{fffd}In"),
            _ => assert_ne!(outcome.warnings("agent_output_unparsed").len(), 0, "{name}"),
        }
    }
}

#[test]
fn a_full_stderr_delays_neither_frames_nor_the_end() {
    let (_kept, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    while full.write(b"x").map_err(|e| e.kind()) != Err(ErrorKind::WouldBlock) {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let (stdin, mut garbage) = std::io::pipe().unwrap();
    garbage.write_all(b"garbage\n").unwrap();
    drop(garbage);
    let case = agent("cat >/dev/null");
    let done = case.other("work", JSON).stdin(stdin).stderr(full).output().unwrap();
    let last: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(last["payload"]["code"], "invalid_message");
    assert_eq!(done.status.code(), Some(3));
}

#[test]
fn an_unread_last_frame_is_dropped_after_a_stop() {
    let text = "x".repeat(300_000);
    let result = json!({"type": "result", "is_error": false, "result": text, "stop_reason": "end_turn"});
    let case = agent("cat result; cat >/dev/null").file("work/result", &format!("{result}\n"));
    let mut child = case.other("work", JSON).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let start = start_line(r#"{"prompt": "hi", "progress": "minimal"}"#);
    writeln!(stdin, "{start}").unwrap();
    // The frame is longer than a pipe holds. Once the pipe is full, the last frame is being written.
    let out = child.stdout.take().unwrap();
    let full = || rustix::io::ioctl_fionread(&out).unwrap() > 60_000;
    assert!(io::wait_for(limit(), full), "the last frame did not come");
    let stopped = Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = io::exit(&mut child, limit()).expect("the end");
    assert_eq!(status.code(), Some(74));
    assert!(stopped.elapsed() < Duration::from_secs(6), "{:?}", stopped.elapsed());
}

#[test]
fn a_slow_reader_gets_the_terminal_frame_after_a_cancel() {
    let message = json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "word"}]}});
    // The reader must take something each second, so a test that is held up for so long tries again.
    in_time(|| {
        let case = agent(&format!("exec yes '{message}'"));
        match slowly_read(&case) {
            (Some(74), _) => Err("the reader was too slow".into()),
            (code, all) => {
                assert_eq!(code, Some(0));
                let lines: Vec<&[u8]> = all.trim_ascii_end().split(|byte| *byte == b'\n').collect();
                let last: Value = serde_json::from_slice(lines.last().unwrap()).unwrap();
                assert_eq!(last["type"], "run.cancelled");
                assert_eq!(last["id"], format!("msg_{}", lines.len()));
                Ok(())
            }
        }
    });
}

#[test]
fn an_agent_whose_output_nobody_reads_is_not_silent() {
    const IDLE_S: u64 = 1;
    let words = json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "word"}]}});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "session_id": "s"});
    // More than the outbox and both pipes take.
    // An agent that gets no processor is silent too.
    in_time(|| {
        let case = agent(&format!("yes '{words}' | head -n 20000\necho '{result}'\ncat >/dev/null"));
        let mut child = case.other("work", JSON).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let start = json!({"prompt": "hi", "idle_timeout_s": IDLE_S, "heartbeat_s": 0});
        writeln!(stdin, "{}", start_line(&start.to_string())).unwrap();
        // No event: the elapsed time itself is what the clock must not count.
        io::wait_for(Duration::from_secs(3 * IDLE_S), || false);
        let mut all = String::new();
        child.stdout.take().unwrap().read_to_string(&mut all).unwrap();
        io::exit(&mut child, limit()).expect("the end");
        let last: Value = serde_json::from_str(all.lines().last().unwrap()).unwrap();
        if last["payload"]["code"] == "idle_timeout" {
            return Err(last.to_string());
        }
        assert_eq!(last["type"], "run.completed", "{last}");
        Ok(())
    });
}

/// Cancels a run and then reads slowly. Returns the exit code and the frames.
fn slowly_read(case: &Case) -> (Option<i32>, Vec<u8>) {
    let mut child = case.other("work", JSON).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", start_line(r#"{"prompt": "hi"}"#)).unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut all, mut part, mut cancelled) = (Vec::new(), [0; 4096], false);
    loop {
        let count = out.read(&mut part).unwrap();
        if count == 0 {
            break;
        }
        all.extend_from_slice(&part[..count]);
        if all.len() > 100_000 && !std::mem::replace(&mut cancelled, true) {
            writeln!(stdin, r#"{{"v":"1","type":"run.cancel","payload":{{}}}}"#).unwrap();
        }
        if cancelled {
            // No event: the test reads slowly, so that the rest takes longer than a run waits for a stalled reader.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    (io::exit(&mut child, limit()).expect("the end").code(), all)
}

#[test]
fn zombies_of_the_agent_are_reaped_during_the_run() {
    let case = agent(
        r#"(sh -c 'exit 0' &) ; (sh -c 'exit 0' &) ; (sh -c 'exit 0' &)
echo '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"left"}]}}'
cat >/dev/null"#,
    );
    let mut session = case.spawn();
    session.start(json!({}));
    session.until_text("left");
    session.wait_until("no zombie", || {
        let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            let (_, rest) = stat.rsplit_once(") ")?;
            let mut words = rest.split(' ');
            let state = words.next()?.to_owned();
            (words.next()? == session.pid().to_string()).then_some(state)
        });
        children.filter(|state| state == "Z").count() == 0
    });
    session.cancel();
    session.finish().cancelled();
}

#[test]
fn a_secret_is_not_seen_wherever_a_text_is_cut() {
    let secret = "Zq7vK2mXp9Lw4RtY8bNc";
    let mut script = String::new();
    for before in 90..125 {
        let command = format!("echo {}{secret}", "x".repeat(before));
        let block =
            json!({"type": "tool_use", "id": format!("t{before}"), "name": "Bash", "input": {"command": command}});
        let tool = json!({"type": "assistant", "message": {"id": "m", "content": [block]}});
        script.push_str(&format!("echo '{tool}'\n"));
    }
    let questions = json!([{"question": "Which?", "header": secret, "options": [{"label": "A"}, {"label": "B"}]}]);
    let request = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": {"questions": questions}});
    let ask = json!({"type": "control_request", "request_id": "r", "request": request});
    script.push_str(&format!(
        "echo '{ask}'\nread -r line\necho '{}'\ncat >/dev/null",
        json!({"type": "result", "is_error": false, "result": "ok"})
    ));
    let start = json!({"secrets": [secret], "on_question_timeout": "continue", "question_timeout_s": 0.2});
    let outcome = run(agent(&script), start);
    outcome.completed();
    assert!(outcome.stdout.matches("Run echo").count() >= 35 && outcome.stdout.contains("Which?"));
    for part in [&secret[..8], &secret[4..12], &secret[12..]] {
        outcome.never_shows(part);
    }
}

#[test]
fn a_refused_start_shows_no_secret_of_its_own() {
    let secret = "Zq7vK2mXp9Lw4RtY8bNc";
    for bad in [json!({"agent": "nope"}), json!({"prompt": ""}), json!({"cwd": "/nowhere/at/all"})] {
        let mut start = json!({"secrets": [secret], "metadata": {"note": format!("it is {secret}")}});
        start.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
        let outcome = run(agent("cat >/dev/null"), start);
        assert_eq!(outcome.exit_code, Some(2));
        assert_eq!(outcome.frames[0]["payload"]["metadata"]["note"], "it is [redacted]", "{bad}");
    }
}

#[test]
fn a_reader_that_leaves_after_the_last_frame_does_not_change_the_outcome() {
    for _ in 0..40 {
        let mut session = agent("exit 0").spawn();
        session.start(json!({"agent": "nobody"}));
        assert_eq!(session.next_frame().kind(), "run.failed");
        session.close_stdout();
        assert_eq!(session.wait_exit(), (Some(2), None), "invalid_request has exit code 2");
    }
}

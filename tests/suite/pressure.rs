//! Pressure from outside: floods on stdin, a stderr that is full, a last frame that nobody reads, secrets where texts
//! are cut.
#![expect(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use crate::support::{io, limit};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder with an agent that reads its first line and then runs `script`.
fn agent(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("claude");
    fs::write(&file, format!("#!/bin/sh\nread -r line\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn spektacular(agent: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spektacular"));
    command.args(["adhoc", "--output", "json"]).current_dir(agent.path());
    command.env_clear().env("HOME", agent.path());
    command.env("PATH", format!("{}:/usr/bin:/bin", agent.path().display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn line(kind: &str, payload: &Value) -> Vec<u8> {
    let message = json!({"v": "1", "type": kind, "payload": payload});
    format!("{message}\n").into_bytes()
}

/// The exit code, and all of stdout that is there to be read.
fn end(mut child: Child) -> (Option<i32>, Vec<Value>) {
    let stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok));
        lines.map(|line| serde_json::from_str(&line).unwrap()).collect::<Vec<Value>>()
    });
    let code = wait(&mut child);
    (code, reader.join().unwrap())
}

#[track_caller]
fn wait(child: &mut Child) -> Option<i32> {
    let status = io::exit(child, limit()).unwrap_or_else(|| {
        child.kill().unwrap();
        panic!("it did not end");
    });
    status.code()
}

#[test]
fn a_flood_of_messages_keeps_neither_the_clock_nor_the_agent_away() {
    let folder = agent(r#"echo '{"type":"system","subtype":"init","session_id":"s"}'; cat >/dev/null"#);
    let mut child = spektacular(&folder).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&line("run.start", &json!({"prompt": "hi", "timeout_s": 1}))).unwrap();
    // Until the run has ended, and nobody reads any more.
    let flood = thread::spawn(move || while stdin.write_all(&line("run.dance", &json!({}))).is_ok() {});
    let (code, frames) = end(child);
    flood.join().unwrap();
    assert_eq!(frames.last().unwrap()["payload"]["code"], "timeout");
    assert_eq!(code, Some(5));
    assert!(frames.iter().any(|frame| frame["payload"]["kind"] == "session"), "the agent was not heard");
}

#[test]
fn a_full_stderr_holds_neither_a_frame_nor_the_end() {
    let folder = agent("cat >/dev/null");
    let (_kept, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    while full.write(b"x").map_err(|e| e.kind()) != Err(ErrorKind::WouldBlock) {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let mut child = spektacular(&folder).stderr(full).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"garbage\n").unwrap();
    let (code, frames) = end(child);
    assert_eq!(frames.last().unwrap()["payload"]["code"], "invalid_message");
    assert_eq!(code, Some(3));
}

#[test]
fn a_last_frame_that_nobody_reads_is_given_up_after_a_stop() {
    let text = "x".repeat(300_000);
    let result = json!({"type": "result", "is_error": false, "result": text, "stop_reason": "end_turn"});
    let folder = agent("cat result; cat >/dev/null");
    fs::write(folder.path().join("result"), format!("{result}\n")).unwrap();
    let mut child = spektacular(&folder).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&line("run.start", &json!({"prompt": "hi", "progress": "minimal"}))).unwrap();
    // The frame is longer than a pipe: once it is full, the last frame is being written.
    let out = child.stdout.take().unwrap();
    let full = || rustix::io::ioctl_fionread(&out).unwrap() > 60_000;
    assert!(io::wait_for(limit(), full), "the last frame did not come");
    let stopped = Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(wait(&mut child), Some(74));
    assert!(stopped.elapsed() < Duration::from_secs(6), "{:?}", stopped.elapsed());
}

#[test]
fn what_an_agent_leaves_as_zombies_is_reaped_during_the_run() {
    let folder = agent(
        r#"(sh -c 'exit 0' &) ; (sh -c 'exit 0' &) ; (sh -c 'exit 0' &)
echo '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"left"}]}}'
cat >/dev/null"#,
    );
    let mut child = spektacular(&folder).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&line("run.start", &json!({"prompt": "hi"}))).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("\"left\"")).unwrap().unwrap();
    let zombies = || {
        let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            let (_, rest) = stat.rsplit_once(") ")?;
            let mut words = rest.split(' ');
            let state = words.next()?.to_owned();
            (words.next()? == child.id().to_string()).then_some(state)
        });
        children.filter(|state| state == "Z").count()
    };
    assert!(io::wait_for(limit(), || zombies() == 0), "{} zombies stay", zombies());
    stdin.write_all(&line("run.cancel", &json!({}))).unwrap();
    assert_eq!(wait(&mut child), Some(0));
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
    let folder = agent(&script);
    let mut child = spektacular(&folder).spawn().unwrap();
    let start =
        json!({"prompt": "hi", "secrets": [secret], "on_question_timeout": "continue", "question_timeout_s": 0.2});
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&line("run.start", &start)).unwrap();
    let (code, frames) = end(child);
    assert_eq!(code, Some(0));
    let all = Value::from(frames).to_string();
    assert!(all.matches("Bash: echo").count() >= 35 && all.contains("Which?"));
    for part in [&secret[..8], &secret[4..12], &secret[12..]] {
        assert!(!all.contains(part), "{part} is seen");
    }
}

#[test]
fn a_refused_start_shows_no_secret_of_its_own() {
    let secret = "Zq7vK2mXp9Lw4RtY8bNc";
    let folder = agent("cat >/dev/null");
    for bad in [json!({"agent": "nope"}), json!({"prompt": ""}), json!({"cwd": "/nowhere/at/all"})] {
        let mut start = json!({"prompt": "hi", "secrets": [secret], "metadata": {"note": format!("it is {secret}")}});
        start.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
        let mut child = spektacular(&folder).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&line("run.start", &start)).unwrap();
        let (code, frames) = end(child);
        assert_eq!(code, Some(2));
        assert_eq!(frames[0]["payload"]["metadata"]["note"], "it is [redacted]", "{bad}");
    }
}

#[test]
fn whoever_leaves_after_the_last_frame_changes_no_outcome() {
    let folder = agent("exit 0");
    for _ in 0..40 {
        let mut child = spektacular(&folder).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&line("run.start", &json!({"prompt": "Go on", "agent": "nobody"}))).unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut last = String::new();
        stdout.read_line(&mut last).unwrap();
        drop(stdout);
        assert!(last.contains("run.failed"), "{last}");
        assert_eq!(wait(&mut child), Some(2), "invalid_request has exit code 2");
    }
}

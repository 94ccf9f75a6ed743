//! Tests of the dialogue as a whole: the message that begins it, the pipe that carries it, the message that each frame
//! answers, and the kinds of its progress.

use crate::playback::world::{World, exited};
use crate::support::agent::{Script, bash, question};
use crate::support::{Case, Outcome, run};
use serde_json::{Value, json};
use spektacular::agent::registry::Agents;
use spektacular::protocol::request::Options;
use std::collections::BTreeSet;

#[test]
fn nothing_but_a_run_start_begins_a_run() {
    let mut session = Case::with(Script::hello()).spawn();
    session.send("run.input", json!({"question_id": "q_1", "value": "x"}));
    session.send("run.begin", json!({"prompt": "Go"}));
    session.send("run.input", json!({"prompt": "Go"}));
    session.close_stdin();
    let outcome = session.finish();
    outcome.failed("no_start");
    assert_eq!((outcome.frames.len(), outcome.exit_code), (1, Some(3)));
    assert!(!outcome.log().ran(), "an agent was started");
    // A cancel ends the run that has not begun: a later run.start changes nothing.
    let mut session = Case::with(Script::hello()).spawn();
    session.cancel();
    session.start(json!({}));
    let outcome = session.finish();
    outcome.cancelled();
    assert_eq!(outcome.frames.len(), 1);
    assert!(!outcome.log().ran(), "an agent was started");
    // The messages before the run.start are answered after run.started, which is the first frame.
    let mut session = Case::with(Script::hello()).spawn();
    session.send("run.begin", json!({}));
    session.start(json!({}));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!((outcome.frames[0].kind(), outcome.warnings("unknown_type").len()), ("run.started", 1));
}

/// An agent that writes to its stdout and stderr what is no line of its dialect.
fn noisy(then: &Script) -> Script {
    let noise =
        "echo 'not a frame'; printf '{\"v\":\"1\",\"type\":\"run.completed\",\"payload\":{}}\\n'; echo trouble >&2";
    Script::new().sh(noise).sh(&then.steps_after_init()).sh(noise)
}

/// Whether stdout holds frames alone, one a line.
#[track_caller]
fn frames_alone(outcome: &Outcome) {
    assert!(outcome.stdout.ends_with('\n'), "{}", outcome.stdout);
    assert_eq!(outcome.stdout.lines().count(), outcome.frames.len());
    for (at, frame) in outcome.frames.iter().enumerate() {
        let keys: BTreeSet<&str> = frame.as_object().unwrap().keys().map(String::as_str).collect();
        let envelope = ["v", "id", "ts", "type", "run_id", "payload"].into();
        assert!(keys.is_superset(&envelope) && keys.len() <= envelope.len() + 1, "{}", frame.raw);
        assert_eq!((&frame["v"], &frame["id"]), (&json!("1"), &json!(format!("msg_{}", at + 1))));
    }
}

#[test]
fn stdout_carries_frames_alone_and_stderr_one_line_of_a_failed_run() {
    for verbose in [false, true] {
        let case = |script: Script| if verbose { Case::with(script).args(&["--verbose"]) } else { Case::with(script) };
        let said = Script::new().say("msg_1", "Hello.\nNot a frame").done("Hello.");
        let outcome = run(case(noisy(&said)), json!({}));
        outcome.completed();
        frames_alone(&outcome);
        assert!(verbose || outcome.stderr.is_empty(), "{}", outcome.stderr);
        let outcome = run(case(noisy(&Script::new().sh("exit 3"))), json!({}));
        let code = outcome.terminal().text("code").to_owned();
        frames_alone(&outcome);
        let told: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("spektacular: ")).collect();
        assert!(told.len() == 1 && told[0].starts_with(&format!("spektacular: {code}: ")), "{}", outcome.stderr);
        assert!(verbose || outcome.stderr.lines().count() == 1, "{}", outcome.stderr);
    }
}

/// Every kind of progress, at the level that reports it.
#[test]
fn every_kind_of_progress_is_reported_at_its_level_and_above() {
    let todo = json!({"todos": [{"content": "a", "status": "pending", "activeForm": "a"}]});
    let script = || {
        Script::new()
            .think("msg_0", "Hm.")
            .say("msg_1", "Hello.")
            .tool("toolu_1", "TodoWrite", &todo, "ok")
            .ask("req-1", "toolu_2", "Bash", bash("touch a.txt"))
            .tool_result("toolu_2", "ok")
            .raw("garbage")
            .sh(r#"until [ -e "$D/go" ]; do sleep 0.02; done"#)
            .done("Hello.")
    };
    let minimal = ["status", "session", "warning", "question_resolved", "heartbeat"];
    let normal = ["text", "tool", "plan", "usage"];
    for (level, more) in [("minimal", &[][..]), ("normal", &normal), ("full", &[&normal[..], &["reasoning"]].concat())]
    {
        let mut session = Case::with(script()).spawn();
        session.start(json!({"progress": level, "heartbeat_s": 0.2}));
        let asked = session.until("run.question");
        session.answer(&asked, json!("allow_once"));
        session.until_progress("heartbeat");
        std::fs::write(session.log().path("go"), "").unwrap();
        let outcome = session.finish();
        outcome.completed();
        let progress = outcome.of_type("run.progress");
        let kinds: BTreeSet<&str> = progress.iter().map(|frame| frame.text("kind")).collect();
        assert_eq!(kinds, minimal.iter().chain(more).copied().collect(), "{level}");
        assert!(progress.iter().all(|frame| frame["payload"]["text"].is_string()), "{level}");
    }
}

/// A simulated run whose messages all have ids.
struct Asked(World);

impl Asked {
    fn new() -> Asked {
        Asked(World::new("/home/user/project", Options::default(), Agents::built_in()))
    }

    /// Sends a message. Returns the frames that it causes, each with its reply_to.
    fn send(&mut self, id: &str, kind: &str, payload: Value) -> Vec<(String, Option<String>)> {
        let seen = self.0.frames.len();
        self.0.hear(&json!({"v": "1", "id": id, "type": kind, "payload": payload}).to_string());
        self.since(seen)
    }

    fn since(&self, seen: usize) -> Vec<(String, Option<String>)> {
        let label = |value: &Value| {
            let payload = &value["payload"];
            let more = [&payload["kind"], &payload["status"]].map(|word| word.as_str().unwrap_or_default());
            let kind = value["type"].as_str().unwrap();
            let what = if kind == "run.progress" { more.join(" ").trim_end().to_owned() } else { kind.to_owned() };
            (what, value["reply_to"].as_str().map(str::to_owned))
        };
        self.0.frames[seen..].iter().map(|frame| label(&frame.value)).collect()
    }

    fn line(&mut self, line: &Value) -> Vec<(String, Option<String>)> {
        let seen = self.0.frames.len();
        self.0.line(&line.to_string());
        self.since(seen)
    }

    fn question_id(&self) -> Value {
        json!(self.0.question_ids().pop().expect("a question"))
    }
}

#[track_caller]
fn replies(frames: &[(String, Option<String>)], wanted: &[(&str, Option<&str>)]) {
    let frames: Vec<(&str, Option<&str>)> = frames.iter().map(|(what, to)| (what.as_str(), to.as_deref())).collect();
    assert_eq!(frames, wanted);
}

#[test]
fn a_frame_names_the_message_that_caused_it_and_no_other() {
    let mut run = Asked::new();
    let start = json!({"prompt": "Go on", "agent": "claude", "modle": 1});
    replies(
        &run.send("s", "run.start", start),
        &[("run.started", Some("s")), ("warning", Some("s")), ("status starting", None)],
    );
    run.0.spawn();
    let init = json!({"type": "system", "subtype": "init", "session_id": "s"});
    assert!(run.line(&init).iter().all(|(_, to)| to.is_none()));
    let request = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion",
        "input": {"questions": [question("Which?", false)]}, "tool_use_id": "t"});
    let asked = run.line(&json!({"type": "control_request", "request_id": "r", "request": request}));
    assert!(asked.iter().any(|(what, _)| what == "run.question") && asked.iter().all(|(_, to)| to.is_none()));
    let id = run.question_id();
    replies(&run.send("u", "run.dance", json!({})), &[("warning", Some("u"))]);
    replies(&run.send("d", "run.start", json!({"prompt": "x"})), &[("warning", Some("d"))]);
    let bad = json!({"question_id": id, "value": 7});
    replies(&run.send("b", "run.input", bad), &[("run.question", Some("b"))]);
    let good = run.send("g", "run.input", json!({"question_id": id, "declined": true}));
    assert_eq!(good[0], ("question_resolved".to_owned(), Some("g".to_owned())));
    assert!(good[1..].iter().all(|(_, to)| to.is_none()), "{good:?}");
    replies(&run.send("n", "run.input", json!({"question_id": id, "value": "x"})), &[("warning", Some("n"))]);
    replies(&run.send("c", "run.cancel", json!({})), &[("status cancelling", Some("c"))]);
    let seen = run.0.frames.len();
    run.0.gone(exited(0), "");
    replies(&run.since(seen), &[("run.cancelled", None)]);
}

#[test]
fn an_end_before_the_start_names_the_message_that_caused_it() {
    for (kind, payload, end) in [
        ("run.cancel", json!({}), "run.cancelled"),
        ("run.start", json!({"prompt": "Go on", "agent": "nobody"}), "run.failed"),
        ("run.start", json!({"prompt": "Go on", "cwd": 7}), "run.failed"),
    ] {
        let mut session = Case::with(Script::hello()).spawn();
        let id = session.send(kind, payload);
        let outcome = session.finish();
        assert_eq!((outcome.terminal().kind(), &outcome.terminal()["reply_to"]), (end, &json!(id)));
    }
}

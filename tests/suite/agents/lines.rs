//! Tests of any command as an agent: it reads the prompt and prints lines of text, its exit code decides, and a further
//! turn is a further process of the same run. The commands here are real ones. The recordings below testdata/lines hold
//! the frames.

use crate::support;

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::case::executable;
use support::{Case, Outcome, Session, in_time, io, limit, procs, run};

/// A case whose agent `cmd` is this entry of the user's configuration.
fn command(entry: Value) -> Case {
    let case = Case::new();
    fs::create_dir_all(case.path("home/.config/spektacular")).unwrap();
    let mut entry = entry;
    entry["driver"] = json!("lines");
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}});
    fs::write(case.path("home/.config/spektacular/config.json"), config.to_string()).unwrap();
    case
}

/// A shell script; `$D` in it is the folder for notes.
fn shell(script: &str) -> Case {
    let case = command(json!({"command": "sh", "args": ["-c", script]}));
    let log = case.path("log").display().to_string();
    case.env("D", &log)
}

const MARKER: &str = r#"<!--QUESTION:{"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}-->"#;

/// A first process that names a session and asks, and another one that runs `second` with the session and the answer.
fn two(first: &str, second: &str) -> Case {
    let first = format!("echo 'session: s-1'; {first}; printf '%s\\n' \"$0\"");
    let entry = json!({"command": "sh", "args": ["-c", first, MARKER], "session_patterns": ["session: (\\S+)"],
        "resume_args": ["-c", second, "{session}", "{prompt}"]});
    let case = command(entry);
    let log = case.path("log").display().to_string();
    case.env("D", &log)
}

/// Waits until a process has noted its id.
fn noted(session: &Session, name: &str) -> i32 {
    session.wait_until(name, || session.log().text(name).ends_with('\n'));
    session.log().text(name).trim().parse().unwrap()
}

#[test]
fn the_prompt_is_all_of_stdin() {
    let prompt = format!("{}\nwithout an end é", "long line ".repeat(100_000));
    let outcome = run(command(json!({"command": "sh", "args": ["-c", "wc -c; cat <&0"]})), json!({"prompt": prompt}));
    assert_eq!(outcome.completed()["text"], (prompt.len() + 1).to_string());
    let outcome = run(command(json!({"command": "cat"})), json!({"prompt": "a\n\n\nb\n"}));
    assert_eq!(outcome.completed()["text"], "a\n\n\nb");
    // The command decides whether to read stdin.
    let outcome = run(command(json!({"command": "echo", "args": ["done"]})), json!({"prompt": prompt}));
    assert_eq!(outcome.completed()["text"], "done");
}

#[test]
fn the_prompt_is_an_argument_and_stdin_is_empty() {
    let entry = json!({"command": "sh", "args": ["-c", "cat; printf '<%s>' \"$1\"", "--", "{prompt}"]});
    let outcome = run(command(entry.clone()), json!({"prompt": "--help\n'x' $HOME"}));
    assert_eq!(outcome.completed()["text"], "<--help\n'x' $HOME>");
    for prompt in ["x".repeat(131_072), "a\0b".into()] {
        let outcome = run(command(entry.clone()), json!({"prompt": prompt}));
        let failed = outcome.failed("invalid_request");
        assert!(failed["message"].as_str().unwrap().contains("`prompt`"), "{failed}");
        assert!(failed["agent_exit"].is_null());
    }
}

#[test]
fn a_command_has_no_start_timeout_by_default() {
    let outcome = run(shell("echo hi"), json!({}));
    assert!(outcome.frames[0].payload()["config"]["start_timeout_s"].is_null());
    let outcome = run(shell("exec sleep 60"), json!({"start_timeout_s": 0.2}));
    outcome.failed("start_timeout");
}

#[test]
fn the_exit_code_decides_and_stderr_says_why() {
    let why =
        "head -c 20000 /dev/zero | tr '\\0' x >&2; printf '\\nNo \\033[31mkey\\033[0m: set API_KEY_OF_MINE\\n' >&2";
    let outcome = run(shell(&format!("echo said; {why}; exit 3")), json!({"secrets": ["API_KEY_OF_MINE"]}));
    let failed = outcome.failed("agent_error");
    assert_eq!(failed["agent_exit"]["code"], 3);
    assert_eq!(failed["message"], "The agent ended with exit code 3: see detail.stderr_tail.");
    let tail = failed["detail"]["stderr_tail"].as_str().unwrap();
    assert!(tail.ends_with("No key: set [redacted]\n") && tail.len() <= 8192, "{tail}");
    assert_eq!(outcome.said(), "said");
    let outcome = run(shell("echo gone >&2; kill -9 $$"), json!({}));
    let failed = outcome.failed("agent_exited");
    assert_eq!((&failed["agent_exit"]["signal"], &failed["detail"]["stderr_tail"]), (&json!(9), &json!("gone\n")));
    // Without a failure, or without a word on it, there is nothing to show.
    let outcome = run(shell("echo said; echo secret-of-stderr >&2"), json!({}));
    outcome.completed();
    outcome.never_shows("secret-of-stderr");
    assert!(run(shell("exit 3"), json!({})).failed("agent_error")["detail"].is_null());
}

#[test]
fn a_line_that_reports_a_failure_fails_the_turn_whatever_the_exit_code_is() {
    let with = |script: &str| {
        let patterns = json!(["^litellm\\.\\w+", "\"is_error\":true"]);
        run(command(json!({"command": "sh", "args": ["-c", script], "failure_patterns": patterns})), json!({}))
    };
    for (line, code) in [
        ("litellm.AuthenticationError: invalid x-api-key (HTTP 401)", "auth_required"),
        ("litellm.RateLimitError: Error code: 429, too many requests", "rate_limited"),
        ("litellm.Oops: the otter slept", "agent_error"),
        (r#"{"is_error":true,"error":{"message":"overloaded_error: Overloaded"}}"#, "provider_unavailable"),
    ] {
        for (to, exit) in [("", 0), (" >&2", 0), ("", 1)] {
            let outcome = with(&format!("echo said; printf '%s\\n' '{line}'{to}; exit {exit}"));
            let failed = outcome.failed(code);
            let said = failed["detail"]["agent_message"].as_str().unwrap();
            assert!(line.contains(said) && said.len() > 10, "{line}: {failed}");
            assert_eq!(failed["agent_exit"]["code"], exit, "{line}");
        }
    }
    // A line without the sign is a text, and a signal is told as one.
    assert_eq!(with("echo the word litellm.Error").completed()["text"], "the word litellm.Error");
    with("echo litellm.Error; kill -9 $$").failed("agent_exited");
    let entry = json!({"command": "sh", "args": ["-c", "echo"], "failure_patterns": ["fine", "("]});
    let failed = run(command(entry), json!({})).failed("invalid_config")["message"].as_str().unwrap().to_owned();
    assert!(failed.contains("`failure_patterns`: number 2"), "{failed}");
}

#[test]
fn the_text_is_picked_out_of_lines_that_are_json() {
    let lines = concat!(
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"One.\nTwo."},{"type":"tool"}]}}"#,
        "\nplain\n",
        r#"{"type":"result","session_id":"T-1","result":"Three."}"#,
        "\n"
    );
    for (field, wanted) in [("message.content.text", "One.\nTwo.\nplain"), ("result", "plain\nThree."), ("no", "plain")]
    {
        let entry = json!({"command": "printf", "args": ["%s", lines], "text_field": field,
            "session_patterns": ["\"session_id\":\"([^\"]+)\""], "resume_args": ["{session}"]});
        let outcome = run(command(entry), json!({}));
        let completed = outcome.completed();
        assert_eq!((&completed["text"], &completed["session_id"]), (&json!(wanted), &json!("T-1")), "{field}");
    }
}

#[test]
fn a_session_named_on_stderr_is_found() {
    let entry = json!({"command": "sh", "args": ["-c", "echo hi; printf '\\033[2msession: s-7\\033[0m\\n' >&2; yes log | head -n 9000 >&2"],
        "session_patterns": ["session: (\\S+)"], "resume_args": ["-c", "printf '%s' \"$0\"", "{session}"]});
    let outcome = run(command(entry), json!({}));
    assert_eq!(outcome.completed()["session_id"], "s-7");
    assert_eq!(outcome.progress("session").last().unwrap().text("session_id"), "s-7");
    assert_eq!(outcome.said(), "hi");
}

/// A command does not ask, so that nothing can deny it an action.
#[test]
fn a_policy_that_denies_is_refused_or_a_warning() {
    for policy in [json!("read-only"), json!("deny"), json!({"execute": "deny"}), json!({"read": "allow", "*": "deny"})]
    {
        let outcome = run(shell("echo hi >started"), json!({"permissions": policy}));
        let failed = outcome.failed("invalid_request");
        let message = failed["message"].as_str().unwrap();
        assert!(
            message.contains("`permissions` cannot be enforced with the agent cmd: use `sandbox` with \"read-only\""),
            "{message}"
        );
        assert!(failed["agent_exit"].is_null() && !outcome.case().work().join("started").exists());
        let outcome = run(shell("echo hi"), json!({"permissions": policy, "on_unsupported": "warn"}));
        outcome.completed();
        let warnings = outcome.warnings("unsupported_option");
        assert!(warnings.len() == 1 && warnings[0].text("text").contains("`permissions`"), "{policy}");
    }
    for policy in [json!("ask"), json!("allow"), json!({"edit": "ask", "*": "allow"})] {
        let outcome = run(shell("echo hi"), json!({"permissions": policy}));
        assert!(outcome.completed()["text"] == "hi" && outcome.progress("warning").is_empty());
    }
    let outcome = run(shell("echo hi"), json!({"allowed_tools": ["Read"]}));
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap();
    assert!(message.contains("use another agent"), "{message}");
}

#[test]
fn an_empty_answer_is_a_warning() {
    for script in ["true", "echo; echo '  '; printf '\\033[0m\\n'"] {
        let outcome = run(shell(script), json!({}));
        assert_eq!(outcome.completed()["text"], "");
        assert_eq!(outcome.warnings("empty_result").len(), 1, "{script}");
    }
}

#[test]
fn a_line_of_ten_megabytes_is_read_in_parts() {
    let outcome = run(shell("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end"), json!({}));
    let text = outcome.completed()["text"].as_str().unwrap().len();
    assert!(text < 4_194_304 && text > 4_000_000 && outcome.completed()["truncated"] == true, "{text}");
    assert_eq!(outcome.said().len(), 10_000_000 + "\nend".len());
    let id = outcome.completed()["message_id"].as_str().unwrap();
    assert!(outcome.progress("text").iter().all(|frame| frame.text("message_id") == id));
}

#[test]
fn binary_output_is_text_in_the_end() {
    let outcome = run(shell("head -c 300000 /dev/urandom; echo; echo 'it was noise'"), json!({}));
    assert!(outcome.completed()["text"].as_str().unwrap().ends_with("\nit was noise"));
    assert!(!outcome.said().contains('\u{1b}') && !outcome.said().contains('\r'));
}

#[test]
fn a_question_is_answered_by_a_second_process() {
    let mut session = two("echo one", "echo \"$0 got $1\"; cat").spawn();
    session.start(json!({"timeout_s": 50}));
    let question = session.until("run.question");
    session.answer(&question, json!("B"));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "s-1 got B");
    assert_eq!(outcome.completed()["session_id"], "s-1");
    assert_eq!(outcome.resolutions(), ["answered"]);
    assert!(!outcome.said().contains("QUESTION"));
}

#[test]
fn both_processes_are_seen_against_the_first_state() {
    // This includes changes that the command makes while git still takes the baseline.
    let first = "echo x >one.txt; echo x >gone.txt; echo y >>old.txt";
    let outcome = in_time(|| {
        let mut session = two(first, "echo y >two.txt; echo z >>old.txt; rm gone.txt; echo ok").git().spawn();
        session.start(json!({}));
        let question = session.until("run.question");
        session.answer(&question, json!("A"));
        let outcome = session.finish();
        let late = outcome.warnings("artifacts_incomplete").first().map(|warning| warning.raw.clone());
        late.map_or(Ok(outcome), Err)
    });
    let all = outcome.completed()["artifacts"].as_array().unwrap();
    let paths: Vec<&str> = all.iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["gone.txt", "old.txt", "one.txt", "two.txt"]);
}

#[test]
fn a_cancel_between_two_processes_ends_at_once() {
    for by_signal in [false, true] {
        let mut session = two("true", "echo never").spawn();
        session.start(json!({}));
        session.until("run.question");
        match by_signal {
            true => session.signal(Signal::TERM),
            false => drop(session.cancel()),
        }
        let outcome = session.finish();
        assert_eq!(outcome.cancelled()["session_id"], "s-1");
        assert_eq!(outcome.cancelled()["agent_exit"]["code"], 0);
        assert_eq!(outcome.resolutions(), ["withdrawn"]);
    }
}

#[test]
fn the_second_process_is_stopped_like_the_first() {
    let second = "trap '' INT HUP; echo $$ >\"$D/second\"; echo up; while :; do sleep 1; done";
    let mut session = two("true", second).spawn();
    session.start(json!({"progress": "full"}));
    let question = session.until("run.question");
    session.answer(&question, json!("A"));
    let pid = noted(&session, "second");
    session.cancel();
    let outcome = session.finish();
    // SIGTERM ends it. If the machine gives it no time to die, SIGKILL follows.
    let signal = &outcome.cancelled()["agent_exit"]["signal"];
    assert!(signal == 15 || signal == 9, "{signal}");
    assert!(io::wait_for(limit(), || !procs::alive(pid)), "{pid} is alive");
}

#[test]
fn the_limit_of_the_run_covers_both_processes() {
    // Doubles the limit until the first process has asked in time.
    let timed_out = |second: &str, answers: bool| {
        let mut seconds = 0.5;
        in_time(|| {
            seconds *= 2.0;
            let mut session = two("true", second).spawn();
            session.start(json!({"timeout_s": seconds}));
            let frame = session.until_where("a question or the end", |f| f.kind() == "run.question" || f.is_terminal());
            if frame.is_terminal() {
                return Err(frame.raw);
            }
            if answers {
                session.answer(&frame, json!("A"));
            }
            let outcome = session.finish();
            outcome.failed("timeout");
            assert!(outcome.took() >= Duration::from_secs_f64(seconds), "{:?}", outcome.took());
            let got_there = !answers || !outcome.log().text("second").is_empty();
            if got_there { Ok(()) } else { Err("the second process was not started in time".into()) }
        });
    };
    timed_out("echo up >\"$D/second\"; exec sleep 60", true);
    // The clock of the run continues while no process runs.
    timed_out("echo never", false);
}

#[test]
fn a_second_process_that_cannot_start_fails_the_run() {
    let case = two("mv \"$D/../bin/tool\" \"$D/tool\"", "echo never");
    executable(&case.path("bin/tool"), &fs::read("/bin/sh").unwrap(), 0o755);
    let config = case.path("home/.config/spektacular/config.json");
    let text = fs::read_to_string(&config).unwrap().replace("\"command\":\"sh\"", "\"command\":\"tool\"");
    fs::write(&config, text).unwrap();
    let mut session = case.spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    session.answer(&question, json!("A"));
    let outcome = session.finish();
    assert_eq!(outcome.failed("agent_not_found")["session_id"], "s-1");
}

#[test]
fn answers_that_fit_no_command_line_fail_the_run() {
    let mut session = two("true", "echo never").spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    session.answer(&question, json!("x".repeat(131_072)));
    session.finish().failed("invalid_request");
}

#[test]
fn the_second_process_starts_after_the_first_ones_leftovers_are_stopped() {
    let first =
        "(setsid sh -c 'echo $$ >\"$D/child\"; exec sleep 300' &); while ! [ -s \"$D/child\" ]; do sleep 0.02; done";
    let mut session = two(first, "kill -0 $(cat \"$D/child\") 2>/dev/null && echo alive || echo gone").spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    session.answer(&question, json!("A"));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "gone");
    assert_eq!(outcome.warnings("leaked_process").len(), 1);
}

#[test]
fn the_second_process_ends_with_spektacular() {
    let mut session = two("true", "echo $$ >\"$D/second\"; trap '' TERM; while :; do sleep 1; done").spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    session.answer(&question, json!("A"));
    let pid = noted(&session, "second");
    session.signal(Signal::KILL);
    session.wait_until("the end of the second process", || !procs::alive(pid));
    drop(session);
}

#[test]
fn a_session_is_resumed_by_its_own_command_line() {
    let outcome = run(two("true", "echo \"$0: $1\""), json!({"session_id": "s-9", "prompt": "go on"}));
    assert_eq!(outcome.completed()["text"], "s-9: go on");
    assert_eq!(outcome.completed()["session_id"], "s-9");
    let outcome = run(shell("echo hi"), json!({"session_id": "s-9"}));
    assert!(outcome.failed("invalid_request")["message"].as_str().unwrap().contains("`session_id`"));
    let outcome = run(two("true", "echo \"$0: $1\""), json!({"session_id": "s-9", "fork": true}));
    assert!(outcome.failed("invalid_request")["message"].as_str().unwrap().contains("`fork`"));
}

/// In a recording, and on stderr in verbose mode.
#[test]
fn verbose_output_shows_each_attempt_to_find_a_session() {
    let patterns = ["run ([0-9]+)", "session=(.*)", "chat: (\\S+)"];
    let say = "echo hello; echo session=--no; echo 'chat: c-7'; echo session=later";
    let entry = json!({"command": "sh", "args": ["-c", say], "session_patterns": patterns});
    let told = [
        "number 2 of session_patterns matched line 2, but the match cannot be a session id",
        "number 3 of session_patterns matched line 3: found the session id",
        "number 1 of session_patterns matched none of 3 lines",
    ];
    let case = command(entry.clone());
    let record = case.path("work/run.jsonl");
    let outcome = run(case.args(&["--record", "run.jsonl"]), json!({}));
    assert_eq!(outcome.completed()["session_id"], "c-7");
    assert_eq!(outcome.stderr, "", "an orchestrator gets frames alone");
    let recording = fs::read_to_string(record).unwrap();
    let lines = recording.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let notes: Vec<String> = lines.filter_map(|line| line["note"].as_str().map(str::to_owned)).collect();
    assert_eq!(notes, told);
    assert!(spektacular::recording::Recording::parse(&recording).is_ok());

    let said = |flags: &[&str]| String::from_utf8(command(entry.clone()).cli(flags).stderr).unwrap();
    let verbose = said(&["--verbose", "hi"]);
    assert!(told.iter().all(|line| verbose.contains(&format!("spektacular: {line}\n"))), "{verbose}");
    assert!(!said(&["hi"]).contains("session_patterns"));

    // Without configured patterns, nothing is searched.
    let plain = command(json!({"command": "echo", "args": ["hi"]})).cli(&["--verbose", "hi"]);
    assert!(!String::from_utf8(plain.stderr).unwrap().contains("session_patterns"));
}

#[test]
fn a_pattern_that_cannot_be_used_is_named() {
    let outcome = run(command(json!({"command": "echo", "session_patterns": ["a", "(?<=x)y"]})), json!({}));
    let failed = outcome.failed("invalid_config");
    assert!(failed["message"].as_str().unwrap().contains("`session_patterns`: number 2"), "{failed}");
}

#[test]
fn a_secret_over_two_lines_is_not_recorded() {
    let secret =
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1234567890\nabcdefghijklmnop\n-----END RSA PRIVATE KEY-----";
    for level in ["minimal", "normal", "full"] {
        let case = command(json!({"command": "cat"}));
        let file = case.path("log/run.jsonl");
        let case = case.args(&["--record", &file.display().to_string()]);
        let outcome: Outcome = run(case, json!({"prompt": format!("before\n{secret}\nafter"), "progress": level}));
        assert_eq!(outcome.completed()["text"], "before\n[redacted]\nafter");
        let recorded: Vec<Value> =
            outcome.log().text("run.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let said: Vec<&str> = recorded.iter().filter_map(|moment| moment["agent"].as_str()).collect();
        assert!(!said.concat().contains("MIIEow"), "{level}: {said:?}");
        assert!(said.concat().contains("[redacted]"), "{level}: {said:?}");
    }
}

#[test]
fn a_pattern_of_a_session_has_limits() {
    let entry = |pattern: &str| json!({"command": "sh", "args": ["-c", "echo id=s-1"], "session_patterns": [pattern]});
    for large in ["^(?:a?){100000}b$", "(?:(?:a{1000}){1000}){1000}"] {
        let outcome = run(command(entry(large)), json!({}));
        let message = outcome.failed("invalid_config")["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("`session_patterns`: number 1")
                && message.contains("at most 4 KiB, compiled at most 64 KiB"),
            "{message}"
        );
    }
    let outcome = run(command(entry("id=(.*)")), json!({}));
    assert_eq!(outcome.completed()["session_id"], "s-1");
}

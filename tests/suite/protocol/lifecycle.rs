//! Tests of a successful run: its start, its frames, its end.

use crate::support;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::agent::{MODEL, SESSION, Script, VERSION, bash, success, tool_result};
use support::{Case, Frame, Outcome, RUN, in_time, run, run_to_exit, run_with_git, slack, start_line};

fn hello(payload: Value) -> Outcome {
    run(Case::with(Script::hello()), payload)
}

#[test]
fn a_run_completes_with_the_agents_answer_and_all_keys() {
    let outcome = run_to_exit(|| Case::with(Script::hello()), &json!({"prompt": "Say hello"}), 0);
    let payload = outcome.completed();
    assert_eq!(payload["text"], "Hello");
    assert_eq!(payload["session_id"], SESSION);
    assert_eq!(payload["stop_reason"], "end_turn");
    assert_eq!(payload["structured_output"], Value::Null);
    assert_eq!(payload["completion_detected"], false);
    assert_eq!(payload["artifacts"], json!([]));
    assert_eq!(outcome.said(), "Hello");
    assert_eq!(outcome.log().prompts(), ["Say hello"]);
}

#[test]
fn the_prompt_goes_by_stdin_and_never_by_argv() {
    let outcome = hello(json!({"prompt": "a-rare-prompt-7731"}));
    assert_eq!(outcome.log().prompts(), ["a-rare-prompt-7731"]);
    let argv = outcome.log().argv().join(" ");
    assert!(!argv.contains("7731"));
    assert!(argv.starts_with("--print --output-format stream-json --input-format stream-json "), "{argv}");
}

#[test]
fn run_started_reports_agent_config_protocol_and_capabilities() {
    let outcome = hello(json!({}));
    let started = &outcome.frames[0];
    assert_eq!(started.kind(), "run.started");
    assert_eq!(started["reply_to"], "start");
    let payload = started.payload();
    assert_eq!(payload["agent"]["name"], "claude");
    assert!(payload["agent"]["display_name"].is_string());
    assert!(payload["agent"]["version"].is_null() || payload["agent"]["version"].is_string());
    assert_eq!(payload["protocol"]["v"], "1");
    assert_eq!(payload["protocol"]["minor"], 2);
    let version = payload["protocol"]["spektacular"].as_str().expect("version");
    assert_eq!(version.split('.').count(), 3, "{version}");
    let capabilities = &payload["capabilities"];
    let kinds: Vec<&str> = capabilities["questions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    // These are the kinds of the tool that the model is offered. Its own tool asks only for a choice.
    assert_eq!(kinds, ["confirm", "select", "text", "secret", "file_path"]);
    for key in ["resume", "deltas", "structured_output", "usage"] {
        let value = capabilities.get(key).unwrap_or_else(|| panic!("capability {key}"));
        assert!(value.is_boolean() || value.is_null(), "{key}: {value}");
    }
    assert_eq!(payload["metadata"], json!({}));
}

/// The agent does nothing, not even read, until the test allows it, and the test allows it only after run.started.
/// `cargo bench` measures the time until run.started, as a ratio to `--version`.
#[test]
fn run_started_does_not_wait_for_the_agent() {
    let gate = "mkfifo \"$D/gate\"\nnote waiting\nread -r go <\"$D/gate\"";
    let mut session = Case::with(Script::bare().sh(gate).sh(&Script::hello().body())).spawn();
    session.start(json!({}));
    session.until("run.started");
    session.wait_note("waiting");
    assert_eq!(session.log().text("stdin"), "", "the agent did not wait");
    fs::write(session.log().path("gate"), "go\n").unwrap();
    session.finish().completed();
}

#[test]
fn the_orchestrators_run_id_is_used_and_a_missing_one_is_generated() {
    assert_eq!(hello(json!({})).frames[0]["run_id"], RUN);
    let mut session = Case::with(Script::hello()).spawn();
    session.send_line(r#"{"v":"1","type":"run.start","payload":{"prompt":"hi"}}"#);
    let outcome = session.finish();
    outcome.completed();
    assert!(outcome.frames[0]["run_id"].as_str().unwrap().starts_with("run_"));
    assert_eq!(outcome.frames[0].get("reply_to"), None, "the message had no id");
}

#[test]
fn a_session_is_resumed_by_a_single_argument() {
    let outcome = hello(json!({"session_id": SESSION}));
    outcome.completed();
    assert!(outcome.log().argv().contains(&format!("--resume={SESSION}")), "{:?}", outcome.log().argv());
}

#[test]
fn a_fork_begins_from_a_session() {
    let outcome = hello(json!({"session_id": SESSION, "fork": true}));
    outcome.completed();
    let argv = outcome.log().argv();
    assert!(argv.contains(&"--fork-session".into()) && argv.contains(&format!("--resume={SESSION}")), "{argv:?}");
    let message = hello(json!({"fork": true})).failed("invalid_request")["message"].clone();
    assert!(message.as_str().unwrap().starts_with("run.start: `fork` needs `session_id`"), "{message}");
    let said = Case::with(Script::hello()).cli(&["--fork", "hi"]);
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert!(stderr.contains("--fork needs --session"), "{stderr}");
}

/// Claude Code counts the cost of the whole session, and stores it at the end of each run.
#[test]
fn the_cost_of_a_resumed_session_is_that_of_the_run() {
    let file = format!("home/.claude/projects/work/{SESSION}.jsonl");
    let state = |cost: f64| json!({"type": "cost-state", "sessionId": SESSION, "totalCostUSD": cost}).to_string();
    let prompt = json!({"type": "last-prompt", "lastPrompt": state(9.0)}).to_string();
    let stored = [state(0.05), state(0.125), prompt].join("\n");
    for (text, cost) in [(stored, json!(0.125)), ("{\"type\":\"user\"}\n".to_owned(), Value::Null)] {
        let outcome = run(Case::with(Script::hello()).file(&file, &text), json!({"session_id": SESSION}));
        assert_eq!(outcome.completed()["usage"]["cost_usd"], cost);
    }
}

#[test]
fn the_agent_works_in_cwd_and_by_default_in_the_processs_own() {
    let case = Case::with(Script::hello());
    let own = case.work();
    assert_eq!(run(case, json!({})).log().cwd(), own.display().to_string());
    let case = Case::with(Script::hello());
    let other = fs::canonicalize(case.path("home")).unwrap();
    assert_eq!(run(case, json!({"cwd": other})).log().cwd(), other.display().to_string());
}

#[test]
fn env_is_added_to_the_agents_environment() {
    let case = Case::with(Script::hello()).env("INHERITED", "yes");
    let outcome = run(case, json!({"env": {"ADDED": "a b=c"}}));
    let log = outcome.log();
    assert_eq!(log.env("ADDED").as_deref(), Some("a b=c"));
    assert_eq!(log.env("INHERITED").as_deref(), Some("yes"));
}

#[test]
fn env_allow_keeps_only_the_named_and_the_basic_variables() {
    let case = Case::with(Script::hello())
        .env("ONE_NAMED", "1")
        .env("MY_FIRST", "2")
        .env("MYSELF", "3")
        .env("OTHER", "4")
        .env("LC_TIME", "C")
        .env("TERM", "dumb")
        .env("USER", "someone");
    let outcome = run(case, json!({"env_allow": ["ONE_NAMED", "MY_*"], "env": {"ADDED": "5"}}));
    let log = outcome.log();
    for name in ["ONE_NAMED", "MY_FIRST", "ADDED", "PATH", "HOME", "USER", "LANG", "LC_TIME", "TERM", "TMPDIR"] {
        assert!(log.env(name).is_some(), "{name} is missing");
    }
    for name in ["OTHER", "MYSELF"] {
        assert_eq!(log.env(name), None, "{name} came through");
    }
}

/// A hook of git's, from which a run may be started, has them.
#[test]
fn variables_that_lead_git_to_a_repository_reach_no_agent_unless_env_sets_them() {
    let names = Command::new("git").args(["rev-parse", "--local-env-vars"]).output().unwrap().stdout;
    let names = String::from_utf8(names).unwrap();
    let names = || names.lines().chain(["GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES"]);
    assert!(names().count() > 10);
    for allowed in [json!(null), json!(["GIT_*"])] {
        let case = names().fold(Case::with(Script::hello()), |case, name| case.env(name, "0"));
        let case = case.env("GIT_AUTHOR_NAME", "A");
        let outcome = run(case, json!({"env_allow": allowed, "env": {"GIT_PREFIX": "set"}}));
        let log = outcome.log();
        for name in names().filter(|name| *name != "GIT_PREFIX") {
            assert_eq!(log.env(name), None, "{name} came through");
        }
        assert_eq!(log.env("GIT_PREFIX").as_deref(), Some("set"));
        assert_eq!(log.env("GIT_AUTHOR_NAME").as_deref(), Some("A"));
    }
}

#[test]
fn metadata_is_returned_unchanged_down_to_the_text_of_its_numbers() {
    let mut session = Case::with(Script::hello()).spawn();
    let metadata = r#"{"z":1.0,"a":12345678901234567890123,"e":1e3,"n":-0.0,"t":"ä\n","deep":[{"b":null},[true]]}"#;
    session.send_line(&start_line(&format!(r#"{{"prompt":"hi","metadata":{metadata}}}"#)));
    let outcome = session.finish();
    outcome.completed();
    for frame in [&outcome.frames[0], outcome.terminal()] {
        for number in [r#""z":1.0"#, r#""a":12345678901234567890123"#, r#""e":1e3"#, r#""n":-0.0"#] {
            assert!(frame.raw.contains(number), "{number} in {}", frame.raw);
        }
        assert_eq!(frame["payload"]["metadata"]["t"], "ä\n");
        assert_eq!(frame["payload"]["metadata"]["deep"], json!([{"b": null}, [true]]));
    }
}

#[test]
fn a_heartbeat_names_the_side_that_the_run_waits_for() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({"heartbeat_s": 0.15, "progress": "minimal"}));
    let question = session.until("run.question");
    let beat = session.until_progress("heartbeat");
    assert_eq!(beat.text("waiting_on"), "input");
    session.answer(&question, json!("deny"));
    session.finish().completed();

    let mut session = Case::with(Script::new().sh("listen")).spawn();
    session.start(json!({"heartbeat_s": 0.15, "progress": "minimal"}));
    session.until_progress("session");
    let first = session.until_progress("heartbeat");
    let second = session.until_progress("heartbeat");
    assert_eq!(first.text("waiting_on"), "agent");
    // The times of their arrival say nothing: this test may read both late.
    let idle = |beat: &Frame| beat["payload"]["idle_s"].as_f64().unwrap();
    assert!(idle(&second) - idle(&first) >= 0.149, "heartbeats without the silence between");
    session.cancel();
    session.finish().cancelled();
}

/// Text, reasoning, a tool and its output, and a plan.
fn everything() -> Script {
    let todos = json!({"todos": [{"content": "one", "status": "pending", "activeForm": "doing one"}]});
    Script::new()
        .think("msg_1", "hmm")
        .say("msg_2", "Hello")
        .tool("toolu_1", "Bash", &bash("echo hi"), "the-output-of-it")
        .tool("toolu_2", "TodoWrite", &todos, "ok")
        .done("Hello")
}

#[test]
fn the_progress_level_decides_which_kinds_are_reported() {
    for (level, text, reasoning) in [("minimal", false, false), ("normal", true, false), ("full", true, true)] {
        let outcome = run(Case::with(everything()), json!({"progress": level}));
        outcome.completed();
        let has = |kind: &str| !outcome.progress(kind).is_empty();
        assert!(has("status") && has("session"), "{level}");
        assert_eq!([has("text"), has("tool"), has("reasoning")], [text, text, reasoning], "{level}");
        if level == "minimal" {
            assert!(!has("usage") && !has("plan"), "{level}");
        }
        let output = outcome.progress("tool").iter().any(|f| f.text("output").contains("the-output-of-it"));
        assert_eq!(output, level == "full", "the tool's output at level {level}");
        assert_eq!(outcome.completed()["text"], "Hello", "the answer itself is never governed");
    }
}

#[test]
fn a_message_in_pieces_joins_to_the_whole_and_ends_once() {
    let script = Script::new().say_pieces("msg_1", &["Hel", "lo ", "world"]).done("Hello world");
    let outcome = run(Case::with(script), json!({"progress": "full"}));
    let texts = outcome.progress("text");
    assert_eq!(outcome.said(), "Hello world");
    let id = texts[0].text("message_id");
    assert!(texts.iter().all(|f| f.text("message_id") == id));
    let done: Vec<bool> = texts.iter().map(|f| f["payload"]["done"] == true).collect();
    assert!(done.last() == Some(&true) && done.iter().filter(|d| **d).count() == 1, "{done:?}");
}

#[test]
fn a_tool_is_reported_from_its_start_to_its_end() {
    let input = json!({"file_path": "/etc/hostname"});
    let script = Script::new().tool("toolu_1", "Read", &input, "x").say("msg_1", "ok").done("ok");
    let outcome = run(Case::with(script), json!({}));
    let tools = outcome.progress("tool");
    let states: Vec<&str> = tools.iter().map(|f| f.text("state")).collect();
    assert_eq!(states, ["started", "completed"]);
    assert_eq!(tools[0].text("call_id"), tools[1].text("call_id"));
    assert_eq!(tools[0].text("category"), "read");
    assert_eq!(tools[0]["payload"]["locations"][0]["path"], "/etc/hostname");
}

#[test]
fn the_work_of_a_sub_agent_names_the_call_that_started_it() {
    let mut line = support::agent::text("msg_2", "from below");
    line["parent_tool_use_id"] = json!("toolu_1");
    let input = json!({"description": "sub job", "prompt": "do it", "subagent_type": "general-purpose"});
    let script = Script::new()
        .tool_use("toolu_1", "Task", &input)
        .out(&line)
        .tool_result("toolu_1", "done")
        .say("msg_3", "from above")
        .done("from above");
    let outcome = run(Case::with(script), json!({}));
    outcome.completed();
    let task = outcome.progress("tool")[0].clone();
    assert_eq!(task.text("category"), "agent");
    for text in outcome.progress("text") {
        let below = text.text("text") == "from below";
        assert_eq!(text.text("parent_call_id"), if below { task.text("call_id") } else { "" }, "{}", text.raw);
    }
}

#[test]
fn paths_are_relative_inside_cwd_and_absolute_outside() {
    let case = Case::new();
    let inside = json!({"file_path": case.work().join("src/a.txt")});
    let outside = json!({"file_path": "/etc/hostname"});
    let script = Script::new()
        .tool("toolu_1", "Read", &inside, "x")
        .tool("toolu_2", "Read", &outside, "x")
        .say("msg_1", "ok")
        .done("ok");
    let outcome = run(case.agent(script), json!({}));
    outcome.completed();
    let path = |call: usize| outcome.progress("tool")[call]["payload"]["locations"][0]["path"].clone();
    assert_eq!((path(0), path(2)), (json!("src/a.txt"), json!("/etc/hostname")));
}

/// Every kind of line break from the agent counts as one line break. The invariants of every run check the texts.
#[test]
fn titles_are_one_line() {
    let script = Script::new()
        .tool("toolu_1", "Odd\nName", &json!({"file_path": "/a\rb"}), "x")
        .ask("req-1", "toolu_2", "Bash", bash("echo one\rtwo"))
        .tool_result("toolu_2", "x")
        .done("ok");
    let outcome = run(Case::with(script), json!({"permissions": "allow"}));
    outcome.completed();
    let titles: Vec<&str> = outcome.progress("tool").iter().map(|frame| frame.text("text")).collect();
    assert_eq!(titles[..3], ["Odd", "Odd", "Run echo one two"]);
    assert_eq!(outcome.progress("question_resolved")[0].text("text"), "Run echo one two: allow_once (policy)");
}

#[test]
fn usage_includes_cached_tokens() {
    let outcome = hello(json!({}));
    let expected = json!({"input_tokens": 17, "output_tokens": 5, "cached_input_tokens": 7, "cost_usd": 0.25});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(outcome.completed()["usage"][key].as_f64(), value.as_f64(), "{key}");
    }
}

#[test]
fn the_session_is_reported_as_soon_as_it_is_known() {
    // The agent waits until it is told to continue.
    let script = Script::new().sh(r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#).say("msg_1", "Hello").done("Hello");
    let mut session = Case::with(script).spawn();
    session.start(json!({"progress": "minimal"}));
    session.until_progress("session");
    fs::write(session.log().path("go"), "").unwrap();
    let outcome = session.finish();
    outcome.completed();
    let sessions = outcome.progress("session");
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].text("session_id"), SESSION);
    assert_eq!(sessions[0].text("agent_version"), VERSION);
    assert_eq!(sessions[0].text("model"), MODEL);
}

/// The status `starting` comes before the agent writes anything.
#[test]
fn the_start_of_the_agent_is_reported() {
    let mut session = Case::with(Script::bare().sh("while recv; do control; done")).spawn();
    session.start(json!({"progress": "minimal"}));
    session.until_status("starting");
    session.cancel();
    let outcome = session.finish();
    outcome.cancelled();
    let statuses: Vec<&str> = outcome.progress("status").iter().map(|frame| frame.text("status")).collect();
    assert_eq!(statuses, ["starting", "cancelling"]);
    let missing = run(Case::new(), json!({}));
    missing.failed("agent_not_found");
    assert_eq!(missing.progress("status").len(), 1);
    // A run that cannot try to start its agent never has the status `starting`.
    assert!(run(Case::new(), json!({"agent": "nobody"})).progress("status").is_empty());
}

#[test]
fn the_status_follows_the_run() {
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({"progress": "minimal"}));
    session.until_status("running");
    let question =
        session.until_where("question or waiting", |f| f.kind() == "run.question" || f.is_progress("status"));
    let question = if question.kind() == "run.question" { question } else { session.until("run.question") };
    session.answer(&question, json!("deny"));
    let outcome = session.finish();
    outcome.completed();
    let statuses: Vec<&str> = outcome.progress("status").iter().map(|f| f.text("status")).collect();
    assert!(statuses.contains(&"waiting_for_input"), "{statuses:?}");
}

#[test]
fn the_end_of_stdin_does_not_end_the_run() {
    let mut session = Case::with(Script::new().sh(r#"while ! [ -e "$D/go" ]; do sleep 0.02; done"#).done("ok")).spawn();
    session.start(json!({})).close_stdin();
    session.until_progress("session");
    fs::write(session.log().path("go"), "").unwrap();
    assert_eq!(session.finish().completed()["text"], "ok");
}

#[test]
fn stdin_that_ends_before_a_start_ends_the_run() {
    let mut session = Case::with(Script::hello()).spawn();
    session.close_stdin();
    let outcome = session.finish();
    outcome.failed("no_start");
    assert_eq!(outcome.frames.len(), 1);
    assert!(outcome.frames[0]["run_id"].as_str().unwrap().starts_with("run_"));
    assert!(!outcome.log().ran());
}

#[test]
fn the_process_ends_at_once_while_stdin_stays_open() {
    in_time(|| {
        let outcome = hello(json!({}));
        let after = outcome.ended - outcome.terminal().at;
        if after < slack() { Ok(()) } else { Err(format!("{after:?} after the terminal frame")) }
    });
}

#[test]
fn an_agent_that_lingers_after_its_result_has_two_seconds() {
    let script = Script::new().say("m", "ok").result("ok").sh("trap '' TERM; while :; do sleep 1; done");
    let started = Instant::now();
    run(Case::with(script), json!({})).completed();
    // The agent never ends by itself, so this run would not end without the ladder.
    assert!(started.elapsed() >= Duration::from_secs(2), "it was given only {:?}", started.elapsed());
}

#[test]
fn a_change_that_the_agent_reports_is_an_artifact_once() {
    let case = Case::new();
    let path = case.work().join("report.md");
    let result =
        json!({"type": "create", "filePath": path, "content": "x", "structuredPatch": [], "originalFile": null});
    let script = Script::new()
        .tool_use("toolu_1", "Write", &json!({"file_path": path, "content": "x"}))
        .sh("printf x >report.md")
        .out(&tool_result("toolu_1", "File created", result))
        .say("msg_1", "ok")
        .done("ok");
    let outcome = run(case.agent(script), json!({}));
    let artifacts = outcome.of_type("run.artifact");
    assert_eq!(artifacts.len(), 1);
    assert_eq!((artifacts[0].text("path"), artifacts[0].text("action")), ("report.md", "created"));
    assert_eq!(outcome.completed()["artifacts"], json!([{"path": "report.md", "action": "created"}]));
}

#[test]
fn a_new_file_that_the_agent_reports_as_modified_is_not_found_again_as_created() {
    let edited = |case: &Case| json!({"filePath": case.work().join("report.md"), "oldString": "", "newString": "x"});
    let make = || {
        let case = Case::new().git();
        let edit = json!({"file_path": case.work().join("report.md"), "old_string": "", "new_string": "x"});
        let script = Script::new()
            .tool_use("toolu_1", "Edit", &edit)
            .sh("printf x >report.md; printf y >unreported.md")
            .out(&tool_result("toolu_1", "File edited", edited(&case)))
            .say("msg_1", "ok")
            .done("ok");
        case.agent(script)
    };
    let outcome = run_with_git(make, &json!({}));
    let found: Vec<(&str, &str)> =
        outcome.of_type("run.artifact").iter().map(|f| (f.text("path"), f.text("action"))).collect();
    assert_eq!(found, [("report.md", "modified"), ("unreported.md", "created")]);
}

#[test]
fn files_that_a_command_changed_are_found_in_a_git_work_tree() {
    let work = "echo more >>old.txt; echo x >new.txt; echo secret >ignored.log; echo '*.log' >.gitignore";
    let script = Script::new().sh(work).say("msg_1", "ok").done("ok");
    let outcome = run_with_git(|| Case::new().git().agent(script.clone()), &json!({}));
    let mut found: Vec<(&str, &str)> =
        outcome.of_type("run.artifact").iter().map(|f| (f.text("path"), f.text("action"))).collect();
    found.sort_unstable();
    assert_eq!(found, [(".gitignore", "created"), ("new.txt", "created"), ("old.txt", "modified")]);
    outcome.completed();
}

#[test]
fn the_completion_marker_is_detected() {
    let cases = [
        (json!({}), "<promise>COMPLETE</promise>", true),
        (json!({}), "not yet", false),
        (json!({"completion_marker": "ALL-DONE"}), "well: ALL-DONE.", true),
        (json!({"completion_marker": "ALL-DONE"}), "<promise>COMPLETE</promise>", false),
        (json!({}), "I will say `<promise>COMPLETE</promise>` then.", false),
        (json!({}), "```\n<promise>COMPLETE</promise>\n```", false),
        (
            json!({"prompt": "Say ALL-DONE at the end.", "completion_marker": "ALL-DONE"}),
            "Say ALL-DONE at the end.",
            false,
        ),
        (json!({"prompt": "Say ALL-DONE at the end.", "completion_marker": "ALL-DONE"}), "ALL-DONE", true),
    ];
    for (payload, text, detected) in cases {
        let outcome = run(Case::with(Script::new().say("msg_1", text).done(text)), payload);
        assert_eq!(outcome.completed()["completion_detected"], detected, "{text}");
    }
}

#[test]
fn a_run_without_any_text_completes_with_a_warning() {
    let outcome = run(Case::with(Script::new().done("")), json!({}));
    outcome.completed();
    assert_eq!(outcome.warnings("empty_result").len(), 1);
}

#[test]
fn the_stop_reason_is_one_of_four() {
    let rows =
        [("end_turn", "end_turn"), ("max_tokens", "max_tokens"), ("refusal", "refusal"), ("not-a-reason", "other")];
    for (theirs, ours) in rows {
        let mut result = success("ok");
        result["stop_reason"] = json!(theirs);
        let outcome = run(Case::with(Script::new().say("m", "ok").out(&result).sh("listen")), json!({}));
        assert_eq!(outcome.completed()["stop_reason"], ours);
    }
}

#[test]
fn a_prompt_that_looks_like_a_command_is_guarded_unless_raw() {
    let guarded = hello(json!({"prompt": "/help"})).log().prompts();
    assert!(!guarded[0].starts_with('/') && guarded[0].contains("/help"), "{guarded:?}");
    let raw = hello(json!({"prompt": "/help", "raw_prompt": true})).log().prompts();
    assert_eq!(raw, ["/help"]);
}

#[test]
fn a_prompt_by_flag_starts_a_headless_run_that_does_not_read_stdin() {
    let mut session = Case::with(Script::asks_bash()).args(&["--prompt", "by flag"]).spawn();
    session.send_line("this is not even JSON");
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.log().prompts(), ["by flag"]);
    assert_eq!(outcome.resolutions(), ["headless"]);
    assert_eq!(outcome.frames[0]["payload"]["config"]["interactive"], false);
    assert!(outcome.progress("warning").is_empty());
}

#[test]
fn a_prompt_by_file_starts_a_run() {
    let case = Case::with(Script::hello());
    fs::write(case.path("work/prompt.txt"), "from a file").unwrap();
    let outcome = case.args(&["--prompt-file", "prompt.txt"]).spawn().finish();
    outcome.completed();
    assert!(outcome.log().prompts()[0].contains("from a file"));
}

#[test]
fn a_start_beside_a_prompt_by_flag_is_a_duplicate() {
    let mut session = Case::with(Script::new().sh("listen")).args(&["--prompt", "by flag", "--input", "jsonl"]).spawn();
    session.until_progress("session");
    session.send_line(r#"{"v":"1","id":"s2","type":"run.start","payload":{"prompt":"by stdin"}}"#);
    assert_eq!(session.until_warning("duplicate_start")["reply_to"], "s2");
    session.send_line(r#"{"v":"1","type":"run.cancel"}"#);
    let outcome = session.finish();
    outcome.cancelled();
    assert_eq!(outcome.log().prompts(), ["by flag"]);
}

/// A command line holds 128 KiB.
#[test]
fn a_long_system_prompt_is_a_file_of_the_agent() {
    let look = r#"for a in "$@"; do case "$a" in --append-system-prompt-file=*) note "$(wc -c <"${a#*=}" | tr -d ' ')" ;; esac; done"#;
    let script = Script::bare().sh("prompt").sh(look).out(&support::agent::init()).say("msg_1", "ok").done("ok");
    let outcome = run(Case::with(script), json!({"system_prompt": "x".repeat(200_000)}));
    outcome.completed();
    assert!(outcome.log().noted("200000"), "{}", outcome.log().text("notes"));
    let file = outcome
        .log()
        .argv()
        .into_iter()
        .find_map(|arg| arg.split_once("prompt-file=").map(|(_, path)| path.to_owned()));
    assert!(!std::path::Path::new(&file.unwrap()).exists(), "the file outlives the run");
}

//! Tests of `acp` with a client of our own: every method, every error, every kind of update and question, several
//! sessions, and the ends of either side. The client checks every message against the published schema.

mod client;
pub(crate) mod hostile;
mod questions;
mod reference;
mod schema;

use crate::ends::own_git::folders;
use crate::support::agent::{SESSION, Script, bash, error_result};
use crate::support::{Case, io};
use client::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Ends a turn when the host interrupts it, and stays.
const UNTIL_INTERRUPT: &str = r#"while recv; do case "$line" in *'"subtype":"interrupt"'*) note interrupt; accept; out "$ABORTED"; break ;; *) control ;; esac; done"#;

/// Two turns that answer.
fn two_turns() -> Script {
    Script::new().say("msg_1", "One").result("One").sh("prompt").say("msg_2", "Two").done("Two")
}

/// A turn that ends by an interrupt, and one that answers.
fn interrupted() -> Script {
    Script::new().say("msg_1", "Thinking").sh(UNTIL_INTERRUPT).sh("prompt").say("msg_2", "Two").done("Two")
}

#[test]
fn a_session_is_one_conversation() {
    let mut client = Client::new(Case::with(two_turns()));
    let session = client.session();
    assert_eq!(client.turn(&session, "First"), "end_turn");
    assert_eq!(client.turn(&session, "Second"), "end_turn");
    assert_eq!(client.text(&session), "OneTwo");
    let ids: Vec<Value> =
        client.updates(&session, "agent_message_chunk").iter().map(|c| c["messageId"].clone()).collect();
    assert_ne!(ids.first(), ids.last(), "each message has an id of its own");
    assert_eq!(client.updates(&session, "session_info_update")[0]["title"], "First");
    let used: Vec<&Value> = client.updates(&session, "usage_update");
    assert!(used.iter().all(|update| update["used"].as_u64() > Some(0)), "{used:?}");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    assert_eq!(log.prompts(), ["First", "Second"]);
    client.finish();
}

/// The sandbox of a session is that of the command line.
#[test]
fn a_session_has_the_sandbox_of_the_command_line() {
    let case = Case::new().script("bin/cmd", "echo x > inside; echo x > ../outside; cat ../secret; echo done");
    let config = json!({"agent": "cmd", "agents": {"cmd": {"driver": "lines", "command": "cmd"}}});
    let case = case.file("secret", "secret").file("home/.config/spektacular/config.json", &config.to_string());
    let checked = case.run(&["agents", "check", "--output", "json"]).json(0);
    if checked["sandbox"]["abi"].is_null() {
        return crate::support::machine::not_checked("the sandbox of acp", "the kernel has no Landlock");
    }
    let mut client = Client::start(case, &["--set", "sandbox=workspace"]);
    client.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    let session = client.session();
    assert_eq!(client.turn(&session, "go"), "end_turn");
    assert_eq!(client.text(&session), "done");
    assert!(client.case.work().join("inside").exists() && !client.case.path("outside").exists());
    client.finish();
}

#[test]
fn initialize_shows_what_the_agent_can() {
    let mut client = Client::start(Case::with(two_turns()), &[]);
    let early = client.refused("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(early["code"], -32600, "{early}");
    let shown = client.call("initialize", json!({"protocolVersion": 7}));
    assert_eq!(shown["protocolVersion"], 1, "the client decides whether it speaks this version");
    let able = &shown["agentCapabilities"];
    assert_eq!(able["promptCapabilities"], json!({"image": true, "audio": false, "embeddedContext": true}));
    assert_eq!(able["mcpCapabilities"], json!({"http": true, "sse": true}));
    assert_eq!((&able["loadSession"], &able["sessionCapabilities"]["resume"]), (&json!(true), &json!({})));
    assert_eq!(shown["authMethods"][0]["id"], "agent");
    client.finish();
    let mut demo = Client::start(Case::new(), &["--agent", "demo"]);
    let shown = demo.call("initialize", json!({"protocolVersion": 1}));
    assert_eq!(shown["authMethods"], json!([]));
    let able = &shown["agentCapabilities"];
    assert_eq!(
        (&able["promptCapabilities"]["image"], able["sessionCapabilities"].get("resume")),
        (&json!(false), None)
    );
}

#[test]
fn the_demo_asks_and_writes_a_file() {
    let mut client = Client::start(Case::new(), &["--agent", "demo", "--set", "permissions=allow"]);
    client.call("initialize", json!({"protocolVersion": 1}));
    let session = client.session();
    assert_eq!(client.turn(&session, "Hello"), "end_turn");
    assert_eq!(client.turn(&session, "1"), "end_turn");
    let tools = client.updates(&session, "tool_call_update");
    let (tool, file) = (tools.last().unwrap(), client.case.work().join("hello.md"));
    assert_eq!((&tool["status"], &tool["kind"]), (&json!("completed"), &json!("edit")));
    assert_eq!((&tool["content"][0]["type"], &tool["content"][0]["path"]), (&json!("diff"), &json!(file)));
    assert!(tool["content"][0]["newText"].as_str().unwrap().starts_with("# Hello"), "{tool}");
    client.finish();
}

#[test]
fn an_agent_that_cannot_go_on_refuses_the_second_prompt() {
    let config = r#"{"agents":{"mine":{"driver":"lines","command":"echo","args":["Hello"]}}}"#;
    let case = Case::new().file("home/.config/spektacular/config.json", config);
    let mut client = Client::start(case, &["--agent", "mine"]);
    client.call("initialize", json!({"protocolVersion": 1}));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    assert_eq!(client.text(&session).trim(), "Hello");
    let refused =
        client.refused("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "More"}]}));
    assert_eq!((&refused["code"], &refused["data"]["code"]), (&json!(-32002), &json!("session_not_found")));
    client.finish();
}

#[test]
fn a_cancel_ends_the_turn_and_what_waits() {
    let mut client = Client::new(Case::with(interrupted()));
    let session = client.session();
    let first = client.prompt(&session, "First");
    client.until("the text", |message| message["params"]["update"]["content"]["text"] == "Thinking");
    let waits = client.prompt(&session, "Waits");
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.stop_reason(waits), "cancelled");
    assert_eq!(client.stop_reason(first), "cancelled");
    assert_eq!(client.turn(&session, "Second"), "end_turn");
    assert_eq!(client.text(&session), "ThinkingTwo");
    client.finish();
}

/// A run that is stopped, or hangs, ends no turn by itself.
#[test]
fn the_cancel_of_a_stopped_run_is_answered() {
    let mut client = Client::new(Case::with(interrupted()));
    let session = client.session();
    let first = client.prompt(&session, "First");
    client.until("the text", |message| message["params"]["update"]["content"]["text"] == "Thinking");
    let children = fs::read_dir(format!("/proc/{}/task", client.pid())).unwrap();
    let children = children.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap());
    let children: Vec<i32> =
        children.flat_map(|all| all.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    let is_run = |pid: &&i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("adhoc");
    let run = children.iter().find(is_run).unwrap();
    kill_process(Pid::from_raw(*run).unwrap(), Signal::STOP).unwrap();
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.stop_reason(first), "cancelled");
    client.finish();
}

#[test]
fn a_title_holds_no_declared_secret() {
    const SECRET: &str = "hunter2-Zq7731-long";
    let mut client = Client::start(Case::with(two_turns()), &["--set", &format!("secrets=[\"{SECRET}\"]")]);
    client.call("initialize", json!({"protocolVersion": 1}));
    let session = client.session();
    // The title is cut within the secret.
    client.turn(&session, &format!("{} {SECRET}", "word ".repeat(13)));
    let list = client.call("session/list", json!({}));
    let told = client.updates(&session, "session_info_update")[0]["title"].to_string();
    let file = |folder: &str| client.case.path(&format!("home/.local/state/spektacular/{folder}/{session}"));
    let stored = ["acp", "acp/history"].map(|folder| fs::read_to_string(file(folder)).unwrap());
    for text in [&list["sessions"][0]["title"].to_string(), &told, &stored[0], &stored[1]] {
        assert!(text.contains("word word") && !text.contains("hunter2"), "{text}");
    }
    client.finish();
}

#[test]
fn a_title_holds_no_secret_of_the_clients_servers() {
    let (variable, header) = ("hunter2-Zq7731-long", "sk-hunter3-Zq7731-long");
    let servers = json!([
        {"name": "a", "command": "true", "args": [], "env": [{"name": "PLAIN", "value": variable}]},
        {"type": "http", "name": "b", "url": "https://127.0.0.1:1",
            "headers": [{"name": "Authorization", "value": format!("Bearer {header}")}]},
    ]);
    let mut client = Client::new(Case::with(two_turns()));
    let params = json!({"cwd": client.case.work(), "mcpServers": servers});
    let session = client.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    client.prompt(&session, &format!("Use {variable} and {header}."));
    let told =
        client.until("the title", |message| message["params"]["update"]["sessionUpdate"] == "session_info_update");
    assert_eq!(told["params"]["update"]["title"], "Use [redacted] and [redacted].");
    let list = client.call("session/list", json!({}));
    assert_eq!(list["sessions"][0]["title"], "Use [redacted] and [redacted].");
    client.finish();
}

#[test]
fn a_request_can_be_cancelled_by_its_id() {
    let mut client = Client::new(Case::with(interrupted()));
    let session = client.session();
    let first = client.prompt(&session, "First");
    client.until("the text", |message| message["params"]["update"]["content"]["text"] == "Thinking");
    let waits = client.prompt(&session, "Waits");
    client.notify("$/cancel_request", json!({"requestId": waits}));
    assert_eq!(client.response(waits)["error"]["code"], -32800);
    client.notify("$/cancel_request", json!({"requestId": first}));
    assert_eq!(client.stop_reason(first), "cancelled");
    client.finish();
}

#[test]
fn sessions_run_at_the_same_time() {
    // Each session has its own process, which answers only after both have begun.
    let script = Script::new().sh(r#"echo >"$D/begun.$$""#).say("msg_1", "Here").sh(UNTIL_INTERRUPT).sh("prompt");
    let mut client = Client::new(Case::with(script.say("msg_2", "Again").done("Again")));
    let sessions = [client.session(), client.session()];
    let prompts = [client.prompt(&sessions[0], "One"), client.prompt(&sessions[1], "Two")];
    for session in &sessions {
        client.until_text(session, "Here");
    }
    client.notify("session/cancel", json!({"sessionId": sessions[0]}));
    assert_eq!(client.stop_reason(prompts[0]), "cancelled");
    assert_eq!(client.turn(&sessions[0], "More"), "end_turn");
    assert_eq!(client.text(&sessions[1]), "Here", "the other session goes on");
    client.notify("session/cancel", json!({"sessionId": sessions[1]}));
    assert_eq!(client.stop_reason(prompts[1]), "cancelled");
    client.finish();
}

#[test]
fn a_crash_of_one_session_ends_no_other() {
    let script = Script::new().say("msg_1", "Here").sh(UNTIL_INTERRUPT).sh("prompt").say("msg_2", "Two").done("Two");
    let mut client = Client::new(Case::with(script));
    // Both have the same session of the agent, whose id is unique only in a directory.
    let elsewhere = client.case.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let sessions = [client.session(), client.session_in(&elsewhere)];
    let prompts = [client.prompt(&sessions[0], "One"), client.prompt(&sessions[1], "Two")];
    for session in &sessions {
        client.until_text(session, "Here");
    }
    let runs = client.case.processes();
    let run = runs.iter().filter(|(_, line)| line.contains("adhoc --output json")).min().expect("a run");
    kill_process(Pid::from_raw(run.0).unwrap(), Signal::KILL).unwrap();
    let error = client.until("an error", |message| message.get("error").is_some());
    assert_eq!((&error["error"]["code"], &error["error"]["data"]["code"]), (&json!(-32603), &json!("internal_error")));
    let (dead, alive) = if error["id"] == prompts[0] { (0, 1) } else { (1, 0) };
    client.notify("session/cancel", json!({"sessionId": sessions[alive]}));
    assert_eq!(client.stop_reason(prompts[alive]), "cancelled");
    // The agent's own session is still there.
    let again = client.prompt(&sessions[dead], "Again");
    client.until("the text again", |message| {
        message["params"]["sessionId"] == sessions[dead].as_str()
            && message["params"]["update"]["content"]["text"] == "Here"
    });
    client.notify("session/cancel", json!({"sessionId": sessions[dead]}));
    assert_eq!(client.stop_reason(again), "cancelled");
    client.finish();
}

#[test]
fn settings_reach_the_agent_with_the_next_turn() {
    let script = Script::new().say("msg_1", "Done").done("Done");
    let mut client = Client::new(Case::with(script));
    let session = client.session();
    let set = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let result = client.call("session/set_config_option", set("model", "opus"));
    let model = result["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "model").unwrap();
    assert_eq!(model["currentValue"], "opus");
    assert!(model["options"].as_array().unwrap().iter().any(|option| option["value"] == "opus"), "{model}");
    assert_eq!(client.turn(&session, "First"), "end_turn");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    assert!(log.argv().contains(&"--model=opus".to_owned()), "{:?}", log.argv());
    // A conversation keeps its settings, so a change starts the agent again with its session.
    client.call("session/set_config_option", set("model", "default"));
    client.call("session/set_config_option", set("permissions", "read-only"));
    let mode = client.updates(&session, "current_mode_update");
    assert_eq!(mode.last().unwrap()["currentModeId"], "read-only");
    assert_eq!(client.turn(&session, "Second"), "end_turn");
    assert!(log.argv().iter().any(|arg| *arg == format!("--resume={SESSION}")), "{:?}", log.argv());
    assert!(!log.argv().iter().any(|arg| arg.contains("opus")), "{:?}", log.argv());
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "deny"}));
    let options = client.updates(&session, "config_option_update");
    assert_eq!(options.last().unwrap()["configOptions"][0]["currentValue"], "deny");
    let refused = client.refused("session/set_mode", json!({"sessionId": session, "modeId": "yolo"}));
    assert!(refused["message"].as_str().unwrap().contains("ask, allow, deny, read-only"), "{refused}");
    for (id, value) in [("model", ""), ("colour", "red"), ("permissions", "sometimes"), ("model", "a\nb")] {
        assert_eq!(client.refused("session/set_config_option", set(id, value))["code"], -32602, "{id}");
    }
    client.finish();
}

#[test]
fn a_stored_session_is_listed_and_resumed_by_another_process() {
    let case = Case::with(two_turns());
    let mut client = Client::new(case);
    let session = client.session();
    assert_eq!(client.turn(&session, "Fix the   test"), "end_turn");
    client.call("session/close", json!({"sessionId": session}));
    let gone = client.refused("session/close", json!({"sessionId": session}));
    assert_eq!(gone["code"], -32002, "{gone}");
    client.call("initialize", json!({"protocolVersion": 1}));
    let list = client.call("session/list", json!({"cwd": client.case.work()}));
    let [info] = list["sessions"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!((&info["sessionId"], &info["title"]), (&json!(session), &json!("Fix the test")));
    assert_eq!(client.call("session/list", json!({"cwd": "/"}))["sessions"], json!([]));
    client.call("session/resume", json!({"sessionId": session, "cwd": client.case.work(), "mcpServers": []}));
    assert_eq!(client.turn(&session, "Go on"), "end_turn");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    assert!(log.argv().iter().any(|arg| *arg == format!("--resume={SESSION}")), "{:?}", log.argv());
    let unknown = json!({"sessionId": "sess_0", "cwd": client.case.work(), "mcpServers": []});
    assert_eq!(client.refused("session/resume", unknown)["code"], -32002);
    client.finish();
}

/// The texts and titles of these updates, with their kinds.
fn told(updates: &[Value]) -> Vec<(String, String)> {
    let text = |update: &Value| match &update["content"]["text"] {
        Value::String(text) => text.clone(),
        _ => update["title"].as_str().unwrap_or_default().to_owned(),
    };
    updates.iter().map(|update| (update["sessionUpdate"].as_str().unwrap().to_owned(), text(update))).collect()
}

#[test]
fn a_loaded_session_has_its_history_and_its_settings() {
    let script = Script::new()
        .tool("call_1", "Read", &json!({"file_path": "a.rs"}), "fn main() {}")
        .say("msg_2", "It is a program.")
        .done("It is a program.");
    let mut client = Client::new(Case::with(script).env("FORGE_API_KEY", "hunter2-Zq7731-x-y"));
    let session = client.session();
    let model = json!({"sessionId": session, "configId": "model", "value": "opus"});
    client.call("session/set_config_option", model);
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "deny"}));
    assert_eq!(client.turn(&session, "What is a.rs? hunter2-Zq7731-x-y"), "end_turn");
    let case = client.stop();
    // Another process, another spelling of the directory.
    let work = case.work();
    let link = case.path("home/link");
    std::os::unix::fs::symlink(&work, &link).unwrap();
    let mut client = Client::new(case);
    let list = client.call("session/list", json!({"cwd": link}));
    assert_eq!(list["sessions"][0]["sessionId"], json!(session), "{list}");
    let before = client.seen.len();
    let loaded = client.call("session/load", json!({"sessionId": session, "cwd": work, "mcpServers": []}));
    assert_eq!(loaded["modes"]["currentModeId"], "deny");
    let option =
        |id: &str| loaded["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == id).unwrap();
    assert_eq!(
        (&option("model")["currentValue"], &option("permissions")["currentValue"]),
        (&json!("opus"), &json!("deny"))
    );
    let updates: Vec<Value> = client.seen[before..].iter().map(|line| line["params"]["update"].clone()).collect();
    let updates = &updates[..updates.len() - 1];
    let wanted = [
        ("user_message_chunk", "What is a.rs? [redacted]"),
        ("tool_call", "Read a.rs"),
        ("tool_call_update", "Read a.rs"),
        ("agent_message_chunk", "It is a program."),
    ];
    assert_eq!(told(updates), wanted.map(|(kind, text)| (kind.to_owned(), text.to_owned())));
    assert_eq!(updates[2]["status"], "completed");
    // A call of the next run has an id of its own.
    assert_eq!(client.turn(&session, "Again"), "end_turn");
    let calls = client.updates(&session, "tool_call");
    assert_ne!(calls[0]["toolCallId"], calls[1]["toolCallId"]);
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    assert!(log.argv().contains(&"--model=opus".to_owned()), "{:?}", log.argv());
    client.finish();
}

/// The agent's own session has the turns that a person had in the agent's own interface too.
#[test]
fn a_loaded_session_has_the_history_of_the_agents_own_session() {
    let mut client = Client::new(Case::with(two_turns()).env("FORGE_API_KEY", "hunter2-Zq7731-x-y"));
    let session = client.session();
    assert_eq!(client.turn(&session, "First"), "end_turn");
    let own = [
        json!({"type": "user", "message": {"role": "user", "content": "First"}}),
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "One"}]}}),
        json!({"type": "user", "message": {"role": "user", "content": "Elsewhere, with hunter2-Zq7731-x-y"}}),
        json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "cargo test"}}]}}),
        json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "c", "content": "Exit code 101\nbad", "is_error": true}]}}),
    ];
    let own: String = own.iter().map(|line| format!("{line}\n")).collect();
    let case = client.stop().file(&format!("home/.claude/projects/work/{SESSION}.jsonl"), &own);
    let work = case.work();
    let mut client = Client::new(case);
    client.call("session/load", json!({"sessionId": session, "cwd": work, "mcpServers": []}));
    let updates: Vec<Value> = client.seen.iter().map(|line| line["params"]["update"].clone()).collect();
    let updates: Vec<Value> = updates.into_iter().filter(|update| update["sessionUpdate"].is_string()).collect();
    let wanted = [
        ("user_message_chunk", "First"),
        ("agent_message_chunk", "One"),
        ("user_message_chunk", "Elsewhere, with [redacted]"),
        ("tool_call", "Run cargo test"),
    ];
    assert_eq!(told(&updates), wanted.map(|(kind, text)| (kind.to_owned(), text.to_owned())));
    assert_eq!((&updates[3]["status"], &updates[3]["rawOutput"]["exit_code"]), (&json!("failed"), &json!(101)));
    assert_eq!(updates[3]["rawInput"], json!({"command": "cargo test"}));
    client.finish();
}

#[test]
fn the_title_of_a_stored_session_shows_no_secret() {
    let secret = "hunter2-Zq7731-x-y";
    let mut client = Client::new(Case::with(two_turns()).env("FORGE_API_KEY", secret));
    let session = client.session();
    assert_eq!(client.turn(&session, &format!("Log in with {secret} first")), "end_turn");
    client.call("session/close", json!({"sessionId": session}));
    let list = client.call("session/list", json!({}));
    assert_eq!(list["sessions"][0]["title"], "Log in with [redacted] first");
    client.finish();
}

#[test]
fn a_pipe_among_the_stored_sessions_is_no_session() {
    let mut client = Client::new(Case::with(Script::hello()));
    let store = client.case.path("home/.local/state/spektacular/acp");
    fs::create_dir_all(&store).unwrap();
    assert!(Command::new("/usr/bin/mkfifo").arg(store.join("pipe")).status().unwrap().success());
    assert_eq!(client.call("session/list", json!({}))["sessions"], json!([]));
    client.finish();
}

#[test]
fn content_of_every_kind_reaches_the_agent() {
    let mut client = Client::new(Case::with(two_turns()));
    let session = client.session();
    let image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let id = client.request(
        "session/prompt",
        json!({"sessionId": session, "prompt": [
            {"type": "text", "text": "See "},
            {"type": "resource_link", "name": "main.rs", "uri": "file:///w/main.rs"},
            {"type": "resource", "resource": {"uri": "file:///w/a.txt", "text": "Contents of a"}},
            {"type": "image", "mimeType": "image/png", "data": image},
        ]}),
    );
    assert_eq!(client.stop_reason(id), "end_turn");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    let sent = log.text("stdin");
    assert!(sent.contains("[main.rs](/w/main.rs)") && sent.contains("Contents of a") && sent.contains(image), "{sent}");
    for (block, word) in [
        (json!({"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}), "audio"),
        (json!({"type": "image", "mimeType": "image/png", "data": "???"}), "base64"),
        (json!({"type": "resource", "resource": {"uri": "x", "blob": "AAAA"}}), "text"),
        (json!({"type": "video"}), "type"),
        (json!({"type": "text", "text": " "}), "content"),
        (json!("text"), "content block"),
    ] {
        let error = client.refused("session/prompt", json!({"sessionId": session, "prompt": [block]}));
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    assert!(!folders(&client.case).is_empty());
    kill_process(Pid::from_raw(client.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    client.exit();
    assert!(io::wait_for(client.case.limit, || folders(&client.case).is_empty()), "the images outlive the program");
    let mut demo = Client::start(Case::new(), &["--agent", "demo"]);
    demo.call("initialize", json!({"protocolVersion": 1}));
    let session = demo.session();
    let block = json!({"type": "image", "mimeType": "image/png", "data": image});
    let error = demo.refused("session/prompt", json!({"sessionId": session, "prompt": [block]}));
    assert!(error["message"].as_str().unwrap().contains("takes none"), "{error}");
}

#[test]
fn servers_and_directories_of_the_client_go_to_the_agent() {
    let mut client = Client::new(Case::with(two_turns()));
    let (cwd, more) = (client.case.work(), client.case.path("home"));
    let servers = json!([
        {"name": "one", "command": "/bin/true", "args": ["-x"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "two", "url": "http://127.0.0.1:1/mcp", "headers": [{"name": "X-A", "value": "b"}]},
    ]);
    let params = json!({"cwd": cwd, "mcpServers": servers, "additionalDirectories": [more]});
    let session = client.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    let log = crate::support::agent::AgentLog::new(&client.case.path("log"));
    let argv = log.argv().join(" ");
    assert!(argv.contains(&*more.to_string_lossy()) && argv.contains("one") && argv.contains("two"), "{argv}");
    for (wrong, word) in [
        (json!({"cwd": "work", "mcpServers": []}), "cwd"),
        (json!({"cwd": cwd.join("absent"), "mcpServers": []}), "cwd"),
        (json!({"mcpServers": []}), "cwd"),
        (json!({"cwd": cwd}), "mcpServers"),
        (json!({"cwd": cwd, "mcpServers": [{"name": "x"}]}), "mcpServers[0]"),
        (json!({"cwd": cwd, "mcpServers": [{"type": "ws", "name": "x"}]}), "mcpServers[0]"),
        (json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": ["relative"]}), "additionalDirectories"),
    ] {
        let error = client.refused("session/new", wrong);
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    client.finish();
}

#[test]
fn an_agent_without_mcp_servers_refuses_those_of_the_client() {
    let server = |kind| json!({"type": kind, "name": "one", "url": "http://127.0.0.1:1/mcp", "headers": []});
    let stdio = json!({"name": "one", "command": "/bin/true", "args": [], "env": []});
    let mut client = Client::start(Case::new(), &["--agent", "demo"]);
    let shown = client.call("initialize", json!({"protocolVersion": 1}));
    assert_eq!(shown["agentCapabilities"]["mcpCapabilities"], json!({"http": false, "sse": false}));
    for (server, word) in [(server("http"), "mcpServers[0]"), (server("sse"), "mcpServers[0]"), (stdio.clone(), "warn")]
    {
        let error = client.refused("session/new", json!({"cwd": client.case.work(), "mcpServers": [server]}));
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    client.finish();
    let mut client = Client::start(Case::new(), &["--agent", "demo", "--set", "on_unsupported=warn"]);
    client.call("initialize", json!({"protocolVersion": 1}));
    let params = json!({"cwd": client.case.work(), "mcpServers": [stdio]});
    let session = client.call("session/new", params)["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.turn(&session, "Hello"), "end_turn");
    client.finish();
}

#[test]
fn failures_have_our_code_in_front() {
    let rate =
        error_result(json!({"subtype": "success", "api_error_status": 429, "result": "API Error: 429 slow down"}));
    let mut client = Client::new(Case::with(Script::new().out(&rate).sh("prompt").say("msg_2", "Two").done("Two")));
    let session = client.session();
    let id = client.prompt(&session, "Go");
    let error = client.response(id)["error"].clone();
    assert_eq!((&error["code"], &error["data"]), (&json!(-32603), &json!({"code": "rate_limited", "retryable": true})));
    assert!(error["message"].as_str().unwrap().starts_with("rate_limited: "), "{error}");
    assert_eq!(client.turn(&session, "Again"), "end_turn", "the session goes on");
    client.finish();

    let login = error_result(json!({"subtype": "success", "api_error_status": 401, "result": "Please run /login"}));
    let mut client = Client::new(Case::with(Script::new().out(&login).sh("listen")));
    let session = client.session();
    let id = client.prompt(&session, "Go");
    let error = client.response(id)["error"].clone();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32000), &json!("auth_required")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("log in with `claude`"), "{error}");
    client.finish();

    let mut client = Client::new(Case::new());
    let missing = client.refused("session/new", json!({"cwd": client.case.work(), "mcpServers": []}));
    assert_eq!(missing["data"]["code"], "agent_not_found", "{missing}");
    client.finish();
}

#[test]
fn a_limit_is_a_stop_reason() {
    let endless = (1..9)
        .fold(Script::new(), |script, n| script.tool(&format!("toolu_{n}"), "Read", &json!({"file_path": "a"}), "a"));
    let mut client = Client::start(Case::with(endless.sh("listen")), &["--set", "max_tool_calls=2"]);
    client.call("initialize", json!({"protocolVersion": 1}));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "max_turn_requests");
    client.finish();
}

#[test]
fn authentication_is_left_to_the_agents_own_program() {
    let mut client = Client::new(Case::with(two_turns()));
    assert_eq!(client.refused("authenticate", json!({"methodId": "none"}))["code"], -32602);
    let id = client.request("authenticate", json!({"methodId": "agent"}));
    let response = client.response(id);
    // The sandbox has no credentials; whether that is certain depends on the agent.
    if let Some(error) = response.get("error") {
        assert_eq!(error["code"], -32000, "{response}");
        assert!(error["message"].as_str().unwrap().contains("spektacular open --agent claude"), "{response}");
    }
    client.finish();
}

#[test]
fn thoughts_plans_and_tools_are_updates() {
    let todos = json!({"todos": [{"content": "Read", "status": "completed", "activeForm": "Reading"},
        {"content": "Write", "status": "in_progress", "activeForm": "Writing"}]});
    let script = Script::new()
        .think("msg_0", "Hm")
        .tool("toolu_1", "TodoWrite", &todos, "ok")
        .tool("toolu_2", "Bash", &bash("echo hi"), "hi")
        .say("msg_1", "Done")
        .done("Done");
    let mut client = Client::new(Case::with(script));
    let session = client.session();
    assert_eq!(client.turn(&session, "Go"), "end_turn");
    let thought = client.updates(&session, "agent_thought_chunk");
    assert_eq!(thought[0]["content"]["text"], "Hm");
    let plan = client.updates(&session, "plan");
    assert_eq!(plan[0]["entries"][1], json!({"content": "Write", "priority": "medium", "status": "in_progress"}));
    let call = client.updates(&session, "tool_call").into_iter().find(|call| call["kind"] == "execute").unwrap();
    assert_eq!((&call["title"], &call["status"]), (&json!("Run echo hi"), &json!("in_progress")));
    let end = client.updates(&session, "tool_call_update");
    let end = end.iter().find(|update| update["toolCallId"] == call["toolCallId"]).unwrap();
    assert_eq!(end["content"][0]["content"]["text"], "```\nhi\n```");
    client.finish();
}

#[test]
fn the_command_line_is_checked() {
    let case = Case::new();
    assert!(case.run(&["acp", "--agent", "absent"]).refused(2).contains("absent"));
    assert!(case.run(&["acp", "--set", "permissions"]).refused(2).contains("KEY=VALUE"));
    assert!(case.run(&["acp", "--set", "cwd=/"]).refused(2).contains("--set"));
    let wrong = case.run(&["acp", "--set", "permissions=sometimes"]);
    assert!(wrong.refused(2).contains("permissions must be"), "{wrong:?}");
}

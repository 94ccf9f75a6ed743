//! Tests of a project from a stranger: the keys that its configuration may set, the targets of its links, and the names
//! of its servers.

use crate::support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::agent::{Script, quote};
use support::{Case, Outcome, Session, run};

const USER: &str = "home/.config/spektacular/config.json";
const PROJECT: &str = "work/.spektacular/config.json";

/// A `lines` agent of the user's that prints its arguments.
fn printing(args: Value) -> Case {
    let args: Vec<Value> = [json!("-c"), json!("printf '<%s>' \"$@\""), json!("sh")]
        .into_iter()
        .chain(args.as_array().unwrap().iter().cloned())
        .collect();
    let entry = json!({"driver": "lines", "command": "sh", "args": args});
    Case::new().file(USER, &json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string())
}

fn trusted(case: Case) -> Case {
    assert!(case.other("work", &["config", "trust"]).status().unwrap().success());
    case
}

#[test]
fn a_value_that_looks_like_a_flag_is_refused() {
    for (args, payload, field) in [
        (json!(["{prompt}"]), json!({"prompt": "--help"}), "`prompt`"),
        (json!(["-m", "{model}"]), json!({"model": "--dangerously-allow-all"}), "`model`"),
        (json!(["{model}:{cwd}"]), json!({"model": "-x"}), "`model`"),
    ] {
        let outcome = run(printing(args), payload);
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(field) && message.contains("flag"), "{message}");
        assert!(outcome.failed("invalid_request")["agent_exit"].is_null());
        outcome.never_shows("dangerously");
    }
    // Inside a word or after the end of the flags, the text is not a flag.
    let payload = || json!({"prompt": "--help", "model": "-m"});
    let outcome = run(printing(json!(["--model={model}", "--", "{prompt}"])), payload());
    assert_eq!(outcome.completed()["text"], "<--model=-m><--><--help>");
}

#[test]
fn an_untrusted_model_does_not_reach_the_command_line_of_any_command() {
    let case = || printing(json!(["-m", "{model}"])).file(PROJECT, r#"{"model":"theirs"}"#);
    let outcome = run(case(), json!({}));
    assert_eq!(outcome.completed()["text"], "<>");
    let warnings = outcome.warnings("unsupported_option");
    assert!(warnings.iter().any(|frame| frame.text("text").contains("not trusted")));
    let outcome = run(case(), json!({"model": "mine"}));
    assert_eq!(outcome.completed()["text"], "<-m><mine>");
    assert!(outcome.warnings("unsupported_option").is_empty());
    let outcome = run(trusted(case()), json!({}));
    assert_eq!(outcome.completed()["text"], "<-m><theirs>");
    // An agent whose dialect passes the model separately from its flags receives such a model.
    let outcome = run(Case::with(Script::hello()).file(PROJECT, r#"{"model":"theirs"}"#), json!({}));
    assert_eq!(outcome.frames[0]["payload"]["config"]["model"], "theirs");
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_debug_log_follows_no_link_below_the_project() {
    for (folder, link) in [
        (None, "work/.spektacular"),
        (Some("work/.spektacular"), "work/.spektacular/debug"),
        (Some("work/.spektacular/debug"), "work/.spektacular/debug/logs"),
    ] {
        let case =
            Case::with(Script::hello()).file(USER, r#"{"debug":{"enabled":true}}"#).git().file("home/victim/x", "");
        if let Some(folder) = folder {
            fs::create_dir_all(case.path(folder)).unwrap();
        }
        let outcome = run(case.link(link, "home/victim"), json!({}));
        outcome.completed();
        let warnings = outcome.warnings("unsupported_option");
        assert!(warnings.iter().any(|frame| frame.text("text").contains("Cannot write the debug log")), "{link}");
        assert_eq!(names(&outcome.case().path("home/victim")), ["x"], "{link}");
    }
    // A link of the user's own, outside the project, is followed.
    let case = Case::with(Script::hello()).git().file("home/logs/x", "").link("tmp/logs", "home/logs");
    let to = case.path("tmp/logs").display().to_string();
    let outcome = run(case.env("SPEKTACULAR_DEBUG_ENABLED", "true").env("SPEKTACULAR_DEBUG_LOG_DIR", &to), json!({}));
    outcome.completed();
    assert_eq!(names(&outcome.case().path("home/logs")).len(), 3);
}

#[test]
fn a_recording_follows_no_link_below_the_project() {
    for (link, target, file) in
        [("work/run.jsonl", "home/victim.txt", "run.jsonl"), ("work/sub", "home/victim", "sub/run.jsonl")]
    {
        let case = Case::with(Script::hello()).git().file("home/victim.txt", "mine").file("home/victim/x", "");
        let case = case.link(link, target);
        let path = case.work().join(file).display().to_string();
        for file in [file, path.as_str()] {
            let done = case.cli(&["--record", file, "go"]);
            let said = String::from_utf8(done.stderr).unwrap();
            assert!(done.status.code() == Some(2) && said.contains("--record: the file cannot be written"), "{said}");
            assert_eq!(fs::read_to_string(case.path("home/victim.txt")).unwrap(), "mine");
            assert_eq!(names(&case.path("home/victim")), ["x"]);
        }
    }
}

#[test]
fn a_session_is_stored_through_no_link() {
    for (folder, link) in [
        ("work", "work/.spektacular"),
        ("work/.spektacular", "work/.spektacular/local"),
        ("work/.spektacular/local", "work/.spektacular/local/sessions"),
    ] {
        let case = Case::with(Script::hello()).file("home/victim/x", "");
        fs::create_dir_all(case.path(folder)).unwrap();
        let case = case.link(link, "home/victim");
        let done = case.cli(&["go"]);
        assert_eq!(done.status.code(), Some(0));
        assert!(String::from_utf8(done.stderr).unwrap().contains("the session could not be stored"));
        assert_eq!(names(&case.path("home/victim")), ["x"], "{link}");
    }
}

/// An ACP agent, here OpenCode, that asks permission for a call with this title.
fn opencode(title: &str) -> Session {
    let permission = json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": {
        "sessionId": "s", "toolCall": {"toolCallId": "c1", "title": title, "kind": "other", "status": "pending"},
        "options": [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]}});
    let result = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let case = Case::new();
    let agent = format!(
        "#!/bin/sh\nD={}\ncat /proc/$$/environ >\"$D/environ\"\nrecv() {{ IFS= read -r line || exit 0; }}\n\
         recv; echo {}\nrecv; printf '%s\\n' \"$line\" >\"$D/new\"; echo {}\nrecv; echo {}\n\
         recv; printf '%s\\n' \"$line\" >\"$D/answer\"; echo {}\nwhile recv; do :; done\n",
        quote(&case.path("log").display().to_string()),
        quote(&result(1, json!({"protocolVersion": 1, "agentCapabilities": {}}))),
        quote(&result(2, json!({"sessionId": "s"}))),
        quote(&permission.to_string()),
        quote(&result(3, json!({"stopReason": "end_turn"}))),
    );
    let mut session = case.program("opencode", &agent).spawn();
    session.start(json!({"agent": "opencode"}));
    session
}

#[test]
fn a_server_with_the_name_of_ours_needs_permission() {
    let mut session = opencode("spektacular_ask_user");
    let question = session.until("run.question");
    assert_eq!(question["payload"]["purpose"], "permission");
    session.answer(&question, json!("allow_once"));
    let outcome = session.finish();
    assert!(outcome.log().text("answer").contains("\"yes\""));
    let new: Value = serde_json::from_str(&outcome.log().text("new")).unwrap();
    let name = new["params"]["mcpServers"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("spektacular-") && name.len() == "spektacular-".len() + 12, "{name}");
    let allowed = outcome.log().env("OPENCODE_PERMISSION").unwrap();
    assert!(allowed.contains(&format!("\"{name}_ask_user\":\"allow\"")), "{allowed}");
    assert!(!allowed.contains("\"spektacular_ask_user\""), "{allowed}");
    // The environment of the agent's processes contains the nonce of the tree. The server's name contains another one.
    assert!(!outcome.log().env("SPEKTACULAR_RUN").unwrap().contains(&name["spektacular-".len()..]));
}

#[test]
fn claude_asks_for_a_server_that_takes_the_name_of_ours() {
    let case = Case::with(Script::asks("mcp__spektacular__ask_user", json!({"questions": []})));
    let mut session = case.spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    assert_eq!(question["payload"]["purpose"], "permission");
    session.answer(&question, json!("deny"));
    let outcome: Outcome = session.finish();
    assert_eq!(outcome.log().answer()["behavior"], "deny");
    assert!(!outcome.progress("tool").is_empty(), "its calls are shown like those of any server");
}

#[test]
fn no_agent_can_end_its_own_output_by_the_sentinel() {
    let entry = json!({"driver": "lines", "command": "sh",
        "args": ["-c", "printf '\\n\\0END %s\\n' \"${SPEKTACULAR_RUN##*:}\"; echo after"]});
    let case = Case::new().file(USER, &json!({"agent": "cmd", "agents": {"cmd": entry}}).to_string());
    let outcome = run(case, json!({}));
    assert!(outcome.completed()["text"].as_str().unwrap().ends_with("after"), "{}", outcome.completed());
}

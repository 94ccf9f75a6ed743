//! MCP servers. The headers of those with a URL are secrets, and no transport is dropped silently. A run fails without a
//! server that it needs, and otherwise warns.

use crate::support;

use std::fs;

use serde_json::{Value, json};
use support::agent::{Script, quote};
use support::{Case, Outcome, limit, run};

const TOKEN: &str = "wiki-token-7731-zq";

fn wiki() -> Value {
    let headers = json!({"Authorization": format!("Bearer {TOKEN}"), "X-Team": "team-zq-55"});
    json!({"name": "wiki", "url": "https://wiki.example.org/mcp", "headers": headers})
}

fn over_sse() -> Value {
    let mut server = wiki();
    server["transport"] = json!("sse");
    server
}

#[test]
fn the_headers_reach_claude_and_codex_in_the_environment_and_no_command_line() {
    let done = run(Case::with(Script::hello()), json!({"mcp_servers": [wiki()]}));
    done.completed();
    let log = done.log();
    let config: Value = log
        .argv()
        .iter()
        .find_map(|arg| arg.strip_prefix("--mcp-config="))
        .map(|text| {
            let text = if text.starts_with('{') { text.to_owned() } else { fs::read_to_string(text).unwrap() };
            serde_json::from_str(&text).unwrap()
        })
        .unwrap();
    let shown = &config["mcpServers"]["wiki"];
    assert_eq!((&shown["type"], &shown["url"]), (&json!("http"), &json!("https://wiki.example.org/mcp")));
    for (name, value) in wiki()["headers"].as_object().unwrap() {
        let variable = shown["headers"][name].as_str().unwrap();
        let variable = variable.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap();
        assert_eq!(log.env(variable).as_deref(), value.as_str());
    }
    assert!(!log.argv().join(" ").contains(TOKEN));

    let program = "#!/bin/sh\nprintf '%s\\n' \"$@\" >argv; env >environ; exit 1\n";
    let outcome = run(Case::new().program("codex", program), json!({"agent": "codex", "mcp_servers": [wiki()]}));
    outcome.failed("agent_start_failed");
    let text = |name: &str| fs::read_to_string(outcome.case().path("work").join(name)).unwrap();
    let (argv, environ) = (text("argv"), text("environ"));
    assert!(argv.contains("mcp_servers.wiki.url=\"https://wiki.example.org/mcp\"") && !argv.contains(TOKEN), "{argv}");
    let table = argv.lines().find_map(|line| line.split_once("env_http_headers={")).unwrap().1;
    let variable = table.split('"').nth(3).unwrap();
    assert!(environ.contains(&format!("\n{variable}=Bearer {TOKEN}\n")), "{environ}");
}

#[test]
fn the_values_of_headers_and_of_a_servers_environment_are_redacted() {
    let local = json!({"name": "local", "command": "/bin/true", "env": {"PLAIN_NAME": "plain-value-zq", "HOME": "/"}});
    let text = format!("The token is {TOKEN}, of team-zq-55, with plain-value-zq in / .");
    let outcome = run(Case::with(Script::new().say("m", &text).done(&text)), json!({"mcp_servers": [wiki(), local]}));
    let shown = "The token is [redacted], of [redacted], with [redacted] in / .";
    assert_eq!(outcome.completed()["text"], shown);
    assert!(outcome.warnings("short_secret").is_empty());
    for value in [TOKEN, "team-zq-55", "plain-value-zq"] {
        outcome.never_shows(value);
    }
}

#[test]
fn a_bad_server_is_refused_with_the_rule_that_it_breaks() {
    let rows = [
        (json!({"command": "x", "url": "https://x"}), "either `command`"),
        (json!({"command": "x", "headers": {}}), "either `command`"),
        (json!({"url": "https://x", "env": {}}), "either `command`"),
        (json!({"headers": {}}), "either `command`"),
        (json!({}), "a list of {name, command, args, env, required}"),
        (json!({"url": "ftp://x"}), "begins with http"),
        (json!({"url": "https://zq-bad-7731:x@host/"}), "without a user"),
        (json!({"url": "https:///path"}), "names a host"),
        (json!({"url": "https://x/a b"}), "spaces"),
        (json!({"url": "https://x", "headers": {"a b": "zq-bad-7731"}}), "`headers`"),
        (json!({"url": "https://x", "headers": {"a": "zq-bad-7731\r\nb: c"}}), "`headers`"),
        (json!({"url": "https://x", "headers": {"a": "b", "A": "c"}}), "`headers`"),
        (json!({"url": "https://x", "transport": "zq-bad-7731"}), "`transport`"),
        (json!({"url": "https://x", "required": "zq-bad-7731"}), "`required`"),
    ];
    for (mut server, rule) in rows {
        server["name"] = json!("wiki");
        let outcome = run(Case::with(Script::hello()), json!({"mcp_servers": [server]}));
        let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("run.start: `mcp_servers` must be ") && message.contains(rule), "{message}");
        outcome.never_shows("zq-bad-7731");
    }
}

#[test]
fn the_form_of_other_programs_has_urls_too() {
    let typed = |text: &str| Case::with(Script::hello()).cli(&["--dry-run", "--mcp-servers", text]);
    let servers = r#"{"mcpServers":{"wiki":{"type":"sse","url":"https://wiki.example.org/sse","headers":{"A":"b"}}}}"#;
    let shown = typed(servers);
    let out = String::from_utf8_lossy(&shown.stdout);
    assert!(out.contains("\"type\":\"sse\"") && out.contains("https://wiki.example.org/sse"), "{out}");
    for (server, says) in [
        (r#"{"type":"carrier-pigeon","url":"https://x"}"#, "must have stdio, http or sse as the type"),
        (r#"{"type":"http","transport":"sse","url":"https://x"}"#, "repeat"),
        (r#"{"args":[]}"#, "a command or a url, but wiki has neither"),
    ] {
        let done = typed(&format!(r#"{{"mcpServers":{{"wiki":{server}}}}}"#));
        let err = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && err.contains(says), "{err}");
    }
}

/// An ACP agent with these capabilities, which writes the request for a session to a file.
fn acp(capabilities: &Value) -> Case {
    let case = Case::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": capabilities}});
    let session = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}});
    let end = json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}});
    let lines = [hello, session, end].map(|line| quote(&line.to_string()));
    let new = quote(&case.path("log/new").display().to_string());
    let script = format!(
        "#!/bin/sh\nread -r line; printf '%s\\n' {}\nread -r line; printf '%s' \"$line\" >{new}; printf '%s\\n' {}\n\
         read -r line; printf '%s\\n' {}\nwhile read -r line; do :; done\n",
        lines[0], lines[1], lines[2]
    );
    case.program("opencode", &script)
}

/// The same agent under another name.
fn named(name: &str, case: Case) -> Case {
    let script = fs::read_to_string(case.path("bin/opencode")).unwrap();
    case.program(name, &script)
}

/// The same agent under a name that nobody tried.
fn untried(case: Case) -> Case {
    named("goose", case)
}

#[test]
fn an_agent_that_ignores_the_server_for_questions_is_noticed() {
    let outcome = run(untried(acp(&json!({}))), json!({"agent": "goose"}));
    outcome.completed();
    let text = "This agent has not started the server for questions: its model can ask only by question markers";
    assert_eq!(outcome.warnings("unsupported_option").iter().filter(|one| one.text("text") == text).count(), 1);
    let sessions = outcome.progress("session");
    let kinds: Vec<&Value> = sessions.iter().map(|one| &one.payload()["capabilities"]["questions"]).collect();
    let all = json!(["confirm", "select", "text", "secret", "file_path"]);
    assert_eq!(kinds, [&all, &json!(["select", "text"])]);

    let outcome = run(untried(acp(&json!({}))), json!({"agent": "goose", "interactive": false}));
    outcome.completed();
    assert_eq!((outcome.warnings("unsupported_option").len(), outcome.progress("session").len()), (0, 1));
}

#[track_caller]
fn refuses(outcome: &Outcome, agent: &str) {
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    for part in ["`mcp_servers`", agent, "the transport sse", "`on_unsupported`"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_transport_that_the_agent_lacks_fails_the_run_or_drops_the_server() {
    // Codex is known to lack it.
    let codex = || Case::new().program("codex", "#!/bin/sh\nprintf '%s\\n' \"$@\" >argv; exit 1\n");
    let payload = json!({"agent": "codex", "mcp_servers": [over_sse()]});
    let outcome = run(codex(), payload.clone());
    refuses(&outcome, "codex");
    assert!(!outcome.case().path("work/argv").exists(), "Codex started");
    let mut lenient = payload;
    lenient["on_unsupported"] = json!("warn");
    let outcome = run(codex(), lenient);
    outcome.failed("agent_start_failed");
    assert_eq!(outcome.warnings("unsupported_option").len(), 1);
    assert!(!fs::read_to_string(outcome.case().path("work/argv")).unwrap().contains("wiki"));

    // An ACP agent reports its transports when it starts.
    let payload = |server: Value| json!({"agent": "opencode", "interactive": false, "mcp_servers": [server]});
    let http = json!({"mcpCapabilities": {"http": true}});
    refuses(&run(acp(&http), payload(over_sse())), "opencode");
    let outcome = run(acp(&http), payload(wiki()));
    outcome.completed();
    let new: Value = serde_json::from_str(&outcome.log().text("new")).unwrap();
    let headers = json!([
        {"name": "Authorization", "value": format!("Bearer {TOKEN}")}, {"name": "X-Team", "value": "team-zq-55"}
    ]);
    let wanted = json!({"type": "http", "name": "wiki", "url": "https://wiki.example.org/mcp", "headers": headers});
    assert_eq!(new["params"]["mcpServers"], json!([wanted]));
    let mut lenient = payload(over_sse());
    lenient["on_unsupported"] = json!("warn");
    let outcome = run(acp(&http), lenient);
    outcome.completed();
    assert_eq!(outcome.warnings("unsupported_option").len(), 1);
    let new: Value = serde_json::from_str(&outcome.log().text("new")).unwrap();
    assert_eq!(new["params"]["mcpServers"], json!([]));
}

/// An ACP agent that starts the server of its session, and then ends each turn at once.
fn starting(server: &str) -> Case {
    let case = Case::new().program("otter-server", server);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}});
    let session = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}});
    let end = json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}});
    let [hello, session, end] = [hello, session, end].map(|line| quote(&line.to_string()));
    let log = quote(&case.path("log").display().to_string());
    let exe = quote(env!("CARGO_BIN_EXE_spektacular"));
    let script = format!(
        "#!/bin/sh\nread -r line; printf '%s\\n' {hello}\nread -r line; printf '%s' \"$line\" >{log}/new\n\
         at=$(sed -n 's/.*\"launch-mcp-server\",\"\\([^\"]*\\)\",\"\\([^\"]*\\)\".*/\\1 \\2/p' {log}/new)\n\
         mkfifo {log}/in; {exe} launch-mcp-server $at <{log}/in >{log}/out 2>{log}/err &\n\
         exec 3>{log}/in; echo initialize >&3\n\
         printf '%s\\n' {session}\nread -r line && printf '%s' \"$line\" >{log}/prompt\n\
         while [ -e {log}/go ] && ! [ -e {log}/gone ]; do sleep 0.01; done\nprintf '%s\\n' {end}\n\
         while read -r line; do :; done\n"
    );
    case.program("opencode", &script)
}

const READY: &str = "#!/bin/sh\nread -r line\necho '{\"id\":1,\"result\":{\"protocolVersion\":\"1\"}}'\nread -r line\n";
const DYING: &str = "#!/bin/sh\necho 'cannot open the otter database' >&2\nexit 3\n";

fn otter(required: bool) -> Value {
    let server = json!({"name": "otter", "command": "otter-server", "required": required});
    json!({"agent": "opencode", "interactive": false, "start_timeout_s": limit().as_secs_f64(), "mcp_servers": [server]})
}

fn states(outcome: &Outcome) -> Vec<String> {
    let frames = outcome.progress("session");
    frames.iter().map(|frame| frame.payload()["mcp_servers"][0]["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_waits_for_a_server_that_it_needs() {
    for agent in ["opencode", "goose"] {
        let mut payload = otter(true);
        payload["agent"] = json!(agent);
        let outcome = run(untried(starting(READY)), payload);
        outcome.completed();
        assert_eq!(states(&outcome).last().unwrap(), "ready");
        assert!(outcome.warnings("mcp_unavailable").is_empty());
    }
}

#[test]
fn a_needed_server_that_does_not_start_ends_the_run_before_the_prompt() {
    for (server, words) in
        [(DYING, "cannot open the otter database"), ("#!/nowhere/interpreter\n", "cannot be started")]
    {
        let outcome = run(starting(server), otter(true));
        let failed = outcome.failed("agent_start_failed");
        let message = failed["message"].as_str().unwrap();
        assert!(message.contains("MCP server otter") && message.contains("`required`"), "{message}");
        let said = failed["detail"]["agent_message"].as_str().unwrap();
        assert!(said.contains(words), "{said}");
        assert!(!outcome.case().path("log/prompt").exists(), "the prompt was sent");
        assert_eq!(states(&outcome).last().unwrap(), "failed");
    }
}

#[test]
fn a_run_goes_on_without_a_server_that_it_does_not_need() {
    let case = starting(DYING);
    fs::write(case.path("log/go"), "").unwrap();
    let gone = case.path("log/gone");
    let mut session = case.spawn();
    session.start(otter(false));
    session.until_warning("mcp_unavailable");
    fs::write(gone, "").unwrap();
    let outcome = session.finish();
    outcome.completed();
    let warnings = outcome.warnings("mcp_unavailable");
    let [warning] = warnings.as_slice() else { panic!("{} warnings", warnings.len()) };
    assert!(warning.text("text").contains("otter is not available: cannot open the otter database"));
}

#[test]
fn a_run_that_completes_before_a_server_is_there_warns() {
    let outcome = run(acp(&json!({})), otter(false));
    outcome.completed();
    assert_eq!(states(&outcome), ["pending"]);
    let warnings = outcome.warnings("mcp_unavailable");
    let [warning] = warnings.as_slice() else { panic!("{} warnings", warnings.len()) };
    assert_eq!(warning.text("text"), "The MCP server otter is not available");
}

#[test]
fn a_needed_server_that_the_agent_does_not_start_ends_the_run_too() {
    let mut payload = otter(true);
    payload["start_timeout_s"] = json!(1.5);
    let outcome = run(acp(&json!({})), payload);
    let message = outcome.failed("agent_start_failed")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("MCP server otter did not start within"), "{message}");
}

/// OpenHands starts servers only with the first prompt, so the prompt cannot wait for them.
#[test]
fn a_turn_without_a_needed_server_is_not_completed() {
    let mut payload = otter(true);
    payload["agent"] = json!("openhands");
    let outcome = run(named("openhands", acp(&json!({}))), payload);
    let message = outcome.failed("agent_start_failed")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("MCP server otter did not start"), "{message}");
}

#[test]
fn a_server_that_ends_later_is_a_warning() {
    let case = starting(READY);
    let dies = "#!/bin/sh\nread -r line\necho '{\"id\":1,\"result\":{\"protocolVersion\":\"1\"}}'\n\
                while ! [ -e LOG/prompt ]; do sleep 0.01; done\necho 'the otter escaped' >&2\nexit 4\n";
    let log = case.path("log").display().to_string();
    let case = case.program("otter-server", &dies.replace("LOG", &log));
    fs::write(case.path("log/go"), "").unwrap();
    let gone = case.path("log/gone");
    let mut session = case.spawn();
    session.start(otter(true));
    session.until_warning("mcp_unavailable");
    fs::write(gone, "").unwrap();
    let outcome = session.finish();
    outcome.completed();
    assert!(states(&outcome).ends_with(&["ready".to_owned(), "failed".to_owned()]));
}

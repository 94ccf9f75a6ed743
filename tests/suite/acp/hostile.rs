//! Tests of clients that break the protocol, flood it, do not read, or go away.

use super::Script;
use super::client::Client;
use crate::length::by_length;
use crate::support::Case;
use crate::support::machine::not_checked;
use crate::support::procs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Works without end.
fn endless() -> Script {
    Script::new().say("msg_1", "Here").sh("while :; do recv || sleep 0.05; done")
}

/// A client with two sessions whose agents work.
fn busy() -> Client {
    let mut client = Client::new(Case::with(endless()));
    for _ in 0..2 {
        let session = client.session();
        client.prompt(&session, "Go");
        client.until_text(&session, "Here");
    }
    client
}

#[test]
fn broken_messages_get_the_errors_of_json_rpc() {
    let mut client = Client::new(Case::new());
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for (line, code) in [
        ("{", -32700),
        ("nonsense", -32700),
        ("\"\u{1}\"", -32700),
        (&deep, -32700),
        ("[]", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/list\"}]", -32600),
        ("12", -32600),
        ("{}", -32600),
        ("{\"id\":1}", -32600),
        ("{\"id\":{},\"method\":\"session/list\"}", -32600),
        ("{\"id\":true,\"method\":\"session/list\"}", -32600),
        (&format!("{{\"id\":\"{}\",\"method\":\"session/list\"}}", "x".repeat(2000)), -32600),
    ] {
        client.send(line);
        let reply = client.next();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&Value::Null, &json!(code)), "{line}: {reply}");
    }
    for method in ["session/fork", "session/delete", "logout", "_own", "session/update", ""] {
        assert_eq!(client.refused(method, json!({}))["code"], -32601, "{method}");
    }
    for method in ["session/prompt", "session/close", "session/set_mode", "session/resume", "session/new", "initialize"]
    {
        assert_eq!(client.refused(method, json!({}))["code"], -32602, "{method}");
        assert_eq!(client.refused(method, json!([1]))["code"], -32602, "{method}");
    }
    let unknown = json!({"sessionId": "sess_1", "prompt": [], "modeId": "ask"});
    for method in ["session/prompt", "session/close", "session/set_mode"] {
        assert_eq!(client.refused(method, unknown.clone())["code"], -32002, "{method}");
    }
    // Nobody waits for a reply to these.
    for line in [
        "",
        "{\"jsonrpc\":\"2.0\",\"method\":\"unknown\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"none\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}",
    ] {
        client.send(line);
    }
    client.call("session/list", json!({}));
    client.finish();
}

#[test]
fn bytes_that_are_not_text_and_lines_without_end_get_errors() {
    let mut client = Client::new(Case::new());
    client.send_bytes(b"{\"a\":\"\xff\"}\n".to_vec());
    assert_eq!(client.next()["error"]["code"], -32700);
    let mut long = vec![b'x'; 17 << 20];
    long.push(b'\n');
    client.send_bytes(long);
    assert_eq!(client.next()["error"]["code"], -32600);
    client.call("session/list", json!({}));
    client.finish();
}

#[test]
fn messages_with_changed_bytes_never_end_the_program() {
    let mut client = Client::new(Case::new());
    let cwd = client.case.work();
    let lines = [
        json!({"jsonrpc": "2.0", "method": "session/new", "params": {"cwd": cwd, "mcpServers": [{"name": "a", "command": "b", "args": [], "env": []}]}}),
        json!({"jsonrpc": "2.0", "method": "session/prompt", "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "a"}]}}),
        json!({"jsonrpc": "2.0", "method": "session/set_config_option", "params": {"sessionId": "s", "configId": "model", "value": "a"}}),
    ];
    for line in lines {
        let line = line.to_string();
        for at in (0..line.len()).step_by(3) {
            for byte in [b'"', b'{', b']', b'\\', b'0', 0xff] {
                let mut bytes = line.clone().into_bytes();
                bytes[at] = byte;
                bytes.push(b'\n');
                client.send_bytes(bytes);
            }
            client.send(&line[..at]);
        }
    }
    let id = client.request("session/list", json!({}));
    client.response(id);
    client.finish();
}

#[test]
fn sessions_are_limited() {
    let mut client = Client::start(Case::new(), &["--agent", "demo"]);
    client.call("initialize", json!({"protocolVersion": 1}));
    let sessions: Vec<String> = (0..32).map(|_| client.session()).collect();
    let params = json!({"cwd": client.case.work(), "mcpServers": []});
    for _ in 0..200 {
        let error = client.refused("session/new", params.clone());
        assert_eq!(error["data"]["code"], "resource_exhausted", "{error}");
    }
    assert_eq!(client.case.processes().len(), 1, "a session without a prompt has no process");
    client.call("session/close", json!({"sessionId": sessions[0]}));
    client.session();
    let big = json!({"cwd": client.case.work(), "mcpServers": [{"name": "x".repeat(300 << 10), "command": "a"}]});
    assert!(client.refused("session/new", big)["message"].as_str().unwrap().contains("256 KiB"));
    // Each directory is looked up, so many short ones are refused before.
    let many = json!({"cwd": client.case.work(), "mcpServers": [], "additionalDirectories": vec!["/"; 100_000]});
    assert!(client.refused("session/new", many)["message"].as_str().unwrap().contains("256 KiB"));
    client.finish();
}

/// The limit of the program's memory, in KiB, without the pages of its file: four lines of 16 MiB on their way, the 16 MiB
/// that wait for the client, and memory that the allocator does not return. 99 MiB were measured, and 270 MiB when the
/// servers of a session were kept as objects.
const PEAK_KIB: u64 = 160 << 10;

#[test]
fn a_hostile_client_cannot_make_the_program_hold_more_than_its_limits() {
    let mut client = Client::start(Case::new(), &["--agent", "demo"]);
    client.case.limit *= 10;
    client.call("initialize", json!({"protocolVersion": 1}));
    let session = client.session();
    // Many small values: as objects in memory, they take 35 times their length.
    let servers = vec![json!({"name": "", "command": ""}); 8000];
    for _ in 0..40 {
        client.request("session/new", json!({"cwd": "/", "mcpServers": servers}));
    }
    // Responses that the client does not read, until the prompt behind them has started a run.
    client.gate().pause();
    let request = json!({"id": "x".repeat(1000), "method": "unknown"});
    client.send_bytes(format!("{request}\n").repeat(12_000).into_bytes());
    client.prompt(&session, "Go");
    assert!(crate::support::io::wait_for(client.case.limit, || client.case.processes().len() > 1), "no run");
    client.gate().open();
    // Long lines, and a line that does not end.
    for _ in 0..by_length(1, 3) {
        client.send_bytes([vec![b'x'; 15 << 20], vec![b'\n']].concat());
    }
    client.send_bytes(vec![b'x'; by_length(20, 64) << 20]);
    client.send("");
    let last = client.request("session/list", json!({}));
    client.answer_of(last);
    let pid = client.pid();
    let peak = procs::peak_kib(pid) - procs::program_kib(pid);
    assert!(peak < PEAK_KIB, "{peak} KiB");
    client.finish();
}

#[test]
fn prompts_that_wait_are_limited() {
    let mut client = Client::new(Case::with(endless()));
    let session = client.session();
    client.prompt(&session, "Go");
    client.until_text(&session, "Here");
    let waiting: Vec<u64> = (0..32).map(|_| client.prompt(&session, "More")).collect();
    let prompt = json!([{"type": "text", "text": "Too many"}]);
    let error = client.refused("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    assert_eq!(error["data"]["code"], "prompt_refused", "{error}");
    client.call("session/close", json!({"sessionId": session}));
    for id in waiting {
        assert_eq!(client.answer_of(id)["result"]["stopReason"], "cancelled");
    }
    client.finish();
}

#[test]
fn a_client_that_does_not_read_can_still_cancel_and_leave() {
    let flood = r#"i=0; while [ $i -lt 20000 ]; do i=$((i+1)); partial "$PIECE"; done"#;
    let piece = json!({"type": "stream_event", "session_id": crate::support::agent::SESSION, "parent_tool_use_id": null,
        "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x".repeat(2000)}}});
    let script = Script::new().sh(&format!("PIECE='{piece}'")).sh(flood).sh("note flooded; listen");
    let mut client = Client::new(Case::with(script));
    let session = client.session();
    client.gate().pause();
    client.prompt(&session, "Go");
    let log = client.case.path("log/stdin");
    assert!(crate::support::io::wait_for(client.case.limit, || log.exists()), "the agent does not start");
    client.notify("session/cancel", json!({"sessionId": session}));
    client.close_stdin();
    client.exit();
    assert_eq!(client.case.survivors(), [""; 0]);
    assert!(
        !client.case.path("log/notes").exists()
            || !std::fs::read_to_string(client.case.path("log/notes")).unwrap().contains("flooded")
    );
}

#[test]
fn the_end_of_stdin_ends_everything() {
    let mut client = busy();
    client.close_stdin();
    assert_eq!(client.exit().code(), Some(0));
    assert_eq!(client.case.survivors(), [""; 0]);
}

#[test]
fn a_closed_stdout_ends_everything() {
    let mut client = busy();
    client.gate().close();
    assert_eq!(client.exit().code(), Some(74));
    assert_eq!(client.case.survivors(), [""; 0]);
}

#[test]
fn a_signal_ends_everything() {
    let mut client = busy();
    kill_process(Pid::from_raw(client.pid().cast_signed()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(client.exit().code(), Some(0));
    assert_eq!(client.case.survivors(), [""; 0]);
}

/// The points of the server at which a debug build can be made to panic. The first prompt reaches each.
pub(crate) const PANICS: [&str; 3] = ["acp loop", "run-stdin", "run-stdout"];

#[test]
fn a_panic_in_any_thread_ends_everything() {
    if !cfg!(debug_assertions) {
        return not_checked("a_panic_in_any_thread_ends_everything", "only a debug build can be made to panic");
    }
    for point in PANICS {
        let mut client = Client::start(Case::with(endless()).env("TEST_PANIC_AT", point), &[]);
        let cwd = client.case.work();
        let version = json!({"protocolVersion": 1, "clientCapabilities": {}});
        client.request("initialize", version);
        client.request("session/new", json!({"cwd": cwd, "mcpServers": []}));
        if point != "acp loop" {
            let session = client.until("the session", |message| message["result"]["sessionId"].is_string());
            client.prompt(session["result"]["sessionId"].as_str().unwrap(), "Go");
        }
        assert_eq!(client.exit().code(), Some(70), "{point}");
        assert_eq!(client.case.survivors(), [""; 0], "{point}");
    }
}

#[test]
fn nothing_outlives_a_program_that_is_killed() {
    let mut client = busy();
    kill_process(Pid::from_raw(client.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    client.exit();
    assert_eq!(client.case.survivors(), [""; 0]);
}

#[test]
fn a_stalled_run_stalls_no_other_session() {
    let mut client = busy();
    let runs = client.case.processes();
    let run = runs.iter().find(|(_, line)| line.contains("adhoc --output json")).expect("a run").0;
    kill_process(Pid::from_raw(run).unwrap(), Signal::STOP).unwrap();
    assert!(crate::support::io::wait_for(client.case.limit, || procs::stopped(run)));
    let session = client.session();
    client.prompt(&session, "Go");
    client.until_text(&session, "Here");
    client.close_stdin();
    assert_eq!(client.exit().code(), Some(0), "the stalled run is killed in time");
    assert_eq!(client.case.survivors(), [""; 0]);
}

//! The replay of a stored session to an ACP client costs linear time: from the agent's own session, and from ours.

use crate::growth::is_steep;
use crate::instructions::{instructions_in, program};
use crate::scripted::Scripted;
use crate::workload::Dialect;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

/// The agent's id of the session.
const SESSION: &str = "01234567-89ab-4def-8123-456789abcdef";
/// The number of exchanges in the first of three sessions. The others have twice and four times as many.
const EXCHANGES: usize = 200;

/// A file that holds a session.
struct Store {
    name: &'static str,
    dialect: Dialect,
    /// The path below the home directory.
    path: &'static str,
    /// Returns the lines of one exchange.
    exchange: fn(usize) -> String,
    /// The updates that one exchange becomes.
    updates: usize,
}

const STORES: &[Store] = &[
    Store {
        name: "a session of Claude's",
        dialect: Dialect::Claude,
        path: ".claude/projects/work/01234567-89ab-4def-8123-456789abcdef.jsonl",
        exchange: |n| {
            format!(
                r#"{{"type":"user","message":{{"role":"user","content":"Prompt {n}"}}}}
{{"type":"assistant","message":{{"content":[{{"type":"text","text":"Answer {n}"}},{{"type":"tool_use","id":"c{n}","name":"Bash","input":{{"command":"echo {n}"}}}}]}}}}
{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"c{n}","content":"{n}"}}]}}}}
"#
            )
        },
        updates: 3,
    },
    Store {
        name: "a session of Codex's",
        dialect: Dialect::Codex,
        path: ".codex/sessions/2026/11/29/rollout-2026-11-29T00-00-00-01234567-89ab-4def-8123-456789abcdef.jsonl",
        exchange: |n| {
            format!(
                r#"{{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"UserMessage","id":"u{n}","content":[{{"type":"text","text":"Prompt {n}"}}]}}}}}}
{{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"CommandExecution","id":"c{n}","command":["/bin/bash","-lc","echo {n}"],"status":"completed","aggregated_output":"{n}","exit_code":0}}}}}}
"#
            )
        },
        updates: 2,
    },
    Store {
        name: "a session of Gemini's",
        dialect: Dialect::Acp,
        path: ".gemini/tmp/work/chats/session-2026-11-29T00-00-01234567.jsonl",
        exchange: |n| {
            format!(
                r#"{{"id":"u{n}","type":"user","content":[{{"text":"Prompt {n}"}}]}}
{{"id":"g{n}","type":"gemini","content":"Answer {n}","toolCalls":[{{"id":"c{n}","name":"run_shell_command","args":{{"command":"echo {n}"}},"result":[{{"functionResponse":{{"response":{{"output":"{n}"}}}}}}],"status":"success"}}]}}
"#
            )
        },
        updates: 3,
    },
    Store {
        name: "a session of ours",
        dialect: Dialect::Claude,
        path: ".local/state/spektacular/acp/history/sess_1",
        exchange: |n| {
            format!(
                r#"{{"sessionUpdate":"user_message_chunk","content":{{"type":"text","text":"Prompt {n}"}},"messageId":"u{n}"}}
{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"Answer {n}"}},"messageId":"a{n}"}}
"#
            )
        },
        updates: 2,
    },
];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Loads a session with this number of exchanges. Returns the number of instructions.
fn loaded(store: &Store, exchanges: usize) -> u64 {
    let agent = Scripted::new(store.dialect, &[]);
    let (home, name) = (agent.folder(), store.dialect.agent());
    let work = home.join("work").canonicalize().unwrap();
    let stored = format!(
        r#"{{"id":"sess_1","agent":"{name}","agent_session":"{SESSION}","cwd":"{0}","title":"t","updated":"2026-11-29T00:00:00Z","runs":1}}"#,
        work.display()
    );
    write(&home.join(".local/state/spektacular/acp/sess_1"), &stored);
    // A first line without the agent's id belongs to another session.
    let head = match store.dialect {
        Dialect::Claude => String::new(),
        Dialect::Codex => format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{SESSION}\"}}}}\n"),
        Dialect::Acp => format!("{{\"sessionId\":\"{SESSION}\",\"kind\":\"main\"}}\n"),
    };
    let exchanged: String = (0..exchanges).map(store.exchange).collect();
    write(&home.join(store.path), &(head + &exchanged));
    let log = home.join("valgrind.log");
    let mut command = agent.command("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--trace-children=no"]);
    command.arg(format!("--log-file={}", log.display())).arg(program()).args(["acp", "--agent", name]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let requests = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":1,"clientCapabilities":{{}}}}}}
{{"jsonrpc":"2.0","id":2,"method":"session/load","params":{{"sessionId":"sess_1","cwd":"{}","mcpServers":[]}}}}
"#,
        work.display()
    );
    stdin.write_all(requests.as_bytes()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut updates, mut response) = (0, Value::Null);
    for line in lines.by_ref() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let kind = line["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default();
        updates += usize::from(kind.ends_with("_chunk") || kind == "tool_call");
        if line["id"] == 2 {
            response = line;
            break;
        }
    }
    drop(stdin);
    lines.for_each(drop);
    assert!(child.wait().unwrap().success(), "{}: {response}", store.name);
    assert!(response["result"].is_object(), "{}: {response}", store.name);
    assert_eq!(updates, exchanges * store.updates, "{}", store.name);
    instructions_in(&fs::read_to_string(log).unwrap())
}

#[test]
#[ignore = "needs valgrind and a static release build: .ci/run"]
fn instructions_of_a_replay_grow_as_the_session_does() {
    let steep =
        STORES.iter().filter(|store| is_steep(store.name, [1, 2, 4].map(|times| loaded(store, EXCHANGES * times))));
    let steep: Vec<&str> = steep.map(|store| store.name).collect();
    assert!(steep.is_empty(), "the work grows faster than the session: {steep:?}");
}

//! The fake agent: a POSIX shell script that speaks Claude Code's stream-json, built step by step, and its log.
//!
//! A step prints a line or waits for one. While it waits, it answers `interrupt` and `end_session` as the real agent
//! does.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The session id that the fake reports.
pub(crate) const SESSION: &str = "5f0c1a52-6b1e-4c8a-9d1e-0123456789ab";
pub(crate) const MODEL: &str = "claude-opus-5-5";
pub(crate) const VERSION: &str = "2.1.330";

/// The beginning of every script. `$D` is the log folder, `$RC` the exit code.
const LIBRARY: &str = r#"
case "$1" in --version|-v) echo '2.1.330 (Claude Code)'; exit 0 ;; esac
RC=0
PARTIAL=
for a in "$@"; do
    if [ "$a" = --include-partial-messages ]; then PARTIAL=1; fi
done
if [ -z "$PENDING" ]; then
    for a in "$@"; do printf '%s\0' "$a"; done >"$D/argv"
    cat "/proc/$$/environ" >"$D/environ"
    pwd -P >"$D/cwd"
    echo $$ >"$D/pid"
    echo $$ >>"$D/pids"
fi
out() { printf '%s\n' "$1"; }
partial() { if [ -n "$PARTIAL" ]; then out "$1"; fi; }
note() { printf '%s\n' "$1" >>"$D/notes"; }
recv() {
    if IFS= read -r line; then printf '%s\n' "$line" >>"$D/stdin"; return 0; fi
    note eof
    return 1
}
leave() { exit $RC; }
accept() {
    r=${line#*'"request_id":"'}
    r=${r%%'"'*}
    out '{"type":"control_response","response":{"subtype":"success","request_id":"'"$r"'"}}'
}
aborted() {
    RC=1
    accept
    out "$ABORTED"
    listen
}
control() {
    case "$line" in
    *'"subtype":"interrupt"'*) note interrupt; aborted ;;
    *'"subtype":"end_session"'*) note end_session; leave ;;
    *'"type":"control_request"'*) accept ;;
    esac
}
listen() {
    while recv; do
        case "$line" in
        # A further turn: the script begins again, in the same process. Only if it gave its arguments.
        *'"type":"user"'*) if [ $# -gt 0 ]; then PENDING=$line; export PENDING; exec /bin/sh "$0" "$@"; fi ;;
        *) control ;;
        esac
    done
    leave
}
prompt() {
    if [ -n "$PENDING" ]; then line=$PENDING; PENDING=; return; fi
    while recv; do case "$line" in *'"type":"user"'*) return ;; *) control ;; esac; done
    leave
}
answer() {
    while recv; do case "$line" in *'"type":"control_response"'*) return ;; *) control ;; esac; done
    leave
}
"#;

/// The steps of a fake agent.
#[derive(Clone, Default)]
pub(crate) struct Script {
    body: String,
}

impl Script {
    /// A script that does nothing yet.
    pub(crate) fn bare() -> Script {
        Script::default()
    }

    /// Waits for the prompt and reports the session: the beginning of every run.
    pub(crate) fn new() -> Script {
        Script::bare().sh("prompt").out(&init())
    }

    /// Says hello and ends its turn.
    pub(crate) fn hello() -> Script {
        Script::new().say("msg_1", "Hello").done("Hello")
    }

    /// Asks for permission to use a tool, and succeeds whatever the answer is.
    pub(crate) fn asks(tool: &str, input: Value) -> Script {
        Script::new().ask("req-1", "toolu_1", tool, input).tool_result("toolu_1", "(done)").done("All done.")
    }

    /// Asks for permission to run a command.
    pub(crate) fn asks_bash() -> Script {
        Script::asks("Bash", bash("touch a.txt"))
    }

    /// Calls AskUserQuestion with these questions.
    pub(crate) fn asks_user(questions: Value) -> Script {
        Script::asks("AskUserQuestion", json!({ "questions": questions }))
    }

    /// Runs any shell text.
    pub(crate) fn sh(mut self, text: &str) -> Script {
        self.body.push_str(text);
        self.body.push('\n');
        self
    }

    /// Prints a line.
    pub(crate) fn raw(self, line: &str) -> Script {
        self.sh(&format!("out {}", quote(line)))
    }

    /// Prints bytes unchanged, without a newline.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Script {
        let octal: String = bytes.iter().map(|b| format!("\\{b:03o}")).collect();
        self.sh(&format!("printf '{octal}'"))
    }

    pub(crate) fn out(self, line: &Value) -> Script {
        self.raw(&line.to_string())
    }

    /// Prints a complete text, and first its pieces if partial messages are on.
    pub(crate) fn say(self, message: &str, text: &str) -> Script {
        self.say_pieces(message, &[text])
    }

    pub(crate) fn say_pieces(self, message: &str, pieces: &[&str]) -> Script {
        let block = json!({"type": "text", "text": pieces.concat()});
        let deltas = pieces.iter().map(|p| json!({"type": "text_delta", "text": p})).collect();
        self.streamed(message, &json!({"type": "text", "text": ""}), deltas, block)
    }

    pub(crate) fn think(self, message: &str, text: &str) -> Script {
        let block = json!({"type": "thinking", "thinking": text, "signature": "sig"});
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        self.streamed(message, &start, vec![json!({"type": "thinking_delta", "thinking": text})], block)
    }

    fn streamed(self, message: &str, start: &Value, deltas: Vec<Value>, block: Value) -> Script {
        let head = json!({"id": message, "type": "message", "role": "assistant", "model": MODEL, "content": []});
        let mut script = self
            .partial(json!({"type": "message_start", "message": head}))
            .partial(json!({"type": "content_block_start", "index": 0, "content_block": start}));
        for delta in deltas {
            script = script.partial(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        script
            .out(&assistant(message, block))
            .partial(json!({"type": "content_block_stop", "index": 0}))
            .partial(
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
            )
            .partial(json!({"type": "message_stop"}))
    }

    fn partial(self, event: Value) -> Script {
        let line = json!({"type": "stream_event", "event": event, "session_id": SESSION, "parent_tool_use_id": null});
        self.sh(&format!("partial {}", quote(&line.to_string())))
    }

    pub(crate) fn tool_use(self, call: &str, tool: &str, input: &Value) -> Script {
        let block = json!({"type": "tool_use", "id": call, "name": tool, "input": input});
        self.out(&assistant(&format!("msg_{call}"), block))
    }

    /// Calls a tool, asks for permission, and waits for the answer.
    pub(crate) fn ask(self, request: &str, call: &str, tool: &str, input: Value) -> Script {
        self.tool_use(call, tool, &input).out(&can_use(request, call, tool, &input)).sh("answer")
    }

    pub(crate) fn tool_result(self, call: &str, content: &str) -> Script {
        let result = json!({"stdout": content, "stderr": "", "interrupted": false, "isImage": false});
        self.out(&tool_result(call, content, result))
    }

    /// Reports a completed tool call without a question.
    pub(crate) fn tool(self, call: &str, tool: &str, input: &Value, content: &str) -> Script {
        self.tool_use(call, tool, input).tool_result(call, content)
    }

    /// Reports the result of a successful turn.
    pub(crate) fn result(self, text: &str) -> Script {
        self.out(&success(text))
    }

    /// Reports the result, and then waits until the host ends the session. A further prompt begins the script again.
    pub(crate) fn done(self, text: &str) -> Script {
        self.result(text).sh(r#"listen "$@""#)
    }

    /// Reports the result, and exits.
    pub(crate) fn exits(self, text: &str) -> Script {
        self.result(text).sh("leave")
    }

    pub(crate) fn body(&self) -> String {
        self.body.clone()
    }

    /// The steps without the first two, to be appended to another script.
    pub(crate) fn steps_after_init(&self) -> String {
        self.body.splitn(3, '\n').nth(2).unwrap_or("").to_owned()
    }

    pub(crate) fn render(&self, log: &Path) -> String {
        let aborted = json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 1, "stop_reason": null,
            "terminal_reason": "aborted_streaming", "errors": ["[ede_diagnostic] aborted"], "session_id": SESSION,
            "total_cost_usd": 0.0001, "usage": usage(), "permission_denials": [], "duration_ms": 5
        });
        let log = quote(&log.display().to_string());
        let aborted = quote(&aborted.to_string());
        format!("#!/bin/sh\nD={log}\nABORTED={aborted}\n{LIBRARY}\n{}", self.body)
    }
}

/// The text as one shell word.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(crate) fn init() -> Value {
    json!({
        "type": "system", "subtype": "init", "cwd": "/home/user/project", "session_id": SESSION,
        "tools": ["Task", "AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "Read", "WebFetch", "Write"],
        "mcp_servers": [], "model": MODEL, "permissionMode": "default", "slash_commands": ["compact"],
        "apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": VERSION, "output_style": "default", "agents": [],
        "uuid": "00000000-0000-4000-8000-000000000001"
    })
}

pub(crate) fn usage() -> Value {
    json!({
        "input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 5,
        "service_tier": "standard"
    })
}

/// An assistant line with one content block.
pub(crate) fn assistant(message: &str, block: Value) -> Value {
    json!({
        "type": "assistant", "parent_tool_use_id": null, "session_id": SESSION, "request_id": "req_stub",
        "uuid": "00000000-0000-4000-8000-000000000002",
        "message": {
            "id": message, "type": "message", "role": "assistant", "model": MODEL, "content": [block],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 1}
        }
    })
}

pub(crate) fn text(message: &str, text: &str) -> Value {
    assistant(message, json!({"type": "text", "text": text}))
}

/// The request for permission to use a tool. The questions and the plan have no suggestions.
pub(crate) fn can_use(request: &str, call: &str, tool: &str, input: &Value) -> Value {
    let mut body = json!({
        "subtype": "can_use_tool", "tool_name": tool, "display_name": tool, "input": input, "tool_use_id": call
    });
    if tool == "AskUserQuestion" || tool == "ExitPlanMode" {
        body["requires_user_interaction"] = json!(true);
    } else {
        body["description"] = json!("a description");
        body["permission_suggestions"] = json!([
            {"type": "addRules", "rules": [{"toolName": tool, "ruleContent": "touch a.txt"}], "behavior": "allow",
             "destination": "localSettings"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
        ]);
    }
    json!({"type": "control_request", "request_id": request, "request": body})
}

pub(crate) fn tool_result(call: &str, content: &str, result: Value) -> Value {
    json!({
        "type": "user", "parent_tool_use_id": null, "session_id": SESSION, "tool_use_result": result,
        "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": false}
        ]}
    })
}

pub(crate) fn success(text: &str) -> Value {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "api_error_status": null, "num_turns": 1,
        "result": text, "stop_reason": "end_turn", "session_id": SESSION, "total_cost_usd": 0.25, "usage": usage(),
        "modelUsage": {MODEL: {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 7,
            "cacheCreationInputTokens": 0, "webSearchRequests": 0, "costUSD": 0.25, "contextWindow": 1_000_000}},
        "permission_denials": [], "terminal_reason": "completed", "duration_ms": 20, "duration_api_ms": 10,
        "uuid": "00000000-0000-4000-8000-000000000003"
    })
}

/// An error result, with the fields that differ.
#[track_caller]
pub(crate) fn error_result(fields: Value) -> Value {
    let mut line = success("");
    line["is_error"] = json!(true);
    for (name, value) in fields.as_object().expect("object") {
        line[name] = value.clone();
    }
    line
}

pub(crate) fn bash(command: &str) -> Value {
    json!({"command": command, "description": "stub command"})
}

/// A question of AskUserQuestion with three options.
pub(crate) fn question(text: &str, multiple: bool) -> Value {
    json!({"question": text, "header": "Features", "multiSelect": multiple, "options": [
        {"label": "Auth", "description": "Login"},
        {"label": "Search", "description": "Full text"},
        {"label": "Export", "description": "CSV"}
    ]})
}

/// The log of the fake agent.
pub(crate) struct AgentLog {
    dir: PathBuf,
}

impl AgentLog {
    pub(crate) fn new(dir: &Path) -> AgentLog {
        AgentLog { dir: dir.to_owned() }
    }

    pub(crate) fn text(&self, name: &str) -> String {
        super::read(&self.dir.join(name))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether the agent ran at all.
    pub(crate) fn ran(&self) -> bool {
        self.dir.join("pid").exists()
    }

    /// The number of processes of the agent.
    pub(crate) fn starts(&self) -> usize {
        self.text("pids").lines().count()
    }

    #[track_caller]
    pub(crate) fn pid(&self) -> i32 {
        self.text("pid").trim().parse().expect("the fake's pid")
    }

    pub(crate) fn argv(&self) -> Vec<String> {
        self.text("argv").split_terminator('\0').map(str::to_owned).collect()
    }

    pub(crate) fn cwd(&self) -> String {
        self.text("cwd").trim_end().to_owned()
    }

    /// A variable of the agent's environment.
    pub(crate) fn env(&self, name: &str) -> Option<String> {
        let environ = self.text("environ");
        environ.split('\0').find_map(|v| v.strip_prefix(&format!("{name}="))).map(str::to_owned)
    }

    pub(crate) fn noted(&self, note: &str) -> bool {
        self.text("notes").lines().any(|l| l == note)
    }

    /// The lines that the agent received.
    #[track_caller]
    pub(crate) fn received(&self) -> Vec<Value> {
        let text = self.text("stdin");
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|_| panic!("no JSON to the agent: {l}"))).collect()
    }

    /// The texts of the user messages that the agent received.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.received().iter().filter(|l| l["type"] == "user").map(|l| content_text(&l["message"]["content"])).collect()
    }

    /// The answers that the agent received: request id and inner response.
    pub(crate) fn answers(&self) -> Vec<(String, Value)> {
        let lines = self.received();
        let answers = lines.iter().filter(|l| l["type"] == "control_response").map(|l| &l["response"]);
        answers.map(|r| (r["request_id"].as_str().unwrap_or("").to_owned(), r["response"].clone())).collect()
    }

    /// The only answer that the agent received.
    #[track_caller]
    pub(crate) fn answer(&self) -> Value {
        let mut answers = self.answers();
        assert_eq!(answers.len(), 1, "answers to the agent: {answers:?}");
        answers.remove(0).1
    }

    pub(crate) fn dump(&self) -> String {
        let mut text = String::new();
        for name in ["argv", "stdin", "notes"] {
            let content = self.text(name).replace('\0', " ");
            text.push_str(&format!("{name}: {}\n", super::io::shorten(&content, 3000)));
        }
        text
    }
}

/// Content is a string, or a list of text blocks.
#[track_caller]
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|b| b["text"].as_str()).collect(),
        other => panic!("content of a user line: {other}"),
    }
}

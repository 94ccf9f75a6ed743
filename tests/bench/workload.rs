//! Scripted agents: the lines that an agent of each dialect writes, and the points at which it waits for the host. The
//! lines have the fields that the drivers read from the lines of real agents, and a few that the drivers skip.

use std::fmt::Write as _;

/// The dialect of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Claude,
    Codex,
    Acp,
}

/// The events of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Events {
    /// Repeats a message, a command that starts, and the end of the command.
    Mix,
    /// Pieces of one message.
    Deltas,
    /// Repeats a command that starts, and its end.
    Tools,
    /// Messages of this size in bytes.
    Messages(usize),
}

/// A step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Waits for one line from the host.
    Hear,
    /// Writes these lines.
    Say(String),
}

const CLAUDE_INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/home/user/project","session_id":"s","tools":["Bash","Edit","Read","Write"],"mcp_servers":[],"model":"m","permissionMode":"default","claude_code_version":"2.1.330"}
"#;
const CLAUDE_RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"num_turns":1,"result":"Done.","session_id":"s","usage":{"input_tokens":100,"output_tokens":10}}
"#;
/// The fields that end each line of Claude's.
const CLAUDE_TAIL: &str = r#""parent_tool_use_id":null,"session_id":"s","uuid":"00000000-0000-4000-8000-000000000003"}
"#;
const CODEX_INITIALIZED: &str = r#"{"id":1,"result":{"userAgent":"spektacular/0.169.0 (Debian 12.0.0; x86_64)","codexHome":"/home/user/.codex"}}
"#;
const CODEX_ACCOUNT: &str = r#"{"id":2,"result":{"account":null,"requiresOpenaiAuth":false}}
"#;
const CODEX_THREAD: &str = r#"{"id":3,"result":{"thread":{"id":"t","cwd":"/home/user/project","cliVersion":"0.169.0"},"model":"m"}}
"#;
const CODEX_TURN: &str = r#"{"id":4,"result":{"turn":{"id":"u","items":[],"status":"inProgress","error":null}}}
"#;
const CODEX_TURN_STARTED: &str = r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u","items":[],"status":"inProgress","error":null}}}
"#;
const CODEX_TURN_COMPLETED: &str = r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","items":[],"status":"completed","error":null}}}
"#;
const ACP_INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[],"agentCapabilities":{"loadSession":true}}}
"#;
const ACP_SESSION: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}
"#;
const ACP_PROMPTED: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
"#;

impl Dialect {
    /// An agent that speaks this dialect.
    pub(crate) fn agent(self) -> &'static str {
        match self {
            Dialect::Claude => "claude",
            Dialect::Codex => "codex",
            Dialect::Acp => "gemini",
        }
    }

    /// A run in which the agent writes `body` between its first lines and its result.
    pub(crate) fn script(self, body: &str) -> Vec<Step> {
        let say = |lines: &str| Step::Say(lines.to_owned());
        match self {
            Dialect::Claude => vec![Step::Hear, Step::Say(format!("{CLAUDE_INIT}{body}{CLAUDE_RESULT}"))],
            Dialect::Codex => vec![
                Step::Hear,
                say(CODEX_INITIALIZED),
                Step::Hear,
                Step::Hear,
                say(CODEX_ACCOUNT),
                Step::Hear,
                say(CODEX_THREAD),
                Step::Hear,
                Step::Say(format!("{CODEX_TURN}{CODEX_TURN_STARTED}{body}{CODEX_TURN_COMPLETED}")),
            ],
            Dialect::Acp => vec![
                Step::Hear,
                say(ACP_INITIALIZED),
                Step::Hear,
                say(ACP_SESSION),
                Step::Hear,
                Step::Say(format!("{body}{ACP_PROMPTED}")),
            ],
        }
    }

    /// `count` lines from the agent.
    pub(crate) fn lines(self, events: Events, count: usize) -> String {
        let mut out = String::new();
        if let (Events::Deltas, Some(first)) = (events, self.first_delta()) {
            out.push_str(first);
        }
        for number in 0..count {
            match (events, number % 3, number % 2) {
                (Events::Mix, 0, _) => self.message(&mut out, number, &"word ".repeat(12)),
                (Events::Mix, 1, _) | (Events::Tools, _, 0) => self.tool_starts(&mut out, number),
                (Events::Mix, ..) | (Events::Tools, ..) => self.tool_ends(&mut out, number - 1),
                (Events::Deltas, ..) => self.delta(&mut out, "word word "),
                (Events::Messages(bytes), ..) => self.message(&mut out, number, &"word ".repeat(bytes / 5)),
            }
        }
        out
    }

    /// The beginning of a message in pieces.
    fn first_delta(self) -> Option<&'static str> {
        match self {
            Dialect::Claude => Some(concat!(
                r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}},"session_id":"s","parent_tool_use_id":null}"#,
                "\n",
                r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"session_id":"s","parent_tool_use_id":null}"#,
                "\n",
            )),
            Dialect::Codex => Some(concat!(
                r#"{"method":"item/started","params":{"item":{"type":"agentMessage","id":"m","text":""},"threadId":"t","turnId":"u"}}"#,
                "\n",
            )),
            Dialect::Acp => None,
        }
    }

    fn message(self, out: &mut String, number: usize, text: &str) {
        match self {
            Dialect::Claude => write!(out, r#"{{"type":"assistant","message":{{"id":"msg_{number}","type":"message","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stop_reason":null}},{CLAUDE_TAIL}"#),
            Dialect::Codex => writeln!(out, r#"{{"method":"item/completed","params":{{"item":{{"type":"agentMessage","id":"msg_{number}","text":"{text}","phase":null}},"threadId":"t","turnId":"u"}},"emittedAtMs":1795308620029}}"#),
            Dialect::Acp => writeln!(out, r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","messageId":"msg_{number}","content":{{"type":"text","text":"{text}"}}}}}}}}"#),
        }
        .expect("a String takes everything");
    }

    fn delta(self, out: &mut String, text: &str) {
        match self {
            Dialect::Claude => write!(out, r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},{CLAUDE_TAIL}"#),
            Dialect::Codex => writeln!(out, r#"{{"method":"item/agentMessage/delta","params":{{"threadId":"t","turnId":"u","itemId":"m","delta":"{text}"}},"emittedAtMs":1795308621515}}"#),
            Dialect::Acp => return self.message(out, 0, text),
        }
        .expect("a String takes everything");
    }

    fn tool_starts(self, out: &mut String, number: usize) {
        match self {
            Dialect::Claude => write!(out, r#"{{"type":"assistant","message":{{"id":"msg_{number}","type":"message","role":"assistant","content":[{{"type":"tool_use","id":"call_{number}","name":"Bash","input":{{"command":"echo hello","description":"Run a command"}}}}],"stop_reason":null}},{CLAUDE_TAIL}"#),
            Dialect::Codex => writeln!(out, r#"{{"method":"item/started","params":{{"item":{{"type":"commandExecution","id":"call_{number}","command":"/bin/bash -lc 'echo hello'","cwd":"/home/user/project","status":"inProgress","commandActions":[{{"type":"unknown","command":"echo hello"}}],"aggregatedOutput":null,"exitCode":null}},"threadId":"t","turnId":"u"}},"emittedAtMs":1795308620029}}"#),
            Dialect::Acp => writeln!(out, r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call","toolCallId":"call_{number}","status":"in_progress","title":"echo hello","content":[],"locations":[],"kind":"execute"}}}}}}"#),
        }
        .expect("a String takes everything");
    }

    fn tool_ends(self, out: &mut String, number: usize) {
        match self {
            Dialect::Claude => write!(out, r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"call_{number}","type":"tool_result","content":"hello","is_error":false}}]}},{CLAUDE_TAIL}"#),
            Dialect::Codex => writeln!(out, r#"{{"method":"item/completed","params":{{"item":{{"type":"commandExecution","id":"call_{number}","command":"/bin/bash -lc 'echo hello'","cwd":"/home/user/project","status":"completed","commandActions":[{{"type":"unknown","command":"echo hello"}}],"aggregatedOutput":"hello","exitCode":0}},"threadId":"t","turnId":"u"}},"emittedAtMs":1795308620029}}"#),
            Dialect::Acp => writeln!(out, r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call_update","toolCallId":"call_{number}","status":"completed","title":"echo hello","content":[],"locations":[],"kind":"execute"}}}}}}"#),
        }
        .expect("a String takes everything");
    }
}

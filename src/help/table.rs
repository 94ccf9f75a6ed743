//! Every command with its flags.

use super::{Command, Flag, Goes, Value};

const fn field(
    long: &'static str,
    name: &'static str,
    metavar: &'static str,
    value: Value,
    help: &'static str,
) -> Flag {
    Flag { long, short: None, metavar, value, goes: Goes::Field(name), help }
}

const fn own(long: &'static str, metavar: &'static str, value: Value, help: &'static str) -> Flag {
    Flag { long, short: None, metavar, value, goes: Goes::Command, help }
}

const ADHOC: &[Flag] = &[
    own("output", "MODE", Value::Text, "cli (default) for a person, json for an orchestrator"),
    own("input", "MODE", Value::Text, "jsonl: read messages from stdin although a prompt is given"),
    Flag { short: Some('a'), ..field("agent", "agent", "NAME", Value::Text, "which agent to run (default claude)") },
    Flag { short: Some('p'), ..own("prompt", "TEXT", Value::Text, "the task") },
    own("prompt-file", "FILE", Value::Text, "read the task from a file, or from stdin with -"),
    Flag { short: Some('m'), ..field("model", "model", "NAME", Value::Text, "the model, in the agent's own words") },
    field("effort", "effort", "LEVEL", Value::Text, "the reasoning effort, in the agent's own words"),
    field("system-prompt", "system_prompt", "TEXT", Value::Text, "a system prompt"),
    Flag { short: Some('C'), ..field("cwd", "cwd", "DIR", Value::Text, "the agent's working directory") },
    field("add-dir", "add_dirs", "DIR", Value::Item, "a further directory that the agent may use"),
    field("session", "session_id", "ID", Value::Text, "resume this session of the agent"),
    field("headless", "interactive", "", Value::Switch("false"), "never ask: policies and defaults answer"),
    field("permissions", "permissions", "POLICY", Value::Json, "ask, allow, deny, or JSON by tool category"),
    field("yes", "permissions", "", Value::Switch("\"allow\""), "the same as --permissions allow"),
    field("allowed-tool", "allowed_tools", "NAME", Value::Item, "a tool the agent may use, as it names it"),
    field("disallowed-tool", "disallowed_tools", "NAME", Value::Item, "a tool the agent may not use"),
    field("timeout", "timeout_s", "SECONDS", Value::Json, "the whole run's limit"),
    field("start-timeout", "start_timeout_s", "SECONDS", Value::Json, "limit to the agent's first sign of life"),
    field("idle-timeout", "idle_timeout_s", "SECONDS", Value::Json, "the agent's longest silence, 0 for none"),
    field("tool-timeout", "tool_timeout_s", "SECONDS", Value::Json, "how long a tool may hold the idle clock"),
    field("question-timeout", "question_timeout_s", "SECONDS", Value::Json, "how long a question waits"),
    field("on-question-timeout", "on_question_timeout", "WHAT", Value::Text, "fail (default) or continue"),
    field("max-turns", "max_turns", "N", Value::Json, "a budget of turns"),
    field("max-cost-usd", "max_cost_usd", "USD", Value::Json, "a budget in US dollars"),
    field("progress", "progress", "LEVEL", Value::Text, "minimal, normal (default) or full"),
    field("heartbeat", "heartbeat_s", "SECONDS", Value::Json, "our longest silence, 0 for none"),
    field("max-frame-bytes", "max_frame_bytes", "BYTES", Value::Json, "the largest frame"),
    field("env", "env", "NAME=VALUE", Value::Pair, "a variable for the agent's environment"),
    field("env-allow", "env_allow", "NAME", Value::Item, "pass only such variables on to the agent"),
    field("agent-arg", "agent_args", "ARG", Value::Item, "an argument for the agent's own command line"),
    field("output-schema", "output_schema", "JSON", Value::Json, "a JSON Schema for a structured result"),
    field("mcp-servers", "mcp_servers", "JSON", Value::Json, "MCP servers for the agent to start"),
    field("metadata", "metadata", "JSON", Value::Json, "an object that comes back with the run"),
    field("secret", "secrets", "TEXT", Value::Item, "a value to redact; others can read it in the process list"),
    field("question-markers", "question_markers", "BOOL", Value::Json, "whether questions in the text are asked"),
    field("completion-marker", "completion_marker", "TEXT", Value::Text, "the text that sets completion_detected"),
    field("raw-prompt", "raw_prompt", "", Value::Switch("true"), "let the prompt be a command of the agent's"),
    own("on-eof", "WHAT", Value::Text, "when stdin ends: continue (default) or cancel"),
    own("record", "FILE", Value::Text, "record the dialogue with the agent, redacted"),
    own("mirror-stderr", "", Value::Switch("true"), "copy the agent's stderr to ours, redacted"),
];

const REPLAY: &[Flag] = &[
    own("strict", "", Value::Switch("true"), "fail where the host says something else than the recording"),
    own("demo", "", Value::Switch("true"), "play the recording of the demo agent"),
];

/// Every command.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "adhoc",
        usage: "[FLAGS] [PROMPT... | -]",
        about: "run one task through a coding agent",
        flags: ADHOC,
        more: "Without a prompt, --output json waits for a run.start on stdin.\nEvery flag that names a field of run.start sets its default.\n\nExamples:\n  spektacular adhoc \"fix the failing test\"\n  git diff | spektacular adhoc -\n  some-orchestrator | spektacular adhoc --output json\n  spektacular adhoc --agent demo \"say hello\"\n",
    },
    Command { name: "protocol", usage: "", about: "print the reference of the protocol", flags: &[], more: "" },
    Command {
        name: "replay",
        usage: "[--strict] FILE | --demo [-- IGNORED...]",
        about: "play the agent's side of a recording",
        flags: REPLAY,
        more: "It waits at each line of the host for one of the same shape on stdin.\n\nExample:\n  spektacular adhoc --record run.jsonl \"say hello\"\n  spektacular replay run.jsonl\n",
    },
];

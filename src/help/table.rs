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
    Flag { short: Some('q'), ..own("quiet", "", Value::Switch("true"), "with cli: the final text alone") },
    Flag { short: Some('v'), ..own("verbose", "", Value::Switch("true"), "with cli: also outputs and reasoning") },
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

const CONFIG: &[Flag] = &[
    own("global", "", Value::Switch("true"), "work on the user's file, not on the project's"),
    own("output", "MODE", Value::Text, "cli (default), or json for machines"),
];

const REPLAY: &[Flag] = &[
    own("strict", "", Value::Switch("true"), "fail where the host says something else than the recording"),
    own("demo", "", Value::Switch("true"), "play the recording of the demo agent"),
];

const CONFIG_MORE: &str = "\
Layers, the last one wins:
  built-in
  user         $XDG_CONFIG_HOME or ~/.config, spektacular/config.json
  project      .spektacular/config.json, the nearest from the current directory up to the root of the git work tree;
               outside of one only that of the current directory. --cwd changes nothing about this
  environment  SPEKTACULAR_ and the key in capitals with _ for a dot: SPEKTACULAR_DEBUG_ENABLED. Empty counts as not set
  flags
What an agent has of its own (agents.NAME.model) goes between the files and the environment.

set and unset change the project's file, or with --global the user's. VALUE is JSON where that fits the key, else text.
get and unset exit 1 where nothing is set. list masks secrets; get does not.

A project's file comes with the project. Only these keys count from it unasked:
  output model effort interactive timeout_s start_timeout_s idle_timeout_s tool_timeout_s question_timeout_s
  on_question_timeout progress heartbeat_s max_frame_bytes output_schema completion_marker question_markers
For the others read the file, then run `spektacular config trust`. A change of the file takes that back, unless it was
made by set or unset. To take it back yourself, delete the entry in trusted.json beside the user's file.

Further keys:
  agent system_prompt cwd add_dirs permissions allowed_tools disallowed_tools mcp_servers max_turns max_cost_usd env
  env_allow secrets agent_args raw_prompt
  debug.enabled  record every run, redacted
  debug.log_dir  where, by default .spektacular/debug/logs in the project's folder
  agents.NAME    an agent, or changes to a built-in one. Fields: driver command args env model display_name
                 session_patterns completion_marker resume_args. A new one needs driver and command

From config.yaml of the older version: agent.command is agents.claude.command, agent.allowed_tools is allowed_tools,
agent.disallowed_tools is disallowed_tools, agent.dangerously_skip_permissions is permissions allow, output.adhoc_output
is output, and debug.* have their names. agent.args, api, models, complexity and the rest of output have no successor;
for a model set model.

Examples:
  spektacular config set output json
  spektacular config set --global model opus
  spektacular config set --global agents.mine '{\"driver\":\"acp\",\"command\":\"my-agent\",\"args\":[\"acp\"]}'
";

/// Every command.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "adhoc",
        usage: "[FLAGS] [PROMPT... | -]",
        about: "run one task through a coding agent",
        flags: ADHOC,
        more: "Without a prompt, --output json waits for a run.start on stdin.\nEvery flag that names a field of run.start sets its default. `config` sets lasting ones.\n\nExamples:\n  spektacular adhoc \"fix the failing test\"\n  git diff | spektacular adhoc -\n  some-orchestrator | spektacular adhoc --output json\n  spektacular adhoc --agent demo \"say hello\"\n",
    },
    Command {
        name: "config",
        usage: "get KEY | set KEY VALUE | unset KEY | list | path | trust",
        about: "show or change the configuration",
        flags: CONFIG,
        more: CONFIG_MORE,
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

//! One table of commands and flags. The parser, the help texts and the tests all read it.

/// What a flag's value becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value: the flag itself means this JSON value.
    Switch(&'static str),
    /// A string.
    Text,
    /// A number, or JSON: taken as it stands, else as a string.
    Json,
    /// One element of a list; the flag may be repeated.
    Item,
    /// `NAME=VALUE`, one entry of an object; the flag may be repeated.
    Pair,
}

/// Where a flag's value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Into this field of run.start.
    Field(&'static str),
    /// To the command itself.
    Command,
}

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// The name, without its dashes.
    pub long: &'static str,
    /// One letter for it.
    pub short: Option<char>,
    /// What stands for the value in help.
    pub metavar: &'static str,
    /// What the value becomes.
    pub value: Value,
    /// Where it goes.
    pub goes: Goes,
    /// One line.
    pub help: &'static str,
}

/// One command.
#[derive(Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, as help shows them.
    pub usage: &'static str,
    /// One line.
    pub about: &'static str,
    /// Its flags.
    pub flags: &'static [Flag],
    /// More for `--help`.
    pub more: &'static str,
}

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

/// The command with this name.
pub fn command(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The help of the whole program.
pub fn overview() -> String {
    let mut out = String::from(
        "spektacular: run a coding agent, and answer its questions, through one interface\n\nUsage: spektacular COMMAND\n\nCommands:\n",
    );
    for command in COMMANDS {
        out.push_str(&format!("  {:<10} {}\n", command.name, command.about));
    }
    out + "\nFlags:\n  -h, --help     show help, also of a command\n  -V, --version  show the version\n"
}

impl Command {
    /// Its help.
    pub fn help(&self) -> String {
        let mut out = format!("{}\n\nUsage: spektacular {} {}\n\nFlags:\n", self.about, self.name, self.usage);
        for flag in self.flags {
            let short = flag.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
            let long = format!("--{} {}", flag.long, flag.metavar);
            out.push_str(&format!("  {short}{:<31} {}\n", long.trim_end(), flag.help));
        }
        out.push_str("  -h, --help                          show this help\n\n");
        out + self.more
    }
}

/// The name among `names` that `typed` was probably meant to be: at most a third of it differs.
pub fn did_you_mean<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many characters must be put in, taken out, changed, or (as one) swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    if a != b && sorted(a) == sorted(b) { 1 } else { edits(a, b) }
}

/// How many characters must be put in, taken out or changed.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

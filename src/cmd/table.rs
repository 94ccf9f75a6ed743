//! Every command: its flags, its texts, its reader and its main function.

use super::{adhoc, agents, ask_server, complain_usage, config, export, manual, open, replay};
use crate::agent::registry::DEFAULT;
use crate::cli::command::{Command, Flag, Offers, Start, Value, field, own, switch};
use crate::cli::{self, no_words};
use crate::failure::{Code, Failure};
use crate::help::complete::Shell;

const POLICY_HELP: &str = "\
POLICY is ask, allow or deny for everything, or by kind of tool: read=allow,edit=ask,*=deny.
The kinds are read, edit, delete, move, search, execute, fetch, think, agent, mcp, mode, other, and * for the rest.
JSON does as well: {\"read\":\"allow\",\"*\":\"ask\"}. It answers what the agent asks for, and is no sandbox.";

const SERVERS_HELP: &str = "\
JSON is a list of {\"name\",\"command\",\"args\",\"env\"}, or {\"mcpServers\":{NAME:{\"command\",\"args\",\"env\"}}}.
@FILE reads it from a file.";

const ANSWER_HELP: &str = "\
KEY is a question's header, its text, its kind (confirm, select, text, secret, file_path) or its purpose
(permission, clarification, input), in any case. The one that says most goes first.
A permission is answered by permission=allow_once, permission=allow_always or permission=deny.
Several options are written a,b. The same key again answers the next such question; the last one stays.
An answer that does not fit is not given again. Others can read it in the process list: see --answers.";

const ANSWERS_HELP: &str = "\
It holds {\"KEY\": ANSWER}, with keys as for --answer.
An ANSWER is a value, {\"declined\":true}, {\"value_from\":{\"env\":\"NAME\"}} or {\"value_from\":{\"file\":\"PATH\"}}.
--answer goes before it.";

const CONTINUE_HELP: &str = "\
It is kept in .spektacular/local, which git ignores, at the end of every run that a prompt on the command line began.
With --output json it is kept only where there is a .spektacular already.";

const ADHOC: &[Flag] = &[
    own("prompt", "TEXT", Value::Text, "the task").short('p').begins("The task"),
    own("prompt-file", "FILE", Value::Text, "read the task from a file, or from stdin with -"),
    field("cwd", "DIR", "the agent's working directory").short('C'),
    field("add_dirs", "DIR", "a further directory that the agent may use"),
    field("session_id", "ID", "resume this session of the agent"),
    own("continue", "", Value::Switch("true"), "resume the agent's last session in this directory").more(CONTINUE_HELP),
    field("agent", "AGENT", "which agent to run").short('a').begins("The agent"),
    field("model", "NAME", "the model, in the agent's own words").short('m'),
    field("effort", "LEVEL", "the reasoning effort, in the agent's own words"),
    field("system_prompt", "TEXT", "a system prompt"),
    own("system-prompt-file", "FILE", Value::Text, "read the system prompt from a file"),
    field("allowed_tools", "NAME", "a tool the agent may use, as it names it"),
    field("disallowed_tools", "NAME", "a tool the agent may not use"),
    field("mcp_servers", "JSON", "MCP servers for the agent to start").more(SERVERS_HELP),
    field("env", "NAME=VALUE", "a variable for the agent's environment"),
    field("env_allow", "NAME", "pass only such variables on to the agent")
        .more("A * at its end stands for anything. PATH, HOME and the like are always passed on."),
    field("agent_args", "ARG", "an argument for the agent's own command line"),
    switch("raw_prompt", "true", "let the prompt be a command of the agent's")
        .more("Without it a prompt that begins with / or holds @path is taken as plain text."),
    field("permissions", "POLICY", "ask, allow, deny, or read=allow,edit=ask,*=deny")
        .more(POLICY_HELP)
        .begins("Permissions and answers"),
    Flag { long: "yes", ..switch("permissions", "\"allow\"", "the same as --permissions allow") },
    own("answer", "KEY=VALUE", Value::Pair, "the answer to a question that is yet to come").more(ANSWER_HELP),
    own("answers", "FILE", Value::Text, "read answers from a file of JSON").more(ANSWERS_HELP),
    switch("interactive", "false", "never ask: policies and defaults answer"),
    field("question_timeout_s", "SECONDS", "how long a question waits").also("; with --output cli there is no limit"),
    field("on_question_timeout", "WHAT", "what an unanswered question does then"),
    field("question_markers", "BOOL", "whether questions in the text are asked"),
    switch("fail_on_denied", "true", "fail if a permission was denied for want of an answer")
        .more("The run ends with `denied`, exit 6. A denial by --permissions or by an answer does not count."),
    field("timeout_s", "SECONDS", "the whole run's limit").begins("Limits"),
    field("start_timeout_s", "SECONDS", "limit to the agent's first sign of life"),
    field("idle_timeout_s", "SECONDS", "the agent's longest silence, 0 for none"),
    field("tool_timeout_s", "SECONDS", "how long a tool may hold the idle clock"),
    field("max_turns", "N", "a budget of turns"),
    field("max_cost_usd", "USD", "a budget in US dollars"),
    own("output", "MODE", Value::Text, "cli for a person, json for an orchestrator")
        .values(&["cli", "json"])
        .default("cli")
        .begins("Input and output"),
    own("quiet", "", Value::Switch("true"), "with cli: the final text alone").short('q'),
    own("verbose", "", Value::Switch("true"), "with cli: also outputs, reasoning and the search for session ids")
        .short('v'),
    own("input", "MODE", Value::Text, "jsonl: read messages from stdin although a prompt is given").values(&["jsonl"]),
    own("on-eof", "WHAT", Value::Text, "what the end of stdin does")
        .values(&["continue", "cancel"])
        .default("continue"),
    field("progress", "LEVEL", "how much is told").also("; full with --output cli"),
    field("heartbeat_s", "SECONDS", "our longest silence, 0 for none"),
    field("max_frame_bytes", "BYTES", "the largest frame"),
    field("output_schema", "JSON", "a JSON Schema for a structured result").more("@FILE reads it from a file."),
    field("completion_marker", "TEXT", "the text that sets completion_detected"),
    field("metadata", "JSON", "an object that comes back with the run"),
    field("secrets", "TEXT", "a value to redact; others can read it in the process list"),
    own("record", "FILE", Value::Text, "record the dialogue with the agent, redacted"),
    own("mirror-stderr", "", Value::Switch("true"), "copy the agent's stderr to ours, redacted"),
    own("dry-run", "", Value::Switch("true"), "show what would be started, and start nothing"),
];

const OUTPUT: Flag =
    own("output", "MODE", Value::Text, "cli for a person, json for a program").values(&["cli", "json"]).default("cli");
const AGENT: Flag = own("agent", "AGENT", Value::Text, "which agent").short('a').default(DEFAULT);

const AGENTS: &[Flag] = &[
    own("all", "", Value::Switch("true"), "with check: also show what is wrong with each of the others")
        .begins("Output"),
    OUTPUT,
];

const EXPORT: &[Flag] = &[
    AGENT.begins("The session"),
    own("out", "FILE", Value::Text, "write to a file, as a whole or not at all"),
    own("force", "", Value::Switch("true"), "let --out replace a file"),
    OUTPUT,
];

const OPEN: &[Flag] = &[
    AGENT.begins("The agent"),
    own("model", "NAME", Value::Text, "the model, in the agent's own words").short('m'),
    own("session", "ID", Value::Text, "go on with this session of the agent"),
    own("cwd", "DIR", Value::Text, "the agent's working directory").short('C'),
    own("env", "NAME=VALUE", Value::Pair, "a variable for the agent's environment"),
    own("agent-arg", "ARG", Value::Item, "an argument for the agent's own command line"),
    own("yes", "", Value::Switch("true"), "let the agent do without asking what it would ask for"),
];

const CONFIG: &[Flag] = &[
    own("global", "", Value::Switch("true"), "work on the user's file, not on the project's").begins("Configuration"),
    OUTPUT,
];

const REPLAY: &[Flag] = &[
    own("strict", "", Value::Switch("true"), "fail where the host says something else than the recording")
        .begins("Playing"),
    own("demo", "", Value::Switch("true"), "play the recording of the demo agent"),
];

const CONFIG_MORE: &str = "\
Layers, the last one wins:
  built-in
  user         $XDG_CONFIG_HOME or ~/.config, spektacular/config.json
  project      .spektacular/config.json, the nearest from the current directory up to the root of the git work tree;
               outside of one only that of the current directory. --cwd changes nothing about this
  environment  SPEKTACULAR_ and the key in capitals with _ for a dot: SPEKTACULAR_DEBUG_ENABLED. Empty counts as not set.
               VALUE is as for set, but not @FILE
  flags
What an agent has of its own (agents.NAME.model) goes between the files and the environment.

set and unset change the project's file, or with --global the user's. VALUE is JSON where that fits the key, else text;
permissions, mcp_servers and output_schema take what their flags take.
get and unset exit 1 where nothing is set. list masks secrets; get does not.

A project's file comes with the project. Only these keys count from it unasked:
  output model effort interactive timeout_s start_timeout_s idle_timeout_s tool_timeout_s question_timeout_s
  on_question_timeout progress heartbeat_s max_frame_bytes output_schema completion_marker question_markers
  fail_on_denied
For the others read the file, then run `spektacular config trust`. A change of the file takes that back, unless it was
made by set or unset. To take it back yourself, delete the entry in trusted.json beside the user's file.

Further keys:
  agent system_prompt cwd add_dirs permissions allowed_tools disallowed_tools mcp_servers max_turns max_cost_usd env
  env_allow secrets agent_args raw_prompt
  debug.enabled  record every run, redacted
  debug.log_dir  where, by default .spektacular/debug/logs in the project's folder
  agents.NAME    an agent, or changes to a built-in one. Fields: driver command args env model display_name
                 session_patterns completion_marker resume_args. A new one needs driver and command

From config.yaml of the older version: agent.command is agents.claude.command, agent.args is agents.claude.args without
--output-format and --verbose, agent.allowed_tools is allowed_tools, agent.disallowed_tools is disallowed_tools,
agent.dangerously_skip_permissions is permissions allow, output.adhoc_output is output, and debug.* have their names.
api, models, complexity and the rest of output have no successor; for a model set model.
";

/// Every command.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "adhoc",
        usage: "[FLAGS] [PROMPT... | -]",
        about: "run one task through a coding agent",
        flags: ADHOC,
        words: Offers::Nothing,
        more: "The prompt is the words, or comes by --prompt or --prompt-file.\n\
               A pipe or a file on stdin goes behind it, fenced. A - among the words says where; alone it is all of it.\n\
               Without a - a pipe must begin within 5 s and end within 10 min. No other kind of stdin is read.\n\
               Add </dev/null where stdin is not for the run: in a loop that reads it, or where it stays open.\n\
               The agent's text is on stdout, all else on stderr. On a terminal it asks; in the background, after fg.\n\
               With --output json it speaks the protocol: see `spektacular protocol`.\n\
               Without a prompt it then waits for a run.start on stdin; with one it reads stdin only with --input jsonl.\n\
               A flag that names a field of run.start sets its default. `config` sets lasting ones.",
        examples: &[
            ("spektacular adhoc \"fix the failing test\"", "run the task, and ask before anything is changed"),
            ("git diff | spektacular adhoc \"review this\"", "give it something to work on"),
            ("spektacular adhoc \"Explain this error:\" - \"in one line\" <error.log", "say where that goes"),
            ("spektacular adhoc --agent demo \"say hello\"", "try it without an agent, a key or a network"),
            (
                "spektacular adhoc --permissions 'read=allow,edit=allow,*=ask' \"tidy up\"",
                "let it read and edit, ask for the rest",
            ),
            (
                "spektacular adhoc --answer Database=SQLite --answer permission=allow_once \"set it up\"",
                "answer what it will ask, without a person",
            ),
            ("spektacular adhoc --continue \"now write a test for it\"", "go on with the last session"),
            ("some-orchestrator | spektacular adhoc --output json", "drive it by messages"),
        ],
        read: |given, words| Ok(Start::new(cli::adhoc::read(given, words)?, adhoc::run)),
        refuse: |args, wrong| adhoc::refuse(cli::asked_output(args), Failure::new(Code::Usage, wrong)),
    },
    Command {
        name: "config",
        usage: "get KEY | set KEY VALUE | unset KEY | list | path | trust",
        about: "show or change the configuration",
        flags: CONFIG,
        words: Offers::Words(&["get", "set", "unset", "list", "path", "trust"]),
        more: CONFIG_MORE,
        examples: &[
            (
                "spektacular config set output json",
                "speak the protocol in this project, unless --output says otherwise",
            ),
            ("spektacular config set --global model opus", "a model for every project"),
            (
                "spektacular config set --global agents.mine '{\"driver\":\"acp\",\"command\":\"my-agent\"}'",
                "an agent of your own",
            ),
        ],
        read: |given, words| Ok(Start::new(cli::config::read(given, words)?, |typed| config::run(&typed))),
        refuse: complain_usage,
    },
    Command {
        name: "agents",
        usage: "list | check [--all] [NAME]",
        about: "list the agents, or check which are ready here",
        flags: AGENTS,
        words: Offers::Words(&["list", "check"]),
        more: "check runs the program of each agent with --version, and looks for a log-in. It calls no model.\n\
               An agent that does not answer within 15 s, or with an error, is not available.\n\
               Agents that npx starts are available once npx has downloaded them: check downloads nothing.\n\
               Agents of your own that speak acp or lines are only looked for.\n\
               A NAME that is not available exits 4.",
        examples: &[
            ("spektacular agents list", "see what can be named"),
            ("spektacular agents check codex --output json", "see whether one is ready, for a machine"),
        ],
        read: |given, words| Ok(Start::new(cli::agents::agents(given, words)?, |typed| agents::run(&typed))),
        refuse: complain_usage,
    },
    Command {
        name: "export",
        usage: "[FLAGS] SESSION",
        about: "print a session as the agent itself keeps it",
        flags: EXPORT,
        words: Offers::Nothing,
        more: "It is the agent's own data, byte for byte: nothing in it is redacted.\n\
               With --output json it is a string in {success, agent, session_id, export_data}.",
        examples: &[(
            "spektacular export --agent codex 01a200fd-0dba-7351-aa73-9dae1b4ca807 --out session.jsonl",
            "keep a session in a file",
        )],
        read: |given, words| Ok(Start::new(cli::agents::export(given, words)?, |typed| export::run(&typed))),
        refuse: complain_usage,
    },
    Command {
        name: "open",
        usage: "[FLAGS] [PROMPT...]",
        about: "hand the terminal to the agent's own interface",
        flags: OPEN,
        words: Offers::Nothing,
        more: "The exit code is the agent's, or 128 and the signal that ended it.\n\
               What the agent leaves running is left alone. The prompt can be read in the process list.",
        examples: &[("spektacular open --agent opencode \"explain this repository\"", "begin there with a prompt")],
        read: |given, words| Ok(Start::new(cli::agents::open(given, words)?, |typed| open::run(&typed))),
        refuse: complain_usage,
    },
    Command {
        name: "protocol",
        usage: "",
        about: "print the reference of the protocol",
        flags: &[],
        words: Offers::Nothing,
        more: "",
        examples: &[("spektacular protocol | less", "read it")],
        read: |_, words| Ok(Start::new(no_words("protocol", &words)?, |()| manual::protocol())),
        refuse: complain_usage,
    },
    Command {
        name: "ask-server",
        usage: "",
        about: "ask the user of a run: agents start it",
        flags: &[],
        words: Offers::Nothing,
        more: "It is an MCP server on stdin and stdout. A run gives it to agents whose models have no other way to ask.",
        examples: &[("spektacular ask-server", "what an agent starts; without a run it says so")],
        read: |_, words| Ok(Start::new(no_words("ask-server", &words)?, |()| ask_server::run())),
        refuse: complain_usage,
    },
    Command {
        name: "replay",
        usage: "[--strict] FILE | --demo [-- ARGUMENTS...]",
        about: "play the agent's side of a recording",
        flags: REPLAY,
        words: Offers::Files,
        more: "It waits at each line of the host for one of the same shape on stdin.\nOf an agent that has a process a turn it plays the first one that had these ARGUMENTS.",
        examples: &[
            ("spektacular adhoc --record run.jsonl \"say hello\"", "make a recording"),
            ("spektacular replay run.jsonl", "play it"),
        ],
        read: |given, words| Ok(Start::new(cli::replay(&given, words)?, |typed| replay::run(&typed))),
        refuse: complain_usage,
    },
    Command {
        name: "completions",
        usage: "bash | zsh | fish | elvish | powershell",
        about: "print a script that completes commands, flags and values in a shell",
        flags: &[],
        words: Offers::Words(Shell::NAMES),
        more: "",
        examples: &[
            ("source <(spektacular completions bash)", "in ~/.bashrc"),
            ("spektacular completions zsh > ~/.zfunc/_spektacular", "with ~/.zfunc in fpath, before compinit"),
            ("spektacular completions fish > ~/.config/fish/completions/spektacular.fish", "for fish"),
            ("eval (spektacular completions elvish | slurp)", "in ~/.config/elvish/rc.elv"),
            ("spektacular completions powershell | Out-String | Invoke-Expression", "in $PROFILE"),
        ],
        read: |_, words| Ok(Start::new(manual::shell(&words)?, manual::completions)),
        refuse: complain_usage,
    },
    Command {
        name: "man",
        usage: "",
        about: "print the manual page",
        flags: &[],
        words: Offers::Nothing,
        more: "",
        examples: &[
            ("spektacular man | man -l -", "read it"),
            ("spektacular man > ~/.local/share/man/man1/spektacular.1", "keep it where man finds it"),
        ],
        read: |_, words| Ok(Start::new(no_words("man", &words)?, |()| manual::man())),
        refuse: complain_usage,
    },
    Command {
        name: "help",
        usage: "[COMMAND]",
        about: "explain a command, with examples",
        flags: &[],
        words: Offers::Commands,
        more: "",
        examples: &[("spektacular help adhoc", "all flags of adhoc, with their defaults")],
        read: |_, words| Ok(Start::new(manual::explained(&words)?, manual::help)),
        refuse: complain_usage,
    },
];

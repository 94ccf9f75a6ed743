//! Every command: its flags, its texts, its reader and its main function.

use super::{adhoc, agents, ask_server, complain_usage, config, export, manual, open, replay};
use crate::cli::command::{Command, Offers, Start, flags};
use crate::cli::flags::{ADHOC, AGENTS, CONFIG, EXPORT, OPEN, REPLAY};
use crate::cli::{self, no_words};
use crate::failure::{Code, Failure};
use crate::help::complete::Shell;

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
  agent mode system_prompt cwd add_dirs permissions allowed_tools disallowed_tools mcp_servers max_turns max_cost_usd
  env env_allow secrets agent_args raw_prompt
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
        flags: &flags::<_, { ADHOC.len() }>(ADHOC),
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
        flags: &flags::<_, { CONFIG.len() }>(CONFIG),
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
        flags: &flags::<_, { AGENTS.len() }>(AGENTS),
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
        flags: &flags::<_, { EXPORT.len() }>(EXPORT),
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
        flags: &flags::<_, { OPEN.len() }>(OPEN),
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
        flags: &flags::<_, { REPLAY.len() }>(REPLAY),
        words: Offers::Files,
        more: "It waits at each line of the host for one of the same shape on stdin.\nOf an agent that has a process a turn it plays the first one that had these ARGUMENTS.",
        examples: &[
            ("spektacular adhoc --record run.jsonl \"say hello\"", "make a recording"),
            ("spektacular replay run.jsonl", "play it"),
        ],
        read: |given, words| Ok(Start::new(cli::replay(given, words)?, |typed| replay::run(&typed))),
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

//! The texts of the commands, for help, the manual page and the README.

use crate::cli::command::CommandText;

pub(crate) const CONFIG_PAGE: &str = include_str!("../config/reference.md");

pub(crate) const ADHOC: CommandText = CommandText {
    about: "run one task through a coding agent",
    more: "\
The prompt is the words on the command line, or comes from --prompt or --prompt-file.
A pipe or a file on stdin is appended to the prompt, fenced as input.
A - among the words puts the input there instead; a - alone makes it the whole prompt.
A pipe must send something within --input-timeout and end within 10 min. With a -, there is no limit.
If stdin is not input for the run, as in a loop that reads stdin, add </dev/null.
The agent's text goes to stdout, everything else to stderr.
On a terminal, adhoc asks you the agent's questions. In the background, the questions wait for the shell's fg.
With --output json, adhoc speaks the protocol that `spektacular protocol` explains.
Without a prompt, it then waits for a run.start on stdin. With one, it reads stdin only with --input jsonl.
Flags override the configuration, and a run.start overrides both. `spektacular config` stores lasting defaults.",
    examples: &[
        ("spektacular adhoc \"fix the failing test\"", "run the task, and ask before anything is changed"),
        ("git diff | spektacular adhoc \"review this\"", "append piped input to the prompt"),
        ("spektacular adhoc \"Explain this error:\" - \"in one line\" <error.log", "put the input inside the prompt"),
        ("spektacular adhoc --agent demo \"say hello\"", "try it without an agent, a key or a network"),
        (
            "spektacular adhoc --permissions 'read=allow,edit=allow,*=ask' \"tidy up\"",
            "allow reading and editing, and ask about everything else",
        ),
        (
            "spektacular adhoc --answer Database=SQLite --answer permission=allow_once \"set it up\"",
            "answer questions in advance",
        ),
        ("spektacular adhoc --continue \"now write a test for it\"", "continue the last session"),
        ("some-orchestrator | spektacular adhoc --output json", "drive a run from a program"),
    ],
};

pub(crate) const CHAT: CommandText = CommandText {
    about: "hold a conversation with a coding agent",
    more: "\
The same as adhoc --conversation at a terminal: the agent stays, and each line you type is a further prompt.
Without a prompt, the conversation begins with the prompt line. A pipe on stdin belongs to the first prompt, as for adhoc.
Enter sends the prompt. Alt-Enter begins a new line, and a paste may have several. The arrow keys bring earlier prompts back.
A prompt that you type while the agent works waits for its turn. With ! at its beginning, the agent gets it at once, if it
takes prompts while it works.
Ctrl-C cancels the turn. Ctrl-C twice within a second cancels the run. Ctrl-D on an empty line ends the conversation after
what runs and what waits.",
    examples: &[
        ("spektacular chat", "begin with a prompt line"),
        ("spektacular chat --agent demo \"say hello\"", "try it without an agent, a key or a network"),
        ("spektacular chat --continue", "continue the last session"),
    ],
};

pub(crate) const INIT: CommandText = CommandText {
    about: "create the folder .spektacular of a project",
    more: "\
The folder holds specifications, plans, prompts, notes for agents, and the project's configuration.
The project's folder is the nearest one with a .spektacular, up to the root of the git work tree; otherwise that root.
Outside a git work tree, it is the current directory. Existing files are not changed.",
    examples: &[("spektacular init", "create the missing files, and list all")],
};

pub(crate) const STATUS: CommandText = CommandText {
    about: "list the specifications and plans, and what comes next",
    more: "\
For each specification and plan of the project: its name, its state, the number of tasks, and the command that comes next.
No agent is started and nothing is written.",
    examples: &[
        ("spektacular status", "list the specifications and plans of this project"),
        ("spektacular status --output json", "the same as one JSON object"),
    ],
};

pub(crate) const SPEC: CommandText = CommandText {
    about: "write a specification",
    more: "\
The agent asks what it needs to know and writes a draft. Once the draft passes spektacular's check, it becomes
.spektacular/specs/NAME.md. A draft that breaks a rule stays: correct it with --continue.
Without asking you, the agent may read and search the project, edit the draft, and run the check command.",
    examples: &[
        (
            "spektacular spec \"Log in with a code sent by mail\"",
            "write .spektacular/specs/log-in-with-a-code-sent-by-mail.md",
        ),
        ("spektacular spec --name login - <idea.txt", "read the description from a file, and choose the name"),
        ("spektacular spec --name login --continue \"Codes expire\"", "continue it with a further requirement"),
        ("spektacular spec check login", "check .spektacular/specs/login.md"),
    ],
};

pub(crate) const SPEC_CHECK: CommandText = CommandText {
    about: "check specifications",
    more: "\
FILE is the name of a specification, or a path that contains / or ends in .md.
Each violation is printed as FILE:LINE: RULE: TEXT. The line is 0 if a part of the file is missing or the file is too large.
The exit code is 0, or 1 if there are violations, or 2 if a file cannot be read. `spektacular help spec` explains the rules.",
    examples: &[
        ("spektacular spec check login", "check .spektacular/specs/login.md"),
        ("spektacular spec check --output json docs/login.md", "check any file, for a program"),
        ("spektacular spec check --ignore line-reference login", "exclude a rule"),
    ],
};

pub(crate) const PLAN: CommandText = CommandText {
    about: "write a plan for a specification",
    more: "\
SPEC is the name of a specification, or a path that contains / or ends in .md.
The agent writes plan.md, research.md and context.md as a draft. Once they pass spektacular's check, they become the plan.
Further words are instructions for the agent. With --continue it also learns how the specification changed since.
`spektacular help spec` explains the format.",
    examples: &[
        ("spektacular plan login", "plan .spektacular/specs/login.md, into .spektacular/plans/login"),
        ("spektacular plan --continue login", "continue a draft that broke a rule"),
        ("spektacular plan --continue login \"Split phase 2\"", "change a plan"),
        ("spektacular plan check login", "check the files in .spektacular/plans/login"),
    ],
};

pub(crate) const PLAN_CHECK: CommandText = CommandText {
    about: "check plans",
    more: "\
PLAN is the name of a plan, or a path that contains / or ends in .md.
A name or a folder checks plan.md, research.md and context.md, which must all exist. The path of a plan.md checks that file only.
Each violation is printed as FILE:LINE: RULE: TEXT. The line is 0 if a part of the file is missing or the file is too large.
The exit code is 0, or 1 if there are violations, or 2 if a plan cannot be read. `spektacular help spec` explains the rules.",
    examples: &[
        ("spektacular plan check login", "check the files in .spektacular/plans/login"),
        ("spektacular plan check --output json login", "also list its phases, for a program"),
    ],
};

pub(crate) const IMPLEMENT: CommandText = CommandText {
    about: "carry out a plan, and run its commands to verify each phase",
    more: "\
PLAN is a plan's name, or the path of its folder or of its plan.md.
The agent works on one phase after the other. A phase passes when spektacular itself has run the phase's commands and
all have passed. If one fails, the agent gets its output and tries again in the same session. At the end, every command
must pass on the final state. plan.md records the progress: after a failure, a cancel or a kill, the same command
continues at the first open phase.",
    examples: &[
        ("spektacular implement greeting", "carry out .spektacular/plans/greeting/plan.md"),
        ("spektacular implement --dry-run greeting", "show the phases, their commands and the first prompt"),
        ("spektacular implement --yes --headless greeting", "allow everything, and ask nothing"),
        ("spektacular implement --commit --max-phases 1 greeting", "commit the next phase, and stop"),
    ],
};

pub(crate) const PROMPTS: CommandText = CommandText {
    about: "list or print the prompts of spec, plan and implement",
    more: "\
A file prompts/NAME.md beside the user's config.json replaces a built-in prompt.
.spektacular/prompts/NAME.md takes precedence, once you trust it with `spektacular config trust`.
The list shows whether each prompt is the built-in one, the user's or the project's.",
    examples: &[
        ("spektacular prompts", "list the prompts"),
        ("spektacular prompts spec > .spektacular/prompts/spec.md", "start the project's own version of a prompt"),
    ],
};

pub(crate) const CONFIG: CommandText = CommandText {
    about: "show or change the configuration",
    more: "\
set and unset change the project's file, or with --global the user's file.
VALUE is JSON if that fits the key, otherwise text.
permissions, mcp_servers and output_schema also accept the forms that their flags accept.
get and unset exit with 1 if the key is not set. list masks secrets; get does not.",
    examples: &[
        ("spektacular config set output json", "make --output json the default in this project"),
        ("spektacular config set --global model opus", "choose a model for every project"),
        (
            "spektacular config set --global agents.mine '{\"driver\":\"acp\",\"command\":\"my-agent\"}'",
            "add your own agent",
        ),
    ],
};

pub(crate) const AGENTS: CommandText = CommandText {
    about: "list the agents, or check which are available here",
    more: "A check calls no model and downloads nothing. `check NAME` exits with 4 if the agent is not available.",
    examples: &[
        ("spektacular agents list", "show the names for --agent"),
        ("spektacular agents check codex --output json", "check one agent, for a program"),
    ],
};

pub(crate) const SESSIONS: CommandText = CommandText {
    about: "list, show and remove the last sessions in this directory",
    more: "\
Each line shows the session's id, its agent, its age, its name, and the first words of its last prompt, redacted.
The list contains the sessions that adhoc stored for --continue, newest first, at most 20 of each agent.
SESSION is an id or a name. A session with a name stays in the list longer than the others.",
    examples: &[
        ("spektacular sessions", "list them"),
        ("spektacular adhoc --name parser \"fix the parser\"", "begin one with a name"),
        ("spektacular adhoc --resume parser \"now write a test for it\"", "continue one of them"),
        ("spektacular sessions show parser", "show its id, its directory and its cost"),
        ("spektacular sessions rm parser", "remove it from the list"),
    ],
};

pub(crate) const EXPORT: CommandText = CommandText {
    about: "print a session in the agent's own format",
    more: "\
The session is printed exactly as the agent stores it. Nothing is redacted.
It may have at most 1 GiB. An agent that prints it itself has 60 s.
Without SESSION, it is the last session that spektacular ran in this directory, of any agent unless --agent names one.
With --output json, it is the string export_data in an object {success, agent, session_id, export_data}.",
    examples: &[(
        "spektacular export --agent codex 01a200fd-0dba-7351-aa73-9dae1b4ca807 --out session.jsonl",
        "save a session to a file",
    )],
};

pub(crate) const OPEN: CommandText = CommandText {
    about: "open the agent's own interface in this terminal",
    more: "\
The exit code is the agent's, or 128 plus the number of the signal that ended it.
Processes that the agent leaves behind keep running. Other users can read the prompt in the process list.",
    examples: &[
        ("spektacular open --agent opencode \"explain this repository\"", "start with a prompt"),
        ("spektacular open --continue", "take over the last session of adhoc"),
    ],
};

pub(crate) const ACP: CommandText = CommandText {
    about: "serve an agent to an editor, by the Agent Client Protocol",
    more: "\
An editor such as Zed, or another client, starts this command and speaks with it on stdin and stdout.
Each session of the client is a conversation with the agent, in a process of its own. At most 32 are open at once.
The agent and its children end when the client does.",
    examples: &[
        ("spektacular acp --agent codex", "the command for the client's configuration"),
        ("spektacular acp --set permissions=read-only", "let every session only read"),
        ("spektacular integrate zed", "print the configuration for Zed"),
    ],
};

pub(crate) const INTEGRATE: CommandText = CommandText {
    about: "set up another program that uses this one",
    more: "\
Writes the files of an integration, if it has some, and prints the configuration of the other program for this machine.
Without NAME, it lists the integrations.",
    examples: &[
        ("spektacular integrate", "list the integrations, each with its configuration"),
        ("spektacular integrate openclaw --out ~/openclaw-spektacular", "write the plugin for OpenClaw"),
        ("spektacular integrate zed", "print the configuration for Zed"),
    ],
};

pub(crate) const PROTOCOL: CommandText = CommandText {
    about: "print the protocol: its reference, or a schema, types, clients or examples",
    more: "\
Without SECTION, it prints the whole reference. SECTION is a heading, or the name of a message, a kind, a field or a code.
TYPE.FIELD is the field of one message: run.start.timeout_s.",
    examples: &[
        ("spektacular protocol | less", "read it page by page"),
        ("spektacular protocol run.question", "read the section about a message"),
        ("spektacular protocol rate_limited", "read the section that explains a code"),
        ("spektacular protocol changes", "list the additions of each minor version"),
    ],
};

pub(crate) const PROTOCOL_SCHEMA: CommandText = CommandText {
    about: "print the JSON Schema of the protocol's messages",
    more: "The schema is of the version 2020-12. It describes each line of stdin and stdout as a value of its own.",
    examples: &[
        ("spektacular protocol schema --outbound > frames.schema.json", "check what an orchestrator reads"),
        ("spektacular protocol schema --inbound > messages.schema.json", "check what an orchestrator writes"),
        ("spektacular protocol schema --type run.question", "describe one message"),
        ("spektacular protocol schema --outbound --strict", "compare this version with another one"),
    ],
};

pub(crate) const PROTOCOL_TYPES: CommandText = CommandText {
    about: "print types of the protocol's messages for a language",
    more: "\
One file without dependencies: TypeScript with unions that `type` and `kind` tell apart, or TypedDicts for Python 3.9.
Message is what an orchestrator writes, Frame what it reads.",
    examples: &[
        ("spektacular protocol types ts > spektacular-types.ts", "for TypeScript"),
        ("spektacular protocol types python > spektacular_types.py", "for Python"),
    ],
};

pub(crate) const PROTOCOL_CLIENT: CommandText = CommandText {
    about: "print a client to copy into a project",
    more: "\
One file without dependencies. It starts a run, yields its frames, hands each question to a callback, and cancels, converses
and notices a run that dies. Its header has an example. At its end are the types of spektacular protocol types.",
    examples: &[
        ("spektacular protocol client python > spektacular.py", "for Python 3.9"),
        ("spektacular protocol client python-asyncio > spektacular_asyncio.py", "for an event loop of asyncio"),
        ("spektacular protocol client ts > spektacular.ts", "for Node.js 18"),
    ],
};

pub(crate) const PROTOCOL_EXAMPLES: CommandText = CommandText {
    about: "print one example per message, one per line",
    more: "The examples are those of the reference: each form of each message, each frame, and each kind of run.progress.",
    examples: &[("spektacular protocol examples | grep run.progress", "see each kind of progress")],
};

pub(crate) const PROTOCOL_VERSION: CommandText = CommandText {
    about: "print the version of the protocol",
    more: "The version is MAJOR.MINOR. With --output json, it is the object `protocol` of run.started.",
    examples: &[("spektacular protocol version", "print it")],
};

pub(crate) const PROTOCOL_CHECK: CommandText = CommandText {
    about: "check a client of the protocol against played dialogues",
    more: "\
COMMAND starts your client. It runs once per dialogue, and finds a stand-in for spektacular first on its PATH and in the variable SPEKTACULAR.
The client starts one run of `spektacular adhoc --output json`, and exits with 0 if the run completes and with another code if not.
The stand-in starts no agent. The report says in sentences what the client did wrong. What COMMAND prints goes to stderr.
`spektacular protocol checking a client` explains the dialogues.
Exit codes: 0: no mistakes; 1: mistakes; 2: COMMAND cannot be started, or the command line is wrong.",
    examples: &[
        ("spektacular protocol check -- python3 client.py", "check a client"),
        ("spektacular protocol check --dialogue timeout -- node client.js", "play one dialogue"),
        ("spektacular protocol check --output json -- ./client", "for a program"),
    ],
};

pub(crate) const ASK_SERVER: CommandText = CommandText {
    about: "MCP server that asks the user of a run; agents start it",
    more: "The server speaks MCP on stdin and stdout. A run gives it to agents whose models have no other way to ask.",
    examples: &[("spektacular ask-server", "the command that an agent starts; outside a run, it reports an error")],
};

pub(crate) const DEMO: CommandText = CommandText {
    about: "list and show the dialogues of the demo agent, to test an orchestrator with",
    more: "\
SCENARIO is a name from the list, or the path of a file. show prints the dialogue for a person, and with --output json the
scenario's file, a template for your own. `spektacular help agents` describes the format.",
    examples: &[
        ("spektacular demo list", "show the names"),
        ("spektacular adhoc --agent demo:questions \"go\"", "answer every kind of question"),
        ("spektacular demo show questions --output json > mine.json", "begin a scenario of your own"),
        ("spektacular adhoc --agent demo:./mine.json \"go\"", "play it"),
    ],
};

pub(crate) const REPLAY: CommandText = CommandText {
    about: "play the agent's side of a recording",
    more: "\
For each line that the host sent, replay waits on stdin for a line of the same type with the same ids.
If the recording has several processes, replay plays the first one that was started with these ARGUMENTS.",
    examples: &[
        ("spektacular adhoc --record run.jsonl \"say hello\"", "make a recording"),
        ("spektacular replay run.jsonl", "play it"),
    ],
};

pub(crate) const REPORT: CommandText = CommandText {
    about: "make an HTML page of a run or a recording",
    more: "\
FILE holds the frames of a run, as adhoc, spec, plan and implement write them with --output json, or a recording of --record.
Several files make one page. `-` is stdin. Without --out, the page goes to stdout.
The page needs no network and no script. It shows the end, the plan, the files, the time, the tokens, the questions, and
each step of the agent. Frames of --progress full have diffs and outputs. A run.start among the frames adds the prompt.
A line longer than 16 MiB is skipped, and a text is cut at 64 KiB. The page holds at most 16 MiB of text and 20,000 events,
and tells what it leaves out.",
    examples: &[
        ("spektacular adhoc --output json --progress full --prompt \"fix it\" > run.jsonl", "keep the frames of a run"),
        ("spektacular report run.jsonl -o run.html", "make the page"),
        ("spektacular adhoc --report run.html \"fix it\"", "make it at the end of the run"),
    ],
};

pub(crate) const COMPLETIONS: CommandText = CommandText {
    about: "print a completion script for a shell",
    more: "At each Tab, the script asks the program, which offers commands, flags and their values, and the agents, sessions,
specifications, plans and keys of that moment.",
    examples: &[
        ("source <(spektacular completions bash)", "in ~/.bashrc"),
        ("spektacular completions zsh > ~/.zfunc/_spektacular", "with ~/.zfunc in fpath, before compinit"),
        ("spektacular completions fish > ~/.config/fish/completions/spektacular.fish", "where fish finds it"),
        ("eval (spektacular completions elvish | slurp)", "in ~/.config/elvish/rc.elv"),
        ("spektacular completions powershell | Out-String | Invoke-Expression", "in $PROFILE"),
    ],
};

pub(crate) const MAN: CommandText = CommandText {
    about: "print the manual page",
    more: "",
    examples: &[
        ("spektacular man | man -l -", "read it"),
        ("spektacular man > ~/.local/share/man/man1/spektacular.1", "install it where man finds it"),
    ],
};

pub(crate) const HELP: CommandText = CommandText {
    about: "explain a command, with examples",
    more: "",
    examples: &[("spektacular help adhoc", "all flags of adhoc, with their defaults")],
};

//! The flags of `adhoc`, each with the function that stores its value. The other commands that start a run take most
//! of them.

use super::adhoc::{Adhoc, WorktreeName, answer};
use super::choices::{AtEof, Color, DiffSize, Output};
use super::row::{
    FlagForm, JSON, OUTPUT, Row, field, own, own_path, own_seconds, own_switch, own_text, own_texts, switch,
};
use super::{one_of, text};
use crate::protocol::ids::SessionName;

const POLICY_HELP: &str = "\
POLICY is ask, allow or deny for every request, or a list by category of tool: read=allow,edit=ask,*=deny.
read-only lets the agent read and search, and denies everything else.
The categories are read, edit, delete, move, search, execute, fetch, think, agent, mcp, mode, other, and * for the rest.
JSON works too: {\"read\":\"allow\",\"*\":\"ask\"}.
A policy answers the agent's requests for permission. It is not a sandbox: see --sandbox.";

const SANDBOX_HELP: &str = "\
workspace lets the agent change the working directory, --add-dir and --sandbox-write, and nothing else.
read-only lets it change nothing but its own state. Both hide the secrets in HOME. They work with every agent.
Not restricted: the network, what an outside service (docker, ssh-agent) does on request, file attributes, what root can see.
It needs Linux 6.2 or later with Landlock. `spektacular protocol` lists the paths, the secrets and the risks.";

const SERVERS_HELP: &str = "\
JSON is a list of {\"name\",\"command\",\"args\",\"env\"}, or {\"mcpServers\":{NAME:{\"command\",\"args\",\"env\"}}}.
The run fails if a server does not start, unless it has \"required\":false.
@FILE reads the JSON from a file.";

const ANSWER_HELP: &str = "\
KEY is a question's header, text, kind (confirm, select, text, secret, file_path) or purpose (permission,
clarification, input), in upper or lower case. The first of these that matches applies.
For a permission: permission=allow_once, permission=allow_always or permission=deny.
Separate several options with commas: a,b. Repeat a KEY to answer one question after another; its last answer is reused.
An answer that does not fit is not given again. Other users can read VALUE in the process list: use --answers instead.";

const ANSWERS_HELP: &str = "\
The file holds {\"KEY\": ANSWER}, with the keys of --answer, which takes precedence.
ANSWER is a value, {\"declined\":true}, {\"value_from\":{\"env\":\"NAME\"}} or {\"value_from\":{\"file\":\"PATH\"}}.";

const IMAGE_HELP: &str = "\
A relative FILE is relative to --cwd. At most 20 images, of 5 MiB each and 20 MiB in total.
Most agents accept images, but not all of their models do: see spektacular help agents reference.";

const FALLBACK_HELP: &str = "\
It takes over if the quota is used up, if the agent is not logged in or does not start, or at a limit of the provider
for which the run does not wait. Repeat the flag for further agents. A single task is handed over only before its first
tool ran; spec, plan and implement hand over the draft or the attempt as it is.";

const WORKTREE_HELP: &str = "\
The worktree is a checkout of HEAD, without uncommitted changes, on the branch spektacular/NAME.
Without =NAME, a name is invented. The next word is part of the prompt.
It is in the user's state folder. The configuration keys worktree.copy and worktree.setup prepare it for builds.
At the end, stderr shows the commands to inspect it, merge it, continue in it and remove it: see spektacular worktrees.
A worktree without changes is removed. --dry-run makes none. A cwd in run.start takes precedence.";

const CONTINUE_HELP: &str = "\
A run with a prompt on the command line stores its session in .spektacular/local, which git ignores.
Without a .spektacular, it uses the user's state folder; with --output json, it then stores nothing.";

const NAME_HELP: &str = "\
The name belongs to this directory. It replaces the name that the session has.
Even with --output json, a session with a name is stored.";

const CHECKPOINTS_HELP: &str = "\
Before each prompt of a conversation in a git work tree, spektacular saves the state of the files outside the repository.
/rewind, or run.input with `rewind`, restores the files that later turns changed.";

const NAME_FORM: &str = "must be 1 to 64 letters, digits, -, _ and ., and begin with a letter or a digit.";

pub(crate) const ADHOC: &[Row<Adhoc>] = &[
    own_text("prompt", "TEXT", "the task", |to: &mut Adhoc| &mut to.prompt).short('p').begins("The task"),
    own_path("prompt-file", "FILE", "read the task from a file, or from stdin with -", |to: &mut Adhoc| {
        &mut to.prompt_file
    })
    .short('f'),
    field("images", "FILE", "an image to send with the task: PNG, JPEG, GIF or WebP").more(IMAGE_HELP),
    field("cwd", "DIR", "the agent's working directory").short('C'),
    own("worktree", "NAME", FlagForm::Attached, "run in a new git worktree", |to: &mut Adhoc, flag, value| {
        to.worktree = Some(WorktreeName::read(flag, value)?);
        Ok(())
    })
    .more(WORKTREE_HELP),
    own_switch("allow-setup", "consent in advance to the commands of worktree.setup", |to: &mut Adhoc| {
        to.allow_setup = true
    }),
    field("add_dirs", "DIR", "another directory that the agent may use"),
    field("session_id", "ID", "resume this session of the agent, by its id or name").also_named(&["resume"]),
    switch("fork", "true", "continue in a copy; the session stays as it is"),
    own_switch("continue", "resume the agent's last session in this directory", |to: &mut Adhoc| to.go_on = true)
        .short('c')
        .more(CONTINUE_HELP),
    own("name", "NAME", FlagForm::Text, "name the session, for --session", |to: &mut Adhoc, flag, value| {
        let name = SessionName::new(&text(flag, value)?);
        to.session_name = Some(name.ok_or_else(|| format!("--{} {NAME_FORM}", flag.long))?);
        Ok(())
    })
    .more(NAME_HELP),
    own_switch("no-session", "do not store the session for --continue and sessions", |to: &mut Adhoc| {
        to.no_session = true
    })
    .more("The agent may still keep the session in its own files."),
    switch("conversation", "true", "keep the agent running for more prompts")
        .more("With --output cli, you type them at a terminal: see spektacular help chat. With --output json, run.input with\n`prompt` is a further turn, and the end of stdin, or `end`, ends the conversation."),
    switch("checkpoints", "true", "save checkpoints of the files, for rewinding").more(CHECKPOINTS_HELP),
    field("agent", "AGENT", "the agent to run").short('a').begins("The agent"),
    field("model", "NAME", "the model, as the agent names it").short('m'),
    field("effort", "LEVEL", "the reasoning effort, as the agent names it"),
    field("mode", "NAME", "the agent's own mode, such as plan")
        .more("OpenCode and Claude Code call a mode an agent: plan, or one that you defined."),
    field("system_prompt", "TEXT", "a system prompt for the agent"),
    own_path("system-prompt-file", "FILE", "read the system prompt from a file", |to| &mut to.system_prompt_file),
    field("system_prompt_mode", "MODE", "add to the agent's system prompt, or replace it"),
    field("allowed_tools", "NAME", "allow this tool, as the agent names it"),
    field("disallowed_tools", "NAME", "a tool that the agent may not use"),
    field("mcp_servers", "JSON", "MCP servers for the agent to start").more(SERVERS_HELP),
    field("env", "NAME=VALUE", "an environment variable for the agent"),
    field("env_allow", "NAME", "pass only variables with this name to the agent")
        .more("A * at the end of NAME matches any characters. PATH, HOME and some others are always passed."),
    field("agent_args", "ARG", "an argument for the agent's own command line"),
    switch("raw_prompt", "true", "let the agent interpret commands in the prompt")
        .more("Without it, a prompt that begins with / or contains @path is passed as plain text."),
    field("permissions", "POLICY", "ask, allow, deny, read-only, or by category")
        .more(POLICY_HELP)
        .begins("Permissions and answers"),
    switch("permissions", "\"allow\"", "the same as --permissions allow").named("yes").short('y'),
    field("sandbox", "MODE", "off, read-only or workspace; enforced by the kernel").more(SANDBOX_HELP),
    own_texts("sandbox-write", "PATH", FlagForm::Text, "another path for a sandboxed agent to change", |to| {
        &mut to.sandbox_write
    }),
    own_texts("sandbox-read", "PATH", FlagForm::Text, "another path for a sandboxed agent to read", |to| {
        &mut to.sandbox_read
    }),
    own("answer", "KEY=VALUE", FlagForm::Pair, "answer a question in advance", |to: &mut Adhoc, flag, value| {
        to.answers.push(answer(flag, value)?);
        Ok(())
    })
    .more(ANSWER_HELP),
    own_path("answers", "FILE", "read answers from a JSON file", |to: &mut Adhoc| &mut to.answers_file)
        .more(ANSWERS_HELP),
    switch("interactive", "false", "ask nothing: policies and defaults answer"),
    field("question_timeout_s", "SECONDS", "limit for answering a question").also(", but no limit with --output cli"),
    field("on_question_timeout", "ACTION", "what to do when a question times out"),
    field("question_markers", "BOOL", "ask questions that the agent marks in its text"),
    switch("fail_on_denied", "true", "fail if nobody answered a permission request")
        .more("The run fails with `denied`, exit code 6. Denials by --permissions or by an answer do not count."),
    field("timeout_s", "SECONDS", "limit for the whole run").begins("Limits"),
    field("turn_timeout_s", "SECONDS", "limit for a turn of a conversation"),
    field("prompt_timeout_s", "SECONDS", "limit for the wait for a further prompt"),
    field("start_timeout_s", "SECONDS", "limit for the agent's first line of output"),
    field("idle_timeout_s", "SECONDS", "limit for the agent's silence, 0 = off"),
    field("tool_timeout_s", "SECONDS", "how long a running tool pauses the idle timeout"),
    field("background", "ACTION", "what to do about work that outlives the agent's turn"),
    field("on_rate_limit", "ACTION", "what to do when the provider enforces a limit"),
    field("max_wait_s", "SECONDS", "how long to wait for such a limit to end"),
    field("fallback", "AGENT[:MODEL]", "the agent that takes over if this one fails").more(FALLBACK_HELP),
    field("max_turns", "N", "limit on model calls"),
    field("max_tool_calls", "N", "limit on tool calls"),
    field("max_tokens", "N", "limit on input and output tokens"),
    field("max_cost_usd", "USD", "limit on cost in US dollars"),
    field("on_unsupported", "ACTION", "what to do about a limit that cannot be enforced"),
    own(OUTPUT.long, OUTPUT.metavar, OUTPUT.value, OUTPUT.help, |to: &mut Adhoc, flag, value| {
        to.output = Some(Output::read(flag.long, &value)?);
        Ok(())
    })
    .values(OUTPUT.values)
    .default(OUTPUT.default)
    .begins("Input and output"),
    own_switch(JSON.long, JSON.help, |to| to.output = Some(Output::Json)),
    own_switch("quiet", "with cli: print only the final text", |to: &mut Adhoc| to.quiet = true).short('q'),
    own_switch("verbose", "with cli: also print tool output, reasoning and the session", |to: &mut Adhoc| {
        to.verbose = true
    })
    .short('v'),
    own("color", "WHEN", FlagForm::Text, "with cli: when to use colors", |to: &mut Adhoc, flag, value| {
        to.color = Color::read(flag.long, &value)?;
        Ok(())
    })
    .values(Color::WORDS)
    .default(Color::WORDS[0])
    .more("auto: on a terminal, unless NO_COLOR is set. FORCE_COLOR turns colors on everywhere, or off if it is 0 or false."),
    own_switch("plain", "with cli: print the agent's Markdown as it is", |to: &mut Adhoc| to.plain = true)
        .more("Without it, a terminal shows headings and strong text bold, and wraps lines between words."),
    own("diff", "SIZE", FlagForm::Text, "with cli: how much of each edit to show", |to: &mut Adhoc, flag, value| {
        to.diff = DiffSize::read(flag.long, &value)?;
        Ok(())
    })
    .values(DiffSize::WORDS)
    .default(DiffSize::WORDS[0])
    .more("short: the first 40 lines of the diff."),
    own_switch("no-alert", "with cli: no bell and title for questions", |to: &mut Adhoc| to.no_alert = true)
        .more("Without it, a question rings the terminal's bell, and changes the window title of programs that can restore it."),
    own(
        "input",
        "MODE",
        FlagForm::Text,
        "jsonl: read messages from stdin even with a prompt",
        |to: &mut Adhoc, flag, value| {
            to.read_messages = one_of(flag.long, &value, &[("jsonl", true)])?;
            Ok(())
        },
    )
    .values(&["jsonl"]),
    own_seconds("input-timeout", "how long to wait for piped input to begin", |to: &mut Adhoc| &mut to.input_timeout)
        .default("60"),
    own("on-eof", "ACTION", FlagForm::Text, "what to do when stdin ends", |to: &mut Adhoc, flag, value| {
        to.on_eof = AtEof::read(flag.long, &value)?;
        Ok(())
    })
    .values(AtEof::WORDS)
    .default(AtEof::WORDS[0]),
    field("progress", "LEVEL", "how much progress to report").also(", but full with --output cli"),
    field("heartbeat_s", "SECONDS", "seconds between heartbeats, 0 = off").also(", but 60 with --output cli"),
    field("max_frame_bytes", "BYTES", "the maximum length of a frame"),
    field("output_schema", "JSON", "a JSON Schema for a structured result").more("@FILE reads the schema from a file."),
    field("completion_marker", "TEXT", "set completion_detected if the agent writes this"),
    field("metadata", "JSON", "a JSON object that the run returns"),
    field("secrets", "TEXT", "a value to redact; other users can read it in the process list"),
    own_path("record", "FILE", "record the dialogue with the agent, redacted", |to| &mut to.record),
    own_path("report", "FILE", "write an HTML page about the run when it ends", |to: &mut Adhoc| &mut to.report)
        .more("With --progress full, the page has diffs and outputs. An existing file is replaced."),
    own_switch("signal-exit", "exit with 130, 143 or 129 after a signal, in JSON mode too", |to| {
        to.signal_exit = true;
    }),
    own_switch("log-id", "prefix each stderr line about the run with the run's id", |to| to.log_id = true),
    own_switch("mirror-stderr", "copy the agent's stderr to this program's, redacted", |to| to.mirror_stderr = true),
    own_switch("dry-run", "show what would be started, and start nothing", |to| to.dry_run = true),
];

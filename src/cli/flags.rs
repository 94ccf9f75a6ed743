//! The flags of every command, each with the function that stores its value.

use super::acp::AcpArgs;
use super::adhoc::{Adhoc, AtEof, Color, DiffSize, WorktreeName, answer};
use super::agents::{AgentsArgs, Export, Open, SessionsArgs, filled};
use super::config::ConfigArgs;
use super::demo::DemoArgs;
use super::integrate::IntegrateArgs;
use super::protocol::{ProtocolCheckArgs, SchemaArgs};
use super::row::{FlagForm, Row, SetOwn, field, own, own_switch, switch};
use super::workflow::{CheckArgs, OutputArgs};
use super::{Output, Replay, ReportArgs, one_of, seconds, text, variable};
use crate::agent::registry::DEFAULT;
use crate::protocol::ids::SessionName;
use crate::protocol::messages::TYPES;
use crate::protocol::publish::{MessageSet, UnknownParts};

const POLICY_HELP: &str = "\
POLICY is ask, allow or deny for every request, or a list by category of tool: read=allow,edit=ask,*=deny.
read-only lets the agent read and search, and denies everything else.
The categories are read, edit, delete, move, search, execute, fetch, think, agent, mcp, mode, other, and * for the rest.
JSON works too: {\"read\":\"allow\",\"*\":\"ask\"}.
A policy answers the agent's requests for permission. It is not a sandbox: see --sandbox.";

const SANDBOX_HELP: &str = "\
workspace lets the agent change the working directory, --add-dir and --sandbox-write, and nothing else.
read-only lets it change nothing but its own state. Both hide the secrets in HOME, on every agent.
Not kept: the network, what a service outside does when asked (docker, ssh-agent), file attributes, root's view.
It needs Linux 6.2 or later with Landlock. `spektacular protocol` lists the paths, the secrets and the risks.";

const SERVERS_HELP: &str = "\
JSON is a list of {\"name\",\"command\",\"args\",\"env\"}, or {\"mcpServers\":{NAME:{\"command\",\"args\",\"env\"}}}.
The run fails if a server does not start, unless it has \"required\":false.
@FILE reads the JSON from a file.";

const OPEN_POLICY_HELP: &str = "\
You answer at the terminal: any POLICY other than allow makes the agent ask. The configuration can set it too.";

const ANSWER_HELP: &str = "\
KEY is a question's header, text, kind (confirm, select, text, secret, file_path) or purpose (permission,
clarification, input), in any case. The first of these that matches counts.
For a permission: permission=allow_once, permission=allow_always or permission=deny.
Separate several options with commas: a,b. Repeat a KEY to answer one question after another; its last answer is reused.
An answer that does not fit is not given again. Other users can read VALUE in the process list: use --answers instead.";

const ANSWERS_HELP: &str = "\
The file holds {\"KEY\": ANSWER}, with the keys of --answer, which takes precedence.
ANSWER is a value, {\"declined\":true}, {\"value_from\":{\"env\":\"NAME\"}} or {\"value_from\":{\"file\":\"PATH\"}}.";

const IMAGE_HELP: &str = "\
A relative FILE is relative to --cwd. At most 20 images, of 5 MiB each and 20 MiB in total.
Most agents take images, but not every model of theirs does: see spektacular help agents.";

const WORKTREE_HELP: &str = "\
The worktree is a checkout of HEAD, without uncommitted changes, on the branch spektacular/NAME.
Without =NAME, the run invents a name. The next word is part of the prompt.
It is in .spektacular/local/worktrees/NAME, which git ignores, or without a .spektacular in the user's state folder.
At the end, stderr has the commands to look at it, merge it, continue in it and remove it.
A worktree without changes is removed. --dry-run makes none. A cwd in run.start goes before it.";

const CONTINUE_HELP: &str = "\
A run with a prompt on the command line stores its session in .spektacular/local, which git ignores.
Without a .spektacular, it uses the user's state folder; with --output json, it then stores nothing.";

const NAME_HELP: &str = "\
The name belongs to this directory. A session that has one already gets the new one.
With --output json, a session with a name is stored as without --output json.";

const NAME_FORM: &str = "must be 1 to 64 letters, digits, -, _ and ., and begin with a letter or a digit.";

pub(crate) const ADHOC: &[Row<Adhoc>] = &[
    own("prompt", "TEXT", FlagForm::Text, "the task", |to: &mut Adhoc, flag, value| {
        to.prompt = Some(text(flag, value)?);
        Ok(())
    })
    .short('p')
    .begins("The task"),
    own(
        "prompt-file",
        "FILE",
        FlagForm::Text,
        "read the task from a file, or from stdin with -",
        |to: &mut Adhoc, _, value| {
            to.prompt_file = Some(value.into());
            Ok(())
        },
    )
    .short('f'),
    field("images", "FILE", "an image that belongs to the task: PNG, JPEG, GIF or WebP").more(IMAGE_HELP),
    field("cwd", "DIR", "the agent's working directory").short('C'),
    own("worktree", "NAME", FlagForm::Attached, "run in a new git worktree", |to: &mut Adhoc, flag, value| {
        to.worktree = Some(WorktreeName::read(flag, value)?);
        Ok(())
    })
    .more(WORKTREE_HELP),
    field("add_dirs", "DIR", "another directory that the agent may use"),
    field("session_id", "ID", "resume this session of the agent, by its id or name").also_named(&["resume"]),
    switch("fork", "true", "begin a new session from the resumed one, which stays as it is"),
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
    switch("conversation", "true", "keep the agent for further prompts")
        .more("With --output cli, you type them at a terminal: see spektacular help chat. With --output json, run.input with\n`prompt` is a further turn, and the end of stdin, or `end`, ends the conversation."),
    field("agent", "AGENT", "the agent to run").short('a').begins("The agent"),
    field("model", "NAME", "the model, by the agent's name for it").short('m'),
    field("effort", "LEVEL", "the reasoning effort, by the agent's name for it"),
    field("mode", "NAME", "the agent's own mode, such as plan")
        .more("OpenCode and Claude Code call a mode an agent: plan, or one that you defined."),
    field("system_prompt", "TEXT", "a system prompt for the agent"),
    own("system-prompt-file", "FILE", FlagForm::Text, "read the system prompt from a file", |to, _, value| {
        to.system_prompt_file = Some(value.into());
        Ok(())
    }),
    field("allowed_tools", "NAME", "a tool that the agent may use, by the agent's name for it"),
    field("disallowed_tools", "NAME", "a tool that the agent may not use"),
    field("mcp_servers", "JSON", "MCP servers for the agent to start").more(SERVERS_HELP),
    field("env", "NAME=VALUE", "an environment variable for the agent"),
    field("env_allow", "NAME", "pass only variables with this name to the agent")
        .more("A * at the end of NAME matches any characters. PATH, HOME and some others are always passed."),
    field("agent_args", "ARG", "an argument for the agent's own command line"),
    switch("raw_prompt", "true", "let the agent interpret commands in the prompt")
        .more("Without it, a prompt that begins with / or contains @path is passed as plain text."),
    field("permissions", "POLICY", "ask, allow, deny, read-only, or read=allow,edit=ask,*=deny")
        .more(POLICY_HELP)
        .begins("Permissions and answers"),
    switch("permissions", "\"allow\"", "the same as --permissions allow").named("yes").short('y'),
    field("sandbox", "MODE", "off, read-only or workspace: what the kernel lets the agent do").more(SANDBOX_HELP),
    own(
        "sandbox-write",
        "PATH",
        FlagForm::Text,
        "another path that a sandboxed agent may change",
        |to: &mut Adhoc, flag, value| {
            to.sandbox_write.push(text(flag, value)?);
            Ok(())
        },
    ),
    own(
        "sandbox-read",
        "PATH",
        FlagForm::Text,
        "another path that a sandboxed agent may read",
        |to: &mut Adhoc, flag, value| {
            to.sandbox_read.push(text(flag, value)?);
            Ok(())
        },
    ),
    own("answer", "KEY=VALUE", FlagForm::Pair, "answer a question in advance", |to: &mut Adhoc, flag, value| {
        to.answers.push(answer(flag, value)?);
        Ok(())
    })
    .more(ANSWER_HELP),
    own("answers", "FILE", FlagForm::Text, "read answers from a JSON file", |to: &mut Adhoc, _, value| {
        to.answers_file = Some(value.into());
        Ok(())
    })
    .more(ANSWERS_HELP),
    switch("interactive", "false", "ask nothing: policies and defaults answer"),
    field("question_timeout_s", "SECONDS", "limit for answering a question").also(", but no limit with --output cli"),
    field("on_question_timeout", "ACTION", "what to do when a question times out"),
    field("question_markers", "BOOL", "ask the questions that the agent writes as markers"),
    switch("fail_on_denied", "true", "fail if a permission was denied because nobody answered")
        .more("The run fails with `denied`, exit code 6. Denials by --permissions or by an answer do not count."),
    field("timeout_s", "SECONDS", "limit for the whole run").begins("Limits"),
    field("turn_timeout_s", "SECONDS", "limit for a turn of a conversation"),
    field("prompt_timeout_s", "SECONDS", "limit for the wait for a further prompt"),
    field("start_timeout_s", "SECONDS", "limit until the agent's first line"),
    field("idle_timeout_s", "SECONDS", "limit for the agent's silence, 0 = off"),
    field("tool_timeout_s", "SECONDS", "how long a running tool pauses the idle timeout"),
    field("on_rate_limit", "ACTION", "what to do at a limit of the agent's provider"),
    field("max_wait_s", "SECONDS", "limit for the wait at such a limit"),
    field("max_turns", "N", "limit on calls of the model"),
    field("max_tool_calls", "N", "limit on calls of tools"),
    field("max_tokens", "N", "limit on input and output tokens"),
    field("max_cost_usd", "USD", "limit on cost in US dollars"),
    field("on_unsupported", "ACTION", "what to do about a limit that cannot be kept"),
    output(|to: &mut Adhoc, flag, value| {
        to.output = Some(Output::read(flag, &value)?);
        Ok(())
    })
    .begins("Input and output"),
    json(|to| to.output = Some(Output::Json)),
    own_switch("quiet", "with cli: print only the final text", |to: &mut Adhoc| to.quiet = true).short('q'),
    own_switch("verbose", "with cli: also print tool output, reasoning and the session", |to: &mut Adhoc| {
        to.verbose = true
    })
    .short('v'),
    own("color", "WHEN", FlagForm::Text, "with cli: when to use colours", |to: &mut Adhoc, flag, value| {
        to.color = Color::read(flag, &value)?;
        Ok(())
    })
    .values(Color::WORDS)
    .default(Color::WORDS[0])
    .more("auto: on a terminal, unless NO_COLOR is set. FORCE_COLOR turns colours on everywhere, or off if it is 0 or false."),
    own_switch("plain", "with cli: print the agent's Markdown as it is", |to: &mut Adhoc| to.plain = true)
        .more("Without it, a terminal shows headings and strong text bold, and wraps lines between words."),
    own("diff", "SIZE", FlagForm::Text, "with cli: how much of each edit to show", |to: &mut Adhoc, flag, value| {
        to.diff = DiffSize::read(flag, &value)?;
        Ok(())
    })
    .values(DiffSize::WORDS)
    .default(DiffSize::WORDS[0])
    .more("short: the first 40 lines of the diff."),
    own_switch("no-alert", "with cli: announce questions without bell and title", |to: &mut Adhoc| to.no_alert = true)
        .more("Without it, a question rings the terminal's bell, and changes the window title of programs that can restore it."),
    own(
        "input",
        "MODE",
        FlagForm::Text,
        "jsonl: read messages from stdin even with a prompt",
        |to: &mut Adhoc, flag, value| {
            to.read_messages = one_of(flag, &value, &[("jsonl", true)])?;
            Ok(())
        },
    )
    .values(&["jsonl"]),
    own(
        "input-timeout",
        "SECONDS",
        FlagForm::Text,
        "how long to wait for piped input to begin",
        |to: &mut Adhoc, flag, value| {
            to.input_timeout = Some(seconds(flag, &value)?);
            Ok(())
        },
    )
    .default("60"),
    own("on-eof", "ACTION", FlagForm::Text, "what to do when stdin ends", |to: &mut Adhoc, flag, value| {
        to.on_eof = AtEof::read(flag, &value)?;
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
    own("record", "FILE", FlagForm::Text, "record the dialogue with the agent, redacted", |to, _, value| {
        to.record = Some(value.into());
        Ok(())
    }),
    own("report", "FILE", FlagForm::Text, "write an HTML page about the run when it ends", |to: &mut Adhoc, _, value| {
        to.report = Some(value.into());
        Ok(())
    })
    .more("With --progress full, the page has diffs and outputs. An existing file is replaced."),
    own_switch("signal-exit", "exit with 130, 143 or 129 after a signal, in JSON mode too", |to| {
        to.signal_exit = true;
    }),
    own_switch("log-id", "begin each line on stderr about the run with the run's id", |to| to.log_id = true),
    own_switch("mirror-stderr", "copy the agent's stderr to this program's, redacted", |to| to.mirror_stderr = true),
    own_switch("dry-run", "show what would be started, and start nothing", |to| to.dry_run = true),
];

const fn output<T>(set: SetOwn<T>) -> Row<T> {
    let help = "cli for a person, json for a program";
    own("output", "MODE", FlagForm::Text, help, set).values(Output::WORDS).default(Output::WORDS[0])
}

const fn json<T>(set: fn(&mut T)) -> Row<T> {
    own_switch("json", "the same as --output json", set)
}

const fn agent<T>(help: &'static str, set: SetOwn<T>) -> Row<T> {
    own("agent", "AGENT", FlagForm::Text, help, set).short('a').default(DEFAULT)
}

pub(crate) const AGENTS: &[Row<AgentsArgs>] = &[
    own_switch("all", "with check: also show why the other agents are not available", |to: &mut AgentsArgs| {
        to.all = true
    })
    .begins("Output"),
    output(|to, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    }),
    json(|to| to.output = Output::Json),
];

pub(crate) const SESSIONS: &[Row<SessionsArgs>] = &[
    own("cwd", "DIR", FlagForm::Text, "the directory of the sessions", |to: &mut SessionsArgs, _, value| {
        to.cwd = Some(value.into());
        Ok(())
    })
    .short('C')
    .begins("The sessions"),
    output(|to, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    }),
    json(|to| to.output = Output::Json),
];

pub(crate) const EXPORT: &[Row<Export>] = &[
    agent("the agent of the session", |to: &mut Export, flag, value| {
        to.agent = Some(text(flag, value)?);
        Ok(())
    })
    .begins("The session"),
    own("out", "FILE", FlagForm::Text, "write to a file, completely or not at all", |to, _, value| {
        to.out = Some(value.into());
        Ok(())
    }),
    own_switch("force", "let --out replace an existing file", |to| to.force = true),
    output(|to, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    }),
    json(|to| to.output = Output::Json),
];

pub(crate) const OPEN: &[Row<Open>] = &[
    agent("the agent to open", |to: &mut Open, flag, value| {
        to.agent = Some(text(flag, value)?);
        Ok(())
    })
    .begins("The agent"),
    field("model", "NAME", "the model, by the agent's name for it").short('m'),
    field("mode", "NAME", "the agent's own mode, such as plan"),
    own("session", "ID", FlagForm::Text, "resume this session, by its id or name", |to: &mut Open, flag, value| {
        to.session = Some(filled(flag, value)?);
        Ok(())
    })
    .also_named(&["resume"]),
    own_switch("continue", "resume the agent's last session in this directory", |to: &mut Open| to.go_on = true)
        .short('c'),
    own("cwd", "DIR", FlagForm::Text, "the agent's working directory", |to: &mut Open, _, value| {
        to.cwd = Some(value.into());
        Ok(())
    })
    .short('C'),
    own("env", "NAME=VALUE", FlagForm::Pair, "an environment variable for the agent", |to, flag, value| {
        to.env.extend([variable(flag, value)?]);
        Ok(())
    }),
    own("agent-arg", "ARG", FlagForm::Item, "an argument for the agent's own command line", |to, flag, value| {
        to.args.push(text(flag, value)?);
        Ok(())
    }),
    field("permissions", "POLICY", "ask: the agent asks whenever it can; allow: it never asks")
        .more(OPEN_POLICY_HELP)
        .default("the agent's own"),
    switch("permissions", "\"allow\"", "the same as --permissions allow").named("yes").short('y'),
];

pub(crate) const CONFIG: &[Row<ConfigArgs>] = &[
    own_switch("global", "use the user's file instead of the project's", |to: &mut ConfigArgs| to.global = true)
        .begins("Configuration"),
    output(|to, flag, value| {
        to.json = Output::read(flag, &value)? == Output::Json;
        Ok(())
    }),
    json(|to| to.json = true),
];

/// The flags of `spec check` and `plan check`.
pub(crate) const CHECK: &[Row<CheckArgs>] = &[
    own("ignore", "RULE", FlagForm::Item, "exclude this rule from the check", |to: &mut CheckArgs, flag, value| {
        to.ignored.push(text(flag, value)?);
        Ok(())
    })
    .begins("The check"),
    output(|to, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    }),
    json(|to| to.output = Output::Json),
];

/// The flags of `init` and `status`.
pub(crate) const OUTPUT: &[Row<OutputArgs>] = &[
    output(|to: &mut OutputArgs, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    })
    .begins("Output"),
    json(|to| to.output = Output::Json),
];

pub(crate) const SCHEMA: &[Row<SchemaArgs>] = &[
    own_switch("inbound", "only the messages to spektacular", |to: &mut SchemaArgs| to.scopes.push(MessageSet::Inbound))
        .begins("Messages"),
    own_switch("outbound", "only the frames from spektacular", |to| to.scopes.push(MessageSet::Outbound)),
    own("type", "TYPE", FlagForm::Text, "only one message or frame", |to: &mut SchemaArgs, flag, value| {
        let all: Vec<(&str, &str)> = TYPES.iter().map(|name| (*name, *name)).collect();
        to.scopes.push(MessageSet::Type(one_of(flag, &value, &all)?.to_owned()));
        Ok(())
    })
    .values(TYPES),
    own_switch("strict", "refuse what this version does not send", |to: &mut SchemaArgs| to.unknown = UnknownParts::Refused).more(
        "Without it, a frame may have types, kinds, fields and codes that a later version adds, which clients ignore.\nA message to spektacular may never have a field that this version does not know.",
    ),
];

pub(crate) const ACP: &[Row<AcpArgs>] = &[
    agent("the agent of every session", |to: &mut AcpArgs, flag, value| {
        to.agent = Some(text(flag, value)?);
        Ok(())
    })
    .begins("The sessions"),
    own(
        "set",
        "KEY=VALUE",
        FlagForm::Pair,
        "a field of run.start for every session",
        |to: &mut AcpArgs, flag, value| to.set(flag, value),
    )
    .more("The keys and values are those of config set."),
];

pub(crate) const INTEGRATE: &[Row<IntegrateArgs>] = &[
    own("out", "DIR", FlagForm::Text, "write the files into this folder", |to: &mut IntegrateArgs, _, value| {
        to.out = Some(value.into());
        Ok(())
    })
    .begins("The files"),
    own_switch("force", "write into a folder that is not empty", |to| to.force = true),
];

pub(crate) const DEMO: &[Row<DemoArgs>] = &[
    output(|to: &mut DemoArgs, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    })
    .begins("Output"),
    json(|to| to.output = Output::Json),
];

pub(crate) const REPLAY: &[Row<Replay>] =
    &[own_switch("strict", "fail if the host deviates from the recording", |to: &mut Replay| to.strict = true)
        .begins("Playing")];

pub(crate) const REPORT: &[Row<ReportArgs>] = &[
    own("out", "FILE", FlagForm::Text, "write to a file, completely or not at all", |to: &mut ReportArgs, _, value| {
        to.out = Some(value.into());
        Ok(())
    })
    .short('o')
    .begins("The page"),
    own_switch("force", "let --out replace an existing file", |to| to.force = true),
];

pub(crate) const PROTOCOL_CHECK: &[Row<ProtocolCheckArgs>] = &[
    own("dialogue", "NAME", FlagForm::Item, "play only this dialogue", |to: &mut ProtocolCheckArgs, flag, value| {
        to.dialogues.push(text(flag, value)?);
        Ok(())
    })
    .begins("The check"),
    own(
        "timeout",
        "SECONDS",
        FlagForm::Text,
        "limit for a run of COMMAND",
        |to: &mut ProtocolCheckArgs, flag, value| {
            to.timeout = Some(seconds(flag, &value)?);
            Ok(())
        },
    )
    .default("20")
    .more("A question waits for half of it."),
    output(|to, flag, value| {
        to.output = Output::read(flag, &value)?;
        Ok(())
    }),
    json(|to| to.output = Output::Json),
];

#[cfg(test)]
mod tests {
    use super::super::row::{GivenFlag, Row, store};
    use super::{
        ACP, ADHOC, AGENTS, CHECK, CONFIG, DEMO, EXPORT, INTEGRATE, OPEN, OUTPUT, PROTOCOL_CHECK, REPLAY, REPORT,
        SCHEMA,
    };
    use std::fmt::Debug;

    /// Each flag with a value other than the default changes the result.
    fn every_flag_is_stored<T: Debug + Default>(rows: &'static [Row<T>]) {
        let nothing = format!("{:?}", T::default());
        for (at, Row { flag, .. }) in rows.iter().enumerate() {
            let samples = [
                "json",
                "cancel",
                "NAME=a",
                "20000",
                "{}",
                "jsonl",
                "allow",
                "full",
                "true",
                "[]",
                "model=a",
                "workspace",
            ];
            let stored = samples.iter().chain(flag.values).filter_map(|value| {
                let given = GivenFlag { at, value: (*value).into() };
                Some(format!("{:?}", store(rows, vec![given]).ok()?))
            });
            assert!(stored.into_iter().any(|read| read != nothing), "--{} is not stored", flag.long);
        }
    }

    #[test]
    fn every_flag_of_every_command_is_stored() {
        every_flag_is_stored(ADHOC);
        every_flag_is_stored(AGENTS);
        every_flag_is_stored(EXPORT);
        every_flag_is_stored(OPEN);
        every_flag_is_stored(CONFIG);
        every_flag_is_stored(REPLAY);
        every_flag_is_stored(REPORT);
        every_flag_is_stored(CHECK);
        every_flag_is_stored(OUTPUT);
        every_flag_is_stored(SCHEMA);
        every_flag_is_stored(PROTOCOL_CHECK);
        every_flag_is_stored(DEMO);
        every_flag_is_stored(INTEGRATE);
        every_flag_is_stored(ACP);
        assert!(ADHOC.iter().any(|row| row.flag.field.is_some_and(|field| field.name == "cwd")));
    }
}

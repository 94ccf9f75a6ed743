//! Every command: its flags, its texts, its reader and its main function.

use super::{
    acp, agents, ask_server, config, demo, export, format_check, init, integrate, manual, open, prompts, protocol,
    protocol_check, replay, report, sessions, status,
};
use crate::cli::action::{Offers, actions};
use crate::cli::adhoc::stored;
use crate::cli::agents::{ACTIONS as AGENTS_ACTIONS, SESSIONS_ACTIONS};
use crate::cli::authors::{CHAT, IMPLEMENT, PLAN, SPEC};
use crate::cli::command::{Command, CommandText, ReadCommand, Runnable, Runs, Words};
use crate::cli::config::ACTIONS as CONFIG_ACTIONS;
use crate::cli::demo::ACTIONS as DEMO_ACTIONS;
use crate::cli::flags::{
    ACP, ADHOC, AGENTS, CHECK, CONFIG, DEMO, EXPORT, INTEGRATE, OPEN, OUTPUT, PROTOCOL_CHECK, REPLAY, REPORT, SCHEMA,
    SESSIONS,
};
use crate::cli::row::{GivenFlag, Row, flags, store};
use crate::cli::{self, Wrong, foreign, no_words};
use crate::help::complete::Shell;
use crate::help::texts;
use crate::integrate::{NAMES, WITHOUT_FILES};
use crate::protocol::publish::{Client, Language};
use crate::protocol::words::WorkflowKind;
use crate::workflow::template::PromptKind;
use std::ffi::OsString;

/// All commands, in the order of the help.
pub static COMMANDS: &[Command] = &[
    Command {
        other_names: &["run", "exec"],
        words: Words::Free("[PROMPT... | -]", Offers::Nothing),
        flags: &flags::<_, { ADHOC.len() }>(ADHOC),
        foreign: foreign::FLAGS,
        runs: Runs::Adhoc,
        ..row("adhoc", &texts::ADHOC, |given, words| {
            Ok(Runnable::Run(Box::new(cli::adhoc::read(stored(ADHOC, given)?, words)?)))
        })
    },
    Command {
        words: Words::Free("[PROMPT... | -]", Offers::Nothing),
        flags: &flags::<_, { CHAT.len() }>(CHAT),
        foreign: foreign::FLAGS,
        runs: Runs::Chat,
        ..row("chat", &texts::CHAT, |given, words| {
            Ok(Runnable::Run(Box::new(cli::adhoc::read_chat(stored(CHAT, given)?, words)?)))
        })
    },
    Command {
        flags: &flags::<_, { OUTPUT.len() }>(OUTPUT),
        ..row("init", &texts::INIT, |given, words| {
            Ok(Runnable::new(flags_alone(("init", OUTPUT), given, &words)?, |typed| init::run(&typed)))
        })
    },
    Command {
        words: Words::Free("[DESCRIPTION... | -]", Offers::Nothing),
        below: SPEC_CHECK,
        flags: &flags::<_, { SPEC.len() }>(SPEC),
        foreign: foreign::FLAGS,
        runs: Runs::Workflow(WorkflowKind::Spec),
        page: include_str!("../workflow/reference.md"),
        ..row("spec", &texts::SPEC, |given, words| {
            Ok(Runnable::Run(Box::new(cli::adhoc::read_workflow(WorkflowKind::Spec, stored(SPEC, given)?, words)?)))
        })
    },
    Command {
        words: Words::Free("SPEC [WORDS...]", Offers::Specs),
        below: PLAN_CHECK,
        flags: &flags::<_, { PLAN.len() }>(PLAN),
        foreign: foreign::FLAGS,
        runs: Runs::Workflow(WorkflowKind::Plan),
        ..row("plan", &texts::PLAN, |given, words| {
            Ok(Runnable::Run(Box::new(cli::adhoc::read_workflow(WorkflowKind::Plan, stored(PLAN, given)?, words)?)))
        })
    },
    Command {
        words: Words::Free("PLAN", Offers::Plans),
        flags: &flags::<_, { IMPLEMENT.len() }>(IMPLEMENT),
        foreign: foreign::FLAGS,
        runs: Runs::Workflow(WorkflowKind::Implement),
        ..row("implement", &texts::IMPLEMENT, |given, words| {
            Ok(Runnable::Run(Box::new(cli::adhoc::read_workflow(
                WorkflowKind::Implement,
                stored(IMPLEMENT, given)?,
                words,
            )?)))
        })
    },
    Command {
        flags: &flags::<_, { OUTPUT.len() }>(OUTPUT),
        ..row("status", &texts::STATUS, |given, words| {
            Ok(Runnable::new(flags_alone(("status", OUTPUT), given, &words)?, |typed| status::run(&typed)))
        })
    },
    Command {
        words: Words::Free("[NAME]", Offers::Words(PromptKind::WORDS)),
        ..row("prompts", &texts::PROMPTS, |_, words| Ok(Runnable::new(prompts::named(&words)?, prompts::run)))
    },
    Command {
        words: Words::Actions(&actions::<_, { CONFIG_ACTIONS.len() }>(CONFIG_ACTIONS)),
        flags: &flags::<_, { CONFIG.len() }>(CONFIG),
        page: texts::CONFIG_PAGE,
        ..row("config", &texts::CONFIG, |given, words| {
            Ok(Runnable::new(cli::config::read(store(CONFIG, given)?, words)?, |typed| config::run(&typed)))
        })
    },
    Command {
        words: Words::Actions(&actions::<_, { AGENTS_ACTIONS.len() }>(AGENTS_ACTIONS)),
        flags: &flags::<_, { AGENTS.len() }>(AGENTS),
        page: include_str!("../agent/reference.md"),
        ..row("agents", &texts::AGENTS, |given, words| {
            Ok(Runnable::new(cli::agents::agents(store(AGENTS, given)?, words)?, |typed| agents::run(&typed)))
        })
    },
    Command {
        words: Words::Actions(&actions::<_, { SESSIONS_ACTIONS.len() }>(SESSIONS_ACTIONS)),
        flags: &flags::<_, { SESSIONS.len() }>(SESSIONS),
        foreign: foreign::SESSIONS_FLAGS,
        ..row("sessions", &texts::SESSIONS, |given, words| {
            Ok(Runnable::new(cli::agents::sessions(store(SESSIONS, given)?, words)?, |typed| sessions::run(&typed)))
        })
    },
    Command {
        words: Words::Free("[SESSION]", Offers::Sessions),
        flags: &flags::<_, { EXPORT.len() }>(EXPORT),
        ..row("export", &texts::EXPORT, |given, words| {
            Ok(Runnable::new(cli::agents::export(store(EXPORT, given)?, words)?, |typed| export::run(&typed)))
        })
    },
    Command {
        words: Words::Free("[PROMPT...]", Offers::Nothing),
        flags: &flags::<_, { OPEN.len() }>(OPEN),
        ..row("open", &texts::OPEN, |given, words| {
            Ok(Runnable::new(cli::agents::open(store(OPEN, given)?, words)?, |typed| open::run(&typed)))
        })
    },
    Command {
        flags: &flags::<_, { ACP.len() }>(ACP),
        page: include_str!("../acp/reference.md"),
        ..row("acp", &texts::ACP, |given, words| {
            Ok(Runnable::new(flags_alone(("acp", ACP), given, &words)?, |typed| acp::run(&typed)))
        })
    },
    Command {
        words: Words::Free("[NAME]", Offers::Words(NAMES)),
        flags: &flags::<_, { INTEGRATE.len() }>(INTEGRATE),
        page: include_str!("../integrate/openclaw.md"),
        ..row("integrate", &texts::INTEGRATE, |given, words| {
            let read = cli::integrate::integrate((NAMES, WITHOUT_FILES), store(INTEGRATE, given)?, words)?;
            Ok(Runnable::new(read, |typed| integrate::run(&typed)))
        })
    },
    Command {
        words: Words::Free("[SECTION...]", Offers::Sections),
        below: PROTOCOL,
        ..row("protocol", &texts::PROTOCOL, |_, words| {
            Ok(Runnable::new(cli::protocol::named_section(&words)?, protocol::reference))
        })
    },
    row("ask-server", &texts::ASK_SERVER, |_, words| {
        Ok(Runnable::new(no_words("ask-server", &words)?, |()| ask_server::run()))
    }),
    Command {
        words: Words::Actions(&actions::<_, { DEMO_ACTIONS.len() }>(DEMO_ACTIONS)),
        flags: &flags::<_, { DEMO.len() }>(DEMO),
        ..row("demo", &texts::DEMO, |given, words| {
            Ok(Runnable::new(cli::demo::read(store(DEMO, given)?, words)?, |typed| demo::run(&typed)))
        })
    },
    Command {
        words: Words::Free("FILE [-- ARGUMENTS...]", Offers::Files),
        flags: &flags::<_, { REPLAY.len() }>(REPLAY),
        ..row("replay", &texts::REPLAY, |given, words| {
            Ok(Runnable::new(cli::replay(store(REPLAY, given)?, words)?, |typed| replay::run(&typed)))
        })
    },
    Command {
        words: Words::Free("FILE...", Offers::Files),
        flags: &flags::<_, { REPORT.len() }>(REPORT),
        ..row("report", &texts::REPORT, |given, words| {
            Ok(Runnable::new(cli::report(store(REPORT, given)?, words)?, |typed| report::run(&typed)))
        })
    },
    Command {
        words: Words::Free("bash | zsh | fish | elvish | powershell", Offers::Words(Shell::NAMES)),
        ..row("completions", &texts::COMPLETIONS, |_, words| {
            Ok(Runnable::new(manual::shell(&words)?, manual::completions))
        })
    },
    row("man", &texts::MAN, |_, words| Ok(Runnable::new(no_words("man", &words)?, |()| manual::man(COMMANDS)))),
    Command {
        words: Words::Free("[COMMAND]", Offers::Commands),
        ..row("help", &texts::HELP, |_, words| {
            Ok(Runnable::new(cli::explained(COMMANDS, &words)?, |shown| manual::help(COMMANDS, shown)))
        })
    },
];

/// The commands below `spec`.
static SPEC_CHECK: &[Command] = &[Command {
    words: Words::Free("FILE...", Offers::Files),
    flags: &flags::<_, { CHECK.len() }>(CHECK),
    ..row("spec check", &texts::SPEC_CHECK, |given, words| {
        Ok(Runnable::new(cli::workflow::check(("FILE", CHECK), given, words)?, |typed| format_check::specs(&typed)))
    })
}];

/// The commands below `plan`.
static PLAN_CHECK: &[Command] = &[Command {
    words: Words::Free("PLAN...", Offers::Plans),
    flags: &flags::<_, { CHECK.len() }>(CHECK),
    ..row("plan check", &texts::PLAN_CHECK, |given, words| {
        Ok(Runnable::new(cli::workflow::check(("PLAN", CHECK), given, words)?, |typed| format_check::plans(&typed)))
    })
}];

/// The commands below `protocol`.
static PROTOCOL: &[Command] = &[
    Command {
        flags: &flags::<_, { SCHEMA.len() }>(SCHEMA),
        ..row("protocol schema", &texts::PROTOCOL_SCHEMA, |given, words| {
            Ok(Runnable::new(cli::protocol::schema(SCHEMA, given, &words)?, protocol::schema))
        })
    },
    Command {
        words: Words::Free("ts | python", Offers::Words(Language::WORDS)),
        ..row("protocol types", &texts::PROTOCOL_TYPES, |_, words| {
            let language = cli::protocol::language("protocol types", &words, Language::WORDS, Language::from_word)?;
            Ok(Runnable::new(language, protocol::types))
        })
    },
    Command {
        words: Words::Free("ts | python | python-asyncio", Offers::Words(Client::WORDS)),
        ..row("protocol client", &texts::PROTOCOL_CLIENT, |_, words| {
            let client = cli::protocol::language("protocol client", &words, Client::WORDS, Client::from_word)?;
            Ok(Runnable::new(client, protocol::client))
        })
    },
    row("protocol examples", &texts::PROTOCOL_EXAMPLES, |_, words| {
        Ok(Runnable::new(no_words("protocol examples", &words)?, |()| protocol::examples()))
    }),
    Command {
        flags: &flags::<_, { OUTPUT.len() }>(OUTPUT),
        ..row("protocol version", &texts::PROTOCOL_VERSION, |given, words| {
            let read = flags_alone(("protocol version", OUTPUT), given, &words)?;
            Ok(Runnable::new(read, |typed| protocol::version(&typed)))
        })
    },
    Command {
        words: Words::Free("-- COMMAND...", Offers::Files),
        flags: &flags::<_, { PROTOCOL_CHECK.len() }>(PROTOCOL_CHECK),
        ..row("protocol check", &texts::PROTOCOL_CHECK, |given, words| {
            Ok(Runnable::new(cli::protocol::check(PROTOCOL_CHECK, given, words)?, protocol_check::run))
        })
    },
];

/// Reads the flags of the command `name`, which takes no words.
fn flags_alone<T: Default>(
    (name, rows): (&str, &'static [Row<T>]),
    given: Vec<GivenFlag>,
    words: &[OsString],
) -> Result<T, Wrong> {
    no_words(name, words)?;
    store(rows, given)
}

/// Creates a command without words and flags, which starts no run.
const fn row(name: &'static str, text: &'static CommandText, read: ReadCommand) -> Command {
    let words = Words::Free("", Offers::Nothing);
    let (other_names, flags, foreign, below) = (&[], &[], &[], &[]);
    Command { name, other_names, text, page: "", words, flags, foreign, below, read, runs: Runs::Nothing }
}

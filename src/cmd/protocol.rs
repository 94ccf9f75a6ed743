//! `protocol` and the commands below it: the reference, and what is generated from the declarations.

use crate::cli::Output;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{FlagForm, GivenFlag, OutputArgs, Row, flags, own, own_switch, store_alone};
use crate::cli::{Wrong, no_words, one_of, one_word};
use crate::io::output::deliver;
use crate::json::to_line;
use crate::protocol::messages::TYPES as MESSAGES;
use crate::protocol::outbound::ProtocolVersion;
use crate::protocol::publish::{self, Client, Language, REFERENCE};
use crate::protocol::publish::{MessageSet, UnknownParts, section, section_names};
use crate::suggest::{Typed, Unknown};
use serde_json::json;
use std::ffi::OsString;

pub(super) const COMMAND: Command = Command {
    words: Words::Free("[SECTION...]", Offers::Sections),
    below: BELOW,
    ..Command::named(
        "protocol",
        &CommandText {
            about: "print the protocol: reference, schema, types, clients, examples; check a client",
            more: "\
Without SECTION, it prints the whole reference. SECTION is a heading, or the name of a message, a kind, a field or a code.
TYPE.FIELD is the field of one message: run.start.timeout_s.",
            examples: &[
                ("spektacular protocol | less", "read it page by page"),
                ("spektacular protocol run.question", "read the section about a message"),
                ("spektacular protocol rate_limited", "read the section that explains a code"),
                ("spektacular protocol changes", "list the additions of each minor version"),
            ],
        },
        |_, words| {
            Ok(Runnable::new(named_section(&words)?, |section| deliver(section.as_deref().unwrap_or(REFERENCE))))
        },
    )
};

static BELOW: &[Command] = &[SCHEMA, TYPES, CLIENT, EXAMPLES, VERSION, super::protocol_check::COMMAND];

const SCHEMA: Command = Command {
    flags: &flags::<_, { SCHEMA_FLAGS.len() }>(SCHEMA_FLAGS),
    ..Command::named(
        "protocol schema",
        &CommandText {
            about: "print the JSON Schema of the protocol's messages",
            more: "It is JSON Schema 2020-12 and describes each line of stdin and stdout as a separate value.",
            examples: &[
                ("spektacular protocol schema --outbound > frames.schema.json", "check what an orchestrator reads"),
                ("spektacular protocol schema --inbound > messages.schema.json", "check what an orchestrator writes"),
                ("spektacular protocol schema --type run.question", "describe one message"),
                ("spektacular protocol schema --outbound --strict", "compare this version with another one"),
            ],
        },
        |given, words| Ok(Runnable::new(read_schema(given, words)?, schema)),
    )
};

const TYPES: Command = Command {
    words: Words::Free("ts | python", Offers::Words(Language::WORDS)),
    ..Command::named(
        "protocol types",
        &CommandText {
            about: "print types of the protocol's messages for a language",
            more: "\
One file without dependencies: TypeScript with unions discriminated by `type` and `kind`, or TypedDicts for Python 3.9.
Message is what an orchestrator writes, Frame what it reads.",
            examples: &[
                ("spektacular protocol types ts > spektacular-types.ts", "for TypeScript"),
                ("spektacular protocol types python > spektacular_types.py", "for Python"),
            ],
        },
        |_, words| {
            let language = one_word("protocol types", "language", &words, Language::WORDS, Language::from_word)?;
            Ok(Runnable::new(language, |language| deliver(language.types())))
        },
    )
};

const CLIENT: Command = Command {
    words: Words::Free("ts | python | python-asyncio", Offers::Words(Client::WORDS)),
    ..Command::named(
        "protocol client",
        &CommandText {
            about: "print a client to copy into a project",
            more: "\
One file without dependencies. It starts a run, yields its frames, hands each question to a callback, can cancel a run and
hold a conversation, and detects a run that dies. Its header has an example. It ends with the types of spektacular protocol types.",
            examples: &[
                ("spektacular protocol client python > spektacular.py", "for Python 3.9"),
                ("spektacular protocol client python-asyncio > spektacular_asyncio.py", "for an asyncio event loop"),
                ("spektacular protocol client ts > spektacular.ts", "for Node.js 18"),
            ],
        },
        |_, words| {
            let client = one_word("protocol client", "language", &words, Client::WORDS, Client::from_word)?;
            Ok(Runnable::new(client, |client| deliver(&client.file())))
        },
    )
};

const EXAMPLES: Command = Command {
    ..Command::named(
        "protocol examples",
        &CommandText {
            about: "print one example per message, one per line",
            more: "The examples are those of the reference: each form of each message, each frame, and each kind of run.progress.",
            examples: &[("spektacular protocol examples | grep run.progress", "see each kind of progress")],
        },
        |_, words| Ok(Runnable::new(no_words("protocol examples", &words)?, |()| deliver(publish::EXAMPLES))),
    )
};

const VERSION: Command = Command {
    flags: &flags::<_, { OutputArgs::FLAGS.len() }>(OutputArgs::FLAGS),
    ..Command::named(
        "protocol version",
        &CommandText {
            about: "print the version of the protocol",
            more: "The version is MAJOR.MINOR. With --output json, it is the object `protocol` of run.started.",
            examples: &[("spektacular protocol version", "print it")],
        },
        |given, words| {
            Ok(Runnable::new(store_alone("protocol version", OutputArgs::FLAGS, given, &words)?, |args| version(&args)))
        },
    )
};

const SCHEMA_FLAGS: &[Row<SchemaArgs>] = &[
    own_switch("inbound", "only the messages to spektacular", |to: &mut SchemaArgs| to.scopes.push(MessageSet::Inbound))
        .begins("Messages"),
    own_switch("outbound", "only the frames from spektacular", |to| to.scopes.push(MessageSet::Outbound)),
    own("type", "TYPE", FlagForm::Text, "only one message or frame", |to: &mut SchemaArgs, flag, value| {
        let all: Vec<(&str, &str)> = MESSAGES.iter().map(|name| (*name, *name)).collect();
        to.scopes.push(MessageSet::Type(one_of(flag.long, &value, &all)?.to_owned()));
        Ok(())
    })
    .values(MESSAGES),
    own_switch("strict", "refuse what this version does not send", |to: &mut SchemaArgs| to.unknown = UnknownParts::Refused).more(
        "Without it, a frame may have types, kinds, fields and codes that a later version adds, which clients ignore.\nA message to spektacular may never have a field that this version does not know.",
    ),
];

#[derive(Debug, Default)]
struct SchemaArgs {
    /// The values of `--inbound`, `--outbound` and `--type`. At most one.
    scopes: Vec<MessageSet>,
    unknown: UnknownParts,
}

fn read_schema(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<SchemaArgs, Wrong> {
    let args: SchemaArgs = store_alone("protocol schema", SCHEMA_FLAGS, given, &words)?;
    match args.scopes.len() {
        0 | 1 => Ok(args),
        _ => Err("Give only one of --inbound, --outbound and --type.".into()),
    }
}

/// `None`: there are no words.
fn named_section(words: &[OsString]) -> Result<Option<String>, Wrong> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let name = words.join(" ");
    if name.is_empty() {
        return Ok(None);
    }
    let unknown = Unknown { what: "section", dashes: "", typed: Typed::Value(&name), place: "" };
    let otherwise =
        "Give a heading, a message, a kind, a field or a code; `spektacular protocol` prints the whole page.";
    section(&name).map(Some).ok_or_else(|| unknown.message(section_names().into_iter(), otherwise))
}

fn schema(typed: SchemaArgs) -> u8 {
    let scope = typed.scopes.into_iter().next().unwrap_or_default();
    deliver(&publish::schema(&scope, typed.unknown))
}

fn version(typed: &OutputArgs) -> u8 {
    let ProtocolVersion { v, minor, spektacular } = ProtocolVersion::OURS;
    let text = match typed.output {
        Output::Cli => publish::version(),
        Output::Json => to_line(&json!({"v": v, "minor": minor, "spektacular": spektacular})),
    };
    deliver(&format!("{text}\n"))
}

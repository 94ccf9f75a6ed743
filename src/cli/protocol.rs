//! The command lines of `protocol` and of the commands below it.

use super::row::{GivenFlag, Row, store};
use super::{Output, Wrong, no_words};
use crate::protocol::publish::{MessageSet, UnknownParts, section, section_names};
use crate::protocol::request::Seconds;
use crate::suggest::{Typed, Unknown, either, hint};
use std::ffi::OsString;

/// The arguments of `protocol schema`.
#[derive(Debug, Default)]
pub struct SchemaArgs {
    /// The values of `--inbound`, `--outbound` and `--type`. At most one.
    pub scopes: Vec<MessageSet>,
    /// Refused if `--strict` is given.
    pub unknown: UnknownParts,
}

/// The arguments of `protocol check`.
#[derive(Debug, Default)]
pub struct ProtocolCheckArgs {
    /// The command that starts the client. Not empty.
    pub command: Vec<OsString>,
    /// The values of `--dialogue`. Empty: all dialogues.
    pub dialogues: Vec<String>,
    /// The value of `--timeout`.
    pub timeout: Option<Seconds>,
    /// The value of `--output`.
    pub output: Output,
}

/// Reads the flags and words of `protocol check`.
pub(crate) fn check(
    rows: &'static [Row<ProtocolCheckArgs>],
    given: Vec<GivenFlag>,
    words: Vec<OsString>,
) -> Result<ProtocolCheckArgs, Wrong> {
    if words.is_empty() {
        return Err("Missing COMMAND: give the command that starts your client, after --.".into());
    }
    Ok(ProtocolCheckArgs { command: words, ..store(rows, given)? })
}

/// Reads the flags of `protocol schema`.
pub(crate) fn schema(
    rows: &'static [Row<SchemaArgs>],
    given: Vec<GivenFlag>,
    words: &[OsString],
) -> Result<SchemaArgs, Wrong> {
    no_words("protocol schema", words)?;
    let args = store(rows, given)?;
    match args.scopes.len() {
        0 | 1 => Ok(args),
        _ => Err("Give only one of --inbound, --outbound and --type.".into()),
    }
}

/// The language that the word after `command` names.
pub(crate) fn language<T>(
    command: &str,
    words: &[OsString],
    known: &'static [&'static str],
    parse: fn(&str) -> Option<T>,
) -> Result<T, Wrong> {
    let names = either(known);
    match words {
        [] => Err(format!("Missing language: {names}.")),
        [name] => {
            let name = name.to_string_lossy();
            let hint = hint(&name, known.iter().copied());
            parse(&name).ok_or_else(|| format!("The language must be {names}.{hint}"))
        }
        _ => Err(format!("Too many words: {command} takes one language: {names}.")),
    }
}

/// The section that the words after `protocol` name. `None`: there are no words.
pub(crate) fn named_section(words: &[OsString]) -> Result<Option<String>, Wrong> {
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

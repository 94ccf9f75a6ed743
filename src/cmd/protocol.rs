//! `protocol` and the commands below it: the reference, and what is generated from the declarations.

use crate::cli::{Output, OutputArgs, SchemaArgs};
use crate::io::output::deliver;
use crate::json::to_line;
use crate::protocol::outbound::ProtocolVersion;
use crate::protocol::publish::{self, Client, Language, REFERENCE};
use serde_json::json;

/// Prints the reference, or one section of it; returns the exit code.
pub(super) fn reference(section: Option<String>) -> u8 {
    deliver(section.as_deref().unwrap_or(REFERENCE))
}

/// Prints the JSON Schema; returns the exit code.
pub(super) fn schema(typed: SchemaArgs) -> u8 {
    let scope = typed.scopes.into_iter().next().unwrap_or_default();
    deliver(&publish::schema(&scope, typed.unknown))
}

/// Prints the types for a language; returns the exit code.
pub(super) fn types(language: Language) -> u8 {
    deliver(language.types())
}

/// Prints a client; returns the exit code.
pub(super) fn client(client: Client) -> u8 {
    deliver(&client.file())
}

/// Prints the examples; returns the exit code.
pub(super) fn examples() -> u8 {
    deliver(publish::EXAMPLES)
}

/// Prints the version of the protocol; returns the exit code.
pub(super) fn version(typed: &OutputArgs) -> u8 {
    let ProtocolVersion { v, minor, spektacular } = ProtocolVersion::OURS;
    let text = match typed.output {
        Output::Cli => publish::version(),
        Output::Json => to_line(&json!({"v": v, "minor": minor, "spektacular": spektacular})),
    };
    deliver(&format!("{text}\n"))
}

//! The command line of `acp`.

use super::row::Flag;
use super::{Wrong, text};
use crate::cli::typed_fields;
use crate::protocol::fields;
use crate::protocol::request::Options;
use crate::suggest::{Typed, Unknown};
use serde_json::value::RawValue;
use std::ffi::OsString;

/// The arguments of `acp`.
#[derive(Debug, Default)]
pub struct AcpArgs {
    /// The value of `--agent`.
    pub agent: Option<String>,
    /// The fields of run.start that `--set` sets, as JSON, in order.
    pub fields: Vec<(&'static str, Box<RawValue>)>,
    /// The same fields, read.
    pub options: Options,
}

/// The fields that belong to a session or to its client.
const OWN: [&str; 9] =
    ["prompt", "agent", "cwd", "session_id", "fork", "images", "conversation", "progress", "metadata"];

impl AcpArgs {
    /// Stores a value of `--set`.
    pub(super) fn set(&mut self, flag: &Flag, value: OsString) -> Result<(), Wrong> {
        let pair = text(flag, value)?;
        let (name, value) = pair.split_once('=').ok_or(format!("--{} must be {}.", flag.long, flag.metavar))?;
        let known = || fields::FIELDS.iter().map(|field| field.name).filter(|name| !OWN.contains(name));
        let Some(field) = fields::find(name).filter(|field| !OWN.contains(&field.name)) else {
            let unknown = Unknown { what: "key", dashes: "", typed: Typed::Name(name), place: " of --set" };
            return Err(unknown.message(known(), "`spektacular help adhoc` lists the fields of run.start."));
        };
        let raw =
            typed_fields::value(field.name, value).map_err(|why| format!("--{}: {} {why}.", flag.long, field.name))?;
        let set = self.options.set(field.name, &raw);
        set.map_err(|problem| {
            format!("--{}: {} {}.", flag.long, field.name, typed_fields::clause(field.name, &problem))
        })?;
        self.fields.retain(|(other, _)| *other != field.name);
        self.fields.push((field.name, raw));
        Ok(())
    }
}

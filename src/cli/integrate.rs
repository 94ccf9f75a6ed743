//! The command line of `integrate`.

use super::Wrong;
use crate::suggest::{Typed, Unknown, either};
use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments of `integrate`.
#[derive(Debug, Default)]
pub struct IntegrateArgs {
    /// The program to integrate with. `None`: list all.
    pub with: Option<String>,
    /// The value of `--out`.
    pub out: Option<PathBuf>,
    /// Whether `--force` is given.
    pub force: bool,
}

/// Adds the words of `integrate`. `known`: the names of the integrations. `printed`: of those without files.
pub(crate) fn integrate(
    (known, printed): (&[&str], &[&str]),
    mut typed: IntegrateArgs,
    words: Vec<OsString>,
) -> Result<IntegrateArgs, Wrong> {
    let mut words = words.into_iter();
    let Some(name) = words.next() else {
        if typed.out.is_some() || typed.force {
            return Err(format!("Missing NAME: {}.", either(known)));
        }
        return Ok(typed);
    };
    if words.next().is_some() {
        return Err("Too many words: integrate takes one NAME.".into());
    }
    let name = name.to_string_lossy();
    if !known.contains(&&*name) {
        let unknown = Unknown { what: "integration", dashes: "", typed: Typed::Value(&name), place: "" };
        return Err(unknown.message(known.iter().copied(), "`spektacular integrate` lists the known ones."));
    }
    let has_files = !printed.contains(&&*name);
    if !has_files && (typed.out.is_some() || typed.force) {
        return Err(format!("integrate {name} writes no files: leave out --out and --force."));
    }
    if has_files && typed.out.is_none() {
        return Err(format!("Missing --out: spektacular integrate {name} --out DIR."));
    }
    typed.with = Some(name.into_owned());
    Ok(typed)
}

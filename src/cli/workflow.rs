//! The command lines of `init`, `status`, `spec check`, `plan check` and `prompts`.

use super::row::{GivenFlag, Row, store};
use super::{Output, Wrong};
use std::ffi::OsString;

/// The arguments of `spec check` and `plan check`.
#[derive(Debug, Default)]
pub struct CheckArgs {
    /// The files, as paths or names. At least one.
    pub files: Vec<OsString>,
    /// The rules that `--ignore` names.
    pub ignored: Vec<String>,
    /// The value of `--output`.
    pub output: Output,
}

/// The arguments of `init` and `status`.
#[derive(Debug, Default)]
pub struct OutputArgs {
    /// The value of `--output`.
    pub output: Output,
}

/// Reads the flags and words of a check. `what`: the words in its help.
pub(crate) fn check(
    (what, rows): (&str, &'static [Row<CheckArgs>]),
    given: Vec<GivenFlag>,
    words: Vec<OsString>,
) -> Result<CheckArgs, Wrong> {
    if words.is_empty() {
        return Err(format!("Missing {what}: give a name, or a path that contains / or ends in .md."));
    }
    Ok(CheckArgs { files: words, ..store(rows, given)? })
}

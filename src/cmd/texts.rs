//! Texts in files that the command line names: a prompt, a system prompt, answers, a field's JSON.

use crate::cli::Adhoc;
use crate::protocol::{limits, typed};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The longest text that is read from a file or a pipe, in bytes: as long as the longest inbound line.
const TEXT_BYTES: u64 = limits::INBOUND_LINE_BYTES as u64;

/// Where the prompt is.
pub(super) enum Prompt {
    /// On the command line.
    Text(String),
    /// In a file.
    File(PathBuf),
    /// On stdin, to its end.
    Stdin,
}

impl Prompt {
    /// What a dry run takes for a prompt when none is given.
    pub(super) fn stand_in() -> Prompt {
        Prompt::Text("{prompt}".into())
    }

    /// Where a command line says that it is.
    pub(super) fn of(adhoc: &Adhoc) -> Option<Prompt> {
        Some(match (&adhoc.prompt, &adhoc.prompt_file, adhoc.words.as_slice()) {
            (Some(text), ..) => Prompt::Text(text.clone()),
            (None, Some(file), _) if file == Path::new("-") => Prompt::Stdin,
            (None, Some(file), _) => Prompt::File(file.clone()),
            (None, None, []) => return None,
            (None, None, [dash]) if dash == "-" => Prompt::Stdin,
            (None, None, words) => Prompt::Text(words.join(" ")),
        })
    }

    /// The prompt itself. May wait for whoever writes it.
    ///
    /// # Errors
    /// One sentence for the person who gave it.
    pub(super) fn read(self) -> Result<String, String> {
        let text = match self {
            Prompt::Text(text) => text,
            Prompt::File(path) => file("--prompt-file", &path)?,
            Prompt::Stdin => read(io::stdin()).map_err(|error| why("The prompt", &error))?,
        };
        if text.trim().is_empty() { Err("The prompt is empty: say what to do.".into()) } else { Ok(text) }
    }
}

/// The text of a file that this flag names, without the line ends at its end.
///
/// # Errors
/// One sentence, without the file's name.
pub(super) fn file(flag: &str, path: &Path) -> Result<String, String> {
    File::open(path).and_then(read).map_err(|error| why(flag, &error))
}

/// The JSON in a file, for a field of run.start. `subject`: the flag or the key that names the file.
///
/// # Errors
/// One sentence, with the place of what is not JSON.
pub(super) fn value(subject: &str, field: &str, path: &Path) -> Result<Box<RawValue>, String> {
    let text = file(subject, path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        // Its own words could quote the file.
        return Err(format!("{subject}: invalid JSON in the file, line {}, column {}.", error.line(), error.column()));
    }
    typed::value(field, text).map_err(|why| format!("{subject} {why}."))
}

fn read(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(TEXT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_BYTES {
        return Err(ErrorKind::FileTooLarge.into());
    }
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

fn why(what: &str, error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::NotFound => "no such file",
        ErrorKind::PermissionDenied => "no permission to read the file",
        ErrorKind::IsADirectory => "this is a directory, not a file",
        ErrorKind::InvalidData => "the text must be UTF-8",
        ErrorKind::FileTooLarge => "the text is longer than 16 MiB: put it into a file that the agent reads",
        _ => "the file cannot be read",
    };
    format!("{what}: {why}.")
}

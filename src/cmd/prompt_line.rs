//! The facts of this machine for the prompt line of a conversation.

use super::sessions::listed;
use crate::clean::one_line;
use crate::cli::typed_fields::value;
use crate::config::Layers;
use crate::protocol::request::Options;
use crate::sessions::newest;
use crate::terminal::ChatPlace;
use std::path::{Path, PathBuf};

pub(super) fn surroundings(layers: &Layers) -> ChatPlace {
    let (options, agent) = layers.under(Options::default());
    let cwd = PathBuf::from(options.cwd.as_deref().unwrap_or("."));
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    let name = agent.map(|agent| agent.display_name.clone()).unwrap_or_default();
    let session = options.session_id.as_ref().map(|id| {
        let stored = newest(layers, Some(&cwd)).into_iter().find(|(_, stored)| stored.id == *id);
        let words = stored.map(|(_, stored)| stored.words).filter(|words| !words.is_empty());
        let words = words.map(|words| format!(" ({words})")).unwrap_or_default();
        let verb = if options.fork == Some(true) { "a copy of" } else { "continuing" };
        format!(", {verb} session {}{words}", one_line(id))
    });
    let about = format!("{name}{}", session.unwrap_or_else(|| ", a new session".to_owned()));
    let agents = layers.agents.iter().map(|agent| agent.name.clone()).collect();
    let (sessions, files, typed) = (listed(layers, &cwd), Some(files_below as _), Some(value as _));
    ChatPlace { about, sessions, agents, cwd, files, typed, ..ChatPlace::default() }
}

/// The files whose path below `cwd` begins with this text.
fn files_below(cwd: &Path, typed: &str) -> Vec<String> {
    /// The maximum number of entries of a folder that are read.
    const ENTRIES: usize = 4096;
    let (folder, name) = typed.rsplit_once('/').map_or(("", typed), |(folder, name)| (folder, name));
    let begin = if folder.is_empty() && !typed.starts_with('/') { String::new() } else { format!("{folder}/") };
    let entry = |entry: std::fs::DirEntry| {
        let found = entry.file_name().into_string().ok()?;
        // A mention ends at a blank.
        let fits = found.starts_with(name) && !found.contains(char::is_whitespace);
        let is_wanted = fits && (name.starts_with('.') || !found.starts_with('.'));
        let end = if is_wanted && entry.path().is_dir() { "/" } else { "" };
        is_wanted.then(|| format!("{begin}{found}{end}"))
    };
    let entries = std::fs::read_dir(cwd.join(&begin)).into_iter().flatten();
    entries.take(ENTRIES).filter_map(Result::ok).filter_map(entry).collect()
}

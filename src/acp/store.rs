//! The sessions that a client can resume: one small file for each, in the user's state folder. It holds the id of the
//! agent's own session, which holds the content.

use super::settings::Chosen;
use crate::clean::one_line;
use crate::io::files::{open_regular, state_folder};
use crate::json::{Object, to_line};
use serde_json::json;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// The maximum number of stored sessions. The oldest are removed.
const KEPT: usize = 200;
const FILE_BYTES: u64 = 64 << 10;
const HISTORY: &str = "history";
/// The size of a history, in bytes, above which its older half goes.
const HISTORY_BYTES: u64 = 8 << 20;
const TITLE: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredSession {
    /// The id that the client knows.
    pub(crate) id: String,
    pub(crate) agent: String,
    /// The agent's own id of the session.
    pub(crate) agent_session: String,
    pub(crate) cwd: String,
    /// The first words of the first prompt, redacted.
    pub(crate) title: String,
    /// The time of the last turn, as in RFC 3339. Empty for a session that is not stored yet.
    pub(crate) updated: String,
    pub(crate) runs: u64,
    pub(crate) chosen: Chosen,
}

pub(super) fn title(prompt: &str) -> String {
    // A prompt may be long: a title needs only its beginning.
    let words: String = prompt.split_whitespace().take(TITLE).flat_map(|word| [word, " "]).collect();
    one_line(&words).trim().chars().take(TITLE).collect()
}

impl StoredSession {
    fn line(&self) -> String {
        let StoredSession { id, agent, agent_session, cwd, title, updated, runs, chosen } = self;
        let mut line = json!({
            "id": id, "agent": agent, "agent_session": agent_session, "cwd": cwd, "title": title, "updated": updated,
            "runs": runs,
        });
        chosen.put(&mut line);
        to_line(&line)
    }

    fn read(text: &str) -> Option<StoredSession> {
        let object = Object::parse(text)?;
        // The id is a file's name.
        let id = object.string("id").filter(|id| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))?;
        Some(StoredSession {
            id,
            agent: object.string("agent")?,
            agent_session: object.string("agent_session")?,
            cwd: object.string("cwd")?,
            title: object.string("title").unwrap_or_default(),
            updated: object.string("updated").unwrap_or_default(),
            runs: object.count("runs").unwrap_or_default(),
            chosen: Chosen::read(&object),
        })
    }
}

/// `None`: the environment does not name a home directory.
fn folder() -> Option<PathBuf> {
    Some(state_folder()?.join("spektacular/acp"))
}

/// Newest first.
pub(super) fn all() -> Vec<StoredSession> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    // Twice the number that is kept: another process may add some before the oldest are removed.
    let texts = entries.take(2 * KEPT).filter_map(|entry| {
        let mut text = String::new();
        open_regular(&entry.path()).ok()?.take(FILE_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    });
    let mut found: Vec<StoredSession> = texts.filter_map(|text| StoredSession::read(&text)).collect();
    found.sort_by(|a, b| b.updated.cmp(&a.updated));
    found
}

pub(super) fn store(session: &StoredSession) -> io::Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let (new, file) = (folder.join(format!("{}.new", session.id)), folder.join(&session.id));
    let mut out = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    out.write_all(session.line().as_bytes())?;
    let is_new = !file.exists();
    fs::rename(new, file)?;
    if is_new {
        for old in all().into_iter().skip(KEPT) {
            let _ = fs::remove_file(folder.join(HISTORY).join(&old.id));
            let _ = fs::remove_file(folder.join(&old.id));
        }
    }
    Ok(())
}

/// Adds updates to the history of a session, a line each. The oldest go when it is long. Error: the system's.
pub(super) fn keep(id: &str, updates: &str) -> io::Result<()> {
    let Some(folder) = folder().map(|folder| folder.join(HISTORY)) else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let file = folder.join(id);
    let mut out = File::options().append(true).create(true).mode(0o600).open(&file)?;
    out.write_all(updates.as_bytes())?;
    if out.metadata()?.len() > HISTORY_BYTES {
        let all = history(id);
        let half = all.len() / 2;
        let newer = all.get(half..).or(all.get(half + 1..)).unwrap_or_default();
        let newer = newer.split_once('\n').map_or("", |(_, whole)| whole);
        let new = folder.join(format!("{id}.new"));
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(newer.as_bytes())?;
        fs::rename(new, file)?;
    }
    Ok(())
}

/// The history of a session: its updates, a line each.
pub(super) fn history(id: &str) -> String {
    let read = || {
        let mut bytes = Vec::new();
        let file = open_regular(&folder()?.join(HISTORY).join(id)).ok()?;
        file.take(2 * HISTORY_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Chosen, StoredSession, title};
    use crate::json::Object;

    #[test]
    fn a_stored_session_is_read_back() {
        let id = |text: &str| text.to_owned();
        let (agent, agent_session, cwd) = (id("demo"), id("a-1"), id("/w"));
        let chosen = Chosen::read(&Object::parse(r#"{"permissions":"allow","model":"m","effort":"low"}"#).unwrap());
        assert_ne!(chosen, Chosen::default());
        let (title, updated) = (id("Fix \"it\""), id("2026"));
        let stored = StoredSession { id: id("s"), agent, agent_session, cwd, title, updated, runs: 2, chosen };
        assert_eq!(StoredSession::read(&stored.line()), Some(stored));
        assert_eq!(StoredSession::read("{}"), None);
    }

    #[test]
    fn a_title_is_one_line_of_limited_length() {
        assert_eq!(title(" Fix\n the\ttest "), "Fix the test");
        assert_eq!(title(&"x".repeat(200)).len(), 80);
    }
}

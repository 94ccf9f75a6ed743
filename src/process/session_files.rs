//! The files in which an agent stores its sessions.

use crate::agent::native::{Environment, SessionFiles, SessionStore, fits, is_session_id};
use crate::agent::registry::Agent;
use crate::io::files::open_regular;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::request::Settings;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const LINE_BYTES: u64 = 1 << 20;
/// The length of a file's beginning in which the first message of a model is searched, in bytes.
const KEPT_BYTES: u64 = 16 << 20;
/// The length of a file's end that may hold the cost, in bytes.
const END_BYTES: u64 = 256 << 10;

/// The id must be one that [`is_session_id`] accepts.
pub(crate) fn find(files: &SessionFiles, id: &str, environment: Environment<'_>) -> Vec<PathBuf> {
    let Some(folder) = files.folder.path(environment) else { return Vec::new() };
    let mut found: Vec<PathBuf> = (files.paths)(id).iter().flat_map(|path| matches(&folder, path)).collect();
    let first_line = (files.first_line)(id);
    found.retain(|path| path.is_file() && begins(path, &first_line));
    found
}

/// A session that is not found is the agent's to report.
pub(super) fn make_loadable(files: &SessionFiles, id: &str, environment: Environment<'_>) -> Result<(), Failure> {
    let Some(name) = files.loadable.filter(|_| is_session_id(id)).map(|name| name(id)) else { return Ok(()) };
    let found = find(files, id, environment);
    if found.iter().any(|path| path.ends_with(&name)) {
        return Ok(());
    }
    // An agent that loaded the session elsewhere may have left files without a message.
    let size = |path: &PathBuf| path.metadata().map(|meta| meta.len()).unwrap_or_default();
    let Some(file) = found.into_iter().max_by_key(size) else { return Ok(()) };
    fs::rename(&file, file.with_file_name(name)).map_err(|_| {
        let message = "The agent's file of this session cannot be renamed, and the agent would damage the session if it loaded it: check the permissions of its folder.";
        Failure::new(Code::AgentError, message)
    })
}

/// Whether the agent can load the session later.
pub(crate) fn is_kept(files: &SessionFiles, id: &str, environment: Environment<'_>) -> bool {
    let Some(sign) = files.kept.filter(|_| is_session_id(id)) else { return true };
    let found = find(files, id, environment);
    // Nothing is known about a session that is stored elsewhere.
    found.is_empty()
        || found.iter().any(|path| {
            let Ok(file) = open_regular(path) else { return false };
            let mut lines = BufReader::new(file.take(KEPT_BYTES)).split(b'\n').map_while(Result::ok);
            lines.any(|line| String::from_utf8_lossy(&line).contains(sign))
        })
}

pub(crate) fn environment(agent: &Agent, settings: &Settings) -> impl Fn(&str) -> Option<OsString> {
    let own = |name: &str| settings.env.get(name).or_else(|| agent.base.env.get(name)).map(OsString::from);
    move |name| own(name).or_else(|| std::env::var_os(name))
}

/// In US dollars. `None`: the run begins a session, or the agent does not store the cost.
pub(crate) fn cost_before(agent: &Agent, settings: &Settings) -> Option<f64> {
    let Some(SessionStore::File(files)) = &agent.native().sessions else { return None };
    let cost = files.cost?;
    let id = settings.session_id.as_deref().filter(|id| is_session_id(id))?;
    let found = find(files, id, &environment(agent, settings));
    let modified = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).ok();
    let mut file = open_regular(&found.into_iter().max_by_key(modified)?).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(END_BYTES))).ok()?;
    let mut end = Vec::new();
    file.take(END_BYTES).read_to_end(&mut end).ok()?;
    String::from_utf8_lossy(&end).lines().rev().find_map(cost)
}

fn matches(folder: &Path, path: &str) -> Vec<PathBuf> {
    path.split('/').fold(vec![folder.to_owned()], |folders, part| {
        if !part.contains('*') {
            return folders.into_iter().map(|folder| folder.join(part)).collect();
        }
        let entries = folders.into_iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
        let fitting = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| fits(part, name)));
        fitting.map(|entry| entry.path()).collect()
    })
}

fn begins(path: &Path, text: &str) -> bool {
    let mut line = Vec::new();
    let read = open_regular(path).and_then(|file| BufReader::new(file.take(LINE_BYTES)).read_until(b'\n', &mut line));
    read.is_ok() && String::from_utf8_lossy(&line).contains(text)
}

#[cfg(test)]
mod tests {
    use super::{is_kept, make_loadable};
    use crate::agent::acp::agents::gemini::PROFILE as GEMINI;
    use crate::agent::native::SessionStore;
    use crate::protocol::failure::Code;
    use std::ffi::OsString;
    use std::fs;

    const ID: &str = "01234567-89ab-4def-8123-456789abcdef";
    const LOADABLE: &str = "session-0000-00-00T00-00-89abcdef.jsonl";

    #[test]
    fn the_file_with_the_session_gets_the_loadable_name_once() {
        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join(".gemini/tmp/project/chats");
        fs::create_dir_all(&chats).unwrap();
        let Some(SessionStore::File(files)) = &GEMINI.native.sessions else { panic!("no files") };
        let load = |id: &str| make_loadable(files, id, &|name| (name == "HOME").then(|| OsString::from(home.path())));
        let names = || {
            let mut names: Vec<_> =
                chats.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let (start, message) = (format!("{{\"sessionId\":\"{ID}\"}}\n"), "{\"type\":\"user\"}\n");
        let other = "session-2026-01-01T10-00-01234567.jsonl";
        // No file, the file of another session with the same digits, and an id that is no name.
        fs::write(chats.join(other), "{\"sessionId\":\"01234567-other\"}\n").unwrap();
        load(ID).unwrap();
        load("../../x").unwrap();
        assert_eq!(names(), [other]);
        fs::write(chats.join("session-2026-01-01T10-01-01234567.jsonl"), format!("{start}{message}")).unwrap();
        fs::write(chats.join("session-2026-01-01T10-02-01234567.jsonl"), &start).unwrap();
        load(ID).unwrap();
        assert_eq!(names(), [LOADABLE, other, "session-2026-01-01T10-02-01234567.jsonl"]);
        let session = format!("{start}{message}{message}");
        fs::write(chats.join(LOADABLE), &session).unwrap();
        load(ID).unwrap();
        assert_eq!(fs::read_to_string(chats.join(LOADABLE)).unwrap(), session);
    }

    #[test]
    fn a_session_without_a_message_of_its_model_is_not_kept() {
        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join(".gemini/tmp/project/chats");
        fs::create_dir_all(&chats).unwrap();
        let Some(SessionStore::File(files)) = &GEMINI.native.sessions else { panic!("no files") };
        let keeps = || is_kept(files, ID, &|name| (name == "HOME").then(|| OsString::from(home.path())));
        assert!(keeps(), "nothing is known about it");
        let user = format!("{{\"sessionId\":\"{ID}\"}}\n{{\"type\":\"user\"}}\n");
        fs::write(chats.join("session-2026-01-01T10-01-01234567.jsonl"), &user).unwrap();
        assert!(!keeps());
        fs::write(chats.join("session-2026-01-01T10-01-01234567.jsonl"), user + "{\"type\":\"gemini\"}\n").unwrap();
        assert!(keeps());
    }

    #[test]
    fn a_file_that_cannot_be_renamed_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join(".gemini/tmp/project/chats");
        // Even root cannot rename a file to the name of a folder.
        fs::create_dir_all(chats.join(LOADABLE)).unwrap();
        fs::write(chats.join("session-2026-01-01T10-00-01234567.jsonl"), format!("{{\"sessionId\":\"{ID}\"}}\n"))
            .unwrap();
        let Some(SessionStore::File(files)) = &GEMINI.native.sessions else { panic!("no files") };
        let failed = make_loadable(files, ID, &|name| (name == "HOME").then(|| OsString::from(home.path())));
        assert_eq!(failed.unwrap_err().code, Code::AgentError);
    }
}

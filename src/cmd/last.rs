//! The last session of each agent in a directory, for `--continue`: one small file per agent, in a folder that git ignores.

use crate::agent::registry::Layers;
use crate::io::files::OpenFolder;
use crate::protocol::limits;
use crate::protocol::request::Options;
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The folder of a project.
const FOLDER: &str = ".spektacular";
/// The subfolder for data of this machine.
const LOCAL: &str = "local";
/// The folder of session files in it.
const SESSIONS: &str = "sessions";
/// The way to the session files.
const PARTS: [&str; 3] = [FOLDER, LOCAL, SESSIONS];

/// The place of the last session of one agent in one directory.
pub(super) struct Last {
    cwd: PathBuf,
    agent: String,
}

impl Last {
    /// The place for the run that these options describe. `None`: the agent or the directory does not exist.
    pub(super) fn of(layers: &Layers, options: Options) -> Option<Last> {
        let (options, agent) = layers.under(options);
        let agent = agent?;
        let cwd = Path::new(options.cwd.as_deref().unwrap_or(".")).canonicalize().ok()?;
        // Agent names also come from a configuration, and this one becomes a file name.
        let plain = agent.name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        plain.then(|| Last { cwd, agent: agent.name.clone() })
    }

    /// The id of the session.
    pub(super) fn id(&self) -> Option<String> {
        let mut text = String::new();
        let folder = PARTS
            .iter()
            .try_fold(OpenFolder::open(&self.cwd).ok()?, |folder, part| folder.inner(part.as_ref()).ok())?;
        let file = folder.file(self.agent.as_ref(), OFlags::RDONLY, 0).ok()?;
        file.metadata().ok().filter(Metadata::is_file)?;
        file.take(limits::SESSION_ID_BYTES as u64 + 2).read_to_string(&mut text).ok()?;
        // The directory may come from a stranger: an id must not look like a flag or a path.
        let plain = |id: &&str| id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        let id = text.strip_suffix('\n').filter(plain).filter(|id| !id.is_empty() && !id.starts_with(['-', '.']));
        id.map(str::to_owned)
    }

    /// Whether the directory has the project's folder.
    pub(super) fn has_folder(&self) -> bool {
        self.cwd.join(FOLDER).is_dir()
    }

    /// Stores the id of a session atomically.
    ///
    /// # Errors
    /// The file system's. A link is not followed, because the directory may come from a stranger.
    pub(super) fn keep(&self, id: &str) -> io::Result<()> {
        let local = OpenFolder::open(&self.cwd)?.enter(FOLDER.as_ref())?.enter(LOCAL.as_ref())?;
        local.ignore()?;
        let folder = local.enter(SESSIONS.as_ref())?;
        let new = OsString::from(format!("{}.{}.new", self.agent, std::process::id()));
        // A killed process with the same id may have left one.
        folder.remove(&new);
        let written = folder.create_new(&new, 0o666);
        let written = written.and_then(|mut file| file.write_all(format!("{id}\n").as_bytes()));
        let kept = written.and_then(|()| folder.rename(&new, self.agent.as_ref()));
        if kept.is_err() {
            folder.remove(&new);
        }
        kept
    }
}

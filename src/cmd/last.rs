//! The last session of each agent in a directory, for `--continue`: one small file per agent, in a folder that git ignores.

use crate::agent::registry::Layers;
use crate::protocol::limits;
use crate::protocol::request::Options;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The folder of a project.
const FOLDER: &str = ".spektacular";
/// The subfolder for data of this machine.
const LOCAL: &str = "local";
/// The folder of session files in it.
const SESSIONS: &str = "sessions";

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
        let path = self.folder().join(&self.agent);
        let mut text = String::new();
        path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
        // A link could lead to another file, so it is not followed.
        (path.canonicalize().ok()? == path).then_some(())?;
        File::open(path).ok()?.take(limits::SESSION_ID_BYTES as u64 + 2).read_to_string(&mut text).ok()?;
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
        let mut folder = self.cwd.clone();
        for part in [FOLDER, LOCAL, SESSIONS] {
            folder.push(part);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
            if !folder.symlink_metadata()?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        let ignore = self.cwd.join(FOLDER).join(LOCAL).join(".gitignore");
        match File::create_new(ignore) {
            Ok(mut file) => file.write_all(b"*\n")?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let new = folder.join(format!("{}.{}.new", self.agent, std::process::id()));
        let written = OpenOptions::new().write(true).create_new(true).open(&new);
        let written = written.and_then(|mut file| file.write_all(format!("{id}\n").as_bytes()));
        let kept = written.and_then(|()| fs::rename(&new, folder.join(&self.agent)));
        if kept.is_err() {
            let _ = fs::remove_file(&new);
        }
        kept
    }

    fn folder(&self) -> PathBuf {
        self.cwd.join(FOLDER).join(LOCAL).join(SESSIONS)
    }
}

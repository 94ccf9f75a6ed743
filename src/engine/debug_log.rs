//! The debug log: a recording of each run, in a folder, named by date, agent and command.

use crate::io::files::OpenFolder;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::SystemTime;
use time::OffsetDateTime;
use time::macros::format_description;

/// The maximum number of names to try for runs that begin in the same second.
const TRIES: u32 = 1000;

#[derive(Clone, Debug)]
pub struct DebugLog {
    /// Created if it is missing.
    pub dir: PathBuf,
    /// The project's directory. Below it no link is followed, since it may come from a stranger.
    pub project: PathBuf,
    pub command: &'static str,
}

impl DebugLog {
    /// The date is UTC.
    pub(super) fn open(&self, agent: &str, now: SystemTime) -> io::Result<File> {
        let folder = OpenFolder::create(&self.dir, Some(&self.project))?;
        // Logs must neither be committed nor count as the agent's work.
        folder.ignore()?;
        let date = OffsetDateTime::from(now)
            .format(format_description!("[year]-[month]-[day]_[hour][minute][second]"))
            .map_err(io::Error::other)?;
        let name = format!("{date}_{agent}_{}", self.command);
        for number in 1..=TRIES {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            match folder.create_new(format!("{name}{number}.jsonl").as_ref(), 0o600) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                done => return done,
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

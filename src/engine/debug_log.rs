//! The debug log: a recording of each run, in a folder, named by date, agent and command.

use crate::recording::private;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use time::OffsetDateTime;
use time::macros::format_description;

/// The maximum number of runs that begin in the same second.
const TRIES: u32 = 1000;

/// The folder with a recording of every run.
#[derive(Clone, Debug)]
pub struct DebugLog {
    /// The folder. Created if it is missing.
    pub dir: PathBuf,
    /// The command that runs the agent.
    pub command: &'static str,
}

impl DebugLog {
    /// Opens the file of a new run. The date is UTC.
    pub(super) fn open(&self, agent: &str, now: SystemTime) -> io::Result<File> {
        make(&self.dir)?;
        let date = OffsetDateTime::from(now)
            .format(format_description!("[year]-[month]-[day]_[hour][minute][second]"))
            .map_err(io::Error::other)?;
        let name = format!("{date}_{agent}_{}", self.command);
        for number in 1..=TRIES {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            match private().create_new(true).open(self.dir.join(format!("{name}{number}.jsonl"))) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                done => return done,
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

/// Makes the folder, with a .gitignore: logs must not be committed or count as the agent's work.
fn make(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    match File::options().write(true).create_new(true).open(dir.join(".gitignore")) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made?.write_all(b"*\n"),
    }
}

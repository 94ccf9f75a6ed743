//! The recordings of a run, and their files.

use crate::io::files::{OpenFolder, create_private};
use crate::paths::suffixed;
use crate::protocol::words::Action;
use crate::recording::{Header, MessagePiece, Moment, Recorder};
use crate::redact::Redactor;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::macros::format_description;

/// The maximum number of names to try for debug logs of runs that begin in the same second.
const TRIES: u32 = 1000;

/// The recordings of one run: the file of `--record`, the debug log, both, or none.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    recorder: Option<Recorder>,
    debug_log: Option<DebugLog>,
    /// The agent whose process began last. Empty: none did.
    agent: String,
    /// The files of `--record`, which are not the agent's work: the newest, after those of agents that it replaced.
    files: Vec<PathBuf>,
    pieces: Vec<MessagePiece>,
    /// The header, also for the recordings of a further turn in the same process.
    pub(super) header: Option<Header>,
}

impl Recordings {
    /// The debug log is opened when the agent starts. Error: the file cannot be written.
    pub(super) fn open(
        file: Option<PathBuf>,
        project: Option<&Path>,
        debug_log: Option<DebugLog>,
    ) -> (Recordings, io::Result<()>) {
        let opened = file.as_deref().map(|file| create_private(file, project)).transpose();
        let mut recordings = Recordings { debug_log, files: file.into_iter().collect(), ..Recordings::default() };
        let opened = opened.map(|file| recordings.record_into(file));
        (recordings, opened)
    }

    fn record_into(&mut self, file: Option<File>) {
        file.into_iter().for_each(|file| self.recorder.get_or_insert_default().add(file));
    }

    /// Opens the debug log if it is enabled and not open yet, before a process of this agent begins. Error: the file
    /// cannot be written. The run continues without the debug log.
    pub(super) fn open_debug_log(&mut self, agent: &str, now: SystemTime) -> io::Result<()> {
        let is_first = self.agent.is_empty();
        agent.clone_into(&mut self.agent);
        let Some(log) = self.debug_log.as_ref().filter(|_| is_first) else { return Ok(()) };
        let file = log.open(agent, now)?;
        self.record_into(Some(file));
        Ok(())
    }

    pub(super) fn is_on(&self) -> bool {
        self.recorder.is_some()
    }

    pub(super) fn header(&mut self, header: Header) {
        if let Some(recorder) = &mut self.recorder {
            recorder.header(&header);
        }
        self.header = Some(header);
    }

    /// Begins recordings of its own for an agent that takes over, whose dialect is another one. Their name has a number
    /// and the agent. Returns false if those of the replaced agent are incomplete, or the others cannot be opened.
    pub(super) fn change_agent(&mut self, agent: &str, project: Option<&Path>, redactor: &Redactor) -> bool {
        if self.header.is_none() || self.agent == agent {
            return true;
        }
        let number = self.files.len() + 1;
        let file = self.files.first().map(|first| suffixed(first, &format!("-{number}-{agent}")));
        let (mut recordings, opened) = Recordings::open(file, project, self.debug_log.clone());
        recordings.files.splice(..0, std::mem::take(&mut self.files));
        let (_, is_complete) = std::mem::replace(self, recordings).finish(redactor);
        is_complete && opened.is_ok()
    }

    /// Ends the recordings. Returns their header, for those of a further turn in the same process, and whether they are
    /// complete.
    pub(super) fn finish(mut self, redactor: &Redactor) -> (Option<Header>, bool) {
        self.write_complete_lines(redactor, true);
        self.flush();
        let is_complete = self.recorder.is_none_or(|recorder| !recorder.failed());
        (self.header, is_complete)
    }

    pub(super) fn moment(&mut self, at: Duration, moment: impl FnOnce() -> Moment) {
        if let Some(recorder) = &mut self.recorder {
            recorder.moment(at, moment());
        }
    }

    pub(super) fn piece(&mut self, piece: MessagePiece) {
        if self.is_on() {
            self.pieces.push(piece);
        }
    }

    /// Writes the finished lines, after an event or at the end.
    pub(super) fn write_complete_lines(&mut self, redactor: &Redactor, end: bool) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.pieces(&mut self.pieces);
        recorder.write_complete_lines(redactor, end);
    }

    /// Called when the loop waits, not line by line.
    pub(super) fn flush(&mut self) {
        self.recorder.iter_mut().for_each(Recorder::flush);
    }

    /// The files of the recording, without symbolic links.
    pub(super) fn own(&self) -> Vec<PathBuf> {
        self.files.iter().filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// Removes the recording from the changed files, because it is not the agent's work.
    pub(super) fn without_own(&self, mut files: Vec<(PathBuf, Action)>) -> Vec<(PathBuf, Action)> {
        let own = self.own();
        files.retain(|(path, _)| !own.contains(path));
        files
    }
}

/// A recording of each run, in a folder, named by date, agent and command.
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
    fn open(&self, agent: &str, now: SystemTime) -> io::Result<File> {
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

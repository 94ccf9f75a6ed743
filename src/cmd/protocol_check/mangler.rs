//! The way of the frames from a played run to its client: the mangler stands between them, writes what the dialogue makes
//! of each frame, and logs how the client reads.

use super::dialogues::{Dialogue, Ending, NOVEL, Quirk};
use super::log::{Fact, Log, RunEnd};
use crate::io::output::write_whole;
use crate::json::{Fields, string};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;
use rustix::process::{Signal, getpid, kill_process};
use rustix::stdio::dup2_stdout;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, pipe, stdout};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The pause between two looks at the client's pipe.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The time after which the client counts as having read a frame, where the pipe does not tell.
const READ_BY_THEN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(150);
/// The line after the last frame. No frame is blank.
pub(super) const NO_MORE: &[u8] = b"\n";

pub(super) struct Mangler {
    frames: BufReader<PipeReader>,
    client: File,
    dialogue: &'static Dialogue,
    log: Log,
    began: bool,
    /// The time of the frame whose reading matters. `None`: it was read, or there is none.
    unread: Option<Instant>,
}

/// The client closed stdout.
struct Closed;

impl Mangler {
    /// Puts itself in the place of stdout.
    pub(super) fn install(dialogue: &'static Dialogue, log: Log) -> io::Result<Mangler> {
        let client = File::from(stdout().as_fd().try_clone_to_owned()?);
        let (frames, run) = pipe()?;
        dup2_stdout(&run)?;
        Ok(Mangler { frames: BufReader::new(frames), client, dialogue, log, began: false, unread: None })
    }

    /// Passes the frames on until [`NO_MORE`]. Returns the exit code that the dialogue has in place of the run's.
    pub(super) fn pass_on(mut self) -> Option<u8> {
        let mut exit = None;
        let mut frame = Vec::new();
        loop {
            self.watch_reading();
            frame.clear();
            let read = self.frames.read_until(b'\n', &mut frame);
            if !read.is_ok_and(|count| count > 0) || frame == NO_MORE {
                return exit;
            }
            match self.pass(&frame) {
                Ok(instead) => exit = exit.or(instead),
                Err(Closed) => return exit,
            }
        }
    }

    /// Writes what the dialogue makes of a frame. Returns the exit code after it.
    fn pass(&mut self, frame: &[u8]) -> Result<Option<u8>, Closed> {
        let text = String::from_utf8_lossy(frame);
        let kind = Fields::parse(&text).and_then(|fields| fields.get("type").and_then(string)).unwrap_or_default();
        self.began |= kind == "run.started";
        let over = match kind.as_str() {
            "run.completed" => RunEnd::Completed,
            "run.failed" => RunEnd::Failed,
            "run.cancelled" => RunEnd::Cancelled,
            _ => return self.go_on(&text).map(|()| None),
        };
        let ending = match (self.dialogue.ending, over) {
            (Ending::Completed(exit), RunEnd::Completed) | (Ending::Failed(exit), RunEnd::Failed) if self.began => {
                Some(exit)
            }
            (Ending::Vanished(exit), RunEnd::Completed) => {
                self.log.note(Fact::RunEnd(RunEnd::Vanished));
                return Ok(Some(exit));
            }
            (Ending::Killed, RunEnd::Completed) => {
                self.log.note(Fact::RunEnd(RunEnd::Vanished));
                let _ = self.write(&frame[..frame.len() / 2]);
                let _ = kill_process(getpid(), Signal::KILL);
                return Err(Closed);
            }
            _ => None,
        };
        self.log.note(Fact::RunEnd(over));
        self.write(frame).map(|()| ending)
    }

    /// Writes a frame that is not the last one.
    fn go_on(&mut self, frame: &str) -> Result<(), Closed> {
        let foreign = frame.find(|letter: char| !letter.is_ascii());
        match (self.dialogue.quirk, foreign) {
            (Quirk::Novel(part, novelty), _) if frame.contains(NOVEL) => {
                self.write(frame.replacen(part, novelty, 1).as_bytes())?;
            }
            (Quirk::Slow, Some(at)) => {
                let (first, rest) = frame.as_bytes().split_at(at + 1);
                let (second, last) = rest.split_at(rest.len() - 1);
                for piece in [first, second, last] {
                    self.write(piece)?;
                    // The pause is the test: no event ends it.
                    std::thread::sleep(PAUSE);
                }
            }
            _ => self.write(frame.as_bytes())?,
        }
        if frame.contains("\"kind\":\"question_resolved\"") {
            self.unread = Some(Instant::now());
        }
        Ok(())
    }

    /// Writes bytes, and waits until the client takes them.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.log.note(Fact::Sending);
        let written = write_whole(&mut self.client, bytes).map_err(|_| Closed);
        self.log.note(if written.is_ok() { Fact::Sent } else { Fact::Undelivered });
        written
    }

    /// Waits for a frame, and notes when the client has read all frames so far.
    fn watch_reading(&mut self) {
        while let Some(since) = self.unread
            && self.frames.buffer().is_empty()
        {
            if self.is_read(since) {
                self.unread = None;
                self.log.note(Fact::AllRead);
            } else if poll(&mut [PollFd::new(self.frames.get_ref(), PollFlags::IN)], Some(&LOOK)) != Ok(0) {
                return;
            }
        }
    }

    /// Whether the client has read what was written until `since`.
    fn is_read(&self, since: Instant) -> bool {
        let is_pipe = fstat(&self.client).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        match ioctl_fionread(&self.client) {
            Ok(count) if is_pipe => count == 0,
            Ok(_) | Err(_) => since.elapsed() >= READ_BY_THEN,
        }
    }
}

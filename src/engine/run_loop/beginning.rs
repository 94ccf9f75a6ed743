//! The beginning of a run: the first line, which is handled before any thread starts, and the threads that read the rest.

use super::{Broken, RunLoop, Wake, no_thread};
use crate::engine::job::{Awaited, Begin, Prepared};
use crate::failure::Failure;
use crate::io::spawn_thread;
use crate::run::Event;
use crossbeam_channel::{Receiver, bounded};

impl RunLoop<'_, '_> {
    /// Does what the job begins with.
    pub(super) fn begin(&mut self, begin: Begin) -> Result<(), Broken> {
        match begin {
            Begin::FromInput => self.hear_first()?,
            Begin::Refused(failure) => self.conductor.refuse(failure),
            Begin::Next(next) => self.conductor.go_on(*next),
            Begin::Over(over) => self.conductor.close(*over),
            Begin::Awaited(work) => self.awaited = Some(start_of(work)),
        }
        self.prepare();
        Ok(())
    }

    /// Handles the first line of stdin, and writes the frames that it causes, before any thread starts.
    fn hear_first(&mut self) -> Result<(), Broken> {
        let Some(line) = self.engine.inbox.first() else { return Ok(()) };
        self.conductor.machine().read_clocks(|| false);
        self.handle(Wake::Input(line))?;
        while !self.is_over()
            && let Some(wake) = self.write()
        {
            self.handle(wake)?;
        }
        Ok(())
    }

    /// Starts to read signals, and stdin once the run has its run.start. The end of stdin applies to every later run
    /// too.
    pub(super) fn listen(&mut self) {
        if self.engine.signals.as_mut().is_some_and(|signals| signals.start().is_err()) {
            self.engine.signals = None;
            self.conductor.step(Event::Refused(no_thread()));
        }
        if self.awaited.is_some() || self.conductor.is_finished() {
            return;
        }
        if self.engine.inbox.open().is_err() {
            self.conductor.step(Event::Refused(no_thread()));
        }
        if self.engine.inbox.closed && !std::mem::replace(&mut self.input_ended, true) {
            self.conductor.step(Event::InputEnded);
        }
    }
}

/// Reads files in a thread. The thread is never joined: it may wait for a pipe forever.
fn start_of(work: Awaited) -> Receiver<Result<Box<Prepared>, Failure>> {
    let (start_in, start) = bounded(1);
    let failed = start_in.clone();
    let make = move || {
        let _ = start_in.send(work());
    };
    if spawn_thread("start", make).is_err() {
        let _ = failed.send(Err(no_thread()));
    }
    start
}

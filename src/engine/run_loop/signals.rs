//! The signals of this process, as the loop handles them.

use super::RunLoop;
use crate::engine::peer::ScreenChange;
use crate::io::output::write_now;
use crate::io::signals::{Signal, die_of};
use crate::io::tty::LineModes;
use signal_hook::consts::SIGINT;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest wait for the report of a signal that has come.
const REPORTED: Duration = Duration::from_millis(500);

impl RunLoop<'_, '_> {
    /// Handles a request to end that came before the end of stdin, and whose thread reports it only after that. An
    /// orchestrator that gives up does both at once.
    pub(super) fn take_earlier_signal(&mut self) {
        let heard = self.engine.signals.as_ref();
        let came = heard.filter(|heard| heard.asked_to_end.swap(false, Ordering::Relaxed));
        if let Some(signal) = came.and_then(|heard| heard.signals.recv_timeout(REPORTED).ok()) {
            self.signal(signal);
        }
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        if let (Signal::Stop(_), Some(heard)) = (signal, &self.engine.signals) {
            heard.asked_to_end.store(false, Ordering::Relaxed);
        }
        match signal {
            Signal::Stop(SIGINT) => self.conductor.interrupted(SIGINT),
            Signal::Stop(number) => self.conductor.signalled(number),
            Signal::Suspend => {
                let leave = self.conductor.leave();
                let modes = &mut self.engine.modes;
                self.conductor.host_mut().suspend(|| {
                    write_now(&leave);
                    modes.iter_mut().for_each(LineModes::restore);
                });
            }
            // The guard ends the agent's process tree.
            Signal::Fatal(number) => {
                write_now(&self.conductor.leave());
                self.engine.modes.iter_mut().for_each(LineModes::restore);
                die_of(number);
            }
            Signal::Continued => {
                self.engine.switch_modes();
                self.conductor.screen_changed(ScreenChange::Resumed);
            }
            Signal::Resized => {
                self.engine.switch_modes();
                self.conductor.screen_changed(ScreenChange::Due);
            }
        }
    }
}

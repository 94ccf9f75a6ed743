//! The backstop: ends this process if a request to end it, or a deadline, is not served in time. It trusts nothing else
//! in the process: it has no state, waits for no lock and no file, and reads only its own channel and two atomics.

use super::output::write_now;
use super::spawn_thread;
use super::tty::SavedModes;
use crate::protocol::failure::EXIT_UNDELIVERED;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use signal_hook::iterator::Signals;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time from a request to end to the end of the process is at most four seconds. It is counted in steps, so that a
/// suspension of this process adds at most one.
const STEP: Duration = Duration::from_millis(100);
const STEPS: usize = 39;
/// The number of steps without a sign of life that show that the loop or the reader of stdout has stopped. A machine
/// without time for the loop must not cost the terminal frame.
const SILENT_STEPS: usize = 10;

/// Ends this process some time after an instant, unless it is dropped before.
#[derive(Debug)]
pub(crate) struct Backstop {
    pub(crate) due: Instant,
    served: Arc<AtomicUsize>,
    wanted: Sender<Infallible>,
}

impl Backstop {
    /// `due`: the request to end, or the deadline. `progress` grows whenever stdout has taken something. Without a
    /// thread, the process goes on without a backstop.
    pub(crate) fn start(due: Instant, progress: Arc<AtomicUsize>, end: LastResort) -> Backstop {
        let (wanted, dropped) = bounded(0);
        let served = Arc::<AtomicUsize>::default();
        let life = [progress, Arc::clone(&served)];
        let _ = spawn_thread("backstop", move || wait(&dropped, due, &life, &end));
        Backstop { due, served, wanted }
    }

    pub(crate) fn note_served(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    /// Leaves the process to the backstop: nothing but its end is awaited.
    pub(crate) fn keep(self) {
        std::mem::forget(self.wanted);
    }
}

fn wait(dropped: &Receiver<Infallible>, due: Instant, life: &[Arc<AtomicUsize>; 2], end: &LastResort) {
    let signs = || life.each_ref().map(|sign| sign.load(Ordering::Relaxed));
    let mut pause = due.saturating_duration_since(Instant::now());
    let (mut steps, mut silent, mut seen) = (0, 0, signs());
    while dropped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        if steps >= STEPS && silent >= SILENT_STEPS {
            end.come();
        }
        let now = signs();
        silent = if seen == now { silent + 1 } else { 0 };
        (steps, seen, pause) = (steps + 1, now, STEP);
    }
}

/// Ends this process if nobody serves one of these signals in time. `unserved`: set by the handler of a signal, before
/// this, and reset by whoever serves it.
pub(super) fn await_signals(
    signals: impl Iterator<Item = i32>,
    unserved: Arc<AtomicBool>,
    end: LastResort,
) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    spawn_thread("signals-backstop", move || {
        loop {
            // A signal may have come before this thread was there.
            for step in 0.. {
                if !unserved.load(Ordering::Relaxed) {
                    break;
                }
                if step == STEPS {
                    end.come();
                }
                thread::sleep(STEP);
            }
            let _ = signals.forever().next();
        }
    })
}

#[derive(Clone, Debug)]
pub(crate) struct LastResort {
    modes: Option<Arc<SavedModes>>,
    code: Arc<AtomicU8>,
}

impl LastResort {
    /// Call it before a terminal gets other modes. `at_terminal`: whether a standard stream is one.
    pub(super) fn prepare(at_terminal: bool) -> LastResort {
        let modes = at_terminal.then(SavedModes::save).flatten().map(Arc::new);
        LastResort { modes, code: Arc::new(EXIT_UNDELIVERED.into()) }
    }

    /// Keeps the exit code of a run whose last frame is delivered: what follows may take too long.
    pub(crate) fn promise(&self, code: u8) {
        self.code.store(code, Ordering::Relaxed);
    }

    /// The guard ends the agent's process tree.
    fn come(&self) -> ! {
        self.modes.iter().for_each(|modes| modes.restore());
        let code = self.code.load(Ordering::Relaxed);
        write_now(match code {
            EXIT_UNDELIVERED => b"spektacular: undelivered: the run did not end in time and was stopped\n",
            _ => b"spektacular: warning: the work after the run did not end in time and was stopped\n",
        });
        signal_hook::low_level::exit(code.into())
    }
}

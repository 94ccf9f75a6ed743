//! Signals as events: a dedicated thread turns them into messages in a channel.

use super::spawn_thread;
use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{io, thread};

/// A signal that a run reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, SIGTERM or SIGHUP, by number: a request to end.
    Stop(i32),
    /// SIGTSTP: Ctrl-Z.
    Suspend,
    /// SIGCONT: this process continues after a stop.
    Continued,
    /// SIGWINCH: the terminal's size changed.
    Resized,
    /// SIGCHLD: a child ended.
    Child,
}

/// Starts the thread that receives signals. A signal that was ignored when the process started stays ignored. The
/// channel holds signals until the run takes them; the kernel merges pending signals of one kind. From here on
/// nothing at a terminal stops this process except Ctrl-Z.
///
/// # Errors
/// The system's error, if the signals cannot be registered or no thread can be started.
pub(crate) fn listen() -> io::Result<Receiver<Signal>> {
    let ignored = ignored_signals();
    let is_free = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGTSTP].into_iter().filter(is_free);
    let mut signals = Signals::new(wanted.chain([SIGCHLD, SIGCONT, SIGWINCH]))?;
    // The terminal sends these two to the whole group, even if it was another process of a pipeline that read the
    // terminal from the background. An empty handler suffices, and unlike an ignored signal it is not inherited.
    for signal in [SIGTTIN, SIGTTOU].into_iter().filter(is_free) {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let (signal_in, signal) = bounded(16);
    spawn_thread("signals", move || {
        for number in signals.forever() {
            let heard = match number {
                SIGTSTP => Signal::Suspend,
                SIGCONT => Signal::Continued,
                SIGWINCH => Signal::Resized,
                SIGCHLD => Signal::Child,
                stop => Signal::Stop(stop),
            };
            if signal_in.send(heard).is_err() {
                return;
            }
        }
    })?;
    Ok(signal)
}

/// A bit mask of the signals that were ignored before this process registered any (bit N-1 for signal N); nohup and
/// `&` set them.
pub(crate) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Stops this process as Ctrl-Z would have; returns when it continues.
pub(crate) fn stop_ourselves() {
    let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
}

/// Ends this process the way this signal would. For SIGTERM and SIGKILL it waits for the signal that a host sends.
/// Returns the shell's exit code for the signal (128 plus its number) if the process cannot end that way.
pub fn end_by(signal: i32) -> u8 {
    if matches!(signal, SIGTERM | SIGKILL) {
        loop {
            thread::park();
        }
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    u8::try_from(128 + signal).unwrap_or(1)
}

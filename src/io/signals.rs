//! Signals as events: a thread of their own turns them into numbers in a channel.

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
    /// SIGINT, SIGTERM or SIGHUP: asks for an end. Its number.
    Stop(i32),
    /// SIGTSTP: Ctrl-Z.
    Suspend,
    /// SIGCONT: this process goes on after a stop.
    Continued,
    /// SIGWINCH: the terminal has another size.
    Resized,
    /// SIGCHLD: a child ended.
    Child,
}

/// Starts the thread that hears signals. A signal that was ignored when the process started stays ignored. Signals
/// that nobody has taken yet wait in the channel; the kernel merges those of one kind. From here on nothing that happens
/// at a terminal stops this process but Ctrl-Z.
///
/// # Errors
/// The system's, where the signals cannot be registered or no thread can be started.
pub(crate) fn listen() -> io::Result<Receiver<Signal>> {
    let ignored = ignored_signals();
    let is_free = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGTSTP].into_iter().filter(is_free);
    let mut signals = Signals::new(wanted.chain([SIGCHLD, SIGCONT, SIGWINCH]))?;
    // These two go to the whole group, also when another process of a pipeline reads the terminal from the background.
    // A handler is all that is needed, and unlike an ignored signal it is not inherited.
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

/// The bits of the signals that were ignored before this process registered any: what nohup and `&` set.
pub(crate) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Stops this process as Ctrl-Z would have; returns when it goes on.
pub(crate) fn stop_ourselves() {
    let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
}

/// Ends this process as this signal ends one. Waits for one that a host sends; returns the shell's exit code for the
/// signal where the process cannot end that way.
pub fn end_by(signal: i32) -> u8 {
    if matches!(signal, SIGTERM | SIGKILL) {
        loop {
            thread::park();
        }
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    u8::try_from(128 + signal).unwrap_or(1)
}

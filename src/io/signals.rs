//! Signals as events: a dedicated thread turns them into messages in a channel.

use super::backstop::{self, LastResort};
use super::failpoint::point;
use super::{panic_channel, spawn_thread};
use crate::system::{FATAL_SIGNALS, ignored_signals};
use crossbeam_channel::{Receiver, Sender, bounded};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, SIGTERM or SIGHUP, by number: a request to end.
    Stop(i32),
    Suspend,
    Continued,
    Resized,
    /// A signal that ends this process at once, by number: its terminals must be given back first.
    Fatal(i32),
}

/// The signals that end a process by default, apart from requests to end, from faults of the process itself, and from
/// those that nothing can handle. Real-time signals are left out: thirty handlers would cost every run time, and nobody
/// sends them to a program that does not ask for them.
const FATAL: [i32; 7] = [SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU];

const REQUESTS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

fn is_fatal(signal: i32) -> bool {
    FATAL.contains(&signal) || FATAL_SIGNALS.contains(&signal)
}

#[derive(Debug)]
pub(crate) struct SignalChannels {
    pub(crate) signals: Receiver<Signal>,
    /// Ready after a child ended (SIGCHLD). Thousands of ends make one message, and none delays a signal.
    pub(crate) children: Receiver<()>,
    /// Set once this process continues after a stop, before its [`Signal::Continued`] comes.
    pub(crate) continued: Arc<AtomicBool>,
    /// Set once a request to end has come, before its [`Signal::Stop`] comes.
    pub(crate) asked_to_end: Arc<AtomicBool>,
    pub(crate) last_resort: LastResort,
    /// Ready after a panic in any thread, the one of the backstop included.
    pub(crate) panics: Receiver<()>,
    /// The argument of the thread, until it starts.
    unread: Option<Unread>,
}

#[derive(Debug)]
struct Unread {
    registered: Signals,
    signals: Sender<Signal>,
    children: Sender<()>,
}

/// Also starts the backstop of the requests to end. A signal that was ignored when the process started stays ignored.
/// The kernel merges pending signals of one kind. From here on nothing at a terminal stops this process except Ctrl-Z.
pub(crate) fn listen() -> io::Result<SignalChannels> {
    // Before the first thread of this process.
    let panics = panic_channel::listen();
    let ignored = ignored_signals();
    let is_free = |signal: &i32| is_free(ignored, *signal);
    let continued = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGCONT, Arc::clone(&continued))?;
    let on_terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    // Without a terminal there is nothing to give back, so the default action will do.
    let fatal = FATAL.into_iter().chain(FATAL_SIGNALS).filter(|_| on_terminal);
    let wanted = REQUESTS.into_iter().chain([SIGTSTP]).chain(fatal).filter(is_free);
    let registered = Signals::new(wanted.chain([SIGCHLD, SIGCONT]).chain(on_terminal.then_some(SIGWINCH)))?;
    // After the registration above, which keeps a signal from being lost.
    let asked_to_end = Arc::new(AtomicBool::new(false));
    for signal in REQUESTS.into_iter().filter(is_free) {
        signal_hook::flag::register(signal, Arc::clone(&asked_to_end))?;
    }
    // The terminal sends these two to the whole group, even if it was another process of a pipeline that read the
    // terminal from the background. An empty handler suffices, and unlike an ignored signal it is not inherited.
    // SIGXFSZ would end us where a file reaches the limit of `ulimit -f`; with a handler, the write fails instead.
    for signal in [SIGTTIN, SIGTTOU, SIGXFSZ].into_iter().filter(is_free) {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let (signal_in, signals) = bounded(16);
    let (child_in, children) = bounded(1);
    let unread = Some(Unread { registered, signals: signal_in, children: child_in });
    let last_resort = LastResort::prepare(on_terminal);
    // Before the thread that reads the signals, so that it also ends a process whose main thread stops before the run.
    let requests = REQUESTS.into_iter().filter(is_free);
    backstop::await_signals(requests, Arc::clone(&asked_to_end), last_resort.clone())?;
    Ok(SignalChannels { signals, children, continued, asked_to_end, last_resort, panics, unread })
}

impl SignalChannels {
    /// Signals that came before are not lost. Error: no thread can be started.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        let Some(unread) = self.unread.take() else { return Ok(()) };
        spawn_thread("signals", move || unread.read())
    }

    /// Restores the default actions of the signals, for a process that starts no run. Signals that came before act now.
    pub(crate) fn give_back(self) {
        let Some(Unread { mut registered, .. }) = self.unread else { return };
        let _ = spawn_thread("signals", move || {
            for signal in registered.forever() {
                if is_fatal(signal) {
                    die_of(signal);
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    }
}

impl Unread {
    fn read(mut self) {
        for number in self.registered.forever() {
            point("signals signal");
            let signal = match number {
                SIGCHLD => {
                    let _ = self.children.try_send(());
                    continue;
                }
                SIGTSTP => Signal::Suspend,
                SIGCONT => Signal::Continued,
                SIGWINCH => Signal::Resized,
                fatal if is_fatal(fatal) => Signal::Fatal(fatal),
                stop => Signal::Stop(stop),
            };
            if self.signals.send(signal).is_err() {
                return;
            }
        }
    }
}

/// Requests to end do `work` first. A signal that was ignored when the process started stays ignored.
pub(crate) fn before_the_end(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let ignored = ignored_signals();
    let mut signals = Signals::new(REQUESTS.into_iter().filter(|signal| is_free(ignored, *signal)))?;
    spawn_thread("signals", move || {
        if let Some(signal) = signals.forever().next() {
            work();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })
}

/// Makes a write beyond the limit of file sizes fail, instead of ending this process by SIGXFSZ.
pub(crate) fn outlive_file_limits() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}

pub(crate) fn outlive_hangups() -> io::Result<()> {
    signal_hook::flag::register(SIGHUP, Arc::default()).map(|_| ())
}

/// `ignored`: the mask of the signals that were ignored when the process started.
pub(crate) fn is_free(ignored: u64, signal: i32) -> bool {
    ignored & (1 << (signal - 1)) == 0
}

/// Suspends this process as Ctrl-Z would have; returns when it continues.
pub(crate) fn suspend_ourselves() {
    let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
}

/// Ends this process as this signal does by default. signal-hook does not know the default action of SIGIO, SIGPWR and
/// SIGSTKFLT on Linux; after those, this process exits with the code that a shell reports for the signal.
pub(crate) fn die_of(signal: i32) -> ! {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    signal_hook::low_level::exit(128 + signal)
}

/// For a replayed recording. For SIGTERM and SIGKILL it waits for the signal that a host sends. Returns the shell's
/// exit code for the signal (128 plus its number) if the process cannot end that way.
pub(crate) fn end_by(signal: i32) -> u8 {
    if matches!(signal, SIGTERM | SIGKILL) {
        loop {
            thread::park();
        }
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    u8::try_from(128 + signal).unwrap_or(1)
}

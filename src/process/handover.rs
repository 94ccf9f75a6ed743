//! Hands the terminal over to an agent's own interface and waits for its exit.
//!
//! The agent stays in our process group, which is the terminal's foreground group as long as the shell keeps it there.
//! So Ctrl-C, Ctrl-Z, a resize and the shell's fg and bg reach the agent as if the shell had started it, and we need
//! not take the terminal back. We catch the terminal's signals and ignore them, because the agent alone handles them.
//! (With a separate group for the agent, we would have to ignore SIGTTOU to take the terminal back, and the agent would
//! inherit that.) When the agent stops, we stop. We pass on SIGTERM and SIGHUP, which may be sent to us alone.
//!
//! Processes that the agent leaves running are left alone, because the person may have started them on purpose.

use super::child::spawn;
use super::environment::environment_over;
use super::program::{not_found, resolve};
use crate::agent::{Base, Program};
use crate::io::output::print;
use crate::io::signals::{is_free, suspend_ourselves};
use crate::protocol::failure::{Code, Failure};
use crate::system::{ignored_signals, to_pid};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::Command;

/// Resets everything that a full-screen program may have changed in a terminal: alternate screen, hidden cursor,
/// reports of mouse, focus and paste, other keyboard modes, colors.
const CALM: &str = "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[<u\x1b[>4;0m\x1b[0m\r\n";

#[derive(Debug)]
pub(crate) struct Handover<'a> {
    pub base: &'a Base,
    pub args: &'a [String],
    /// They override those of the agent's entry.
    pub env: &'a [(String, String)],
    pub env_remove: &'a [&'a str],
    pub cwd: &'a Path,
}

pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns the agent's exit code, or 128 plus the number of the signal that ended it.
pub(crate) fn hand_over(handover: &Handover<'_>) -> Result<u8, Failure> {
    let own = handover.base.env.iter().chain(handover.env.iter().map(|(name, value)| (name, value)));
    let own: Vec<(OsString, OsString)> = own.map(|(name, value)| (name.into(), value.into())).collect();
    let mut environment = environment_over(own.into_iter());
    for name in handover.env_remove {
        environment.remove(&OsString::from(name));
    }
    let program = match &handover.base.program {
        Program::Myself => None,
        program @ Program::Command(_) => resolve(program, &environment, handover.cwd),
    };
    let program = program.ok_or_else(|| not_found(&handover.base.program, handover.base.install.as_deref()))?;
    // Installed before the start: no signal from the terminal may end us while the agent lives. Unlike an ignored
    // signal, a handler is not inherited.
    let mut signals = Signals::new(ours()).map_err(|_| {
        Failure::new(Code::ResourceExhausted, "Cannot install the signal handlers: free some memory.").retryable()
    })?;
    let modes = tcgetattr(io::stdin()).ok();
    let mut command = Command::new(&program);
    command.args(handover.args).env_clear().envs(&environment).current_dir(handover.cwd);
    let child = spawn(|| command.spawn(), &program, handover.cwd)?;
    let Some(pid) = to_pid(child.id()) else { return Ok(1) };
    let status = wait(pid, &mut signals);
    let killed = status.and_then(WaitStatus::terminating_signal);
    restore(modes.as_ref(), killed.is_some());
    let code = killed.map(|signal| 128 + signal).or(status.and_then(WaitStatus::exit_status));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// A signal that was ignored when we started is left out, so that the agent ignores it too.
fn ours() -> Vec<i32> {
    let ignored = ignored_signals();
    let wanted = [SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGTERM, SIGHUP];
    wanted.into_iter().filter(|signal| is_free(ignored, *signal)).chain([SIGCHLD]).collect()
}

/// Stops when the agent stops. The agent is reaped only here, so its pid cannot be reused while we signal it.
fn wait(pid: Pid, signals: &mut Signals) -> Option<WaitStatus> {
    loop {
        // The first check catches an agent that exited before the handlers were installed.
        match waitpid(Some(pid), WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => {
                // waitpid reports each stop once, so we stop once for each stop of the agent. A shell continues the
                // whole group, so we do not continue the agent: that could undo a further Ctrl-Z.
                suspend_ourselves();
            }
            Ok(Some((_, status))) => return Some(status),
            Ok(None) => {}
            Err(_) => return None,
        }
        for signal in signals.wait() {
            let passed_on = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            let _ = kill_process(pid, passed_on);
        }
    }
}

/// Does nothing in the background, where it would stop us.
fn restore(modes: Option<&Termios>, crashed: bool) {
    let ours = tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
    let Some(modes) = modes.filter(|_| ours) else { return };
    if crashed {
        print(CALM);
    }
    // Input typed for the agent is not meant for the shell.
    let action = if crashed { OptionalActions::Flush } else { OptionalActions::Drain };
    let _ = tcsetattr(io::stdin(), action, modes);
}

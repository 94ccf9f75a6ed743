//! The launcher of an MCP server: an agent starts it in place of the server. It starts the server, moves bytes between the
//! two, and reports to the run whether the server runs, which most agents do not tell.

use super::ask_server::pass;
use crate::clean::last_bytes;
use crate::engine::ServerReport;
use crate::io::output::{diagnose, stderr, stdout, write_whole};
use crate::io::{signals, spawn_thread};
use crate::json::Object;
use crate::process::start_mcp_server;
use crate::protocol::limits::STDERR_TAIL_BYTES;
use crate::protocol::words::McpState;
use crossbeam_channel::{Receiver, bounded};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The exit code if the server cannot be started, as in a shell.
const NOT_STARTED: u8 = 127;
/// The time that a server has to exit after it closed its stdout, and its stderr after that.
const EXIT_LIMIT: Duration = Duration::from_millis(500);
/// The length of the first line, in bytes, from which it counts as an answer without being read.
const ANSWER_BYTES: usize = 1 << 20;

/// Returns the server's exit code. `args`: the address of the report, and the server's command.
pub(super) fn run(args: &[OsString]) -> u8 {
    let [address, command, args @ ..] = args else { return NOT_STARTED };
    let address = address.to_string_lossy().into_owned();
    // An error means that the run has ended, and with it the interest in reports.
    let report = |state, words: &str| drop(ServerReport::send(&address, state, words));
    let mut child = match start_mcp_server(command, args) {
        Ok(child) => child,
        Err(error) => {
            let words = format!("The command cannot be started: {error}.");
            report(McpState::Failed, &words);
            diagnose(&words);
            return NOT_STARTED;
        }
    };
    let leaving = Arc::new(AtomicBool::new(false));
    let words = match connect(&mut child, &leaving) {
        Ok(words) => words,
        Err(error) => {
            let _ = child.kill();
            report(McpState::Failed, &format!("The launcher of the server failed: {error}."));
            return NOT_STARTED;
        }
    };
    if let Some(out) = child.stdout.take() {
        let mut out = AwaitsAnswer { out, line: Some(Vec::new()), ready: || report(McpState::Ready, "") };
        pass(&mut out, &mut stdout());
    }
    let code = exit_code(&mut child);
    let words = words.recv_timeout(EXIT_LIMIT).unwrap_or_default();
    // The agent ends its servers by closing their stdin, or by a signal.
    if !leaving.load(Ordering::SeqCst) {
        let silent = code.map_or_else(
            || "It ended without a word.".to_owned(),
            |code| format!("It exited with code {code}, without a word."),
        );
        report(McpState::Failed, if words.trim().is_empty() { &silent } else { &words });
    }
    code.unwrap_or(1)
}

/// Connects the server's stdin and stderr with ours, and passes signals on. The channel brings the end of its stderr.
fn connect(child: &mut Child, leaving: &Arc<AtomicBool>) -> io::Result<Receiver<String>> {
    let pid = Pid::from_child(child);
    let told = Arc::clone(leaving);
    signals::before_the_end(move || {
        told.store(true, Ordering::SeqCst);
        let _ = kill_process(pid, Signal::TERM);
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        let told = Arc::clone(leaving);
        spawn_thread("stdin", move || {
            if pass(&mut io::stdin().lock(), &mut stdin) {
                told.store(true, Ordering::SeqCst);
            }
        })?;
    }
    let (tail_in, tail) = bounded(1);
    if let Some(err) = child.stderr.take() {
        spawn_thread("agent-stderr", move || drop(tail_in.send(pass_on_stderr(err))))?;
    }
    Ok(tail)
}

/// Copies the server's stderr to ours. Returns its end.
fn pass_on_stderr(mut from: impl Read) -> String {
    let (mut bytes, mut tail) = (vec![0; 64 << 10], Vec::new());
    let mut to = Some(stderr());
    loop {
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => {
                to.take_if(|to| write_whole(to, &bytes[..count]).is_err());
                tail.extend_from_slice(&bytes[..count]);
                tail.drain(..tail.len().saturating_sub(STDERR_TAIL_BYTES));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    last_bytes(&String::from_utf8_lossy(&tail), STDERR_TAIL_BYTES).to_owned()
}

/// The exit code of a server that has closed its stdout. `None`: a signal ended it, or it goes on.
fn exit_code(child: &mut Child) -> Option<u8> {
    let until = Instant::now() + EXIT_LIMIT;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().and_then(|code| u8::try_from(code).ok()),
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Err(_) => return None,
        }
    }
    None
}

/// The server's stdout, which notices the answer to `initialize`.
struct AwaitsAnswer<R, F> {
    out: R,
    /// The current line until then.
    line: Option<Vec<u8>>,
    ready: F,
}

impl<R: Read, F: FnMut()> Read for AwaitsAnswer<R, F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.out.read(bytes)?;
        let Some(line) = &mut self.line else { return Ok(count) };
        for piece in bytes[..count].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") && !is_answer(line) {
                line.clear();
            } else if piece.ends_with(b"\n") || line.len() > ANSWER_BYTES {
                self.line = None;
                (self.ready)();
                break;
            }
        }
        Ok(count)
    }
}

fn is_answer(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let result = Object::parse(text.trim()).and_then(|message| message.object("result"));
    result.is_some_and(|result| result.raw("protocolVersion").is_some())
}

#[cfg(test)]
mod tests {
    use super::AwaitsAnswer;
    use std::io::{Cursor, Read};

    #[test]
    fn a_server_is_ready_once_it_has_answered_the_first_request() {
        let answer = "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n";
        for (said, is_ready) in [
            (format!("{{\"method\":\"log\"}}\n{answer}more"), true),
            (format!("Listening on stdio\n{answer}"), true),
            (answer.trim_end().to_owned(), false),
            ("{\"id\":1,\"error\":{}}\n".into(), false),
            ("x".repeat(2 << 20), true),
        ] {
            let mut times = 0;
            let mut passed = String::new();
            let out = Cursor::new(said.clone().into_bytes());
            AwaitsAnswer { out, line: Some(Vec::new()), ready: || times += 1 }.read_to_string(&mut passed).unwrap();
            assert_eq!((times, passed == said), (u32::from(is_ready), true));
        }
    }
}

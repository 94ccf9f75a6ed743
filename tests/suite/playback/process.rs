//! Plays the cases through the program itself: a process in the agent's place replays the recording.

use super::case::{Case, Directive, fits, with_ids};
use super::world::{DOTS, Frame};
use crate::support::{self, limit};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spektacular::recording::Moment;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

const BINARY: &str = env!("CARGO_BIN_EXE_spektacular");

/// The output.
pub(crate) struct Played {
    pub(crate) frames: Vec<Frame>,
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    /// The agent's working directory.
    pub(crate) cwd: PathBuf,
}

struct Session {
    child: Child,
    lines: Receiver<String>,
    frames: Vec<Frame>,
    /// The number of frames that awaits have passed.
    seen: usize,
}

/// Plays one case to its end.
pub(crate) fn play(case: &Case) -> Result<Played, String> {
    let sandbox = sandbox(case);
    let mut command = sandbox.command(BINARY);
    command.args(["adhoc", "--output", "json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let (send, lines) = channel();
    let stdout = BufReader::new(child.stdout.take().expect("stdout"));
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let mut session = Session { child, lines, frames: Vec::new(), seen: 0 };
    let played = session.run(case);
    if played.is_err() {
        let _ = session.child.kill();
    }
    let code = session.child.wait().expect("the program ends").code();
    let mut stderr = String::new();
    session.child.stderr.take().expect("stderr").read_to_string(&mut stderr).expect("stderr is text");
    played.map_err(|why| format!("{why}\nstderr: {stderr}"))?;
    Ok(Played { frames: session.frames, code, stderr, cwd: sandbox.work() })
}

/// Puts the replay on the PATH under the agent's name.
pub(crate) fn sandbox(case: &Case) -> support::Case {
    // The recorded agent exited by itself after a signal, but the replay does not handle signals.
    let own_end = matches!(case.recording.moments.last(), Some((_, Moment::Exit(_))));
    let trap = if own_end { "trap '' TERM\n" } else { "" };
    let recording = case.recording_path();
    let script = format!("{trap}exec '{BINARY}' replay --strict '{}' -- \"$@\"", recording.display());
    let sandbox = support::Case::new().script(&format!("bin/{}", case.recording.header.argv[0]), &script);
    // The image of the cases that have one.
    std::fs::write(sandbox.path("work/dots.png"), DOTS).expect("an image");
    match case.config() {
        Some(config) => sandbox.file("home/.config/spektacular/config.json", &config),
        None => sandbox,
    }
}

impl Session {
    fn run(&mut self, case: &Case) -> Result<(), String> {
        let mut stdin = self.child.stdin.take();
        for directive in &case.script {
            match directive {
                Directive::Await(fields) => {
                    while !self.frames[self.seen..].iter().any(|frame| fits(&frame.value, fields)) {
                        self.seen = self.frames.len();
                        if !self.next_frame()? {
                            return Err(format!("no frame has {fields:?}"));
                        }
                    }
                    let at = self.frames[self.seen..].iter().position(|frame| fits(&frame.value, fields));
                    self.seen += at.map_or(0, |at| at + 1);
                }
                Directive::Send(text) => {
                    let line = format!("{}\n", with_ids(text, &self.question_ids()));
                    let pipe = stdin.as_mut().ok_or("a message after the end of stdin")?;
                    pipe.write_all(line.as_bytes()).map_err(|e| format!("stdin: {e}"))?;
                }
                Directive::Eof => stdin = None,
                Directive::Signal => {
                    kill_process(Pid::from_child(&self.child), Signal::TERM).map_err(|e| format!("kill: {e}"))?;
                }
            }
        }
        while self.next_frame()? {}
        Ok(())
    }

    /// Returns false at the end of stdout.
    fn next_frame(&mut self) -> Result<bool, String> {
        match self.lines.recv_timeout(limit()) {
            Ok(line) => {
                let value = serde_json::from_str(&line).map_err(|e| format!("not JSON ({e}): {line}"))?;
                self.frames.push(Frame { line: format!("{line}\n"), value });
                Ok(true)
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Ok(false),
            Err(_) => Err(format!("nothing more within {:?}, after {} frames", limit(), self.frames.len())),
        }
    }

    fn question_ids(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let asked =
            self.frames.iter().filter(|f| f.value["type"] == "run.question" && f.value["payload"]["attempt"] == 1);
        asked.filter_map(|frame| text(&frame.value["payload"]["question_id"])).collect()
    }
}

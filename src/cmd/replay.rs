//! `replay`: a process that plays the agent's side of a recording. At each recorded line of the host, it waits on stdin
//! for a line of the same shape, and answers as the agent did.

use super::texts::unread;
use crate::agent::ask_user::{named_server, renamed};
use crate::cli::Wrong;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, own_switch, store};
use crate::io::files::read_text;
use crate::io::lines::{Framed, LineReader};
use crate::io::output::{diagnose, print};
use crate::io::signals::end_by;
use crate::json::{Fields, string};
use crate::protocol::limits::AGENT_LINE_BYTES;
use crate::recording::{Moment, Recording};
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;

pub(super) const COMMAND: Command = Command {
    words: Words::Free("FILE [-- ARGUMENTS...]", Offers::Files),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "replay",
        &CommandText {
            about: "play the agent's side of a recording",
            more: "\
For each line that spektacular sent in the recording, replay waits on stdin for a line of the same type with the same ids.
If the recording has several processes, replay plays the first one that was started with these ARGUMENTS.",
            examples: &[
                ("spektacular adhoc --record run.jsonl \"say hello\"", "make a recording"),
                ("spektacular replay run.jsonl", "play it"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<Replay>] =
    &[own_switch("strict", "fail if stdin deviates from the recording", |to: &mut Replay| to.strict = true)
        .begins("Playing")];

#[derive(Debug, Default)]
struct Replay {
    file: PathBuf,
    strict: bool,
    /// The arguments with which the played agent was started.
    args: Vec<OsString>,
}

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<Replay, Wrong> {
    let mut words = words.into_iter();
    let file = words.next().ok_or("Missing FILE: replay needs a recording.")?.into();
    Ok(Replay { file, args: words.collect(), ..store(FLAGS, given)? })
}

const FILE_BYTES: u64 = 1 << 30;
/// The exit code under `--strict` when the host deviates from the recording.
const DIFFERS: u8 = 65;

/// Returns the recorded exit code.
fn run(replay: &Replay) -> u8 {
    let text = read_text(&replay.file, FILE_BYTES).map_err(|error| {
        let is_long = error.kind() == ErrorKind::FileTooLarge;
        if is_long { "the recording is longer than 1 GiB" } else { unread(error.kind()) }.to_owned()
    });
    let recording = text.and_then(|text| Recording::parse(&text));
    match recording {
        Ok(recording) => Player::new(recording, replay).play(),
        Err(why) => {
            diagnose(&format!("spektacular: replay: {why}"));
            crate::protocol::failure::Code::Usage.exit_code()
        }
    }
}

struct Player {
    moments: VecDeque<Moment>,
    strict: bool,
    /// The recorded working directory, if a line can name it: every path begins with the root directory.
    recorded_cwd: Option<String>,
    own_cwd: String,
    /// The current id of each of the host's requests, by the recorded id.
    ids: HashMap<String, String>,
    /// Likewise for the host's unanswered JSON-RPC requests, verbatim.
    rpc_ids: HashMap<String, String>,
    /// The server of our own tool. `None`: the recording has none, or a name from an older version.
    recorded_server: Option<String>,
    /// The server's current name, once the host has sent it.
    server: Option<String>,
}

enum Heard {
    Same,
    Differs,
    Ended,
}

impl Player {
    fn new(recording: Recording, replay: &Replay) -> Player {
        let own_cwd = std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
        let mut player = Player {
            moments: VecDeque::new(),
            strict: replay.strict,
            recorded_cwd: recording.header.cwd.clone().filter(|cwd| cwd.len() > 1 && cwd.starts_with('/')),
            own_cwd,
            ids: HashMap::new(),
            rpc_ids: HashMap::new(),
            recorded_server: recorded_server(&recording),
            server: given(&replay.args).find_map(|arg| named_server(&arg).map(str::to_owned)),
        };
        let processes = recording.processes();
        // The first argument is the program.
        let ours = |argv: &[String]| argv.iter().skip(1).map(|arg| player.translated(arg)).eq(given(&replay.args));
        let which = processes.iter().position(|process| ours(process.argv)).unwrap_or_default();
        player.moments = processes[which].moments.iter().map(|(_, moment)| moment.clone()).collect();
        player
    }

    fn play(mut self) -> u8 {
        let mut host = LineReader::small(std::io::stdin(), AGENT_LINE_BYTES);
        let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        let mut next = || {
            Some(match host.next()? {
                Framed::Line(line) => text(&line),
                Framed::Rest(line) => text(&line),
                // No line of the host's is so long.
                Framed::TooLong(_) => String::new(),
            })
        };
        while let Some(moment) = self.moments.pop_front() {
            match moment {
                Moment::Agent(line) => {
                    let line = self.answered(&self.translated(&line));
                    if !print(&format!("{line}\n")) {
                        return 1;
                    }
                }
                Moment::Stderr(line) => diagnose(&line),
                Moment::Note(_) => {}
                // Another process plays the remaining entries.
                Moment::Spawn(_) => break,
                Moment::Exit(code) => return u8::try_from(code).unwrap_or(1),
                Moment::Signal(signal) => return end_by(signal),
                Moment::Host(wanted) => match self.expect_line(&wanted, &mut next) {
                    Heard::Same => {}
                    Heard::Differs => return DIFFERS,
                    Heard::Ended => return self.last_exit(),
                },
                Moment::HostEof => {
                    while let Some(line) = next() {
                        diagnose(&format!("replay: the host sent {} after the recorded end of stdin", shape(&line)));
                        if self.strict {
                            return DIFFERS;
                        }
                    }
                }
            }
        }
        0
    }

    /// Waits for a line of the same shape as `wanted`.
    fn expect_line(&mut self, wanted: &str, next: &mut dyn FnMut() -> Option<String>) -> Heard {
        let expected = shape(wanted);
        let translated = self.translated(&expected);
        loop {
            let Some(line) = next() else {
                diagnose(&format!("replay: stdin ended, but the recording expects {expected}"));
                return if self.strict { Heard::Differs } else { Heard::Ended };
            };
            if shape(&line) == translated {
                if let (Some(recorded), Some(now)) = (request_id(wanted), request_id(&line)) {
                    self.ids.insert(recorded, now);
                }
                if let (Some((_, recorded, true)), Some((_, now, true))) = (rpc_id(wanted), rpc_id(&line)) {
                    self.rpc_ids.insert(recorded.to_owned(), now.to_owned());
                }
                self.server = self.server.take().or_else(|| named_server(&line).map(str::to_owned));
                return Heard::Same;
            }
            diagnose(&format!("replay: the host sent {}, but the recording expects {expected}", shape(&line)));
            if self.strict {
                return Heard::Differs;
            }
        }
    }

    fn last_exit(&self) -> u8 {
        match self.moments.back() {
            Some(Moment::Exit(code)) => u8::try_from(*code).unwrap_or(1),
            _ => 0,
        }
    }

    /// Converts a recorded line to the current names, ids and working directory.
    fn translated(&self, line: &str) -> String {
        let line = match &self.server {
            Some(now) => renamed(line, self.recorded_server.as_deref(), now),
            None => line.to_owned(),
        };
        self.in_own_directory(&self.with_current_ids(&line))
    }

    /// Takes one pass, whatever the number of ids.
    fn with_current_ids(&self, line: &str) -> String {
        let mut pieces = line.split('"').peekable();
        let mut out = pieces.next().unwrap_or_default().to_owned();
        // Every other piece follows a quote, and all but the last are followed by one.
        while let Some(piece) = pieces.next() {
            out.push('"');
            match self.ids.get(piece).filter(|_| pieces.peek().is_some()) {
                Some(now) => out.push_str(now),
                None => out.push_str(piece),
            }
        }
        out
    }

    fn in_own_directory(&self, line: &str) -> String {
        let Some(cwd) = &self.recorded_cwd else { return line.to_owned() };
        let mut pieces = line.split(cwd.as_str());
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            // The root directory already ends with a slash.
            let own = if piece.starts_with('/') { self.own_cwd.trim_end_matches('/') } else { &self.own_cwd };
            out.push_str(own);
            out.push_str(piece);
        }
        out
    }

    /// Converts a recorded JSON-RPC answer to the id of the current request.
    fn answered(&mut self, line: &str) -> String {
        let Some((at, id, false)) = rpc_id(line) else { return line.to_owned() };
        let Some(now) = self.rpc_ids.remove(id) else { return line.to_owned() };
        format!("{}{now}{}", &line[..at], &line[at + id.len()..])
    }
}

fn recorded_server(recording: &Recording) -> Option<String> {
    let lines = recording.moments.iter().filter_map(|(_, moment)| {
        let Moment::Host(line) = moment else { return None };
        Some(line)
    });
    recording.header.argv.iter().chain(lines).find_map(|text| named_server(text)).map(str::to_owned)
}

fn given(args: &[OsString]) -> impl Iterator<Item = String> {
    args.iter().map(|arg| arg.to_string_lossy().into_owned())
}

/// The shape of a line: its type or method, its subtype, and the id that it answers.
fn shape(line: &str) -> String {
    let Some(fields) = Fields::parse(line) else { return "a line that is not a JSON object".into() };
    let text = |fields: &Fields<'_>, name: &str| fields.get(name).and_then(string);
    let inner = |name: &str| fields.get(name).and_then(|raw| Fields::parse(raw.get()));
    let mut parts: Vec<String> = ["type", "method"].iter().filter_map(|name| text(&fields, name)).collect();
    parts.extend(inner("request").and_then(|request| text(&request, "subtype")));
    parts.extend(inner("response").and_then(|response| text(&response, "request_id")).map(|id| format!("to \"{id}\"")));
    if parts.is_empty() {
        parts.extend(fields.get("id").map(|id| format!("to {}", id.get())));
    }
    parts.join(" ")
}

fn request_id(line: &str) -> Option<String> {
    let fields = Fields::parse(line)?;
    fields.get("request").and(fields.get("request_id")).and_then(string)
}

/// The id of a JSON-RPC message: its position, its verbatim text, and whether the message is a request.
fn rpc_id(line: &str) -> Option<(usize, &str, bool)> {
    let fields = Fields::parse(line)?;
    let id = fields.get("id")?.get();
    let request = fields.get("method").is_some();
    (request || fields.get("result").or(fields.get("error")).is_some())
        .then(|| (id.as_ptr().addr() - line.as_ptr().addr(), id, request))
}

#[cfg(test)]
mod tests {
    use super::{Player, Recording, Replay};
    use crate::recording::Header;

    fn player(cwd: &str) -> Player {
        let header = Header { cwd: Some(cwd.to_owned()), ..Header::default() };
        let replay = Replay { strict: true, ..Replay::default() };
        Player::new(Recording { header, moments: Vec::new() }, &replay)
    }

    #[test]
    fn a_line_names_the_own_directory_in_the_place_of_the_recorded_one() {
        for (recorded, own, line, wanted) in [
            ("/home/a", "/home/a/b", "/home/a, /home/a/x", "/home/a/b, /home/a/b/x"),
            ("/home/a", "/", "/home/a, /home/a/x", "/, /x"),
            ("/", "/work", "/, /x and text/plain", "/, /x and text/plain"),
            ("", "/work", "any text", "any text"),
        ] {
            let player = Player { own_cwd: own.to_owned(), ..player(recorded) };
            assert_eq!(player.translated(line), wanted, "{recorded:?}");
        }
    }

    #[test]
    fn ids_are_replaced_once_and_in_linear_time() {
        let mut player = player("/home/a");
        const REQUESTS: usize = 20_000;
        for number in 0..REQUESTS {
            let request = |id| format!(r#"{{"type":"control_request","request_id":"r{id}","request":{{}}}}"#);
            player.expect_line(&request(number), &mut || Some(request(number + 1)));
        }
        for number in 0..REQUESTS {
            let answer = |id| format!(r#"{{"response":{{"request_id":"r{id}","x":"r"}},"y":""}}"#);
            assert_eq!(player.translated(&answer(number)), answer(number + 1));
        }
    }

    #[test]
    fn an_answer_has_the_id_of_the_current_request() {
        let replay = Replay { strict: true, ..Replay::default() };
        let mut player = Player::new(Recording::default(), &replay);
        let mut host = vec![r#"{"id":7,"method":"m"}"#.to_owned()].into_iter();
        player.expect_line(r#"{"method":"m","id":4}"#, &mut || host.next());
        assert_eq!(player.answered(r#"{"id":4,"result":{"id":4}}"#), r#"{"id":7,"result":{"id":4}}"#);
        assert_eq!(player.answered(r#"{"id":4,"method":"n"}"#), r#"{"id":4,"method":"n"}"#);
    }
}

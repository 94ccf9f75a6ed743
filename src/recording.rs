//! Recordings: one format for bug reports, golden tests and demos. It is JSON Lines: a header, then the dialogue in order.
//!
//! ```text
//! {"recording":1,"driver":"claude","agent_version":"2.1.330","argv":["claude","--print"],"cwd":"/home/user/project"}
//! {"at_ms":5,"host":"a line we wrote"}
//! {"at_ms":350,"agent":"a line the agent wrote"}
//! {"at_ms":351,"stderr":"a line of its stderr"}
//! {"at_ms":400,"host_eof":true}
//! {"at_ms":420,"exit":0}
//! ```
//! The dialogue ends with `exit` or `signal`. An agent with one process per turn has several of these; after each but the
//! last comes `{"at_ms":500,"spawn":["program","argument"]}`, the command line of the next process.
//! `{"at_ms":430,"note":"how a line was understood"}` may appear anywhere after the header, and is not part of the dialogue.
//! Readers ignore everything else.

use crate::json::{Fields, encode, map_keys_and_strings, map_strings, number, put_number, put_string, string};
use crate::protocol::text::Text;
use crate::redact::Redactor;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A line to the agent.
    Host(String),
    Agent(String),
    Stderr(String),
    /// On how a line was understood. Only written: it is not part of the dialogue.
    Note(String),
    HostEof,
    /// The command line of the agent's next process.
    Spawn(Vec<String>),
    Exit(i32),
    Signal(i32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub driver: String,
    pub agent_version: Option<String>,
    pub argv: Vec<String>,
    /// The working directory, which a replay replaces with its own.
    pub cwd: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    pub header: Header,
    /// Each with the time since the start.
    pub moments: Vec<(Duration, Moment)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    pub argv: &'a [String],
    pub moments: &'a [(Duration, Moment)],
}

impl Recording {
    /// Error: the mistake and its line.
    pub fn parse(text: &str) -> Result<Recording, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, first) = lines.next().ok_or("the recording is empty")?;
        let fields = Fields::parse(first).filter(|f| f.get("recording").and_then(number) == Some(1.0));
        let fields = fields.ok_or("line 1 is not the header of a recording of version 1")?;
        let header = Header {
            driver: fields.get("driver").and_then(string).unwrap_or_default(),
            agent_version: fields.get("agent_version").and_then(string),
            argv: fields.get("argv").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default(),
            cwd: fields.get("cwd").and_then(string),
        };
        let mut moments = Vec::new();
        for (at, line) in lines {
            let fields = Fields::parse(line).ok_or_else(|| format!("line {} is not a JSON object", at + 1))?;
            let ms = fields.get("at_ms").and_then(number).filter(|ms| *ms >= 0.0).unwrap_or(0.0);
            moments.extend(moment(&fields).map(|moment| (Duration::from_millis(ms as u64), moment)));
        }
        Ok(Recording { header, moments })
    }

    pub fn processes(&self) -> Vec<Process<'_>> {
        let mut argv = self.header.argv.as_slice();
        let mut all = Vec::new();
        let mut begin = 0;
        for (at, (_, moment)) in self.moments.iter().enumerate() {
            if let Moment::Spawn(next) = moment {
                all.push(Process { argv, moments: &self.moments[begin..at] });
                (argv, begin) = (next, at + 1);
            }
        }
        all.push(Process { argv, moments: &self.moments[begin..] });
        all
    }
}

fn moment(fields: &Fields<'_>) -> Option<Moment> {
    let text = |name| fields.get(name).and_then(string);
    let code = |name| fields.get(name).and_then(number).map(|n| n as i32);
    None.or_else(|| text("host").map(Moment::Host))
        .or_else(|| text("agent").map(Moment::Agent))
        .or_else(|| text("stderr").map(Moment::Stderr))
        .or_else(|| fields.get("host_eof").map(|_| Moment::HostEof))
        .or_else(|| fields.get("spawn").and_then(|raw| serde_json::from_str(raw.get()).ok()).map(Moment::Spawn))
        .or_else(|| code("exit").map(Moment::Exit))
        .or_else(|| code("signal").map(Moment::Signal))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessagePiece {
    pub(crate) message: u64,
    pub(crate) text: Text,
    pub(crate) done: bool,
}

/// The driver whose lines are plain text.
const PLAIN: &str = "lines";

/// The number of bytes of finished lines at which they are written at once.
const WRITE_BYTES: usize = 64 << 10;
/// The maximum number of bytes that are held back for incomplete messages.
const HELD_BYTES: usize = 8 << 20;

/// Lines wait until all messages in them are complete, because a secret may be split over the pieces of a message.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    files: Vec<File>,
    failed: bool,
    /// Lines to be written by [`Recorder::flush`].
    written: Vec<u8>,
    held: Vec<Held>,
    /// The incomplete messages in the held lines.
    open: BTreeSet<u64>,
    held_bytes: usize,
    /// Whether the agent's lines are plain text instead of JSON.
    plain: bool,
}

#[derive(Debug)]
struct Held {
    at: Duration,
    moment: Moment,
    pieces: Vec<MessagePiece>,
}

impl Recorder {
    /// The file gets all entries from now on.
    pub(crate) fn add(&mut self, file: File) {
        self.files.push(file);
    }

    pub(crate) fn header(&mut self, header: &Header) {
        self.plain = header.driver == PLAIN;
        let header = json!({"recording": 1, "driver": header.driver, "agent_version": header.agent_version,
            "argv": header.argv, "cwd": header.cwd});
        encode(&header, &mut self.written);
        self.written.push(b'\n');
        self.flush();
    }

    /// [`Recorder::write_complete_lines`] writes it.
    pub(crate) fn moment(&mut self, at: Duration, moment: Moment) {
        if let Moment::Agent(line) | Moment::Host(line) | Moment::Stderr(line) = &moment {
            self.held_bytes += line.len();
        }
        self.held_bytes += size_of::<Held>();
        self.held.push(Held { at, moment, pieces: Vec::new() });
    }

    /// Adds the pieces of messages in the agent's last line.
    pub(crate) fn pieces(&mut self, pieces: &mut Vec<MessagePiece>) {
        let last = self.held.iter_mut().rev().find(|held| matches!(held.moment, Moment::Agent(_)));
        if let Some(held) = last {
            for piece in pieces.iter() {
                if piece.done {
                    self.open.remove(&piece.message);
                } else {
                    self.open.insert(piece.message);
                }
            }
            held.pieces.append(pieces);
        }
        pieces.clear();
    }

    /// Writes nothing while a message in the held lines is incomplete, except at the end and beyond [`HELD_BYTES`].
    pub(crate) fn write_complete_lines(&mut self, redactor: &Redactor, end: bool) {
        let too_much = self.held_bytes > HELD_BYTES;
        if !(self.open.is_empty() || end || too_much) {
            return;
        }
        // The rest of a message that is cut here may complete a secret, so nothing of the message is written.
        let open = std::mem::take(&mut self.open);
        let cut = if too_much { open } else { BTreeSet::new() };
        let mut held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        blank_split_secrets(&mut held, redactor, &cut, self.plain);
        for Held { at, moment, .. } in held {
            self.write(at, &clean(moment, redactor));
        }
        if end {
            self.flush();
        }
    }

    fn write(&mut self, at: Duration, moment: &Moment) {
        let key = match moment {
            Moment::Host(_) => "host",
            Moment::Agent(_) => "agent",
            Moment::Stderr(_) => "stderr",
            Moment::Note(_) => "note",
            Moment::HostEof => "host_eof",
            Moment::Spawn(_) => "spawn",
            Moment::Exit(_) => "exit",
            Moment::Signal(_) => "signal",
        };
        let out = &mut self.written;
        out.extend_from_slice(b"{\"at_ms\":");
        put_number(u64::try_from(at.as_millis()).unwrap_or(u64::MAX), out);
        out.push(b',');
        put_string(key, out);
        out.push(b':');
        match moment {
            Moment::Host(text) | Moment::Agent(text) | Moment::Stderr(text) | Moment::Note(text) => {
                put_string(text, out);
            }
            Moment::HostEof => out.extend_from_slice(b"true"),
            Moment::Spawn(argv) => encode(argv, out),
            Moment::Exit(number) | Moment::Signal(number) => encode(number, out),
        }
        out.extend_from_slice(b"}\n");
        if out.len() >= WRITE_BYTES {
            self.flush();
        }
    }

    /// An error, such as a full disk, ends the recording and not the run.
    pub(crate) fn flush(&mut self) {
        if self.written.is_empty() {
            return;
        }
        let before = self.files.len();
        self.files.retain_mut(|file| file.write_all(&self.written).is_ok());
        self.failed |= self.files.len() < before;
        self.written.clear();
        self.written.shrink_to(2 * WRITE_BYTES);
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed
    }
}

/// If the joined text of a message contains a secret that no single piece contains, empties its pieces and puts the
/// whole redacted text into the last one.
fn blank_split_secrets(held: &mut [Held], redactor: &Redactor, cut: &BTreeSet<u64>, plain: bool) {
    let mut pieces = held.iter().flat_map(|held| &held.pieces);
    if pieces.next().is_none() || (pieces.next().is_none() && cut.is_empty()) {
        // A single piece is not split.
        return;
    }
    let mut messages: BTreeMap<u64, (String, String)> = BTreeMap::new();
    for piece in held.iter().flat_map(|held| &held.pieces) {
        let (joined, alone) = messages.entry(piece.message).or_default();
        joined.push_str(piece.text.unredacted());
        alone.push_str(&redactor.redact_uncleaned(piece.text.unredacted()));
    }
    for (message, (joined, alone)) in messages {
        let whole = redactor.redact_uncleaned(&joined);
        if whole == alone && !cut.contains(&message) {
            continue;
        }
        let mut left = (!cut.contains(&message)).then(|| whole.into_owned());
        for held in held.iter_mut().rev() {
            let Moment::Agent(line) = &mut held.moment else { continue };
            let mut pieces = held.pieces.iter().filter(|piece| piece.message == message && !piece.text.is_empty());
            if plain && pieces.next().is_some() {
                *line = left.take().unwrap_or_default();
                continue;
            }
            for piece in pieces {
                let text = left.take().unwrap_or_default();
                let is_this = |old: &str| is_piece(old, piece.text.unredacted());
                *line = map_strings(line, &mut |old| if is_this(old) { text.clone() } else { old.to_owned() });
            }
        }
    }
}

/// Whether a string of a line is this piece of a message. A driver joins the halves of a character that two pieces have:
/// the first piece has none of it, the second all.
fn is_piece(string: &str, piece: &str) -> bool {
    let mut chars = piece.chars();
    chars.next();
    let is_same = |string: &str| string == piece || string.strip_prefix('\u{fffd}') == Some(chars.as_str());
    is_same(string) || string.strip_suffix('\u{fffd}').is_some_and(is_same)
}

/// Whether redaction leaves a line as it is, which holds for most lines: without a character that has an escape or needs
/// one, and without the beginning of a secret.
fn stays(line: &str, redactor: &Redactor) -> bool {
    let is_odd = |byte: u8| !(b' '..=b'~').contains(&byte) | (byte == b'\\');
    // Without a branch, a block of bytes is one computation.
    !line.bytes().fold(false, |odd, byte| odd | is_odd(byte)) && redactor.is_clear(line)
}

/// Redacts an entry. In a line of JSON, each string is redacted separately, because a match may extend to the end of a
/// text. Keys are redacted too, because the key of an answer may be a question that quotes a secret.
fn clean(moment: Moment, redactor: &Redactor) -> Moment {
    let text = |line: String| {
        if stays(&line, redactor) {
            return line;
        }
        if serde_json::from_str::<&RawValue>(&line).is_ok() {
            return map_keys_and_strings(&line, &mut |text| redactor.redact_uncleaned(text));
        }
        redactor.redact_uncleaned(&line).into_owned()
    };
    match moment {
        Moment::Host(line) => Moment::Host(text(line)),
        Moment::Agent(line) => Moment::Agent(text(line)),
        Moment::Stderr(line) => Moment::Stderr(text(line)),
        Moment::Note(line) => Moment::Note(text(line)),
        Moment::Spawn(argv) => Moment::Spawn(argv.into_iter().map(text).collect()),
        Moment::HostEof | Moment::Exit(_) | Moment::Signal(_) => moment,
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, MessagePiece, Moment, Recorder};
    use crate::redact::Redactor;
    use std::io::{Read, Seek};
    use std::time::Duration;

    /// The recording of a message whose pieces are these strings of JSON, each with its text as the driver reads it.
    fn recorded(pieces: &[(&str, &str)], redactor: &Redactor) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let mut recorder = Recorder::default();
        recorder.add(file.try_clone().unwrap());
        recorder.header(&Header::default());
        for (at, (literal, text)) in pieces.iter().enumerate() {
            recorder.moment(Duration::ZERO, Moment::Agent(format!(r#"{{"text":"{literal}"}}"#)));
            let done = at + 1 == pieces.len();
            recorder.pieces(&mut vec![MessagePiece { message: 1, text: (*text).into(), done }]);
        }
        recorder.write_complete_lines(redactor, true);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn half_a_surrogate_pair_is_recorded_as_it_came() {
        let text = recorded(&[(r"a \ud83d", "a "), (r"\ude00!", "\u{1f600}!")], &Redactor::new());
        assert!(text.contains(r"a \\ud83d") && text.contains(r"\\ude00!"), "{text}");
    }

    #[test]
    fn a_secret_is_hidden_wherever_its_character_is_cut() {
        let (secret, mut redactor) = ("hunter2-\u{1f600}-Zq7731", Redactor::new());
        assert!(redactor.add(secret));
        for (first, second) in [
            ((r"hunter2-\ud83d", "hunter2-"), (r"\ude00-Zq7731", "\u{1f600}-Zq7731")),
            ((r"hunter2-\ud83d\ude00", "hunter2-\u{1f600}"), ("-Zq7731", "-Zq7731")),
            ((r"hunter2-\ufffd\ud83d", "hunter2-\u{fffd}"), (r"\ude00-Zq7731", "\u{1f600}-Zq7731")),
        ] {
            let text = recorded(&[first, second], &redactor);
            let is_secret = !first.0.contains("fffd");
            assert_eq!(text.contains("Zq7731"), !is_secret, "{text}");
            assert_eq!(text.contains("hunter2"), !is_secret, "{text}");
        }
    }
}

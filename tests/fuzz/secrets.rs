//! Secrets in recorded runs, in every form and place: no frame, no diagnostic, no recording and no terminal shows one.

use super::input::Input;
use super::json::Node;
use super::playback::case::{self, agents_of};
use super::playback::world::{RecordingHost, exited};
use super::rng::Rng;
use super::round::{Checked, settings, share};
use super::stage::of_case;
use serde_json::{Value, json};
use spektacular::config::Layers;
use spektacular::engine::{Conductor, Job, Peer};
use spektacular::json_lines::JsonLines;
use spektacular::protocol::inbound;
use spektacular::run::{AgentEnd, Event};
use spektacular::terminal::{Detail, Look, TerminalPeer};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Instant;

const SECRETS: [&str; 4] =
    ["hunter2-Zq7731xyAbc", "pa\"ss\\w0rd/7731+#<x>", "geheim-ß€-ü42-Zq", "first-Line-77\nsecond-Line-88"];

/// The number of random runs in a short round.
const RUNS: u64 = 50;

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        let letters = (0..=chunk.len()).map(|place| ALPHABET[(word >> (18 - 6 * place)) as usize & 63]);
        out.extend(letters.map(char::from));
    }
    out
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let keep = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let _ = if keep { write!(out, "{}", char::from(byte)) } else { write!(out, "%{byte:02X}") };
        out
    })
}

fn escaped(text: &str) -> String {
    let json = json!(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// The middle of the secret in base64 with this many bytes before it. It does not depend on the surrounding bytes.
fn base64_middle(secret: &str, before: usize) -> String {
    let data = [&vec![b'x'; before][..], secret.as_bytes()].concat();
    let skip = (before * 8).div_ceil(6);
    base64(&data)[skip..data.len() * 8 / 6].to_owned()
}

/// The placeholder for the secret.
fn forms(secret: &str) -> Vec<String> {
    let mut all = vec![
        secret.to_owned(),
        escaped(secret),
        escaped(&escaped(secret)),
        percent(secret),
        hex(secret),
        hex(secret).to_uppercase(),
    ];
    all.extend((0..3).map(|before| base64_middle(secret, before)));
    all.sort();
    all.dedup();
    all
}

/// A text that contains the secret.
fn text_with(secret: &str, screen: bool, rng: &mut Rng) -> String {
    let before = ["", "it is ", "a=", "\"", "x\n", "é"][rng.below(6)];
    let after = ["", " and more", "\"", "\n", "'", "\u{200b}"][rng.below(6)];
    let at = secret.floor_char_boundary(1 + rng.below(secret.len() - 1));
    let form = match rng.below(12) {
        0..=3 => secret.to_owned(),
        // Only the output of a terminal is cleaned, and only there a secret split by an escape sequence or an invisible
        // character becomes visible.
        4 if screen => format!("{}\u{1b}[3{}m{}", &secret[..at], rng.below(8), &secret[at..]),
        5 if screen => format!("{}\u{feff}{}", &secret[..at], &secret[at..]),
        6 => base64(format!("user{}:{secret}", "x".repeat(rng.below(3))).as_bytes()),
        7 => json!({"key": secret}).to_string(),
        8 => json!(json!({"key": secret}).to_string()).to_string(),
        9 => secret.repeat(2),
        _ => rng.pick(&forms(secret)).clone(),
    };
    // Long enough that the limit of a title, an option, an output or a frame cuts through it.
    let fill = [0, 0, 0, 0, 100, 112, 1010, 16_000, 65_520][rng.below(9)];
    format!("{}{before}{form}{after}", "w ".repeat(fill / 2))
}

/// The names of fields whose strings are words or ids, which are never redacted.
const WORDS: &[&str] = &[
    "type",
    "subtype",
    "method",
    "id",
    "session_id",
    "sessionId",
    "request_id",
    "role",
    "uuid",
    "tool_use_id",
    "jsonrpc",
    "threadId",
    "turnId",
    "itemId",
    "status",
    "kind",
    "sessionUpdate",
    "toolCallId",
    "optionId",
    "category",
    "parent_tool_use_id",
    "name",
    "tool_name",
];

/// Puts a text into one of the strings of a line. Returns false if the line has none.
fn put(node: &mut Node, text: &str, rng: &mut Rng) -> bool {
    let count = node.count();
    for _ in 0..40 {
        let number = rng.below(count);
        if is_word(node, number) {
            continue;
        }
        if let Some(found) = node.at(number)
            && found.inside().is_some()
        {
            *found = Node::string(&escaped(text));
            return true;
        }
    }
    false
}

/// Whether the value with this number belongs to a field of [`WORDS`].
fn is_word(node: &mut Node, number: usize) -> bool {
    let mut words = Vec::new();
    let mut next = 0;
    number_words(node, &mut next, &mut words);
    words.contains(&number)
}

fn number_words(node: &Node, next: &mut usize, words: &mut Vec<usize>) {
    *next += 1;
    match node {
        Node::Scalar(_) => {}
        Node::Array(all) => all.iter().for_each(|node| number_words(node, next, words)),
        Node::Object(all) => {
            for (key, node) in all {
                if WORDS.contains(&key.trim_matches('"')) {
                    words.push(*next);
                }
                number_words(node, next, words);
            }
        }
    }
}

fn is_piece(line: &str) -> bool {
    ["text_delta", "thinking_delta", "/delta", "_chunk"].iter().any(|word| line.contains(word))
}

/// The recorded run with the secret in some of its lines. Also returns whether a secret was split.
fn with_secret(input: &Input, secret: &str, screen: bool, rng: &mut Rng) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let every = 1 + rng.below(4);
    for line in input {
        let line = String::from_utf8_lossy(line).into_owned();
        let said = line.strip_prefix("< ").filter(|_| rng.once_in(every));
        let Some((said, node)) = said.map(|said| (said, Node::parse(said).filter(|node| node.count() > 1))) else {
            lines.push(line);
            continue;
        };
        let text = text_with(secret, screen, rng);
        match node {
            None => lines.extend(text.lines().map(|part| format!("< {said}{part}"))),
            Some(node) if is_piece(said) => {
                for piece in rng.pieces(&text) {
                    let mut one = node.clone();
                    put_piece(&mut one, piece);
                    lines.push(format!("< {}", one.text()));
                }
            }
            Some(mut node) => {
                put(&mut node, &text, rng);
                lines.push(format!("< {}", node.text()));
            }
        }
    }
    lines
}

/// Puts a piece into the field of the line that holds pieces.
fn put_piece(node: &mut Node, piece: &str) {
    match node {
        Node::Object(all) => {
            for (key, node) in all {
                if ["\"text\"", "\"thinking\"", "\"delta\""].contains(&key.as_str()) && node.inside().is_some() {
                    *node = Node::string(&escaped(piece));
                } else {
                    put_piece(node, piece);
                }
            }
        }
        Node::Array(all) => all.iter_mut().for_each(|node| put_piece(node, piece)),
        Node::Scalar(_) => {}
    }
}

/// The output of the process.
#[derive(Default)]
struct Out {
    stdout: String,
    stderr: String,
    recording: String,
}

/// Plays the lines against a peer.
fn play<P: Peer>(mut peer: P, lines: &[String], secret: &str, record: &Path) -> Out {
    let head = lines.first().and_then(|line| line.strip_prefix("= ")).unwrap_or("{}");
    let agents = agents_of(&serde_json::from_str(head).expect("the configuration of a case"));
    let job = Job { record: Some(record.to_owned()), mirror_stderr: true, ..Job::new(Layers::new(agents)) };
    let mut conductor = Conductor::new(job, &mut peer, RecordingHost::at("/home/user/project"), "s");
    let mut out = Out::default();
    let mut ids: Vec<String> = Vec::new();
    let mut take = |conductor: &mut Conductor<&mut P, RecordingHost>, ids: &mut Vec<String>| {
        for _ in 0..100_000 {
            while !conductor.outbox().is_empty() {
                let chunk = conductor.outbox().pop();
                for line in String::from_utf8_lossy(&chunk.out).lines() {
                    let frame: Value = serde_json::from_str(line).unwrap_or_default();
                    if frame["payload"]["attempt"] == 1 {
                        ids.extend(frame["payload"]["question_id"].as_str().map(str::to_owned));
                    }
                }
                out.stderr.push_str(&String::from_utf8_lossy(&[chunk.before, chunk.err].concat()));
                out.stdout.push_str(&String::from_utf8_lossy(&chunk.out));
            }
            if !conductor.run().has_more() {
                return;
            }
            conductor.more();
        }
    };
    for line in lines {
        let (tag, rest) = line.split_at(line.len().min(2));
        match tag {
            "> " => {
                let text = case::with_ids(rest, &ids);
                let text = if text.contains("run.start") { started(&text, secret) } else { text };
                if let Some(message) = inbound::parse(text.as_bytes()) {
                    conductor.inbound(message);
                }
            }
            "< " if conductor.host_mut().has_process => {
                conductor.line(rest.to_owned());
                take(&mut conductor, &mut ids);
                conductor.stderr_text(&format!("stderr {secret} {}\n", escaped(secret)));
            }
            "e" => conductor.step(Event::InputEnded),
            "k" => conductor.signalled(15),
            "x " => gone(&mut conductor, secret),
            _ => {}
        }
        take(&mut conductor, &mut ids);
        conductor.spawn_if_due();
    }
    gone(&mut conductor, secret);
    for _ in 0..2 {
        conductor.signalled(15);
        gone(&mut conductor, secret);
        take(&mut conductor, &mut ids);
    }
    out.recording = fs::read_to_string(record).unwrap_or_default();
    out
}

fn gone<P: Peer>(conductor: &mut Conductor<&mut P, RecordingHost>, secret: &str) {
    if std::mem::take(&mut conductor.host_mut().has_process) {
        let end = AgentEnd {
            exit: exited(1),
            leaked: false,
            lost_session: false,
            stderr: format!("it ended with {secret}\n").into(),
        };
        conductor.tree_gone(&end);
        conductor.agent_ended(end, Ok(Vec::new()));
    }
}

/// The run.start with the secret.
fn started(line: &str, secret: &str) -> String {
    let mut message: Value = serde_json::from_str(line).expect("a run.start of a case");
    let payload = &mut message["payload"];
    payload["secrets"] = json!([secret]);
    payload["progress"] = json!("full");
    payload["metadata"] = json!({"note": format!("metadata {secret}")});
    message.to_string()
}

/// All strings of a value, except for the ids of sessions. `keys`: includes its keys.
fn strings(value: &Value, keys: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|value| strings(value, keys, found)),
        Value::Object(all) => {
            for (key, value) in all {
                if keys {
                    found.push(key.clone());
                }
                if key != "session_id" {
                    strings(value, keys, found);
                }
            }
        }
        _ => {}
    }
}

/// Fails if a text shows a form of the secret.
fn hidden(forms: &[String], what: &str, text: &str) -> Checked {
    for form in forms {
        if let Some(at) = text.find(form.as_str()) {
            let (from, to) = (text.floor_char_boundary(at.saturating_sub(300)), text.ceil_char_boundary(at + 200));
            return Err(format!("{what} shows {form:?}: {}", &text[from..to.min(text.len())]));
        }
    }
    Ok(())
}

fn frames_hide(forms: &[String], stdout: &str) -> Checked {
    let mut messages: Vec<(String, String)> = Vec::new();
    for line in stdout.lines() {
        let frame: Value = serde_json::from_str(line).map_err(|e| format!("no frame ({e}): {line}"))?;
        let mut found = Vec::new();
        strings(&frame["payload"], false, &mut found);
        found.iter().try_for_each(|text| hidden(forms, "a frame", text))?;
        let payload = &frame["payload"];
        if let (Some(id), Some(text)) = (payload["message_id"].as_str(), payload["text"].as_str())
            && frame["type"] == "run.progress"
        {
            match messages.iter_mut().find(|(known, _)| known == id) {
                Some((_, joined)) => joined.push_str(text),
                None => messages.push((id.to_owned(), text.to_owned())),
            }
        }
    }
    messages.iter().try_for_each(|(_, text)| hidden(forms, "a message", text))
}

fn recording_hides(forms: &[String], recording: &str) -> Checked {
    let mut joined = String::new();
    for line in recording.lines() {
        let moment: Value =
            serde_json::from_str(line).map_err(|e| format!("the recording has no JSON ({e}): {line}"))?;
        let mut found = Vec::new();
        strings(&moment, true, &mut found);
        for text in found.clone() {
            hidden(forms, "a recording", &text)?;
            let Ok(inner) = serde_json::from_str::<Value>(&text) else { continue };
            let mut inside = Vec::new();
            strings(&inner, true, &mut inside);
            inside.iter().try_for_each(|text| hidden(forms, "a recorded line", text))?;
            if is_piece(&text) {
                pieces(&inner, &mut joined);
            }
        }
    }
    hidden(forms, "a recording in pieces", &joined)
}

/// Adds the pieces of messages in a line.
fn pieces(value: &Value, joined: &mut String) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                match value.as_str().filter(|_| ["text", "thinking", "delta"].contains(&key.as_str())) {
                    Some(piece) => joined.push_str(piece),
                    None => pieces(value, joined),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| pieces(value, joined)),
        _ => {}
    }
}

fn check(lines: &[String], secret: &str, screen: bool, look: Look, record: &Path) -> Checked {
    let forms = &forms(secret);
    if screen {
        let out = play(TerminalPeer::new(look, None, None), lines, secret, record);
        hidden(forms, "stdout", &out.stdout)?;
        hidden(forms, "stderr", &out.stderr)?;
        return recording_hides(forms, &out.recording);
    }
    let out = play(JsonLines::default(), lines, secret, record);
    if !out.stdout.contains("\"type\":\"run.started\"") {
        return Err("the run did not start".into());
    }
    frames_hide(forms, &out.stdout)?;
    hidden(forms, "stderr", &out.stderr)?;
    recording_hides(forms, &out.recording)
}

/// Drops lines that the leak does not need.
fn fewer(lines: Vec<String>, leaks: impl Fn(&[String]) -> bool) -> Vec<String> {
    let (mut lines, mut at) = (lines, 1);
    while at < lines.len() {
        let mut rest = lines.clone();
        rest.remove(at);
        if leaks(&rest) { lines = rest } else { at += 1 }
    }
    lines
}

#[test]
fn no_output_of_any_run_shows_a_secret() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let record = folder.path().join("recording.jsonl");
    let inputs: Vec<Input> = case::all().iter().map(of_case).collect();
    let (seed, seconds) = settings();
    let (began, time) = (Instant::now(), seconds.map(share));
    let mut number = 0;
    while time.map_or(number < RUNS, |time| began.elapsed() < time) {
        let mut rng = Rng::new(seed.wrapping_mul(31).wrapping_add(number));
        number += 1;
        let secret = *rng.pick(&SECRETS);
        let screen = rng.once_in(2);
        let look = Look {
            detail: if rng.once_in(3) { Detail::Normal } else { Detail::Verbose },
            person: rng.once_in(2),
            live: rng.once_in(2),
            escapes: rng.once_in(2),
            shared: rng.once_in(2),
            ..Look::default()
        };
        let input = rng.pick(&inputs).clone();
        let lines = with_secret(&input, secret, screen, &mut rng);
        let check = |lines: &[String]| check(lines, secret, screen, look, &record);
        if check(&lines).is_err() {
            let lines = fewer(lines, |lines| matches!(check(lines), Err(why) if why != "the run did not start"));
            let why = check(&lines).err().unwrap_or_default();
            panic!("{why}\nrun {number} of FUZZ_SEED={seed}, {look:?}, screen: {screen}\n{}", lines.join("\n"));
        }
    }
    println!("secrets: {number} runs, {:.0} a second", number as f64 / began.elapsed().as_secs_f64());
}

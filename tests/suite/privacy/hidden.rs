//! Each text of each recording is a secret once: no frame shows it, and the agent still receives the same lines.

use crate::playback::case::{self, Case};
use crate::playback::player::Player;
use crate::playback::world::Frame;
use serde_json::Value;
use spektacular::protocol::request::Options;
use spektacular::protocol::words::Level;
use std::collections::{BTreeMap, BTreeSet};

/// A kind of text, and an example.
type Told = (&'static str, String);

fn play(case: &Case, progress: Option<Level>, secrets: &[&str]) -> Result<Vec<Frame>, String> {
    let secrets = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    let over = Options { secrets: Some(secrets), progress, ..Options::default() };
    Ok(Player::play_with(case, over)?.world.frames)
}

/// The frames without a secret, and their level: the highest, unless that changes the lines for the agent.
fn whole(case: &Case) -> (Option<Level>, Vec<Frame>) {
    match play(case, Some(Level::Full), &[]) {
        Ok(frames) => (Some(Level::Full), frames),
        Err(_) => (None, play(case, None, &[]).unwrap_or_else(|why| panic!("{}: {why}", case.name))),
    }
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The texts of the messages, with their pieces joined.
fn messages(frames: &[Frame]) -> Vec<Told> {
    let mut joined: BTreeMap<(&str, String), String> = BTreeMap::new();
    let progress = frames.iter().filter(|frame| frame.value["type"] == "run.progress");
    for payload in progress.map(|frame| &frame.value["payload"]) {
        let kind = match payload["kind"].as_str() {
            Some("text") => "a message",
            Some("reasoning") => "a thought",
            _ => continue,
        };
        let id = string(&payload["message_id"]).unwrap();
        *joined.entry((kind, id)).or_default() += payload["text"].as_str().unwrap();
    }
    joined.into_iter().map(|((kind, _), text)| (kind, text)).collect()
}

/// The texts in a frame that come from the agent.
fn told(frame: &Frame) -> Vec<Told> {
    let payload = &frame.value["payload"];
    let mut all: Vec<(&'static str, &Value)> = Vec::new();
    match (frame.value["type"].as_str().unwrap(), payload["kind"].as_str()) {
        ("run.progress", Some("tool")) => {
            all.extend([("a tool's title", &payload["text"]), ("a tool's output", &payload["output"])]);
        }
        ("run.progress", Some("plan")) => {
            let entries = payload["entries"].as_array().unwrap();
            all.extend(entries.iter().map(|entry| ("a plan", &entry["text"])));
        }
        ("run.question", _) if payload["purpose"] == "permission" => {
            let subject = &payload["subject"];
            all.extend([("a permission's title", &subject["title"]), ("a permission's detail", &subject["detail"])]);
        }
        ("run.question", _) => {
            all.extend([("a question", &payload["text"]), ("a question's header", &payload["header"])]);
            for option in payload["options"].as_array().into_iter().flatten() {
                all.extend([("an option", &option["label"]), ("an option", &option["description"])]);
            }
        }
        ("run.completed", _) => all.push(("the answer", &payload["text"])),
        ("run.failed", _) => {
            let detail = &payload["detail"];
            all.extend([("an error", &detail["agent_message"]), ("stderr", &detail["stderr_tail"])]);
        }
        _ => {}
    }
    all.into_iter().filter_map(|(kind, value)| Some((kind, string(value)?))).collect()
}

/// The texts that can be secrets: one line that is long enough.
fn candidates(frames: &[Frame]) -> BTreeSet<Told> {
    let all = messages(frames).into_iter().chain(frames.iter().flat_map(told));
    let lines = all.filter_map(|(kind, text)| {
        let line = text.lines().map(|line| line.trim().trim_end_matches('…')).max_by_key(|line| line.len())?;
        Some((kind, line.chars().take(200).collect::<String>().trim().to_owned()))
    });
    let mut probe = spektacular::redact::Redactor::new();
    lines.filter(|(_, line)| line.len() >= 8 && probe.add(line)).collect()
}

/// The strings that must not contain a secret: all except ids and the protocol's own words.
fn strings<'a>(key: &str, value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(_) if key.ends_with("_id") || matches!(key, "type" | "code" | "kind" | "resolution") => {}
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(key, item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| strings(key, value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The place that shows this text although it is a secret.
fn leak(case: &Case, progress: Option<Level>, secret: &str) -> Option<String> {
    let frames = match play(case, progress, &[secret]) {
        Ok(frames) => frames,
        Err(why) => return Some(why),
    };
    for frame in &frames {
        let mut found = Vec::new();
        strings("", &frame.value["payload"], &mut found);
        if found.iter().any(|text| text.contains(secret)) {
            return Some(frame.line.clone());
        }
    }
    messages(&frames).into_iter().map(|(_, text)| text).find(|text| text.contains(secret))
}

/// The kinds of text that the recordings of each dialect must contain, so that the test examines them.
const COVERED: &[(&str, &[&str])] = &[
    ("claude", &["a question's header", "an option"]),
    ("codex", &["a question's header", "an option"]),
    ("gemini", &[]),
    ("opencode", &[]),
    ("lines", &["an option"]),
];
const BY_ALL: [&str; 3] = ["a message", "the answer", "a question"];
const BY_ALL_WITH_TOOLS: [&str; 6] =
    ["a thought", "a tool's title", "a tool's output", "a permission's title", "a permission's detail", "an error"];

#[test]
fn a_secret_text_of_any_agent_is_hidden() {
    let (mut covered, mut wrong) = (BTreeSet::new(), Vec::new());
    for case in case::all() {
        let agent = case.name.split('/').next().unwrap().to_owned();
        let (progress, frames) = whole(&case);
        for (kind, secret) in candidates(&frames) {
            if let Some(shown) = leak(&case, progress, &secret) {
                wrong.push(format!("{}: {kind}: {secret:?} in {shown}", case.name));
            }
            covered.insert((agent.clone(), kind));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n{} wrong", wrong.join("\n"), wrong.len());
    for (agent, own) in COVERED {
        let tools: &[&str] = if *agent == "lines" { &[] } else { &BY_ALL_WITH_TOOLS };
        for kind in own.iter().chain(&BY_ALL).chain(tools) {
            assert!(covered.contains(&((*agent).to_owned(), *kind)), "no recording of {agent} has {kind}: {covered:?}");
        }
    }
}

/// The options in the recordings of these two agents are too short to be secrets.
#[test]
fn a_secret_option_is_hidden_and_the_agent_gets_its_true_label() {
    let secret = "Blue-hunter2-7731";
    for name in ["gemini/question_marker", "opencode/question_marker"] {
        let case = Case::renamed(name, "Blue", secret);
        let frames = play(&case, None, &[]).unwrap();
        assert!(frames.iter().flat_map(told).any(|told| told == ("an option", secret.to_owned())), "{name}");
        assert_eq!(leak(&case, None, secret), None, "{name}");
    }
}

//! The protocol reference tells the truth: its examples are what the library reads and writes, nothing that the
//! library has is missing from it, and its dialogue is what the program really says.
//!
//! For every type of frame there is one body with all that can be in it, and one with as little as possible. Literals
//! and matches name every field and variant: a new one does not compile before somebody has looked at the page.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::Value;
use serde_json::value::RawValue;
use spektacular::failure::{Code, EXIT_UNDELIVERED, Failure};
use spektacular::help::{self, Goes};
use spektacular::protocol::frame::Stamper;
use spektacular::protocol::inbound::{self, Message};
use spektacular::protocol::json::{Fields, string};
use spektacular::protocol::limits;
use spektacular::protocol::outbound::{
    About, AgentExit, Artifact, ArtifactRef, Body, Capabilities, Left, Outcome, Place, PlanEntry, Progress, Question,
    Started, SubjectFrame, Tally, Terminal, Unattended, Usage,
};
use spektacular::protocol::question::{Answer, Ask, Choice, Choices, Given, Input, Kind, Validation};
use spektacular::protocol::request::{DEFAULT_START_TIMEOUT, Options, Seconds};
use spektacular::protocol::words::{
    Action, Category, PathType, PlanStatus, Purpose, QuestionKind, Resolution, Source, Status, StopReason, ToolState,
    WaitingOn, Warning,
};

const PAGE: &str = include_str!("../src/protocol/reference.md");
/// Objects whose keys are somebody else's.
const FREE: [&str; 3] = ["payload.metadata", "payload.config.permissions", "payload.structured_output"];

/// The lines of all blocks with this tag.
fn lines(tag: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut open: Option<&str> = None;
    for line in PAGE.lines() {
        match (open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some(info),
            (Some(_), Some(_)) => open = None,
            (Some(info), None) if info == tag => found.push(line),
            _ => {}
        }
    }
    assert!(!found.is_empty(), "no block with the tag {tag}");
    found
}

/// All lines that come out of the program, those of the dialogue too.
fn frames() -> Vec<&'static str> {
    let said = lines("jsonl dialogue").into_iter().filter_map(|line| line.strip_prefix("< "));
    lines("jsonl out").into_iter().chain(said).collect()
}

fn section(heading: &str) -> &'static str {
    let start = PAGE.find(&format!("# {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let rest = &PAGE[start + 2..];
    &rest[..rest.find("\n#").unwrap_or(rest.len())]
}

/// The section that is about a type of frame.
fn home(kind: &str) -> &'static str {
    match kind {
        "run.completed" | "run.failed" | "run.cancelled" => section("run.completed, run.failed, run.cancelled"),
        other => section(other),
    }
}

/// The cells of the table row in `text` that begins with `first`.
fn row(text: &'static str, first: &str) -> Vec<&'static str> {
    let head = format!("| {first} |");
    let line = text.lines().find(|line| line.starts_with(&head)).unwrap_or_else(|| panic!("no row {head}"));
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn names(text: &str, word: &str) -> bool {
    text.contains(&format!("`{word}`"))
}

fn capabilities() -> Capabilities {
    let (resume, deltas, structured_output, usage) = (Some(true), None, None, None);
    Capabilities { questions: vec![QuestionKind::Select], resume, deltas, structured_output, usage }
}

fn started(truncated: bool) -> Body {
    let mut settings = Options::default().resolve("go".into(), "demo".into(), "/home/me".into());
    settings.start_timeout = Some(DEFAULT_START_TIMEOUT);
    Body::Started(Box::new(Started {
        agent: "demo".into(),
        display_name: "Demo".into(),
        settings: Box::new(settings),
        capabilities: capabilities(),
        metadata: None,
        cwd: "/home/me".into(),
        agent_args: Vec::new(),
        truncated,
    }))
}

fn place(line: Option<u64>) -> Place {
    Place { path: "a".into(), line }
}

fn subject() -> SubjectFrame {
    let locations = vec![place(Some(1))];
    SubjectFrame { category: Category::Edit, title: "t".into(), locations, detail: "d".into() }
}

fn about_resolved(permission: Option<(SubjectFrame, Option<String>)>) -> About {
    About::Resolved {
        question_id: "q_1".into(),
        resolution: Resolution::Policy,
        used_default: false,
        permission,
        what: "w".into(),
    }
}

fn about_tool(line: Option<u64>, output: Option<&str>) -> About {
    About::Tool {
        call_id: "c_1".into(),
        category: Category::Read,
        state: ToolState::Completed,
        locations: vec![place(line)],
        output: output.map(Into::into),
    }
}

/// Every kind of progress: with as much, and with as little as can be in it.
fn abouts() -> Vec<(About, About)> {
    let message_id = || "m_1".to_owned();
    let same = |about: About| (about.clone(), about);
    let text = |withdrawn| About::Text { message_id: message_id(), done: true, withdrawn };
    let reasoning = |withdrawn| About::Reasoning { message_id: message_id(), done: true, withdrawn };
    let (session_id, agent_version, model) = (None, None, None);
    let all = vec![
        same(About::Status(Status::Running)),
        same(About::Session { session_id, agent_version, model, capabilities: Some(capabilities()) }),
        same(About::Warning(Warning::UnknownType)),
        (about_resolved(Some((subject(), None))), about_resolved(None)),
        same(About::Heartbeat { idle_s: Seconds(1.0), waiting_on: WaitingOn::Input }),
        (text(true), text(false)),
        (reasoning(true), reasoning(false)),
        (about_tool(Some(1), Some("o")), about_tool(None, None)),
        same(About::Plan(vec![PlanEntry { text: "t".into(), status: PlanStatus::Pending }])),
        same(About::Usage(Usage::default())),
    ];
    // No wildcard: a new kind must be added above too.
    all.iter().for_each(|(most, _)| match most {
        About::Status(_) | About::Session { .. } | About::Warning(_) | About::Resolved { .. } => {}
        About::Heartbeat { .. } | About::Text { .. } | About::Reasoning { .. } | About::Tool { .. } => {}
        About::Plan(_) | About::Usage(_) => {}
    });
    all
}

fn progress(about: About, parent_call_id: Option<&str>, truncated: bool) -> Body {
    let parent_call_id = parent_call_id.map(Into::into);
    Body::Progress(Box::new(Progress { text: "t".into(), parent_call_id, about, truncated }))
}

fn question(kind: Kind, most: bool) -> Body {
    let (min_length, max_length, min_selected, max_selected) = (Some(1), Some(1), Some(1), Some(1));
    let (min, max, integer, pattern) = (Some(1.0), Some(1.0), Some(true), Some("p".into()));
    let (must_exist, path_type) = (Some(true), Some(PathType::File));
    #[rustfmt::skip]
    let validation = Validation {
        min_length, max_length, pattern, min, max, integer, min_selected, max_selected, must_exist, path_type,
    };
    let ask = Ask {
        default: most.then(|| Answer::One("v".into())),
        validation: if most { validation } else { Validation::default() },
        ..Ask::new(Purpose::Permission, kind, "h", "t")
    };
    Body::Question(Box::new(Question {
        question_id: "q_1".into(),
        group_id: "g_1".into(),
        group_size: 1,
        ask,
        timeout_s: Seconds(1.0),
        attempt: 1,
        error: most.then(|| "e".into()),
        subject: most.then(subject),
        truncated: most,
    }))
}

fn artifact(truncated: bool) -> Body {
    let (artifact_id, path, action) = ("a_1".into(), "p".into(), Action::Created);
    Body::Artifact(Box::new(Artifact { artifact_id, path, action, kind: "file", size_bytes: None, truncated }))
}

fn terminal(outcome: Outcome, truncated: bool) -> Body {
    Body::Terminal(Box::new(Terminal {
        outcome,
        session_id: None,
        artifacts: vec![ArtifactRef { path: "p".into(), action: Action::Created }],
        usage: Usage::default(),
        duration_ms: 1,
        metadata: None,
        unattended: Unattended { denied: tally(), unanswered: tally() },
        completion_detected: false,
        agent_exit: Some(AgentExit { code: None, signal: None }),
        truncated,
    }))
}

fn tally() -> Tally {
    Tally { count: 1, first: vec![Left { category: "edit", text: "t".into() }] }
}

fn completed() -> Outcome {
    let (text, structured_output, stop_reason) = ("t".into(), None, StopReason::EndTurn);
    Outcome::Completed { text, message_id: None, text_cut: false, structured_output, stop_reason }
}

fn failed(most: bool) -> Outcome {
    Outcome::Failed(Failure {
        code: if most { Code::UnsupportedVersion } else { Code::AgentError },
        message: "m".into(),
        retryable: false,
        http_status: most.then_some(429),
        stderr_tail: most.then(|| "s".into()),
    })
}

fn cancelled() -> Outcome {
    Outcome::Cancelled { reason: None, source: Source::Signal }
}

/// Every frame: with as much, and with as little as can be in it.
fn bodies() -> Vec<(Body, Body)> {
    let choice = |value: &str, description| Choice { value: value.into(), label: value.into(), description };
    let choices = Choices::new([choice("a", Some("d".into())), choice("b", None)]).unwrap();
    let select = Kind::Select { choices, multiple: false, allow_other: false };
    let mut all = vec![
        (started(true), started(false)),
        (question(select, true), question(Kind::Text, false)),
        (artifact(true), artifact(false)),
        (terminal(completed(), true), terminal(completed(), false)),
        (terminal(failed(true), true), terminal(failed(false), false)),
        (terminal(cancelled(), true), terminal(cancelled(), false)),
    ];
    all.extend(abouts().into_iter().map(|(most, least)| {
        let parent = matches!(most, About::Text { .. } | About::Reasoning { .. } | About::Tool { .. });
        (progress(most, parent.then_some("c_1"), true), progress(least, None, false))
    }));
    all
}

// Frames as text: the keys of every object in them, by the object's path.

type Keys = BTreeMap<String, Vec<String>>;

fn objects(raw: &RawValue, at: &str, found: &mut dyn FnMut(&str, Vec<String>)) {
    if FREE.contains(&at) {
        return;
    }
    if let Some(fields) = Fields::parse(raw.get()) {
        found(at, fields.iter().map(|(key, _)| key.to_owned()).collect());
        let inside = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
        fields.iter().for_each(|(key, value)| objects(value, &inside(key), found));
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        items.into_iter().for_each(|item| objects(item, &format!("{at}[]"), found));
    }
}

fn keys(line: &str) -> Keys {
    let mut keys = Keys::new();
    let mut add = |at: &str, all| _ = keys.entry(at.to_owned()).or_insert(all);
    objects(serde_json::from_str(line).unwrap(), "", &mut add);
    keys
}

/// Type and kind, as a name for both.
fn label(line: &str) -> String {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let kind = if frame["type"] == "run.progress" { frame["payload"]["kind"].as_str().unwrap() } else { "" };
    format!("{} {kind}", frame["type"].as_str().unwrap())
}

/// What may be and what must be in a frame, by its label.
fn truth() -> BTreeMap<String, (Keys, Keys)> {
    let line = |body: Body, reply_to: Option<&str>| {
        let mut frame = Stamper::new().stamp(SystemTime::now(), reply_to.map(Into::into), body).unwrap();
        String::from_utf8(frame.to_line(1 << 20)).unwrap()
    };
    let pair = |(most, least)| {
        let (most, least) = (line(most, Some("m")), line(least, None));
        (label(&most), (keys(&most), keys(&least)))
    };
    bodies().into_iter().map(pair).collect()
}

fn is_subsequence(part: &[String], whole: &[String]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|key| rest.any(|other| other == key))
}

#[test]
fn outbound_examples_have_the_keys_of_real_frames_in_their_order() {
    let truth = truth();
    for line in frames() {
        let (most, least) = truth.get(&label(line)).unwrap_or_else(|| panic!("no such frame: {line}"));
        objects(serde_json::from_str(line).unwrap(), "", &mut |at, keys| {
            let known = most.get(at).unwrap_or_else(|| panic!("{at} is no object in {line}"));
            assert!(is_subsequence(&keys, known), "{at} has {keys:?}, may have {known:?}: {line}");
            let required = least.get(at).map(Vec::as_slice).unwrap_or_default();
            assert!(required.iter().all(|key| keys.contains(key)), "{at} has {keys:?}, must have {required:?}: {line}");
        });
        let frame: Value = serde_json::from_str(line).unwrap();
        assert_eq!(frame["v"], "1", "{line}");
        assert!(frame["id"].as_str().unwrap().starts_with("msg_"), "{line}");
        assert_eq!(frame["ts"].as_str().unwrap().len(), "2026-02-20T10:00:00.000Z".len(), "{line}");
    }
}

#[test]
fn every_type_and_every_kind_has_an_example() {
    let shown: Vec<String> = lines("jsonl out").into_iter().map(label).collect();
    for label in truth().keys() {
        assert!(shown.contains(label), "no example of {label}");
    }
}

#[test]
fn every_key_of_every_frame_is_named_where_it_belongs() {
    for (label, (most, _)) in truth() {
        let (kind, progress) = label.split_once(' ').unwrap();
        for (at, keys) in most {
            // Shared objects are told about once.
            let text = match at.rsplit('.').next().unwrap() {
                "" => section("Envelope"),
                "subject" => home("run.question"),
                "capabilities" => home("run.started"),
                "usage" => home("run.completed"),
                "validation" => section("Validation"),
                "locations[]" => home("run.progress"),
                _ => home(kind),
            };
            let missing: Vec<&String> = keys.iter().filter(|key| !names(text, key)).collect();
            assert!(missing.is_empty(), "the reference lacks {missing:?} of {label} {at}");
        }
        if kind == "run.progress" {
            let everywhere = ["kind", "text", "parent_call_id", "truncated"];
            let fields = row(home(kind), &format!("`{progress}`"))[2];
            for key in truth()[&label].0["payload"].iter().filter(|key| !everywhere.contains(&key.as_str())) {
                assert!(names(fields, key), "the row of {progress} lacks {key}");
            }
        }
    }
}

#[test]
fn every_kind_of_progress_is_listed_with_its_level() {
    for (most, _) in abouts() {
        let (level, body) = (most.level(), serde_json::to_value(progress(most, None, false)).unwrap());
        assert_eq!(row(home("run.progress"), &format!("`{}`", body["kind"].as_str().unwrap()))[1], level.word());
    }
}

#[test]
fn inbound_examples_are_good_messages_and_show_every_way_to_answer() {
    let mut seen = Vec::new();
    let spoken = lines("jsonl dialogue").into_iter().filter_map(|line| line.strip_prefix("> "));
    for line in lines("jsonl in").into_iter().chain(spoken) {
        let fields = Fields::parse(line).unwrap_or_else(|| panic!("no object: {line}"));
        assert!(fields.iter().all(|(key, _)| names(section("Envelope"), key)), "{line}");
        let payload = fields.get("payload").and_then(|raw| Fields::parse(raw.get()));
        let keys: Vec<&str> = payload.iter().flat_map(Fields::iter).map(|(key, _)| key).collect();
        let kind = string(fields.get("type").unwrap()).unwrap();
        assert!(keys.iter().all(|key| names(home(&kind), key)), "{kind} has no such field: {line}");
        let way = match inbound::parse(line.as_bytes()).unwrap().message {
            Message::Malformed | Message::Unsupported | Message::UnknownType => panic!("not a good message: {line}"),
            Message::Start(options) => {
                let (options, wrong) = *options;
                assert!(wrong.is_none() && options.prompt.is_some(), "{line}");
                assert!(keys.iter().all(|key| Options::NAMES.contains(key)), "{line}");
                "start"
            }
            Message::Cancel { reason } => reason.map_or("bare cancel", |_| "cancel"),
            Message::Input(Input { question_id, given, message }) => {
                assert!(question_id.is_some(), "{line}");
                seen.extend(message.map(|_| "message"));
                match given.unwrap_or_else(|| panic!("no answer: {line}")) {
                    Given::Value(_) => "value",
                    Given::Declined => "declined",
                    Given::FromEnv(_) => "env",
                    Given::FromFile(_) => "file",
                }
            }
        };
        seen.push(way);
    }
    for way in ["start", "cancel", "bare cancel", "value", "declined", "env", "file", "message"] {
        assert!(seen.contains(&way), "no example of {way}");
    }
}

#[test]
fn every_field_of_run_start_is_listed_with_its_default_and_its_flags() {
    let defaults = serde_json::to_value(started(false)).unwrap();
    for name in Options::NAMES {
        let cells = row(home("run.start"), &format!("`{name}`"));
        let default = match &defaults["config"][name] {
            Value::String(text) if !matches!(*name, "agent" | "cwd") => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(yes) => yes.to_string(),
            _ => String::new(),
        };
        assert_eq!(cells.len(), 5, "{name}");
        assert!(cells[2].contains(&default), "{name}: the default is {default}, not {}", cells[2]);
        for flag in help::command("adhoc").unwrap().flags.iter().filter(|flag| flag.goes == Goes::Field(name)) {
            assert!(cells[3].contains(&format!("`--{}", flag.long)), "{name}: {} lacks --{}", cells[3], flag.long);
            let told = !flag.takes_value() || flag.default.starts_with(&default);
            assert!(told, "--{}: the default is {default}, not {}", flag.long, flag.default);
        }
    }
}

#[test]
fn every_flag_every_code_and_every_word_is_named() {
    for flag in help::command("adhoc").unwrap().flags {
        assert!(PAGE.contains(&format!("--{}", flag.long)), "the reference lacks --{}", flag.long);
    }
    for code in Code::ALL {
        let cells = row(section("Failure codes"), &format!("`{}`", code.name()));
        let retryable = if code.retryable() { "yes" } else { "no" };
        assert_eq!(cells[1..3], [&code.exit_code().to_string(), retryable], "{}", code.name());
    }
    assert!(section("Failure codes").contains(&format!("Exit {EXIT_UNDELIVERED} ")));
    for warning in Warning::ALL {
        row(section("Warning codes"), &format!("`{}`", warning.word()));
    }
    let source = include_str!("../src/protocol/words.rs").lines().filter(|line| !line.contains("reason"));
    let words: Vec<&str> =
        source.flat_map(|line| line.split("= \"").skip(1)).filter_map(|part| part.split('"').next()).collect();
    assert!(words.len() > 70, "words.rs is written in another way now: {words:?}");
    for word in words {
        assert!(names(PAGE, word) || PAGE.contains(&format!("`\"{word}\"`")), "the reference lacks the word {word}");
    }
}

#[test]
fn every_limit_is_listed() {
    let size = |bytes: usize| match bytes {
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n => format!("{} KiB", n >> 10),
    };
    let limits = [
        ("a line to spektacular", size(limits::INBOUND_LINE_BYTES)),
        ("a line of the agent", size(limits::AGENT_LINE_BYTES)),
        ("levels", limits::DEPTH.to_string()),
        ("`id`", limits::ID_CHARS.to_string()),
        ("`max_frame_bytes`", size(limits::FRAME_BYTES)),
        ("the smallest", size(limits::FRAME_BYTES_MIN)),
        ("the largest", size(limits::FRAME_BYTES_MAX)),
        ("run.completed", limits::COMPLETED_FACTOR.to_string()),
        ("warnings", limits::HELD_WARNINGS.to_string()),
        ("`metadata`", size(limits::METADATA_BYTES)),
        ("`output`", size(limits::TOOL_OUTPUT_BYTES)),
        ("`stderr_tail`", size(limits::STDERR_TAIL_BYTES)),
        ("`artifacts`", limits::ARTIFACTS.to_string()),
        ("`header`", limits::HEADER_CHARS.to_string()),
        ("bad answers", limits::BAD_ANSWERS.to_string()),
        ("one argument", limits::ARGUMENT_BYTES.to_string()),
        ("further turns", limits::MARKER_TURNS.to_string()),
        ("a message", size(limits::TOOL_LINE_BYTES)),
        ("calls", limits::TOOL_CALLS.to_string()),
        ("any time", limits::SECONDS.to_string()),
        ("`session_id`", size(limits::SESSION_ID_BYTES)),
        ("answers `allow_always`", limits::REMEMBERED.to_string()),
        ("a command, call", size(limits::REMEMBERED_BYTES)),
        ("entries in `denied`", limits::LEFT_LISTED.to_string()),
    ];
    let source = include_str!("../src/protocol/limits.rs");
    assert_eq!(source.matches("pub const").count(), limits.len(), "a limit is new: list it here and in the reference");
    for (what, limit) in limits {
        let fits = |line: &&str| line.starts_with(&format!("| {what}")) && line.ends_with(&format!("| {limit} |"));
        assert!(section("Limits").lines().any(|line| fits(&line)), "{what}: {limit}");
    }
}

/// What must be the same in an example and in a real frame: all but texts, ids, times and places.
fn essence(line: &str) -> Value {
    let frame: Value = serde_json::from_str(line).unwrap();
    let payload = &frame["payload"];
    let words = ["status", "resolution", "used_default", "purpose", "kind", "category", "state", "action", "options"];
    let words: Vec<&Value> = words.iter().map(|word| &payload[word]).collect();
    serde_json::json!([label(line), frame["id"], frame["reply_to"], words, keys(line)])
}

#[test]
fn the_dialogue_is_what_the_program_says() {
    let mut session = support::Case::new().args(&["--agent", "demo"]).spawn();
    // The ids of questions are new in each run: as on the page, as they are.
    let mut ids: Vec<(String, String)> = Vec::new();
    for line in lines("jsonl dialogue") {
        if let Some(sent) = line.strip_prefix("> ") {
            session.send_line(&ids.iter().fold(sent.to_owned(), |text, (page, real)| text.replace(page, real)));
            continue;
        }
        let example = line.strip_prefix("< ").unwrap_or_else(|| panic!("neither in nor out: {line}"));
        let frame = session.next_frame();
        assert_eq!(essence(&frame.raw), essence(example), "{}\n{example}", frame.raw);
        let page: Value = serde_json::from_str(example).unwrap();
        let real = frame.payload()["question_id"].as_str().map(str::to_owned);
        ids.extend(page["payload"]["question_id"].as_str().map(str::to_owned).zip(real));
    }
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.frames.len(), lines("jsonl dialogue").iter().filter(|line| line.starts_with("< ")).count());
}

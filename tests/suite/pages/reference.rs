//! The protocol reference is correct: its examples are what the library reads and writes, it contains everything that
//! the library has, and its dialogue is the program's real output.
//!
//! Every type of frame has one body with all possible fields and one with as few as possible. Literals and matches name
//! every field and variant, so a new one does not compile until somebody has checked the page.

use crate::pages::page::{PAGE, frames, home, lines, names, row, section};
use crate::pages::workflow::{about_phase, about_resolved, phase_failure, workflow_end, workflow_started};
use crate::support;
use serde_json::Value;
use serde_json::value::RawValue;
use spektacular::agent::DriverOutput;
use spektacular::agent::registry::Agents;
use spektacular::cmd;
use spektacular::json::{Fields, string};
use spektacular::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use spektacular::protocol::fields::FIELDS;
use spektacular::protocol::frame::Stamper;
use spektacular::protocol::ids::{RunId, SessionId};
use spektacular::protocol::inbound::{self, CancelScope, Message};
use spektacular::protocol::limits;
use spektacular::protocol::outbound::{
    AgentCommand, AgentExit, AgentName, Artifact, ArtifactRef, Body, CallId, Capabilities, CheckpointId, FileEdit,
    Json, McpServerState, MessageId, Metadata, Outcome, Place, PlanEntry, Progress, ProgressKind, PromptId,
    ProtocolVersion, Question, ShownSettings, Started, Terminal, ToolExit, TurnReport, UnansweredItem, UnansweredItems,
    Unattended, Usage,
};
use spektacular::protocol::prompt::PromptInput;
use spektacular::protocol::question::{
    Answer, AnswerInput, Ask, Choice, Choices, Decision, Given, Kind, Subject, Validation,
};
use spektacular::protocol::redacted::Redacted;
use spektacular::protocol::request::{DEFAULT_START_TIMEOUT, Options, Payload, Seconds};
use spektacular::protocol::schema::{Mismatch, Mismatches};
use spektacular::protocol::utc::UtcTime;
use spektacular::protocol::words::{
    Action, Category, CheckpointState, GitState, Level, LimitField, McpState, OnQuestionTimeout, PathType, PlanStatus,
    PromptState, Purpose, QuestionKind, RefusalReason, Resolution, Source, Status, StopReason, ToolState, TurnOrigin,
    WaitingOn, Warning,
};
use spektacular::redact::Redactor;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// Objects whose keys do not belong to the protocol.
const FREE: [&str; 3] = ["payload.metadata", "payload.config.permissions", "payload.structured_output"];

fn capabilities(most: bool) -> Capabilities {
    let known = most.then_some(true);
    let (resume, deltas, structured_output, usage, conversation, steer) = (known, known, known, known, known, known);
    Capabilities {
        questions: vec![QuestionKind::Select],
        resume,
        deltas,
        structured_output,
        usage,
        conversation,
        steer,
        updated_input: known,
        rewind: known,
    }
}

/// A run.start in which every field that run.started shows has a value.
const START: &str = r#"{"model":"m","effort":"e","mode":"m","add_dirs":["d"],"images":["i"],"session_id":"s","permissions":{"*":"ask"},
    "allowed_tools":["t"],"disallowed_tools":["t"],"timeout_s":1,"start_timeout_s":1,"max_turns":1,"max_tool_calls":1,"max_tokens":1,"max_cost_usd":1.5,"turn_timeout_s":1,"prompt_timeout_s":1,
    "env_allow":["E"],"metadata":{"a":1}}"#;

#[track_caller]
fn started(most: bool) -> Body {
    let payload: Box<RawValue> = serde_json::from_str(START).unwrap();
    let Payload { options, wrong, .. } = Options::parse(Some(&payload));
    assert_eq!(wrong, None);
    let options = if most { options } else { Options::default() };
    let mut settings = options.resolve("go".into(), "demo".into(), "/home/me".into());
    settings.start_timeout_s = settings.start_timeout_s.or(Some(DEFAULT_START_TIMEOUT));
    let mut sandbox = settings.sandbox.in_force();
    if most {
        (sandbox.abi, sandbox.git) = (Some(7), Some(GitState::Checked));
        (sandbox.signals, sandbox.sockets) = (Some(true), Some(false));
    }
    Body::Started(Box::new(Started {
        agent: AgentName { name: "demo".into(), display_name: "Demo".into(), version: None },
        metadata: Metadata(settings.metadata.clone().map(Json::from)),
        config: ShownSettings {
            cwd: "/home/me".into(),
            agent_args: vec!["a".into()],
            sandbox,
            settings: Box::new(settings),
        },
        protocol: ProtocolVersion::OURS,
        capabilities: capabilities(most),
        workflow: most.then(|| Box::new(workflow_started())),
        truncated: most,
    }))
}

fn usage(most: bool) -> Usage {
    let tokens = most.then_some(1);
    Usage {
        input_tokens: tokens,
        output_tokens: tokens,
        cached_input_tokens: tokens,
        cost_usd: most.then_some(0.5),
        context_tokens: tokens,
        context_window: tokens,
    }
}

fn place(line: Option<u64>) -> Place {
    Place { path: "a".into(), line }
}

fn subject() -> Subject {
    let locations = vec![place(Some(1))];
    Subject { category: Category::Edit, title: "t".into(), locations, detail: "d".into(), call_id: Some(CallId(1)) }
}

fn about_tool(line: Option<u64>, output: Option<&str>) -> ProgressKind {
    ProgressKind::Tool {
        call_id: CallId(1),
        name: Some("t".into()),
        category: Category::Execute,
        state: ToolState::Completed,
        duration_ms: output.map(|_| 1),
        locations: vec![place(line)],
        input: output.map(|_| Json::from(RawValue::from_string("{}".into()).unwrap())),
        output: output.map(Into::into),
        exit_code: ToolExit { code: None, in_frame: output.is_some() },
        diff: output.and_then(|_| FileEdit::new("p", "-a\n+b\n".into())).into_iter().collect(),
        sandbox_suspected: output.is_some(),
        phase: output.map(|_| "P1".into()),
    }
}

fn about_status(until: Option<UtcTime>) -> ProgressKind {
    let agent = until.map(|_| "a".into());
    ProgressKind::Status { status: Status::WaitingForLimit, until, agent }
}

fn about_warning(retry_at: Option<UtcTime>) -> ProgressKind {
    ProgressKind::Warning { code: Warning::AgentRetrying, retry_at, for_person: None }
}

fn about_checkpoint(most: bool) -> ProgressKind {
    ProgressKind::Checkpoint {
        checkpoint_id: CheckpointId::Prompt(1),
        state: if most { CheckpointState::Restored } else { CheckpointState::Taken },
        undo: most.then_some(CheckpointId::Rewind(1)),
        files: vec![ArtifactRef { path: "p".into(), action: Action::Created }],
    }
}

fn about_turn(most: bool) -> ProgressKind {
    let outcome = match most {
        true => completed(true),
        false => Outcome::Failed(Failure::new(Code::AgentError, "m")),
    };
    let unattended = Unattended { denied: tally(), unanswered: tally() };
    ProgressKind::Turn(Box::new(TurnReport {
        number: 1,
        agent: "a".into(),
        origin: if most { TurnOrigin::Prompt } else { TurnOrigin::Agent },
        prompt_id: most.then_some(PromptId(1)),
        outcome,
        usage: usage(most),
        completion_detected: most,
        unattended,
    }))
}

fn commands(most: bool) -> ProgressKind {
    let said = || most.then(|| "d".into());
    ProgressKind::Commands(vec![AgentCommand { name: "n".into(), description: said(), hint: said() }])
}

/// Every kind of progress: once with all fields, once with the required fields alone.
fn abouts() -> Vec<(ProgressKind, ProgressKind)> {
    let message_id = MessageId::Said(1);
    let same = |about: ProgressKind| (about.clone(), about);
    let text = |withdrawn| ProgressKind::Text { message_id, done: true, withdrawn };
    let reasoning = |withdrawn| ProgressKind::Reasoning { message_id, done: true, withdrawn };
    let session = |most: bool| ProgressKind::Session {
        session_id: SessionId::new("s").filter(|_| most),
        agent_version: most.then(|| "1".into()),
        model: most.then(|| "m".into()),
        capabilities: Some(capabilities(most)),
        mcp_servers: vec![McpServerState { name: "issues".into(), state: McpState::Ready }],
    };
    let all = vec![
        (about_status(UtcTime::of_seconds(1_771_581_600.0)), about_status(None)),
        (session(true), session(false)),
        (commands(true), commands(false)),
        (about_warning(UtcTime::of_seconds(1_771_581_600.0)), about_warning(None)),
        (about_resolved(Some((subject(), Answer::Decision(Decision::Deny)))), about_resolved(None)),
        same(ProgressKind::Heartbeat { idle_s: Seconds(1.0), waiting_on: WaitingOn::Input }),
        (text(true), text(false)),
        (reasoning(true), reasoning(false)),
        (about_tool(Some(1), Some("o")), about_tool(None, None)),
        same(ProgressKind::Plan(vec![PlanEntry { text: "t".into(), status: PlanStatus::Pending }])),
        same(ProgressKind::Todo(vec![PlanEntry { text: "t".into(), status: PlanStatus::Pending }])),
        same(about_phase()),
        (ProgressKind::Usage(usage(true)), ProgressKind::Usage(usage(false))),
        same(ProgressKind::Prompt { prompt_id: PromptId(1), state: PromptState::Queued, said: None }),
        (about_checkpoint(true), about_checkpoint(false)),
        (about_turn(true), about_turn(false)),
    ];
    // No wildcard: a new kind must also be added above.
    all.iter().for_each(|(most, _)| match most {
        ProgressKind::Status { .. }
        | ProgressKind::Session { .. }
        | ProgressKind::Commands(_)
        | ProgressKind::Warning { .. }
        | ProgressKind::Resolved { .. } => {}
        ProgressKind::Heartbeat { .. }
        | ProgressKind::Text { .. }
        | ProgressKind::Reasoning { .. }
        | ProgressKind::Tool { .. } => {}
        ProgressKind::Plan(_) | ProgressKind::Todo(_) | ProgressKind::Phase { .. } | ProgressKind::Usage(_) => {}
        ProgressKind::Prompt { .. } | ProgressKind::Checkpoint { .. } | ProgressKind::Turn(_) => {}
    });
    all
}

fn progress(about: ProgressKind, parent_call_id: Option<CallId>, truncated: bool) -> Body {
    Body::Progress(Box::new(Progress { text: "t".into(), parent_call_id, about, truncated }))
}

fn question(kind: Kind, most: bool) -> Body {
    let (min_length, max_length, min_selected, max_selected) = (Some(1), Some(1), Some(1), Some(1));
    let (min, max, integer, pattern) = (Some(1.0), Some(1.0), Some(true), Some("p".into()));
    let (must_exist, path_type, pattern_checked) = (Some(true), Some(PathType::File), Some(false));
    #[rustfmt::skip]
    let validation = Validation { min_length, max_length, pattern, pattern_checked, min, max, integer, min_selected, max_selected, must_exist, path_type };
    let ask = Ask {
        default: most.then(|| Answer::One("v".into())),
        validation: if most { validation } else { Validation::default() },
        subject: most.then(subject),
        ..Ask::new(Purpose::Permission, kind, "h", "t")
    };
    Body::Question(Box::new(Question {
        question_id: "q_1".into(),
        group_id: "g_1".into(),
        group_size: 1,
        ask,
        timeout_s: Seconds(1.5),
        attempt: 1,
        error: most.then(|| "e".into()),
        truncated: most,
    }))
}

fn artifact(truncated: bool) -> Body {
    let (artifact_id, path, action) = ("a_1".into(), "p".into(), Action::Created);
    let size_bytes = truncated.then_some(1);
    Body::Artifact(Box::new(Artifact { artifact_id, path, action, kind: "file", size_bytes, truncated }))
}

fn terminal(outcome: Outcome, most: bool) -> Body {
    let exit = AgentExit { code: most.then_some(0), signal: most.then_some(9) };
    // A run may fail before it has an agent.
    let agent_exit = (most || !matches!(outcome, Outcome::Failed(_))).then_some(exit);
    Body::Terminal(Box::new(Terminal {
        outcome,
        session_id: SessionId::new("s").filter(|_| most),
        artifacts: vec![ArtifactRef { path: "p".into(), action: Action::Created }],
        usage: usage(most),
        duration_ms: 1,
        metadata: Metadata::default(),
        unattended: Unattended { denied: tally(), unanswered: tally() },
        completion_detected: false,
        agent_exit,
        turns: most.then_some(1),
        workflow: most.then(|| Box::new(workflow_end())),
        truncated: most,
    }))
}

fn tally() -> UnansweredItems {
    UnansweredItems { count: 1, first: vec![UnansweredItem { category: "edit", text: "t".into() }] }
}

fn completed(most: bool) -> Outcome {
    let (text, structured_output, stop_reason) = ("t".into(), None, StopReason::EndTurn);
    let message_id = most.then_some(MessageId::Said(1));
    Outcome::Completed { text, message_id, text_cut: most, structured_output, stop_reason }
}

fn failed(most: bool) -> Outcome {
    Outcome::Failed(Failure {
        limit: most.then_some(LimitField::MaxTurns),
        value: most.then_some(3.0),
        code: if most { Code::UnsupportedVersion } else { Code::AgentError },
        message: "m".into(),
        retryable: false,
        http_status: most.then_some(429),
        retry_at: UtcTime::of_seconds(1_771_581_600.0).filter(|_| most),
        agent_message: most.then(|| "a".into()),
        stderr_tail: most.then(|| Box::new("s".into())),
        target: None,
        commands: most.then(|| Box::new("c".into())),
        reason: most.then_some(RefusalReason::Exists),
        phase: most.then(|| Box::new(phase_failure())),
        violations: most.then(|| Box::new(Mismatches(vec![Mismatch::of_whole("v")]))),
    })
}

fn cancelled(most: bool) -> Outcome {
    Outcome::Cancelled { reason: most.then(|| "r".into()), source: Source::Signal }
}

/// Every frame: with as many fields as possible, and with as few as possible.
fn bodies() -> Vec<(Body, Body)> {
    let choice = |value: &str, description| Choice { value: value.into(), label: value.into(), description };
    let choices = Choices::new([choice("a", Some("d".into())), choice("b", None)]).unwrap();
    let select = Kind::Select { choices, multiple: false, allow_other: false };
    let mut all = vec![
        (started(true), started(false)),
        (question(select, true), question(Kind::Text, false)),
        (artifact(true), artifact(false)),
        (terminal(completed(true), true), terminal(completed(false), false)),
        (terminal(failed(true), true), terminal(failed(false), false)),
        (terminal(cancelled(true), true), terminal(cancelled(false), false)),
    ];
    all.extend(abouts().into_iter().map(|(most, least)| {
        let parent =
            matches!(most, ProgressKind::Text { .. } | ProgressKind::Reasoning { .. } | ProgressKind::Tool { .. });
        (progress(most, parent.then_some(CallId(1)), true), progress(least, None, false))
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

/// Every value in a frame except objects, by its path. Lists appear as their elements.
fn values(value: &Value, at: &str, found: &mut dyn FnMut(&str, &Value)) {
    match value {
        _ if FREE.contains(&at) => {}
        Value::Object(fields) => {
            let inside = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
            fields.iter().for_each(|(key, value)| values(value, &inside(key), found));
        }
        Value::Array(items) => items.iter().for_each(|item| values(item, &format!("{at}[]"), found)),
        _ => found(at, value),
    }
}

/// The type of a value that is neither an object nor a list.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "whole number",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "object",
    }
}

/// The words that may stand at a path of a frame. Empty: any text may.
fn closed(label: &str, at: &str) -> Vec<&'static str> {
    fn all<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
        all.iter().map(|one| word(*one)).collect()
    }
    match (label.split_once(' ').unwrap(), at) {
        (("run.progress", "status"), "payload.status") => all(Status::ALL, Status::word),
        (("run.progress", "warning"), "payload.code") => all(Warning::ALL, Warning::word),
        (("run.progress", "question_resolved"), "payload.resolution") => all(Resolution::ALL, Resolution::word),
        (("run.progress", "heartbeat"), "payload.waiting_on") => all(WaitingOn::ALL, WaitingOn::word),
        (("run.progress", "tool"), "payload.category") => all(Category::ALL, Category::word),
        (("run.progress", "tool"), "payload.state") => all(ToolState::ALL, ToolState::word),
        (("run.progress", "plan"), "payload.entries[].status") => all(PlanStatus::ALL, PlanStatus::word),
        (("run.question", _), "payload.kind") => all(QuestionKind::ALL, QuestionKind::word),
        (("run.question", _), "payload.purpose") => all(Purpose::ALL, Purpose::word),
        (("run.question", _), "payload.validation.path_type") => all(PathType::ALL, PathType::word),
        (("run.artifact", _), "payload.kind") => vec!["file"],
        (("run.artifact", _), "payload.action") => all(Action::ALL, Action::word),
        (("run.completed", _), "payload.stop_reason") => all(StopReason::ALL, StopReason::word),
        (("run.cancelled", _), "payload.source") => all(Source::ALL, Source::word),
        (("run.failed", _), "payload.code") => all(Code::ALL, Code::name),
        (("run.started", _), "payload.config.progress") => all(Level::ALL, Level::word),
        (("run.started", _), "payload.config.on_question_timeout") => {
            all(OnQuestionTimeout::ALL, OnQuestionTimeout::word)
        }
        (_, "payload.subject.category") => all(Category::ALL, Category::word),
        (_, "payload.artifacts[].action") => all(Action::ALL, Action::word),
        (_, "payload.capabilities.questions[]") => all(QuestionKind::ALL, QuestionKind::word),
        _ => Vec::new(),
    }
}

/// A name for the type and the kind.
#[track_caller]
fn label(line: &str) -> String {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let kind = if frame["type"] == "run.progress" { frame["payload"]["kind"].as_str().unwrap() } else { "" };
    format!("{} {kind}", frame["type"].as_str().unwrap())
}

/// Every frame as a line: with as many fields as possible, and with as few as possible.
pub(crate) fn real() -> Vec<(String, String)> {
    bodies().into_iter().map(|(most, least)| (line(most, Some("m")), line(least, None))).collect()
}

/// A body as a frame.
#[track_caller]
fn line(body: Body, reply_to: Option<&str>) -> String {
    let (mut body, mut out) = (Redacted::new(body, &Redactor::new()), Vec::new());
    let (mut stamper, run_id) = (Stamper::default(), RunId::generated("r"));
    assert!(stamper.stamp(SystemTime::now(), &body));
    stamper.write(&run_id, reply_to, &mut body, 1 << 20, &mut out);
    String::from_utf8(out).unwrap()
}

fn payload(body: Body) -> Value {
    serde_json::from_str::<Value>(&line(body, None)).unwrap()["payload"].take()
}

/// The optional and required parts of a frame, by its label.
fn truth() -> BTreeMap<String, (Keys, Keys)> {
    real().into_iter().map(|(most, least)| (label(&most), (keys(&most), keys(&least)))).collect()
}

fn is_subsequence(part: &[String], whole: &[String]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|key| rest.any(|other| other == key))
}

#[test]
fn outbound_examples_have_the_keys_of_real_frames_in_their_order() {
    let truth = truth();
    for line in &frames() {
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
fn outbound_examples_have_the_types_of_real_frames() {
    // The last frames share their common fields.
    let group = |line: &str| match label(line).split_once(' ').unwrap() {
        ("run.completed" | "run.failed" | "run.cancelled", _) => "last".to_owned(),
        (kind, progress) => format!("{kind} {progress}"),
    };
    let mut types: BTreeSet<(String, String, &str)> = BTreeSet::new();
    for (most, least) in real() {
        for line in [most, least] {
            values(&serde_json::from_str(&line).unwrap(), "", &mut |at, value| {
                types.insert((group(&line), at.to_owned(), type_of(value)));
            });
        }
    }
    for line in &frames() {
        values(&serde_json::from_str(line).unwrap(), "", &mut |at, value| {
            // A whole number is allowed wherever any number is.
            let is = |kind| types.contains(&(group(line), at.to_owned(), kind));
            let fits = is(type_of(value)) || (type_of(value) == "whole number" && is("number"));
            assert!(fits, "{at} is a {}: {line}", type_of(value));
        });
    }
}

#[test]
fn outbound_examples_use_the_words_of_the_protocol() {
    let mut seen = BTreeSet::new();
    for line in &frames() {
        values(&serde_json::from_str(line).unwrap(), "", &mut |at, value| {
            let words = closed(&label(line), at);
            let fits = words.is_empty() || value.is_null() || value.as_str().is_some_and(|word| words.contains(&word));
            assert!(fits, "{at} must be one of {words:?}: {line}");
            if !words.is_empty() {
                seen.insert(at.rsplit('.').next().unwrap().to_owned());
            }
        });
    }
    // Without a match, the paths have other names and nothing was compared.
    assert!(seen.len() >= 15, "words were found only at {seen:?}");
}

/// The question kinds in an example's run.started are those of the agent's driver.
#[test]
fn the_capabilities_in_the_examples_are_those_of_the_drivers() {
    let agents = Agents::built_in();
    let mut compared = 0;
    for line in &frames() {
        let frame: Value = serde_json::from_str(line).unwrap();
        if frame["type"] != "run.started" {
            continue;
        }
        let name = frame["payload"]["agent"]["name"].as_str().unwrap();
        let mut driver = agents.find(name).unwrap().driver();
        let settings = Options::default().resolve("go".into(), name.into(), "/home/me".into());
        driver.launch(&settings, &mut DriverOutput::default()).unwrap();
        let mut of_driver = serde_json::to_value(driver.features(&settings).capabilities).unwrap();
        of_driver.as_object_mut().unwrap().remove("rewind");
        assert_eq!(frame["payload"]["capabilities"], of_driver, "{line}");
        compared += 1;
    }
    assert!(compared >= 2, "no run.started of an agent");
}

#[test]
fn every_type_and_every_kind_has_an_example() {
    let shown: Vec<String> = lines("json out").iter().map(|line| label(line)).collect();
    for label in truth().keys() {
        assert!(shown.contains(label), "no example of {label}");
    }
}

#[test]
fn every_key_of_every_frame_is_named_where_it_belongs() {
    for (label, (most, _)) in truth() {
        let (kind, progress) = label.split_once(' ').unwrap();
        for (at, keys) in most {
            // The page describes shared objects once.
            let text = match at.rsplit('.').next().unwrap() {
                _ if at.starts_with("payload.workflow") => section("Workflows"),
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
        let (level, body) = (most.level(), payload(progress(most, None, false)));
        assert_eq!(row(home("run.progress"), &format!("`{}`", body["kind"].as_str().unwrap()))[1], level.word());
    }
}

#[test]
fn inbound_examples_are_good_messages_and_show_every_way_to_answer() {
    let mut seen = Vec::new();
    let spoken = lines("json dialogue").into_iter().filter_map(|line| Some(line.strip_prefix("> ")?.to_owned()));
    for line in &lines("json in").into_iter().chain(spoken).collect::<Vec<_>>() {
        let fields = Fields::parse(line).unwrap_or_else(|| panic!("no object: {line}"));
        assert!(fields.iter().all(|(key, _)| names(section("Envelope"), key)), "{line}");
        let payload = fields.get("payload").and_then(|raw| Fields::parse(raw.get()));
        let keys: Vec<&str> = payload.iter().flat_map(Fields::iter).map(|(key, _)| key).collect();
        let kind = string(fields.get("type").unwrap()).unwrap();
        assert!(keys.iter().all(|key| names(home(&kind), key)), "{kind} has no such field: {line}");
        let way = match inbound::parse(line.as_bytes()).unwrap().message {
            Message::Malformed(_) | Message::Unsupported | Message::UnknownType(_) => {
                panic!("not a good message: {line}")
            }
            Message::Start(start) => {
                let Payload { options, wrong, .. } = *start;
                assert!(wrong.is_none() && options.prompt.is_some(), "{line}");
                assert!(keys.iter().all(|key| Options::NAMES.contains(key)), "{line}");
                "start"
            }
            Message::Cancel { scope: CancelScope::Turn, .. } => "cancel of a turn",
            Message::Cancel { reason, scope: CancelScope::Run } => reason.map_or("bare cancel", |_| "cancel"),
            Message::Prompt(PromptInput::Prompt(_)) => "prompt",
            Message::Prompt(PromptInput::End) => "end",
            Message::Prompt(PromptInput::Rewind(Some(_))) => "rewind",
            Message::Prompt(PromptInput::Mixed | PromptInput::Wrong(_) | PromptInput::Rewind(None)) => {
                panic!("not a good message: {line}")
            }
            Message::Answer(AnswerInput { question_id, given, message, updated_input, unknown: _ }) => {
                assert!(question_id.is_some(), "{line}");
                seen.extend(message.map(|_| "message").into_iter().chain(updated_input.map(|_| "updated_input")));
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
    for way in [
        "start",
        "cancel",
        "bare cancel",
        "value",
        "declined",
        "env",
        "file",
        "message",
        "prompt",
        "end",
        "cancel of a turn",
    ] {
        assert!(seen.contains(&way), "no example of {way}");
    }
}

#[test]
fn every_field_of_run_start_is_listed_with_its_range_its_default_and_its_flags() {
    let defaults = payload(started(false));
    let flags = cmd::command("adhoc").unwrap().flags;
    for field in FIELDS {
        let name = field.name;
        let cells = row(home("run.start"), &format!("`{name}`"));
        assert_eq!(cells.len(), 5, "{name}");
        let (range, expected) = (cells[1].replace('`', ""), field.expected().replace('`', ""));
        assert!(!expected.is_empty() && range.starts_with(&expected), "{name}: must be {expected}, not {range}");
        let default = match &defaults["config"][name] {
            Value::String(text) if !matches!(name, "agent" | "cwd") => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(yes) => yes.to_string(),
            _ => String::new(),
        };
        assert!(cells[2].contains(&default), "{name}: the default is {default}, not {}", cells[2]);
        let mut own = flags.iter().filter(|flag| flag.field.is_some_and(|field| field.name == name)).peekable();
        assert_eq!(own.peek().is_some(), !field.flag.is_empty(), "{name} has no flag");
        for flag in own {
            assert!(cells[3].contains(&format!("`--{}", flag.long)), "{name}: {} lacks --{}", cells[3], flag.long);
            let told = !flag.takes_value() || flag.fallback().starts_with(&default);
            assert!(told, "--{}: the default is {default}, not {}", flag.long, flag.fallback());
        }
    }
}

#[test]
fn the_config_of_run_started_has_the_fields_that_are_shown() {
    let shown: Vec<&str> = FIELDS.iter().filter(|field| field.shown).map(|field| field.name).collect();
    let Value::Object(frame) = payload(started(true)) else { panic!("no object") };
    assert_eq!(
        frame["config"].as_object().unwrap().keys().map(String::as_str).collect::<BTreeSet<_>>(),
        shown.iter().copied().collect::<BTreeSet<_>>()
    );
    let line = home("run.started").lines().find(|line| line.starts_with("The config names these fields: ")).unwrap();
    assert_eq!(line.split('`').skip(1).step_by(2).collect::<Vec<_>>(), shown);
    let row = row(home("run.started"), "`config`");
    let (_, hidden) = row[1].split_once("but not").unwrap();
    let hidden: BTreeSet<&str> = hidden.split('`').skip(1).step_by(2).collect();
    assert_eq!(hidden, FIELDS.iter().filter(|field| !field.shown).map(|field| field.name).collect());
}

#[test]
fn every_flag_every_code_and_every_word_is_named() {
    for flag in cmd::command("adhoc").unwrap().flags {
        assert!(PAGE.contains(&format!("--{}", flag.long)), "the reference lacks --{}", flag.long);
    }
    for code in Code::ALL {
        let cells = row(section("Failure codes, exit codes"), &format!("`{}`", code.name()));
        let retryable = if code.retryable() { "yes" } else { "no" };
        assert_eq!(cells[1..3], [&code.exit_code().to_string(), retryable], "{}", code.name());
    }
    assert!(section("Failure codes, exit codes").contains(&format!("Exit {EXIT_UNDELIVERED} ")));
    for warning in Warning::ALL {
        row(section("Warning codes"), &format!("`{}`", warning.word()));
    }
    let source = include_str!("../../../src/protocol/words.rs").lines().filter(|line| !line.contains("reason"));
    let words: Vec<&str> =
        source.flat_map(|line| line.split("= \"").skip(1)).filter_map(|part| part.split('"').next()).collect();
    assert!(words.len() > 70, "words.rs is written in another way now: {words:?}");
    for word in words {
        assert!(names(PAGE, word) || PAGE.contains(&format!("`\"{word}\"`")), "the reference lacks the word {word}");
    }
}

#[test]
fn every_limit_is_listed() {
    let size = |n: usize| if n < 1 << 20 { format!("{} KiB", n >> 10) } else { format!("{} MiB", n >> 20) };
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
        ("a list in a field", limits::LIST_ENTRIES.to_string()),
        ("`prompt`", size(limits::PROMPT_BYTES)),
        ("`agent_args` and `env`", size(limits::ARGUMENTS_BYTES)),
        ("`metadata`", size(limits::METADATA_BYTES)),
        ("any other field", size(limits::FIELD_BYTES)),
        ("a file of the configuration", size(limits::CONFIG_BYTES)),
        ("a structured result", size(limits::RESULT_BYTES)),
        ("a secret", size(limits::SECRET_BYTES)),
        ("all unfinished messages", size(limits::KEPT_BYTES)),
        ("requests of an agent", limits::WAITING_REQUESTS.to_string()),
        ("`images`", limits::IMAGES.to_string()),
        ("one image", size(limits::IMAGE_BYTES)),
        ("all images", size(limits::IMAGES_BYTES)),
        ("`output`", size(limits::TOOL_OUTPUT_BYTES)),
        ("`agent_message`", size(limits::AGENT_MESSAGE_BYTES)),
        ("`stderr_tail`", size(limits::STDERR_TAIL_BYTES)),
        ("`artifacts`", limits::ARTIFACTS.to_string()),
        ("changed files", limits::REPORTED.to_string()),
        ("`header`", limits::HEADER_CHARS.to_string()),
        ("options of a question", limits::OPTIONS.to_string()),
        ("questions of one request", limits::QUESTIONS.to_string()),
        ("entries of a plan", limits::PLAN_ENTRIES.to_string()),
        ("bad answers", limits::BAD_ANSWERS.to_string()),
        ("one argument", limits::ARGUMENT_BYTES.to_string()),
        ("further turns", limits::MARKER_TURNS.to_string()),
        ("times that a result", limits::RESULT_TURNS.to_string()),
        ("entries in `violations`", limits::VIOLATIONS.to_string()),
        ("a message", size(limits::TOOL_LINE_BYTES)),
        ("calls", limits::TOOL_CALLS.to_string()),
        ("any time", limits::SECONDS.to_string()),
        ("`session_id`", size(limits::SESSION_ID_BYTES)),
        ("answers `allow_always`", limits::REMEMBERED.to_string()),
        ("a command, call", size(limits::REMEMBERED_BYTES)),
        ("entries in `denied`", limits::LEFT_LISTED.to_string()),
        ("commands", limits::COMMANDS.to_string()),
        ("a command that", size(limits::COMMAND_BYTES)),
        ("further prompts", limits::PROMPTS_WAITING.to_string()),
    ];
    let source = include_str!("../../../src/protocol/limits.rs");
    assert_eq!(source.matches("pub const").count(), limits.len(), "a limit is new: list it here and in the reference");
    for (what, limit) in limits {
        let fits = |line: &&str| line.starts_with(&format!("| {what}")) && line.ends_with(&format!("| {limit} |"));
        assert!(section("Limits").lines().any(|line| fits(&line)), "{what}: {limit}");
    }
}

#[test]
fn the_newest_change_is_the_version_in_run_started() {
    let started = payload(started(false));
    let (minor, program) = (&started["protocol"]["minor"], started["protocol"]["spektacular"].as_str().unwrap());
    let newest = section("Changes").lines().filter(|line| line.starts_with("| ")).skip(1).last().expect("a row");
    assert!(newest.starts_with(&format!("| {minor} | {program} |")), "{newest} is not {minor} since {program}");
}

/// The parts that an example and a real frame share: everything except texts, ids, times and places.
fn essence(line: &str) -> Value {
    let frame: Value = serde_json::from_str(line).unwrap();
    let payload = &frame["payload"];
    let words = ["status", "resolution", "used_default", "purpose", "kind", "category", "state", "action", "options"];
    let words: Vec<&Value> = words.iter().map(|word| &payload[word]).collect();
    serde_json::json!([label(line), frame["id"], frame["reply_to"], words, keys(line)])
}

#[test]
fn the_dialogue_is_the_programs_real_output() {
    let mut session = support::Case::new().args(&["--agent", "demo"]).spawn();
    // Question ids differ between runs. Pairs the id on the page with the real one.
    let mut ids: Vec<(String, String)> = Vec::new();
    for line in &lines("json dialogue") {
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
    assert_eq!(outcome.frames.len(), lines("json dialogue").iter().filter(|line| line.starts_with("< ")).count());
}

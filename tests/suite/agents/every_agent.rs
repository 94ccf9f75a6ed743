//! Tests of one orchestrator with every agent of the registry and with a command of the user's. It knows the protocol
//! and no agent. The drivers are the real ones. The agents are the lines below.

use crate::playback::world::{Sent, World, exited};
use serde_json::{Map, Value, json};
use spektacular::agent::Base;
use spektacular::agent::registry::{Agent, Agents, Dialect};
use spektacular::protocol::request::Options;
use std::collections::BTreeSet;

/// Every kind of question, with each rule that a marker can state.
fn questions() -> Value {
    json!([
        {"question": "Which colour?", "header": "Colour", "default": "Red",
            "options": [{"label": "Red", "description": "Warm."}, {"label": "Blue"}]},
        {"question": "Which files?", "kind": "select", "multiple": true, "required": false,
            "options": [{"label": "a"}, {"label": "b"}, {"label": "c"}], "validation": {"min_selected": 1, "max_selected": 2}},
        {"question": "Which name?", "kind": "text", "default": "spec",
            "validation": {"min_length": 2, "max_length": 8, "pattern": "^[a-z]+$"}},
        {"question": "How many?", "kind": "text", "validation": {"min": 1.0, "max": 9.0, "integer": true}},
        {"question": "Sure?", "kind": "confirm", "default": false, "required": false},
        {"question": "Which token?", "kind": "secret", "validation": {"min_length": 4}},
        {"question": "Where?", "kind": "file_path", "validation": {"must_exist": true, "path_type": "file"}},
    ])
}

/// For each question in order: an answer that breaks its rule, and one that fits.
fn answers() -> [(Value, Value); 7] {
    [
        (json!(7), json!("Blue")),
        (json!(["a", "b", "c"]), json!(["a", "c"])),
        (json!("X9"), json!("login")),
        (json!("ten"), json!("7")),
        (json!("perhaps"), json!("yes")),
        (json!("abc"), json!("open sesame 55")),
        (json!(""), json!("src/main.rs")),
    ]
}

/// The agents of the registry, and a command that prints text.
fn agents() -> Vec<Agent> {
    registry().iter().cloned().collect()
}

fn registry() -> Agents {
    let mut agents = Agents::built_in();
    let mut command = Agent::new("mine", Dialect::Lines, Base::command("mine"));
    command.lines.session_patterns = vec!["session: (\\S+)".into()];
    command.lines.resume_args = vec!["--resume".into(), "{session}".into(), "{prompt}".into()];
    agents.put(command);
    agents
}

/// A run with an agent of this dialect, in the middle of its turn.
struct Talk {
    world: World,
    dialect: Dialect,
    turn: usize,
    /// The number of frames that the orchestrator has read.
    read: usize,
}

impl Talk {
    fn begin(agent: &Agent) -> Talk {
        Talk::begin_with(agent, json!({}))
    }

    /// Begins with further fields of run.start.
    fn begin_with(agent: &Agent, mut payload: Value) -> Talk {
        let mut world = World::new("/home/user/project", Options::default(), registry());
        payload["prompt"] = json!("Go on");
        payload["agent"] = json!(agent.name);
        world.hear(&json!({"v": "1", "type": "run.start", "payload": payload}).to_string());
        world.spawn();
        let mut talk = Talk { world, dialect: agent.dialect, turn: 0, read: 0 };
        match talk.dialect {
            Dialect::Claude => talk.says(json!({"type": "system", "subtype": "init", "session_id": "s"})),
            Dialect::Codex => {
                talk.says(json!({"id": 1, "result": {"userAgent": "x/1"}}));
                talk.says(json!({"id": 2, "result": {"account": null, "requiresOpenaiAuth": false}}));
                talk.says(json!({"id": 3, "result": {"thread": {"id": "t"}}}));
            }
            Dialect::Acp => {
                talk.says(json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}));
                talk.says(json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}));
            }
            Dialect::Demo => talk.says(json!({"session": true})),
            Dialect::Lines => talk.world.line("session: s"),
            Dialect::Pi => {
                talk.says(json!({"type": "extension_ui_request", "id": "s", "method": "setStatus",
                    "statusKey": "spektacular", "statusText": "1"}));
                talk.says(
                    json!({"type": "response", "command": "get_state", "success": true, "data": {"sessionId": "s"}}),
                );
            }
        }
        talk
    }

    fn says(&mut self, line: Value) {
        self.world.line(&line.to_string());
    }

    /// The texts that the agent has received since the last call: lines of its stdin.
    fn received(&mut self) -> Vec<Value> {
        let lines = self.world.host_mut().sent.drain(..);
        let read = |sent| match sent {
            Sent::Line(line) => Some(serde_json::from_str(&line).unwrap_or(Value::String(line))),
            Sent::Eof => None,
        };
        lines.filter_map(read).collect()
    }

    /// Lets the agent ask for permission to run a command. A command that prints text cannot ask.
    fn asks_permission(&mut self) -> bool {
        match self.dialect {
            Dialect::Claude => self.says(json!({"type": "control_request", "request_id": "r", "request": {
                "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "make"}, "tool_use_id": "c"}})),
            Dialect::Codex => {
                self.says(json!({"id": 90, "method": "item/commandExecution/requestApproval", "params": {
                "threadId": "t", "turnId": "u", "itemId": "c", "startedAtMs": 1, "command": "make",
                "cwd": "/home/user/project", "commandActions": [{"type": "unknown", "command": "make"}]}}))
            }
            Dialect::Acp => {
                self.says(json!({"jsonrpc": "2.0", "id": 90, "method": "session/request_permission",
                "params": {"sessionId": "s", "options": [
                    {"optionId": "once", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "not-now", "name": "No", "kind": "reject_once"}],
                "toolCall": {"toolCallId": "c", "title": "make", "kind": "execute", "rawInput": {"command": "make"}}}}))
            }
            Dialect::Demo => {
                let tool = json!({"name": "Bash", "category": "execute", "subject": "make"});
                let (tool, call) = (tool.to_string(), "\"call\":\"c\",\"asks\":true");
                self.world.line(&format!("{{\"tool\":{tool},{call}}}"));
            }
            Dialect::Lines => return false,
            Dialect::Pi => {
                let asked = json!({"call": "c", "tool": "bash", "input": {"command": "make"}}).to_string();
                self.says(json!({"type": "extension_ui_request", "id": "r", "method": "input", "title": "spektacular",
                    "placeholder": asked}));
            }
        }
        true
    }

    /// Lets the agent begin its turn, say this text and end the turn.
    fn takes_turn(&mut self, text: &str) {
        self.turn += 1;
        let (turn, message) = (format!("u{}", self.turn), format!("m{}", self.turn));
        let heard = self.received();
        let prompt =
            heard.iter().rev().find(|line| matches!(line["method"].as_str(), Some("turn/start" | "session/prompt")));
        let id = prompt.map(|line| line["id"].clone());
        match self.dialect {
            Dialect::Claude => {
                let block = json!({"type": "text", "text": text});
                let said = json!({"id": message, "role": "assistant", "content": [block]});
                self.says(json!({"type": "assistant", "message": said, "parent_tool_use_id": null, "session_id": "s"}));
                self.says(json!({"type": "result", "subtype": "success", "is_error": false, "result": text,
                    "session_id": "s"}));
            }
            Dialect::Codex => {
                self.says(json!({"id": id.expect("a turn"), "result": {"turn": {"id": turn}}}));
                let item = json!({"type": "agentMessage", "id": message, "text": text});
                self.says(
                    json!({"method": "item/completed", "params": {"threadId": "t", "turnId": turn, "item": item}}),
                );
                let turn = json!({"id": turn, "status": "completed", "items": [], "error": null});
                self.says(json!({"method": "turn/completed", "params": {"threadId": "t", "turn": turn}}));
            }
            Dialect::Acp => {
                let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": message,
                    "content": {"type": "text", "text": text}});
                self.says(json!({"jsonrpc": "2.0", "method": "session/update",
                    "params": {"sessionId": "s", "update": update}}));
                self.says(json!({"jsonrpc": "2.0", "id": id.expect("a turn"), "result": {"stopReason": "end_turn"}}));
            }
            Dialect::Demo => {
                self.world.line(&format!("{{\"say\":{},\"done\":true}}", json!(text)));
                self.world.line("{\"steers\":0,\"over\":\"completed\",\"result\":null}");
            }
            Dialect::Lines => {
                self.world.line(text);
                self.world.gone(exited(0), "");
            }
            Dialect::Pi => {
                self.says(json!({"type": "response", "command": "prompt", "success": true,
                    "data": {"disposition": "started"}}));
                self.says(json!({"type": "agent_start"}));
                for update in [
                    json!({"type": "text_delta", "contentIndex": 0, "delta": text}),
                    json!({"type": "text_end", "contentIndex": 0, "content": text}),
                ] {
                    self.says(json!({"type": "message_update", "assistantMessageEvent": update}));
                }
                self.says(json!({"type": "message_end", "message": {"role": "assistant", "stopReason": "stop",
                    "content": [{"type": "text", "text": text}]}}));
                self.says(json!({"type": "agent_settled", "aborted": false}));
            }
        }
    }

    /// The unread questions.
    fn asked(&mut self) -> Vec<Value> {
        let unread = &self.world.frames[std::mem::replace(&mut self.read, self.world.frames.len())..];
        let questions = unread.iter().filter(|frame| frame.value["type"] == "run.question");
        questions.map(|frame| frame.value["payload"].clone()).collect()
    }

    fn answers(&mut self, question: &Value, value: &Value) {
        let payload = json!({"question_id": question["question_id"], "value": value});
        self.world.hear(&json!({"v": "1", "type": "run.input", "payload": payload}).to_string());
    }

    fn resolutions(&self) -> Vec<&Value> {
        let payloads = self.world.frames.iter().map(|frame| &frame.value["payload"]);
        payloads.filter(|payload| payload["kind"] == "question_resolved").collect()
    }
}

/// A question without what differs in each run.
fn without_ids(question: &Value) -> Map<String, Value> {
    let mut fields = question.as_object().unwrap().clone();
    for own in ["question_id", "group_id"] {
        assert!(fields.remove(own).is_some(), "{question}");
    }
    fields
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// The frames that an orchestrator acts on, the same from every agent.
#[derive(Debug, PartialEq)]
struct Seen {
    permission: Option<Map<String, Value>>,
    questions: Vec<Map<String, Value>>,
    repeated: Vec<(Value, BTreeSet<String>)>,
    resolutions: Vec<(Value, Value)>,
    types: BTreeSet<String>,
    end: (Value, BTreeSet<String>),
}

/// Lets the orchestrator drive a whole run of the agent.
#[track_caller]
fn drive(agent: &Agent) -> Seen {
    let shown = &agent.name;
    let mut talk = Talk::begin(agent);
    let permission = talk.asks_permission().then(|| {
        let asked = talk.asked().pop().unwrap_or_else(|| panic!("{shown}: no permission is asked"));
        talk.answers(&asked, &json!("allow_once"));
        let mut permission = without_ids(&asked);
        // The words, and whether a tool's call is known, depend on what the agent reports of its call.
        permission.remove("text");
        for own in ["title", "call_id"] {
            assert!(permission["subject"].as_object_mut().unwrap().remove(own).is_some(), "{shown}: no {own}");
        }
        permission
    });
    talk.takes_turn(&format!("I need to know.\n<!--QUESTION:{}-->", json!({"questions": questions()})));
    let asked = talk.asked();
    assert_eq!(asked.len(), answers().len(), "{shown}: {asked:?}");
    let mut repeated = Vec::new();
    for (question, (bad, good)) in asked.iter().zip(answers()) {
        talk.answers(question, &bad);
        let again = talk.asked().pop().unwrap_or_else(|| panic!("{shown}: {bad} counts as an answer to {question}"));
        assert_eq!(again["question_id"], question["question_id"]);
        repeated.push((again["attempt"].clone(), keys(&again)));
        talk.answers(&again, &good);
    }
    // The answers go back in a further turn: on stdin, or in the arguments of a further process.
    let launch = talk.world.due().map(|launch| format!("{:?}", (&launch.args, &launch.send))).unwrap_or_default();
    let machine = talk.world.host_mut();
    let given = format!("{launch}{:?}", machine.sent);
    for answer in ["Blue", "login", "7", "open sesame 55", "src/main.rs"] {
        assert!(given.contains(answer), "{shown} does not get {answer}: {given}");
    }
    talk.world.spawn();
    talk.takes_turn("Thanks for open sesame 55.");
    talk.world.gone(exited(0), "");
    assert!(talk.world.is_over(), "{shown}: the run goes on");
    let resolutions =
        talk.resolutions().into_iter().map(|one| (one["resolution"].clone(), one["used_default"].clone()));
    let resolutions = resolutions.skip(usize::from(permission.is_some())).collect();
    let last = &talk.world.frames.last().unwrap().value;
    assert_eq!(last["payload"]["text"], "Thanks for [redacted].", "{shown}: {last}");
    Seen {
        permission,
        questions: asked.iter().map(without_ids).collect(),
        repeated,
        resolutions,
        types: talk.world.frames.iter().map(|frame| frame.value["type"].as_str().unwrap().to_owned()).collect(),
        end: (last["type"].clone(), keys(&last["payload"])),
    }
}

#[test]
fn one_orchestrator_without_a_branch_serves_every_agent() {
    let agents = agents();
    let first = drive(&agents[0]);
    assert!(first.permission.is_some() && first.end.0 == "run.completed");
    assert_eq!(first.resolutions.len(), answers().len());
    assert!(first.resolutions.iter().all(|one| *one == (json!("answered"), json!(false))), "{:?}", first.resolutions);
    let mut dialects = BTreeSet::new();
    for agent in &agents {
        dialects.insert(agent.dialect.word());
        let mut seen = drive(agent);
        if agent.dialect == Dialect::Lines {
            assert_eq!(seen.permission, None);
            seen.permission.clone_from(&first.permission);
        }
        assert_eq!(format!("{seen:#?}"), format!("{first:#?}"), "{}", agent.name);
    }
    assert_eq!(dialects.len(), Dialect::ALL.len(), "a dialect has no agent here");
}

#[test]
fn every_agent_can_ask_every_kind_of_question_with_its_default_and_rules() {
    for agent in &agents() {
        let seen = drive(agent).questions;
        let shown = &agent.name;
        for (question, wanted) in seen.iter().zip(questions().as_array().unwrap()) {
            let kind = wanted.get("kind").cloned().unwrap_or(json!("select"));
            assert_eq!((&question["kind"], &question["text"]), (&kind, &wanted["question"]), "{shown}");
            assert_eq!(question.get("default"), wanted.get("default"), "{shown}: {question:?}");
            let rules = wanted.get("validation").cloned().unwrap_or(json!({}));
            assert_eq!(question["validation"], rules, "{shown}: {question:?}");
            assert_eq!(question["required"], wanted.get("required").cloned().unwrap_or(json!(true)), "{shown}");
            let purpose = if kind == "secret" || kind == "file_path" { "input" } else { "clarification" };
            assert_eq!((&question["attempt"], &question["purpose"]), (&json!(1), &json!(purpose)), "{shown}");
            assert_eq!(question.get("multiple"), (kind == "select").then_some(&json!(wanted["multiple"] == true)));
        }
        let kinds: BTreeSet<&str> = seen.iter().map(|question| question["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["confirm", "file_path", "secret", "select", "text"].into(), "{shown}");
    }
}

/// Lets the agent end a turn with each of these texts, and the run after the last one. Returns the last frame, and what
/// the agent received.
#[track_caller]
fn results(agent: &Agent, texts: &[&str]) -> (Value, String) {
    let schema = json!({"type": "object", "properties": {"otters": {"type": "integer"}}, "required": ["otters"]});
    let mut talk = Talk::begin_with(agent, json!({"output_schema": schema}));
    let mut given = String::new();
    for (at, text) in texts.iter().enumerate() {
        talk.takes_turn(text);
        if at + 1 < texts.len() {
            let launch = talk.world.due().map(|launch| format!("{:?}", (&launch.args, &launch.send)));
            given += &format!("{}{:?}", launch.unwrap_or_default(), talk.world.host_mut().sent);
            assert!(!talk.world.is_over(), "{}: the run ended after {text}", agent.name);
            talk.world.spawn();
        }
    }
    talk.world.gone(exited(0), "");
    assert!(talk.world.is_over(), "{}: the run goes on", agent.name);
    (talk.world.frames.last().unwrap().value.clone(), given)
}

#[test]
fn a_result_that_does_not_fit_goes_back_to_every_agent_twice() {
    for agent in &agents() {
        let shown = &agent.name;
        for good in ["{\"otters\": 7}", "```json\n{\"otters\":7}\n```"] {
            let (last, _) = results(agent, &["It is done.", good]);
            assert_eq!(last["type"], "run.completed", "{shown}: {last}");
            assert_eq!(last["payload"]["structured_output"], json!({"otters": 7}), "{shown}: {last}");
        }
        let bad = ["Seven otters.", "{\"otters\":\"seven\"}"];
        let (last, given) = results(agent, &[bad[0], bad[1], "{\"otters\":7}"]);
        assert_eq!(last["payload"]["structured_output"], json!({"otters": 7}), "{shown}: {last}");
        for told in ["is missing", "/otters: must be of the type integer (type)"] {
            assert!(given.contains(told), "{shown} is not told {told:?}: {given}");
        }
        let (last, _) = results(agent, &[bad[0], bad[1], "{}"]);
        assert_eq!(
            (&last["type"], &last["payload"]["code"]),
            (&json!("run.failed"), &json!("result_invalid")),
            "{shown}"
        );
        let violations = json!([{"path": "", "text": "lacks the property \"otters\" (required)"}]);
        assert_eq!(last["payload"]["detail"], json!({"violations": violations}), "{shown}: {last}");
    }
}

#[test]
fn keywords_that_nobody_checks_are_named() {
    let talk = Talk::begin_with(&agents()[0], json!({"output_schema": {"uniqueItems": true, "not": {}}}));
    let frames = talk.world.frames.iter().map(|frame| &frame.value["payload"]);
    let warnings: Vec<&Value> = frames.filter(|payload| payload["code"] == "unsupported_option").collect();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0]["text"], "`output_schema` is checked without these keywords: not, uniqueItems");
}

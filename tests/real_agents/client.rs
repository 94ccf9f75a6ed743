//! An orchestrator that knows the protocol and no agent: it starts a run, answers questions by a table, and reads on to
//! the last frame.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agents::Agent;
use crate::lab::{KEY, Lab};
use crate::stub::Stub;
use crate::support::{Frame, Outcome, Session};

/// A rule that answers questions by purpose and by a part of the error, header or text. The first match counts.
pub(crate) struct Rule {
    purpose: &'static str,
    about: &'static str,
    /// The payload of run.input without its question_id.
    input: Value,
}

/// A rule that answers with a value.
pub(crate) fn rule(purpose: &'static str, about: &'static str, value: Value) -> Rule {
    Rule { purpose, about, input: json!({"value": value}) }
}

/// Answers every permission with this value.
pub(crate) fn permission(value: &str) -> Vec<Rule> {
    vec![rule("permission", "", json!(value))]
}

/// Denies every permission with a reason.
pub(crate) fn denial(message: &str) -> Vec<Rule> {
    vec![Rule { purpose: "permission", about: "", input: json!({"value": "deny", "message": message}) }]
}

/// Declines every question of this purpose.
pub(crate) fn declined(purpose: &'static str) -> Vec<Rule> {
    vec![Rule { purpose, about: "", input: json!({"declined": true}) }]
}

/// A run in progress.
pub(crate) struct Client {
    pub(crate) session: Session,
    rules: Vec<Rule>,
    agent: Agent,
    model: Model,
}

/// The model stub, which prints its requests when a test fails.
struct Model(Arc<Stub>);

impl Drop for Model {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0.dump());
        }
    }
}

impl Client {
    /// Starts the program in this place, and a run.
    pub(crate) fn start(lab: Lab, mut payload: Value, rules: Vec<Rule>) -> Client {
        payload["agent"] = json!(lab.agent.name());
        if let Some(cwd) = &lab.cwd {
            payload["cwd"] = json!(cwd);
        }
        let mut session = lab.case.spawn();
        session.start(payload);
        Client { session, rules, agent: lab.agent, model: Model(lab.stub) }
    }

    /// Answers questions until one of the wanted frames comes.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.session.until_where(what, |frame| frame.kind() == "run.question" || wanted(frame));
            if wanted(&frame) {
                return frame;
            }
            self.answer(&frame);
        }
    }

    /// Waits for a file that one of the agent's tools creates.
    pub(crate) fn wait_file(&self, path: &Path) {
        self.session.wait_until(&format!("{}", path.display()), || path.exists());
    }

    fn answer(&mut self, question: &Frame) {
        let fits = |rule: &&Rule| {
            let about = ["error", "header", "text"].iter().any(|field| question.text(field).contains(rule.about));
            rule.purpose == question.text("purpose") && about
        };
        let Some(rule) = self.rules.iter().find(fits) else { self.session.fail("a question that no rule answers") };
        let mut input = rule.input.clone();
        input["question_id"] = question["payload"]["question_id"].clone();
        self.session.send("run.input", input);
    }

    /// Answers questions until the run is over, and checks the invariants.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Run {
        self.until("the last frame", Frame::is_terminal);
        let run = Run { outcome: self.session.finish(), agent: self.agent, model: self.model };
        run.outcome.never_shows(KEY);
        let unread = run.outcome.warnings("agent_output_unparsed");
        assert!(unread.is_empty(), "the agent says what we do not understand");
        let strays = run.stub().strays();
        assert!(strays.is_empty(), "the agent wanted to leave this machine: {strays:?}");
        run
    }

    /// Finishes without the invariants, for a killed program, which emits no last frame.
    pub(crate) fn finish_killed(self) -> Run {
        Run { outcome: self.session.finish_unchecked(), agent: self.agent, model: self.model }
    }
}

/// A finished run, and the requests that the model received.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    agent: Agent,
    model: Model,
}

/// A run from start to end.
pub(crate) fn run(lab: Lab, payload: Value, rules: Vec<Rule>) -> Run {
    Client::start(lab, payload, rules).finish()
}

impl Run {
    pub(crate) fn stub(&self) -> &Stub {
        &self.model.0
    }

    /// Keeps the home and the working directory for a later run.
    pub(crate) fn again(&self) -> Lab {
        Lab::after(self.agent, self.outcome.case(), &self.model.0)
    }

    pub(crate) fn completed(&self, text: &str) -> &Value {
        let payload = self.outcome.completed();
        assert_eq!(payload["text"], text);
        payload
    }

    /// The agent's complete messages, each with its pieces joined, in the order in which they began.
    pub(crate) fn messages(&self, kind: &str) -> Vec<String> {
        let mut order = Vec::new();
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for frame in self.outcome.progress(kind) {
            let id = frame.text("message_id");
            if !texts.contains_key(id) {
                order.push(id);
            }
            texts.entry(id).or_default().push_str(frame.text("text"));
        }
        order.iter().map(|id| texts[id].clone()).collect()
    }

    /// The category and the final state of the tool calls, in the order in which they ended.
    pub(crate) fn tools(&self) -> Vec<(&str, &str)> {
        let frames = self.outcome.progress("tool").into_iter().filter(|f| f.text("state") != "started");
        frames.map(|f| (f.text("category"), f.text("state"))).collect()
    }

    pub(crate) fn questions(&self) -> Vec<&Frame> {
        self.outcome.of_type("run.question")
    }

    /// Whether this file is in the working directory.
    pub(crate) fn made(&self, path: &str) -> bool {
        self.outcome.case().work().join(path).exists()
    }

    /// The names of the files in the working directory, in order.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.outcome.case().work()).expect("work").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// The artifacts, as path and action.
    pub(crate) fn artifacts(&self) -> Vec<(&str, &str)> {
        self.outcome.of_type("run.artifact").into_iter().map(|f| (f.text("path"), f.text("action"))).collect()
    }
}

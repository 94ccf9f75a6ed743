//! The cases below testdata/, and the orchestrator's script of each.
//!
//! A line of stdin.jsonl is a message to send (`$q1` in it stands for the id of the first question), or one of
//! `{"await":{"type":"run.question"}}` (wait for the next frame that has these fields in its envelope or payload),
//! `{"eof":true}` (stdin ends) and `{"signal":"TERM"}`. Without an eof stdin stays open to the end.

use serde_json::{Map, Value};
use spektacular::agent::Base;
use spektacular::agent::registry::{Agent, Agents, Dialect};
use spektacular::recording::Recording;
use std::path::{Path, PathBuf};

/// The next action of the orchestrator.
#[derive(Clone, Debug)]
pub(crate) enum Directive {
    Send(String),
    Await(Map<String, Value>),
    Eof,
    Signal,
}

impl Directive {
    /// Whether the action does more than wait.
    pub(crate) fn acts(&self) -> bool {
        !matches!(self, Directive::Await(_))
    }

    fn parse(line: &str) -> Directive {
        let value: Value = serde_json::from_str(line).expect("a line of stdin.jsonl is JSON");
        match (&value["await"], &value["signal"], &value["eof"]) {
            (Value::Object(fields), ..) => Directive::Await(fields.clone()),
            (_, Value::String(name), _) if name == "TERM" => Directive::Signal,
            (_, _, Value::Bool(true)) => Directive::Eof,
            _ => Directive::Send(line.to_owned()),
        }
    }
}

/// Whether a frame has these fields.
pub(crate) fn fits(frame: &Value, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, value)| frame.get(key) == Some(value) || frame["payload"].get(key) == Some(value))
}

/// A message with the ids of the questions so far in the place of `$q1`, `$q2`, …
pub(crate) fn with_ids(text: &str, ids: &[String]) -> String {
    // Starts with the last one: `$q10` begins with `$q1`.
    let all = ids.iter().enumerate().rev();
    all.fold(text.to_owned(), |text, (at, id)| text.replace(&format!("$q{}", at + 1), id))
}

/// A case.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) recording: Recording,
    pub(crate) script: Vec<Directive>,
}

impl Case {
    /// Reads a case by name, such as `claude/hello`.
    pub(crate) fn named(name: &str) -> Case {
        Case::load(testdata().join(name))
    }

    fn load(dir: PathBuf) -> Case {
        Case::load_with(dir, |text| text)
    }

    /// Reads a case by name and replaces one text in it by another.
    pub(crate) fn renamed(name: &str, from: &str, to: &str) -> Case {
        Case::load_with(testdata().join(name), |text| {
            assert!(text.contains(from), "{name} does not say {from}");
            text.replace(from, to)
        })
    }

    #[track_caller]
    fn load_with(dir: PathBuf, change: impl Fn(String) -> String) -> Case {
        let name = dir.strip_prefix(testdata()).expect("inside testdata").to_string_lossy().into_owned();
        let read =
            |file: &str| std::fs::read_to_string(dir.join(file)).unwrap_or_else(|e| panic!("{name}/{file}: {e}"));
        let recording = Recording::parse(&change(read("recording.jsonl"))).unwrap_or_else(|e| panic!("{name}: {e}"));
        let script = change(read("stdin.jsonl")).lines().map(Directive::parse).collect();
        Case { recording, script, name, dir }
    }

    pub(crate) fn recording_path(&self) -> PathBuf {
        self.dir.join("recording.jsonl")
    }

    pub(crate) fn expected_path(&self) -> PathBuf {
        self.dir.join("expected.jsonl")
    }

    /// The user's configuration, if the agent needs one.
    pub(crate) fn config(&self) -> Option<String> {
        std::fs::read_to_string(self.dir.join("config.json")).ok()
    }

    /// The built-in agents, and those of the configuration.
    pub(crate) fn agents(&self) -> Agents {
        agents_of(&serde_json::from_str(&self.config().unwrap_or("{}".into())).expect("config.json is JSON"))
    }

    /// Whether the agent is a command that prints plain text.
    pub(crate) fn is_plain(&self) -> bool {
        self.recording.header.driver == "lines"
    }

    /// The expected frames, one per line.
    pub(crate) fn expected(&self) -> String {
        std::fs::read_to_string(self.expected_path()).unwrap_or_default()
    }
}

/// The built-in agents, and those of a configuration.
pub(crate) fn agents_of(config: &Value) -> Agents {
    let mut agents = Agents::built_in();
    for (name, entry) in config["agents"].as_object().into_iter().flatten() {
        agents.put(configured(name, entry));
    }
    agents
}

/// The agent that this entry of a configuration defines.
fn configured(name: &str, entry: &Value) -> Agent {
    let text = |field: &str| entry[field].as_str().map(str::to_owned);
    let list = |field: &str| -> Vec<String> {
        entry[field].as_array().into_iter().flatten().map(|one| one.as_str().expect("a string").to_owned()).collect()
    };
    assert_eq!(entry["driver"], "lines", "no other configured agent is recorded");
    let base = Base { args: list("args"), ..Base::command(&text("command").expect("a command")) };
    let mut agent = Agent::new(name, Dialect::Lines, base);
    agent.model = text("model");
    agent.completion_marker = text("completion_marker");
    agent.lines.session_patterns = list("session_patterns");
    agent.lines.resume_args = list("resume_args");
    agent
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Every case of every agent, in order of their names.
pub(crate) fn all() -> Vec<Case> {
    let folders = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).expect("testdata").map(|entry| entry.expect("entry").path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut dirs: Vec<PathBuf> = folders(&testdata()).iter().flat_map(|agent| folders(agent)).collect();
    dirs.retain(|dir| dir.join("recording.jsonl").is_file());
    dirs.sort();
    assert!(!dirs.is_empty(), "there are no recordings");
    dirs.into_iter().map(Case::load).collect()
}

//! The scenario files: what the model says, request by request.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// `replies` answer the requests of the conversation in their order, `after` answers all that come later.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    replies: Vec<Reply>,
    #[serde(default = "the_end")]
    after: Reply,
    #[serde(skip)]
    given: u32,
}

/// What one request is answered with, in the order of the fields.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reply {
    /// An HTTP error in place of all else.
    pub(crate) refuse: Option<Refusal>,
    /// The pieces of the reasoning.
    pub(crate) think: Vec<String>,
    /// The pieces of the text.
    pub(crate) say: Vec<String>,
    /// Silence for ever after the text; without a text not even a header comes.
    pub(crate) hang: bool,
    pub(crate) calls: Vec<Call>,
    /// Before each piece.
    pub(crate) pause_ms: u64,
    pub(crate) usage: Usage,
    /// The stop reason; by itself tool_use or end_turn.
    pub(crate) stop: Option<String>,
    /// How many requests get this reply: none is as one.
    times: u32,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The API's word for the error.
    pub(crate) class: String,
    pub(crate) retry_after: Option<u32>,
}

#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

/// A tool call; `Tool` is one in the agent's own words.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Call {
    Shell(String),
    Write { path: String, content: String },
    Ask(Vec<Question>),
    Tool { name: String, input: Value },
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    question: String,
    header: String,
    /// Labels.
    options: Vec<String>,
    #[serde(default)]
    multiple: bool,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage { input: 100, cached: 0, output: 10 }
    }
}

fn the_end() -> Reply {
    Reply::saying("(the scenario is over)")
}

impl Reply {
    pub(crate) fn saying(text: &str) -> Reply {
        Reply { say: vec![text.into()], ..Reply::default() }
    }
}

impl Scenario {
    /// Reads scenarios/NAME.json. `{cwd}` in it stands for the agent's working directory.
    pub(crate) fn load(name: &str, cwd: &Path) -> Scenario {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/real_agents/scenarios/{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = text.replace("{cwd}", cwd.to_str().expect("cwd"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The reply to the next request.
    pub(crate) fn next(&mut self) -> Reply {
        let Some(reply) = self.replies.first().cloned() else { return self.after.clone() };
        self.given += 1;
        if self.given >= reply.times {
            self.replies.remove(0);
            self.given = 0;
        }
        reply
    }
}

impl Call {
    /// The tool's name and input, as Claude Code knows them.
    pub(crate) fn for_claude(&self, cwd: &Path) -> (&str, Value) {
        match self {
            Call::Shell(command) => ("Bash", json!({"command": command, "description": "Run it"})),
            Call::Write { path, content } => ("Write", json!({"file_path": cwd.join(path), "content": content})),
            Call::Ask(questions) => {
                let questions: Vec<Value> = questions.iter().map(Question::for_claude).collect();
                ("AskUserQuestion", json!({"questions": questions}))
            }
            Call::Tool { name, input } => (name, input.clone()),
        }
    }
}

impl Question {
    fn for_claude(&self) -> Value {
        let option = |label: &String| json!({"label": label, "description": format!("To choose {label}.")});
        let options: Vec<Value> = self.options.iter().map(option).collect();
        json!({"question": self.question, "header": self.header, "multiSelect": self.multiple, "options": options})
    }
}

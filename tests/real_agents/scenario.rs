//! The scenario files, which define the model's reply to each request. One file serves every agent: the dialect
//! translates it into the terms of the agent's API and tools.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// `replies` answer the requests of the conversation in order, and `after` answers all later ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    replies: Vec<Reply>,
    #[serde(default = "the_end")]
    after: Reply,
}

/// The answer to one request. The fields are sent in order.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reply {
    /// An HTTP error instead of a reply.
    pub(crate) refuse: Option<Refusal>,
    /// The pieces of the reasoning.
    pub(crate) think: Vec<String>,
    /// The pieces of the text.
    pub(crate) say: Vec<String>,
    /// Stays silent forever after the text. Without a text, sends not even a header.
    pub(crate) hang: bool,
    pub(crate) calls: Vec<Call>,
    /// The pause before each piece.
    pub(crate) pause_ms: u64,
    pub(crate) usage: Usage,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The provider's error message.
    pub(crate) message: String,
    /// The value of Retry-After, in seconds.
    pub(crate) retry_after: Option<u32>,
}

/// The numbers of tokens. `cached` is not included in `input`.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

/// A tool call. `Tool` uses the agent's own terms. `Offered` calls the tool by which spektacular lets the model ask,
/// whatever its name for this agent.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Call {
    Shell(String),
    /// Reads a file, by the agent's own tool if it has one beside the shell.
    Read(String),
    /// Searches the working directory for a word, without naming it.
    Search(String),
    Write {
        path: String,
        content: String,
    },
    Ask(Vec<Question>),
    Tool {
        name: String,
        input: Value,
    },
    Offered(Value),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) question: String,
    pub(crate) header: String,
    /// Labels.
    pub(crate) options: Vec<String>,
    #[serde(default)]
    pub(crate) multiple: bool,
}

impl Call {
    /// Replaces `Offered` by the name under which this request offers the tool for questions.
    pub(crate) fn named_as_in(self, request: &Value) -> Call {
        let Call::Offered(input) = self else { return self };
        let name = asking_tool(&request["tools"]).expect("no tool for questions is offered").to_owned();
        Call::Tool { name, input }
    }
}

fn asking_tool(tools: &Value) -> Option<&str> {
    let name = tools["name"].as_str().filter(|name| name.ends_with("ask_user") || name.ends_with("ask_the_user"));
    let inner: Vec<&Value> = match tools {
        Value::Array(all) => all.iter().collect(),
        Value::Object(all) => all.values().collect(),
        _ => Vec::new(),
    };
    name.or_else(|| inner.into_iter().find_map(asking_tool))
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
    /// Reads scenarios/NAME.json, with the program under test in place of `{program}`.
    pub(crate) fn load(name: &str) -> Scenario {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/real_agents/scenarios/{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = text.replace("{program}", env!("CARGO_BIN_EXE_spektacular"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The reply to the next request.
    pub(crate) fn next(&mut self) -> Reply {
        if self.replies.is_empty() { self.after.clone() } else { self.replies.remove(0) }
    }
}

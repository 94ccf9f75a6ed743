//! A scenario: the model's reply to each request. One scenario serves every agent.

use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;

/// `replies` answer the requests of the conversation in order, and `after` answers all later ones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScenario {
    replies: VecDeque<ModelReply>,
    #[serde(default = "the_end")]
    after: ModelReply,
    /// Whether only the requests with the most tools belong to the conversation.
    #[serde(skip)]
    pub(super) only_main: bool,
}

/// The fields are sent in order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModelReply {
    /// An HTTP error instead of a reply.
    pub(super) refuse: Option<HttpRefusal>,
    /// The pieces of the reasoning.
    pub(super) think: Vec<String>,
    /// The pieces of the text.
    pub(super) say: Vec<String>,
    /// Stays silent forever after the text. Without a text, sends not even a header.
    pub(super) hang: bool,
    /// Ends the connection after the text, before the end of the reply.
    pub(super) cut: bool,
    pub(super) calls: Vec<ModelCall>,
    /// The pause before each piece.
    pub(super) pause_ms: u64,
    pub(super) usage: Tokens,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpRefusal {
    pub(super) status: u16,
    pub(super) message: String,
    /// The value of Retry-After, in seconds.
    pub(super) retry_after: Option<u32>,
    /// The provider's name for the error, if not the usual one for the status.
    pub(super) class: Option<String>,
}

/// The numbers of tokens. `cached` is not included in `input`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
}

/// A tool call. All but the last three are calls of the agent's own tool for the purpose, whatever its name is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum ModelCall {
    /// Runs a command, outside the agent's own sandbox if the agent leaves that to the model.
    Shell(String),
    /// Runs a command without asking for more than the agent's sandbox allows.
    Try(String),
    Read(String),
    /// Searches the working directory for a word, without naming it.
    Search(String),
    Write {
        path: String,
        content: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    /// Asks the user, by our tool if the agent has none.
    Ask(Vec<AskedQuestion>),
    /// Calls the tool by which spektacular lets the model ask.
    Offered(Value),
    /// Gives a structured result: by the tool for it, otherwise as JSON text.
    Result(Value),
    /// A `*` in the name precedes the end of an offered tool's name, which then takes its place.
    Tool {
        name: String,
        input: Value,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedQuestion {
    pub(super) question: String,
    pub(super) header: String,
    /// Labels.
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) multiple: bool,
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens { input: 100, cached: 0, output: 10 }
    }
}

fn the_end() -> ModelReply {
    ModelReply::saying("(the scenario is over)")
}

impl ModelReply {
    pub(super) fn saying(text: &str) -> ModelReply {
        ModelReply { say: vec![text.into()], ..ModelReply::default() }
    }
}

impl ModelScenario {
    pub fn parse(text: &str) -> serde_json::Result<ModelScenario> {
        serde_json::from_str(text)
    }

    /// Excludes requests with less than half of the tools: a memory or a classifier, also a sub-agent.
    #[must_use]
    pub fn of_main_agent(self) -> ModelScenario {
        ModelScenario { only_main: true, ..self }
    }

    pub(super) fn next(&mut self) -> ModelReply {
        self.replies.pop_front().unwrap_or_else(|| self.after.clone())
    }
}

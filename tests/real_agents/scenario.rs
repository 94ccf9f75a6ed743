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
/// whatever its name for this agent. `Result` is a structured result: by the tool for it, otherwise as JSON text. `Badge`
/// is the tool of the MCP server in mcp_servers.rs.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Call {
    Shell(String),
    /// Runs a command without asking for more than the agent's sandbox allows, if the agent leaves that to the model.
    Try(String),
    /// Reads a file, by the agent's own tool if it has one beside the shell.
    Read(String),
    /// Searches the working directory for a word, without naming it.
    Search(String),
    Write {
        path: String,
        content: String,
    },
    /// Replaces a line of a file.
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Ask(Vec<Question>),
    Tool {
        name: String,
        input: Value,
    },
    Offered(Value),
    Result(Value),
    Badge(Value),
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

/// The ends of the names of the tools for questions, for results, and of the test's MCP server.
const ASKING: &[&str] = &["ask_user", "ask_the_user"];
const RESULT: &[&str] = &["submit_result", "StructuredOutput"];
const BADGE: &[&str] = &["get_badge"];

/// The first tool that a request offers under a name with one of these ends.
fn offered<'a>(tools: &'a Value, ends: &[&str]) -> Option<&'a str> {
    let name = tools["name"].as_str().filter(|name| ends.iter().any(|end| name.ends_with(end)));
    let inner: Vec<&Value> = match tools {
        Value::Array(all) => all.iter().collect(),
        Value::Object(all) => all.values().collect(),
        _ => Vec::new(),
    };
    name.or_else(|| inner.into_iter().find_map(|tool| offered(tool, ends)))
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

    /// The reply with the names under which this request offers the tools of spektacular.
    #[track_caller]
    pub(crate) fn named_as_in(mut self, request: &Value) -> Reply {
        let tool = |ends: &[&str]| offered(&request["tools"], ends).map(str::to_owned);
        for call in std::mem::take(&mut self.calls) {
            match call {
                Call::Offered(input) => {
                    let name = tool(ASKING).expect("no tool for questions is offered");
                    self.calls.push(Call::Tool { name, input });
                }
                Call::Result(input) => match tool(RESULT) {
                    Some(name) => self.calls.push(Call::Tool { name, input }),
                    None => self.say.push(input.to_string()),
                },
                Call::Badge(input) => {
                    // Claude Code and Codex offer it only once the model searched for it.
                    let name = tool(BADGE).unwrap_or_else(|| "mcp__badges__get_badge".into());
                    self.calls.push(Call::Tool { name, input });
                }
                other => self.calls.push(other),
            }
        }
        self
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

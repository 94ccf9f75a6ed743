//! The model of a test: the scripted model of the program, with a scenario of this folder.

use std::fs;
use std::path::Path;

use serde_json::Value;
use spektacular::scripted_model::{HeardRequest, ModelScenario, ScriptedModel, Wire};

use crate::support::io::shorten;

/// A model that answers until it is dropped.
pub(crate) struct Stub {
    wire: Wire,
    model: ScriptedModel,
}

impl Stub {
    /// Plays scenarios/NAME.json, with the program under test in place of `{program}`.
    pub(crate) fn start(wire: Wire, scenario: &str, cwd: &Path) -> Stub {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/real_agents/scenarios/{scenario}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = text.replace("{program}", env!("CARGO_BIN_EXE_spektacular"));
        Stub::play(wire, &text, cwd)
    }

    /// Plays this scenario.
    #[track_caller]
    pub(crate) fn play(wire: Wire, text: &str, cwd: &Path) -> Stub {
        let scenario = ModelScenario::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let model = ScriptedModel::start(wire, scenario, cwd.to_owned()).expect("listen on loopback");
        Stub { wire, model }
    }

    pub(crate) fn url(&self) -> String {
        self.model.url()
    }

    fn heard(&self) -> impl Iterator<Item = HeardRequest> {
        self.model.heard().into_iter().filter(|request| request.conversation)
    }

    /// The bodies of the conversation's requests.
    pub(crate) fn conversation(&self) -> Vec<Value> {
        self.heard().map(|request| request.body).collect()
    }

    /// The conversation's requests, each with its line.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.heard().map(|request| format!("{} {}", request.line, request.body)).collect()
    }

    pub(crate) fn first_request(&self) -> String {
        self.requests().into_iter().next().expect("one")
    }

    /// The results of the tools in the last request of the conversation.
    pub(crate) fn tool_results(&self) -> Vec<String> {
        self.wire.tool_results(&self.conversation().pop().unwrap_or_default())
    }

    /// All text of the messages in the last request of the conversation, one line each.
    pub(crate) fn last_heard(&self) -> String {
        let texts = self.wire.texts(&self.conversation().pop().unwrap_or_default());
        texts.iter().map(|text| format!("{text}\n")).collect()
    }

    /// The requests for other hosts, which the agents send here as to a proxy.
    pub(crate) fn strays(&self) -> Vec<String> {
        let lines = self.model.heard().into_iter().map(|request| request.line);
        lines.filter(|line| line.starts_with("CONNECT ") || line.contains(" http://")).collect()
    }

    /// Prints the requests when a test fails.
    pub(crate) fn dump(&self) -> String {
        let rows = self.model.heard().into_iter().map(|request| {
            let told = [self.wire.texts(&request.body), self.wire.tool_results(&request.body)].concat();
            let last = told.last().map(String::as_str).unwrap_or_default();
            format!("{} conversation={} last: {}\n", request.line, request.conversation, shorten(last, 600))
        });
        format!("---- the model was asked\n{}", rows.collect::<String>())
    }
}

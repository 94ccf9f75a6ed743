//! The agents that package.json pins: where each is, what it needs to find its model, and where it differs from the
//! others.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spektacular::agent::endpoint::Endpoint;
use spektacular::agent::registry::Agents;

use crate::install::{arch, program};
use crate::support::Case;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    OldClaude,
    Codex,
    Gemini,
    OpenCode,
}

impl Agent {
    /// The agent's name in run.start, and the name of its program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Agent::Claude | Agent::OldClaude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::OpenCode => "opencode",
        }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Agent::Claude => "2.1.330",
            Agent::OldClaude => "2.1.197",
            Agent::Codex => "0.169.0",
            Agent::Gemini => "0.61.0",
            Agent::OpenCode => "1.18.33",
        }
    }

    /// The program that an installation puts on PATH: native, or a script that starts it.
    pub(crate) fn program(self) -> PathBuf {
        match self {
            Agent::Claude => program(&format!("@anthropic-ai/claude-code-linux-{}", arch()), "claude"),
            Agent::OldClaude => program(&format!("claude-old-linux-{}", arch()), "claude"),
            Agent::Codex => program("@openai/codex", "bin/codex.js"),
            Agent::Gemini => program("@google/gemini-cli", "bundle/gemini.js"),
            // The build that runs on every processor, to download only one.
            Agent::OpenCode => program("opencode-linux-x64-baseline", "bin/opencode"),
        }
    }

    /// Whether a start takes seconds of processor time.
    pub(crate) fn starts_slowly(self) -> bool {
        matches!(self, Agent::Gemini | Agent::OpenCode)
    }

    /// The way to the agent's model.
    pub(crate) fn endpoint(self) -> &'static Endpoint {
        Agents::built_in().find(self.name()).and_then(|agent| agent.endpoint).expect("an endpoint")
    }

    /// Takes the agent's credentials away.
    pub(crate) fn log_out(self, case: Case) -> Case {
        match self {
            Agent::Claude | Agent::OldClaude => case.env("ANTHROPIC_API_KEY", ""),
            Agent::Codex => case.env("OPENAI_API_KEY", ""),
            Agent::Gemini => case.env("GEMINI_API_KEY", ""),
            Agent::OpenCode => {
                let config = json!({"autoupdate": false, "model": "anthropic/claude-sonnet-4-5"});
                put(&case.path("home/.config/opencode/opencode.json"), &config.to_string());
                // The agent's own list of models.
                case.env("OPENCODE_MODELS_PATH", "")
            }
        }
    }

    /// Points the agent to its model, and keeps it from contacting anything else.
    pub(crate) fn furnish(self, case: Case, url: &str) -> Case {
        let home = case.path("home");
        let fill = |text: &str| Endpoint::fill(text, url, home.to_str().expect("path"));
        let endpoint = self.endpoint();
        for (path, text) in endpoint.files {
            put(&home.join(path), &fill(text));
        }
        if self == Agent::OpenCode {
            with_models(&home.join(".config/opencode/opencode.json"));
        }
        endpoint.env.iter().fold(case, |case, (name, value)| case.env(name, &fill(value)))
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("folder")).expect("mkdir");
    fs::write(path, text).expect("write");
}

/// Adds what the tests need to the one model of OpenCode, and further models.
fn with_models(file: &Path) {
    let mut config: Value = serde_json::from_str(&fs::read_to_string(file).expect("read")).expect("JSON");
    let models = &mut config["provider"]["stub"]["models"];
    let blind = models["stub-model"].clone();
    let mut model = blind.clone();
    // By default, the agent drops images for a model that it does not know to accept them.
    model["modalities"] = json!({"input": ["text", "image"], "output": ["text"]});
    // US dollars per million tokens. Without it, the agent reports a cost of 0.
    model["cost"] = json!({"input": 1, "output": 2});
    *models = json!({"stub-model": model, "other-model": model, "blind-model": blind});
    put(file, &config.to_string());
}

//! The agents that package.json pins: where each is, what it needs to find its model, and where it differs from the
//! others.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::dialects::{Dialect, anthropic, chat, gemini, responses};
use crate::install::{arch, program};
use crate::lab::KEY;
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

    /// The API of the agent's model.
    pub(crate) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Agent::Claude | Agent::OldClaude => &anthropic::Anthropic,
            Agent::Codex => &responses::Responses,
            Agent::Gemini => &gemini::Gemini,
            Agent::OpenCode => &chat::Chat,
        }
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
        match self {
            Agent::Claude | Agent::OldClaude => claude(case, url),
            Agent::Codex => codex(case, url),
            Agent::Gemini => gemini(case, url),
            Agent::OpenCode => opencode(case, url),
        }
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("folder")).expect("mkdir");
    fs::write(path, text).expect("write");
}

fn claude(case: Case, url: &str) -> Case {
    case.env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DISABLE_TELEMETRY", "1")
        .env("DISABLE_ERROR_REPORTING", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        // By default, the agent retries for three minutes.
        .env("CLAUDE_CODE_MAX_RETRIES", "1")
}

/// With plugins, the agent contacts other hosts when it starts.
fn codex(case: Case, url: &str) -> Case {
    let config = format!(
        "model = \"gpt-5.5\"\n\
         model_provider = \"stub\"\n\
         [model_providers.stub]\n\
         name = \"stub\"\n\
         base_url = \"{url}/v1\"\n\
         wire_api = \"responses\"\n\
         env_key = \"OPENAI_API_KEY\"\n\
         supports_websockets = false\n\
         request_max_retries = 1\n\
         stream_max_retries = 1\n\
         [features]\n\
         plugins = false\n"
    );
    put(&case.path("home/.codex/config.toml"), &config);
    case.env("OPENAI_API_KEY", KEY)
}

fn gemini(case: Case, url: &str) -> Case {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        // By default, the agent asks a router for the model.
        "model": {"name": "gemini-2.5-flash"},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 2},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
    });
    put(&case.path("home/.gemini/settings.json"), &settings.to_string());
    case.env("GOOGLE_GEMINI_BASE_URL", url)
        .env("GEMINI_API_KEY", KEY)
        // The agent starts no MCP servers in an untrusted folder.
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
}

fn opencode(case: Case, url: &str) -> Case {
    // By default, the agent drops images for a model that it does not know to accept them.
    let modalities = json!({"input": ["text", "image"], "output": ["text"]});
    let limit = json!({"context": 100_000, "output": 8_000});
    let blind = json!({"name": "Stub", "tool_call": true, "limit": limit});
    let mut model = blind.clone();
    model["modalities"] = modalities;
    // US dollars per million tokens. Without it, the agent reports a cost of 0.
    model["cost"] = json!({"input": 1, "output": 2});
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "stub/stub-model",
        "small_model": "stub/stub-model",
        "provider": {"stub": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Stub",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
            "models": {"stub-model": model, "other-model": model, "blind-model": blind},
        }},
    });
    let home = case.path("home/.config/opencode");
    put(&home.join("opencode.json"), &config.to_string());
    // By default, the agent installs a plugin library there, unless it finds one.
    fs::create_dir(home.join("node_modules")).expect("mkdir");
    let installed = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1"}}}});
    put(&home.join("package-lock.json"), &installed.to_string());
    // Loading the agent's list of models takes a third of its start time.
    put(&home.join("models.json"), "{}");
    case.env("OPENCODE_MODELS_PATH", home.join("models.json").to_str().expect("path"))
        .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
        .env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")
}

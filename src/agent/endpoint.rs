//! The way of an agent to another provider, for a check without an account, a key or a network.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's chat completions.
    ChatCompletions,
    /// Google's generateContent.
    GenerateContent,
}

/// An invented key in the usual form, so that it is redacted like a real one.
pub const MADE_UP_KEY: &str = "sk-made-up-0000000000000000";

/// The settings that lead an agent to a provider at another address, and keep it from contacting anything else. Retries
/// are few, where the agent has a setting for them.
#[derive(Debug)]
pub struct Endpoint {
    pub wire: Wire,
    /// A model other than the one of these settings, and the part of its name in a request for it. `None`: the agent has
    /// no way to another model.
    pub model: Option<(&'static str, &'static str)>,
    /// Variables. In their values and in the files, `{url}`, `{home}` and `{key}` are placeholders.
    pub env: &'static [(&'static str, &'static str)],
    /// Files below HOME, with their texts.
    pub files: &'static [(&'static str, &'static str)],
}

impl Endpoint {
    pub fn fill(text: &str, url: &str, home: &str) -> String {
        text.replace("{url}", url).replace("{home}", home).replace("{key}", MADE_UP_KEY)
    }
}

/// Claude Code, also below an adapter.
pub(super) static CLAUDE_CODE: Endpoint = Endpoint {
    wire: Wire::Messages,
    model: Some(("haiku", "haiku")),
    env: &[
        ("ANTHROPIC_BASE_URL", "{url}"),
        ("ANTHROPIC_API_KEY", "{key}"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // By default, the agent retries for three minutes.
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ],
    files: &[],
};

/// With plugins, the agent contacts other hosts when it starts.
const CODEX_PROVIDER: &str = r#"
model = "gpt-5.5"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
supports_websockets = false
request_max_retries = 1
stream_max_retries = 1
[features]
plugins = false
[analytics]
enabled = false
"#;

/// Codex, also below an adapter.
pub(super) static CODEX: Endpoint = Endpoint {
    wire: Wire::Responses,
    model: Some(("gpt-6.1-sol", "gpt-6.1-sol")),
    env: &[("OPENAI_API_KEY", "{key}")],
    files: &[(".codex/config.toml", CODEX_PROVIDER)],
};

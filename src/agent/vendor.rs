//! The vendors of models, known by the names of their models.

use crate::protocol::words::word_enums;

word_enums! {
    /// A vendor whose own agent runs only its models, unless the user redirects the agent.
    pub enum Vendor {
        Anthropic = "Anthropic",
        OpenAi = "OpenAI",
        Google = "Google",
    }
}

impl Vendor {
    fn names(self) -> &'static [&'static str] {
        match self {
            Vendor::Anthropic => &["claude", "opus", "sonnet", "haiku"],
            Vendor::OpenAi => &["gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"],
            Vendor::Google => &["gemini"],
        }
    }

    /// The vendor of the model with this name, which a path may precede. `None`: the name does not tell.
    pub(super) fn of_model(name: &str) -> Option<Vendor> {
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        Vendor::ALL.iter().copied().find(|vendor| vendor.names().iter().any(|begin| name.starts_with(begin)))
    }
}

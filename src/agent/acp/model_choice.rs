//! The model of a session.

use super::errors;
use super::modes::{Setter, option};
use super::profile::Profile;
use crate::json::Object;
use crate::protocol::failure::Failure;

#[derive(Debug, Default)]
pub(super) struct ModelChoice {
    pub(super) method: Setter,
    pub(super) current: Option<String>,
    /// Whether the session offers a list of models without any.
    is_empty: bool,
}

/// Whether a model is one of those that OpenCode offers to everybody, with or without a login: `opencode/big-pickle`, and
/// `opencode/…-free`.
fn is_for_everybody(model: &str) -> bool {
    model.strip_prefix("opencode/").is_some_and(|name| name == "big-pickle" || name.ends_with("-free"))
}

impl ModelChoice {
    /// The failure of a session whose model nobody chose: without credentials for the configured model, or without a
    /// configured one, OpenCode takes a remote model of its own, to which the prompt and the code would go.
    pub(super) fn stand_in(&self, profile: &Profile) -> Option<Failure> {
        if self.is_empty {
            return Some(Failure::not_logged_in(profile.name, profile.login));
        }
        self.current.as_deref().filter(|model| is_for_everybody(model)).map(|_| errors::stand_in(profile))
    }
}

pub(super) fn model_choice(result: &Object<'_>) -> ModelChoice {
    if let Some((option, id)) = option(result, "model") {
        let is_empty = option.list("options").is_some() && option.objects("options").next().is_none();
        return ModelChoice { method: Setter::Option(id), current: option.string("currentValue"), is_empty };
    }
    let current = result.object("models").and_then(|models| models.string("currentModelId"));
    ModelChoice { method: Setter::Request, current, is_empty: false }
}

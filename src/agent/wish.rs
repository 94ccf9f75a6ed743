//! The settings that some agents ignore. A run warns of those that have no effect.

use super::{Driver, Turn};
use crate::protocol::request::Settings;

/// A setting that some agents ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// `model`.
    Model,
    /// `effort`.
    Effort,
    /// `mode`.
    Mode,
    /// `system_prompt`.
    SystemPrompt,
    /// `add_dirs`.
    AddDirs,
}

impl Wish {
    /// Every such setting.
    pub const ALL: [Wish; 5] = [Wish::Model, Wish::Effort, Wish::Mode, Wish::SystemPrompt, Wish::AddDirs];

    /// Its name in run.start.
    pub fn field(self) -> &'static str {
        match self {
            Wish::Model => "model",
            Wish::Effort => "effort",
            Wish::Mode => "mode",
            Wish::SystemPrompt => "system_prompt",
            Wish::AddDirs => "add_dirs",
        }
    }

    /// Whether these settings have it.
    fn is_set(self, settings: &Settings) -> bool {
        match self {
            Wish::Model => settings.model.is_some(),
            Wish::Effort => settings.effort.is_some(),
            Wish::Mode => settings.mode.is_some(),
            Wish::SystemPrompt => settings.system_prompt.is_some(),
            Wish::AddDirs => !settings.add_dirs.is_empty(),
        }
    }
}

/// Warns of each setting that is set and has no effect on the driver's agent.
pub(super) fn warn_of_ignored(settings: &Settings, driver: &dyn Driver, turn: &mut Turn) {
    for wish in Wish::ALL {
        if wish.is_set(settings) && !driver.follows(wish, settings) {
            turn.warn(format!("`{}` has no effect on this agent", wish.field()));
        }
    }
}

//! The settings that some agents ignore. A run warns of those that have no effect.

use super::{Driver, DriverOutput};
use crate::protocol::fields::{self, Field};
use crate::protocol::request::Settings;
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::words::{Background, word_enums};

word_enums! {
    /// A setting that some agents ignore, by its field in run.start.
    pub enum Preference {
        Model = "model",
        Effort = "effort",
        Mode = "mode",
        SystemPrompt = "system_prompt",
        SystemPromptMode = "system_prompt_mode",
        AddDirs = "add_dirs",
        Background = "background",
    }
}

impl Preference {
    fn is_set(self, settings: &Settings) -> bool {
        match self {
            Preference::Model => settings.model.is_some(),
            Preference::Effort => settings.effort.is_some(),
            Preference::Mode => settings.mode.is_some(),
            Preference::SystemPrompt => settings.system_prompt.is_some(),
            Preference::SystemPromptMode => settings.new_system_prompt().is_some(),
            Preference::AddDirs => !settings.add_dirs.is_empty(),
            Preference::Background => settings.background == Background::Refuse,
        }
    }
}

pub(super) fn warn_of_ignored(settings: &Settings, driver: &dyn Driver, out: &mut DriverOutput) {
    let followed = driver.features(settings).preferences;
    for preference in Preference::ALL {
        if preference.is_set(settings) && !followed.contains(preference) {
            out.warn(no_effect(fields::known(preference.word())));
        }
    }
}

pub(super) fn no_effect(field: &'static Field) -> Sentence {
    sentence!("{field} has no effect on this agent", field = field)
}

#[cfg(test)]
mod tests {
    use super::Preference;
    use crate::protocol::fields;

    #[test]
    fn the_word_of_a_preference_is_its_field() {
        assert!(Preference::WORDS.iter().all(|word| fields::find(word).is_some()));
    }
}

//! The choice of a scenario: the built-in ones by name, and files.

use super::scenario::Scenario;
use crate::suggest::{nearest, plain_name};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        /// The first is the default.
        pub(crate) const NAMES: &[&str] = &[$($name),*];
        /// In the order of [`NAMES`].
        const FILES: &[&str] = &[$(include_str!(concat!("scenarios/", $name, ".json"))),*];
    };
}

scenarios! {
    "greeting", "hello", "questions", "permission", "permissions-two-at-once", "plan", "subagent", "artifacts",
    "structured-result", "error-429", "error-401", "crash", "hang", "huge", "unicode", "slow", "secret", "turns", "steer",
}

/// The beginning of an agent's name that chooses a scenario.
pub(crate) const PREFIX: &str = "demo:";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScenarioChoice<'a> {
    BuiltIn(&'static str),
    File(&'a str),
}

impl<'a> ScenarioChoice<'a> {
    /// Reads a name, or a path: a text with a slash or the ending `.json`. `None`: an unknown name.
    pub(crate) fn of(text: &'a str) -> Option<ScenarioChoice<'a>> {
        match NAMES.iter().find(|name| **name == text) {
            Some(name) => Some(ScenarioChoice::BuiltIn(name)),
            None => (text.contains('/') || text.ends_with(".json")).then_some(ScenarioChoice::File(text)),
        }
    }

    pub(crate) fn word(self) -> &'a str {
        match self {
            ScenarioChoice::BuiltIn(word) | ScenarioChoice::File(word) => word,
        }
    }
}

pub(crate) fn text(name: &'static str) -> &'static str {
    NAMES.iter().position(|known| *known == name).map_or("", |at| FILES[at])
}

pub(crate) fn list() -> Vec<(&'static str, String)> {
    let about = |text: &str| Scenario::parse(text).map(|scenario| scenario.about).unwrap_or_default();
    NAMES.iter().zip(FILES).map(|(name, text)| (*name, about(text))).collect()
}

/// `from`: where the name comes from, after a space.
pub(crate) fn unknown(name: &str, from: &str) -> String {
    let shown = plain_name(name).map(|name| format!(" {name}")).unwrap_or_default();
    format!("Unknown scenario{shown}{from}. {}", hints(name))
}

pub(crate) fn hints(name: &str) -> String {
    let meant = nearest(name, NAMES.iter().copied()).map(|name| format!("Did you mean {name}? "));
    let names = NAMES.join(", ");
    format!(
        "{}The scenarios are: {names}. To play a file, give its path, such as ./file.json.",
        meant.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::{FILES, NAMES, ScenarioChoice, hints, text};
    use crate::agent::demo::scenario::Scenario;

    #[test]
    fn every_built_in_scenario_is_valid() {
        for (name, file) in NAMES.iter().zip(FILES) {
            let read = Scenario::parse(file).map_err(|flaw| flaw.message(name));
            assert!(read.is_ok_and(|scenario| scenario.about.ends_with('.')), "{name}");
            assert_eq!(text(name), *file);
        }
    }

    #[test]
    fn a_path_is_not_a_name() {
        assert_eq!(ScenarioChoice::of("hang"), Some(ScenarioChoice::BuiltIn("hang")));
        assert_eq!(ScenarioChoice::of("./hang"), Some(ScenarioChoice::File("./hang")));
        assert_eq!(ScenarioChoice::of("a.json"), Some(ScenarioChoice::File("a.json")));
        assert_eq!(ScenarioChoice::of("hnag"), None);
        assert!(hints("hnag").starts_with("Did you mean hang? The scenarios are: greeting, hello,"));
    }
}

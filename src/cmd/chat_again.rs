//! A conversation whose settings change: this process becomes one that continues it with others.

use super::complain;
use crate::cli::{Adhoc, RepeatedFlag};
use crate::io::stdin::{self, StdinKind};
use crate::process::own_run;
use crate::protocol::failure::{Code, Failure};
use crate::terminal::{ChosenSettings, Setting};
use std::ffi::OsString;

pub(super) struct ChatAgain {
    flags: Vec<RepeatedFlag>,
    cwd: Option<String>,
    name: Option<String>,
    is_stored: bool,
}

impl ChatAgain {
    /// The reason why such a conversation cannot continue this one, as a clause about this one.
    pub(super) fn hindrance(adhoc: &Adhoc) -> Option<&'static str> {
        if adhoc.worktree.is_some() {
            Some("in a worktree of its own")
        } else if adhoc.record.is_some() || adhoc.report.is_some() {
            Some("with --record or --report")
        } else if adhoc.scenario.is_some() {
            Some("that plays a scenario")
        } else {
            (stdin::kind() != StdinKind::Terminal).then_some("that began with a pipe")
        }
    }

    pub(super) fn of(adhoc: &Adhoc) -> ChatAgain {
        ChatAgain {
            flags: adhoc.repeated.clone(),
            cwd: adhoc.options.cwd.clone(),
            name: adhoc.session_name.as_ref().map(|name| name.to_string()),
            is_stored: !adhoc.no_session,
        }
    }

    /// `session`: the session to continue, which another agent cannot.
    fn arguments(&self, chosen: &ChosenSettings, session: Option<&str>) -> Vec<OsString> {
        let changes = |flag: &&RepeatedFlag| {
            let is = |setting: Setting| flag.field.unwrap_or(flag.name) == setting.word();
            let is_of_old_agent = chosen.has_other_agent && is(Setting::Model);
            is_of_old_agent || chosen.values.iter().any(|(setting, _)| is(*setting)) || flag.name == "output"
        };
        let mut words: Vec<OsString> = ["adhoc", "--conversation", "--output=cli"].map(OsString::from).into();
        words.extend(self.flags.iter().filter(|flag| !changes(flag)).flat_map(|flag| flag.words.clone()));
        let session = session.filter(|_| !chosen.has_other_agent);
        let more = [
            ("cwd", self.cwd.as_deref()),
            ("session", session),
            ("name", self.name.as_deref().filter(|_| session.is_some())),
        ];
        for (flag, value) in more {
            words.extend(value.map(|value| format!("--{flag}={value}").into()));
        }
        words.extend((!self.is_stored).then(|| "--no-session".into()));
        words.extend(chosen.values.iter().map(|(setting, value)| format!("--{}={value}", setting.word()).into()));
        words
    }

    /// Continues the conversation. Returns only if it cannot, with the exit code.
    pub(super) fn begin(self, chosen: &ChosenSettings, session: Option<&str>) -> u8 {
        let why = own_run::replace_process(&self.arguments(chosen, session));
        complain(&Failure::new(Code::InternalError, format!("The conversation cannot continue: {}.", why.kind())))
    }
}

#[cfg(test)]
mod tests {
    use super::ChatAgain;
    use crate::cli::RepeatedFlag;
    use crate::terminal::{ChosenSettings, Setting};

    fn arguments(has_other_agent: bool, values: &[(Setting, &str)]) -> String {
        let flag = |name, field: &'static str, words: &[&str]| RepeatedFlag {
            name,
            field: (!field.is_empty()).then_some(field),
            words: words.iter().map(Into::into).collect(),
            may_be_secret: false,
        };
        let again = ChatAgain {
            flags: vec![
                flag("yes", "permissions", &["--yes"]),
                flag("model", "model", &["--model", "opus"]),
                flag("output", "", &["--output", "cli"]),
                flag("plain", "", &["--plain"]),
            ],
            cwd: None,
            name: Some("long".into()),
            is_stored: true,
        };
        let values = values.iter().map(|(setting, value)| (*setting, (*value).to_owned())).collect();
        let words = again.arguments(&ChosenSettings { values, has_other_agent }, Some("s1"));
        let words: Vec<String> = words.into_iter().map(|word| word.into_string().unwrap()).collect();
        words.join(" ").strip_prefix("adhoc --conversation --output=cli ").unwrap().to_owned()
    }

    #[test]
    fn a_chosen_setting_replaces_every_flag_for_it() {
        let chosen = arguments(false, &[(Setting::Permissions, "read-only")]);
        assert_eq!(chosen, "--model opus --plain --session=s1 --name=long --permissions=read-only");
        let chosen = arguments(false, &[(Setting::Agent, "codex"), (Setting::Model, "gpt")]);
        assert_eq!(chosen, "--yes --plain --session=s1 --name=long --agent=codex --model=gpt");
        let chosen = arguments(true, &[(Setting::Agent, "codex")]);
        assert_eq!(chosen, "--yes --plain --agent=codex", "another agent has neither the session nor the model");
    }
}

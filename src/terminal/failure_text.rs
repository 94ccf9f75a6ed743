//! Errors in the words of a person at a terminal: flags in place of the fields that an orchestrator sends.

use crate::clean::{one_line, whole};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::fields;
use crate::protocol::outbound::{Outcome, RuleViolation};
use crate::protocol::schema::Mismatch;

/// Words for an orchestrator, and their replacements for a person.
const INSTEAD: &[(&str, &str)] = &[
    ("run.start: ", ""),
    ("see detail.stderr_tail", "see what it wrote, below"),
    ("see detail.agent_message", "see what it says, below"),
    ("see detail.violations", "see why, below"),
    ("`prompt` must be a non-empty string", "the prompt must not be empty"),
];

/// The beginning of a message about an agent that cannot resume. A person may have typed `--continue`.
const RESUME: &str = "run.start: `session_id` cannot be given: ";

/// Marks of a message about a configuration file.
const CONFIGURATION: &str = "config.json";

/// A failure's sentence.
pub(super) fn failure(failure: &Failure) -> String {
    if failure.code == Code::InputClosed {
        return "A question needs an answer, and nobody is left to give one: add --answer, or start the run in a terminal."
            .into();
    }
    sentence(&failure.message)
}

/// Whether a resumed session would fail in the same way, because the agent could not use its model at all.
pub(super) fn recurs(outcome: &Outcome) -> bool {
    let Outcome::Failed(failure) = outcome else { return false };
    matches!(failure.code, Code::AuthRequired | Code::ModelNotFound | Code::SessionNotFound)
}

/// The line for a rule that a file of a workflow breaks.
pub(super) fn breach(breach: &RuleViolation) -> String {
    let place = format!("{}:{}", breach.file.shown(), breach.line.unwrap_or_default());
    one_line(&format!("{place}: {}: {}", breach.rule, breach.text.shown())) + "\n"
}

/// The warning after an answer that no frame can hold.
pub(super) const CUT_ANSWER: &str = "spektacular: warning: the answer was too long and was cut\n";

/// The warning in place of a structured result that a frame cannot show.
pub(super) const HIDDEN_RESULT: &str = "spektacular: warning: the result nests too deeply or is too long to be shown\n";

/// The lines below a failure's sentence: the mistakes in a result, what the agent said, and the commands of a plan.
pub(super) fn details(failure: &Failure) -> String {
    let place = |path: &str| if path.is_empty() { "the result".to_owned() } else { path.to_owned() };
    let mistake = |Mismatch { path, text }: &Mismatch| one_line(&format!("{}: {}", place(path.shown()), text.shown()));
    let told = [failure.agent_message.as_ref(), failure.stderr_tail.as_ref(), failure.commands.as_deref()];
    let told = told.into_iter().flatten();
    let told = told.flat_map(|told| whole(told.shown()).lines().map(str::to_owned).collect::<Vec<_>>());
    let mistakes = failure.violations.iter().flat_map(|all| &all.0);
    mistakes.map(mistake).chain(told).map(|line| format!("  {line}\n")).collect()
}

/// A sentence with flags in place of fields: every name in backticks, and unquoted names that are not English words.
pub(super) fn sentence(text: &str) -> String {
    // A message about a file means keys, which have the fields' names.
    if text.contains(CONFIGURATION) {
        return text.to_owned();
    }
    let text = match text.strip_prefix(RESUME) {
        Some(why) => &format!("The session cannot be resumed: {why}"),
        None => text,
    };
    let text = INSTEAD.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new));
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(is_of_name) {
        let (before, from) = rest.split_at(at);
        let (name, after) = from.split_at(from.find(|c| !is_of_name(c)).unwrap_or(from.len()));
        let quoted = before.ends_with('`') && after.starts_with('`');
        match flag(name).filter(|_| quoted || name.contains('_')) {
            Some(flag) if quoted => {
                out.push_str(&before[..before.len() - 1]);
                out.push_str(&format!("--{flag}"));
                rest = &after[1..];
            }
            found => {
                out.push_str(before);
                out.push_str(&found.map_or_else(|| name.to_owned(), |flag| format!("--{flag}")));
                rest = after;
            }
        }
    }
    out + rest
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn flag(field: &str) -> Option<&'static str> {
    fields::find(field).map(|field| field.flag).filter(|flag| !flag.is_empty())
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn fields_become_flags() {
        for (told, said) in [
            (
                "A question was not answered in time: answer it, or raise question_timeout_s.",
                "A question was not answered in time: answer it, or raise --question-timeout.",
            ),
            ("run.start: `cwd` must be the path of a directory.", "--cwd must be the path of a directory."),
            (
                "run.start: `session_id` cannot be given: this agent has no sessions to resume.",
                "The session cannot be resumed: this agent has no sessions to resume.",
            ),
            ("run.start: `agent` must be one of: claude, demo.", "--agent must be one of: claude, demo."),
            ("run.start: `agent_args` or `env` is too long.", "--agent-arg or --env is too long."),
            (
                "Unknown key timeot_s in /mcp_servers/config.json, line 3. Did you mean timeout_s?",
                "Unknown key timeot_s in /mcp_servers/config.json, line 3. Did you mean timeout_s?",
            ),
            ("The model and the agent stay as they are.", "The model and the agent stay as they are."),
            ("log in with `claude`, or set ANTHROPIC_API_KEY.", "log in with `claude`, or set ANTHROPIC_API_KEY."),
        ] {
            assert_eq!(sentence(told), said);
        }
    }
}

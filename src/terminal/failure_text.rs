//! The lines about a failure that stand below its sentence, and other warnings of a terminal.

use crate::clean::{one_line, whole};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::outbound::{Outcome, RuleViolation};
use crate::protocol::schema::Mismatch;

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
    let told = [failure.agent_message.as_ref(), failure.stderr_tail.as_deref(), failure.commands.as_deref()];
    let told = told.into_iter().flatten();
    let told = told.flat_map(|told| whole(told.shown()).lines().map(str::to_owned).collect::<Vec<_>>());
    let mistakes = failure.violations.iter().flat_map(|all| &all.0);
    mistakes.map(mistake).chain(told).map(|line| format!("  {line}\n")).collect()
}

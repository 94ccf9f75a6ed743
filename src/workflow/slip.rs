//! A description that is probably a command of another program, such as `spec list`.

use super::stop::Stop;
use super::workflow_run::WorkflowRun;
use crate::agent::Reply;
use crate::protocol::failure::Failure;
use crate::protocol::question::{Answer, Ask, Kind};
use crate::protocol::words::{Purpose, RefusalReason};

/// Commands of similar programs. A description of this one word is probably a slip.
const COMMAND_WORDS: &[&str] = &[
    "add", "apply", "archive", "create", "delete", "diff", "edit", "get", "help", "init", "list", "ls", "new", "open",
    "remove", "rm", "run", "show", "start", "status", "update", "validate", "verify", "version", "view",
];

pub(crate) fn command_word(description: &str) -> Option<&'static str> {
    let word = description.trim();
    COMMAND_WORDS.iter().find(|command| command.eq_ignore_ascii_case(word)).copied()
}

pub(super) fn mistaken(word: &str) -> Failure {
    let message = format!(
        "spec has no command {word}. `spektacular status` lists what exists. To write a specification about it, describe \
         it in several words."
    );
    Failure::refused_for(RefusalReason::Invalid, message)
}

pub(super) fn confirm(outer: &mut WorkflowRun<'_>, word: &str) -> Result<(), Stop> {
    let text = format!("Write a specification about `{word}`? (`spektacular status` lists what exists.)");
    let ask =
        Ask { default: Some(Answer::Bool(false)), ..Ask::new(Purpose::Clarification, Kind::Confirm, "Command", text) };
    match outer.ask(ask, None)? {
        Some(Reply::Answer(Answer::Bool(true))) => Ok(()),
        _ => Err(mistaken(word).into()),
    }
}

//! The arguments of a command, with their placeholders replaced.

use crate::agent::fitting;
use crate::protocol::failure::Failure;
use crate::protocol::fields::field;
use crate::protocol::terms::sentence;

pub(super) const PROMPT: &str = "{prompt}";
pub(super) const SESSION: &str = "{session}";
pub(super) const MODEL: &str = "{model}";
const CWD: &str = "{cwd}";

pub(super) struct Values<'a> {
    pub(super) prompt: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) cwd: &'a str,
}

pub(super) fn names(args: &[String], word: &str) -> bool {
    args.iter().any(|arg| arg.contains(word))
}

/// Without a model, drops the argument for it and a flag right before it that has no other value. Error: an argument
/// that does not fit a command line, or a value that would pass for a flag.
pub(super) fn arguments(template: &[String], values: &Values<'_>) -> Result<Vec<String>, Failure> {
    let nameless = |arg: &String| arg.contains(MODEL) && values.model.is_none();
    let mut rest = template.iter().peekable();
    let mut out = Vec::new();
    let mut flags_end = false;
    while let Some(arg) = rest.next() {
        let flag = arg.starts_with('-') && rest.peek().is_some_and(|next| *next == MODEL && nameless(next));
        if flag || nameless(arg) {
            continue;
        }
        flags_end |= arg == "--";
        let word = filled(arg, values);
        if is_flag(&word) && !arg.starts_with('-') && !flags_end {
            return Err(flag_like(arg));
        }
        let field = if arg.contains(PROMPT) { field!(prompt) } else { field!(model) };
        out.push(fitting(field, word)?);
    }
    Ok(out)
}

/// The `- ` of a Markdown list is not a flag.
fn is_flag(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.starts_with(char::is_whitespace))
}

fn flag_like(arg: &str) -> Failure {
    Failure::invalid_start(if arg.starts_with(PROMPT) {
        sentence!(
            "{prompt} begins with `-`, so the agent's command would take it for a flag. Put `--` before {{prompt}} in its \
             arguments, or leave {{prompt}} out to pass the prompt on stdin.",
            prompt
        )
    } else {
        sentence!("{model} must not begin with `-`: the agent's command would take it for a flag.", model)
    })
}

/// Replaces the placeholders in one pass, so that those inside values stay.
fn filled(arg: &str, values: &Values<'_>) -> String {
    let known =
        [(PROMPT, Some(values.prompt)), (SESSION, values.session), (MODEL, values.model), (CWD, Some(values.cwd))];
    let (mut out, mut rest) = (String::with_capacity(arg.len()), arg);
    while let Some(at) = rest.find('{') {
        let (before, word) = rest.split_at(at);
        out.push_str(before);
        let value = known.iter().find_map(|(name, value)| word.strip_prefix(name).zip(*value));
        rest = match value {
            Some((after, value)) => {
                out.push_str(value);
                after
            }
            None => {
                out.push('{');
                &word[1..]
            }
        };
    }
    out + rest
}

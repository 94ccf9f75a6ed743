//! The command line of a command: its arguments, with what stands for something replaced.

use crate::agent::fitting;
use crate::failure::Failure;

/// Stands for the prompt.
pub(super) const PROMPT: &str = "{prompt}";
/// Stands for the session to resume.
pub(super) const SESSION: &str = "{session}";
/// Stands for the model.
pub(super) const MODEL: &str = "{model}";
/// Stands for the working directory.
const CWD: &str = "{cwd}";

/// What the words in braces stand for.
pub(super) struct Values<'a> {
    pub(super) prompt: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) cwd: &'a str,
}

/// Whether an argument has this word.
pub(super) fn names(args: &[String], word: &str) -> bool {
    args.iter().any(|arg| arg.contains(word))
}

/// The arguments with these values. One that names a model is left out where there is none; so is a flag before it, if
/// it names nothing else. Error: one that fits no command line.
pub(super) fn arguments(template: &[String], values: &Values<'_>) -> Result<Vec<String>, Failure> {
    let nameless = |arg: &String| arg.contains(MODEL) && values.model.is_none();
    let mut rest = template.iter().peekable();
    let mut out = Vec::new();
    while let Some(arg) = rest.next() {
        let flag = arg.starts_with('-') && rest.peek().is_some_and(|next| *next == MODEL && nameless(next));
        if !(flag || nameless(arg)) {
            let field = if arg.contains(PROMPT) { "prompt" } else { "model" };
            out.push(fitting(field, filled(arg, values))?);
        }
    }
    Ok(out)
}

/// In one pass: what a value holds is never replaced itself.
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

//! `prompts`: the prompts of the workflows, and the origin of each.

use super::{finish, warn};
use crate::cli::Wrong;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::config::Places;
use crate::protocol::failure::{Code, Failure, NO_DIRECTORY};
use crate::suggest::{Typed, Unknown};
use crate::workflow::project::Project;
use crate::workflow::prompts::PromptText;
use crate::workflow::template::PromptKind;
use std::ffi::OsString;

pub(super) const COMMAND: Command = Command {
    words: Words::Free("[NAME]", Offers::Words(PromptKind::WORDS)),
    ..Command::named(
        "prompts",
        &CommandText {
            about: "list or print the prompts of spec, plan and implement",
            more: "\
A file prompts/NAME.md beside the user's config.json replaces a built-in prompt.
.spektacular/prompts/NAME.md takes precedence, once you trust it with `spektacular config trust`.
The list shows whether each prompt is the built-in one, the user's or the project's.",
            examples: &[
                ("spektacular prompts list", "list the prompts, like spektacular prompts"),
                (
                    "spektacular prompts spec > .spektacular/prompts/spec.md",
                    "start the project's own version of a prompt",
                ),
            ],
        },
        |_, words| Ok(Runnable::new(named(&words)?, run)),
    )
};

pub(super) fn named(words: &[OsString]) -> Result<Option<PromptKind>, Wrong> {
    match words {
        [] => Ok(None),
        [list] if list == "list" => Ok(None),
        [name] => {
            let name = name.to_string_lossy();
            let unknown = Unknown { what: "prompt", dashes: "", typed: Typed::Value(&name), place: "" };
            let known = || PromptKind::WORDS.iter().copied();
            let all = format!("The prompts are {}.", PromptKind::WORDS.join(", "));
            PromptKind::from_word(&name).map(Some).ok_or_else(|| unknown.message(known(), &all))
        }
        _ => Err("Too many words: prompts prints one prompt, as in spektacular prompts spec.".into()),
    }
}

fn run(kind: Option<PromptKind>) -> u8 {
    finish(kind.map_or_else(list, |kind| in_force(kind).map(|prompt| prompt.text)))
}

fn list() -> Result<String, Failure> {
    let texts: Vec<PromptText> = PromptKind::ALL.iter().copied().map(in_force).collect::<Result<_, _>>()?;
    let width = PromptKind::WORDS.iter().map(|name| name.len()).max().unwrap_or_default();
    Ok(texts.iter().map(|text| format!("{:<width$}  {}\n", text.kind.word(), text.source.word())).collect())
}

fn in_force(kind: PromptKind) -> Result<PromptText, Failure> {
    let cwd = std::env::current_dir().and_then(|cwd| Project::around(&cwd));
    let project = cwd.map_err(|_| Failure::new(Code::InvalidConfig, NO_DIRECTORY))?;
    let prompt = PromptText::load(kind, &project, &Places::of_process())?;
    warn(prompt.warning.iter());
    Ok(prompt)
}

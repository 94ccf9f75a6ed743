//! `diff`: the changes that the work of a plan made so far.

use super::format_check::around;
use super::{finish, secrets_here};
use crate::cli::Output;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{OutputArgs, flags, store};
use crate::json::{map_strings, to_line};
use crate::process::query::Until;
use crate::protocol::failure::Failure;
use crate::protocol::words::RefusalReason;
use crate::workflow::project::{Argument, shown};
use crate::workflow::started::{self, Since};
use serde_json::json;
use std::ffi::OsString;
use std::time::Instant;

pub(super) const COMMAND: Command = Command {
    words: Words::Free("PLAN", Offers::Plans),
    flags: &flags::<_, { OutputArgs::FLAGS.len() }>(OutputArgs::FLAGS),
    ..Command::named(
        "diff",
        &CommandText {
            about: "show what a plan has changed so far",
            more: "\
Prints a unified diff between the work tree before the plan's first phase and the work tree now. It includes commits,
uncommitted changes, and new files that git does not ignore. It leaves out .spektacular and submodules.
It needs git, and a plan that `spektacular implement` began here, or whose commits are in the history of HEAD.",
            examples: &[
                ("spektacular diff greeting", "show the changes of the plan greeting"),
                ("spektacular diff --output json greeting", "the same as one JSON object"),
            ],
        },
        |given, words| {
            let args = store(OutputArgs::FLAGS, given)?;
            match <[OsString; 1]>::try_from(words) {
                Ok([plan]) => Ok(Runnable::new((args, plan), |(args, plan)| finish(difference(args.output, &plan)))),
                Err(words) if words.is_empty() => Err("Missing PLAN: spektacular diff PLAN.".into()),
                Err(_) => Err("Too many words: spektacular diff PLAN.".into()),
            }
        },
    )
};

fn difference(output: Output, plan: &OsString) -> Result<String, Failure> {
    let cwd = std::env::current_dir().unwrap_or_default();
    let project = around(&cwd)?;
    let path = project.plan(&Argument::parse("PLAN", plan)?, &cwd)?;
    let until = Until::deadline(Instant::now() + started::LIMIT);
    let found = started::difference(&project, &path.folder, Since::Plan, &until).ok_or_else(|| {
        let message = format!(
            "The state before the work of {} is not known: git is missing or failed, or no run of the plan began here.",
            shown(&path.file)
        );
        Failure::refused_for(RefusalReason::NotFound, message)
    })?;
    let redactor = secrets_here();
    Ok(match output {
        Output::Cli => redactor.redact(&found).into_owned(),
        Output::Json => {
            let line = to_line(&json!({"plan": shown(&path.file), "diff": found}));
            map_strings(&line, &mut |text| redactor.redact(text).into_owned()) + "\n"
        }
    })
}

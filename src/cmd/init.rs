//! `init`: the folder `.spektacular` of a project.

use super::finish;
use crate::cli::Output;
use crate::cli::command::{Command, CommandText, Runnable};
use crate::cli::row::{OutputArgs, flags, store_alone};
use crate::json::to_line;
use crate::protocol::failure::{Code, Failure, NO_DIRECTORY};
use crate::workflow::init::init;
use crate::workflow::project::{Project, shown};
use serde_json::json;

pub(super) const COMMAND: Command = Command {
    flags: &flags::<_, { OutputArgs::FLAGS.len() }>(OutputArgs::FLAGS),
    ..Command::named(
        "init",
        &CommandText {
            about: "create the folder .spektacular of a project",
            more: "\
The folder holds specifications, plans, prompts, notes for agents, and the project's configuration.
The project's folder is the nearest one with a .spektacular, up to the root of the git work tree; otherwise that root.
Outside a git work tree, it is the current directory. Existing files are not changed.",
            examples: &[("spektacular init", "create the missing files, and list all")],
        },
        |given, words| Ok(Runnable::new(store_alone("init", OutputArgs::FLAGS, given, &words)?, |args| run(&args))),
    )
};

/// Runs the command; returns the exit code.
fn run(typed: &OutputArgs) -> u8 {
    let found = std::env::current_dir().and_then(|cwd| Project::around(&cwd));
    let project = found.map_err(|_| Failure::new(Code::InvalidRequest, NO_DIRECTORY));
    finish(project.and_then(|project| Ok(report(&project, &init(&project)?, typed.output))))
}

fn report(project: &Project, made: &[(&str, bool)], output: Output) -> String {
    let with = |created: bool| made.iter().filter(move |file| file.1 == created).map(|file| file.0);
    match output {
        Output::Json => {
            let project = shown(project.folder());
            let (created, kept): (Vec<_>, Vec<_>) = (with(true).collect(), with(false).collect());
            to_line(&json!({"project": project, "created": created, "kept": kept})) + "\n"
        }
        Output::Cli => {
            let line =
                |(path, created): &(&str, bool)| format!("{} {path}\n", if *created { "created" } else { "kept" });
            let files: String = made.iter().map(line).collect();
            files + "Next: describe what you want with `spektacular spec \"DESCRIPTION\"`.\n"
        }
    }
}

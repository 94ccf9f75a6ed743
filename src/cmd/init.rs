//! `init`: the folder `.spektacular` of a project.

use super::finish;
use crate::cli::{Output, OutputArgs};
use crate::json::to_line;
use crate::protocol::failure::{Code, Failure, NO_DIRECTORY};
use crate::workflow::init::init;
use crate::workflow::project::{Project, shown};
use serde_json::json;

/// Runs the command; returns the exit code.
pub(super) fn run(typed: &OutputArgs) -> u8 {
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

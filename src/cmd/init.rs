//! `init`: the folder `.spektacular` of a project.

use super::finish;
use crate::cli::Output;
use crate::cli::command::{Command, CommandText, Runnable};
use crate::cli::row::{Row, flags, json, output, own_switch, store_alone};
use crate::json::to_line;
use crate::process::git::worktree::is_bare;
use crate::protocol::failure::{Code, Failure, NO_DIRECTORY};
use crate::protocol::words::RefusalReason;
use crate::workflow::init::init;
use crate::workflow::project::{Project, shown};
use serde_json::json;

pub(super) const COMMAND: Command = Command {
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "init",
        &CommandText {
            about: "create a project's .spektacular folder",
            more: "\
The folder holds specifications, plans, prompts, notes for agents, and the project's configuration.
The project's folder is the nearest one with a .spektacular, up to the root of the git work tree; otherwise that root.
Outside a git work tree, it is the current directory. Existing files are not changed.
With --here, it is the current directory, for example a package in a monorepo, which then is its own project.
In the folder of a bare repository, init needs --here, because the worktrees of that repository would not see the folder.",
            examples: &[
                ("spektacular init", "create the missing files, and list all"),
                ("spektacular init --here", "make the current directory a project"),
            ],
        },
        |given, words| Ok(Runnable::new(store_alone("init", FLAGS, given, &words)?, |args| run(&args))),
    )
};

#[derive(Debug, Default)]
struct Args {
    output: Output,
    here: bool,
}

const FLAGS: &[Row<Args>] = &[
    own_switch("here", "make the current directory the project's folder", |to: &mut Args| to.here = true)
        .begins("The project"),
    output(|to: &mut Args| &mut to.output).begins("Output"),
    json(|to| &mut to.output),
];

fn project(here: bool) -> Result<Project, Failure> {
    let gone = |_| Failure::new(Code::InvalidRequest, NO_DIRECTORY);
    let cwd = std::env::current_dir().map_err(gone)?;
    if here {
        return Project::at(&cwd).map_err(gone);
    }
    if is_bare(&cwd) {
        let message = "This is the folder of a bare repository, whose worktrees would not see the project: change into a \
                       worktree, which git worktree list shows and git worktree add makes, or use --here.";
        return Err(Failure::refused_for(RefusalReason::Outside, message));
    }
    Project::around(&cwd).map_err(gone)
}

fn run(typed: &Args) -> u8 {
    finish(project(typed.here).and_then(|project| Ok(report(&project, &init(&project)?, typed.output))))
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

//! `integrate`: writes the files of an integration, or lists the integrations.

use super::{configured, finish};
use crate::clean::is_deceptive;
use crate::cli::Wrong;
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, own_path, own_switch, store};
use crate::config::Layers;
use crate::integrate::{Here, INTEGRATIONS, Integration, NAMES};
use crate::process::own_executable;
use crate::protocol::failure::Failure;
use crate::suggest::{Typed, Unknown, either};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::path::{Path, absolute};

pub(super) const COMMAND: Command = Command {
    words: Words::Free("[NAME]", Offers::Words(NAMES)),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    page: include_str!("../integrate/openclaw.md"),
    ..Command::named(
        "integrate",
        &CommandText {
            about: "set up another program to use spektacular",
            more: "\
Writes the files of an integration, if it has any, and prints the other program's configuration for this machine.
Without NAME, it lists the integrations.",
            examples: &[
                ("spektacular integrate", "list the integrations, each with its configuration"),
                ("spektacular integrate openclaw --out ~/openclaw-spektacular", "write the plugin for OpenClaw"),
                ("spektacular integrate zed", "print the configuration for Zed"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| finish(text(&args)))),
    )
};

const FLAGS: &[Row<IntegrateArgs>] = &[
    own_path("out", "DIR", "write the files into this folder", |to: &mut IntegrateArgs| &mut to.out)
        .begins("The files"),
    own_switch("force", "write into a folder that is not empty", |to| to.force = true),
];

#[derive(Debug, Default)]
struct IntegrateArgs {
    /// The program to integrate with. `None`: list all.
    with: Option<&'static Integration>,
    out: Option<PathBuf>,
    force: bool,
}

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<IntegrateArgs, Wrong> {
    let mut typed: IntegrateArgs = store(FLAGS, given)?;
    let mut words = words.into_iter();
    let Some(name) = words.next() else {
        if typed.out.is_some() || typed.force {
            return Err(format!("Missing NAME: {}.", either(NAMES)));
        }
        return Ok(typed);
    };
    if words.next().is_some() {
        return Err("Too many words: integrate takes one NAME.".into());
    }
    let name = name.to_string_lossy();
    let Some(with) = INTEGRATIONS.iter().find(|integration| integration.name == name) else {
        let unknown = Unknown { what: "integration", dashes: "", typed: Typed::Value(&name), place: "" };
        return Err(unknown.message(NAMES.iter().copied(), "`spektacular integrate` lists the known ones."));
    };
    if with.files.is_none() && (typed.out.is_some() || typed.force) {
        return Err(format!("integrate {name} writes no files: leave out --out and --force."));
    }
    if with.files.is_some() && typed.out.is_none() {
        return Err(format!("Missing --out: spektacular integrate {name} --out DIR."));
    }
    typed.with = Some(with);
    Ok(typed)
}

fn text(typed: &IntegrateArgs) -> Result<String, Failure> {
    let layers = configured()?;
    let program = own_executable::file().ok_or_else(own_executable::not_found)?;
    let program = printable("The path of this program", &program)?;
    let Some(integration) = typed.with else {
        return Ok(INTEGRATIONS
            .iter()
            .map(|integration| listed(integration, &here(&layers, program, "DIR")))
            .collect());
    };
    let (Some(files), Some(out)) = (integration.files, &typed.out) else {
        return Ok((integration.setup)(&here(&layers, program, "DIR")));
    };
    let folder = absolute(out).map_err(|_| Failure::usage("--out must name a folder."))?;
    let here = here(&layers, program, printable("--out", &folder)?);
    write(&folder, &files(&here), typed.force)?;
    Ok(format!("The files are in {}\n\n{}", here.folder, (integration.setup)(&here)))
}

fn here<'a>(layers: &'a Layers, program: &'a str, folder: &'a str) -> Here<'a> {
    Here { program, folder, agents: layers.agents.iter().collect(), default: layers.default_agent() }
}

fn listed(integration: &Integration, here: &Here<'_>) -> String {
    let Integration { name, about, files, setup } = integration;
    let how = match files {
        Some(_) => format!("To write its files: spektacular integrate {name} --out DIR"),
        None => format!("To print this: spektacular integrate {name}"),
    };
    format!("{name}: {about}\n{how}\n\n{}\n", setup(here).trim_end())
}

fn printable<'a>(what: &str, path: &'a Path) -> Result<&'a str, Failure> {
    path.to_str().filter(|text| !text.chars().any(is_deceptive)).ok_or_else(|| {
        let message = format!("{what} must be UTF-8 without control characters, because a JSON file names it.");
        Failure::usage(message)
    })
}

/// `folder` must be new or empty, or `force` is set.
fn write(folder: &Path, files: &[(&str, String)], force: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let why = error.kind();
        Failure::usage(format!("--out: the files cannot be written: {why}. Choose another folder."))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    if !force && fs::read_dir(folder).map_err(failed)?.next().is_some() {
        let message = "--out: the folder is not empty. Add --force to replace the files of the integration in it.";
        return Err(Failure::usage(message));
    }
    for (path, text) in files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(file, text).map_err(failed)?;
    }
    Ok(())
}

//! `integrate`: writes the files of an integration, or lists the integrations.

use super::{configured, finish};
use crate::clean::is_deceptive;
use crate::cli::IntegrateArgs;
use crate::config::Layers;
use crate::integrate::{Here, INTEGRATIONS, Integration};
use crate::process::own_executable;
use crate::protocol::failure::{Code, Failure};
use std::fs;
use std::io;
use std::path::{Path, absolute};

/// Runs the command; returns the exit code.
pub(super) fn run(typed: &IntegrateArgs) -> u8 {
    finish(text(typed))
}

fn text(typed: &IntegrateArgs) -> Result<String, Failure> {
    let layers = configured()?;
    let program = own_executable::file().ok_or_else(own_executable::not_found)?;
    let program = printable("The path of this program", &program)?;
    let chosen = INTEGRATIONS.iter().find(|integration| typed.with.as_deref() == Some(integration.name));
    let Some(integration) = chosen else {
        return Ok(INTEGRATIONS
            .iter()
            .map(|integration| listed(integration, &here(&layers, program, "DIR")))
            .collect());
    };
    let (Some(files), Some(out)) = (integration.files, &typed.out) else {
        return Ok((integration.setup)(&here(&layers, program, "DIR")));
    };
    let folder = absolute(out).map_err(|_| Failure::new(Code::Usage, "--out must name a folder."))?;
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

/// The path as text for a configuration.
fn printable<'a>(what: &str, path: &'a Path) -> Result<&'a str, Failure> {
    path.to_str().filter(|text| !text.chars().any(is_deceptive)).ok_or_else(|| {
        let message = format!("{what} must be UTF-8 without control characters, because a JSON file names it.");
        Failure::new(Code::Usage, message)
    })
}

/// Writes the files below a folder, which must be new or empty, or `force` is set.
fn write(folder: &Path, files: &[(&str, String)], force: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let why = error.kind();
        Failure::new(Code::Usage, format!("--out: the files cannot be written: {why}. Choose another folder."))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    if !force && fs::read_dir(folder).map_err(failed)?.next().is_some() {
        let message = "--out: the folder is not empty. Add --force to replace the files of the integration in it.";
        return Err(Failure::new(Code::Usage, message));
    }
    for (path, text) in files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(file, text).map_err(failed)?;
    }
    Ok(())
}

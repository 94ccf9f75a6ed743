//! The program of an agent, found on the PATH that the agent will have.

use super::environment::environment;
use super::own_executable;
use crate::agent::{Launch, Program, npx};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::request::Settings;
use crate::suggest::plain_name;
use crate::system::DEFAULT_PATH;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A relative path is relative to `cwd`. Relative and empty entries of PATH are skipped, because they could run a
/// program from an untrusted folder.
pub(crate) fn resolve(program: &Program, environment: &BTreeMap<OsString, OsString>, cwd: &Path) -> Option<PathBuf> {
    let name = match program {
        Program::Myself => return own_executable::program(),
        Program::Command(name) => name,
    };
    if name.contains('/') {
        return Some(cwd.join(name));
    }
    let path = environment.get(&OsString::from("PATH")).cloned().unwrap_or_else(|| DEFAULT_PATH.into());
    let folders = || std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let candidates = || folders().map(|folder| folder.join(name)).filter(|file| file.is_file());
    // As in a shell: the first executable file. Without one, the first file, because starting it gives the right error.
    candidates().find(|file| own_executable::is_program(file)).or_else(|| candidates().next())
}

pub(crate) struct FoundProgram<'a> {
    /// The launch itself, or one by npx.
    pub(crate) launch: Cow<'a, Launch>,
    pub(crate) program: PathBuf,
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

/// Finds the program of a launch, or else npx, which runs its package. Error: neither exists.
pub(crate) fn find_program<'a>(
    launch: &'a Launch,
    settings: &Settings,
    nonce: &str,
) -> Result<FoundProgram<'a>, Failure> {
    let find = |launch: Cow<'a, Launch>| {
        let environment = environment(&launch, settings, nonce);
        let program = resolve(&launch.program, &environment, &settings.cwd)?;
        Some(FoundProgram { launch, program, environment })
    };
    let by_npx = || find(Cow::Owned(npx::in_place_of(launch)?));
    find(Cow::Borrowed(launch)).or_else(by_npx).ok_or_else(|| match &launch.program {
        Program::Myself => own_executable::not_found(),
        Program::Command(name) if launch.package.is_some() => {
            let install = launch.install.as_deref().unwrap_or_default();
            let message = format!(
                "Neither the agent's program {name} nor npx, which would download it, is on the PATH. To install it: {install}."
            );
            Failure::new(Code::AgentNotFound, message)
        }
        program @ Program::Command(_) => not_found(program, launch.install.as_deref()),
    })
}

pub(crate) fn not_found(program: &Program, install: Option<&str>) -> Failure {
    let program = match program {
        Program::Command(name) => name,
        Program::Myself => "",
    };
    let name = plain_name(program).map(|name| format!(" {name}")).unwrap_or_default();
    let fault = if program.contains('/') { "does not exist" } else { "is not on the PATH" };
    let remedy = match install {
        Some(install) => format!("To install it: {install}."),
        None => {
            "Install it, or correct the agent's command. `spektacular agents check` shows the installed agents.".into()
        }
    };
    Failure::new(Code::AgentNotFound, format!("The agent's program{name} {fault}. {remedy}"))
}

//! The start of an agent: its process, and the lines to write to it first.

use super::Program;
use super::native::SessionFiles;
use crate::protocol::failure::Failure;
use crate::protocol::image::Image;
use crate::protocol::request::{DEFAULT_START_TIMEOUT, McpServer, Seconds, Settings};
use crate::protocol::terms::sentence;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Launch {
    pub program: Program,
    pub args: Vec<String>,
    /// Those in run.start override these.
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    /// Lines to write to its stdin once it runs, each without its LF.
    pub send: Vec<String>,
    /// The images whose labels are in one of its lines, now or later; see [`Image::label`].
    pub images: Vec<Image>,
    pub files: Vec<LaunchFile>,
    /// The files of the agent's sessions, if they need a certain name or content before the agent can load them.
    pub session_files: Option<&'static SessionFiles>,
    /// Whether to close its stdin after these lines.
    pub close_input: bool,
    pub reads_stderr: bool,
    /// The time limit for its first line if run.start sets none. `None`: no limit.
    pub start_timeout: Option<Seconds>,
    /// The dialect, as recordings name it.
    pub driver: &'static str,
    /// The install command, for the error message if the program is missing.
    pub install: Option<String>,
    /// The npm package, with its version, that npx runs if the program is missing.
    pub package: Option<&'static str>,
}

impl Launch {
    pub fn new(program: Program, driver: &'static str) -> Launch {
        Launch { program, driver, ..Launch::default() }
    }

    pub fn words(&self) -> impl Iterator<Item = &str> {
        let program = match &self.program {
            Program::Command(name) => name,
            Program::Myself => "spektacular",
        };
        std::iter::once(program).chain(self.args.iter().map(String::as_str))
    }
}

/// The time that an agent gives a server to start: a little less than its own, so that it can say which one failed.
pub(super) fn server_limit(settings: &Settings) -> Duration {
    settings.start_timeout_s.unwrap_or(DEFAULT_START_TIMEOUT).duration().mul_f64(0.9)
}

/// Some agents make tools' names or keys of a server's name. Error: it has a character that they do not accept.
pub(super) fn plain_name(server: &McpServer) -> Result<&str, Failure> {
    let fits = server.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    fits.then_some(server.name.as_str()).ok_or_else(|| {
        Failure::invalid_start(sentence!(
            "a name in {mcp_servers} may have only letters, digits, `_` and `-` for this agent.",
            mcp_servers
        ))
    })
}

/// A file that only this run's agent reads, and that goes when the agent is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFile {
    pub found: FoundBy,
    /// The file's path below the folder of these files.
    pub name: &'static str,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// By one of its last arguments: this beginning, such as `--flag=`, and the file's path.
    Flag(&'static str),
    /// By the file's path in this variable.
    Variable(&'static str),
    /// By the file's path in this variable, unless the user set the variable.
    FreeVariable(&'static str),
    /// By its name, in another of these files.
    Sibling,
}

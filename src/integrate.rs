//! The integrations: files that let another program use this one, and the configuration that the other program needs on
//! this machine. Pure: the caller writes the files.

mod openclaw;

use crate::agent::registry::Agent;

#[derive(Debug)]
pub(crate) struct Integration {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// A description of one line.
    pub(crate) about: &'static str,
    /// The files, as relative paths with their texts. Every folder of a path comes from the files alone.
    pub(crate) files: fn(&Here) -> Vec<(&'static str, String)>,
    /// The configuration of the other program, and how to check it.
    pub(crate) setup: fn(&Here) -> String,
}

/// The facts of this machine that files and configurations name.
#[derive(Debug)]
pub(crate) struct Here<'a> {
    /// The whole path of this program.
    pub(crate) program: &'a str,
    /// The folder of the integration's files, or a placeholder for it.
    pub(crate) folder: &'a str,
    /// The configured agents.
    pub(crate) agents: Vec<&'a Agent>,
    /// The name of the default agent.
    pub(crate) default: &'a str,
}

/// All integrations, in the order of the list.
pub(crate) const INTEGRATIONS: &[Integration] = &[openclaw::OPENCLAW];

/// The names of all integrations.
pub(crate) const NAMES: &[&str] = &[openclaw::OPENCLAW.name];

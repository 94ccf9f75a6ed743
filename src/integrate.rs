//! The integrations: files that let another program use this one, and the configuration that the other program needs on
//! this machine. Pure: the caller writes the files.

mod clients;
mod many;
mod openclaw;

use crate::agent::registry::Agent;

/// Returns the files as relative paths with their texts. Every folder of a path comes from the files alone.
type Files = fn(&Here) -> Vec<(&'static str, String)>;

#[derive(Debug)]
pub(crate) struct Integration {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// A description of one line.
    pub(crate) about: &'static str,
    /// The files. `None`: the configuration is all that the other program needs.
    pub(crate) files: Option<Files>,
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
    pub(crate) agents: Vec<&'a Agent>,
    /// The name of the default agent.
    pub(crate) default: &'a str,
}

/// All integrations, in the order of the list.
pub(crate) const INTEGRATIONS: &[Integration] =
    &[openclaw::OPENCLAW, clients::ZED, clients::ACPX, many::RAY, many::KUBERNETES, many::GITHUB];

pub(crate) const NAMES: &[&str] = &[
    openclaw::OPENCLAW.name,
    clients::ZED.name,
    clients::ACPX.name,
    many::RAY.name,
    many::KUBERNETES.name,
    many::GITHUB.name,
];

pub(crate) const WITHOUT_FILES: &[&str] = &[clients::ZED.name, clients::ACPX.name];

#[cfg(test)]
mod tests {
    use super::{INTEGRATIONS, NAMES, WITHOUT_FILES};

    #[test]
    fn the_names_are_those_of_the_integrations() {
        let names: Vec<&str> = INTEGRATIONS.iter().map(|one| one.name).collect();
        let without: Vec<&str> = INTEGRATIONS.iter().filter(|one| one.files.is_none()).map(|one| one.name).collect();
        assert_eq!((names.as_slice(), without.as_slice()), (NAMES, WITHOUT_FILES));
    }
}

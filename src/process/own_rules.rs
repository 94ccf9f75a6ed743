//! The part of the user's setup of an agent that a run keeps although it gives the agent settings of its own, and what this
//! machine lets the agent do.

use super::namespaces;
use crate::agent::native::{Confinement, Environment, OwnRules, RuleSource};
use crate::io::files::open_regular;
use crate::system::sandbox_version;
use std::io::Read;
use std::path::Path;

/// The maximum size of a file with rules, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// The rules that a run in `cwd` must keep, in the driver's form. Empty: none.
pub(crate) fn kept_rules(rules: &OwnRules, environment: Environment<'_>, cwd: &Path) -> String {
    let texts: Vec<String> = (rules.sources)(environment, cwd).into_iter().filter_map(text).collect();
    (rules.kept)(&texts)
}

fn text(source: RuleSource) -> Option<String> {
    match source {
        RuleSource::Text(text) => Some(text),
        RuleSource::Confinement => Some(
            match (namespaces::are_forbidden(), sandbox_version()) {
                (false, _) => Confinement::Namespaces,
                (true, Ok(_)) => Confinement::Landlock,
                (true, Err(_)) => Confinement::Nothing,
            }
            .word()
            .to_owned(),
        ),
        RuleSource::Folder(path) => path.is_dir().then(|| path.to_string_lossy().into_owned()),
        RuleSource::File(path) => {
            let mut text = String::new();
            open_regular(&path).ok()?.take(FILE_BYTES).read_to_string(&mut text).ok()?;
            Some(text)
        }
    }
}

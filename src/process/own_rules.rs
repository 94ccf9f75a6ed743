//! The user's own rules about an agent's tools, which a run keeps although it gives the agent rules of its own.

use crate::agent::native::{Environment, OwnRules, RuleSource};
use crate::io::files::open_regular;
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
        RuleSource::Folder(path) => path.is_dir().then(|| path.to_string_lossy().into_owned()),
        RuleSource::File(path) => {
            let mut text = String::new();
            open_regular(&path).ok()?.take(FILE_BYTES).read_to_string(&mut text).ok()?;
            Some(text)
        }
    }
}

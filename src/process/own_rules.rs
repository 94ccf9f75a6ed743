//! The part of the user's setup of an agent that a run keeps although it gives the agent settings of its own, and what this
//! machine lets the agent do.

use super::namespaces;
use crate::agent::native::{Confinement, Environment, OwnRules, RuleSource};
use crate::io::files::open_regular;
use crate::system::sandbox_version;
use std::io::Read;
use std::path::{Path, PathBuf};

const FILE_BYTES: u64 = 1 << 20;

/// In the driver's form. Empty: none.
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
        RuleSource::File(path) => read(&path),
        RuleSource::Library { name, needed, others } => {
            let quoted = format!("\"{name}\"");
            let has = |folder: &PathBuf| {
                folder.join("node_modules").is_dir()
                    && read(&folder.join("package-lock.json")).is_some_and(|lock| lock.contains(&quoted))
            };
            let all = has(&needed) && others.iter().all(|folder| !folder.is_dir() || has(folder));
            all.then(|| format!("{{{quoted}:true}}"))
        }
    }
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(path).ok()?.take(FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::agent::native::RuleSource;
    use std::fs;

    #[test]
    fn a_library_counts_if_every_folder_that_exists_has_it() {
        let folder = std::env::temp_dir().join(format!("spektacular-library-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let (needed, other) = (folder.join("needed"), folder.join("other"));
        let library =
            || text(RuleSource::Library { name: "@a/b", needed: needed.clone(), others: vec![other.clone()] });
        let install = |place: &std::path::Path, lock: &str| {
            fs::create_dir_all(place.join("node_modules")).unwrap();
            fs::write(place.join("package-lock.json"), lock).unwrap();
        };
        assert_eq!(library(), None);
        install(&needed, r#"{"packages":{"":{"dependencies":{"@a/bc":"1"}}}}"#);
        assert_eq!(library(), None);
        install(&needed, r#"{"packages":{"":{"dependencies":{"@a/b":"1"}}}}"#);
        assert_eq!(library().as_deref(), Some(r#"{"@a/b":true}"#));
        fs::create_dir(&other).unwrap();
        assert_eq!(library(), None);
        install(&other, r#"{"packages":{"":{"dependencies":{"@a/b":"1"}}}}"#);
        assert!(library().is_some());
        fs::remove_dir_all(folder).unwrap();
    }
}

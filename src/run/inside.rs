//! Whether an action stays inside the directories of the run, which the disk decides: a link can lead out of them.

use crate::paths::real;
use crate::protocol::question::{Place, Subject};
use crate::protocol::request::Settings;
use crate::protocol::words::Category;
use std::path::Path;

/// Whether an action reads or searches only in the working directory and the further directories.
pub(super) fn reads_inside(subject: &Subject, settings: &Settings) -> bool {
    let reads = matches!(subject.category, Category::Read | Category::Search);
    if !reads || subject.locations.is_empty() {
        return false;
    }
    let own = std::iter::once(settings.cwd.as_path()).chain(settings.add_dirs.iter().map(Path::new));
    let own: Vec<_> = own.filter_map(|dir| real(&settings.cwd, dir)).collect();
    let inside = |place: &Place| {
        let path = real(&settings.cwd, Path::new(place.path.unredacted()));
        path.is_some_and(|path| own.iter().any(|dir| path.starts_with(dir)))
    };
    subject.locations.iter().all(inside)
}

#[cfg(test)]
mod tests {
    use super::reads_inside;
    use crate::protocol::question::{Place, Subject};
    use crate::protocol::request::Options;
    use crate::protocol::words::Category;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_read_through_a_link_is_outside() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().join("project");
        std::fs::create_dir_all(cwd.join("src")).unwrap();
        std::fs::create_dir(folder.path().join("more")).unwrap();
        symlink(folder.path(), cwd.join("out")).unwrap();
        let mut settings = Options::default().resolve("x".into(), "x".into(), cwd);
        settings.add_dirs = vec!["../more".into()];
        let more = folder.path().join("more/a").to_string_lossy().into_owned();
        for (category, paths, wanted) in [
            (Category::Read, &["src/a", "b"][..], true),
            (Category::Search, &["."], true),
            (Category::Read, &[&more], true),
            (Category::Read, &["src/../../x"], false),
            (Category::Read, &["out/x"], false),
            (Category::Read, &["a", "/etc/hostname"], false),
            (Category::Search, &[], false),
            (Category::Edit, &["a"], false),
        ] {
            let locations = paths.iter().map(|path| Place { path: (*path).into(), line: None }).collect();
            let subject = Subject::new(category, "t", locations, "");
            assert_eq!(reads_inside(&subject, &settings), wanted, "{category:?} {paths:?}");
        }
    }
}

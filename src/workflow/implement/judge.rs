//! The permissions that `implement` decides itself.

use super::protect::covers;
use crate::paths::{absolute, real};
use crate::protocol::question::{Judge, Subject};
use crate::protocol::words::{Category, Policy};
use std::path::{Path, PathBuf};

/// Denies edits of the plan and of protected paths, even through links and whatever the policy says.
#[derive(Debug)]
pub(super) struct Guarded {
    /// The project's folder: absolute, without links.
    pub(super) project: PathBuf,
    /// The paths, relative to it or absolute.
    pub(super) paths: Vec<String>,
}

impl Judge for Guarded {
    fn decide(&self, subject: &Subject, also: &[Category]) -> Option<Policy> {
        let edits = std::iter::once(&subject.category).chain(also).any(|category| category.changes_files());
        let covered = |path: &Path| covers(&self.project, &self.paths, path);
        let guarded = |path: &str| {
            let path = Path::new(path);
            covered(&absolute(&self.project, path)) || real(&self.project, path).is_some_and(|path| covered(&path))
        };
        let denies = edits && subject.locations.iter().any(|location| guarded(location.path.unredacted()));
        denies.then_some(Policy::Deny)
    }
}

#[cfg(test)]
mod tests {
    use super::Guarded;
    use crate::protocol::question::{Judge, Place, Subject};
    use crate::protocol::words::{Category, Policy};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_to_a_protected_path_is_protected_too() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(project.join("tests")).unwrap();
        symlink("tests", project.join("elsewhere")).unwrap();
        symlink(&project, project.join("again")).unwrap();
        let guarded = Guarded { project: project.clone(), paths: vec!["tests/".to_owned()] };
        let decide = |path: &str| {
            let locations = vec![Place { path: path.into(), line: None }];
            let subject = Subject::new(Category::Edit, "t", locations, "");
            guarded.decide(&subject, &[])
        };
        assert_eq!(decide("elsewhere/a"), Some(Policy::Deny));
        assert_eq!(decide("again/tests/a"), Some(Policy::Deny));
        assert_eq!(decide("again/src/a"), None);
    }

    #[test]
    fn only_edits_of_the_plan_and_of_protected_paths_are_denied() {
        let paths = [".spektacular/plans/x/", "tests/", "Makefile"].map(str::to_owned).into();
        let guarded = Guarded { project: "/w/p".into(), paths };
        for (category, path, denied) in [
            (Category::Edit, "tests/a", true),
            (Category::Delete, "/w/p/tests", true),
            (Category::Move, "src/../Makefile", true),
            (Category::Edit, "/w/p/.spektacular/plans/x/plan.md", true),
            (Category::Edit, "src/a", false),
            (Category::Edit, "/w/tests/a", false),
            (Category::Read, "tests/a", false),
            (Category::Execute, "tests/a", false),
        ] {
            let locations = vec![Place { path: path.into(), line: None }];
            let subject = Subject::new(category, "t", locations, "");
            assert_eq!(guarded.decide(&subject, &[]), denied.then_some(Policy::Deny), "{category:?} {path}");
        }
    }
}

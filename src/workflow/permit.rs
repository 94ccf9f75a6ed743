//! The permissions that the prompts of spec and plan need, which are granted without a question.

use crate::paths::real;
use crate::protocol::question::{Judge, Subject};
use crate::protocol::words::{Category, Policy};
use std::path::{Path, PathBuf};

/// Allows reading and searching inside the project, edits of the draft, and the check command.
#[derive(Debug)]
pub(crate) struct DraftPermit {
    /// The project's folder: absolute, without links.
    pub project: PathBuf,
    /// The draft, a file or a folder, absolute.
    pub draft: PathBuf,
    pub check: String,
}

impl Judge for DraftPermit {
    fn lets_read(&self) -> bool {
        true
    }

    fn decide(&self, subject: &Subject, also: &[Category]) -> Option<Policy> {
        let all = |fits: &dyn Fn(&Path) -> bool| {
            let mut places = subject.locations.iter().map(|location| Path::new(location.path.unredacted()));
            !subject.locations.is_empty()
                && places.all(|path| real(&self.project, path).is_some_and(|path| fits(&path)))
        };
        let allowed = match subject.category {
            Category::Read | Category::Search => all(&|path| path.starts_with(&self.project)),
            Category::Edit => all(&|path| path.starts_with(&self.draft)),
            Category::Execute => subject.detail.unredacted().trim() == self.check,
            Category::Delete
            | Category::Move
            | Category::Fetch
            | Category::Think
            | Category::Agent
            | Category::Mcp
            | Category::Mode
            | Category::Other => false,
        };
        (allowed && also.is_empty()).then_some(Policy::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::DraftPermit;
    use crate::protocol::question::{Judge, Place, Subject};
    use crate::protocol::words::{Category, Policy};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_request_with_further_categories_is_left_to_the_policy() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        let permit = DraftPermit { draft: project.join("a.draft.md"), check: "check".into(), project };
        for (category, path) in
            [(Category::Read, "a"), (Category::Search, "a"), (Category::Edit, "a.draft.md"), (Category::Execute, "a")]
        {
            let locations = vec![Place { path: path.into(), line: None }];
            let subject = Subject::new(category, "t", locations, "check");
            assert_eq!(permit.decide(&subject, &[]), Some(Policy::Allow), "{category:?}");
            assert_eq!(permit.decide(&subject, &[Category::Execute]), None, "{category:?} and a command");
            assert_eq!(permit.decide(&subject, &[Category::Read]), None, "{category:?} and another file");
        }
    }

    #[test]
    fn only_actions_that_the_prompt_needs_are_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir_all(project.join("specs")).unwrap();
        let project = project.canonicalize().unwrap();
        symlink("/", project.join("root")).unwrap();
        symlink("/nowhere", project.join("specs/gone.md")).unwrap();
        let permit = DraftPermit {
            draft: project.join("specs/a.draft.md"),
            check: "spek spec check specs/a.draft.md".into(),
            project: project.clone(),
        };
        let decide = |category, paths: &[&str], detail: &str| {
            let location = |path: &&str| Place { path: (*path).into(), line: None };
            let locations = paths.iter().map(location).collect();
            permit.decide(&Subject::new(category, "t", locations, detail), &[])
        };
        for (category, paths, detail, allowed) in [
            (Category::Read, &["specs/x"][..], "", true),
            (Category::Read, &["specs/../../x"], "", false),
            (Category::Read, &["root/etc/passwd"], "", false),
            (Category::Read, &["~/x"], "", false),
            (Category::Read, &["file:///etc/passwd"], "", false),
            (Category::Read, &["a", "/etc/passwd"], "", false),
            (Category::Read, &[], "", false),
            (Category::Edit, &["specs/a.draft.md"], "", true),
            (Category::Edit, &["specs/a.md"], "", false),
            (Category::Edit, &["specs/gone.md"], "", false),
            (Category::Delete, &["specs/a.draft.md"], "", false),
            (Category::Execute, &[], "spek spec check specs/a.draft.md", true),
            (Category::Execute, &[], "spek spec check specs/a.draft.md; rm x", false),
        ] {
            assert_eq!(decide(category, paths, detail) == Some(Policy::Allow), allowed, "{category:?} {paths:?}");
        }
    }
}

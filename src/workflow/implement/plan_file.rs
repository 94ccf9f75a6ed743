//! plan.md, the only record of the work's progress.

use super::phase_loop::Mark;
use crate::protocol::failure::Code;
use crate::protocol::outbound::MovedFile;
use crate::workflow::check::{spec_has_changed, spec_path};
use crate::workflow::plan::{self, PlanChange, State, StateLine, edited};
use crate::workflow::project::{FILE_BYTES_MAX, Project, shown};
use crate::workflow::spec;
use crate::workflow::stop::Stop;
use std::path::PathBuf;
use time::UtcDateTime;
use time::macros::format_description;

pub(super) struct PlanFile {
    project: Project,
    path: PathBuf,
    /// The text that it must hold.
    text: String,
    /// The way to continue, as a part of a sentence.
    again: &'static str,
}

#[derive(Debug)]
pub(super) struct PutBack {
    /// The new place of the changed file. `None`: the file was missing, or could not be kept.
    pub(super) kept: Option<MovedFile>,
    pub(super) was_gone: bool,
}

impl PlanFile {
    pub(super) fn new(project: Project, path: PathBuf, text: String, again: &'static str) -> PlanFile {
        PlanFile { project, path, text, again }
    }

    /// Keeps the changed file.
    pub(super) fn restore(&mut self) -> Result<Option<PutBack>, Stop> {
        let found = self.project.read(&self.path, FILE_BYTES_MAX);
        if matches!(&found, Ok(Some(bytes)) if bytes == self.text.as_bytes()) {
            return Ok(None);
        }
        // The plan itself counts more than what somebody wrote there: an agent can make it impossible to keep that.
        let was_gone = matches!(self.project.entry(&self.path), Ok(None));
        let kept = self.project.give_way(&self.path).ok().flatten();
        self.write(&self.text)?;
        Ok(Some(PutBack { kept, was_gone }))
    }

    /// Sets the state line of a phase, and its boxes if the mark changes them, in one write.
    pub(super) fn mark(&mut self, number: u16, attempts: u32, mark: Mark) -> Result<(), Stop> {
        let state = match mark {
            Mark::InProgress => State::InProgress,
            Mark::Passed => State::Passed,
            Mark::Failed | Mark::Reopened => State::Failed,
        };
        let boxes = match mark {
            Mark::Passed => Some(PlanChange::Tick(number)),
            Mark::Reopened => Some(PlanChange::Untick(number)),
            Mark::InProgress | Mark::Failed => None,
        };
        let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
        let at = UtcDateTime::now().format(form).unwrap_or_default();
        let line = PlanChange::State(number, StateLine { state, attempts, at });
        let changes: Vec<PlanChange> = std::iter::once(line).chain(boxes).collect();
        let Some(text) = edited(&self.text, &changes) else {
            return Err(Stop::failed(Code::InternalError, "A phase of the plan has moved."));
        };
        self.write(&text)?;
        self.text = text;
        if matches!(mark, Mark::Passed | Mark::Reopened) {
            self.tick_requirements();
        }
        Ok(())
    }

    /// Ticks the boxes of the specification's requirements that passed phases cover. One that has changed since the plan
    /// was made stays as it is. A specification that cannot be written keeps its boxes, because plan.md is the record.
    fn tick_requirements(&self) {
        let plan = plan::read(self.text.as_bytes()).plan;
        let Some(path) = spec_path(&self.project, &plan).filter(|_| !spec_has_changed(&self.project, &plan)) else {
            return;
        };
        let bytes = self.project.read(&path, FILE_BYTES_MAX).ok().flatten();
        let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) else { return };
        let ticked = spec::with_boxes(&text, |requirement| plan.covers(requirement));
        if ticked != text {
            let _ = self.project.write(&path, ticked.as_bytes());
        }
    }

    fn write(&self, text: &str) -> Result<(), Stop> {
        self.project.write(&self.path, text.as_bytes()).map_err(|_| {
            let message = format!(
                "Cannot write {}, which may hold a version of the agent's: free some space, or correct the permissions \
                 of its folder, restore the file, then {} to continue.",
                shown(&self.path),
                self.again
            );
            Stop::failed(Code::ResourceExhausted, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PlanFile;
    use crate::workflow::implement::phase_loop::Mark;
    use crate::workflow::project::Project;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use tempfile::TempDir;

    const PATH: &str = ".spektacular/plans/x/plan.md";
    const PLAN: &str = "# Plan: X\r\nSpec: x.md\r\n## Phase 1: A\r\n- [ ] T1.1 One\r\n- [x] T1.2 Two\r\n### Verify\r\n";

    fn file() -> (TempDir, PlanFile) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".spektacular/plans/x")).unwrap();
        fs::write(folder.path().join(PATH), PLAN).unwrap();
        let project = Project::around(folder.path()).unwrap();
        (folder, PlanFile::new(project, PATH.into(), PLAN.into(), "run it again"))
    }

    fn read(at: &Path) -> String {
        fs::read_to_string(at.join(PATH)).unwrap()
    }

    #[test]
    fn a_mark_changes_the_state_line_and_the_boxes_and_no_other_byte() {
        let (folder, mut plan) = file();
        plan.mark(1, 1, Mark::InProgress).unwrap();
        let text = read(folder.path());
        let line = text.lines().nth(3).unwrap();
        assert!(line.starts_with("<!-- spektacular: in_progress attempts=1 at=20"), "{line}");
        assert_eq!(text.replace(&format!("{line}\r\n"), ""), PLAN);
        plan.mark(1, 2, Mark::Passed).unwrap();
        let text = read(folder.path());
        assert!(text.contains("- [x] T1.1") && text.contains("- [x] T1.2") && text.contains("passed attempts=2"));
        plan.mark(1, 2, Mark::Reopened).unwrap();
        let text = read(folder.path());
        assert!(text.contains("- [ ] T1.1") && text.contains("- [ ] T1.2") && text.contains("failed attempts=2"));
        assert_eq!(text.matches("spektacular:").count(), 1);
    }

    #[test]
    fn a_changed_plan_is_put_back_and_kept() {
        let (folder, mut plan) = file();
        assert!(plan.restore().unwrap().is_none());
        for (number, content) in ["- [x] T1.1 forged", "again"].into_iter().enumerate() {
            fs::write(folder.path().join(PATH), content).unwrap();
            let to = plan.restore().unwrap().unwrap().kept.unwrap().to.shown().to_owned();
            assert!(to.starts_with(".spektacular/local/old/") && to.ends_with("/plans/x/plan.md"), "{number}: {to}");
            assert_eq!(fs::read_to_string(folder.path().join(to)).unwrap(), content);
            assert_eq!(read(folder.path()), PLAN);
        }
        fs::remove_dir_all(folder.path().join(".spektacular/plans")).unwrap();
        assert!(plan.restore().unwrap().unwrap().kept.is_none());
        assert_eq!(read(folder.path()), PLAN);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (folder, mut plan) = file();
        fs::remove_file(folder.path().join(PATH)).unwrap();
        fs::write(folder.path().join("mine"), "mine").unwrap();
        symlink("../../../mine", folder.path().join(PATH)).unwrap();
        assert!(plan.restore().unwrap().unwrap().kept.is_some());
        assert_eq!(
            (read(folder.path()).as_str(), fs::read(folder.path().join("mine")).unwrap()),
            (PLAN, b"mine".to_vec())
        );
    }
}

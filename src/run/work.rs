//! What the agent does: tool calls, changed files, usage. Agents' own ids become ours, paths become relative.

use crate::agent::At;
use crate::protocol::limits::{ARTIFACTS, TOOL_OUTPUT_BYTES};
use crate::protocol::outbound::{About, ArtifactRef, Place, Progress, Text};
use crate::protocol::words::{Action, Category, ToolState};
use crate::redact::Redactor;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The tool calls so far.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    count: u64,
    calls: HashMap<String, Call>,
    /// When those that still run began.
    running: HashMap<String, Duration>,
}

#[derive(Debug)]
struct Call {
    id: String,
    category: Category,
    title: String,
    places: Vec<Place>,
    parent: Option<String>,
    over: bool,
}

impl Tools {
    /// Numbers calls after those given out before.
    pub(crate) fn after(count: u64) -> Tools {
        Tools { count, ..Tools::default() }
    }

    /// Calls so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Takes a call's beginning, or more that is known of it; without a title the old one stays. Gives the progress of
    /// the first sight.
    pub(crate) fn begin(
        &mut self,
        now: Duration,
        key: String,
        category: Category,
        title: Option<String>,
        places: Vec<Place>,
        parent: Option<&str>,
    ) -> Option<Progress> {
        let parent = parent.and_then(|parent| self.id(parent));
        if let Some(call) = self.calls.get_mut(&key) {
            (call.category, call.places) = (category, places);
            call.title = title.unwrap_or(std::mem::take(&mut call.title));
            return None;
        }
        self.count += 1;
        let id = format!("c_{}", self.count);
        let title = title.unwrap_or_default();
        let call = Call { id, category, title, places, parent, over: false };
        let progress = call.progress(ToolState::Started, None, false);
        self.running.insert(key.clone(), now);
        self.calls.insert(key, call);
        Some(progress)
    }

    /// Takes a call's end. `None`: it is not known, or was over.
    pub(crate) fn end(
        &mut self,
        key: &str,
        state: ToolState,
        output: Option<&str>,
        redactor: &Redactor,
    ) -> Option<Progress> {
        let call = self.calls.get_mut(key).filter(|call| !call.over)?;
        call.over = true;
        self.running.remove(key);
        // Redacted before it is cut: half a secret would not be found any more.
        let clean = output.map(|text| redactor.redact(text).into_owned());
        let cut = clean.as_ref().is_some_and(|text| text.len() > TOOL_OUTPUT_BYTES);
        let shown = clean.map(|mut text| {
            text.truncate(text.floor_char_boundary(TOOL_OUTPUT_BYTES));
            Text::from(text)
        });
        Some(call.progress(state, shown, cut))
    }

    /// Those that never ended, in the order in which they began.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let mut open: Vec<(&String, &Call)> = self.calls.iter().filter(|(_, call)| !call.over).collect();
        open.sort_by_key(|(_, call)| (call.id.len(), call.id.clone()));
        open.into_iter().map(|(key, _)| key.clone()).collect()
    }

    /// Our id of a call.
    pub(crate) fn id(&self, key: &str) -> Option<String> {
        self.calls.get(key).map(|call| call.id.clone())
    }

    /// When the last call that still runs began.
    pub(crate) fn running_since(&self) -> Option<Duration> {
        self.running.values().max().copied()
    }
}

impl Call {
    fn progress(&self, state: ToolState, output: Option<Text>, truncated: bool) -> Progress {
        Progress {
            text: Text::from(self.title.clone()),
            parent_call_id: self.parent.clone(),
            about: About::Tool {
                call_id: self.id.clone(),
                category: self.category,
                state,
                locations: self.places.clone(),
                output,
            },
            truncated,
        }
    }
}

/// The places of a call, relative to the working directory.
pub(crate) fn places(cwd: &Path, locations: &[At]) -> Vec<Place> {
    locations.iter().map(|at| Place { path: Text::from(relative(cwd, &at.path)), line: at.line }).collect()
}

/// A path as frames show it: relative to the working directory where it is inside, else absolute.
pub(crate) fn relative(cwd: &Path, path: &Path) -> String {
    let absolute = absolute(cwd, path);
    match absolute.strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".into(),
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => absolute.to_string_lossy().into_owned(),
    }
}

/// A path with `.` and `..` taken out, by its text alone.
pub(crate) fn absolute(cwd: &Path, path: &Path) -> PathBuf {
    use std::path::Component;
    let mut out = PathBuf::new();
    for component in cwd.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The files made and changed so far.
#[derive(Debug, Default)]
pub(crate) struct Artifacts {
    seen: HashSet<(String, Action)>,
    list: Vec<ArtifactRef>,
    count: u64,
    /// Artifacts of earlier runs.
    before: u64,
}

impl Artifacts {
    /// Numbers artifacts after those given out before.
    pub(crate) fn after(count: u64) -> Artifacts {
        Artifacts { count, before: count, ..Artifacts::default() }
    }

    /// Artifacts so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The id for this change, unless it was reported before.
    pub(crate) fn add(&mut self, path: &str, action: Action) -> Option<String> {
        if !self.seen.insert((path.to_owned(), action)) {
            return None;
        }
        self.count += 1;
        if self.list.len() < ARTIFACTS {
            self.list.push(ArtifactRef { path: path.into(), action });
        }
        Some(format!("a_{}", self.count))
    }

    /// Whether this change is one that was reported: a file that was made or changed is not reported as both.
    pub(crate) fn covers(&self, path: &str, action: Action) -> bool {
        let reported = |action| self.seen.contains(&(path.to_owned(), action));
        match action {
            Action::Deleted => reported(Action::Deleted),
            Action::Created | Action::Modified => reported(Action::Created) || reported(Action::Modified),
        }
    }

    /// The list for the terminal frame, and whether it is cut.
    pub(crate) fn list(&self) -> (Vec<ArtifactRef>, bool) {
        (self.list.clone(), self.count - self.before > self.list.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::relative;
    use std::path::Path;

    #[test]
    fn paths_are_relative_only_inside() {
        let cwd = Path::new("/w/project");
        for (path, shown) in [
            ("/w/project/a.txt", "a.txt"),
            ("/w/project/./b/../a.txt", "a.txt"),
            ("b/c", "b/c"),
            ("/w/project", "."),
            ("/w/project2/a", "/w/project2/a"),
            ("../x", "/w/x"),
        ] {
            assert_eq!(relative(cwd, Path::new(path)), shown);
        }
    }
}

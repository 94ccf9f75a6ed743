//! A permission to write a file as a whole shows what becomes of the file that is there. Some agents name only the new
//! content: without this, a person would approve the loss of a file as if it were new.

use super::host::PresentFile;
use crate::agent::edits::{signed_diff, unseen};
use crate::protocol::question::Subject;
use std::borrow::Cow;
use std::path::Path;

/// The line for a file whose content is not shown: it lies outside the run's directories, is not text, or is too large.
const HIDDEN: &str = "The file exists, and loses its content.\n";

const ROOM: u64 = 1 << 20;

/// Shows the changes of each file that exists already. A detail in another form stays as it is. `present`: the file at a
/// path as the agent names it, if its text has at most so many bytes.
pub(super) fn show(subject: &mut Subject, present: impl Fn(&Path, u64) -> PresentFile) {
    if !subject.category.changes_files() {
        return;
    }
    // The heads of files that are created or replaced, in the words of the agents' drivers. Another title that begins
    // with this word may be that of a change to a part of the file.
    let named = subject.title.unredacted().strip_prefix("Write ").map(Path::new);
    let replaced = |path: &&str| named.is_some_and(|named| Path::new(path).ends_with(named));
    let written = |line| str::strip_prefix(line, "add ").or(str::strip_prefix(line, "file ").filter(replaced));
    let detail = subject.detail.unredacted();
    let (mut shown, mut rest, mut room) = (String::new(), detail, ROOM);
    while let Some((head, behind)) = rest.split_once('\n') {
        shown.extend([head, "\n"]);
        rest = behind;
        // Only a head looks ahead, so that each line is read twice at most.
        let Some(path) = written(head) else { continue };
        let lines: usize = rest.split_inclusive('\n').take_while(|line| line.starts_with('+')).map(str::len).sum();
        let (new, after) = rest.split_at(lines);
        if lines == 0 || after.starts_with(['-', ' ', '@', '\\']) {
            continue;
        }
        let changes: Cow<'_, str> = match present(Path::new(path), room) {
            PresentFile::Missing => new.into(),
            PresentFile::Hidden => (HIDDEN.to_owned() + new).into(),
            PresentFile::Text(old) => {
                room = room.saturating_sub(old.len() as u64);
                let new: String = new.split_inclusive('\n').map(|line| &line[1..]).collect();
                match signed_diff(&old, &new) {
                    same if same.is_empty() => unseen(&old, &new).unwrap_or_default().into(),
                    lines => lines.into(),
                }
            }
        };
        shown.push_str(&changes);
        rest = after;
    }
    shown.push_str(rest);
    if shown != detail {
        subject.detail = shown.into();
    }
}

#[cfg(test)]
mod tests {
    use super::show;
    use crate::engine::host::PresentFile;
    use crate::protocol::question::{Place, Subject};
    use crate::protocol::words::Category;

    fn shown(title: &str, detail: &str) -> String {
        let places = vec![Place { path: "/w/a".into(), line: None }];
        let mut subject = Subject::new(Category::Edit, title, places, detail);
        show(&mut subject, |path, _| match path.to_str().unwrap() {
            "/w/a" => PresentFile::Text("one\ntwo\nthree\n".into()),
            "/w/large" => PresentFile::Hidden,
            _ => PresentFile::Missing,
        });
        subject.detail.unredacted().to_owned()
    }

    #[test]
    fn a_file_that_is_replaced_shows_its_changes() {
        let changes = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
        assert_eq!(shown("Write a", "+one\n+2\n+three\n"), format!("file /w/a\n{changes}"));
        let patch =
            "add /w/new\n+x\nadd /w/a\n+one\n+2\n+three\nadd /w/large\n+y\nupdate /w/a\n@@ -1 +1 @@\n-one\n+1\n";
        let wanted = format!(
            "add /w/new\n+x\nadd /w/a\n{changes}add /w/large\nThe file exists, and loses its content.\n+y\nupdate /w/a\n@@ -1 +1 @@\n-one\n+1\n"
        );
        assert!(shown("Edit files", patch).ends_with(&wanted));
        let same = shown("Write a", "+one\n+two\n+three\nmode: 1");
        assert_eq!(same, "file /w/a\nNo line changes; only the file's mode may change.\nmode: 1");
    }

    #[test]
    fn a_part_of_a_file_stays_as_the_agent_shows_it() {
        // Added lines alone may be an insertion.
        assert_eq!(shown("Edit a", "+one\n+2\n"), "file /w/a\n+one\n+2\n");
        assert_eq!(shown("Write a", "+one\n-two\n"), "file /w/a\n+one\n-two\n");
        assert_eq!(shown("Edit files", "update /w/a\n+2\n"), "update /w/a\n+2\n");
        assert_eq!(shown("Write a test into a", "file /w/a\n+2\n"), "file /w/a\n+2\n");
    }
}

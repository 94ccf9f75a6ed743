//! The short texts in frames.

use crate::paths::absolute;
use crate::protocol::outbound::{Place, Text};
use crate::redact::Redactor;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

const TITLE_CHARS: usize = 120;

/// Turns the texts and paths of an agent into those of frames: redacted, short, and relative to the working directory.
pub(super) struct FrameTexts {
    pub(super) redactor: Redactor,
    cwd: PathBuf,
    /// The working directory with a final slash, which is removed from paths in texts.
    folder: String,
}

impl FrameTexts {
    pub(super) fn new(cwd: &Path, redactor: Redactor) -> FrameTexts {
        FrameTexts { redactor, cwd: cwd.to_owned(), folder: folder(&cwd.to_string_lossy()) }
    }

    /// The first non-blank line of a text: redacted, with relative paths, and cut.
    pub(super) fn title(&self, text: &Text) -> String {
        self.short_title(text.clone()).into_redacted(&self.redactor)
    }

    /// Like [`FrameTexts::title`], as a text. Does not copy a title that stays unchanged.
    pub(super) fn short_title(&self, text: Text) -> Text {
        let clean = text.into_redacted(&self.redactor);
        if is_title(&clean) {
            return Text::clean(clean, &self.redactor);
        }
        let line = clean.split('\n').map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        if line.contains('\r') {
            return self.cut(&line.replace('\r', " ")).into();
        }
        match self.cut(line) {
            Cow::Borrowed(same) if same.len() == clean.len() => Text::clean(clean, &self.redactor),
            Cow::Borrowed(part) => Text::clean(part.to_owned(), &self.redactor),
            Cow::Owned(changed) => changed.into(),
        }
    }

    /// The title of an action that somebody approves: its first line, cut. The detail shows all of it.
    pub(super) fn action_title(&self, text: &Text) -> String {
        let clean = text.redacted_action(&self.redactor);
        self.cut(clean.split('\n').map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()).into_owned()
    }

    /// Makes the paths in a redacted text relative, and cuts the text.
    pub(super) fn cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        fitting(shorten(text, &self.folder))
    }

    /// Redacts the text before it cuts it, because half a secret cannot be found. Also returns whether it cut.
    pub(super) fn limited(&self, text: Text, room: usize) -> (Text, bool) {
        let mut text = text.into_redacted(&self.redactor);
        let is_long = text.len() > room;
        if is_long {
            text.truncate(text.floor_char_boundary(room));
        }
        (Text::clean(text, &self.redactor), is_long)
    }

    /// A path as frames show it: relative inside the working directory, otherwise absolute.
    pub(super) fn relative(&self, path: &Path) -> Text {
        let absolute = self.absolute(path);
        match absolute.strip_prefix(&self.cwd) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".into(),
            Ok(inside) => inside.to_string_lossy().into(),
            Err(_) => absolute.to_string_lossy().into(),
        }
    }

    pub(super) fn absolute(&self, path: &Path) -> PathBuf {
        absolute(&self.cwd, path)
    }

    pub(super) fn places(&self, locations: &[Place]) -> Vec<Place> {
        locations.iter().map(|at| Place { path: self.relative(path(&at.path)), line: at.line }).collect()
    }
}

/// Whether a text is one short line without a path, as most titles are.
fn is_title(text: &str) -> bool {
    let is_inside = |byte: u8| matches!(byte, b' '..=b'.' | b'0'..=b'~');
    text.len() <= TITLE_CHARS && text.trim_ascii().len() == text.len() && text.bytes().all(is_inside)
}

pub(super) fn path(text: &Text) -> &Path {
    Path::new(text.unredacted())
}

/// The part of a path that is left out where the path is inside this working directory.
fn folder(cwd: &str) -> String {
    format!("{}/", cwd.trim_end_matches('/'))
}

fn shorten<'t>(text: &'t str, folder: &str) -> Cow<'t, str> {
    let Some(first) = text.find('/').filter(|_| folder != "/") else { return text.into() };
    let is_inside = |at: &usize| text[*at..].starts_with(folder);
    let mut found = text[first..].match_indices('/').map(|(at, _)| first + at).filter(is_inside).peekable();
    if found.peek().is_none() {
        return text.into();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), 0);
    for at in found {
        // The folder may be part of another path: `/a/a/`.
        let Some(before) = text.get(rest..at) else { continue };
        out.push_str(before);
        // `/a/b/` is not the working directory in `/x/a/b/`.
        let inside = out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~'));
        out.push_str(if inside { folder } else { "" });
        rest = at + folder.len();
    }
    (out + &text[rest..]).into()
}

/// Cuts a title. A cut one does not keep the memory of its rest, because a run keeps the titles of open tools.
fn fitting(title: Cow<'_, str>) -> Cow<'_, str> {
    let cut = (title.len() > TITLE_CHARS).then(|| title.char_indices().nth(TITLE_CHARS)).flatten();
    match cut {
        Some((cut, _)) => [&title[..cut], "…"].concat().into(),
        None => title,
    }
}

/// The hint at a grant, if this output of a process in a sandbox says near its end that access was denied. It continues a
/// sentence.
pub(super) fn suspicion(output: &Text) -> Option<String> {
    const DENIED: [&str; 8] = [
        "Permission denied",
        "permission denied",
        "Operation not permitted",
        "operation not permitted",
        "EACCES",
        "Read-only file system",
        "read-only file system",
        "EROFS",
    ];
    let output = output.unredacted();
    let start = output.len().saturating_sub(DENIAL_BYTES);
    let end = (start..=output.len()).find_map(|at| output.get(at..)).unwrap_or_default();
    let line = end.lines().rev().find(|line| DENIED.iter().any(|words| line.contains(words)))?;
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | ')' | ',' | ';'));
    // The program that complains stands before the path.
    let mut paths =
        words.map(|word| word.trim_end_matches([':', '.'])).filter(|word| word.len() > 1 && word.starts_with('/'));
    let path = paths.next_back().filter(|path| path.len() <= PATH_BYTES).unwrap_or("the path");
    Some(format!("if the sandbox denied it, --sandbox-write or --sandbox-read grants {path}"))
}

pub(super) fn with_hint(title: &Text, hint: &str) -> Text {
    format!("{}; {hint}", title.unredacted()).into()
}

const PATH_BYTES: usize = 200;

/// The part of a tool's output that is searched for a denial, in bytes.
const DENIAL_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::{FrameTexts, TITLE_CHARS, fitting, folder, shorten, suspicion};
    use crate::redact::Redactor;
    use std::path::Path;

    #[test]
    fn a_denial_names_its_path() {
        for (output, path) in [
            ("/bin/x: 5: cannot create /a/b: Permission denied\n", "/a/b"),
            ("Error: EACCES: permission denied, mkdir '/h/.local'\n    at x", "/h/.local"),
            ("PermissionError: [Errno 13] Permission denied: '/a'", "/a"),
            ("error: could not write config file .git/config: Read-only file system", "the path"),
        ] {
            assert!(suspicion(&output.into()).is_some_and(|hint| hint.ends_with(&format!(" {path}"))), "{output}");
        }
        assert_eq!(suspicion(&"No such file or directory: /a".into()), None);
    }

    #[test]
    fn a_cut_title_keeps_no_memory_of_its_rest() {
        let title = fitting("é".repeat(1 << 20).into()).into_owned();
        assert_eq!(title.chars().count(), TITLE_CHARS + 1);
        assert!(title.capacity() < 4 * TITLE_CHARS + 16, "{} bytes", title.capacity());
    }

    #[test]
    fn only_the_working_directory_itself_is_removed_from_paths() {
        for (text, cwd, short) in [
            ("Write: /w/p/a.txt", "/w/p", "Write: a.txt"),
            ("cat /w/p/a '/w/p/b' >/w/p/c", "/w/p", "cat a 'b' >c"),
            ("Write: /var/tmp/x", "/tmp", "Write: /var/tmp/x"),
            ("get https://example.com/a", "/", "get https://example.com/a"),
            ("ls /a/a/a/b", "/a/a", "ls a/b"),
            ("ls /a/a/a/a/b", "/a/a", "ls a/a/b"),
        ] {
            assert_eq!(shorten(text, &folder(cwd)), short);
        }
    }

    #[test]
    fn paths_are_relative_only_inside() {
        let texts = FrameTexts::new(Path::new("/w/project"), Redactor::new());
        for (path, shown) in [
            ("/w/project/a.txt", "a.txt"),
            ("/w/project/./b/../a.txt", "a.txt"),
            ("b/c", "b/c"),
            ("/w/project", "."),
            ("/w/project2/a", "/w/project2/a"),
            ("../x", "/w/x"),
        ] {
            assert_eq!(texts.relative(Path::new(path)), shown);
        }
    }
}

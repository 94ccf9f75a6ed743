//! The frames of a run, and the short texts in them.

use super::Effect;
use super::live::Live;
use crate::protocol::outbound::{About, Body, Progress, Text};
use crate::protocol::words::{Status, Warning};

/// The maximum length of a title, in characters.
const TITLE_CHARS: usize = 120;

impl Live {
    pub(super) fn emit(&mut self, body: Body, reply_to: Option<String>) {
        self.clocks.frame = self.now;
        self.out.push(effect(body, reply_to));
    }

    pub(super) fn progress(&mut self, progress: Progress, reply_to: Option<String>) {
        if self.settings.progress >= progress.about.level() {
            self.emit(Body::Progress(Box::new(progress)), reply_to);
        }
    }

    pub(super) fn tell(&mut self, about: About, text: impl Into<Text>, reply_to: Option<String>) {
        self.progress(Progress { text: text.into(), parent_call_id: None, about, truncated: false }, reply_to);
    }

    pub(super) fn warn(&mut self, warning: Warning, text: impl Into<Text>, reply_to: Option<String>) {
        self.tell(About::Warning(warning), text, reply_to);
    }

    pub(super) fn status(&mut self, status: Status, text: &str, reply_to: Option<String>) {
        if self.status != Some(status) {
            self.status = Some(status);
            self.tell(About::Status(status), text, reply_to);
        }
    }

    /// The first non-blank line of a text: redacted, with relative paths, and cut.
    pub(super) fn title(&self, text: &Text) -> String {
        let clean = text.redacted(&self.redactor);
        let line = clean.split('\n').map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        self.cut(&line.replace('\r', " "))
    }

    /// Makes the paths in a redacted text relative, and cuts the text.
    pub(super) fn cut(&self, text: &str) -> String {
        fitting(shorten(text, &self.settings.cwd.to_string_lossy()))
    }
}

/// The effect that emits a frame.
pub(super) fn effect(body: Body, reply_to: Option<String>) -> Effect {
    Effect::Emit { body, reply_to, measure: None }
}

/// Makes the paths in a text relative to the working directory.
fn shorten(text: &str, cwd: &str) -> String {
    let folder = format!("{}/", cwd.trim_end_matches('/'));
    if folder == "/" {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&folder) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        // `/a/b/` is not the working directory in `/x/a/b/`.
        let inside = out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~'));
        out.push_str(if inside { &folder } else { "" });
        rest = &found[folder.len()..];
    }
    out + rest
}

/// Cuts a title. The rest of its memory is given back, because a run keeps the titles of open tools.
fn fitting(mut title: String) -> String {
    if let Some((cut, _)) = title.char_indices().nth(TITLE_CHARS) {
        title.truncate(cut);
        title.push('…');
        title.shrink_to_fit();
    }
    title
}

#[cfg(test)]
mod tests {
    use super::{TITLE_CHARS, fitting, shorten};

    #[test]
    fn a_cut_title_keeps_no_memory_of_its_rest() {
        let title = fitting("é".repeat(1 << 20));
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
        ] {
            assert_eq!(shorten(text, cwd), short);
        }
    }
}

//! The state of the terminal's last line, and the bytes that put new output below it: output always begins on a line of
//! its own, and the status line is cleared first.

use super::alert::TerminalFeatures;
use super::width;
use crate::io::output::Chunk;
use crate::protocol::ids::RunId;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The final text alone.
    Quiet,
    /// The agent's text, and a line for each tool.
    #[default]
    Normal,
    /// Also the outputs of tools, the reasoning and the session.
    Verbose,
}

/// The capabilities of the terminal that shows a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub detail: Detail,
    /// Whether stderr is a terminal that a person reads.
    pub person: bool,
    /// Whether a line can be overwritten: true of every terminal but a dumb one.
    pub live: bool,
    pub escapes: bool,
    /// Whether stdout may appear on the same terminal, or in the same log.
    pub shared: bool,
    /// Whether the agent's Markdown is laid out for this terminal.
    pub page: bool,
    /// The number of lines that are shown of an edit's diff.
    pub diff_lines: usize,
    /// Whether each line of a log begins with the run's id.
    pub log_id: bool,
    /// Whether a bell and the window title announce a question.
    pub alert: bool,
    pub features: TerminalFeatures,
}

/// Colors of our own text. An agent's text is never colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Look {
    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Red => 31,
            Ink::Green => 32,
            Ink::Yellow => 33,
        };
        if self.escapes && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    /// Whole lines for stderr.
    pub(super) lines: String,
    /// A prompt for stderr; the cursor stays after it.
    pub(super) prompt: String,
}

/// The content of the last line, below all output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Below {
    #[default]
    Nothing,
    Status(String),
    Typed(PromptLine),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PromptLine {
    /// The bytes that draw it and leave the cursor in its place.
    pub(super) drawn: String,
    /// The columns of each row above the cursor's.
    pub(super) above: Vec<usize>,
    /// The columns before the cursor.
    pub(super) column: usize,
}

impl PromptLine {
    /// A terminal that became narrower has wrapped the line.
    fn rows_above(&self, width: usize) -> usize {
        let width = width.max(1);
        let wrapped = self.above.iter().map(|columns| columns.div_ceil(width).max(1));
        wrapped.sum::<usize>() + self.column.saturating_sub(1) / width
    }
}

impl Shown {
    pub(super) fn lines(lines: impl Into<String>) -> Shown {
        Shown { lines: lines.into(), ..Shown::default() }
    }
}

/// The content of the cursor's line.
#[derive(Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Nothing,
    /// Unfinished text of the agent.
    Text,
    Prompt,
    /// The status line, with its width in columns.
    Status(String, usize),
    Typed(PromptLine),
}

#[derive(Debug, Default)]
pub(super) struct Screen {
    look: Look,
    line: Line,
    /// The status line below an unfinished line of text, while the cursor stands at the end of that.
    below: Option<String>,
    /// The beginning of each whole line of a log. May be empty.
    mark: String,
}

impl Screen {
    pub(super) fn new(look: Look) -> Screen {
        Screen { look, ..Screen::default() }
    }

    pub(super) fn note_run(&mut self, id: &RunId) {
        if self.look.log_id && !self.look.live && self.mark.is_empty() {
            self.mark = format!("[{}] ", &**id);
        }
    }

    /// Returns the bytes that clear the status line, if the cursor stood there.
    pub(super) fn entered(&mut self) -> String {
        match std::mem::take(&mut self.line) {
            Line::Status(..) if self.look.escapes => "\u{1b}[A\r\u{1b}[J".into(),
            Line::Nothing | Line::Text | Line::Prompt | Line::Status(..) | Line::Typed(_) => String::new(),
        }
    }

    /// The bytes that show `shown` with `below` under it, in place of a prompt. `width`: the terminal's, in columns.
    pub(super) fn place(&mut self, shown: Shown, below: Below, width: usize) -> Chunk {
        let (status, typed) = match below {
            Below::Nothing => (None, None),
            Below::Status(text) => (Some(width::cut(&text, width.saturating_sub(1))), None),
            Below::Typed(typed) => (None, Some(typed)),
        };
        let same = match (&self.line, &status) {
            // Where nothing can be drawn again, the echo of the keys has changed the line already.
            (Line::Typed(_), _) if !self.look.escapes => typed.is_some(),
            (Line::Typed(old), _) => Some(old) == typed.as_ref(),
            (_, _) if typed.is_some() => false,
            (Line::Status(old, _), Some(new)) => old == new,
            (Line::Status(..), None) | (Line::Nothing | Line::Prompt, Some(_)) => false,
            (Line::Text, _) | (Line::Nothing | Line::Prompt, None) => true,
        };
        let on_screen = self.look.shared && !shown.text.is_empty();
        let more = !shown.lines.is_empty() || !shown.prompt.is_empty() || typed.is_some() && (on_screen || !same);
        let goes_on = on_screen && self.line == Line::Text;
        if same && !on_screen && !more {
            return Chunk { out: shown.text.into_bytes(), ..self.place_below(status) };
        }
        let before = if goes_on { self.clear_below() } else { self.clear(width) };
        let mut err: String = match self.mark.as_str() {
            "" => shown.lines,
            mark => shown.lines.split_inclusive('\n').flat_map(|line| [mark, line]).collect(),
        };
        if on_screen {
            let open = !shown.text.ends_with('\n');
            self.line = if open && !more { Line::Text } else { Line::Nothing };
            if open && more {
                err.insert(0, '\n');
            }
        }
        if !shown.prompt.is_empty() {
            err.push_str(&shown.prompt);
            self.line = Line::Prompt;
        }
        if let (Line::Nothing, Some(status)) = (&self.line, status) {
            err.push_str(&self.look.paint(Ink::Dim, &status));
            let columns = width::columns(&status);
            self.line = Line::Status(status, columns);
        }
        if let (Line::Nothing, Some(typed)) = (&self.line, typed) {
            err.push_str(&typed.drawn);
            self.line = Line::Typed(typed);
        }
        Chunk { before: before.into_bytes(), out: shown.text.into_bytes(), err: err.into_bytes() }
    }

    pub(super) fn is_within_text(&self) -> bool {
        self.line == Line::Text
    }

    /// Shows the status below an unfinished line of text, and leaves the cursor where that continues.
    fn place_below(&mut self, status: Option<String>) -> Chunk {
        let status =
            status.filter(|status| self.line == Line::Text && self.look.escapes && self.below.as_ref() != Some(status));
        let Some(status) = status else { return Chunk::default() };
        // Index and up make sure of a line below: at the bottom of the screen, the text scrolls first.
        let err = format!("\u{1b}D\u{1b}[A\u{1b}7\r\n{}\u{1b}[K\u{1b}8", self.look.paint(Ink::Dim, &status));
        self.below = Some(status);
        Chunk { err: err.into_bytes(), ..Chunk::default() }
    }

    fn clear_below(&mut self) -> String {
        self.below.take().map(|_| "\u{1b}7\r\n\u{1b}[K\u{1b}8".to_owned()).unwrap_or_default()
    }

    /// Moves the cursor to the beginning of an empty line.
    pub(super) fn clear(&mut self, width: usize) -> String {
        let below = self.clear_below();
        match std::mem::take(&mut self.line) {
            Line::Nothing => String::new(),
            Line::Text | Line::Prompt => below + "\n",
            Line::Typed(typed) if self.look.escapes => match typed.rows_above(width) {
                0 => "\r\u{1b}[J".into(),
                rows => format!("\r\u{1b}[{rows}A\u{1b}[J"),
            },
            Line::Typed(_) => "\n".into(),
            // A terminal that became narrower has wrapped the line.
            Line::Status(_, columns) if self.look.escapes => match columns.saturating_sub(1) / width.max(1) {
                0 => "\r\u{1b}[K".into(),
                rows => format!("\r\u{1b}[{rows}A\u{1b}[J"),
            },
            Line::Status(_, columns) => format!("\r{}\r", " ".repeat(columns.min(width.saturating_sub(1)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Below, Detail, Look, PromptLine, Screen, Shown, TerminalFeatures};

    const LOOK: Look = Look {
        detail: Detail::Normal,
        person: true,
        live: true,
        escapes: false,
        shared: true,
        page: false,
        diff_lines: 40,
        log_id: false,
        alert: false,
        features: TerminalFeatures { links: false, titles: false },
    };

    fn seen(screen: &mut Screen, text: &str, lines: &str, prompt: &str, status: Option<&str>) -> String {
        let shown = Shown { text: text.into(), lines: lines.into(), prompt: prompt.into() };
        let below = status.map_or(Below::Nothing, |status| Below::Status(status.into()));
        let chunk = screen.place(shown, below, 10);
        [chunk.before, chunk.out, chunk.err].map(|bytes| String::from_utf8(bytes).unwrap()).join("|")
    }

    #[test]
    fn nothing_is_written_onto_the_end_of_something_else() {
        let mut screen = Screen::new(LOOK);
        assert_eq!(seen(&mut screen, "", "", "", Some("busy")), "||busy");
        assert_eq!(seen(&mut screen, "", "", "", Some("busy")), "||", "the same is not drawn again");
        assert_eq!(seen(&mut screen, "", "* tool\n", "", Some("busy for long")), "\r    \r||* tool\nbusy for…");
        assert_eq!(seen(&mut screen, "half ", "", "", Some("busy")), "\r         \r|half |");
        assert_eq!(seen(&mut screen, "whole\n", "", "", Some("busy")), "|whole\n|busy");
        assert_eq!(seen(&mut screen, "half", "", "", None), "\r    \r|half|");
        assert_eq!(seen(&mut screen, "", "* tool\n", "", None), "\n||* tool\n");
        assert_eq!(seen(&mut screen, "", "? which\n", "> ", None), "||? which\n> ");
        assert_eq!(seen(&mut screen, "", "", "", None), "||", "a prompt is not disturbed");
        assert_eq!(seen(&mut screen, "", "note\n", "> ", None), "\n||note\n> ");
        assert_eq!(screen.entered(), "");
        assert_eq!(seen(&mut screen, "text", "done\n", "", None), "|text|\ndone\n");
    }

    #[test]
    fn a_wrapped_status_line_is_cleared_completely() {
        let mut screen = Screen::new(Look { escapes: true, ..LOOK });
        let _ = screen.place(Shown::default(), Below::Status("x".repeat(25)), 80);
        assert_eq!(screen.clear(10), "\r\u{1b}[2A\u{1b}[J");
        let _ = screen.place(Shown::default(), Below::Status("x".repeat(25)), 80);
        assert_eq!(screen.clear(80), "\r\u{1b}[K");
        assert_eq!(screen.clear(80), "");
    }

    #[test]
    fn a_line_that_is_typed_stays_below_the_output() {
        let mut screen = Screen::new(Look { escapes: true, ..LOOK });
        let typed =
            |drawn: &str, above| Below::Typed(PromptLine { drawn: drawn.into(), above: vec![3; above], column: 3 });
        let mut seen = |text: &str, below| {
            let chunk = screen.place(Shown { text: text.into(), ..Shown::default() }, below, 80);
            [chunk.before, chunk.out, chunk.err].map(|bytes| String::from_utf8(bytes).unwrap()).join("|")
        };
        assert_eq!(seen("", typed("> a", 0)), "||> a");
        assert_eq!(seen("", typed("> a", 0)), "||", "the same is not drawn again");
        assert_eq!(seen("", typed("> a\n  b", 1)), "\r\u{1b}[J||> a\n  b");
        assert_eq!(seen("text\n", typed("> a\n  b", 1)), "\r\u{1b}[1A\u{1b}[J|text\n|> a\n  b");
        assert_eq!(seen("", Below::Nothing), "\r\u{1b}[1A\u{1b}[J||");
        assert_eq!(seen("half", typed("> a", 0)), "|half|\n> a");
    }

    #[test]
    fn a_typed_line_that_the_terminal_wrapped_is_cleared_completely() {
        let mut screen = Screen::new(Look { escapes: true, ..LOOK });
        let line = PromptLine { drawn: "x".into(), above: vec![25, 4], column: 12 };
        for (width, rows) in [(80, 2), (10, 5), (12, 4)] {
            let _ = screen.place(Shown::default(), Below::Typed(line.clone()), 80);
            assert_eq!(screen.clear(width), format!("\r\u{1b}[{rows}A\u{1b}[J"), "{width}");
        }
    }

    #[test]
    fn a_redirected_stdout_leaves_the_terminal_unchanged() {
        let mut screen = Screen::new(Look { shared: false, ..LOOK });
        assert_eq!(seen(&mut screen, "half ", "", "", Some("busy")), "|half |busy");
        assert_eq!(seen(&mut screen, "", "* tool\n", "", None), "\r    \r||* tool\n");
    }
}

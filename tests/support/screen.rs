//! The screen of a terminal: the contents of its cells, and the functions of a terminal that the program uses.

use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The terminal's own color of text.
    #[default]
    Plain,
    Red,
    Green,
    Yellow,
    Cyan,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) ink: Ink,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// NUL in the second cell of a wide character.
    pub(crate) c: char,
    pub(crate) style: Style,
}

impl Cell {
    const BLANK: Cell = Cell { c: ' ', style: Style { ink: Ink::Plain, bold: false, dim: false } };
}

/// A screen without an end: nothing scrolls out of it.
#[derive(Default)]
pub(crate) struct Screen {
    columns: usize,
    rows: Vec<Vec<Cell>>,
    /// The rows that were full before their text ended.
    broken: BTreeSet<usize>,
    row: usize,
    column: usize,
    kept: (usize, usize),
    style: Style,
    sequence: Option<String>,
}

impl Screen {
    pub(crate) fn new(columns: usize) -> Screen {
        Screen { columns, rows: vec![Vec::new()], ..Screen::default() }
    }

    pub(crate) fn take(&mut self, c: char) {
        if let Some(mut sequence) = self.sequence.take() {
            sequence.push(c);
            if sequence == "[" || sequence == "[?" || c.is_ascii_digit() && sequence.starts_with('[') {
                self.sequence = Some(sequence);
            } else {
                self.obey(&sequence);
            }
            return;
        }
        match c {
            '\u{1b}' => self.sequence = Some(String::new()),
            '\r' => self.column = 0,
            '\n' => self.down(),
            '\u{8}' => self.column = self.column.saturating_sub(1),
            c if c.is_control() => {}
            c => {
                let width = if ('\u{2e80}'..='\u{ffef}').contains(&c) { 2 } else { 1 };
                if self.column + width > self.columns {
                    self.column = 0;
                    self.broken.insert(self.row);
                    self.down();
                }
                let row = &mut self.rows[self.row];
                row.resize(row.len().max(self.column + width), Cell::BLANK);
                for (at, c) in [c, '\0'].into_iter().take(width).enumerate() {
                    row[self.column + at] = Cell { c, style: self.style };
                }
                self.column += width;
            }
        }
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    #[track_caller]
    fn obey(&mut self, sequence: &str) {
        let number = sequence[1..].trim_start_matches('?').trim_end_matches(char::is_alphabetic).parse().ok();
        let steps: usize = number.unwrap_or(1);
        match sequence.chars().last().unwrap() {
            'm' => self.dress(number.unwrap_or(0)),
            'h' | 'l' => {}
            'K' => self.rows[self.row].truncate(self.column),
            'J' => {
                self.rows[self.row].truncate(self.column);
                self.rows.truncate(self.row + 1);
                self.broken.retain(|row| *row < self.row);
            }
            'D' => self.down(),
            'C' => self.column += steps,
            'A' => self.row = self.row.saturating_sub(steps),
            '7' => self.kept = (self.row, self.column),
            '8' => (self.row, self.column) = self.kept,
            _ => panic!("a sequence that nobody expects: {sequence:?}"),
        }
    }

    /// Changes the style of the text that follows.
    #[track_caller]
    fn dress(&mut self, number: usize) {
        match number {
            0 => self.style = Style::default(),
            1 => self.style.bold = true,
            2 => self.style.dim = true,
            22 => (self.style.bold, self.style.dim) = (false, false),
            31 => self.style.ink = Ink::Red,
            32 => self.style.ink = Ink::Green,
            33 => self.style.ink = Ink::Yellow,
            36 => self.style.ink = Ink::Cyan,
            39 => self.style.ink = Ink::Plain,
            _ => panic!("a style that nobody expects: {number}"),
        }
    }

    /// The rows up to the last one with text, without the blanks at their ends.
    pub(crate) fn cells(&self) -> Vec<&[Cell]> {
        let end = |row: &[Cell]| row.iter().rposition(|cell| cell.c != ' ').map_or(0, |last| last + 1);
        let rows = self.rows.iter().map(|row| &row[..end(row)]);
        let mut rows: Vec<&[Cell]> = rows.collect();
        rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        rows
    }

    /// The text of each row.
    pub(crate) fn rows(&self) -> Vec<String> {
        self.cells().into_iter().map(text).collect()
    }

    /// The screen as one text, with `⏎` after a row that the terminal broke.
    pub(crate) fn drawn(&self) -> String {
        let sign = |at: usize| if self.broken.contains(&at) { "⏎" } else { "" };
        self.rows().iter().enumerate().map(|(at, row)| format!("{row}{}\n", sign(at))).collect()
    }
}

/// The text of some cells.
pub(crate) fn text(cells: &[Cell]) -> String {
    cells.iter().map(|cell| cell.c).filter(|c| *c != '\0').collect()
}

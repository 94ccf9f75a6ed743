//! Tables in the agent's Markdown, laid out for the width of a terminal. The rows are held back until the table is whole.

use super::width::{columns, signs};

/// The maximum size of a table that is held back, in bytes. What follows is shown as it comes.
const HELD: usize = 64 << 10;
/// The minimum width of a column whose cells are wrapped. A table with narrower columns is shown as it is.
const NARROW: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<String>,
    row: String,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
    Centre,
}

impl Table {
    pub(super) fn push(&mut self, part: &str) {
        self.row.push_str(part);
        self.bytes += part.len();
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes > HELD
    }

    /// Takes the whole rows, laid out for a terminal of this width.
    pub(super) fn take_rows(&mut self, width: usize) -> String {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = self.row.len();
        laid_out(&rows, width).unwrap_or_else(|| rows.iter().map(|row| format!("{row}\n")).collect())
    }

    pub(super) fn take(&mut self, width: usize) -> String {
        self.take_rows(width) + &std::mem::take(&mut self.row)
    }
}

/// `None`: these rows do not form a table, or their columns are too many for the width.
fn laid_out(rows: &[String], width: usize) -> Option<String> {
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| cells(row)).collect();
    let aligned: Vec<Align> = rows.get(1)?.iter().map(|cell| align(cell)).collect::<Option<_>>()?;
    let count = aligned.len();
    if rows.iter().any(|row| row.len() > count) || rows[0].len() != count {
        return None;
    }
    let texts = || rows.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, row)| row);
    let natural = |at: usize| texts().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max().unwrap_or(0).max(1);
    let widths = fitted((0..count).map(natural).collect(), width.checked_sub(1 + 3 * count)?)?;
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        match at {
            1 => widths.iter().for_each(|width| out.push_str(&format!("|{}", "-".repeat(width + 2)))),
            _ => {
                let cell = |at: usize| wrapped(row.get(at).copied().unwrap_or_default(), widths[at]);
                let lines: Vec<Vec<String>> = (0..count).map(cell).collect();
                for line in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
                    out.push_str(if line == 0 { "" } else { "|\n" });
                    for (at, cell) in lines.iter().enumerate() {
                        let text = cell.get(line).map_or("", String::as_str);
                        out.push_str(&format!("| {} ", padded(text, widths[at], aligned[at])));
                    }
                }
            }
        }
        out.push_str("|\n");
    }
    Some(out)
}

/// A bar behind a backslash or within code belongs to its cell.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let (mut cells, mut from, mut code, mut before) = (Vec::new(), 0, false, ' ');
    for (at, c) in row.char_indices() {
        match c {
            '`' => code = !code,
            '|' if !code && before != '\\' => {
                cells.push(row[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    cells.extend(Some(row[from..].trim()).filter(|rest| !rest.is_empty()));
    cells
}

/// The meaning of a cell below the heading, such as `:--`. `None`: it is none of that kind.
fn align(cell: &str) -> Option<Align> {
    let (left, right) = (cell.starts_with(':'), cell.ends_with(':'));
    let dashes = cell.trim_matches(':');
    let fits = !dashes.is_empty() && dashes.bytes().all(|b| b == b'-');
    fits.then_some(match (left, right) {
        (true, true) => Align::Centre,
        (false, true) => Align::Right,
        (_, false) => Align::Left,
    })
}

/// The widths, with the widest columns cut so that all fit into `room` columns. `None`: they would be too narrow.
fn fitted(natural: Vec<usize>, room: usize) -> Option<Vec<usize>> {
    let mut sorted = natural.clone();
    sorted.sort_unstable();
    let (mut left, mut limit) = (room, usize::MAX);
    for (at, width) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at);
        if *width > share {
            limit = share;
            break;
        }
        left -= width;
    }
    (limit >= NARROW).then(|| natural.into_iter().map(|width| width.min(limit)).collect())
}

fn wrapped(cell: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in cell.split_whitespace() {
        let wide = columns(word);
        if used > 0 && used + 1 + wide > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        for sign in signs(word) {
            let wide = columns(sign);
            if used > 0 && used + wide > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push_str(sign);
            used += wide;
        }
    }
    lines.push(line);
    lines
}

fn padded(text: &str, width: usize, align: Align) -> String {
    let free = width.saturating_sub(columns(text));
    let before = match align {
        Align::Left => 0,
        Align::Right => free,
        Align::Centre => free / 2,
    };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(free - before))
}

#[cfg(test)]
mod tests {
    use super::laid_out;

    fn shown(rows: &[&str], width: usize) -> Option<String> {
        laid_out(&rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>(), width)
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = ["|Name|Count|", "|:--|--:|", "| a | 1|", "|漢字|22|", "| `x|y` |"];
        let wanted = "| Name  | Count |\n|-------|-------|\n| a     |     1 |\n| 漢字  |    22 |\n| `x|y` |       |\n";
        assert_eq!(shown(&rows, 80).as_deref(), Some(wanted));
        assert_eq!(shown(&["| a |", "|:-:|", "| abc |"], 80).as_deref(), Some("|  a  |\n|-----|\n| abc |\n"));
    }

    #[test]
    fn wide_cells_are_wrapped() {
        let rows = ["| id | text |", "|---|---|", "| 1 | one two three four |", "| 2 | averyverylongword |"];
        let wanted = "\
| id | text      |
|----|-----------|
| 1  | one two   |
|    | three     |
|    | four      |
| 2  | averyvery |
|    | longword  |
";
        assert_eq!(shown(&rows, 18).as_deref(), Some(wanted));
        assert!(wanted.lines().all(|line| line.len() == 18));
    }

    #[test]
    fn other_rows_stay_as_they_are() {
        for rows in [
            &["| a | b |"][..],
            &["| a | b |", "| c | d |"],
            &["| a |", "|---|---|", "| b |"],
            &["| a |", "|---|", "| b | c |"],
            &["| a | b |", "|---|---|", "| averyverylongword | averyverylongword |"],
        ] {
            assert_eq!(shown(rows, 20), None, "{rows:?}");
        }
    }
}

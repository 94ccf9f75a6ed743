//! A screen as a picture: one SVG file without scripts and without fonts of its own. Each text states its width, so that
//! no font moves a column.

use std::fmt::Write;

use crate::support::screen::{Cell, Ink, Screen, Style, text};

/// The size of a cell, in pixels.
const CELL: (usize, usize) = (8, 19);
/// The distance from a cell's top to the line on which its text stands.
const BASELINE: usize = 14;
const MARGIN: usize = 20;
/// The distance from the window's top to the first row.
const BAR: usize = 40;
const FONT: &str = "13.3px ui-monospace, SFMono-Regular, Menlo, Consolas, \"Liberation Mono\", monospace";

/// The colors of a terminal.
struct Theme {
    name: &'static str,
    paper: &'static str,
    /// The frame of the window.
    edge: &'static str,
    /// The colors of texts, by class.
    inks: [(&'static str, &'static str); 6],
}

const LIGHT: Theme = Theme {
    name: "light",
    paper: "#ffffff",
    edge: "#d1d9e0",
    inks: [
        ("plain", "#1f2328"),
        ("dim", "#59636e"),
        ("red", "#c21c2c"),
        ("green", "#1a7f37"),
        ("yellow", "#8a5d00"),
        ("cyan", "#0f6e84"),
    ],
};

const DARK: Theme = Theme {
    name: "dark",
    paper: "#0d1117",
    edge: "#3d444d",
    inks: [
        ("plain", "#e6edf3"),
        ("dim", "#9198a1"),
        ("red", "#ff7b72"),
        ("green", "#3fb950"),
        ("yellow", "#d29922"),
        ("cyan", "#56d4dd"),
    ],
};

impl Theme {
    fn rules(&self) -> String {
        let inks = self.inks.iter().map(|(class, ink)| format!(".{class} {{ fill: {ink} }}\n"));
        let window = format!(".window {{ fill: {}; stroke: {} }}\n.button {{ fill: {1} }}\n", self.paper, self.edge);
        window + &inks.collect::<String>()
    }
}

/// A picture of the rows of a screen, in the colors of the page that shows it: browsers pass the page's color scheme on.
pub(super) fn picture(title: &str, columns: usize, rows: &[&[Cell]]) -> String {
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, BAR + rows.len() * CELL.1 + MARGIN);
    let size = format!("width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\"");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">{}</title>\n\
         <style>\ntext {{ font: {FONT} }}\n.bold {{ font-weight: 700 }}\n{}@media (prefers-color-scheme: dark) {{\n{}}}\n</style>\n\
         <rect class=\"window\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        escaped(title),
        LIGHT.rules(),
        DARK.rules(),
        width - 1,
        height - 1,
    );
    for at in 0..3 {
        let _ = writeln!(svg, "<circle class=\"button\" cx=\"{}\" cy=\"18\" r=\"5\"/>", MARGIN + 5 + 17 * at);
    }
    for (at, row) in rows.iter().enumerate() {
        for (column, piece) in pieces(row) {
            let (x, y, width) = (MARGIN + column * CELL.0, BAR + at * CELL.1 + BASELINE, piece.len() * CELL.0);
            let class = class(piece[0].style);
            let place = format!("x=\"{x}\" y=\"{y}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\"");
            let _ = writeln!(svg, "<text class=\"{class}\" {place}>{}</text>", escaped(&text(piece)));
        }
    }
    svg + "</svg>\n"
}

/// The texts of a row with their columns, each in one style. More than one blank parts two texts, since SVG shows them as one.
fn pieces(row: &[Cell]) -> Vec<(usize, &[Cell])> {
    let blank = |cell: &Cell| cell.c == ' ';
    let (mut pieces, mut at) = (Vec::new(), 0);
    while let Some(first) = row.get(at) {
        let same = row[at..].iter().take_while(|cell| cell.style == first.style).count();
        let run = &row[at..at + same];
        let end = run.windows(2).position(|two| two.iter().all(blank)).unwrap_or(same);
        let piece = &run[..end];
        let piece = &piece[..piece.iter().rposition(|cell| !blank(cell)).map_or(0, |last| last + 1)];
        let before = piece.iter().take_while(|cell| blank(cell)).count();
        if before < piece.len() {
            pieces.push((at + before, &piece[before..]));
        }
        at += piece.len().max(1);
    }
    pieces
}

fn class(style: Style) -> String {
    let ink = match style.ink {
        Ink::Plain if style.dim => "dim",
        Ink::Plain => "plain",
        Ink::Red => "red",
        Ink::Green => "green",
        Ink::Yellow => "yellow",
        Ink::Cyan => "cyan",
    };
    if style.bold { format!("{ink} bold") } else { ink.to_owned() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The contrast of two colors such as `#1f2328`, from 1 to 21, as WCAG 2 defines it.
fn contrast(one: &str, other: &str) -> f64 {
    let part = |color: &str, at: usize| {
        let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let light = |color| 0.2126 * part(color, 1) + 0.7152 * part(color, 3) + 0.0722 * part(color, 5) + 0.05;
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

#[test]
fn every_color_of_a_text_can_be_read() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 0.01);
    for theme in [LIGHT, DARK] {
        for (class, ink) in theme.inks {
            // Level AA.
            let contrast = contrast(ink, theme.paper);
            assert!(contrast >= 4.5, "{class} on {}: {contrast:.2}", theme.name);
        }
    }
}

#[test]
fn a_text_has_its_place_its_width_and_its_style() {
    let mut screen = Screen::new(30);
    "a <b>  c \u{1b}[31mred\u{1b}[1m & 漢\u{1b}[0m\r\n \u{1b}[2mdim".chars().for_each(|c| screen.take(c));
    let svg = picture("x < y", 30, &screen.cells());
    let texts: Vec<&str> = svg.lines().filter(|line| line.starts_with("<text")).collect();
    let wanted = [
        ("plain", 20, 54, 40, "a &lt;b&gt;"),
        ("plain", 76, 54, 8, "c"),
        ("red", 92, 54, 24, "red"),
        ("red bold", 124, 54, 32, "&amp; 漢"),
        ("dim", 28, 73, 24, "dim"),
    ];
    let wanted = wanted.map(|(class, x, y, width, text)| {
        let place = format!("x=\"{x}\" y=\"{y}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\"");
        format!("<text class=\"{class}\" {place}>{text}</text>")
    });
    assert_eq!(texts, wanted);
    assert!(svg.contains("<title id=\"title\">x &lt; y</title>"), "{svg}");
}

//! A screen as a picture: one SVG file without scripts and without fonts of its own. Each text states its width, so that
//! no font moves a column.

use std::fmt::Write;

use crate::support::screen::{Cell, Ink, Style, text};

/// The size of a cell, in pixels.
const CELL: (usize, usize) = (8, 19);
/// The distance from a cell's top to the line on which its text stands.
const BASELINE: usize = 14;
const MARGIN: usize = 20;
/// The height of the bar above the screen.
const BAR: usize = 30;

/// The colours of a terminal.
pub(super) struct Theme {
    pub(super) name: &'static str,
    paper: &'static str,
    plain: &'static str,
    dim: &'static str,
    red: &'static str,
    green: &'static str,
    yellow: &'static str,
    cyan: &'static str,
    /// The window's edge, which is no text.
    edge: &'static str,
}

pub(super) const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        paper: "#ffffff",
        plain: "#1f2328",
        dim: "#59636e",
        red: "#c21c2c",
        green: "#1a7f37",
        yellow: "#8a5d00",
        cyan: "#0f6e84",
        edge: "#d1d9e0",
    },
    Theme {
        name: "dark",
        paper: "#0d1117",
        plain: "#e6edf3",
        dim: "#9198a1",
        red: "#ff7b72",
        green: "#3fb950",
        yellow: "#d29922",
        cyan: "#56d4dd",
        edge: "#3d444d",
    },
];

impl Theme {
    fn inks(&self) -> [(&'static str, &'static str); 5] {
        [("dim", self.dim), ("red", self.red), ("green", self.green), ("yellow", self.yellow), ("cyan", self.cyan)]
    }
}

/// A picture of the rows of a screen.
pub(super) fn picture(title: &str, columns: usize, rows: &[&[Cell]], theme: &Theme) -> String {
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, BAR + rows.len() * CELL.1 + 2 * MARGIN - 8);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">{}</title>\n<style>\n\
         text {{ font: 13.3px ui-monospace, SFMono-Regular, Menlo, Consolas, \"Liberation Mono\", monospace; fill: {} }}\n\
         .bold {{ font-weight: 700 }}\n",
        escaped(title),
        theme.plain
    );
    for (name, colour) in theme.inks() {
        let _ = writeln!(svg, ".{name} {{ fill: {colour} }}");
    }
    let _ = writeln!(
        svg,
        "</style>\n<rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{}\" stroke=\"{}\"/>",
        width - 1,
        height - 1,
        theme.paper,
        theme.edge
    );
    for at in 0..3 {
        let _ = writeln!(svg, "<circle cx=\"{}\" cy=\"18\" r=\"5\" fill=\"{}\"/>", MARGIN + 5 + 17 * at, theme.edge);
    }
    for (at, row) in rows.iter().enumerate() {
        let y = BAR + MARGIN - 8 + at * CELL.1 + BASELINE;
        for (column, piece) in pieces(row) {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{y}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"{}>{}</text>",
                MARGIN + column * CELL.0,
                piece.len() * CELL.0,
                class(piece[0].style),
                escaped(&text(piece))
            );
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
        Ink::Plain => "",
        Ink::Red => "red",
        Ink::Green => "green",
        Ink::Yellow => "yellow",
        Ink::Cyan => "cyan",
    };
    let names = [if style.bold { "bold" } else { "" }, if style.dim { "dim" } else { "" }, ink];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The contrast of two colours such as `#1f2328`, from 1 to 21, as WCAG 2 defines it.
fn contrast(one: &str, other: &str) -> f64 {
    let part = |colour: &str, at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let light = |colour| 0.2126 * part(colour, 1) + 0.7152 * part(colour, 3) + 0.0722 * part(colour, 5) + 0.05;
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

#[test]
fn every_colour_of_a_text_can_be_read() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 0.01);
    for theme in THEMES {
        for (name, colour) in theme.inks().into_iter().chain([("plain", theme.plain)]) {
            // Level AA.
            let contrast = contrast(colour, theme.paper);
            assert!(contrast >= 4.5, "{name} on {}: {contrast:.2}", theme.name);
        }
    }
}

#[test]
fn a_text_has_its_place_its_width_and_its_style() {
    let mut screen = crate::support::screen::Screen::new(20);
    "a <b>  c \u{1b}[1;\u{1b}[0m".chars().take(9).for_each(|c| screen.take(c));
    "\u{1b}[31mred\u{1b}[1m & 漢\u{1b}[0m".chars().for_each(|c| screen.take(c));
    let svg = picture("x < y", 20, &screen.cells(), &THEMES[0]);
    let texts: Vec<&str> = svg.lines().filter(|line| line.starts_with("<text")).collect();
    let wanted = [
        ("20", "40", "", "a &lt;b&gt;"),
        ("76", "8", "", "c"),
        ("92", "24", " class=\"red\"", "red"),
        ("124", "32", " class=\"bold red\"", "&amp; 漢"),
    ];
    let wanted = wanted.map(|(x, width, class, text)| {
        format!(
            "<text x=\"{x}\" y=\"56\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\"{class}>{text}</text>"
        )
    });
    assert_eq!(texts, wanted);
    assert!(svg.contains("<title id=\"title\">x &lt; y</title>"), "{svg}");
}

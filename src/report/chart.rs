//! The two charts of a run as inline SVG: the tool calls over time, and the tokens over time. Styles decide the colors.

use super::html::{grouped, money, span};
use std::fmt::Write;

/// The maximum number of points and of bars. Above it, every second one is left out.
const POINTS: usize = 1024;
/// The width of a chart in its own units.
const WIDTH: f64 = 1000.0;

/// A sequence that stays short: when it is full, it keeps every second element.
#[derive(Debug)]
pub(super) struct Thinned<T> {
    kept: Vec<T>,
    every: usize,
    seen: usize,
}

impl<T> Default for Thinned<T> {
    fn default() -> Thinned<T> {
        Thinned { kept: Vec::new(), every: 1, seen: 0 }
    }
}

impl<T> Thinned<T> {
    pub(super) fn push(&mut self, element: T) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.every) {
            return;
        }
        if self.kept.len() == POINTS {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.every *= 2;
        }
        self.kept.push(element);
    }
}

/// A span of time of the run: a tool call, or the wait for an answer. Times in milliseconds since the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) lane: Lane,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Look,
    Change,
    Command,
    Other,
    Wait,
}

impl Lane {
    const ALL: [(Lane, &str, &str); 5] = [
        (Lane::Look, "look", "Read, search"),
        (Lane::Change, "change", "Edit"),
        (Lane::Command, "command", "Command"),
        (Lane::Other, "other", "Other tools"),
        (Lane::Wait, "wait", "Waiting for an answer"),
    ];

    pub(super) fn of(category: &str) -> Lane {
        match category {
            "read" | "search" => Lane::Look,
            "edit" | "delete" | "move" => Lane::Change,
            "execute" => Lane::Command,
            _ => Lane::Other,
        }
    }

    pub(super) fn class(self) -> &'static str {
        Lane::ALL.iter().find(|(lane, ..)| *lane == self).map_or("other", |(_, class, _)| class)
    }
}

/// The lanes of a run of `total` milliseconds. Empty without bars.
pub(super) fn lanes(bars: &Thinned<Bar>, total: u64) -> String {
    let total = bars.kept.iter().map(|bar| bar.to).max().unwrap_or_default().max(total).max(1);
    let mut html = String::new();
    for (lane, class, name) in Lane::ALL {
        let mine = bars.kept.iter().filter(|bar| bar.lane == lane);
        let mut svg = String::new();
        let mut busy = 0;
        for Bar { from, to, .. } in mine {
            busy += to.saturating_sub(*from);
            let x = WIDTH * *from as f64 / total as f64;
            let width = (WIDTH * to.saturating_sub(*from) as f64 / total as f64).max(3.0);
            let _ = write!(svg, "<rect x=\"{:.1}\" width=\"{width:.1}\" y=\"0\" height=\"12\"/>", x.min(WIDTH - width));
        }
        if svg.is_empty() {
            continue;
        }
        let _ = write!(
            html,
            "<div class=lane><span class=name>{name}</span><svg class=\"bars {class}\" viewBox=\"0 0 1000 12\" \
             preserveAspectRatio=\"none\" role=img aria-label=\"{name}: {busy}\">{svg}</svg><span class=sum>{busy}</span></div>",
            busy = span(busy),
        );
    }
    if html.is_empty() {
        return html;
    }
    format!(
        "<div class=lanes>{html}<div class=\"lane axis\"><span class=name></span><span class=ends><span>0</span>\
         <span>{}</span></span><span class=sum></span></div></div>",
        span(total)
    )
}

/// The usage so far at a moment of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// In milliseconds since the start.
    pub(super) at: u64,
    pub(super) tokens: u64,
    pub(super) cost: Option<f64>,
}

/// The tokens, and the cost where it is known, as steps over time. Empty with fewer than two points.
pub(super) fn usage(points: &Thinned<Used>, total: u64) -> String {
    let [.., last] = points.kept.as_slice() else { return String::new() };
    if points.kept.len() < 2 {
        return String::new();
    }
    let total = total.max(last.at).max(1);
    let most = points.kept.iter().map(|point| point.tokens).max().unwrap_or_default().max(1);
    let costs = points.kept.iter().filter_map(|point| point.cost).fold(0.0, f64::max);
    let tokens = steps(points.kept.iter().map(|point| (point.at, point.tokens as f64 / most as f64)), total);
    let mut svg = format!("<path class=area d=\"M0 100 {tokens} V100 Z\"/><path class=tokens d=\"M0 100 {tokens}\"/>");
    let mut key = format!("<span class=\"key tokens\">{} tokens</span>", grouped(last.tokens));
    if costs > 0.0 {
        let cost = steps(points.kept.iter().filter_map(|point| Some((point.at, point.cost? / costs))), total);
        let _ = write!(svg, "<path class=cost d=\"M0 100 {cost}\"/>");
        let _ = write!(key, "<span class=\"key cost\">{}</span>", money(costs));
    }
    format!(
        "<figure class=usage><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=img \
         aria-label=\"Tokens and cost over time\">{svg}</svg><div class=ends><span>0</span><span>{}</span></div>\
         <figcaption>{key}</figcaption></figure>",
        span(total)
    )
}

/// A line of steps. `points`: the time in milliseconds, and the height from 0 to 1.
fn steps(points: impl Iterator<Item = (u64, f64)>, total: u64) -> String {
    let mut path = String::new();
    for (at, height) in points {
        let (x, y) = (WIDTH * at as f64 / total as f64, 98.0 - 94.0 * height);
        let _ = write!(path, "H{x:.1} V{y:.1} ");
    }
    path + "H1000"
}

//! The page around the parts.

use super::dialogue::AgentDialogue;
use super::html::{Clipped, block, grouped, json, line, money, span, text};
use super::rows::{plan, row, row_of};
use super::run::{RunView, TimelineEntry, took};
use super::value::{list_of, readable, str_of};
use super::{Part, ReportPage, chart};
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use time::UtcDateTime;
use time::macros::format_description;

/// Nothing is fetched, no script runs, and no style but the page's own counts. Nothing can forbid a refresh; the
/// writer of [`super::html`] keeps every text of a frame from being an element.
const POLICY: &str =
    "default-src 'none'; style-src 'nonce-spektacular'; img-src data:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("style.css");

pub(super) fn page(report: &ReportPage) -> String {
    let title = match report.parts.as_slice() {
        [Part::Run(run)] => format!("{} · {}", agent(run), outcome(run).1),
        [Part::Recording(dialogue)] => format!("Recording · {}", line(&dialogue.driver)),
        parts => format!("{} runs", parts.len()),
    };
    let mut html = format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"{POLICY}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=color-scheme content=\"light dark\">\n<meta name=referrer content=no-referrer>\n\
         <title>{title}</title>\n<style nonce=spektacular>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    for part in &report.parts {
        match part {
            Part::Run(run) => html += &run_part(run),
            Part::Recording(dialogue) => html += &recording_part(dialogue),
        }
    }
    html += "<footer>\n";
    for note in &report.notes {
        let _ = writeln!(html, "<p class=bad>{}</p>", line(note));
    }
    let more = report.omitted_lines - report.notes.len() as u64;
    if more > 0 {
        let _ = writeln!(html, "<p class=bad>{} more lines could not be shown.</p>", grouped(more));
    }
    if report.room.omitted > 0 {
        let omitted = grouped(report.room.omitted);
        let _ = writeln!(html, "<p class=bad>The page is full: {omitted} further events are left out.</p>");
    }
    let _ = write!(
        html,
        "<p>Made by spektacular {}. Times are relative to the first frame.</p>\n</footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    html
}

fn agent(run: &RunView) -> String {
    let of = &run.started["agent"];
    match (str_of(of, "display_name"), str_of(of, "name")) {
        ("", "") => "Run".into(),
        ("", name) | (name, _) => line(name),
    }
}

/// The style and the word of the end.
fn outcome(run: &RunView) -> (&'static str, &'static str) {
    match run.end.as_ref().map(|(kind, _)| kind.as_str()) {
        Some("run.completed") => ("good", "completed"),
        Some("run.failed") => ("bad", "failed"),
        Some(_) => ("warn", "cancelled"),
        None => ("warn", "no end"),
    }
}

fn run_part(run: &RunView) -> String {
    let (class, word) = outcome(run);
    let mut html = format!(
        "<article>\n<header>\n<div class=top><span class=\"badge {class}\">{word}</span><h1>{}</h1></div>\n{}",
        agent(run),
        subtitle(run)
    );
    html += &tiles(run);
    html += "</header>\n";
    if let Some(prompt) = &run.prompt {
        let _ = writeln!(html, "<section><h2>Task</h2><div class=prompt>{}</div></section>", prompt.html());
    }
    html += &end(run);
    html += &phases(run);
    if !run.plan.is_empty() {
        let _ = writeln!(html, "<section><h2>Plan</h2>{}</section>", plan(&run.plan));
    }
    html += &files(run);
    let lanes = chart::lanes(&run.bars, total(run));
    let usage = chart::usage(&run.used, total(run));
    if !lanes.is_empty() || !usage.is_empty() {
        let _ = writeln!(html, "<section><h2>Time and tokens</h2>{lanes}{usage}</section>");
    }
    if !run.entries.is_empty() {
        html += "<section><h2>Timeline</h2>\n<ol class=timeline>\n";
        run.entries.iter().for_each(|one| html += &entry(one));
        html += "</ol></section>\n";
    }
    let settings = json("Configuration", &run.started["config"]) + &json("Metadata", &run.started["metadata"]);
    if !settings.is_empty() {
        let _ = writeln!(
            html,
            "<section><details class=sub><summary>Settings of the run</summary>{settings}</details></section>"
        );
    }
    html + "</article>\n"
}

fn subtitle(run: &RunView) -> String {
    let config = &run.started["config"];
    let version = [str_of(&run.session, "agent_version"), str_of(&run.started["agent"], "version")];
    let model = [str_of(&run.session, "model"), str_of(config, "model")];
    let workflow = &run.started["workflow"];
    let target = format!("{} {}", str_of(workflow, "name"), readable_or_empty(&workflow["target"]));
    let began = run.began.and_then(moment).unwrap_or_default();
    let session = str_of(&run.session, "session_id");
    let facts = [
        ("Workflow", target.trim()),
        ("Model", first(&model)),
        ("Version", first(&version)),
        ("Directory", str_of(config, "cwd")),
        ("Began", &began),
        ("Run", &run.run_id),
        ("Session", session),
    ];
    let mut html = String::from("<dl class=facts>");
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", line(value));
    }
    html + "</dl>\n"
}

fn readable_or_empty(value: &Value) -> String {
    if value.is_null() { String::new() } else { readable(value) }
}

fn first<'a>(texts: &[&'a str]) -> &'a str {
    texts.iter().find(|text| !text.is_empty()).unwrap_or(&"")
}

/// `ms`: since 1970.
fn moment(ms: i64) -> Option<String> {
    let form = format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");
    UtcDateTime::from_unix_timestamp(ms / 1_000).ok()?.format(form).ok()
}

/// In milliseconds.
fn total(run: &RunView) -> u64 {
    run.end.as_ref().and_then(|(_, payload)| payload["duration_ms"].as_u64()).unwrap_or(run.last).max(run.last)
}

fn tiles(run: &RunView) -> String {
    let usage = run.end.as_ref().map(|(_, payload)| &payload["usage"]).filter(|usage| usage.is_object());
    let usage = usage.unwrap_or(&run.usage);
    let tokens = |key: &str| usage[key].as_u64().map(grouped);
    let cached = tokens("cached_input_tokens").filter(|count| count != "0").map(|count| format!("{count} cached"));
    let files = run.end.as_ref().map_or(&run.files[..], |(_, payload)| list_of(payload, "artifacts"));
    let files = one_per_path(files).len();
    let count = |count: u64| (count > 0).then(|| grouped(count));
    let tiles = [
        ("Duration", Some(span(total(run))), None),
        ("Tool calls", count(run.calls), None),
        ("Questions", count(run.questions), None),
        ("Files", count(files as u64), None),
        ("Tokens in", tokens("input_tokens"), cached),
        ("Tokens out", tokens("output_tokens"), None),
        ("Cost", usage["cost_usd"].as_f64().map(money), None),
        ("Warnings", count(run.warnings), None),
    ];
    let mut html = String::from("<div class=tiles>");
    for (name, value, more) in tiles {
        let Some(value) = value else { continue };
        let more = more.map(|more| format!("<small>{more}</small>")).unwrap_or_default();
        let _ = write!(html, "<div><span>{name}</span><b>{value}</b>{more}</div>");
    }
    html + "</div>\n"
}

fn end(run: &RunView) -> String {
    let Some((kind, payload)) = &run.end else {
        return "<section><h2>End</h2><p class=\"callout warn\">The frames stop before the end of the run.</p></section>\n".into();
    };
    let mut html = String::from("<section><h2>Result</h2>");
    match kind.as_str() {
        "run.completed" => {
            html += &format!("<div class=result>{}</div>", text(str_of(payload, "text")));
            html += &json("Structured output", &payload["structured_output"]);
            if payload["stop_reason"] != "end_turn" {
                html += &format!("<p>Stop reason: {}</p>", line(&readable(&payload["stop_reason"])));
            }
        }
        "run.failed" => {
            let retry = if payload["retryable"] == true { " <small>A retry may help.</small>" } else { "" };
            html += &format!(
                "<div class=\"callout bad\"><b>{}</b><br>{}{retry}</div>",
                line(str_of(payload, "code")),
                text(str_of(payload, "message"))
            );
            html += &detail(&payload["detail"]);
        }
        _ => {
            let reason = first(&[str_of(payload, "reason"), "No reason was given."]);
            let source = line(str_of(payload, "source"));
            html += &format!("<div class=\"callout warn\"><b>Cancelled by {source}</b><br>{}</div>", text(reason));
        }
    }
    for (key, title) in [("denied", "Denied, because nobody answered"), ("unanswered", "Left without an answer")] {
        let all = list_of(&payload[key], "first");
        if !all.is_empty() {
            let _ = write!(html, "<h3>{title} ({})</h3><ul>", readable(&payload[key]["count"]));
            for one in all {
                let _ = write!(
                    html,
                    "<li>{} <small>{}</small></li>",
                    line(str_of(one, "text")),
                    line(str_of(one, "category"))
                );
            }
            html += "</ul>";
        }
    }
    if payload["truncated"] == true {
        html += "<p class=cut>The frame was cut to its limit.</p>";
    }
    html + "</section>\n"
}

fn detail(detail: &Value) -> String {
    let Some(fields) = detail.as_object() else { return String::new() };
    let shown = fields.iter().map(|(name, value)| match value.as_str() {
        Some(said) => block(&line(&name.replace('_', " ")), "out", &Clipped::new(said)),
        None => json(&line(&name.replace('_', " ")), value),
    });
    shown.collect()
}

fn phases(run: &RunView) -> String {
    let workflow = run.end.as_ref().map_or(&Value::Null, |(_, payload)| &payload["workflow"]);
    let reports = list_of(workflow, "phases");
    let phases = if reports.is_empty() { run.phases.as_slice() } else { reports };
    if phases.is_empty() {
        return json_section("Rules that the file breaks", &workflow["violations"]);
    }
    let mut html = String::from(
        "<section><h2>Phases</h2><div class=wide><table><thead><tr><th>Phase</th><th>Title</th>\
        <th>State</th><th>Attempts</th><th>Time</th><th>Cost</th>",
    );
    let commit = |phase: &Value| str_of(phase, "commit").chars().take(10).collect::<String>();
    let has_commits = phases.iter().any(|phase| !commit(phase).is_empty());
    html += if has_commits { "<th>Commit</th></tr></thead><tbody>" } else { "</tr></thead><tbody>" };
    for phase in phases {
        let id = first(&[str_of(phase, "id"), str_of(phase, "phase")]);
        let attempts = phase["attempts"].as_u64().or(phase["attempt"].as_u64()).map(grouped).unwrap_or_default();
        let cost = phase["cost_usd"].as_f64().map(money).unwrap_or_default();
        let commit =
            if has_commits { format!("<td><code>{}</code></td>", line(&commit(phase))) } else { String::new() };
        let state = str_of(phase, "state");
        let class = match state {
            "done" | "passed" => "good",
            "failed" => "bad",
            _ => "",
        };
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td class=\"{class}\">{}</td><td class=n>{attempts}</td><td class=n>{}</td>\
             <td class=n>{cost}</td>{commit}</tr>",
            line(id),
            line(str_of(phase, "title")),
            line(state),
            took(phase).unwrap_or_default(),
        );
    }
    html + "</tbody></table></div></section>\n" + &json_section("Rules that the file breaks", &workflow["violations"])
}

fn json_section(title: &str, value: &Value) -> String {
    match json("", value) {
        empty if empty.is_empty() => empty,
        body => format!("<section><h2>{title}</h2>{body}</section>\n"),
    }
}

/// The last report about each file, in the order of the first ones, with the action of all together.
fn one_per_path(files: &[Value]) -> Vec<(&Value, &str)> {
    let mut places = HashMap::new();
    let mut all: Vec<(&Value, &str)> = Vec::new();
    for file in files {
        let action = str_of(file, "action");
        match places.entry(str_of(file, "path")) {
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push((file, action));
            }
            Entry::Occupied(place) => {
                let (last, whole) = &mut all[*place.get()];
                *last = file;
                if (*whole, action) != ("created", "modified") {
                    *whole = action;
                }
            }
        }
    }
    all
}

fn files(run: &RunView) -> String {
    let reported = run.end.as_ref().map(|(_, payload)| list_of(payload, "artifacts")).unwrap_or_default();
    let files = if run.files.is_empty() { reported } else { run.files.as_slice() };
    if files.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section><h2>Files</h2><ul class=files>");
    for (file, action) in one_per_path(files) {
        let size = file["size_bytes"].as_u64().map(|bytes| format!("<small>{} bytes</small>", grouped(bytes)));
        let _ = write!(
            html,
            "<li><span class=\"action {}\">{}</span><code>{}</code>{}</li>",
            match action {
                "created" => "good",
                "deleted" => "bad",
                _ => "",
            },
            line(action),
            line(str_of(file, "path")),
            size.unwrap_or_default()
        );
    }
    html + "</ul></section>\n"
}

fn entry(entry: &TimelineEntry) -> String {
    let TimelineEntry { at, class, mark, title, facts, body, said, nested } = entry;
    let facts: String = facts.iter().map(|fact| format!("<span class=fact>{fact}</span>")).collect();
    let head = |title: &str| {
        format!("<span class=mark>{mark}</span><span class=line><span class=title>{title}</span>{facts}</span>")
    };
    match class.as_str() {
        "text" => {
            let html = format!("<span class=mark>{mark}</span><div class=said>{}</div>{facts}", said.html());
            row_of(Some(*at), class, &html, *nested)
        }
        "reasoning" => {
            let body = format!("<div class=said>{}</div>", said.html());
            row(Some(*at), class, &head(&said.first_line()), &body, *nested)
        }
        _ => row(Some(*at), class, &head(title), body, *nested),
    }
}

fn recording_part(dialogue: &AgentDialogue) -> String {
    let (class, word) = match &dialogue.end {
        Some(end) if end.ends_with("code 0") => ("good", "exit 0"),
        Some(_) => ("bad", "ended"),
        None => ("warn", "no end"),
    };
    let mut html = format!(
        "<article>\n<header>\n<div class=top><span class=\"badge {class}\">{word}</span><h1>Recording: {}</h1></div>\n\
         <dl class=facts>{}</dl>\n<div class=tiles><div><span>Duration</span><b>{}</b></div><div><span>Lines</span>\
         <b>{}</b></div></div>\n</header>\n",
        line(&dialogue.driver),
        dialogue.facts,
        dialogue.duration(),
        grouped(dialogue.lines)
    );
    if let Some(end) = &dialogue.end {
        let _ = writeln!(html, "<section><h2>End</h2><p>{end}.</p></section>");
    }
    let _ =
        write!(html, "<section><h2>Dialogue</h2>\n<ol class=timeline>\n{}</ol></section>\n", dialogue.entries.concat());
    html + "</article>\n"
}

//! Tests of `report` and `--report`: a run as one page of HTML.

use crate::length::by_length;
use crate::support::Case;
use crate::support::procs::peak_kib;
use serde_json::{Value, json};
use spektacular::protocol::outbound::ProgressKind;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const POLICY: &str = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'nonce-spektacular'; img-src data:";

/// A frame of a run, `second` seconds after its start.
fn frame(second: u64, kind: &str, payload: &Value) -> String {
    let ts = format!("2026-02-20T10:{:02}:{:02}.000Z", second / 60, second % 60);
    json!({"v": "1", "id": "msg_1", "ts": ts, "type": kind, "run_id": "r", "payload": payload}).to_string() + "\n"
}

/// A folder with a file of this content.
fn with_frames(content: &str) -> Case {
    Case::new().file("work/run.jsonl", content)
}

#[track_caller]
fn page(content: &str) -> String {
    let did = with_frames(content).run(&["report", "run.jsonl"]);
    assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{}", did.out);
    did.out
}

/// The text as the page shows it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[track_caller]
fn is_complete(page: &str) {
    assert!(page.starts_with("<!doctype html>\n<html lang=en>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains(POLICY), "{page}");
    for never in ["<script", "<img", "<link", "<iframe", "<form", "@import"] {
        assert!(!page.contains(never), "{never}: {page}");
    }
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path)
}

#[test]
fn the_page_of_a_run_of_the_demo_agent_is_as_expected() {
    let frames = fs::read_to_string(testdata("report/demo.jsonl")).unwrap();
    let page = page(&frames);
    is_complete(&page);
    let page = page.replace(concat!("spektacular ", env!("CARGO_PKG_VERSION")), "spektacular [VERSION]");
    let golden = testdata("report/demo.html");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&golden, &page).unwrap();
    }
    let wanted = fs::read_to_string(&golden).unwrap();
    for (is, must_be) in page.lines().zip(wanted.lines()) {
        assert_eq!(is, must_be, "UPDATE_GOLDEN=1 cargo test --test suite -- report rewrites testdata/report/demo.html");
    }
    assert_eq!(page.lines().count(), wanted.lines().count());
}

/// A text that would be code if any place forgot to escape it.
const HOSTILE: &str = "</script></style></pre><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' --> &lt; \
                       \u{202e}gpj.exe\u{202c}\u{0}\u{1b}[31m\u{7}\u{2028}end";

/// Replaces each text of a frame, but for the words that select how it is shown.
fn hostile(value: &mut Value, key: &str) {
    const KEPT: &[&str] =
        &["kind", "ts", "type", "state", "category", "run_id", "message_id", "call_id", "question_id"];
    match value {
        Value::String(text) if !KEPT.contains(&key) => *text = HOSTILE.into(),
        Value::Array(list) => list.iter_mut().for_each(|one| hostile(one, key)),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| hostile(value, key)),
        _ => {}
    }
}

#[test]
fn a_hostile_text_stays_text_in_every_field() {
    let mut frames = String::new();
    let files = cases("expected.jsonl");
    for file in &files {
        for line in fs::read_to_string(file).unwrap().lines() {
            let mut frame: Value = serde_json::from_str(line).unwrap();
            hostile(&mut frame, "");
            let _ = writeln!(frames, "{frame}");
        }
    }
    let page = page(&frames);
    is_complete(&page);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;&quot; onload=&#39;x&#39;"), "the text is there");
    for never in ["\u{202e}", "\u{0}", "\u{1b}", "\u{7}", "\u{2028}", "<script", "onload='"] {
        assert!(!page.contains(never), "{never:?}");
    }
    // Every element that a text could close too early is closed as often as it is opened.
    for name in ["pre", "div", "span", "details", "section", "ul", "ol", "li", "svg", "b", "code", "style"] {
        let (open, close) = (opened(&page, name), page.matches(&format!("</{name}>")).count());
        assert_eq!(open, close, "{name}");
    }
}

fn opened(page: &str, name: &str) -> usize {
    [" ", ">"].iter().map(|end| page.matches(&format!("<{name}{end}")).count()).sum()
}

/// The files of this name in the recorded cases of all agents.
#[track_caller]
fn cases(name: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["claude", "codex", "gemini", "opencode", "lines"]
        .iter()
        .flat_map(|agent| fs::read_dir(testdata(agent)).unwrap())
        .map(|case| case.unwrap().path().join(name))
        .filter(|file| file.exists())
        .collect();
    found.sort();
    assert!(found.len() > 20, "{found:?}");
    found
}

#[test]
fn the_frames_of_every_recorded_case_are_on_its_page() {
    for file in cases("expected.jsonl") {
        let did = Case::new().run(&["report", file.to_str().unwrap()]);
        assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{}", file.display());
        is_complete(&did.out.replace("http://127.0.0.1", ""));
        let shows = |text: &str| {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            // The page shows the state of a call beside its title.
            let ends = [": failed", ": denied", ": cancelled"];
            let first = ends.iter().find_map(|end| first.strip_suffix(end)).unwrap_or(first);
            let begin: String = first.trim().chars().take(40).collect();
            assert!(did.out.contains(&escaped(&begin)), "{}: {text}\n{}", file.display(), did.out);
        };
        for line in fs::read_to_string(&file).unwrap().lines() {
            let frame: Value = serde_json::from_str(line).unwrap();
            let payload = &frame["payload"];
            let text = payload["text"].as_str().unwrap_or_default();
            match (frame["type"].as_str().unwrap(), payload["kind"].as_str()) {
                ("run.progress", Some("text" | "tool" | "warning" | "phase"))
                | ("run.question" | "run.completed", _) => {
                    shows(text);
                }
                ("run.artifact", _) => shows(payload["path"].as_str().unwrap()),
                ("run.failed", _) => {
                    shows(payload["code"].as_str().unwrap());
                    shows(payload["message"].as_str().unwrap());
                }
                ("run.cancelled", _) => shows(payload["source"].as_str().unwrap()),
                _ => {}
            }
        }
        assert!(!did.out.contains("<li class=\"unknown"), "{}", file.display());
    }
}

#[test]
fn every_kind_of_progress_has_a_form_and_an_unknown_one_is_shown_as_it_is() {
    for kind in ProgressKind::NAMES {
        let page = page(&frame(0, "run.progress", &json!({"kind": kind, "text": "something"})));
        assert!(!page.contains("<li class=\"unknown"), "{kind}: {page}");
    }
    let rewound = json!({"kind": "checkpoint", "state": "restored", "text": "1 file was put back to p_1"});
    assert!(page(&frame(0, "run.progress", &rewound)).contains("1 file was put back to p_1"));
    let later = json!({"kind": "of_tomorrow", "text": "A text", "more": {"depth": 7}});
    let page = page(&(frame(0, "run.progress", &later) + &frame(1, "run.novel", &json!({"text": "Another text"}))));
    for part in ["of_tomorrow", "A text", "&quot;depth&quot;: 7", "run.novel Another text"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// A later attempt changes the files of an earlier one.
#[test]
fn a_file_has_one_row_and_phases_without_commits_have_no_column_for_them() {
    let changes = [("a", "created"), ("b", "modified"), ("a", "modified"), ("b", "deleted")];
    let artifact = |(path, action): &(&str, &str)| json!({"path": path, "action": action, "size_bytes": 7});
    let artifacts: Vec<Value> = changes.iter().map(artifact).collect();
    let frames: String = artifacts.iter().map(|artifact| frame(1, "run.artifact", artifact)).collect();
    let ended = |commit: Value| {
        let phases = json!([{"id": "P1", "title": "One", "state": "passed", "attempts": 2, "commit": commit}]);
        let end = json!({"text": "done", "artifacts": artifacts, "workflow": {"phases": phases, "violations": []}});
        page(&(frames.clone() + &frame(2, "run.completed", &end)))
    };
    let plain = ended(Value::Null);
    let row = |class: &str, action: &str, path: &str| {
        format!("<li><span class=\"action {class}\">{action}</span><code>{path}</code><small>7 bytes</small></li>")
    };
    assert!(plain.contains(&(row("good", "created", "a") + &row("bad", "deleted", "b") + "</ul>")), "{plain}");
    assert!(plain.contains("<span>Files</span><b>2</b>") && !plain.contains("Commit</th>"), "{plain}");
    let committed = ended("0123456789abcdef".into());
    assert!(committed.contains("<th>Commit</th>") && committed.contains("<code>0123456789</code>"), "{committed}");
}

#[test]
fn every_recording_becomes_a_page() {
    for file in cases("recording.jsonl") {
        let did = Case::new().run(&["report", file.to_str().unwrap()]);
        assert_eq!((did.code, did.err.as_str()), (Some(0), ""), "{}", file.display());
        assert!(did.out.contains("<h2>Dialogue</h2>") && did.out.contains(POLICY), "{}", file.display());
        assert!(!did.out.contains("class=bad>Line"), "{}", file.display());
    }
}

#[test]
fn a_broken_line_is_noted_with_its_number() {
    let good = frame(0, "run.progress", &json!({"kind": "status", "text": "It works", "status": "running"}));
    let page = page(&format!("{good}{{broken\n[1]\n\n{{\"a\":1}}\n{good}"));
    for note in [
        "Line 2 of run.jsonl is not a JSON object.",
        "Line 3 of run.jsonl is not a JSON object.",
        "Line 5 of run.jsonl is neither a frame nor part of a recording.",
    ] {
        assert!(page.contains(note), "{note}: {page}");
    }
    assert_eq!(page.matches("It works").count(), 2);
    assert!(page.contains("The frames stop before the end of the run."), "{page}");
}

#[test]
fn a_file_without_a_frame_is_refused_by_its_name() {
    let refused = with_frames("no\nframe\n").run(&["report", "run.jsonl"]);
    let why = refused.refused(2);
    assert!(
        why.contains("run.jsonl contains no frames") && why.contains("Line 1 of run.jsonl is not a JSON object"),
        "{why}"
    );
    assert!(with_frames("").run(&["report", "run.jsonl"]).refused(2).contains("the file is empty"));
    let case = Case::new();
    assert!(case.run(&["report", "missing.jsonl"]).refused(2).contains("missing.jsonl: no such file."));
    assert!(case.run(&["report", "."]).refused(2).contains("this is a directory, not a file"));
    assert!(case.run(&["report"]).refused(2).contains("Missing FILE"));
}

#[test]
fn the_page_goes_to_a_file_that_is_replaced_only_by_force() {
    let case =
        Case::new().file("work/run.jsonl", &frame(0, "run.cancelled", &json!({"source": "signal", "reason": null})));
    let did = case.run(&["report", "run.jsonl", "-o", "run.html"]);
    assert_eq!(
        (did.code, did.out.as_str(), did.err.as_str()),
        (Some(0), "", "spektacular: the report is in run.html\n")
    );
    let page = fs::read_to_string(case.work().join("run.html")).unwrap();
    assert!(page.contains("Cancelled by signal"), "{page}");
    assert!(case.run(&["report", "run.jsonl", "-o", "run.html"]).refused(2).contains("Add --force"));
    assert_eq!(case.run(&["report", "run.jsonl", "-o", "run.html", "--force"]).code, Some(0));
    // Two runs on one page.
    let both = case.run(&["report", "run.jsonl", "run.jsonl"]);
    assert_eq!(both.out.matches("<article>").count(), 2, "{both:?}");
}

#[test]
fn a_message_in_pieces_is_one_entry_and_a_long_one_is_cut() {
    let piece = |text: &str, done: bool| {
        frame(0, "run.progress", &json!({"kind": "text", "text": text, "message_id": "m_1", "done": done}))
    };
    let page_of_two = page(&(piece("One ", false) + &piece("message.", true)));
    assert!(page_of_two.contains("<div class=said>One message.</div>"), "{page_of_two}");
    let long = page(&(piece(&"x".repeat(60 << 10), false) + &piece(&"x".repeat(10 << 10), true)));
    assert!(long.contains("<span class=cut>6,144 bytes omitted</span>"));
    assert_eq!(long.matches('x').count() - page_of_two.matches('x').count(), 64 << 10);
}

#[test]
fn a_huge_input_makes_a_bounded_page_in_bounded_memory() {
    let text = "y".repeat(60 << 10);
    let mut frames = String::new();
    for _ in 0..by_length(400, 1_000) {
        frames += &frame(0, "run.progress", &json!({"kind": "text", "text": text, "message_id": "m", "done": true}));
    }
    frames += &frame(9, "run.completed", &json!({"text": "The end of it.", "stop_reason": "end_turn"}));
    let case = Case::new().file("work/run.jsonl", &frames);
    let mut child = case.other("work", &["report", "run.jsonl", "-o", "run.html"]).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_kib(child.id()));
    }
    let page = fs::read_to_string(case.work().join("run.html")).unwrap();
    assert!(page.contains("The page is full") && page.contains("The end of it."));
    assert!((16 << 20..18 << 20).contains(&page.len()), "{}", page.len());
    assert!(peak < 128 << 10, "{peak} KiB");
}

#[test]
fn large_frames_of_many_runs_take_bounded_memory() {
    let large = "x".repeat(4 << 20);
    let (mut frames, of) = (String::new(), |kind: &str, run: usize, payload: &Value| {
        json!({"v": "1", "type": kind, "run_id": format!("r{run}"), "payload": payload}).to_string() + "\n"
    });
    for run in 0..16 {
        frames += &of("run.started", run, &json!({"metadata": {"note": large}}));
        frames += &of("run.artifact", run, &json!({"path": large, "action": "created"}));
        frames += &of("run.completed", run, &json!({"text": format!("The end of run {run}.")}));
    }
    let case = with_frames(&frames);
    let mut child = case.other("work", &["report", "run.jsonl", "-o", "run.html"]).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_kib(child.id()));
    }
    let page = fs::read_to_string(case.work().join("run.html")).unwrap();
    assert!(page.contains("The page is full") && (0..16).all(|run| page.contains(&format!("The end of run {run}."))));
    // Half of what the frames take.
    assert!(peak < 64 << 10, "{peak} KiB");
}

#[test]
fn a_run_writes_its_report_however_it_ends() {
    for (agent, code, word) in [
        ("demo", 0, "the greeting is in hello.md"),
        ("demo:crash", 1, "agent_exited"),
        ("demo:error-429", 1, "rate_limited"),
    ] {
        for output in ["json", "cli"] {
            let case = Case::new();
            let args =
                ["adhoc", "-a", agent, "--yes", "--output", output, "--progress", "full", "--report", "run.html"];
            let did = case.run(&[&args[..], &["--prompt", "Say <hello> & go"]].concat());
            assert_eq!(did.code, Some(code), "{did:?}");
            let page = fs::read_to_string(case.work().join("run.html")).unwrap();
            is_complete(&page);
            assert!(page.contains("Say &lt;hello&gt; &amp; go"), "{page}");
            assert!(page.contains(word), "{agent} {output}: {page}");
            assert!(!did.out.contains("run.html"), "the report is not the agent's work: {did:?}");
        }
    }
}

#[test]
fn the_frames_alone_show_each_answer() {
    let question = |id: &str| frame(0, "run.question", &json!({"question_id": id, "kind": "text", "text": "Which?"}));
    let resolved = |id: &str, why: &str, value: Value| {
        let payload = json!({"kind": "question_resolved", "question_id": id, "resolution": why, "value": value,
            "used_default": why == "timeout", "text": format!("Which?: {why}")});
        frame(1, "run.progress", &payload)
    };
    let answer = |said: &str| format!("<p class=answer>Answer: <b>{said}</b></p>");
    for (why, value, said) in [
        ("answered", json!("<Oslo>"), "&lt;Oslo&gt;"),
        ("answered", json!(["a", "b"]), "a, b"),
        ("answered", json!(false), "false"),
        ("timeout", json!("Rome"), "Rome"),
    ] {
        let asked = page(&(question("q") + &resolved("q", why, value.clone())));
        assert!(asked.contains(&answer(said)), "{asked}");
        let never_asked = page(&resolved("q", "headless", value));
        assert!(never_asked.contains(&answer(said)), "{never_asked}");
    }
    // The orchestrator's message and the resolution are one answer.
    let sent = frame(1, "run.input", &json!({"question_id": "q", "value": "Oslo"}));
    let twice = page(&(question("q") + &sent + &resolved("q", "answered", json!("Oslo"))));
    assert_eq!(twice.matches(&answer("Oslo")).count(), 1, "{twice}");
}

#[test]
fn each_prompt_of_a_conversation_is_in_its_report() {
    let mut session = Case::new().args(&["--report", "run.html"]).spawn();
    let start = json!({"agent": "demo", "prompt": "The <first> task", "conversation": true,
        "permissions": "allow", "interactive": false, "secrets": ["hunter2-hunter2"]});
    session.start(start);
    session.until_progress("turn");
    session.send("run.input", json!({"prompt": "And <now> hunter2-hunter2?"}));
    session.until_progress("turn");
    session.send("run.input", json!({"end": true}));
    let ended = session.finish();
    ended.completed();
    let page = fs::read_to_string(ended.case().work().join("run.html")).unwrap();
    for said in ["The &lt;first&gt; task", "And &lt;now&gt; [redacted]?"] {
        assert_eq!(page.matches(said).count(), 1, "{said}: {page}");
    }
}

#[test]
fn the_report_of_spec_has_its_task() {
    let case = Case::new();
    let args = ["spec", "-a", "demo", "--yes", "--output", "json", "--report", "run.html", "Greet <every> user"];
    let did = case.run(&args);
    assert_eq!(did.code, Some(0), "{did:?}");
    let page = fs::read_to_string(case.work().join("run.html")).unwrap();
    assert!(page.contains("<h2>Task</h2><div class=prompt>Greet &lt;every&gt; user</div>"), "{page}");
}

#[test]
fn a_report_that_cannot_be_written_fails_before_the_agent_starts() {
    let case = Case::new();
    let args = ["adhoc", "-a", "demo", "--yes", "--output", "json", "--report", "missing/run.html", "--prompt", "go"];
    let did = case.run(&args);
    assert_eq!(did.code, Some(2), "{did:?}");
    assert!(did.out.contains("--report: the file cannot be written") && did.out.contains("run.failed"), "{did:?}");
    assert!(!case.work().join("hello.md").exists());
}

#[test]
fn a_cancelled_run_and_its_secret_are_reported() {
    let mut session = Case::new().args(&["--report", "run.html"]).spawn();
    session.start(json!({"agent": "demo:hang", "prompt": "Use hunter2-hunter2 now", "secrets": ["hunter2-hunter2"]}));
    session.until("run.started");
    session.cancel();
    let ended = session.finish();
    ended.cancelled();
    let page = fs::read_to_string(ended.case().work().join("run.html")).unwrap();
    assert!(page.contains("Use [redacted] now") && page.contains("enough"), "{page}");
    assert!(!page.contains("hunter2"), "{page}");
}

/// The pointers to all scalars in a value.
fn scalars(value: &Value, at: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, inner)| (name.clone(), inner)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, inner)| (at.to_string(), inner)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return vec![at.to_owned()],
    };
    inner.into_iter().flat_map(|(name, inner)| scalars(inner, &format!("{at}/{name}"))).collect()
}

/// Whatever a frame holds, and of whatever type, stays text.
#[test]
fn no_value_of_a_frame_becomes_html() {
    let mark = json!("<b id=forged>");
    let denied = json!({"count": 2, "first": [{"category": "edit", "text": "Edit a"}]});
    let end = json!({"session_id": "s", "text": "Done", "structured_output": null, "stop_reason": "end_turn",
        "denied": denied, "unanswered": denied, "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": 0.1},
        "duration_ms": 5, "artifacts": [{"path": "a", "action": "created"}], "completion_detected": false});
    let failed = json!({"code": "timeout", "message": "Late", "retryable": true, "detail": {"http_status": 500}});
    let cancelled = json!({"reason": "r", "source": "signal"});
    let tool = json!({"kind": "tool", "text": "Run ls", "call_id": "c", "category": "execute", "state": "completed",
        "name": "bash", "exit_code": 1, "duration_ms": 3, "input": {"command": "ls"}, "output": "x",
        "locations": [{"path": "a", "line": 1}], "diff": [{"path": "a", "old": "1", "new": "2"}]});
    let question = json!({"question_id": "q", "purpose": "permission", "kind": "select", "text": "Allow?",
        "options": [{"value": "a", "label": "A", "description": "d"}], "default": "a", "validation": {"min": 1},
        "subject": {"category": "edit", "title": "t", "detail": "d", "call_id": "c"}});
    let resolved = json!({"kind": "question_resolved", "question_id": "q", "resolution": "answered", "value": "deny",
        "used_default": false, "text": "t", "subject": {"category": "edit", "title": "t", "call_id": "c"}});
    let turn = json!({"kind": "turn", "turn": 1, "outcome": "failed", "text": "t",
        "failure": {"code": "c", "message": "m"}, "usage": {"input_tokens": 1, "output_tokens": 2}});
    let plan = json!({"kind": "plan", "text": "t", "entries": [{"text": "e", "status": "pending"}]});
    let mut content = String::new();
    let mut count = 0;
    for (kind, payload) in [
        ("run.completed", &end),
        ("run.failed", &failed),
        ("run.cancelled", &cancelled),
        ("run.progress", &tool),
        ("run.question", &question),
        ("run.progress", &resolved),
        ("run.progress", &turn),
        ("run.progress", &plan),
    ] {
        for scalar in scalars(payload, "") {
            let mut changed = payload.clone();
            *changed.pointer_mut(&scalar).unwrap() = mark.clone();
            let started = json!({"agent": {"name": "a", "display_name": "A", "version": "1"}, "config": {}});
            content += &frame(0, "run.started", &started);
            content += &frame(1, kind, &changed);
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
    let page = page(&content);
    assert!(!page.contains("<b id=forged>"), "{}", &page[page.find("<b id=forged>").unwrap() - 200..]);
    assert!(page.contains("&lt;b id=forged&gt;"), "the values are shown");
}

//! The cleaner, the redactor and the search for markers; answers, configuration files and recordings.

use super::input::{Input, from_text, text, texts};
use super::playback::case;
use super::playback::world::{Frame, World, exited};
use super::rng::Rng;
use super::round::{Checked, Target};
use serde_json::{Value, json};
use spektacular::agent::registry::Agents;
use spektacular::clean::{Cleaner, one_line, whole};
use spektacular::config::{self, Places, Which};
use spektacular::engine::Script;
use spektacular::protocol::question::{Answer, AnswerInput, Ask, Choice, Choices, Kind, PathFact, Validation, check};
use spektacular::protocol::request::Options;
use spektacular::protocol::text::Text;
use spektacular::protocol::words::{Level, Purpose};
use spektacular::recording::Recording;
use spektacular::redact::{MASK, Redactor, Stream};
use std::fs;

fn target(name: &'static str, cases: u64, seeds: fn() -> Vec<Input>, check: fn(&Input) -> Checked) -> Target {
    Target { name, cases, seeds, words: &[], check, headed: false }
}

fn hold(condition: bool, why: &str) -> Checked {
    if condition { Ok(()) } else { Err(why.into()) }
}

/// A few texts of every kind that agents write.
fn spoken() -> Vec<Input> {
    let recorded = texts("expected.jsonl");
    let strange = "a\u{1b}[31mb\u{1b}[0m\r\nc\u{1b}]0;t\u{7}d\u{9b}1mé\u{202e}\u{feff}\n```\n<!--QUESTION:x-->\n```";
    recorded.iter().step_by(8).map(String::as_str).chain([strange]).map(from_text).collect()
}

#[test]
fn cleaner() {
    target("cleaner", 500, spoken, |input| {
        let text = text(input);
        let clean = whole(&text).into_owned();
        let mut rng = Rng::of(text.as_bytes());
        let mut cleaner = Cleaner::default();
        let mut joined: String = rng.pieces(&text).into_iter().map(|piece| cleaner.push(piece).into_owned()).collect();
        joined.push_str(cleaner.finish());
        hold(joined == clean, "pieces give another text than the whole")?;
        let fits = |c: char| !c.is_control() || c == '\n' || c == '\t';
        hold(clean.chars().all(fits), "a control character is left")?;
        let turns = ['\u{202a}', '\u{202b}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{200f}'];
        hold(!clean.contains(turns), "a character is left that turns the direction of text")?;
        hold(whole(&clean) == clean, "a second pass changes something")?;
        hold(!one_line(&text).contains('\n'), "one line has two")
    })
    .round();
}

/// Secrets, a blank line, and a text that contains them in several forms.
fn hidden() -> Vec<Input> {
    let secrets = ["hunter2-Zq7731/x+y", "pa\"ss\\w0rd/77", "abcdabcd"];
    let forms = |text: &str| {
        let json = json!(text).to_string();
        let once = json[1..json.len() - 1].to_owned();
        format!("{text} {once} {} x{text}{text}y\u{1b}[1m{text}", json!(once))
    };
    let all: Vec<String> = secrets.iter().map(|secret| forms(secret)).collect();
    let tokens = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 Authorization: Bearer abcdefghijklmnopqrst \
        https://user:pass@example.org/ ghp_abcdefghijklmnopqrstuvwxyz0123456789 AKIAABCDEFGHIJKLMNOP \
        -----BEGIN RSA PRIVATE KEY-----\\nMIIEow\\n-----END RSA PRIVATE KEY-----";
    vec![
        from_text(&format!("{}\n\n{}\n{tokens}", secrets.join("\n"), all.join("\n"))),
        from_text(&format!("abcdefgh\nbcdefghi\n\nabcdefghi {tokens}[redacted][redac")),
        from_text(&format!("\n{tokens}")),
    ]
}

#[test]
fn redactor() {
    target("redactor", 200, hidden, |input| {
        let text = text(input);
        let (secrets, text) = text.split_once("\n\n").unwrap_or((&text, &text));
        let secrets: Vec<&str> = secrets.lines().take(20).collect();
        let mut rng = Rng::of(text.as_bytes());
        for cleans in [false, true] {
            let mut redactor = Redactor::new();
            redactor.add_all(secrets.iter().copied());
            if cleans {
                redactor.clean_first();
            }
            let clean = redactor.redact(text).into_owned();
            let mut stream = Stream::default();
            let pieces = rng.pieces(text);
            let mut joined: String =
                pieces.into_iter().map(|piece| stream.push(&redactor, piece).into_owned()).collect();
            joined.push_str(&stream.finish(&redactor));
            hold(joined == clean, "pieces give another text than the whole")?;
            hold(redactor.redact(&clean) == clean, "a second pass changes something")?;
            let known = secrets.iter().filter(|secret| redactor.redact(secret) == MASK);
            for secret in known {
                hold(clean.split(MASK).all(|part| !part.contains(secret)), "a secret is shown")?;
            }
        }
        Ok(())
    })
    .round();
}

const MARKER: &str = "<!--QUESTION:{\"questions\":[{\"question\":\"Which?\",\"options\":[{\"label\":\"A\"}]}]}-->";

/// The visible effects of one message that arrives in these pieces.
fn said(pieces: &[&str]) -> Result<(String, Vec<Value>, bool), String> {
    let options = Options { progress: Some(Level::Full), ..Options::default() };
    let mut world = World::new("/home/user/project", options, Agents::built_in());
    world.hear(r#"{"v":"1","type":"run.start","payload":{"prompt":"Go","agent":"claude","secrets":["hunter2-Zq77"]}}"#);
    world.spawn();
    let say = |world: &mut World, event: Value| {
        let line = json!({"type": "stream_event", "event": event, "session_id": "s", "parent_tool_use_id": null});
        world.line(&line.to_string());
    };
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": []});
    say(&mut world, json!({"type": "message_start", "message": message}));
    let block = json!({"type": "text", "text": ""});
    say(&mut world, json!({"type": "content_block_start", "index": 0, "content_block": block}));
    for piece in pieces {
        let delta = json!({"type": "text_delta", "text": piece});
        say(&mut world, json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    let content = json!([{"type": "text", "text": pieces.concat()}]);
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": content});
    world.line(&json!({"type": "assistant", "message": message, "session_id": "s"}).to_string());
    say(&mut world, json!({"type": "content_block_stop", "index": 0}));
    say(&mut world, json!({"type": "message_stop"}));
    world.line(r#"{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s"}"#);
    world.signal();
    world.signal();
    world.gone(exited(0), "");
    let payloads = || world.frames.iter().map(|Frame { value, .. }| &value["payload"]);
    let texts: String = payloads().filter(|p| p["kind"] == "text").filter_map(|p| p["text"].as_str()).collect();
    let asked = |payload: &&Value| payload["attempt"] == 1;
    let questions = payloads().filter(asked).map(|p| json!([p["text"], p["options"], p["kind"]])).collect();
    let last = world.frames.last().ok_or("no frame")?;
    Ok((texts, questions, last.value["payload"]["completion_detected"] == true))
}

#[test]
fn markers() {
    let seeds = || {
        let texts = [
            format!("x{MARKER}y\n```\n{MARKER}\n```\n<promise>COMPLETE</promise>"),
            format!("<!--QUESTION:<!--QUESTION:{MARKER}hunter2-Zq77{MARKER}"),
            format!("~~~~\n~~~\n{MARKER}\n~~~~~\n{MARKER}hunter2-<promise>COMP"),
            format!("<!-- a -->\n   ```\r\n{MARKER}\n```"),
        ];
        texts.iter().map(|text| from_text(text)).collect()
    };
    target("markers", 80, seeds, |input| {
        let text = text(input);
        let whole = said(&[&text])?;
        let pieces = Rng::of(text.as_bytes()).pieces(&text);
        hold(said(&pieces)? == whole, "pieces give another text or other questions than the whole")?;
        hold(!whole.0.contains("hunter2-Zq77"), "a secret is shown")?;
        // In code, the marker means nothing.
        let (says, has_code) = (text.contains("<promise>COMPLETE</promise>"), text.contains(['`', '~']));
        hold(whole.2 == says || (says && has_code), "the completion marker is not seen, or invented")
    })
    .round();
}

/// A question from an object: its kind, its options and its validation.
fn ask(text: &str) -> Ask {
    let from: Value = serde_json::from_str(text).unwrap_or_default();
    let label = |option: &Value| option.as_str().map(str::to_owned);
    let options = from["options"].as_array().into_iter().flatten().filter_map(label);
    let choice = |label: String| Choice { value: label.to_lowercase().into(), label: label.into(), description: None };
    let choices = Choices::new(options.map(choice));
    let kind = match (from["kind"].as_str(), choices) {
        (Some("confirm"), _) => Kind::Confirm,
        (Some("secret"), _) => Kind::Secret,
        (Some("file_path"), _) => Kind::FilePath,
        (_, Some(choices)) => {
            Kind::Select { choices, multiple: from["multiple"] == true, allow_other: from["allow_other"] == true }
        }
        (_, None) => Kind::Text,
    };
    let validation = Validation {
        min_length: from["min_length"].as_u64(),
        max_length: from["max_length"].as_u64(),
        pattern: from["pattern"].as_str().map(Into::into),
        min: from["min"].as_f64(),
        max: from["max"].as_f64(),
        integer: from["integer"].as_bool(),
        min_selected: from["min_selected"].as_u64(),
        max_selected: from["max_selected"].as_u64(),
        must_exist: from["must_exist"].as_bool(),
        ..Validation::default()
    };
    let ask = Ask::new(Purpose::Input, kind, "Header", "Text");
    Ask { validation, required: from["required"] != false, ..ask }
}

/// Whether the question allows the accepted answer.
fn allowed(ask: &Ask, answer: &Answer) -> bool {
    let rules = &ask.validation;
    let one = |value: &Text| match &ask.kind {
        Kind::Select { choices, allow_other, .. } => {
            *allow_other || choices.as_slice().iter().any(|choice| choice.value == *value)
        }
        _ => false,
    };
    match answer {
        Answer::Null => !ask.required,
        Answer::Decision(decision) => one(&decision.word().into()),
        Answer::Bool(_) => ask.kind == Kind::Confirm,
        Answer::One(value) => one(value),
        Answer::Many(values) => {
            let count = values.len() as u64;
            let mut distinct: Vec<&str> = values.iter().map(Text::unredacted).collect();
            distinct.sort();
            distinct.dedup();
            let least = rules.min_selected.unwrap_or(u64::from(ask.required));
            values.iter().all(one)
                && distinct.len() == values.len()
                && (least..=rules.max_selected.unwrap_or(u64::MAX)).contains(&count)
        }
        Answer::Text(text) => {
            let length = text.unredacted().chars().count() as u64;
            (rules.min_length.unwrap_or(0)..=rules.max_length.unwrap_or(u64::MAX)).contains(&length)
        }
    }
}

/// The first line is a question. Each further line is an answer to it, and all together may be a file of answers.
#[test]
fn answers() {
    let seeds = || {
        let values = "\"a\"\n\"B\"\n1\n[1,\"c\"]\n\"other\"\ntrue\n\"yes\"\nnull\n\"12.5\"\n{\"value\":1}\n1e99\n-1";
        let questions = [
            r#"{"kind":"select","options":["A","B","c"],"multiple":true,"min_selected":1,"max_selected":2}"#,
            r#"{"kind":"select","options":["A","b b","2"],"allow_other":true,"required":false}"#,
            r#"{"kind":"text","min_length":1,"max_length":4,"pattern":"^[a-z]+$","required":true}"#,
            r#"{"kind":"text","min":0,"max":100,"integer":true}"#,
            r#"{"kind":"file_path","must_exist":true}"#,
            r#"{"kind":"confirm"}"#,
        ];
        let file = "{\"Header\":\"a\",\"permission\":{\"declined\":true},\n\"text\":{\"value_from\":{\"env\":\"X\"}}}";
        let mut all: Vec<Input> = questions.iter().map(|ask| from_text(&format!("{ask}\n{values}"))).collect();
        all.push(from_text(file));
        all
    };
    target("answers", 400, seeds, |input| {
        let all = text(input);
        let file = Script::read(&all).map(|script| script.is_empty());
        hold(file == Script::read(&all).map(|script| script.is_empty()), "the same file is read in two ways")?;
        let ask = ask(all.lines().next().unwrap_or_default());
        for line in all.lines().skip(1) {
            let Ok(raw) = serde_json::value::RawValue::from_string(line.into()) else { continue };
            let _ = AnswerInput::parse(&raw);
            for path in [None, Some(PathFact::Missing), Some(PathFact::File)] {
                match check(&ask, &raw, path) {
                    Ok(answer) => hold(allowed(&ask, &answer), "an answer is taken that the question does not allow")?,
                    Err(why) => hold(raw.get().len() < 8 || !why.contains(raw.get()), "the error shows the answer")?,
                }
            }
        }
        Ok(())
    })
    .round();
}

/// A user's file, a line `---`, and a project's file.
#[test]
fn configuration() {
    let seeds = || {
        let mut all: Vec<Input> = texts("config.json").iter().step_by(4).map(|text| from_text(text)).collect();
        let keys = config::KEYS.iter().enumerate().map(|(at, key)| {
            let value = ["\"ask\"", "true", "10", "[\"a\"]", "{\"read\":\"allow\"}"][at % 5];
            format!("\"{}\": {value}", key.name)
        });
        let keys: Vec<String> = keys.collect();
        all.push(from_text(&format!("{{{}}}\n---\n{{{}}}", keys.join(",\n"), keys[..10].join(",\n"))));
        let agents =
            r#"{"agents":{"x":{"driver":"acp","command":"x","args":["a"],"env":{"A":"b"}},"y":{"base":"claude"}}}"#;
        all.push(from_text(&format!("{agents}\n---\n{agents}")));
        all
    };
    target("configuration", 400, seeds, |input| {
        let folder = tempfile::TempDir::new().map_err(|e| e.to_string())?;
        let all = text(input);
        let (user, project) = all.split_once("\n---\n").unwrap_or((&all, "{}"));
        let places = Places {
            user: Some(folder.path().join("user.json")),
            trusted: Some(folder.path().join("trusted.json")),
            project: Some(folder.path().join("project.json")),
            folder: folder.path().to_owned(),
            old: None,
        };
        for (path, text) in [(&places.user, user), (&places.project, project)] {
            fs::write(path.as_deref().expect("a place"), text).map_err(|e| e.to_string())?;
        }
        let read = || {
            let loaded = config::load_from(&places, std::iter::empty());
            let (layers, wrong) = loaded.config.layers();
            let names = loaded.config.names();
            (format!("{layers:?}{wrong:?}{names:?}"), format!("{:?}{:?}", loaded.warnings, loaded.failure))
        };
        let (before, told) = read();
        hold((before.clone(), told.clone()) == read(), "the same files are read in two ways")?;
        hold(!told.contains("hunter2"), "a message shows a value")?;
        if Rng::of(all.as_bytes()).once_in(8) {
            let value = serde_json::value::RawValue::from_string("\"hello\"".into()).map_err(|e| e.to_string())?;
            if places.set(Which::User, "model", &value).is_ok() {
                let loaded = config::load_from(&places, std::iter::empty());
                let set = loaded.config.find("model").map(|value| value.raw.get().to_owned());
                let shadowed = project.contains("model") || loaded.failure.is_some();
                hold(shadowed || set.as_deref() == Some("\"hello\""), "a value that was set is not read")?;
                places.unset(Which::User, "model").map_err(|e| format!("unset: {e:?}"))?;
            }
        }
        Ok(())
    })
    .round();
}

#[test]
fn recordings() {
    let seeds = || {
        let all = case::all();
        let recorded = all.iter().step_by(10).map(|case| fs::read_to_string(case.recording_path()).unwrap_or_default());
        recorded.map(|text| from_text(&text)).collect()
    };
    target("recordings", 300, seeds, |input| {
        let text = text(input);
        let read = Recording::parse(&text);
        hold(read == Recording::parse(&text), "the same recording is read in two ways")?;
        let Ok(recording) = read else { return Ok(()) };
        let of_processes: usize = recording.processes().iter().map(|process| process.moments.len()).sum();
        let spawns = recording.processes().len() - 1;
        hold(of_processes + spawns == recording.moments.len(), "moments of no process, or of two")
    })
    .round();
}

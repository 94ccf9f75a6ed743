//! Secrets in every form and place must not leave the process; other texts stay unchanged.

use crate::support;

use std::fs;

use serde_json::{Value, json};
use support::agent::{SESSION, Script, bash, error_result, question, quote};
use support::{Case, Outcome, Session, run};

const SECRET: &str = "hunter2-Zq7731/x+y";
const REDACTED: &str = "[redacted]";

/// All strings of a value, without keys.
fn strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|v| strings(v, found)),
        Value::Object(fields) => fields.values().for_each(|v| strings(v, found)),
        _ => {}
    }
}

/// Checks that neither the streams nor any decoded string contain this text.
#[track_caller]
fn assert_hidden(outcome: &Outcome, form: &str, what: &str) {
    assert!(!outcome.stdout.contains(form) && !outcome.stderr.contains(form), "{what}: {form} is shown");
    for frame in &outcome.frames {
        let mut found = Vec::new();
        strings(frame.payload(), &mut found);
        assert!(found.iter().all(|t| !t.contains(form)), "{what}: {form} is shown in {}", frame.raw);
    }
}

fn says(text: &str) -> Script {
    Script::new().say("msg_1", text).done(text)
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| (w << 8) | u32::from(*b)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = ALPHABET[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

fn percent(text: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    text.bytes().map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[test]
fn the_encoders_of_the_tests_are_correct() {
    assert_eq!([base64(b"a"), base64(b"ab"), base64(b"abc?")], ["YQ==", "YWI=", "YWJjPw=="]);
    assert_eq!(percent("a/b+c"), "a%2Fb%2Bc");
}

#[test]
fn a_secret_is_hidden_plain_escaped_and_encoded() {
    let secret = "pa\"ss\\w0rd/7731+\n#x";
    let quoted = json!(secret).to_string();
    let basic = base64(format!("user:{secret}").as_bytes());
    let forms = [
        ("plain", secret.to_owned()),
        ("JSON-escaped", quoted[1..quoted.len() - 1].to_owned()),
        ("URL-encoded", percent(secret)),
        ("base64", base64(secret.as_bytes()).trim_end_matches('=').to_owned()),
        ("base64 within more", basic[8..basic.len() - 4].to_owned()),
    ];
    for (name, form) in forms {
        let said = if name == "base64 within more" { basic.clone() } else { form.clone() };
        let outcome = run(Case::with(says(&format!("before {said} after"))), json!({"secrets": [secret]}));
        assert_hidden(&outcome, &form, name);
        assert!(outcome.said().contains(REDACTED), "{name}: {}", outcome.said());
        let answer = outcome.completed()["text"].as_str().unwrap().to_owned();
        assert!(answer.starts_with("before ") && answer.ends_with(" after"), "{name}: {answer}");
    }
}

#[test]
fn the_whole_text_around_a_secret_stays() {
    let outcome = run(Case::with(says(&format!("<{SECRET}> and {SECRET}"))), json!({"secrets": [SECRET]}));
    assert_eq!(outcome.said(), "<[redacted]> and [redacted]");
    assert_eq!(outcome.completed()["text"], "<[redacted]> and [redacted]");
}

#[test]
fn a_secret_in_pieces_is_hidden_at_every_cut() {
    let text = format!("before {SECRET} after");
    let whole: Vec<usize> = (1..text.len()).collect();
    for size in [1, 2, 3, 7] {
        let cuts: Vec<&str> = (0..text.len()).step_by(size).map(|at| &text[at..(at + size).min(text.len())]).collect();
        let script = Script::new().say_pieces("msg_1", &cuts).done(&text);
        let outcome = run(Case::with(script), json!({"secrets": [SECRET], "progress": "full"}));
        outcome.completed();
        assert_hidden(&outcome, SECRET, "pieces");
        assert_eq!(outcome.said(), "before [redacted] after", "pieces of {size}");
    }
    for at in whole.into_iter().step_by(5) {
        let script = Script::new().say_pieces("msg_1", &[&text[..at], &text[at..]]).done(&text);
        let outcome = run(Case::with(script), json!({"secrets": [SECRET], "progress": "full"}));
        assert_eq!(outcome.said(), "before [redacted] after", "cut at {at}");
    }
}

#[test]
fn text_that_only_begins_like_a_secret_is_released_at_the_end() {
    let text = format!("it ends in {}", &SECRET[..9]);
    let script = Script::new().say_pieces("msg_1", &[&text[..14], &text[14..]]).done(&text);
    let outcome = run(Case::with(script), json!({"secrets": [SECRET], "progress": "full"}));
    assert_eq!(outcome.said(), text);
    assert_eq!(outcome.completed()["text"], text);
}

#[test]
fn a_secret_that_begins_another_is_hidden_with_it() {
    let long = format!("{SECRET}-and-more");
    let outcome = run(Case::with(says(&format!("a {long} b {SECRET} c"))), json!({"secrets": [SECRET, long]}));
    assert_eq!(outcome.said(), "a [redacted] b [redacted] c");
}

#[test]
fn environment_variables_are_secret_by_a_segment_of_their_name() {
    let rows = [
        ("API_KEY", SECRET, true),
        ("my_token", SECRET, true),
        ("X_SECRET_2", SECRET, true),
        ("DB_PASSWORD", SECRET, true),
        ("PASSWD", SECRET, true),
        ("AWS_CREDENTIALS", SECRET, true),
        ("Gcp_Credential", SECRET, true),
        ("GH_PAT", SECRET, true),
        ("MONKEY", SECRET, false),
        ("KEYBOARD_LAYOUT", SECRET, false),
        ("PATTERN", SECRET, false),
        ("SSH_KEY", "/etc/hostname", false),
        ("MAX_TOKEN", "1234567890", false),
    ];
    for (name, value, hidden) in rows {
        let outcome = run(Case::with(says(&format!("it is {value}."))).env(name, value), json!({}));
        outcome.completed();
        let expected = if hidden { "it is [redacted].".to_owned() } else { format!("it is {value}.") };
        assert_eq!(outcome.said(), expected, "{name}");
        assert_eq!(outcome.log().env(name).as_deref(), Some(value), "the agent itself has it");
        assert!(outcome.warnings("short_secret").is_empty(), "{name}");
    }
}

#[test]
fn environment_variables_of_run_start_are_secret_too() {
    let outcome = run(Case::with(says(&format!("it is {SECRET}."))), json!({"env": {"SERVICE_TOKEN": SECRET}}));
    assert_eq!(outcome.said(), "it is [redacted].");
    assert_eq!(outcome.log().env("SERVICE_TOKEN").as_deref(), Some(SECRET));
}

#[test]
fn well_known_tokens_are_hidden_without_being_named() {
    let letters = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5lM7nP9rS1uV3xY5zA7cE9gI1kL3nO5qR7tU9wX1";
    let jwt = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkoifQ.\
               SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";
    let pem = format!("-----BEGIN RSA PRIVATE KEY-----\n{letters}\n-----END RSA PRIVATE KEY-----");
    let tokens = [
        format!("sk-ant-api03-{}-{}AA", letters, &letters[..10]),
        format!("sk-proj-{}", &letters[..48]),
        format!("ghp_{}", &letters[..36]),
        format!("github_pat_{}_{}", &letters[..22], &letters[..59]),
        format!("AKIA{}", "Q3EGTR7WZ5XYHVBM"),
        format!("AIza{}", &letters[..35]),
        format!("xoxb-123456789012-123456789012-{}", &letters[..24]),
        jwt.to_owned(),
        pem,
    ];
    for token in tokens {
        let outcome = run(Case::with(says(&format!("it is {token} !"))), json!({}));
        outcome.completed();
        let core = &token[token.len() / 3..token.len() / 3 + 10];
        assert_hidden(&outcome, core, &token);
        assert!(outcome.said().starts_with("it is ") && outcome.said().ends_with(" !"), "{}", outcome.said());
    }
}

#[test]
fn arguments_for_the_agent_that_look_like_secrets_are_hidden() {
    for arguments in [
        ["--api-key", "heron-Zq7731"],
        ["-c", "mcp_servers.s.http_headers={\"X-Lab-Pass\"=\"heron-Zq7731\"}"],
        ["--mcp-config", "{\"mcpServers\":{\"s\":{\"headers\":{\"X-Lab-Pass\":\"heron-Zq7731\"}}}}"],
    ] {
        let outcome = run(Case::with(says("I saw heron-Zq7731.")), json!({"agent_args": arguments}));
        outcome.completed();
        assert_hidden(&outcome, "heron-Zq7731", arguments[0]);
        let shown = &outcome.of_type("run.started")[0]["payload"]["config"]["agent_args"];
        assert_eq!(shown[0], arguments[0]);
    }
}

#[test]
fn authorization_headers_and_passwords_in_urls_are_hidden() {
    for (text, hidden) in [
        ("Authorization: Bearer Zq7731abcdefgh12", "Zq7731abcdefgh12"),
        ("curl -H 'authorization: Basic dXNlcjpacTc3MzE5OTk5'", "dXNlcjpacTc3MzE5OTk5"),
        ("git clone https://user:Zq7731pw99@example.org/x.git", "Zq7731pw99"),
    ] {
        let outcome = run(Case::with(says(text)), json!({}));
        outcome.completed();
        assert_hidden(&outcome, hidden, text);
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    let text = "sk-ip, a task-list, https://example.org/a?b=c, AIzaah, eyJ, ghp_ and AKIA are no tokens";
    let outcome = run(Case::with(says(text)), json!({}));
    outcome.completed();
    assert_eq!(outcome.said(), text);
}

#[test]
fn a_secret_is_hidden_in_tools_questions_and_outputs_and_the_agent_still_gets_it() {
    let command = format!("curl -u me:{SECRET} example.org");
    let script = Script::new()
        .ask("req-1", "toolu_1", "Bash", bash(&command))
        .tool_result("toolu_1", &format!("out {SECRET}"))
        .think("msg_0", &format!("think {SECRET}"))
        .say("msg_1", "ok")
        .done("ok");
    let mut session = Case::with(script).spawn();
    session.start(json!({"secrets": [SECRET], "progress": "full"}));
    let asked = session.until("run.question");
    session.answer(&asked, json!("allow_once"));
    let outcome = session.finish();
    outcome.completed();
    assert_hidden(&outcome, SECRET, "tools and questions");
    assert!(asked.raw.contains(REDACTED), "{}", asked.raw);
    assert_eq!(outcome.log().answer()["updatedInput"]["command"], json!(command));
}

#[test]
fn a_secret_is_hidden_in_options_and_the_agent_gets_the_true_label() {
    let mut questions = question("Which key?", false);
    questions["options"][0]["label"] = json!(SECRET);
    let mut session = Case::with(Script::asks_user(json!([questions]))).spawn();
    session.start(json!({"secrets": [SECRET]}));
    let asked = session.until("run.question");
    session.answer(&asked, json!(1));
    let outcome = session.finish();
    outcome.completed();
    assert_hidden(&outcome, SECRET, "options");
    assert_eq!(outcome.log().answer()["updatedInput"]["answers"]["Which key?"], SECRET);
}

#[test]
fn a_secret_is_hidden_in_the_output_of_a_failing_agent() {
    let said = format!("No such key: {SECRET}");
    let dying = Script::bare().sh(&format!("echo {} >&2\nexit 1", quote(&said)));
    let outcome = run(Case::with(dying), json!({"secrets": [SECRET]}));
    assert_eq!(outcome.failed("agent_start_failed")["detail"]["stderr_tail"], "No such key: [redacted]\n");
    assert_hidden(&outcome, SECRET, "stderr");

    let result = error_result(json!({"api_error_status": 400, "result": said, "errors": [said]}));
    let outcome = run(Case::with(Script::new().out(&result).sh("listen")), json!({"secrets": [SECRET]}));
    assert_eq!(outcome.failed("agent_error")["detail"]["agent_message"], "No such key: [redacted]");
    assert_hidden(&outcome, SECRET, "an error result");
}

#[test]
fn metadata_is_redacted_in_its_values_and_never_in_its_keys() {
    let metadata = json!({"a": {"b": [format!("x{SECRET}y"), 1]}, SECRET: true});
    let outcome = run(Case::with(says("ok")), json!({"secrets": [SECRET], "metadata": metadata}));
    outcome.completed();
    for frame in [&outcome.frames[0], outcome.terminal()] {
        let shown = &frame["payload"]["metadata"];
        assert_eq!(shown["a"]["b"], json!(["x[redacted]y", 1]));
        assert_eq!(shown[SECRET], true);
    }
}

#[test]
fn ids_and_the_protocols_own_words_are_never_redacted() {
    let words = [
        "run.completed",
        "run.progress",
        "run.question",
        "question_resolved",
        "allow_once",
        "permission",
        "completed",
        "end_turn",
        SESSION,
        support::RUN,
    ];
    let mut session = Case::with(Script::asks_bash()).spawn();
    session.start(json!({"secrets": words}));
    let asked = session.until("run.question");
    assert_eq!(asked.text("purpose"), "permission");
    assert_eq!(asked["payload"]["options"][0]["value"], "allow_once");
    session.answer(&asked, json!("allow_once"));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["stop_reason"], "end_turn");
    assert_eq!(outcome.completed()["session_id"], SESSION);
    assert_eq!(outcome.progress("question_resolved")[0].text("value"), "allow_once");
}

#[test]
fn a_secret_that_is_too_short_is_a_warning_and_stays() {
    for short in ["zq7!x", "aaaaaaaaaaaa"] {
        let outcome = run(Case::with(says(&format!("it is {short}."))), json!({"secrets": [short]}));
        outcome.completed();
        assert_eq!(outcome.warnings("short_secret").len(), 1, "{short}");
        assert!(!outcome.warnings("short_secret")[0].raw.contains(short), "{short}");
        assert_eq!(outcome.said(), format!("it is {short}."));
    }
}

/// An agent that asks, and repeats the answer that it received.
fn echoing() -> Script {
    let line = support::agent::text("msg_1", "you said @@").to_string();
    let (head, tail) = line.split_once("@@").unwrap();
    let input = json!({"questions": [question("Which?", false)]});
    Script::new()
        .ask("req-1", "toolu_1", "AskUserQuestion", input)
        .sh(r#"a=${line#*'"Which?":"'}; a=${a%%'"'*}"#)
        .sh(&format!("out {}\"$a\"{}", quote(head), quote(tail)))
        .done("ok")
}

fn asked(case: Case) -> (Session, String) {
    let mut session = case.spawn();
    session.start(json!({}));
    let id = session.until("run.question").text("question_id").to_owned();
    (session, id)
}

#[test]
fn an_ordinary_answer_is_not_a_secret() {
    let (mut session, id) = asked(Case::with(echoing()));
    session.send("run.input", json!({"question_id": id, "value": "an ordinary answer"}));
    assert_eq!(session.finish().said(), "you said an ordinary answer");
}

#[test]
fn an_answer_that_was_kept_off_the_pipe_stays_off_it() {
    let case = Case::with(echoing());
    fs::write(case.path("work/key.txt"), format!("{SECRET}\n")).unwrap();
    let (mut session, id) = asked(case);
    session.send("run.input", json!({"question_id": id, "value_from": {"file": "key.txt"}}));
    let outcome = session.finish();
    outcome.completed();
    assert!(outcome.log().answer().to_string().contains(SECRET), "the agent itself gets it");
    assert_hidden(&outcome, SECRET, "value_from file");

    let (mut session, id) = asked(Case::with(echoing()).env("SOME_NAME", SECRET));
    session.send("run.input", json!({"question_id": id, "value_from": {"env": "SOME_NAME"}}));
    let outcome = session.finish();
    outcome.completed();
    assert_hidden(&outcome, SECRET, "value_from env");
}

#[test]
fn a_recording_is_written_and_holds_no_secret() {
    let text = format!("before {SECRET} after");
    let pieces: Vec<&str> = vec![&text[..10], &text[10..15], &text[15..]];
    let script = Script::new()
        .say_pieces("msg_1", &pieces)
        .sh(&format!("echo {} >&2", quote(SECRET)))
        .ask("req-1", "toolu_1", "Bash", bash(&format!("echo {SECRET}")))
        .tool_result("toolu_1", SECRET)
        .done(&text);
    let mut session = Case::with(script).args(&["--record", "run.jsonl"]).spawn();
    session.start(json!({"prompt": format!("use {SECRET}"), "secrets": [SECRET], "progress": "full"}));
    let question = session.until("run.question");
    session.answer(&question, json!("allow_once"));
    let outcome = session.finish();
    outcome.completed();
    let recording = fs::read_to_string(outcome.case().path("work/run.jsonl")).expect("the recording");
    assert!(!recording.contains(SECRET), "{recording}");
    let lines: Vec<Value> = recording.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!((&lines[0]["recording"], &lines[0]["driver"]), (&json!(1), &json!("claude")));
    let mut deltas = String::new();
    for line in lines.iter().filter_map(|l| l["agent"].as_str()) {
        let message: Value = serde_json::from_str(line).expect("an agent's line");
        deltas.push_str(message["event"]["delta"]["text"].as_str().unwrap_or(""));
    }
    assert!(!deltas.contains(SECRET), "the pieces, joined: {deltas}");
    assert!(lines.iter().any(|l| l["host"].is_string()) && lines.iter().any(|l| l["exit"] == 0));
}

/// All keys of a value, at any depth.
fn keys<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|v| keys(v, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key);
            keys(value, found);
        }),
        _ => {}
    }
}

/// Claude Code uses the question as the key of its answer, so a question that quotes a secret makes the secret a key.
#[test]
fn a_recording_holds_no_secret_in_a_key_and_can_be_replayed() {
    let kept = "kept-off-0451-x/y";
    // After redaction, the first two keys are the same.
    let longer = format!("{SECRET}-and-more");
    let quoting = [format!("Is {SECRET} right?"), format!("Is {longer} right?"), format!("And {kept}?")];
    let questions = json!({"questions": quoting.each_ref().map(|text| question(text, false))});
    let script = Script::new()
        .ask("req-1", "toolu_1", "AskUserQuestion", json!({"questions": [question("Which?", false)]}))
        .ask("req-2", "toolu_2", "AskUserQuestion", questions)
        .done("ok");
    let log = json!({"debug": {"enabled": true, "log_dir": "logs"}}).to_string();
    let case = Case::with(script).file("home/.config/spektacular/config.json", &log).args(&["--record", "run.jsonl"]);
    fs::write(case.path("work/key.txt"), kept).unwrap();
    let mut session = case.spawn();
    session.start(json!({"secrets": [SECRET, longer]}));
    let id = session.until("run.question").text("question_id").to_owned();
    session.send("run.input", json!({"question_id": id, "value_from": {"file": "key.txt"}}));
    for answer in ["Auth", "Search", "Export"] {
        let asked = session.until("run.question");
        session.answer(&asked, json!(answer));
    }
    let outcome = session.finish();
    outcome.completed();
    let logs = outcome.case().path("work/logs");
    let logged = fs::read_dir(&logs).unwrap().map(|e| e.unwrap().path()).find(|p| p.extension().is_some()).unwrap();
    let recorded = outcome.case().path("work/run.jsonl");
    for file in [&recorded, &logged] {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains(SECRET) && !text.contains(kept), "{text}");
        let said = |name: &str| -> Vec<Value> {
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.filter_map(|line| serde_json::from_str(line[name].as_str()?).ok()).collect()
        };
        let (told, heard) = (said("host"), said("agent"));
        let mut found = Vec::new();
        told.iter().chain(&heard).for_each(|line| keys(line, &mut found));
        assert!(found.iter().all(|key| !key.contains(SECRET) && !key.contains(kept)), "{found:?}");
        // Each answer keeps a key of its own.
        let mut answers = told.iter().map(|line| &line["response"]["response"]["updatedInput"]["answers"]);
        let last = answers.rfind(|answers| answers.is_object()).unwrap();
        let texts: Vec<&str> = last.as_object().unwrap().values().map(|v| v.as_str().unwrap()).collect();
        assert_eq!(texts.len(), 3, "{last}");
        assert!(["Auth", "Search", "Export"].iter().all(|answer| texts.contains(answer)), "{last}");
    }

    let program =
        format!("exec '{}' replay --strict '{}' -- \"$@\"", env!("CARGO_BIN_EXE_spektacular"), recorded.display());
    let mut session = Case::with(Script::bare().sh(&program)).spawn();
    session.start(json!({}));
    for _ in 0..4 {
        let asked = session.until("run.question");
        session.answer(&asked, json!("Auth"));
    }
    assert_eq!(session.finish().completed()["text"], "ok");
}

/// A recording of an agent with tools, for each dialect, with another shell command.
#[track_caller]
fn replayed(agent: &str, command: &str) -> Session {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(agent);
    let recording = fs::read_to_string(folder.join("permission_allowed/recording.jsonl")).unwrap();
    assert!(recording.contains("touch asked.txt"), "{agent}");
    // The secret is in JSON inside JSON.
    let recording = recording.replace("touch asked.txt", &command.replace('\n', "\\\\n"));
    let case = Case::new().file("run.jsonl", &recording);
    let binary = env!("CARGO_BIN_EXE_spektacular");
    let program = format!("#!/bin/sh\nexec '{binary}' replay '{}' -- \"$@\"\n", case.path("run.jsonl").display());
    case.program(agent, &program).spawn()
}

/// The shown titles of the command, from its start on.
fn titles(agent: &str, command: &str, secret: &str, hidden: &[&str]) -> Vec<String> {
    let mut session = replayed(agent, command);
    session.start(json!({"agent": agent, "secrets": [secret]}));
    let asked = session.until("run.question");
    session.answer(&asked, json!("allow_once"));
    let outcome = session.finish();
    outcome.completed();
    hidden.iter().for_each(|part| outcome.never_shows(part));
    let tools = outcome.progress("tool").into_iter().map(|frame| frame.text("text"));
    let resolved = outcome.progress("question_resolved").into_iter().map(|frame| frame.text("text"));
    let subject = asked["payload"]["subject"]["title"].as_str().unwrap();
    tools.chain(resolved).chain([subject]).map(str::to_owned).collect()
}

const DIALECTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

#[test]
fn a_secret_at_the_cut_of_a_title_is_hidden_entirely() {
    for agent in DIALECTS {
        for pad in (84..=114).step_by(5) {
            let command = format!("{}{SECRET} {}", "x".repeat(pad), "y".repeat(200));
            for title in titles(agent, &command, SECRET, &[SECRET, &SECRET[..6], &SECRET[8..]]) {
                assert!(title.contains("xxxx") && title.contains('…'), "{agent} at {pad}: {title}");
                assert!(title.chars().count() <= 150, "{agent} at {pad}: {title}");
            }
        }
    }
}

#[test]
fn a_secret_of_several_lines_is_hidden_where_only_the_first_is_shown() {
    // A line that is too short to be redacted by itself.
    let secret = "zq-one\nzq-two-and-more";
    for agent in DIALECTS {
        for title in titles(agent, &format!("echo {secret} >a"), secret, &["zq-one", "zq-two"]) {
            assert!(title.contains("echo [redacted]"), "{agent}: {title}");
        }
        for title in titles(agent, "\n\nfirst line\nsecond line", secret, &[]) {
            assert!(title.contains("first line") && !title.contains("second"), "{agent}: {title}");
        }
    }
}

#[test]
fn a_secret_of_several_lines_is_hidden_in_a_change_of_a_file() {
    let secret = "zq-a\nzq-b\nzq-c-and-more";
    let input =
        json!({"file_path": "/a", "old_string": format!("a\n{secret}\nb"), "new_string": format!("{secret}\n")});
    let mut session = Case::with(Script::asks("Edit", input)).spawn();
    session.start(json!({"secrets": [secret]}));
    let asked = session.until("run.question");
    assert_eq!(
        asked["payload"]["subject"]["detail"],
        "file /a\n-a\n-[redacted]\n[redacted]\n[redacted]\n-b\n+[redacted]\n[redacted]\n[redacted]\n"
    );
    session.answer(&asked, json!("deny"));
    session.finish().completed();
}

#[test]
fn half_a_secret_at_the_cut_of_the_final_answer_is_hidden() {
    // The long text makes room in the last frame, so that the answer is cut only if it is too long itself.
    let long = "0123456789abcdef".repeat(125);
    for before in [9, 1, 17] {
        let filler = "x".repeat((16 * 16384) - long.len() - before);
        let text = format!("{long}{filler}{SECRET}{}", "y".repeat(1000));
        let script = Script::new().say("msg_1", "ok").done(&text);
        let outcome = run(Case::with(script), json!({"secrets": [SECRET, long], "max_frame_bytes": 16384}));
        let answer = outcome.completed()["text"].as_str().unwrap();
        assert!(
            answer.starts_with("[redacted]xxx") && answer.ends_with("xxx"),
            "{before}: {}",
            &answer[answer.len() - 30..]
        );
        assert_eq!(outcome.completed()["truncated"], true);
    }
}

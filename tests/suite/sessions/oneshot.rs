//! Tests of runs from a command line: scripted answers, the last session, prompts in files, several policies.

use crate::support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::agent::{SESSION, Script, question, success};
use support::{Case, Outcome, Session};

const PROMPT: [&str; 2] = ["--prompt", "go"];
/// A part of refused values, which no output may contain.
const BAD: &str = "zq-bad-7731";

fn begin(script: Script, args: &[&str]) -> Session {
    Case::with(script).args(&PROMPT).args(args).spawn()
}

fn run(script: Script, args: &[&str]) -> Outcome {
    begin(script, args).finish()
}

/// The error of a run whose command line prevents it from starting.
#[track_caller]
fn refused(args: &[&str]) -> String {
    let outcome = Case::with(Script::hello()).args(args).spawn().finish();
    let payload = outcome.failed("usage");
    outcome.never_shows(BAD);
    assert_eq!(outcome.exit_code, Some(2));
    assert!(!outcome.log().ran());
    payload["message"].as_str().unwrap().to_owned()
}

fn titled(header: &str, text: &str, multiple: bool) -> Value {
    let mut question = question(text, multiple);
    question["header"] = json!(header);
    question
}

/// The answers to the agent's one request, by the question's text.
#[track_caller]
fn told(outcome: &Outcome) -> Value {
    let answer = outcome.log().answer();
    assert_eq!(answer["behavior"], "allow", "{answer}");
    answer["updatedInput"]["answers"].clone()
}

fn resolved(outcome: &Outcome) -> Vec<(&str, bool)> {
    let frames = outcome.progress("question_resolved");
    frames.iter().map(|f| (f.text("resolution"), f["payload"]["used_default"] == true)).collect()
}

#[test]
fn a_permission_is_answered_by_its_purpose() {
    for (answer, behavior) in
        [("permission=allow_once", "allow"), ("Permission=2", "allow"), ("permission=deny", "deny")]
    {
        let outcome = run(Script::asks_bash(), &["--answer", answer]);
        outcome.completed();
        assert_eq!(outcome.of_type("run.question").len(), 1);
        assert_eq!(resolved(&outcome), [("answered", false)], "{answer}");
        assert_eq!(outcome.log().answer()["behavior"], behavior, "{answer}");
    }
}

#[test]
fn an_answer_to_any_select_allows_nothing() {
    let outcome = run(Script::asks_bash(), &["--answer", "select=allow_once"]);
    outcome.completed();
    assert_eq!(resolved(&outcome), [("input_closed", true)]);
    assert_eq!(outcome.log().answer()["behavior"], "deny");
}

#[test]
fn the_most_specific_key_wins_and_a_comma_separates_options() {
    let questions = json!([
        titled("Color", "Which color?", false),
        titled("Features", "Which features?", true),
        titled("Extras", "Which extras?", true),
        titled("Other", "Anything else?", false)
    ]);
    let answers = ["--answer", "select=3", "--answer", "COLOR=search", "--answer", "which features?=Auth, 3"];
    let outcome = run(Script::asks_user(questions), &[&answers[..], &["--answer", "extras=tea, coffee"]].concat());
    outcome.completed();
    let told = told(&outcome);
    assert_eq!(told["Which color?"], "Search");
    assert_eq!(told["Which features?"], "Auth, Export");
    // The question has no options, so the free text stays as it was typed.
    assert_eq!(told["Which extras?"], "tea, coffee");
    assert_eq!(told["Anything else?"], "Export");
}

#[test]
fn one_key_several_times_answers_in_order_and_the_last_stays() {
    let questions = json!(["One?", "Two?", "Three?"].map(|text| titled("Next", text, false)));
    let outcome = run(Script::asks_user(questions), &["--answer", "next=Auth", "--answer", "next=Search"]);
    outcome.completed();
    assert_eq!(told(&outcome), json!({"One?": "Auth", "Two?": "Search", "Three?": "Search"}));
}

#[test]
fn an_answer_that_does_not_fit_is_given_once() {
    let outcome = run(Script::asks_bash(), &["--answer", "permission=perhaps"]);
    outcome.completed();
    let attempts: Vec<&Value> = outcome.of_type("run.question").iter().map(|f| &f["payload"]["attempt"]).collect();
    assert_eq!(attempts, [1, 2]);
    assert_eq!(resolved(&outcome), [("input_closed", true)]);
}

#[test]
fn a_question_without_an_answer_ends_the_run_if_it_needs_one() {
    let questions = json!([titled("Color", "Which color?", false), titled("Size", "Which size?", false)]);
    let outcome = run(Script::asks_user(questions), &["--answer", "color=Auth"]);
    outcome.failed("input_closed");
    assert_eq!(outcome.exit_code, Some(6));
    assert_eq!(resolved(&outcome), [("answered", false), ("input_closed", false)]);
}

#[test]
fn answers_come_from_a_file_below_those_of_flags() {
    let questions = json!([
        titled("Color", "Which color?", false),
        titled("Features", "Which features?", true),
        titled("Key", "Which key?", false)
    ]);
    let case = Case::with(Script::asks_user(questions)).args(&PROMPT).env("DEPLOY_WITH", "correct-horse-battery");
    let answers = json!({
        "color": "Auth", "Features": ["Auth", 2], "Which key?": {"value_from": {"env": "DEPLOY_WITH"}}
    });
    fs::write(case.path("work/answers.json"), answers.to_string()).unwrap();
    let outcome = case.args(&["--answers", "answers.json", "--answer", "Color=Export"]).spawn().finish();
    outcome.completed();
    let told = told(&outcome);
    assert_eq!(told["Which color?"], "Export");
    assert_eq!(told["Which features?"], "Auth, Search");
    assert_eq!(told["Which key?"], "correct-horse-battery");
    outcome.never_shows("correct-horse-battery");
}

#[test]
fn a_file_can_decline_and_say_why() {
    let case = Case::with(Script::asks_bash()).args(&PROMPT);
    fs::write(case.path("work/a.json"), r#"{"permission": {"declined": true, "message": "Not here."}}"#).unwrap();
    let outcome = case.args(&["--answers", "a.json"]).spawn().finish();
    outcome.completed();
    assert_eq!(resolved(&outcome), [("declined", false)]);
    assert!(outcome.log().answer()["message"].as_str().unwrap().contains("Not here."));
}

#[test]
fn the_error_for_an_invalid_answers_file_names_the_fault() {
    let rows = [
        ("[]", "one JSON object"),
        ("{", "one JSON object"),
        (r#"{"a": 1, "wrong-1": {"zq-bad-7731": 1}}"#, "The answer to wrong-1 must be a value, or an object"),
        (r#"{"zq-bad-7731?": {"value": "zq-bad-7731", "declined": true}}"#, "Answer 1 must be a value, or an object"),
        (r#"{"wrong-1": "zq-bad-7731", "Wrong-1": 2}"#, "The answer to Wrong-1 has the same key as an earlier one."),
    ];
    for (text, says) in rows {
        let case = Case::with(Script::hello()).args(&PROMPT).args(&["--answers", "a.json"]);
        fs::write(case.path("work/a.json"), text).unwrap();
        let outcome = case.spawn().finish();
        let message = outcome.failed("usage")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("--answers: ") && message.contains(says), "{text}: {message}");
        outcome.never_shows(BAD);
    }
}

#[test]
fn the_orchestrator_gets_questions_without_a_scripted_answer() {
    let questions = json!([titled("Color", "Which color?", false), titled("Size", "Which size?", false)]);
    let mut session = begin(Script::asks_user(questions), &["--input", "jsonl", "--answer", "color=Auth"]);
    let size = session.until_where("the size", |f| f.text("text") == "Which size?");
    session.until_progress("question_resolved");
    let value = json!({"question_id": size.text("question_id"), "value": "Search"});
    session.send_line(&json!({"v": "1", "type": "run.input", "payload": value}).to_string());
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(told(&outcome), json!({"Which color?": "Auth", "Which size?": "Search"}));
}

#[test]
fn scripted_answers_apply_after_stdin_has_ended() {
    let script = Script::new().sh("until [ -e go ]; do sleep 0.02; done").sh(&Script::asks_bash().steps_after_init());
    for input in [&["--input", "jsonl", "--prompt", "go"][..], &[][..]] {
        let mut session = Case::with(script.clone()).args(input).args(&["--answer", "permission=allow_once"]).spawn();
        if input.is_empty() {
            session.start(json!({}));
        }
        session.until("run.started");
        session.close_stdin();
        fs::write(session.case.path("work/go"), "").unwrap();
        let outcome = session.finish();
        outcome.completed();
        assert_eq!(resolved(&outcome), [("answered", false)]);
    }
}

#[test]
fn for_a_person_too_answers_make_a_run_ask() {
    let case = Case::with(Script::asks_bash());
    let done = case.cli(&["--answer", "permission=allow_once", "go"]);
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(session_log(&case).answer()["behavior"], "allow");
    let done = case.cli(&["go"]);
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(session_log(&case).answers().last().unwrap().1["behavior"], "deny");
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(told.contains("1 permission denied (no terminal). Allow with --yes or --permissions\n"), "{told}");
}

#[test]
fn a_person_hears_of_answers_that_fitted_no_question() {
    let done = Case::with(Script::asks_bash()).cli(&["--answer", "permission=deny", "--answer", "Greeing=a", "go"]);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(
        told.contains(
            "warning: No question matched the answer key Greeing. `spektacular help adhoc` explains the keys"
        ),
        "{told}"
    );
    for (key, meant) in [("Greting", "Greeting"), ("permision", "permission")] {
        let did = Case::new().run(&["adhoc", "--agent", "demo", "--answer", &format!("{key}=Short"), "go"]);
        assert!(
            did.err.contains(&format!("No question matched the answer key {key}. Did you mean {meant}?\n")),
            "{did:?}"
        );
    }
    let keys: Vec<String> = (0..30).map(|n| format!("Key-{n:02}=zq-bad-7731")).collect();
    let mut args = vec!["--answer", "permission=deny", "--answer", "What color?=zq-bad-7731"];
    args.extend(keys.iter().flat_map(|key| ["--answer", key]));
    let done = Case::with(Script::asks_bash()).cli(&[&args[..], &["go"]].concat());
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(
        told.contains("No question matched the answer keys Key-00, Key-01, ") && told.contains("Key-19, and 11 more."),
        "{told}"
    );
    assert!(!told.contains(BAD) && !told.contains("color"), "{told}");
    let done = Case::with(Script::asks_bash()).cli(&["--answer", "permission=deny", "--answer", "a b=c", "go"]);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(told.contains("No question matched 1 answer key."), "{told}");
    let done = Case::with(Script::asks_bash()).cli(&["--answer", "permission=deny", "go"]);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(!told.contains("No question matched"), "{told}");
}

#[test]
fn the_words_of_a_permission_match_no_answer() {
    let asked = run(Script::asks_bash(), &["--answer", "permission=deny"]);
    let text = asked.of_type("run.question")[0].text("text").to_owned();
    let outcome = run(Script::asks_bash(), &["--answer", &format!("{text}=allow_once")]);
    assert_eq!(resolved(&outcome), [("input_closed", true)]);
    assert_eq!(outcome.log().answer()["behavior"], "deny");
}

#[test]
fn a_pipe_is_refused_as_a_recording_at_once() {
    let case = Case::with(Script::hello());
    let pipe = case.path("pipe");
    assert!(Command::new("/usr/bin/mkfifo").arg(&pipe).status().unwrap().success());
    let done = case.cli(&["--record", pipe.to_str().unwrap(), "go"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8(done.stderr).unwrap().contains("--record: the file cannot be written"));
}

fn session_log(case: &Case) -> support::agent::AgentLog {
    support::agent::AgentLog::new(&case.path("log"))
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let rows: [(&[&str], &str); 8] = [
        (&["--answer", "a=b", "--headless"], "not both"),
        (&["--answers", "a.json", "--headless"], "not both"),
        (&["--system-prompt", "a", "--system-prompt-file", "b"], "system prompt once"),
        (&["--continue", "--session", "a"], "--continue or --session, not both"),
        (&["--input", "jsonl", "--prompt-file", "-"], "stdin cannot hold both"),
        (&["--continue"], "needs a prompt"),
        (&["--prompt", "a", "--prompt-file", "b"], "prompt once"),
        (&["--prompt", "a", "--continue"], "--continue: claude has no earlier session in this directory. Start one"),
    ];
    for (args, says) in rows {
        let message = refused(args);
        assert!(message.contains(says), "{args:?}: {message}");
    }
    assert!(refused(&["--answer", BAD]).contains("KEY=VALUE"));
    assert!(refused(&["--answer", "=zq-bad-7731"]).contains("KEY=VALUE"));
}

#[test]
fn policies_are_written_in_pairs() {
    let outcome = run(Script::hello(), &["--permissions", "read=allow, edit=ask,*=deny"]);
    outcome.completed();
    let config = &outcome.frames[0]["payload"]["config"]["permissions"];
    assert_eq!(*config, json!({"read": "allow", "edit": "ask", "*": "deny"}));
    let json = run(Script::hello(), &["--permissions", r#"{"read":"allow"}"#]);
    assert_eq!(json.frames[0]["payload"]["config"]["permissions"], json!({"read": "allow"}));
    for policy in ["zq-bad-7731=allow", "read=zq-bad-7731", r#"{"zq-bad-7731":"allow"}"#, BAD] {
        let message = refused(&["--permissions", policy]);
        for category in spektacular::protocol::words::Category::ALL {
            assert!(message.contains(&format!("{}, ", category.word())), "{message} lacks {category:?}");
        }
    }
    assert!(refused(&["--permissions", "read=allow,zq-bad-7731"]).contains("or pairs such as read=allow,*=deny"));
    assert!(refused(&["--permissions", "read=allow,read=deny"]).contains("repeats a key"));
}

#[test]
fn a_schema_and_servers_come_from_files_too() {
    let servers = r#"{"mcpServers":{"rare-server":{"type":"stdio","command":"/bin/true"}}}"#;
    let case = |args: &[&str]| {
        let mut result = success("done");
        result["structured_output"] = json!({});
        let case = Case::with(Script::new().out(&result).sh("listen")).args(&PROMPT).args(args);
        fs::write(case.path("work/servers.json"), servers).unwrap();
        fs::write(case.path("work/schema.json"), r#"{"type":"object","title":"rare-schema"}"#).unwrap();
        fs::write(case.path("work/broken.json"), "{\n \"zq-bad-7731\"").unwrap();
        case
    };
    let argv = |outcome: &Outcome| outcome.log().argv().join(" ");
    for servers in ["@servers.json", servers] {
        let outcome = case(&["--mcp-servers", servers, "--output-schema", "@schema.json"]).spawn().finish();
        outcome.completed();
        assert!(argv(&outcome).contains("rare-server") && argv(&outcome).contains("rare-schema"), "{}", argv(&outcome));
    }
    // The last flag counts.
    let twice = ["--output-schema", "@schema.json", "--output-schema", r#"{"title":"the-last"}"#];
    let outcome = case(&twice).spawn().finish();
    assert!(argv(&outcome).contains("the-last") && !argv(&outcome).contains("rare-schema"), "{}", argv(&outcome));
    for (args, says) in [
        (["--output-schema", "@nothing-zq-bad-7731"], "--output-schema: no such file."),
        (
            ["--mcp-servers", "@broken.json"],
            "--mcp-servers: line 2, column 14 of the file: unexpected end of the JSON.",
        ),
        (["--mcp-servers", "@schema.json"], "--mcp-servers must be a list of {name, command, args, env, required}, or"),
        (["--output-schema", "zq-bad-7731"], "--output-schema must be an object."),
    ] {
        let outcome = case(&args).spawn().finish();
        let message = outcome.failed("usage")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(says), "{args:?}: {message}");
        outcome.never_shows(BAD);
    }
    // A dry run and a run with messages on stdin read the files too.
    let done = case(&[]).cli(&["--dry-run", "--mcp-servers", "@servers.json"]);
    assert!(String::from_utf8_lossy(&done.stdout).contains("rare-server"));
    let mut session = Case::with(Script::hello()).args(&["--mcp-servers", "@servers.json"]).spawn();
    fs::write(session.case.path("work/servers.json"), servers).unwrap();
    session.start(json!({}));
    session.finish();
}

#[test]
fn the_error_for_an_unreadable_file_gives_the_reason() {
    let rows: [(&str, &str); 3] = [
        ("nothing-zq-bad-7731", "no such file"),
        ("folder-zq-bad-7731", "this is a directory, not a file"),
        ("latin-zq-bad-7731", "the text must be UTF-8"),
    ];
    for flag in ["--prompt-file", "--system-prompt-file", "--answers"] {
        for (name, says) in rows {
            let prompt: &[&str] = if flag == "--prompt-file" { &[] } else { &PROMPT };
            let case = Case::with(Script::hello()).args(prompt).args(&[flag, name]);
            fs::create_dir(case.path("work/folder-zq-bad-7731")).unwrap();
            fs::write(case.path("work/latin-zq-bad-7731"), b"\xe9").unwrap();
            let outcome = case.spawn().finish();
            assert_eq!(outcome.failed("usage")["message"], format!("{flag}: {says}."));
            outcome.never_shows(BAD);
        }
    }
    // Root may read every file and is not refused.
    let case = Case::with(Script::hello()).args(&["--prompt-file", "mine"]);
    let path = case.path("work/mine");
    fs::write(&path, "go").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let readable = fs::read(&path).is_ok();
    let outcome = case.spawn().finish();
    if readable {
        outcome.completed();
    } else {
        let message = &outcome.failed("usage")["message"];
        assert_eq!(message, "--prompt-file: no permission to read the file.");
    }
}

#[test]
fn a_system_prompt_comes_from_a_file() {
    let case = Case::with(Script::hello()).args(&PROMPT).args(&["--system-prompt-file", "system.txt"]);
    fs::write(case.path("work/system.txt"), "Speak\nplainly.\n").unwrap();
    let outcome = case.spawn().finish();
    outcome.completed();
    let argv = outcome.log().argv();
    assert!(argv.iter().any(|arg| arg == "--append-system-prompt=Speak\nplainly."), "{argv:?}");
}

#[test]
fn a_signal_while_the_prompt_is_read_ends_in_a_frame() {
    for prompt in [&["--prompt-file", "-"][..], &["-"][..]] {
        let session = Case::with(Script::hello()).args(prompt).spawn();
        // The program handles signals once its signal thread runs.
        let status = format!("/proc/{}/task", session.pid());
        let named = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        session.wait_until("the thread that reads the prompt", || {
            let threads = fs::read_dir(&status).into_iter().flatten().flatten();
            threads.map(named).any(|name| name.trim() == "start")
        });
        session.signal(Signal::TERM);
        let outcome = session.finish();
        assert_eq!(outcome.cancelled()["source"], "signal");
        assert_eq!(outcome.frames.len(), 1);
    }
}

#[test]
fn without_the_flag_stdin_is_not_read_and_nothing_is_asked() {
    let mut session = begin(Script::asks_bash(), &[]);
    session.send_line("this is no message");
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.resolutions(), ["headless"]);
    assert!(outcome.warnings("malformed_message").is_empty());
}

/// The session that the last start of the fake agent was to resume.
fn resumed(case: &Case) -> Option<String> {
    let argv = session_log(case).argv();
    argv.iter().find_map(|arg| arg.strip_prefix("--resume=")).map(str::to_owned)
}

#[track_caller]
fn git(work: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(work).output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_last_session_is_continued_and_git_sees_no_change() {
    let case = Case::with(Script::hello()).git();
    let first = case.cli(&["one"]);
    assert_eq!(first.status.code(), Some(0));
    assert_eq!(resumed(&case), None);
    assert_eq!(git(&case.work(), &["status", "--porcelain"]), "", "the work tree is dirty");
    let second = case.cli(&["--continue", "--agent", "claude-code", "two"]);
    assert_eq!(second.status.code(), Some(0));
    assert_eq!(resumed(&case).as_deref(), Some(SESSION));
    assert!(!String::from_utf8_lossy(&second.stderr).contains(".spektacular"), "it shows up as an artifact");
    let other = case.cli(&["--continue", "--agent", "codex", "three"]);
    let told = String::from_utf8_lossy(&other.stderr);
    assert!(
        told.contains(
            "--continue: codex has no earlier session in this directory. The last session here is from claude: add --agent claude."
        ),
        "{told}"
    );
    // From another directory, the session is found by the directory that the flag names.
    fs::create_dir(case.path("work/sub")).unwrap();
    assert_eq!(case.cli(&["-C", "sub", "--continue", "three"]).status.code(), Some(2));
    assert_eq!(case.cli(&["-C", "../work", "--continue", "three"]).status.code(), Some(0));
    assert_eq!(resumed(&case).as_deref(), Some(SESSION));
}

#[test]
fn a_session_id_that_is_a_secret_is_hidden_and_can_be_continued() {
    let case = Case::with(Script::hello()).git();
    let first = case.cli(&["--verbose", "--secret", SESSION, "one"]);
    assert_eq!(first.status.code(), Some(0));
    let shown = String::from_utf8_lossy(&first.stderr);
    assert_eq!(shown.matches("session [redacted]").count(), 2, "{shown}");
    assert!(!shown.contains(SESSION), "{shown}");
    assert_eq!(case.cli(&["--continue", "two"]).status.code(), Some(0));
    assert_eq!(resumed(&case).as_deref(), Some(SESSION));
}

#[test]
fn runs_that_end_at_the_same_time_all_keep_their_sessions() {
    let case = Case::new();
    let fake = Script::hello().render(&case.path("log"));
    // Each process of the agent has a session of its own.
    let own = format!("#!/bin/sh\nfake-claude \"$@\" | sed -u \"s/{SESSION}/s-$$/g\"\n");
    let case = case.program("fake-claude", &fake).program("claude", &own);
    fs::create_dir(case.path("work/.spektacular")).unwrap();
    let runs: Vec<_> = (0..12).map(|number| case.started(&["--output", "cli", &format!("task {number}")])).collect();
    for run in runs {
        let said = run.wait_with_output().unwrap();
        assert_eq!(said.status.code(), Some(0), "{said:?}");
        assert!(!String::from_utf8_lossy(&said.stderr).contains("could not be stored"), "{said:?}");
    }
    let listed = case.run(&["sessions", "--output", "json"]).json(0);
    let mut prompts: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().map(|one| one["prompt"].as_str().unwrap()).collect();
    prompts.sort_unstable();
    let mut wanted: Vec<String> = (0..12).map(|number| format!("task {number}")).collect();
    wanted.sort_unstable();
    assert_eq!(prompts, wanted);
}

#[test]
fn the_last_sessions_are_listed_with_their_first_words() {
    let secret = "tr0ub4dor-tr0ub4dor";
    let case = Case::with(Script::hello());
    let prompt = format!("\n  Fix the test with {secret} \u{1b}[31mnow\nand more");
    assert_eq!(case.cli(&["--secret", secret, "--prompt", &prompt]).status.code(), Some(0));
    assert!(!case.path("work/.spektacular").exists(), "a folder that is no project has a trace of the run");
    let listed = case.run(&["sessions"]);
    assert_eq!((listed.code, listed.err.as_str()), (Some(0), ""));
    let words: Vec<&str> = listed.out.split_whitespace().collect();
    assert_eq!(words[..2], [SESSION, "claude"], "{}", listed.out);
    assert_eq!(words[3], "ago", "{}", listed.out);
    assert_eq!(words[4..].join(" "), "Fix the test with [redacted] now", "{}", listed.out);
    // A run that continues the session replaces it in the list.
    assert_eq!(case.cli(&["--continue", "two"]).status.code(), Some(0));
    let json = case.run(&["sessions", "--output", "json"]).json(0);
    let all = json["sessions"].as_array().unwrap();
    assert_eq!((all.len(), &all[0]["session_id"], &all[0]["prompt"]), (1, &json!(SESSION), &json!("two")));
    assert_eq!(case.other("home", &["sessions"]).output().unwrap().stdout, b"");
}

#[test]
fn for_an_orchestrator_a_session_is_kept_only_where_the_folder_is() {
    let first = run(Script::hello(), &[]);
    first.completed();
    assert!(!first.case().path("work/.spektacular").exists());

    let case = Case::with(Script::hello()).args(&PROMPT);
    fs::create_dir(case.path("work/.spektacular")).unwrap();
    let outcome = case.spawn().finish();
    outcome.completed();
    let kept = outcome.case().path("work/.spektacular/local/sessions/claude");
    assert!(fs::read_to_string(kept).unwrap().starts_with(&format!("{SESSION}\t")));

    // An orchestrator stores and resumes its own sessions.
    let mut session = Case::with(Script::hello()).spawn();
    fs::create_dir(session.case.path("work/.spektacular")).unwrap();
    session.start(json!({}));
    let outcome = session.finish();
    outcome.completed();
    assert!(!outcome.case().path("work/.spektacular/local").exists());
}

#[test]
fn nothing_is_kept_through_a_link() {
    for link in [".spektacular", ".spektacular/local"] {
        let case = Case::with(Script::hello());
        let target = case.path("home");
        if link.contains('/') {
            fs::create_dir(case.path("work/.spektacular")).unwrap();
        }
        symlink(&target, case.path("work").join(link)).unwrap();
        let done = case.cli(&["go"]);
        assert_eq!(done.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&done.stderr).contains("could not be stored for --continue"));
        assert_eq!(fs::read_dir(target).unwrap().count(), 0, "something was written through {link}");
    }
}

#[test]
fn an_invalid_session_id_is_not_resumed() {
    let case = Case::with(Script::hello());
    let folder = case.path("work/.spektacular/local/sessions");
    fs::create_dir_all(&folder).unwrap();
    fs::write(case.path("secret"), "somebody's\n").unwrap();
    symlink(case.path("secret"), folder.join("claude")).unwrap();
    assert_eq!(case.cli(&["--continue", "go"]).status.code(), Some(2));
    fs::remove_file(folder.join("claude")).unwrap();
    for text in ["", "\n", "../../evil.jsonl\n", "--yes\n", ".\n", "a b\n", &"x".repeat(2000)] {
        fs::write(folder.join("claude"), text).unwrap();
        assert_eq!(case.cli(&["--continue", "go"]).status.code(), Some(2), "{text:?}");
    }
}

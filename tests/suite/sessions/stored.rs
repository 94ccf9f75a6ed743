//! Stored sessions: their names, `sessions show` and `sessions rm`, and runs that store none.

use crate::support::agent::{AgentLog, SESSION, Script};
use crate::support::case::Did;
use crate::support::{Case, read};
use serde_json::{Value, json};
use std::fs;

/// The file with the sessions of Claude Code.
const FILE: &str = "work/.spektacular/local/sessions/claude";

/// A case with a fake agent that has run once, in a session with the name `parser`.
#[track_caller]
fn named() -> Case {
    let case = Case::with(Script::hello());
    fs::create_dir(case.path("work/.spektacular")).unwrap();
    let did = ok(&case, &["adhoc", "--name", "parser", "Fix the parser\nand more"]);
    assert!(did.err.contains(&format!("session {SESSION}: resume with --resume parser\n")), "{did:?}");
    case
}

#[track_caller]
fn ok(case: &Case, args: &[&str]) -> Did {
    let did = case.run(args);
    assert_eq!(did.code, Some(0), "{args:?}: {did:?}");
    did
}

#[track_caller]
fn shown(case: &Case, session: &str) -> Value {
    case.run(&["sessions", "show", session, "--output", "json"]).json(0)["session"].clone()
}

#[test]
fn a_session_is_shown_by_its_name_and_by_its_id() {
    let case = named();
    let entry = shown(&case, "parser");
    assert_eq!(shown(&case, SESSION), entry);
    assert_eq!(case.run(&["sessions", "--output", "json"]).json(0)["sessions"], json!([entry]));
    assert_eq!(
        (&entry["name"], &entry["agent"], &entry["session_id"]),
        (&json!("parser"), &json!("claude"), &json!(SESSION))
    );
    assert_eq!((&entry["prompt"], entry["at"].is_u64()), (&json!("Fix the parser"), true), "{entry}");
    assert_eq!(entry["cwd"], json!(case.work().canonicalize().unwrap()));
    let text = ok(&case, &["sessions", "show", "parser"]).out;
    for line in [
        &format!("session    {SESSION}\n"),
        "name       parser\n",
        "agent      claude\n",
        "prompt     Fix the parser\n",
        "continue   spektacular adhoc --agent claude --resume parser \"TASK\"\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let list = ok(&case, &["sessions"]).out;
    assert!(
        list.starts_with(&format!("{SESSION}  claude  ")) && list.ends_with("s ago  parser  Fix the parser\n"),
        "{list}"
    );
}

#[test]
fn a_session_of_an_agent_that_cannot_resume_has_no_command_that_continues_it() {
    let case = Case::new();
    ok(&case, &["adhoc", "--agent", "demo", "--name", "first", "Greet"]);
    let text = ok(&case, &["sessions", "show", "first"]).out;
    assert!(text.contains("agent      demo\n") && !text.contains("continue"), "{text}");
}

#[test]
fn a_session_is_resumed_by_its_name_and_keeps_it() {
    let case = named();
    for flag in ["--resume", "--session"] {
        ok(&case, &["adhoc", flag, "parser", "Test it"]);
        assert!(AgentLog::new(&case.path("log")).argv().iter().any(|arg| arg.contains(SESSION)));
        let entry = shown(&case, "parser");
        assert_eq!((&entry["name"], &entry["prompt"]), (&json!("parser"), &json!("Test it")));
    }
    ok(&case, &["adhoc", "--resume", "parser", "--name", "lexer", "Rename it"]);
    assert_eq!(shown(&case, SESSION)["name"], "lexer");
}

/// Neither agents nor their files keep two processes from writing one session.
#[test]
#[cfg_attr(not(feature = "linux"), ignore = "the session of two runs")]
fn a_session_that_another_run_writes_is_busy() {
    let talker = Script::new().say("msg_1", "working on it");
    let mut first = Case::with(talker.sh("if [ -e \"$D/alone\" ]; then leave; fi").sh("listen")).spawn();
    first.start(json!({}));
    first.until_text("working on it");
    let resume = ["adhoc", "--output", "json", "--resume", SESSION, "x"];
    let did = first.case().run(&resume);
    assert!(did.code == Some(1) && did.out.contains(r#""code":"session_busy""#), "{did:?}");
    // A retry finds the session in the last frame.
    assert!(did.out.contains(&format!(r#""session_id":"{SESSION}","artifacts""#)), "{did:?}");
    assert!(did.out.contains(r#""retryable":true"#) && first.log().starts() == 1, "{did:?}");
    first.cancel();
    // The run that has its terminal frame has freed the session.
    let cancelled = first.until("run.cancelled");
    assert_eq!(cancelled["payload"]["session_id"], SESSION);
    fs::write(first.log().path("alone"), "").unwrap();
    let did = first.case().run(&resume);
    assert!(did.out.contains(r#""code":"agent_exited""#) && first.log().starts() == 2, "{did:?}");
}

#[test]
fn an_unknown_name_gets_a_similar_one() {
    let case = named();
    for (args, code, why) in [
        (&["sessions", "show", "parsr"][..], 1, "session_not_found: Unknown session parsr. Did you mean parser?"),
        (&["sessions", "rm", "zzz"], 1, "session_not_found: Unknown session zzz. `spektacular sessions` lists them."),
        (&["sessions", "show", "a private text"], 1, "session_not_found: Unknown session. `spektacular"),
        (&["sessions", "shw", "parser"], 2, "Unknown action shw. Did you mean show?"),
        (&["sessions", "rm"], 2, "Missing SESSION: sessions rm SESSION."),
        (&["adhoc", "--resume", "parsr", "x"], 2, "Unknown session parsr. Did you mean parser?"),
        (&["adhoc", "--resume", "zzz", "x"], 2, "Unknown session zzz. `spektacular sessions` lists them"),
        (
            &["adhoc", "--agent", "demo", "--resume", "parser", "x"],
            2,
            "parser is a session of claude: add --agent claude.",
        ),
        (&["adhoc", "--name", "parser", "x"], 2, "To continue it: --resume parser."),
        (&["adhoc", "--name", "a b", "x"], 2, "--name must be 1 to 64 letters, digits"),
        (&["adhoc", "--name", "-a", "x"], 2, "--name must be 1 to 64 letters, digits"),
        (&["adhoc", "--name", "a", "--no-session", "x"], 2, "Give --name or --no-session, not both."),
        (&["adhoc", "--name", "--yes", "x"], 2, "The next word is the flag --yes."),
    ] {
        let did = case.run(args);
        let said = did.refused(code);
        assert!(said.contains(why) && !said.contains("private"), "{args:?}: {said}");
    }
    assert_eq!(AgentLog::new(&case.path("log")).starts(), 1);
    // The agent may know an id that spektacular does not.
    ok(&case, &["adhoc", "--resume", SESSION, "x"]);
    ok(&case, &["adhoc", "--resume", "other-1", "x"]);
    assert!(AgentLog::new(&case.path("log")).argv().contains(&"--resume=other-1".to_owned()));
}

#[test]
fn a_removed_session_leaves_the_list() {
    let case = named();
    fs::write(case.path(FILE), read(&case.path(FILE)) + "other\t1\tOld task\n").unwrap();
    assert_eq!(
        ok(&case, &["sessions", "rm", "parser"]).out,
        format!("removed {SESSION} of claude; the agent keeps its own files\n")
    );
    let list = case.run(&["sessions", "--output", "json"]).json(0);
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    let old = json!({"agent": "claude", "session_id": "other", "name": null, "at": 1, "cwd": list["sessions"][0]["cwd"],
        "prompt": "Old task", "cost_usd": null});
    assert_eq!(list["sessions"][0], old, "a line of an earlier version");
    assert_eq!(case.run(&["sessions", "rm", "other", "--output", "json"]).json(0)["removed"], old);
    assert_eq!(ok(&case, &["sessions"]).out, "");
}

#[test]
fn a_session_with_a_name_outlasts_the_others() {
    let case = named();
    let others: String = (0..25).map(|at| format!("s{at}\t{at}\tx\n")).collect();
    fs::write(case.path(FILE), others.replace("s19\t19\tx", "s19\t19\tx\tkept")).unwrap();
    ok(&case, &["adhoc", "One more"]);
    let list = case.run(&["sessions", "--output", "json"]).json(0);
    let ids: Vec<&str> =
        list["sessions"].as_array().unwrap().iter().map(|one| one["session_id"].as_str().unwrap()).collect();
    assert_eq!(
        (ids.len(), ids.contains(&SESSION), ids.contains(&"s19"), ids.contains(&"s18")),
        (20, true, true, false)
    );
}

/// Outside projects, the sessions of all directories are in one folder.
#[test]
fn a_directory_may_have_the_name_of_an_agent() {
    let case = Case::with(Script::hello());
    for folder in ["work", "work/claude", "work/claude/claude"] {
        fs::create_dir_all(case.path(folder)).unwrap();
        let run = |args: &[&str]| case.other(folder, args).output().unwrap();
        let ended = run(&["adhoc", &format!("Fix {folder}")]);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success() && !said.contains("could not be stored"), "{folder}: {said}");
        let list = String::from_utf8(run(&["sessions"]).stdout).unwrap();
        assert!(list.ends_with(&format!("Fix {folder}\n")) && list.lines().count() == 1, "{folder}: {list}");
    }
}

#[test]
fn a_run_may_store_no_session() {
    let case = Case::with(Script::hello());
    let did = ok(&case, &["adhoc", "--no-session", "Fix it"]);
    assert!(did.err.contains(&format!("session {SESSION}\n")), "{did:?}");
    assert_eq!(ok(&case, &["sessions"]).out, "");
    let none = case.listing().iter().all(|path| !path.ends_with("sessions"));
    assert!(none, "{:?}", case.listing());
}

#[test]
fn a_program_may_name_the_session_of_its_run() {
    let case = Case::with(Script::hello());
    ok(&case, &["adhoc", "--output", "json", "--name", "parser", "Fix it"]);
    assert_eq!(shown(&case, "parser")["session_id"], SESSION);
    let did = case.run(&["adhoc", "--output", "json", "--name", "lexer"]);
    assert_eq!(did.code, Some(2));
    assert!(did.out.contains("--name needs a prompt on the command line"), "{did:?}");
}

#[test]
fn names_are_completed() {
    let case = named();
    for before in [&["adhoc", "--resume"][..], &["export"], &["sessions", "show"], &["sessions", "rm"]] {
        let args = [&["__complete", "."], before].concat();
        let offered = ok(&case, &args).out;
        for word in ["parser", SESSION] {
            assert!(offered.contains(&format!("{word}\tclaude: Fix the parser\n")), "{before:?}: {offered}");
        }
    }
}

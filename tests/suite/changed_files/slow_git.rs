//! Unreported file changes with a slow git: only the end of the run waits for git, and for at most two seconds.

#![cfg(target_os = "linux")]
use crate::support;

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use support::agent::{Script, quote};
use support::{Case, Outcome, Session, run, slack};

const LIMIT: Duration = Duration::from_secs(2);

/// Puts a git on the PATH whose `status` first runs this script. `$N` counts the `status` calls from 1; `$D` is a
/// folder for notes.
fn with_git(case: Case, script: &str) -> Case {
    let log = quote(&case.path("log").display().to_string());
    let text = format!(
        "#!/bin/sh\nD={log}\ncase \" $* \" in *' status '*)\n  echo >>\"$D/asked\"; N=$(wc -l <\"$D/asked\")\n  {script}\n;; esac\nexec /usr/bin/git \"$@\"\n"
    );
    case.git().program("git", &text)
}

/// A git script that never answers.
const HANGS: &str = "echo $$ >\"$D/git.pid\"; exec sleep 1000";

/// Makes a file after a pause longer than the granularity of a file system's clock, so that the file is newer than
/// the start of the run.
const MAKES: &str = "sleep 0.05; echo x >made.txt";

/// An agent that makes a file with a shell command, which it does not report.
fn makes_a_file() -> Case {
    Case::with(Script::new().sh(MAKES).say("msg_1", "Made").done("Made"))
}

/// A case whose agent is a shell command.
fn command(script: &str) -> Case {
    let entry = json!({"driver": "lines", "command": "sh", "args": ["-c", script]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}});
    Case::new().file("home/.config/spektacular/config.json", &config.to_string())
}

fn paths(outcome: &Outcome) -> Vec<&str> {
    let all = outcome.completed()["artifacts"].as_array().unwrap();
    all.iter().map(|one| one["path"].as_str().unwrap()).collect()
}

fn hangs(session: &Session) {
    session.wait_until("git to hang", || session.log().path("git.pid").exists());
}

/// Checks that the hanging git was stopped.
#[track_caller]
fn is_gone(outcome: &Outcome) {
    let pid = fs::read_to_string(outcome.log().path("git.pid")).unwrap();
    let gone = || !support::procs::alive(pid.trim().parse().unwrap());
    assert!(support::io::wait_for(slack(), gone), "git {} is left", pid.trim());
}

#[test]
fn a_file_that_is_deleted_before_the_baseline_is_reported_as_deleted() {
    // A file's time is coarse: the pause makes the deletion newer than the start of the run.
    let deletes = Script::new().sh("sleep 0.05; rm old.txt; note deleted").say("msg_1", "Gone").done("Gone");
    let waits = "[ \"$N\" -gt 1 ] || until grep -q deleted \"$D/notes\" 2>/dev/null; do sleep 0.01; done";
    let outcome = run(with_git(Case::with(deletes), waits), json!({}));
    assert_eq!(paths(&outcome), ["old.txt"]);
}

#[test]
fn a_suspended_program_does_not_suspend_its_git() {
    // A git that is stopped before it begins keeps the program from stopping, and the shell waits for that.
    let until = |name: &str| format!("until [ -e \"$D/{name}\" ]; do sleep 0.01; done");
    let asked = format!("touch \"$D/asks\"; {}; touch \"$D/answered\"", until("answer"));
    let agent = Script::new().sh(&until("answered")).say("msg_1", "Done").done("Done");
    let mut session = with_git(Case::with(agent), &asked).spawn();
    session.start(json!({}));
    session.until_where("the agent's session", |frame| frame.is_progress("session"));
    session.wait_until("git to ask", || session.log().path("asks").exists());
    session.signal(Signal::TSTP);
    session.wait_until("the program to stop", || support::procs::stopped(session.pid().cast_signed()));
    fs::write(session.log().path("answer"), "").unwrap();
    session.wait_until("git to answer", || session.log().path("answered").exists());
    session.signal(Signal::CONT);
    session.finish().completed();
}

#[test]
fn a_commit_before_the_baseline_is_a_warning() {
    // A file's time is coarse: the pause makes the commit newer than the start of the run.
    let commits = "sleep 0.05; echo x >made.txt; /usr/bin/git add .; \
                   /usr/bin/git -c user.name=t -c user.email=t@example.org commit -q -m two; note committed";
    let agent = Script::new().sh(commits).say("msg_1", "Made").done("Made");
    let waits = "[ \"$N\" -gt 1 ] || until grep -q committed \"$D/notes\" 2>/dev/null; do sleep 0.01; done";
    let outcome = run(with_git(Case::with(agent), waits), json!({}));
    assert_eq!(outcome.warnings("artifacts_incomplete").len(), 1);
}

#[test]
fn a_slow_git_has_two_seconds_after_the_end() {
    let outcome = run(with_git(makes_a_file(), "sleep 0.6"), json!({}));
    assert_eq!(paths(&outcome), ["made.txt"]);
    assert!(outcome.warnings("artifacts_incomplete").is_empty());
    // A plain command as the agent gets the same time.
    let outcome = run(with_git(command(&format!("{MAKES}; echo ok")), "sleep 0.6"), json!({}));
    assert_eq!(paths(&outcome), ["made.txt"]);
}

#[test]
fn a_slow_git_is_abandoned_with_a_warning() {
    for script in [HANGS, "test $N = 1 || { echo $$ >\"$D/git.pid\"; exec sleep 1000; }"] {
        let outcome = run(with_git(makes_a_file(), script), json!({}));
        assert_eq!(paths(&outcome), Vec::<&str>::new());
        let warnings = outcome.warnings("artifacts_incomplete");
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].text("text").starts_with("git was too slow: "), "{}", warnings[0].raw);
        assert!(outcome.took() > LIMIT && outcome.took() < LIMIT + LIMIT, "{:?}", outcome.took());
        is_gone(&outcome);
    }
}

#[test]
fn a_repository_that_git_cannot_read_has_its_own_message() {
    let case = with_git(makes_a_file(), ":");
    fs::write(case.path("work/.git/config"), "[broken\n").unwrap();
    let outcome = run(case, json!({}));
    let warnings = outcome.warnings("artifacts_incomplete");
    assert!(warnings[0].text("text").ends_with("see `git status`"), "{}", warnings[0].raw);
    assert!(outcome.took() < LIMIT, "{:?}", outcome.took());
}

#[test]
fn nothing_waits_for_a_baseline() {
    let script = Script::asks_bash().say("msg_2", "Going on");
    let mut session = with_git(Case::with(script), HANGS).spawn();
    session.start(json!({}));
    hangs(&session);
    let question = session.until("run.question");
    let asked = Instant::now();
    session.answer(&question, json!("allow_once"));
    session.until_progress("question_resolved");
    assert!(asked.elapsed() < slack(), "{:?}", asked.elapsed());
    session.until_where("the result", |frame| frame.is_progress("usage") || frame.is_progress("tool"));
    session.finish().completed();
}

#[test]
fn a_stop_waits_for_no_git() {
    for by_signal in [true, false] {
        // Stop while the agent works, or after its end while only git is awaited.
        for over in [false, true] {
            let script = if over { "echo up" } else { "echo up; exec sleep 1000" };
            let mut session = with_git(command(script), HANGS).spawn();
            session.start(json!({"progress": "full"}));
            session.until_text("up");
            hangs(&session);
            let asked = Instant::now();
            match by_signal {
                true => session.signal(Signal::TERM),
                false => drop(session.cancel()),
            }
            let outcome = session.finish();
            outcome.cancelled();
            assert!(outcome.warnings("artifacts_incomplete").is_empty());
            // A command has no interrupt of its own, so it gets SIGTERM at once.
            let took = outcome.ended - asked;
            assert!(took < slack(), "by_signal {by_signal}, over {over}: {took:?}");
            is_gone(&outcome);
        }
    }
}

#[test]
fn a_cancel_after_the_result_hurries_git_and_the_outcome_stands() {
    let mut session = with_git(Case::with(Script::new().result("Done").sh("leave")), HANGS).spawn();
    session.start(json!({}));
    hangs(&session);
    session.until_progress("usage");
    let pid = session.log().pid();
    session.wait_until("the agent's end", || !support::procs::alive(pid));
    let asked = Instant::now();
    session.cancel();
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], "Done");
    assert_eq!(outcome.warnings("artifacts_incomplete").len(), 1);
    assert!(outcome.ended - asked < slack(), "{:?}", outcome.ended - asked);
    is_gone(&outcome);
}

#[test]
fn no_limit_passes_while_git_lists_the_changes() {
    for limit in ["timeout_s", "idle_timeout_s"] {
        let case = with_git(command(&format!("{MAKES}; echo ok")), "test $N = 1 || sleep 1.5");
        let outcome = run(case, json!({limit: 1, "heartbeat_s": 0.4}));
        assert_eq!(paths(&outcome), ["made.txt"], "{limit}");
        assert!(!outcome.progress("heartbeat").is_empty(), "{limit}");
    }
}

#[test]
fn processes_that_outlive_the_agent_are_swept_and_git_is_not() {
    let leaves = format!("setsid sleep 1000 & {MAKES}; echo ok");
    let outcome = run(with_git(command(&leaves), "sleep 0.6"), json!({}));
    assert_eq!(paths(&outcome), ["made.txt"]);
    assert_eq!(outcome.warnings("leaked_process").len(), 1);
    assert!(outcome.left.is_empty(), "{:?}", outcome.left);
}

#[test]
fn a_process_that_outlives_the_agent_is_reported_even_if_its_sweep_waits() {
    // The sweep waits for git, longer than the agent has to exit after its result.
    let script = Script::new().sh("setsid sleep 1000 &").done("Done");
    let outcome = run(with_git(Case::with(script), HANGS), json!({}));
    assert_eq!(outcome.completed()["agent_exit"]["code"], 0);
    assert_eq!(outcome.warnings("leaked_process").len(), 1);
}

#[test]
fn an_agent_that_is_made_to_leave_does_not_take_git_with_it() {
    // The agent lingers after its result, so it gets SIGTERM two seconds later, while the baseline is still being
    // taken.
    let script = Script::new().sh(MAKES).result("Done").sh("while :; do sleep 0.1; done");
    let outcome = run(with_git(Case::with(script), "test $N != 1 || sleep 2.6"), json!({}));
    assert_eq!(outcome.completed()["agent_exit"]["signal"], 15);
    assert_eq!(paths(&outcome), ["made.txt"]);
    assert!(outcome.warnings("artifacts_incomplete").is_empty());
}

#[test]
fn one_warning_is_enough_for_several_processes() {
    let marker = r#"<!--QUESTION:{"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}-->"#;
    let entry = json!({"driver": "lines", "command": "sh", "session_patterns": ["session: (\\S+)"],
        "args": ["-c", "echo 'session: s-1'; printf '%s\\n' \"$0\"", marker],
        "resume_args": ["-c", "echo again", "{session}", "{prompt}"]});
    let config = json!({"agent": "cmd", "agents": {"cmd": entry}});
    let case = Case::new().file("home/.config/spektacular/config.json", &config.to_string());
    let mut session = with_git(case, HANGS).spawn();
    session.start(json!({}));
    let question = session.until("run.question");
    session.answer(&question, json!("A"));
    let outcome = session.finish();
    assert_eq!(outcome.completed()["text"], Value::from("again"));
    assert_eq!(outcome.warnings("artifacts_incomplete").len(), 1);
}

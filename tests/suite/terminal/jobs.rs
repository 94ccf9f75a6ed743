//! Tests of job control: runs in a background process group, in shells that have job control, and the ways back to the
//! foreground.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::codex::Codex;
use crate::support::agent::Script;
use crate::support::person::{CTRL_D, CTRL_Z, Person};
use crate::support::{Case, io, limit, procs};

/// A shell with a person at it. It runs the program as `"$B"`.
const INTERACTIVE: &str = "export B=\"$1\"; exec bash --norc --noprofile --noediting -i";

/// A script that has job control, and runs the program in the background.
const IN_BACKGROUND: &str = "set -m; \"$@\" & wait $!; echo \"ended with $?\"";

fn with_hello() -> Case {
    Case::with(Script::hello())
}

fn at_a_shell(codex: String) -> Person {
    let mut person = Case::new().program("codex", &codex).env("PS1", "% ").shell(INTERACTIVE).at_terminal(&[]);
    person.waits_for("% ");
    person
}

#[track_caller]
fn leaves_the_shell(person: &mut Person) {
    person.types("exit\n");
    assert_eq!(person.ends().0, 0);
}

/// Prints its process id.
fn starts_in_background(person: &mut Person, args: &str) -> u32 {
    person.types(&format!("\"$B\" adhoc {args} & echo \"pid=$!=\"\n"));
    person.waits_for("\npid=");
    person.waits_for("=").trim_end_matches('=').parse().unwrap()
}

/// The shell has the terminal and gets the typed input.
fn the_shell_answers(person: &mut Person) {
    person.types("echo shell-$((40 + 2))\n");
    person.waits_for("shell-42");
}

#[test]
fn a_background_job_that_has_nothing_to_ask_completes() {
    for shell in [IN_BACKGROUND, "exec bash -c 'set -m; \"$@\" & wait $!; echo \"ended with $?\"' bash \"$@\""] {
        let mut person = with_hello().shell(shell).at_terminal(&["adhoc", "--yes", "go"]);
        person.waits_for("Hello");
        person.waits_for("ended with 0");
        assert_eq!(person.ends().0, 0);
    }
}

#[test]
fn a_run_under_timeout_completes_within_its_time() {
    let mut person =
        with_hello().shell("timeout 60 \"$@\"; echo \"ended with $?\"").at_terminal(&["adhoc", "--yes", "go"]);
    person.waits_for("ended with 0");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_run_with_its_prompt_from_json_needs_no_terminal_in_the_background() {
    let mut person = with_hello().shell(IN_BACKGROUND).at_terminal(&["adhoc", "--output", "json", "--prompt", "go"]);
    person.waits_for("\"type\":\"run.completed\"");
    person.waits_for("ended with 0");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_question_in_the_background_waits_for_fg() {
    let codex = Codex::new().asks("text", "What name?", json!({})).asks("text", "What colour?", json!({}));
    let mut person = at_a_shell(codex.says("Thank you."));
    person.types("\"$B\" adhoc --agent codex go &\n");
    person.waits_for("What name?");
    person.waits_for("! To answer, bring the run to the foreground: fg");
    the_shell_answers(&mut person);
    // bash gives the terminal to a job that is running, but sends no signal.
    person.types("fg\n");
    person.answers("What name?", "web");
    let seen = person.answers("What colour?", "red");
    assert!(!seen.contains("foreground"), "{seen}");
    person.waits_for("Thank you.");
    person.waits_for("% ");
    the_shell_answers(&mut person);
    leaves_the_shell(&mut person);
    let told = person.file("log/stdin");
    assert!(told.contains("web") && told.contains("red") && !told.contains("shell"), "{told}");
}

#[test]
fn a_question_keeps_waiting_through_ctrl_z_bg_and_fg() {
    let codex = Codex::new().asks("text", "What name?", json!({})).says("Thank you.");
    let mut person = at_a_shell(codex);
    person.types("\"$B\" adhoc --agent codex go\n");
    person.waits_for("What name?");
    person.waits_for("> ");
    person.types(CTRL_Z);
    person.waits_for("Stopped");
    the_shell_answers(&mut person);
    person.types("bg\n");
    person.waits_for("What name?");
    person.waits_for("bring the run to the foreground: fg");
    the_shell_answers(&mut person);
    person.types("fg\n");
    person.answers("What name?", "web");
    person.waits_for("Thank you.");
    person.waits_for("% ");
    leaves_the_shell(&mut person);
    assert!(person.file("log/stdin").contains("web"));
}

#[test]
fn a_secret_is_hidden_once_the_run_has_the_terminal_and_not_before() {
    let codex = Codex::new().asks("secret", "What key?", json!({})).says("Thank you.");
    let mut person = at_a_shell(codex);
    person.types("\"$B\" adhoc --agent codex go &\n");
    person.waits_for("bring the run to the foreground: fg");
    the_shell_answers(&mut person);
    assert!(person.echo(), "a background run took the echo from the shell");
    person.types("fg\n");
    person.waits_for("What key?");
    person.waits_for("> ");
    assert!(!person.echo());
    person.types("open sesame\n");
    person.waits_for("Thank you.");
    person.waits_for("% ");
    assert!(person.echo());
    leaves_the_shell(&mut person);
    assert!(person.file("log/stdin").contains("open sesame"));
    assert!(!person.ends().1.contains("sesame"));
}

#[test]
fn messages_over_a_terminal_wait_for_the_foreground() {
    let mut person = at_a_shell(Codex::new().says("Thank you."));
    person.types("\"$B\" adhoc --output json &\n");
    person.waits_for("% ");
    the_shell_answers(&mut person);
    assert!(person.echo(), "a background run took the echo from the shell");
    person.types("fg\n");
    assert!(io::wait_for(limit(), || !person.echo()), "the terminal was not switched");
    person.types("{\"v\":\"1\",\"type\":\"run.start\",\"payload\":{\"prompt\":\"hi\",\"agent\":\"codex\"}}\n");
    person.waits_for("\"type\":\"run.completed\"");
    person.waits_for("% ");
    assert!(person.echo());
    leaves_the_shell(&mut person);
}

#[test]
fn ctrl_z_gives_the_shell_a_terminal_that_it_can_use_when_messages_come_over_it() {
    let mut person = at_a_shell(Codex::new().says("Thank you."));
    person.types("\"$B\" adhoc --output json\n");
    assert!(io::wait_for(limit(), || !person.echo()), "the terminal was not switched");
    person.types(CTRL_Z);
    person.waits_for("Stopped");
    the_shell_answers(&mut person);
    assert!(person.echo());
    // In the background, the program does not read, and does not run in a busy loop either.
    person.types("bg\n");
    person.waits_for("% ");
    the_shell_answers(&mut person);
    person.types("kill -TERM %1; wait %1; echo \"ended with $?\"\n");
    person.waits_for("run.cancelled");
    person.waits_for("ended with 0");
    leaves_the_shell(&mut person);
}

#[test]
fn a_background_run_that_waits_costs_no_time_of_the_processor() {
    let codex = Codex::new().asks("text", "What name?", json!({})).says("Thank you.");
    let mut person = at_a_shell(codex);
    let pid = starts_in_background(&mut person, "--agent codex go");
    person.waits_for("bring the run to the foreground: fg");
    // Input for the shell repeatedly makes the terminal readable.
    let before = procs::cpu_ticks(pid);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        the_shell_answers(&mut person);
    }
    let ticks = procs::cpu_ticks(pid) - before;
    assert!(ticks < 50, "{ticks} ticks in 2 s");
    person.types("kill -KILL %1; wait; echo gone-$((1 + 1))\n");
    person.waits_for("gone-2");
    leaves_the_shell(&mut person);
}

#[test]
fn a_background_run_draws_no_status_line() {
    let codex = Codex::new().waits_for_file("go").says("Thank you.");
    let mut person = at_a_shell(codex);
    person.types("\"$B\" adhoc --agent codex go &\n");
    // The fake agent begins its log before the run can have drawn anything. One second later, a new status line
    // appears.
    let asked = || person.file("log/stdin").contains("turn/start");
    assert!(io::wait_for(limit(), asked), "the agent was not asked");
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1500) {
        the_shell_answers(&mut person);
    }
    fs::write(person.case.path("log/go"), "").unwrap();
    let seen = person.waits_for("Thank you.");
    assert!(!seen.contains("works") && !seen.contains("starting"), "{seen:?}");
    person.types("wait\n");
    person.waits_for("% ");
    leaves_the_shell(&mut person);
    assert!(!person.ends().1.contains("Codex is working"));
}

#[test]
fn a_terminal_that_stops_background_output_is_waited_for() {
    let mut person = with_hello().env("PS1", "% ").shell(INTERACTIVE).at_terminal(&[]);
    person.waits_for("% ");
    person.types("stty tostop\n");
    person.waits_for("% ");
    let pid = starts_in_background(&mut person, "--yes go");
    let asked = || person.file("log/stdin").contains("\"user\"");
    assert!(io::wait_for(limit(), asked), "the agent was not asked");
    let (before, began) = (procs::cpu_ticks(pid), Instant::now());
    while began.elapsed() < Duration::from_secs(1) {
        the_shell_answers(&mut person);
    }
    let ticks = procs::cpu_ticks(pid) - before;
    assert!(ticks < 30, "{ticks} ticks in 1 s");
    person.types("fg\n");
    person.waits_for("Hello");
    person.waits_for("% ");
    leaves_the_shell(&mut person);
}

#[test]
fn a_prompt_from_the_terminal_waits_for_the_foreground() {
    let mut person = at_a_shell(Codex::new().says("Thank you."));
    person.types("\"$B\" adhoc --agent codex - &\n");
    person.waits_for("bring the run to the foreground with fg");
    the_shell_answers(&mut person);
    person.types("fg\n");
    person.waits_for("adhoc --agent codex -");
    person.types("a task\n");
    person.types(CTRL_D);
    person.waits_for("Thank you.");
    person.waits_for("% ");
    leaves_the_shell(&mut person);
    assert!(person.file("log/stdin").contains("\"a task\""), "{}", person.file("log/stdin"));
}

//! A long plan with two agents, a limit on the way, a kill and a run that goes on: nothing is done twice, nothing is lost.

use crate::sessions::fallback::{beside, log_of};
use crate::sessions::limits::limit;
use crate::support::agent::Script;
use crate::support::{Case, Outcome, list, run};
use crate::workflows::commits::authored;
use crate::workflows::implement::{PLAN, allowed, phase, plan};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Command;

const PHASES: u32 = 12;
/// The phase in which the first agent reaches a limit, and the one in which the run is killed.
const LIMITED: &str = "5";
const KILLED: &str = "8";

/// Does the part of its phase that is missing: a line and a file. `extra`: shell text between the two, with the number of
/// the phase as `$n`.
fn worker(extra: &str) -> Script {
    let number = r#"n=$(sed -n 's/.*# Implement Phase \([0-9]*\): .*/\1/p' "$D/stdin" | tail -n 1 | tr -d '\n')"#;
    let line = r#"echo "$n" >>"$D/phases"; grep -qx "line $n" all || echo "line $n" >>all"#;
    Script::new().sh(&format!("{number}\n{line}\n{extra}\necho \"$n\" >\"file-$n\"")).done("Done")
}

fn numbers(text: &str) -> String {
    format!("case $n in {LIMITED})\n{text};;\nesac")
}

/// A clean repository with a plan of twelve phases, and a second agent.
fn night(first: &Script, second: &Script) -> Case {
    let one = |n: u32| phase(n, &[&format!("test -s file-{n}"), &format!("grep -qx 'line {n}' all")], "");
    let text = plan(&(1..=PHASES).map(one).collect::<Vec<_>>());
    let case = Case::with(first.clone()).subcommand("implement").file(&format!("work/{PLAN}"), &text);
    let case = case.file("work/all", "begin\n").git();
    beside(authored(case), &[("second", second)])
}

fn start() -> Value {
    let mut start = allowed(json!({"commit": true}));
    start["fallback"] = json!(["second"]);
    start
}

#[track_caller]
fn git(outcome: &Outcome, args: &[&str]) -> String {
    let mut git = Command::new("git");
    let output = git.current_dir(outcome.case().work()).env_clear().env("PATH", "/usr/bin:/bin").args(args).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// Goes on by the same command. Returns the payloads of its frames.
#[track_caller]
fn again(killed: &Outcome, flags: &[&str]) -> Vec<Value> {
    let words = ["implement", "--output", "json", "--headless", "--allow-verify", "--commit", "--fallback", "second"];
    let did = killed.case().run(&[&words, flags, &["greeting"]].concat());
    assert_eq!(did.code, Some(0), "{did:?}");
    did.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].clone()).collect()
}

/// The first attempt in these frames.
fn first_attempt(frames: &[Value]) -> &str {
    let started = frames.iter().find(|payload| payload["kind"] == "phase" && payload["state"] == "started");
    started.unwrap()["phase"].as_str().unwrap()
}

/// The files of the commit that HEAD is at, without those of spektacular.
fn tree(outcome: &Outcome) -> String {
    let all = git(outcome, &["ls-tree", "-r", "HEAD"]);
    all.lines().filter(|line| !line.contains(".spektacular")).collect::<Vec<_>>().join("\n")
}

fn subjects(outcome: &Outcome) -> Vec<String> {
    git(outcome, &["log", "--reverse", "--format=%s"]).lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_night_with_a_limit_a_kill_and_two_agents_ends_as_one_without() {
    let limited = worker(&numbers(&limit(1000)));
    // It hangs in its phase until it is killed with the run.
    let hangs = format!(
        "case $n in {KILLED}) [ -e \"$D/once\" ] || {{ touch \"$D/once\"; while :; do sleep 0.1; done; }};; esac"
    );
    let case = night(&limited, &worker(&hangs));
    let once = case.path("log-second/once");
    let mut session = case.spawn();
    session.start(start());
    session.wait_until("the second agent works on its phase", || once.exists());
    session.signal(Signal::KILL);
    let killed = session.finish_unchecked();
    let before = subjects(&killed);
    assert_eq!(before.len(), 7, "{before:?}");

    let frames = again(&killed, &[]);
    let workflow = &frames.last().unwrap()["workflow"];
    assert_eq!(workflow["complete"], true);
    // Nothing is begun again but the phase that was cut off.
    assert_eq!(first_attempt(&frames), format!("P{KILLED}"));
    let phases = list(&workflow["phases"]);
    let state = |at: usize| phases[at]["state"].as_str().unwrap();
    assert!((0..7).all(|at| state(at) == "done") && (7..12).all(|at| state(at) == "passed"), "{phases:?}");
    let expected: Vec<String> = (1..=PHASES).map(|n| format!("greeting: phase {n}, Part {n}")).collect();
    assert_eq!(subjects(&killed), expected, "one commit for each phase");
    assert_eq!(git(&killed, &["status", "--porcelain"]), "");
    let worked = |log: &str| -> Vec<String> { log.lines().map(str::to_owned).collect() };
    let (first, second) = (killed.log().text("phases"), log_of(&killed, "second").text("phases"));
    // The resumed run begins with the first agent again, which has no limit in the later phases.
    assert_eq!(worked(&first), ["1", "2", "3", "4", "5", "8", "9", "10", "11", "12"]);
    assert_eq!(worked(&second), ["5", "6", "7", "8"]);

    let plain = run(night(&worker(""), &worker("")), start());
    plain.completed();
    assert_eq!(tree(&killed), tree(&plain), "the same files as without");
}

#[test]
fn a_run_that_is_killed_while_it_waits_for_a_limit_goes_on_by_the_same_command() {
    let limited =
        worker(&format!("case $n in {LIMITED}) [ -e \"$D/once\" ] || {{ touch \"$D/once\"\n{}}};; esac", limit(1000)));
    let mut waits = start();
    waits["on_rate_limit"] = json!("wait");
    let case = night(&limited, &worker(""));
    let mut session = case.spawn();
    session.start(waits.clone());
    session.until_status("waiting_for_limit");
    session.signal(Signal::KILL);
    let killed = session.finish_unchecked();
    assert_eq!(subjects(&killed).len(), 4);
    let frames = again(&killed, &["--on-rate-limit", "wait"]);
    assert_eq!(first_attempt(&frames), format!("P{LIMITED}"));
    assert_eq!(subjects(&killed).len(), PHASES as usize);
    assert!(!log_of(&killed, "second").ran());
    let plain = run(night(&worker(""), &worker("")), start());
    assert_eq!(tree(&killed), tree(&plain), "the same files as without");
}

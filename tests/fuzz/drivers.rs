//! Runs: lines on stdin, and the lines of each dialect's agents.

use super::input::Input;
use super::playback::case;
use super::round::Target;
use super::stage::{check, of_case};

/// Steps that fit every target.
const STEPS: &[&str] = &[
    "e",
    "k",
    "t",
    "o",
    "x 0",
    "x 1",
    "+ 10",
    "+ 1000",
    "+ 400000",
    "< ",
    "< {}",
    "< not JSON",
    r#"> {"v":"1","id":"c","type":"run.cancel","payload":{"reason":"Enough"}}"#,
    r#"> {"v":"1","id":"a","type":"run.input","payload":{"question_id":"$q1","value":"deny"}}"#,
    r#"> {"v":"1","type":"run.input","payload":{"question_id":"$q1","value":"allow_always"}}"#,
    r#"> {"v":"1","type":"run.input","payload":{"question_id":"$q1","value":1}}"#,
    r#"> {"v":"1","type":"run.input","payload":{"question_id":"$q2","value":[1,"x"]}}"#,
    r#"> {"v":"1","type":"run.input","payload":{"question_id":"$q1","declined":true,"message":"No"}}"#,
    r#"> {"v":"1","type":"run.input","payload":{"question_id":"$q1","value_from":{"file":"x"}}}"#,
    r#"> {"v":"2","type":"run.cancel"}"#,
    r#"> {"v":"1","type":"run.later"}"#,
    r#"> {"v":"1","type":"run.start","run_id":"other","payload":{}}"#,
    "> {",
    "> ",
];

fn of_agents(agents: &[&str]) -> Vec<Input> {
    let all = case::all();
    let wanted = all.iter().filter(|case| agents.iter().any(|agent| case.name.starts_with(agent)));
    wanted.map(of_case).collect()
}

fn driver(name: &'static str, cases: u64, seeds: fn() -> Vec<Input>) -> Target {
    Target { name, cases, seeds, words: STEPS, check, headed: true }
}

#[test]
fn claude() {
    driver("claude", 100, || of_agents(&["claude/"])).round();
}

#[test]
fn codex() {
    driver("codex", 100, || of_agents(&["codex/"])).round();
}

#[test]
fn acp() {
    driver("acp", 100, || of_agents(&["gemini/", "opencode/"])).round();
}

#[test]
fn lines() {
    driver("lines", 200, || of_agents(&["lines/"])).round();
}

#[test]
fn pi() {
    driver("pi", 100, || of_agents(&["pi/"])).round();
}

/// Lines of stdin, before and around a run that does nothing.
#[test]
fn inbound() {
    let seeds = || {
        let all = of_agents(&["claude/ask_user", "claude/permission_al", "claude/hello", "lines/minimal"]);
        let spoken = |input: Input| -> Input { input.into_iter().filter(|line| !line.starts_with(b"< ")).collect() };
        let page = include_str!("../../src/protocol/reference.md");
        let samples = page.lines().filter(|line| line.starts_with("{\"v\"") && line.ends_with('}'));
        let samples = std::iter::once("= {}".to_owned()).chain(samples.map(|line| format!("> {line}")));
        let samples: Input = samples.map(String::into_bytes).collect();
        all.clone().into_iter().chain(all.into_iter().map(spoken)).chain([samples]).collect()
    };
    driver("inbound", 200, seeds).round();
}

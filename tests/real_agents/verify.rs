//! `agents verify` with each agent.

use std::process::Stdio;

use serde_json::{Value, json};
use spektacular::agent::registry::VerifyRowName;

use crate::agents::Agent;
use crate::lab::Lab;

// Each test starts its agent at least fourteen times.
rows!(of verify_finds_what_is_known:
    claude Claude, claude_old OldClaude, codex Codex; gemini Gemini, opencode OpenCode);

fn verify_finds_what_is_known(agent: Agent) {
    let lab = Lab::new(agent, "hello");
    let mut verify = lab.case.other("work", &["agents", "verify", agent.name(), "--output", "json"]);
    let output = verify.stdin(Stdio::null()).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, rows) = lines.split_last().expect("a summary");
    assert_eq!(output.status.code(), Some(0), "{lines:#?}");
    assert_eq!(rows.len(), VerifyRowName::ALL.len());
    assert_eq!(summary["version"], agent.version());
    assert_eq!((&summary["passed"], &summary["broken"]), (&json!(true), &json!([])));
    assert!(rows.iter().all(|row| row["found"] == "kept"), "{rows:#?}");
}

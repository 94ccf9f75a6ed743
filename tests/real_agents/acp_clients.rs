//! Clients of the Agent Client Protocol that others wrote, with real agents behind `acp`: the official SDK, and acpx.

use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::agents::Agent;
use crate::lab::Lab;

rows!(ours: the_sdk_opens_two_sessions acpx_allows_a_command the_runtime_of_acpx_has_turns);
// The printed configuration names Claude Code.
rows!(of acpx_takes_the_printed_configuration: claude Claude);

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_agents/acp")
}

/// The folder with the installed clients, next to that of the real agents.
#[track_caller]
fn installed() -> PathBuf {
    let given = std::env::var_os("SPEKTACULAR_AGENTS").map(PathBuf::from);
    let cache = given.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("real-agents"));
    let folder = cache.join("acp");
    fs::create_dir_all(&folder).expect("cache folder");
    // Other test processes may install at the same time.
    let guard = File::create(folder.join("lock")).expect("lock file");
    guard.lock().expect("lock");
    let pins = fs::read(here().join("package.json")).expect("package.json");
    if fs::read(folder.join("installed")).ok().as_deref() != Some(pins.as_slice()) {
        fs::write(folder.join("package.json"), &pins).expect("package.json");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        let output = npm.current_dir(&folder).stdin(Stdio::null()).output().expect("npm is needed");
        assert!(output.status.success(), "npm install: {}", String::from_utf8_lossy(&output.stderr));
        fs::write(folder.join("installed"), &pins).expect("installed");
    }
    folder.join("node_modules")
}

/// Runs a script of node in the lab. Returns its stdout, after an exit with 0.
#[track_caller]
fn node(lab: &Lab, script: &Path, args: &[&str]) -> String {
    let mut command = lab.case.command("node");
    command.arg(script).args(args).env("PACKAGES", installed()).env("PROGRAM", PROGRAM).env("AGENT", lab.agent.name());
    let done = command.stdin(Stdio::null()).output().expect("node");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}{err}");
    out.into_owned()
}

/// The SDK checks each message by the schema of the protocol. A diff, a permission, a cancel, and a second prompt.
fn the_sdk_opens_two_sessions(agent: Agent) {
    let lab = Lab::new(agent, "acp_sessions");
    let out = node(&lab, &here().join("sdk.mjs"), &[]);
    let found: Value = serde_json::from_str(out.trim()).unwrap();
    assert_eq!(
        (&found["written"]["stopReason"], &found["again"]["stopReason"]),
        (&"end_turn".into(), &"end_turn".into())
    );
    assert_eq!(found["cancelled"]["stopReason"], "cancelled");
    assert_eq!(found["text"], "A report comes.The report is written.Here I am again.");
    assert_eq!(found["asked"][0], "Write report.md", "{found}");
    let diff = &found["diffs"][0];
    assert_eq!(diff["path"].as_str().map(PathBuf::from), Some(lab.case.work().join("report.md")), "{found}");
    assert_eq!(diff["newText"], "# Report\n");
    assert_eq!(fs::read_to_string(lab.case.work().join("report.md")).unwrap(), "# Report\n");
    assert_eq!(lab.case.survivors(), [""; 0]);
}

/// acpx keeps a process for its sessions, which `sessions close` ends.
fn acpx_allows_a_command(agent: Agent) {
    let lab = Lab::new(agent, "permission");
    let acpx = installed().join("acpx/dist/cli.js");
    let command = format!("{PROGRAM} acp --agent {}", agent.name());
    let call =
        |args: &[&str]| node(&lab, &acpx, &[&["--agent", &command, "--approve-all", "--ttl", "5"], args].concat());
    call(&["sessions", "new"]);
    let out = call(&["prompt", "Go."]);
    assert!(out.contains("Run touch asked.txt") && out.contains("That was it."), "{out}");
    assert!(out.contains("[done] end_turn"), "{out}");
    assert!(lab.case.work().join("asked.txt").exists());
    call(&["sessions", "close"]);
    assert_eq!(lab.case.survivors(), [""; 0]);
}

/// acpx answers no form, so the question is text, and the next prompt is the answer.
fn acpx_takes_the_printed_configuration(agent: Agent) {
    let lab = Lab::new(agent, "acp_text");
    let acpx = installed().join("acpx/dist/cli.js");
    let printed = lab.case.command(PROGRAM).args(["integrate", "acpx"]).output().expect("runs");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let json = &printed[printed.find('{').expect("an object")..=printed.rfind('}').expect("an object")];
    let folder = lab.case.path("home/.acpx");
    fs::create_dir_all(&folder).expect("folder");
    fs::write(folder.join("config.json"), json).expect("config.json");
    let call = |args: &[&str]| node(&lab, &acpx, &[&["--ttl", "5", "spektacular"], args].concat());
    call(&["sessions", "new"]);
    let out = call(&["prompt", "Store the data."]);
    assert!(out.contains("Where shall the data live?") && out.contains("2. SQLite"), "{out}");
    let out = call(&["prompt", "2"]);
    assert!(out.contains("So be it.") && out.contains("[done] end_turn"), "{out}");
    let result = &lab.stub.tool_results()[0];
    assert!(result.contains("SQLite") && !result.contains("Postgres"), "{result}");
    call(&["sessions", "close"]);
    assert_eq!(lab.case.survivors(), [""; 0]);
}

/// The policy of the runtime denies a command, and a callback allows another one.
fn the_runtime_of_acpx_has_turns(agent: Agent) {
    let lab = Lab::new(agent, "acp_runtime");
    let out = node(&lab, &here().join("runtime.mjs"), &[]);
    let found: Value = serde_json::from_str(out.trim()).unwrap();
    let form = &found["forms"][0];
    assert!(form["message"].as_str().is_some_and(|text| text.contains("Where shall the data live?")), "{found}");
    assert_eq!(found["forms"].as_array().map(Vec::len), Some(1), "{found}");
    let result = &lab.stub.tool_results()[0];
    assert!(result.contains("SQLite") && !result.contains("Postgres"), "{result}");
    assert_eq!(found["first"]["status"], "completed", "{found}");
    assert!(found["first"]["said"].as_str().is_some_and(|text| text.contains("So be it.")), "{found}");
    assert!(!lab.case.work().join("asked.txt").exists(), "the policy denies it");
    assert_eq!(found["asked"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["cancelled"]["status"], "cancelled", "{found}");
    assert_eq!(found["again"]["said"], "Here I am again.", "{found}");
    assert_eq!(lab.case.survivors(), [""; 0]);
}

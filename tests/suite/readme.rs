//! The README's session and its clients do what it says.
#![expect(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use crate::support::machine::not_checked;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_spektacular");

/// The first block of the README in this language.
fn block(language: &str) -> String {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let block = readme.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
    block.to_owned()
}

/// A command in a folder and a home of its own, with this program on the PATH.
fn command(program: &str, folder: &TempDir) -> Command {
    let bin = Path::new(PROGRAM).parent().unwrap();
    let mut command = Command::new(program);
    command.current_dir(folder.path()).env_clear().stdin(Stdio::null());
    command.env("HOME", folder.path()).env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    command
}

/// Runs a client of the README with an agent.
fn client(interpreter: &str, language: &str, agent: &str) -> (TempDir, Output) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("client");
    fs::write(&script, block(language)).unwrap();
    let done = command(interpreter, &folder).arg(&script).args([agent, "say hello"]).output().unwrap();
    (folder, done)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_session_at_the_top_is_a_real_one() {
    let block = block("console");
    let (line, wanted) = block.strip_prefix("$ spektacular ").unwrap().split_once('\n').unwrap();
    let words = line.strip_suffix(" 2>/dev/null").unwrap().replace('"', "");
    let (flags, prompt) = words.split_once(" say ").unwrap();

    let folder = tempfile::tempdir().unwrap();
    let done = command(PROGRAM, &folder).args(flags.split(' ')).arg(format!("say {prompt}")).output().unwrap();
    assert_eq!(text(&done.stdout), wanted);
    assert!(done.status.success());
    assert!(fs::read_to_string(folder.path().join("hello.md")).unwrap().contains("demo agent"));
}

#[test]
fn the_client_in_python_answers_what_is_asked() {
    if Command::new("python3").arg("--version").output().is_err() {
        // A machine with the Rust toolchain alone has none, and the client is not for it.
        return not_checked("the README's client in Python", "python3 is not installed");
    }
    let (folder, done) = client("python3", "python", "demo");
    let out = text(&done.stdout);
    assert!(done.status.success(), "{out}{}", text(&done.stderr));
    for line in ["? How shall I greet you?", "? Allow Write: hello.md?", "Write: hello.md", "run.completed"] {
        assert!(out.contains(line), "no {line} in {out}");
    }
    assert!(folder.path().join("hello.md").exists());
    let (_, refused) = client("python3", "python", "nobody");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stdout).contains("run.failed invalid_request"), "{}", text(&refused.stdout));
}

#[test]
fn the_client_in_a_shell_answers_what_is_asked() {
    let (folder, done) = client("sh", "sh", "demo");
    let out = text(&done.stdout);
    assert!(done.status.success(), "{out}{}", text(&done.stderr));
    assert!(out.lines().last().unwrap().contains("\"type\":\"run.completed\""), "{out}");
    assert!(out.contains("\"resolution\":\"declined\"") && out.contains("\"value\":\"allow_once\""), "{out}");
    assert!(folder.path().join("hello.md").exists());
    let (_, refused) = client("sh", "sh", "nobody");
    assert!(!refused.status.success());
    assert!(text(&refused.stdout).contains("\"code\":\"invalid_request\""), "{}", text(&refused.stdout));
}

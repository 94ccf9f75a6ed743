//! The README's session is what the program does.

use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_session_at_the_top_is_a_real_one() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let block = readme.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let (command, wanted) = block.strip_prefix("$ spektacular ").unwrap().split_once('\n').unwrap();
    let words = command.strip_suffix(" 2>/dev/null").unwrap().replace('"', "");
    let (flags, prompt) = words.split_once(" say ").unwrap();

    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_spektacular"))
        .args(flags.split(' '))
        .arg(format!("say {prompt}"))
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), wanted);
    assert!(done.status.success());
    assert!(std::fs::read_to_string(folder.path().join("hello.md")).unwrap().contains("demo agent"));
}

//! Tests of what the program starts and writes besides the agent: no git outlives its call, and no git and no folder
//! outlives the program, whatever ends that.

use crate::support::agent::Script;
use crate::support::{Case, io, limit, procs, read};
use crate::workflows::implement::{allowed, phase, plan, project};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// The processes of a fake git and of the daemons that it leaves in sessions of their own.
fn pids(case: &Case) -> Vec<i32> {
    let pids = |name: &str| read_pids(&case.path(name));
    ["daemons", "gits"].into_iter().flat_map(pids).collect()
}

fn read_pids(path: &Path) -> Vec<i32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.parse().ok()).collect()
}

/// Puts a git on PATH that notes itself, starts such a daemon, and does this once the daemon is noted.
fn with_git(case: Case, then: &str) -> Case {
    let at = case.path("").display().to_string();
    let daemon = format!("echo $$ >>{at}/daemons; exec sleep 1000");
    let noted = format!("until grep -qs . {at}/daemons; do sleep 0.01; done; echo $$ >>{at}/gits");
    let script = format!("setsid -f sh -c '{daemon}' >/dev/null 2>&1\n{noted}\n{then}");
    case.script("bin/git", &script)
}

fn listening() -> Case {
    Case::with(Script::new().say("msg_1", "up").sh("listen")).git()
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn git_does_not_outlive_a_program_that_is_killed() {
    let implement = project(&plan(&[phase(1, &["true"], "")]), "true").git();
    let cases = [
        (listening(), json!({"prompt": "go"})),
        (listening().args(&["--worktree", "--prompt", "go"]), json!(null)),
        (implement, allowed(json!({}))),
    ];
    for (case, start) in cases {
        let mut session = with_git(case, "exec sleep 1000").spawn();
        if !start.is_null() {
            session.start(start);
        }
        session.wait_until("git", || pids(&session.case).len() == 2);
        session.signal(Signal::KILL);
        session.wait_exit();
        session.wait_until("the end of git", || !pids(&session.case).into_iter().any(procs::alive));
        drop(session.finish_unchecked());
    }
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn nothing_that_git_started_outlives_its_call() {
    // Before the agent starts, so that the sweep of the agent's tree spares it.
    let case = with_git(Case::with(Script::hello()).git(), "PATH=/usr/bin:/bin exec git \"$@\"");
    let did = case.run(&["adhoc", "--worktree=it", "go"]);
    assert_eq!(did.code, Some(0), "{did:?}");
    let daemons = read_pids(&case.path("daemons"));
    assert!(!daemons.is_empty() && read(&case.path("gits")).lines().count() > 1, "{daemons:?}");
    let gone = io::wait_for(limit(), || !daemons.iter().copied().any(procs::alive));
    daemons.iter().copied().filter(|pid| procs::alive(*pid)).for_each(procs::kill);
    assert!(gone, "{daemons:?}");
}

/// The program's folders for temporary files.
#[track_caller]
pub(crate) fn folders(case: &Case) -> Vec<String> {
    let names = fs::read_dir(case.path("tmp")).unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("spektacular-")).collect()
}

#[test]
fn no_folder_outlives_a_check_that_a_signal_ends() {
    let client = "touch \"$HOME/up\"; exec sleep 1000";
    for signal in [Signal::INT, Signal::KILL] {
        for args in [&["agents", "check", "claude"][..], &["protocol", "check", "--", "sh", "-c", client]] {
            let case = Case::new().script("bin/claude", client);
            let mut command = case.command("/usr/bin/env");
            command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_spektacular")]).args(args);
            let mut check = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let up = io::wait_for(case.limit, || case.path("home/up").exists());
            let before = folders(&case);
            kill_process(Pid::from_child(&check), signal).unwrap();
            io::exit(&mut check, case.limit).expect("the end");
            assert!(up && before.len() == 1, "{args:?}: {before:?}");
            assert!(
                io::wait_for(case.limit, || folders(&case).is_empty()),
                "{signal:?} {args:?}: {:?}",
                folders(&case)
            );
        }
    }
}

#[test]
fn the_files_of_an_agent_do_not_outlive_a_program_that_is_killed() {
    let case = Case::new().script("bin/opencode", "test -f \"$OPENCODE_CONFIG\" && touch up; exec sleep 1000");
    let mut session = case.spawn();
    session.start(json!({"agent": "opencode", "prompt": "go", "max_turns": 3}));
    session.wait_until("the agent", || session.case.work().join("up").exists());
    assert!(!folders(&session.case).is_empty());
    session.signal(Signal::KILL);
    session.wait_exit();
    session.wait_until("the end of the files", || folders(&session.case).is_empty());
    drop(session.finish_unchecked());
}

//! Tests of the program as PID 1, in an empty root, and with a wall clock that is set back.

use crate::playback::world::World;
use crate::support::agent::Script;
use crate::support::machine::not_checked;
use crate::support::{Case, Session, read};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use spektacular::agent::registry::Agents;
use spektacular::protocol::request::Options;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

fn unshares(args: &[&str]) -> bool {
    Command::new("unshare").args(args).arg("true").status().is_ok_and(|status| status.success())
}

/// The only child of a process.
fn child(pid: u32) -> i32 {
    read(Path::new(&format!("/proc/{pid}/task/{pid}/children"))).trim().parse().expect("one child")
}

fn zombies_of(parent: i32) -> usize {
    let stats = fs::read_dir("/proc").unwrap().flatten().map(|entry| read(&entry.path().join("stat")));
    let is_zombie = |stat: &String| {
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        fields.next() == Some("Z") && fields.next() == Some(parent.to_string().as_str())
    };
    stats.filter(is_zombie).count()
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "orphans of the agent's processes")]
fn as_pid_1_the_program_reaps_orphans_and_obeys_a_signal() {
    let name = "as_pid_1_the_program_reaps_orphans_and_obeys_a_signal";
    if !unshares(&["-pf", "--mount-proc"]) {
        return not_checked(name, "unshare cannot make a PID namespace here");
    }
    let orphans = "i=0; while [ $i -lt 200 ]; do (true &); i=$((i + 1)); done";
    let script = Script::new().say("msg_1", "up").sh(orphans).say("msg_2", "orphaned").sh("listen");
    let mut session: Session =
        Case::with(script).shell("exec unshare -pf --mount-proc env --default-signal=INT,HUP,TERM \"$@\"").spawn();
    session.start(json!({}));
    session.until_text("orphaned");
    let program = child(session.pid());
    session.wait_until("no zombie", || zombies_of(program) == 0);
    kill_process(Pid::from_raw(program).unwrap(), Signal::TERM).unwrap();
    let outcome = session.finish();
    assert_eq!(outcome.cancelled()["source"], "signal");
}

#[test]
fn in_an_empty_root_the_agent_is_not_found() {
    let name = "in_an_empty_root_the_agent_is_not_found";
    let case = Case::new();
    let root = case.path("root");
    fs::create_dir(&root).unwrap();
    let program = env!("CARGO_BIN_EXE_spektacular");
    // The program with the libraries that it is linked to, and nothing else: no /proc, no /dev, no /tmp.
    let listed = Command::new("ldd").arg(program).output().map(|output| output.stdout).unwrap_or_default();
    let listed = String::from_utf8(listed).unwrap();
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain([program]) {
        let to = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }
    let inside = format!("--root={}", root.display());
    if !Command::new("unshare")
        .args([&inside, program, "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return not_checked(name, "unshare cannot change the root here");
    }
    let mut session = case.shell(&format!("exec unshare {inside} \"$@\"")).spawn();
    session.start(json!({}));
    let outcome = session.finish();
    outcome.failed("agent_not_found");
    assert_eq!(outcome.exit_code, Some(4));
}

#[test]
fn a_wall_clock_that_is_set_back_changes_only_the_timestamps() {
    let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
    let day = |day: u64| Some(UNIX_EPOCH + Duration::from_secs(day * 86_400));
    world.host_mut().today = day(2);
    let payload = json!({"prompt": "Go on", "agent": "claude", "timeout_s": 100});
    world.hear(&json!({"v": "1", "type": "run.start", "payload": payload}).to_string());
    world.spawn();
    let say = |world: &mut World, number: u32| {
        let block = json!({"type": "text", "text": format!("word {number}")});
        let message = json!({"id": format!("m{number}"), "role": "assistant", "content": [block]});
        world.line(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null}).to_string());
    };
    say(&mut world, 1);
    world.host_mut().today = day(1);
    say(&mut world, 2);
    assert!(!world.is_decided(), "a limit is due by the wall clock");
    let stamps: Vec<&str> = world.frames.iter().filter_map(|frame| frame.value["ts"].as_str()).collect();
    assert!(stamps.last() < stamps.first(), "{stamps:?}");
    for (at, frame) in world.frames.iter().enumerate() {
        assert_eq!(frame.value["id"], format!("msg_{}", at + 1));
    }
}

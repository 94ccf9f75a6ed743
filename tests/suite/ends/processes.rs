//! Tests of processes around a run: storms of orphans, chains of forks, inherited children, a killed guard, and the
//! effects of a hostile environment or a starved machine on a start.

use crate::support::agent::Script;
use crate::support::machine::{limit, not_checked};
use crate::support::procs::kill;
use crate::support::{Case, Session, in_time, io, procs, read, run, run_with_git};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use spektacular::process::ControlGroup;
use spektacular::process::tree::nonce;
use spektacular::protocol::failure::EXIT_UNDELIVERED;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Forks repeatedly: each process creates a session of its own, starts the next one and exits. The chain ends by itself
/// after a while, so that a failed test leaves nothing on the machine.
const CHAIN: &str = "perl -MPOSIX -e '$end = time + 15; while (time < $end) { setsid(); exit if fork }'";

fn has_perl(test: &str) -> bool {
    let found = Command::new("perl").arg("-v").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !found {
        not_checked(test, "perl is missing");
    }
    found
}

pub(crate) fn has_unshare(test: &str) -> bool {
    let works = Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    if !works {
        not_checked(test, "unshare cannot make a mount namespace here");
    }
    works
}

fn has_prlimit(test: &str) -> bool {
    let works = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        not_checked(test, "prlimit does not work here");
    }
    works
}

/// The pid that a process wrote into a file of the case.
fn pid_in(case: &Case, file: &str) -> Option<i32> {
    read(&case.path(file)).strip_suffix('\n')?.parse().ok()
}

/// Whether a process is a child of this parent.
fn is_child(pid: i32, parent: u32) -> bool {
    let stat = read(std::path::Path::new(&format!("/proc/{pid}/stat")));
    stat.rsplit(')').next().is_some_and(|rest| rest.split_whitespace().nth(1) == Some(&parent.to_string()))
}

#[test]
fn a_storm_of_orphans_keeps_no_cancel_waiting() {
    // Each round leaves 20 orphans that end at once. A few hundred more live on, so that a look at them takes long.
    let storm = "n=0; while [ $n -lt 300 ]; do (sleep 1000 &) ; n=$((n + 1)); done\n\
                 (while :; do (: & : & : & : & : & : & : & : & : & : & : & : & : & : & : & : & : & : & : & : &) ; done) &";
    // On a machine whose processors all have other work, the storm takes the time of an end.
    in_time(|| {
        let script = Script::new().sh(storm).say("msg_1", "storm").sh("listen");
        let mut session = Case::with(script).spawn();
        session.start(json!({}));
        session.until_text("storm");
        session.cancel();
        session.until_status("cancelling");
        let outcome = session.finish_unchecked();
        if outcome.exit_code == Some(EXIT_UNDELIVERED.into()) {
            return Err("the run had no time for its last frame".into());
        }
        outcome.check_invariants();
        outcome.cancelled();
        Ok(())
    });
}

/// Like [`CHAIN`], with an environment that does not show which run the process belongs to.
fn nameless_chain() -> String {
    format!("env -i PATH=\"$PATH\" TEST_CASE=\"$TEST_CASE\" {CHAIN}")
}

/// Whether the program can make a control group here.
fn has_cgroup(test: &str) -> bool {
    let group = ControlGroup::create(&nonce());
    group.iter().for_each(ControlGroup::remove);
    if group.is_none() {
        not_checked(test, "no control group can be made here");
    }
    group.is_some()
}

/// Starts the program where it can make no control group.
pub(crate) const NO_CGROUP: &str =
    "exec unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"' sh \"$@\"";

/// The folder of the control group that a process is in.
fn cgroup_of(pid: i32) -> PathBuf {
    let list = read(std::path::Path::new(&format!("/proc/{pid}/cgroup")));
    let own = list.lines().find_map(|line| line.strip_prefix("0::/")).expect("a control group").to_owned();
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|mount| PathBuf::from(mount).join(&own));
    mounts.into_iter().find(|folder| folder.join("cgroup.kill").is_file()).expect("its folder")
}

#[test]
fn thirty_chains_of_forks_without_the_marker_do_not_survive_the_end() {
    let name = "thirty_chains_of_forks_without_the_marker_do_not_survive_the_end";
    if !has_perl(name) || !has_cgroup(name) {
        return;
    }
    let chains = format!("{} &\n", nameless_chain()).repeat(30);
    let script = Script::new().sh(&chains).say("msg_1", "ok").sh("answer");
    in_time(|| {
        let mut session = Case::with(script.clone()).spawn();
        session.start(json!({}));
        session.until_text("ok");
        let (group, cancelled) = (cgroup_of(session.log().pid()), std::time::Instant::now());
        session.cancel();
        let outcome = session.finish();
        outcome.cancelled();
        assert!(!group.exists(), "{}", group.display());
        let took = outcome.ended - cancelled;
        if took < Duration::from_secs(2) { Ok(()) } else { Err(format!("the end took {took:?}")) }
    });
}

#[test]
fn no_chain_of_forks_without_the_marker_survives_a_kill() {
    let name = "no_chain_of_forks_without_the_marker_survives_a_kill";
    if !has_perl(name) || !has_cgroup(name) {
        return;
    }
    let chains = format!("(trap '' TERM; {}) &\n", nameless_chain()).repeat(5);
    let script = Script::new().sh(&chains).say("msg_1", "started").sh("listen");
    let mut session = Case::with(script).spawn();
    session.start(json!({}));
    session.until_text("started");
    let group = cgroup_of(session.log().pid());
    session.signal(Signal::KILL);
    session.wait_exit();
    let gone = io::wait_for(limit(), || session.processes().is_empty() && !group.exists());
    assert!(gone, "{:?}", session.processes());
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn no_chain_of_forks_survives_the_end() {
    let name = "no_chain_of_forks_survives_the_end";
    if !has_perl(name) || !has_unshare(name) {
        return;
    }
    let chains = format!("{CHAIN} &\n").repeat(6);
    for _ in 0..3 {
        let script = Script::new().sh(&chains).say("msg_1", "ok").done("ok");
        let outcome = run(Case::with(script).shell(NO_CGROUP), json!({}));
        assert_eq!(outcome.completed()["text"], "ok");
        assert_eq!(outcome.warnings("leaked_process").len(), 1);
    }
}

#[test]
fn no_chain_of_forks_survives_a_kill() {
    let name = "no_chain_of_forks_survives_a_kill";
    if !has_perl(name) || !has_unshare(name) {
        return;
    }
    for _ in 0..4 {
        let chains = format!("(trap '' TERM; {CHAIN}) &\n");
        let script = Script::new().sh(&chains).say("msg_1", "started").sh("listen");
        let mut session = Case::with(script).shell(NO_CGROUP).spawn();
        session.start(json!({}));
        session.until_text("started");
        session.signal(Signal::KILL);
        session.wait_exit();
        // Before the chains end by themselves.
        let gone = io::wait_for(limit(), || session.processes().is_empty());
        assert!(gone, "{:?}", session.processes());
    }
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_signal_to_a_check_stops_its_processes() {
    // The daemon clears its environment and loses its parent, so only descent from the check identifies it.
    let daemon = "env -i setsid sh -c 'echo $$ >'\"$HOME\"'/daemon; exec sleep 1000' >/dev/null 2>&1";
    let script = &format!("({daemon} &)\nexec sleep 1000");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let case = Case::new().script("bin/claude", script);
        let mut command = case.command("/usr/bin/env");
        command.args(["--default-signal=INT,HUP,TERM", env!("CARGO_BIN_EXE_spektacular"), "agents", "check", "claude"]);
        let mut check = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let started = io::wait_for(case.limit, || pid_in(&case, "home/daemon").is_some());
        kill_process(Pid::from_child(&check), signal).unwrap();
        let status = io::exit(&mut check, case.limit).expect("the end");
        assert!(started, "the agent was never asked");
        let daemon = pid_in(&case, "home/daemon").unwrap();
        let gone = io::wait_for(limit(), || !procs::alive(daemon));
        kill(daemon);
        assert!(gone, "the daemon outlives {signal:?}");
        assert!(!status.success(), "{status}");
    }
}

fn guard(session: &Session) -> Option<i32> {
    session.processes().into_iter().find(|(_, line)| line.contains("__guard")).map(|(pid, _)| pid)
}

#[test]
fn a_run_warns_when_its_guard_is_killed() {
    let script = Script::new().say("msg_1", "up").sh("listen");
    let mut session = Case::with(script).spawn();
    session.start(json!({}));
    session.until_text("up");
    kill(guard(&session).expect("a guard"));
    let warning = session.until_warning("unguarded");
    assert!(warning.text("text").contains("guard is not running"), "{}", warning.raw);
    session.cancel();
    session.finish().cancelled();
}

/// The agent is another process of the same user, and may look before the guard hides its memory.
#[test]
fn the_guard_has_nothing_of_our_environment() {
    let case = Case::with(Script::new().say("msg_1", "up").sh("listen")).env("MY_VALUE", "hidden-from-the-agent");
    let mut session = case.spawn();
    session.start(json!({"env_allow": ["TEST_CASE"]}));
    session.until_text("up");
    let environ = std::fs::read(format!("/proc/{}/environ", guard(&session).expect("a guard"))).unwrap();
    let environ = String::from_utf8_lossy(&environ).replace('\0', "\n");
    assert!(environ.contains("SPEKTACULAR_GUARD=") && !environ.contains("hidden-from-the-agent"), "{environ}");
    session.cancel();
    session.finish().cancelled();
}

#[test]
fn a_guard_that_somebody_stops_still_ends_the_tree() {
    let mut session = Case::with(Script::new().say("msg_1", "up").sh("exec sleep 1000")).spawn();
    session.start(json!({}));
    session.until_text("up");
    let guard = guard(&session).expect("a guard");
    session.wait_until("the guard to listen", || {
        procs::handles(guard.cast_unsigned(), Signal::HUP) && procs::waits(guard)
    });
    let stop = |pid| kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
    // A stop and the return to the read are two waits more. Without them, the signal may still be pending.
    let waits = procs::voluntary_waits(guard);
    stop(guard);
    session.wait_until("the guard to go on", || procs::voluntary_waits(guard) >= waits + 2 && !procs::stopped(guard));
    // A program that is itself stopped cannot undo the second stop. Only a stopped guard is continued by the kernel when
    // the program ends: one whose stop is still pending would stay.
    let program = session.pid().cast_signed();
    for pid in [program, guard] {
        stop(pid);
        session.wait_until("the stop", || procs::stopped(pid));
    }
    session.signal(Signal::KILL);
    session.wait_exit();
    session.wait_until("the end of the tree", || session.processes().is_empty());
    drop(session.finish_unchecked());
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "orphans of the agent's processes")]
fn a_daemon_of_an_inherited_child_is_left_alone() {
    // The shell leaves a child to the program that replaces it. That child's daemon becomes ours when the child exits.
    let case = Case::with(Script::new().say("msg_1", "up").sh("prompt").say("msg_2", "ok").done("ok"));
    let (go, daemon) = (case.path("go"), case.path("daemon"));
    let child = format!(
        "(until [ -e {go} ]; do sleep 0.02; done; env -u TEST_CASE setsid sh -c 'echo $$ >{daemon}; exec sleep 1000' & \
         until [ -s {daemon} ]; do sleep 0.02; done) </dev/null >/dev/null 2>&1 & exec \"$@\"",
        go = go.display(),
        daemon = daemon.display()
    );
    let mut session = case.shell(&child).spawn();
    session.start(json!({}));
    session.until_text("up");
    std::fs::write(&go, "").unwrap();
    session.wait_until("the daemon", || pid_in(&session.case, "daemon").is_some());
    let pid = pid_in(&session.case, "daemon").unwrap();
    session.wait_until("its adoption", || is_child(pid, session.pid()));
    assert!(survives(session, pid), "a stranger's daemon was killed");
}

/// Cancels the run, and ends the process. Returns whether the process was still alive then.
#[track_caller]
fn survives(mut session: Session, pid: i32) -> bool {
    session.cancel();
    let outcome = session.finish();
    let lives = procs::alive(pid);
    kill(pid);
    outcome.cancelled();
    lives
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "orphans of the agent's processes")]
fn a_process_of_an_inherited_daemon_is_left_alone() {
    // The inherited child is gone when the run begins, but its daemon, which we adopted, starts a process during the run.
    let case = Case::with(Script::new().say("msg_1", "up").sh("listen"));
    let [go, start, pid] = ["go", "start", "pid"].map(|file| case.path(file).display().to_string());
    let daemon = format!(
        "echo $$ >{pid}; until [ -e {start} ]; do sleep 0.02; done; (setsid sh -c 'echo $$ >{pid}; exec sleep 1000' &)"
    );
    let child = format!(
        "(until [ -e {go} ]; do sleep 0.02; done; env -u TEST_CASE setsid sh -c '{}' & until [ -s {pid} ]; do sleep 0.02; done) \
         </dev/null >/dev/null 2>&1 & exec \"$@\"",
        daemon.replace('\'', "'\\''")
    );
    let mut session = case.shell(&child).spawn();
    let us = session.pid();
    session.wait_until("the program to wait for run.start", || {
        procs::handles(us, Signal::TERM) && procs::waits(us.cast_signed())
    });
    std::fs::write(&go, "").unwrap();
    session.wait_until("the daemon", || pid_in(&session.case, "pid").is_some_and(|pid| is_child(pid, us)));
    let first = pid_in(&session.case, "pid").unwrap();
    session.start(json!({}));
    session.until_text("up");
    std::fs::write(&start, "").unwrap();
    session.wait_until("its process", || {
        pid_in(&session.case, "pid").is_some_and(|pid| pid != first && is_child(pid, us))
    });
    let pid = pid_in(&session.case, "pid").unwrap();
    assert!(survives(session, pid), "a stranger's process was killed");
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn without_proc_the_run_warns_that_processes_may_outlive_it() {
    let name = "without_proc_the_run_warns_that_processes_may_outlive_it";
    if !has_unshare(name) {
        return;
    }
    // The fake agent's script reads /proc, which is missing here too, so the agent is a plain command.
    let config = json!({"agents": {"plain": {"driver": "lines", "command": "/bin/echo", "args": ["hello"]}}});
    let case = Case::new()
        .file("home/.config/spektacular/config.json", &config.to_string())
        .shell("exec unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh \"$@\"");
    let outcome = run(case, json!({"agent": "plain"}));
    outcome.completed();
    assert_eq!(outcome.warnings("unguarded").len(), 1);
    assert!(outcome.warnings("unguarded")[0].text("text").contains("/proc is not available"));
}

#[test]
fn a_run_with_all_it_needs_does_not_warn() {
    let outcome = run(Case::with(Script::hello()), json!({}));
    outcome.completed();
    assert!(outcome.warnings("unguarded").is_empty());
}

#[test]
fn no_relative_entry_of_the_path_runs_a_program_of_the_folder() {
    for path in ["unset PATH", "PATH=:/usr/bin:/bin", "PATH=.:/usr/bin:/bin", "PATH=/usr/bin:/bin:", "PATH=bin:/bin"] {
        let hostile = || {
            let case = Case::new().script("work/claude", "touch ran").script("work/bin/claude", "touch ran");
            case.shell(&format!("{path}; exec \"$@\""))
        };
        let outcome = run(hostile(), json!({}));
        outcome.failed("agent_not_found");
        assert!(!outcome.case().path("work/ran").exists(), "{path}");
        let case = hostile();
        let check = format!("{path}; exec \"$0\" agents check claude");
        let mut command = case.command("/bin/sh");
        let done = command.args(["-c", &check, env!("CARGO_BIN_EXE_spektacular")]).output().unwrap();
        assert_eq!(done.status.code(), Some(4), "{path}: {done:?}");
        assert!(!case.path("work/ran").exists(), "{path}: agents check");
    }
}

#[test]
fn without_a_path_the_systems_programs_are_found() {
    let agent = json!({"driver": "lines", "command": "sh", "args": ["-c", "echo >new; echo hello"]});
    let config = json!({"agents": {"plain": agent}});
    let case = || {
        let case = Case::new().file("home/.config/spektacular/config.json", &config.to_string()).git();
        case.shell("unset PATH; exec \"$@\"")
    };
    let outcome = run_with_git(case, &json!({"agent": "plain"}));
    let end = outcome.completed();
    assert_eq!(end["text"], "hello");
    assert_eq!(end["artifacts"], json!([{"path": "new", "action": "created"}]), "git was not found");
}

#[test]
fn a_deleted_directory_of_its_own_refuses_the_run() {
    let gone = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let outcome = run(Case::with(Script::hello()).shell(gone), json!({}));
    let message = outcome.failed("invalid_request")["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "The current directory no longer exists: change to another one, or set `cwd`.");
    assert!(!outcome.log().ran());
    // If run.start names a directory, the program needs no working directory of its own.
    let case = Case::with(Script::hello()).shell(gone);
    let work = case.work();
    run(case, json!({"cwd": work})).completed();
}

#[test]
fn a_command_that_cannot_be_run_is_a_failed_start() {
    let ends = |script: &str| {
        let agent = json!({"driver": "lines", "command": "/bin/sh", "args": ["-c", script]});
        let config = json!({"agents": {"plain": agent}}).to_string();
        let case = Case::new().file("home/.config/spektacular/config.json", &config);
        run(case, json!({"agent": "plain"}))
    };
    for script in ["exit 126", "exit 127", "/no/such/program"] {
        let outcome = ends(script);
        outcome.failed("agent_start_failed");
        assert_eq!(outcome.exit_code, Some(4), "{script}");
    }
    // A first line shows that the agent ran.
    ends("echo hello; exit 127").failed("agent_error");
    ends("exit 125").failed("agent_error");
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "privacy of memory and environment")]
fn the_agent_can_read_neither_our_environment_nor_a_core_dump() {
    let name = "the_agent_can_read_neither_our_environment_nor_a_core_dump";
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new("setpriv").args(nobody).arg("true").status().is_ok_and(|status| status.success()) {
        return not_checked(name, "setpriv cannot change the user here");
    }
    // This includes the guard, another child of the agent's parent.
    let look = "for p in $PPID $(cat /proc/$PPID/task/$PPID/children); do\n\
                [ $p = $$ ] || { grep -q hidden-from-the-agent /proc/$p/environ && note leaked; }; done 2>/dev/null\n\
                note \"core $(ulimit -c)\"";
    let script = Script::bare().sh("prompt").out(&crate::support::agent::init()).sh(look).say("msg_1", "ok").done("ok");
    let case = Case::with(script).env("MY_VALUE", "hidden-from-the-agent");
    assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(case.path("")).status().unwrap().success());
    let drop = format!("exec setpriv {} \"$@\"", nobody.join(" "));
    let outcome = run(case.shell(&drop), json!({"env_allow": ["TEST_CASE"]}));
    outcome.completed();
    assert!(outcome.log().noted("core 0"), "{}", outcome.log().text("notes"));
    assert!(!outcome.log().noted("leaked"));
}

#[test]
fn a_machine_without_processes_or_memory_ends_the_run_in_order() {
    let name = "a_machine_without_processes_or_memory_ends_the_run_in_order";
    // Each run has a user of its own, because the limit counts all processes of a user.
    let few = |count: u32| {
        let user = 100_000 + 16 * std::process::id() + count;
        format!("prlimit --nproc={count} setpriv --reuid={user} --regid={user} --clear-groups")
    };
    // A debug build does not start in less.
    let sizes = [32, 48, 96, 144, 160, 192, 224, 1000, 2048];
    let mut rows: Vec<String> = sizes.map(|mib: u64| format!("prlimit --as={}", mib << 20)).into();
    if Command::new("sh").args(["-c", &format!("{} true", few(9))]).status().is_ok_and(|status| status.success()) {
        rows.extend([1, 2, 3, 4, 6, 8, 10, 12].map(few));
    } else {
        not_checked(name, "prlimit or setpriv does not work here");
    }
    for wrapper in rows {
        let case = Case::with(Script::hello());
        assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(case.path("")).status().unwrap().success());
        let mut session = case.shell(&format!("exec {wrapper} \"$@\"")).spawn();
        session.start(json!({}));
        let outcome = session.finish_unchecked();
        let said = (outcome.exit_code, outcome.frames.last().map(|last| last.text("code").to_owned()));
        let refused = (Some(70), Some("resource_exhausted".to_owned()));
        // The fake agent is starved too.
        let agent_failed = matches!(outcome.exit_code, Some(0 | 1 | 4)) && outcome.terminal().is_terminal();
        assert!(said == refused || agent_failed, "{wrapper}: {said:?} {}", outcome.stderr);
        assert!(outcome.left.is_empty(), "{wrapper}: {:?}", outcome.left);
    }
}

#[test]
fn the_limit_of_the_stack_does_not_matter() {
    let name = "the_limit_of_the_stack_does_not_matter";
    if !has_prlimit(name) {
        return;
    }
    let with = |kib: u64, subcommand: &'static str| {
        let case = Case::with(Script::hello()).subcommand(subcommand);
        let case = case.shell(&format!("exec prlimit --stack={} \"$@\"", kib << 10));
        run(case, json!({}))
    };
    for kib in [64, 128, 255, 256, 300, 400, 1024] {
        with(kib, "adhoc").completed();
        // The agent writes no draft.
        with(kib, "spec").failed("result_invalid");
    }
}

#[test]
fn a_limited_address_space_shortens_the_longest_line() {
    let name = "a_limited_address_space_shortens_the_longest_line";
    if !has_prlimit(name) {
        return;
    }
    // The allocator of glibc reserves a share of the address space for each thread.
    let space: u64 = if cfg!(target_env = "gnu") { (2 << 30) + (256 << 20) } else { 256 << 20 };
    let line = "printf '{\"type\":\"assistant\",\"x\":\"'; head -c 40000000 /dev/zero | tr '\\0' x; echo '\"}'";
    let case = Case::with(Script::new().sh(line).say("msg_1", "after it").done("ok"));
    let mut session = case.shell(&format!("exec prlimit --as={space} \"$@\"")).spawn();
    session.start(json!({}));
    let outcome = session.finish();
    outcome.completed();
    assert_eq!(outcome.warnings("agent_output_unparsed").len(), 1);
}

#[test]
fn a_limit_of_file_sizes_is_an_error_of_every_command() {
    let case = Case::with(Script::hello());
    for (command, code, reason) in [
        ("init", 70, "resource_exhausted"),
        ("config set model x", 2, "cannot be written"),
        ("man >page", 74, ""),
        ("spec --output json --headless --name login 'Log in'", 70, "resource_exhausted"),
    ] {
        let shell = format!("ulimit -f 0; \"$0\" {command}; echo $? >&2");
        let mut limited = case.command("/bin/sh");
        limited.args(["-c", &shell, env!("CARGO_BIN_EXE_spektacular")]).current_dir(case.work());
        let said = String::from_utf8(limited.stdin(Stdio::null()).output().unwrap().stderr).unwrap();
        assert!(said.contains(reason) && said.ends_with(&format!("{code}\n")), "{command}: {said}");
    }
}

#[test]
fn a_limit_of_file_sizes_costs_the_recording_and_not_the_run() {
    let script = Script::new().say("msg_1", &"x".repeat(20_000)).done("ok");
    let case = Case::with(script).args(&["--record", "recording.jsonl"]).shell("ulimit -f 4; exec \"$@\"");
    let mut session = case.spawn();
    session.start(json!({}));
    // A warning on stderr is not the diagnostic of a failed run.
    let outcome = session.finish_unchecked();
    assert_eq!(outcome.completed()["text"], "ok");
    assert!(outcome.stderr.contains("the recording is incomplete"), "{}", outcome.stderr);
}

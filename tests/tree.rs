//! Tests of the process tree: which processes belong to it, that the sweep leaves none of them, and that it touches no
//! other process.
//!
//! Each test runs in a process of its own, because the tree includes every descendant of the whole process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "support/machine.rs"]
mod machine;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use machine::{limit, not_checked};
use rustix::process::{Pid, test_kill_process_group};
use spektacular::process::tree::{
    MARKER, Signal, Swept, Tree, become_subreaper, marker_value, nonce, wait_without_reaping,
};

/// The environment variable that names the test whose body runs in this process; its value is `NAME:DIRECTORY`.
const BODY: &str = "TREE_TEST_BODY";

/// Whether this form finds, and counts, the processes of a tree one by one. The other form reaches the agent's process
/// group, and nothing else.
const FINDS_EACH: bool = cfg!(feature = "linux");

/// Runs the body in a process of its own, started through `wrapper` (a command and its arguments), and fails unless
/// the body ran to its end. `name` is the test's name.
#[track_caller]
fn alone(name: &str, wrapper: &[&str], body: impl FnOnce(&Path)) {
    if let Ok(value) = std::env::var(BODY) {
        let (wanted, dir) = value.split_once(':').unwrap();
        assert_eq!(wanted, name);
        std::env::set_current_dir(dir).unwrap();
        body(Path::new(dir));
        fs::write("came-to-its-end", "").unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // Use a copy, because another user may not have access to the build folder. Let another process make the copy: if
    // a test forked while we held the copy open for writing, executing it would fail as busy.
    let exe = dir.path().join("test");
    let exe = exe.to_str().unwrap();
    assert!(works(&["cp", std::env::current_exe().unwrap().to_str().unwrap(), exe]));
    let words = [wrapper, &[exe, "--exact", name, "--nocapture"]].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_remove(MARKER);
    let value = format!("{name}:{}", dir.path().display());
    let status = command.env(BODY, value).status().unwrap();
    assert!(status.success(), "{name}: {status}");
    assert!(dir.path().join("came-to-its-end").exists(), "{name} did not run");
}

fn works(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Polls until the condition holds; returns false if it did not within the limit.
fn eventually(limit: Duration, mut cond: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if cond() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        // No event: /proc tells nobody that it has changed.
        sleep(Duration::from_millis(2));
    }
}

/// Starts an agent: a script in a process group of its own, with the marker.
fn agent(nonce: &str, script: &str) -> Child {
    let mut command = quiet("sh");
    command.args(["-c", script]).env(MARKER, marker_value(nonce));
    command.process_group(0).spawn().unwrap()
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A shell command that writes its pid into the file `name` and then stays, ignoring SIGTERM.
fn stubborn(name: &str) -> String {
    format!("sh -c 'trap \"\" TERM; echo $$ > {name}; exec sleep 60'")
}

/// Waits for the pid that a script writes into the file `name`.
#[track_caller]
fn written(name: &str) -> u32 {
    let mut pid = None;
    let read = || {
        let text = fs::read_to_string(name).unwrap_or_default();
        pid = text.strip_suffix('\n').and_then(|line| line.parse().ok());
        pid.is_some()
    };
    assert!(eventually(limit(), read), "no pid in {name}");
    pid.unwrap()
}

/// The fields of /proc/PID/stat, starting with the state.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some(fields.map(str::to_owned).collect())
}

fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| fields[0] != "Z" && fields[0] != "X")
}

/// Whether the process has ended. A signal to a group does not wait for its members' ends.
fn is_gone(pid: u32) -> bool {
    if FINDS_EACH { !is_alive(pid) } else { eventually(limit(), || !is_alive(pid)) }
}

/// The result of a sweep that ended this number of processes.
fn swept(killed: usize) -> Swept {
    Swept { killed: if FINDS_EACH { killed } else { 0 }, left: 0 }
}

fn parent(pid: u32) -> u32 {
    stat(pid).unwrap()[1].parse().unwrap()
}

/// The start time in clock ticks since boot.
fn started(pid: u32) -> u64 {
    stat(pid).unwrap()[19].parse().unwrap()
}

fn zombie_children() -> usize {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let me = std::process::id().to_string();
    pids.filter_map(stat).filter(|fields| fields[0] == "Z" && fields[1] == me).count()
}

/// Ends a process that a test kept alive, even if the test fails.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the script, waits for the pid files, sweeps before the agent is reaped, and checks that the sweep left
/// nothing and that none of the processes is alive.
#[track_caller]
fn swept_clean(script: &str, files: &[&str]) -> Swept {
    become_subreaper();
    let tree = Tree::before_spawn(nonce());
    let mut child = agent(&tree_nonce(&tree), script);
    let pids: Vec<u32> = files.iter().map(|file| written(file)).collect();
    let swept = tree.sweep(Some(child.id()), limit());
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_eq!(swept.left, 0);
    assert!(pids.iter().all(|pid| is_gone(*pid)));
    assert_eq!(zombie_children(), 0);
    swept
}

/// The nonce of a tree, read from its Debug text because tests have no other access to it.
fn tree_nonce(tree: &Tree) -> String {
    let text = format!("{tree:?}");
    text.split('"').nth(1).unwrap().to_owned()
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn no_process_of_any_kind_survives() {
    alone("no_process_of_any_kind_survives", &[], |_| {
        let script = format!(
            "trap '' TERM; {} & setsid {} & setsid {} & (setsid {} &) ; (setsid {} &) ; nohup {} & \
             (nohup {} &) ; {} & setsid {} & echo $$ > leader; exec sleep 60",
            stubborn("plain"),
            stubborn("own1"),
            stubborn("own2"),
            stubborn("forked1"),
            stubborn("forked2"),
            stubborn("nohup1"),
            stubborn("nohup2"),
            stubborn("plain2"),
            stubborn("own3"),
        );
        let files = ["leader", "plain", "own1", "own2", "forked1", "forked2", "nohup1", "nohup2", "plain2", "own3"];
        let start = Instant::now();
        become_subreaper();
        let tree = Tree::before_spawn(nonce());
        let mut child = agent(&tree_nonce(&tree), &script);
        let pids: Vec<u32> = files.iter().map(|file| written(file)).collect();
        println!("10 processes started in {:?}", start.elapsed());
        assert_eq!(parent(pids[4]), std::process::id(), "the daemon is not ours");
        let mut members = tree.members();
        members.sort_unstable();
        let mut expected = pids.clone();
        expected.sort_unstable();
        assert_eq!(members, expected);
        // The signal to the group reaches half of them. All of them ignore it.
        assert_eq!(tree.signal_all(Some(child.id()), Signal::TERM), 10);
        let start = Instant::now();
        let swept = tree.sweep(Some(child.id()), limit());
        println!("sweep of 10 processes: {:?}", start.elapsed());
        assert_eq!(swept, Swept { killed: 10, left: 0 });
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert!(!pids.iter().any(|pid| is_alive(*pid)));
        assert_eq!(zombie_children(), 0);
    });
}

#[test]
fn a_leader_that_ignores_term() {
    alone("a_leader_that_ignores_term", &[], |_| {
        assert_eq!(swept_clean(&format!("exec {}", stubborn("leader")), &["leader"]), swept(1));
    });
}

#[test]
fn every_process_of_the_group_ends() {
    alone("every_process_of_the_group_ends", &[], |_| {
        let cleared = stubborn("cleared").replacen("sh", "env -i /bin/sh", 1);
        let script = format!(
            "trap '' TERM; {} & ({} &) ; nohup {} & (nohup {} &) ; {cleared} & echo $$ > leader; exec sleep 60",
            stubborn("child"),
            stubborn("orphan"),
            stubborn("nohup"),
            stubborn("nohup-orphan"),
        );
        let files = ["leader", "child", "orphan", "nohup", "nohup-orphan", "cleared"];
        assert_eq!(swept_clean(&script, &files).left, 0);
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_cleared_environment_is_found_by_descent() {
    alone("a_cleared_environment_is_found_by_descent", &[], |_| {
        let clear = |name| stubborn(name).replacen("sh", "env -i setsid /bin/sh", 1);
        let script = format!("{} & ({} &) ; wait", clear("child"), clear("orphan"));
        swept_clean(&script, &["child", "orphan"]);
    });
}

#[test]
fn after_a_polite_exit_the_daemon_is_found_and_the_status_stays() {
    let name = "after_a_polite_exit_the_daemon_is_found_and_the_status_stays";
    alone(name, &[], |_| {
        become_subreaper();
        let tree = Tree::before_spawn(nonce());
        let own = if FINDS_EACH { "setsid" } else { "" };
        let script = format!("({own} {} &) ; (true &) ; exit 3", stubborn("daemon"));
        let mut child = agent(&tree_nonce(&tree), &script);
        let daemon = written("daemon");
        wait_without_reaping(child.id());
        // Both the leader and the orphan have ended, so only the daemon is left to kill. The orphan is ours if orphans
        // pass to us.
        assert!(eventually(limit(), || zombie_children() == if FINDS_EACH { 2 } else { 1 }));
        assert_eq!(tree.sweep(Some(child.id()), limit()), swept(1));
        assert!(is_gone(daemon));
        // Only the leader may still be a zombie.
        assert_eq!(zombie_children(), 1);
        assert_eq!(child.wait().unwrap().code(), Some(3));
        // The leader is reaped and its pid may be reused, so no signal may be sent to it.
        assert_eq!(tree.signal_all(Some(child.id()), Signal::KILL), 0);
        wait_without_reaping(child.id());
        assert_eq!(tree.sweep(None, limit()), Swept::default());
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_marked_process_with_another_parent_is_found() {
    alone("a_marked_process_with_another_parent_is_found", &[], |_| {
        // We are not a subreaper here, so the orphan gets another parent.
        let tree = Tree::before_spawn(nonce());
        let mut child = agent(&tree_nonce(&tree), &format!("(setsid {} &)", stubborn("away")));
        child.wait().unwrap();
        let away = written("away");
        assert!(eventually(limit(), || parent(away) != std::process::id()));
        assert_eq!(tree.members(), [away]);
        assert_eq!(tree.sweep(None, limit()), Swept { killed: 1, left: 0 });
        assert!(!is_alive(away));
    });
}

#[test]
fn earlier_and_spared_processes_survive() {
    alone("earlier_and_spared_processes_survive", &[], |_| {
        become_subreaper();
        let busy = |name: &str| {
            let script = format!("echo $$ > {name}; setsid {} & wait", stubborn(&format!("{name}-child")));
            Kept(quiet("sh").args(["-c", &script]).process_group(0).spawn().unwrap())
        };
        let mut early = quiet("true").spawn().unwrap();
        let mut before = busy("before");
        let before_child = written("before-child");
        let mut tree = Tree::before_spawn(nonce());
        // This process leads a group, but it is not our child, so its pid is not reserved.
        assert_eq!(tree.signal_all(Some(before_child), Signal::KILL), 0);
        let mut spared = busy("spared");
        tree.spare(spared.0.id());
        let mut marked = quiet("sleep");
        marked.arg("60").env(MARKER, tree_nonce(&tree));
        let marked = Kept(marked.spawn().unwrap());
        tree.spare(marked.0.id());
        let mut late = quiet("sleep").arg("60").spawn().unwrap();
        let kept = [written("before"), before_child, written("spared"), marked.0.id()];
        let spared_child = written("spared-child");
        let mut child = agent(&tree_nonce(&tree), &stubborn("leader"));
        written("leader");
        tree.sweep(Some(child.id()), limit());
        child.wait().unwrap();
        assert!(kept.iter().all(|pid| is_alive(*pid)) && is_alive(spared_child));
        // It is neither spared nor older than the tree, so it belongs to the tree by descent.
        assert_eq!(is_alive(late.id()), !FINDS_EACH);
        if !FINDS_EACH {
            late.kill().unwrap();
        }
        assert_eq!(late.wait().is_err(), FINDS_EACH, "the sweep reaps what is its own");
        // A sweep must not reap the children that others wait for.
        assert!(early.wait().unwrap().success());
        for other in [&mut before.0, &mut spared.0] {
            other.kill().unwrap();
            wait_without_reaping(other.id());
            tree.reap_orphans(None);
            assert_eq!(other.wait().unwrap().signal(), Some(9));
        }
        if !FINDS_EACH {
            return assert!(works(&["kill", "-9", &before_child.to_string(), &spared_child.to_string()]));
        }
        // The children of both programs became ours when those ended. The tree knew one of them; the other one has no
        // marker.
        assert!(is_alive(kept[1]) && parent(kept[1]) == std::process::id());
        assert!(works(&["kill", "-9", &kept[1].to_string()]));
        // It may need a while to die, and the sweep reaps only the dead.
        assert!(eventually(limit(), || !is_alive(kept[1])));
        assert_eq!(tree.sweep(None, limit()), Swept { killed: 1, left: 0 });
        assert!(!is_alive(spared_child) && is_alive(marked.0.id()));
        assert_eq!(zombie_children(), 0);
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_process_from_before_with_the_marker_is_not_spared() {
    alone("a_process_from_before_with_the_marker_is_not_spared", &[], |_| {
        let nonce = nonce();
        let mut child = agent(&nonce, &stubborn("early"));
        let early = started(written("early"));
        // Start a younger process: otherwise the age of the agent alone would cause the check for its marker.
        let start = || Kept(quiet("sleep").arg("60").spawn().unwrap());
        assert!(eventually(limit(), || started(start().0.id()) > early));
        let _younger = start();
        let tree = Tree::before_spawn(nonce);
        // Look without the leader, so that its group does not give it away.
        assert!(tree.members().contains(&child.id()));
        assert!(tree.sweep(Some(child.id()), limit()).killed >= 1);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn an_inner_run_leaves_the_outer_one_alone() {
    alone("an_inner_run_leaves_the_outer_one_alone", &[], |_| {
        let (outer, inner) = (nonce(), nonce());
        let start = |marker: String, name: &str| {
            let script = format!("(setsid {} &)", stubborn(name));
            let mut command = quiet("sh");
            command.args(["-c", &script]).env(MARKER, marker);
            // Without a subreaper, only the marker decides.
            assert!(command.status().unwrap().success());
            written(name)
        };
        let inner_tree = Tree::before_spawn(inner.clone());
        let outer_tree = Tree::before_spawn(outer.clone());
        let only_outer = start(outer.clone(), "outer");
        let both = start(format!("{outer}:{inner}"), "both");
        assert_eq!(inner_tree.sweep(None, limit()), Swept { killed: 1, left: 0 });
        assert!(is_alive(only_outer) && !is_alive(both));
        let both = start(format!("{outer}:{inner}"), "both-again");
        assert_eq!(outer_tree.sweep(None, limit()), Swept { killed: 2, left: 0 });
        assert!(!is_alive(only_outer) && !is_alive(both));
    });
}

#[test]
fn the_marker_grows_by_one_nonce_a_level_and_is_bounded() {
    let name = "the_marker_grows_by_one_nonce_a_level_and_is_bounded";
    if std::env::var_os(BODY).is_none() {
        alone(
            name,
            &["env", &format!("{MARKER}=outer:not a nonce:{}:{}:inner::", "x".repeat(65), "y".repeat(64))],
            |_| (),
        );
        return alone(name, &["env", &format!("{MARKER}={}", "deep:".repeat(100))], |_| ());
    }
    alone(name, &[], |_| {
        let value = marker_value("own");
        match std::env::var(MARKER) {
            Ok(inherited) if inherited.starts_with("deep") => {
                assert_eq!(value, format!("{}own", "deep:".repeat(31)));
            }
            Ok(_) => assert_eq!(value, format!("outer:{}:inner:own", "y".repeat(64))),
            Err(_) => assert_eq!(value, "own"),
        }
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_name_full_of_parentheses() {
    alone("a_name_full_of_parentheses", &[], |dir| {
        fs::copy("/bin/sleep", dir.join(") Z 1 (")).unwrap();
        let script = "sh -c 'echo $$ > odd; exec env -i setsid \"./) Z 1 (\" 60' & wait";
        swept_clean(script, &["odd"]);
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_process_whose_first_thread_ended_is_not_a_zombie() {
    let name = "a_process_whose_first_thread_ended_is_not_a_zombie";
    // The raw system call ends only the first thread. Its number is that of x86-64.
    let script = "use threads; threads->create(sub { sleep 60 }); open F, '>', 'half'; \
                  print F \"$$\\n\"; close F; syscall(60, 0)";
    if !cfg!(target_arch = "x86_64") || !works(&["perl", "-e", "use threads"]) {
        return not_checked(name, "it needs x86-64, and perl with threads");
    }
    alone(name, &[], |_| {
        fs::write("half.pl", script).unwrap();
        become_subreaper();
        let tree = Tree::before_spawn(nonce());
        let mut child = agent(&tree_nonce(&tree), "setsid perl half.pl & wait");
        let half = written("half");
        assert!(eventually(limit(), || stat(half).unwrap()[0] == "Z"));
        assert!(tree.members().contains(&half));
        assert_eq!(tree.sweep(Some(child.id()), limit()).left, 0);
        child.wait().unwrap();
        assert_eq!(stat(half), None);
    });
}

#[test]
fn each_process_gets_a_signal_once() {
    alone("each_process_gets_a_signal_once", &[], |_| {
        let program = "use IO::Handle; open F, '>', \"$ARGV[0].log\"; F->autoflush(1);\
                       $SIG{TERM} = sub { print F 'T' }; $SIG{USR1} = sub { print F 'U' };\
                       open P, '>', $ARGV[0]; print P \"$$\\n\"; close P; sleep 1 while 1";
        // A signal that arrives right before a sleep is handled after it.
        fs::write("count.pl", program).unwrap();
        let tree = Tree::before_spawn(nonce());
        let own = if FINDS_EACH { "setsid perl count.pl own &" } else { "" };
        let mut child = agent(&tree_nonce(&tree), &format!("perl count.pl in-group & {own} exec perl count.pl leader"));
        let names = ["in-group", "leader", "own"];
        let (names, count) = if FINDS_EACH { (&names[..], 3) } else { (&names[..2], 1) };
        names.iter().for_each(|name| _ = written(name));
        let has = |name: &str, text: &str| {
            let log = format!("{name}.log");
            eventually(limit(), || fs::read_to_string(&log).unwrap() == text)
        };
        assert_eq!(tree.signal_all(Some(child.id()), Signal::TERM), count);
        assert!(names.iter().all(|name| has(name, "T")));
        assert_eq!(tree.signal_all(Some(child.id()), Signal::USR1), count);
        assert!(names.iter().all(|name| has(name, "TU")));
        assert_eq!(tree.sweep(Some(child.id()), limit()), swept(3));
        child.wait().unwrap();
    });
}

#[test]
fn stopped_processes_die_too() {
    alone("stopped_processes_die_too", &[], |_| {
        let tree = Tree::before_spawn(nonce());
        let own = if FINDS_EACH { "setsid" } else { "" };
        let script = format!("{own} {} & echo $$ > leader; wait", stubborn("tool"));
        let mut child = agent(&tree_nonce(&tree), &script);
        let pids = ["tool", "leader"].map(written);
        assert_eq!(tree.signal_all(Some(child.id()), Signal::STOP), if FINDS_EACH { 2 } else { 1 });
        let stopped = |pid: &u32| stat(*pid).unwrap()[0] == "T";
        assert!(eventually(limit(), || pids.iter().all(stopped)));
        assert_eq!(tree.sweep(Some(child.id()), limit()), swept(2));
        child.wait().unwrap();
        assert!(pids.into_iter().all(is_gone));
    });
}

#[test]
fn a_sweep_of_an_empty_tree_finds_nothing() {
    alone("a_sweep_of_an_empty_tree_finds_nothing", &[], |_| {
        let tree = Tree::before_spawn(nonce());
        let start = Instant::now();
        assert_eq!(tree.sweep(None, limit()), Swept::default());
        println!("sweep on nothing: {:?}", start.elapsed());
        assert_eq!(tree.signal_all(None, Signal::KILL), 0);
        // Pids that must never be signalled: our own, that of init, and the one that stands for every process.
        for pid in [0, 1, std::process::id(), u32::MAX] {
            assert_eq!(tree.signal_all(Some(pid), Signal::KILL), 0);
            wait_without_reaping(pid);
        }
        assert!(tree.members().is_empty());
    });
}

/// Each process starts three more through the program in `OWN`, four levels deep, and exits, so the tree grows while it is
/// killed. There are at most 1 + 3 + 9 + 27 + 81 processes.
const BOMB: &str = "[ $1 -gt 3 ] && exec sleep 60
[ $1 -gt 1 ] && echo $$ > growing
for i in 1 2 3; do $OWN env -i PATH=$PATH OWN=$OWN sh bomb $(($1 + 1)) & done
[ $1 -eq 2 ] || wait
";

#[test]
fn a_small_fork_bomb() {
    alone("a_small_fork_bomb", &[], |_| {
        fs::write("bomb", BOMB).unwrap();
        become_subreaper();
        let tree = Tree::before_spawn(nonce());
        let own = if FINDS_EACH { "setsid" } else { "" };
        let mut child = agent(&tree_nonce(&tree), &format!("OWN={own} exec sh bomb 0"));
        written("growing");
        let start = Instant::now();
        let swept = tree.sweep(Some(child.id()), limit());
        println!("fork bomb: {swept:?} in {:?}", start.elapsed());
        child.wait().unwrap();
        assert_eq!(swept.left, 0);
        assert!(swept.killed > 3 || !FINDS_EACH);
        assert!(eventually(limit(), || test_kill_process_group(Pid::from_child(&child)).is_err()));
        assert!(tree.members().is_empty());
        assert_eq!(zombie_children(), 0);
    });
}

/// A spared program that starts a process of the tree as soon as the agent dies. Succeeds if that process was stopped
/// before it died.
const SUCCESSOR: &str = "use POSIX ':sys_wait_h'; open my $life, '<', $ARGV[0]; 1 while <$life>;
    my $next = fork; if (!$next) { sleep 60; exit }
    waitpid $next, WUNTRACED; exit 1 unless WIFSTOPPED(${^CHILD_ERROR_NATIVE}); waitpid $next, 0; exit 0";

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn a_process_that_appears_during_the_sweep_is_stopped_before_it_is_killed() {
    alone("a_process_that_appears_during_the_sweep_is_stopped_before_it_is_killed", &[], |_| {
        // The successor may come too late for a round, or its parent may look only after the kill.
        let was_stopped = (0..50).any(|attempt| {
            let (life, leader) = (format!("life-{attempt}"), format!("leader-{attempt}"));
            assert!(works(&["mkfifo", &life]));
            let mut tree = Tree::before_spawn(nonce());
            let mut watcher = quiet("perl");
            watcher.args(["-e", SUCCESSOR, &life]).env(MARKER, tree_nonce(&tree)).process_group(0);
            let mut watcher = Kept(watcher.spawn().unwrap());
            tree.spare(watcher.0.id());
            // The agent opens the pipe once the watcher has.
            let script = format!("exec 3>{life}; echo $$ > {leader}; exec sleep 60");
            let mut child = agent(&tree_nonce(&tree), &script);
            written(&leader);
            assert_eq!(tree.sweep(Some(child.id()), limit()).left, 0);
            child.wait().unwrap();
            let mut status = None;
            let is_over = || {
                // A successor that came after the sweep.
                tree.sweep(None, limit());
                status = watcher.0.try_wait().unwrap();
                status.is_some()
            };
            assert!(eventually(limit(), is_over), "the successor lives");
            status.unwrap().success()
        });
        assert!(was_stopped);
    });
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn as_a_plain_user() {
    let name = "as_a_plain_user";
    let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    if std::env::var_os(BODY).is_none() && !works(&[&user[..], &["true"]].concat()) {
        return not_checked(name, "setpriv cannot change the user here");
    }
    // The program belongs to root and is not readable, so the kernel hides the environment of the process that runs it.
    alone(
        name,
        &[
            "sh",
            "-c",
            "cd \"${0%/*}\" && cp /bin/sleep hidden && chmod 711 hidden && \
        exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" \"$@\"",
        ],
        |_| {
            become_subreaper();
            assert!(Path::new("hidden").exists() && fs::read("hidden").is_err());
            let tree = Tree::before_spawn(nonce());
            let script =
                format!("(setsid {} &) ; sh -c 'echo $$ > secret; exec setsid ./hidden 60' & wait", stubborn("daemon"));
            let mut child = agent(&tree_nonce(&tree), &script);
            let pids = ["daemon", "secret"].map(written);
            let unreadable = || fs::read(format!("/proc/{}/environ", pids[1])).is_err();
            assert!(eventually(limit(), unreadable), "the environment can be read");
            let swept = tree.sweep(Some(child.id()), limit());
            assert_eq!(swept.left, 0);
            child.wait().unwrap();
            assert!(!pids.iter().any(|pid| is_alive(*pid)));
        },
    );
}

#[test]
#[cfg_attr(not(feature = "linux"), ignore = "processes outside the agent's process group")]
fn as_pid_1() {
    let unshare = ["unshare", "-pf", "--mount-proc"];
    if std::env::var_os(BODY).is_none() && !works(&[&unshare[..], &["true"]].concat()) {
        return not_checked("as_pid_1", "unshare cannot make a PID namespace here");
    }
    alone("as_pid_1", &unshare, |_| {
        assert_eq!(std::process::id(), 1);
        let tree = Tree::before_spawn(nonce());
        let mut stranger = Kept(quiet("sleep").arg("60").process_group(0).spawn().unwrap());
        let script = format!(
            "i=0; while [ $i -lt 300 ]; do (true &) ; i=$((i + 1)); done; (setsid {} &) ; \
             setsid sh -c '{} & wait' & echo $$ > leader; wait; exit 4",
            stubborn("daemon"),
            "env -i setsid /bin/sh -c \"echo \\$\\$ > bare; exec sleep 60\"",
        );
        let mut child = agent(&tree_nonce(&tree), &script);
        let pids = ["daemon", "bare", "leader"].map(written);
        // The orphans of the loop passed to us, and nobody else can reap them.
        assert!(eventually(limit(), || zombie_children() >= 100));
        println!("as PID 1: {} orphans reaped", tree.reap_orphans(Some(child.id())));
        let start = Instant::now();
        let swept = tree.sweep(Some(child.id()), limit());
        println!("as PID 1: {swept:?} in {:?}", start.elapsed());
        assert_eq!(swept.left, 0);
        assert!(!pids.iter().any(|pid| is_alive(*pid)));
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert_eq!(zombie_children(), 0);
        // The stranger has no marker, and descent from PID 1 proves nothing.
        assert!(is_alive(stranger.0.id()) && stranger.0.try_wait().unwrap().is_none());
    });
}

#[test]
fn the_numbers_of_another_pid_namespace_are_not_used() {
    let name = "the_numbers_of_another_pid_namespace_are_not_used";
    if std::env::var_os(BODY).is_none() && !works(&["unshare", "-pf", "true"]) {
        return not_checked(name, "unshare cannot make a PID namespace here");
    }
    // Here /proc still shows the outer namespace.
    alone(name, &["unshare", "-pf"], |_| {
        let tree = Tree::before_spawn(nonce());
        let mut child = agent(&tree_nonce(&tree), "echo 1 > up; exec sleep 60");
        written("up");
        assert!(tree.members().is_empty());
        assert_eq!(tree.sweep(Some(child.id()), limit()), Swept::default());
        assert_eq!(child.wait().unwrap().signal(), Some(9), "the group is killed all the same");
    });
}

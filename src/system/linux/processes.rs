//! Reads the facts about a process from `/proc`, and signals it without ever signalling another process.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, child_subreaper, getpid, kill_process, pidfd_open, pidfd_send_signal, set_child_subreaper,
};

use crate::system::process::{Id, ProcessInfo, to_pid};
use crate::system::start_time;

/// In bytes. The kernel allows 6 MiB for arguments and environment together.
const ENVIRON_BYTES_MAX: u64 = 8 << 20;

/// More than the size of any `/proc/PID/stat`, in bytes: about 50 numbers and a short name.
const STAT_BYTES_MAX: usize = 2048;

const NO_PROC: &str = "/proc is not available: processes that leave the agent's process group may outlive the run";

/// Best effort: makes this process the parent of every orphan among its descendants. Returns false if the kernel does not
/// support it.
pub fn become_subreaper() -> bool {
    set_child_subreaper(Some(getpid())).is_ok()
}

pub(crate) fn keeps_descendants() -> bool {
    std::process::id() == 1 || child_subreaper().is_ok_and(|subreaper| subreaper.is_some())
}

/// All processes. Empty if `/proc` is missing or shows a PID namespace other than ours: `kill` would take its numbers
/// for other processes.
pub(crate) fn processes() -> Vec<ProcessInfo> {
    if !proc_is_ours() {
        return Vec::new();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(read_process).collect()
}

/// All descendants of this process, found by the lists of children, so that no other process is looked at. A process
/// that starts or ends meanwhile may be missing. `None`: this kernel does not list children.
pub(crate) fn descendants() -> Option<Vec<ProcessInfo>> {
    adopted()?;
    let (mut open, mut seen, mut found) = (vec![std::process::id()], HashSet::new(), Vec::new());
    while let Some(parent) = open.pop() {
        for child in children(parent) {
            if seen.insert(child) {
                found.extend(read_process(child));
                open.push(child);
            }
        }
    }
    Some(found)
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| pids(&list).collect::<Vec<_>>()).collect()
}

fn pids(list: &str) -> impl Iterator<Item = u32> {
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

/// The children of our main thread, which include every orphan that we adopt. Much faster than reading all processes.
/// `None`: this kernel does not list them.
pub(crate) fn adopted() -> Option<Vec<u32>> {
    if !proc_is_ours() {
        return None;
    }
    let me = std::process::id();
    let list = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).ok()?;
    Some(pids(&list).collect())
}

/// The pid that the kernel assigned last. `None`: it cannot be read.
pub(crate) fn newest_pid() -> Option<u32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

/// The reason why this process cannot see other processes, although the system usually lets it. `None`: it sees them.
pub(crate) fn lost_sight() -> Option<&'static str> {
    (!proc_is_ours()).then_some(NO_PROC)
}

/// Whether `/proc` can be read and numbers processes as `kill` does.
fn proc_is_ours() -> bool {
    let me = std::process::id().to_string();
    fs::read_link("/proc/self").is_ok_and(|target| target == Path::new(&me))
}

pub(crate) fn read_process(pid: u32) -> Option<ProcessInfo> {
    // One read, because a run reads this file for every process. `fs::read` would need five reads, and ask for the
    // size.
    let mut stat = [0; STAT_BYTES_MAX];
    let bytes = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    parse_stat(pid, &stat[..bytes])
}

/// Parses the fields after the command's name, which may contain spaces and parentheses. Field numbers are those of
/// proc(5), where the first of these fields (state) is 3.
fn parse_stat(pid: u32, stat: &[u8]) -> Option<ProcessInfo> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ended = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(ProcessInfo {
        id: (pid, number(22)?),
        parent: u32::try_from(number(4)?).ok()?,
        group: u32::try_from(number(5)?).ok()?,
        // If only the first thread of a process has ended, the process looks like a zombie but still runs.
        zombie: ended && number(20)? <= 1,
    })
}

/// Whether the environment with which the process was started has one of these nonces, which colons separate, in the
/// variable `marker`. False if the environment cannot be read.
pub(crate) fn carries(pid: u32, marker: &str, nonces: &str) -> bool {
    let mut environ = Vec::new();
    let Ok(file) = File::open(format!("/proc/{pid}/environ")) else {
        return false;
    };
    // The bytes read before an error still count.
    let _ = file.take(ENVIRON_BYTES_MAX).read_to_end(&mut environ);
    marked(&environ, marker, nonces)
}

/// Whether the environment of a living process reads as empty, as in the middle of exec. False if it cannot be read.
pub(crate) fn hides_environment(pid: u32) -> bool {
    let first = |file: File| file.take(1).read_to_end(&mut Vec::new());
    File::open(format!("/proc/{pid}/environ")).and_then(first).is_ok_and(|size| size == 0)
}

fn marked(environ: &[u8], marker: &str, nonces: &str) -> bool {
    let mut values =
        environ.split(|&byte| byte == 0).filter_map(|entry| entry.strip_prefix(marker.as_bytes())?.strip_prefix(b"="));
    let is_wanted = |part: &[u8]| !part.is_empty() && nonces.split(':').any(|nonce| part == nonce.as_bytes());
    values.any(|value| value.split(|&byte| byte == b':').any(is_wanted))
}

/// Signals exactly this process: a pidfd pins it while its start time is compared. Without a pidfd (old kernel,
/// seccomp, no descriptor left), the only gap is the time between the comparison and the kill.
pub(crate) fn send((pid, start): Id, signal: Signal) -> bool {
    let Some(target) = to_pid(pid).filter(|target| !target.is_init()) else {
        return false;
    };
    let held = pidfd_open(target, PidfdFlags::empty());
    if start_time(pid) != Some(start) {
        return false;
    }
    match held.and_then(|held| pidfd_send_signal(held, signal)) {
        Ok(()) => true,
        Err(Errno::SRCH) => false,
        Err(_) => start_time(pid) == Some(start) && kill_process(target, signal).is_ok(),
    }
}

/// Whether the number of this process's group still means that group: its leader is alive, or not reaped.
pub(crate) fn group_keeps_number((leader, start): Id) -> bool {
    start_time(leader) == Some(start)
}

/// Whether a group has a process that [`processes`] does not show: it shows all.
pub(crate) fn group_lives(_group: Option<Pid>) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::{ProcessInfo, marked, parse_stat};

    #[test]
    fn the_name_in_stat_may_look_like_fields() {
        let tail = "S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let stat = format!("5 (a) Z 1 (b) {tail}\n");
        let process = ProcessInfo { id: (5, 4242), parent: 7, group: 8, zombie: false };
        assert_eq!(parse_stat(5, stat.as_bytes()), Some(process));
        assert_eq!(parse_stat(5, b"5 (cut) S 7 8"), None);
        assert_eq!(parse_stat(5, b""), None);
    }

    #[test]
    fn a_marker_is_matched_by_whole_nonces() {
        let environ = b"A=1\0SPEKTACULAR_RUN=outer:inner\0B=x";
        let marked = |environ: &[u8], nonces| marked(environ, "SPEKTACULAR_RUN", nonces);
        assert!(marked(environ, "outer") && marked(environ, "inner") && marked(environ, "other:inner"));
        assert!(!marked(environ, "inne") && !marked(environ, "oute:nner"));
        assert!(!marked(b"SPEKTACULAR_RUN=\0", "") && !marked(b"SPEKTACULAR_RUNS=a\0", "a"));
    }
}

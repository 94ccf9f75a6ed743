//! The processes of a case in /proc.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::MARKER;

/// The processes whose environment contains the case's marker, with their command lines. A zombie has no environment.
#[track_caller]
pub(crate) fn marked(marker: &str) -> Vec<(i32, String)> {
    let wanted = format!("{MARKER}={marker}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        if environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes()) {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}

pub(crate) fn kill_marked(marker: &str) {
    marked(marker).into_iter().for_each(|(pid, _)| kill(pid));
}

#[track_caller]
pub(crate) fn kill(pid: i32) {
    // The process may have exited just now.
    let _ = kill_process(Pid::from_raw(pid).expect("a pid"), Signal::KILL);
}

/// Whether the process exists and is not a zombie.
pub(crate) fn alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// Whether a signal has stopped the process.
pub(crate) fn stopped(pid: i32) -> bool {
    state(pid) == Some('T')
}

/// Whether the process waits for something.
pub(crate) fn waits(pid: i32) -> bool {
    state(pid) == Some('S')
}

/// How often the process has waited for something, or was stopped.
pub(crate) fn voluntary_waits(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap_or("0");
    count.trim().parse().unwrap_or(0)
}

fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// The processor time that a process has used, in ticks of 10 ms.
#[track_caller]
pub(crate) fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let rest = stat.rsplit(')').next().expect("stat");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime")
}

/// The peak memory of a process, in KiB.
pub(crate) fn peak_kib(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:")
}

/// The pages of its program file that a process holds, in KiB. A debug build has many of them.
pub(crate) fn program_kib(pid: u32) -> u64 {
    status_kib(pid, "RssFile:")
}

fn status_kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0 kB");
    value.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Whether the process has a handler for the signal.
pub(crate) fn handles(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0");
    let mask = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
    mask & (1 << (signal.as_raw() - 1)) != 0
}

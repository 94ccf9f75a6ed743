//! Measures one process from start to exit: elapsed time, processor time, peak memory.

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that names another build of the program, such as the static one.
const PROGRAM: &str = "BENCH_PROGRAM";
/// The kernel's unit of processor time in user space, the same on every architecture that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// The program to measure.
pub(crate) fn program() -> PathBuf {
    let built = || PathBuf::from(env!("CARGO_BIN_EXE_spektacular"));
    std::env::var_os(PROGRAM).map_or_else(built, |path| fs::canonicalize(path).unwrap())
}

/// The cost of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Seconds from start to exit.
    pub(crate) wall: f64,
    /// Seconds of processor time of the process and its threads, without its children.
    pub(crate) cpu: f64,
    /// The peak memory, in KiB.
    pub(crate) peak: f64,
}

/// Runs a command to its exit, and meanwhile reads its stdout unless that is redirected. `input` is written to its
/// stdin, which stays open. Without `input`, stdin is empty.
pub(crate) fn run(command: &mut Command, input: Option<&str>) -> Cost {
    let began = Instant::now();
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take().zip(input).map(|(mut stdin, input)| {
        stdin.write_all(input.as_bytes()).unwrap();
        stdin
    });
    let status = format!("/proc/{}/status", child.id());
    let watcher = thread::spawn(move || {
        let mut peak = 0.0;
        // The kernel keeps the peak, so only growth in the last moment before the exit is missed.
        while let Some(now) = peak_of(&status) {
            peak = now;
            // No event: the kernel does not report the growth of a process.
            thread::sleep(Duration::from_millis(1));
        }
        peak
    });
    if let Some(mut out) = child.stdout.take() {
        let mut buffer = vec![0; 1 << 16];
        while out.read(&mut buffer).unwrap() > 0 {}
    }
    let (wall, cpu) = ended(&mut child, began);
    drop(stdin);
    Cost { wall, cpu, peak: watcher.join().unwrap() }
}

/// Waits for the exit, and reads the processor time while the kernel still knows it.
fn ended(child: &mut Child, began: Instant) -> (f64, f64) {
    waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let wall = began.elapsed().as_secs_f64();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // Skips the name, which is in parentheses. After it, utime and stime are fields 14 and 15 of the line.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    child.wait().unwrap();
    (wall, ticks / TICKS_PER_SECOND)
}

/// The peak memory of a process that is still running.
pub(crate) fn peak_of(status: &str) -> Option<f64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// The median.
pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

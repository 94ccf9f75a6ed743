//! Measures the cost of a run, beside reference programs that run in the same minutes on the same machine, so that both
//! measurements contain the speed and the load of that machine. `cargo bench`; `--quick` makes fewer and shorter runs,
//! `--json` prints one object per line. These assert nothing. `--check` compares only the throughput of small events
//! with a wide limit, and fails below it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark reports to stdout and ends where it cannot go on"
)]
mod beside;
mod latency;
mod measured;
mod memory;
mod scripted;
mod stream;
mod table;
mod workload;

use measured::program;
use std::process::ExitCode;
use table::Table;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has(beside::BARE_LOOP) {
        beside::bare_loop();
        return ExitCode::SUCCESS;
    }
    // `cargo test --all-targets` also runs benchmarks, without this flag. There is nothing to test here.
    if !has("--bench") {
        return ExitCode::SUCCESS;
    }
    let (table, quick) = (Table { json: has("--json") }, has("--quick"));
    if has("--check") {
        return if stream::check(&table) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    stream::measure(&table, quick);
    latency::measure(&table, quick);
    memory::measure(&table);
    let size = std::fs::metadata(program()).unwrap().len();
    table.heading("size", &["bytes", "MiB"]);
    table.row("the program", &[size as f64, size as f64 / f64::from(1 << 20)]);
    ExitCode::SUCCESS
}

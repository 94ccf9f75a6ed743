//! Guards the cost of a run. The tests count work, which does not depend on the load of the machine: allocations of a
//! run inside this process, and instructions of the program under valgrind. Each count is in `expected.txt` beside this
//! file, and may differ by 3 %. `UPDATE_COUNTS=1` writes the counts of the tests that run.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

mod allocations;
mod conversations;
mod expected;
mod growth;
mod inside;
mod instructions;
#[path = "../support/length.rs"]
mod length;
mod loading;
mod memory;
mod parts;
#[expect(dead_code, reason = "the benchmark uses the rest")]
#[path = "../bench/scripted.rs"]
mod scripted;
#[path = "../bench/workload.rs"]
mod workload;
#[expect(dead_code, reason = "the suite uses the rest")]
#[path = "../suite/playback/world.rs"]
mod world;

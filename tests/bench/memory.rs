//! Measures the peak memory of runs that wait: for their agent, or for a reader.

use crate::latency::Live;
use crate::table::Table;
use crate::workload::{Dialect, Events};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Write};

/// The time for which a run must accept nothing to count as full.
const FULL: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Measures everything.
pub(crate) fn measure(table: &Table) {
    table.heading("memory", &["peak KiB"]);
    table.row("an idle run", &[Live::start().peak()]);
    table.row("a reader that stops", &[full().peak()]);
}

/// A run whose frames nobody reads, and whose agent writes until nothing more is accepted.
fn full() -> Live {
    let mut run = Live::start();
    rustix::io::ioctl_fionbio(&run.agent_out, true).unwrap();
    let lines = Dialect::Claude.lines(Events::Mix, 3000);
    let mut rest = lines.as_bytes();
    loop {
        match run.agent_out.write(rest) {
            Ok(count) if count == rest.len() => rest = lines.as_bytes(),
            Ok(count) => rest = &rest[count..],
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        if poll(&mut [PollFd::new(&run.agent_out, PollFlags::OUT)], Some(&FULL)).unwrap() == 0 {
            return run;
        }
    }
}

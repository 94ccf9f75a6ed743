//! Allocations per event.

use crate::expected::compare;
use crate::inside::play;
use crate::workload::{Dialect, Events};

/// The number of events in a replay.
const EVENTS: usize = 3000;
const DIALECTS: [Dialect; 3] = [Dialect::Claude, Dialect::Codex, Dialect::Acp];

/// Counts the allocations of one run beyond those of a run with a tenth of the events, so that the beginning and the
/// end do not count.
fn allocations(dialect: Dialect, events: Events, options: &str) -> f64 {
    let of = |count| play(dialect, &dialect.script(&dialect.lines(events, count)), options, false).count;
    let (few, many) = (of(EVENTS / 10), of(EVENTS));
    (many - few) as f64 / (EVENTS - EVENTS / 10) as f64
}

#[test]
fn small_events_allocate_as_often_as_committed() {
    for dialect in DIALECTS {
        compare(&format!("allocations {} mix", dialect.agent()), allocations(dialect, Events::Mix, ""));
    }
}

#[test]
fn pieces_of_a_message_allocate_as_often_as_committed() {
    let full = r#","progress":"full""#;
    for dialect in DIALECTS {
        compare(&format!("allocations {} deltas", dialect.agent()), allocations(dialect, Events::Deltas, full));
    }
}

//! Runs the engine inside this process and counts its allocations.

use crate::workload::{Dialect, Step};
use crate::world::{Sent, World};
use spektacular::agent::registry::Agents;
use spektacular::protocol::request::Options;

/// The number of allocations and their total size in bytes. A buffer that grows counts again as a whole, because it may
/// be copied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allocated {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// The largest amount that was held at the same time, in bytes.
    pub(crate) peak: u64,
}

/// Plays the steps after this run.start. Counts the allocations of the last step and of `then`, or of everything if
/// `whole` is set.
pub(crate) fn play(dialect: Dialect, steps: &[Step], options: &str, whole: bool) -> Allocated {
    let mut world = World::new("/home/user/project", Options::default(), Agents::built_in());
    let agent = dialect.agent();
    let start = format!(r#"{{"v":"1","type":"run.start","payload":{{"prompt":"Go on","agent":"{agent}"{options}}}}}"#);
    let (mut before, mut last) = (Allocated::default(), Allocated::default());
    let began = allocation_counter::measure(|| {
        world.hear(&start);
        world.spawn();
    });
    before.add(began);
    assert!(world.host_mut().has_process, "{agent} does not start");
    for step in steps {
        match step {
            Step::Hear => {
                let heard = world.host_mut().sent.pop_front();
                assert!(matches!(heard, Some(Sent::Line(_))), "{agent} gets no line where the script expects one");
            }
            Step::Say(text) => {
                before.count += last.count;
                before.bytes += last.bytes;
                let (mut bytes, lines) = (0, text.lines().count());
                last = Allocated::default();
                last.add(allocation_counter::measure(|| {
                    for line in text.lines() {
                        world.hand(line);
                        bytes += discard(&mut world);
                    }
                }));
                assert!(lines < 10 || bytes > 0, "{agent}'s lines come to nothing");
            }
        }
    }
    let both = Allocated {
        count: before.count + last.count,
        bytes: before.bytes + last.bytes,
        peak: before.peak.max(last.peak),
    };
    if whole { both } else { last }
}

impl Allocated {
    /// Both counts as one number. One allocation takes about as long as copying this many bytes.
    pub(crate) fn work(self) -> u64 {
        self.count * 64 + self.bytes
    }

    fn add(&mut self, counted: allocation_counter::AllocationInfo) {
        self.count += counted.count_total;
        self.bytes += counted.bytes_total;
        self.peak = self.peak.max(counted.bytes_max);
    }
}

/// Empties the outbox without reading the frames. Returns the number of bytes that were in it.
fn discard(world: &mut World) -> usize {
    let mut bytes = 0;
    loop {
        while !world.conductor().outbox().is_empty() {
            bytes += world.conductor().outbox().pop().out.len();
        }
        if !world.run().has_more() {
            return bytes;
        }
        world.conductor().more();
    }
}

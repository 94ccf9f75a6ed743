//! The clock of a workflow: the time of its parts, and the gaps between them.

use std::time::{Duration, Instant};

/// The time that the run of a workflow has used.
pub(super) struct Spent {
    /// The time of the run until `since`.
    clock: Duration,
    /// The time since the first process started. `None`: no process has started.
    worked: Option<Duration>,
    /// The end of the last part.
    since: Instant,
}

impl Spent {
    pub(super) fn begin() -> Spent {
        Spent { clock: Duration::ZERO, worked: None, since: Instant::now() }
    }

    /// The time that the run has used so far.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock + self.since.elapsed()
    }

    /// Adds a part that started at `began` and took `took` by the clock of limits. `worked`: the time since its first
    /// process.
    pub(super) fn add(&mut self, began: Instant, took: Duration, worked: Option<Duration>) {
        let gap = began.saturating_duration_since(self.since);
        self.clock += gap + took;
        self.worked = match self.worked {
            Some(before) => Some(before + gap + took),
            None => worked,
        };
        self.since = Instant::now();
    }

    pub(super) fn worked(&self) -> Option<Duration> {
        self.worked.map(|worked| worked + self.since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;
    use std::time::{Duration, Instant};

    #[test]
    fn the_gaps_between_parts_count_once_a_process_has_started() {
        let seconds = Duration::from_secs;
        let after = |gap| Instant::now() + seconds(gap);
        let mut spent = Spent::begin();
        spent.add(after(1000), seconds(100), None);
        assert_eq!(spent.worked(), None);
        spent.add(after(1000), seconds(100), Some(seconds(10)));
        spent.add(after(1000), seconds(100), None);
        // Rounded, because the test itself takes time.
        let hundreds = |time: Duration| (time.as_secs() + 50) / 100;
        assert_eq!(spent.worked().map(hundreds), Some(11));
        assert_eq!(hundreds(spent.elapsed()), 33);
    }
}

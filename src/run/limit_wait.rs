//! The wait for the end of a provider's limit.
//!
//! This is the state alone. `provider_limit` carries out the steps.

use super::StopSignal;
use crate::protocol::failure::Failure;
use std::time::Duration;

pub(super) const GO_ON: &str = "The provider's limit that ended your last turn is over. Go on with the task where you \
                                stopped, and do nothing twice.";

/// The first pause for a limit whose end is unknown. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(30 * 60);

/// The waits in a row: since a tool ran, or a turn was completed.
#[derive(Default)]
pub(super) struct LimitWaits {
    /// The date of the first failure.
    since: Option<Duration>,
    /// An end was past when it arrived.
    past: bool,
    /// The number of pauses for limits whose end was unknown.
    pauses: u32,
}

impl LimitWaits {
    /// The date until which to wait after this failure. `None`: it is later than `longest` allows.
    pub(super) fn until(&mut self, failure: &Failure, date: Duration, longest: Duration) -> Option<Duration> {
        let last = *self.since.get_or_insert(date) + longest;
        let known = failure.retry_at.map(|at| at.since_1970());
        // Agents give whole seconds, so a short limit can be over before its failure arrives. An end that is past for
        // the second time in a row is a clock that runs behind, and must not become a loop without a pause.
        let known = known.filter(|at| *at > date || !std::mem::replace(&mut self.past, true)).map(|at| at.max(date));
        let until = known.unwrap_or_else(|| {
            let pause = FIRST_PAUSE * 2_u32.pow(self.pauses.min(5));
            self.pauses += 1;
            last.min(date + pause.min(LONGEST_PAUSE))
        });
        (date < last && until <= last).then_some(until)
    }
}

pub(super) struct LimitWait {
    /// The date at which the turn goes on.
    pub(super) until: Duration,
    /// The signal for an agent that does not leave, and its time.
    pub(super) next: Option<(Duration, StopSignal)>,
    /// The failure of the turn, in case it cannot go on.
    pub(super) failure: Box<Failure>,
    pub(super) then: AfterProcess,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterProcess {
    GoOn,
    HandOver,
}

#[cfg(test)]
mod tests {
    use super::LimitWaits;
    use crate::protocol::failure::Failure;
    use crate::protocol::utc::UtcTime;
    use std::time::Duration;

    #[test]
    fn a_limit_without_a_known_end_gets_growing_pauses() {
        let date = Duration::from_secs(1_771_581_600);
        let (mut waits, mut now, mut pauses) = (LimitWaits::default(), date, Vec::new());
        let longest = Duration::from_secs(2 * 3600);
        while let Some(until) = waits.until(&Failure::rate_limited(), now, longest) {
            pauses.push((until - now).as_secs() / 60);
            now = until;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 29]);
    }

    #[test]
    fn a_known_end_counts_unless_it_is_too_late() {
        let date = Duration::from_secs(1_771_581_600);
        let until = |after: f64, longest| {
            let failure = Failure::rate_limited().until(UtcTime::of_seconds(date.as_secs_f64() + after));
            LimitWaits::default()
                .until(&failure, date, Duration::from_secs(longest))
                .map(|until| (until - date).as_secs())
        };
        assert_eq!(until(90.0, 100), Some(90));
        assert_eq!(until(101.0, 100), None);
        assert_eq!(until(-5.0, 10), Some(0));
    }

    #[test]
    fn an_end_that_is_past_for_the_second_time_counts_as_unknown() {
        let date = Duration::from_secs(1_771_581_600);
        let mut waits = LimitWaits::default();
        let mut until = |at: f64| {
            let failure = Failure::rate_limited().until(UtcTime::of_seconds(date.as_secs_f64() + at));
            waits.until(&failure, date, Duration::from_secs(100)).map(|until| (until - date).as_secs())
        };
        assert_eq!([until(-5.0), until(-5.0), until(-1.0), until(7.0)], [Some(0), Some(60), Some(100), Some(7)]);
    }
}

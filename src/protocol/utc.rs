//! The moments in UTC that an agent or its provider names, and the form of every time in a frame.

use super::parts::Fixed;
use std::time::Duration;
use time::UtcDateTime;
use time::macros::format_description;

/// In seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime(u32);

impl UtcTime {
    /// The moment so many seconds after 1970. `None`: it is not between 2000 and 2100, so the number means something else.
    pub fn of_seconds(seconds: f64) -> Option<UtcTime> {
        (946_684_800.0..4_102_444_800.0).contains(&seconds).then_some(UtcTime(seconds as u32))
    }

    pub(crate) fn since_1970(self) -> Duration {
        Duration::from_secs(self.0.into())
    }

    /// Such as 03:10.
    pub(crate) fn of_day(self) -> String {
        self.text().get(11..16).unwrap_or_default().to_owned()
    }

    pub(crate) fn text(self) -> String {
        timestamp(self.0.into())
    }
}

impl Fixed for UtcTime {}

/// So many seconds after 1970, in the form of a frame's `ts`. A moment after 9999 is written as 1970.
pub(super) fn timestamp(seconds: u64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].000Z");
    let at = UtcDateTime::from_unix_timestamp(seconds.try_into().unwrap_or_default());
    at.unwrap_or(UtcDateTime::UNIX_EPOCH).format(format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::UtcTime;

    #[test]
    fn only_a_moment_of_this_century_is_one() {
        for (seconds, text) in [
            (1_771_581_600.0, Some("2026-02-20T10:00:00.000Z")),
            (1_771_581_600.9, Some("2026-02-20T10:00:00.000Z")),
            (3_600.0, None),
            (1_771_581_600_000.0, None),
            (f64::NAN, None),
            (-1.0, None),
        ] {
            assert_eq!(UtcTime::of_seconds(seconds).map(UtcTime::text).as_deref(), text, "{seconds}");
        }
    }
}

//! Writes a redacted body as a frame: one line, with its id and time, within the frame limit.

use super::ids::RunId;
use super::limits;
use super::outbound::{Body, Outcome};
use super::parts::Rank;
use super::redacted::Redacted;
use super::utc::timestamp;
use crate::json::{put_number, put_string, unsafe_on_a_line};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Assigns ids and times to frames, writes them, and refuses frames after a terminal one.
#[derive(Debug, Default)]
pub struct Stamper {
    count: u64,
    ended: bool,
    clock: Clock,
}

impl Stamper {
    /// Begins a frame, which [`Stamper::write`] writes. The first id is `msg_1`. False: a terminal frame was emitted, and
    /// nothing may follow it.
    #[must_use]
    pub fn stamp(&mut self, now: SystemTime, body: &Redacted) -> bool {
        if self.ended {
            debug_assert!(false, "a frame after the terminal frame");
            return false;
        }
        self.ended = body.is_terminal();
        self.count += 1;
        self.clock.set(now);
        true
    }

    /// Reuses the ids of the last frames, which were dropped before anybody saw them.
    pub fn dropped(&mut self, frames: u64) {
        self.count -= frames;
    }

    /// The line has its LF and is at most `max` bytes long; a run.completed [`limits::COMPLETED_FACTOR`] times that.
    pub fn write(&self, run_id: &RunId, reply_to: Option<&str>, body: &mut Redacted, max: usize, out: &mut Vec<u8>) {
        let completed = matches!(&**body, Body::Terminal(end) if matches!(end.outcome, Outcome::Completed { .. }));
        let limit = if completed { max.saturating_mul(limits::COMPLETED_FACTOR) } else { max };
        let begin = out.len();
        self.append(run_id, reply_to, body, out);
        for rank in Rank::ALL {
            while out.len() - begin > limit && body.shorten(rank, out.len() - begin - limit) {
                out.truncate(begin);
                self.append(run_id, reply_to, body, out);
            }
        }
    }

    fn append(&self, run_id: &RunId, reply_to: Option<&str>, body: &Redacted, out: &mut Vec<u8>) {
        out.reserve(512 + body.text_bytes());
        out.extend_from_slice(b"{\"v\":\"1\",\"id\":\"msg_");
        put_number(self.count, out);
        out.extend_from_slice(b"\",\"ts\":\"");
        out.extend_from_slice(&self.clock.text);
        out.extend_from_slice(b"\",\"type\":\"");
        out.extend_from_slice(body.kind().as_bytes());
        out.extend_from_slice(b"\",\"run_id\":\"");
        out.extend_from_slice(run_id.as_bytes());
        out.push(b'"');
        if let Some(reply_to) = reply_to {
            out.extend_from_slice(b",\"reply_to\":");
            put_string(reply_to, out);
        }
        out.extend_from_slice(b",\"payload\":");
        body.write(out);
        out.extend_from_slice(b"}\n");
    }
}

/// Computes the calendar date only once per second, and nothing for frames of the same moment.
#[derive(Debug, Default)]
struct Clock {
    /// The time that `text` names.
    now: Option<SystemTime>,
    /// The second of that time, since 1970.
    second: Option<u64>,
    text: [u8; "1970-01-01T00:00:00.000Z".len()],
}

impl Clock {
    /// Writes the time in UTC with exactly three fraction digits. A time before 1970 or after 9999 is written as 1970.
    fn set(&mut self, now: SystemTime) {
        if self.now.replace(now) == Some(now) {
            return;
        }
        let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        if self.second.replace(since.as_secs()) != Some(since.as_secs()) {
            let text = timestamp(since.as_secs());
            self.text.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        }
        let digit = |number: u32| b'0' + (number % 10) as u8;
        let ms = since.subsec_millis();
        let [.., hundreds, tens, ones, _] = &mut self.text;
        (*hundreds, *tens, *ones) = (digit(ms / 100), digit(ms / 10), digit(ms));
    }
}

impl Body {
    /// The approximate size of the longest text in bytes, so that the line is allocated at once.
    fn text_bytes(&self) -> usize {
        match self {
            Body::Progress(progress) => progress.text.size(),
            Body::Terminal(end) => match &end.outcome {
                Outcome::Completed { text, .. } => text.size() + text.size() / 16,
                Outcome::Failed(_) | Outcome::Cancelled { .. } => 0,
            },
            Body::Started(_) | Body::Question(_) | Body::Artifact(_) => 0,
        }
    }
}

/// The line for stderr after a failed run in JSON mode.
pub fn stderr_line(body: &Redacted) -> Option<String> {
    let Body::Terminal(end) = &**body else { return None };
    let Outcome::Failed(failure) = &end.outcome else { return None };
    let line = format!("spektacular: {}: {}", failure.code.name(), failure.message.text().shown());
    // A folder's name may contain control characters. They are replaced, because removing them could join the parts of
    // a secret.
    let visible = |c: char| if c.is_control() || unsafe_on_a_line(c) { char::REPLACEMENT_CHARACTER } else { c };
    Some(line.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { visible(c) }).collect())
}

#[cfg(test)]
mod tests {
    use super::{Clock, Stamper};
    use crate::protocol::ids::RunId;
    use crate::protocol::outbound::{Body, PlanEntry, Progress, ProgressKind};
    use crate::protocol::parts::Rank;
    use crate::protocol::redacted::Redacted;
    use crate::protocol::words::PlanStatus;
    use crate::redact::Redactor;
    use std::time::{Duration, UNIX_EPOCH};

    fn plan(texts: impl Iterator<Item = String>) -> Redacted {
        let entries = texts.map(|text| PlanEntry { text: text.into(), status: PlanStatus::Pending }).collect();
        let about = ProgressKind::Plan(entries);
        let progress = Progress::new(about, "The plan");
        Redacted::new(Body::Progress(Box::new(progress)), &Redactor::new())
    }

    #[test]
    fn many_long_texts_are_cut_at_once() {
        let mut body = plan((0..900).map(|n| "\n".repeat(1000 + n)));
        let mut whole = Vec::new();
        body.write(&mut whole);
        assert!(body.shorten(Rank::List, whole.len() - 300_000));
        let mut cut = Vec::new();
        body.write(&mut cut);
        assert!((298_000..300_020).contains(&cut.len()), "{} of {}", cut.len(), whole.len());
    }

    #[test]
    fn a_frame_of_many_parts_fits_its_limit() {
        for (count, length) in [(1000, 10), (1000, 300), (300, 1000), (3, 100_000), (20_000, 1)] {
            let mut body = plan((0..count).map(|n| format!("{n}\u{1}").repeat(length)));
            let (mut stamper, mut line) = (Stamper::default(), Vec::new());
            assert!(stamper.stamp(UNIX_EPOCH, &body));
            stamper.write(&RunId::generated("r"), None, &mut body, 16 << 10, &mut line);
            assert!((8 << 10..=16 << 10).contains(&line.len()), "{} bytes of {count} of {length}", line.len());
            let frame: serde_json::Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(frame["payload"]["truncated"], true);
        }
    }

    #[test]
    fn timestamps_are_utc_with_milliseconds() {
        let mut clock = Clock::default();
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (951_782_400_999, "2000-02-29T00:00:00.999Z"),
            (253_402_300_799_120, "9999-12-31T23:59:59.120Z"),
            (253_402_300_800_000, "1970-01-01T00:00:00.000Z"),
        ] {
            clock.set(UNIX_EPOCH + Duration::from_millis(ms));
            assert_eq!(clock.text, text.as_bytes());
        }
        clock.set(UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(&clock.text, b"1970-01-01T00:00:00.000Z");
    }
}

//! Writes a redacted body as a frame: one line, with its id and time, within the frame limit.

use super::ids::RunId;
use super::limits;
use super::outbound::{Body, Outcome};
use super::parts::Rank;
use super::redacted::Redacted;
use crate::json::{put_number, put_string, unsafe_on_a_line};
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::macros::format_description;

#[derive(Debug)]
pub struct Frame<'a> {
    number: u64,
    timestamp: &'a Timestamp,
    run_id: &'a RunId,
    reply_to: Option<&'a str>,
    body: &'a mut Redacted,
}

/// Assigns ids and times to frames, and refuses frames after a terminal one.
#[derive(Debug, Default)]
pub struct Stamper {
    count: u64,
    ended: bool,
    clock: Clock,
}

impl Stamper {
    /// The first id is `msg_1`. `None`: a terminal frame was emitted, and nothing may follow it.
    pub fn stamp<'a>(
        &'a mut self,
        now: SystemTime,
        run_id: &'a RunId,
        reply_to: Option<&'a str>,
        body: &'a mut Redacted,
    ) -> Option<Frame<'a>> {
        if self.ended {
            debug_assert!(false, "a frame after the terminal frame");
            return None;
        }
        self.ended = body.is_terminal();
        self.count += 1;
        Some(Frame { number: self.count, timestamp: self.clock.timestamp(now), run_id, reply_to, body })
    }

    /// Reuses the ids of the last frames, which were dropped before anybody saw them.
    pub fn dropped(&mut self, frames: u64) {
        self.count -= frames;
    }
}

type Timestamp = [u8; "1970-01-01T00:00:00.000Z".len()];

/// Computes the calendar date only once per second, and nothing for frames of the same moment.
#[derive(Debug, Default)]
struct Clock {
    /// The time that `text` names.
    now: Option<SystemTime>,
    /// The second of that time, since 1970.
    second: Option<u64>,
    text: Timestamp,
}

impl Clock {
    /// The time in UTC with exactly three fraction digits. A time before 1970 or after 9999 is written as 1970.
    fn timestamp(&mut self, now: SystemTime) -> &Timestamp {
        if self.now.replace(now) == Some(now) {
            return &self.text;
        }
        let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        if self.second.replace(since.as_secs()) != Some(since.as_secs()) {
            let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].000Z");
            let at = time::UtcDateTime::from_unix_timestamp(since.as_secs().try_into().unwrap_or_default());
            let text = at.unwrap_or(time::UtcDateTime::UNIX_EPOCH).format(format).unwrap_or_default();
            self.text.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        }
        let digit = |number: u32| b'0' + (number % 10) as u8;
        let ms = since.subsec_millis();
        let [.., hundreds, tens, ones, _] = &mut self.text;
        (*hundreds, *tens, *ones) = (digit(ms / 100), digit(ms / 10), digit(ms));
        &self.text
    }
}

impl Frame<'_> {
    /// The line has its LF and is at most `max_bytes` long; a run.completed [`limits::COMPLETED_FACTOR`] times that.
    pub fn write(&mut self, max_bytes: usize, out: &mut Vec<u8>) {
        let completed = matches!(&**self.body, Body::Terminal(end) if matches!(end.outcome, Outcome::Completed { .. }));
        let limit = if completed { max_bytes.saturating_mul(limits::COMPLETED_FACTOR) } else { max_bytes };
        let begin = out.len();
        self.append(out);
        for rank in Rank::ALL {
            while out.len() - begin > limit && self.body.shorten(rank, out.len() - begin - limit) {
                out.truncate(begin);
                self.append(out);
            }
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        out.reserve(512 + self.body.text_bytes());
        out.extend_from_slice(b"{\"v\":\"1\",\"id\":\"msg_");
        put_number(self.number, out);
        out.extend_from_slice(b"\",\"ts\":\"");
        out.extend_from_slice(self.timestamp);
        out.extend_from_slice(b"\",\"type\":\"");
        out.extend_from_slice(self.body.kind().as_bytes());
        out.extend_from_slice(b"\",\"run_id\":\"");
        out.extend_from_slice(self.run_id.as_bytes());
        out.push(b'"');
        if let Some(reply_to) = self.reply_to {
            out.extend_from_slice(b",\"reply_to\":");
            put_string(reply_to, out);
        }
        out.extend_from_slice(b",\"payload\":");
        self.body.write(out);
        out.extend_from_slice(b"}\n");
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
    let mut line = String::new();
    write!(line, "spektacular: {}: {}", failure.code.name(), failure.message.text().shown()).ok()?;
    // A folder's name may contain control characters. They are replaced, because removing them could join the parts of
    // a secret.
    Some(line.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { visible(c) }).collect())
}

fn visible(c: char) -> char {
    if c.is_control() || unsafe_on_a_line(c) { char::REPLACEMENT_CHARACTER } else { c }
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
            let mut line = Vec::new();
            Stamper::default()
                .stamp(UNIX_EPOCH, &RunId::generated("r"), None, &mut body)
                .unwrap()
                .write(16 << 10, &mut line);
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
            assert_eq!(clock.timestamp(UNIX_EPOCH + Duration::from_millis(ms)), text.as_bytes());
        }
        assert_eq!(clock.timestamp(UNIX_EPOCH - Duration::from_secs(1)), b"1970-01-01T00:00:00.000Z");
    }
}

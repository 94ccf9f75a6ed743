//! A redacted body → one line: stamped, within the frame limit.

use super::json::encode;
use super::limits;
use super::outbound::{Body, Outcome};
use super::parts::Rank;
use super::redacted::Redacted;
use serde::Serialize;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::macros::format_description;

/// One outbound message.
#[derive(Debug, Serialize)]
pub struct Frame<'a> {
    v: &'static str,
    id: String,
    ts: String,
    #[serde(rename = "type")]
    kind: &'static str,
    run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<&'a str>,
    #[serde(rename = "payload")]
    body: &'a mut Redacted,
}

/// Gives frames their ids, and refuses everything after a terminal one.
#[derive(Debug, Default)]
pub struct Stamper {
    count: u64,
    ended: bool,
}

impl Stamper {
    /// The next frame, from `msg_1` on. `None`: a terminal frame is out, nothing may follow it.
    pub fn stamp<'a>(
        &mut self,
        now: SystemTime,
        run_id: &'a str,
        reply_to: Option<&'a str>,
        body: &'a mut Redacted,
    ) -> Option<Frame<'a>> {
        if self.ended {
            debug_assert!(false, "a frame after the terminal frame");
            return None;
        }
        self.ended = body.is_terminal();
        self.count += 1;
        let id = format!("msg_{}", self.count);
        Some(Frame { v: "1", id, ts: timestamp(now), kind: body.kind(), run_id, reply_to, body })
    }
}

/// UTC with exactly three fraction digits. A clock before 1970 or after 9999 counts as 1970.
pub fn timestamp(now: SystemTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let at = time::UtcDateTime::UNIX_EPOCH.checked_add(since.try_into().unwrap_or(time::Duration::ZERO));
    at.unwrap_or(time::UtcDateTime::UNIX_EPOCH).format(format).unwrap_or_default()
}

impl Frame<'_> {
    /// The frame as one line with its LF, at most `max_bytes` long (a run.completed
    /// [`limits::COMPLETED_FACTOR`] times that).
    pub fn to_line(&mut self, max_bytes: usize) -> Vec<u8> {
        let completed = matches!(&**self.body, Body::Terminal(end) if matches!(end.outcome, Outcome::Completed { .. }));
        let limit = if completed { max_bytes.saturating_mul(limits::COMPLETED_FACTOR) } else { max_bytes };
        let mut line = self.line();
        for rank in Rank::ALL {
            // Each round cuts the longest part of this rank; a rank is done when nothing of it is left to cut.
            while line.len() > limit && self.body.cut_longest(rank, line.len() - limit) {
                // The old line goes first, so that only one is there at a time.
                drop(std::mem::take(&mut line));
                line = self.line();
            }
        }
        line
    }

    fn line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(512 + self.body.text_bytes());
        encode(self, &mut line);
        line.push(b'\n');
        line
    }
}

impl Body {
    /// About how many bytes the longest text takes, so that a line is made in one piece.
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

/// The one line that stderr has after a failed run in JSON mode.
pub fn stderr_line(body: &Redacted) -> Option<String> {
    let Body::Terminal(end) = &**body else { return None };
    let Outcome::Failed(failure) = &end.outcome else { return None };
    let mut line = String::new();
    write!(line, "spektacular: {}: {}", failure.code.name(), failure.message).ok()?;
    Some(line.replace(['\n', '\r'], " "))
}

//! A body whose texts are redacted. Only such a body can be shown or written.

use super::outbound::{Body, Outcome, ProgressKind, Text};
use super::parts::{BodyPart, IsRedacted, Parts, Rank, Role, redact};
use crate::json::{encoded_bytes, fitting};
use crate::redact::Redactor;
use std::ops::Deref;

/// The size, in bytes, to which texts are cut before elements of lists are dropped.
const SHORT: usize = 256;

#[derive(Clone, Debug)]
pub struct Redacted {
    body: Body,
    proof: IsRedacted,
}

impl Redacted {
    pub fn new(mut body: Body, redactor: &Redactor) -> Redacted {
        let proof = redact(&mut body, redactor);
        Redacted { body, proof }
    }

    /// Redacts the agent's session id too, as on every line for a person. Frames need it whole, to resume the session.
    pub fn redact_session(&mut self, redactor: &Redactor) {
        let id = match &mut self.body {
            Body::Progress(progress) => {
                let ProgressKind::Session { session_id, .. } = &mut progress.about else { return };
                session_id
            }
            Body::Terminal(end) => &mut end.session_id,
            Body::Started(_) | Body::Question(_) | Body::Artifact(_) => return,
        };
        if let Some(id) = id {
            id.redact(redactor);
        }
    }

    /// The body, for its memory.
    pub fn into_body(self) -> Body {
        self.body
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.body.put(out, self.proof);
    }

    /// Shortens the parts of a rank, so that the body's JSON loses about `excess` bytes. Cuts all texts at once, the
    /// longest most, so that a few rounds suffice however many parts there are. Returns whether anything could be cut.
    pub(super) fn shorten(&mut self, rank: Rank, excess: usize) -> bool {
        let (mut texts, mut whole, mut elements) = (Vec::new(), 0, 0);
        self.body.visit(Role::Cut(Rank::Text), &mut |r, part| match part {
            _ if r != rank => {}
            BodyPart::Text(text) => texts.push(encoded_bytes(text.shown())),
            BodyPart::Own(text) => texts.push(encoded_bytes(text)),
            BodyPart::Whole(text) => whole = whole.max(text.as_ref().map_or(0, Text::size)),
            BodyPart::Json(json) => whole = whole.max(json.as_ref().map_or(0, super::text::Json::size)),
            BodyPart::List(list) => elements = elements.max(list.count()),
            BodyPart::Answer(_) | BodyPart::Action(_) => {}
        });
        texts.sort_unstable();
        let longest = texts.last().copied().unwrap_or_default();
        let (mut level, mut drop_whole, mut drop_elements) = (usize::MAX, false, false);
        if whole > 0 && (whole >= longest || longest <= SHORT) {
            drop_whole = true;
        } else if longest > SHORT {
            level = common_level(&texts, excess).max(SHORT);
        } else if elements > 0 {
            drop_elements = true;
        } else if longest > 0 {
            level = common_level(&texts, excess);
        } else {
            return false;
        }
        self.body.visit(Role::Cut(Rank::Text), &mut |r, part| match part {
            _ if r != rank => {}
            BodyPart::Text(text) => text.truncate(fitting(text.shown(), level)),
            BodyPart::Own(text) => text.truncate(fitting(text, level)),
            BodyPart::Whole(text) if drop_whole && text.as_ref().is_some_and(|text| text.size() == whole) => {
                *text = None
            }
            BodyPart::Json(json) if drop_whole && json.as_ref().is_some_and(|json| json.size() == whole) => {
                *json = None
            }
            // Drops some elements at a time, because their sizes are unknown.
            BodyPart::List(list) if drop_elements && list.count() == elements => {
                list.cut(elements - elements.div_ceil(8))
            }
            BodyPart::Whole(_) | BodyPart::Json(_) | BodyPart::List(_) | BodyPart::Answer(_) | BodyPart::Action(_) => {}
        });
        self.mark_truncated(rank);
        true
    }

    fn mark_truncated(&mut self, rank: Rank) {
        match &mut self.body {
            Body::Started(body) => body.truncated = true,
            Body::Progress(body) => {
                body.truncated = true;
                if let (ProgressKind::Turn(turn), Rank::Text) = (&mut body.about, rank)
                    && let Outcome::Completed { text_cut, .. } = &mut turn.outcome
                {
                    *text_cut = true;
                }
            }
            Body::Question(body) => body.truncated = true,
            Body::Artifact(body) => body.truncated = true,
            Body::Terminal(body) => {
                body.truncated = true;
                if let (Outcome::Completed { text_cut, .. }, Rank::Text) = (&mut body.outcome, rank) {
                    *text_cut = true;
                }
            }
        }
    }
}

impl Deref for Redacted {
    type Target = Body;

    fn deref(&self) -> &Body {
        &self.body
    }
}

/// The length to which the longest texts must be cut, so that together they lose `excess` bytes. `sizes` ascend.
fn common_level(sizes: &[usize], excess: usize) -> usize {
    let mut sum = 0;
    for (count, (at, size)) in (1..).zip(sizes.iter().enumerate().rev()) {
        sum += size;
        let next = if at > 0 { sizes[at - 1] } else { 0 };
        if sum - count * next >= excess {
            return sum.saturating_sub(excess) / count;
        }
    }
    0
}

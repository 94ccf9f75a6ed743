//! A body whose texts are redacted. Only such a body can be shown or written.

use super::outbound::{ArtifactRef, Body, Outcome, Usage};
use super::parts::{Part, Rank, each};
use crate::redact::Redactor;
use std::borrow::Cow;
use std::ops::Deref;

/// A body that went through a redactor.
#[derive(Clone, Debug)]
pub struct Redacted(Body);

impl Redacted {
    /// Takes every secret that the redactor knows out of a body's texts.
    pub fn new(mut body: Body, redactor: &Redactor) -> Redacted {
        let clean = |text: &mut String| {
            if let Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
            }
        };
        each(&mut body, &mut |_, part| match part {
            Part::Text(text) | Part::Answer(text) => clean(text),
            Part::Whole(text) => text.iter_mut().for_each(clean),
            Part::Json(Some(json)) => json.map(&mut |text| redactor.redact(text).into_owned()),
            Part::Json(None) | Part::List(_) => {}
        });
        Redacted(body)
    }

    /// Makes a terminal body that of several runs: the usage of `earlier` runs is added to its own, and their artifacts
    /// stand before its own, each once.
    pub fn join(&mut self, earlier: &[Redacted]) {
        let Body::Terminal(end) = &mut self.0 else { return };
        let mut artifacts: Vec<ArtifactRef> = Vec::new();
        for before in earlier {
            if let Body::Terminal(before) = &before.0 {
                end.usage = sum(&before.usage, &end.usage);
                artifacts.extend_from_slice(&before.artifacts);
            }
        }
        artifacts.append(&mut end.artifacts);
        let mut seen = std::collections::HashSet::new();
        artifacts.retain(|artifact| seen.insert((artifact.path.clone(), artifact.action)));
        end.artifacts = artifacts;
    }

    /// Cuts about `excess` bytes off the longest part of a rank. `false`: there is nothing left to cut.
    pub(super) fn cut_longest(&mut self, rank: Rank, excess: usize) -> bool {
        let size = |part: &Part<'_>| match part {
            Part::Text(text) => text.len(),
            Part::Whole(text) => text.as_ref().map_or(0, String::len),
            Part::Answer(_) => 0,
            // An element is guessed at 64 bytes: its texts are parts of their own.
            Part::List(list) => list.count() * 64,
            Part::Json(json) => json.as_ref().map_or(0, super::text::Json::size),
        };
        let mut longest = 0;
        each(&mut self.0, &mut |r, part| {
            if r == rank {
                longest = longest.max(size(&part))
            }
        });
        if longest == 0 {
            return false;
        }
        let mut done = false;
        each(&mut self.0, &mut |r, mut part| {
            if done || r != rank || size(&part) != longest {
                return;
            }
            done = true;
            match &mut part {
                // Escapes may make a text up to six times longer on the line: cut in steps, at least a sixteenth.
                Part::Text(text) => {
                    let cut = (excess / 6).max(excess.min(text.len() / 16)).max(1);
                    let keep = text.floor_char_boundary(text.len().saturating_sub(cut));
                    text.truncate(keep);
                }
                Part::List(list) => list.cut(list.count() - (list.count() / 8).max(1)),
                Part::Json(json) => **json = None,
                Part::Whole(text) => **text = None,
                Part::Answer(_) => {}
            }
        });
        self.mark_truncated(rank);
        true
    }

    fn mark_truncated(&mut self, rank: Rank) {
        match &mut self.0 {
            Body::Started(body) => body.truncated = true,
            Body::Progress(body) => body.truncated = true,
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
        &self.0
    }
}

/// The usage of two runs. What is unknown of one of them counts as nothing.
fn sum(a: &Usage, b: &Usage) -> Usage {
    fn add<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (one, other) => one.or(other),
        }
    }
    Usage {
        input_tokens: add(a.input_tokens, b.input_tokens),
        output_tokens: add(a.output_tokens, b.output_tokens),
        cached_input_tokens: add(a.cached_input_tokens, b.cached_input_tokens),
        cost_usd: add(a.cost_usd, b.cost_usd),
    }
}

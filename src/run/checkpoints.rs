//! The checkpoints of a conversation: one before each prompt, and the way back to one. The host takes them.

use super::active_run::ActiveRun;
use super::turns::RUN_IS_ENDING;
use super::{CheckpointOrder, CheckpointReport, Effect};
use crate::protocol::ids::{CheckpointId, InboundId};
use crate::protocol::outbound::{ArtifactRef, ProgressKind};
use crate::protocol::terms::sentence;
use crate::protocol::words::{Action, CheckpointState, Warning};
use std::path::PathBuf;

/// The number of files that a refusal names.
const NAMED: usize = 5;
/// The number of files in the frame about a rewind.
const LISTED: usize = 1_000;

impl ActiveRun {
    pub(super) fn checkpoint(&mut self, order: CheckpointOrder) {
        if self.checkpoints.on == Some(true) {
            self.effects.push(Effect::Checkpoint(order));
        }
    }

    /// `to`: `None` stands for a value that is not an id.
    pub(super) fn rewind(&mut self, reply_to: Option<InboundId>, to: Option<CheckpointId>) {
        if self.checkpoints.on != Some(true) {
            let text = sentence!(
                "No file was put back: the run takes no checkpoints, which need {checkpoints}, a conversation and a git work \
                 tree",
                checkpoints
            );
            return self.effects.warn(Warning::RewindRefused, text, reply_to);
        }
        let is_ending = self.ladder.is_decided() || self.turns.closing;
        let why = match to {
            None => "`rewind` must be the id of a checkpoint, such as \"p_1\"",
            Some(_) if is_ending => RUN_IS_ENDING,
            Some(_) if self.checkpoints.running.is_some() => "another rewind is running",
            Some(_) if !self.turns.is_idle() => "a turn is running, or a prompt waits: cancel the turn first",
            Some(to) => {
                self.checkpoints.rewinds += 1;
                self.checkpoints.running = Some(reply_to);
                let undo = CheckpointId::Rewind(self.checkpoints.rewinds);
                return self.checkpoint(CheckpointOrder::Rewind { to, undo });
            }
        };
        self.effects.warn(Warning::RewindRefused, format!("No file was put back: {why}"), reply_to);
    }

    pub(super) fn take_checkpoint_report(&mut self, report: CheckpointReport) {
        let told = |id, state, text: &str| (id, state, None, Vec::new(), format!("Checkpoint {id} is {text}"));
        let (checkpoint_id, state, undo, files, text) = match report {
            CheckpointReport::Nothing => return,
            CheckpointReport::Missing { why, lasting } => {
                let turn_off = lasting.then_some(false);
                self.checkpoints.on = turn_off.or(self.checkpoints.on);
                let more = if lasting { ", and none will be" } else { "" };
                let text = format!("No checkpoint was taken{more}: {why}");
                return self.effects.warn(Warning::CheckpointMissing, text, None);
            }
            CheckpointReport::Taken(id) => told(id, CheckpointState::Taken, "taken"),
            CheckpointReport::Complete(id) => told(id, CheckpointState::Complete, "complete"),
            CheckpointReport::Rewound { to, undo, files } => {
                let count = files.len();
                let relative =
                    |(path, action): (PathBuf, Action)| ArtifactRef { path: self.texts.relative(&path), action };
                let files = files.into_iter().take(LISTED).map(relative).collect();
                let noun = if count == 1 { "file was" } else { "files were" };
                let text = format!("{count} {noun} restored to {to}; {undo} undoes this");
                (to, CheckpointState::Restored, Some(undo), files, text)
            }
            CheckpointReport::Refused { why, files } => {
                let mut text = format!("No file was put back: {why}");
                for (at, file) in files.iter().take(NAMED).enumerate() {
                    text.push_str(if at == 0 { ": " } else { ", " });
                    text.push_str(&self.texts.relative(file).redacted(&self.texts.redactor));
                }
                if files.len() > NAMED {
                    text.push_str(&format!(", and {} more", files.len() - NAMED));
                }
                let reply_to = self.checkpoints.running.take().flatten();
                self.effects.warn(Warning::RewindRefused, text, reply_to);
                return self.after_rewind();
            }
        };
        let is_rewind = state == CheckpointState::Restored;
        let reply_to = if is_rewind { self.checkpoints.running.take().flatten() } else { None };
        self.effects.tell(ProgressKind::Checkpoint { checkpoint_id, state, undo, files }, text, reply_to);
        if is_rewind {
            self.after_rewind();
        }
    }

    fn after_rewind(&mut self) {
        if self.turns.closing {
            self.close_conversation();
        }
    }
}

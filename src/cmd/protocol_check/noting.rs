//! The peer of a played run: an orchestrator whose messages and frames go to the log, and who gets what the dialogue adds.

use super::Assigned;
use super::dialogues::{Ending, Quirk};
use super::log::{By, Fact, Log};
use crate::engine::{Outbox, Outgoing, Peer, ScreenPeer};
use crate::json_lines::JsonLines;
use crate::protocol::failure::Code;
use crate::protocol::ids::MessageId;
use crate::protocol::inbound::Message;
use crate::protocol::outbound::{Body, Outcome, Progress, ProgressKind, Started};
use crate::protocol::question::{AnswerInput, Given};
use crate::protocol::redacted::Redacted;
use crate::protocol::unknown::UnknownNames;
use crate::protocol::words::{Resolution, Warning};
use crate::redact::Redactor;
use serde_json::value::to_raw_value;

/// The number and the length of the frames while a question is open. Together, they exceed what a pipe holds.
const FLOOD: (usize, usize) = (160, 4 << 10);
/// The room in a frame beside its text, in bytes.
const ENVELOPE_BYTES: usize = 1 << 10;
/// The number of the first message that the dialogue adds. The agent never says as many.
const ADDED: u64 = 1_000_000;

pub(super) struct NotingPeer {
    peer: JsonLines,
    assigned: Assigned,
    log: Log,
    began: bool,
    /// Whether an answer was replaced by one that does not fit.
    spoilt: bool,
}

impl NotingPeer {
    pub(super) fn new(assigned: Assigned, log: Log) -> NotingPeer {
        NotingPeer { peer: JsonLines::default(), assigned, log, began: false, spoilt: false }
    }

    fn answered(&mut self, input: &mut AnswerInput) {
        self.unknown(&input.unknown, " of run.input");
        if let (Some(id), Some(given)) = (&input.question_id, &mut input.given) {
            self.log.note(Fact::Answered(id.to_string()));
            let again = self.assigned.dialogue.quirk == Quirk::Again && !self.spoilt;
            if again && !matches!(given, Given::Declined) {
                self.spoilt = true;
                *given = to_raw_value(&()).map_or(Given::Declined, Given::Value);
            }
        }
    }

    fn wrong(&mut self, clause: &str) {
        self.log.note(Fact::WrongMessage(clause.to_owned()));
    }

    fn unknown(&mut self, names: &UnknownNames, of: &str) {
        let text = names.warning("field", of, &Redactor::new());
        text.into_iter().for_each(|text| self.log.note(Fact::UnknownField(text)));
    }

    fn started(&mut self, started: &Started) {
        self.began = true;
        self.log.note(Fact::Began);
        let settings = &started.config.settings;
        let dialogue = self.assigned.dialogue;
        let skipped = if dialogue.ending == Ending::Conversation && !settings.conversation {
            "run.start has no `conversation: true`"
        } else if dialogue.asks() && !settings.interactive {
            "the run is headless, so that it asks no questions"
        } else {
            return;
        };
        self.log.note(Fact::Skipped(skipped.into()));
    }

    fn progress(&mut self, progress: &Progress) {
        if let ProgressKind::Resolved { question_id, resolution, .. } = &progress.about {
            if *resolution == Resolution::InputClosed {
                self.log.note(Fact::InputMissed);
            }
            let by = match resolution {
                Resolution::Answered | Resolution::Declined => By::Answer,
                Resolution::Timeout => By::Timeout,
                Resolution::InputClosed | Resolution::Headless | Resolution::Policy | Resolution::Withdrawn => By::End,
            };
            self.log.note(Fact::Resolved(question_id.to_string(), by));
        }
        let wrong = [Warning::InvalidAnswer, Warning::PromptRefused, Warning::DuplicateStart, Warning::UnknownRun];
        if let ProgressKind::Warning { code, .. } = &progress.about
            && wrong.contains(code)
        {
            // The warning says first that the message was ignored.
            let text = progress.text.shown();
            let clause = text.split_once(": ").map_or(text, |(_, why)| why).to_owned();
            self.wrong(&clause);
        }
    }

    /// A message that is wrong as a whole is noted already.
    fn refused(&mut self, outcome: &Outcome) {
        let Outcome::Failed(failure) = outcome else { return };
        if failure.code == Code::NoStart {
            self.log.note(Fact::NoStart);
        } else if ![Code::InvalidMessage, Code::UnsupportedVersion].contains(&failure.code) {
            self.log.note(Fact::WrongStart(failure.message.text().shown().to_owned()));
        }
    }
}

impl Peer for NotingPeer {
    fn heard(&mut self, message: &mut Message) {
        match message {
            Message::Malformed(flaw) => self.wrong(&flaw.clause()),
            Message::Unsupported => self.wrong("its `v` must be \"1\""),
            Message::UnknownType(_) => self.wrong("its `type` must be run.start, run.input or run.cancel"),
            Message::Start(payload) => {
                self.unknown(&payload.unknown, " of run.start");
                self.assigned.fit(&mut payload.options);
            }
            Message::Answer(input) => self.answered(input),
            Message::Prompt(_) | Message::Cancel { .. } => {}
        }
    }

    fn input_cut(&mut self) {
        self.wrong("the last line has no line feed, so that it does not count");
    }

    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let Outgoing { body, reply_to, run_id, max_bytes, at, in_advance } = outgoing;
        let added = match &**body {
            Body::Started(started) => {
                self.started(started);
                (self.assigned.dialogue.quirk == Quirk::Huge).then(|| (1, max_bytes - ENVELOPE_BYTES))
            }
            Body::Question(question) => {
                let id = question.question_id.to_string();
                self.log.note(if question.attempt > 1 { Fact::Repeated(id) } else { Fact::Asked(id) });
                (self.assigned.dialogue.quirk == Quirk::Flood).then_some(FLOOD)
            }
            Body::Progress(progress) => {
                self.progress(progress);
                None
            }
            Body::Terminal(end) if !self.began => {
                self.refused(&end.outcome);
                None
            }
            Body::Terminal(_) | Body::Artifact(_) => None,
        };
        self.peer.show(Outgoing { body, reply_to, run_id, max_bytes, at, in_advance }, out);
        let (count, bytes) = added.unwrap_or_default();
        for number in (ADDED..).take(count) {
            let message_id = MessageId::Said(number);
            let about = ProgressKind::Text { message_id, done: true, withdrawn: false };
            let body = Body::Progress(Box::new(Progress::new(about, "x".repeat(bytes))));
            let body = &mut Redacted::new(body, &Redactor::new());
            self.peer.show(Outgoing { body, reply_to: None, run_id, max_bytes, at, in_advance: None }, out);
        }
    }

    fn dropped(&mut self, frames: u64) {
        self.peer.dropped(frames);
    }

    fn screen(&mut self) -> Option<&mut dyn ScreenPeer> {
        None
    }
}

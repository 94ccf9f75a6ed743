//! The player of the run's side: it reads messages, notes what is wrong with them, and writes frames.

use super::log::{Fact, RunEnd};
use super::pipes::{Closed, Heard, Pipes};
use crate::json::Fields;
use crate::protocol::fields::Settings;
use crate::protocol::ids::{InboundId, QuestionId};
use crate::protocol::inbound::{Addressee, CancelScope, ENVELOPE_IN, Flaw, Inbound, MESSAGES, Message, parse};
use crate::protocol::outbound::{Body, MessageId, Progress, ProgressKind, PromptId, Text};
use crate::protocol::prompt::PromptInput;
use crate::protocol::question::Given;
use crate::protocol::sentence::Sentence;
use crate::protocol::words::{PromptState, Status, Warning};
use crate::redact::Redactor;
use crate::suggest::{nearest, shown};
use std::time::Instant;

/// The reason why a dialogue stops before its end.
pub(super) enum EarlyEnd {
    /// The client cancelled the run.
    Cancelled(Option<Text>),
    Closed,
}

impl From<Closed> for EarlyEnd {
    fn from(_: Closed) -> EarlyEnd {
        EarlyEnd::Closed
    }
}

pub(super) type Playing<T> = Result<T, EarlyEnd>;

/// Something that the client sent, or its silence.
pub(super) enum Received {
    Answer {
        question: QuestionId,
        given: Given,
        id: Option<InboundId>,
    },
    /// A message that changes nothing here, or that is handled already.
    Nothing,
    /// The client cancelled the running turn.
    TurnCancelled,
    Silence,
}

pub(super) struct RunPlayer {
    pub(super) pipes: Pipes,
    pub(super) settings: Settings,
    /// Whether the end of stdin cancels the run.
    pub(super) eof_cancels: bool,
    /// The numbers of messages, of prompts, and of questions and their groups.
    pub(super) messages: u64,
    pub(super) prompts: u64,
    pub(super) questions: u64,
    /// The prompts that wait for their turns.
    pub(super) waiting: u64,
    /// The number of turns that began.
    pub(super) turns: u64,
    /// Whether no further prompt comes.
    pub(super) no_more: bool,
}

impl RunPlayer {
    pub(super) fn emit(&mut self, reply_to: Option<&str>, body: Body) -> Playing<()> {
        let bytes = self.pipes.frame(reply_to, body);
        Ok(self.pipes.write(&bytes)?)
    }

    pub(super) fn progress(&mut self, about: ProgressKind, text: impl Into<Text>) -> Playing<()> {
        self.emit(None, Body::Progress(Box::new(Progress::new(about, text))))
    }

    pub(super) fn status(&mut self, status: Status) -> Playing<()> {
        self.progress(ProgressKind::Status(status), status.word())
    }

    /// The frame of a whole message.
    pub(super) fn message(&mut self, text: impl Into<Text>) -> Vec<u8> {
        self.messages += 1;
        let about = ProgressKind::Text { message_id: MessageId::Said(self.messages), done: true, withdrawn: false };
        self.pipes.frame(None, Body::Progress(Box::new(Progress::new(about, text))))
    }

    pub(super) fn say(&mut self, text: impl Into<Text>) -> Playing<()> {
        let bytes = self.message(text);
        Ok(self.pipes.write(&bytes)?)
    }

    pub(super) fn warn(&mut self, code: Warning, text: impl Into<Sentence>, id: Option<&InboundId>) -> Playing<()> {
        let warning = Progress::warning(code, text);
        self.emit(id.map(|id| &**id), Body::Progress(Box::new(warning)))
    }

    /// Waits for a message, without a limit if there is no `until`.
    pub(super) fn listen(&mut self, until: Option<Instant>) -> Playing<Received> {
        let heard = self.pipes.hear(until);
        if matches!(heard, Heard::Ended { .. }) && self.eof_cancels {
            self.pipes.note(Fact::InputEnded);
            return Err(EarlyEnd::Cancelled(None));
        }
        let silent = matches!(heard, Heard::Silence);
        let Some(Inbound { id, run, message }) = read(&mut self.pipes, heard) else {
            return Ok(if silent { Received::Silence } else { Received::Nothing });
        };
        let is_ours = match run {
            Addressee::Unnamed => true,
            Addressee::Run(run) => run == *self.pipes.run(),
            Addressee::Invalid => false,
        };
        if !is_ours {
            self.wrong("its `run_id` names another run");
            self.warn(Warning::UnknownRun, "A message was ignored: it names another run", id.as_ref())?;
            return Ok(Received::Nothing);
        }
        self.told(id, message)
    }

    fn told(&mut self, id: Option<InboundId>, message: Message) -> Playing<Received> {
        match message {
            Message::Malformed(flaw) => {
                let text = format!("Ignored a malformed line: {}", flaw.clause());
                self.warn(Warning::MalformedMessage, text, id.as_ref())?;
            }
            Message::Unsupported => return Err(EarlyEnd::Cancelled(None)),
            Message::UnknownType(_) => {
                self.warn(Warning::UnknownType, "Ignored a message of an unknown type", id.as_ref())?
            }
            Message::Start(_) => {
                self.wrong("it is a second run.start, and one process is one run");
                self.warn(Warning::DuplicateStart, "Ignored a second run.start", id.as_ref())?;
            }
            Message::Answer(input) => match (input.question_id, input.given) {
                (Some(question), Some(given)) => {
                    self.pipes.note(Fact::Answered(question.to_string()));
                    return Ok(Received::Answer { question, given, id });
                }
                (None, _) => self.invalid("its `question_id` must be a string", id.as_ref())?,
                (Some(_), None) => {
                    self.invalid(
                        "it must have exactly one of `value`, `value_from` and `declined: true`",
                        id.as_ref(),
                    )?;
                }
            },
            Message::Prompt(PromptInput::Prompt(_)) => {
                self.prompts += 1;
                self.waiting += 1;
                let about = ProgressKind::Prompt { prompt_id: PromptId(self.prompts), state: PromptState::Queued };
                let queued = Progress::new(about, "A prompt waits for its turn");
                self.emit(id.as_deref(), Body::Progress(Box::new(queued)))?;
            }
            Message::Prompt(PromptInput::End) => self.no_more = true,
            Message::Prompt(PromptInput::Mixed) => {
                self.invalid("it has a prompt or an end, and an answer", id.as_ref())?
            }
            Message::Prompt(PromptInput::Wrong(why)) => self.invalid(&why, id.as_ref())?,
            Message::Cancel { scope: CancelScope::Turn, .. } if self.settings.conversation => {
                return Ok(Received::TurnCancelled);
            }
            Message::Cancel { reason, .. } => return Err(EarlyEnd::Cancelled(reason)),
        }
        Ok(Received::Nothing)
    }

    fn wrong(&mut self, clause: &str) {
        self.pipes.note(Fact::WrongMessage(clause.to_owned()));
    }

    /// Ignores a wrong run.input.
    fn invalid(&mut self, clause: &str, id: Option<&InboundId>) -> Playing<()> {
        self.wrong(&format!("run.input: {clause}"));
        self.warn(Warning::InvalidAnswer, format!("An answer was ignored: {clause}"), id)
    }

    /// Notes the end of the run, before the client can see it.
    pub(super) fn over(&mut self, over: RunEnd) {
        self.pipes.note(Fact::RunEnd(over));
    }
}

/// Parses a line of the client, and notes its mistakes. `None`: the line is not a message.
pub(super) fn read(pipes: &mut Pipes, heard: Heard) -> Option<Inbound> {
    let line = match heard {
        Heard::Line(line) => line,
        Heard::TooLong => {
            pipes.note(Fact::WrongMessage(Flaw::Length.clause()));
            return Some(Inbound::bare(Message::Malformed(Flaw::Length)));
        }
        Heard::Ended { cut } => {
            if cut {
                pipes.note(Fact::WrongMessage("the last line has no line feed, so that it does not count".into()));
            }
            pipes.note(Fact::InputEnded);
            return None;
        }
        Heard::Silence => return None,
    };
    let inbound = parse(&line)?;
    match &inbound.message {
        Message::Malformed(flaw) => pipes.note(Fact::WrongMessage(flaw.clause())),
        Message::Unsupported => pipes.note(Fact::WrongMessage("its `v` must be \"1\"".into())),
        Message::UnknownType(_) => {
            pipes.note(Fact::WrongMessage("its `type` must be run.start, run.input or run.cancel".into()));
        }
        Message::Start(_) | Message::Answer(_) | Message::Prompt(_) | Message::Cancel { .. } => {
            unknown_fields(&line).into_iter().for_each(|name| pipes.note(Fact::UnknownField(name)));
        }
    }
    Some(inbound)
}

/// The fields of a message that the protocol does not have, each perhaps with the one that was meant.
fn unknown_fields(line: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let Some(envelope) = Fields::parse(text) else { return Vec::new() };
    let kind = envelope.get("type").and_then(crate::json::string).unwrap_or_default();
    let mut known: Vec<&str> = ENVELOPE_IN.keys().collect();
    let mut unknown = named_unknown(&envelope, &known, "");
    let payload = envelope.get("payload").and_then(|raw| Fields::parse(raw.get()));
    let message = MESSAGES.iter().find(|message| message.name == kind);
    if let (Some(payload), Some(message)) = (payload, message) {
        known = message.payloads.iter().flat_map(|form| form.fields()).map(|field| field.name).collect();
        unknown.extend(named_unknown(&payload, &known, &format!("{kind}.")));
    }
    unknown
}

fn named_unknown(fields: &Fields<'_>, known: &[&str], before: &str) -> Vec<String> {
    let redactor = Redactor::new();
    let unknown = fields.iter().map(|(name, _)| name).filter(|name| !known.contains(name));
    let one = |name: &str| {
        let meant = nearest(name, known.iter().copied()).map(|meant| format!(" (did you mean {meant}?)"));
        format!("{before}{}{}", shown(name, &redactor), meant.unwrap_or_default())
    };
    unknown.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::unknown_fields;

    #[test]
    fn a_misspelt_field_is_named_with_the_one_that_was_meant() {
        for (line, wanted) in [
            (r#"{"v":"1","type":"run.start","payload":{"prompt":"a","metadata":{"x":1}}}"#, &[][..]),
            (r#"{"v":"1","type":"run.start","payload":{"promt":"a"}}"#, &["run.start.promt (did you mean prompt?)"]),
            (r#"{"v":"1","type":"run.input","runid":"a"}"#, &["runid (did you mean run_id?)"]),
            (r#"{"type":"run.input","payload":{"question_id":"q","answer":1}}"#, &["run.input.answer"]),
            (r#"{"type":"run.cancel","payload":{"reason":"a","scope":"run"}}"#, &[]),
        ] {
            assert_eq!(unknown_fields(line.as_bytes()), wanted, "{line}");
        }
    }
}

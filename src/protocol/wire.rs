//! Writes the bodies of frames as JSON.

use super::declare::views;
use super::failure::{Code, Failure, PhaseFailure};
use super::form::{
    Form, HasForm, Member, MessageForm, ObjectForm, TextRule, VERSION, WordSet, described, object_forms,
};
use super::frame_value::{FrameObject, Known, ObjectWriter, put_object, put_word, values};
use super::ids::{MessageId, PromptId, QuestionId, RunId};
use super::outbound::{
    Artifact, Body, FileEdit, Metadata, Outcome, Progress, ProgressKind, Question, Started, Terminal, ToolExit,
    TurnReport, UnansweredItems, Usage,
};
use super::parts::IsRedacted;
use super::permissions::Permissions;
use super::question::{Answer, Choice, Kind, Subject, Validation};
use super::read::Seconds;
use super::schema::{Mismatch, Mismatches};
use super::text::{Json, Text};
use super::utc::UtcTime;
use super::words::{LimitField, Purpose, QuestionKind, RefusalReason, Source, StopReason, TurnOrigin, TurnOutcome};
use crate::json::encode;

described! {
    Metadata => Form::AnyObject;
    Code => Form::Word(&WordSet { name: "FailureCode", words: Code::NAMES, grows: true });
    Seconds => Form::Number;
    UtcTime => Form::Text;
    ToolExit => Form::Nullable(&Form::Integer);
    Answer => Form::Nullable(&Form::Either(&[Form::Bool, Form::Text, Form::List(&Form::Text)]));
    Mismatches => Form::List(&Mismatch::FORM);
    Versions => Form::List(&Form::Text);
    FileEdit => FileEditView::FORM;
    Detail<'_> => Form::Nullable(&FailureDetailView::FORM);
}

values! {
    Code, it, out => put_word(it.name(), out);
    Seconds, it, out => encode(it, out);
    UtcTime, it, out => encode(&it.text(), out);
    Permissions, it, out => encode(it, out);
    Versions, _it, out => out.extend_from_slice(b"[\"1\"]");
    Mismatches, it, out, proof => it.0.put(out, proof);
    ToolExit, it, out, proof => it.code.put(out, proof);
    Answer, it, out, proof => match it {
        Answer::Bool(answer) => answer.put(out, proof),
        Answer::Decision(decision) => decision.word().put(out, proof),
        Answer::One(text) | Answer::Text(text) => text.put(out, proof),
        Answer::Many(texts) => texts.put(out, proof),
        Answer::Null => out.extend_from_slice(b"null"),
    };
    Metadata, it, out, proof => match &it.0 {
        Some(metadata) => metadata.put(out, proof),
        None => out.extend_from_slice(b"{}"),
    };
    FileEdit, it, out, proof => {
        // One side: the lines with its sign, and those around them.
        let side = |sign: char| {
            let lines = it.lines.shown().split_inclusive('\n');
            lines.filter_map(|line| line.strip_prefix(sign).or_else(|| line.strip_prefix(' '))).collect()
        };
        FileEditView { path: &it.path, old: side('-'), new: side('+') }.put(out, proof);
    };
    Detail<'_>, it, out, proof => {
        let at = out.len();
        it.0.put(out, proof);
        if out.ends_with(b"{}") && out.len() == at + 2 {
            out.truncate(at);
            out.extend_from_slice(b"null");
        }
    };
}

impl Known for ToolExit {
    const FORM: Form = <ToolExit as HasForm>::FORM;

    fn is_known(&self) -> bool {
        self.in_frame
    }
}

struct Versions;

views! {
    struct FileEditView<'a> {
        /// The path, relative to the working directory if it is inside, otherwise absolute.
        path: &'a Text,
        /// The old lines, and those around them.
        old: String,
        /// The new lines, and those around them.
        new: String,
    }

    struct QuestionView<'a> {
        /// The question's id.
        question_id: &'a QuestionId,
        /// The id of the group of questions that the agent asked together.
        group_id: &'a String,
        /// The number of questions in the group.
        group_size: usize,
        /// The purpose of the question.
        purpose: Purpose,
        /// The kind of the answer.
        kind: QuestionKind,
        /// A short title.
        header: &'a Text,
        /// The question.
        text: &'a Text,
        options: Option<SelectView<'a>> as flat,
        /// The answer that is used if nobody answers.
        default: Option<&'a Answer> as known,
        /// The conditions for an answer.
        validation: &'a Validation,
        /// Whether an answer is required.
        required: bool,
        /// The time left to answer, in seconds.
        timeout_s: Seconds,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The mistake in the last answer.
        error: Option<&'a Text> as known,
        /// For a permission: the requested action.
        subject: Option<&'a Subject> as known,
        /// Whether something was cut.
        truncated: bool as known,
    }

    struct SelectView<'a> {
        /// The options. Values and labels are unique.
        options: &'a [Choice],
        /// Whether several may be chosen.
        multiple: bool,
        /// Whether free text is accepted too.
        allow_other: bool,
    }

    struct CompletedView<'a> {
        /// The final answer.
        text: &'a Text,
        /// The message whose pieces contain the whole text. Null: `text` is whole.
        message_id: Option<MessageId>,
        /// The structured result.
        structured_output: &'a Option<Json>,
        /// The reason why the model stopped.
        stop_reason: StopReason,
        /// The permissions that were denied because nobody answered.
        denied: &'a UnansweredItems,
        /// The other questions that nobody answered.
        unanswered: &'a UnansweredItems,
    }

    struct FailedView<'a> {
        failure: TurnFailureView<'a> as flat,
        /// The known facts.
        detail: Detail<'a>,
    }

    struct FailureDetailView<'a> {
        /// The reason why a workflow was refused.
        reason: Option<RefusalReason> as known,
        /// The field of run.start whose limit was reached.
        limit: Option<LimitField> as known,
        /// The value of that field, if it is a number.
        value: Option<f64> as known,
        /// The provider's HTTP status.
        http_status: Option<u16> as known,
        /// The time at which the agent or its provider goes on again, in UTC.
        retry_at: Option<UtcTime> as known,
        /// The supported major versions.
        supported: Option<Versions> as known,
        /// The agent's own message.
        agent_message: Option<&'a Text> as known,
        /// The last lines of the agent's stderr.
        stderr_tail: Option<&'a Text> as known,
        /// The reasons why a result does not fit `output_schema`.
        violations: Option<&'a Mismatches> as known,
        /// The commands of a plan to which nobody can consent.
        commands: Option<&'a Text> as known,
        phase: Option<&'a PhaseFailure> as flat,
    }

    struct CancelledView<'a> {
        /// The reason that the canceller stated.
        reason: &'a Option<Text>,
        /// The source of the cancel.
        source: Source,
    }

    struct TurnView<'a> {
        /// The number of the turn, from 1.
        turn: u64,
        /// The agent of the turn.
        agent: &'a String as name,
        /// The cause of the turn: a prompt, or the agent itself.
        origin: TurnOrigin,
        /// The further prompt that the turn answers. Null: that of run.start, or none.
        prompt_id: Option<PromptId>,
        /// The outcome.
        outcome: TurnOutcome,
        /// The final answer, as `text` of run.completed.
        final_text: Option<&'a Text>,
        /// As in run.completed.
        message_id: Option<MessageId>,
        /// As in run.completed.
        stop_reason: Option<StopReason>,
        /// As in run.completed.
        structured_output: Option<&'a Json>,
        /// Whether the completion marker was in the agent's text.
        completion_detected: bool,
        /// The usage of this turn.
        usage: &'a Usage,
        /// The failure of a turn that failed.
        failure: Option<TurnFailureView<'a>>,
        /// As in run.completed.
        denied: &'a UnansweredItems,
        /// As in run.completed.
        unanswered: &'a UnansweredItems,
    }

    struct TurnFailureView<'a> {
        /// The code.
        code: Code,
        /// One sentence that says what to do.
        message: &'a Text,
        /// Whether a later attempt may succeed.
        retryable: bool,
    }
}

impl FrameObject for Question {
    const OBJECT: ObjectForm = QuestionView::OBJECT;

    fn put_fields(&self, object: &mut ObjectWriter<'_>) {
        let Question { question_id, group_id, group_size, ask, timeout_s, attempt, error, truncated } = self;
        let options = match &ask.kind {
            Kind::Select { choices, multiple, allow_other } => {
                Some(SelectView { options: choices.as_slice(), multiple: *multiple, allow_other: *allow_other })
            }
            Kind::Confirm | Kind::Text | Kind::Secret | Kind::FilePath => None,
        };
        let view = QuestionView {
            question_id,
            group_id,
            group_size: *group_size,
            purpose: ask.purpose,
            kind: ask.kind.word(),
            header: &ask.header,
            text: &ask.text,
            options,
            default: ask.default.as_ref(),
            validation: &ask.validation,
            required: ask.required,
            timeout_s: *timeout_s,
            attempt: *attempt,
            error: error.as_ref(),
            subject: ask.subject.as_ref(),
            truncated: *truncated,
        };
        view.put_fields(object);
    }
}

impl Terminal {
    fn put_outcome(&self, object: &mut ObjectWriter<'_>) {
        match &self.outcome {
            Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason } => CompletedView {
                text,
                message_id: message_id.filter(|_| *text_cut),
                structured_output,
                stop_reason: *stop_reason,
                denied: &self.unattended.denied,
                unanswered: &self.unattended.unanswered,
            }
            .put_fields(object),
            Outcome::Failed(failure) => {
                FailedView { failure: turn_failure(failure), detail: detail(failure) }.put_fields(object);
            }
            Outcome::Cancelled { reason, source } => CancelledView { reason, source: *source }.put_fields(object),
        }
    }
}

/// Null if nothing is known.
struct Detail<'a>(FailureDetailView<'a>);

fn turn_failure(failure: &Failure) -> TurnFailureView<'_> {
    TurnFailureView { code: failure.code, message: failure.message.text(), retryable: failure.retryable }
}

fn detail(failure: &Failure) -> Detail<'_> {
    let Failure {
        code,
        message: _,
        retryable: _,
        http_status,
        retry_at,
        agent_message,
        stderr_tail,
        limit,
        value,
        reason,
        target: _,
        commands,
        phase,
        violations,
    } = failure;
    Detail(FailureDetailView {
        reason: *reason,
        limit: *limit,
        value: *value,
        http_status: *http_status,
        retry_at: *retry_at,
        supported: (*code == Code::UnsupportedVersion).then_some(Versions),
        agent_message: agent_message.as_ref(),
        stderr_tail: stderr_tail.as_deref(),
        violations: violations.as_deref(),
        commands: commands.as_deref(),
        phase: phase.as_deref(),
    })
}

impl FrameObject for TurnReport {
    const OBJECT: ObjectForm = TurnView::OBJECT;

    fn put_fields(&self, object: &mut ObjectWriter<'_>) {
        let mut view = TurnView {
            turn: self.number,
            agent: &self.agent,
            origin: self.origin,
            prompt_id: self.prompt_id,
            outcome: self.word(),
            final_text: None,
            message_id: None,
            stop_reason: None,
            structured_output: None,
            completion_detected: self.completion_detected,
            usage: &self.usage,
            failure: None,
            denied: &self.unattended.denied,
            unanswered: &self.unattended.unanswered,
        };
        match &self.outcome {
            Outcome::Completed { text, message_id, text_cut, structured_output, stop_reason } => {
                view.final_text = Some(text);
                view.message_id = message_id.filter(|_| *text_cut);
                view.structured_output = structured_output.as_ref();
                view.stop_reason = Some(*stop_reason);
            }
            Outcome::Failed(failure) => view.failure = Some(turn_failure(failure)),
            Outcome::Cancelled { .. } => {}
        }
        view.put_fields(object);
    }
}

impl Body {
    pub(super) fn put(&self, out: &mut Vec<u8>, proof: IsRedacted) {
        put_object(out, proof, |object| match self {
            Body::Started(body) => body.put_fields(object),
            Body::Progress(body) => {
                object.entry(",\"kind\":", &body.about.kind());
                body.put_fields(object);
            }
            Body::Question(body) => body.put_fields(object),
            Body::Artifact(body) => body.put_fields(object),
            Body::Terminal(body) => {
                body.put_outcome(object);
                body.put_fields(object);
            }
        });
    }
}

const ID: Form = Form::Shaped(&TextRule::matching("^msg_[1-9][0-9]*$"));
const TIME: Form =
    Form::Shaped(&TextRule::matching("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"));

object_forms! {
    /// Without `payload`, which stands in it too.
    pub ENVELOPE_OUT = "Frame" {
        /// The major version.
        v: VERSION, false;
        /// `msg_1`, `msg_2`, … in the order of emission, without a gap.
        id: ID, false;
        /// The time in UTC, with three fraction digits.
        ts: TIME, false;
        /// The type of the frame.
        type: Form::Text, false;
        /// The id of the run.
        run_id: RunId::FORM, false;
        /// The id of the message that caused the frame.
        reply_to: Form::Text, true;
    }
}

/// Without the fields of its kind.
const PROGRESS: ObjectForm = ObjectForm {
    name: "Progress",
    members: &[
        Member::field(
            "kind",
            "The kind of the progress.",
            Form::Word(&WordSet { name: "", words: ProgressKind::NAMES, grows: true }),
            false,
        ),
        Member::All(&Progress::OBJECT),
    ],
};

macro_rules! terminal {
    ($name:literal, $own:ident) => {
        &ObjectForm { name: $name, members: &[Member::All(&$own::OBJECT), Member::All(&Terminal::OBJECT)] }
    };
}

pub const FRAMES: [MessageForm; 7] = [
    MessageForm { name: "run.started", doc: "The run began.", payloads: &[&Started::OBJECT] },
    MessageForm { name: "run.progress", doc: "Something happened. The `kind` says what.", payloads: &[&PROGRESS] },
    MessageForm { name: "run.question", doc: "The run waits for an answer.", payloads: &[&Question::OBJECT] },
    MessageForm { name: "run.artifact", doc: "A file changed.", payloads: &[&Artifact::OBJECT] },
    MessageForm {
        name: "run.completed",
        doc: "The end: the agent's result.",
        payloads: &[terminal!("Completed", CompletedView)],
    },
    MessageForm { name: "run.failed", doc: "The end: a failure.", payloads: &[terminal!("Failed", FailedView)] },
    MessageForm {
        name: "run.cancelled",
        doc: "The end: somebody cancelled the run.",
        payloads: &[terminal!("Cancelled", CancelledView)],
    },
];

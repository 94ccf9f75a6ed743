//! The failure codes of a run, in one table: code, exit code, and whether a later attempt may succeed.
//!
//! The codes are part of the protocol. Messages are in our own words, and the only typed value in one is a model's
//! name. The agent's own error text is in a separate field, because it may contain addresses.

use crate::protocol::declare::{objects, sources};
use crate::protocol::parts::Fixed;
use crate::protocol::schema::{Mismatch, Mismatches};
use crate::protocol::sentence::Sentence;
use crate::protocol::terms::sentence;
use crate::protocol::text::Text;
use crate::protocol::utc::UtcTime;
use crate::protocol::words::{LimitField, RefusalReason};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $exit:literal, $retryable:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Fixed for Code {}

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            pub const NAMES: &'static [&'static str] = &[$($name),*];

            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            pub fn exit_code(self) -> u8 {
                match self { $(Code::$variant => $exit,)* }
            }

            pub fn retryable(self) -> bool {
                match self { $(Code::$variant => $retryable,)* }
            }
        }
    };
}

codes! {
    /// The agent reported an error that fits no other code.
    AgentError, "agent_error", 1, false;
    /// The agent ended without a result.
    AgentExited, "agent_exited", 1, false;
    /// The agent does not speak the dialect that its driver expects.
    AgentProtocolError, "agent_protocol_error", 1, false;
    SessionNotFound, "session_not_found", 1, false;
    /// Another process writes the session to resume.
    SessionBusy, "session_busy", 1, true;
    /// The model does not exist, or the account may not use it.
    ModelNotFound, "model_not_found", 1, false;
    ContextExceeded, "context_exceeded", 1, false;
    /// A budget of the run, or a limit of the agent itself, is reached.
    LimitReached, "limit_reached", 1, false;
    /// The account's quota is used up, or has to be paid.
    QuotaExceeded, "quota_exceeded", 1, false;
    Refused, "refused", 1, false;
    RateLimited, "rate_limited", 1, true;
    /// The provider could not be reached or had an internal error.
    ProviderUnavailable, "provider_unavailable", 1, true;
    /// The agent gave no result, or one that breaks a rule.
    ResultInvalid, "result_invalid", 1, false;
    VerificationFailed, "verification_failed", 1, false;
    /// The agent did nothing in two attempts.
    NoProgress, "no_progress", 1, false;
    /// The agent reported that it cannot continue.
    Blocked, "blocked", 1, false;
    /// git refused the commit of a phase.
    CommitFailed, "commit_failed", 1, false;
    Usage, "usage", 2, false;
    InvalidConfig, "invalid_config", 2, false;
    /// An invalid run.start.
    InvalidRequest, "invalid_request", 2, false;
    /// A message of another major version.
    UnsupportedVersion, "unsupported_version", 3, false;
    /// A malformed message before run.start.
    InvalidMessage, "invalid_message", 3, false;
    /// stdin ended before run.start.
    NoStart, "no_start", 3, false;
    AgentNotFound, "agent_not_found", 4, false;
    AgentStartFailed, "agent_start_failed", 4, false;
    /// The agent is not logged in, or its key was refused.
    AuthRequired, "auth_required", 4, false;
    Timeout, "timeout", 5, false;
    IdleTimeout, "idle_timeout", 5, false;
    /// The agent printed nothing after its start.
    StartTimeout, "start_timeout", 5, false;
    QuestionTimeout, "question_timeout", 5, false;
    /// Nobody can answer a question any more.
    InputClosed, "input_closed", 6, false;
    /// A question was declined, and the agent cannot continue without an answer.
    QuestionDeclined, "question_declined", 6, false;
    /// A permission was denied because nobody answered, and the run has `fail_on_denied`.
    Denied, "denied", 6, false;
    InternalError, "internal_error", 70, false;
    /// The machine is out of memory, processes or files.
    ResourceExhausted, "resource_exhausted", 70, false;
}

pub(crate) const OUR_BUG: &str = "spektacular has a bug: please report it, with a recording of the run.";

pub(crate) const NO_DIRECTORY: &str = "The current directory no longer exists. Change to another one.";

/// The exit code if the last frame cannot be delivered: stdout is closed, or nobody reads it after a stop.
pub const EXIT_UNDELIVERED: u8 = 74;

sources! {
    #[derive(Clone, Debug, PartialEq)]
    pub struct Failure {
        pub code: Code,
        pub message: Sentence as text,
        /// By default, the code decides.
        pub retryable: bool,
        pub http_status: Option<u16>,
        pub retry_at: Option<UtcTime>,
        /// The run cuts it to [`crate::protocol::limits::AGENT_MESSAGE_BYTES`].
        pub agent_message: Option<Text> as output,
        /// The last lines, at most [`crate::protocol::limits::STDERR_TAIL_BYTES`] bytes.
        pub stderr_tail: Option<Box<Text>> as output,
        pub limit: Option<LimitField>,
        pub value: Option<f64>,
        pub reason: Option<RefusalReason>,
        /// The file that a refused workflow concerns.
        pub target: Option<Box<Text>> as text,
        /// The commands of a plan to which nobody can consent, one per line.
        pub commands: Option<Box<Text>> as output,
        pub phase: Option<Box<PhaseFailure>> as output,
        pub violations: Option<Box<Mismatches>> as list,
    }
}

objects! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PhaseFailure {
        /// The phase's id, such as `P1`.
        pub phase: String as name,
        /// The number of the last attempt.
        pub attempt: u64,
        /// The command that failed, if one did.
        pub command: Option<Text> as text,
        /// The exit status of the command. Null: a signal or the time limit ended it, or it did not start.
        pub exit_code: Option<i32>,
        /// Whether the time limit ended the command.
        pub timed_out: bool,
        /// The end of the command's output, at most 8 KiB.
        pub output_tail: Text as output,
    }
}

impl Failure {
    pub fn new(code: Code, message: impl Into<Sentence>) -> Failure {
        Failure {
            code,
            message: message.into(),
            retryable: code.retryable(),
            http_status: None,
            retry_at: None,
            agent_message: None,
            stderr_tail: None,
            limit: None,
            value: None,
            reason: None,
            target: None,
            commands: None,
            phase: None,
            violations: None,
        }
    }

    pub fn usage(message: impl Into<Sentence>) -> Failure {
        Failure::new(Code::Usage, message)
    }

    /// The refusal of a workflow before any agent starts.
    pub fn refused_for(reason: RefusalReason, message: impl Into<Sentence>) -> Failure {
        Failure { reason: Some(reason), ..Failure::new(Code::InvalidRequest, message) }
    }

    /// `mistake`: a sentence that begins with the field.
    pub(crate) fn invalid_start(mistake: impl Into<Sentence>) -> Failure {
        Failure::new(Code::InvalidRequest, mistake.into().about_start())
    }

    pub(crate) fn no_prompt() -> Failure {
        let mistake = "run.start: `prompt` must be a non-empty string.";
        Failure::new(Code::InvalidRequest, Sentence::pair(mistake, "the prompt must not be empty."))
    }

    pub(crate) fn invalid_run_id() -> Failure {
        Failure::invalid_start("`run_id` must match ^[A-Za-z0-9._:-]{1,128}$.")
    }

    /// `why`: a sentence without its capital letter. A person may have typed `--continue` instead of the session's id.
    pub(crate) fn not_resumable(why: &str) -> Failure {
        let mistake = format!("run.start: `session_id` cannot be given: {why}");
        let message = Sentence::pair(mistake, format!("The session cannot be resumed: {why}"));
        Failure::new(Code::InvalidRequest, message)
    }

    pub(crate) fn not_forkable(agent: &str) -> Failure {
        Failure::invalid_start(sentence!(
            "{fork} cannot be given: {agent} cannot begin a session from another one. Leave out {fork} to resume the \
             session itself.",
            fork
        ))
    }

    pub fn result_invalid(violations: Vec<Mismatch>) -> Failure {
        let message = sentence!(
            "The agent gave no result that fits {output_schema}: see {violations}, and simplify the schema or the task.",
            output_schema,
            violations
        );
        let violations = Box::new(Mismatches(violations));
        Failure { violations: Some(violations), ..Failure::new(Code::ResultInvalid, message) }
    }

    pub fn of_our_own() -> Failure {
        Failure::new(Code::InternalError, OUR_BUG)
    }

    pub(crate) fn no_thread() -> Failure {
        let message = "Cannot start a thread: free some memory or processes.";
        Failure::new(Code::ResourceExhausted, message).retryable()
    }

    pub(crate) fn no_recording() -> Failure {
        let message = "--record: the file cannot be written. Name a regular file in a writable directory. Below the \
                       project's directory, it must not be a symbolic link.";
        Failure::new(Code::Usage, message)
    }

    pub fn about(mut self, target: impl Into<Text>) -> Failure {
        self.target = Some(Box::new(target.into()));
        self
    }

    /// `agent`: its display name. `login`: the way to log in.
    pub fn not_logged_in(agent: &str, login: &str) -> Failure {
        Failure::new(Code::AuthRequired, format!("{agent} is not logged in: {login}."))
    }

    /// `agent`: its display name. `login`: the way to log in.
    pub fn credentials_refused(agent: &str, login: &str, status: Option<u16>) -> Failure {
        let message = format!("The provider refused the credentials of {agent}: {login}.");
        Failure::new(Code::AuthRequired, message).with_status(status)
    }

    pub(crate) fn took_too_long() -> Failure {
        let message = sentence!("The run took longer than {timeout_s:#}: raise it or split the task.", timeout_s);
        Failure::new(Code::Timeout, message).at(LimitField::Timeout)
    }

    /// [`Failure::name_model`] adds the model's name.
    pub fn model_not_found() -> Failure {
        Failure::new(Code::ModelNotFound, model_not_found(""))
    }

    pub fn rate_limited() -> Failure {
        Failure::new(Code::RateLimited, "The provider's rate limit is reached: try again later.")
    }

    /// `None`: the provider could not be reached, or its status is unknown.
    pub fn provider_unavailable(status: Option<u16>) -> Failure {
        let message = match status {
            Some(status) => format!("The provider failed with HTTP status {status}: try again later."),
            None => "The provider could not be reached or failed: try again later.".into(),
        };
        Failure::new(Code::ProviderUnavailable, message).with_status(status)
    }

    pub(crate) fn quota_exceeded() -> Failure {
        let message =
            "The account's quota is used up: raise it or add credit at the provider, or wait until it is renewed.";
        Failure::new(Code::QuotaExceeded, message)
    }

    pub fn context_exceeded() -> Failure {
        let message = "The prompt or the conversation is too long for the model: shorten it.";
        Failure::new(Code::ContextExceeded, message)
    }

    pub fn refused() -> Failure {
        Failure::new(Code::Refused, "The model refused the task: change the prompt.")
    }

    /// `agent`: its display name.
    pub fn exited(agent: &str) -> Failure {
        let message = format!("{agent} exited without a result: run it again, or record the run to see why.");
        Failure::new(Code::AgentExited, message)
    }

    /// `agent`: its display name.
    pub fn session_not_found(agent: &str) -> Failure {
        let message = sentence!(
            "{agent} has no session with this id: check {session_id:#}, and the working directory.",
            session_id
        );
        Failure::new(Code::SessionNotFound, message)
    }

    pub(crate) fn session_busy() -> Failure {
        Failure::new(Code::SessionBusy, "Another process is using this session: wait until it ends, and try again.")
    }

    /// `agent`: its display name.
    pub fn reported(agent: &str, said: Option<String>) -> Failure {
        let message = match said {
            Some(_) => sentence!("{agent} reported an error: see {agent_message}.", agent_message),
            None => format!("{agent} reported an error: record the run to see why.").into(),
        };
        Failure::new(Code::AgentError, message).saying(said)
    }

    /// Adds the model's name to the message of a missing model, if the text has the form of a name.
    pub fn name_model(&mut self, model: &str) {
        if self.code == Code::ModelNotFound && is_model_name(model) {
            self.message = model_not_found(&format!(" {model}")).into();
        }
    }

    pub fn retryable(mut self) -> Failure {
        self.retryable = true;
        self
    }

    pub fn at(mut self, limit: LimitField) -> Failure {
        self.limit = Some(limit);
        self
    }

    pub fn with_status(mut self, status: Option<u16>) -> Failure {
        self.http_status = status;
        self
    }

    /// Changes only the failure of a provider's limit, and no time that is known.
    pub fn until(mut self, retry_at: Option<UtcTime>) -> Failure {
        let is_limit = matches!(self.code, Code::RateLimited | Code::QuotaExceeded);
        self.retry_at = self.retry_at.or(retry_at.filter(|_| is_limit));
        self
    }

    pub fn saying(mut self, said: Option<String>) -> Failure {
        self.agent_message = said.map(Text::from);
        self
    }
}

fn model_not_found(name: &str) -> String {
    format!("The model{name} does not exist, or your account may not use it: choose another model.")
}

const MODEL_NAME_CHARS: usize = 64;

/// Whether a text looks like a model's name, such as `vendor/model-5@20260101` or `opus[1m]`.
fn is_model_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./:@[]".contains(c);
    (1..=MODEL_NAME_CHARS).contains(&text.len()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn only_texts_in_the_form_of_a_name_are_shown() {
        for (model, shown) in [
            ("anthropic/claude-opus-5.5:v1@20260101", true),
            ("claude_opus[1m]", true),
            (&"m".repeat(64), true),
            (&"m".repeat(65), false),
            ("", false),
            ("two words", false),
            ("a\u{1b}[31m", false),
            ("modèle", false),
        ] {
            let mut failure = Failure::model_not_found();
            failure.name_model(model);
            let message = failure.message.text().unredacted();
            assert_eq!(message.starts_with(&format!("The model {model} does not exist")), shown, "{message}");
            assert!(shown || message.starts_with("The model does not exist"), "{message}");
        }
        let mut other = Failure::refused();
        other.name_model("gpt");
        assert_eq!(other, Failure::refused());
    }
}

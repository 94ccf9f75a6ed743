//! Every way a run can fail, in one table: code, exit code, and whether a later try may succeed.
//!
//! The codes are part of the protocol. Messages are ours: they never hold a value that somebody typed, nor an
//! agent's own error text, which may hold keys and addresses.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $exit:literal, $retryable:literal;)*) => {
        /// Why a run failed. The string is the protocol's `code`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The protocol's string for this code.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The exit code of the process whose run failed with this code.
            pub fn exit_code(self) -> u8 {
                match self { $(Code::$variant => $exit,)* }
            }

            /// Whether the same request may succeed later.
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
    /// The session to resume does not exist.
    SessionNotFound, "session_not_found", 1, false;
    /// The model does not exist or may not be used.
    ModelNotFound, "model_not_found", 1, false;
    /// The conversation does not fit the model's context.
    ContextExceeded, "context_exceeded", 1, false;
    /// A budget of the run or of the account is used up.
    LimitReached, "limit_reached", 1, false;
    /// The model refused the task.
    Refused, "refused", 1, false;
    /// The provider asked for fewer requests.
    RateLimited, "rate_limited", 1, true;
    /// The provider could not be reached or answered with a fault of its own.
    ProviderUnavailable, "provider_unavailable", 1, true;
    /// A bad command line.
    Usage, "usage", 2, false;
    /// A configuration that cannot be used.
    InvalidConfig, "invalid_config", 2, false;
    /// A run.start that cannot be used.
    InvalidRequest, "invalid_request", 2, false;
    /// A message of another major version.
    UnsupportedVersion, "unsupported_version", 3, false;
    /// A malformed message before run.start.
    InvalidMessage, "invalid_message", 3, false;
    /// stdin ended before run.start.
    NoStart, "no_start", 3, false;
    /// The agent's program is not there.
    AgentNotFound, "agent_not_found", 4, false;
    /// The agent's program is there but did not start.
    AgentStartFailed, "agent_start_failed", 4, false;
    /// The agent is not logged in, or its key is refused.
    AuthRequired, "auth_required", 4, false;
    /// The run's own time is over.
    Timeout, "timeout", 5, false;
    /// The agent was silent for too long.
    IdleTimeout, "idle_timeout", 5, false;
    /// The agent gave no sign of life.
    StartTimeout, "start_timeout", 5, false;
    /// A question was not answered in time.
    QuestionTimeout, "question_timeout", 5, false;
    /// A question that nobody can answer any more.
    InputClosed, "input_closed", 6, false;
    /// A question was declined and the agent cannot go on without it.
    QuestionDeclined, "question_declined", 6, false;
    /// A permission was denied because nobody answered, in a run that is to fail then.
    Denied, "denied", 6, false;
    /// A fault of this program.
    InternalError, "internal_error", 70, false;
    /// The machine has no memory, processes or files left.
    ResourceExhausted, "resource_exhausted", 70, false;
}

/// The exit code when no frame can be delivered: stdout is closed, or is not read after a stop.
pub const EXIT_UNDELIVERED: u8 = 74;

/// One failure: a code, one sentence that says what to do, and what else is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub code: Code,
    /// One sentence for a person. Our own words.
    pub message: String,
    /// Whether a later try may succeed. The code's own answer unless a caller knows better.
    pub retryable: bool,
    /// The HTTP status that the provider gave, if the agent told it.
    pub http_status: Option<u16>,
    /// The last lines of the agent's stderr, at most [`crate::protocol::limits::STDERR_TAIL_BYTES`].
    pub stderr_tail: Option<String>,
}

impl Failure {
    /// A failure with the code's own answer to `retryable` and no detail.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), retryable: code.retryable(), http_status: None, stderr_tail: None }
    }

    /// The same failure, marked as one that may go away by itself.
    pub fn retryable(mut self) -> Failure {
        self.retryable = true;
        self
    }

    /// The same failure with the provider's HTTP status.
    pub fn with_status(mut self, status: Option<u16>) -> Failure {
        self.http_status = status;
        self
    }
}

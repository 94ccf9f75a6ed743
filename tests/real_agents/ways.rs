//! The measured differences between the agents. Everything else is the same for all of them.

use crate::agents::Agent;

/// The behavior of one agent.
pub(crate) struct Ways {
    /// A model that is not its first choice here.
    pub(crate) another_model: &'static str,
    /// Whether it says what a run cost.
    pub(crate) cost: bool,
    /// Whether it says how much of the input came from a cache.
    pub(crate) cached: bool,
    /// Whether its counts cover all requests of a turn with tools.
    pub(crate) counts_all: bool,
    /// The form of the reasoning in think.json.
    pub(crate) reasoning: &'static str,
    /// The visible part of a tool's long output.
    pub(crate) output: Output,
    /// The report about a failed shell command.
    pub(crate) failed_command: &'static str,
    /// Whether its model reads the words of a denial.
    pub(crate) reads_why: bool,
    /// Whether it says that it tries again.
    pub(crate) tells_retries: bool,
    /// The failure code and the HTTP status after a permanent failure of the provider.
    pub(crate) broken: (&'static str, Option<u16>),
    /// Whether it surely leaves by itself in the time that it has after its result, also on a loaded machine.
    pub(crate) leaves_in_time: bool,
    /// Seconds after which its tool is surely at work, also on a loaded machine.
    pub(crate) at_work_s: u64,
    /// Whether a session can be resumed in the minute in which it began.
    pub(crate) resumes_at_once: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Its beginning.
    Head,
    /// Its end.
    Tail,
    Nothing,
}

const CLAUDE: Ways = Ways {
    another_model: "claude-haiku-4-5",
    cost: true,
    cached: true,
    counts_all: true,
    reasoning: "A greeting is due.",
    output: Output::Head,
    failed_command: "failed",
    reads_why: true,
    tells_retries: true,
    broken: ("provider_unavailable", Some(500)),
    leaves_in_time: true,
    at_work_s: 8,
    resumes_at_once: true,
};

const CODEX: Ways = Ways {
    another_model: "gpt-5.6-luna",
    cost: false,
    // Its answers to approvals have no place for words.
    reads_why: false,
    // A class in place of the status.
    broken: ("provider_unavailable", None),
    ..CLAUDE
};

const GEMINI: Ways = Ways {
    another_model: "gemini-2.5-pro",
    cost: false,
    cached: false,
    // Each piece is a thought for it, with an empty subject here.
    reasoning: "****\nA greeting****\nis due.",
    // Neither output nor exit code reaches the client.
    output: Output::Nothing,
    failed_command: "completed",
    reads_why: false,
    tells_retries: false,
    // After a shell command it may take seconds, in which a signal does not reach it.
    leaves_in_time: false,
    at_work_s: 15,
    // The file of a session bears the minute, and a load within it spoils the file.
    resumes_at_once: false,
    ..CLAUDE
};

const OPENCODE: Ways = Ways {
    another_model: "stub/other-model",
    cached: false,
    // The counts are those of the last request only.
    counts_all: false,
    output: Output::Tail,
    tells_retries: false,
    // The provider's own text is all that it passes on.
    broken: ("agent_error", None),
    at_work_s: 25,
    ..CLAUDE
};

impl Agent {
    pub(crate) fn ways(self) -> &'static Ways {
        match self {
            Agent::Claude | Agent::OldClaude => &CLAUDE,
            Agent::Codex => &CODEX,
            Agent::Gemini => &GEMINI,
            Agent::OpenCode => &OPENCODE,
        }
    }
}

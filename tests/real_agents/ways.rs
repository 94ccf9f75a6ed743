//! The measured differences between the agents. Everything else is the same for all of them.

use spektacular::protocol::failure::Code;

use crate::agents::Agent;

/// The behavior of one agent.
pub(crate) struct Ways {
    /// A model other than the agent's default here.
    pub(crate) another_model: &'static str,
    /// Whether the agent reports the cost of a run.
    pub(crate) cost: bool,
    /// Whether the agent reports how much of the input came from a cache.
    pub(crate) cached: bool,
    /// The form of the reasoning in think.json.
    pub(crate) reasoning: &'static str,
    /// The visible part of a tool's long output.
    pub(crate) output: Output,
    /// The report about a failed shell command.
    pub(crate) failed_command: &'static str,
    /// Whether the model reads the message of a denial.
    pub(crate) reads_why: bool,
    /// The code of the failures whose HTTP status the agent drops.
    pub(crate) drops_status: Option<Code>,
    /// Whether the agent reports retries.
    pub(crate) tells_retries: bool,
    /// Whether the agent reliably exits by itself within the time limit after its result, even on a loaded machine.
    pub(crate) leaves_in_time: bool,
    /// Seconds until the agent's tool is reliably running, even on a loaded machine.
    pub(crate) at_work_s: u64,
    /// The agent's names of the tool that runs commands, and of one that only reads.
    pub(crate) shell: &'static str,
    pub(crate) reader: &'static str,
    /// The title of searching the working directory for a word. Some agents have no tool of their own for that, and run a
    /// command.
    pub(crate) searching: &'static str,
    /// The title of the command `ls notes`. Some agents do not tell the folder in which a command runs, so that nobody knows
    /// the files that it looks at.
    pub(crate) listing: &'static str,
    /// The marks of a setup that the agent itself does not show its model in its own headless mode.
    pub(crate) unseen_marks: &'static [&'static str],
    /// The marks of a setup that are missing in a run.
    pub(crate) lost_marks: &'static [&'static str],
    /// The limits that cannot hold with the agent.
    pub(crate) refuses: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// The beginning is visible.
    Head,
    /// The end is visible.
    Tail,
    Nothing,
}

const CLAUDE: Ways = Ways {
    another_model: "claude-haiku-4-5",
    cost: true,
    cached: true,
    reasoning: "A greeting is due.",
    output: Output::Head,
    failed_command: "failed",
    reads_why: true,
    drops_status: None,
    tells_retries: true,
    leaves_in_time: true,
    at_work_s: 8,
    searching: "Run grep -rn another",
    listing: "Run ls notes",
    shell: "Bash",
    reader: "Read",
    unseen_marks: &[],
    lost_marks: &[],
    refuses: &[],
};

const CODEX: Ways = Ways {
    another_model: "gpt-5.6-luna",
    cost: false,
    // It replaces the provider's words too.
    drops_status: Some(Code::QuotaExceeded),
    // Codex's answers to approvals have no field for a message.
    reads_why: false,
    searching: "Search another",
    listing: "Search notes",
    shell: "exec_command",
    reader: "view_image",
    // It reads only the memory files of the folders above.
    unseen_marks: &["MARK_NESTED"],
    refuses: &["max_cost_usd"],
    ..CLAUDE
};

const GEMINI: Ways = Ways {
    another_model: "gemini-2.5-pro",
    cost: false,
    cached: false,
    // Gemini CLI treats each piece as a thought, here with an empty subject.
    reasoning: "****\nA greeting****\nis due.",
    // Gemini CLI sends the client neither output nor exit code.
    output: Output::Nothing,
    failed_command: "completed",
    reads_why: false,
    tells_retries: false,
    // For seconds after a shell command, a signal may not reach the agent.
    leaves_in_time: false,
    at_work_s: 15,
    // Gemini CLI reports no input, so the title has its own words.
    searching: "Search 'another'",
    shell: "run_shell_command",
    reader: "read_file",
    // Its ACP does not run the hooks at the start of a session.
    lost_marks: &["MARK_USER_HOOK"],
    refuses: &["max_turns", "max_tokens", "max_cost_usd"],
    ..CLAUDE
};

const OPENCODE: Ways = Ways {
    another_model: "stub/other-model",
    output: Output::Tail,
    drops_status: Some(Code::ContextExceeded),
    at_work_s: 25,
    searching: "Search another",
    listing: "Search notes",
    shell: "bash",
    reader: "read",
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

//! The commands that start a run: their rows and texts. Their main function is in [`super::adhoc`].

use super::format_check::{PLAN_CHECK, SPEC_CHECK};
use crate::cli::action::Offers;
use crate::cli::adhoc::{self, stored};
use crate::cli::authors::{CHAT as CHAT_FLAGS, IMPLEMENT as IMPLEMENT_FLAGS, PLAN as PLAN_FLAGS, SPEC as SPEC_FLAGS};
use crate::cli::command::{Command, CommandText, Runnable, Runs, Words};
use crate::cli::flags::ADHOC as ADHOC_FLAGS;
use crate::cli::row::{GivenFlag, Row, flags};
use crate::cli::{Adhoc, Wrong, foreign};
use crate::protocol::words::WorkflowKind;
use std::ffi::OsString;

pub(super) const ADHOC: Command = Command {
    other_names: &["run", "exec"],
    words: Words::Free("[PROMPT... | -]", Offers::Nothing),
    runs: Runs::Adhoc,
    flags: &flags::<_, { ADHOC_FLAGS.len() }>(ADHOC_FLAGS),
    foreign: foreign::FLAGS,
    ..Command::named(
        "adhoc",
        &CommandText {
            about: "run one task through a coding agent",
            more: "\
The prompt is the words given, or comes from --prompt or --prompt-file.
A pipe or a file on stdin is appended to the prompt, in a fenced block.
A - among the words puts the input there instead; a - alone makes it the whole prompt.
Without a -, a pipe must begin within --input-timeout and end within 10 min.
If stdin is not input for the run, as in a loop that reads it, add </dev/null.
The agent's text goes to stdout, everything else to stderr.
On a terminal, adhoc asks you the agent's questions. In the background, its questions wait until fg brings it back.
With --output json, adhoc speaks a protocol: see `spektacular protocol`.
Without a prompt, it then waits for a run.start on stdin. With one, it reads stdin only with --input jsonl.
Flags override the configuration, and a run.start overrides both. `spektacular config` stores lasting defaults.",
            examples: &[
                ("spektacular adhoc \"fix the failing test\"", "run the task, and ask before anything is changed"),
                ("git diff | spektacular adhoc \"review this\"", "append piped input to the prompt"),
                ("spektacular adhoc --agent demo \"say hello\"", "try it without an agent, a key or a network"),
                (
                    "spektacular adhoc --permissions 'read=allow,edit=allow,*=ask' \"tidy up\"",
                    "allow reading and editing, and ask about everything else",
                ),
                ("spektacular adhoc --answer Database=SQLite \"set it up\"", "answer a question in advance"),
                ("spektacular adhoc --continue \"now write a test for it\"", "continue the last session"),
                ("some-orchestrator | spektacular adhoc --output json", "drive a run from a program"),
            ],
        },
        |given, words| Ok(Runnable::Run(Box::new(adhoc::read(stored(ADHOC_FLAGS, given)?, words)?))),
    )
};

pub(super) const CHAT: Command = Command {
    words: Words::Free("[PROMPT... | -]", Offers::Nothing),
    runs: Runs::Chat,
    flags: &flags::<_, { CHAT_FLAGS.len() }>(CHAT_FLAGS),
    foreign: foreign::FLAGS,
    ..Command::named(
        "chat",
        &CommandText {
            about: "hold a conversation with a coding agent",
            more: "\
The same as adhoc --conversation at a terminal: the agent keeps running, and each line you type is another prompt.
Without a prompt, the conversation begins with the prompt line. A pipe on stdin belongs to the first prompt, as with adhoc.
Enter sends the prompt. Alt-Enter starts a new line, and pasted text keeps its lines. The arrow keys bring back earlier prompts.
A prompt that you type while the agent works waits for its turn. One that begins with ! goes to the agent immediately, if the
agent accepts prompts while it is working.
A line that begins with / is a command: /help lists these commands and the agent's own. Tab completes a command, or a path after @.
Ctrl-C cancels the turn. Ctrl-C twice within a second cancels the run. Ctrl-D on an empty line ends the conversation once
the running turn and the waiting prompts are finished.",
            examples: &[
                ("spektacular chat", "begin with a prompt line"),
                ("spektacular chat --agent demo \"say hello\"", "try it without an agent, a key or a network"),
                ("spektacular chat --continue", "continue the last session"),
            ],
        },
        |given, words| Ok(Runnable::Run(Box::new(adhoc::read_chat(stored(CHAT_FLAGS, given)?, words)?))),
    )
};

pub(super) const SPEC: Command = Command {
    words: Words::Free("[DESCRIPTION... | -]", Offers::Nothing),
    below: &[SPEC_CHECK],
    runs: Runs::Workflow(WorkflowKind::Spec),
    page: include_str!("../workflow/reference.md"),
    flags: &flags::<_, { SPEC_FLAGS.len() }>(SPEC_FLAGS),
    foreign: foreign::FLAGS,
    ..Command::named(
        "spec",
        &CommandText {
            about: "write a specification",
            more: "\
The agent asks what it needs to know and writes a draft. Once the draft passes spektacular's check, it becomes
.spektacular/specs/NAME.md. A draft that breaks a rule is kept: fix it with --continue.
Without asking you, the agent may read and search the project, edit the draft, and run the check command.",
            examples: &[
                (
                    "spektacular spec \"Log in with a code sent by mail\"",
                    "write .spektacular/specs/log-in-with-a-code-sent-by-mail.md",
                ),
                ("spektacular spec --name login - <idea.txt", "read the description from a file, and choose the name"),
                ("spektacular spec --name login --continue \"Codes expire\"", "continue it with another requirement"),
                ("spektacular spec check login", "check .spektacular/specs/login.md"),
            ],
        },
        |given, words| read_workflow(WorkflowKind::Spec, SPEC_FLAGS, given, words),
    )
};

pub(super) const PLAN: Command = Command {
    words: Words::Free("SPEC [WORDS...]", Offers::Specs),
    below: &[PLAN_CHECK],
    runs: Runs::Workflow(WorkflowKind::Plan),
    flags: &flags::<_, { PLAN_FLAGS.len() }>(PLAN_FLAGS),
    foreign: foreign::FLAGS,
    ..Command::named(
        "plan",
        &CommandText {
            about: "write a plan for a specification",
            more: "\
SPEC is the name of a specification, or a path that contains / or ends in .md.
The agent writes plan.md, research.md and context.md as a draft. Once they pass spektacular's check, they become the plan.
Further words are instructions for the agent. With --continue, it is also told how the specification has changed.
`spektacular help spec reference` explains the format.",
            examples: &[
                ("spektacular plan login", "plan .spektacular/specs/login.md, into .spektacular/plans/login"),
                ("spektacular plan --continue login", "continue a draft that broke a rule"),
                ("spektacular plan --continue login \"Split phase 2\"", "change a plan"),
                ("spektacular plan check login", "check the files in .spektacular/plans/login"),
            ],
        },
        |given, words| read_workflow(WorkflowKind::Plan, PLAN_FLAGS, given, words),
    )
};

pub(super) const IMPLEMENT: Command = Command {
    words: Words::Free("PLAN", Offers::Plans),
    runs: Runs::Workflow(WorkflowKind::Implement),
    flags: &flags::<_, { IMPLEMENT_FLAGS.len() }>(IMPLEMENT_FLAGS),
    foreign: foreign::FLAGS,
    ..Command::named(
        "implement",
        &CommandText {
            about: "carry out a plan, and run its commands to verify each phase",
            more: "\
PLAN is a plan's name, or the path of its folder or of its plan.md.
The agent works on one phase after another. A phase passes when spektacular itself has run the phase's commands and
all have passed. If one fails, the agent gets its output and tries again in the same session. At the end, every command
must pass on the final state. plan.md records the progress: after a failure, a cancel or a kill, the same command
continues at the first open phase.",
            examples: &[
                ("spektacular implement greeting", "carry out .spektacular/plans/greeting/plan.md"),
                ("spektacular implement --dry-run greeting", "show the phases, their commands and the first prompt"),
                (
                    "spektacular implement --sandbox workspace --yes greeting",
                    "ask nothing, and change only the project",
                ),
                ("spektacular implement --commit --max-phases 1 greeting", "commit the next phase, and stop"),
            ],
        },
        |given, words| read_workflow(WorkflowKind::Implement, IMPLEMENT_FLAGS, given, words),
    )
};

fn read_workflow(
    kind: WorkflowKind,
    rows: &'static [Row<Adhoc>],
    given: Vec<GivenFlag>,
    words: Vec<OsString>,
) -> Result<Runnable, Wrong> {
    Ok(Runnable::Run(Box::new(adhoc::read_workflow(kind, stored(rows, given)?, words)?)))
}

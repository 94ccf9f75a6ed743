//! The running step of a workflow, and the output of its command.
//!
//! This is the state alone. `steps` carries out the steps.

use crate::agent::{Line, Reply};
use crate::clean::Cleaner;
use crate::protocol::limits::TOOL_OUTPUT_BYTES;
use crate::protocol::outbound::{AgentExit, Progress, ProgressKind};
use crate::protocol::sentence::Sentence;
use crate::redact::{Redactor, Stream};

pub(super) enum RunningStep {
    Command(Box<CommandRun>),
    Ask(Option<Reply>),
    Task,
}

/// A running command. Its output is kept to the end, redacted and cleaned.
#[derive(Default)]
pub(super) struct CommandRun {
    phase: Option<String>,
    pub(super) exit: Option<AgentExit>,
    stream: Stream,
    cleaner: Cleaner,
    pub(super) tail: String,
}

impl RunningStep {
    pub(super) fn of_command(phase: Option<String>) -> RunningStep {
        RunningStep::Command(Box::new(CommandRun { phase, ..CommandRun::default() }))
    }

    pub(super) fn into_end(self) -> (Option<AgentExit>, String, Option<Reply>) {
        match self {
            RunningStep::Command(command) => (command.exit, command.tail, None),
            RunningStep::Ask(reply) => (None, String::new(), reply),
            RunningStep::Task => (None, String::new(), None),
        }
    }

    fn phase(&self) -> Option<&String> {
        match self {
            RunningStep::Command(command) => command.phase.as_ref(),
            RunningStep::Ask(_) | RunningStep::Task => None,
        }
    }

    pub(super) fn mark(&self, progress: &mut Progress) {
        if let ProgressKind::Tool { phase, .. } = &mut progress.about {
            *phase = self.phase().cloned();
        }
    }

    /// The warning about a process that outlived it. `None`: a process that git starts does not belong to the agent.
    pub(super) fn leaked(&self) -> Option<Sentence> {
        let phase = self.phase()?;
        Some(format!("A process outlived a command of {phase} and was stopped").into())
    }
}

impl CommandRun {
    pub(super) fn read_line(&mut self, line: &Line<'_>, redactor: &Redactor) {
        match line {
            Line::Text(text) => {
                // Keeps the final state of the line on a terminal, because progress bars overwrite themselves.
                let line = text.trim_end_matches('\r');
                self.say(&line[line.rfind('\r').map_or(0, |cr| cr + 1)..], redactor);
                self.say("\n", redactor);
            }
            Line::TooLong => self.say("(a line of many MiB was left out)\n", redactor),
        }
    }

    fn say(&mut self, text: &str, redactor: &Redactor) {
        let clean = self.cleaner.push(text).into_owned();
        let seen = self.stream.push(redactor, &clean).into_owned();
        self.tail.push_str(&seen);
        if self.tail.len() > 2 * TOOL_OUTPUT_BYTES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TOOL_OUTPUT_BYTES)));
    }

    pub(super) fn finish(&mut self, redactor: &Redactor) {
        let rest = self.stream.finish(redactor);
        self.tail.push_str(&rest);
        self.cut();
    }
}

#[cfg(test)]
mod tests {
    use super::CommandRun;
    use crate::agent::Line;
    use crate::protocol::limits::TOOL_OUTPUT_BYTES;
    use crate::redact::Redactor;

    const SECRET: &str = "hunter2-Zq7731/x+y";

    fn output(lines: impl IntoIterator<Item = String>) -> String {
        let mut redactor = Redactor::new();
        assert!(redactor.add(SECRET));
        let mut command = CommandRun::default();
        lines.into_iter().for_each(|line| command.read_line(&Line::Text(line.into()), &redactor));
        command.finish(&redactor);
        command.tail
    }

    #[test]
    fn the_last_of_the_output_is_kept_redacted_and_cleaned() {
        let long = output((0..100_000).map(|n| format!("line {n}")));
        assert!(long.len() <= TOOL_OUTPUT_BYTES && long.len() > TOOL_OUTPUT_BYTES - 100);
        assert!(long.ends_with("line 99999\n"));
        let lines = ["\u{1b}[31mred\u{1b}[0m".into(), format!("key {SECRET}."), "10%\r100%\r".into()];
        assert_eq!(output(lines), "red\nkey [redacted].\n100%\n");
    }

    #[test]
    fn a_secret_is_hidden_wherever_the_output_is_cut() {
        for before in 0..40 {
            let line = "x".repeat(before) + SECRET + &"y".repeat(TOOL_OUTPUT_BYTES - 20);
            let output = output([line]);
            assert!(output.len() <= TOOL_OUTPUT_BYTES && !output.contains(&SECRET[9..]), "{before}");
        }
    }
}

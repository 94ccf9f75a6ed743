//! A command of the plan as the driver of a part of the run. Its process is treated like an agent's process, from the
//! marker to the ladder that stops it. Its stdout and stderr are joined in order, and their end is kept, redacted.

use crate::agent::{
    AgentEvent, AskKey, CallKey, Driver, DriverOutput, Features, Launch, Line, Program, Reply, TurnOver,
};
use crate::clean::Cleaner;
use crate::protocol::failure::Failure;
use crate::protocol::image::Image;
use crate::protocol::limits::TOOL_OUTPUT_BYTES;
use crate::protocol::outbound::{AgentExit, Capabilities, Text, ToolFacts};
use crate::protocol::request::Settings;
use crate::protocol::words::{Category, ToolState};
use crate::redact::{Redactor, Stream};
use crossbeam_channel::Sender;

/// Joins stdout and stderr and becomes `/bin/sh -c COMMAND`. The command is an argument, so it needs no quotes.
const JOINED: &str = "exec 2>&1; exec /bin/sh -c \"$1\"";
const KEY: &str = "command";

/// Runs a command.
pub(crate) struct VerifyStep {
    /// The script, its `$0`, and its arguments.
    args: Vec<String>,
    /// The command as frames show it. `None`: frames do not show it.
    title: Option<String>,
    /// The variables of the agent's entry.
    env: Vec<(String, String)>,
    redactor: Redactor,
    stream: Stream,
    cleaner: Cleaner,
    /// The end of the output, redacted.
    tail: String,
    /// Receives the output when the command has ended.
    output: Sender<String>,
}

impl VerifyStep {
    /// `redactor` knows every secret of the run. `output` receives the end of the command's output.
    pub(crate) fn new(
        text: &str,
        env: Vec<(String, String)>,
        redactor: Redactor,
        output: Sender<String>,
    ) -> VerifyStep {
        VerifyStep {
            args: ["-c", JOINED, "sh", text].map(str::to_owned).into(),
            title: Some(text.to_owned()),
            env,
            redactor,
            stream: Stream::default(),
            cleaner: Cleaner::default(),
            tail: String::new(),
            output,
        }
    }

    /// Succeeds if the shell knows this program. No frame shows it.
    pub(super) fn probe(
        program: &str,
        env: Vec<(String, String)>,
        redactor: Redactor,
        output: Sender<String>,
    ) -> VerifyStep {
        VerifyStep { title: None, ..VerifyStep::new(&format!("command -v {program}"), env, redactor, output) }
    }

    /// A script of spektacular's own, which no frame shows, with its arguments. `folder`: the working directory.
    pub(crate) fn hidden(
        script: &str,
        folder: String,
        arguments: [String; 3],
        redactor: Redactor,
        output: Sender<String>,
    ) -> VerifyStep {
        let script = format!("cd \"$1\" || exit\nshift\n{script}");
        let args = ["-c".to_owned(), script, "sh".to_owned(), folder].into_iter().chain(arguments);
        VerifyStep { args: args.collect(), title: None, ..VerifyStep::new("", Vec::new(), redactor, output) }
    }

    fn keep(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.len() > 2 * TOOL_OUTPUT_BYTES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TOOL_OUTPUT_BYTES)));
    }

    fn say(&mut self, text: &str) {
        let clean = self.cleaner.push(text).into_owned();
        let seen = self.stream.push(&self.redactor, &clean).into_owned();
        self.keep(&seen);
    }
}

/// The program that a command begins with, if its name stands there as it is. A path does not count, because the phase may
/// create that file.
pub(super) fn program(command: &str) -> Option<&str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_.+-".contains(&b);
    let name = command.split_whitespace().next()?;
    (name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.bytes().all(is_plain)).then_some(name)
}

impl Driver for VerifyStep {
    fn features(&self, _settings: &Settings) -> Features {
        let features = Features::of_step(Capabilities::only_asking(Vec::new()));
        Features { listens: false, stderr_is_fit: false, ..features }
    }

    fn launch(&mut self, _settings: &Settings, out: &mut DriverOutput) -> Result<Option<Launch>, Failure> {
        if let Some(title) = self.title.clone() {
            out.events.push(AgentEvent::Tool {
                call: CallKey::of(KEY),
                category: Category::Execute,
                name: "sh".to_owned(),
                title: Some(Text::from(title)),
                locations: Vec::new(),
                input: None,
                parent: None,
            });
        }
        Ok(Some(Launch {
            args: std::mem::take(&mut self.args),
            env: std::mem::take(&mut self.env),
            close_input: true,
            ..Launch::new(Program::Command("/bin/sh".into()), "command")
        }))
    }

    fn line(&mut self, line: Line<'_>, _out: &mut DriverOutput) {
        match line {
            Line::Text(text) => {
                // Keeps the final state of the line on a terminal, because progress bars overwrite themselves.
                let line = text.trim_end_matches('\r');
                self.say(&line[line.rfind('\r').map_or(0, |cr| cr + 1)..]);
                self.say("\n");
            }
            Line::TooLong => self.say("(a line of many MiB was left out)\n"),
        }
    }

    /// A command asks nothing.
    fn answer(&mut self, _key: &AskKey, _replies: &[Reply], _out: &mut DriverOutput) {}

    fn takes_turns(&self) -> bool {
        false
    }

    fn follow_up(&mut self, _prompt: &str, _images: &[Image], _out: &mut DriverOutput) {}

    fn interrupt(&mut self, _out: &mut DriverOutput) {}

    fn finish(&mut self, _out: &mut DriverOutput) {}

    fn tree_gone(&mut self, exit: AgentExit, out: &mut DriverOutput) {
        let rest = self.stream.finish(&self.redactor);
        self.keep(&rest);
        self.cut();
        let state = if exit.code == Some(0) { ToolState::Completed } else { ToolState::Failed };
        let _ = self.output.try_send(self.tail.clone());
        out.events.push(AgentEvent::ToolOver {
            call: CallKey::of(KEY),
            state,
            output: Some(Text::from(std::mem::take(&mut self.tail))),
            facts: ToolFacts { exit_code: exit.code.map(i64::from), ..ToolFacts::default() },
        });
    }

    /// Every exit counts as completed, because the exit status is the result of the step.
    fn exited(&mut self, _exit: AgentExit, _alive: bool, _stderr: &Text) -> TurnOver {
        TurnOver::completed("The command is over.".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{JOINED, VerifyStep, program};
    use crate::agent::{AgentEvent, Driver, DriverOutput, Line, Program};
    use crate::protocol::limits::TOOL_OUTPUT_BYTES;
    use crate::protocol::outbound::AgentExit;
    use crate::protocol::request::{Options, Settings};
    use crate::protocol::words::ToolState;
    use crate::redact::Redactor;
    use crossbeam_channel::bounded;
    use std::path::PathBuf;

    const SECRET: &str = "hunter2-Zq7731/x+y";

    fn settings() -> Settings {
        Options::default().resolve("verify".into(), "command".into(), PathBuf::from("/w"))
    }

    /// The state and the output of a command that prints these lines.
    fn over(lines: impl IntoIterator<Item = String>, exit: AgentExit) -> (ToolState, String) {
        let mut redactor = Redactor::new();
        assert!(redactor.add(SECRET));
        let (sender, receiver) = bounded(1);
        let mut command = VerifyStep::new("make", Vec::new(), redactor, sender);
        for line in lines {
            let mut out = DriverOutput::default();
            command.line(Line::Text(line.into()), &mut out);
        }
        let mut out = DriverOutput::default();
        command.tree_gone(exit, &mut out);
        let Some(AgentEvent::ToolOver { state, output, .. }) = out.events.pop() else { panic!("no end") };
        let output = output.unwrap().shown().to_owned();
        assert_eq!(receiver.try_recv().ok(), Some(output.clone()));
        (state, output)
    }

    const DONE: AgentExit = AgentExit { code: Some(0), signal: None };

    #[test]
    fn the_command_is_an_argument_of_its_own() {
        let (sender, _receiver) = bounded(1);
        let text = "echo \"$(date)\"; exit '3' # x";
        let env = vec![("NAME".to_owned(), "value".to_owned())];
        let mut command = VerifyStep::new(text, env.clone(), Redactor::new(), sender);
        let launch = command.launch(&settings(), &mut DriverOutput::default()).unwrap().unwrap();
        assert_eq!(launch.program, Program::Command("/bin/sh".into()));
        assert_eq!(launch.args, ["-c", JOINED, "sh", text]);
        assert!(launch.close_input && !JOINED.contains(text));
        assert_eq!(launch.env, env, "the variables of the agent's entry");
    }

    #[test]
    fn only_a_bare_name_is_the_program_of_a_command() {
        for (command, name) in [
            ("npm test && ./x", Some("npm")),
            ("  g++-14\ta.cc", Some("g++-14")),
            ("./run.sh", None),
            ("bin/run", None),
            ("PATH=bin:$PATH tool", None),
            ("\"my tool\"", None),
            ("! grep x", None),
            (". ./env", None),
            ("$TOOL x", None),
        ] {
            assert_eq!(program(command), name, "{command}");
        }
    }

    #[test]
    fn only_exit_status_0_passes() {
        let failed = [(Some(1), None), (Some(127), None), (None, Some(9))];
        for (code, signal) in failed {
            assert_eq!(over([], AgentExit { code, signal }).0, ToolState::Failed);
        }
        assert_eq!(over([], DONE).0, ToolState::Completed);
    }

    #[test]
    fn the_last_of_the_output_is_kept_redacted_and_cleaned() {
        let (_, output) = over((0..100_000).map(|n| format!("line {n}")), DONE);
        assert!(output.len() <= TOOL_OUTPUT_BYTES && output.len() > TOOL_OUTPUT_BYTES - 100);
        assert!(output.ends_with("line 99999\n"));
        let (_, output) = over(["\u{1b}[31mred\u{1b}[0m".into(), format!("key {SECRET}."), "10%\r100%\r".into()], DONE);
        assert_eq!(output, "red\nkey [redacted].\n100%\n");
    }

    #[test]
    fn a_secret_is_hidden_wherever_the_output_is_cut() {
        for before in 0..40 {
            let line = "x".repeat(before) + SECRET + &"y".repeat(TOOL_OUTPUT_BYTES - 20);
            let (_, output) = over([line], DONE);
            assert!(output.len() <= TOOL_OUTPUT_BYTES && !output.contains(&SECRET[9..]), "{before}");
        }
    }
}

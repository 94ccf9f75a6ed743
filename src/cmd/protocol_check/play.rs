//! The played program: a run that follows a dialogue in place of an agent.

use super::asking::{parsed, permission};
use super::dialogues::{Course, Dialogue, DialogueStep, Ending, Novelty};
use super::log::{Fact, Log, RunEnd};
use super::pipes::{Heard, Pipes};
use super::player::{EarlyEnd, Playing, Received, RunPlayer, read};
use crate::cli::{Adhoc, AtEof, Output};
use crate::process::tree::nonce;
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::protocol::fields::{Settings, ShownSettings};
use crate::protocol::ids::RunId;
use crate::protocol::inbound::{Addressee, Inbound, Message};
use crate::protocol::outbound::{
    AgentExit, AgentName, Body, Capabilities, Json, Metadata, Outcome, ProgressKind, PromptId, ProtocolVersion,
    Started, Terminal, Text, TurnReport, Unattended, Usage,
};
use crate::protocol::request::{Options, Payload, Problem};
use crate::protocol::words::{PromptState, QuestionKind, Source, Status, StopReason};
use rustix::process::{Signal, getpid, kill_process};
use std::time::{Duration, Instant};

/// The pause inside a slow frame.
const PAUSE: Duration = Duration::from_millis(150);
/// The room in a frame beside its text, in bytes.
const ENVELOPE_BYTES: usize = 1 << 10;

/// The end of the played program.
enum End {
    Outcome(Outcome, u8),
    Vanished(u8),
    Killed,
}

/// Plays a dialogue; returns the exit code. `limit`: the time for an answer.
pub(super) fn play(dialogue: &Dialogue, limit: Duration, log: Log, adhoc: Adhoc, headless: bool) -> u8 {
    let began = Instant::now();
    let mut pipes = Pipes::new(log, RunId::generated(&nonce()), !headless);
    let started = match begin(&mut pipes, adhoc.options, headless) {
        Ok(started) => started,
        Err(outcome) => return refuse(pipes, outcome),
    };
    let Start { options, prompt, id } = started;
    let agent = options.agent.clone().unwrap_or_else(|| "demo".into());
    let settings = options.resolve(prompt, agent, std::env::current_dir().unwrap_or_default());
    pipes.max_bytes = settings.max_frame_bytes;
    let eof_cancels = adhoc.on_eof == AtEof::Cancel;
    let mut player = RunPlayer::new(pipes, settings, eof_cancels);
    player.pipes.note(Fact::Began);
    let end = match run(&mut player, dialogue, limit, id.as_deref()) {
        Ok(end) => end,
        Err(EarlyEnd::Cancelled(reason)) => {
            End::Outcome(Outcome::Cancelled { reason, source: Source::Orchestrator }, 0)
        }
        Err(EarlyEnd::Closed) => return EXIT_UNDELIVERED,
    };
    player.end(end, began.elapsed())
}

/// The run.start, and the id of its message.
struct Start {
    options: Options,
    prompt: String,
    id: Option<String>,
}

/// Waits for run.start. Error: the outcome of a run without one.
fn begin(pipes: &mut Pipes, flags: Options, headless: bool) -> Result<Start, Outcome> {
    if headless {
        let options = Options { interactive: Some(false), ..flags };
        return Ok(Start { options, prompt: "From the command line.".into(), id: None });
    }
    loop {
        let heard = pipes.hear(None);
        let ended = matches!(heard, Heard::Ended { .. });
        let Some(Inbound { id, run, message }) = read(pipes, heard) else {
            if ended {
                let message = "stdin ended before run.start. Send a run.start message.";
                return Err(Outcome::Failed(Failure::new(Code::NoStart, message)));
            }
            continue;
        };
        let Payload { options, wrong, .. } = match message {
            Message::Start(payload) => *payload,
            Message::Malformed(flaw) => {
                let message = format!("The first message is malformed: {}.", flaw.clause());
                return Err(Outcome::Failed(Failure::new(Code::InvalidMessage, message)));
            }
            Message::Unsupported => {
                let message = "The version of the protocol must be \"1\".";
                return Err(Outcome::Failed(Failure::new(Code::UnsupportedVersion, message)));
            }
            Message::Cancel { reason, .. } => return Err(Outcome::Cancelled { reason, source: Source::Orchestrator }),
            Message::Answer(_) | Message::Prompt(_) => {
                pipes.note(Fact::WrongMessage("it is a run.input before run.start".into()));
                continue;
            }
            Message::UnknownType(_) => continue,
        };
        match run {
            Addressee::Run(run) => pipes.set_run(run),
            Addressee::Unnamed => {}
            Addressee::Invalid => {
                return Err(invalid(pipes, Failure::invalid_run_id()));
            }
        }
        if let Some(problem) = wrong.as_ref().map(Problem::message) {
            return Err(invalid(pipes, Failure::new(Code::InvalidRequest, problem)));
        }
        let mut options = options.over(flags.clone());
        let Some(prompt) = options.prompt.take() else {
            return Err(invalid(pipes, Failure::no_prompt()));
        };
        return Ok(Start { options, prompt, id: id.map(|id| id.to_string()) });
    }
}

fn invalid(pipes: &mut Pipes, failure: Failure) -> Outcome {
    pipes.note(Fact::WrongStart(failure.message.text().unredacted().to_owned()));
    Outcome::Failed(failure)
}

/// Ends a run that did not start; returns the exit code.
fn refuse(mut pipes: Pipes, outcome: Outcome) -> u8 {
    let (over, code) = match &outcome {
        Outcome::Failed(failure) => (RunEnd::Failed, failure.code.exit_code()),
        Outcome::Cancelled { .. } | Outcome::Completed { .. } => (RunEnd::Cancelled, 0),
    };
    pipes.note(Fact::RunEnd(over));
    let bytes = pipes.frame(None, Body::Terminal(Box::new(terminal(outcome, Duration::ZERO, Metadata(None), None))));
    if pipes.write(&bytes).is_ok() { code } else { EXIT_UNDELIVERED }
}

fn run(player: &mut RunPlayer, dialogue: &Dialogue, limit: Duration, id: Option<&str>) -> Playing<End> {
    let started = started(player);
    player.emit(id, Body::Started(Box::new(started)))?;
    player.status(Status::Running)?;
    for step in dialogue.steps {
        match step {
            DialogueStep::Say(text) => player.say(*text)?,
            DialogueStep::Slowly(text) => player.say_slowly(text)?,
            DialogueStep::Huge => {
                let text = "x".repeat(player.pipes.max_bytes - ENVELOPE_BYTES);
                player.say(text)?;
            }
            DialogueStep::Novelty(unknown) => player.say_unknown(*unknown)?,
            DialogueStep::Ask(asks, course) => player.ask(parsed(asks), *course, limit)?,
            DialogueStep::Permission => player.ask(vec![permission()], Course::Plain, limit)?,
        }
    }
    if let Ending::Conversation = dialogue.ending
        && !player.settings.conversation
    {
        player.pipes.note(Fact::Skipped("run.start has no `conversation: true`".into()));
    }
    Ok(match dialogue.ending {
        Ending::Failed(exit) => {
            let message = "The agent reported an error. This failure is part of the dialogue.";
            End::Outcome(Outcome::Failed(Failure::new(Code::AgentError, message)), exit)
        }
        Ending::Vanished(exit) => End::Vanished(exit),
        Ending::Killed => End::Killed,
        Ending::Completed(exit) => {
            player.turns()?;
            End::Outcome(completed(), exit)
        }
        Ending::Conversation => {
            player.turns()?;
            End::Outcome(completed(), 0)
        }
    })
}

impl RunPlayer {
    fn new(pipes: Pipes, settings: Settings, eof_cancels: bool) -> RunPlayer {
        RunPlayer {
            pipes,
            settings,
            eof_cancels,
            messages: 0,
            prompts: 0,
            questions: 0,
            waiting: 0,
            no_more: false,
            turns: 0,
        }
    }

    /// Writes a frame in pieces, the first of which ends inside a character.
    fn say_slowly(&mut self, text: &'static str) -> Playing<()> {
        let bytes = self.message(text);
        let inside = bytes.iter().position(|byte| !byte.is_ascii()).map_or(bytes.len() / 2, |at| at + 1);
        let (first, rest) = bytes.split_at(inside);
        let (second, last) = rest.split_at(rest.len() - 1);
        for piece in [first, second, last] {
            self.pipes.write(piece)?;
            // The pause is the test: no event ends it.
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Writes a frame with something that this version does not have.
    fn say_unknown(&mut self, unknown: Novelty) -> Playing<()> {
        let frame = self.message("It may rain.");
        let frame = String::from_utf8(frame).unwrap_or_default();
        let frame = match unknown {
            Novelty::Type => frame.replacen("\"type\":\"run.progress\"", "\"type\":\"run.weather\"", 1),
            Novelty::Kind => frame.replacen("\"kind\":\"text\"", "\"kind\":\"weather\"", 1),
            Novelty::Field => {
                frame.replacen("\"payload\":{", "\"weather\":{\"sky\":\"grey\"},\"payload\":{\"weather\":[1,null],", 1)
            }
        };
        Ok(self.pipes.write(frame.as_bytes())?)
    }

    /// Plays the turns of the prompts that the client sends.
    fn turns(&mut self) -> Playing<()> {
        // Messages that are already here come first, such as a late answer.
        while self.handle(Some(Instant::now()))? {}
        loop {
            self.turns += 1;
            if self.settings.conversation {
                let turn = TurnReport {
                    number: self.turns,
                    outcome: completed(),
                    usage: Usage::default(),
                    completion_detected: false,
                    unattended: Unattended::default(),
                };
                self.progress(ProgressKind::Turn(Box::new(turn)), "The turn is completed")?;
                if self.waiting == 0 && !self.no_more && !self.pipes.ended {
                    self.status(Status::WaitingForPrompt)?;
                }
                while self.waiting == 0 && !self.no_more && !self.pipes.ended {
                    self.handle(None)?;
                }
            }
            if self.waiting == 0 {
                return Ok(());
            }
            self.waiting -= 1;
            let about =
                ProgressKind::Prompt { prompt_id: PromptId(self.prompts - self.waiting), state: PromptState::Sent };
            self.progress(about, "A prompt is sent")?;
            self.say("I heard you.")?;
        }
    }

    /// Handles a message outside questions. `false`: none came in time.
    fn handle(&mut self, until: Option<Instant>) -> Playing<bool> {
        match self.listen(until)? {
            Received::Answer { id, .. } => self.ignore_answer(id.as_deref()).map(|()| true),
            Received::Nothing | Received::TurnCancelled => Ok(true),
            Received::Silence => Ok(false),
        }
    }

    /// Ends the played program; returns the exit code.
    fn end(mut self, end: End, took: Duration) -> u8 {
        let (over, outcome, exit) = match end {
            End::Vanished(exit) => {
                self.over(RunEnd::Vanished);
                return exit;
            }
            End::Killed => (RunEnd::Vanished, completed(), None),
            End::Outcome(outcome, exit) => {
                let over = match outcome {
                    Outcome::Completed { .. } => RunEnd::Completed,
                    Outcome::Failed(_) => RunEnd::Failed,
                    Outcome::Cancelled { .. } => RunEnd::Cancelled,
                };
                (over, outcome, Some(exit))
            }
        };
        let turns = self.settings.conversation.then_some(self.turns);
        let metadata = Metadata(self.settings.metadata.clone().map(Json::from));
        let bytes = self.pipes.frame(None, Body::Terminal(Box::new(terminal(outcome, took, metadata, turns))));
        self.over(over);
        let Some(exit) = exit else {
            let _ = self.pipes.write(&bytes[..bytes.len() / 2]);
            let _ = kill_process(getpid(), Signal::KILL);
            return Code::InternalError.exit_code();
        };
        if self.pipes.write(&bytes).is_ok() { exit } else { EXIT_UNDELIVERED }
    }
}

fn completed() -> Outcome {
    Outcome::Completed {
        text: "I am done.".into(),
        message_id: None,
        text_cut: false,
        structured_output: None,
        stop_reason: StopReason::EndTurn,
    }
}

fn terminal(outcome: Outcome, took: Duration, metadata: Metadata, turns: Option<u64>) -> Terminal {
    Terminal {
        duration_ms: took.as_millis() as u64,
        metadata,
        agent_exit: Some(AgentExit { code: Some(0), signal: None }),
        turns,
        ..Terminal::new(outcome)
    }
}

fn started(player: &RunPlayer) -> Started {
    let settings = &player.settings;
    let yes = Some(true);
    Started {
        agent: AgentName { name: settings.agent.clone(), display_name: "The checker".into(), version: None },
        config: ShownSettings {
            settings: Box::new(settings.clone()),
            cwd: Text::from(settings.cwd.to_string_lossy().into_owned()),
            agent_args: settings.agent_args.iter().map(|arg| Text::from(arg.as_str())).collect(),
        },
        protocol: ProtocolVersion::OURS,
        capabilities: Capabilities {
            conversation: yes,
            steer: yes,
            ..Capabilities::only_asking(QuestionKind::ALL.to_vec())
        },
        metadata: Metadata(settings.metadata.clone().map(Json::from)),
        workflow: None,
        truncated: false,
    }
}

/// Whether a run of this command line can be played. Error: a sentence about the mistake.
pub(super) fn playable(adhoc: &Adhoc, output: Output) -> Result<(), &'static str> {
    if adhoc.workflow.is_some() {
        return Err("The command called a workflow: the dialogues are runs of `spektacular adhoc`.");
    }
    match output {
        Output::Json => Ok(()),
        Output::Cli => Err("The command called `spektacular adhoc` without `--output json`."),
    }
}

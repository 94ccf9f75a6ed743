//! Plays a recording against a run: the agent's lines in order, and the orchestrator's as late as possible.

use super::case::{Case, Directive, fits, with_ids};
use super::world::{DATA, LABEL, Sent, World, exited, killed};
use serde_json::Value;
use spektacular::protocol::request::Options;
use spektacular::recording::Moment;
use spektacular::run::{Event, StopSignal};
use std::collections::VecDeque;

/// The kind of stop that ends a silent simulated agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obeys {
    /// Only SIGKILL.
    Kill,
    /// SIGTERM.
    Terminate,
    /// The end of its stdin.
    InputEnd,
}

pub(crate) struct Player<'a> {
    pub(crate) world: World,
    case: &'a Case,
    pub(crate) script: VecDeque<&'a Directive>,
    /// The number of frames that awaits have passed.
    seen: usize,
    stderr: String,
}

impl<'a> Player<'a> {
    pub(crate) fn new(case: &'a Case, over: Options) -> Player<'a> {
        let cwd = case.recording.header.cwd.as_deref().expect("a recording has a cwd");
        let mut world = World::new(cwd, over, case.agents());
        world.at(case.recording.moments[0].0);
        Player { world, case, script: case.script.iter().collect(), seen: 0, stderr: String::new() }
    }

    /// Plays the whole recording exactly. The error names the place where the run differs.
    pub(crate) fn play(case: &'a Case) -> Result<Player<'a>, String> {
        Player::play_with(case, Options::default())
    }

    /// Plays the whole recording with other options. The agent must receive the same lines.
    pub(crate) fn play_with(case: &'a Case, over: Options) -> Result<Player<'a>, String> {
        let mut player = Player::new(case, over);
        player.begin()?;
        player.world.spawn();
        (0..case.recording.moments.len()).try_for_each(|index| player.moment(index))?;
        player.finish()?;
        Ok(player)
    }

    /// run.start.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.next_directive()
    }

    /// A moment of the recording.
    pub(crate) fn moment(&mut self, index: usize) -> Result<(), String> {
        let case = self.case;
        let (at, moment) = &case.recording.moments[index];
        self.world.tick_until(*at);
        let wrong = |what: String| Err(format!("moment {} of the recording: {what}", index + 1));
        match moment {
            Moment::Host(line) => {
                self.until_sent().or_else(|why| wrong(format!("the run did not send {line}: {why}")))?;
                match self.world.host_mut().sent.pop_front() {
                    Some(Sent::Line(sent)) if without_id(&sent) == without_id(line) => Ok(()),
                    other => wrong(format!("the run sent\n    {other:?}\n  where it had sent\n    {line}")),
                }
            }
            Moment::HostEof => {
                self.until_sent().or_else(|why| wrong(format!("the run did not close the agent's stdin: {why}")))?;
                match self.world.host_mut().sent.pop_front() {
                    Some(Sent::Eof) => Ok(()),
                    other => wrong(format!("the run sent {other:?} where it had closed the agent's stdin")),
                }
            }
            Moment::Spawn(argv) => {
                self.until_spawn().or_else(|why| wrong(format!("no process was started: {why}")))?;
                let args = self.world.due().map(|launch| launch.args.as_slice());
                if args != argv.get(1..) {
                    return wrong(format!("started with {args:?}, not with {argv:?}"));
                }
                self.world.spawn();
                Ok(())
            }
            // Handles the moment at which the host ends the agent.
            Moment::Signal(9 | 15) if self.world.host_mut().sent.is_empty() => {
                while self.world.host_mut().stops.is_empty() {
                    self.next_directive().or_else(|why| wrong(format!("the agent was not stopped: {why}")))?;
                }
                self.agent(moment);
                Ok(())
            }
            _ if !self.world.host_mut().sent.is_empty() => {
                wrong(format!("the run sent too much: {:?}", self.world.host_mut().sent))
            }
            other => {
                self.agent(other);
                Ok(())
            }
        }
    }

    fn agent(&mut self, moment: &Moment) {
        match moment {
            Moment::Agent(line) => self.world.line(line),
            Moment::Stderr(line) => self.stderr.push_str(&format!("{line}\n")),
            Moment::Exit(code) => self.world.gone(exited(*code), &self.stderr),
            Moment::Signal(signal) => self.world.gone(killed(*signal), &self.stderr),
            _ => {}
        }
    }

    /// Performs the orchestrator's action after the recording, which must end the run.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        while !self.world.is_over() && self.will_act() {
            self.next_directive()?;
        }
        if !self.world.is_over() {
            return Err("the recording is over and the run is not".into());
        }
        if let Some(directive) = self.script.iter().find(|directive| directive.acts()) {
            return Err(format!("nothing in the recording needs {directive:?}"));
        }
        Ok(())
    }

    /// Lets the orchestrator act until the run sends something to its agent.
    fn until_sent(&mut self) -> Result<(), String> {
        while self.world.host_mut().sent.is_empty() {
            self.next_directive()?;
        }
        Ok(())
    }

    /// Lets the orchestrator act until the run wants a process started.
    fn until_spawn(&mut self) -> Result<(), String> {
        while self.world.due().is_none() {
            self.next_directive()?;
        }
        Ok(())
    }

    fn next_directive(&mut self) -> Result<(), String> {
        match self.script.pop_front().ok_or("the orchestrator has nothing more to say")? {
            Directive::Send(text) => {
                let line = with_ids(text, &self.world.question_ids());
                self.world.hear(&line);
            }
            Directive::Eof => self.world.step(Event::InputEnded),
            Directive::Signal => self.world.signal(),
            Directive::Await(fields) => {
                let at = self.world.frames[self.seen..].iter().position(|frame| fits(&frame.value, fields));
                self.seen += 1 + at.ok_or_else(|| format!("no frame has {fields:?}"))?;
            }
        }
        Ok(())
    }

    /// Whether the orchestrator will do anything more.
    pub(crate) fn will_act(&self) -> bool {
        self.script.iter().any(|directive| directive.acts())
    }

    /// Drops the orchestrator's remaining actions, except a run.start.
    pub(crate) fn hush(&mut self) {
        let keep = usize::from(self.world.run().is_waiting());
        self.script.truncate(keep);
    }

    /// Plays the agent's remaining lines, whatever the run sends. The agent obeys SIGKILL.
    pub(crate) fn agent_goes_on(&mut self, from: usize) {
        for (at, moment) in &self.case.recording.moments[from..] {
            self.world.tick_until(*at);
            if self.world.is_over() || self.is_killed() {
                break;
            }
            match moment {
                // Performs the orchestrator's remaining actions that still fit.
                Moment::Host(_) | Moment::HostEof => drop(self.until_sent()),
                Moment::Spawn(_) => {
                    let _ = self.until_spawn();
                    self.world.spawn();
                }
                // Without a process nothing can continue.
                _ if !self.world.host_mut().has_process => break,
                other => self.agent(other),
            }
            self.world.host_mut().sent.clear();
        }
        self.agent_is_silent(Obeys::Kill);
    }

    /// Keeps the agent silent and advances the time until the run is over.
    pub(crate) fn agent_is_silent(&mut self, obeys: Obeys) {
        for _ in 0..10_000 {
            if self.world.is_over() {
                return;
            }
            self.world.spawn();
            let term = self.world.host_mut().stops.iter().any(|(_, signal)| *signal == StopSignal::Terminate);
            if !self.world.host_mut().has_process {
                let due = self.world.run().next_deadline();
                due.into_iter().for_each(|due| self.world.tick(due));
            } else if self.is_killed() {
                self.world.gone(killed(9), &self.stderr);
            } else if obeys == Obeys::Terminate && term {
                self.world.gone(killed(15), &self.stderr);
            } else if obeys == Obeys::InputEnd && self.world.host_mut().closed.is_some() {
                self.world.gone(exited(0), &self.stderr);
            } else {
                let due = self.world.run().next_deadline().expect("a run that is not over waits for something");
                self.world.tick(due);
            }
        }
        panic!("the run never ends");
    }

    fn is_killed(&mut self) -> bool {
        self.world.host_mut().stops.iter().any(|(_, signal)| *signal == StopSignal::Kill)
    }
}

/// Removes the id of our own request from a line for the agent, because ids may differ, and replaces images by labels.
fn without_id(line: &str) -> Value {
    let line = &line.replace(DATA, LABEL);
    let mut value: Value = serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned()));
    if value["request"].is_object() {
        value["request_id"] = Value::Null;
    }
    value
}

//! What a run wants done, done: frames, the agent's process, its stdin, its signals.

use super::Session;
use super::ask_socket::AskSocket;
use super::child::Agent;
use super::guard::Guard;
use super::tree::Tree;
use super::writer::Chunk;
use crate::agent::{Launch, Program};
use crate::failure::{Code, Failure};
use crate::protocol::frame::redact;
use crate::protocol::outbound::Body;
use crate::protocol::request::Settings;
use crate::protocol::words::Warning;
use crate::recording::{Header, Moment, Piece};
use crate::run::{Effect, Event, Method};
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

impl Session {
    pub(super) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::RunId(id) => self.stamper.set_run_id(&id),
                Effect::FrameLimit(bytes) => self.frame_limit = bytes,
                Effect::Emit { body, reply_to, measure } => self.emit(*body, reply_to, measure),
                Effect::Said { message, piece, done } => {
                    if self.recorder.is_some() {
                        self.said.push(Piece { message, text: piece, done });
                    }
                }
                Effect::Spawn(launch, settings) => self.to_spawn = Some((launch, settings)),
                Effect::ToAgent(line) => {
                    self.record(|| Moment::Host(line.clone()));
                    if let Some(agent) = &self.agent {
                        agent.send(line);
                    }
                }
                Effect::ToolReplies { call, replies } => {
                    self.asking.iter_mut().for_each(|socket| socket.reply(call, &replies));
                }
                Effect::ToolWithdrawn { call } => {
                    self.asking.iter_mut().for_each(|socket| socket.withdraw(call));
                }
                Effect::CloseAgentInput => self.close_input(),
                Effect::Hurry => self.hurry_git(),
                Effect::Stop(method) => {
                    let signal = match method {
                        Method::Terminate => Signal::TERM,
                        Method::Kill => Signal::KILL,
                    };
                    self.signal_agent(signal);
                }
                Effect::Diagnose(text) => {
                    let clean = self.run.redactor().redact(&text).into_owned();
                    let chunk = self.front.note(&format!("spektacular: {clean}"));
                    self.push(chunk);
                }
            }
        }
    }

    pub(super) fn close_input(&mut self) {
        self.record(|| Moment::HostEof);
        if let Some(agent) = &mut self.agent {
            agent.close_input();
        }
    }

    pub(super) fn emit(&mut self, mut body: Body, reply_to: Option<String>, measure: Option<PathBuf>) {
        if let (Body::Artifact(artifact), Some(path)) = (&mut body, measure) {
            artifact.size_bytes = path.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len());
        }
        if self.outbox.is_overfull() && body.is_heartbeat() {
            // Somebody who does not read needs no sign of life.
            return;
        }
        redact(&mut body, self.run.redactor());
        if let Body::Question(question) = &body {
            self.script.see(question);
        }
        if let Body::Terminal(end) = &body {
            self.session_id = end.session_id.clone();
            self.finished = true;
            if self.run.was_stopped() {
                self.stopping = self.stopping.or(Some(Instant::now()));
            }
        }
        if let Some(mut frame) = self.stamper.stamp(SystemTime::now(), reply_to, body) {
            let chunk = self.front.show(&mut frame, self.frame_limit);
            self.push(chunk);
        }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        if !self.lost && chunk.size() > 0 {
            self.outbox.push(chunk);
        }
    }

    /// run.started goes out first: it must not wait for a process to start.
    pub(super) fn spawn_if_due(&mut self) {
        if self.to_spawn.is_none() || !(self.outbox.is_empty() || self.run.is_stopping()) {
            return;
        }
        let Some((launch, settings)) = self.to_spawn.take() else { return };
        if self.run.is_stopping() || self.lost {
            // There is nothing to stop: the run ends as it was decided.
            let message = "The run was stopped before the agent was started.";
            return self.step(Event::SpawnFailed(Failure::new(Code::InternalError, message)));
        }
        self.spawn(&launch, &settings);
    }

    /// Opens the debug log of this run, if one is wanted. Without it the run goes on.
    fn open_debug_log(&mut self, agent: &str) {
        let Some(log) = self.debug_log.take() else { return };
        match log.open(agent, SystemTime::now()) {
            Ok(file) => self.recorder.get_or_insert_default().add(file),
            Err(_) => {
                let text =
                    "The run has no debug log: correct `debug.log_dir`, or make it a folder that you may write to";
                self.step(Event::Warn(Warning::UnsupportedOption, text.into()));
            }
        }
    }

    pub(super) fn spawn(&mut self, launch: &Launch, settings: &Settings) {
        // Before the state of the work tree is taken: the log is no work of the agent's.
        self.open_debug_log(&settings.agent);
        let first = self.watch.is_idle();
        if first {
            // First of all: the time of a file is coarse, and what the agent changes must be newer than this.
            self.watch.begin(&settings.cwd);
        }
        let mut tree = Tree::before_spawn(self.nonce.clone());
        if first {
            // Without a guard the run goes on: it only matters if this process is killed.
            self.guard = Guard::start(&self.nonce, self.asking.as_ref().map(AskSocket::folder)).ok();
        }
        if let Some(guard) = &self.guard {
            tree.spare(guard.pid());
        }
        (self.end, self.swept_at, self.stderr) = Default::default();
        let wants_stderr = self.mirror_stderr || self.recorder.is_some();
        match Agent::spawn(launch, settings, tree, &self.nonce, wants_stderr) {
            Err(failure) => self.step(Event::SpawnFailed(failure)),
            Ok(agent) => {
                if let Some(guard) = &mut self.guard {
                    guard.leader(agent.pid());
                }
                self.agent = Some(agent);
                let argv = self.argv(launch);
                if first {
                    self.record_header(launch.driver, argv, settings);
                } else {
                    self.record(|| Moment::Spawn(argv));
                }
                self.step(Event::Spawned);
                let first = launch.send.iter().cloned().map(Effect::ToAgent).collect();
                self.carry_out(first);
                if launch.close_input {
                    self.close_input();
                }
            }
        }
    }

    /// The command line, as it may be seen.
    fn argv(&self, launch: &Launch) -> Vec<String> {
        let program = match &launch.program {
            Program::Command(name) => name.clone(),
            Program::Myself => "spektacular".into(),
        };
        let redactor = self.run.redactor();
        std::iter::once(&program).chain(&launch.args).map(|arg| redactor.redact(arg).into_owned()).collect()
    }

    fn record_header(&mut self, driver: &str, argv: Vec<String>, settings: &Settings) {
        let cwd = Some(self.run.redactor().redact(&settings.cwd.to_string_lossy()).into_owned());
        let header = Header { driver: driver.into(), agent_version: None, argv, cwd };
        if let Some(recorder) = &mut self.recorder {
            recorder.header(&header);
        }
    }
}

//! Carries out the effects of a run: delivers its frames to the peer, and drives the agent's process, stdin and signals.

use super::Conductor;
use crate::agent::Launch;
use crate::clean::one_line;
use crate::engine::host::Host;
use crate::engine::peer::{InAdvance, Outgoing, Peer};
use crate::engine::{images, overwritten};
use crate::protocol::failure::{Code, Failure};
use crate::protocol::image::with_data;
use crate::protocol::limits::KEPT_BYTES;
use crate::protocol::outbound::Body;
use crate::protocol::redacted::Redacted;
use crate::protocol::request::Settings;
use crate::protocol::words::Warning;
use crate::recording::{Header, MessagePiece, Moment};
use crate::run::{Effect, Event, Origin};
use std::ops::DerefMut;
use std::path::PathBuf;

impl<P: DerefMut<Target: Peer>, H: Host> Conductor<P, H> {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::RunId(id) => self.frame_out.run_id = id,
            Effect::FrameLimit(bytes) => self.frame_out.frame_limit = bytes,
            Effect::Emit { body, reply_to, measure } => self.deliver(body, reply_to.as_deref(), measure),
            Effect::Said { message, piece, done } => {
                self.recordings.piece(MessagePiece { message: message.0, text: piece, done })
            }
            Effect::Spawn(launch, settings) => self.agent.due = Some((launch, settings)),
            Effect::Checkpoint(order) => self.host.checkpoint(order, self.recordings.own()),
            Effect::HoldSession(id) => self.host.hold_session(&id),
            Effect::Attach(images) => self.agent.images = images,
            Effect::ToAgent(line) => self.send(line),
            Effect::ToolReplies { call, replies } => self.host.reply(call, &replies),
            Effect::ToolWithdrawn { call } => self.host.withdraw(call),
            Effect::CloseAgentInput => self.close_input(),
            Effect::Hurry => self.host.hurry(self.run.is_stopping()),
            Effect::Rest => self.agent.cannot_rest = !self.host.rest(),
            Effect::HandOver => self.agent.hands_over = true,
            Effect::SignalTree(signal) => self.host.signal_tree(signal),
            Effect::Note(text) => {
                if let Some(screen) = self.peer.screen() {
                    self.frame_out.outbox.push(screen.debug(&format!("spektacular: {text}")));
                }
                self.record(|| Moment::Note(text));
            }
            Effect::Diagnose(text) => {
                // A folder's name may contain escape sequences.
                let clean = self.run.redactor().redact(&one_line(&text)).into_owned();
                self.note(&format!("spektacular: {clean}"));
            }
        }
    }

    fn send(&mut self, line: String) {
        if self.host.unsent() > KEPT_BYTES {
            let message = "The agent does not read its input, and more than 32 MiB are waiting: start the run again.";
            self.agent.unsent = Some(Failure::new(Code::ResourceExhausted, message));
            return;
        }
        match with_data(&line, &self.agent.images, |image| images::content(image, &self.host)) {
            Ok(None) => {
                self.record(|| Moment::Host(line.clone()));
                self.host.send(line);
            }
            Ok(Some(whole)) => {
                self.agent.images.clear();
                // A recording has no use for the data.
                self.record(|| Moment::Host(line));
                self.host.send(whole);
            }
            Err(failure) => self.agent.unsent = Some(failure),
        }
    }

    pub(super) fn refuse_unsent(&mut self) {
        if let Some(failure) = self.agent.unsent.take() {
            self.step(Event::Refused(failure));
        }
    }

    fn close_input(&mut self) {
        self.record(|| Moment::HostEof);
        self.host.close_input();
    }

    fn deliver(&mut self, mut body: Body, reply_to: Option<&str>, measure: Option<PathBuf>) {
        if self.frame_out.finished {
            debug_assert!(false, "a body after the terminal one");
            return;
        }
        if let (Body::Artifact(artifact), Some(path)) = (&mut body, measure) {
            artifact.size_bytes = self.host.size(&path);
        }
        // Nobody reads stdout, so nobody needs a heartbeat.
        if self.frame_out.outbox.drops(&body) || (self.frame_out.outbox.is_overfull() && body.is_heartbeat()) {
            return;
        }
        if let (Body::Question(question), Some(settings)) = (&mut body, self.run.settings())
            && let Some(subject) = &mut question.ask.subject
        {
            overwritten::show(subject, |path, room| self.host.present(path, settings, room));
        }
        let mut body = Redacted::new(body, self.run.redactor());
        let mut in_advance = None;
        match &*body {
            Body::Question(question) => in_advance = self.answers.see(question),
            Body::Terminal(end) => {
                self.frame_out.terminal = Some((**end).clone());
                self.frame_out.finished = true;
            }
            Body::Started(_) | Body::Progress(_) | Body::Artifact(_) => {}
        }
        if self.peer.screen().is_some() {
            body.redact_session(self.run.redactor());
        }
        if let Some(InAdvance::Value(value)) = &mut in_advance {
            *value = self.run.redactor().redact(value).into_owned();
        }
        let at = self.host.date();
        let (run_id, max_bytes) = (&self.frame_out.run_id, self.frame_out.frame_limit);
        let outgoing = Outgoing { body: &mut body, reply_to, run_id, max_bytes, at, in_advance };
        self.peer.show(outgoing, &mut self.frame_out.outbox);
        self.run.reuse(body.into_body());
    }

    /// Starts the agent if one is due. run.started is written first, and does not wait for the process.
    pub fn spawn_if_due(&mut self) {
        if self.agent.due.is_none() {
            return;
        }
        let stopping = self.run.is_stopping();
        let is_ready = self.frame_out.outbox.is_empty() && !self.host.holds_back();
        if !(is_ready || stopping) {
            return;
        }
        let Some((launch, settings)) = self.agent.due.take() else { return };
        if stopping || self.is_lost() {
            // No process was started, so the run ends with its outcome at once.
            let message = "The run was stopped before the agent started: run it again.";
            return self.step(Event::SpawnFailed(Failure::new(Code::InternalError, message)));
        }
        self.spawn(&launch, &settings);
    }

    fn spawn(&mut self, launch: &Launch, settings: &Settings) {
        let (project, redactor) = (self.project.as_deref(), self.run.redactor());
        self.incomplete_recording |= !self.recordings.change_agent(&settings.agent, project, redactor);
        // Opened before git records the baseline, because the log is not the agent's work.
        self.open_debug_log(&settings.agent);
        self.agent.stderr = Default::default();
        if self.recordings.is_on() {
            self.run.recorded();
        }
        let wants_stderr = self.agent.mirror_stderr || self.recordings.is_on() || launch.reads_stderr;
        if let Err(failure) = self.host.spawn(launch, settings, wants_stderr) {
            return self.step(Event::SpawnFailed(failure));
        }
        let is_first = self.recordings.header.is_none();
        self.agent.spawned_at.get_or_insert_with(|| self.host.now());
        let redactor = self.run.redactor();
        let argv = launch.words().map(|word| redactor.redact(word).into_owned()).collect();
        if is_first {
            let cwd = Some(redactor.redact(&settings.cwd.to_string_lossy()).into_owned());
            self.recordings.header(Header { driver: launch.driver.into(), agent_version: None, argv, cwd });
        } else {
            self.record(|| Moment::Spawn(argv));
        }
        self.step(Event::Spawned);
        if let Some(package) = self.host.npx_package() {
            self.step(Event::SpawnedByNpx(package));
        }
        self.agent.images.clone_from(&launch.images);
        launch.send.iter().for_each(|line| self.send(line.clone()));
        self.refuse_unsent();
        if launch.close_input {
            self.close_input();
        }
    }

    pub(super) fn open_debug_log(&mut self, agent: &str) {
        if self.recordings.open_debug_log(agent, self.host.date()).is_err() {
            let text = "Cannot write the debug log: set `debug.log_dir` to a directory that you may write to";
            self.step(Event::Warn(Origin::default(), Warning::UnsupportedOption, text.into()));
        }
    }

    pub(super) fn record(&mut self, moment: impl FnOnce() -> Moment) {
        self.recordings.moment(self.host.now(), moment);
    }

    pub(super) fn complete_recording(&mut self) {
        self.recordings.write_complete_lines(self.run.redactor(), false);
    }
}

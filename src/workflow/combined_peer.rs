//! The peer that makes one run of several: one run.started, one terminal frame, and between them the frames of every
//! part. It also collects the facts about the parts that a workflow needs.

use crate::agent::registry::Agent;
use crate::engine::{Outbox, Outgoing, Peer, ScreenPeer};
use crate::protocol::failure::Failure;
use crate::protocol::fields::field;
use crate::protocol::ids::RunId;
use crate::protocol::limits::ARTIFACTS;
use crate::protocol::outbound::{
    ArtifactRef, Body, MessageId, Outcome, Progress, ProgressKind, Terminal, Text, Usage, WorkflowEnd, WorkflowStarted,
};
use crate::protocol::question::{Answer, Decision};
use crate::protocol::redacted::Redacted;
use crate::protocol::request::Settings;
use crate::protocol::terms::sentence;
use crate::protocol::unknown::UnknownNames;
use crate::protocol::words::{Category, Level, OnQuestionTimeout, Status, ToolState, Warning, WorkflowKind};
use crate::protocol::workflow::{WorkflowFields, WorkflowOptions, WorkflowSettings};
use crate::redact::Redactor;
use serde_json::value::RawValue;
use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Checks a run.start for a workflow, and may change its settings.
pub(super) type Admit<'p> =
    Box<dyn FnOnce(&mut Settings, &Agent, WorkflowSettings) -> Result<WorkflowStarted, Failure> + 'p>;

pub(super) struct Opened {
    pub(super) run_id: RunId,
    pub(super) settings: Settings,
    pub(super) agent: Agent,
}

/// A part of the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    /// Waits for run.start.
    Opening,
    Session,
    /// The end of an agent whose process stayed after its last turn.
    Leaving,
    /// A step without the agent, perhaps for a phase.
    Step(Option<String>),
    /// The terminal frame.
    Closing,
}

/// The facts that the workflow learns from the frames of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartSeen {
    /// The categories of the tools that were completed.
    pub completed: BTreeSet<Category>,
    /// The first changed files that were reported, except hidden ones.
    pub files: Vec<ArtifactRef>,
}

pub(super) struct CombinedPeer<'p> {
    peer: &'p mut dyn Peer,
    kind: WorkflowKind,
    /// The workflow fields that the command line sets.
    flags: WorkflowOptions,
    admit: Option<Admit<'p>>,
    admitted: Option<(Settings, Agent, WorkflowStarted)>,
    pub(super) opened: Option<Opened>,
    pub(super) part: PartKind,
    /// Files that are never reported, as frames show their paths. A folder ends with a slash.
    pub(super) hidden: Vec<String>,
    pub(super) seen: PartSeen,
    /// The number of denied permissions in all parts.
    pub(super) denied: u64,
    /// The usage of the finished parts.
    pub(super) usage: Usage,
    /// A hash of every reported change; `artifacts` has the first changes for the terminal frame.
    reported: HashSet<u64>,
    hasher: RandomState,
    pub(super) artifacts: Vec<ArtifactRef>,
    /// The warnings about unsupported options so far, because every session repeats them.
    warned: HashSet<String>,
    status: Option<Status>,
    /// Whether this part showed a text from the agent.
    said: bool,
    /// The number of messages that this peer made from results.
    results: u64,
}

impl<'p> CombinedPeer<'p> {
    pub(super) fn new(peer: &'p mut dyn Peer, kind: WorkflowKind, flags: WorkflowOptions, admit: Admit<'p>) -> Self {
        CombinedPeer {
            peer,
            kind,
            flags,
            admit: Some(admit),
            admitted: None,
            opened: None,
            part: PartKind::Opening,
            hidden: Vec::new(),
            seen: PartSeen::default(),
            denied: 0,
            usage: Usage::default(),
            reported: HashSet::new(),
            hasher: RandomState::new(),
            artifacts: Vec::new(),
            warned: HashSet::new(),
            status: None,
            said: false,
            results: 0,
        }
    }

    pub(super) fn begin(&mut self, part: PartKind) {
        self.part = part;
        self.said = false;
        self.seen = PartSeen::default();
    }

    fn started(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let Some((settings, agent, workflow)) = self.admitted.take() else { return };
        self.opened = Some(Opened { run_id: outgoing.run_id.clone(), settings, agent });
        self.change(outgoing, out, |body| {
            if let Body::Started(started) = body {
                started.workflow = Some(Box::new(workflow));
            }
        });
    }

    fn change(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox, change: impl FnOnce(&mut Body)) {
        let mut body = (**outgoing.body).clone();
        change(&mut body);
        // The body's own texts are redacted already; the added ones come from redacted frames or from this file.
        let mut body = Redacted::new(body, &Redactor::new());
        self.peer.show(Outgoing { body: &mut body, ..outgoing }, out);
    }

    fn ended(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        if self.part == PartKind::Closing {
            return self.peer.show(outgoing, out);
        }
        let Body::Terminal(end) = &**outgoing.body else { return };
        if self.opened.is_none() {
            let known = end.outcome.refused_target();
            let admitted = self.admitted.take().and_then(|(.., workflow)| workflow.target);
            let end = WorkflowEnd { target: known.or(admitted), ..WorkflowEnd::unknown(self.kind) };
            return self.change(outgoing, out, |body| {
                if let Body::Terminal(terminal) = body {
                    terminal.workflow = Some(Box::new(end));
                }
            });
        }
        self.usage = self.usage.plus(&end.usage);
        if let Some(text) = self.unsaid(end) {
            // An agent that sends no messages has its text only in the result.
            self.results += 1;
            let about =
                ProgressKind::Text { message_id: MessageId::Result(self.results), done: true, withdrawn: false };
            let progress = Body::Progress(Box::new(Progress::new(about, text)));
            let mut body = Redacted::new(progress, &Redactor::new());
            self.peer.show(Outgoing { body: &mut body, ..outgoing }, out);
        }
    }

    /// The text of a result that no message showed.
    fn unsaid(&self, end: &Terminal) -> Option<Text> {
        let Outcome::Completed { text, .. } = &end.outcome else { return None };
        let shows = self.level() >= Level::Normal && self.part == PartKind::Session && !self.said;
        (shows && !text.is_blank()).then(|| text.clone())
    }

    fn level(&self) -> Level {
        self.opened.as_ref().map_or(Level::Normal, |opened| opened.settings.progress)
    }

    fn artifact(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let Body::Artifact(artifact) = &**outgoing.body else { return };
        let (path, action) = (artifact.path.shown().to_owned(), artifact.action);
        if self.hides(&path) {
            return;
        }
        let file = ArtifactRef { path: Text::from(path.clone()), action };
        // A repeated change is not reported again, but shows that the part did something.
        if self.seen.files.len() < ARTIFACTS {
            self.seen.files.push(file.clone());
        }
        if !self.reported.insert(self.hasher.hash_one((path, action))) {
            return;
        }
        if self.artifacts.len() < ARTIFACTS {
            self.artifacts.push(file);
        }
        let id = format!("a_{}", self.reported.len());
        self.change(outgoing, out, |body| {
            if let Body::Artifact(artifact) = body {
                artifact.artifact_id = id;
            }
        });
    }

    /// Whether more changes were reported than the terminal frame lists.
    pub(super) fn has_more_artifacts(&self) -> bool {
        self.reported.len() > self.artifacts.len()
    }

    fn hides(&self, path: &str) -> bool {
        let is = |hidden: &String| match hidden.strip_suffix('/') {
            Some(folder) => path == folder || path.starts_with(hidden.as_str()),
            None => path == hidden,
        };
        self.part != PartKind::Closing && self.hidden.iter().any(is)
    }

    fn progress(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        let Body::Progress(progress) = &**outgoing.body else { return };
        match &progress.about {
            ProgressKind::Status { status, .. } => {
                let again = self.status == Some(*status) || (*status == Status::Starting && self.status.is_some());
                if again {
                    return;
                }
                self.status = Some(*status);
            }
            ProgressKind::Warning { code: Warning::EmptyResult, .. } => return,
            ProgressKind::Warning { code: Warning::LeakedProcess, .. } => match &self.part {
                // A process that git starts does not belong to the agent.
                PartKind::Step(None) => return,
                PartKind::Step(Some(phase)) => {
                    let text = format!("A process outlived a command of {phase} and was stopped");
                    return self.change(outgoing, out, |body| {
                        if let Body::Progress(progress) = body {
                            progress.text = Text::from(text);
                        }
                    });
                }
                PartKind::Opening | PartKind::Session | PartKind::Leaving | PartKind::Closing => {}
            },
            ProgressKind::Warning { code: Warning::UnsupportedOption, .. }
                if !self.warned.insert(progress.text.shown().to_owned()) && self.part != PartKind::Opening =>
            {
                return;
            }
            ProgressKind::Resolved { value: Some(Answer::Decision(Decision::Deny)), .. } => self.denied += 1,
            ProgressKind::Text { .. } => self.said = true,
            ProgressKind::Tool { state, category, .. } => {
                if *state == ToolState::Completed {
                    self.seen.completed.insert(*category);
                }
                if let PartKind::Step(Some(phase)) = &self.part {
                    let phase = phase.clone();
                    return self.change(outgoing, out, |body| mark(body, phase));
                }
            }
            ProgressKind::Usage(usage) => {
                let all = self.usage.plus(usage);
                return self.change(outgoing, out, |body| {
                    if let Body::Progress(progress) = body {
                        progress.text = Text::from(all.line());
                        progress.about = ProgressKind::Usage(all);
                    }
                });
            }
            ProgressKind::Warning { .. }
            | ProgressKind::Resolved { .. }
            | ProgressKind::Session { .. }
            | ProgressKind::Heartbeat { .. }
            | ProgressKind::Reasoning { .. }
            | ProgressKind::Plan(_)
            | ProgressKind::Todo(_)
            | ProgressKind::Prompt { .. }
            | ProgressKind::Turn(_)
            | ProgressKind::Phase { .. } => {}
        }
        self.peer.show(outgoing, out);
    }
}

/// Lets a draft be written although nobody answers: the agent infers what it asked.
fn endure_silence(settings: &mut Settings) {
    settings.closed_input_declines = true;
    if !settings.sets_on_question_timeout {
        settings.on_question_timeout = OnQuestionTimeout::Continue;
    }
}

/// Names the phase of a command.
fn mark(body: &mut Body, id: String) {
    if let Body::Progress(progress) = body
        && let ProgressKind::Tool { phase, .. } = &mut progress.about
    {
        *phase = Some(id);
    }
}

impl Peer for CombinedPeer<'_> {
    fn admit(
        &mut self,
        settings: &mut Settings,
        agent: &Agent,
        workflow: Option<&RawValue>,
        said: &[&'static str],
        unknown: &mut UnknownNames,
        redactor: &Redactor,
    ) -> Result<(), Failure> {
        let Some(admit) = self.admit.take() else { return Ok(()) };
        self.peer.admit(settings, agent, None, said, unknown, redactor)?;
        let read = WorkflowFields::read(self.kind, workflow);
        unknown.append(read.unknown);
        if let Some(wrong) = read.wrong {
            return Err(super::invalid(wrong));
        }
        let refused = [
            (field!(session_id), true),
            (field!(fork), settings.fork),
            (field!(images), true),
            (field!(output_schema), true),
            (field!(raw_prompt), settings.raw_prompt),
            (field!(conversation), settings.conversation),
        ];
        if let Some((field, _)) = refused.into_iter().find(|(field, is_set)| *is_set && said.contains(&field.name)) {
            return Err(Failure::invalid_start(sentence!(
                "{field} cannot be used with a workflow, which makes its own sessions and prompts: leave it out.",
                field = field
            )));
        }
        // The configuration may set these for runs outside of workflows.
        (settings.session_id, settings.output_schema, settings.raw_prompt) = (None, None, false);
        (settings.conversation, settings.fork) = (false, false);
        let options = read.options.over(std::mem::take(&mut self.flags)).resolved();
        if matches!(self.kind, WorkflowKind::Spec | WorkflowKind::Plan) {
            endure_silence(settings);
        }
        let mut workflow = admit(settings, agent, options)?;
        workflow.redact(redactor);
        settings.is_part = true;
        self.admitted = Some((settings.clone(), agent.clone(), workflow));
        Ok(())
    }

    fn show(&mut self, outgoing: Outgoing<'_>, out: &mut Outbox) {
        match &**outgoing.body {
            Body::Started(_) => self.started(outgoing, out),
            Body::Terminal(_) => self.ended(outgoing, out),
            Body::Artifact(_) => self.artifact(outgoing, out),
            Body::Progress(_) => self.progress(outgoing, out),
            Body::Question(_) => self.peer.show(outgoing, out),
        }
    }

    fn dropped(&mut self, frames: u64) {
        self.peer.dropped(frames);
    }

    fn screen(&mut self) -> Option<&mut dyn ScreenPeer> {
        self.peer.screen()
    }
}

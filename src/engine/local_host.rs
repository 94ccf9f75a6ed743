//! The host on this machine: the agent's process, its pipes and its tree; the guard; git; the socket of the ask-server.

mod checkpoints;
mod conductor_calls;
mod rest;

use super::ask_connections::{AskConnections, AskEvent};
use super::ask_socket::AskSocket;
use super::changes::{Waiting, Watch};
use super::server_reports::{ServerReport, ServerReports};
use super::session_lock::SessionLocks;
use crate::io::files::FileLock;
use crate::io::signals::suspend_ourselves;
use crate::process::agent_lines::AgentLines;
use crate::process::child::{AgentProcess, ProcessEvent};
use crate::process::git::{Changes, GitResult, Incomplete};
use crate::process::guard::Guard;
use crate::process::readers::AgentOutput;
use crate::process::sandbox::trusted::Trusted;
use crate::process::scratch::SocketFolder;
use crate::process::tree::{self, Inherited, Signal, Swept};
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::AgentExit;
use crate::protocol::words::Warning;
use crate::run::{AgentEnd, FoundFiles, TERM_GRACE};
use crate::system::{ControlGroup, lost_sight};
use crossbeam_channel::{Receiver, never};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use checkpoints::CheckpointWork;
pub(super) use checkpoints::Done;
use rest::Rest;
pub(super) use rest::Rested;

/// The time limit for the sweep of processes that outlived the agent, after its own end and after a stop.
const LEAK_LIMIT: Duration = Duration::from_secs(2);
const LEAK_LIMIT_STOPPED: Duration = Duration::from_millis(500);

const NO_GUARD: &str = "The guard is not running: if spektacular is killed, the agent and its tools keep running";

#[derive(Default)]
pub(crate) struct LocalHost {
    clocks: Clocks,
    /// The marker of this run's processes.
    nonce: String,
    pub(super) agent: Option<AgentProcess>,
    sessions: SessionLocks,
    worktree: Option<FileLock>,
    /// The session that the agent writes.
    session: Option<SessionId>,
    asking: Option<AskSocket>,
    reports: Option<ServerReports>,
    sockets: Option<Arc<SocketFolder>>,
    guard: Option<Guard>,
    cgroup: Option<ControlGroup>,
    inherited: Inherited,
    /// Warnings about processes that may outlive the run, or about what the agent of a sandbox changed.
    pub(super) troubles: Vec<(Warning, String)>,
    /// The state of what a person trusts where the agent of a sandbox can change it.
    trusted: Option<Trusted>,
    end: EndParts,
    rest: Rest,
    pub(super) rested: Option<Rested>,
    /// `None`: the tree still exists, or never existed.
    pub(super) tree_gone_at: Option<Instant>,
    /// The time of the last kill, or of the later beginning of the sweep.
    killed_at: Option<Instant>,
    /// The last time at which the loop handled output, or could not.
    busy_at: Option<Instant>,
    pub(super) watch: Watch,
    checkpoints: CheckpointWork,
}

struct Clocks {
    began: Instant,
    /// The total time for which this process was suspended. The run's clock does not count it.
    suspended: Duration,
    /// Whether this process was suspended before the last reading.
    was_suspended: bool,
    /// The time of the current wake-up, since the run began and as a date. All events of a wake-up have the same time.
    now: (Duration, SystemTime),
}

impl Default for Clocks {
    fn default() -> Clocks {
        let now = (Duration::ZERO, SystemTime::now());
        Clocks { began: Instant::now(), suspended: Duration::ZERO, was_suspended: false, now }
    }
}

/// The parts arrive in any order.
#[derive(Default)]
struct EndParts {
    /// Whether the agent's own process exited.
    exited: bool,
    /// The time of the first signal before the agent exited, so that its other processes had no chance to exit with it.
    forced: Option<Instant>,
    swept: Option<Swept>,
    stdout: bool,
    stderr: Option<String>,
}

pub(super) type EndWithFiles = (AgentEnd, FoundFiles);

impl LocalHost {
    pub(crate) fn new() -> LocalHost {
        LocalHost { nonce: tree::nonce(), ..LocalHost::default() }
    }

    /// `inherited`: the children that this process already has.
    pub(super) fn beside(inherited: &Inherited) -> LocalHost {
        LocalHost { inherited: inherited.clone(), ..LocalHost::new() }
    }

    pub(super) fn begin_part(&mut self) {
        self.watch = Watch::default();
    }

    /// Starts the guard, unless that of an earlier part of the run still watches.
    fn begin_guard(&mut self) {
        if self.guard.is_some() {
            return;
        }
        self.cgroup = self.cgroup.take().or_else(|| ControlGroup::create(&self.nonce));
        // The run continues without a guard, which is needed only if this process is killed.
        let folder = self.sockets.as_deref().map(SocketFolder::path);
        self.guard = Guard::start(&self.nonce, self.cgroup.as_ref(), folder).ok();
        let unguarded = lost_sight().or(self.guard.is_none().then_some(NO_GUARD));
        self.troubles.extend(unguarded.map(|text| (Warning::Unguarded, text.to_owned())));
    }

    /// The time since the run's clock began.
    pub(super) fn elapsed(&self) -> Duration {
        self.clocks.began.elapsed().saturating_sub(self.clocks.suspended)
    }

    /// Never ready after the end of the output.
    pub(super) fn output(&self) -> Receiver<AgentOutput> {
        let is_read = self.end.stdout && self.end.stderr.is_some();
        self.agent.as_ref().filter(|_| !is_read).map_or_else(never, |agent| agent.data.clone())
    }

    pub(super) fn has_output(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| !agent.data.is_empty())
    }

    /// Never ready once the process tree is gone.
    pub(super) fn process(&self) -> Receiver<ProcessEvent> {
        self.agent.as_ref().filter(|_| self.end.swept.is_none()).map_or_else(never, |agent| agent.process.clone())
    }

    /// Reads the clocks, after the loop has waited or a process was started. `suspended`: whether this process was
    /// suspended since the last reading. The length of a suspension is unknown, so the run's clock skips the whole time
    /// since then.
    pub(super) fn read_clocks(&mut self, suspended: impl FnOnce() -> bool) {
        let clocks = &mut self.clocks;
        let passed = clocks.began.elapsed();
        let suspended = suspended();
        // A suspension right after the clock was read shows only in the next reading.
        if std::mem::replace(&mut clocks.was_suspended, suspended) || suspended {
            clocks.suspended = passed.saturating_sub(clocks.now.0);
        }
        clocks.now = (passed.saturating_sub(clocks.suspended), SystemTime::now());
    }

    /// The instant at which the run's clock will show this time.
    pub(super) fn at(&self, time: Duration) -> Instant {
        self.clocks.began + self.clocks.suspended + time
    }

    pub(super) fn taken(&mut self, lines: AgentLines) {
        if let Some(agent) = &self.agent {
            agent.taken(lines);
        }
    }

    /// Handles the exit of the agent's own process: sweeps the processes that outlived it, but not our git.
    pub(super) fn exited(&mut self, stopping: bool) {
        self.end.exited = true;
        if let Rest::Awaited { .. } = self.rest {
            self.rest = Rest::None;
        }
        self.watch.exited();
        if stopping {
            self.watch.end();
        }
        self.checkpoints.give_up();
        if self.watch.is_busy() {
            return self.watch.wait(Waiting::Sweep);
        }
        self.sweep(stopping);
    }

    fn sweep(&mut self, stopping: bool) {
        let limit = if stopping { LEAK_LIMIT_STOPPED } else { LEAK_LIMIT };
        let grace = match self.end.forced {
            _ if self.killed_at.is_some() => Duration::ZERO,
            Some(terminated) => TERM_GRACE.saturating_sub(terminated.elapsed()),
            None if stopping => {
                self.signal(Signal::TERM);
                TERM_GRACE
            }
            None => Duration::ZERO,
        };
        self.killed_at = self.killed_at.map(|_| Instant::now());
        if let Some(agent) = &mut self.agent {
            agent.sweep(grace, limit);
        }
    }

    pub(super) fn swept(&mut self, swept: Swept) -> Option<AgentEnd> {
        self.end.swept = Some(swept);
        self.tree_gone_at = Some(Instant::now());
        self.tree_gone()
    }

    pub(super) fn stdout_ended(&mut self) -> Option<AgentEnd> {
        self.end.stdout = true;
        self.tree_gone()
    }

    pub(super) fn stderr_ended(&mut self, tail: String) -> Option<AgentEnd> {
        self.end.stderr = Some(tail);
        self.tree_gone()
    }

    /// Notes that the loop handles output, or that an orchestrator that does not read keeps it from that. It matters once
    /// the tree is gone.
    pub(super) fn busy_with_output(&mut self) {
        self.busy_at = self.tree_gone_at.map(|_| Instant::now());
    }

    /// The time at which a stopped run, or one whose agent was killed, waits no longer for the parts of the agent's end:
    /// exit and sweep together get two leak limits after the last kill, and then the readers one in which they bring
    /// nothing.
    pub(super) fn readers_due(&self, stopping: bool) -> Option<Instant> {
        self.agent.as_ref()?;
        match (self.tree_gone_at, self.killed_at) {
            (Some(gone), killed) if stopping || killed.is_some() => {
                Some(self.busy_at.map_or(gone, |busy| busy.max(gone)) + LEAK_LIMIT_STOPPED)
            }
            (None, Some(killed)) if self.watch.until.is_none() => Some(killed + 2 * LEAK_LIMIT_STOPPED),
            (Some(_) | None, _) => None,
        }
    }

    /// Continues without the parts of the agent's end that have not arrived.
    pub(super) fn give_up_readers(&mut self) -> Option<AgentEnd> {
        if self.end.swept.is_none() {
            let swept = self.agent.as_mut()?.sweep_here(LEAK_LIMIT_STOPPED);
            self.swept(swept);
        }
        self.end.stdout = true;
        self.end.stderr.get_or_insert_default();
        self.tree_gone()
    }

    fn tree_gone(&mut self) -> Option<AgentEnd> {
        let EndParts { forced, swept: Some(swept), stdout: true, stderr: Some(tail), .. } = &self.end else {
            return None;
        };
        let mut agent = self.agent.take()?;
        // Before the terminal frame, after which a run may resume the session at once.
        self.sessions = SessionLocks::default();
        let leaked = forced.is_none() && swept.killed + swept.left > 0;
        let changed = self.trusted.as_mut().and_then(Trusted::warning);
        self.troubles.extend(changed.map(|text| (Warning::ProtectedChanged, text)));
        let lost_session = self.session.take().is_some_and(|id| !agent.keeps(&id));
        Some(AgentEnd { exit: agent.reap(), leaked, lost_session, stderr: tail.clone().into() })
    }

    /// Kills the agent's whole process tree at once. Returns the exit of its own process.
    pub(super) fn end_now(&mut self) -> Option<AgentExit> {
        self.watch.end();
        self.checkpoints.give_up();
        self.agent.take().map(|mut agent| agent.end_now(LEAK_LIMIT_STOPPED))
    }

    /// Whether orphans may be reaped now. Our git must finish first, because it could be mistaken for an orphan.
    pub(super) fn can_reap(&mut self) -> bool {
        !self.watch.is_busy() && !self.checkpoints.is_busy() && self.agent.as_ref().is_some_and(AgentProcess::can_reap)
    }

    /// Handles the end or a stop of a child: the guard, or an orphan, which would otherwise stay a zombie until the run ends.
    pub(super) fn children_ended(&mut self) {
        if let Some(agent) = &self.agent {
            agent.reap_orphans();
        }
        if self.guard.as_mut().is_some_and(Guard::has_ended) {
            self.guard = None;
            self.troubles.push((Warning::Unguarded, NO_GUARD.into()));
        }
        // SIGCHLD comes for a stop of the guard too.
        self.guard.iter().for_each(Guard::wake);
    }

    /// Suspends and resumes the agent together with this process.
    pub(super) fn suspend(&mut self, leave: impl FnOnce()) {
        self.signal(Signal::STOP);
        leave();
        self.read_clocks(|| false);
        suspend_ourselves();
        self.read_clocks(|| true);
        self.signal(Signal::CONT);
    }

    fn signal(&mut self, signal: Signal) {
        // Not even suspended: the thread that starts a git waits until it runs, and could not be suspended either.
        let spares_git = self.watch.is_busy() || self.checkpoints.is_busy();
        match &self.agent {
            Some(agent) if spares_git => agent.signal_marked(signal),
            Some(agent) => agent.signal(signal),
            None => {}
        }
    }

    /// Cleans up after the run. Processes and files are left only if the terminal frame could not be delivered.
    pub(super) fn dismiss(mut self) {
        self.watch.end();
        self.checkpoints.give_up();
        if let Some(agent) = &self.agent {
            agent.signal(Signal::KILL);
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        self.cgroup.iter().for_each(ControlGroup::remove);
    }

    pub(super) fn asks(&self) -> Receiver<AskEvent> {
        self.asking.as_ref().map_or_else(never, |socket| socket.heard.clone())
    }

    pub(super) fn reports(&self) -> Receiver<()> {
        self.reports.as_ref().map_or_else(never, |reports| reports.heard.clone())
    }

    /// `woken`: whether their channel woke the loop.
    pub(super) fn take_reports(&self, woken: bool) -> Vec<ServerReport> {
        self.reports.as_ref().map(|reports| reports.take(woken)).unwrap_or_default()
    }

    fn sockets(&mut self) -> Option<Arc<SocketFolder>> {
        if self.sockets.is_none() {
            self.sockets = SocketFolder::create().ok().map(Arc::new);
        }
        self.sockets.clone()
    }

    pub(super) fn asking(&mut self) -> Option<&mut AskConnections> {
        self.asking.as_mut().map(|socket| &mut socket.callers)
    }

    pub(super) fn progress_at(&self) -> Option<Instant> {
        self.asking.as_ref().and_then(|socket| socket.callers.progress_at())
    }

    /// `None`: the agent's end waits for git.
    pub(super) fn find_changes(&mut self, end: AgentEnd, stopping: bool) -> Option<EndWithFiles> {
        match self.watch.compare(stopping) {
            Some(changes) => Some((end, self.watch.files(changes, stopping))),
            None => {
                self.watch.wait(Waiting::Run(end));
                None
            }
        }
    }

    pub(super) fn git_told(&mut self, told: Option<GitResult>, stopping: bool) -> Option<EndWithFiles> {
        let changes = self.watch.finish_job(told);
        let waiting = self.watch.waited();
        if let Some(Waiting::BaselineAtRest) = waiting {
            self.compare_at_rest();
            return None;
        }
        self.go_on(waiting, changes, stopping)
    }

    pub(super) fn tire_of_git(&mut self, stopping: bool) -> Option<EndWithFiles> {
        if self.watch.until.is_none_or(|due| due > Instant::now()) {
            return None;
        }
        self.watch.end();
        let waiting = self.watch.waited();
        self.go_on(waiting, None, stopping)
    }

    /// Goes on with what waited for git. `None` as changes: git did not list them.
    fn go_on(&mut self, waiting: Option<Waiting>, changes: Option<Changes>, stopping: bool) -> Option<EndWithFiles> {
        let changes = changes.unwrap_or(Changes::Incomplete(Incomplete::Late));
        match waiting? {
            Waiting::Sweep => self.sweep(stopping),
            Waiting::Run(end) => return Some((end, self.watch.files(changes, stopping))),
            Waiting::BaselineAtRest | Waiting::Rest => {
                self.rested = Some(Rested::Files(self.watch.files(changes, stopping)));
            }
        }
        None
    }
}

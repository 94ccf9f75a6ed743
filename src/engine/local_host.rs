//! The host on this machine: the agent's process, its pipes and its tree; the guard; git; the socket of the ask-server.

mod changed_files;
mod places;
mod rest;
mod sockets;

use super::ask_connections::AskConnections;
use super::ask_socket::AskSocket;
use super::changes::{Waiting, Watch};
use super::host::Host;
use super::server_reports::ServerReports;
use super::session_lock::SessionLocks;
use crate::agent::registry::Agent;
use crate::agent::{Launch, Offered, Reply};
use crate::io::files::{FileLock, read_regular};
use crate::io::signals::suspend_ourselves;
use crate::process::agent_lines::AgentLines;
use crate::process::child::{AgentProcess, ProcessEvent};
use crate::process::git::worktree;
use crate::process::guard::Guard;
use crate::process::own_rules::kept_rules;
use crate::process::readers::AgentOutput;
use crate::process::sandbox::trusted::Trusted;
use crate::process::sandbox::{self, SandboxFault};
use crate::process::scratch::SocketFolder;
use crate::process::session_files::{self, cost_before};
use crate::process::tree::{self, Inherited, Signal, Swept, Tree};
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::AgentExit;
use crate::protocol::question::PathFact;
use crate::protocol::request::{Launcher, McpServer, Settings};
use crate::protocol::sandbox::Domain;
use crate::protocol::words::Warning;
use crate::run::{AgentEnd, FoundFiles, StopSignal};
use crate::system::{ControlGroup, lost_sight};
use crossbeam_channel::{Receiver, never};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use places::{directory, image, look};
use rest::Rest;
pub(super) use rest::Rested;

/// The time limit for the sweep of processes that outlived the agent, after its own end and after a stop.
const LEAK_LIMIT: Duration = Duration::from_secs(2);
const LEAK_LIMIT_STOPPED: Duration = Duration::from_millis(500);
/// The maximum size of a file that `value_from` names, in bytes.
const VALUE_BYTES: u64 = 1 << 20;

/// The number of random digits in the name of the ask-server. Agents limit the length of such names.
const NAME_DIGITS: usize = 12;

/// The warning about a missing guard.
const NO_GUARD: &str = "The guard is not running: if spektacular is killed, the agent and its tools keep running";

pub(crate) struct LocalHost {
    began: Instant,
    /// The total time for which this process was suspended. The run's clock does not count it.
    suspended: Duration,
    /// Whether this process was suspended before the last reading of the clocks.
    was_suspended: bool,
    /// The marker of this run's processes.
    nonce: String,
    agent: Option<AgentProcess>,
    sessions: SessionLocks,
    /// Keeps the worktree around the working directory.
    worktree: Option<FileLock>,
    /// The session that the agent writes.
    session: Option<SessionId>,
    /// The socket for the model's questions, if the model is offered the tool.
    asking: Option<AskSocket>,
    /// The socket for reports about MCP servers, if the agent starts some.
    reports: Option<ServerReports>,
    /// The folder of both.
    sockets: Option<Arc<SocketFolder>>,
    guard: Option<Guard>,
    /// The control group of the agent's processes.
    cgroup: Option<ControlGroup>,
    inherited: Inherited,
    /// Warnings about processes that may outlive the run.
    troubles: Vec<(Warning, String)>,
    /// The state of what a person trusts where the agent of a sandbox can change it.
    trusted: Option<Trusted>,
    end: EndParts,
    rest: Rest,
    rested: Option<Rested>,
    tree_gone_at: Option<Instant>,
    /// The time of the last kill, or of the later beginning of the sweep.
    killed_at: Option<Instant>,
    /// The last time at which the loop handled output, or could not.
    busy_at: Option<Instant>,
    /// The queries to git for this run.
    watch: Watch,
    /// The time of the current wake-up, since the run began and as a date. All events of a wake-up have the same time.
    now: (Duration, SystemTime),
}

/// The parts of the agent's end, which arrive in any order.
#[derive(Default)]
struct EndParts {
    /// Whether the agent's own process exited.
    exited: bool,
    /// Whether the agent was signalled before it exited, so that its other processes had no chance to exit with it.
    forced: bool,
    swept: Option<Swept>,
    stdout: bool,
    stderr: Option<String>,
}

/// The agent's end, and the changed files.
pub(super) type EndWithFiles = (AgentEnd, FoundFiles);

impl LocalHost {
    pub(crate) fn new() -> LocalHost {
        LocalHost {
            began: Instant::now(),
            suspended: Duration::ZERO,
            was_suspended: false,
            nonce: tree::nonce(),
            agent: None,
            sessions: SessionLocks::default(),
            worktree: None,
            session: None,
            asking: None,
            reports: None,
            sockets: None,
            guard: None,
            cgroup: None,
            inherited: Inherited::default(),
            troubles: Vec::new(),
            trusted: None,
            end: EndParts::default(),
            rest: Rest::None,
            rested: None,
            tree_gone_at: None,
            killed_at: None,
            busy_at: None,
            watch: Watch::default(),
            now: (Duration::ZERO, SystemTime::now()),
        }
    }

    /// Creates a host. `inherited`: the children that this process already has.
    pub(super) fn beside(inherited: &Inherited) -> LocalHost {
        LocalHost { inherited: inherited.clone(), ..LocalHost::new() }
    }

    /// Begins a part of the run, which has a baseline of its own.
    pub(super) fn begin_part(&mut self) {
        self.watch = Watch::default();
    }

    /// Ends the search for changed files, at the end of a part.
    pub(super) fn end_part(&mut self) {
        self.watch.end();
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
        self.began.elapsed().saturating_sub(self.suspended)
    }

    /// Whether a process of the agent exists.
    pub(super) fn has_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// The time at which the agent's process tree was gone. `None`: it still exists, or never existed.
    pub(super) fn tree_gone_at(&self) -> Option<Instant> {
        self.tree_gone_at
    }

    /// The channel of the agent's output. Never ready after the end of the output.
    pub(super) fn output(&self) -> Receiver<AgentOutput> {
        let is_read = self.end.stdout && self.end.stderr.is_some();
        self.agent.as_ref().filter(|_| !is_read).map_or_else(never, |agent| agent.data.clone())
    }

    /// Whether output of the agent waits.
    pub(super) fn has_output(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| !agent.data.is_empty())
    }

    /// The channel of the process's events. Never ready once the process tree is gone.
    pub(super) fn process(&self) -> Receiver<ProcessEvent> {
        self.agent.as_ref().filter(|_| self.end.swept.is_none()).map_or_else(never, |agent| agent.process.clone())
    }

    /// Reads the clocks, after the loop has waited or a process was started. `suspended`: whether this process was
    /// suspended since the last reading. The length of a suspension is unknown, so the run's clock skips the whole time
    /// since then.
    pub(super) fn read_clocks(&mut self, suspended: impl FnOnce() -> bool) {
        let passed = self.began.elapsed();
        let suspended = suspended();
        // A suspension right after the clock was read shows only in the next reading.
        if std::mem::replace(&mut self.was_suspended, suspended) || suspended {
            self.suspended = passed.saturating_sub(self.now.0);
        }
        self.now = (passed.saturating_sub(self.suspended), SystemTime::now());
    }

    /// The instant at which the run's clock will show this time.
    pub(super) fn at(&self, time: Duration) -> Instant {
        self.began + self.suspended + time
    }

    /// Lets the reader read more, because the agent's lines are handled.
    pub(super) fn taken(&mut self, lines: AgentLines) {
        if let Some(agent) = &self.agent {
            agent.taken(lines);
        }
    }

    /// Handles the exit of the agent's own process: sweeps the processes that outlived it, but not our git.
    pub(super) fn exited(&mut self, stopping: bool) {
        self.end.exited = true;
        self.rest.stop_waiting();
        self.watch.exited();
        if stopping {
            self.watch.end();
        }
        if self.watch.is_busy() {
            return self.watch.wait(Waiting::Sweep);
        }
        self.sweep(stopping);
    }

    fn sweep(&mut self, stopping: bool) {
        let limit = if stopping { LEAK_LIMIT_STOPPED } else { LEAK_LIMIT };
        self.killed_at = self.killed_at.map(|_| Instant::now());
        if let Some(agent) = &mut self.agent {
            agent.sweep(limit);
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
            (None, Some(killed)) if self.watch.due().is_none() => Some(killed + 2 * LEAK_LIMIT_STOPPED),
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

    /// The agent's end, once all of its parts have arrived.
    fn tree_gone(&mut self) -> Option<AgentEnd> {
        let EndParts { forced, swept: Some(swept), stdout: true, stderr: Some(tail), .. } = &self.end else {
            return None;
        };
        let mut agent = self.agent.take()?;
        // Before the terminal frame, after which a run may resume the session at once.
        self.sessions = SessionLocks::default();
        let leaked = !forced && swept.killed + swept.left > 0;
        let changed = self.trusted.as_mut().and_then(Trusted::warning);
        self.troubles.extend(changed.map(|text| (Warning::ProtectedChanged, text)));
        let lost_session = self.session.take().is_some_and(|id| !agent.keeps(&id));
        Some(AgentEnd { exit: agent.reap(), leaked, lost_session, stderr: tail.clone().into() })
    }

    /// Kills the agent's whole process tree at once. Returns the exit of its own process.
    pub(super) fn end_now(&mut self) -> Option<AgentExit> {
        self.watch.end();
        self.agent.take().map(|mut agent| agent.end_now(LEAK_LIMIT_STOPPED))
    }

    /// Whether orphans may be reaped now. Our git must finish first, because it could be mistaken for an orphan.
    pub(super) fn can_reap(&mut self) -> bool {
        !self.watch.is_busy() && self.agent.as_ref().is_some_and(AgentProcess::can_reap)
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

    /// The next warning about processes that may outlive the run, or about what the agent of a sandbox changed.
    pub(super) fn next_trouble(&mut self) -> Option<(Warning, String)> {
        self.troubles.pop()
    }

    /// Handles Ctrl-Z: suspends and resumes the agent together with this process.
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
        let spares_git = self.watch.is_busy();
        match &self.agent {
            Some(agent) if spares_git => agent.signal_marked(signal),
            Some(agent) => agent.signal(signal),
            None => {}
        }
    }

    /// Cleans up after the run. Processes and files are left only if the terminal frame could not be delivered.
    pub(super) fn dismiss(mut self) {
        self.watch.end();
        if let Some(agent) = &self.agent {
            agent.signal(Signal::KILL);
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        self.cgroup.iter().for_each(ControlGroup::remove);
    }
}

impl Host for LocalHost {
    fn now(&self) -> Duration {
        self.now.0
    }

    fn date(&self) -> SystemTime {
        self.now.1
    }

    fn variables(&self) -> Vec<(String, String)> {
        std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
    }

    fn directory(&self, cwd: Option<&Path>) -> Option<PathBuf> {
        directory(cwd)
    }

    fn look(&self, path: &Path) -> PathFact {
        look(path)
    }

    fn read(&self, path: &Path) -> Option<String> {
        read_regular(path, VALUE_BYTES).ok()
    }

    fn image(&self, path: &Path, bytes: u64) -> io::Result<(u64, Vec<u8>)> {
        image(path, bytes)
    }

    fn size(&self, path: &Path) -> Option<u64> {
        path.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len())
    }

    fn cost_before(&self, agent: &Agent, settings: &Settings) -> Option<f64> {
        cost_before(agent, settings)
    }

    fn own_rules(&self, agent: &Agent, settings: &Settings) -> String {
        let rules = |rules| kept_rules(rules, &session_files::environment(agent, settings), &settings.cwd);
        agent.native().own_rules.as_ref().map(rules).unwrap_or_default()
    }

    fn domain(&self, agent: &Agent, settings: &Settings) -> Result<Domain, SandboxFault> {
        sandbox::domain(agent, settings, &session_files::environment(agent, settings))
    }

    fn nonce(&self) -> String {
        // This is not the nonce of the tree, which the agent's processes have in their environment.
        tree::nonce().chars().take(NAME_DIGITS).collect()
    }

    fn offer(&mut self, tools: Offered) -> Option<McpServer> {
        match &mut self.asking {
            // The agent of an earlier part, which is gone, had the same tools.
            Some(socket) => socket.callers = AskConnections::new(tools),
            None => self.asking = self.sockets().and_then(|folder| AskSocket::open(folder, tools).ok()),
        }
        self.asking.as_ref().and_then(AskSocket::server)
    }

    fn launchers(&mut self, positions: &[usize]) -> Vec<Launcher> {
        if self.reports.is_none() {
            self.reports = self.sockets().and_then(|folder| ServerReports::open(folder).ok());
        }
        // The servers of an earlier part are gone.
        self.take_reports(false);
        let launcher = |reports: &ServerReports| positions.iter().map(|at| reports.launcher(*at)).collect();
        self.reports.as_ref().and_then(launcher).unwrap_or_default()
    }

    fn reply(&mut self, call: u64, replies: &[Reply]) {
        self.asking.iter_mut().for_each(|socket| socket.callers.reply(call, replies));
    }

    fn withdraw(&mut self, call: u64) {
        self.asking.iter_mut().for_each(|socket| socket.callers.withdraw(call));
    }

    fn spawn(&mut self, launch: &Launch, settings: &Settings, stderr: bool) -> Result<(), Failure> {
        let sessions = SessionLocks::before_spawn(launch, settings)?;
        self.worktree = self.worktree.take().or_else(|| worktree::hold(&settings.cwd));
        let first = self.watch.is_idle();
        if first {
            self.inherited.renew();
        }
        let mut tree = Tree::before_spawn(self.nonce.clone()).beside(&self.inherited);
        if first {
            self.begin_guard();
            // After the guard, which ends git too. Before the spawn, because file times are coarse and the agent's changes
            // must be newer.
            self.watch.begin(&settings.cwd);
        }
        if let Some(guard) = &self.guard {
            tree.spare(guard.pid());
        }
        let tree = tree.within(self.cgroup.clone());
        (self.end, self.tree_gone_at, self.killed_at, self.busy_at) = Default::default();
        self.trusted = Trusted::before(settings);
        let agent = AgentProcess::spawn(launch, settings, tree, &self.nonce, stderr)?;
        if let Some(guard) = &mut self.guard {
            guard.leader(agent.pid());
        }
        (self.agent, self.sessions) = (Some(agent), sessions);
        self.read_clocks(|| false);
        Ok(())
    }

    fn npx_package(&self) -> Option<&'static str> {
        self.agent.as_ref()?.npx_package
    }

    fn hold_session(&mut self, id: &SessionId) {
        // Another process may have it only if two new sessions have one id.
        self.sessions.hold(id);
        self.session = Some(id.clone());
    }

    fn send(&mut self, line: String) {
        if let Some(agent) = &self.agent {
            agent.send(line);
        }
    }

    fn unsent(&self) -> usize {
        self.agent.as_ref().map_or(0, |agent| agent.unsent())
    }

    fn close_input(&mut self) {
        self.resume();
        if let Some(agent) = &mut self.agent {
            agent.close_input();
        }
    }

    fn signal_tree(&mut self, signal: StopSignal) {
        if matches!(signal, StopSignal::Kill) {
            self.killed_at = Some(Instant::now());
        }
        // After the exit, the sweep stops the other processes.
        if self.end.exited {
            return;
        }
        self.end.forced = true;
        self.resume();
        self.signal(match signal {
            StopSignal::Terminate => Signal::TERM,
            StopSignal::Kill => Signal::KILL,
        });
    }

    fn rest(&mut self) -> bool {
        let can_rest = self.agent.is_some() && !self.end.exited;
        if can_rest {
            self.begin_rest();
        }
        can_rest
    }

    fn hurry(&mut self, stopping: bool) {
        self.watch.hurry(stopping);
    }

    fn abort(&mut self) {
        self.end_now();
    }
}

//! The host on this machine: the agent's process, its pipes and its tree; the guard; git; the socket of the ask-server.

mod rest;

use super::ask_connections::{AskConnections, AskEvent};
use super::ask_socket::AskSocket;
use super::changes::{Waiting, Watch};
use super::host::{Host, TreeGone};
use crate::agent::registry::Agent;
use crate::agent::{Launch, Offered, Reply};
use crate::io::files::open_regular;
use crate::io::signals::suspend_ourselves;
use crate::process::batch::Lines;
use crate::process::child::{AgentProcess, ProcessEvent};
use crate::process::git::{Changes, GitResult, Incomplete};
use crate::process::guard::Guard;
use crate::process::readers::AgentOutput;
use crate::process::session_files::cost_before;
use crate::process::tree::{self, Inherited, Signal, Swept, Tree};
use crate::protocol::failure::Failure;
use crate::protocol::outbound::AgentExit;
use crate::protocol::question::PathFact;
use crate::protocol::request::{McpServer, Settings};
use crate::protocol::words::Action;
use crate::run::{StopSignal, Unseen};
use crate::system::{ControlGroup, lost_sight};
use crossbeam_channel::{Receiver, never};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

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

/// The host of one run.
pub(crate) struct LocalHost {
    began: Instant,
    /// The total time for which this process was suspended. The run's clock does not count it.
    suspended: Duration,
    /// Whether this process was suspended before the last reading of the clocks.
    was_suspended: bool,
    /// The marker of this run's processes.
    nonce: String,
    agent: Option<AgentProcess>,
    /// The socket for the model's questions, if the model is offered the tool.
    asking: Option<AskSocket>,
    guard: Option<Guard>,
    /// The control group of the agent's processes.
    cgroup: Option<ControlGroup>,
    inherited: Inherited,
    /// Warnings about processes that may outlive the run.
    troubles: Vec<&'static str>,
    end: AgentEnd,
    rest: Rest,
    rested: Option<Rested>,
    tree_gone_at: Option<Instant>,
    /// The queries to git for this run.
    watch: Watch,
    /// The time of the current wake-up, since the run began and as a date. All events of a wake-up have the same time.
    now: (Duration, SystemTime),
}

/// The parts of the agent's end, which arrive in any order.
#[derive(Default)]
struct AgentEnd {
    /// Whether the agent's own process exited.
    exited: bool,
    /// Whether the agent was signalled before it exited, so that its other processes had no chance to exit with it.
    forced: bool,
    swept: Option<Swept>,
    stdout: bool,
    stderr: Option<String>,
}

/// The agent's end, and the changed files.
pub(super) type EndWithFiles = (TreeGone, Result<Vec<(PathBuf, Action)>, Unseen>);

impl LocalHost {
    pub(crate) fn new() -> LocalHost {
        LocalHost {
            began: Instant::now(),
            suspended: Duration::ZERO,
            was_suspended: false,
            nonce: tree::nonce(),
            agent: None,
            asking: None,
            guard: None,
            cgroup: None,
            inherited: Inherited::default(),
            troubles: Vec::new(),
            end: AgentEnd::default(),
            rest: Rest::None,
            rested: None,
            tree_gone_at: None,
            watch: Watch::default(),
            now: (Duration::ZERO, SystemTime::now()),
        }
    }

    /// Creates a host. `inherited`: the children that this process already has.
    pub(super) fn beside(inherited: &Inherited) -> LocalHost {
        LocalHost { inherited: inherited.clone(), ..LocalHost::new() }
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

    /// The channel of the ask-server's events.
    pub(super) fn asks(&self) -> Receiver<AskEvent> {
        self.asking.as_ref().map_or_else(never, |socket| socket.heard.clone())
    }

    pub(super) fn asking(&mut self) -> Option<&mut AskConnections> {
        self.asking.as_mut().map(|socket| &mut socket.callers)
    }

    /// The time at which the tool's callers get the next progress message.
    pub(super) fn progress_at(&self) -> Option<Instant> {
        self.asking.as_ref().and_then(|socket| socket.callers.progress_at())
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
    pub(super) fn taken(&mut self, lines: Lines) {
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
        if let Some(agent) = &mut self.agent {
            agent.sweep(limit);
        }
    }

    pub(super) fn swept(&mut self, swept: Swept) -> Option<TreeGone> {
        self.end.swept = Some(swept);
        self.tree_gone_at = Some(Instant::now());
        self.tree_gone()
    }

    pub(super) fn stdout_ended(&mut self) -> Option<TreeGone> {
        self.end.stdout = true;
        self.tree_gone()
    }

    pub(super) fn stderr_ended(&mut self, tail: String) -> Option<TreeGone> {
        self.end.stderr = Some(tail);
        self.tree_gone()
    }

    /// The agent's end, once all of its parts have arrived.
    fn tree_gone(&mut self) -> Option<TreeGone> {
        let AgentEnd { forced, swept: Some(swept), stdout: true, stderr: Some(tail), .. } = &self.end else {
            return None;
        };
        let mut agent = self.agent.take()?;
        let leaked = !forced && swept.killed + swept.left > 0;
        Some(TreeGone { exit: agent.reap(), leaked, stderr: tail.clone() })
    }

    /// Determines the changed files. `None`: the agent's end waits for git.
    pub(super) fn find_changes(&mut self, tree_gone: TreeGone, stopping: bool) -> Option<EndWithFiles> {
        match self.watch.compare(stopping) {
            Some(changes) => Some(self.with_files(tree_gone, changes, stopping)),
            None => {
                self.watch.wait(Waiting::Run(tree_gone));
                None
            }
        }
    }

    fn with_files(&mut self, tree_gone: TreeGone, changes: Changes, stopping: bool) -> EndWithFiles {
        (tree_gone, self.watch.files(changes, stopping))
    }

    /// The channel of git's answer.
    pub(super) fn git(&self) -> Receiver<GitResult> {
        self.watch.told()
    }

    /// The time at which the wait for git ends.
    pub(super) fn tires_at(&self) -> Option<Instant> {
        self.watch.due()
    }

    /// Handles git's answer, or its failure.
    pub(super) fn git_told(&mut self, told: Option<GitResult>, stopping: bool) -> Option<EndWithFiles> {
        let changes = self.watch.finish_job(told);
        match self.watch.waited() {
            None => {}
            Some(Waiting::Sweep) => self.sweep(stopping),
            Some(Waiting::Run(tree_gone)) => {
                let changes = changes.unwrap_or(Changes::Incomplete(Incomplete::Late));
                return Some(self.with_files(tree_gone, changes, stopping));
            }
            Some(Waiting::BaselineAtRest) => self.compare_at_rest(),
            Some(Waiting::Rest) => {
                let changes = changes.unwrap_or(Changes::Incomplete(Incomplete::Late));
                self.rested = Some(Rested::Files(self.watch.files(changes, stopping)));
            }
        }
        None
    }

    /// Kills the agent's whole process tree at once. Returns the exit of its own process.
    pub(super) fn end_now(&mut self) -> Option<AgentExit> {
        self.watch.end();
        self.agent.take().map(|mut agent| agent.end_now(LEAK_LIMIT_STOPPED))
    }

    /// Abandons git once the wait is over.
    pub(super) fn tire_of_git(&mut self, stopping: bool) -> Option<EndWithFiles> {
        if self.watch.due().is_none_or(|due| due > Instant::now()) {
            return None;
        }
        self.watch.end();
        match self.watch.waited() {
            None => {}
            Some(Waiting::Sweep) => self.sweep(stopping),
            Some(Waiting::Run(tree_gone)) => {
                return Some(self.with_files(tree_gone, Changes::Incomplete(Incomplete::Late), stopping));
            }
            Some(Waiting::BaselineAtRest | Waiting::Rest) => {
                let files = self.watch.files(Changes::Incomplete(Incomplete::Late), stopping);
                self.rested = Some(Rested::Files(files));
            }
        }
        None
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
            self.troubles.push(NO_GUARD);
        }
        // SIGCHLD comes for a stop of the guard too.
        self.guard.iter().for_each(Guard::wake);
    }

    /// The next warning about processes that may outlive the run.
    pub(super) fn next_trouble(&mut self) -> Option<&'static str> {
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
        let path = match cwd {
            Some(cwd) if cwd.is_absolute() => cwd.to_owned(),
            // The current directory may have been deleted.
            cwd => std::env::current_dir().ok()?.join(cwd.unwrap_or(Path::new(""))),
        };
        // The real path, because an agent reports the paths that it sees.
        path.is_dir().then(|| path.canonicalize().unwrap_or(path))
    }

    fn look(&self, path: &Path) -> PathFact {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => PathFact::Directory,
            Ok(_) => PathFact::File,
            Err(_) => PathFact::Missing,
        }
    }

    fn read(&self, path: &Path) -> Option<String> {
        let mut text = String::new();
        open_regular(path).ok()?.take(VALUE_BYTES + 1).read_to_string(&mut text).ok()?;
        (text.len() as u64 <= VALUE_BYTES).then_some(text)
    }

    fn image(&self, path: &Path, bytes: u64) -> io::Result<(u64, Vec<u8>)> {
        let file = open_regular(path)?;
        let size = file.metadata()?.len();
        let mut first = Vec::new();
        file.take(bytes).read_to_end(&mut first)?;
        Ok((size, first))
    }

    fn size(&self, path: &Path) -> Option<u64> {
        path.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len())
    }

    fn cost_before(&self, agent: &Agent, settings: &Settings) -> Option<f64> {
        cost_before(agent, settings)
    }

    fn nonce(&self) -> String {
        // This is not the nonce of the tree, which the agent's processes have in their environment.
        tree::nonce().chars().take(NAME_DIGITS).collect()
    }

    fn offer(&mut self, tools: Offered) -> Option<McpServer> {
        self.asking = AskSocket::open(tools).ok();
        self.asking.as_ref().and_then(AskSocket::server)
    }

    fn reply(&mut self, call: u64, replies: &[Reply]) {
        self.asking.iter_mut().for_each(|socket| socket.callers.reply(call, replies));
    }

    fn withdraw(&mut self, call: u64) {
        self.asking.iter_mut().for_each(|socket| socket.callers.withdraw(call));
    }

    fn spawn(&mut self, launch: &Launch, settings: &Settings, stderr: bool) -> Result<(), Failure> {
        let first = self.watch.is_idle();
        if first {
            self.inherited.renew();
            // The baseline begins before the spawn, because file times are coarse and the agent's changes must be newer.
            self.watch.begin(&settings.cwd);
        }
        let mut tree = Tree::before_spawn(self.nonce.clone()).beside(&self.inherited);
        if first {
            self.cgroup = ControlGroup::create(&self.nonce);
            // The run continues without a guard, which is needed only if this process is killed.
            let folder = self.asking.as_ref().map(AskSocket::folder);
            self.guard = Guard::start(&self.nonce, self.cgroup.as_ref(), folder).ok();
            self.troubles.extend(lost_sight().or(self.guard.is_none().then_some(NO_GUARD)));
        }
        if let Some(guard) = &self.guard {
            tree.spare(guard.pid());
        }
        let tree = tree.within(self.cgroup.clone());
        (self.end, self.tree_gone_at) = Default::default();
        let agent = AgentProcess::spawn(launch, settings, tree, &self.nonce, stderr)?;
        if let Some(guard) = &mut self.guard {
            guard.leader(agent.pid());
        }
        self.agent = Some(agent);
        self.read_clocks(|| false);
        Ok(())
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

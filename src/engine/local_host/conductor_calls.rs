//! The calls of the conductor, on this machine.

use super::LocalHost;
use crate::agent::registry::Agent;
use crate::agent::{Launch, Offered, Reply};
use crate::engine::ask_connections::AskConnections;
use crate::engine::ask_socket::AskSocket;
use crate::engine::host::{Host, PresentFile};
use crate::engine::server_reports::ServerReports;
use crate::engine::session_lock::SessionLocks;
use crate::io::files::{open_regular, read_regular};
use crate::process::child::AgentProcess;
use crate::process::git::{checkpoints::is_possible, worktree};
use crate::process::own_rules::kept_rules;
use crate::process::sandbox::trusted::Trusted;
use crate::process::sandbox::{self, SandboxFault};
use crate::process::session_files::{self, cost_before};
use crate::process::tree::{self, Signal, Tree};
use crate::protocol::failure::Failure;
use crate::protocol::ids::SessionId;
use crate::protocol::question::PathFact;
use crate::protocol::request::{Launcher, McpServer, Settings};
use crate::protocol::sandbox::Domain;
use crate::run::{CheckpointOrder, StopSignal};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The maximum size of a file that `value_from` names, in bytes.
const VALUE_BYTES: u64 = 1 << 20;
/// The number of random digits in the name of the ask-server. Agents limit the length of such names.
const NAME_DIGITS: usize = 12;

impl Host for LocalHost {
    fn now(&self) -> Duration {
        self.clocks.now.0
    }

    fn date(&self) -> SystemTime {
        self.clocks.now.1
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
        read_regular(path, VALUE_BYTES).ok()
    }

    fn image(&self, path: &Path, bytes: u64) -> io::Result<(u64, Vec<u8>)> {
        let file = open_regular(path)?;
        let size = file.metadata()?.len();
        let mut first = Vec::new();
        file.take(bytes).read_to_end(&mut first)?;
        Ok((size, first))
    }

    fn present(&self, path: &Path, settings: &Settings, room: u64) -> PresentFile {
        // Its content goes to the orchestrator, so a link must not lead elsewhere.
        let real = match settings.cwd.join(path).canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return PresentFile::Missing,
            Err(_) => return PresentFile::Hidden,
        };
        let mut folders = std::iter::once(settings.cwd.as_path()).chain(settings.add_dirs.iter().map(Path::new));
        let is_inside = folders.any(|folder| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder)));
        let fits = is_inside && real.metadata().is_ok_and(|meta| meta.len() <= room);
        match fits.then(|| read_regular(&real, room)) {
            Some(Ok(text)) if !text.contains('\0') => PresentFile::Text(text),
            Some(Ok(_) | Err(_)) | None => PresentFile::Hidden,
        }
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

    fn keep_checkpoints(&mut self, cwd: &Path) -> bool {
        self.checkpoints.cwd = Some(cwd.to_owned());
        is_possible(cwd)
    }

    fn checkpoint(&mut self, order: CheckpointOrder, except: Vec<PathBuf>) {
        self.checkpoints.waiting.push_back((order, except));
        self.checkpoints.start_next();
    }

    fn holds_back(&self) -> bool {
        self.checkpoints.holds_back()
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
        if self.checkpoints.holds_back() {
            self.checkpoints.lines.push(line);
        } else if let Some(agent) = &self.agent {
            agent.send(line);
        }
    }

    fn unsent(&self) -> usize {
        self.agent.as_ref().map_or(0, |agent| agent.unsent())
    }

    fn close_input(&mut self) {
        self.resume();
        self.checkpoints.closes = self.checkpoints.holds_back();
        if let Some(agent) = self.agent.as_mut().filter(|_| !self.checkpoints.closes) {
            agent.close_input();
        }
    }

    fn signal_tree(&mut self, signal: StopSignal) {
        let kills = matches!(signal, StopSignal::Kill);
        self.killed_at = if kills { Some(Instant::now()) } else { self.killed_at };
        // After the exit, the sweep stops the other processes. They may have time to react to SIGTERM.
        if self.end.swept.is_some() || (self.end.exited && !kills) {
            return;
        }
        if !self.end.exited {
            self.end.forced.get_or_insert_with(Instant::now);
        }
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

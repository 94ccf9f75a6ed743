//! The agent's process. This module is the only place that starts one for a run. Each of its pipes has a thread.
//!
//! A sentinel marks the end of the output: once the agent has exited and every process that outlived it is gone (or the
//! limit of the sweep has passed), we write a line with a nonce into our own clone of each pipe's write end. Pipes keep
//! their order, so a reader that meets the sentinel has read everything before it. Waiting for the end of file instead
//! would wait for every process that still holds the pipe.

use super::agent_lines::AgentLines;
use super::new_session::{self, NotRestricted};
use super::own_executable;
use super::program::{find_program, not_found};
use super::readers::{AgentOutput, read_stderr, read_stdout};
use super::sandbox::{self, ProcessPlaces};
use super::scratch::{AgentFiles, Scratch, write_files};
use super::session_files::{is_kept, make_loadable};
use super::tree::{self, Swept, Tree, wait_without_reaping};
use crate::agent::native::SessionFiles;
use crate::agent::{Launch, Program};
use crate::io::failpoint::point;
use crate::io::output::{write_lines, write_whole};
use crate::io::spawn_thread;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::ids::SessionId;
use crate::protocol::outbound::AgentExit;
use crate::protocol::request::Settings;
use crate::protocol::terms::sentence;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, PipeReader, PipeWriter};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum ProcessEvent {
    /// The agent's process exited; it is not reaped yet.
    Exited,
    /// The sweep of the processes that outlived the agent is over: they are gone, or the time limit passed.
    Swept(Swept),
}

pub(crate) struct AgentProcess {
    child: Child,
    tree: Arc<Tree>,
    input: Option<Sender<String>>,
    unsent: Arc<AtomicUsize>,
    /// Starts the sweep, which first ends the reaper: only one of them may reap orphans at a time.
    sweep: Sender<(Duration, Duration, Option<Reaper>)>,
    emptied: Sender<AgentLines>,
    reaper: Option<Reaper>,
    /// The package that npx runs in place of the agent's missing program.
    pub(crate) npx_package: Option<&'static str>,
    /// The folder of the files that the agent reads. Dropping this removes it.
    _files: Option<Scratch>,
    /// The files of its sessions, and its environment, which leads to them.
    sessions: Option<(&'static SessionFiles, BTreeMap<OsString, OsString>)>,
    /// The agent's output. The channel holds one message, and a full one makes the readers wait.
    pub(crate) data: Receiver<AgentOutput>,
    pub(crate) process: Receiver<ProcessEvent>,
}

impl AgentProcess {
    /// `nonce` marks the agent's environment. `mirror`: sends each line of stderr too. Error: states the remedy.
    pub(crate) fn spawn(
        launch: &Launch,
        settings: &Settings,
        tree: Tree,
        nonce: &str,
        mirror: bool,
    ) -> Result<AgentProcess, Failure> {
        let found = find_program(launch, settings, nonce)?;
        let npx_package = launch.package.filter(|_| found.launch.package.is_none());
        let (launch, program, mut environment) = (&*found.launch, found.program, found.environment);
        if let (Some(files), Some(id)) = (launch.session_files, &settings.session_id) {
            make_loadable(files, id, &|name| environment.get(OsStr::new(name)).cloned())?;
        }
        let domain = settings.sandbox.domain();
        let files = write_files(&launch.files, domain.is_some(), nonce)?;
        let AgentFiles { folder, arguments, file_variables, free_variables } = files;
        environment.extend(file_variables.into_iter().map(|(variable, path)| (variable.into(), path.into())));
        for (variable, path) in free_variables {
            environment.entry(variable.into()).or_insert_with(|| path.into());
        }
        let grants = match domain {
            Some(domain) => {
                let files = folder.as_ref().ok_or_else(Failure::of_our_own)?;
                let places = ProcessPlaces { program: &program, files: files.path(), temporary: &files.temporary()? };
                sandbox::confine(&mut environment, domain, settings, places.temporary);
                Some(sandbox::grants(domain, settings, &environment, &places))
            }
            None => None,
        };
        let (out, our_out) = pipe()?;
        let (err, our_err) = pipe()?;
        let prepare = |command: &mut Command| {
            command.args(&launch.args).args(&arguments).env_clear().envs(&environment).current_dir(&settings.cwd);
            command.stdin(Stdio::piped()).stdout(our_out.try_clone()?);
            Ok(())
        };
        let child = spawn(
            || new_session::spawn(&program, tree.cgroup(), grants.as_ref(), &our_err, prepare),
            &program,
            &settings.cwd,
        )?;
        // The sentinel has a different nonce, because the agent's processes know the one in their environment.
        let agent = AgentProcess::attach(child, tree, &tree::nonce(), mirror, (out, our_out), (err, our_err));
        let sessions = launch.session_files.map(|files| (files, environment));
        agent.map(|agent| AgentProcess { npx_package, _files: folder, sessions, ..agent })
    }

    pub(crate) fn keeps(&self, id: &SessionId) -> bool {
        self.sessions
            .as_ref()
            .is_none_or(|(files, environment)| is_kept(files, id, &|name| environment.get(OsStr::new(name)).cloned()))
    }

    fn attach(
        mut child: Child,
        tree: Tree,
        nonce: &str,
        mirror: bool,
        (out, our_out): (PipeReader, PipeWriter),
        (err, our_err): (PipeReader, PipeWriter),
    ) -> Result<AgentProcess, Failure> {
        let tree = Arc::new(tree);
        let (data_in, data) = bounded(1);
        let (process_in, process) = unbounded();
        let (input, lines) = unbounded();
        let unsent = Arc::new(AtomicUsize::new(0));
        let queued = Arc::clone(&unsent);
        let (sweep, sweeps) = bounded(1);
        let (emptied, returned) = unbounded();
        let end = format!("\0END {nonce}");
        let sentinel = format!("\n{end}\n");
        let pid = child.id();
        let stdin = child.stdin.take();
        let for_stderr = data_in.clone();
        let (end_out, end_err) = (end.clone(), end);
        let swept_tree = Arc::clone(&tree);
        let threads = [
            // A write error is not reported: the exit of an agent that no longer reads explains it.
            spawn_thread("agent-stdin", move || {
                let sent = |bytes| _ = queued.fetch_sub(bytes, Ordering::Relaxed);
                stdin.into_iter().for_each(|mut stdin| write_lines(&lines, &mut stdin, sent));
            }),
            spawn_thread("agent-stdout", move || {
                // The buffer is the thread's work.
                let lines = AgentLines::new(out, own_executable::agent_line_bytes(), end_out.as_bytes());
                read_stdout(lines, &data_in, &returned);
            }),
            spawn_thread("agent-stderr", move || read_stderr(err, &end_err, mirror, &for_stderr)),
            spawn_thread("agent-exit", move || {
                wait_without_reaping(pid);
                let _ = process_in.send(ProcessEvent::Exited);
                let (grace, limit, reaper): (Duration, Duration, Option<Reaper>) = sweeps.recv().unwrap_or_default();
                reaper.into_iter().for_each(Reaper::finish);
                point("agent-exit sweep");
                let _ = process_in.send(ProcessEvent::Swept(swept_tree.sweep_after(grace, Some(pid), limit)));
                // Either pipe may be full. The reader of stderr never waits for room, so stderr gets its sentinel
                // first.
                for mut pipe in [our_err, our_out] {
                    let _ = write_whole(&mut pipe, sentinel.as_bytes());
                }
            }),
        ];
        let reaper = Reaper::start(Arc::clone(&tree), pid).ok();
        let no_thread = reaper.is_none() || threads.into_iter().any(|started| started.is_err());
        let mut agent = AgentProcess {
            child,
            tree,
            input: Some(input),
            unsent,
            sweep,
            emptied,
            reaper,
            sessions: None,
            npx_package: None,
            _files: None,
            data,
            process,
        };
        if no_thread {
            agent.signal(rustix::process::Signal::KILL);
            let _ = agent.child.wait();
            return Err(Failure::no_thread());
        }
        Ok(agent)
    }

    /// Never blocks.
    pub(crate) fn send(&self, line: String) {
        if let Some(input) = &self.input {
            self.unsent.fetch_add(line.len(), Ordering::Relaxed);
            let _ = input.send(line);
        }
    }

    /// The number of bytes that are queued for the agent's stdin and not yet written.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Closes the agent's stdin once the queued lines are written.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Gives the lines back to the reader of stdout, which waits for more.
    pub(crate) fn taken(&self, lines: AgentLines) {
        let _ = self.emptied.send(lines);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        self.tree.signal_all(Some(self.child.id()), signal);
    }

    /// Signals only the processes that certainly belong to the tree, so that another child of ours (git) is spared.
    pub(crate) fn signal_marked(&self, signal: rustix::process::Signal) {
        self.tree.signal_marked(Some(self.child.id()), signal);
    }

    /// Call it once the exit is reported. `grace`: the time for other processes to end; `limit`: that for the sweep.
    pub(crate) fn sweep(&mut self, grace: Duration, limit: Duration) {
        let _ = self.sweep.send((grace, limit, self.reaper.take()));
    }

    /// Never blocks.
    pub(crate) fn reap_orphans(&self) {
        self.reaper.iter().for_each(Reaper::request);
    }

    /// Whether orphans are reaped. The loop must receive every notification about an ended child, even while a reaping
    /// is still pending: an unreceived one would prevent the next from waking the loop.
    pub(crate) fn can_reap(&self) -> bool {
        self.reaper.is_some()
    }

    /// Kills the whole tree and reaps the agent, on the calling thread. The sweep takes at most `limit`.
    pub(crate) fn end_now(&mut self, limit: Duration) -> AgentExit {
        self.sweep_here(limit);
        self.reap()
    }

    /// Kills the whole tree, on the calling thread.
    pub(crate) fn sweep_here(&mut self, limit: Duration) -> Swept {
        self.reaper.take().into_iter().for_each(Reaper::finish);
        self.tree.sweep(Some(self.child.id()), limit)
    }

    /// Whether the tree has no process outside the agent's own process group.
    pub(crate) fn is_alone(&self) -> bool {
        self.tree.is_one_group(self.child.id())
    }

    /// Reaps an agent that has exited. Never blocks: the kernel may keep a killed process.
    pub(crate) fn reap(&mut self) -> AgentExit {
        match self.child.try_wait() {
            Ok(Some(status)) => AgentExit { code: status.code(), signal: status.signal() },
            Ok(None) | Err(_) => AgentExit { code: None, signal: None },
        }
    }
}

fn pipe() -> Result<(PipeReader, PipeWriter), Failure> {
    let message = "Cannot create a pipe for the agent: raise the limit of open files.";
    io::pipe().map_err(|_| Failure::new(Code::ResourceExhausted, message).retryable())
}

/// The number of retries for a program that is still being written, and the pause between them.
const BUSY: (u32, Duration) = (3, Duration::from_millis(50));

pub(crate) fn spawn(
    mut start: impl FnMut() -> io::Result<Child>,
    program: &Path,
    cwd: &Path,
) -> Result<Child, Failure> {
    let mut tries = 0;
    loop {
        match start() {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY.0 => {
                tries += 1;
                thread::sleep(BUSY.1);
            }
            Err(error) => return Err(spawn_failure(&error, program, cwd)),
        }
    }
}

fn spawn_failure(error: &io::Error, program: &Path, cwd: &Path) -> Failure {
    let failed = |what: &str| Failure::new(Code::AgentStartFailed, what);
    let exhausted = |what: &str| Failure::new(Code::ResourceExhausted, what).retryable();
    if let Some(NotRestricted(why)) = error.get_ref().and_then(|error| error.downcast_ref()) {
        let why = why.as_str();
        return Failure::invalid_start(sentence!("{sandbox} cannot be kept: {why}.", sandbox));
    }
    match (error.kind(), Errno::from_io_error(error)) {
        _ if !cwd.is_dir() => {
            Failure::invalid_start(sentence!("{cwd} must be the path of an existing directory.", cwd))
        }
        (ErrorKind::NotFound, _) if program.exists() => failed(
            "The agent's program names an interpreter that does not exist: install it, or correct the program's first line.",
        ),
        (ErrorKind::NotFound, _) => not_found(&Program::Command(program.to_string_lossy().into_owned()), None),
        (ErrorKind::PermissionDenied, _) => failed("The agent's program is not executable: check its permissions."),
        (ErrorKind::ExecutableFileBusy, _) => {
            failed("The agent's program is being written: try again when it is installed.").retryable()
        }
        (ErrorKind::ArgumentListTooLong, _) => Failure::invalid_start(sentence!(
            "{agent_args} and {env} exceed, with the environment, the system's limit, which `getconf ARG_MAX` prints in \
             bytes: shorten them.",
            agent_args,
            env
        )),
        (ErrorKind::InvalidInput, _) => {
            Failure::invalid_start(sentence!("{agent_args} or {env} contains a NUL byte: remove it.", agent_args, env))
        }
        (_, Some(Errno::NOEXEC)) => failed("The agent's program cannot run on this machine: reinstall it."),
        (_, Some(Errno::AGAIN | Errno::NOMEM)) => {
            exhausted("Cannot start a process: the machine has reached its limit of processes or memory.")
        }
        (_, Some(Errno::MFILE | Errno::NFILE)) => exhausted("Cannot open a file: raise the limit of open files."),
        _ => failed("Cannot start the agent's program: check its installation."),
    }
}

/// The pause after a look. Orphans that end meanwhile are reaped together.
const PAUSE: Duration = Duration::from_millis(20);

/// The longest wait for the end of the thread. A look takes a few milliseconds.
const FINISH_LIMIT: Duration = Duration::from_millis(300);

/// Dropping this ends the thread without waiting for it.
pub(super) struct Reaper {
    requests: Sender<()>,
    /// Disconnected once the thread has ended.
    ended: Receiver<Infallible>,
    _stop: Sender<Infallible>,
}

impl Reaper {
    /// Never reaps `leader`, the agent itself. Error: no thread can be started.
    pub(super) fn start(tree: Arc<Tree>, leader: u32) -> io::Result<Reaper> {
        let (requests, requested) = bounded(1);
        let (stop, stopped) = bounded::<Infallible>(0);
        let (running, ended) = bounded::<Infallible>(0);
        spawn_thread("reaper", move || {
            let _running = running;
            for () in requested {
                tree.reap_orphans(Some(leader));
                if stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Reaper { requests, ended, _stop: stop })
    }

    /// Requests a look, unless one is pending. Never blocks.
    pub(super) fn request(&self) {
        let _ = self.requests.try_send(());
    }

    /// Waits, but not for ever: the thread must not take a child that is started later for an orphan.
    pub(super) fn finish(self) {
        let Reaper { requests, ended, _stop } = self;
        drop((requests, _stop));
        let _ = ended.recv_timeout(FINISH_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentProcess, ProcessEvent, Tree, pipe, tree};
    use crate::agent::Line;
    use crate::process::readers::AgentOutput;
    use crate::process::tree::{MARKER, marker_value};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::PipeWriter;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(120);

    /// Starts a shell as the agent, whose tree is found by its marker alone, because other tests run in this process.
    /// Also returns the write end of its stdout.
    fn agent(script: &str) -> (AgentProcess, PipeWriter) {
        let nonce = tree::nonce();
        let tree = Tree::by_marker(nonce.clone());
        let ((out, our_out), (err, our_err)) = (pipe().unwrap(), pipe().unwrap());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env(MARKER, marker_value(&nonce)).stdin(Stdio::null()).process_group(0);
        command.stdout(our_out.try_clone().unwrap()).stderr(our_err.try_clone().unwrap());
        let child = command.spawn().unwrap();
        drop(command);
        let end = our_out.try_clone().unwrap();
        (AgentProcess::attach(child, tree, &tree::nonce(), false, (out, our_out), (err, our_err)).unwrap(), end)
    }

    #[test]
    fn the_end_of_stderr_does_not_wait_for_a_full_stdout() {
        let (mut agent, stdout) = agent("echo why >&2; exec yes");
        // Nobody handles the lines, so the reader waits for them and reads no more.
        let lines = agent.data.recv_timeout(LONG);
        assert!(matches!(lines, Ok(AgentOutput::Lines(_))), "{lines:?}");
        let now = Some(&Timespec::default());
        let is_full = || poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], now) == Ok(0);
        while !is_full() {
            std::thread::yield_now();
        }
        agent.signal(rustix::process::Signal::KILL);
        assert!(matches!(agent.process.recv_timeout(LONG), Ok(ProcessEvent::Exited)));
        agent.sweep(Duration::ZERO, Duration::from_secs(10));
        let ended = agent.data.recv_timeout(LONG);
        assert!(matches!(&ended, Ok(AgentOutput::StderrEnd(tail)) if tail == "why\n"), "{ended:?}");
        agent.reap();
    }

    #[test]
    fn the_end_of_stdout_comes_after_the_words_of_a_process_that_outlived_the_agent() {
        let folder = std::env::temp_dir().join(format!("spektacular-{}", tree::nonce()));
        std::fs::create_dir(&folder).unwrap();
        let go = folder.join("go");
        let path = go.display();
        let (mut agent, _) = agent(&format!("(until [ -e '{path}' ]; do sleep 0.01; done; echo late) & echo early"));
        assert!(matches!(agent.process.recv_timeout(LONG), Ok(ProcessEvent::Exited)));
        std::fs::write(&go, "").unwrap();
        let mut said = Vec::new();
        while said.last().is_none_or(|line| line != "late") {
            match agent.data.recv_timeout(LONG) {
                Ok(AgentOutput::Lines(mut lines)) => {
                    while let Some(Line::Text(line)) = lines.next() {
                        said.push(line.into_owned());
                    }
                    agent.taken(lines);
                }
                other => panic!("{other:?} after {said:?}"),
            }
        }
        agent.sweep(Duration::ZERO, Duration::from_secs(10));
        let mut ends = [(); 2].map(|()| format!("{:?}", agent.data.recv_timeout(LONG)));
        ends.sort();
        assert_eq!(ends, ["Ok(End)", "Ok(StderrEnd(\"\"))"]);
        agent.reap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

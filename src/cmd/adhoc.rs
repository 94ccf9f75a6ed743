//! `adhoc`: one task through one agent.

use super::chat_again::ChatAgain;
use super::complain;
use super::look::look;
use super::prompt_line::surroundings;
use super::task::TaskRunner;
use super::texts::{self, Prompt};
use super::worktree::{self, Wanted, WorktreeEnd, WorktreeRequest, in_worktree};
use crate::agent::registry::Agents;
use crate::cli::{Adhoc, AtEof, Output, typed_fields};
use crate::config::Layers;
use crate::config::origins::FieldOrigin;
use crate::config::{self, Config, Loaded};
use crate::engine::{Begin, DebugLog, Engine, Job, Peer, Prepared, Report, Script, UNDELIVERED};
use crate::io::failpoint::point;
use crate::io::inbox::Source;
use crate::io::output::{diagnose, stdout_is_closed};
use crate::io::signals::{self, SignalChannels};
use crate::io::stdin::{self, StdinKind};
use crate::io::tty::Keyboard;
use crate::json_lines::JsonLines;
use crate::process::guard::Guard;
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::protocol::ids::SessionName;
use crate::protocol::limits;
use crate::protocol::request::{Options, Seconds};
use crate::protocol::words::{Level, OnRateLimit, Source as CancelSource, Warning, WorkflowKind};
use crate::run::OnEof;
use crate::sessions::{SessionFile, Stored, continued, is_free, resumed, stored_in_worktree};
use crate::terminal::{ChatPlace, TerminalPeer};
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};

const TYPE: &str = "spektacular: type the prompt, and end it with Ctrl-D";
const FETCH: &str = "spektacular: waiting for the prompt: bring the run to the foreground with fg";

const NO_TERMINAL: &str = "A conversation needs a terminal: its prompts are typed. From a program, use adhoc \
                           --conversation --output json.";

/// After this silence in a log, a line says that the run continues: CI systems stop jobs that are silent for minutes.
const LOG_HEARTBEAT: Seconds = Seconds(60.0);

pub(crate) fn run(adhoc: Adhoc, signals: Option<SignalChannels>) -> u8 {
    let mut peer = JsonLines::new(adhoc.log_id);
    run_with(adhoc, signals, &mut peer)
}

/// Like [`run`]. `peer`: the peer of a run for an orchestrator.
pub(super) fn run_with(adhoc: Adhoc, signals: Option<SignalChannels>, peer: &mut dyn Peer) -> u8 {
    if stdout_is_closed() {
        return undelivered();
    }
    let mut engine = (!adhoc.dry_run).then(|| engine(signals));
    // git runs before an agent and its guard do, and after them.
    let uses_git = adhoc.worktree.is_some() || adhoc.workflow == Some(WorkflowKind::Implement);
    let guard = uses_git.then(Guard::of_git).flatten();
    engine.iter_mut().for_each(|engine| guard.iter().for_each(|guard| engine.know(guard)));
    let code = begin(adhoc, engine, peer);
    guard.into_iter().for_each(Guard::leave_git);
    code
}

fn begin(adhoc: Adhoc, engine: Option<Engine>, peer: &mut dyn Peer) -> u8 {
    let Ok(mut loaded) = catch_unwind(load) else { return crashed(adhoc, engine) };
    let failure = loaded.failure.take();
    match (adhoc.output.unwrap_or_else(|| loaded.config.output()), failure) {
        (Output::Json, Some(failure)) => refuse_with(adhoc, loaded, failure, engine, peer),
        (Output::Json, None) => json(adhoc, loaded, engine, peer),
        (Output::Cli, Some(failure)) => complain(&failure),
        (Output::Cli, None) => cli(adhoc, loaded, engine),
    }
}

/// `None`: the signals are not registered yet.
fn engine(signals: Option<SignalChannels>) -> Engine {
    Engine::with(signals.or_else(|| signals::listen().ok()), Source::Nothing)
}

fn load() -> Loaded {
    point("configuration");
    config::load()
}

/// Reports a fault of our own in the configuration, which is not read again.
fn crashed(mut adhoc: Adhoc, engine: Option<Engine>) -> u8 {
    let layers = Layers::new(Agents::built_in());
    match adhoc.output {
        Some(Output::Json) => {
            let runner = TaskRunner::new(&mut adhoc, false);
            refused(runner, Job::new(layers), Failure::of_our_own(), &mut JsonLines::default(), engine)
        }
        Some(Output::Cli) | None => super::crashed(),
    }
}

/// An orchestrator gets a terminal frame. `output`: the choice on the command line.
pub(crate) fn refuse(
    workflow: Option<WorkflowKind>,
    output: Option<Output>,
    failure: Failure,
    signals: Option<SignalChannels>,
) -> u8 {
    if stdout_is_closed() {
        return undelivered();
    }
    let engine = Some(engine(signals));
    let mut adhoc = Adhoc::default();
    (adhoc.workflow, adhoc.output) = (workflow, output);
    let Ok(loaded) = catch_unwind(load) else { return crashed(adhoc, engine) };
    match output.unwrap_or_else(|| loaded.config.output()) {
        Output::Json => refuse_with(adhoc, loaded, failure, engine, &mut JsonLines::default()),
        Output::Cli => complain(&failure),
    }
}

fn refuse_with(mut adhoc: Adhoc, loaded: Loaded, failure: Failure, engine: Option<Engine>, peer: &mut dyn Peer) -> u8 {
    let runner = TaskRunner::new(&mut adhoc, false);
    refused(runner, job(adhoc, loaded), failure, peer, engine)
}

fn refused(runner: TaskRunner, job: Job, failure: Failure, peer: &mut dyn Peer, engine: Option<Engine>) -> u8 {
    let job = Job { begin: Begin::Refused(failure), record: None, debug_log: None, ..job };
    runner.run(reading(engine, Source::Nothing), job, peer, None).code
}

fn reading(engine: Option<Engine>, source: Source) -> Engine {
    let mut engine = engine.unwrap_or_else(|| Engine::start(Source::Nothing));
    engine.read(source);
    engine
}

fn undelivered() -> u8 {
    diagnose(UNDELIVERED);
    EXIT_UNDELIVERED
}

fn job(adhoc: Adhoc, loaded: Loaded) -> Job {
    let Loaded { config, mut warnings, .. } = loaded;
    let (mut layers, wrong) = config.layers();
    layers.above = adhoc.options.over(layers.above);
    if let Some(scenario) = adhoc.scenario {
        layers.agents.play(&scenario.to_string_lossy());
    }
    for (field, flag) in adhoc.flags {
        layers.origins.put(field, FieldOrigin::Flag(format!("--{flag}")));
    }
    warnings.extend(wrong.into_iter().map(|text| (Warning::UnsupportedOption, text)));
    Job {
        warnings,
        answers: Script::default(),
        on_eof: match adhoc.on_eof {
            AtEof::Continue => OnEof::Continue,
            AtEof::Cancel => OnEof::Cancel,
        },
        record: adhoc.record,
        debug_log: config.debug_dir().map(|dir| DebugLog {
            dir,
            project: config.folder().into(),
            command: adhoc.workflow.map_or("adhoc", WorkflowKind::word),
        }),
        project: Some(config.folder().into()),
        log_id: adhoc.log_id,
        mirror_stderr: adhoc.mirror_stderr,
        ..Job::new(layers)
    }
}

fn json(mut adhoc: Adhoc, loaded: Loaded, engine: Option<Engine>, peer: &mut dyn Peer) -> u8 {
    if let Err(message) = find_session(&mut adhoc, &loaded.config) {
        return refuse_with(adhoc, loaded, Failure::usage(message), engine, peer);
    }
    let (prompt, files, dry_run) = (Prompt::named_by(&adhoc), Named::take_from(&mut adhoc), adhoc.dry_run);
    let wanted = Wanted::of(&adhoc, &loaded.config);
    let signal_exit = adhoc.signal_exit;
    let stored = Kept::take_from(&mut adhoc);
    let read_messages = adhoc.read_messages || prompt.is_none();
    let runner = TaskRunner::new(&mut adhoc, prompt.is_some());
    let mut job = job(adhoc, loaded);
    // Nobody can answer if stdin carries no messages.
    let options = move |answered: bool| {
        let nobody = !read_messages && !answered;
        Options { interactive: nobody.then_some(false), ..Options::default() }
    };
    let at_once = prompt.is_none() && !files.any() && wanted.is_none();
    let make = move |prompt: Option<Prompt>| files.prepare(prompt, options);
    if dry_run {
        let prepared = make(Some(prompt.unwrap_or_else(Prompt::stand_in)));
        return plan(runner, prepared, job, Output::Json, peer);
    }
    let one_shot = prompt.is_some();
    let (tell, first_lines) = channel();
    let last = runner.last(&job).filter(|last| one_shot && stored.wanted(last.has_folder()));
    let source = if read_messages { Source::Stdin } else { Source::Nothing };
    let (request, mut end) = fresh_worktree(wanted, &job);
    if at_once {
        // Only the answers on the command line count.
        job.answers = make(None).map(|prepared| prepared.answers).unwrap_or_default();
    } else {
        job.begin = Begin::Awaited(in_worktree(request, move || {
            make(prompt).inspect(|prepared| tell_first_line(prepared, &tell))
        }));
    }
    let ended = runner.run(reading(engine, source), job, peer, end.as_mut());
    let code = if signal_exit && ended.is_cancelled() { shell_code(&ended) } else { ended.code };
    let last = close(end, last, (&ended, code));
    let _ = stored.keep(last, &ended, first_lines.try_recv().ok());
    code
}

/// A run that would be refused is refused here too.
fn plan(
    runner: TaskRunner,
    prepared: Result<Box<Prepared>, Failure>,
    mut job: Job,
    output: Output,
    peer: &mut dyn Peer,
) -> u8 {
    let planned = prepared.and_then(|prepared| {
        let Prepared { above, start, .. } = *prepared;
        job.layers.above = above.over(std::mem::take(&mut job.layers.above));
        runner.plan(start.unwrap_or_default(), &job)
    });
    match planned {
        Ok(plan) => plan.show(output),
        Err(failure) => refused(runner, job, failure, peer, None),
    }
}

fn cli(mut adhoc: Adhoc, loaded: Loaded, engine: Option<Engine>) -> u8 {
    let dry_run = adhoc.dry_run;
    let worktree = Wanted::of(&adhoc, &loaded.config);
    let runner = TaskRunner::new(&mut adhoc, true);
    let converses = adhoc.options.conversation == Some(true);
    let is_typed = converses && !dry_run && Prompt::named_by(&adhoc).is_none() && stdin::kind() == StdinKind::Terminal;
    let prompt = if is_typed { Ok(None) } else { runner.prompt(&adhoc).map(Some) };
    let prompt = match find_session(&mut adhoc, &loaded.config).and(prompt) {
        Ok(prompt) => prompt,
        Err(message) => return complain(&Failure::usage(message)),
    };
    let missing = super::default_is_missing(&loaded.config.layers().0, &adhoc.options);
    if let Some(failure) = missing.filter(|_| !dry_run && !runner.is_doubtful(&adhoc)) {
        return complain(&failure);
    }
    let look = look(&adhoc, loaded.config.alert());
    let reads_stdin = prompt.as_ref().is_some_and(Prompt::reads_stdin);
    let mut keyboard = keyboard(reads_stdin || converses).filter(|_| look.person);
    let typed = keyboard.as_mut().and_then(Keyboard::keys);
    if converses && !dry_run && typed.is_none() {
        return complain(&Failure::usage(NO_TERMINAL));
    }
    let mut peer = TerminalPeer::new(look, keyboard, std::env::var("HOME").ok());
    let files = Named::take_from(&mut adhoc);
    let stored = Kept::take_from(&mut adhoc);
    // The end of a worktree has a command of its own, or the worktree is gone.
    peer.resumed_by(stored.flag().filter(|_| worktree.is_none()));
    let (keeps, again) = (ChatAgain::hindrance(&adhoc), ChatAgain::of(&adhoc));
    let mut job = job(adhoc, loaded);
    let (defaults, _) = job.layers.under(Options::default());
    let wanted = defaults.interactive.unwrap_or(true);
    let person = typed.is_some();
    let source = typed.filter(|_| wanted || converses).map_or(Source::Nothing, Source::Terminal);
    job.signal_source = CancelSource::Terminal;
    let options = for_person(&defaults, runner.on_rate_limit(person));
    if reads_stdin && stdin::kind() == StdinKind::Terminal {
        diagnose(if stdin::is_in_background() { FETCH } else { TYPE });
    }
    if converses {
        let opening = || Options { interactive: Some(wanted), ..options.clone() };
        peer.converse(is_typed.then(opening), ChatPlace { keeps, ..surroundings(&job.layers) });
    }
    let interactive = move |answered: bool| Options { interactive: Some(wanted && (person || answered)), ..options };
    let make = move || files.prepare(prompt, interactive);
    if dry_run {
        return plan(runner, make(), job, Output::Cli, &mut peer);
    }
    // The engine handles signals while a slow writer fills the pipe.
    let (tell, first_lines) = channel();
    let (request, mut end) = fresh_worktree(worktree, &job);
    job.begin =
        Begin::Awaited(in_worktree(request, move || make().inspect(|prepared| tell_first_line(prepared, &tell))));
    let last = runner.last(&job).filter(|_| stored.wanted(true));
    let ended = runner.run(reading(engine, source), job, &mut peer, end.as_mut());
    let code = shell_code(&ended);
    let last = close(end, last, (&ended, code));
    let first_line = peer.take_first_line().or_else(|| first_lines.try_recv().ok());
    if let Err(why) = stored.keep(last, &ended, first_line) {
        diagnose(&format!("spektacular: warning: {why}"));
    }
    // A run that never worked had no questions to match.
    let worked = ![EXIT_UNDELIVERED, Code::AuthRequired.exit_code()].contains(&ended.code);
    super::warn(ended.unused_answers.iter().filter(|_| worked));
    // After a failure another model may work; a signal ends the conversation.
    match peer.again().cloned().filter(|_| ended.signal.is_none()) {
        Some(chosen) => {
            // The terminal gets its modes back.
            drop(peer);
            again.begin(&chosen, ended.session_id().map(|id| &**id))
        }
        None => code,
    }
}

/// The fields of run.start for a person, who may be away from the terminal, and wants to see text as it is written.
fn for_person(defaults: &Options, on_rate_limit: Option<OnRateLimit>) -> Options {
    Options {
        on_rate_limit: defaults.on_rate_limit.or(on_rate_limit),
        question_timeout_s: defaults.question_timeout_s.or(Some(Seconds(limits::SECONDS))),
        progress: defaults.progress.or(Some(Level::Full)),
        heartbeat_s: defaults.heartbeat_s.or(Some(LOG_HEARTBEAT)),
        ..Options::default()
    }
}

/// The exit code that shells expect: 128 and the number of the signal that cancelled the run.
fn shell_code(ended: &Report) -> u8 {
    ended.signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(ended.code)
}

fn fresh_worktree(wanted: Option<Wanted>, job: &Job) -> (Option<WorktreeRequest>, Option<WorktreeEnd>) {
    let Some(wanted) = wanted else { return (None, None) };
    let (options, _) = job.layers.under(Options::default());
    let limit = options.timeout_s.map(|limit| limit.duration());
    let (request, end) = worktree::request(wanted, options.cwd.as_deref(), limit);
    (Some(request), Some(end))
}

/// The process ends with this code even if closing takes too long. Returns the file for the run's session.
fn close(end: Option<WorktreeEnd>, last: Option<SessionFile>, (ended, code): (&Report, u8)) -> Option<SessionFile> {
    ended.last_resort.iter().for_each(|end| end.promise(code));
    match end {
        Some(end) => end.close(last, ended.asked_at),
        None => last,
    }
}

/// The terminal on which a person answers: stdin, or the controlling terminal if stdin contains the prompt.
fn keyboard(reads_stdin: bool) -> Option<Keyboard> {
    Keyboard::at_stdin().or_else(|| Keyboard::controlling().filter(|_| reads_stdin))
}

/// Resolves `--continue` and a name in `--session`. Error: no such session is here, or `--name` is taken.
fn find_session(adhoc: &mut Adhoc, config: &Config) -> Result<(), String> {
    let layers = || config.layers().0;
    if adhoc.go_on {
        adhoc.options.session_id = Some(continued(&layers(), adhoc.options.clone())?);
    } else if let Some(typed) = &adhoc.options.session_id {
        let id = match stored_in_worktree(&layers(), adhoc.options.clone(), typed) {
            Some((id, cwd)) => {
                // The session goes on where it was.
                adhoc.options.cwd = cwd.to_str().map(str::to_owned);
                id
            }
            None => resumed(&layers(), adhoc.options.clone(), typed)?,
        };
        adhoc.options.session_id = Some(id);
    }
    let Some(name) = &adhoc.session_name else { return Ok(()) };
    let stays = adhoc.options.session_id.as_ref().filter(|_| adhoc.options.fork != Some(true));
    is_free(&layers(), adhoc.options.clone(), name, stays)
}

/// The files that flags name, except the prompt's, and the answers on the command line.
struct Named {
    system_prompt: Option<PathBuf>,
    /// The files of other fields, with their flags.
    fields: Vec<(&'static str, String, PathBuf)>,
    answers_file: Option<PathBuf>,
    answers: Vec<(String, String)>,
}

impl Named {
    fn take_from(adhoc: &mut Adhoc) -> Named {
        let system_prompt = adhoc.system_prompt_file.take();
        if system_prompt.is_some() {
            adhoc.flags.insert("system_prompt", "system-prompt-file");
        }
        let flag = |field: &str| adhoc.flags.get(field).map(|flag| format!("--{flag}")).unwrap_or_default();
        let fields = std::mem::take(&mut adhoc.files);
        Named {
            system_prompt,
            fields: fields.into_iter().map(|(field, path)| (field, flag(field), path)).collect(),
            answers_file: adhoc.answers_file.take(),
            answers: std::mem::take(&mut adhoc.answers),
        }
    }

    fn any(&self) -> bool {
        self.system_prompt.is_some() || !self.fields.is_empty() || self.answers_file.is_some()
    }

    /// `options`: returns the other fields of run.start, given whether there are answers.
    fn prepare(self, prompt: Option<Prompt>, options: impl FnOnce(bool) -> Options) -> Result<Box<Prepared>, Failure> {
        let (above, answers) = self.read().map_err(Failure::usage)?;
        let answered = !answers.is_empty();
        let text = prompt.map(Prompt::read).transpose().map_err(Failure::usage)?;
        let start = text.map(|text| Options { prompt: Some(text), ..options(answered) });
        Ok(Box::new(Prepared { above, answers, start }))
    }

    fn read(self) -> Result<(Options, Script), String> {
        let mut options = Options::default();
        if let Some(path) = &self.system_prompt {
            options.system_prompt = Some(texts::file("--system-prompt-file", path)?);
        }
        for (field, flag, path) in self.fields {
            let value = texts::value(&flag, field, &path)?;
            options
                .set(field, &value)
                .map_err(|problem| format!("{flag} {}.", typed_fields::clause(field, &problem)))?;
        }
        let mut script = match &self.answers_file {
            Some(path) => Script::read(&texts::file("--answers", path)?).map_err(|why| format!("--answers: {why}"))?,
            None => Script::default(),
        };
        script.add_typed(self.answers);
        Ok((options, script))
    }
}

/// Sends the first line of the prompt to the thread that stores the session.
fn tell_first_line(prepared: &Prepared, tell: &Sender<String>) {
    if let Some(options) = &prepared.start {
        let prompt = options.prompt.as_deref().unwrap_or_default();
        let line = prompt.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        // Nobody receives it if the run did not begin.
        let _ = tell.send(line.to_owned());
    }
}

/// Whether and under which name the session of a run is stored for `--continue` and `sessions`.
enum Kept {
    Not,
    Unnamed,
    Named(SessionName),
}

impl Kept {
    fn take_from(adhoc: &mut Adhoc) -> Kept {
        match adhoc.session_name.take() {
            _ if adhoc.no_session => Kept::Not,
            Some(name) => Kept::Named(name),
            None => Kept::Unnamed,
        }
    }

    /// `otherwise`: the choice for a session without a name.
    fn wanted(&self, otherwise: bool) -> bool {
        match self {
            Kept::Not => false,
            Kept::Unnamed => otherwise,
            Kept::Named(_) => true,
        }
    }

    fn flag(&self) -> Option<String> {
        match self {
            Kept::Not => None,
            Kept::Unnamed => Some("--continue".to_owned()),
            Kept::Named(name) => Some(format!("--resume {}", &**name)),
        }
    }

    /// `first_line`: that of the prompt. Error: what a person must know about it.
    fn keep(self, last: Option<SessionFile>, ended: &Report, first_line: Option<String>) -> Result<(), &'static str> {
        let words = ended.redacted(&first_line.unwrap_or_default());
        let name = match self {
            Kept::Not | Kept::Unnamed => None,
            Kept::Named(name) => Some(name),
        };
        let cost_usd = ended.terminal.as_ref().and_then(|end| end.usage.cost_usd);
        let last = last.and_then(|last| last.of_agent(ended.took_over.as_deref()));
        let Some((last, id)) = last.zip(ended.session_id()) else { return Ok(()) };
        match last.keep(&Stored { name, cost_usd, ..Stored::now(id, &words) }) {
            Ok(true) => Ok(()),
            Ok(false) => Err("another run has taken the name of this session, which is stored without it"),
            Err(_) => Err("the session could not be stored for --continue"),
        }
    }
}

//! `protocol check`: runs a client against dialogues that this program plays, and reports the client's mistakes.
//!
//! The checker starts the client once per dialogue. The client calls this program, which finds [`CHECK`] in its
//! environment: the run is a real one in which the demo agent plays the dialogue's scenario whatever the client asks for.
//! Its peer, [`noting`], and the [`mangler`] behind it append what they see to the [`log`]. The [`judge`] turns the log into
//! mistakes.

mod dialogues;
mod judge;
mod log;
mod mangler;
mod noting;

use self::dialogues::{DIALOGUES, Dialogue, Quirk};
use self::judge::{Verdict, judge};
use self::log::{Fact, Log};
use self::mangler::{Mangler, NO_MORE};
use self::noting::NotingPeer;
use super::{adhoc, complain};
use crate::cli::action::Offers;
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{FlagForm, GivenFlag, Row, flags, json, output, own_seconds, own_texts, store};
use crate::cli::{Adhoc, Output, Wrong};
use crate::config;
use crate::io::output::{deliver, print, print_bytes};
use crate::io::{panic_channel, signals, spawn_thread};
use crate::json::to_line;
use crate::process::own_executable;
use crate::process::query::Queries;
use crate::process::variables::CHECK;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::request::{Options, Seconds};
use crate::protocol::words::{OnQuestionTimeout, OnUnsupported};
use crate::suggest::{Typed, Unknown};
use serde_json::{Value, json};
use std::env::{join_paths, split_paths, var_os};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

pub(super) const COMMAND: Command = Command {
    words: Words::Free("-- COMMAND...", Offers::Files),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "protocol check",
        &CommandText {
            about: "check a client of the protocol against scripted dialogues",
            more: "\
COMMAND starts your client. It runs once per dialogue, with a stand-in for spektacular first on its PATH. The variable SPEKTACULAR holds the stand-in's path.
The client must start one run of `spektacular adhoc --output json`, and exit with 0 if the run completes, and with another code if not.
The stand-in starts no agent. The report says in sentences what the client did wrong. What COMMAND prints goes to stderr.
`spektacular protocol checking a client` explains the dialogues.
Exit codes: 0: no mistakes; 1: mistakes; 2: COMMAND cannot be started, or the command line is wrong.",
            examples: &[
                ("spektacular protocol check -- python3 client.py", "check a client"),
                ("spektacular protocol check --dialogue timeout -- node client.js", "play one dialogue"),
                ("spektacular protocol check --output json -- ./client", "for a program"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, run)),
    )
};

const FLAGS: &[Row<ProtocolCheckArgs>] = &[
    own_texts("dialogue", "NAME", FlagForm::Item, "play only this dialogue", |to: &mut ProtocolCheckArgs| {
        &mut to.dialogues
    })
    .begins("The check"),
    own_seconds("timeout", "limit for a run of COMMAND", |to: &mut ProtocolCheckArgs| &mut to.timeout)
        .default("20")
        .more("A question waits for half of it."),
    output(|to: &mut ProtocolCheckArgs| &mut to.output),
    json(|to: &mut ProtocolCheckArgs| &mut to.output),
];

#[derive(Debug, Default)]
struct ProtocolCheckArgs {
    /// Not empty.
    command: Vec<OsString>,
    /// Empty: all dialogues.
    dialogues: Vec<String>,
    timeout: Option<Seconds>,
    output: Output,
}

const NO_COMMAND: &str = "Missing COMMAND: give the command that starts your client, after --.";

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<ProtocolCheckArgs, Wrong> {
    if words.is_empty() {
        return Err(NO_COMMAND.into());
    }
    Ok(ProtocolCheckArgs { command: words, ..store(FLAGS, given)? })
}

/// The variable with the path of the played program.
const PROGRAM: &str = "SPEKTACULAR";
/// The time for an answer in a dialogue whose questions time out.
const SHORT: Seconds = Seconds(0.3);
/// The default time limit of the command, for each dialogue.
const TIMEOUT: Seconds = Seconds(20.0);

pub(super) struct Assigned {
    dialogue: &'static Dialogue,
    /// The time for an answer.
    limit: Duration,
    log: PathBuf,
}

impl Assigned {
    /// `None`: this process is not below a checker.
    pub(super) fn here() -> Option<Assigned> {
        let value = var_os(CHECK)?.into_string().ok()?;
        let mut parts = value.splitn(3, ':');
        let dialogue = Dialogue::named(parts.next()?)?;
        let limit = Duration::from_millis(parts.next()?.parse().ok()?);
        Some(Assigned { dialogue, limit, log: parts.next()?.into() })
    }

    pub(super) fn play(self, mut run: Adhoc) -> u8 {
        let Some(mut log) = self.called() else { return unlogged() };
        let output = run.output.unwrap_or_else(|| config::load().config.output());
        if let Err(wrong) = playable(&run, output) {
            log.note(Fact::WrongCall(wrong.into()));
            return adhoc::refuse(run.workflow, Some(output), Failure::usage(wrong), None);
        }
        let scenario = self.log.with_extension("scenario.json");
        let Ok(()) = fs::write(&scenario, self.dialogue.scenario()) else { return unlogged() };
        self.fit(&mut run.options);
        run.scenario = Some(scenario);
        (run.dry_run, run.go_on, run.no_session, run.session_name, run.worktree) = (false, false, true, None, None);
        let signals = signals::listen().ok();
        let (tell, exit) = channel();
        let mangler = Log::open(&self.log).and_then(|log| Mangler::install(self.dialogue, log));
        let pass_on = |mangler: Mangler| {
            spawn_thread("frames", move || {
                // Nobody receives it if the process ends first.
                let _ = tell.send(mangler.pass_on());
            })
        };
        if mangler.and_then(pass_on).is_err() {
            return unlogged();
        }
        let path = self.log.clone();
        let code = adhoc::run_with(run, signals, &mut NotingPeer::new(self, log));
        print_bytes(NO_MORE);
        if let Ok(exit) = exit.recv() {
            return exit.unwrap_or(code);
        }
        // The mangler panicked.
        Log::open(&path).into_iter().for_each(|mut log| log.note(Fact::OwnFault));
        complain(&own_fault())
    }

    /// Sets the fields that the dialogue needs, and removes those that the demo agent lacks.
    fn fit(&self, options: &mut Options) {
        let short = self.dialogue.quirk == Quirk::Expires;
        options.question_timeout_s = Some(if short { SHORT } else { Seconds(self.limit.as_secs_f64()) });
        options.on_question_timeout = Some(OnQuestionTimeout::Continue);
        options.on_unsupported = Some(OnUnsupported::Warn);
        (options.session_id, options.fork, options.images, options.output_schema) = (None, None, None, None);
        options.agent_args = None;
    }

    /// `output`: the choice on the command line.
    pub(super) fn refuse(self, wrong: Wrong, output: Option<Output>) -> u8 {
        let Some(mut log) = self.called() else { return unlogged() };
        log.note(Fact::WrongCall(format!("The command line of spektacular is wrong: {wrong}")));
        adhoc::refuse(None, output, Failure::usage(wrong), None)
    }

    fn called(&self) -> Option<Log> {
        let mut log = Log::open(&self.log).ok()?;
        log.note(Fact::Called);
        Some(log)
    }
}

/// Error: a sentence about the mistake.
fn playable(adhoc: &Adhoc, output: Output) -> Result<(), &'static str> {
    match output {
        _ if adhoc.workflow.is_some() => {
            Err("The command called a workflow: the dialogues are runs of `spektacular adhoc`.")
        }
        Output::Json => Ok(()),
        Output::Cli => Err("The command called `spektacular adhoc` without `--output json`."),
    }
}

fn unlogged() -> u8 {
    complain(&Failure::new(
        Code::InternalError,
        "The checker's log cannot be opened: start the client with spektacular protocol check.",
    ))
}

fn run(typed: ProtocolCheckArgs) -> u8 {
    let panics = panic_channel::listen();
    // A person sees each dialogue as soon as it is over.
    let show = |dialogue: &Dialogue, verdict: &Verdict| match typed.output {
        Output::Cli => print(&lines(dialogue, verdict)),
        Output::Json => true,
    };
    let verdicts = match check(&typed, show) {
        Ok(verdicts) => verdicts,
        Err(failure) => return complain(&failure),
    };
    if panics.try_recv().is_ok() {
        return complain(&own_fault());
    }
    let passed = verdicts.iter().all(|(_, verdict)| verdict.findings.is_empty());
    let text = match typed.output {
        Output::Json => report(&verdicts, passed),
        Output::Cli => summary(&verdicts),
    };
    match deliver(&text) {
        0 => u8::from(!passed),
        undelivered => undelivered,
    }
}

/// The client must not be blamed for a fault of ours.
fn own_fault() -> Failure {
    let message = "spektacular has a bug and cannot judge the client: report what it wrote above.";
    Failure::new(Code::InternalError, message)
}

type Verdicts = Vec<(&'static Dialogue, Verdict)>;

/// Plays the dialogues one after the other, until `show` cannot show one.
fn check(typed: &ProtocolCheckArgs, show: impl Fn(&Dialogue, &Verdict) -> bool) -> Result<Verdicts, Failure> {
    if let Some(name) = typed.dialogues.iter().find(|name| Dialogue::named(name).is_none()) {
        let names = DIALOGUES.iter().map(|dialogue| dialogue.name);
        let unknown = Unknown { what: "dialogue", dashes: "", typed: Typed::Value(name), place: "" };
        let known: Vec<&str> = names.clone().collect();
        let message = unknown.message(names, &format!("The dialogues are: {}.", known.join(", ")));
        return Err(Failure::usage(message));
    }
    let queries = Queries::begin();
    let folder = queries.folder().ok_or_else(|| {
        let message = "Cannot create a directory for temporary files: free some space, or set TMPDIR.";
        Failure::new(Code::ResourceExhausted, message)
    })?;
    let link = folder.join("spektacular");
    let program = own_executable::file().ok_or_else(own_executable::not_found)?;
    symlink(program, &link).map_err(|_| own_executable::not_found())?;
    let chosen =
        |dialogue: &&Dialogue| typed.dialogues.is_empty() || typed.dialogues.iter().any(|name| name == dialogue.name);
    let mut verdicts = Verdicts::new();
    let mut idle = false;
    for dialogue in DIALOGUES.iter().filter(chosen) {
        let verdict = if idle { Verdict::not_begun() } else { hold(dialogue, typed, folder, &queries)? };
        idle |= verdict.idle;
        let is_shown = show(dialogue, &verdict);
        verdicts.push((dialogue, verdict));
        if !is_shown {
            break;
        }
    }
    Ok(verdicts)
}

fn hold(
    dialogue: &'static Dialogue,
    typed: &ProtocolCheckArgs,
    folder: &Path,
    queries: &Queries,
) -> Result<Verdict, Failure> {
    let limit = typed.timeout.unwrap_or(TIMEOUT).duration();
    let path = folder.join(format!("{}.jsonl", dialogue.name));
    let unwritten =
        |_| Failure::new(Code::ResourceExhausted, "Cannot write a file for temporary data: free some space.");
    let mut log = Log::open(&path).map_err(unwritten)?;
    let mut assigned = OsString::from(format!("{}:{}:", dialogue.name, limit.as_millis() / 2));
    assigned.push(&path);
    let old = var_os("PATH").unwrap_or_default();
    let on_path = join_paths([folder.to_owned()].into_iter().chain(split_paths(&old))).unwrap_or(old);
    let env = [(CHECK, assigned), (PROGRAM, folder.join("spektacular").into()), ("PATH", on_path)];
    let (program, args) = typed.command.split_first().ok_or_else(|| Failure::usage(NO_COMMAND))?;
    let client = queries.start_client(program, args, &env).map_err(|error| {
        let kinds = [(ErrorKind::NotFound, "it was not found"), (ErrorKind::PermissionDenied, "it is not executable")];
        let known = kinds.iter().find(|(kind, _)| *kind == error.kind());
        let why = known.map_or("the system refused it", |(_, why)| why);
        Failure::usage(format!("COMMAND cannot be started: {why}."))
    })?;
    log.note(match client.wait(limit) {
        Some(code) => Fact::CommandEnded(code),
        None => Fact::Expired,
    });
    drop(client);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let facts = log::read(&text);
    if facts.iter().any(|entry| entry.fact == Fact::OwnFault) {
        return Err(own_fault());
    }
    Ok(judge(dialogue, &facts, std::process::id()))
}

fn word(verdict: &Verdict) -> &'static str {
    match (verdict.findings.is_empty(), &verdict.skipped) {
        (false, _) => "wrong",
        (true, Some(_)) => "skipped",
        (true, None) => "passed",
    }
}

fn lines(dialogue: &Dialogue, verdict: &Verdict) -> String {
    let mut out = format!("{:7}  {:13}  {}\n", word(verdict), dialogue.name, dialogue.about);
    let skipped = verdict.skipped.iter().map(|why| format!("Not played: {why}."));
    for line in verdict.findings.iter().map(|finding| finding.text.clone()).chain(skipped) {
        out += &format!("         {line}\n");
    }
    out
}

fn summary(verdicts: &Verdicts) -> String {
    let wrong = verdicts.iter().filter(|(_, verdict)| !verdict.findings.is_empty()).count();
    match wrong {
        0 => "The client made no mistakes.\n".to_owned(),
        wrong => format!("The client made mistakes in {wrong} of {} dialogues.\n", verdicts.len()),
    }
}

fn report(verdicts: &Verdicts, passed: bool) -> String {
    let one = |(dialogue, verdict): &(&Dialogue, Verdict)| {
        let mistakes: Vec<Value> =
            verdict.findings.iter().map(|finding| json!({"code": finding.mistake, "text": finding.text})).collect();
        json!({
            "name": dialogue.name,
            "about": dialogue.about,
            "passed": mistakes.is_empty(),
            "skipped": verdict.skipped,
            "mistakes": mistakes,
        })
    };
    let dialogues: Vec<Value> = verdicts.iter().map(one).collect();
    to_line(&json!({"passed": passed, "dialogues": dialogues})) + "\n"
}

#[cfg(test)]
mod tests {
    use super::dialogues::DIALOGUES;
    use crate::protocol::publish::REFERENCE;

    #[test]
    fn the_reference_has_every_dialogue() {
        let (_, section) = REFERENCE.split_once("\n## Checking a client\n").unwrap();
        for dialogue in DIALOGUES {
            assert!(section.contains(&format!("`{}`", dialogue.name)), "{}", dialogue.name);
        }
    }
}

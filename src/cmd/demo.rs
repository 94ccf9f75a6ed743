//! `demo`: lists and shows the scenarios of the demo agent, and is the process that plays them.

use super::agents::live_columns;
use super::texts::unread;
use super::{complain, finish};
use crate::agent::demo::catalog::NAMES;
use crate::agent::demo::catalog::{self, ScenarioChoice};
use crate::agent::demo::play;
use crate::agent::demo::player::{DemoStage, End, HeardLine, Wait};
use crate::agent::demo::read::FILE_BYTES;
use crate::agent::demo::scenario::Scenario;
use crate::cli::action::{ActionRow, Offers, Word, act, actions, bare, maybe, one};
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, json, output, store};
use crate::cli::{Output, Wrong};
use crate::help::between_words;
use crate::io::files::{OpenFolder, read_text};
use crate::io::output::{deliver, diagnose, print};
use crate::io::spawn_thread;
use crate::json::to_line;
use crate::protocol::failure::Failure;
use crate::workflow::spec;
use crossbeam_channel::{Receiver, bounded};
use rustix::fs::OFlags;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::io::{BufRead, ErrorKind, Write, stdin};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const COMMAND: Command = Command {
    words: Words::Actions(&actions::<_, { ACTIONS.len() }>(ACTIONS)),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    ..Command::named(
        "demo",
        &CommandText {
            about: "list and show the demo agent's scenarios, for testing an orchestrator",
            more: "\
SCENARIO is a name from the list, or the path of a file. show prints the dialogue for a person, and with --output json the
scenario's file, a template for your own. `spektacular help agents reference` describes the format.",
            examples: &[
                ("spektacular demo list", "show the names"),
                ("spektacular adhoc --agent demo:questions \"go\"", "answer every kind of question"),
                ("spektacular demo show questions --output json > mine.json", "begin a scenario of your own"),
                ("spektacular adhoc --agent demo:./mine.json \"go\"", "play it"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<DemoArgs>] =
    &[output(|to: &mut DemoArgs| &mut to.output).begins("Output"), json(|to: &mut DemoArgs| &mut to.output)];

#[derive(Debug, Default)]
struct DemoArgs {
    what: DemoAction,
    output: Output,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum DemoAction {
    #[default]
    List,
    /// A name, or the path of a file.
    Show(String),
    /// `None`: the default scenario.
    Play(Option<String>),
}

const SCENARIO: Word = Word { name: "SCENARIO", offers: Offers::WordsOrFiles(NAMES) };

const ACTIONS: &[ActionRow<DemoAction>] = &[
    bare("list", "list the scenarios", || DemoAction::List),
    one("show", "print the dialogue of a scenario", &[SCENARIO], DemoAction::Show),
    maybe(
        "play",
        "play the agent's side on stdin and stdout, as --agent demo starts it",
        &[SCENARIO],
        DemoAction::Play,
    ),
];

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<DemoArgs, Wrong> {
    Ok(DemoArgs { what: act("demo", ACTIONS, words)?, ..store(FLAGS, given)? })
}

fn run(typed: &DemoArgs) -> u8 {
    match &typed.what {
        DemoAction::List => deliver(&list(typed.output)),
        DemoAction::Show(name) => finish(show(name, typed.output)),
        DemoAction::Play(name) => play_named(name.as_deref()).unwrap_or_else(|failure| complain(&failure)),
    }
}

fn list(output: Output) -> String {
    let all = catalog::list();
    match output {
        Output::Json => {
            let one = |(name, about): (&str, String)| json!({"name": name, "about": about});
            let all: Vec<Value> = all.into_iter().map(one).collect();
            to_line(&json!({"scenarios": all})) + "\n"
        }
        Output::Cli => {
            let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
            let lines: String = all.iter().map(|(name, about)| format!("{name:width$}  {about}\n")).collect();
            between_words(&lines, live_columns(), |_| width + 2)
        }
    }
}

fn show(name: &str, output: Output) -> Result<String, Failure> {
    let (text, scenario) = scenario(name)?;
    Ok(match output {
        Output::Json => text,
        Output::Cli => scenario.script(name),
    })
}

fn scenario(name: &str) -> Result<(String, Scenario), Failure> {
    let choice = ScenarioChoice::of(name).ok_or_else(|| Failure::usage(catalog::unknown(name, "")))?;
    let text = match choice {
        ScenarioChoice::BuiltIn(name) => catalog::text(name).to_owned(),
        ScenarioChoice::File(path) => read_text(Path::new(path), FILE_BYTES as u64).map_err(|error| {
            let is_long = error.kind() == ErrorKind::FileTooLarge;
            let why = if is_long { "the file is longer than 1 MiB: shorten it" } else { unread(error.kind()) };
            Failure::usage(format!("{path}: {why}."))
        })?,
    };
    let scenario = Scenario::parse(&text).map_err(|flaw| Failure::usage(flaw.message(name)))?;
    Ok((text, scenario))
}

/// The default scenario also works for workflows.
fn play_named(name: Option<&str>) -> Result<u8, Failure> {
    let (_, scenario) = scenario(name.unwrap_or(NAMES[0]))?;
    let mut process = PlayingProcess::start()?;
    match play(&scenario, name.is_none(), &mut process) {
        End::Exit(code) => Ok(code),
        End::Hang => loop {
            std::thread::park();
        },
    }
}

struct PlayingProcess {
    host: Receiver<String>,
    began: Instant,
    cwd: PathBuf,
    written: BTreeSet<String>,
}

impl PlayingProcess {
    fn start() -> Result<PlayingProcess, Failure> {
        let (send, host) = bounded(16);
        let read = move || {
            for line in stdin().lock().lines() {
                if line.is_ok_and(|line| send.send(line).is_err()) {
                    return;
                }
            }
        };
        spawn_thread("stdin", read).map_err(|_| Failure::no_thread())?;
        let cwd = std::env::current_dir().unwrap_or_default();
        Ok(PlayingProcess { host, began: Instant::now(), cwd, written: BTreeSet::new() })
    }

    /// The folder of a file, and the file's name. Follows no link. `create`: whether to create the folders.
    fn folder<'p>(&self, path: &'p str, create: bool) -> Option<(OpenFolder, &'p OsStr)> {
        let path = Path::new(path);
        let mut folder = OpenFolder::open(&self.cwd).ok()?;
        for part in path.parent()?.components() {
            let part = part.as_os_str();
            folder = if create { folder.enter(part) } else { folder.inner(part) }.ok()?;
        }
        Some((folder, path.file_name()?))
    }
}

impl DemoStage for PlayingProcess {
    fn print(&mut self, line: &str) -> bool {
        print(&format!("{line}\n"))
    }

    fn complain(&mut self, text: &str) {
        diagnose(text);
    }

    fn hear(&mut self, wait: Wait) -> HeardLine {
        let line = match wait {
            Wait::Forever => self.host.recv().ok(),
            Wait::AtMost(limit) => match self.host.recv_timeout(limit) {
                Err(error) if error.is_timeout() => return HeardLine::Silence,
                heard => heard.ok(),
            },
        };
        line.map_or(HeardLine::Ended, HeardLine::Line)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn write(&mut self, path: &str, content: &str, guarded: bool) -> Option<bool> {
        if !guarded {
            let path = self.cwd.join(path);
            let is_new = !path.exists();
            std::fs::create_dir_all(path.parent()?).ok()?;
            return std::fs::write(&path, content).ok().map(|()| is_new);
        }
        let (folder, name) = self.folder(path, true)?;
        let is_new = folder.stat(name).is_none();
        let mut file = folder.file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC, 0o666).ok()?;
        file.write_all(content.as_bytes()).ok()?;
        self.written.insert(path.to_owned());
        Some(is_new)
    }

    fn delete(&mut self, path: &str) -> bool {
        // The user's own files are safe even from a scenario that may delete.
        self.written.contains(path)
            && self.folder(path, false).is_some()
            && std::fs::remove_file(self.cwd.join(path)).is_ok()
    }

    fn read(&mut self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.cwd.join(path)).ok()
    }

    fn requirements(&self, text: &str) -> Vec<u64> {
        spec::check("", text.as_bytes(), &[]).0.ids().unwrap_or_default()
    }
}

//! `sessions`: lists the last sessions in a directory, newest first, shows one, and removes one.

use super::agent_check::capabilities;
use super::{configured, finish, json_line};
use crate::clean::escaped;
use crate::cli::action::{ActionRow, Offers, Word, act, actions, bare, one};
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, json, output, own_path, store};
use crate::cli::{Output, Wrong, foreign};
use crate::config::Layers;
use crate::protocol::failure::{Code, Failure};
use crate::protocol::request::Options;
use crate::sessions::{SessionFile, Stored, find, newest};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::macros::format_description;

pub(super) const COMMAND: Command = Command {
    words: Words::Actions(&actions::<_, { ACTIONS.len() }>(ACTIONS)),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    foreign: foreign::SESSIONS_FLAGS,
    ..Command::named(
        "sessions",
        &CommandText {
            about: "list, show and remove the last sessions in this directory",
            more: "\
Each line shows the session's id, its agent, its age, its name, and the first words of its last prompt, redacted.
The list contains the sessions that adhoc stored for --continue, newest first, at most 20 of each agent.
SESSION is an id or a name. A session with a name stays in the list longer than the others.",
            examples: &[
                ("spektacular sessions", "list them"),
                ("spektacular adhoc --name parser \"fix the parser\"", "begin one with a name"),
                ("spektacular adhoc --resume parser \"now write a test for it\"", "continue one of them"),
                ("spektacular sessions show parser", "show its id, its directory and its cost"),
                ("spektacular sessions rm parser", "remove it from the list"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| finish(text(&args)))),
    )
};

const FLAGS: &[Row<SessionsArgs>] = &[
    own_path("cwd", "DIR", "the directory of the sessions", |to: &mut SessionsArgs| &mut to.cwd)
        .short('C')
        .begins("The sessions"),
    output(|to: &mut SessionsArgs| &mut to.output),
    json(|to: &mut SessionsArgs| &mut to.output),
];

#[derive(Debug, Default)]
struct SessionsArgs {
    what: SessionsAction,
    cwd: Option<PathBuf>,
    output: Output,
}

/// The actions of `sessions`. A session is named by its id or its name.
#[derive(Debug, Default, PartialEq, Eq)]
enum SessionsAction {
    #[default]
    List,
    Show(String),
    Remove(String),
}

const SESSION: &[Word; 1] = &[Word { name: "SESSION", offers: Offers::Sessions }];

const ACTIONS: &[ActionRow<SessionsAction>] = &[
    bare("list", "list the sessions, also without an action", || SessionsAction::List),
    one("show", "show what is stored about a session", SESSION, SessionsAction::Show),
    one("rm", "remove a session from the list; the agent keeps its own files", SESSION, SessionsAction::Remove),
];

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<SessionsArgs, Wrong> {
    let mut sessions: SessionsArgs = store(FLAGS, given)?;
    if !words.is_empty() {
        sessions.what = act("sessions", ACTIONS, words)?;
    }
    Ok(sessions)
}

type Found<'a> = (&'a str, Stored);

pub(super) fn listed(layers: &Layers, cwd: &Path) -> String {
    let now = seconds_now();
    newest(layers, Some(cwd)).iter().map(|found| line(found, now)).collect()
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

fn text(typed: &SessionsArgs) -> Result<String, Failure> {
    let layers = configured()?;
    let cwd = typed.cwd.as_deref().unwrap_or(Path::new("."));
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let found = newest(&layers, Some(&cwd));
    let now = seconds_now();
    let one = |name: &str| find(&found, name).map_err(|message| Failure::new(Code::SessionNotFound, message));
    Ok(match (&typed.what, typed.output) {
        (SessionsAction::List, Output::Json) => {
            json_line(&json!({"sessions": found.iter().map(|found| entry(found, &cwd)).collect::<Vec<_>>()}))
        }
        (SessionsAction::List, Output::Cli) => found.iter().map(|found| line(found, now)).collect(),
        (SessionsAction::Show(name), Output::Json) => json_line(&json!({"session": entry(one(name)?, &cwd)})),
        (SessionsAction::Show(name), Output::Cli) => {
            let found = one(name)?;
            shown(found, &cwd, now, can_resume(&layers, found.0))
        }
        (SessionsAction::Remove(name), output) => {
            let found = one(name)?;
            remove(&layers, &cwd, found)?;
            match output {
                Output::Json => json_line(&json!({"removed": entry(found, &cwd)})),
                Output::Cli => format!("removed {} of {}; the agent keeps its own files\n", &*found.1.id, found.0),
            }
        }
    })
}

fn remove(layers: &Layers, cwd: &Path, (agent, stored): &Found<'_>) -> Result<(), Failure> {
    let cwd = Some(cwd.to_string_lossy().into_owned());
    let options = Options { agent: Some((*agent).to_owned()), cwd, ..Options::default() };
    let removed = SessionFile::of_run(layers, options).map_or(Ok(()), |file| file.forget(&stored.id));
    removed.map_err(|error| Failure::usage(format!("The file of the sessions cannot be written: {error}.")))
}

fn entry((agent, stored): &Found<'_>, cwd: &Path) -> Value {
    let Stored { id, at, words, name, cost_usd } = stored;
    json!({
        "agent": agent,
        "session_id": id,
        "name": name,
        "at": (*at > 0).then_some(at),
        "cwd": cwd.to_string_lossy(),
        "prompt": words,
        "cost_usd": cost_usd,
    })
}

fn line((agent, stored): &Found<'_>, now: u64) -> String {
    let (Stored { at, words, name, .. }, id) = (stored, &*stored.id);
    let name = name.as_deref().map(|name| format!("{name}  ")).unwrap_or_default();
    format!("{id}  {agent}  {}  {name}{words}", age(now.saturating_sub(*at), *at)).trim_end().to_owned() + "\n"
}

/// Whether an agent can resume its sessions, as far as is known.
fn can_resume(layers: &Layers, agent: &str) -> bool {
    let agent = layers.agents.iter().find(|entry| entry.name == agent);
    agent.is_none_or(|agent| capabilities(agent, layers).resume != Some(false))
}

fn shown((agent, stored): &Found<'_>, cwd: &Path, now: u64, can_resume: bool) -> String {
    let Stored { id, at, words, name, cost_usd } = stored;
    let format = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");
    let ended = OffsetDateTime::from(UNIX_EPOCH + Duration::from_secs(*at)).format(format).unwrap_or_default();
    let ended = (*at > 0).then(|| format!("{ended}, {}", age(now.saturating_sub(*at), *at)));
    let resume = format!("spektacular adhoc --agent {agent} --resume {} \"TASK\"", name.as_deref().unwrap_or(id));
    let facts = [
        ("session", Some(id.to_string())),
        ("name", name.as_ref().map(|name| name.to_string())),
        ("agent", Some((*agent).to_owned())),
        ("directory", Some(escaped(&cwd.to_string_lossy(), false).replace('\n', "\\u{a}"))),
        ("last run", ended),
        ("prompt", Some(words.clone()).filter(|words| !words.is_empty())),
        ("cost", cost_usd.map(|cost| format!("${cost:.4}"))),
        ("continue", can_resume.then_some(resume)),
    ];
    facts.into_iter().filter_map(|(label, fact)| Some(format!("{label:<10} {}\n", fact?))).collect()
}

/// The time since `at`, in the largest fitting unit.
fn age(seconds: u64, at: u64) -> String {
    match seconds {
        _ if at == 0 => "-".into(),
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn an_age_has_one_unit() {
        let ages = [(5, "5s ago"), (65, "1m ago"), (7300, "2h ago"), (200_000, "2d ago")];
        assert_eq!(ages.map(|(seconds, _)| age(seconds, 1)), ages.map(|(_, shown)| shown));
        assert_eq!(age(5, 0), "-");
    }
}

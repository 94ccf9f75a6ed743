//! `agents list` and `agents check`: which agents can be named, and which of them are ready on this machine. Nothing is
//! written, no model is called, and an agent that is missing is an answer and no error.

use super::{complain, configured, named};
use crate::agent::Program;
use crate::agent::native::{self, LoggedIn, Native};
use crate::agent::registry::Agent;
use crate::agent::registry::Layers;
use crate::cli::{self, Output, What};
use crate::engine::redactor_here;
use crate::failure::{EXIT_UNDELIVERED, Failure};
use crate::io::output::print;
use crate::process::query::{Asked, ask, find, variable};
use crate::process::scratch::Scratch;
use crate::protocol::json::{Fields, string, to_line};
use crate::protocol::request::Options;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an agent may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// The most of a file or an answer that is read, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// Runs it; gives the exit code.
pub fn run(typed: &cli::Agents) -> u8 {
    let layers = match configured() {
        Ok(layers) => layers,
        Err(failure) => return complain(&failure),
    };
    match chosen(typed, &layers) {
        Ok(chosen) => show(typed, &chosen),
        Err(failure) => complain(&failure),
    }
}

fn chosen<'a>(typed: &cli::Agents, layers: &'a Layers) -> Result<Vec<&'a Agent>, Failure> {
    match &typed.what {
        What::Check(Some(name)) => Ok(vec![named(layers, Some(name))?]),
        What::List | What::Check(None) => Ok(layers.agents.iter().collect()),
    }
}

fn show(typed: &cli::Agents, chosen: &[&Agent]) -> u8 {
    let text: String = match (&typed.what, typed.output) {
        (What::List, Output::Json) => whole(chosen.iter().map(|agent| entry(agent)).collect()),
        (What::List, Output::Cli) => table(chosen.iter().map(|agent| row(agent)).collect()),
        (What::Check(_), Output::Json) => whole(chosen.iter().zip(checks(chosen)).map(checked).collect()),
        (What::Check(_), Output::Cli) => {
            let parts: Vec<String> =
                chosen.iter().zip(checks(chosen)).map(|(agent, check)| for_people(agent, &check)).collect();
            parts.join("\n")
        }
    };
    if print(&text) { 0 } else { EXIT_UNDELIVERED }
}

fn whole(agents: Vec<Value>) -> String {
    to_line(&json!({"agents": agents})) + "\n"
}

/// The program and its arguments, as its entry has them; redacted, since the arguments may hold a key.
fn command(agent: &Agent) -> Vec<String> {
    let program = match &agent.base.program {
        Program::Command(name) => name.as_str(),
        Program::Myself => "spektacular",
    };
    let redactor = redactor_here(&Options::default(), Some(agent));
    let words = std::iter::once(program).chain(agent.base.args.iter().map(String::as_str));
    words.map(|word| redactor.redact(word).into_owned()).collect()
}

fn entry(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "display_name": agent.display_name,
        "aliases": agent.aliases,
        "driver": agent.dialect.name(),
        "command": command(agent),
    })
}

fn row(agent: &Agent) -> [String; 4] {
    let names = std::iter::once(&agent.name).chain(&agent.aliases).cloned().collect::<Vec<_>>().join(", ");
    [names, agent.display_name.clone(), agent.dialect.name().into(), command(agent).join(" ")]
}

/// Lines with columns as wide as their longest word.
fn table(rows: Vec<[String; 4]>) -> String {
    let width = |at: usize| rows.iter().map(|row: &[String; 4]| row[at].chars().count()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    let line = |[a, b, c, d]: &[String; 4]| format!("{a:first$}  {b:second$}  {c:third$}  {d}\n");
    rows.iter().map(line).collect()
}

/// What was found of an agent.
struct Check {
    path: Option<PathBuf>,
    version: Option<String>,
    logged_in: (LoggedIn, &'static str),
}

/// All at once: some agents take seconds to tell their version.
fn checks(agents: &[&Agent]) -> Vec<Check> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = agents.iter().map(|agent| scope.spawn(|| check(agent))).collect();
        let nothing =
            || Check { path: None, version: None, logged_in: (LoggedIn::Unknown, "it could not be looked at") };
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| nothing())).collect()
    })
}

fn check(agent: &Agent) -> Check {
    let native = native::of(agent);
    let path = find(&agent.base);
    let version = match (&agent.base.program, &path) {
        (Program::Myself, _) => Some(env!("CARGO_PKG_VERSION").to_owned()),
        (_, Some(path)) => packaged(path, native.packages).or_else(|| told(agent, native)),
        (_, None) => None,
    };
    let logged_in = match agent.base.program {
        Program::Myself => (LoggedIn::Yes, "it needs no log-in"),
        Program::Command(_) => native.login.look(&|name| variable(&agent.base, name), &|path, text| {
            read(&path).is_some_and(|content| content.contains(text))
        }),
    };
    Check { path, version, logged_in }
}

fn read(path: &Path) -> Option<String> {
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file());
    let mut content = Vec::new();
    File::open(path).ok().filter(|_| is_file)?.take(FILE_BYTES).read_to_end(&mut content).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

/// The version that the npm package tells to which a program belongs, if it is one of these.
fn packaged(program: &Path, packages: &[&str]) -> Option<String> {
    let program = program.canonicalize().ok()?;
    let content = program.ancestors().skip(1).find_map(|folder| read(&folder.join("package.json")))?;
    let fields = Fields::parse(&content)?;
    let name = fields.get("name").and_then(string)?;
    packages.iter().any(|package| name.starts_with(package)).then(|| fields.get("version").and_then(string))?
}

/// The version that the program itself tells. It keeps its files in an empty folder meanwhile.
fn told(agent: &Agent, native: &Native) -> Option<String> {
    let version = native.version.as_ref()?;
    let scratch = Scratch::new()?;
    let folders = version.folders.iter().chain(&["TMPDIR"]);
    let env = folders.map(|name| ((*name).to_owned(), scratch.path().into())).collect();
    let own = native.open.as_ref().map_or_else(|| agent.base.args.clone(), |open| open.for_people(&agent.base));
    let args = own.into_iter().chain([version.flag.to_owned()]).collect();
    // Not in ours: some programs load what lies there.
    let cwd = Some(scratch.path());
    let answer = ask(&Asked { cwd, base: &agent.base, args, env, limit: VERSION_LIMIT, bytes: FILE_BYTES })?;
    let output = String::from_utf8(answer.output).ok().filter(|_| answer.code == Some(0))?;
    // It may stand alone, before a name or after one.
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let word = output.split_whitespace().map(|word| word.trim_start_matches('v')).find(is_version)?;
    (word.len() <= 64 && word.chars().all(|c| c.is_ascii_graphic())).then(|| word.to_owned())
}

fn checked((agent, check): (&&Agent, Check)) -> Value {
    let mut entry = entry(agent);
    let native = native::of(agent);
    let (logged_in, why) = check.logged_in;
    entry["available"] = json!(check.path.is_some());
    entry["path"] = json!(check.path.as_ref().map(|path| path.to_string_lossy()));
    entry["install"] = json!(agent.base.install);
    entry["version"] = json!(check.version);
    entry["logged_in"] = json!(logged_in.word());
    entry["logged_in_reason"] = json!(why);
    entry["capabilities"] = json!(agent.driver().capabilities());
    entry["export"] = json!(native.export.is_some());
    entry["open"] = json!(native.open.is_some());
    entry
}

fn for_people(agent: &Agent, check: &Check) -> String {
    let name = format!("{} ({})\n", agent.name, agent.display_name);
    let Some(path) = &check.path else {
        let install = agent.base.install.as_deref().map_or(String::new(), |how| format!(", to be installed by: {how}"));
        return format!("{name}  program    {} is not on the PATH{install}\n", command(agent)[0]);
    };
    let native = native::of(agent);
    let capabilities = agent.driver().capabilities();
    let questions: Vec<String> = capabilities.questions.iter().map(|kind| to_line(kind).replace('"', "")).collect();
    let can = [("export", native.export.is_some()), ("open", native.open.is_some())];
    let can: Vec<&str> = can.iter().filter(|(_, can)| *can).map(|(what, _)| *what).collect();
    let (logged_in, why) = check.logged_in;
    let lines = [
        ("program", path.display().to_string()),
        ("version", check.version.clone().unwrap_or_else(|| "unknown".into())),
        ("logged in", format!("{}: {why}", logged_in.word())),
        ("questions", questions.join(", ")),
        ("commands", std::iter::once("adhoc").chain(can).collect::<Vec<_>>().join(", ")),
    ];
    name + &lines.map(|(label, text)| format!("  {label:<10} {text}\n")).concat()
}

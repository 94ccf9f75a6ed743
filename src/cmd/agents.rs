//! `agents list`, `agents check` and `agents verify`: the agents that a run can name, whether they are available on this
//! machine, and what they keep.

use super::agent_check::{Check, checks};
use super::agent_verify::verify;
use super::look::has_colors;
use super::{complain, configured, json_line, named};
use crate::agent::Program;
use crate::agent::native::LoggedIn;
use crate::agent::registry::{Agent, Promise};
use crate::clean::one_line;
use crate::cli::action::{ActionRow, Offers, Word, act, actions, bare, maybe, one};
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, json, output, own_switch, store};
use crate::cli::{Color, Output, Wrong};
use crate::config::Layers;
use crate::engine::redactor_here;
use crate::help::between_words;
use crate::io::output::print;
use crate::io::tty::columns;
use crate::process::sandbox::kernel;
use crate::protocol::failure::{Code, EXIT_UNDELIVERED, Failure};
use crate::protocol::request::Options;
use crate::protocol::sandbox::Kernel;
use crate::system::{SHORTFALL, obstacle};
use crate::terminal::{Ink, Look};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::IsTerminal;

pub(super) const COMMAND: Command = Command {
    words: Words::Actions(&actions::<_, { ACTIONS.len() }>(ACTIONS)),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    page: include_str!("../agent/reference.md"),
    ..Command::named(
        "agents",
        &CommandText {
            about: "list the agents, check which are available here, or verify one",
            more: "\
`list --output json` adds each agent's driver and command.
A check calls no model and downloads nothing. `check NAME` exits with 4 if the agent is not available.
`verify NAME` runs the installed agent in temporary directories, with a made-up key, against a scripted model inside spektacular. It needs no account and no network.
It exits with 1 if the agent breaks a promise, with 2 if it cannot be verified offline, and with 4 if it is not available.",
            examples: &[
                ("spektacular agents list", "show the names for --agent"),
                ("spektacular agents check codex --output json", "check one agent, for a program"),
                ("spektacular agents verify claude", "see which promises the installed version keeps"),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<AgentsArgs>] = &[
    own_switch("all", "with check: also show why the other agents are not available", |to: &mut AgentsArgs| {
        to.all = true
    })
    .begins("Output"),
    output(|to: &mut AgentsArgs| &mut to.output),
    json(|to: &mut AgentsArgs| &mut to.output),
];

#[derive(Debug, Default)]
struct AgentsArgs {
    what: AgentsAction,
    output: Output,
    all: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum AgentsAction {
    #[default]
    List,
    /// `None`: all agents.
    Check(Option<String>),
    Verify(String),
}

const NAME: &[Word; 1] = &[Word { name: "NAME", offers: Offers::Agents }];

const ACTIONS: &[ActionRow<AgentsAction>] = &[
    bare("list", "list all agents", || AgentsAction::List),
    maybe("check", "check all agents, or one", NAME, AgentsAction::Check),
    one(
        "verify",
        "run an agent against a scripted model, and show which promises it keeps",
        NAME,
        AgentsAction::Verify,
    ),
];

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<AgentsArgs, Wrong> {
    let mut agents: AgentsArgs = store(FLAGS, given)?;
    agents.what = act("agents", ACTIONS, words)?;
    match agents.what {
        AgentsAction::List if agents.all => Err("--all is for agents check: agents list shows every agent.".into()),
        AgentsAction::Verify(_) if agents.all => {
            Err("--all is for agents check: agents verify takes one agent.".into())
        }
        AgentsAction::List | AgentsAction::Check(_) | AgentsAction::Verify(_) => Ok(agents),
    }
}

fn run(typed: &AgentsArgs) -> u8 {
    done(typed).unwrap_or_else(|failure| complain(&failure))
}

fn done(typed: &AgentsArgs) -> Result<u8, Failure> {
    let layers = configured()?;
    let (text, code) = match &typed.what {
        AgentsAction::List => (list(&layers, typed.output), 0),
        AgentsAction::Check(None) => (check(&layers.agents.iter().collect::<Vec<_>>(), &layers, typed).0, 0),
        AgentsAction::Check(Some(name)) => {
            let (text, available) = check(&[&*named(&layers, Some(name), "")?], &layers, typed);
            (text, if available { 0 } else { Code::AgentNotFound.exit_code() })
        }
        AgentsAction::Verify(name) => {
            let agent = &*named(&layers, Some(name), "")?;
            let found = checks(&[agent], &layers).into_iter().next().map(|(_, check)| check);
            return found.map_or(Err(Failure::of_our_own()), |check| verify(agent, &check, typed.output));
        }
    };
    Ok(if print(&text) { code } else { EXIT_UNDELIVERED })
}

fn list(layers: &Layers, output: Output) -> String {
    match output {
        Output::Json => json_line(&json!({"agents": layers.agents.iter().map(entry).collect::<Vec<_>>()})),
        Output::Cli => table(&layers.agents.iter().collect::<Vec<_>>(), live_columns()),
    }
}

/// The columns of the terminal. A pipe has lines of any length.
pub(super) fn live_columns() -> usize {
    if std::io::stdout().is_terminal() { columns() } else { usize::MAX }
}

/// The columns before the text of an indented line.
const LABEL: usize = 13;

/// The findings, and whether all of these agents are available.
fn check(agents: &[&Agent], layers: &Layers, typed: &AgentsArgs) -> (String, bool) {
    let found = checks(agents, layers);
    let one_by_one = typed.all || agents.len() == 1;
    let (shown, rest): (Vec<_>, Vec<_>) = found.iter().partition(|(_, check)| one_by_one || check.problem.is_none());
    let available = found.iter().all(|(_, check)| check.problem.is_none());
    if typed.output == Output::Json {
        let agents: Vec<Value> = found.iter().map(|(agent, check)| checked(agent, check)).collect();
        return (json_line(&json!({"agents": agents, "reminder": SHORTFALL, "sandbox": sandbox()})), available);
    }
    let look = look();
    let mut parts: Vec<String> = missing(&found, layers, &look).into_iter().collect();
    parts.extend(shown.iter().map(|(agent, check)| for_people(agent, check, &look)));
    if !rest.is_empty() {
        let names = rest.iter().map(|(agent, _)| agent.name.as_str()).collect::<Vec<_>>().join(", ");
        parts.push(format!("Not available: {names}.\n`spektacular agents check --all` shows why.\n"));
    }
    if !one_by_one {
        parts.push(sandbox_line());
        parts.extend(SHORTFALL.map(|line| format!("{line}\n")));
    }
    let indent = |line: &str| if line.starts_with(' ') { LABEL } else { 0 };
    (between_words(&parts.join("\n"), live_columns(), indent), available)
}

fn sandbox() -> Value {
    let kernel = kernel();
    let remedy = Some(remedies(&kernel).join("; ")).filter(|remedy| !remedy.is_empty());
    match kernel {
        Ok(kernel) => json!({"abi": kernel.abi, "signals": kernel.signals, "sockets": kernel.sockets,
            "git": kernel.git(), "problem": null, "remedy": remedy}),
        Err(why) => {
            json!({"abi": null, "signals": null, "sockets": null, "git": null, "problem": why, "remedy": remedy})
        }
    }
}

fn remedies(kernel: &Result<Kernel, String>) -> Vec<String> {
    match kernel {
        Ok(kernel) => [
            (kernel.signals, "signals need Linux 6.12"),
            (kernel.sockets, "Unix sockets need Linux 7.1"),
            (kernel.files, obstacle()),
        ]
        .into_iter()
        .filter(|(kept, _)| !kept)
        .map(|(_, remedy)| remedy.to_owned())
        .collect(),
        Err(_) => vec![NO_LANDLOCK.into()],
    }
}

const NO_LANDLOCK: &str = "it needs Linux 6.2 or later, built with CONFIG_SECURITY_LANDLOCK, with landlock among the names \
                           in /sys/kernel/security/lsm, and in a container a seccomp profile that permits Landlock";

fn sandbox_line() -> String {
    let kernel = kernel();
    let remedies = remedies(&kernel).iter().map(|remedy| format!("; {remedy}")).collect::<String>();
    match kernel {
        Ok(Kernel { abi, signals, sockets, files }) => {
            let all = [(true, "files"), (signals, "signals"), (sockets, "Unix sockets"), (files, "git's hooks")];
            let kept = all.iter().filter(|(kept, _)| *kept).map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
            format!("Sandbox: --sandbox keeps {kept} (Landlock {abi}){remedies}. The network is not restricted.\n")
        }
        Err(why) => format!("Sandbox: not available, because {why}{remedies}.\n"),
    }
}

/// The program and arguments of an agent's entry, redacted because an argument may contain a key.
fn command(agent: &Agent) -> Vec<String> {
    let program = match &agent.base.program {
        Program::Command(name) => name.as_str(),
        Program::Myself => "spektacular",
    };
    let redactor = redactor_here(&Options::default(), Some(agent));
    let words = std::iter::once(program).chain(agent.base.args.iter().map(String::as_str));
    words.map(|word| redactor.redact(word).into_owned()).collect()
}

/// The reason why an agent is unavailable, redacted because it may quote arguments.
fn problem(agent: &Agent, check: &Check) -> Option<String> {
    let redactor = redactor_here(&Options::default(), Some(agent));
    check.problem.as_ref().map(|problem| redactor.redact(problem).into_owned())
}

fn entry(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "display_name": agent.display_name,
        "aliases": agent.aliases,
        "driver": agent.dialect.word(),
        "command": command(agent),
        "package": agent.base.package,
        "tested": agent.tested.map(|tested| json!({
            "version": tested.version,
            "keeps": tested.keeps().map(|promise| promise.word()).collect::<Vec<_>>(),
        })),
    })
}

fn tested(agent: &Agent) -> String {
    let Some(tested) = agent.tested else { return "untested".into() };
    let lacks: Vec<&str> = tested.lacking().map(Promise::word).collect();
    let lacks = if lacks.is_empty() { String::new() } else { format!(", without {}", lacks.join(", ")) };
    format!("tested {}{lacks}", tested.version)
}

/// `width`: of the terminal, in columns.
fn table(agents: &[&Agent], width: usize) -> String {
    let first = agents.iter().map(|agent| agent.name.chars().count()).max().unwrap_or_default() + 2;
    let line = |agent: &&Agent| {
        let also =
            if agent.aliases.is_empty() { String::new() } else { format!("; also {}", agent.aliases.join(", ")) };
        format!("{:first$}{}, {}{also}\n", agent.name, one_line(&agent.display_name), tested(agent))
    };
    between_words(&agents.iter().map(line).collect::<String>(), width, |_| first)
}

fn checked(agent: &Agent, check: &Check) -> Value {
    let mut entry = entry(agent);
    let native = agent.native();
    let (logged_in, why) = check.logged_in;
    entry["available"] = json!(check.problem.is_none());
    entry["problem"] = json!(problem(agent, check));
    entry["lacks"] = json!(check.lacks);
    entry["path"] = json!(check.path.as_ref().map(|path| path.to_string_lossy()));
    entry["install"] = json!(agent.base.install);
    entry["version"] = json!(check.version);
    entry["logged_in"] = json!(logged_in.word());
    entry["logged_in_reason"] = json!(why);
    entry["capabilities"] = json!(check.capabilities);
    // It belongs to a run.
    entry["capabilities"].as_object_mut().and_then(|all| all.remove("rewind"));
    entry["export"] = json!(native.sessions.is_some());
    entry["open"] = json!(native.interface.is_some());
    entry
}

fn look() -> Look {
    let live = std::io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    Look { escapes: has_colors(Color::Auto, live), ..Look::default() }
}

/// The part about what a run lacks, with the remedies: the default agent, and logins. `None`: nothing is missing.
fn missing(found: &[(&Agent, Check)], layers: &Layers, look: &Look) -> Option<String> {
    let line = |(agent, check): &(&Agent, Check)| match (problem(agent, check), check.logged_in.0) {
        (Some(problem), _) if agent.name == layers.default_agent() && found.len() > 1 => {
            let install = agent.base.install.as_ref().filter(|_| check.path.is_none());
            Some(format!("{problem}{}", install.map(|install| format!(": {install}")).unwrap_or_default()))
        }
        (None, LoggedIn::No(remedy)) => Some(format!("not logged in: {remedy}")),
        (Some(_), _) | (None, LoggedIn::Yes | LoggedIn::Unknown) => None,
    };
    let line = |found: &(&Agent, Check)| Some(format!("  {:<10} {}\n", found.0.name, one_line(&line(found)?)));
    let lines: String = found.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| look.paint(Ink::Yellow, &format!("To do:\n{}", lines.trim_end())) + "\n")
}

fn for_people(agent: &Agent, check: &Check, look: &Look) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    match problem(agent, check) {
        Some(problem) => {
            lines.push(("problem", problem));
            let install = agent.base.install.iter().filter(|_| check.path.is_none());
            lines.extend(install.map(|install| ("install", install.clone())));
        }
        None => {
            let native = agent.native();
            let can = [("export", native.sessions.is_some()), ("open", native.interface.is_some())];
            let can = can.iter().filter(|(_, can)| *can).map(|(what, _)| *what);
            let questions: Vec<&str> = check.capabilities.questions.iter().map(|kind| kind.word()).collect();
            let (logged_in, why) = check.logged_in;
            lines.extend(check.path.iter().map(|path| ("program", path.display().to_string())));
            lines.push(("version", check.version.clone().unwrap_or_else(|| "unknown".into())));
            lines.push(("logged in", format!("{}: {why}", logged_in.word())));
            lines.extend(check.lacks.map(|lacks| ("lacks", lacks.to_owned())));
            lines.push(("tested", tested(agent)));
            lines.push(("questions", questions.join(", ")));
            lines.push(("commands", std::iter::once("adhoc").chain(can).collect::<Vec<_>>().join(", ")));
        }
    }
    let line = |(label, text): &(&str, String)| {
        let text = one_line(text);
        let text = if *label == "problem" { look.paint(Ink::Red, &text) } else { text.to_string() };
        format!("  {label:<10} {text}\n")
    };
    let lines: String = lines.iter().map(line).collect();
    format!("{} ({})\n{lines}", agent.name, one_line(&agent.display_name))
}

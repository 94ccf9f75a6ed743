//! `config`: shows and changes the configuration.

use super::{complain, texts, warn};
use crate::clean::{one_line, whole};
use crate::cli::action::{ActionRow, Offers, Word, act, actions, bare, one, two};
use crate::cli::command::{Command, CommandText, Runnable, Words};
use crate::cli::row::{GivenFlag, Row, flags, json, output, own_switch, store};
use crate::cli::{Output, Wrong, typed_fields};
use crate::config::{self, Config, Places, Value, Which};
use crate::engine::redactor_here;
use crate::io::output::{deliver, diagnose};
use crate::json::{map_strings, string, to_line};
use crate::protocol::failure::{Code, Failure};
use crate::workflow::project::Project;
use crate::workflow::prompts::of_project_to_trust;
use serde_json::json;
use serde_json::value::RawValue;
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const COMMAND: Command = Command {
    words: Words::Actions(&actions::<_, { ACTIONS.len() }>(ACTIONS)),
    flags: &flags::<_, { FLAGS.len() }>(FLAGS),
    page: include_str!("../config/reference.md"),
    ..Command::named(
        "config",
        &CommandText {
            about: "show or change the configuration",
            more: "\
set and unset change the project's file, or with --global the user's file.
VALUE is JSON if that fits the key, otherwise text.
permissions, mcp_servers and output_schema also accept the forms that their flags accept.
get and unset exit with 1 if the key is not set. list masks secrets; get does not.",
            examples: &[
                ("spektacular config set output json", "make --output json the default in this project"),
                (
                    "spektacular config set --global agents.claude.model opus",
                    "choose a model of Claude Code for every project",
                ),
                (
                    "spektacular config set --global agents.foo '{\"driver\":\"acp\",\"command\":\"foo\"}'",
                    "add your own agent",
                ),
            ],
        },
        |given, words| Ok(Runnable::new(read(given, words)?, |args| run(&args))),
    )
};

const FLAGS: &[Row<ConfigArgs>] = &[
    own_switch("global", "use the user's file instead of the project's", |to: &mut ConfigArgs| to.global = true)
        .begins("Configuration"),
    output(|to: &mut ConfigArgs| &mut to.output),
    json(|to: &mut ConfigArgs| &mut to.output),
];

#[derive(Debug, Default)]
struct ConfigArgs {
    action: ConfigAction,
    global: bool,
    output: Output,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ConfigAction {
    Get(String),
    Set(String, String),
    Unset(String),
    #[default]
    List,
    Path,
    Trust,
}

const KEY: Word = Word { name: "KEY", offers: Offers::Keys };
const VALUE: Word = Word { name: "VALUE", offers: Offers::ValuesOfKey };

const ACTIONS: &[ActionRow<ConfigAction>] = &[
    one("get", "print a value", &[KEY], ConfigAction::Get),
    two("set", "write a value to a file", &[KEY, VALUE], ConfigAction::Set),
    one("unset", "remove a value from a file", &[KEY], ConfigAction::Unset),
    bare("list", "print every value and its origin, with secrets masked", || ConfigAction::List),
    bare("path", "print the path of the project's file", || ConfigAction::Path),
    bare("trust", "trust the project's file and prompts as they are now", || ConfigAction::Trust),
];

fn read(given: Vec<GivenFlag>, words: Vec<OsString>) -> Result<ConfigArgs, Wrong> {
    let mut config: ConfigArgs = store(FLAGS, given)?;
    config.action = act("config", ACTIONS, words)?;
    match config.action {
        ConfigAction::Get(_) | ConfigAction::List | ConfigAction::Trust if config.global => {
            Err("--global is for config set, unset and path.".into())
        }
        ConfigAction::Get(_)
        | ConfigAction::Set(..)
        | ConfigAction::Unset(_)
        | ConfigAction::List
        | ConfigAction::Path
        | ConfigAction::Trust => Ok(config),
    }
}

/// The exit code of `get` and `unset` for a key without a value.
const NOTHING: u8 = 1;

fn run(config: &ConfigArgs) -> u8 {
    let places = Places::of_process();
    let is_json = config.output == Output::Json;
    let which = if config.global { Which::User } else { Which::Project };
    let done = match &config.action {
        ConfigAction::Get(name) => named(name).and_then(|()| loaded()).map(|found| get(&found, name, is_json)),
        ConfigAction::List => loaded().map(|found| list(&found, is_json)),
        ConfigAction::Set(name, value) => set(&places, which, name, value).map(|()| written(&places, which, is_json)),
        ConfigAction::Unset(name) => named(name).and_then(|()| places.unset(which, name)).map(|there| match there {
            true => written(&places, which, is_json),
            false => nothing(&format!("{name} is not set in {}.", shown(&places, which))),
        }),
        ConfigAction::Path => path(&places, which, is_json),
        ConfigAction::Trust => trust(&places).map(|trusted| trusted.report(&places, is_json)),
    };
    done.unwrap_or_else(|failure| complain(&failure))
}

fn named(name: &str) -> Result<(), Failure> {
    config::known(name).map_err(Failure::usage)
}

fn loaded() -> Result<Config, Failure> {
    let loaded = config::load();
    let wrong = loaded.config.agents().1;
    warn(loaded.warnings.iter().map(|(_, text)| text).chain(&wrong));
    loaded.failure.map_or(Ok(loaded.config), Err)
}

fn print(text: &str) -> u8 {
    deliver(&format!("{text}\n"))
}

fn nothing(why: &str) -> u8 {
    diagnose(&format!("spektacular: config: {why}"));
    NOTHING
}

fn set(places: &Places, which: Which, name: &str, value: &str) -> Result<(), Failure> {
    let value = match typed_fields::file(name, value) {
        Some(path) => texts::value(name, name, path),
        None => config::typed(name, value),
    };
    let value = value.map_err(Failure::usage)?;
    if name == "agent" {
        known_agent(&string(&value).unwrap_or_default())?;
    }
    places.set(which, name, &value)
}

fn known_agent(name: &str) -> Result<(), Failure> {
    let loaded = config::load();
    let (agents, wrong) = loaded.config.agents();
    if agents.find(name).is_some() {
        return Ok(());
    }
    // The agent may be defined in a file that cannot be read or is not trusted.
    warn(loaded.warnings.iter().map(|(_, text)| text).chain(&wrong));
    Err(loaded.failure.unwrap_or_else(|| Failure::usage(agents.unknown(name, ""))))
}

fn get(config: &Config, name: &str, json: bool) -> u8 {
    if let Some(value) = config.find(name) {
        return print(&if json { entry(name, &value) } else { plain(&value.raw) });
    }
    let inside = format!("{name}.");
    let group: Vec<String> = config.names().into_iter().filter(|known| known.starts_with(&inside)).collect();
    if group.is_empty() {
        return nothing(&format!("{name} is not set."));
    }
    let lines: Vec<String> = group
        .iter()
        .filter_map(|name| config.find(name).map(|value| if json { entry(name, &value) } else { line(name, &value) }))
        .collect();
    print(&if json { format!("{{\"values\":[{}]}}", lines.join(",")) } else { lines.join("\n") })
}

/// Masks secrets, because people share such lists.
fn list(config: &Config, json: bool) -> u8 {
    let redactors = {
        let options = config.above().over(config.below());
        let (agents, _) = config.agents();
        let general = redactor_here(&options, None);
        let own: Vec<_> = agents.iter().map(|agent| redactor_here(&options, Some(agent))).collect();
        own.into_iter().chain([general]).collect::<Vec<_>>()
    };
    let lines = config.names().into_iter().filter_map(|name| {
        let value = config.find(&name)?;
        // These are masked separately, because a redactor does not find a secret that is too short.
        let secret = name == "secrets";
        let clean = map_strings(value.raw.get(), &mut |text| {
            if secret {
                return "[redacted]".into();
            }
            redactors.iter().fold(text.to_owned(), |text, redactor| redactor.redact(&text).into_owned())
        });
        let value = Value { raw: RawValue::from_string(clean).ok()?, ..value };
        Some(if json { entry(&name, &value) } else { line(&name, &value) })
    });
    let lines: Vec<String> = lines.collect();
    print(&if json { format!("{{\"values\":[{}]}}", lines.join(",")) } else { lines.join("\n") })
}

fn plain(raw: &RawValue) -> String {
    string(raw).map(|text| whole(&text).into_owned()).unwrap_or_else(|| map_strings(raw.get(), &mut str::to_owned))
}

fn line(name: &str, value: &Value) -> String {
    format!("{:<11}  {name} = {}", value.origin.word(), map_strings(value.raw.get(), &mut str::to_owned))
}

fn entry(name: &str, value: &Value) -> String {
    let raw = map_strings(value.raw.get(), &mut str::to_owned);
    let (origin, from) = (value.origin.word(), to_line(&value.origin.place()));
    format!("{{\"key\":{},\"value\":{raw},\"origin\":\"{origin}\",\"from\":{from}}}", to_line(&name))
}

fn path(places: &Places, which: Which, json: bool) -> Result<u8, Failure> {
    let path = places.file(which)?.display().to_string();
    if json {
        let shown = |which| places.file(which).ok().map(|path| path.display().to_string());
        return Ok(print(&to_line(&json!({"user": shown(Which::User), "project": shown(Which::Project)}))));
    }
    Ok(print(&one_line(&path)))
}

fn shown(places: &Places, which: Which) -> String {
    places.file(which).map(|path| path.display().to_string()).unwrap_or_default()
}

fn written(places: &Places, which: Which, json: bool) -> u8 {
    let file = shown(places, which);
    if json {
        return print(&to_line(&json!({ "file": file })));
    }
    diagnose(&format!("spektacular: config: changed {file}"));
    0
}

struct Trusted {
    /// The keys of the configuration file that needed trust. `None`: the project has no configuration file.
    keys: Option<Vec<String>>,
    prompts: Vec<String>,
}

fn trust(places: &Places) -> Result<Trusted, Failure> {
    let found = std::env::current_dir().and_then(|cwd| Project::around(&cwd));
    let prompts = found.map(|project| of_project_to_trust(&project)).unwrap_or_default();
    let keys = places.trust()?;
    if keys.is_none() && prompts.is_empty() {
        let message = "Nothing to trust: the project has no configuration file and no prompts.";
        return Err(Failure::new(Code::InvalidConfig, message));
    }
    for (file, text) in &prompts {
        places.trust_text(file, text)?;
    }
    let shown = |(file, _): &(PathBuf, String)| file.display().to_string();
    Ok(Trusted { keys, prompts: prompts.iter().map(shown).collect() })
}

impl Trusted {
    fn report(&self, places: &Places, json: bool) -> u8 {
        let Trusted { keys, prompts } = self;
        let file = keys.as_ref().map(|_| shown(places, Which::Project));
        if json {
            let keys = keys.as_deref().unwrap_or_default();
            return print(&to_line(&json!({"file": file, "keys": keys, "prompts": prompts})));
        }
        let config = file.map(|file| {
            let keys = keys.as_ref().filter(|keys| !keys.is_empty()).map(|keys| format!("with {}", keys.join(", ")));
            format!("{file}: {}", keys.unwrap_or("no key in it needs trust".into()))
        });
        let lines = config.iter().chain(prompts).map(|file| one_line(&format!("Trusted the current text of {file}")));
        print(&lines.collect::<Vec<_>>().join("\n"))
    }
}

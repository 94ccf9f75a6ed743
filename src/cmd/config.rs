//! `config`: shows and changes the configuration.

use super::complain;
use crate::clean::whole;
use crate::cli::{Action, Config as Typed};
use crate::config::{self, Config, Places, Value, Which};
use crate::engine::redactor_here;
use crate::failure::{Code, Failure};
use crate::io::output::{deliver, diagnose};
use crate::protocol::json::{map_strings, string, to_line};
use serde_json::json;
use serde_json::value::RawValue;

/// The exit code of `get` and `unset` where there is no value.
const NOTHING: u8 = 1;

/// Does it; gives the exit code.
pub fn run(typed: &Typed) -> u8 {
    let places = Places::of_process();
    let which = if typed.global { Which::User } else { Which::Project };
    let done = match &typed.action {
        Action::Get(name) => named(name).and_then(|()| read()).map(|config| get(&config, name, typed.json)),
        Action::List => read().map(|config| list(&config, typed.json)),
        Action::Set(name, value) => set(&places, which, name, value).map(|()| written(&places, which, typed.json)),
        Action::Unset(name) => named(name).and_then(|()| places.unset(which, name)).map(|there| {
            if there { written(&places, which, typed.json) } else { nothing("The file does not set that key") }
        }),
        Action::Path => path(&places, which, typed.json),
        Action::Trust => places.trust().map(|keys| trusted(&places, &keys, typed.json)),
    };
    done.unwrap_or_else(|failure| complain(&failure))
}

fn usage(why: String) -> Failure {
    let stop = if why.ends_with('?') { "" } else { "." };
    Failure::new(Code::Usage, why + stop)
}

fn named(name: &str) -> Result<(), Failure> {
    config::known(name).map_err(usage)
}

/// The configuration; what was ignored in it goes to stderr.
fn read() -> Result<Config, Failure> {
    let loaded = config::load();
    let wrong = loaded.config.agents().1;
    for warning in loaded.warnings.iter().chain(&wrong) {
        diagnose(&format!("spektacular: warning: {warning}"));
    }
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
    let value = config::typed(name, value).map_err(usage)?;
    places.set(which, name, &value)
}

fn get(config: &Config, name: &str, json: bool) -> u8 {
    if let Some(value) = config.find(name) {
        return print(&if json { entry(name, &value) } else { plain(&value.raw) });
    }
    let inside = format!("{name}.");
    let group: Vec<String> = config.names().into_iter().filter(|known| known.starts_with(&inside)).collect();
    if group.is_empty() {
        return nothing("The key is not set");
    }
    let lines: Vec<String> = group
        .iter()
        .filter_map(|name| config.find(name).map(|value| if json { entry(name, &value) } else { line(name, &value) }))
        .collect();
    print(&if json { format!("{{\"values\":[{}]}}", lines.join(",")) } else { lines.join("\n") })
}

/// All values. Secrets among them are masked: a list is what one shows to others.
fn list(config: &Config, json: bool) -> u8 {
    let redactors = {
        let options = config.above().over(config.below());
        let (agents, _) = config.agents();
        let general = redactor_here(&options, None);
        let own: Vec<_> = agents.iter().map(|agent| redactor_here(&options, Some(agent))).collect();
        own.into_iter().chain([general]).collect::<Vec<_>>()
    };
    let lines = config.names().into_iter().filter_map(|name| {
        let Value { raw, origin } = config.find(&name)?;
        // Also one that is too short to be found in a text.
        let secret = name == "secrets";
        let clean = map_strings(raw.get(), &mut |text| {
            if secret {
                return "[redacted]".into();
            }
            redactors.iter().fold(text.to_owned(), |text, redactor| redactor.redact(&text).into_owned())
        });
        let value = Value { raw: RawValue::from_string(clean).ok()?, origin };
        Some(if json { entry(&name, &value) } else { line(&name, &value) })
    });
    let lines: Vec<String> = lines.collect();
    print(&if json { format!("{{\"values\":[{}]}}", lines.join(",")) } else { lines.join("\n") })
}

fn plain(raw: &RawValue) -> String {
    string(raw).map(|text| whole(&text)).unwrap_or_else(|| map_strings(raw.get(), &mut str::to_owned))
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
    Ok(print(&path))
}

fn written(places: &Places, which: Which, json: bool) -> u8 {
    let file = places.file(which).ok().map(|path| path.display().to_string());
    if json {
        return print(&to_line(&json!({ "file": file })));
    }
    diagnose(&format!("spektacular: config: changed {}", file.unwrap_or_default()));
    0
}

fn trusted(places: &Places, keys: &[String], json: bool) -> u8 {
    let file = places.project.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    if json {
        return print(&to_line(&json!({"file": file, "keys": keys})));
    }
    let keys = if keys.is_empty() { "nothing that needs it".into() } else { keys.join(", ") };
    print(&format!("{file} is trusted as it is now, with: {keys}"))
}

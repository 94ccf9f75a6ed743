//! The configuration, in layers: built-in defaults, the user's file, the project's file, the environment. Flags and
//! run.start override all of them. Each value records its origin.
//!
//! A project's file comes with the project, perhaps from a stranger. Its keys that could run a program, allow an action
//! or disclose data ([`ProjectFileRule`]) count only once the user trusts the current text of the file.

pub mod agents;
mod edit;
mod files;
mod keys;
mod layers;
pub(crate) mod origins;
mod trust;

pub use crate::protocol::fields::ProjectFileRule;
pub use files::{Places, flaw, is_work_tree};
pub use keys::{KEYS, Key, known, of_one_run, typed};
pub use layers::{FileModel, Layers};

use crate::agent::registry::{Agents, DEFAULT};
use crate::cli::Output;
use crate::config::origins::{FieldOrigin, Origins};
use crate::json::string;
use crate::process::variables::INTERNAL;
use crate::protocol::failure::{Code, Failure, NO_DIRECTORY};
use crate::protocol::limits::CONFIG_BYTES;
use crate::protocol::misspelt::meant;
use crate::protocol::request::Options;
use crate::protocol::unknown::UnknownNames;
use crate::protocol::words::Warning;
use crate::redact::Redactor;
use crate::suggest::nearest;
use agents::Entry;
use keys::{PREFIX, Slot, leaves, slot};
use serde_json::value::RawValue;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    BuiltIn,
    User(PathBuf),
    Project(PathBuf),
    Environment(String),
}

impl ValueOrigin {
    pub fn word(&self) -> &'static str {
        match self {
            ValueOrigin::BuiltIn => "built-in",
            ValueOrigin::User(_) => "user",
            ValueOrigin::Project(_) => "project",
            ValueOrigin::Environment(_) => "environment",
        }
    }

    pub fn place(&self) -> Option<String> {
        match self {
            ValueOrigin::BuiltIn => None,
            ValueOrigin::User(path) | ValueOrigin::Project(path) => Some(path.display().to_string()),
            ValueOrigin::Environment(name) => Some(name.clone()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Value {
    /// The JSON as written.
    pub raw: Box<RawValue>,
    pub origin: ValueOrigin,
    /// The line in the file, from 1.
    pub line: Option<usize>,
}

impl Value {
    /// The origin as messages about run.start name it. `None`: the value is a default.
    fn setter(&self) -> Option<FieldOrigin> {
        let place = self.origin.place()?;
        Some(match (&self.origin, self.line) {
            (ValueOrigin::Environment(_), _) => FieldOrigin::Variable(place),
            (_, Some(line)) => FieldOrigin::File(at(&place, line)),
            (_, None) => FieldOrigin::File(place),
        })
    }
}

fn at(file: &str, line: usize) -> String {
    format!("{file}, line {line}")
}

/// The maximum number of warnings about one file.
const WARNINGS: usize = 20;

/// Values by dotted name. Each value fits its key.
type Layer = BTreeMap<String, Value>;

#[derive(Clone, Debug, Default)]
pub struct Config {
    user: Layer,
    project: Layer,
    environment: Layer,
    folder: PathBuf,
    trusts_project: bool,
}

#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// One warning per ignored entry.
    pub warnings: Vec<(Warning, String)>,
    /// The reason why the configuration cannot be used. `None`: it can.
    pub failure: Option<Failure>,
}

pub fn load() -> Loaded {
    load_from(&Places::of_process(), std::env::vars_os())
}

pub fn load_from(places: &Places, variables: impl Iterator<Item = (OsString, OsString)>) -> Loaded {
    let mut loaded = Loaded {
        config: Config { folder: places.folder.clone(), ..Config::default() },
        warnings: Vec::new(),
        failure: None,
    };
    if let Some(path) = &places.user {
        let read = files::read(path, CONFIG_BYTES)
            .map(|text| text.map(|text| read(&text, ValueOrigin::User(path.clone()), true)));
        loaded.config.user = loaded.add_read(read);
    }
    if let Some(path) = &places.project {
        let leads_out = files::leads_out(path, &places.folder);
        let text = if leads_out { Ok(None) } else { files::read(path, CONFIG_BYTES) };
        if leads_out {
            let text = format!(
                "{} is a symbolic link that leads out of the project, and is not read. Replace it with a regular file.",
                path.display()
            );
            loaded.warnings.push((Warning::UnsupportedOption, text));
        }
        // Trust in the target of a link belongs to another project.
        let trusted = |text: &str| !files::is_linked(path) && trust::is_trusted(places.trusted.as_deref(), path, text);
        let trusted = text.as_ref().is_ok_and(|text| text.as_deref().is_some_and(trusted));
        let read = text.map(|text| text.map(|text| read(&text, ValueOrigin::Project(path.clone()), trusted)));
        loaded.config.project = loaded.add_read(read);
        loaded.config.trusts_project = trusted;
    }
    if let Some(path) = &places.old {
        let text = format!(
            "{} is a file of an older version and is not read. `spektacular help config reference` lists the successors of its keys.",
            path.display()
        );
        loaded.warnings.push((Warning::UnsupportedOption, text));
    }
    let read = environment(variables);
    loaded.config.environment = loaded.add_read(Ok(Some(read)));
    loaded
}

impl Loaded {
    fn add_read(&mut self, read: Result<Option<Read>, Failure>) -> Layer {
        let read = match read {
            Ok(read) => read.unwrap_or_default(),
            Err(failure) => Read { failure: Some(failure), ..Read::default() },
        };
        self.warnings.extend(read.warnings);
        self.failure = self.failure.take().or(read.failure);
        read.layer
    }
}

/// The content of one file or of the environment.
#[derive(Default)]
struct Read {
    layer: Layer,
    warnings: Vec<(Warning, String)>,
    failure: Option<Failure>,
}

impl Read {
    fn ignored(&mut self, text: String) {
        self.warnings.push((Warning::UnsupportedOption, text));
    }

    /// The first failure counts.
    fn fail(&mut self, message: String) {
        self.failure = self.failure.take().or(Some(Failure::new(Code::InvalidConfig, message)));
    }
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of an offset, from 1. Offsets must come in ascending order.
    fn line_at(&mut self, at: usize) -> usize {
        self.line += self.text.get(self.at..at).unwrap_or_default().matches('\n').count();
        self.at = at;
        self.line
    }
}

const PROTECTS: &str = "This error is not ignored, because the key protects you.";

/// `text`: one JSON object.
fn read(text: &str, origin: ValueOrigin, trusted: bool) -> Read {
    let mut read = Read::default();
    let mut untrusted: BTreeSet<String> = BTreeSet::new();
    let file = origin.place().unwrap_or_default();
    let mut lines = Lines { text, at: 0, line: 1 };
    for (name, raw) in all(text) {
        if read.warnings.len() == WARNINGS {
            // Reading on could take long, and skipping the rest could skip a key that protects the user.
            read.fail(format!("{file} has too many errors. Correct the first ones."));
            return read;
        }
        let line = lines.line_at(edit::place(text, raw).start);
        let slot = match slot(&name, "") {
            Ok(slot) => slot,
            Err(_) => {
                let place = format!(" in {}", at(&file, line));
                let why = slot(&name, &place).err().unwrap_or_default();
                match meant(&name).filter(|key| trusted && key.key == Some(ProjectFileRule::Guards)) {
                    Some(key) => read.fail(format!("{why} It is taken for {}. {PROTECTS}", key.name)),
                    None => read.ignored(why),
                }
                continue;
            }
        };
        if !trusted && slot.project_rule() != ProjectFileRule::Free {
            untrusted.insert(slot.outermost().to_owned());
            continue;
        }
        match slot.check(raw) {
            Ok(()) => {
                let value = Value { raw: raw.to_owned(), origin: origin.clone(), line: Some(line) };
                if read.layer.insert(name.clone(), value).is_some() {
                    read.ignored(format!("{name} is set twice in {file}. The value in line {line} counts."));
                }
            }
            Err(why) if slot.project_rule() == ProjectFileRule::Guards => {
                let place = at(&file, line);
                read.fail(format!("{name} in {place}, {why}. {PROTECTS}"));
            }
            Err(why) => read.ignored(format!("{name} in {}, is ignored: it {why}.", at(&file, line))),
        }
    }
    if !untrusted.is_empty() {
        let keys = untrusted.into_iter().collect::<Vec<_>>().join(", ");
        read.ignored(format!(
            "{file} is not trusted, so these keys in it are ignored: {keys}. Read the file, then run `spektacular config trust`."
        ));
    }
    read
}

/// The values in the text of a file, by dotted name.
fn all(text: &str) -> Vec<(String, &RawValue)> {
    let mut found = Vec::new();
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        leaves("", raw, &mut found);
    }
    found
}

/// Reads the variables; an empty one counts as unset. A variable is set for this process, like a flag, so a value that
/// does not fit is an error.
fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Read {
    let mut read = Read::default();
    let mut unknown = UnknownNames::default();
    // Names are compared without the prefix, which would make any two of them similar.
    let names = || KEYS.iter().map(|key| key.variable().split_off(PREFIX.len())).collect();
    let known: LazyCell<Vec<String>, _> = LazyCell::new(names);
    for (name, value) in variables {
        let name = name.to_string_lossy();
        let ours = name.strip_prefix(PREFIX).filter(|_| !INTERNAL.contains(&&*name) && !value.is_empty());
        let Some(rest) = ours else { continue };
        let Some(key) = known.iter().position(|known| known == rest).map(|at| &KEYS[at]) else {
            // A variable that resembles none of ours belongs to another program.
            if let Some(near) = nearest(rest, known.iter().map(String::as_str)) {
                unknown.add(&name, || Some(format!("{PREFIX}{near}")));
            }
            continue;
        };
        let text = value.into_string().map_err(|_| "must be UTF-8".to_owned());
        match text.and_then(|text| Slot::Key(key).typed(&text)) {
            Ok(raw) => {
                let origin = ValueOrigin::Environment(name.into_owned());
                read.layer.insert(key.name.into(), Value { raw, origin, line: None });
            }
            Err(why) => read.fail(format!("{name} {why}.")),
        }
    }
    if let Some(text) = unknown.warning("variable", " of the environment", &Redactor::new()) {
        read.warnings.push((Warning::UnknownField, text));
    }
    read
}

impl Config {
    /// The value of a key, or of `agents.NAME.FIELD`. `None`: it is not set and has no default.
    pub fn find(&self, name: &str) -> Option<Value> {
        let set = [&self.environment, &self.project, &self.user].into_iter().find_map(|layer| layer.get(name));
        let built_in = || {
            let raw = KEYS.iter().find(|key| key.name == name)?.built_in()?;
            Some(Value { raw, origin: ValueOrigin::BuiltIn, line: None })
        };
        set.cloned().or_else(built_in)
    }

    /// The names of all keys with a value, in the order of the table, agents last.
    pub fn names(&self) -> Vec<String> {
        let keys = KEYS.iter().map(|key| key.name.to_owned()).filter(|name| self.find(name).is_some());
        keys.chain(self.agent_fields()).collect()
    }

    fn agent_fields(&self) -> impl Iterator<Item = String> {
        let names = self.user.keys().chain(self.project.keys()).filter(|name| name.starts_with("agents."));
        names.cloned().collect::<BTreeSet<String>>().into_iter()
    }

    pub fn output(&self) -> Output {
        let word = self.find("output").and_then(|value| string(&value.raw));
        word.and_then(|word| Output::from_word(&word)).unwrap_or_default()
    }

    /// Whether a bell and the terminal's title announce an open question.
    pub fn alert(&self) -> bool {
        self.find("alert").is_none_or(|value| value.raw.get() == "true")
    }

    /// They override the agent's own settings.
    pub fn above(&self) -> Options {
        options(&self.environment, None)
    }

    /// Without `model`, which belongs to one agent. The agent's own settings override the others.
    pub fn below(&self) -> Options {
        let files = options(&self.project, Some(&self.folder)).over(options(&self.user, None));
        Options { model: None, ..files }
    }

    /// The models that the files set, that of the project first.
    fn models(&self) -> Vec<FileModel> {
        let text = |layer: &Layer, key: &str| layer.get(key).and_then(|value| string(&value.raw));
        let users_agent = text(&self.user, "agent").unwrap_or_else(|| DEFAULT.to_owned());
        let model = |layer, agent: &str, trusted| {
            text(layer, "model").map(|model| FileModel { model, agent: agent.to_owned(), trusted })
        };
        let project = text(&self.project, "agent").unwrap_or_else(|| users_agent.clone());
        let project = model(&self.project, &project, self.trusts_project);
        project.into_iter().chain(model(&self.user, &users_agent, true)).collect()
    }

    pub fn layers(&self) -> (Layers, Vec<String>) {
        let (agents, wrong) = self.agents();
        let (above, below) = (self.above(), self.below());
        (Layers { agents, above, below, models: self.models(), origins: self.origins() }, wrong)
    }

    fn origins(&self) -> Origins {
        let mut origins = Origins::default();
        for key in KEYS.iter().filter(|key| key.is_field()) {
            if let Some(setter) = self.find(key.name).and_then(|value| value.setter()) {
                origins.put(key.name, setter);
            }
        }
        origins
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The directory of the debug log. A relative path starts at the project's directory. `None`: the log is off.
    pub fn debug_dir(&self) -> Option<PathBuf> {
        self.find("debug.enabled").filter(|value| value.raw.get() == "true")?;
        self.find("debug.log_dir").and_then(|value| string(&value.raw)).map(|dir| self.folder.join(dir))
    }

    /// The texts of a list. Empty: it is not set.
    pub fn texts(&self, name: &str) -> Vec<String> {
        // The value was checked when it was read.
        self.find(name).and_then(|value| serde_json::from_str(value.raw.get()).ok()).unwrap_or_default()
    }

    /// The agents, and one sentence about each unusable one.
    pub fn agents(&self) -> (Agents, Vec<String>) {
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for name in self.agent_fields() {
            if let (Ok(Slot::Agent(agent, field)), Some(value)) = (slot(&name, ""), self.find(&name)) {
                // The value was checked when it was read.
                let _ = entries.entry(agent.to_owned()).or_default().set(field, &value.raw);
            }
        }
        agents::build(entries)
    }
}

/// `folder`: the start of relative paths. `None`: the process's own directory.
fn options(layer: &Layer, folder: Option<&Path>) -> Options {
    let mut options = Options::default();
    for key in KEYS.iter().filter(|key| key.is_field()) {
        if let Some(value) = layer.get(key.name) {
            // The value was checked when it was read.
            let _ = options.set(key.name, &value.raw);
        }
    }
    if let Some(folder) = folder {
        let below = |path: String| folder.join(path).to_string_lossy().into_owned();
        options.cwd = options.cwd.map(below);
        options.add_dirs = options.add_dirs.map(|dirs| dirs.into_iter().map(below).collect());
    }
    options
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    User,
    Project,
}

impl Places {
    /// Error: the file has no place.
    pub fn file(&self, which: Which) -> Result<&Path, Failure> {
        let (path, why) = match which {
            Which::User => (&self.user, "Cannot locate the user's file. Set HOME or XDG_CONFIG_HOME."),
            Which::Project => (&self.project, NO_DIRECTORY),
        };
        path.as_deref().ok_or_else(|| Failure::new(Code::InvalidConfig, why))
    }

    /// Writes a value, which must be JSON and fit its key, to a file. A trusted file stays trusted, and a new file is
    /// trusted. Error: the file cannot be read or written, or a part of the key's path is not an object.
    pub fn set(&self, which: Which, name: &str, value: &RawValue) -> Result<(), Failure> {
        let path: Vec<&str> = name.split('.').collect();
        let file = self.file(which)?.display();
        self.change(which, |old| {
            edit::set(old, &path, value.get()).ok_or_else(|| {
                let message = format!(
                    "Cannot set {name}: a key that contains it is not an object in {file}. Unset that key first."
                );
                Failure::new(Code::InvalidConfig, message)
            })
        })
    }

    /// Returns whether the value was there. Error: the file cannot be read or written.
    pub fn unset(&self, which: Which, name: &str) -> Result<bool, Failure> {
        let path: Vec<&str> = name.split('.').collect();
        let there =
            files::read(self.file(which)?, CONFIG_BYTES)?.is_some_and(|text| edit::unset(&text, &path).is_some());
        if there {
            self.change(which, |old| Ok(edit::unset(old, &path).unwrap_or_else(|| old.to_owned())))?;
        }
        Ok(there)
    }

    fn change(&self, which: Which, edit: impl FnOnce(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        let (path, store) = (self.file(which)?, self.trusted.as_deref());
        if which == Which::Project {
            files::not_linked(path)?;
        }
        let mut renew = None;
        files::change(path, if which == Which::User { 0o600 } else { 0o666 }, CONFIG_BYTES, |old| {
            let ours = old.is_none_or(|old| needs_trust(old).is_empty() || trust::is_trusted(store, path, old));
            let new = edit(old.unwrap_or("{}\n"))?;
            renew = (which == Which::Project && ours && !needs_trust(&new).is_empty()).then(|| new.clone());
            Ok(new)
        })?;
        match (renew, store) {
            (Some(text), Some(store)) => trust::trust(store, path, &text),
            _ => Ok(()),
        }
    }

    pub fn is_trusted(&self, file: &Path, text: &str) -> bool {
        trust::is_trusted(self.trusted.as_deref(), file, text)
    }

    /// Error: trust cannot be stored.
    pub fn trust_text(&self, file: &Path, text: &str) -> Result<(), Failure> {
        self.file(Which::User)?;
        self.trusted.as_ref().map_or(Ok(()), |store| trust::trust(store, file, text))
    }

    /// Returns the keys that need trust. `None`: no file exists. Error: it cannot be read, or trust cannot be stored.
    pub fn trust(&self) -> Result<Option<Vec<String>>, Failure> {
        self.file(Which::User)?;
        let path = self.file(Which::Project)?;
        files::not_linked(path)?;
        let Some(text) = files::read(path, CONFIG_BYTES)? else { return Ok(None) };
        self.trust_text(path, &text)?;
        Ok(Some(needs_trust(&text)))
    }
}

/// `model` needs trust for the command line of a `lines` agent, and the other keys for every agent.
fn needs_trust(text: &str) -> Vec<String> {
    let all = all(text);
    let slots = all.iter().filter_map(|(name, _)| slot(name, "").ok());
    let slots = slots.filter(|slot| slot.project_rule() != ProjectFileRule::Free || slot.name() == "model");
    slots.map(|slot| slot.outermost().to_owned()).collect::<BTreeSet<_>>().into_iter().collect()
}

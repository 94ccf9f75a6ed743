//! run.start: its fields, their checks, and the settings that come out of them.
//!
//! [`Options`] is one layer (a run.start, the flags, a configuration file): every field may be absent. Layers are
//! laid over each other, and [`Options::resolve`] gives [`Settings`], in which nothing is left open.

use super::json::{Fields, number, string};
use super::limits;
pub use super::mcp_server::McpServer;
use super::mcp_server::mcp_servers;
use super::unknown::UnknownNames;
use super::words::{Category, Level, OnQuestionTimeout, Policy};
use crate::suggest::nearest;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Why a payload could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A known key stands twice in one object: the message is malformed.
    Repeated,
    /// A field has a wrong type or is out of its range.
    Field {
        /// The field's name.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl Problem {
    /// What is wrong, as the rest of a sentence about the value.
    pub fn clause(&self) -> String {
        match self {
            Problem::Repeated => "names a key twice".into(),
            Problem::Field { expected, .. } => format!("must be {expected}"),
        }
    }

    /// One sentence for a failure's message. Names the field, never its value.
    pub fn message(&self) -> String {
        match self {
            Problem::Repeated => "A field stands twice in one object: send it once.".into(),
            Problem::Field { name, expected } => format!("run.start: `{name}` must be {expected}."),
        }
    }
}

/// What a reader of one field says: `Err(None)` is a repeated key, `Err(Some(text))` what the field must be.
pub(crate) type Read<T> = Result<T, Option<&'static str>>;

/// A layer of fields, each of which may be absent, with one reader a field.
macro_rules! layer {
    ($(#[$about:meta])* $layer:ident { $($(#[$doc:meta])* $name:ident: $type:ty = $read:path;)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $layer { $($(#[$doc])* pub $name: Option<$type>,)* }

        impl $layer {
            /// The names of all fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Reads one field by its name; unknown names are ignored.
            pub fn set(
                &mut self,
                name: &str,
                raw: &serde_json::value::RawValue,
            ) -> Result<(), $crate::protocol::request::Problem> {
                use $crate::protocol::request::Problem;
                match name {
                    $(stringify!($name) => self.$name = Some($read(raw).map_err(|e| match e {
                        None => Problem::Repeated,
                        Some(expected) => Problem::Field { name: stringify!($name), expected },
                    })?),)*
                    _ => {}
                }
                Ok(())
            }

            /// Whether this layer says anything of this field.
            pub fn says(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }

            /// This layer, with `base` showing through where it says nothing.
            pub fn over(self, base: $layer) -> $layer {
                $layer { $($name: self.$name.or(base.$name),)* }
            }
        }
    };
}

pub(crate) use layer;

layer! {
    /// One layer of run.start's fields. `None`: this layer does not say.
    Options {
        /// The task.
        prompt: String = non_empty;
        /// A configured agent's name.
        agent: String = any_string;
        /// The model, in the agent's own words.
        model: String = non_empty;
        /// The reasoning effort, in the agent's own words.
        effort: String = non_empty;
        /// The agent's own mode, in the agent's own words.
        mode: String = non_empty;
        /// A system prompt.
        system_prompt: String = any_string;
        /// The agent's working directory.
        cwd: String = path;
        /// Further directories that the agent may use.
        add_dirs: Vec<String> = paths;
        /// The agent's session to resume.
        session_id: String = session_id;
        /// Whether questions may be asked.
        interactive: bool = boolean;
        /// The answers to what the agent asks permission for.
        permissions: Permissions = permissions;
        /// Tools the agent may use, as it names them.
        allowed_tools: Vec<String> = strings;
        /// Tools the agent may not use, as it names them.
        disallowed_tools: Vec<String> = strings;
        /// MCP servers for the agent to start.
        mcp_servers: Vec<McpServer> = mcp_servers;
        /// The whole run's limit.
        timeout_s: Seconds = positive;
        /// The limit until the agent's first sign of life.
        start_timeout_s: Seconds = positive;
        /// The longest silence of the agent.
        idle_timeout_s: Seconds = zero_or_more;
        /// How long a running tool may hold the idle clock.
        tool_timeout_s: Seconds = positive;
        /// How long a question waits.
        question_timeout_s: Seconds = positive;
        /// What a required question without a default does then.
        on_question_timeout: OnQuestionTimeout = on_question_timeout;
        /// A budget of turns.
        max_turns: u64 = count;
        /// A budget in US dollars.
        max_cost_usd: f64 = cost;
        /// How much progress is emitted.
        progress: Level = level;
        /// The longest silence of ours.
        heartbeat_s: Seconds = zero_or_more;
        /// The largest frame in bytes, LF included.
        max_frame_bytes: usize = frame_bytes;
        /// Added to the agent's environment.
        env: BTreeMap<String, String> = environment;
        /// If present, all that the agent's environment holds.
        env_allow: Vec<String> = names;
        /// Values redacted from everything that leaves the process.
        secrets: Vec<String> = secrets;
        /// Appended to the agent's command line.
        agent_args: Vec<String> = arguments;
        /// A JSON Schema for a structured result.
        output_schema: Box<RawValue> = object;
        /// The string that sets completion_detected.
        completion_marker: String = non_empty;
        /// Whether question markers in the agent's text are asked.
        question_markers: bool = boolean;
        /// Whether the prompt reaches the agent unguarded.
        raw_prompt: bool = boolean;
        /// Whether a run in which a permission was denied for want of an answer fails.
        fail_on_denied: bool = boolean;
        /// Returned in run.started and in the terminal frame.
        metadata: Box<RawValue> = metadata;
    }
}

/// What the payload of a run.start says.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// The fields that are right. `null` is the same as an absent field.
    pub options: Options,
    /// The first field that is wrong.
    pub wrong: Option<Problem>,
    /// The fields that run.start does not have.
    pub unknown: UnknownNames,
}

impl Options {
    /// Reads the payload of a run.start.
    pub fn parse(payload: Option<&RawValue>) -> Payload {
        let mut read = Payload::default();
        let Some(fields) = payload.and_then(|raw| Fields::parse(raw.get())) else { return read };
        read.wrong = fields.repeats_one_of(Options::NAMES).then_some(Problem::Repeated);
        for (name, raw) in fields.iter() {
            if !Options::NAMES.contains(&name) {
                read.unknown.add(name, || nearest(name, Options::NAMES.iter().copied()).map(str::to_owned));
                continue;
            }
            if is_null(raw) {
                continue;
            }
            match (read.options.set(name, raw), &read.wrong) {
                // A repeated key anywhere makes the message malformed, which goes before a field that is wrong.
                (Err(Problem::Repeated), _) => read.wrong = Some(Problem::Repeated),
                (Err(problem), None) => read.wrong = Some(problem),
                _ => {}
            }
        }
        read
    }

    /// Settles every field that has a default. `cwd` is already absolute; the prompt is there.
    pub fn resolve(self, prompt: String, agent: String, cwd: PathBuf) -> Settings {
        Settings {
            prompt,
            agent,
            model: self.model,
            effort: self.effort,
            mode: self.mode,
            system_prompt: self.system_prompt,
            cwd,
            add_dirs: self.add_dirs.unwrap_or_default(),
            session_id: self.session_id,
            interactive: self.interactive.unwrap_or(true),
            permissions: self.permissions.unwrap_or_default(),
            allowed_tools: self.allowed_tools,
            disallowed_tools: self.disallowed_tools,
            mcp_servers: self.mcp_servers.unwrap_or_default(),
            timeout: self.timeout_s,
            start_timeout: self.start_timeout_s,
            idle_timeout: self.idle_timeout_s.unwrap_or(Seconds(600.0)),
            tool_timeout: self.tool_timeout_s.unwrap_or(Seconds(3600.0)),
            question_timeout: self.question_timeout_s.unwrap_or(Seconds(300.0)),
            on_question_timeout: self.on_question_timeout.unwrap_or(OnQuestionTimeout::Fail),
            max_turns: self.max_turns,
            max_cost_usd: self.max_cost_usd,
            progress: self.progress.unwrap_or(Level::Normal),
            heartbeat: self.heartbeat_s.unwrap_or(Seconds(30.0)),
            max_frame_bytes: self.max_frame_bytes.unwrap_or(limits::FRAME_BYTES),
            env: self.env.unwrap_or_default(),
            env_allow: self.env_allow,
            secrets: self.secrets.unwrap_or_default(),
            agent_args: self.agent_args.unwrap_or_default(),
            output_schema: self.output_schema,
            completion_marker: self.completion_marker.unwrap_or_else(|| DEFAULT_COMPLETION_MARKER.into()),
            question_markers: self.question_markers.unwrap_or(true),
            raw_prompt: self.raw_prompt.unwrap_or(false),
            fail_on_denied: self.fail_on_denied.unwrap_or(false),
            metadata: self.metadata,
            ask_server: None,
        }
    }
}

/// The completion marker when run.start names none.
pub const DEFAULT_COMPLETION_MARKER: &str = "<promise>COMPLETE</promise>";
/// Seconds until the agent's first sign of life, when run.start names none.
pub const DEFAULT_START_TIMEOUT: Seconds = Seconds(60.0);

/// A run.start with every default settled.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of Options")]
pub struct Settings {
    pub prompt: String,
    pub agent: String,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub mode: Option<String>,
    pub system_prompt: Option<String>,
    pub cwd: PathBuf,
    pub add_dirs: Vec<String>,
    pub session_id: Option<String>,
    pub interactive: bool,
    pub permissions: Permissions,
    pub allowed_tools: Option<Vec<String>>,
    pub disallowed_tools: Option<Vec<String>>,
    pub mcp_servers: Vec<McpServer>,
    pub timeout: Option<Seconds>,
    pub start_timeout: Option<Seconds>,
    pub idle_timeout: Seconds,
    pub tool_timeout: Seconds,
    pub question_timeout: Seconds,
    pub on_question_timeout: OnQuestionTimeout,
    pub max_turns: Option<u64>,
    pub max_cost_usd: Option<f64>,
    pub progress: Level,
    pub heartbeat: Seconds,
    pub max_frame_bytes: usize,
    pub env: BTreeMap<String, String>,
    pub env_allow: Option<Vec<String>>,
    pub secrets: Vec<String>,
    pub agent_args: Vec<String>,
    pub output_schema: Option<Box<RawValue>>,
    pub completion_marker: String,
    pub question_markers: bool,
    pub raw_prompt: bool,
    pub fail_on_denied: bool,
    pub metadata: Option<Box<RawValue>>,
    /// No field of run.start: the server that the agent is to start beside `mcp_servers`, so that its model can ask.
    pub ask_server: Option<McpServer>,
}

/// A length of time in seconds: finite, not negative, at most a hundred years.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Seconds {
    /// The same as a [`std::time::Duration`].
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.0.clamp(0.0, limits::SECONDS))
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // 60, not 60.0: what was sent as an integer comes back as one.
        if self.0.fract() == 0.0 && self.0 <= limits::SECONDS {
            return serializer.serialize_u64(self.0 as u64);
        }
        serializer.serialize_f64(self.0)
    }
}

/// A permission policy: one word for all, or one by category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// The same for every category.
    All(Policy),
    /// By category; `rest` for those not named.
    ByCategory {
        /// The named ones.
        named: BTreeMap<Category, Policy>,
        /// `*`, if it was given. Without it the rest is asked.
        rest: Option<Policy>,
    },
}

impl Default for Permissions {
    fn default() -> Permissions {
        Permissions::All(Policy::Ask)
    }
}

impl Permissions {
    /// Whether everything is allowed.
    pub fn allow_all(&self) -> bool {
        Category::ALL.iter().all(|category| self.of(*category) == Policy::Allow)
    }

    /// What this policy says of a category.
    pub fn of(&self, category: Category) -> Policy {
        match self {
            Permissions::All(policy) => *policy,
            Permissions::ByCategory { named, rest } => {
                named.get(&category).or(rest.as_ref()).copied().unwrap_or(Policy::Ask)
            }
        }
    }

    /// The strictest that this policy says of these categories.
    pub fn strictest(&self, categories: impl Iterator<Item = Category>) -> Policy {
        let strictness = |policy: &Policy| match policy {
            Policy::Allow => 0,
            Policy::Ask => 1,
            Policy::Deny => 2,
        };
        categories.map(|category| self.of(category)).max_by_key(strictness).unwrap_or(Policy::Ask)
    }
}

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Permissions::All(policy) => policy.serialize(serializer),
            Permissions::ByCategory { named, rest } => {
                let mut map = serializer.serialize_map(None)?;
                for (category, policy) in named {
                    map.serialize_entry(category, policy)?;
                }
                if let Some(rest) = rest {
                    map.serialize_entry("*", rest)?;
                }
                map.end()
            }
        }
    }
}

pub(crate) fn any_string(raw: &RawValue) -> Read<String> {
    string(raw).ok_or(Some("a string"))
}

pub(crate) fn non_empty(raw: &RawValue) -> Read<String> {
    string(raw).filter(|s| !s.is_empty()).ok_or(Some("a non-empty string"))
}

fn session_id(raw: &RawValue) -> Read<String> {
    let fits = |s: &String| !s.is_empty() && s.len() <= limits::SESSION_ID_BYTES;
    string(raw).filter(fits).ok_or(Some("a non-empty string of at most 1024 bytes"))
}

pub(crate) fn path(raw: &RawValue) -> Read<String> {
    let usable = |s: &String| !s.is_empty() && !s.contains('\0');
    string(raw).filter(usable).ok_or(Some("the path of an existing directory"))
}

pub(crate) fn boolean(raw: &RawValue) -> Read<bool> {
    match raw.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Some("true or false")),
    }
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

pub(super) fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

fn strings_where(raw: &RawValue, fits: fn(&String) -> bool, expected: &'static str) -> Read<Vec<String>> {
    let items = list(raw).ok_or(Some(expected))?;
    items.into_iter().map(|item| string(item).filter(fits).ok_or(Some(expected))).collect()
}

pub(crate) fn strings(raw: &RawValue) -> Read<Vec<String>> {
    strings_where(raw, |s| !s.is_empty() && !s.contains('\0'), "a list of non-empty strings")
}

fn secrets(raw: &RawValue) -> Read<Vec<String>> {
    strings_where(raw, |s| !s.is_empty(), "a list of non-empty strings")
}

fn paths(raw: &RawValue) -> Read<Vec<String>> {
    strings_where(raw, |s| !s.is_empty() && !s.contains('\0'), "a list of paths")
}

pub(crate) fn arguments(raw: &RawValue) -> Read<Vec<String>> {
    let fits = |s: &String| !s.contains('\0') && s.len() <= limits::ARGUMENT_BYTES;
    strings_where(raw, fits, "a list of strings without NUL, each at most 131071 bytes long")
}

fn positive(raw: &RawValue) -> Read<Seconds> {
    let expected = Some("a number of seconds above 0");
    number(raw).filter(|n| *n > 0.0).map(|n| Seconds(n.min(limits::SECONDS))).ok_or(expected)
}

fn zero_or_more(raw: &RawValue) -> Read<Seconds> {
    let expected = Some("a number of seconds, 0 or more");
    number(raw).filter(|n| *n >= 0.0).map(|n| Seconds(n.abs().min(limits::SECONDS))).ok_or(expected)
}

fn count(raw: &RawValue) -> Read<u64> {
    let whole = |n: &f64| n.fract() == 0.0 && *n >= 1.0 && *n <= 1e15;
    number(raw).filter(whole).map(|n| n as u64).ok_or(Some("a whole number, 1 or more"))
}

fn cost(raw: &RawValue) -> Read<f64> {
    number(raw).filter(|n| *n > 0.0).ok_or(Some("a number above 0"))
}

fn frame_bytes(raw: &RawValue) -> Read<usize> {
    let range = limits::FRAME_BYTES_MIN as f64..=limits::FRAME_BYTES_MAX as f64;
    let fits = |n: &f64| n.fract() == 0.0 && range.contains(n);
    number(raw).filter(fits).map(|n| n as usize).ok_or(Some("a whole number from 16384 to 67108864"))
}

fn level(raw: &RawValue) -> Read<Level> {
    let word = string(raw);
    word.and_then(|w| Level::from_word(&w)).ok_or(Some("one of \"minimal\", \"normal\", \"full\""))
}

fn on_question_timeout(raw: &RawValue) -> Read<OnQuestionTimeout> {
    string(raw).and_then(|w| OnQuestionTimeout::from_word(&w)).ok_or(Some("one of \"fail\", \"continue\""))
}

/// What `permissions` must be; it names every category.
const POLICIES: &str = "\"ask\", \"allow\", \"deny\", or an object of these by tool category: read, edit, delete, move, \
    search, execute, fetch, think, agent, mcp, mode, other, or * for the rest";

fn permissions(raw: &RawValue) -> Read<Permissions> {
    let expected = POLICIES;
    let policy = |raw: &RawValue| string(raw).and_then(|w| Policy::from_word(&w)).ok_or(Some(expected));
    let Some(fields) = Fields::parse(raw.get()) else {
        return policy(raw).map(Permissions::All);
    };
    if fields.iter().any(|(key, _)| fields.repeats_one_of(&[key])) {
        return Err(None);
    }
    let (mut named, mut rest) = (BTreeMap::new(), None);
    for (key, value) in fields.iter() {
        if key == "*" {
            rest = Some(policy(value)?);
        } else {
            named.insert(Category::from_word(key).ok_or(Some(expected))?, policy(value)?);
        }
    }
    Ok(Permissions::ByCategory { named, rest })
}

/// Whether a string can be the name of an environment variable.
pub fn is_environment_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

pub(crate) fn environment(raw: &RawValue) -> Read<BTreeMap<String, String>> {
    let expected = Some("an object of strings whose names are [A-Za-z_][A-Za-z0-9_]* and which fit an environment");
    let fields = Fields::parse(raw.get()).ok_or(expected)?;
    let mut out = BTreeMap::new();
    for (name, value) in fields.iter() {
        let value = string(value).ok_or(expected)?;
        // `NAME=value` and its NUL must fit one string of the kernel's.
        let fits = name.len() + value.len() + 2 <= limits::ARGUMENT_BYTES + 1;
        if !is_environment_name(name) || value.contains('\0') || !fits {
            return Err(expected);
        }
        out.insert(name.to_owned(), value);
    }
    Ok(out)
}

fn names(raw: &RawValue) -> Read<Vec<String>> {
    let fits = |s: &String| is_environment_name(s.strip_suffix('*').unwrap_or(s)) || s == "*";
    strings_where(raw, fits, "a list of names of environment variables, each perhaps with a `*` at its end")
}

fn object(raw: &RawValue) -> Read<Box<RawValue>> {
    Fields::parse(raw.get()).map(|_| raw.to_owned()).ok_or(Some("an object"))
}

fn metadata(raw: &RawValue) -> Read<Box<RawValue>> {
    let fits = raw.get().len() <= limits::METADATA_BYTES;
    object(raw).ok().filter(|_| fits).ok_or(Some("an object of at most 65536 bytes"))
}

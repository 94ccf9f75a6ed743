//! The fields of run.start, one row each: type, reader, default, configuration key, flag, and whether run.started shows
//! the field. The parser, the resolver, `config list`, help and completions derive from these rows, and a test checks
//! the reference against them.
//!
//! [`Options`] is one layer of the fields (a run.start, the flags, a configuration file), each of which may be absent.
//! Layers stack, and [`Options::resolve`] turns the stack into [`Settings`], with every default filled in.

use super::ids::SessionId;
use super::image::Image;
use super::limits;
use super::mcp_server::{McpServer, mcp_servers};
use super::question::Judge;
use super::read::{
    Permissions, Seconds, any_string, arguments, boolean, cost, count, environment, frame_bytes, images, layer, level,
    metadata, names, non_empty, on_question_timeout, on_unsupported, path, paths, permissions, positive, schema,
    secrets, session_id, strings, zero_or_more,
};
use super::schema::OutputSchema;
use super::words::{Category, Level, OnQuestionTimeout, OnUnsupported, Policy};
use Care::{Free, Guards, Trusted};
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A field of run.start.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in JSON, in a configuration file and, in capitals, in the environment.
    pub name: &'static str,
    /// The form of the value.
    pub shape: Shape,
    /// The value when no layer sets the field.
    pub fallback: Fallback,
    /// The conditions under which a project's configuration file may set the field. `None`: no file may, because the
    /// field belongs to one run.
    pub key: Option<Care>,
    /// The flag of `adhoc` that sets the field, without dashes. Empty: `adhoc` defines the flags for this field itself.
    pub flag: &'static str,
    /// Whether run.started shows the field.
    pub shown: bool,
    expected: fn() -> &'static str,
}

impl Field {
    /// The type and range, as the rest of "must be …".
    pub fn expected(&self) -> &'static str {
        (self.expected)()
    }
}

/// The value of a field when no layer sets it.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// No value.
    Absent,
    /// A fixed value, as JSON.
    Value(fn() -> Option<Box<RawValue>>),
    /// The driver supplies the value. Most drivers use this one.
    Driver(fn() -> Option<Box<RawValue>>),
    /// The default agent.
    Agent,
}

/// The form of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A string.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false.
    Bool,
    /// A number.
    Number,
    /// A list of strings.
    List,
    /// An object of strings.
    Pairs,
    /// A permission policy.
    Policies,
    /// A list of MCP servers.
    Servers,
    /// A JSON Schema.
    Schema,
    /// Any object.
    Object,
}

/// The conditions under which a project's configuration file may set a key. The file comes with the project, perhaps
/// from a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Always: the key cannot run a program, allow an action or disclose data.
    Free,
    /// Only once the user trusts the file.
    Trusted,
    /// Only once the user trusts the file. An invalid value is an error and not only a warning, because the key
    /// protects the user.
    Guards,
}

/// The field with this name. `None`: run.start has no such field.
pub const fn find(name: &str) -> Option<&'static Field> {
    let mut at = 0;
    while at < FIELDS.len() {
        if equal(FIELDS[at].name.as_bytes(), name.as_bytes()) {
            return Some(&FIELDS[at]);
        }
        at += 1;
    }
    None
}

/// `a == b`, as a constant expression.
pub(crate) const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The settings that the caller of [`Options::resolve`] provides.
struct Required {
    prompt: String,
    agent: String,
    cwd: PathBuf,
}

/// The fields that run.started shows as redacted text instead of as they are.
#[derive(Debug)]
pub(super) struct ShownText<C, A> {
    pub(super) cwd: C,
    pub(super) agent_args: A,
}

/// The type of a setting, from the kind of its default.
macro_rules! setting {
    (agent($setting:ty), $type:ty) => { $setting };
    (required($setting:ty), $type:ty) => { $setting };
    (optional, $type:ty) => { Option<$type> };
    (driver($value:expr), $type:ty) => { Option<$type> };
    (default($value:expr), $type:ty) => { $type };
}

/// The value of a setting.
macro_rules! settle {
    (agent($setting:ty), $said:expr, $required:expr) => {
        $required
    };
    (required($setting:ty), $said:expr, $required:expr) => {
        $required
    };
    (optional, $said:expr, $required:expr) => {
        $said
    };
    (driver($value:expr), $said:expr, $required:expr) => {
        $said
    };
    (default($value:expr), $said:expr, $required:expr) => {
        $said.unwrap_or_else(|| $value)
    };
}

pub(super) use {setting, settle};

/// The default of a setting in the table.
macro_rules! fallback {
    (agent($setting:ty), $type:ty) => {
        Fallback::Agent
    };
    (required($setting:ty), $type:ty) => {
        Fallback::Absent
    };
    (optional, $type:ty) => {
        Fallback::Absent
    };
    (driver($value:expr), $type:ty) => {
        Fallback::Driver(|| to_raw_value::<$type>(&$value).ok())
    };
    (default($value:expr), $type:ty) => {
        Fallback::Value(|| to_raw_value::<$type>(&$value).ok())
    };
}

/// Writes a setting into run.started.
macro_rules! show {
    (hidden, $map:expr, $settings:expr, $texts:expr, $name:ident) => {};
    (as_text, $map:expr, $settings:expr, $texts:expr, $name:ident) => {
        $map.serialize_entry(stringify!($name), &$texts.$name)?;
    };
    (shown, $map:expr, $settings:expr, $texts:expr, $name:ident) => {
        $map.serialize_entry(stringify!($name), &$settings.$name)?;
    };
}

macro_rules! is_shown {
    (hidden) => {
        false
    };
    (as_text) => {
        true
    };
    (shown) => {
        true
    };
}

/// A row: `name: TYPE = READER, DEFAULT, SHAPE, KEY, FLAG, SHOWN;`. DEFAULT is `required(T)` or `agent(T)` if the
/// caller supplies the setting, `optional` if the setting may be absent, `driver(VALUE)` if the driver may replace
/// VALUE, otherwise `default(VALUE)`.
macro_rules! run_start {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $read:ident, $kind:ident $(($($extra:tt)*))?, $shape:expr, $key:expr,
        $flag:literal, $shown:ident;)*) => {
        layer! {
            /// A layer of run.start's fields. `None`: this layer does not set the field.
            Options { $($(#[$doc])* $name: $type = $read;)* }
        }

        /// A run.start with every default filled in.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[$doc])* pub $name: setting!($kind $(($($extra)*))?, $type),)*
            /// The files of `images`, checked. Not a field of run.start.
            pub attached: Vec<Image>,
            /// The server that offers the tool `ask_user`, which the agent starts in addition to `mcp_servers`. Not a
            /// field of run.start.
            pub ask_server: Option<McpServer>,
            /// A random text, unknown outside this run, for the name of that server. Not a field of run.start.
            pub nonce: String,
            /// Decides about requests for permission before `permissions` do. Not a field of run.start.
            pub judge: Option<Arc<dyn Judge>>,
            /// Whether the run is a part of a workflow, which reports its own plan. Not a field of run.start.
            pub is_part: bool,
            /// Whether the peer shows [`super::outbound::ToolFacts`]. Not a field of run.start.
            pub tool_facts: bool,
            /// The cost of the resumed session so far, in US dollars, if known. Not a field of run.start.
            pub session_cost_usd: Option<f64>,
            /// Whether any layer sets `on_question_timeout`. Not a field of run.start.
            pub sets_on_question_timeout: bool,
            /// Whether the end of stdin declines a required question instead of failing the run. Not a field of
            /// run.start.
            pub closed_input_declines: bool,
        }

        impl Options {
            /// Fills in every default.
            fn settle(self, required: Required) -> Settings {
                Settings {
                    sets_on_question_timeout: self.on_question_timeout.is_some(),
                    closed_input_declines: false,
                    $($name: settle!($kind $(($($extra)*))?, self.$name, required.$name),)*
                    attached: Vec::new(),
                    ask_server: None,
                    nonce: String::new(),
                    judge: None,
                    is_part: false,
                    tool_facts: false,
                    session_cost_usd: None,
                }
            }
        }

        impl Settings {
            /// Writes the fields that run.started shows.
            pub(super) fn show<M: SerializeMap>(
                &self,
                map: &mut M,
                texts: &ShownText<impl Serialize, impl Serialize>,
            ) -> Result<(), M::Error> {
                $(show!($shown, map, self, texts, $name);)*
                Ok(())
            }
        }

        /// Every field, in the order of run.started.
        pub const FIELDS: &[Field] = &[$(Field {
            name: stringify!($name),
            shape: $shape,
            fallback: fallback!($kind $(($($extra)*))?, $type),
            key: $key,
            flag: $flag,
            shown: is_shown!($shown),
            expected: || $read(RawValue::NULL).err().flatten().unwrap_or_default(),
        }),*];
    };
}

/// The default limit until the agent's first line, for the drivers that have one.
pub const DEFAULT_START_TIMEOUT: Seconds = Seconds(60.0);

run_start! {
    /// The task.
    prompt: String = non_empty, required(String), Shape::Text, None, "", hidden;
    /// The name of a configured agent.
    // Not every agent asks before it acts, and some are downloaded when a run first names them.
    agent: String = any_string, agent(String), Shape::Text, Some(Trusted), "agent", shown;
    /// The model, by the agent's name for it.
    model: String = non_empty, optional, Shape::Text, Some(Free), "model", shown;
    /// The reasoning effort, by the agent's name for it.
    effort: String = non_empty, optional, Shape::Text, Some(Free), "effort", shown;
    /// The agent's own mode, by the agent's name for it.
    // Some modes allow actions that others ask about.
    mode: String = non_empty, optional, Shape::Text, Some(Trusted), "mode", shown;
    /// A system prompt.
    system_prompt: String = any_string, optional, Shape::Text, Some(Trusted), "system-prompt", hidden;
    /// The agent's working directory.
    cwd: String = path, required(PathBuf), Shape::Text, Some(Trusted), "cwd", as_text;
    /// Further directories that the agent may use.
    add_dirs: Vec<String> = paths, default(Vec::new()), Shape::List, Some(Trusted), "add-dir", shown;
    /// The paths of images that belong to the prompt.
    images: Vec<String> = images, default(Vec::new()), Shape::List, None, "image", shown;
    /// The agent's session to resume.
    session_id: SessionId = session_id, optional, Shape::Text, None, "session", shown;
    /// Whether the run begins a new session from `session_id`, which stays as it is.
    fork: bool = boolean, default(false), Shape::Bool, None, "fork", shown;
    /// Whether the run may ask questions.
    interactive: bool = boolean, default(true), Shape::Bool, Some(Free), "headless", shown;
    /// The answers to the agent's requests for permission.
    permissions: Permissions =
        permissions, default(Permissions::default()), Shape::Policies, Some(Guards), "permissions", shown;
    /// Tools that the agent may use, by the agent's names for them.
    allowed_tools: Vec<String> = strings, optional, Shape::List, Some(Guards), "allowed-tool", shown;
    /// Tools that the agent may not use, by the agent's names for them.
    disallowed_tools: Vec<String> = strings, optional, Shape::List, Some(Guards), "disallowed-tool", shown;
    /// MCP servers for the agent to start or to reach.
    mcp_servers: Vec<McpServer> =
        mcp_servers, default(Vec::new()), Shape::Servers, Some(Trusted), "mcp-servers", hidden;
    /// Whether the agent stays for further prompts.
    conversation: bool = boolean, default(false), Shape::Bool, None, "conversation", shown;
    /// The limit of one turn of a conversation.
    turn_timeout_s: Seconds = positive, optional, Shape::Number, Some(Free), "turn-timeout", shown;
    /// The longest wait for a further prompt of a conversation.
    prompt_timeout_s: Seconds = positive, optional, Shape::Number, Some(Free), "prompt-timeout", shown;
    /// The limit of the whole run.
    timeout_s: Seconds = positive, optional, Shape::Number, Some(Free), "timeout", shown;
    /// The limit until the agent's first line.
    start_timeout_s: Seconds =
        positive, driver(DEFAULT_START_TIMEOUT), Shape::Number, Some(Free), "start-timeout", shown;
    /// The agent's longest silence; 0: no limit.
    idle_timeout_s: Seconds =
        zero_or_more, default(Seconds(600.0)), Shape::Number, Some(Free), "idle-timeout", shown;
    /// The longest time for which a running tool stops the idle clock.
    tool_timeout_s: Seconds = positive, default(Seconds(3600.0)), Shape::Number, Some(Free), "tool-timeout", shown;
    /// The time limit for answering a question.
    question_timeout_s: Seconds =
        positive, default(Seconds(300.0)), Shape::Number, Some(Free), "question-timeout", shown;
    /// The effect of a timeout on a required question without a default.
    on_question_timeout: OnQuestionTimeout =
        on_question_timeout, default(OnQuestionTimeout::Fail), Shape::Word(OnQuestionTimeout::WORDS), Some(Free),
        "on-question-timeout", shown;
    /// The maximum number of calls of the model.
    max_turns: u64 = count, optional, Shape::Number, Some(Trusted), "max-turns", shown;
    /// The maximum number of calls of tools.
    max_tool_calls: u64 = count, optional, Shape::Number, Some(Trusted), "max-tool-calls", shown;
    /// The maximum number of input and output tokens.
    max_tokens: u64 = count, optional, Shape::Number, Some(Trusted), "max-tokens", shown;
    /// The maximum cost, in US dollars.
    max_cost_usd: f64 = cost, optional, Shape::Number, Some(Trusted), "max-cost-usd", shown;
    /// The effect of a limit that neither the agent nor spektacular can keep.
    on_unsupported: OnUnsupported =
        on_unsupported, default(OnUnsupported::Fail), Shape::Word(OnUnsupported::WORDS), Some(Guards),
        "on-unsupported", shown;
    /// The amount of progress that the run emits.
    progress: Level = level, default(Level::Normal), Shape::Word(Level::WORDS), Some(Free), "progress", shown;
    /// The longest time without a frame before a heartbeat; 0: no heartbeats.
    heartbeat_s: Seconds = zero_or_more, default(Seconds(30.0)), Shape::Number, Some(Free), "heartbeat", shown;
    /// The largest frame in bytes, LF included.
    max_frame_bytes: usize =
        frame_bytes, default(limits::FRAME_BYTES), Shape::Number, Some(Free), "max-frame-bytes", shown;
    /// Variables to add to the agent's environment.
    env: BTreeMap<String, String> = environment, default(BTreeMap::new()), Shape::Pairs, Some(Trusted), "env", hidden;
    /// If present, the only variables that the agent inherits.
    env_allow: Vec<String> = names, optional, Shape::List, Some(Guards), "env-allow", shown;
    /// Values to redact from everything that leaves the process.
    secrets: Vec<String> = secrets, default(Vec::new()), Shape::List, Some(Guards), "secret", hidden;
    /// Arguments to append to the agent's command line.
    agent_args: Vec<String> = arguments, default(Vec::new()), Shape::List, Some(Trusted), "agent-arg", as_text;
    /// A JSON Schema for a structured result.
    output_schema: OutputSchema = schema, optional, Shape::Schema, Some(Free), "output-schema", hidden;
    /// The string that sets completion_detected.
    completion_marker: String =
        non_empty, default("<promise>COMPLETE</promise>".to_owned()), Shape::Text, Some(Free), "completion-marker",
        shown;
    /// Whether question markers in the agent's text become questions.
    question_markers: bool = boolean, default(true), Shape::Bool, Some(Free), "question-markers", shown;
    /// Whether the agent may interpret commands in the prompt.
    raw_prompt: bool = boolean, default(false), Shape::Bool, Some(Trusted), "raw-prompt", shown;
    /// Whether the run fails if a permission was denied because nobody answered.
    fail_on_denied: bool = boolean, default(false), Shape::Bool, Some(Free), "fail-on-denied", shown;
    /// An object that run.started and the terminal frame return.
    metadata: Box<RawValue> = metadata, optional, Shape::Object, None, "metadata", hidden;
}

impl Settings {
    /// Whether the agent may read and search without a question, but not run commands.
    pub fn reads_unasked(&self) -> bool {
        let lets_read = self.judge.as_ref().is_some_and(|judge| judge.lets_read());
        self.permissions.reads_unasked() || lets_read && self.permissions.of(Category::Execute) != Policy::Allow
    }
}

impl Options {
    /// Fills in every default. `cwd` is absolute.
    pub fn resolve(self, prompt: String, agent: String, cwd: PathBuf) -> Settings {
        self.settle(Required { prompt, agent, cwd })
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, find};
    use crate::protocol::limits;

    #[test]
    fn the_texts_of_the_ranges_name_the_limits() {
        for (name, limit) in [
            ("session_id", limits::SESSION_ID_BYTES),
            ("agent_args", limits::ARGUMENT_BYTES),
            ("images", limits::IMAGES),
            ("max_frame_bytes", limits::FRAME_BYTES_MIN),
            ("max_frame_bytes", limits::FRAME_BYTES_MAX),
            ("metadata", limits::METADATA_BYTES),
        ] {
            let expected = find(name).unwrap().expected();
            assert!(expected.contains(&limit.to_string()), "{name}: {expected} lacks {limit}");
        }
        assert!(find("timeout").is_none() && find("").is_none());
    }

    #[test]
    fn a_flag_sets_one_field() {
        let mut flags: Vec<&str> = FIELDS.iter().map(|field| field.flag).filter(|flag| !flag.is_empty()).collect();
        let count = flags.len();
        flags.sort_unstable();
        flags.dedup();
        assert_eq!((flags.len(), count), (count, FIELDS.len() - 1), "every field but the prompt has a flag of its own");
    }
}

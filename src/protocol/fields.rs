//! The fields of run.start, one row each: type, reader, default, configuration key, flag, and whether run.started shows
//! the field. The parser, the resolver, `config list`, help and completions derive from these rows, and a test checks
//! the reference against them.
//!
//! [`Options`] is one layer of the fields (a run.start, the flags, a configuration file), each of which may be absent.
//! Layers stack, and [`Options::resolve`] turns the stack into [`Settings`], with every default filled in.

use super::declare::{member, put_field, visit_field};
use super::fallback::{FallbackAgent, fallback};
use super::form::{Form, HasForm, Member, ObjectForm};
use super::frame_value::{FrameObject, ObjectWriter, object_value};
use super::ids::SessionId;
use super::image::Image;
use super::limits;
use super::mcp_server::{McpServer, mcp_servers};
use super::parts::{Parts, Role, Visit};
use super::permissions::{Permissions, permissions};
use super::question::Judge;
use super::read::{
    Seconds, any_string, arguments, boolean, cost, count, environment, frame_bytes, images, layer, metadata, names,
    narrowed, non_empty, path, paths, positive, prompt, schema, secrets, session_id, strings, system_prompt,
    zero_or_more,
};
use super::sandbox::{Sandbox, SandboxInForce, sandbox};
use super::schema::OutputSchema;
use super::text::Text;
use super::words::{
    Background, Category, Level, OnQuestionTimeout, OnRateLimit, OnUnsupported, Policy, SystemPromptMode,
};
use ProjectFileRule::{Free, Guards, Trusted};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in JSON, in a configuration file and, in capitals, in the environment.
    pub name: &'static str,
    /// The meaning, in sentences. Begins with a blank.
    pub doc: &'static str,
    pub form: Form,
    pub fallback: Fallback,
    /// The conditions under which a project's configuration file may set the field. `None`: no file may, because the
    /// field belongs to one run.
    pub key: Option<ProjectFileRule>,
    /// The flag of `adhoc` that sets the field, without dashes. Empty: `adhoc` defines the flags for this field itself.
    pub flag: &'static str,
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
    Absent,
    Value(fn() -> Option<Box<RawValue>>),
    /// The driver supplies the value. Most drivers use this one.
    Driver(fn() -> Option<Box<RawValue>>),
    Agent,
}

/// The conditions under which a project's configuration file may set a key. A stranger may have written the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectFileRule {
    /// Always: the key cannot run a program, allow an action or disclose data.
    Free,
    /// Only once the user trusts the file.
    Trusted,
    /// Like `Trusted`, but an invalid value is an error and not only a warning, because the key protects the user.
    Guards,
}

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

/// For constants, where a name that does not exist fails the build, and for words that a test compares with the fields.
pub(crate) const fn known(name: &str) -> &'static Field {
    match find(name) {
        Some(field) => field,
        None => panic!("run.start has no field with this name"),
    }
}

macro_rules! field {
    ($name:ident) => {
        const { $crate::protocol::fields::known(stringify!($name)) }
    };
}

pub(crate) use field;

/// Those of `sandbox` and `fallback` differ from what run.started shows.
const fn form_of(reader: &str, form: Form) -> Form {
    match reader.as_bytes() {
        b"sandbox" => Sandbox::REQUEST,
        b"fallback" => FallbackAgent::REQUEST,
        _ => narrowed(reader, form),
    }
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

/// `config` in run.started.
#[derive(Clone, Debug)]
pub struct ShownSettings {
    pub settings: Box<Settings>,
    pub cwd: Text,
    pub sandbox: SandboxInForce,
    pub agent_args: Vec<Text>,
}

object_value!(ShownSettings);

macro_rules! setting {
    (optional, $type:ty) => { Option<$type> };
    (driver($value:expr), $type:ty) => { Option<$type> };
    (default($value:expr), $type:ty) => { $type };
    ($from_caller:ident($setting:ty), $type:ty) => { $setting };
}

macro_rules! settle {
    (optional, $said:expr, $required:expr) => {
        $said
    };
    (driver($value:expr), $said:expr, $required:expr) => {
        $said
    };
    (default($value:expr), $said:expr, $required:expr) => {
        $said.unwrap_or_else(|| $value)
    };
    ($from_caller:ident($setting:ty), $said:expr, $required:expr) => {
        $required
    };
}

pub(super) use {setting, settle};

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

macro_rules! shown_setting {
    ([in_text $($word:ident)*], $config:expr, $name:ident) => {
        $config.$name
    };
    ([$($word:ident)*], $config:expr, $name:ident) => {
        $config.settings.$name
    };
}

macro_rules! visit_setting {
    ([hidden], $config:expr, $name:ident, $role:ident, $visit:ident) => {};
    ([in_text $word:ident], $config:expr, $name:ident, $role:ident, $visit:ident) => {
        visit_field!([$word], &mut $config.$name, $role, $visit)
    };
    ([$($word:ident)*], $config:expr, $name:ident, $role:ident, $visit:ident) => {
        visit_field!([$($word)*], &mut $config.settings.$name, $role, $visit)
    };
}

macro_rules! is_shown {
    ([hidden]) => {
        false
    };
    ([$($word:ident)*]) => {
        true
    };
}

/// A row: `name: TYPE = READER, DEFAULT, KEY, FLAG, SHOWN;`. DEFAULT is `required(T)` or `agent(T)` if the
/// caller supplies the setting, `optional` if the setting may be absent, `driver(VALUE)` if the driver may replace
/// VALUE, otherwise `default(VALUE)`. SHOWN is about run.started: `[hidden]` if it does not show the setting, otherwise the
/// word of [`super::declare`] for its texts; `in_text` if [`ShownSettings`] has a copy.
macro_rules! run_start {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $read:path, $kind:ident $(($($extra:tt)*))?, $key:expr,
        $flag:literal, $shown:tt;)*) => {
        layer! {
            /// `None`: this layer does not set the field.
            Options { $($(#[doc = $doc])* $name: $type = $read;)* }
        }

        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])* pub $name: setting!($kind $(($($extra)*))?, $type),)*
            // These are not fields of run.start.
            /// The files of `images`, checked.
            pub attached: Vec<Image>,
            /// Offers the tool `ask_user`. The agent starts it in addition to `mcp_servers`.
            pub ask_server: Option<McpServer>,
            /// A random text, unknown outside this run, for the name of that server.
            pub nonce: String,
            /// Decides about requests for permission before `permissions` do.
            pub judge: Option<Arc<dyn Judge>>,
            /// Whether the run is a part of a workflow, which reports its own plan.
            pub is_part: bool,
            /// Whether the peer shows [`super::outbound::ToolFacts`].
            pub tool_facts: bool,
            /// The cost of the resumed session so far, in US dollars, if known.
            pub session_cost_usd: Option<f64>,
            /// The user's own rules about the agent's tools. The run must keep them; only the driver reads their form.
            pub own_rules: String,
            pub sets_on_question_timeout: bool,
            /// Whether the end of stdin declines a required question instead of failing the run.
            pub closed_input_declines: bool,
        }

        impl Options {
            fn with_defaults(self, required: Required) -> Settings {
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
                    own_rules: String::new(),
                }
            }
        }

        impl FrameObject for ShownSettings {
            const OBJECT: ObjectForm = ObjectForm {
                name: "Config",
                members: &[$(
                    member!($shown, setting!($kind $(($($extra)*))?, $type), concat!($($doc),*), $name)
                ),*],
            };

            fn put_fields(&self, object: &mut ObjectWriter<'_>) {
                $(put_field!(object, $shown, &shown_setting!($shown, self, $name), $name);)*
            }
        }

        impl Parts for ShownSettings {
            fn visit(&mut self, _role: Role, visit: Visit<'_>) {
                $(visit_setting!($shown, self, $name, _role, visit);)*
            }
        }

        /// Without `workflow`. A null field counts as absent.
        pub const START_FIELDS: ObjectForm = ObjectForm {
            name: "Settings",
            members: &[
                $(Member::field(
                    stringify!($name),
                    concat!($($doc),*),
                    form_of(stringify!($read), <$type as HasForm>::FORM),
                    !equal(stringify!($name).as_bytes(), b"prompt"),
                ),)*
            ],
        };

        /// In the order of run.started.
        pub const FIELDS: &[Field] = &[$(Field {
            name: stringify!($name),
            doc: concat!($($doc),*),
            form: form_of(stringify!($read), <$type as HasForm>::FORM),
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
    prompt: String = prompt, required(String), None, "", [hidden];
    /// The name of a configured agent.
    // Not every agent asks before it acts, and some are downloaded when a run first names them.
    agent: String = any_string, agent(String), Some(Trusted), "agent", [name];
    /// The model, by the agent's name for it.
    model: String = non_empty, optional, Some(Free), "model", [text];
    /// The reasoning effort, by the agent's name for it.
    effort: String = non_empty, optional, Some(Free), "effort", [text];
    /// The agent's own mode, by the agent's name for it.
    // Some modes allow actions that others ask about.
    mode: String = non_empty, optional, Some(Trusted), "mode", [text];
    /// A system prompt.
    system_prompt: String = system_prompt, optional, Some(Trusted), "system-prompt", [hidden];
    /// Whether the system prompt is added to the agent's own or replaces it.
    system_prompt_mode: SystemPromptMode =
        SystemPromptMode::read, default(SystemPromptMode::Append), Some(Trusted), "system-prompt-mode", [];
    /// The agent's working directory.
    cwd: String = path, required(PathBuf), Some(Trusted), "cwd", [in_text text];
    /// Further directories that the agent may use.
    add_dirs: Vec<String> = paths, default(Vec::new()), Some(Trusted), "add-dir", [list];
    /// The paths of images that belong to the prompt.
    images: Vec<String> = images, default(Vec::new()), None, "image", [list];
    /// The agent's session to resume.
    session_id: SessionId = session_id, optional, None, "session", [];
    /// Whether the run begins a new session from `session_id`, which stays as it is.
    fork: bool = boolean, default(false), None, "fork", [];
    /// Whether the run may ask questions.
    interactive: bool = boolean, default(true), Some(Free), "headless", [];
    /// The answers to the agent's requests for permission.
    permissions: Permissions =
        permissions, default(Permissions::default()), Some(Guards), "permissions", [];
    /// The limits that the kernel sets to the agent and all that comes from it.
    sandbox: Sandbox = sandbox, default(Sandbox::default()), Some(Guards), "sandbox", [in_text text];
    /// Tools that the agent may use, by the agent's names for them.
    allowed_tools: Vec<String> = strings, optional, Some(Guards), "allowed-tool", [list];
    /// Tools that the agent may not use, by the agent's names for them.
    disallowed_tools: Vec<String> = strings, optional, Some(Guards), "disallowed-tool", [list];
    /// MCP servers for the agent to start or to reach.
    mcp_servers: Vec<McpServer> =
        mcp_servers, default(Vec::new()), Some(Trusted), "mcp-servers", [hidden];
    /// Whether the agent stays for further prompts.
    conversation: bool = boolean, default(false), None, "conversation", [];
    /// Whether a conversation keeps checkpoints of the files, for `rewind`.
    checkpoints: bool = boolean, default(false), Some(Free), "checkpoints", [];
    /// The limit of one turn of a conversation.
    turn_timeout_s: Seconds = positive, optional, Some(Free), "turn-timeout", [];
    /// The longest wait for a further prompt of a conversation.
    prompt_timeout_s: Seconds = positive, optional, Some(Free), "prompt-timeout", [];
    /// The limit of the whole run.
    timeout_s: Seconds = positive, optional, Some(Free), "timeout", [];
    /// The limit until the agent's first line.
    start_timeout_s: Seconds =
        positive, driver(DEFAULT_START_TIMEOUT), Some(Free), "start-timeout", [];
    /// The agent's longest silence; 0: no limit.
    idle_timeout_s: Seconds =
        zero_or_more, default(Seconds(600.0)), Some(Free), "idle-timeout", [];
    /// The longest time for which a running tool stops the idle clock.
    tool_timeout_s: Seconds = positive, default(Seconds(3600.0)), Some(Free), "tool-timeout", [];
    /// The time limit for answering a question.
    question_timeout_s: Seconds =
        positive, default(Seconds(300.0)), Some(Free), "question-timeout", [];
    /// The effect of a timeout on a required question without a default.
    on_question_timeout: OnQuestionTimeout =
        OnQuestionTimeout::read, default(OnQuestionTimeout::Fail), Some(Free),
        "on-question-timeout", [];
    /// The treatment of work that the agent leaves running, or scheduled, when its turn ends.
    background: Background = Background::read, default(Background::Wait), Some(Free), "background", [];
    /// The maximum number of calls of the model.
    max_turns: u64 = count, optional, Some(Trusted), "max-turns", [];
    /// The maximum number of calls of tools.
    max_tool_calls: u64 = count, optional, Some(Trusted), "max-tool-calls", [];
    /// The maximum number of input and output tokens.
    max_tokens: u64 = count, optional, Some(Trusted), "max-tokens", [];
    /// The maximum cost, in US dollars.
    max_cost_usd: f64 = cost, optional, Some(Trusted), "max-cost-usd", [];
    /// The effect of a limit that neither the agent nor spektacular can keep.
    on_unsupported: OnUnsupported =
        OnUnsupported::read, default(OnUnsupported::Fail), Some(Guards),
        "on-unsupported", [];
    /// The effect of a limit of the agent's provider.
    on_rate_limit: OnRateLimit =
        OnRateLimit::read, default(OnRateLimit::Fail), Some(Free), "on-rate-limit", [];
    /// The longest wait for a provider's limit to end.
    max_wait_s: Seconds = positive, default(Seconds(21600.0)), Some(Free), "max-wait", [];
    /// The agents that take over, in this order, where the agent fails.
    // Not every agent asks before it acts.
    fallback: Vec<FallbackAgent> = fallback, default(Vec::new()), Some(Trusted), "fallback", [list];
    /// The amount of progress that the run emits.
    progress: Level = Level::read, default(Level::Normal), Some(Free), "progress", [];
    /// The longest time without a frame before a heartbeat; 0: no heartbeats.
    heartbeat_s: Seconds = zero_or_more, default(Seconds(30.0)), Some(Free), "heartbeat", [];
    /// The largest frame in bytes, LF included.
    max_frame_bytes: usize =
        frame_bytes, default(limits::FRAME_BYTES), Some(Free), "max-frame-bytes", [];
    /// Variables to add to the agent's environment.
    env: BTreeMap<String, String> = environment, default(BTreeMap::new()), Some(Trusted), "env", [hidden];
    /// If present, the only variables that the agent inherits.
    env_allow: Vec<String> = names, optional, Some(Guards), "env-allow", [names];
    /// Values to redact from everything that leaves the process.
    secrets: Vec<String> = secrets, default(Vec::new()), Some(Guards), "secret", [hidden];
    /// Arguments to append to the agent's command line.
    agent_args: Vec<String> = arguments, default(Vec::new()), Some(Trusted), "agent-arg", [in_text list];
    /// A JSON Schema for a structured result.
    output_schema: OutputSchema = schema, optional, Some(Free), "output-schema", [hidden];
    /// The string that sets completion_detected.
    completion_marker: String =
        non_empty, default("<promise>COMPLETE</promise>".to_owned()), Some(Free), "completion-marker",
        [text];
    /// Whether question markers in the agent's text become questions.
    question_markers: bool = boolean, default(true), Some(Free), "question-markers", [];
    /// Whether the agent may interpret commands in the prompt.
    raw_prompt: bool = boolean, default(false), Some(Trusted), "raw-prompt", [];
    /// Whether the run fails if a permission was denied because nobody answered.
    fail_on_denied: bool = boolean, default(false), Some(Free), "fail-on-denied", [];
    /// An object that run.started and the terminal frame return.
    metadata: Box<RawValue> = metadata, optional, None, "metadata", [hidden];
}

impl Settings {
    /// The system prompt that replaces the agent's own.
    pub fn new_system_prompt(&self) -> Option<&String> {
        let replaces = self.system_prompt_mode == SystemPromptMode::Replace;
        self.system_prompt.as_ref().filter(|text| replaces && !text.is_empty())
    }

    /// Whether the run reads, and no command of the agent's has to act.
    pub fn only_reads(&self) -> bool {
        let lets_read = self.judge.as_ref().is_some_and(|judge| judge.lets_read());
        self.permissions.is_read_only() || lets_read && self.permissions.policy(Category::Execute) != Policy::Allow
    }
}

impl Options {
    /// `cwd` is absolute.
    pub fn resolve(self, prompt: String, agent: String, cwd: PathBuf) -> Settings {
        self.with_defaults(Required { prompt, agent, cwd })
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
            ("add_dirs", limits::LIST_ENTRIES),
            ("allowed_tools", limits::LIST_ENTRIES),
            ("env_allow", limits::LIST_ENTRIES),
            ("mcp_servers", limits::LIST_ENTRIES),
            ("agent_args", limits::LIST_ENTRIES),
            ("agent_args", limits::ARGUMENT_BYTES),
            ("agent_args", limits::ARGUMENTS_BYTES),
            ("env", limits::ARGUMENTS_BYTES),
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

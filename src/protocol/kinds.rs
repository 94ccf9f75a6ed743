//! The kinds of run.progress, one row each: word, level, and fields.
//!
//! For a new kind, the compiler asks for its place in the terminal, in workflows and, through [`KindName`], in
//! `acp::session`; the tests ask for its row in `reference.md`. `report` shows a kind that it does not know as JSON.

use super::declare::{member, put_field, visit_field};
use super::form::{Member, ObjectForm};
use super::frame_value::{FrameObject, ObjectWriter};
use super::ids::{CallId, CheckpointId, MessageId, PromptId, QuestionId, SessionId};
use super::parts::{Parts, Role, Visit};
use super::pieces::{
    AgentCommand, ArtifactRef, Capabilities, FileEdit, McpServerState, PlanEntry, ToolExit, TurnReport, Usage,
};
use super::question::{Answer, Place, Subject};
use super::read::Seconds;
use super::text::{Json, Text};
use super::utc::UtcTime;
use super::words::{
    Category, CheckpointState, Level, PhaseState, PromptState, Resolution, Status, ToolState, WaitingOn, Warning,
    word_enums,
};

#[derive(Clone, Copy, Debug)]
pub struct KindForm {
    pub name: &'static str,
    /// In sentences. May begin with a blank.
    pub doc: &'static str,
    /// The lowest level at which the kind is emitted.
    pub level: Level,
    /// Without those of all kinds.
    pub fields: &'static ObjectForm,
}

macro_rules! kinds {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {$(
        $(#[doc = $about:literal])*
        $word:literal from $level:ident:
        $variant:ident
            $(( $(#[doc = $only_doc:literal])* $only:ident: $only_type:ty $(as $($only_word:ident)+)? ))?
            $({ $( $(#[doc = $doc:literal])* $field:ident: $type:ty $(as $($role:ident)+)?, )* })?,
    )*}) => {
        word_enums! {
            /// The kind of a run.progress that is read as JSON. A reader must ignore an unknown one.
            pub enum KindName { $($variant = $word),* }
        }

        $(#[$meta])*
        $vis enum $name {$(
            $(#[doc = $about])*
            $variant $(($only_type))? $({ $( $(#[doc = $doc])* $field: $type, )* })?,
        )*}

        impl $name {
            pub const NAMES: &'static [&'static str] = &[$($word),*];

            pub const KINDS: &'static [KindForm] = &[$(KindForm {
                name: $word,
                doc: concat!($($about),*),
                level: Level::$level,
                fields: &ObjectForm {
                    name: stringify!($variant),
                    members: &[
                        $(member!([$($($only_word)+)?], $only_type, concat!($($only_doc),*), $only))?
                        $($( member!([$($($role)+)?], $type, concat!($($doc),*), $field) ),*)?
                    ],
                },
            }),*];

            pub fn kind(&self) -> &'static str {
                match self { $($name::$variant { .. } => $word,)* }
            }

            pub fn level(&self) -> Level {
                match self { $($name::$variant { .. } => Level::$level,)* }
            }
        }

        impl FrameObject for $name {
            const OBJECT: ObjectForm = ObjectForm { name: stringify!($name), members: &[] };
            const MEMBER: Member = Member::Kind;

            fn put_fields(&self, object: &mut ObjectWriter<'_>) {
                match self {$(
                    $name::$variant $(($only))? $({ $($field),* })? => {
                        $( put_field!(object, [$($($only_word)+)?], $only, $only); )?
                        $($( put_field!(object, [$($($role)+)?], $field, $field); )*)?
                    }
                )*}
            }
        }

        impl Parts for $name {
            fn visit(&mut self, _role: Role, visit: Visit<'_>) {
                match self {$(
                    $name::$variant $(($only))? $({ $($field),* })? => {
                        $( visit_field!([$($($only_word)+)?], $only, _role, visit); )?
                        $($( visit_field!([$($($role)+)?], $field, _role, visit); )*)?
                    }
                )*}
            }
        }
    };
}

kinds! {
    #[derive(Clone, Debug)]
    pub enum ProgressKind {
        /// The state of the run.
        "status" from Minimal: Status {
            /// The state.
            status: Status,
            /// For `waiting_for_limit`: the time at which the run goes on, in UTC.
            until: Option<UtcTime> as known,
            /// For `starting`: the agent that takes over.
            agent: Option<String> as known name,
        },
        /// Facts about the agent's session, as soon as they are known.
        "session" from Minimal: Session {
            /// The agent's session. Null: unknown.
            session_id: Option<SessionId>,
            /// The agent's version. Null: unknown.
            agent_version: Option<Text> as text,
            /// The model. Null: unknown.
            model: Option<Text> as text,
            /// The capabilities of the driver, as far as they are known now.
            capabilities: Option<Capabilities> as text,
            /// The MCP servers of the run, and those that the agent reports besides.
            mcp_servers: Vec<McpServerState> as list,
        },
        /// The agent's own commands and skills, whenever it lists them in a conversation.
        "commands" from Full: Commands(
            /// All of them.
            commands: Vec<AgentCommand> as list
        ),
        /// A warning.
        "warning" from Minimal: Warning {
            /// The code.
            code: Warning,
            /// For `agent_retrying`: the time at which the agent or its provider goes on again, in UTC.
            retry_at: Option<UtcTime> as known,
            /// The text in the words of a person at a terminal, where it differs.
            for_person: Option<Box<Text>> as hidden text,
        },
        /// A question is resolved.
        "question_resolved" from Minimal: Resolved {
            /// The question's id.
            question_id: QuestionId,
            /// The reason.
            resolution: Resolution,
            /// Whether the default was used.
            used_default: bool,
            /// The permission that was requested. Absent: the question is none.
            subject: Option<Subject> as known past_action,
            /// The value that was taken. Null: none was, or it is a secret. Absent: the level of progress is minimal, and
            /// the question is no permission.
            value: Option<Answer> as known text,
            /// The question in one short line with its options, for a screen: the frame has the question in its text.
            what: Text as hidden text,
        },
        /// Nothing else happened for some time.
        "heartbeat" from Minimal: Heartbeat {
            /// The time since the last sign of the side that the run waits for, in seconds.
            idle_s: Seconds,
            /// The side that the run waits for.
            waiting_on: WaitingOn,
        },
        /// A message of the agent, or a piece of one.
        "text" from Normal: Text {
            /// The message.
            message_id: MessageId,
            /// Whether this is the last piece.
            done: bool,
            /// Whether the message is taken back.
            withdrawn: bool as known,
        },
        /// A thought of the model, or a piece of one.
        "reasoning" from Full: Reasoning {
            /// The thought.
            message_id: MessageId,
            /// Whether this is the last piece.
            done: bool,
            /// Whether the thought is taken back.
            withdrawn: bool as known,
        },
        /// A tool call.
        "tool" from Normal: Tool {
            /// The call.
            call_id: CallId,
            /// The tool, as the agent knows it. Null: the call is spektacular's own.
            name: Option<Text> as list,
            /// The category of the tool.
            category: Category,
            /// The state of the call.
            state: ToolState,
            /// The files that the call concerns.
            locations: Vec<Place> as list,
            /// The time that the call took, in milliseconds. Absent: it has not ended.
            duration_ms: Option<u64> as known,
            /// The exit code of a command that ended. Null: unknown.
            exit_code: ToolExit as known,
            /// Whether the output of a failed tool says that access was denied, in a run with a sandbox.
            sandbox_suspected: bool as known,
            /// For a command of a workflow: the phase that it verifies.
            phase: Option<String> as known name,
            /// The input of the call, an object.
            input: Option<Json> as full output,
            /// The output of the call.
            output: Option<Text> as full output,
            /// The changes that an edit made.
            diff: Vec<FileEdit> as full output,
        },
        /// The agent's plan.
        "plan" from Normal: Plan(
            /// The entries in order.
            entries: Vec<PlanEntry> as list
        ),
        /// The agent's own list in a workflow, where `plan` shows the workflow's steps.
        "todo" from Full: Todo(
            /// The entries in order.
            entries: Vec<PlanEntry> as list
        ),
        /// The progress of a phase of a workflow.
        "phase" from Minimal: Phase {
            /// The phase's id, such as `P1`.
            phase: String as name,
            /// The phase's title.
            title: Text as text,
            /// The number of the phase, from 1.
            number: u64,
            /// The number of phases.
            of: u64,
            /// The number of the attempt, from 1.
            attempt: u64,
            /// The state of the phase.
            state: PhaseState,
            /// The agent that works on it.
            agent: String as name,
        },
        /// The usage so far.
        "usage" from Normal: Usage(
            /// The usage.
            usage: Usage as text
        ),
        /// The state of a further prompt.
        "prompt" from Minimal: Prompt {
            /// The prompt.
            prompt_id: PromptId,
            /// The state.
            state: PromptState,
            /// The prompt itself, in the first frame about it, for a page about the run.
            said: Option<Text> as hidden text,
        },
        /// A checkpoint of the files, in a conversation with `checkpoints`.
        "checkpoint" from Minimal: Checkpoint {
            /// The checkpoint.
            checkpoint_id: CheckpointId,
            /// The state.
            state: CheckpointState,
            /// For `restored`: the checkpoint before the rewind.
            undo: Option<CheckpointId> as known,
            /// For `restored`: the files that were put back.
            files: Vec<ArtifactRef> as list,
        },
        /// The end of a turn of a conversation.
        "turn" from Minimal: Turn(
            turn: Box<TurnReport> as flat text
        ),
    }
}

//! Every limit of the protocol, as a constant with its unit in the name.

/// Without its LF.
pub const INBOUND_LINE_BYTES: usize = 16 << 20;
/// A longer line is skipped with a warning.
pub const AGENT_LINE_BYTES: usize = 64 << 20;
/// The deepest nesting of an inbound message; its own object is level 1.
pub const DEPTH: usize = 128;
/// Of an inbound `id`.
pub const ID_CHARS: usize = 128;
/// The default of `max_frame_bytes`, LF included.
pub const FRAME_BYTES: usize = 256 << 10;
pub const FRAME_BYTES_MIN: usize = 16 << 10;
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// The maximum size of a run.completed, as a multiple of `max_frame_bytes`.
pub const COMPLETED_FACTOR: usize = 16;
/// The maximum number of warnings held until run.started.
pub const HELD_WARNINGS: usize = 64;
/// The longest list in a field of run.start or of the configuration, in entries.
pub const LIST_ENTRIES: usize = 1024;
/// The longest `prompt` and the longest `system_prompt`, in bytes.
pub const PROMPT_BYTES: usize = 8 << 20;
/// The largest value of any other field of run.start or of the configuration, in bytes of JSON as it was sent.
pub const FIELD_BYTES: usize = 1 << 20;
/// The maximum size of `agent_args` and `env` together, in bytes without their NULs and equals signs.
pub const ARGUMENTS_BYTES: usize = 128 << 10;
/// Of a structured result, in JSON.
pub const RESULT_BYTES: usize = 4 << 20;
/// Of one file.
pub const CONFIG_BYTES: usize = 1 << 20;
/// Of JSON as it was sent.
pub const METADATA_BYTES: usize = 64 << 10;
pub const SECRET_BYTES: usize = 64 << 10;
/// In one frame.
pub const TOOL_OUTPUT_BYTES: usize = 64 << 10;
pub const STDERR_TAIL_BYTES: usize = 8 << 10;
/// Of the agent's own message about its failure.
pub const AGENT_MESSAGE_BYTES: usize = 4 << 10;
/// The maximum size, in bytes, of all unfinished messages, tools and questions of an agent, and separately of all lines
/// that the agent has not read.
pub const KEPT_BYTES: usize = 32 << 20;
pub const WAITING_REQUESTS: usize = 1000;
/// The maximum number of artifacts in a terminal frame.
pub const ARTIFACTS: usize = 1000;
/// The maximum number of changed files that a run reports. The run remembers each, so that it is reported once.
pub const REPORTED: usize = 1_000_000;
/// The maximum number of entries in each list of unanswered questions in run.completed.
pub const LEFT_LISTED: usize = 20;
pub const SESSION_ID_BYTES: usize = 1024;
/// The longest question header, in characters.
pub const HEADER_CHARS: usize = 12;
/// The maximum number of options of a question.
pub const OPTIONS: usize = 1000;
/// The maximum number of questions in one request.
pub const QUESTIONS: usize = 100;
pub const PLAN_ENTRIES: usize = 1000;
/// The maximum number of commands that verify a phase, or that set up a worktree.
pub const COMMANDS: usize = 20;
/// The longest of these commands, in bytes.
pub const COMMAND_BYTES: usize = 4096;
/// The number of bad answers after which a question counts as declined.
pub const BAD_ANSWERS: u32 = 5;
/// The longest call or tool name that "always" can cover, in bytes.
pub const REMEMBERED_BYTES: usize = 64 << 10;
/// The maximum number of answers "always" that a run remembers.
pub const REMEMBERED: usize = 1000;
/// The longest single argument of a command line, in bytes without its NUL (Linux MAX_ARG_STRLEN).
pub const ARGUMENT_BYTES: usize = 131_071;
/// The maximum number of images of a prompt: from the 21st on, Anthropic's API takes only small ones.
pub const IMAGES: usize = 20;
/// The largest image, in bytes, as Anthropic's API documents it. OpenAI's and Google's take larger ones.
pub const IMAGE_BYTES: usize = 5 << 20;
/// The maximum size of all images, in bytes. As base64, they fit into the 32 MB of a request to Anthropic's API.
pub const IMAGES_BYTES: usize = 20 << 20;
/// The maximum number of further turns for question markers.
pub const MARKER_TURNS: u32 = 20;
/// The maximum number of times that a result that does not fit `output_schema` goes back to the agent.
pub const RESULT_TURNS: u32 = 2;
/// The maximum number of violations that are listed for such a result.
pub const VIOLATIONS: usize = 20;
/// The longest message of a server that offers `ask_user`, in bytes.
pub const TOOL_LINE_BYTES: usize = 1 << 20;
/// The maximum number of calls of `ask_user` that wait at the same time on one connection.
pub const TOOL_CALLS: usize = 16;
/// The longest time, in seconds (a hundred years). Longer times are reduced to it.
pub const SECONDS: f64 = 3_153_600_000.0;

pub const PROMPTS_WAITING: usize = 32;

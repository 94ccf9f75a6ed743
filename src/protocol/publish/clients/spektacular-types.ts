// The spektacular protocol 1.2, from spektacular 0.1.0.
// A later minor version may add frame types, kinds, fields and codes: ignore those that you do not know.

export type SystemPromptMode = "append" | "replace";

export type Policy = "ask" | "allow" | "deny";

export type Category =
  | "read"
  | "edit"
  | "delete"
  | "move"
  | "search"
  | "execute"
  | "fetch"
  | "think"
  | "agent"
  | "mcp"
  | "mode"
  | "other";

export type SandboxMode = "off" | "read-only" | "workspace";

export type SandboxSecrets = "hidden" | "readable";

export interface SandboxRequest {
  /** The mode. */
  mode: SandboxMode;
  /** Further paths that the agent may change, for the mode workspace. */
  write?: string[] | null;
  /** Further paths that the agent may read. */
  read?: string[] | null;
  /** Whether the agent can read the secrets in HOME. By default hidden. */
  secrets?: SandboxSecrets | null;
}

export interface McpServerToStart {
  /** The server's name, as the agent sees it. */
  name: string;
  /** The server's program. */
  command: string;
  /** The program's arguments. */
  args?: string[] | null;
  /** Variables to add to its environment. */
  env?: Record<string, string> | null;
  /** Whether the run waits for the server, and fails without it. By default true. */
  required?: boolean | null;
}

export type McpTransport = "http" | "sse";

export interface McpServerToReach {
  /** The server's name, as the agent sees it. */
  name: string;
  /** The server's URL. */
  url: string;
  /** Headers to send with each request. */
  headers?: Record<string, string> | null;
  /** The protocol over HTTP. By default http. */
  transport?: McpTransport | null;
  /** Whether the run waits for the server, and fails without it. By default true. */
  required?: boolean | null;
}

export type OnQuestionTimeout = "fail" | "continue";

export type Background = "wait" | "refuse";

export type OnUnsupported = "fail" | "warn";

export type OnRateLimit = "fail" | "wait";

export type TakesOverAfter =
  | "agent_not_found"
  | "agent_start_failed"
  | "auth_required"
  | "quota_exceeded"
  | "rate_limited"
  | "provider_unavailable"
  | "model_not_found"
  | "context_exceeded"
  | "refused"
  | "agent_error"
  | "agent_exited"
  | "agent_protocol_error";

export interface FallbackRequest {
  /** The name of a configured agent. */
  agent: string;
  /** The model. By default the agent's own. */
  model?: string | null;
  /** The failures after which it takes over. */
  on?: TakesOverAfter[] | null;
}

export type Level = "minimal" | "normal" | "full";

export interface ReviewRequest {
  /** The name of a configured agent. */
  agent: string;
  /** The model. */
  model?: string | null;
}

export interface Workflow {
  /** The name of a specification. */
  name?: string | null;
  /** Whether a finished file is replaced. */
  force?: boolean | null;
  /** Whether an earlier draft is continued. */
  continue?: boolean | null;
  /** The words of the user about the draft that is continued, or about the plan. */
  words?: string | null;
  /** The agent's own command that begins the prompt. */
  skill?: string | null;
  /** The rules that the check ignores. */
  ignore?: string[] | null;
  /** The maximum number of attempts at a draft or a phase. Must be a whole number from 1 to 10. */
  attempts?: number | null;
  /** The agent that reviews the work before it counts. Null: nobody does. */
  review?: boolean | string | ReviewRequest | null;
  /** The maximum number of times that the findings of a review go back to the agent. Must be a whole number from 0 to 10. */
  review_rounds?: number | null;
  /** The maximum number of phases that pass in this run. Must be a whole number, 1 or more. */
  max_phases?: number | null;
  /** The limit of one phase with all its attempts and commands. Must be a number of seconds above 0. */
  phase_timeout_s?: number | null;
  /** Whether the user consents to the plan's commands in advance. */
  allow_verify?: boolean | null;
  /** Whether a phase whose commands pass before any work counts as passed. */
  accept_done?: boolean | null;
  /** The limit of each command. Must be a number of seconds above 0. */
  verify_timeout_s?: number | null;
  /** Whether each phase that passes becomes a commit. */
  commit?: boolean | null;
  /** The message of each commit, in which `{plan}`, `{n}`, `{title}` and `{tasks}` stand for the phase. */
  commit_message?: string | null;
  /** Whether to commit even if the work tree has other changes. */
  allow_dirty?: boolean | null;
}

/** The payload of run.start. */
export interface Start {
  /** The task. */
  prompt: string;
  /** The name of a configured agent. */
  agent?: string | null;
  /** The model, by the agent's name for it. */
  model?: string | null;
  /** The reasoning effort, by the agent's name for it. */
  effort?: string | null;
  /** The agent's own mode, by the agent's name for it. */
  mode?: string | null;
  /** A system prompt. */
  system_prompt?: string | null;
  /** Whether the system prompt is added to the agent's own or replaces it. Default: "append". */
  system_prompt_mode?: SystemPromptMode | null;
  /** The agent's working directory. */
  cwd?: string | null;
  /** Further directories that the agent may use. Default: []. */
  add_dirs?: string[] | null;
  /** The paths of images that belong to the prompt. Default: []. */
  images?: string[] | null;
  /** The agent's session to resume. */
  session_id?: string | null;
  /** Whether the run begins a new session from `session_id`, which stays as it is. Default: false. */
  fork?: boolean | null;
  /** Whether the run may ask questions. Default: true. */
  interactive?: boolean | null;
  /** The answers to the agent's requests for permission. Default: "ask". */
  permissions?: Policy | "read-only" | Partial<Record<Category | "*", Policy>> | null;
  /** The limits that the kernel sets to the agent and all that comes from it. Default: "off". */
  sandbox?: SandboxMode | SandboxRequest | null;
  /** Tools that the agent may use, by the agent's names for them. */
  allowed_tools?: string[] | null;
  /** Tools that the agent may not use, by the agent's names for them. */
  disallowed_tools?: string[] | null;
  /** MCP servers for the agent to start or to reach. Default: []. */
  mcp_servers?: (McpServerToStart | McpServerToReach)[] | null;
  /** Whether the agent stays for further prompts. Default: false. */
  conversation?: boolean | null;
  /** Whether a conversation keeps checkpoints of the files, for `rewind`. Default: false. */
  checkpoints?: boolean | null;
  /** The limit of one turn of a conversation. Must be a number of seconds above 0. */
  turn_timeout_s?: number | null;
  /** The longest wait for a further prompt of a conversation. Must be a number of seconds above 0. */
  prompt_timeout_s?: number | null;
  /** The limit of the whole run. Must be a number of seconds above 0. */
  timeout_s?: number | null;
  /** The limit until the agent's first line. Must be a number of seconds above 0. */
  start_timeout_s?: number | null;
  /** The agent's longest silence; 0: no limit. Must be a number of seconds, 0 or more. Default: 600. */
  idle_timeout_s?: number | null;
  /** The longest time for which a running tool stops the idle clock. Must be a number of seconds above 0. Default: 3600. */
  tool_timeout_s?: number | null;
  /** The time limit for answering a question. Must be a number of seconds above 0. Default: 300. */
  question_timeout_s?: number | null;
  /** The effect of a timeout on a required question without a default. Default: "fail". */
  on_question_timeout?: OnQuestionTimeout | null;
  /** The treatment of work that the agent leaves running, or scheduled, when its turn ends. Default: "wait". */
  background?: Background | null;
  /** The maximum number of calls of the model. Must be a whole number, 1 or more. */
  max_turns?: number | null;
  /** The maximum number of calls of tools. Must be a whole number, 1 or more. */
  max_tool_calls?: number | null;
  /** The maximum number of input and output tokens. Must be a whole number, 1 or more. */
  max_tokens?: number | null;
  /** The maximum cost, in US dollars. Must be a number above 0. */
  max_cost_usd?: number | null;
  /** The effect of a limit that neither the agent nor spektacular can keep. Default: "fail". */
  on_unsupported?: OnUnsupported | null;
  /** The effect of a limit of the agent's provider. Default: "fail". */
  on_rate_limit?: OnRateLimit | null;
  /** The longest wait for a provider's limit to end. Must be a number of seconds above 0. Default: 21600. */
  max_wait_s?: number | null;
  /** The agents that take over, in this order, where the agent fails. Default: []. */
  fallback?: (string | FallbackRequest)[] | null;
  /** The amount of progress that the run emits. Default: "normal". */
  progress?: Level | null;
  /** The longest time without a frame before a heartbeat; 0: no heartbeats. Must be a number of seconds, 0 or more. Default: 30. */
  heartbeat_s?: number | null;
  /** The largest frame in bytes, LF included. Must be a whole number from 16384 to 67108864. Default: 262144. */
  max_frame_bytes?: number | null;
  /** Variables to add to the agent's environment. Default: {}. */
  env?: Record<string, string> | null;
  /** If present, the only variables that the agent inherits. */
  env_allow?: string[] | null;
  /** Values to redact from everything that leaves the process. Default: []. */
  secrets?: string[] | null;
  /** Arguments to append to the agent's command line. Default: []. */
  agent_args?: string[] | null;
  /** A JSON Schema for a structured result. */
  output_schema?: Record<string, unknown> | null;
  /** The string that sets completion_detected. Default: "<promise>COMPLETE</promise>". */
  completion_marker?: string | null;
  /** Whether question markers in the agent's text become questions. Default: true. */
  question_markers?: boolean | null;
  /** Whether the agent may interpret commands in the prompt. Default: false. */
  raw_prompt?: boolean | null;
  /** Whether the run fails if a permission was denied because nobody answered. Default: false. */
  fail_on_denied?: boolean | null;
  /** An object that run.started and the terminal frame return. */
  metadata?: Record<string, unknown> | null;
  /** The options of a workflow. */
  workflow?: Workflow | null;
}

/** Starts the run. */
export interface RunStart {
  /** The major version. */
  v: "1";
  /** The id of the message, which `reply_to` returns. */
  id?: string;
  /** The time of the message, for people. */
  ts?: string;
  /** The type of the message. */
  type: "run.start";
  /** The id of the run. A run.start without one gets one. */
  run_id?: string;
  /** The content. */
  payload: Start;
}

export interface Answer {
  /** The question to answer. */
  question_id: string;
  /** The answer. */
  value: unknown;
  /** Free text for the agent, to go with a denial. */
  message?: string | null;
  /** With allow_once: the input to use for the tool. */
  updated_input?: Record<string, unknown> | null;
}

export interface DeclinedAnswer {
  /** The question to answer. */
  question_id: string;
  /** The question is declined. */
  declined: true;
  /** Free text for the agent, to go with a denial. */
  message?: string | null;
}

export interface AnswerFromEnv {
  /** The name of a variable of this process. */
  env: string;
}

export interface AnswerFromFile {
  /** A path, relative to this process's directory. */
  file: string;
}

export interface AnswerFrom {
  /** The question to answer. */
  question_id: string;
  /** The source of the answer. */
  value_from: AnswerFromEnv | AnswerFromFile;
  /** Free text for the agent, to go with a denial. */
  message?: string | null;
}

export interface Prompt {
  /** The prompt. */
  prompt: string;
  /** `now`: the agent gets it while it works, if it can. `next`, the default: after the turn. */
  when?: "next" | "now" | null;
  /** The paths of images that belong to the prompt. */
  images?: string[] | null;
  /** Whether the agent may take the prompt as a command. The default is that of run.start. */
  raw_prompt?: boolean | null;
}

export interface End {
  /** No further prompt comes. */
  end: true;
}

export interface Rewind {
  /** The checkpoint. */
  rewind: string;
}

/** The payload of run.input. */
export type Input = Answer | DeclinedAnswer | AnswerFrom | Prompt | End | Rewind;

/** Answers a question, gives a further prompt, ends a conversation, or puts files back. */
export interface RunInput {
  /** The major version. */
  v: "1";
  /** The id of the message, which `reply_to` returns. */
  id?: string;
  /** The time of the message, for people. */
  ts?: string;
  /** The type of the message. */
  type: "run.input";
  /** The id of the run. A run.start without one gets one. */
  run_id?: string;
  /** The content. */
  payload: Input;
}

export type CancelScope = "run" | "turn";

/** The payload of run.cancel. */
export interface Cancel {
  /** The reason. */
  reason?: string | null;
  /** The part to cancel. By default the run. */
  scope?: CancelScope | null;
}

/** Cancels the run, or the running turn. */
export interface RunCancel {
  /** The major version. */
  v: "1";
  /** The id of the message, which `reply_to` returns. */
  id?: string;
  /** The time of the message, for people. */
  ts?: string;
  /** The type of the message. */
  type: "run.cancel";
  /** The id of the run. A run.start without one gets one. */
  run_id?: string;
  /** The content. */
  payload?: Cancel;
}

/** A message to spektacular. */
export type Message = RunStart | RunInput | RunCancel;

export interface AgentName {
  /** The agent's name, as in the request. */
  name: string;
  /** The agent's name for people. */
  display_name: string;
  /** Null, because the agent reports its version later, in the session frame. */
  version: string | null;
}

export type GitState = "protected" | "checked";

export interface SandboxInForce {
  /** The mode. */
  mode: SandboxMode;
  /** The version of the kernel's interface (Landlock). Null: nothing is kept. */
  abi: number | null;
  /** Whether the agent can signal no process outside the sandbox. */
  signals: boolean | null;
  /** Whether the agent can reach no Unix socket outside the sandbox. */
  sockets: boolean | null;
  /** The protection of git's hooks and settings, and of the configuration that spektacular trusts. */
  git: GitState | null;
  /** Further paths that the agent may change. */
  write: string[];
  /** Further paths that the agent may read. */
  read: string[];
  /** Whether the agent can read the secrets in HOME. */
  secrets: SandboxSecrets;
}

export interface FallbackAgent {
  /** The name of a configured agent. */
  agent: string;
  /** The model, by the agent's name for it. Null: the agent's own default. */
  model: string | null;
  /** The failures after which it takes over. Null: those of the account and of the agent's start, and limits of the provider for which the run does not wait. */
  on: TakesOverAfter[] | null;
}

export interface Config {
  /** The name of a configured agent. */
  agent: string;
  /** The model, by the agent's name for it. */
  model: string | null;
  /** The reasoning effort, by the agent's name for it. */
  effort: string | null;
  /** The agent's own mode, by the agent's name for it. */
  mode: string | null;
  /** Whether the system prompt is added to the agent's own or replaces it. */
  system_prompt_mode: SystemPromptMode;
  /** The agent's working directory. */
  cwd: string;
  /** Further directories that the agent may use. */
  add_dirs: string[];
  /** The paths of images that belong to the prompt. */
  images: string[];
  /** The agent's session to resume. */
  session_id: string | null;
  /** Whether the run begins a new session from `session_id`, which stays as it is. */
  fork: boolean;
  /** Whether the run may ask questions. */
  interactive: boolean;
  /** The answers to the agent's requests for permission. */
  permissions: Policy | "read-only" | Partial<Record<Category | "*", Policy>>;
  /** The limits that the kernel sets to the agent and all that comes from it. */
  sandbox: SandboxInForce;
  /** Tools that the agent may use, by the agent's names for them. */
  allowed_tools: string[] | null;
  /** Tools that the agent may not use, by the agent's names for them. */
  disallowed_tools: string[] | null;
  /** Whether the agent stays for further prompts. */
  conversation: boolean;
  /** Whether a conversation keeps checkpoints of the files, for `rewind`. */
  checkpoints: boolean;
  /** The limit of one turn of a conversation. */
  turn_timeout_s: number | null;
  /** The longest wait for a further prompt of a conversation. */
  prompt_timeout_s: number | null;
  /** The limit of the whole run. */
  timeout_s: number | null;
  /** The limit until the agent's first line. */
  start_timeout_s: number | null;
  /** The agent's longest silence; 0: no limit. */
  idle_timeout_s: number;
  /** The longest time for which a running tool stops the idle clock. */
  tool_timeout_s: number;
  /** The time limit for answering a question. */
  question_timeout_s: number;
  /** The effect of a timeout on a required question without a default. */
  on_question_timeout: OnQuestionTimeout;
  /** The treatment of work that the agent leaves running, or scheduled, when its turn ends. */
  background: Background;
  /** The maximum number of calls of the model. */
  max_turns: number | null;
  /** The maximum number of calls of tools. */
  max_tool_calls: number | null;
  /** The maximum number of input and output tokens. */
  max_tokens: number | null;
  /** The maximum cost, in US dollars. */
  max_cost_usd: number | null;
  /** The effect of a limit that neither the agent nor spektacular can keep. */
  on_unsupported: OnUnsupported;
  /** The effect of a limit of the agent's provider. */
  on_rate_limit: OnRateLimit;
  /** The longest wait for a provider's limit to end. */
  max_wait_s: number;
  /** The agents that take over, in this order, where the agent fails. */
  fallback: FallbackAgent[];
  /** The amount of progress that the run emits. */
  progress: Level;
  /** The longest time without a frame before a heartbeat; 0: no heartbeats. */
  heartbeat_s: number;
  /** The largest frame in bytes, LF included. */
  max_frame_bytes: number;
  /** If present, the only variables that the agent inherits. */
  env_allow: string[] | null;
  /** Arguments to append to the agent's command line. */
  agent_args: string[];
  /** The string that sets completion_detected. */
  completion_marker: string;
  /** Whether question markers in the agent's text become questions. */
  question_markers: boolean;
  /** Whether the agent may interpret commands in the prompt. */
  raw_prompt: boolean;
  /** Whether the run fails if a permission was denied because nobody answered. */
  fail_on_denied: boolean;
}

export interface ProtocolVersion {
  /** The major version. */
  v: string;
  /** The minor version. */
  minor: number;
  /** The version of spektacular. */
  spektacular: string;
}

export type QuestionKind = "confirm" | "select" | "text" | "secret" | "file_path";

export interface Capabilities {
  /** The kinds of question that the agent can ask. */
  questions: QuestionKind[];
  /** Whether a session can be resumed. */
  resume: boolean | null;
  /** Whether text is reported in pieces. */
  deltas: boolean | null;
  /** Whether output_schema has an effect. */
  structured_output: boolean | null;
  /** Whether tokens are counted. */
  usage: boolean | null;
  /** Whether the agent takes further prompts. */
  conversation: boolean | null;
  /** Whether the agent takes a prompt while it works. */
  steer: boolean | null;
  /** Whether a permission can be granted with another input of the tool. */
  updated_input: boolean | null;
  /** Whether `rewind` puts files back. Absent: run.start does not set `checkpoints`. */
  rewind?: boolean;
}

export type WorkflowKind = "spec" | "plan" | "implement";

export interface Reviewer {
  /** The name of a configured agent. Null: the agent of the run. */
  agent: string | null;
  /** The model, by the agent's name for it. Null: the run's, or another agent's own default. */
  model: string | null;
}

export interface WorkflowOptions {
  /** The name of a specification. */
  name?: string | null;
  /** Whether a finished file is replaced. */
  force?: boolean;
  /** Whether an earlier draft is continued. */
  continue?: boolean;
  /** The agent's own command that begins the prompt. */
  skill?: string | null;
  /** The rules that the check ignores. */
  ignore?: string[];
  /** The maximum number of attempts at a draft or a phase. */
  attempts?: number;
  /** The agent that reviews the work before it counts. Null: nobody does. */
  review?: Reviewer | null;
  /** The maximum number of times that the findings of a review go back to the agent. */
  review_rounds?: number;
  /** The maximum number of phases that pass in this run. */
  max_phases?: number | null;
  /** The limit of one phase with all its attempts and commands. */
  phase_timeout_s?: number | null;
  /** Whether the user consents to the plan's commands in advance. */
  allow_verify?: boolean;
  /** Whether a phase whose commands pass before any work counts as passed. */
  accept_done?: boolean;
  /** The limit of each command. */
  verify_timeout_s?: number;
  /** Whether each phase that passes becomes a commit. */
  commit?: boolean;
  /** The message of each commit, in which `{plan}`, `{n}`, `{title}` and `{tasks}` stand for the phase. */
  commit_message?: string | null;
  /** Whether to commit even if the work tree has other changes. */
  allow_dirty?: boolean;
}

export interface WorkflowStarted {
  /** The workflow. */
  name: WorkflowKind;
  /** The project's folder, absolute. */
  project: string;
  /** The file that the workflow writes or works on. */
  target: string | null;
  /** The fields, with defaults filled in. */
  options: WorkflowOptions;
}

/** The payload of run.started. */
export interface Started {
  /** The agent. */
  agent: AgentName;
  /** The settings of the run, defaults included. */
  config: Config;
  /** The version of the protocol. */
  protocol: ProtocolVersion;
  /** The capabilities of the driver. */
  capabilities: Capabilities;
  /** The metadata of run.start, as it was sent. */
  metadata: Record<string, unknown>;
  /** The part of a workflow. Absent: the run is not a workflow. */
  workflow?: WorkflowStarted;
  /** Whether something was cut. */
  truncated?: true;
}

/** The run began. */
export interface RunStarted {
  /** The major version. */
  v: "1";
  /** `msg_1`, `msg_2`, … in the order of emission, without a gap. */
  id: string;
  /** The time in UTC, with three fraction digits. */
  ts: string;
  /** The type of the frame. */
  type: "run.started";
  /** The id of the run. */
  run_id: string;
  /** The id of the message that caused the frame. */
  reply_to?: string;
  /** The content. */
  payload: Started;
}

export type Status =
  | "starting"
  | "running"
  | "waiting_for_input"
  | "retrying"
  | "cancelling"
  | "waiting_for_prompt"
  | "waiting_for_limit"
  | "waiting_for_agent";

/** The state of the run. From level minimal. */
export interface ProgressStatus {
  /** The kind of the progress. */
  kind: "status";
  /** A line for people. */
  text: string;
  /** The state. */
  status: Status;
  /** For `waiting_for_limit`: the time at which the run goes on, in UTC. */
  until?: string;
  /** For `starting`: the agent that takes over. */
  agent?: string;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type McpState = "pending" | "ready" | "failed";

export interface McpServerState {
  /** The server's name. */
  name: string;
  /** Whether it runs. */
  state: McpState;
}

/** Facts about the agent's session, as soon as they are known. From level minimal. */
export interface ProgressSession {
  /** The kind of the progress. */
  kind: "session";
  /** A line for people. */
  text: string;
  /** The agent's session. Null: unknown. */
  session_id: string | null;
  /** The agent's version. Null: unknown. */
  agent_version: string | null;
  /** The model. Null: unknown. */
  model: string | null;
  /** The capabilities of the driver, as far as they are known now. */
  capabilities: Capabilities | null;
  /** The MCP servers of the run, and those that the agent reports besides. */
  mcp_servers: McpServerState[];
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export interface AgentCommand {
  /** The name, without the `/`. */
  name: string;
  /** The agent's own description. Null: it gives none. */
  description: string | null;
  /** The input that follows the name. Null: the agent does not say. */
  hint: string | null;
}

/** The agent's own commands and skills, whenever it lists them in a conversation. From level full. */
export interface ProgressCommands {
  /** The kind of the progress. */
  kind: "commands";
  /** A line for people. */
  text: string;
  /** All of them. */
  commands: AgentCommand[];
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type WarningCode =
  | "unknown_type"
  | "unknown_run"
  | "unknown_question"
  | "duplicate_start"
  | "unknown_field"
  | "malformed_message"
  | "invalid_answer"
  | "unsupported_option"
  | "short_secret"
  | "agent_output_unparsed"
  | "agent_retrying"
  | "artifacts_incomplete"
  | "empty_result"
  | "leaked_process"
  | "unguarded"
  | "plan_changed"
  | "spec_changed"
  | "spec_violations"
  | "unverified"
  | "unexpected_change"
  | "untrusted_prompt"
  | "not_committed"
  | "permission_too_long"
  | "prompt_refused"
  | "output_incomplete"
  | "mcp_unavailable"
  | "sandbox_partial"
  | "protected_changed"
  | "background_stopped"
  | "agent_replaced"
  | "review_findings"
  | "unreviewed"
  | "name_taken"
  | "draft_rejected"
  | "checkpoint_missing"
  | "rewind_refused"
  | (string & {});

/** A warning. From level minimal. */
export interface ProgressWarning {
  /** The kind of the progress. */
  kind: "warning";
  /** A line for people. */
  text: string;
  /** The code. */
  code: WarningCode;
  /** For `agent_retrying`: the time at which the agent or its provider goes on again, in UTC. */
  retry_at?: string;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type Resolution = "answered" | "declined" | "timeout" | "input_closed" | "headless" | "policy" | "withdrawn";

export interface Place {
  /** The path as the agent reports it. In a frame, it is relative to the working directory if it is inside, otherwise absolute. */
  path: string;
  /** The line number, from 1. */
  line?: number;
}

export interface Subject {
  /** The kind of tool. */
  category: Category;
  /** The title. A frame shows its first line. */
  title: string;
  /** The files that the action concerns. */
  locations: Place[];
  /** The exact action to allow, such as the command or the diff. */
  detail: string;
  /** The tool call that needs the permission. Null: no frame shows the call. */
  call_id: string | null;
}

/** A question is resolved. From level minimal. */
export interface ProgressQuestionResolved {
  /** The kind of the progress. */
  kind: "question_resolved";
  /** A line for people. */
  text: string;
  /** The question's id. */
  question_id: string;
  /** The reason. */
  resolution: Resolution;
  /** Whether the default was used. */
  used_default: boolean;
  /** The permission that was requested. Absent: the question is none. */
  subject?: Subject;
  /** The value that was taken. Null: none was, or it is a secret. Absent: the level of progress is minimal, and the question is no permission. */
  value?: boolean | string | string[] | null;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type WaitingOn = "agent" | "input" | "prompt";

/** Nothing else happened for some time. From level minimal. */
export interface ProgressHeartbeat {
  /** The kind of the progress. */
  kind: "heartbeat";
  /** A line for people. */
  text: string;
  /** The time since the last sign of the side that the run waits for, in seconds. */
  idle_s: number;
  /** The side that the run waits for. */
  waiting_on: WaitingOn;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

/** A message of the agent, or a piece of one. From level normal. */
export interface ProgressText {
  /** The kind of the progress. */
  kind: "text";
  /** A line for people. */
  text: string;
  /** The message. */
  message_id: string;
  /** Whether this is the last piece. */
  done: boolean;
  /** Whether the message is taken back. */
  withdrawn?: true;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

/** A thought of the model, or a piece of one. From level full. */
export interface ProgressReasoning {
  /** The kind of the progress. */
  kind: "reasoning";
  /** A line for people. */
  text: string;
  /** The thought. */
  message_id: string;
  /** Whether this is the last piece. */
  done: boolean;
  /** Whether the thought is taken back. */
  withdrawn?: true;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type ToolState = "started" | "completed" | "failed" | "denied" | "cancelled";

export interface FileEdit {
  /** The path, relative to the working directory if it is inside, otherwise absolute. */
  path: string;
  /** The old lines, and those around them. */
  old: string;
  /** The new lines, and those around them. */
  new: string;
}

/** A tool call. From level normal. */
export interface ProgressTool {
  /** The kind of the progress. */
  kind: "tool";
  /** A line for people. */
  text: string;
  /** The call. */
  call_id: string;
  /** The tool, as the agent knows it. Null: the call is spektacular's own. */
  name: string | null;
  /** The category of the tool. */
  category: Category;
  /** The state of the call. */
  state: ToolState;
  /** The files that the call concerns. */
  locations: Place[];
  /** The time that the call took, in milliseconds. Absent: it has not ended. */
  duration_ms?: number;
  /** The exit code of a command that ended. Null: unknown. */
  exit_code?: number | null;
  /** Whether the output of a failed tool says that access was denied, in a run with a sandbox. */
  sandbox_suspected?: true;
  /** For a command of a workflow: the phase that it verifies. */
  phase?: string;
  /** The input of the call, an object. From level full. */
  input?: unknown;
  /** The output of the call. From level full. */
  output?: string;
  /** The changes that an edit made. From level full. */
  diff?: FileEdit[];
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type PlanStatus = "pending" | "in_progress" | "completed";

export interface PlanEntry {
  /** The text of the entry. */
  text: string;
  /** The state of the entry. */
  status: PlanStatus;
}

/** The agent's plan. From level normal. */
export interface ProgressPlan {
  /** The kind of the progress. */
  kind: "plan";
  /** A line for people. */
  text: string;
  /** The entries in order. */
  entries: PlanEntry[];
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

/** The agent's own list in a workflow, where `plan` shows the workflow's steps. From level full. */
export interface ProgressTodo {
  /** The kind of the progress. */
  kind: "todo";
  /** A line for people. */
  text: string;
  /** The entries in order. */
  entries: PlanEntry[];
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type PhaseState = "started" | "verifying" | "reviewing" | "failed" | "passed" | "reopened";

/** The progress of a phase of a workflow. From level minimal. */
export interface ProgressPhase {
  /** The kind of the progress. */
  kind: "phase";
  /** A line for people. */
  text: string;
  /** The phase's id, such as `P1`. */
  phase: string;
  /** The phase's title. */
  title: string;
  /** The number of the phase, from 1. */
  number: number;
  /** The number of phases. */
  of: number;
  /** The number of the attempt, from 1. */
  attempt: number;
  /** The state of the phase. */
  state: PhaseState;
  /** The agent that works on it. */
  agent: string;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export interface Usage {
  /** Input tokens, including cached ones. */
  input_tokens: number | null;
  /** The tokens that the model wrote. */
  output_tokens: number | null;
  /** The part of the input that came from a cache. */
  cached_input_tokens: number | null;
  /** The cost, in US dollars. */
  cost_usd: number | null;
  /** The tokens of the model's last call, with its answer, which fill its context. */
  context_tokens: number | null;
  /** The size of the model's context, in tokens. */
  context_window: number | null;
}

/** The usage so far. From level normal. */
export interface ProgressUsage {
  /** The kind of the progress. */
  kind: "usage";
  /** A line for people. */
  text: string;
  /** The usage. */
  usage: Usage;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type PromptState = "queued" | "sent" | "dropped";

/** The state of a further prompt. From level minimal. */
export interface ProgressPrompt {
  /** The kind of the progress. */
  kind: "prompt";
  /** A line for people. */
  text: string;
  /** The prompt. */
  prompt_id: string;
  /** The state. */
  state: PromptState;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type CheckpointState = "taken" | "complete" | "restored";

export type Action = "created" | "modified" | "deleted";

export interface ArtifactRef {
  /** The path, as in run.artifact. */
  path: string;
  /** The change. */
  action: Action;
}

/** A checkpoint of the files, in a conversation with `checkpoints`. From level minimal. */
export interface ProgressCheckpoint {
  /** The kind of the progress. */
  kind: "checkpoint";
  /** A line for people. */
  text: string;
  /** The checkpoint. */
  checkpoint_id: string;
  /** The state. */
  state: CheckpointState;
  /** For `restored`: the checkpoint before the rewind. */
  undo?: string;
  /** For `restored`: the files that were put back. */
  files: ArtifactRef[];
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

export type TurnOrigin = "prompt" | "agent";

export type TurnOutcome = "completed" | "failed" | "cancelled";

export type StopReason = "end_turn" | "max_tokens" | "refusal" | "other";

export type FailureCode =
  | "agent_error"
  | "agent_exited"
  | "agent_protocol_error"
  | "session_not_found"
  | "session_busy"
  | "model_not_found"
  | "context_exceeded"
  | "limit_reached"
  | "quota_exceeded"
  | "refused"
  | "rate_limited"
  | "provider_unavailable"
  | "result_invalid"
  | "verification_failed"
  | "no_progress"
  | "blocked"
  | "commit_failed"
  | "usage"
  | "invalid_config"
  | "invalid_request"
  | "unsupported_version"
  | "invalid_message"
  | "no_start"
  | "agent_not_found"
  | "agent_start_failed"
  | "auth_required"
  | "timeout"
  | "idle_timeout"
  | "start_timeout"
  | "question_timeout"
  | "input_closed"
  | "question_declined"
  | "denied"
  | "internal_error"
  | "resource_exhausted"
  | (string & {});

export interface TurnFailure {
  /** The code. */
  code: FailureCode;
  /** One sentence that says what to do. */
  message: string;
  /** Whether a later attempt may succeed. */
  retryable: boolean;
}

export interface UnansweredItem {
  /** The tool's category for a permission, or the question's kind. */
  category: string;
  /** The subject, in one line. */
  text: string;
}

export interface UnansweredItems {
  /** The number of unanswered questions. */
  count: number;
  /** The first 20. */
  first: UnansweredItem[];
}

/** The end of a turn of a conversation. From level minimal. */
export interface ProgressTurn {
  /** The kind of the progress. */
  kind: "turn";
  /** A line for people. */
  text: string;
  /** The number of the turn, from 1. */
  turn: number;
  /** The agent of the turn. */
  agent: string;
  /** The cause of the turn: a prompt, or the agent itself. */
  origin: TurnOrigin;
  /** The further prompt that the turn answers. Null: that of run.start, or none. */
  prompt_id: string | null;
  /** The outcome. */
  outcome: TurnOutcome;
  /** The final answer, as `text` of run.completed. */
  final_text: string | null;
  /** As in run.completed. */
  message_id: string | null;
  /** As in run.completed. */
  stop_reason: StopReason | null;
  /** As in run.completed. */
  structured_output: unknown | null;
  /** Whether the completion marker was in the agent's text. */
  completion_detected: boolean;
  /** The usage of this turn. */
  usage: Usage;
  /** The failure of a turn that failed. */
  failure: TurnFailure | null;
  /** As in run.completed. */
  denied: UnansweredItems;
  /** As in run.completed. */
  unanswered: UnansweredItems;
  /** For work of a sub-agent: the tool call that started the sub-agent. */
  parent_call_id?: string;
  /** Whether something was cut. */
  truncated?: true;
}

/** The payload of run.progress. */
export type Progress =
  | ProgressStatus
  | ProgressSession
  | ProgressCommands
  | ProgressWarning
  | ProgressQuestionResolved
  | ProgressHeartbeat
  | ProgressText
  | ProgressReasoning
  | ProgressTool
  | ProgressPlan
  | ProgressTodo
  | ProgressPhase
  | ProgressUsage
  | ProgressPrompt
  | ProgressCheckpoint
  | ProgressTurn;

/** Something happened. The `kind` says what. */
export interface RunProgress {
  /** The major version. */
  v: "1";
  /** `msg_1`, `msg_2`, … in the order of emission, without a gap. */
  id: string;
  /** The time in UTC, with three fraction digits. */
  ts: string;
  /** The type of the frame. */
  type: "run.progress";
  /** The id of the run. */
  run_id: string;
  /** The id of the message that caused the frame. */
  reply_to?: string;
  /** The content. */
  payload: Progress;
}

export type Purpose = "permission" | "clarification" | "input";

export interface Choice {
  /** The value that an answer names, unique in its question. */
  value: string;
  /** The text that a person reads, unique in its question. */
  label: string;
  /** A longer description. */
  description?: string;
}

export type PathType = "file" | "directory";

export interface Validation {
  /** The least length of the answer, in characters. */
  min_length?: number;
  /** The greatest length of the answer, in characters. */
  max_length?: number;
  /** A regular expression that the answer must match. */
  pattern?: string;
  /** False if the pattern is too large or its dialect is not supported, otherwise absent. */
  pattern_checked?: boolean;
  /** The least number. */
  min?: number;
  /** The greatest number. */
  max?: number;
  /** Whether the number must be whole. */
  integer?: boolean;
  /** The least number of options to choose. */
  min_selected?: number;
  /** The greatest number of options to choose. */
  max_selected?: number;
  /** Whether the path must exist. */
  must_exist?: boolean;
  /** The kind of file that the path must name. */
  path_type?: PathType;
}

/** The payload of run.question. */
export interface Question {
  /** The question's id. */
  question_id: string;
  /** The id of the group of questions that the agent asked together. */
  group_id: string;
  /** The number of questions in the group. */
  group_size: number;
  /** The purpose of the question. */
  purpose: Purpose;
  /** The kind of the answer. */
  kind: QuestionKind;
  /** A short title. */
  header: string;
  /** The question. */
  text: string;
  /** The options. Values and labels are unique. */
  options?: Choice[];
  /** Whether several may be chosen. */
  multiple?: boolean;
  /** Whether free text is accepted too. */
  allow_other?: boolean;
  /** The answer that is used if nobody answers. */
  default?: boolean | string | string[] | null;
  /** The conditions for an answer. */
  validation: Validation;
  /** Whether an answer is required. */
  required: boolean;
  /** The time left to answer, in seconds. */
  timeout_s: number;
  /** The number of the attempt, from 1. */
  attempt: number;
  /** The mistake in the last answer. */
  error?: string;
  /** For a permission: the requested action. */
  subject?: Subject;
  /** Whether something was cut. */
  truncated?: true;
}

/** The run waits for an answer. */
export interface RunQuestion {
  /** The major version. */
  v: "1";
  /** `msg_1`, `msg_2`, … in the order of emission, without a gap. */
  id: string;
  /** The time in UTC, with three fraction digits. */
  ts: string;
  /** The type of the frame. */
  type: "run.question";
  /** The id of the run. */
  run_id: string;
  /** The id of the message that caused the frame. */
  reply_to?: string;
  /** The content. */
  payload: Question;
}

/** The payload of run.artifact. */
export interface Artifact {
  /** `a_1`, `a_2`, … */
  artifact_id: string;
  /** The path, relative to the working directory if it is inside, otherwise absolute. */
  path: string;
  /** The change. */
  action: Action;
  /** Always `file`. */
  kind: string;
  /** The size in bytes. Null: unknown. */
  size_bytes: number | null;
  /** Whether something was cut. */
  truncated?: true;
}

/** A file changed. */
export interface RunArtifact {
  /** The major version. */
  v: "1";
  /** `msg_1`, `msg_2`, … in the order of emission, without a gap. */
  id: string;
  /** The time in UTC, with three fraction digits. */
  ts: string;
  /** The type of the frame. */
  type: "run.artifact";
  /** The id of the run. */
  run_id: string;
  /** The id of the message that caused the frame. */
  reply_to?: string;
  /** The content. */
  payload: Artifact;
}

export interface AgentExit {
  /** The exit code, unless a signal ended it. */
  code: number | null;
  /** The signal that ended it. */
  signal: number | null;
}

export interface RuleViolation {
  /** The file. */
  file: string;
  /** The line, from 1. */
  line: number | null;
  /** The rule's name. */
  rule: string;
  /** The instruction for correcting it. */
  text: string;
}

export interface MovedFile {
  /** The old path. */
  path: string;
  /** The new path. */
  to: string;
}

export type PhaseOutcome = "done" | "passed" | "failed" | "open";

export interface ReviewFinding {
  /** The file, relative to the project's folder. Null: it is about no file. */
  file: string | null;
  /** The line, from 1. Null: it is about no line. */
  line: number | null;
  /** The weight, in the reviewer's words. */
  severity: string;
  /** The fault, in the reviewer's words. */
  text: string;
}

export interface PhaseReport {
  /** The phase's id, such as `P1`. */
  id: string;
  /** The phase's title. */
  title: string;
  /** The state. */
  state: PhaseOutcome;
  /** The agent that worked on it last in this run. Null: none did. */
  agent: string | null;
  /** The number of attempts in this run. */
  attempts: number;
  /** The time that the phase took in this run, in milliseconds. */
  duration_ms: number;
  /** The cost of its sessions in this run, in US dollars. Null: unknown. */
  cost_usd: number | null;
  /** The files that changed. */
  files: ArtifactRef[];
  /** The id of the phase's commit. */
  commit: string | null;
  /** Where HEAD was, and where it is, if the agent moved it to another branch or off its commit. Absent: HEAD stayed. */
  head?: string;
  /** The manual checks that nobody confirmed. */
  unverified: string[];
  /** The agent that reviewed it last in this run. Null: none did. */
  reviewed_by: string | null;
  /** The findings of the review that are still open. */
  review: ReviewFinding[];
}

export interface WorkflowEnd {
  /** The workflow. */
  name: WorkflowKind;
  /** The file that the workflow writes or works on. Null: unknown. */
  target: string | null;
  /** Whether everything is done and checked. */
  complete: boolean;
  /** The number of tasks. Null: no file was checked. */
  tasks: number | null;
  /** The violations that a check found. */
  violations: RuleViolation[];
  /** The files that were moved out of the way. */
  kept: MovedFile[];
  /** The reports of the phases. */
  phases: PhaseReport[];
  /** The findings of the review that are still open, of all phases. */
  review: ReviewFinding[];
}

/** The payload of run.completed. */
export interface Completed {
  /** The final answer. */
  text: string;
  /** The message whose pieces contain the whole text. Null: `text` is whole. */
  message_id: string | null;
  /** The structured result. */
  structured_output: unknown | null;
  /** The reason why the model stopped. */
  stop_reason: StopReason;
  /** The permissions that were denied because nobody answered. */
  denied: UnansweredItems;
  /** The other questions that nobody answered. */
  unanswered: UnansweredItems;
  /** The agent's session. */
  session_id: string | null;
  /** The files that the run created, modified and deleted. */
  artifacts: ArtifactRef[];
  /** The usage of this run. */
  usage: Usage;
  /** The time since run.start, in milliseconds. */
  duration_ms: number;
  /** The metadata of run.start, as it was sent. */
  metadata: Record<string, unknown>;
  /** Whether the completion marker was in the agent's text. */
  completion_detected: boolean;
  /** The exit of the agent's process. Null: no process was started. */
  agent_exit: AgentExit | null;
  /** The number of turns of a conversation. Absent: the run is not a conversation. */
  turns?: number;
  /** The part of a workflow. Absent: the run is not a workflow. */
  workflow?: WorkflowEnd;
  /** Whether something was cut. */
  truncated?: true;
}

/** The end: the agent's result. */
export interface RunCompleted {
  /** The major version. */
  v: "1";
  /** `msg_1`, `msg_2`, … in the order of emission, without a gap. */
  id: string;
  /** The time in UTC, with three fraction digits. */
  ts: string;
  /** The type of the frame. */
  type: "run.completed";
  /** The id of the run. */
  run_id: string;
  /** The id of the message that caused the frame. */
  reply_to?: string;
  /** The content. */
  payload: Completed;
}

export type RefusalReason =
  | "exists"
  | "not_found"
  | "outside"
  | "invalid"
  | "too_large"
  | "locked"
  | "dirty"
  | "no_git"
  | "consent";

export type LimitField =
  | "allowed_tools"
  | "disallowed_tools"
  | "mcp_servers"
  | "permissions"
  | "max_turns"
  | "max_tool_calls"
  | "max_tokens"
  | "max_cost_usd"
  | "timeout_s"
  | "turn_timeout_s"
  | "start_timeout_s"
  | "idle_timeout_s"
  | "question_timeout_s"
  | "phase_timeout_s";

export interface Mismatch {
  /** The place in the result, as a JSON pointer. Empty: the whole result. */
  path: string;
  /** The rule that the value breaks, with the keyword. */
  text: string;
}

export interface FailureDetail {
  /** The reason why a workflow was refused. */
  reason?: RefusalReason;
  /** The field of run.start whose limit was reached. */
  limit?: LimitField;
  /** The value of that field, if it is a number. */
  value?: number;
  /** The provider's HTTP status. */
  http_status?: number;
  /** The time at which the agent or its provider goes on again, in UTC. */
  retry_at?: string;
  /** The supported major versions. */
  supported?: string[];
  /** The agent's own message. */
  agent_message?: string;
  /** The last lines of the agent's stderr. */
  stderr_tail?: string;
  /** The reasons why a result does not fit `output_schema`. */
  violations?: Mismatch[];
  /** The commands of a plan to which nobody can consent. */
  commands?: string;
  /** The phase's id, such as `P1`. */
  phase?: string;
  /** The number of the last attempt. */
  attempt?: number;
  /** The command that failed, if one did. */
  command?: string | null;
  /** The exit status of the command. Null: a signal or the time limit ended it, or it did not start. */
  exit_code?: number | null;
  /** Whether the time limit ended the command. */
  timed_out?: boolean;
  /** The end of the command's output, at most 8 KiB. */
  output_tail?: string;
}

/** The payload of run.failed. */
export interface Failed {
  /** The code. */
  code: FailureCode;
  /** One sentence that says what to do. */
  message: string;
  /** Whether a later attempt may succeed. */
  retryable: boolean;
  /** The known facts. */
  detail: FailureDetail | null;
  /** The agent's session. */
  session_id: string | null;
  /** The files that the run created, modified and deleted. */
  artifacts: ArtifactRef[];
  /** The usage of this run. */
  usage: Usage;
  /** The time since run.start, in milliseconds. */
  duration_ms: number;
  /** The metadata of run.start, as it was sent. */
  metadata: Record<string, unknown>;
  /** Whether the completion marker was in the agent's text. */
  completion_detected: boolean;
  /** The exit of the agent's process. Null: no process was started. */
  agent_exit: AgentExit | null;
  /** The number of turns of a conversation. Absent: the run is not a conversation. */
  turns?: number;
  /** The part of a workflow. Absent: the run is not a workflow. */
  workflow?: WorkflowEnd;
  /** Whether something was cut. */
  truncated?: true;
}

/** The end: a failure. */
export interface RunFailed {
  /** The major version. */
  v: "1";
  /** `msg_1`, `msg_2`, … in the order of emission, without a gap. */
  id: string;
  /** The time in UTC, with three fraction digits. */
  ts: string;
  /** The type of the frame. */
  type: "run.failed";
  /** The id of the run. */
  run_id: string;
  /** The id of the message that caused the frame. */
  reply_to?: string;
  /** The content. */
  payload: Failed;
}

export type Source = "orchestrator" | "signal" | "terminal";

/** The payload of run.cancelled. */
export interface Cancelled {
  /** The reason that the canceller stated. */
  reason: string | null;
  /** The source of the cancel. */
  source: Source;
  /** The agent's session. */
  session_id: string | null;
  /** The files that the run created, modified and deleted. */
  artifacts: ArtifactRef[];
  /** The usage of this run. */
  usage: Usage;
  /** The time since run.start, in milliseconds. */
  duration_ms: number;
  /** The metadata of run.start, as it was sent. */
  metadata: Record<string, unknown>;
  /** Whether the completion marker was in the agent's text. */
  completion_detected: boolean;
  /** The exit of the agent's process. Null: no process was started. */
  agent_exit: AgentExit | null;
  /** The number of turns of a conversation. Absent: the run is not a conversation. */
  turns?: number;
  /** The part of a workflow. Absent: the run is not a workflow. */
  workflow?: WorkflowEnd;
  /** Whether something was cut. */
  truncated?: true;
}

/** The end: somebody cancelled the run. */
export interface RunCancelled {
  /** The major version. */
  v: "1";
  /** `msg_1`, `msg_2`, … in the order of emission, without a gap. */
  id: string;
  /** The time in UTC, with three fraction digits. */
  ts: string;
  /** The type of the frame. */
  type: "run.cancelled";
  /** The id of the run. */
  run_id: string;
  /** The id of the message that caused the frame. */
  reply_to?: string;
  /** The content. */
  payload: Cancelled;
}

/** A frame from spektacular. */
export type Frame = RunStarted | RunProgress | RunQuestion | RunArtifact | RunCompleted | RunFailed | RunCancelled;

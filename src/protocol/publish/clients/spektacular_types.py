"""The spektacular protocol 1.2, from spektacular 0.1.0.

A later minor version may add frame types, kinds, fields and codes: ignore those that you do not know.
For Python 3.9 or later.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired
else:
    NotRequired = Optional

SystemPromptMode = Literal["append", "replace"]

Policy = Literal["ask", "allow", "deny"]

Category = Literal[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "fetch",
    "think",
    "agent",
    "mcp",
    "mode",
    "other",
]

SandboxMode = Literal["off", "read-only", "workspace"]

SandboxSecrets = Literal["hidden", "readable"]


class SandboxRequest(TypedDict):
    # The mode.
    mode: SandboxMode
    # Further paths that the agent may change, for the mode workspace.
    write: NotRequired[Union[list[str], None]]
    # Further paths that the agent may read.
    read: NotRequired[Union[list[str], None]]
    # Whether the agent can read the secrets in HOME. By default hidden.
    secrets: NotRequired[Union[SandboxSecrets, None]]


class McpServerToStart(TypedDict):
    # The server's name, as the agent sees it.
    name: str
    # The server's program.
    command: str
    # The program's arguments.
    args: NotRequired[Union[list[str], None]]
    # Variables to add to its environment.
    env: NotRequired[Union[dict[str, str], None]]
    # Whether the run waits for the server, and fails without it. By default true.
    required: NotRequired[Union[bool, None]]


McpTransport = Literal["http", "sse"]


class McpServerToReach(TypedDict):
    # The server's name, as the agent sees it.
    name: str
    # The server's URL.
    url: str
    # Headers to send with each request.
    headers: NotRequired[Union[dict[str, str], None]]
    # The protocol over HTTP. By default http.
    transport: NotRequired[Union[McpTransport, None]]
    # Whether the run waits for the server, and fails without it. By default true.
    required: NotRequired[Union[bool, None]]


OnQuestionTimeout = Literal["fail", "continue"]

Background = Literal["wait", "refuse"]

OnUnsupported = Literal["fail", "warn"]

OnRateLimit = Literal["fail", "wait"]

TakesOverAfter = Literal[
    "agent_not_found",
    "agent_start_failed",
    "auth_required",
    "quota_exceeded",
    "rate_limited",
    "provider_unavailable",
    "model_not_found",
    "context_exceeded",
    "refused",
    "agent_error",
    "agent_exited",
    "agent_protocol_error",
]


class FallbackRequest(TypedDict):
    # The name of a configured agent.
    agent: str
    # The model. By default the agent's own.
    model: NotRequired[Union[str, None]]
    # The failures after which it takes over.
    on: NotRequired[Union[list[TakesOverAfter], None]]


Level = Literal["minimal", "normal", "full"]


class ReviewRequest(TypedDict):
    # The name of a configured agent.
    agent: str
    # The model.
    model: NotRequired[Union[str, None]]


Workflow = TypedDict(
    "Workflow",
    {
        # The name of a specification.
        "name": NotRequired[Union[str, None]],
        # Whether a finished file is replaced.
        "force": NotRequired[Union[bool, None]],
        # Whether an earlier draft is continued.
        "continue": NotRequired[Union[bool, None]],
        # The words of the user about the draft that is continued, or about the plan.
        "words": NotRequired[Union[str, None]],
        # The agent's own command that begins the prompt.
        "skill": NotRequired[Union[str, None]],
        # The rules that the check ignores.
        "ignore": NotRequired[Union[list[str], None]],
        # The maximum number of attempts at a draft or a phase. Must be a whole number from 1 to 10.
        "attempts": NotRequired[Union[int, None]],
        # The agent that reviews the work before it counts. Null: nobody does.
        "review": NotRequired[Union[Union[bool, str, ReviewRequest], None]],
        # The maximum number of times that the findings of a review go back to the agent. Must be a whole number from 0 to 10.
        "review_rounds": NotRequired[Union[int, None]],
        # The maximum number of phases that pass in this run. Must be a whole number, 1 or more.
        "max_phases": NotRequired[Union[int, None]],
        # The limit of one phase with all its attempts and commands. Must be a number of seconds above 0.
        "phase_timeout_s": NotRequired[Union[float, None]],
        # Whether the user consents to the plan's commands in advance.
        "allow_verify": NotRequired[Union[bool, None]],
        # Whether a phase whose commands pass before any work counts as passed.
        "accept_done": NotRequired[Union[bool, None]],
        # The limit of each command. Must be a number of seconds above 0.
        "verify_timeout_s": NotRequired[Union[float, None]],
        # Whether each phase that passes becomes a commit.
        "commit": NotRequired[Union[bool, None]],
        # The message of each commit, in which `{plan}`, `{n}`, `{title}` and `{tasks}` stand for the phase.
        "commit_message": NotRequired[Union[str, None]],
        # Whether to commit even if the work tree has other changes.
        "allow_dirty": NotRequired[Union[bool, None]],
    },
)


class Start(TypedDict):
    """The payload of run.start."""

    # The task.
    prompt: str
    # The name of a configured agent.
    agent: NotRequired[Union[str, None]]
    # The model, by the agent's name for it.
    model: NotRequired[Union[str, None]]
    # The reasoning effort, by the agent's name for it.
    effort: NotRequired[Union[str, None]]
    # The agent's own mode, by the agent's name for it.
    mode: NotRequired[Union[str, None]]
    # A system prompt.
    system_prompt: NotRequired[Union[str, None]]
    # Whether the system prompt is added to the agent's own or replaces it. Default: "append".
    system_prompt_mode: NotRequired[Union[SystemPromptMode, None]]
    # The agent's working directory.
    cwd: NotRequired[Union[str, None]]
    # Further directories that the agent may use. Default: [].
    add_dirs: NotRequired[Union[list[str], None]]
    # The paths of images that belong to the prompt. Default: [].
    images: NotRequired[Union[list[str], None]]
    # The agent's session to resume.
    session_id: NotRequired[Union[str, None]]
    # Whether the run begins a new session from `session_id`, which stays as it is. Default: false.
    fork: NotRequired[Union[bool, None]]
    # Whether the run may ask questions. Default: true.
    interactive: NotRequired[Union[bool, None]]
    # The answers to the agent's requests for permission. Default: "ask".
    permissions: NotRequired[Union[Union[Policy, Literal["read-only"], dict[Union[Category, Literal["*"]], Policy]], None]]
    # The limits that the kernel sets to the agent and all that comes from it. Default: "off".
    sandbox: NotRequired[Union[Union[SandboxMode, SandboxRequest], None]]
    # Tools that the agent may use, by the agent's names for them.
    allowed_tools: NotRequired[Union[list[str], None]]
    # Tools that the agent may not use, by the agent's names for them.
    disallowed_tools: NotRequired[Union[list[str], None]]
    # MCP servers for the agent to start or to reach. Default: [].
    mcp_servers: NotRequired[Union[list[Union[McpServerToStart, McpServerToReach]], None]]
    # Whether the agent stays for further prompts. Default: false.
    conversation: NotRequired[Union[bool, None]]
    # Whether a conversation keeps checkpoints of the files, for `rewind`. Default: false.
    checkpoints: NotRequired[Union[bool, None]]
    # The limit of one turn of a conversation. Must be a number of seconds above 0.
    turn_timeout_s: NotRequired[Union[float, None]]
    # The longest wait for a further prompt of a conversation. Must be a number of seconds above 0.
    prompt_timeout_s: NotRequired[Union[float, None]]
    # The limit of the whole run. Must be a number of seconds above 0.
    timeout_s: NotRequired[Union[float, None]]
    # The limit until the agent's first line. Must be a number of seconds above 0.
    start_timeout_s: NotRequired[Union[float, None]]
    # The agent's longest silence; 0: no limit. Must be a number of seconds, 0 or more. Default: 600.
    idle_timeout_s: NotRequired[Union[float, None]]
    # The longest time for which a running tool stops the idle clock. Must be a number of seconds above 0. Default: 3600.
    tool_timeout_s: NotRequired[Union[float, None]]
    # The time limit for answering a question. Must be a number of seconds above 0. Default: 300.
    question_timeout_s: NotRequired[Union[float, None]]
    # The effect of a timeout on a required question without a default. Default: "fail".
    on_question_timeout: NotRequired[Union[OnQuestionTimeout, None]]
    # The treatment of work that the agent leaves running, or scheduled, when its turn ends. Default: "wait".
    background: NotRequired[Union[Background, None]]
    # The maximum number of calls of the model. Must be a whole number, 1 or more.
    max_turns: NotRequired[Union[int, None]]
    # The maximum number of calls of tools. Must be a whole number, 1 or more.
    max_tool_calls: NotRequired[Union[int, None]]
    # The maximum number of input and output tokens. Must be a whole number, 1 or more.
    max_tokens: NotRequired[Union[int, None]]
    # The maximum cost, in US dollars. Must be a number above 0.
    max_cost_usd: NotRequired[Union[float, None]]
    # The effect of a limit that neither the agent nor spektacular can keep. Default: "fail".
    on_unsupported: NotRequired[Union[OnUnsupported, None]]
    # The effect of a limit of the agent's provider. Default: "fail".
    on_rate_limit: NotRequired[Union[OnRateLimit, None]]
    # The longest wait for a provider's limit to end. Must be a number of seconds above 0. Default: 21600.
    max_wait_s: NotRequired[Union[float, None]]
    # The agents that take over, in this order, where the agent fails. Default: [].
    fallback: NotRequired[Union[list[Union[str, FallbackRequest]], None]]
    # The amount of progress that the run emits. Default: "normal".
    progress: NotRequired[Union[Level, None]]
    # The longest time without a frame before a heartbeat; 0: no heartbeats. Must be a number of seconds, 0 or more. Default: 30.
    heartbeat_s: NotRequired[Union[float, None]]
    # The largest frame in bytes, LF included. Must be a whole number from 16384 to 67108864. Default: 262144.
    max_frame_bytes: NotRequired[Union[int, None]]
    # Variables to add to the agent's environment. Default: {}.
    env: NotRequired[Union[dict[str, str], None]]
    # If present, the only variables that the agent inherits.
    env_allow: NotRequired[Union[list[str], None]]
    # Values to redact from everything that leaves the process. Default: [].
    secrets: NotRequired[Union[list[str], None]]
    # Arguments to append to the agent's command line. Default: [].
    agent_args: NotRequired[Union[list[str], None]]
    # A JSON Schema for a structured result.
    output_schema: NotRequired[Union[dict[str, Any], None]]
    # The string that sets completion_detected. Default: "<promise>COMPLETE</promise>".
    completion_marker: NotRequired[Union[str, None]]
    # Whether question markers in the agent's text become questions. Default: true.
    question_markers: NotRequired[Union[bool, None]]
    # Whether the agent may interpret commands in the prompt. Default: false.
    raw_prompt: NotRequired[Union[bool, None]]
    # Whether the run fails if a permission was denied because nobody answered. Default: false.
    fail_on_denied: NotRequired[Union[bool, None]]
    # An object that run.started and the terminal frame return.
    metadata: NotRequired[Union[dict[str, Any], None]]
    # The options of a workflow.
    workflow: NotRequired[Union[Workflow, None]]


class RunStart(TypedDict):
    """Starts the run."""

    # The major version.
    v: Literal["1"]
    # The id of the message, which `reply_to` returns.
    id: NotRequired[str]
    # The time of the message, for people.
    ts: NotRequired[str]
    # The type of the message.
    type: Literal["run.start"]
    # The id of the run. A run.start without one gets one.
    run_id: NotRequired[str]
    # The content.
    payload: Start


class Answer(TypedDict):
    # The question to answer.
    question_id: str
    # The answer.
    value: Any
    # Free text for the agent, to go with a denial.
    message: NotRequired[Union[str, None]]
    # With allow_once: the input to use for the tool.
    updated_input: NotRequired[Union[dict[str, Any], None]]


class DeclinedAnswer(TypedDict):
    # The question to answer.
    question_id: str
    # The question is declined.
    declined: Literal[True]
    # Free text for the agent, to go with a denial.
    message: NotRequired[Union[str, None]]


class AnswerFromEnv(TypedDict):
    # The name of a variable of this process.
    env: str


class AnswerFromFile(TypedDict):
    # A path, relative to this process's directory.
    file: str


class AnswerFrom(TypedDict):
    # The question to answer.
    question_id: str
    # The source of the answer.
    value_from: Union[AnswerFromEnv, AnswerFromFile]
    # Free text for the agent, to go with a denial.
    message: NotRequired[Union[str, None]]


class Prompt(TypedDict):
    # The prompt.
    prompt: str
    # `now`: the agent gets it while it works, if it can. `next`, the default: after the turn.
    when: NotRequired[Union[Literal["next", "now"], None]]
    # The paths of images that belong to the prompt.
    images: NotRequired[Union[list[str], None]]
    # Whether the agent may take the prompt as a command. The default is that of run.start.
    raw_prompt: NotRequired[Union[bool, None]]


class End(TypedDict):
    # No further prompt comes.
    end: Literal[True]


class Rewind(TypedDict):
    # The checkpoint.
    rewind: str


# The payload of run.input.
Input = Union[Answer, DeclinedAnswer, AnswerFrom, Prompt, End, Rewind]


class RunInput(TypedDict):
    """Answers a question, gives a further prompt, ends a conversation, or puts files back."""

    # The major version.
    v: Literal["1"]
    # The id of the message, which `reply_to` returns.
    id: NotRequired[str]
    # The time of the message, for people.
    ts: NotRequired[str]
    # The type of the message.
    type: Literal["run.input"]
    # The id of the run. A run.start without one gets one.
    run_id: NotRequired[str]
    # The content.
    payload: Input


CancelScope = Literal["run", "turn"]


class Cancel(TypedDict):
    """The payload of run.cancel."""

    # The reason.
    reason: NotRequired[Union[str, None]]
    # The part to cancel. By default the run.
    scope: NotRequired[Union[CancelScope, None]]


class RunCancel(TypedDict):
    """Cancels the run, or the running turn."""

    # The major version.
    v: Literal["1"]
    # The id of the message, which `reply_to` returns.
    id: NotRequired[str]
    # The time of the message, for people.
    ts: NotRequired[str]
    # The type of the message.
    type: Literal["run.cancel"]
    # The id of the run. A run.start without one gets one.
    run_id: NotRequired[str]
    # The content.
    payload: NotRequired[Cancel]


# A message to spektacular.
Message = Union[RunStart, RunInput, RunCancel]


class AgentName(TypedDict):
    # The agent's name, as in the request.
    name: str
    # The agent's name for people.
    display_name: str
    # Null, because the agent reports its version later, in the session frame.
    version: Union[str, None]


GitState = Literal["protected", "checked"]


class SandboxInForce(TypedDict):
    # The mode.
    mode: SandboxMode
    # The version of the kernel's interface (Landlock). Null: nothing is kept.
    abi: Union[int, None]
    # Whether the agent can signal no process outside the sandbox.
    signals: Union[bool, None]
    # Whether the agent can reach no Unix socket outside the sandbox.
    sockets: Union[bool, None]
    # The protection of git's hooks and settings, and of the configuration that spektacular trusts.
    git: Union[GitState, None]
    # Further paths that the agent may change.
    write: list[str]
    # Further paths that the agent may read.
    read: list[str]
    # Whether the agent can read the secrets in HOME.
    secrets: SandboxSecrets


class FallbackAgent(TypedDict):
    # The name of a configured agent.
    agent: str
    # The model, by the agent's name for it. Null: the agent's own default.
    model: Union[str, None]
    # The failures after which it takes over. Null: those of the account and of the agent's start, and limits of the provider for which the run does not wait.
    on: Union[list[TakesOverAfter], None]


class Config(TypedDict):
    # The name of a configured agent.
    agent: str
    # The model, by the agent's name for it.
    model: Union[str, None]
    # The reasoning effort, by the agent's name for it.
    effort: Union[str, None]
    # The agent's own mode, by the agent's name for it.
    mode: Union[str, None]
    # Whether the system prompt is added to the agent's own or replaces it.
    system_prompt_mode: SystemPromptMode
    # The agent's working directory.
    cwd: str
    # Further directories that the agent may use.
    add_dirs: list[str]
    # The paths of images that belong to the prompt.
    images: list[str]
    # The agent's session to resume.
    session_id: Union[str, None]
    # Whether the run begins a new session from `session_id`, which stays as it is.
    fork: bool
    # Whether the run may ask questions.
    interactive: bool
    # The answers to the agent's requests for permission.
    permissions: Union[Policy, Literal["read-only"], dict[Union[Category, Literal["*"]], Policy]]
    # The limits that the kernel sets to the agent and all that comes from it.
    sandbox: SandboxInForce
    # Tools that the agent may use, by the agent's names for them.
    allowed_tools: Union[list[str], None]
    # Tools that the agent may not use, by the agent's names for them.
    disallowed_tools: Union[list[str], None]
    # Whether the agent stays for further prompts.
    conversation: bool
    # Whether a conversation keeps checkpoints of the files, for `rewind`.
    checkpoints: bool
    # The limit of one turn of a conversation.
    turn_timeout_s: Union[float, None]
    # The longest wait for a further prompt of a conversation.
    prompt_timeout_s: Union[float, None]
    # The limit of the whole run.
    timeout_s: Union[float, None]
    # The limit until the agent's first line.
    start_timeout_s: Union[float, None]
    # The agent's longest silence; 0: no limit.
    idle_timeout_s: float
    # The longest time for which a running tool stops the idle clock.
    tool_timeout_s: float
    # The time limit for answering a question.
    question_timeout_s: float
    # The effect of a timeout on a required question without a default.
    on_question_timeout: OnQuestionTimeout
    # The treatment of work that the agent leaves running, or scheduled, when its turn ends.
    background: Background
    # The maximum number of calls of the model.
    max_turns: Union[int, None]
    # The maximum number of calls of tools.
    max_tool_calls: Union[int, None]
    # The maximum number of input and output tokens.
    max_tokens: Union[int, None]
    # The maximum cost, in US dollars.
    max_cost_usd: Union[float, None]
    # The effect of a limit that neither the agent nor spektacular can keep.
    on_unsupported: OnUnsupported
    # The effect of a limit of the agent's provider.
    on_rate_limit: OnRateLimit
    # The longest wait for a provider's limit to end.
    max_wait_s: float
    # The agents that take over, in this order, where the agent fails.
    fallback: list[FallbackAgent]
    # The amount of progress that the run emits.
    progress: Level
    # The longest time without a frame before a heartbeat; 0: no heartbeats.
    heartbeat_s: float
    # The largest frame in bytes, LF included.
    max_frame_bytes: int
    # If present, the only variables that the agent inherits.
    env_allow: Union[list[str], None]
    # Arguments to append to the agent's command line.
    agent_args: list[str]
    # The string that sets completion_detected.
    completion_marker: str
    # Whether question markers in the agent's text become questions.
    question_markers: bool
    # Whether the agent may interpret commands in the prompt.
    raw_prompt: bool
    # Whether the run fails if a permission was denied because nobody answered.
    fail_on_denied: bool


class ProtocolVersion(TypedDict):
    # The major version.
    v: str
    # The minor version.
    minor: int
    # The version of spektacular.
    spektacular: str


QuestionKind = Literal["confirm", "select", "text", "secret", "file_path"]


class Capabilities(TypedDict):
    # The kinds of question that the agent can ask.
    questions: list[QuestionKind]
    # Whether a session can be resumed.
    resume: Union[bool, None]
    # Whether text is reported in pieces.
    deltas: Union[bool, None]
    # Whether output_schema has an effect.
    structured_output: Union[bool, None]
    # Whether tokens are counted.
    usage: Union[bool, None]
    # Whether the agent takes further prompts.
    conversation: Union[bool, None]
    # Whether the agent takes a prompt while it works.
    steer: Union[bool, None]
    # Whether a permission can be granted with another input of the tool.
    updated_input: Union[bool, None]
    # Whether `rewind` puts files back. Absent: run.start does not set `checkpoints`.
    rewind: NotRequired[bool]


WorkflowKind = Literal["spec", "plan", "implement"]


class Reviewer(TypedDict):
    # The name of a configured agent. Null: the agent of the run.
    agent: Union[str, None]
    # The model, by the agent's name for it. Null: the run's, or another agent's own default.
    model: Union[str, None]


WorkflowOptions = TypedDict(
    "WorkflowOptions",
    {
        # The name of a specification.
        "name": NotRequired[Union[str, None]],
        # Whether a finished file is replaced.
        "force": NotRequired[bool],
        # Whether an earlier draft is continued.
        "continue": NotRequired[bool],
        # The agent's own command that begins the prompt.
        "skill": NotRequired[Union[str, None]],
        # The rules that the check ignores.
        "ignore": NotRequired[list[str]],
        # The maximum number of attempts at a draft or a phase.
        "attempts": NotRequired[int],
        # The agent that reviews the work before it counts. Null: nobody does.
        "review": NotRequired[Union[Reviewer, None]],
        # The maximum number of times that the findings of a review go back to the agent.
        "review_rounds": NotRequired[int],
        # The maximum number of phases that pass in this run.
        "max_phases": NotRequired[Union[int, None]],
        # The limit of one phase with all its attempts and commands.
        "phase_timeout_s": NotRequired[Union[float, None]],
        # Whether the user consents to the plan's commands in advance.
        "allow_verify": NotRequired[bool],
        # Whether a phase whose commands pass before any work counts as passed.
        "accept_done": NotRequired[bool],
        # The limit of each command.
        "verify_timeout_s": NotRequired[float],
        # Whether each phase that passes becomes a commit.
        "commit": NotRequired[bool],
        # The message of each commit, in which `{plan}`, `{n}`, `{title}` and `{tasks}` stand for the phase.
        "commit_message": NotRequired[Union[str, None]],
        # Whether to commit even if the work tree has other changes.
        "allow_dirty": NotRequired[bool],
    },
)


class WorkflowStarted(TypedDict):
    # The workflow.
    name: WorkflowKind
    # The project's folder, absolute.
    project: str
    # The file that the workflow writes or works on.
    target: Union[str, None]
    # The fields, with defaults filled in.
    options: WorkflowOptions


class Started(TypedDict):
    """The payload of run.started."""

    # The agent.
    agent: AgentName
    # The settings of the run, defaults included.
    config: Config
    # The version of the protocol.
    protocol: ProtocolVersion
    # The capabilities of the driver.
    capabilities: Capabilities
    # The metadata of run.start, as it was sent.
    metadata: dict[str, Any]
    # The part of a workflow. Absent: the run is not a workflow.
    workflow: NotRequired[WorkflowStarted]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class RunStarted(TypedDict):
    """The run began."""

    # The major version.
    v: Literal["1"]
    # `msg_1`, `msg_2`, … in the order of emission, without a gap.
    id: str
    # The time in UTC, with three fraction digits.
    ts: str
    # The type of the frame.
    type: Literal["run.started"]
    # The id of the run.
    run_id: str
    # The id of the message that caused the frame.
    reply_to: NotRequired[str]
    # The content.
    payload: Started


Status = Literal[
    "starting",
    "running",
    "waiting_for_input",
    "retrying",
    "cancelling",
    "waiting_for_prompt",
    "waiting_for_limit",
    "waiting_for_agent",
]


class ProgressStatus(TypedDict):
    """The state of the run. From level minimal."""

    # The kind of the progress.
    kind: Literal["status"]
    # A line for people.
    text: str
    # The state.
    status: Status
    # For `waiting_for_limit`: the time at which the run goes on, in UTC.
    until: NotRequired[str]
    # For `starting`: the agent that takes over.
    agent: NotRequired[str]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


McpState = Literal["pending", "ready", "failed"]


class McpServerState(TypedDict):
    # The server's name.
    name: str
    # Whether it runs.
    state: McpState


class ProgressSession(TypedDict):
    """Facts about the agent's session, as soon as they are known. From level minimal."""

    # The kind of the progress.
    kind: Literal["session"]
    # A line for people.
    text: str
    # The agent's session. Null: unknown.
    session_id: Union[str, None]
    # The agent's version. Null: unknown.
    agent_version: Union[str, None]
    # The model. Null: unknown.
    model: Union[str, None]
    # The capabilities of the driver, as far as they are known now.
    capabilities: Union[Capabilities, None]
    # The MCP servers of the run, and those that the agent reports besides.
    mcp_servers: list[McpServerState]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class AgentCommand(TypedDict):
    # The name, without the `/`.
    name: str
    # The agent's own description. Null: it gives none.
    description: Union[str, None]
    # The input that follows the name. Null: the agent does not say.
    hint: Union[str, None]


class ProgressCommands(TypedDict):
    """The agent's own commands and skills, whenever it lists them in a conversation. From level full."""

    # The kind of the progress.
    kind: Literal["commands"]
    # A line for people.
    text: str
    # All of them.
    commands: list[AgentCommand]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


WarningCode = Union[Literal[
    "unknown_type",
    "unknown_run",
    "unknown_question",
    "duplicate_start",
    "unknown_field",
    "malformed_message",
    "invalid_answer",
    "unsupported_option",
    "short_secret",
    "agent_output_unparsed",
    "agent_retrying",
    "artifacts_incomplete",
    "empty_result",
    "leaked_process",
    "unguarded",
    "plan_changed",
    "spec_changed",
    "spec_violations",
    "unverified",
    "unexpected_change",
    "untrusted_prompt",
    "not_committed",
    "permission_too_long",
    "prompt_refused",
    "output_incomplete",
    "mcp_unavailable",
    "sandbox_partial",
    "protected_changed",
    "background_stopped",
    "agent_replaced",
    "review_findings",
    "unreviewed",
    "name_taken",
    "draft_rejected",
    "checkpoint_missing",
    "rewind_refused",
], str]


class ProgressWarning(TypedDict):
    """A warning. From level minimal."""

    # The kind of the progress.
    kind: Literal["warning"]
    # A line for people.
    text: str
    # The code.
    code: WarningCode
    # For `agent_retrying`: the time at which the agent or its provider goes on again, in UTC.
    retry_at: NotRequired[str]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


Resolution = Literal[
    "answered",
    "declined",
    "timeout",
    "input_closed",
    "headless",
    "policy",
    "withdrawn",
]


class Place(TypedDict):
    # The path as the agent reports it. In a frame, it is relative to the working directory if it is inside, otherwise absolute.
    path: str
    # The line number, from 1.
    line: NotRequired[int]


class Subject(TypedDict):
    # The kind of tool.
    category: Category
    # The title. A frame shows its first line.
    title: str
    # The files that the action concerns.
    locations: list[Place]
    # The exact action to allow, such as the command or the diff.
    detail: str
    # The tool call that needs the permission. Null: no frame shows the call.
    call_id: Union[str, None]


class ProgressQuestionResolved(TypedDict):
    """A question is resolved. From level minimal."""

    # The kind of the progress.
    kind: Literal["question_resolved"]
    # A line for people.
    text: str
    # The question's id.
    question_id: str
    # The reason.
    resolution: Resolution
    # Whether the default was used.
    used_default: bool
    # The permission that was requested. Absent: the question is none.
    subject: NotRequired[Subject]
    # The value that was taken. Null: none was, or it is a secret. Absent: the level of progress is minimal, and the question is no permission.
    value: NotRequired[Union[Union[bool, str, list[str]], None]]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


WaitingOn = Literal["agent", "input", "prompt"]


class ProgressHeartbeat(TypedDict):
    """Nothing else happened for some time. From level minimal."""

    # The kind of the progress.
    kind: Literal["heartbeat"]
    # A line for people.
    text: str
    # The time since the last sign of the side that the run waits for, in seconds.
    idle_s: float
    # The side that the run waits for.
    waiting_on: WaitingOn
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class ProgressText(TypedDict):
    """A message of the agent, or a piece of one. From level normal."""

    # The kind of the progress.
    kind: Literal["text"]
    # A line for people.
    text: str
    # The message.
    message_id: str
    # Whether this is the last piece.
    done: bool
    # Whether the message is taken back.
    withdrawn: NotRequired[Literal[True]]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class ProgressReasoning(TypedDict):
    """A thought of the model, or a piece of one. From level full."""

    # The kind of the progress.
    kind: Literal["reasoning"]
    # A line for people.
    text: str
    # The thought.
    message_id: str
    # Whether this is the last piece.
    done: bool
    # Whether the thought is taken back.
    withdrawn: NotRequired[Literal[True]]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


ToolState = Literal["started", "completed", "failed", "denied", "cancelled"]


class FileEdit(TypedDict):
    # The path, relative to the working directory if it is inside, otherwise absolute.
    path: str
    # The old lines, and those around them.
    old: str
    # The new lines, and those around them.
    new: str


class ProgressTool(TypedDict):
    """A tool call. From level normal."""

    # The kind of the progress.
    kind: Literal["tool"]
    # A line for people.
    text: str
    # The call.
    call_id: str
    # The tool, as the agent knows it. Null: the call is spektacular's own.
    name: Union[str, None]
    # The category of the tool.
    category: Category
    # The state of the call.
    state: ToolState
    # The files that the call concerns.
    locations: list[Place]
    # The time that the call took, in milliseconds. Absent: it has not ended.
    duration_ms: NotRequired[int]
    # The exit code of a command that ended. Null: unknown.
    exit_code: NotRequired[Union[int, None]]
    # Whether the output of a failed tool says that access was denied, in a run with a sandbox.
    sandbox_suspected: NotRequired[Literal[True]]
    # For a command of a workflow: the phase that it verifies.
    phase: NotRequired[str]
    # The input of the call, an object. From level full.
    input: NotRequired[Any]
    # The output of the call. From level full.
    output: NotRequired[str]
    # The changes that an edit made. From level full.
    diff: NotRequired[list[FileEdit]]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


PlanStatus = Literal["pending", "in_progress", "completed"]


class PlanEntry(TypedDict):
    # The text of the entry.
    text: str
    # The state of the entry.
    status: PlanStatus


class ProgressPlan(TypedDict):
    """The agent's plan. From level normal."""

    # The kind of the progress.
    kind: Literal["plan"]
    # A line for people.
    text: str
    # The entries in order.
    entries: list[PlanEntry]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class ProgressTodo(TypedDict):
    """The agent's own list in a workflow, where `plan` shows the workflow's steps. From level full."""

    # The kind of the progress.
    kind: Literal["todo"]
    # A line for people.
    text: str
    # The entries in order.
    entries: list[PlanEntry]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


PhaseState = Literal["started", "verifying", "reviewing", "failed", "passed", "reopened"]


class ProgressPhase(TypedDict):
    """The progress of a phase of a workflow. From level minimal."""

    # The kind of the progress.
    kind: Literal["phase"]
    # A line for people.
    text: str
    # The phase's id, such as `P1`.
    phase: str
    # The phase's title.
    title: str
    # The number of the phase, from 1.
    number: int
    # The number of phases.
    of: int
    # The number of the attempt, from 1.
    attempt: int
    # The state of the phase.
    state: PhaseState
    # The agent that works on it.
    agent: str
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class Usage(TypedDict):
    # Input tokens, including cached ones.
    input_tokens: Union[int, None]
    # The tokens that the model wrote.
    output_tokens: Union[int, None]
    # The part of the input that came from a cache.
    cached_input_tokens: Union[int, None]
    # The cost, in US dollars.
    cost_usd: Union[float, None]
    # The tokens of the model's last call, with its answer, which fill its context.
    context_tokens: Union[int, None]
    # The size of the model's context, in tokens.
    context_window: Union[int, None]


class ProgressUsage(TypedDict):
    """The usage so far. From level normal."""

    # The kind of the progress.
    kind: Literal["usage"]
    # A line for people.
    text: str
    # The usage.
    usage: Usage
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


PromptState = Literal["queued", "sent", "dropped"]


class ProgressPrompt(TypedDict):
    """The state of a further prompt. From level minimal."""

    # The kind of the progress.
    kind: Literal["prompt"]
    # A line for people.
    text: str
    # The prompt.
    prompt_id: str
    # The state.
    state: PromptState
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


CheckpointState = Literal["taken", "complete", "restored"]

Action = Literal["created", "modified", "deleted"]


class ArtifactRef(TypedDict):
    # The path, as in run.artifact.
    path: str
    # The change.
    action: Action


class ProgressCheckpoint(TypedDict):
    """A checkpoint of the files, in a conversation with `checkpoints`. From level minimal."""

    # The kind of the progress.
    kind: Literal["checkpoint"]
    # A line for people.
    text: str
    # The checkpoint.
    checkpoint_id: str
    # The state.
    state: CheckpointState
    # For `restored`: the checkpoint before the rewind.
    undo: NotRequired[str]
    # For `restored`: the files that were put back.
    files: list[ArtifactRef]
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


TurnOrigin = Literal["prompt", "agent"]

TurnOutcome = Literal["completed", "failed", "cancelled"]

StopReason = Literal["end_turn", "max_tokens", "refusal", "other"]

FailureCode = Union[Literal[
    "agent_error",
    "agent_exited",
    "agent_protocol_error",
    "session_not_found",
    "session_busy",
    "model_not_found",
    "context_exceeded",
    "limit_reached",
    "quota_exceeded",
    "refused",
    "rate_limited",
    "provider_unavailable",
    "result_invalid",
    "verification_failed",
    "no_progress",
    "blocked",
    "commit_failed",
    "usage",
    "invalid_config",
    "invalid_request",
    "unsupported_version",
    "invalid_message",
    "no_start",
    "agent_not_found",
    "agent_start_failed",
    "auth_required",
    "timeout",
    "idle_timeout",
    "start_timeout",
    "question_timeout",
    "input_closed",
    "question_declined",
    "denied",
    "internal_error",
    "resource_exhausted",
], str]


class TurnFailure(TypedDict):
    # The code.
    code: FailureCode
    # One sentence that says what to do.
    message: str
    # Whether a later attempt may succeed.
    retryable: bool


class UnansweredItem(TypedDict):
    # The tool's category for a permission, or the question's kind.
    category: str
    # The subject, in one line.
    text: str


class UnansweredItems(TypedDict):
    # The number of unanswered questions.
    count: int
    # The first 20.
    first: list[UnansweredItem]


class ProgressTurn(TypedDict):
    """The end of a turn of a conversation. From level minimal."""

    # The kind of the progress.
    kind: Literal["turn"]
    # A line for people.
    text: str
    # The number of the turn, from 1.
    turn: int
    # The agent of the turn.
    agent: str
    # The cause of the turn: a prompt, or the agent itself.
    origin: TurnOrigin
    # The further prompt that the turn answers. Null: that of run.start, or none.
    prompt_id: Union[str, None]
    # The outcome.
    outcome: TurnOutcome
    # The final answer, as `text` of run.completed.
    final_text: Union[str, None]
    # As in run.completed.
    message_id: Union[str, None]
    # As in run.completed.
    stop_reason: Union[StopReason, None]
    # As in run.completed.
    structured_output: Union[Any, None]
    # Whether the completion marker was in the agent's text.
    completion_detected: bool
    # The usage of this turn.
    usage: Usage
    # The failure of a turn that failed.
    failure: Union[TurnFailure, None]
    # As in run.completed.
    denied: UnansweredItems
    # As in run.completed.
    unanswered: UnansweredItems
    # For work of a sub-agent: the tool call that started the sub-agent.
    parent_call_id: NotRequired[str]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


# The payload of run.progress.
Progress = Union[
    ProgressStatus,
    ProgressSession,
    ProgressCommands,
    ProgressWarning,
    ProgressQuestionResolved,
    ProgressHeartbeat,
    ProgressText,
    ProgressReasoning,
    ProgressTool,
    ProgressPlan,
    ProgressTodo,
    ProgressPhase,
    ProgressUsage,
    ProgressPrompt,
    ProgressCheckpoint,
    ProgressTurn,
]


class RunProgress(TypedDict):
    """Something happened. The `kind` says what."""

    # The major version.
    v: Literal["1"]
    # `msg_1`, `msg_2`, … in the order of emission, without a gap.
    id: str
    # The time in UTC, with three fraction digits.
    ts: str
    # The type of the frame.
    type: Literal["run.progress"]
    # The id of the run.
    run_id: str
    # The id of the message that caused the frame.
    reply_to: NotRequired[str]
    # The content.
    payload: Progress


Purpose = Literal["permission", "clarification", "input"]


class Choice(TypedDict):
    # The value that an answer names, unique in its question.
    value: str
    # The text that a person reads, unique in its question.
    label: str
    # A longer description.
    description: NotRequired[str]


PathType = Literal["file", "directory"]


class Validation(TypedDict):
    # The least length of the answer, in characters.
    min_length: NotRequired[int]
    # The greatest length of the answer, in characters.
    max_length: NotRequired[int]
    # A regular expression that the answer must match.
    pattern: NotRequired[str]
    # False if the pattern is too large or its dialect is not supported, otherwise absent.
    pattern_checked: NotRequired[bool]
    # The least number.
    min: NotRequired[float]
    # The greatest number.
    max: NotRequired[float]
    # Whether the number must be whole.
    integer: NotRequired[bool]
    # The least number of options to choose.
    min_selected: NotRequired[int]
    # The greatest number of options to choose.
    max_selected: NotRequired[int]
    # Whether the path must exist.
    must_exist: NotRequired[bool]
    # The kind of file that the path must name.
    path_type: NotRequired[PathType]


class Question(TypedDict):
    """The payload of run.question."""

    # The question's id.
    question_id: str
    # The id of the group of questions that the agent asked together.
    group_id: str
    # The number of questions in the group.
    group_size: int
    # The purpose of the question.
    purpose: Purpose
    # The kind of the answer.
    kind: QuestionKind
    # A short title.
    header: str
    # The question.
    text: str
    # The options. Values and labels are unique.
    options: NotRequired[list[Choice]]
    # Whether several may be chosen.
    multiple: NotRequired[bool]
    # Whether free text is accepted too.
    allow_other: NotRequired[bool]
    # The answer that is used if nobody answers.
    default: NotRequired[Union[Union[bool, str, list[str]], None]]
    # The conditions for an answer.
    validation: Validation
    # Whether an answer is required.
    required: bool
    # The time left to answer, in seconds.
    timeout_s: float
    # The number of the attempt, from 1.
    attempt: int
    # The mistake in the last answer.
    error: NotRequired[str]
    # For a permission: the requested action.
    subject: NotRequired[Subject]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class RunQuestion(TypedDict):
    """The run waits for an answer."""

    # The major version.
    v: Literal["1"]
    # `msg_1`, `msg_2`, … in the order of emission, without a gap.
    id: str
    # The time in UTC, with three fraction digits.
    ts: str
    # The type of the frame.
    type: Literal["run.question"]
    # The id of the run.
    run_id: str
    # The id of the message that caused the frame.
    reply_to: NotRequired[str]
    # The content.
    payload: Question


class Artifact(TypedDict):
    """The payload of run.artifact."""

    # `a_1`, `a_2`, …
    artifact_id: str
    # The path, relative to the working directory if it is inside, otherwise absolute.
    path: str
    # The change.
    action: Action
    # Always `file`.
    kind: str
    # The size in bytes. Null: unknown.
    size_bytes: Union[int, None]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class RunArtifact(TypedDict):
    """A file changed."""

    # The major version.
    v: Literal["1"]
    # `msg_1`, `msg_2`, … in the order of emission, without a gap.
    id: str
    # The time in UTC, with three fraction digits.
    ts: str
    # The type of the frame.
    type: Literal["run.artifact"]
    # The id of the run.
    run_id: str
    # The id of the message that caused the frame.
    reply_to: NotRequired[str]
    # The content.
    payload: Artifact


class AgentExit(TypedDict):
    # The exit code, unless a signal ended it.
    code: Union[int, None]
    # The signal that ended it.
    signal: Union[int, None]


class RuleViolation(TypedDict):
    # The file.
    file: str
    # The line, from 1.
    line: Union[int, None]
    # The rule's name.
    rule: str
    # The instruction for correcting it.
    text: str


class MovedFile(TypedDict):
    # The old path.
    path: str
    # The new path.
    to: str


PhaseOutcome = Literal["done", "passed", "failed", "open"]


class ReviewFinding(TypedDict):
    # The file, relative to the project's folder. Null: it is about no file.
    file: Union[str, None]
    # The line, from 1. Null: it is about no line.
    line: Union[int, None]
    # The weight, in the reviewer's words.
    severity: str
    # The fault, in the reviewer's words.
    text: str


class PhaseReport(TypedDict):
    # The phase's id, such as `P1`.
    id: str
    # The phase's title.
    title: str
    # The state.
    state: PhaseOutcome
    # The agent that worked on it last in this run. Null: none did.
    agent: Union[str, None]
    # The number of attempts in this run.
    attempts: int
    # The time that the phase took in this run, in milliseconds.
    duration_ms: int
    # The cost of its sessions in this run, in US dollars. Null: unknown.
    cost_usd: Union[float, None]
    # The files that changed.
    files: list[ArtifactRef]
    # The id of the phase's commit.
    commit: Union[str, None]
    # Where HEAD was, and where it is, if the agent moved it to another branch or off its commit. Absent: HEAD stayed.
    head: NotRequired[str]
    # The manual checks that nobody confirmed.
    unverified: list[str]
    # The agent that reviewed it last in this run. Null: none did.
    reviewed_by: Union[str, None]
    # The findings of the review that are still open.
    review: list[ReviewFinding]


class WorkflowEnd(TypedDict):
    # The workflow.
    name: WorkflowKind
    # The file that the workflow writes or works on. Null: unknown.
    target: Union[str, None]
    # Whether everything is done and checked.
    complete: bool
    # The number of tasks. Null: no file was checked.
    tasks: Union[int, None]
    # The violations that a check found.
    violations: list[RuleViolation]
    # The files that were moved out of the way.
    kept: list[MovedFile]
    # The reports of the phases.
    phases: list[PhaseReport]
    # The findings of the review that are still open, of all phases.
    review: list[ReviewFinding]


class Completed(TypedDict):
    """The payload of run.completed."""

    # The final answer.
    text: str
    # The message whose pieces contain the whole text. Null: `text` is whole.
    message_id: Union[str, None]
    # The structured result.
    structured_output: Union[Any, None]
    # The reason why the model stopped.
    stop_reason: StopReason
    # The permissions that were denied because nobody answered.
    denied: UnansweredItems
    # The other questions that nobody answered.
    unanswered: UnansweredItems
    # The agent's session.
    session_id: Union[str, None]
    # The files that the run created, modified and deleted.
    artifacts: list[ArtifactRef]
    # The usage of this run.
    usage: Usage
    # The time since run.start, in milliseconds.
    duration_ms: int
    # The metadata of run.start, as it was sent.
    metadata: dict[str, Any]
    # Whether the completion marker was in the agent's text.
    completion_detected: bool
    # The exit of the agent's process. Null: no process was started.
    agent_exit: Union[AgentExit, None]
    # The number of turns of a conversation. Absent: the run is not a conversation.
    turns: NotRequired[int]
    # The part of a workflow. Absent: the run is not a workflow.
    workflow: NotRequired[WorkflowEnd]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class RunCompleted(TypedDict):
    """The end: the agent's result."""

    # The major version.
    v: Literal["1"]
    # `msg_1`, `msg_2`, … in the order of emission, without a gap.
    id: str
    # The time in UTC, with three fraction digits.
    ts: str
    # The type of the frame.
    type: Literal["run.completed"]
    # The id of the run.
    run_id: str
    # The id of the message that caused the frame.
    reply_to: NotRequired[str]
    # The content.
    payload: Completed


RefusalReason = Literal[
    "exists",
    "not_found",
    "outside",
    "invalid",
    "too_large",
    "locked",
    "dirty",
    "no_git",
    "consent",
]

LimitField = Literal[
    "allowed_tools",
    "disallowed_tools",
    "mcp_servers",
    "permissions",
    "max_turns",
    "max_tool_calls",
    "max_tokens",
    "max_cost_usd",
    "timeout_s",
    "turn_timeout_s",
    "start_timeout_s",
    "idle_timeout_s",
    "question_timeout_s",
    "phase_timeout_s",
]


class Mismatch(TypedDict):
    # The place in the result, as a JSON pointer. Empty: the whole result.
    path: str
    # The rule that the value breaks, with the keyword.
    text: str


class FailureDetail(TypedDict):
    # The reason why a workflow was refused.
    reason: NotRequired[RefusalReason]
    # The field of run.start whose limit was reached.
    limit: NotRequired[LimitField]
    # The value of that field, if it is a number.
    value: NotRequired[float]
    # The provider's HTTP status.
    http_status: NotRequired[int]
    # The time at which the agent or its provider goes on again, in UTC.
    retry_at: NotRequired[str]
    # The supported major versions.
    supported: NotRequired[list[str]]
    # The agent's own message.
    agent_message: NotRequired[str]
    # The last lines of the agent's stderr.
    stderr_tail: NotRequired[str]
    # The reasons why a result does not fit `output_schema`.
    violations: NotRequired[list[Mismatch]]
    # The commands of a plan to which nobody can consent.
    commands: NotRequired[str]
    # The phase's id, such as `P1`.
    phase: NotRequired[str]
    # The number of the last attempt.
    attempt: NotRequired[int]
    # The command that failed, if one did.
    command: NotRequired[Union[str, None]]
    # The exit status of the command. Null: a signal or the time limit ended it, or it did not start.
    exit_code: NotRequired[Union[int, None]]
    # Whether the time limit ended the command.
    timed_out: NotRequired[bool]
    # The end of the command's output, at most 8 KiB.
    output_tail: NotRequired[str]


class Failed(TypedDict):
    """The payload of run.failed."""

    # The code.
    code: FailureCode
    # One sentence that says what to do.
    message: str
    # Whether a later attempt may succeed.
    retryable: bool
    # The known facts.
    detail: Union[FailureDetail, None]
    # The agent's session.
    session_id: Union[str, None]
    # The files that the run created, modified and deleted.
    artifacts: list[ArtifactRef]
    # The usage of this run.
    usage: Usage
    # The time since run.start, in milliseconds.
    duration_ms: int
    # The metadata of run.start, as it was sent.
    metadata: dict[str, Any]
    # Whether the completion marker was in the agent's text.
    completion_detected: bool
    # The exit of the agent's process. Null: no process was started.
    agent_exit: Union[AgentExit, None]
    # The number of turns of a conversation. Absent: the run is not a conversation.
    turns: NotRequired[int]
    # The part of a workflow. Absent: the run is not a workflow.
    workflow: NotRequired[WorkflowEnd]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class RunFailed(TypedDict):
    """The end: a failure."""

    # The major version.
    v: Literal["1"]
    # `msg_1`, `msg_2`, … in the order of emission, without a gap.
    id: str
    # The time in UTC, with three fraction digits.
    ts: str
    # The type of the frame.
    type: Literal["run.failed"]
    # The id of the run.
    run_id: str
    # The id of the message that caused the frame.
    reply_to: NotRequired[str]
    # The content.
    payload: Failed


Source = Literal["orchestrator", "signal", "terminal"]


class Cancelled(TypedDict):
    """The payload of run.cancelled."""

    # The reason that the canceller stated.
    reason: Union[str, None]
    # The source of the cancel.
    source: Source
    # The agent's session.
    session_id: Union[str, None]
    # The files that the run created, modified and deleted.
    artifacts: list[ArtifactRef]
    # The usage of this run.
    usage: Usage
    # The time since run.start, in milliseconds.
    duration_ms: int
    # The metadata of run.start, as it was sent.
    metadata: dict[str, Any]
    # Whether the completion marker was in the agent's text.
    completion_detected: bool
    # The exit of the agent's process. Null: no process was started.
    agent_exit: Union[AgentExit, None]
    # The number of turns of a conversation. Absent: the run is not a conversation.
    turns: NotRequired[int]
    # The part of a workflow. Absent: the run is not a workflow.
    workflow: NotRequired[WorkflowEnd]
    # Whether something was cut.
    truncated: NotRequired[Literal[True]]


class RunCancelled(TypedDict):
    """The end: somebody cancelled the run."""

    # The major version.
    v: Literal["1"]
    # `msg_1`, `msg_2`, … in the order of emission, without a gap.
    id: str
    # The time in UTC, with three fraction digits.
    ts: str
    # The type of the frame.
    type: Literal["run.cancelled"]
    # The id of the run.
    run_id: str
    # The id of the message that caused the frame.
    reply_to: NotRequired[str]
    # The content.
    payload: Cancelled


# A frame from spektacular.
Frame = Union[
    RunStarted,
    RunProgress,
    RunQuestion,
    RunArtifact,
    RunCompleted,
    RunFailed,
    RunCancelled,
]

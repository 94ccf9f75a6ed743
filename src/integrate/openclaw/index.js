// Connects OpenClaw with spektacular in two ways: the tool spektacular_run hands a task to a coding agent, and the
// backend "spektacular" makes an agent the model of a session. Both start `spektacular adhoc --output json` and speak
// the protocol that `spektacular protocol` explains. Nothing here may print to stdout: OpenClaw's own output goes there.
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  callGatewayTool,
  requestDeferredPluginToolApproval,
  runAgentHarnessGatewayQuestion,
} from "openclaw/plugin-sdk/agent-harness-runtime";
import { resolveSecretRefValues } from "openclaw/plugin-sdk/secret-ref-runtime";

const ID = "spektacular";
const TOOL = "spektacular_run";
const ARGS = ["adhoc", "--output", "json", "--on-eof", "cancel"];
const FRAME_BYTES = 256 << 10;
// run.completed may have 16 times the length of another frame.
const LINE_BYTES = 16 * FRAME_BYTES;
// OpenClaw cuts the title of an approval, which begins with "spektacular native tool: ", after 80 characters.
const NAME_LENGTH = 55;
const TERM_MS = 4_000;
const KILL_MS = 12_000;
const ENDS = ["run.completed", "run.failed", "run.cancelled"];

// The run

/** The frames on a program's stdout. Skips what is no frame: a line of other text, or one that is too long. */
async function* framesOf(stdout) {
  let parts = [];
  let bytes = 0;
  for await (const chunk of stdout) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const frame = bytes + end - from <= LINE_BYTES && parsed(Buffer.concat([...parts, chunk.subarray(from, end)]));
      if (frame) yield frame;
      [parts, bytes, from] = [[], 0, end + 1];
    }
    bytes += chunk.length - from;
    if (bytes <= LINE_BYTES) parts.push(chunk.subarray(from));
    else parts = [];
  }
}

function parsed(line) {
  try {
    const frame = JSON.parse(line.toString("utf8"));
    return frame?.v === "1" && typeof frame.type === "string" && frame.payload && frame;
  } catch {
    return undefined;
  }
}

/**
 * Starts a run, yields its frames except questions, and ends with one of ENDS. `ask(question, signal)` returns the payload of run.input,
 * or nothing for a question without an answer. It runs beside the frames, because a question may be withdrawn or time
 * out while a person thinks: then its signal aborts.
 */
async function* framesOfRun({ command, cwd, env, start, signal, ask, logger }) {
  // Without OpenClaw's variables, such as its token, because the agent must not act for the gateway.
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("OPENCLAW_")));
  const child = spawn(command, ARGS, { cwd, env: own, stdio: "pipe" });
  const exit = new Promise((done) => {
    child.once("error", (error) =>
      done(
        existsSync(cwd)
          ? `${command} cannot be started in ${cwd} (${error.code}). Set plugins.entries.${ID}.config.command to the full path of spektacular.`
          : `The workspace ${cwd} does not exist.`,
      ),
    );
    child.once("close", (code, by) =>
      done(`${command} ended without a result (${by ?? `exit code ${code}`}). ${said.trim()}`.trim()),
    );
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (said = (said + text).slice(-2_000)));
  child.stdin.on("error", () => {}); // A program that no longer reads shows its end on stdout.
  const send = (type, payload) => child.stdin.write(`${JSON.stringify({ v: "1", type, payload })}\n`);

  // A signal to a child that has ended does nothing.
  const stop = () => {
    send("run.cancel", {});
    setTimeout(() => child.kill("SIGTERM"), TERM_MS).unref();
    setTimeout(() => child.kill("SIGKILL"), KILL_MS).unref();
  };
  const open = new Map();
  const answer = async (question) => {
    const own = new AbortController();
    open.set(question.question_id, own);
    const both = signal ? AbortSignal.any([signal, own.signal]) : own.signal;
    const refusal = question.purpose === "permission" ? { value: "deny" } : { declined: true };
    const input = await ask(question, both).catch((error) => {
      if (!both.aborted) logger?.warn?.(`${ID}: a question could not be asked: ${error?.message ?? error}`);
    });
    if (!both.aborted) send("run.input", { question_id: question.question_id, ...(input ?? refusal) });
  };

  let end;
  try {
    send("run.start", { ...start, max_frame_bytes: FRAME_BYTES });
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    for await (const frame of framesOf(child.stdout)) {
      if (frame.type === "run.question") {
        answer(frame.payload);
        continue;
      }
      if (frame.payload.kind === "question_resolved") open.get(frame.payload.question_id)?.abort();
      if (ENDS.includes(frame.type)) {
        end = frame;
        break;
      }
      yield frame;
    }
    yield end ?? { type: "run.failed", payload: { code: "agent_exited", message: await exit } };
  } finally {
    signal?.removeEventListener("abort", stop);
    for (const question of open.values()) question.abort();
    child.stdin.end();
    if (!end) child.kill("SIGTERM");
  }
}

/** The fields of run.start that the plugin's configuration sets. */
function configured(config) {
  return {
    permissions: config.permissions,
    sandbox: config.sandbox,
    question_timeout_s: config.questionTimeoutSeconds ?? 900,
    on_question_timeout: "continue",
  };
}

// Questions

/** Makes characters visible that could hide a part of a text: control, format and bidirectional ones. */
function visible(text) {
  const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
  return text.replace(hidden, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** A text of at most `most` characters. A longer one keeps its beginning and its end, and names what is missing. */
function bounded(text, most) {
  if (text.length <= most) return text;
  const hidden = (count) => ` …[${count} characters not shown]… `;
  const room = most - hidden(text.length).length;
  const head = Math.ceil(room * 0.7);
  return text.slice(0, head) + hidden(text.length - room) + text.slice(text.length - (room - head));
}

/** The options of a question as labels. */
function choices(question) {
  return question.kind === "confirm" ? [{ label: "Yes" }, { label: "No" }] : (question.options ?? []);
}

/** The question as OpenClaw shows it: with two to four options, or as a text with a numbered list. */
function shown(question, id) {
  const options = choices(question).map(({ label, description }) => ({ label, ...(description && { description }) }));
  const fits = options.length >= 2 && options.length <= 4;
  const line = ({ label, description }, at) => `${at + 1}. ${label}${description ? ` - ${description}` : ""}`;
  const several = question.multiple ? ["Answer with one or more of these, separated by commas."] : [];
  const list = fits || options.length === 0 ? [] : [...options.map(line), ...several];
  return {
    id,
    header: question.header?.slice(0, 12) || "Question",
    question: [question.error, question.text, ...list].filter(Boolean).join("\n"),
    options: fits ? options : null,
    isOther: !fits || Boolean(question.allow_other),
    ...(fits && question.multiple && { multiSelect: true }),
  };
}

/** The payload of run.input for the answers that OpenClaw returns. Nothing: the question was not answered. */
function inputOf(question, answers) {
  if (!answers?.length) return undefined;
  if (!question.multiple) return { value: answers[0] };
  const isLabel = (text) => choices(question).some(({ label }) => label.toLowerCase() === text.trim().toLowerCase());
  const parts = answers.flatMap((text) => (isLabel(text) ? [text] : text.split(/[,;\n]/)));
  return { value: parts.map((text) => text.trim()).filter(Boolean) };
}

// A session shows one question at a time.
const turns = new Map();

function inTurn(session, signal, work) {
  const turn = (turns.get(session) ?? Promise.resolve()).then(() => (signal.aborted ? undefined : work()));
  const over = turn.catch(() => {}).then(() => turns.get(session) === over && turns.delete(session));
  turns.set(session, over);
  return turn;
}

/** Asks in the chat of the tool's session. An id is used once, because OpenClaw repeats the answer to a known one. */
function askInChat(tc, question, signal) {
  const until = Date.now() + question.timeout_s * 1000;
  const questionId = `${question.question_id}_${question.attempt}`;
  const text = shown(question, question.question_id);
  return inTurn(tc.sessionKey, signal, async () => {
    // A question's time runs while it waits for its turn.
    const timeoutMs = Math.max(Math.ceil(until - Date.now()), 1);
    if (question.kind === "secret") return askSecret(tc, { ...text, questionId, timeoutMs, signal });
    const { status, answers } = await runAgentHarnessGatewayQuestion({
      sessionKey: tc.sessionKey,
      agentId: tc.agentId,
      timeoutMs,
      signal,
      questionId,
      questions: [text],
      promptOptions: { intro: "The coding agent asks:" },
      delivery: { onBlockReply: (reply) => tc.delivery?.send?.({ text: reply.text }) },
    });
    return status === "answered" ? inputOf(question, answers?.answers?.[text.id]) : undefined;
  });
}

/**
 * Asks for a secret by OpenClaw's masked prompt, which puts the value into its store under a name of its own. The value
 * is overwritten before it is deleted, because a deleted entry keeps its value for 30 days.
 */
async function askSecret(tc, { questionId, header, question, timeoutMs, signal }) {
  const name = `SPEKTACULAR_${randomBytes(8).toString("hex").toUpperCase()}`;
  const admin = { scopes: ["operator.admin"], requireAgentRuntimeIdentity: true };
  const secretStore = {
    name,
    kind: "secret",
    allowedHosts: [],
    reason: "A coding agent asked for it. It is deleted after use.",
  };
  const questions = [{ questionId: "secret_value", header, question, options: [], isSecret: true, secretStore }];
  try {
    const request = { id: questionId, questions, agentId: tc.agentId, sessionKey: tc.sessionKey, timeoutMs };
    await callGatewayTool("question.request", {}, request, { ...admin, signal });
    const wait = { timeoutMs: timeoutMs + 10_000 };
    const { status } = await callGatewayTool("question.waitAnswer", wait, { id: questionId, timeoutMs }, { signal });
    if (status !== "answered") return undefined;
    const ref = { source: "store", provider: "default", id: name };
    const values = await resolveSecretRefValues([ref], {
      config: tc.getRuntimeConfig?.() ?? tc.config,
      env: process.env,
    });
    return { value: [...values.values()][0] };
  } finally {
    // A question that is over refuses the cancel, and a value that was never set has nothing to delete.
    if (signal.aborted) await callGatewayTool("question.resolve", {}, { id: questionId, cancel: true }).catch(() => {});
    await callGatewayTool("secrets.store.set", {}, { name, kind: "secret", value: "-", allowedHosts: [] }, admin).catch(
      () => {},
    );
    await callGatewayTool("secrets.store.delete", {}, { name }, admin).catch(() => {});
  }
}

/** Asks for a permission as an approval. "Always" is only offered for what the approval shows as a whole. */
async function approve(tc, toolCallId, question, signal) {
  const { title, detail } = question.subject;
  const always = question.options.find(({ value }) => value === "allow_always");
  const scope = always ? `\nAlways: ${visible([always.label, always.description].filter(Boolean).join(". "))}` : "";
  const whole = visible(detail || title);
  const isWhole = whole.length + scope.length <= 500;
  const allowed = question.options.map(({ value }) => value).filter((value) => isWhole || value !== "allow_always");
  const approval = {
    pluginId: ID,
    title: bounded(visible(title), 80),
    description: isWhole ? whole + scope : bounded(whole, 500),
    severity: "warning",
    allowedDecisions: allowed.map((value) => value.replace("_", "-")),
    timeoutMs: Math.min(Math.ceil(question.timeout_s * 1000), 600_000),
  };
  const { channel, to, accountId, threadId } = tc.deliveryContext ?? {};
  const ctx = {
    agentId: tc.agentId,
    sessionKey: tc.sessionKey,
    turnSourceChannel: channel,
    turnSourceTo: to,
    turnSourceAccountId: accountId,
    turnSourceThreadId: threadId,
  };
  const deferredApproval = { approval, toolName: TOOL, toolCallId, ctx, baseParams: {} };
  const { approvalResolution } = await requestDeferredPluginToolApproval({ deferredApproval, signal });
  const value = approvalResolution?.replace("-", "_");
  return { value: allowed.includes(value) ? value : "deny" };
}

// The tool

const text = (description) => ({ type: "string", description });
const PARAMETERS = {
  type: "object",
  additionalProperties: false,
  required: ["prompt"],
  properties: {
    prompt: text(
      "The whole task. The agent sees nothing of this conversation. No secrets: the agent asks the user for them.",
    ),
    cwd: text("The directory to work in. Default: the workspace."),
    agent: text("The coding agent, such as claude, codex, gemini or opencode, if the user named one."),
    session_id: text("Continues this earlier session of the agent: the id from the last line of a result."),
    timeout_s: { type: "number", exclusiveMinimum: 0, description: "The time limit in seconds. Default: none." },
  },
};

const toolOf = (api) => (tc) => ({
  name: TOOL,
  label: "Coding agent",
  description:
    "Hands a task to a coding agent (Claude Code, Codex, Gemini CLI, OpenCode or another) and returns its answer. Its questions and requests for permission go to the user.",
  parameters: PARAMETERS,
  async execute(toolCallId, params, signal, onUpdate) {
    const config = api.pluginConfig ?? {};
    const { prompt, session_id, timeout_s, agent = config.agent } = params;
    const workspace = tc.workspaceDir ?? process.cwd();
    const cwd = resolve(workspace, params.cwd ?? ".");
    const ask = async (question, own) =>
      question.purpose === "permission" ? approve(tc, toolCallId, question, own) : askInChat(tc, question, own);
    const start = { ...configured(config), prompt, cwd, agent, session_id, timeout_s };
    const { command = ID } = config;
    const { logger } = api;
    let end;
    const last = { agent, resumes: true };
    for await (const frame of framesOfRun({ command, cwd: workspace, env: process.env, start, signal, ask, logger })) {
      const { kind, text, capabilities } = frame.payload;
      if (kind === "text" || kind === "tool") onUpdate?.({ content: [{ type: "text", text }], details: {} });
      if (kind === "session") last.resumes = capabilities?.resume !== false;
      if (frame.type === "run.started") last.agent = frame.payload.agent?.name ?? agent;
      end = frame;
    }
    return resultOf(end, last);
  },
});

function resultOf({ type, payload }, { agent, resumes }) {
  const by = agent ? ` and ${agent} as agent` : "";
  const session =
    payload.session_id && resumes && `Session: ${payload.session_id} (pass it as session_id${by} to continue this task)`;
  if (type === "run.cancelled")
    throw new Error(["cancelled: the run was stopped.", session].filter(Boolean).join("\n"));
  if (type === "run.failed")
    throw new Error([`${payload.code}: ${payload.message}`, session].filter(Boolean).join("\n"));
  const files = payload.artifacts.map(({ path, action }) => `${action} ${path}`);
  const list = files.length > 0 && `Files:\n${files.slice(0, 50).join("\n")}${files.length > 50 ? "\n…" : ""}`;
  const whole = [payload.text, list, session].filter(Boolean).join("\n\n");
  const { session_id, usage, duration_ms } = payload;
  return { content: [{ type: "text", text: whole }], details: { session_id, files, usage, duration_ms } };
}

// The backend

/**
 * The name under which OpenClaw remembers "always", whatever the input. So it names this very action, by a hash where the
 * name does not hold the whole. It is never "Bash", whose rules refuse loops and long commands without asking.
 */
function grantName({ category, title, detail }) {
  const name = `${category}: ${visible(title)}`;
  if (name.length <= NAME_LENGTH && (!detail || title.includes(detail))) return name;
  const hash = createHash("sha256")
    .update(JSON.stringify([title, detail]))
    .digest("base64url")
    .slice(0, 22);
  const room = NAME_LENGTH - hash.length - 2;
  return `${name.length > room ? `${name.slice(0, room - 1)}…` : name} #${hash}`;
}

async function permit(ctx, question, abortSignal) {
  const { subject } = question;
  const toolInput = { action: visible(subject.title), detail: visible(subject.detail ?? "") };
  const request = { toolName: grantName(subject), toolInput, toolCallId: question.question_id, abortSignal };
  const { behavior, updatedInput = toolInput, message } = await ctx.requestToolPermission(request);
  const offered = question.options.some(({ value }) => value === "allow_once");
  // A changed input means another action, which the agent cannot be told to take.
  if (behavior === "allow" && offered && isDeepStrictEqual(updatedInput, toolInput)) return { value: "allow_once" };
  return { value: "deny", ...(message && { message }) };
}

/** Asks by OpenClaw's own input request. It has no masked prompt, so a secret is declined. */
async function askOperator(ctx, question, abortSignal) {
  if (question.kind === "secret") return undefined;
  const id = `${question.question_id}_${question.attempt}`;
  const request = {
    toolName: "ask_user",
    intro: "The agent asks:",
    toolCallId: id,
    questions: [shown(question, id)],
    abortSignal,
  };
  const { status, answers } = await ctx.requestUserInput(request);
  return status === "answered" ? inputOf(question, answers[id]) : undefined;
}

const executeOf = (api) =>
  async function* execute(ctx) {
    const config = api.pluginConfig ?? {};
    const [agent, ...model] = ctx.modelId.split(":");
    const { prependContext, appendContext } = ctx.promptContext ?? {};
    const start = {
      ...configured(config),
      prompt: ctx.prompt,
      cwd: ctx.cwd,
      agent,
      model: model.join(":") || undefined,
      system_prompt: [prependContext, appendContext].filter(Boolean).join("\n\n") || undefined,
      session_id: ctx.useResume ? ctx.sessionId : undefined,
      progress: "full",
      heartbeat_s: 20, // OpenClaw ends a turn that is silent for a minute.
    };
    const session = {};
    const ask = async (question, own) =>
      question.purpose === "permission"
        ? permit(ctx, question, own)
        : inTurn(session, own, () => askOperator(ctx, question, own));
    const { command, cwd, env, abortSignal: signal } = ctx;
    const { logger } = api;
    let message;
    for await (const frame of framesOfRun({ command, cwd, env, start, signal, ask, logger })) {
      const { kind, message_id } = frame.payload;
      // The pieces of a message belong together; the next message begins a paragraph.
      const begins = kind === "text" && message !== undefined && message !== message_id;
      if (kind === "text") message = message_id;
      const is_error = frame.type !== "run.completed";
      if (ENDS.includes(frame.type)) yield { type: "result", subtype: is_error ? "error" : "success", is_error, frame };
      else yield { type: "frame", frame, begins };
    }
  };

/** OpenClaw's events for a record of the backend. An empty list: nothing to show. */
function eventsOf(line) {
  const { frame, begins } = JSON.parse(line);
  const { type, payload } = frame;
  if (type === "run.failed") return [{ kind: "result", errorText: `${payload.code}: ${payload.message}` }];
  if (type === "run.cancelled") return [{ kind: "result", errorText: "cancelled: the run was stopped." }];
  const { kind, text, call_id: toolCallId } = payload;
  if (type === "run.completed") {
    const { input_tokens, output_tokens, cached_input_tokens } = payload.usage;
    const cacheRead = cached_input_tokens ?? undefined;
    const input = input_tokens === null ? undefined : input_tokens - (cacheRead ?? 0);
    const usage = { input, output: output_tokens ?? undefined, cacheRead };
    return [
      { kind: "result", text: payload.text, usage, ...(payload.session_id && { sessionId: payload.session_id }) },
    ];
  }
  if (text === "" && (kind === "text" || kind === "reasoning")) return [];
  if (kind === "text") return [{ kind: "text", text: begins ? `\n\n${text}` : text }];
  if (kind === "reasoning") return [{ kind: "thinking", text }];
  if (kind === "session" && payload.session_id && payload.capabilities?.resume !== false)
    return [{ kind: "sessionId", sessionId: payload.session_id }];
  if (kind !== "tool") return [];
  if (payload.state === "started")
    return [{ kind: "toolStart", toolCallId, name: payload.category, args: { title: text } }];
  const isError = payload.state !== "completed";
  return [{ kind: "toolResult", toolCallId, name: payload.category, isError, result: payload.output ?? payload.state }];
}

export default {
  id: ID,
  name: "Spektacular",
  description: "Hands tasks to coding agents, and makes a coding agent the model of a session.",
  register(api) {
    const command = api.pluginConfig?.command ?? ID;
    const config = {
      command,
      args: ARGS,
      resumeArgs: ARGS,
      output: "jsonl",
      resumeOutput: "jsonl",
      input: "stdin",
      sessionMode: "existing",
      systemPromptWhen: "never",
      serialize: false,
    };
    api.registerTool(toolOf(api), { name: TOOL });
    api.registerCliBackend({
      id: ID,
      config,
      nativeToolMode: "always-on",
      parseJsonlEvent: eventsOf,
      prepareExecution: () => ({ execute: executeOf(api) }),
    });
  },
};

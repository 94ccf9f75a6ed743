// The plugin with stand-ins for OpenClaw and spektacular. PLUGIN: the folder of the plugin.
import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

// OpenClaw: the plugin finds the package above its own folder, as a loaded plugin does.
const root = mkdtempSync(join(tmpdir(), "plugin-"));
after(() => rmSync(root, { recursive: true, force: true }));
const sdk = join(root, "node_modules/openclaw");
mkdirSync(sdk, { recursive: true });
writeFileSync(
  join(sdk, "package.json"),
  JSON.stringify({ name: "openclaw", type: "module", exports: { "./plugin-sdk/*": "./sdk.js" } }),
);
const functions = [
  "callGatewayTool",
  "requestDeferredPluginToolApproval",
  "resolveSecretRefValues",
  "runAgentHarnessGatewayQuestion",
];
writeFileSync(
  join(sdk, "sdk.js"),
  functions.map((name) => `export const ${name} = (...args) => globalThis.openclaw.${name}(...args);`).join("\n"),
);
cpSync(process.env.PLUGIN, join(root, "plugin"), { recursive: true });
const command = fileURLToPath(new URL("program.mjs", import.meta.url));
const program = join(root, "program.mjs");
cpSync(command, program);
chmodSync(program, 0o755);
const { default: plugin } = await import(pathToFileURL(join(root, "plugin/index.js")).href);

// The gateway has variables that no agent may have.
process.env.OPENCLAW_GATEWAY_TOKEN = "made-up";

/** The plugin as OpenClaw has it after `register`. */
function registered(config = {}) {
  const warnings = [];
  const found = { warnings };
  plugin.register({
    pluginConfig: { command: program, ...config },
    logger: { warn: (text) => warnings.push(text) },
    registerTool: (factory, options) => Object.assign(found, { factory, options }),
    registerCliBackend: (backend) => Object.assign(found, { backend }),
  });
  return found;
}

/** Runs the tool with these steps of the program. */
async function runTool(steps, { config, sessionKey = "chat-1", signal, params = {}, onUpdate } = {}) {
  const tool = registered(config).factory({
    sessionKey,
    agentId: "main",
    workspaceDir: root,
    deliveryContext: { channel: "c", to: "t" },
  });
  return tool.execute("call-1", { prompt: JSON.stringify(steps), ...params }, signal, onUpdate);
}

const reported = (result) => JSON.parse(result.content[0].text.split("\n\nFiles:")[0]);
let ids = 0;
const asked = (fields) => ({
  question_id: `q_${++ids}`,
  purpose: "clarification",
  kind: "text",
  header: "Header",
  text: "Well?",
  attempt: 1,
  timeout_s: 5,
  required: true,
  ...fields,
});
const options = (...labels) => labels.map((label) => ({ value: label.toLowerCase(), label }));
const askAndWait = (question) => [{ frame: ["run.question", question] }, { wait: "run.input" }];

/** Answers the question of the gateway like a user who gives these answers; undefined: the user skips it. */
function userSays(answers) {
  const requests = [];
  globalThis.openclaw = {
    runAgentHarnessGatewayQuestion: async (request) => {
      requests.push(request);
      const [{ id }] = request.questions;
      return answers ? { status: "answered", answers: { answers: { [id]: answers } } } : { status: "cancelled" };
    },
  };
  return requests;
}

const KINDS = [
  // name, question, the user's answers, options in the chat, payload of run.input
  ["text", {}, ["Hello"], null, { value: "Hello" }],
  ["file_path", { kind: "file_path" }, ["a/b.txt"], null, { value: "a/b.txt" }],
  ["confirm", { kind: "confirm" }, ["Yes"], ["Yes", "No"], { value: "Yes" }],
  ["select", { kind: "select", options: options("A", "B") }, ["B"], ["A", "B"], { value: "B" }],
  ["select with one option", { kind: "select", options: options("A") }, ["1"], null, { value: "1" }],
  [
    "select with five options",
    { kind: "select", options: options("A", "B", "C", "D", "E") },
    ["5"],
    null,
    { value: "5" },
  ],
  [
    "several",
    { kind: "select", multiple: true, options: options("A", "B", "C") },
    ["A", "C"],
    ["A", "B", "C"],
    { value: ["A", "C"] },
  ],
  [
    "several of five",
    { kind: "select", multiple: true, options: options("A", "B", "C", "D", "E") },
    ["1, e;3"],
    null,
    { value: ["1", "e", "3"] },
  ],
  [
    "a label with a comma",
    { kind: "select", multiple: true, options: options("A, B", "C", "D", "E", "F") },
    ["a, b"],
    null,
    { value: ["a, b"] },
  ],
  ["skipped", {}, undefined, null, { declined: true }],
];

for (const [name, fields, answers, labels, wanted] of KINDS) {
  test(`a question: ${name}`, async () => {
    const requests = userSays(answers);
    const question = asked(fields);
    const { inputs } = reported(await runTool(askAndWait(question)));
    assert.deepEqual(inputs, [{ question_id: question.question_id, ...wanted }]);
    const [{ sessionKey, questionId, timeoutMs, questions }] = requests;
    assert.deepEqual([sessionKey, questionId, timeoutMs], ["chat-1", `${question.question_id}_1`, 5000]);
    assert.deepEqual(questions[0].options?.map(({ label }) => label) ?? null, labels);
    assert.equal(questions[0].isOther, labels === null);
    if (labels === null && fields.options) assert.ok(questions[0].question.includes(`\n1. ${fields.options[0].label}`));
  });
}

test("own words beside options, several of them, and a bad answer with its error", async () => {
  const requests = userSays(["Other"]);
  const question = asked({
    kind: "select",
    options: options("A", "B"),
    allow_other: true,
    multiple: true,
    header: "Longer than twelve",
  });
  await runTool([...askAndWait(question), ...askAndWait({ ...question, attempt: 2, error: "Choose one." })]);
  const shown = requests.map(({ questionId, questions: [{ header, question, isOther, multiSelect }] }) => [
    questionId,
    header,
    question,
    isOther,
    multiSelect,
  ]);
  const id = question.question_id;
  assert.deepEqual(shown, [
    [`${id}_1`, "Longer than ", "Well?", true, true],
    [`${id}_2`, "Longer than ", "Choose one.\nWell?", true, true],
  ]);
});

/** A user who answers when told to. `open`: the questions that wait, with the functions that answer them. */
function slowUser() {
  const user = { open: [], most: 0, arrived: [] };
  globalThis.openclaw = {
    runAgentHarnessGatewayQuestion: (request) =>
      new Promise((done) => {
        const entry = {
          request,
          answer: (text) => over({ status: "answered", answers: { answers: { [request.questions[0].id]: [text] } } }),
        };
        const over = (result) => {
          user.open.splice(user.open.indexOf(entry), 1);
          done(result);
        };
        request.signal.addEventListener("abort", () => over({ status: "cancelled" }));
        user.open.push(entry);
        user.arrived.splice(0).forEach((look) => look());
      }),
  };
  user.until = async (count) => {
    while (user.open.length < count) await new Promise((look) => user.arrived.push(look));
    return user.open;
  };
  return user;
}

test("the questions of a group come one after the other", async () => {
  const user = slowUser();
  const group = [asked({ text: "First?" }), asked({ text: "Second?" })];
  const frames = group.map((question) => ({ frame: ["run.question", question] }));
  const run = runTool([...frames, { wait: "run.input" }, { wait: "run.input" }]);
  for (const text of ["First?", "Second?"]) {
    const [{ request, answer }] = await user.until(1);
    assert.deepEqual([user.open.length, request.questions[0].question], [1, text]);
    answer(text);
  }
  assert.deepEqual(
    reported(await run).inputs.map(({ value }) => value),
    ["First?", "Second?"],
  );
});

test("two sessions are asked at once, each its own question", async () => {
  const user = slowUser();
  const runs = ["one", "two"].map((sessionKey) => runTool(askAndWait(asked({ text: sessionKey })), { sessionKey }));
  for (const { request, answer } of [...(await user.until(2))]) {
    assert.equal(request.sessionKey, request.questions[0].question);
    answer(request.sessionKey);
  }
  for (const [at, run] of runs.entries()) assert.equal(reported(await run).inputs[0].value, ["one", "two"][at]);
});

for (const resolution of ["withdrawn", "timeout"]) {
  test(`a question that is over (${resolution}) is taken back and not answered, nor is one that waits behind it`, async () => {
    const user = slowUser();
    const [first, second, third] = [asked({}), asked({ text: "Never shown" }), asked({ text: "Third" })];
    const over = ({ question_id }) => ({
      frame: ["run.progress", { kind: "question_resolved", text: "", question_id, resolution }],
    });
    const ask = (question) => ({ frame: ["run.question", question] });
    // The frames come while the first question is open, because nobody answers it.
    const run = runTool([ask(first), ask(second), over(second), over(first), ask(third), { wait: "run.input" }]);
    let open;
    do [open] = await user.until(1);
    while (open.request.questions[0].question !== "Third" && (await new Promise((done) => setImmediate(done, true))));
    open.answer("3");
    assert.deepEqual(reported(await run).inputs, [{ question_id: third.question_id, value: "3" }]);
  });
}

test("a question that cannot be asked is declined, and the log says why", async () => {
  globalThis.openclaw = { runAgentHarnessGatewayQuestion: async () => assert.fail("no chat") };
  const found = registered();
  const steps = askAndWait(asked({}));
  const result = await found
    .factory({ sessionKey: "s", workspaceDir: root })
    .execute("c", { prompt: JSON.stringify(steps) });
  assert.equal(reported(result).inputs[0].declined, true);
  assert.deepEqual(found.warnings, ["spektacular: a question could not be asked: no chat"]);
});

const permission = (subject, ...values) =>
  asked({
    purpose: "permission",
    kind: "select",
    subject: { category: "execute", title: "Run x", detail: "x", locations: [], ...subject },
    options: values.map((value) => ({ value, label: value === "allow_always" ? "Allow x for this run" : value })),
  });
const ALL = ["allow_once", "allow_always", "deny"];

for (const [decision, value] of [
  ["allow-once", "allow_once"],
  ["allow-always", "allow_always"],
  ["deny", "deny"],
  [undefined, "deny"],
]) {
  test(`a permission is an approval: ${decision}`, async () => {
    let request;
    globalThis.openclaw = {
      requestDeferredPluginToolApproval: async (params) => (
        (request = params.deferredApproval),
        { approvalResolution: decision }
      ),
    };
    const result = await runTool(askAndWait(permission({}, ...ALL)));
    assert.equal(reported(result).inputs[0].value, value);
    const { approval, ctx } = request;
    assert.deepEqual([approval.title, approval.description], ["Run x", "x\nAlways: Allow x for this run"]);
    assert.deepEqual(approval.allowedDecisions, ["allow-once", "allow-always", "deny"]);
    assert.deepEqual([ctx.sessionKey, ctx.turnSourceChannel, approval.timeoutMs], ["chat-1", "c", 5000]);
  });
}

test("an approval shows hidden characters, and offers always only for what it shows as a whole", async () => {
  let approval;
  const decide = async ({ deferredApproval }) => (
    (approval = deferredApproval.approval),
    { approvalResolution: "allow-always" }
  );
  globalThis.openclaw = { requestDeferredPluginToolApproval: decide };
  const detail = `echo ${"a".repeat(5000)}; rm -rf /`;
  const long = reported(await runTool(askAndWait(permission({ title: `Run ${detail}`, detail }, ...ALL))));
  assert.equal(long.inputs[0].value, "deny", "always was not offered");
  assert.deepEqual(approval.allowedDecisions, ["allow-once", "deny"]);
  assert.ok(approval.title.length <= 80 && approval.description.length <= 512);
  assert.match(approval.description, /^echo aaa.*\[\d+ characters not shown\].*; rm -rf \/$/);
  await runTool(askAndWait(permission({ title: "Run a\u202eb", detail: "a\u202eb\u0000\u001b[2J" }, ...ALL)));
  assert.deepEqual(
    [approval.title, approval.description.split("\n")[0]],
    ["Run a\\u{202e}b", "a\\u{202e}b\\u{0}\\u{1b}[2J"],
  );
});

for (const status of ["answered", "expired"]) {
  test(`a secret uses the masked prompt, and its entry is wiped: ${status}`, async () => {
    const calls = [];
    let name;
    globalThis.openclaw = {
      callGatewayTool: async (method, _, params, extra) => {
        calls.push([method, params, extra]);
        if (method === "question.request") name = params.questions[0].secretStore.name;
        return { status };
      },
      resolveSecretRefValues: async ([ref]) => new Map([["key", ref.id === name ? "the value" : undefined]]),
    };
    const [input] = reported(await runTool(askAndWait(asked({ kind: "secret" })))).inputs;
    assert.deepEqual(status === "answered" ? input.value : input.declined, status === "answered" ? "the value" : true);
    assert.deepEqual(
      calls.map(([method]) => method),
      ["question.request", "question.waitAnswer", "secrets.store.set", "secrets.store.delete"],
    );
    const [[, request, extra], , [, set], [, deleted]] = calls;
    assert.ok(
      request.questions[0].isSecret && extra.scopes.includes("operator.admin") && extra.requireAgentRuntimeIdentity,
    );
    assert.match(name, /^[A-Z][A-Z0-9_]+$/);
    assert.deepEqual([set.name, set.value, deleted.name], [name, "-", name]);
  });
}

test("a result names the files and the session, and progress is reported", async () => {
  const updates = [];
  const progress = (payload) => ({ frame: ["run.progress", payload] });
  const steps = [
    progress({ kind: "text", text: "Hi", message_id: "m_1", done: true }),
    progress({ kind: "usage", text: "no" }),
  ];
  const config = { agent: "codex", permissions: { read: "allow" }, questionTimeoutSeconds: 7 };
  const result = await runTool(steps, {
    config,
    params: { cwd: "sub", session_id: "s0" },
    onUpdate: (update) => updates.push(update.content[0].text),
  });
  const { start, names } = reported(result);
  assert.deepEqual(updates, ["Hi"]);
  assert.match(result.content[0].text, /\n\nFiles:\ncreated a\.txt\n\nSession: s1 \(pass it as session_id/);
  assert.deepEqual([start.agent, start.cwd, start.session_id], ["codex", join(root, "sub"), "s0"]);
  assert.deepEqual(
    [start.permissions, start.question_timeout_s, start.on_question_timeout],
    [{ read: "allow" }, 7, "continue"],
  );
  assert.ok(names.includes("PATH") && !names.includes("OPENCLAW_GATEWAY_TOKEN"));
});

test("an abort is a cancel, and then SIGTERM", { timeout: 60_000 }, async () => {
  const cancelled = { frame: ["run.cancelled", { session_id: null, artifacts: [], usage: {} }] };
  for (const steps of [
    [{ raw: "\n" }, { wait: "run.cancel" }, cancelled],
    [{ deaf: true }, { forever: true }],
  ]) {
    const user = slowUser();
    const controller = new AbortController();
    const run = runTool([{ frame: ["run.question", asked({})] }, ...steps], { signal: controller.signal });
    await user.until(1);
    controller.abort();
    await assert.rejects(run, /cancelled: the run was stopped/);
    assert.equal(user.open.length, 0, "the question is still shown");
  }
});

test("a failure has its code; a program that dies or is missing has a reason", async () => {
  const failed = { frame: ["run.failed", { code: "rate_limited", message: "Wait.", session_id: "s9" }] };
  await assert.rejects(runTool([failed]), /^Error: rate_limited: Wait\.\nSession: s9 /);
  await assert.rejects(
    runTool([{ stderr: "no such thing" }, { exit: 3 }]),
    /agent_exited: .*exit code 3\)\. no such thing/,
  );
  await assert.rejects(
    runTool([], { config: { command: "/no/such/program" } }),
    /\/no\/such\/program cannot be started .*ENOENT.*entries\.spektacular\.config\.command/,
  );
});

test("garbage and floods on stdout are skipped", async () => {
  userSays(["yes"]);
  const question = asked({});
  const garbage = [
    "no json\n",
    "{}\n",
    "[1]\n",
    '{"v":"2","type":"run.failed","payload":{}}\n',
    '{"v":"1","type":"run.failed","payload":null}\n',
    "\u0000\n\n",
    '"\ud800\n',
  ];
  const flood = [{ flood: 5 << 20 }, { flood: 30 << 20 }];
  const many = Array.from({ length: 2000 }, () => ({
    frame: ["run.progress", { kind: "text", text: "x".repeat(500), message_id: "m", done: false }],
  }));
  const result = await runTool([
    ...garbage.map((raw) => ({ raw })),
    ...flood,
    ...many,
    ...askAndWait(question),
    ...flood,
  ]);
  assert.deepEqual(reported(result).inputs, [{ question_id: question.question_id, value: "yes" }]);
});

// The backend

/** Runs the backend with these steps. Returns its records and OpenClaw's events for them. */
async function runBackend(steps, more = {}) {
  const { backend } = registered();
  const { execute } = await backend.prepareExecution();
  const records = [];
  const ctx = {
    command: program,
    args: [],
    cwd: root,
    env: process.env,
    prompt: JSON.stringify(steps),
    modelId: "claude",
    useResume: false,
    timeoutMs: 1000,
    ...more,
  };
  for await (const record of execute(ctx)) records.push(record);
  return { records, events: records.flatMap((record) => backend.parseJsonlEvent(JSON.stringify(record))) };
}

const inputsOf = ({ records }) => JSON.parse(records.at(-1).frame.payload.text).inputs;

test("the backend streams text, tools and the session, and ends with a result", async () => {
  const progress = (payload) => ({ frame: ["run.progress", payload] });
  const text = (message_id, text, done) => progress({ kind: "text", message_id, text, done });
  const tool = (state) => progress({ kind: "tool", call_id: "c_1", category: "execute", text: "Run x", state });
  const steps = [
    progress({ kind: "session", text: "", session_id: "s1", capabilities: { resume: true } }),
    text("m_1", "Hel", false),
    text("m_1", "lo", true),
    tool("started"),
    tool("denied"),
    text("m_2", "Bye", true),
  ];
  const context = { prependContext: "Note.", appendContext: undefined };
  const { records, events } = await runBackend(steps, {
    modelId: "opencode:a/b:c",
    useResume: true,
    sessionId: "s0",
    promptContext: context,
  });
  const { start, names } = JSON.parse(records.at(-1).frame.payload.text);
  assert.ok(names.includes("PATH") && !names.includes("OPENCLAW_GATEWAY_TOKEN"));
  assert.deepEqual(
    [start.agent, start.model, start.session_id, start.progress, start.system_prompt],
    ["opencode", "a/b:c", "s0", "full", "Note."],
  );
  assert.deepEqual(events.slice(0, -1), [
    { kind: "sessionId", sessionId: "s1" },
    { kind: "text", text: "Hel" },
    { kind: "text", text: "lo" },
    { kind: "toolStart", toolCallId: "c_1", name: "execute", args: { title: "Run x" } },
    { kind: "toolResult", toolCallId: "c_1", name: "execute", isError: true, result: "denied" },
    { kind: "text", text: "\n\nBye" },
  ]);
  const { usage, sessionId } = events.at(-1);
  assert.deepEqual([usage, sessionId], [{ input: 3, output: 5, cacheRead: 7 }, "s1"]);
  const failed = await runBackend([{ frame: ["run.failed", { code: "auth_required", message: "Log in." }] }]);
  assert.deepEqual(
    [failed.records.at(-1).is_error, failed.events],
    [true, [{ kind: "result", errorText: "auth_required: Log in." }]],
  );
});

test("the backend asks by OpenClaw's input request, one question at a time, and declines a secret", async () => {
  const requests = [];
  const requestUserInput = async (request) => (
    requests.push(request),
    { status: "answered", answers: { [request.questions[0].id]: ["B"] } }
  );
  const questions = [asked({ kind: "select", options: options("A", "B") }), asked({ kind: "secret" })];
  const inputs = inputsOf(await runBackend(questions.flatMap(askAndWait), { requestUserInput }));
  assert.deepEqual(
    inputs.map(({ value, declined }) => [value, declined]),
    [
      ["B", undefined],
      [undefined, true],
    ],
  );
  assert.equal(requests.length, 1);
});

test("the backend's permissions: always is for this very action, and a changed action is denied", async () => {
  const names = [];
  const decide = (outcome) => ({
    requestToolPermission: async (request) => (
      names.push(request.toolName),
      { ...outcome, updatedInput: { ...request.toolInput, ...outcome.changed } }
    ),
  });
  const ask = async (subject, outcome) =>
    inputsOf(await runBackend(askAndWait(permission(subject, ...ALL)), decide(outcome)))[0];
  const allow = { behavior: "allow" };
  assert.equal((await ask({ title: "Bash", detail: "rm a" }, allow)).value, "allow_once");
  assert.equal((await ask({ title: "Bash", detail: "rm b" }, { ...allow, changed: { detail: "rm c" } })).value, "deny");
  const denied = await ask({ title: "Run x", detail: "x" }, { behavior: "deny", message: "Not now." });
  assert.deepEqual([denied.value, denied.message], ["deny", "Not now."]);
  const long = `Run ${"a".repeat(100)}`;
  await ask({ title: `${long}1`, detail: "" }, allow);
  await ask({ title: `${long}2`, detail: "" }, allow);
  assert.equal(new Set(names).size, names.length, `different actions share a name: ${names}`);
  assert.equal(names[2], "execute: Run x");
  assert.ok(
    names.every((name) => name.length <= 55 && name !== "Bash" && name.startsWith("execute: ")),
    `${names}`,
  );
});

test("the manifest declares what the plugin registers", () => {
  const manifest = JSON.parse(readFileSync(join(root, "plugin/openclaw.plugin.json"), "utf8"));
  const { options, backend, factory } = registered();
  assert.deepEqual(manifest.contracts.tools, [options.name]);
  assert.deepEqual(
    [manifest.id, manifest.cliBackends, manifest.setup.cliBackends],
    [plugin.id, [backend.id], [backend.id]],
  );
  const { models } = manifest.modelCatalog.providers[backend.id];
  assert.ok(["claude", "codex", "gemini", "opencode"].every((name) => models.some(({ id }) => id === name)));
  const { properties } = factory({}).parameters;
  assert.ok(Object.values(properties).every(({ description }) => description));
  assert.ok(!Object.keys(properties).some((name) => /secret|key|token|permission/.test(name)));
});

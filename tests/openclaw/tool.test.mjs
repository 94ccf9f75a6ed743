// The tool of the plugin between stand-ins.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  ALL,
  askAndWait,
  asked,
  options,
  permission,
  plugin,
  registered,
  reported,
  root,
  runTool,
  slowUser,
  userSays,
} from "./stand_ins.mjs";

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
    assert.deepEqual([sessionKey, questionId], ["chat-1", `${question.question_id}_1`]);
    assert.ok(timeoutMs <= 5000 && timeoutMs > 0, `the time that is left: ${timeoutMs}`);
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

test("a question that cannot be asked is declined, a permission is denied, and the log says why", async () => {
  globalThis.openclaw = {
    runAgentHarnessGatewayQuestion: async () => assert.fail("no chat"),
    requestDeferredPluginToolApproval: async () => assert.fail("no client"),
  };
  const warnings = [];
  const steps = [...askAndWait(asked({})), ...askAndWait(permission({}, ...ALL)), ...askAndWait(asked({}))];
  const { inputs } = reported(await runTool(steps, { warnings }));
  assert.deepEqual(
    inputs.map(({ value, declined }) => value ?? declined),
    [true, "deny", true],
  );
  assert.deepEqual(
    warnings,
    ["no chat", "no client", "no chat"].map((why) => `spektacular: a question could not be asked: ${why}`),
  );
});

test("a permission or a secret that is over is taken back, without an answer and without a warning", async () => {
  const calls = [];
  const waits = (signal) =>
    new Promise((_, fail) => {
      signal.addEventListener("abort", () => fail(new Error("aborted")));
      waiting();
    });
  let waiting;
  globalThis.openclaw = {
    requestDeferredPluginToolApproval: ({ signal }) => waits(signal),
    callGatewayTool: async (method, _, params, { signal } = {}) => {
      calls.push([method, params.cancel]);
      if (method === "question.waitAnswer") return waits(signal);
    },
  };
  for (const question of [permission({}, ...ALL), asked({ kind: "secret" })]) {
    const asking = new Promise((done) => (waiting = done));
    const { question_id } = question;
    const over = { kind: "question_resolved", text: "", question_id, resolution: "withdrawn" };
    // The question is open before it is over.
    const steps = [{ frame: ["run.question", question] }, { wait: "run.cancel" }, { frame: ["run.progress", over] }];
    const controller = new AbortController();
    const warnings = [];
    const run = runTool(steps, { signal: controller.signal, warnings });
    await asking;
    controller.abort();
    assert.deepEqual([reported(await run).inputs, warnings], [[], []]);
  }
  assert.deepEqual(calls, [
    ["question.request", undefined],
    ["question.waitAnswer", undefined],
    ["question.resolve", true],
    ["secrets.store.set", undefined],
    ["secrets.store.delete", undefined],
  ]);
});

test("a question of a program that dies is taken back", async () => {
  const user = slowUser();
  const run = runTool([{ pid: true }, { frame: ["run.question", asked({})] }, { forever: true }], {
    onUpdate: ({ content: [{ text }] }) => (pid = Number(text)),
  });
  let pid;
  await user.until(1);
  process.kill(pid, "SIGKILL");
  await assert.rejects(run, /^Error: agent_exited: .* ended without a result \(SIGKILL\)/);
  assert.equal(user.open.length, 0, "the question is still shown");
});

test("the chat gets a question as a message where it needs one", async () => {
  const sent = [];
  globalThis.openclaw = {
    runAgentHarnessGatewayQuestion: async ({ delivery }) => (
      delivery.onBlockReply({ text: "Which?" }),
      { status: "cancelled" }
    ),
  };
  await runTool(askAndWait(asked({})), { delivery: { send: (message) => sent.push(message) } });
  assert.deepEqual(sent, [{ text: "Which?" }]);
});

test("a numbered list has descriptions, and names the form of several answers", async () => {
  const requests = userSays(["1"]);
  const many = options("A", "B", "C", "D", "E");
  many[0].description = "The first";
  const question = asked({ kind: "select", multiple: true, header: undefined, options: many });
  await runTool(askAndWait(question));
  const [{ header, question: text }] = requests[0].questions;
  const hint = "Answer with one or more of these, separated by commas.";
  assert.deepEqual([header, text], ["Question", `Well?\n1. A - The first\n2. B\n3. C\n4. D\n5. E\n${hint}`]);
});

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
  const hidden = { title: "Run a\u202eb", detail: "a\u202eb\u0000\u001b[2J\u2028" };
  await runTool(askAndWait({ ...permission(hidden, ...ALL), timeout_s: 900 }));
  assert.deepEqual(
    [approval.title, approval.description.split("\n")[0]],
    ["Run a\\u{202e}b", "a\\u{202e}b\\u{0}\\u{1b}[2J\\u{2028}"],
  );
  assert.equal(approval.timeoutMs, 600_000, "OpenClaw refuses a longer one");
  // The scope of "always" is a part of what must fit.
  await runTool(askAndWait(permission({ title: "Run it", detail: "b".repeat(490) }, ...ALL)));
  assert.deepEqual([approval.allowedDecisions, approval.description], [["allow-once", "deny"], "b".repeat(490)]);
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
    const [[, request, extra], , [, set, setExtra], [, deleted, deleteExtra]] = calls;
    assert.deepEqual(
      [setExtra, deleteExtra],
      [extra, extra].map(({ signal, ...admin }) => admin),
    );
    assert.ok(
      request.questions[0].isSecret && extra.scopes.includes("operator.admin") && extra.requireAgentRuntimeIdentity,
    );
    assert.match(name, /^[A-Z][A-Z0-9_]+$/);
    assert.deepEqual([set.name, set.value, deleted.name], [name, "-", name]);
  });
}

test("each secret has a name of its own, and is deleted even if it cannot be overwritten", async () => {
  const names = [];
  const deleted = [];
  globalThis.openclaw = {
    callGatewayTool: async (method, _, params) => {
      if (method === "question.request") names.push(params.questions[0].secretStore.name);
      if (method === "secrets.store.set") throw new Error("no");
      if (method === "secrets.store.delete") deleted.push(params.name);
      return { status: "answered" };
    },
    resolveSecretRefValues: async () => new Map([["key", "the value"]]),
  };
  const steps = [...askAndWait(asked({ kind: "secret" })), ...askAndWait(asked({ kind: "secret" }))];
  const { inputs } = reported(await runTool(steps));
  assert.deepEqual(
    inputs.map(({ value }) => value),
    ["the value", "the value"],
  );
  assert.equal(new Set(names).size, 2, `${names}`);
  assert.deepEqual(deleted, names);
});

test("a result names the files and the session, and progress is reported", async () => {
  const updates = [];
  const progress = (payload) => ({ frame: ["run.progress", payload] });
  const steps = [
    progress({ kind: "text", text: "Hi", message_id: "m_1", done: true }),
    progress({ kind: "usage", text: "no" }),
    progress({ kind: "tool", text: "Run x", call_id: "c_1", category: "execute", state: "started" }),
  ];
  const config = { agent: "codex", permissions: { read: "allow" }, sandbox: "workspace", questionTimeoutSeconds: 7 };
  const result = await runTool(steps, {
    config,
    params: { cwd: "sub", session_id: "s0" },
    onUpdate: (update) => updates.push(update.content[0].text),
  });
  const { start, names, args } = reported(result);
  assert.deepEqual(updates, ["Hi", "Run x"]);
  assert.deepEqual(args, ["adhoc", "--output", "json", "--on-eof", "cancel"]);
  assert.deepEqual(result.details.files, ["created a.txt"]);
  assert.deepEqual([result.details.session_id, result.details.usage.output_tokens], ["s1", 5]);
  assert.match(result.content[0].text, /\n\nFiles:\ncreated a\.txt\n\nSession: s1 \(pass it as session_id and codex as agent to/);
  assert.deepEqual([start.agent, start.cwd, start.session_id], ["codex", join(root, "sub"), "s0"]);
  assert.deepEqual(
    [start.permissions, start.sandbox, start.question_timeout_s, start.on_question_timeout],
    [{ read: "allow" }, "workspace", 7, "continue"],
  );
  assert.ok(names.includes("PATH") && !names.includes("OPENCLAW_GATEWAY_TOKEN"));
});

test("a call names its agent, and cannot change the permissions", async () => {
  const params = { agent: "gemini", permissions: "allow", timeout_s: 9, agent_args: ["x"] };
  const { start } = reported(await runTool([], { config: { agent: "codex" }, params }));
  assert.deepEqual([start.agent, start.timeout_s, start.question_timeout_s], ["gemini", 9, 900]);
  assert.ok(!("permissions" in start) && !("agent_args" in start), JSON.stringify(start));
  assert.equal(start.cwd, root);
});

test("a long list of files is cut", async () => {
  const artifacts = Array.from({ length: 60 }, (_, at) => ({ path: `${at}.txt`, action: "created" }));
  const payload = { text: "Done.", session_id: null, artifacts, usage: {}, duration_ms: 1 };
  const result = await runTool([{ frame: ["run.completed", payload] }]);
  assert.match(result.content[0].text, /^Done\.\n\nFiles:\ncreated 0\.txt\n[^]*created 49\.txt\n…$/);
  assert.equal(result.details.files.length, 60);
});

test("an abort is a cancel, then SIGTERM, then SIGKILL", async () => {
  const cancelled = { frame: ["run.cancelled", { session_id: "s9", artifacts: [], usage: {} }] };
  const user = slowUser();
  const controller = new AbortController();
  const cases = [
    [[{ wait: "run.cancel" }, cancelled], /^Error: cancelled: the run was stopped\.\nSession: s9 /],
    [[{ deaf: true }, { forever: true }], /^Error: cancelled: the run was stopped\./],
    [[{ closeStdin: true }, { deaf: true }, { forever: true }], /^Error: cancelled: the run was stopped\./],
    [[{ dead: true }, { forever: true }], /^Error: agent_exited: .*\(SIGKILL\)/],
  ];
  const runs = cases.map(([steps, says], at) => {
    // The question comes last, so that the program is as the case wants it.
    const [last, ...before] = steps.toReversed();
    const all = [...before.toReversed(), { frame: ["run.question", asked({})] }, last];
    const ordered = at === 0 ? [{ frame: ["run.question", asked({})] }, ...steps] : all;
    return assert.rejects(runTool(ordered, { signal: controller.signal, sessionKey: `chat-${at}` }), says);
  });
  await user.until(cases.length);
  controller.abort();
  assert.equal(user.open.length, 0, "a question is still shown");
  await Promise.all(runs);
});

test("a call that is cancelled before it begins starts no task", async () => {
  const cancelled = { frame: ["run.cancelled", { session_id: null, artifacts: [], usage: {} }] };
  const steps = [{ wait: "run.cancel" }, cancelled];
  await assert.rejects(runTool(steps, { signal: AbortSignal.abort() }), /^Error: cancelled: the run was stopped\.$/);
});

test("a failure has its code; a program that dies or is missing has a reason", async () => {
  const failed = { frame: ["run.failed", { code: "rate_limited", message: "Wait.", session_id: "s9" }] };
  await assert.rejects(runTool([failed]), /^Error: rate_limited: Wait\.\nSession: s9 /);
  await assert.rejects(
    runTool([{ stderr: "no such thing" }, { exit: 3 }]),
    /agent_exited: .*exit code 3\)\. no such thing/,
  );
  const fresh = { frame: ["run.progress", { kind: "session", text: "s", session_id: "s9", capabilities: { resume: false } }] };
  await assert.rejects(runTool([fresh, failed]), /^Error: rate_limited: Wait\.$/);
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
  const steps = [...garbage.map((raw) => ({ raw })), ...flood, ...many, { textOf: 5 << 20 }, ...askAndWait(question)];
  let updates = 0;
  const result = await runTool([...steps, ...flood, { pad: 3 << 20 }], { onUpdate: () => updates++ });
  const { inputs, start, pad } = reported(result);
  assert.deepEqual(inputs, [{ question_id: question.question_id, value: "yes" }]);
  assert.equal(updates, many.length, "a frame that is too long is no frame");
  // A result may have 16 times the length of another frame.
  assert.ok(pad.length === 3 << 20 && pad.length < 16 * start.max_frame_bytes);
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

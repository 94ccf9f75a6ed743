// The backend of the plugin between stand-ins.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALL,
  askAndWait,
  asked,
  contextOf,
  gone,
  inputsOf,
  options,
  permission,
  registered,
  runBackend,
  slowUser,
} from "./stand_ins.mjs";

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
    { ...tool("completed"), frame: ["run.progress", { ...tool("completed").frame[1], output: "42" }] },
    progress({ kind: "reasoning", text: "Hm.", message_id: "r_1", done: true }),
    text("m_2", "Bye", false),
    text("m_2", "", true),
    progress({ kind: "heartbeat", text: "" }),
  ];
  const context = { prependContext: "Note.", appendContext: "End." };
  const { records, events } = await runBackend(steps, {
    modelId: "opencode:a/b:c",
    useResume: true,
    sessionId: "s0",
    promptContext: context,
    env: { ...process.env, OF_THE_TURN: "1" },
  });
  const { start, names } = JSON.parse(records.at(-1).frame.payload.text);
  assert.ok(names.includes("PATH") && names.includes("OF_THE_TURN") && !names.includes("OPENCLAW_GATEWAY_TOKEN"));
  assert.ok(start.heartbeat_s <= 30, "OpenClaw ends a silent turn");
  assert.deepEqual(
    [start.agent, start.model, start.session_id, start.progress, start.system_prompt],
    ["opencode", "a/b:c", "s0", "full", "Note.\n\nEnd."],
  );
  assert.deepEqual(events.slice(0, -1), [
    { kind: "sessionId", sessionId: "s1" },
    { kind: "text", text: "Hel" },
    { kind: "text", text: "lo" },
    { kind: "toolStart", toolCallId: "c_1", name: "execute", args: { title: "Run x" } },
    { kind: "toolResult", toolCallId: "c_1", name: "execute", isError: true, result: "denied" },
    { kind: "toolResult", toolCallId: "c_1", name: "execute", isError: false, result: "42" },
    { kind: "thinking", text: "Hm." },
    { kind: "text", text: "\n\nBye" },
  ]);
  const { usage, sessionId } = events.at(-1);
  assert.deepEqual([usage, sessionId], [{ input: 3, output: 5, cacheRead: 7 }, "s1"]);
  assert.deepEqual(
    [records.at(-1).type, records.at(-1).subtype, records.at(-1).is_error],
    ["result", "success", false],
  );
  const failed = await runBackend([{ frame: ["run.failed", { code: "auth_required", message: "Log in." }] }]);
  assert.deepEqual(
    [failed.records.at(-1).subtype, failed.records.at(-1).is_error, failed.events],
    ["error", true, [{ kind: "result", errorText: "auth_required: Log in." }]],
  );
});

test("a session that cannot be resumed has no id, and unknown usage is not zero", async () => {
  const session = { kind: "session", text: "", session_id: "s1", capabilities: { resume: false } };
  const usage = { input_tokens: null, output_tokens: null, cached_input_tokens: null };
  const completed = { text: "Done.", session_id: null, artifacts: [], usage, duration_ms: 1 };
  const steps = [{ frame: ["run.progress", session] }, { frame: ["run.completed", completed] }];
  const { events } = await runBackend(steps);
  const none = { input: undefined, output: undefined, cacheRead: undefined };
  assert.deepEqual(events, [{ kind: "result", text: "Done.", usage: none }]);
  const { records } = await runBackend([], { sessionId: "s0", useResume: false });
  const { start } = JSON.parse(records.at(-1).frame.payload.text);
  assert.ok(!("session_id" in start) && !("model" in start) && !("system_prompt" in start), JSON.stringify(start));
});

test("an abort of a turn is a cancel that takes its question back, and a turn that is left ends its program", async () => {
  const user = slowUser();
  const { runAgentHarnessGatewayQuestion: wait } = globalThis.openclaw;
  const requestUserInput = ({ abortSignal: signal, questions }) => wait({ signal, questions });
  const controller = new AbortController();
  const cancelled = { frame: ["run.cancelled", { session_id: null, artifacts: [], usage: {} }] };
  const steps = [{ frame: ["run.question", asked({})] }, { wait: "run.cancel" }, cancelled];
  const run = runBackend(steps, { requestUserInput, abortSignal: controller.signal });
  await user.until(1);
  controller.abort();
  assert.equal(user.open.length, 0, "the question is still shown");
  const { records, events } = await run;
  assert.deepEqual([records.at(-1).type, records.at(-1).is_error], ["result", true]);
  assert.deepEqual(events, [{ kind: "result", errorText: "cancelled: the run was stopped." }]);

  const { execute } = await registered().backend.prepareExecution();
  const turn = execute(contextOf([{ pid: true }, { forever: true }]));
  const pid = Number((await turn.next()).value.frame.payload.text);
  await turn.return();
  await gone(pid);
});

test("the backend asks by OpenClaw's input request, one question at a time, and declines a secret", async () => {
  const requests = [];
  const requestUserInput = async (request) => (
    requests.push(request),
    { status: "answered", answers: { [request.questions[0].id]: ["B"] } }
  );
  const choice = asked({ kind: "select", options: options("A", "B") });
  const questions = [choice, asked({ kind: "secret" }), { ...choice, attempt: 2, error: "Choose one." }];
  const inputs = inputsOf(await runBackend(questions.flatMap(askAndWait), { requestUserInput }));
  assert.deepEqual(
    inputs.map(({ value, declined }) => [value, declined]),
    [
      ["B", undefined],
      [undefined, true],
      ["B", undefined],
    ],
  );
  const id = choice.question_id;
  assert.deepEqual(
    requests.map(({ questions }) => [questions[0].id, questions[0].question]),
    [
      [`${id}_1`, "Well?"],
      [`${id}_2`, "Choose one.\nWell?"],
    ],
  );

  const user = slowUser();
  const { runAgentHarnessGatewayQuestion: wait } = globalThis.openclaw;
  const slow = ({ abortSignal: signal, questions }) => wait({ signal, questions }).then(inner);
  const inner = ({ status, answers }) => ({ status, answers: answers?.answers });
  const group = ["First?", "Second?"].map((text) => ({ frame: ["run.question", asked({ text })] }));
  const run = runBackend([...group, { wait: "run.input" }, { wait: "run.input" }], { requestUserInput: slow });
  for (const text of ["First?", "Second?"]) {
    const [{ request, answer }] = await user.until(1);
    assert.deepEqual([user.open.length, request.questions[0].question], [1, text]);
    answer(text);
  }
  assert.equal(inputsOf(await run).length, 2);
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
  const steps = askAndWait(permission({ title: "Run y", detail: "y" }, "deny"));
  assert.equal(inputsOf(await runBackend(steps, decide(allow)))[0].value, "deny", "it was not offered");
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

test("the backend takes back a permission that is over", async () => {
  const question = permission({}, ...ALL);
  const over = { kind: "question_resolved", text: "", question_id: question.question_id, resolution: "withdrawn" };
  let signal;
  const requestToolPermission = ({ abortSignal }) => (
    (signal = abortSignal),
    new Promise((_, fail) => signal.addEventListener("abort", () => fail(new Error("aborted"))))
  );
  const steps = [{ frame: ["run.question", question] }, { frame: ["run.progress", over] }];
  assert.deepEqual(inputsOf(await runBackend(steps, { requestToolPermission })), []);
  assert.equal(signal.aborted, true);
});

// The plugin in a real gateway: the tool and the backend in chats, with a scripted model and a scripted agent.
// Environment: that of gateway.mjs.
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { connect, note, printedParts, running, startGateway, textOf } from "./gateway.mjs";
import { startModel } from "./model.mjs";

const KEY = "correct-horse-4711-battery";
const home = mkdtempSync(join(tmpdir(), "openclaw-"));
const pids = join(home, "pids");
let model;
let gateway;
let chat;
let messages = 0;

before(async () => {
  for (const folder of ["bin", "pids", "tmp"]) mkdirSync(join(home, folder));
  copyFileSync(new URL("agent.mjs", import.meta.url), join(home, "bin/claude"));
  chmodSync(join(home, "bin/claude"), 0o755);
  model = await startModel();
  const [tool, backend] = printedParts();
  gateway = await startGateway({
    home,
    model,
    env: {
      PATH: [join(home, "bin"), process.env.PATH].join(delimiter),
      TMPDIR: join(home, "tmp"),
      AGENT_PIDS: pids,
      EXPECTED_ANSWER: KEY,
    },
    config: (workspace) => ({
      ...tool,
      ...backend,
      agents: {
        defaults: { model: "stub/scripted", models: { "stub/scripted": {}, ...backend.agents.defaults.models } },
        entries: { main: { workspace }, ...backend.agents.entries },
      },
    }),
  });
  const dead = gateway.exit.then((code) =>
    Promise.reject(new Error(`the gateway exits with ${code}: ${gateway.output()}`)),
  );
  chat = await Promise.race([connect(gateway), dead]);
  dead.catch(() => {});
  note("", "the gateway is ready");
});

after(async () => {
  gateway?.child.kill("SIGKILL");
  model?.server.closeAllConnections();
  model?.server.close();
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  // The client keeps trying to connect to the gateway.
  setTimeout(() => process.exit(), 500).unref();
});

async function gone() {
  for (let tries = 0; running(pids).length > 0; tries++) {
    assert.ok(tries < 200, `the agent still runs: ${running(pids)}`);
    await new Promise((done) => setTimeout(done, 50)); // No event announces another program's child.
  }
}

async function say(message, sessionKey) {
  note("user", message);
  await chat.client.request("chat.send", { sessionKey, message, idempotencyKey: `m${++messages}` });
}

const TOOL = "agent:main:main";
const BACKEND = "agent:coder:main";
const call = (args) => `CALL ${JSON.stringify(args)}`;
const wanted = (name, sessionKey) => (payload, event) =>
  event === name && (payload.sessionKey ?? payload.request?.sessionKey) === sessionKey;

async function question(sessionKey, from) {
  const { payload } = await chat.until("a question", wanted("question.requested", sessionKey), from);
  const [{ question, options, isSecret }] = payload.questions;
  note(
    "question",
    `${question.replaceAll("\n", " / ")}${isSecret ? " (masked)" : ` [${options.map(({ label }) => label).join(", ")}]`}`,
  );
  return payload;
}

async function approval(sessionKey, from, decision) {
  const { payload } = await chat.until("an approval", wanted("plugin.approval.requested", sessionKey), from);
  note("approval", `${payload.request.title} | ${payload.request.description} | ${payload.request.allowedDecisions}`);
  note("user", `(decides) ${decision}`);
  await chat.client.request("plugin.approval.resolve", { id: payload.id, decision });
  return payload.request;
}

/** The next answer in a chat. A message that answered a question ends its own turn without text. */
async function final(sessionKey, from, state = "final") {
  const fits = (payload, event) =>
    wanted("chat", sessionKey)(payload, event) && payload.state === state && (state !== "final" || payload.message);
  const { payload } = await chat.until(`the state ${state}`, fits, from);
  const text = textOf(payload) || payload.errorMessage || "";
  // With a tool search, the answer is the result of the tool as JSON.
  const inner = text.startsWith("{") ? JSON.parse(text).result.content[0].text : text;
  note("openclaw", `${inner.replaceAll("\n", " / ")} (${state})`);
  return inner;
}

test("the tool: a question is answered by 2, and a permission is an approval", async () => {
  const from = chat.events.length;
  await say(call({ prompt: "ask run" }), TOOL);
  const asked = await question(TOOL, from);
  assert.deepEqual(
    asked.questions[0].options.map(({ label }) => label),
    ["Postgres", "SQLite", "MySQL"],
  );
  await say("2", TOOL);
  const request = await approval(TOOL, from, "allow-once");
  assert.match(request.title, /for i in 1 2/);
  assert.ok(request.description.startsWith("for i in 1 2; do touch made-$i.txt; done"), request.description);
  const answer = await final(TOOL, from);
  assert.match(answer, /You chose SQLite\. The command was allowed\.[^]*Session: 5f0c1a52-\S+ \(pass it as session_id/);
  await gone();
});

test("the tool: more than four options are a numbered list", async () => {
  const from = chat.events.length;
  await say(call({ prompt: "many" }), TOOL);
  const asked = await question(TOOL, from);
  assert.match(asked.questions[0].question, /\n1\. Red - Red\.\n[^]*\n6\. Violet/);
  await say("1, violet", TOOL);
  assert.match(await final(TOOL, from), /You chose Red, Violet\./);
});

test("the tool: a secret is masked, reaches the agent, and is nowhere afterwards", async () => {
  const from = chat.events.length;
  await say(call({ prompt: "secret" }), TOOL);
  const asked = await question(TOOL, from);
  assert.equal(asked.questions[0].isSecret, true);
  note("user", "(types the key into the masked prompt)");
  await chat.client.request("question.resolve", { id: asked.id, answers: { answers: { secret_value: [KEY] } } });
  assert.match(await final(TOOL, from), /I have the right key\./);
  assert.ok(!gateway.output().includes(KEY) && !JSON.stringify(model.requests).includes(KEY));
  assert.ok(!JSON.stringify(chat.events.filter(({ event }) => event !== "question.resolved")).includes(KEY));
});

test("the tool: two chats at once have a question each", async () => {
  const from = chat.events.length;
  const other = "agent:main:other";
  for (const sessionKey of [TOOL, other]) await say(call({ prompt: "ask" }), sessionKey);
  for (const sessionKey of [TOOL, other]) await question(sessionKey, from);
  await say("1", other);
  await say("2", TOOL);
  assert.match(await final(other, from), /You chose Postgres\./);
  assert.match(await final(TOOL, from), /You chose SQLite\./);
});

test("the tool: a cancel ends the agent and takes the question back", async () => {
  const from = chat.events.length;
  await say(call({ prompt: "ask" }), TOOL);
  const asked = await question(TOOL, from);
  note("user", "(cancels)");
  await chat.client.request("chat.abort", { sessionKey: TOOL });
  await chat.until(
    "the end of the question",
    (payload, event) => event === "question.resolved" && payload.id === asked.id && payload.status === "cancelled",
    from,
  );
  note("openclaw", "(the question is withdrawn)");
  await gone();
  note("", "the agent is gone");
});

test("the tool: a second task continues the session, and a failure has a code", async () => {
  let from = chat.events.length;
  await say(call({ prompt: "go on", session_id: "5f0c1a52-6b1e-4c8a-9d1e-0123456789ab" }), TOOL);
  assert.match(await final(TOOL, from), /I go on in our session\./);
  from = chat.events.length;
  await say(call({ prompt: "go on", agent: "cluade" }), TOOL);
  const end = (payload, event) => wanted("chat", TOOL)(payload, event) && payload.state === "final" && payload.message;
  const { payload } = await chat.until("the answer", end, from);
  assert.match(textOf(payload), /invalid_request: .*Did you mean claude\?/);
  note("openclaw", textOf(payload).match(/invalid_request: [^"\\]*/)[0]);
});

test("the backend: the text streams, questions and permissions are asked, and the next message resumes", async () => {
  let from = chat.events.length;
  await say("stream ask run", BACKEND);
  await question(BACKEND, from);
  const deltas = chat.events
    .slice(from)
    .filter(({ payload, event }) => wanted("chat", BACKEND)(payload, event) && payload.state === "delta");
  deltas.forEach(({ payload }) => note("(streams)", textOf(payload)));
  assert.ok(
    deltas.length >= 2 && textOf(deltas[0].payload).length < "First piece, second piece, third piece.".length,
    JSON.stringify(deltas),
  );
  await say("2", BACKEND);
  const request = await approval(BACKEND, from, "deny");
  assert.ok(!request.title.includes("native tool: Bash"), request.title);
  assert.match(request.description, /for i in 1 2; do touch/);
  assert.match(await final(BACKEND, from), /You chose SQLite\. The command was denied\./);
  from = chat.events.length;
  await say("go on", BACKEND);
  assert.match(await final(BACKEND, from), /I go on in our session\./);
  await gone();
});

test("the backend: a cancel ends the agent", async () => {
  const from = chat.events.length;
  await say("hang", BACKEND);
  await chat.until(
    "text",
    (payload, event) => wanted("chat", BACKEND)(payload, event) && textOf(payload).includes("I work for ever."),
    from,
  );
  note("user", "(cancels)");
  await chat.client.request("chat.abort", { sessionKey: BACKEND });
  await gone();
  note("", "the agent is gone");
});

test("a killed gateway leaves no agent and no secret, and nothing wanted to leave the machine", async () => {
  const from = chat.events.length;
  await say(call({ prompt: "hang" }), TOOL);
  await chat.until(
    "the tool",
    (payload, event) => event === "agent" && JSON.stringify(payload).includes("update"),
    from,
  );
  while (running(pids).length === 0) await new Promise((done) => setTimeout(done, 50)); // No event announces another program's child.
  gateway.child.kill("SIGKILL");
  await gateway.exit;
  note("", "the gateway is killed");
  await gone();
  note("", "the agent is gone");
  // The journal of the database holds the secret until SQLite reuses it.
  const database = new DatabaseSync(join(home, ".openclaw/state/openclaw.sqlite"));
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
  const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const holders = files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(KEY));
  assert.deepEqual(holders, []);
  assert.deepEqual(model.strays, []);
});

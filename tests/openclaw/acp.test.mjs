// `spektacular acp` behind the ACP runtime of a real gateway, with a scripted agent and the printed configuration.
// Environment: that of gateway.mjs, and ACPX (the installed package).
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect, note, printedParts, running, startGateway, textOf } from "./gateway.mjs";
import { startModel } from "./model.mjs";

const CHAT = "agent:main:main";
const home = mkdtempSync(join(tmpdir(), "openclaw-acp-"));
const pids = join(home, "pids");
let model;
let gateway;
let chat;
let messages = 0;

before(async () => {
  for (const folder of ["bin", "coder", "pids", "tmp"]) mkdirSync(join(home, folder));
  copyFileSync(new URL("agent.mjs", import.meta.url), join(home, "bin/claude"));
  chmodSync(join(home, "bin/claude"), 0o755);
  model = await startModel();
  const [, , acp] = printedParts();
  acp.agents.entries.spektacular.workspace = join(home, "coder");
  gateway = await startGateway({
    home,
    model,
    env: {
      PATH: [join(home, "bin"), process.env.PATH].join(delimiter),
      TMPDIR: join(home, "tmp"),
      AGENT_PIDS: pids,
      ACPX: process.env.ACPX,
    },
    config: (workspace) => ({
      ...acp,
      plugins: { ...acp.plugins, load: { paths: [fileURLToPath(new URL("acpx", import.meta.url))] } },
      agents: {
        defaults: { model: "stub/scripted", models: { "stub/scripted": {} } },
        entries: { main: { workspace }, ...acp.agents.entries },
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

async function until(what, holds) {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 400, `waited in vain for ${what}`);
    await new Promise((done) => setTimeout(done, 50)); // No event announces another program's child.
  }
}

async function say(message) {
  note("user", message);
  await chat.client.request("chat.send", { sessionKey: CHAT, message, idempotencyKey: `m${++messages}` });
}

/** The next answer in the chat fits. */
async function answer(pattern, from) {
  const fits = (payload, event) => event === "chat" && payload.state === "final" && payload.message;
  const text = textOf((await chat.until(`the answer ${pattern}`, fits, from)).payload);
  note("openclaw", text.replaceAll("\n", " / "));
  assert.match(text, pattern);
}

/** The next question: `{ id, questionId, question, options }`. A failure of the turn fails the test. */
async function question(from) {
  const isEnd = (payload, event) => event === "question.requested" || (event === "chat" && payload.state === "error");
  const { payload } = await chat.until("a question", isEnd, from);
  assert.equal(payload.errorMessage, undefined);
  assert.match(payload.sessionKey, /^agent:spektacular:acp:/);
  const asked = payload.questions[0];
  const labels = (asked.options ?? []).map(({ label }) => label);
  note("question", `${asked.question.replaceAll("\n", " / ")} [${labels.join(", ")}]`);
  return { id: payload.id, ...asked };
}

async function resolve({ id, questionId }, text) {
  note("user", `(answers) ${text}`);
  await chat.client.request("question.resolve", { id, answers: { answers: { [questionId]: [text] } } });
}

async function abort(from) {
  note("user", "(cancels)");
  await chat.client.request("chat.abort", { sessionKey: CHAT });
  await chat.until("the abort", (payload, event) => event === "chat" && payload.state === "aborted", from);
  note("openclaw", "(aborted)");
}

test("a question is answered, a permission is denied by the policy, and a further message works", async () => {
  let from = chat.events.length;
  await say("/acp spawn spektacular --bind here");
  await answer(/Spawned[^]*spektacular/i, from);
  from = chat.events.length;
  await say("ask run");
  const asked = await question(from);
  // OpenClaw shows the fields of a form and not its message, so the question stands in the field.
  assert.match(asked.question, /Which database\?/);
  assert.deepEqual(
    asked.options.map(({ label }) => label),
    ["Postgres", "SQLite", "MySQL"],
  );
  from = chat.events.length;
  await resolve(asked, "SQLite");
  await answer(/You chose SQLite\. The command was denied\./, from);
  from = chat.events.length;
  await say("once more");
  await answer(/Done\./, from);
});

test("more than four options are text, and the next message answers", async () => {
  let from = chat.events.length;
  await say("many");
  await answer(/Which colours\?[^]*\n6\. Violet: Violet\.\n[^]*Answer with numbers/, from);
  from = chat.events.length;
  await say("1, violet");
  await answer(/You chose Red, Violet\./, from);
});

test("a cancel takes the question back, and the next message works", async () => {
  let from = chat.events.length;
  await say("ask");
  const asked = await question(from);
  await abort(from);
  const isEnd = ({ id, status }, event) => event === "question.resolved" && id === asked.id && status === "cancelled";
  await chat.until("the end of the question", isEnd, from);
  from = chat.events.length;
  await say("once more");
  await answer(/Done\./, from);
});

test("a cancel ends the turn, and the next message works", async () => {
  let from = chat.events.length;
  await say("hang");
  const works = ({ data }, event) => event === "agent" && data.eventType === "text_delta";
  await chat.until("the agent's text", works, from);
  await abort(from);
  from = chat.events.length;
  await say("once more");
  await answer(/Done\./, from);
});

test("a killed gateway leaves no agent, and nothing wanted to leave the machine", async () => {
  assert.equal(running(pids).length, 1);
  gateway.child.kill("SIGKILL");
  await gateway.exit;
  note("", "the gateway is killed");
  await until("the end of the agent", () => running(pids).length === 0);
  note("", "the agent is gone");
  assert.deepEqual(model.strays, []);
});

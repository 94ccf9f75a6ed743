// A client made with acpx/runtime, as a program embeds it: a question as a form, a permission by the runtime's policy and
// one by a callback, a cancel, and a prompt after it. Prints the findings as JSON.
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const { PACKAGES, PROGRAM, AGENT, HOME } = process.env;
const { createAcpRuntime, createFileSessionStore } = await import(`${PACKAGES}/acpx/dist/runtime.js`);

const runtime = createAcpRuntime({
  cwd: process.cwd(),
  sessionStore: createFileSessionStore({ stateDir: `${HOME}/acpx` }),
  agentRegistry: { resolve: () => [PROGRAM, "acp", "--agent", AGENT], list: () => ["spektacular"] },
  permissionMode: "approve-reads",
  nonInteractivePermissions: "deny",
  elicitationModes: ["form"],
});
const handle = await runtime.ensureSession({ sessionKey: "tests", agent: "spektacular", mode: "persistent" });
const forms = [];
const asked = [];

/** Starts a turn. `done` has its result, and its text as `said`. */
function start(requestId, more = {}) {
  const turn = runtime.startTurn({
    handle,
    text: requestId,
    mode: "prompt",
    requestId,
    onElicitation: async (request) => {
      forms.push(request);
      return { action: "accept", content: { answer: "SQLite" } };
    },
    ...more,
  });
  const read = async () => {
    let said = "";
    for await (const event of turn.events) if (event.type === "text_delta" && event.stream !== "thought") said += event.text;
    return { ...(await turn.result), said };
  };
  return { turn, done: read() };
}

const first = await start("Store the data.").done;
const work = start("Work.", {
  onPermissionRequest: async ({ raw }) => {
    asked.push(raw.toolCall.title);
    return { outcome: "allow_once" };
  },
});
while (!existsSync("at_work")) await setTimeout(20); // No event announces a file of the agent.
await work.turn.cancel();
const cancelled = await work.done;
const again = await start("Are you there?").done;
await runtime.close({ handle, reason: "done" });
await runtime.shutdown();
console.log(JSON.stringify({ first, cancelled, again, forms, asked }));

// Stand-ins for OpenClaw and spektacular around the plugin. PLUGIN: the folder of the plugin.
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

// OpenClaw: the plugin finds the package above its own folder, as a loaded plugin does.
export const root = mkdtempSync(join(tmpdir(), "plugin-"));
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
export const program = join(root, "program.mjs");
cpSync(command, program);
chmodSync(program, 0o755);
export const { default: plugin } = await import(pathToFileURL(join(root, "plugin/index.js")).href);

// The gateway has variables that no agent may have.
process.env.OPENCLAW_GATEWAY_TOKEN = "made-up";

/** The plugin as OpenClaw has it after `register`. */
export function registered(config = {}, warnings = []) {
  const found = {};
  plugin.register({
    pluginConfig: { command: program, ...config },
    logger: { warn: (text) => warnings.push(text) },
    registerTool: (factory, options) => Object.assign(found, { factory, options }),
    registerCliBackend: (backend) => Object.assign(found, { backend }),
  });
  return found;
}

/** Runs the tool with these steps of the program. `warnings`: receives the lines of the log. */
export async function runTool(steps, more = {}) {
  const { config, sessionKey = "chat-1", signal, params = {}, onUpdate, delivery, warnings = [] } = more;
  const found = registered(config, warnings);
  const tool = found.factory({
    sessionKey,
    agentId: "main",
    workspaceDir: root,
    deliveryContext: { channel: "c", to: "t" },
    delivery,
  });
  return tool.execute("call-1", { prompt: JSON.stringify(steps), ...params }, signal, onUpdate);
}

export const reported = (result) => JSON.parse(result.content[0].text.split("\n\nFiles:")[0]);
let ids = 0;
export const asked = (fields) => ({
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
export const options = (...labels) => labels.map((label) => ({ value: label.toLowerCase(), label }));
export const askAndWait = (question) => [{ frame: ["run.question", question] }, { wait: "run.input" }];

/** Answers the question of the gateway like a user who gives these answers; undefined: the user skips it. */
export function userSays(answers) {
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

/** A user who answers when told to. `open`: the questions that wait, with the functions that answer them. */
export function slowUser() {
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

export const permission = (subject, ...values) =>
  asked({
    purpose: "permission",
    kind: "select",
    subject: { category: "execute", title: "Run x", detail: "x", locations: [], ...subject },
    options: values.map((value) => ({ value, label: value === "allow_always" ? "Allow x for this run" : value })),
  });
export const ALL = ["allow_once", "allow_always", "deny"];

/** The context of a turn of the backend with these steps. */
export const contextOf = (steps, more = {}) => ({
  command: program,
  args: [],
  cwd: root,
  env: process.env,
  prompt: JSON.stringify(steps),
  modelId: "claude",
  useResume: false,
  timeoutMs: 1000,
  ...more,
});

/** Runs the backend with these steps. Returns its records and OpenClaw's events for them. */
export async function runBackend(steps, more) {
  const { backend } = registered();
  const { execute } = await backend.prepareExecution();
  const records = [];
  for await (const record of execute(contextOf(steps, more))) records.push(record);
  return { records, events: records.flatMap((record) => backend.parseJsonlEvent(JSON.stringify(record))) };
}

export const inputsOf = ({ records }) => JSON.parse(records.at(-1).frame.payload.text).inputs;

/** Resolves when a process is gone. No event announces the end of another program's child. */
export async function gone(pid) {
  const isRunning = () => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  while (isRunning()) await new Promise((done) => setTimeout(done, 20));
}

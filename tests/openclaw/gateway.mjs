// A real OpenClaw gateway on loopback, in an empty home, and a client of it. Environment: OPENCLAW (the installed package),
// SETUP (what `spektacular integrate openclaw` printed), TRANSCRIPT (a file; optional).
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const OPENCLAW = process.env.OPENCLAW;
const TOKEN = "made-up-token-of-a-gateway";

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

const started = Date.now();

/** Adds a line to the transcript. */
export function note(who, text) {
  const line = `${((Date.now() - started) / 1000).toFixed(1).padStart(6)}  ${who.padEnd(9)} ${text}\n`;
  if (process.env.TRANSCRIPT) appendFileSync(process.env.TRANSCRIPT, line);
}

/** The parts of the printed configuration, as a user pastes them: the tool, the backend, and ACP. */
export const printedParts = () =>
  [...process.env.SETUP.matchAll(/^\{[^]*?\n(?=\n)/gm)].map(([part]) => JSON.parse(part));

/** The agents that still run. `pids`: the folder into which each writes its process id. */
export const running = (pids) =>
  readdirSync(pids)
    .map(Number)
    .filter((pid) => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    });

/** The text of an event of a chat. */
export const textOf = ({ message }) => (message?.content ?? []).map((part) => part.text ?? "").join("");

/** Starts a gateway with these parts of a configuration beside its own. */
export async function startGateway({ home, model, config, env = {}, log }) {
  const port = await freePort();
  const state = join(home, ".openclaw");
  mkdirSync(join(home, "workspace"), { recursive: true });
  mkdirSync(state, { recursive: true });
  const provider = {
    baseUrl: `${model.url}/v1`,
    apiKey: "made-up-key",
    api: "openai-completions",
    models: [
      {
        id: "scripted",
        name: "Scripted",
        reasoning: false,
        input: ["text"],
        contextWindow: 200000,
        maxTokens: 8000,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      },
    ],
  };
  const own = {
    gateway: { mode: "local", port, bind: "loopback", auth: { mode: "token", token: TOKEN } },
    update: { checkOnStart: false },
    logging: { file: join(home, "gateway.log") },
    models: { providers: { stub: provider } },
  };
  writeFileSync(join(state, "openclaw.json"), JSON.stringify({ ...own, ...config(join(home, "workspace")) }, null, 2));
  const child = spawn(process.execPath, [join(OPENCLAW, "openclaw.mjs"), "gateway"], {
    cwd: home,
    env: {
      HOME: home,
      PATH: process.env.PATH,
      OPENCLAW_DISABLE_BONJOUR: "1",
      OPENCLAW_EXEC_SHELL_SNAPSHOT: "0",
      OPENCLAW_NO_RESPAWN: "1",
      OPENCLAW_SKIP_CHANNELS: "1",
      // What wants to leave the machine reaches the model, which refuses and counts it.
      HTTP_PROXY: model.url,
      HTTPS_PROXY: model.url,
      NO_PROXY: "127.0.0.1,localhost",
      NODE_USE_ENV_PROXY: "1",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output = (output + text).slice(-200_000);
      log?.(text);
    });
  }
  const exit = new Promise((done) => child.once("exit", done));
  return { child, port, exit, output: () => output };
}

/** Connects a client as the user's chat. `events`: all that came, in order. */
export async function connect(gateway, { caps = ["approvals", "plugin-approvals"] } = {}) {
  const module = join(OPENCLAW, "dist/plugin-sdk/gateway-runtime.js");
  const { GatewayClient } = await import(pathToFileURL(module).href);
  const events = [];
  const waiting = new Set();
  const notify = () => waiting.forEach((look) => look());
  let failure;
  const connected = await new Promise((done) => {
    const open = (tries) => {
      let isOpen = false;
      const client = new GatewayClient({
        url: `ws://127.0.0.1:${gateway.port}`,
        token: TOKEN,
        clientName: "gateway-client",
        clientDisplayName: "a chat",
        mode: "backend",
        role: "operator",
        scopes: ["operator.admin", "operator.read", "operator.write", "operator.approvals"],
        caps,
        onHelloOk: () => {
          isOpen = true;
          done(client);
        },
        onConnectError: (error) => (failure = error),
        onEvent: (event) => {
          events.push({ at: Date.now(), ...event });
          notify();
        },
      });
      client.start();
    };
    open();
  });
  /** The first event from `from` on that fits. Fails after the limit with what came. */
  const until = (what, fits, from = 0, limitS = Number(process.env.TEST_WAIT_S ?? 60) * 3) =>
    new Promise((done, fail) => {
      const look = () => {
        const found = events.slice(from).find((event) => fits(event.payload ?? {}, event.event));
        if (!found) return;
        waiting.delete(look);
        clearTimeout(timer);
        done(found);
      };
      const timer = setTimeout(() => {
        waiting.delete(look);
        const came = events
          .slice(from)
          .map((event) => JSON.stringify(event).slice(0, 300))
          .join("\n");
        fail(
          new Error(
            `waited for ${what} for ${limitS} s in vain. Came:\n${came}\nThe gateway printed:\n${gateway.output().slice(-4000)}`,
          ),
        );
      }, limitS * 1000);
      waiting.add(look);
      look();
    });
  return { client: connected, events, until, failure: () => failure };
}

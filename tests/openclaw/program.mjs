#!/usr/bin/env node
// Stands in for spektacular. The prompt is a list of steps as JSON; `received` in the text of run.completed is what came
// on stdin, `names` the variables of the environment, and `args` the command line.
import { createInterface } from "node:readline";

const received = [];
const waiting = new Set();
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const message = JSON.parse(line);
  received.push(message);
  for (const look of [...waiting]) look();
});
const came = (type) =>
  new Promise((done) => {
    const look = () => {
      const message = received.find((message) => message.type === type && !message.isTaken);
      if (!message) return;
      message.isTaken = true;
      waiting.delete(look);
      done();
    };
    waiting.add(look);
    look();
  });
const write = (text) => new Promise((done) => process.stdout.write(text, done));
const send = (type, payload) => write(`${JSON.stringify({ v: "1", type, payload })}\n`);
const end = {
  session_id: "s1",
  artifacts: [{ path: "a.txt", action: "created" }],
  usage: { input_tokens: 10, output_tokens: 5, cached_input_tokens: 7 },
  duration_ms: 1,
};

const STEPS = {
  frame: ([type, payload]) => send(type, payload),
  raw: (text) => write(text),
  flood: (bytes) => write(`${"x".repeat(bytes)}\n`),
  textOf: (bytes) => send("run.progress", { kind: "text", text: "x".repeat(bytes), message_id: "m", done: true }),
  pad: (bytes) => void (pad = "x".repeat(bytes)),
  pid: () => send("run.progress", { kind: "text", text: `${process.pid}`, message_id: "pid", done: true }),
  closeStdin: () => {
    lines.close();
    process.stdin.destroy();
  },
  wait: (type) => came(type),
  stderr: (text) => new Promise((done) => process.stderr.write(text, done)),
  exit: (code) => process.exit(code),
  deaf: () =>
    process.on("SIGTERM", () =>
      send("run.cancelled", { ...end, reason: null, source: "signal" }).then(() => process.exit(0)),
    ),
  dead: () => process.on("SIGTERM", () => {}),
  forever: () => new Promise(() => setInterval(() => {}, 1000)),
};

let pad = "";
await came("run.start");
const { payload: start } = received[0];
for (const step of JSON.parse(start.prompt)) {
  const [[name, value]] = Object.entries(step);
  await STEPS[name](value);
}
const inputs = received.filter(({ type }) => type === "run.input").map(({ payload }) => payload);
await send("run.completed", {
  ...end,
  text: JSON.stringify({
    start: { ...start, prompt: "" },
    inputs,
    names: Object.keys(process.env),
    args: process.argv.slice(2),
    pad,
  }),
});
process.exit(0);

#!/usr/bin/env node
// A coding agent that does as it is told, with Claude Code's stream-json. Its prompts are words: each does one thing.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

if (process.argv.includes("--version")) {
  console.log("2.1.330 (Claude Code)");
  process.exit(0);
}
if (process.env.AGENT_PIDS) writeFileSync(join(process.env.AGENT_PIDS, `${process.pid}`), "");
const SESSION = "5f0c1a52-6b1e-4c8a-9d1e-0123456789ab";
const resumed = process.argv.some((arg) => arg.startsWith("--resume"));
const isFull = process.argv.includes("--include-partial-messages");
const out = (line) => process.stdout.write(`${JSON.stringify({ ...line, session_id: SESSION })}\n`);
const usage = { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 7, output_tokens: 5 };
const INTERRUPTED = Symbol("interrupted");
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let count = 0;
let working = false;

async function receive(wanted) {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) process.exit(0);
    const line = JSON.parse(value);
    if (line.type === wanted) return line;
    if (line.type === "control_request") {
      out({ type: "control_response", response: { subtype: "success", request_id: line.request_id } });
      if (line.request.subtype === "end_session") process.exit(0);
      if (line.request.subtype === "interrupt" && working) {
        out({
          type: "result",
          subtype: "error_during_execution",
          is_error: true,
          terminal_reason: "aborted_streaming",
          num_turns: 1,
          usage,
          permission_denials: [],
        });
        throw INTERRUPTED;
      }
    }
  }
}

function assistant(id, block) {
  const message = { id, type: "message", role: "assistant", model: "claude-opus-5-5", content: [block], usage };
  out({ type: "assistant", parent_tool_use_id: null, message });
}

async function say(...pieces) {
  const id = `msg_${++count}`;
  const event = (event) => isFull && out({ type: "stream_event", event, parent_tool_use_id: null });
  event({
    type: "message_start",
    message: { id, type: "message", role: "assistant", model: "claude-opus-5-5", content: [] },
  });
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  for (const text of pieces) {
    event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
    // OpenClaw joins pieces that come at once.
    await new Promise((done) => setTimeout(done, 300));
  }
  assistant(id, { type: "text", text: pieces.join("") });
  event({ type: "content_block_stop", index: 0 });
  event({ type: "message_stop" });
}

/** Calls a tool, asks for permission, and returns the answer. */
async function ask(tool_name, input) {
  const tool_use_id = `toolu_${++count}`;
  assistant(`msg_${tool_use_id}`, { type: "tool_use", id: tool_use_id, name: tool_name, input });
  out({
    type: "control_request",
    request_id: `req_${count}`,
    request: { subtype: "can_use_tool", tool_name, input, tool_use_id },
  });
  const { response } = await receive("control_response");
  const content = [
    { type: "tool_result", tool_use_id, content: "done", is_error: response.response.behavior !== "allow" },
  ];
  out({ type: "user", parent_tool_use_id: null, message: { role: "user", content } });
  return response.response;
}

/** Asks by the host's own MCP server, and returns the text of its answer. */
async function askUser(question) {
  const { mcpServers } = JSON.parse(process.argv.find((arg) => arg.startsWith("--mcp-config=")).slice(13));
  const request = async (id, method, params) => {
    const message = { jsonrpc: "2.0", id, method, params };
    out({
      type: "control_request",
      request_id: `mcp_${++count}`,
      request: { subtype: "mcp_message", server_name: Object.keys(mcpServers)[0], message },
    });
    return (await receive("control_response")).response.response.mcp_response;
  };
  await request(1, "initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "agent", version: "1" },
  });
  const { result } = await request(2, "tools/call", { name: "ask_user", arguments: { questions: [question] } });
  return result.content.map((part) => part.text).join("");
}

const choice = (question, labels, multiSelect = false) => ({
  question,
  header: "Choice",
  multiSelect,
  options: labels.map((label) => ({ label, description: `${label}.` })),
});

const DEEDS = {
  async ask() {
    const { updatedInput } = await ask("AskUserQuestion", {
      questions: [choice("Which database?", ["Postgres", "SQLite", "MySQL"])],
    });
    return `You chose ${Object.values(updatedInput?.answers ?? {}).join(" and ")}.`;
  },
  async many() {
    const labels = ["Red", "Orange", "Yellow", "Green", "Blue", "Violet"];
    const { updatedInput } = await ask("AskUserQuestion", { questions: [choice("Which colours?", labels, true)] });
    return `You chose ${Object.values(updatedInput?.answers ?? {}).join(" and ")}.`;
  },
  async run() {
    const { behavior } = await ask("Bash", { command: "for i in 1 2; do touch made-$i.txt; done" });
    return `The command was ${behavior === "allow" ? "allowed" : "denied"}.`;
  },
  async secret() {
    const text = await askUser({ question: "The API key?", header: "Key", kind: "secret" });
    return text.includes(process.env.EXPECTED_ANSWER) ? "I have the right key." : `I have no key: ${text}`;
  },
  async stream() {
    await say("First piece, ", "second piece, ", "third piece.");
    return "Three pieces.";
  },
  async hang() {
    await say("I work for ever.");
    return receive("never");
  },
};

/** One turn. */
async function turn() {
  const { message } = await receive("user");
  working = true;
  const text =
    typeof message.content === "string" ? message.content : message.content.map((part) => part.text).join("");
  out({
    type: "system",
    subtype: "init",
    cwd: process.cwd(),
    tools: ["AskUserQuestion", "Bash"],
    model: "claude-opus-5-5",
    permissionMode: "default",
    claude_code_version: "2.1.330",
  });
  const said = [];
  if (resumed) said.push("I go on in our session.");
  for (const word of text.split(/\W+/)) if (Object.hasOwn(DEEDS, word)) said.push(await DEEDS[word]());
  const result = said.filter(Boolean).join(" ") || "Done.";
  await say(result);
  out({
    type: "result",
    subtype: "success",
    is_error: false,
    num_turns: 1,
    result,
    stop_reason: "end_turn",
    usage,
    permission_denials: [],
  });
}

for (;;) {
  await turn().catch((error) => {
    // As with Claude Code, an interrupt ends the turn alone.
    if (error !== INTERRUPTED) throw error;
  });
  working = false;
}

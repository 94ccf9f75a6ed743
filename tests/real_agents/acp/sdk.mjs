// A client made with the official SDK, which checks each message by the schema of the protocol. It opens two sessions:
// one writes a file, the other works until it is cancelled, and then the first goes on. Prints the findings as JSON.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { Readable, Writable } from "node:stream";

const { PACKAGES, PROGRAM, AGENT } = process.env;
const acp = await import(`${PACKAGES}/@agentclientprotocol/sdk/dist/v1/stable/acp.js`);

const child = spawn(PROGRAM, ["acp", "--agent", AGENT], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const updates = [];
const asked = [];
const { client, agent } = acp.methods;
const app = acp
  .client({ name: "tests" })
  .onRequest(client.session.requestPermission, ({ params }) => {
    asked.push(params.toolCall.title);
    return { outcome: { outcome: "selected", optionId: "allow_once" } };
  })
  .onNotification(client.session.update, ({ params }) => {
    updates.push(params);
  });

await app.connectWith(stream, async (ctx) => {
  await ctx.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  const open = () => ctx.request(agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  const [first, second] = [(await open()).sessionId, (await open()).sessionId];
  const turn = async (sessionId, text) => {
    const began = Date.now();
    const { stopReason } = await ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    return { stopReason, ms: Date.now() - began };
  };
  const written = await turn(first, "Write the report.");
  const works = turn(second, "Work.");
  while (!existsSync("at_work")) await setTimeout(20);
  await ctx.notify(agent.session.cancel, { sessionId: second });
  const cancelled = await works;
  const again = await turn(first, "Are you there?");
  const text = (sessionId) =>
    updates
      .filter((one) => one.sessionId === sessionId && one.update.sessionUpdate === "agent_message_chunk")
      .map((one) => one.update.content.text)
      .join("");
  const diffs = updates.flatMap((one) => one.update.content ?? []).filter((part) => part.type === "diff");
  console.log(JSON.stringify({ written, cancelled, again, asked, diffs, text: text(first) }));
});
child.stdin.end();

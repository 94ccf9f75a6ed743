// A model on loopback that does as it is told: OpenClaw's model, in the form of the chat completions API of OpenAI.
// A user's message `CALL {"prompt": …}` becomes a call of the tool spektacular_run with these arguments, and the result of
// that tool becomes the answer.
import { createServer } from "node:http";

const TOOL = "spektacular_run";

/** Starts the model. `strays`: requests that were meant for another host. */
export async function startModel() {
  const strays = [];
  const requests = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      if (!request.url.startsWith("/v1/")) {
        strays.push(`${request.method} ${request.url}`);
        response.writeHead(502).end();
      } else if (request.url === "/v1/chat/completions") {
        const body = JSON.parse(Buffer.concat(chunks).toString());
        requests.push(body);
        stream(response, reply(body));
      } else {
        response.writeHead(404).end("{}");
      }
    });
  });
  // A proxy's way to a host with TLS.
  server.on("connect", (request, socket) => {
    strays.push(`CONNECT ${request.url}`);
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { server, strays, requests, url: `http://127.0.0.1:${server.address().port}` };
}

const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

/** The model's next message: `{say}` or `{call, args}`. */
function reply({ messages, tools }) {
  // OpenClaw adds messages of its own behind those of the user and of tools, and a time in front of the user's.
  const callOf = ({ role, content }) => (role === "user" ? textOf(content).match(/CALL (\{.*\})$/m)?.[1] : undefined);
  const last = messages.findLast((message) => message.role === "tool" || callOf(message));
  const args = last && callOf(last);
  if (!args) return { say: last ? textOf(last.content) : "Hello." };
  const names = (tools ?? []).map((tool) => tool.function.name);
  if (names.includes(TOOL)) return { call: TOOL, args: JSON.parse(args) };
  if (names.includes("tool_call")) return { call: "tool_call", args: { id: TOOL, args: JSON.parse(args) } };
  return { say: `no ${TOOL} among ${names.join(", ")}` };
}

function stream(response, { say, call, args }) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta, finish_reason = null, more = {}) => {
    const chunk = {
      id: "c",
      object: "chat.completion.chunk",
      created: 0,
      model: "scripted",
      choices: [{ index: 0, delta, finish_reason }],
      ...more,
    };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send({ role: "assistant", content: say ?? "" });
  if (call)
    send({
      tool_calls: [
        {
          index: 0,
          id: `call_${Date.now()}`,
          type: "function",
          function: { name: call, arguments: JSON.stringify(args) },
        },
      ],
    });
  send({}, call ? "tool_calls" : "stop", { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
  response.end("data: [DONE]\n\n");
}

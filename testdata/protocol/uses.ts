// An orchestrator in types alone: `.ci/run` compiles it with the types of `spektacular protocol types ts`.

import type { Frame, Message, Progress, Question, RunStart } from "./spektacular-types";

const start: RunStart = {
  v: "1",
  type: "run.start",
  payload: {
    prompt: "Fix the failing test",
    permissions: { read: "allow", "*": "ask" },
    mcp_servers: [{ name: "wiki", url: "https://wiki.example.org/mcp" }],
    timeout_s: null,
  },
};

function answer(question: Question): Message {
  const payload = question.options
    ? { question_id: question.question_id, value: question.options[0].value }
    : { question_id: question.question_id, declined: true as const };
  return { v: "1", type: "run.input", payload };
}

function progress(payload: Progress): string {
  switch (payload.kind) {
    case "text":
      return payload.done ? payload.message_id : payload.text;
    case "tool":
      return `${payload.category} ${payload.state} ${payload.locations.map((place) => place.path).join(" ")}`;
    case "turn":
      return payload.failure?.code ?? payload.outcome;
    default:
      return payload.text;
  }
}

export function read(frame: Frame): Message | string | null {
  switch (frame.type) {
    case "run.started":
      return frame.payload.capabilities.steer ? frame.payload.agent.name : start;
    case "run.progress":
      return progress(frame.payload);
    case "run.question":
      return answer(frame.payload);
    case "run.artifact":
      return frame.payload.path;
    case "run.completed":
      return frame.payload.text;
    case "run.failed":
      return frame.payload.code === "rate_limited" && frame.payload.retryable ? null : frame.payload.message;
    case "run.cancelled":
      return frame.payload.reason;
  }
}

// @ts-expect-error: a misspelt field.
export const misspelt: RunStart = { v: "1", type: "run.start", payload: { promt: "x" } };
// @ts-expect-error: a word that the protocol does not have.
export const unknown: RunStart = { v: "1", type: "run.start", payload: { prompt: "x", progress: "verbose" } };

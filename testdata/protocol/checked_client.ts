/** A program around the client, for `spektacular protocol check`: its exit status is 0 if and only if the run completes. */

import { Died, Run } from "./spektacular.ts";

const run = new Run({ agent: "demo", prompt: "go", conversation: true }, (question) =>
  question.attempt > 1 ? { declined: true } : { value: question.options?.[0].value ?? "yes" },
);
let turns = 0;
try {
  for await (const frame of run) {
    if (frame.type !== "run.progress" || frame.payload.kind !== "turn") continue;
    turns += 1;
    if (turns === 1) run.prompt("again");
    else run.end();
  }
  process.exitCode = (await run.wait()).type === "run.completed" ? 0 : 1;
} catch (error) {
  if (!(error instanceof Died)) throw error;
  process.exitCode = 1;
}

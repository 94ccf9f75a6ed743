/** Plays scenarios of the demo agent by the client, and prints how each ends: every_scenario NAME... */

import { Run, type Question, type Reply } from "./spektacular.ts";

function answer(question: Question): Reply {
  // A second attempt follows an answer that does not fit.
  if (question.attempt > 1) return { declined: true };
  return { value: question.options?.[0].value ?? "yes" };
}

async function play(name: string): Promise<string> {
  const prompts = ["again", "and again"];
  let steers = name === "steer";
  const run = new Run({ agent: `demo:${name}`, prompt: "go", conversation: name === "turns" }, answer);
  for await (const frame of run) {
    if (frame.type !== "run.progress") continue;
    if (name === "hang" && frame.payload.kind === "text") {
      run.cancel("The agent hangs.");
    } else if (steers && frame.payload.kind === "text") {
      steers = false;
      run.prompt("Stop.", "now");
    } else if (frame.payload.kind === "turn") {
      const prompt = prompts.shift();
      if (prompt === undefined) run.end();
      else run.prompt(prompt);
    }
  }
  return (await run.wait()).type;
}

for (const scenario of process.argv.slice(2)) console.log(scenario, await play(scenario));

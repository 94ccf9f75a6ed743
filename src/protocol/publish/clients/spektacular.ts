/**
 * A client for spektacular: runs a coding agent, yields its frames and answers its questions.
 *
 * Copy this file into your project as spektacular.ts. It needs Node.js 18 or later, and its types need @types/node. With
 * verbatimModuleSyntax in a CommonJS project, name it spektacular.mts. The types of all messages are at its end. This
 * example runs the demo agent; an empty line declines a question, and Ctrl-C cancels the run. Node.js 22.18 runs it
 * without a build:
 *
 *     import { createInterface } from "node:readline";
 *     import { Run } from "./spektacular.ts";
 *
 *     const terminal = createInterface({ input: process.stdin });
 *     const lines = terminal[Symbol.asyncIterator]();
 *     const run = new Run({ agent: "demo", prompt: "Say hello." }, async (question) => {
 *       console.log("?", question.text, question.options?.map((option) => option.value) ?? "");
 *       const { value: line } = await lines.next();
 *       return line ? { value: line } : { declined: true };
 *     });
 *     process.on("SIGINT", () => run.cancel("Ctrl-C"));
 *     for await (const frame of run) {
 *       if (frame.type === "run.progress") console.log(frame.payload.text);
 *     }
 *     const last = await run.wait();
 *     console.log(last.type, last.type === "run.failed" ? last.payload.message : "");
 *     process.exitCode = last.type === "run.failed" ? 1 : 0;
 *     terminal.close();
 */

/// <reference types="node" />
import { spawn, type ChildProcessWithoutNullStreams, type SpawnOptions } from "node:child_process";
import { StringDecoder } from "node:string_decoder";

export type Last = RunCompleted | RunFailed | RunCancelled;
/** The payload of a run.input that answers a question, without its question_id. */
export type Reply = { value: unknown; message?: string } | { value_from: { env: string } | { file: string } } | { declined: true; message?: string };
/**
 * Answers one question. Returns undefined if the program calls `reply` itself, at any time. `resolved` is aborted when the
 * question needs no answer any more. After a bad answer the callback is called again: the question then has a higher
 * `attempt` and an `error`.
 */
export type OnQuestion = (question: Question, resolved: AbortSignal) => Promise<Reply | undefined> | Reply | undefined;

/**
 * `runId` is the run's id, `command` the program and its first arguments, `flags` further flags of the subcommand, such as
 * ["--report", "run.html"], and `subcommand` "adhoc", "spec", "plan" or "implement". The others are options of `spawn`.
 */
export type Options = SpawnOptions & { runId?: string; command?: string[]; flags?: string[]; subcommand?: string };

/** spektacular ended without a terminal frame, for example because it was killed. */
export class Died extends Error {}

/**
 * One run. Iterate over it to read the frames up to the terminal one, which `wait` returns. Frames are read on while a
 * question waits for its answer. If the answer callback fails, the run is cancelled and `wait` throws the error. Without a
 * callback, the run is headless.
 */
export class Run implements AsyncIterable<Frame> {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #answer: OnQuestion | undefined;
  readonly #open = new Map<string, AbortController>();
  readonly #frames: AsyncGenerator<Frame, void, void>;
  readonly #exited: Promise<string>;
  #last: Last | undefined;
  #error: unknown;

  constructor(start: Start, answer?: OnQuestion, { runId, command = [], flags = [], subcommand = "adhoc", ...spawnOptions }: Options = {}) {
    // A value that is no JSON throws here, before there is a process.
    const payload = { interactive: answer !== undefined, ...start };
    const first = line({ v: "1", type: "run.start", ...(runId && { run_id: runId }), payload });
    // If this program dies, the end of stdin cancels the run. Ctrl-C reaches this program alone.
    const [program = "spektacular", ...words] = command;
    const args = [...words, subcommand, "--output", "json", "--on-eof", "cancel", ...flags];
    const spawned = spawn(program, args, { detached: true, ...spawnOptions, stdio: ["pipe", "pipe", "inherit"] });
    this.#child = spawned as unknown as ChildProcessWithoutNullStreams;
    this.#answer = answer;
    this.#exited = new Promise((resolve) => {
      this.#child.on("error", (error) => resolve(error.message));
      this.#child.on("exit", (code, signal) => resolve(`exit status ${code ?? signal}`));
    });
    // A write may fail because the run has ended: its terminal frame, or Died, says how.
    this.#child.stdin.on("error", () => {});
    this.#frames = this.#read();
    this.#child.stdin.write(first);
  }

  [Symbol.asyncIterator](): AsyncIterator<Frame> {
    // Leaving a `for await` early must not close the stream, so this iterator has no `return`.
    return { next: () => this.#frames.next() };
  }

  /** Reads the remaining frames and returns the terminal one. */
  async wait(): Promise<Last> {
    for await (const _ of this);
    if (this.#error !== undefined) throw this.#error;
    if (!this.#last) throw new Died("the run was closed");
    return this.#last;
  }

  /** Answers an open question. Does nothing if the question is resolved, for example by its timeout. */
  reply(questionId: string, reply: Reply): void {
    if (this.#open.has(questionId)) this.#input({ question_id: questionId, ...reply } as Input);
  }

  /** Sends a further message of the user: after the turn, or with "now" while the agent works, where it can. */
  prompt(text: string, when: "next" | "now" = "next", images: string[] = []): void {
    this.#input({ prompt: text, when, ...(images.length > 0 && { images }) });
  }

  /** Puts the files back to a checkpoint of a conversation with `checkpoints`. */
  rewind(checkpointId: string): void {
    this.#input({ rewind: checkpointId });
  }

  /** Ends a conversation: the running turn and waiting prompts are finished first. */
  end(): void {
    this.#input({ end: true });
  }

  /** Cancels the run. Its terminal frame follows within 4 seconds. */
  cancel(reason?: string): void {
    this.#send({ v: "1", type: "run.cancel", payload: reason ? { reason } : {} });
  }

  /** Interrupts the running turn of a conversation, which goes on. Cancels a run that is no conversation. */
  cancelTurn(): void {
    this.#send({ v: "1", type: "run.cancel", payload: { scope: "turn" } });
  }

  async *#read(): AsyncGenerator<Frame, void, void> {
    const decoder = new StringDecoder("utf8");
    let pieces: string[] = [];
    // Not readline, which also splits at U+2028 and U+2029, and JSON texts may contain those.
    for await (const chunk of this.#child.stdout) {
      const [rest = "", ...beginnings] = decoder.write(chunk as Buffer).split("\n");
      pieces.push(rest);
      for (const next of beginnings) {
        const frame = JSON.parse(pieces.join("")) as Frame;
        pieces = [next];
        this.#handle(frame);
        yield frame;
      }
    }
    this.#resolve();
    const exit = await this.#exited;
    // A last line without LF was not delivered.
    if (!this.#last) throw new Died(`spektacular ended without a terminal frame: ${exit}`);
  }

  #handle(frame: Frame): void {
    if (frame.type === "run.question") {
      this.#ask(frame.payload);
    } else if (frame.type === "run.progress" && frame.payload.kind === "question_resolved") {
      this.#resolve(frame.payload.question_id);
    } else if (frame.type === "run.completed" || frame.type === "run.failed" || frame.type === "run.cancelled") {
      this.#last = frame;
      this.#resolve();
      this.#child.stdin.end();
    }
  }

  async #ask(question: Question): Promise<void> {
    this.#resolve(question.question_id);
    const controller = new AbortController();
    this.#open.set(question.question_id, controller);
    try {
      const reply = await this.#answer?.(question, controller.signal);
      // A late answer must not go to a further attempt at the same question.
      if (reply && !controller.signal.aborted) this.reply(question.question_id, reply);
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#error = error;
      this.cancel("the answer callback failed");
    }
  }

  /** Drops one question, or all. */
  #resolve(questionId?: string): void {
    for (const id of questionId === undefined ? [...this.#open.keys()] : [questionId]) {
      this.#open.get(id)?.abort();
      this.#open.delete(id);
    }
  }

  #input(payload: Input): void {
    this.#send({ v: "1", type: "run.input", payload });
  }

  #send(message: Message): void {
    if (this.#child.stdin.writable) this.#child.stdin.write(line(message));
  }
}

function line(message: Message): string {
  return `${JSON.stringify(message)}\n`;
}

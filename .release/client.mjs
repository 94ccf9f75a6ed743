import { spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
/** spektacular ended without a terminal frame, for example because it was killed. */
export class Died extends Error {
}
/**
 * One run. Iterate over it to read the frames up to the terminal one, which `wait` returns. Frames are read on while a
 * question waits for its answer. If the answer callback fails, the run is cancelled and `wait` throws the error. Without a
 * callback, the run is headless.
 */
export class Run {
    #child;
    #answer;
    #open = new Map();
    #frames;
    #exited;
    #last;
    #error;
    constructor(start, answer, { runId, command = [], flags = [], subcommand = "adhoc", ...spawnOptions } = {}) {
        // A value that is no JSON throws here, before there is a process.
        const payload = { interactive: answer !== undefined, ...start };
        const first = line({ v: "1", type: "run.start", ...(runId && { run_id: runId }), payload });
        // If this program dies, the end of stdin cancels the run. Ctrl-C reaches this program alone.
        const [program = "spektacular", ...words] = command;
        const args = [...words, subcommand, "--output", "json", "--on-eof", "cancel", ...flags];
        const spawned = spawn(program, args, { detached: true, ...spawnOptions, stdio: ["pipe", "pipe", "inherit"] });
        this.#child = spawned;
        this.#answer = answer;
        this.#exited = new Promise((resolve) => {
            this.#child.on("error", (error) => resolve(error.message));
            this.#child.on("exit", (code, signal) => resolve(`exit status ${code ?? signal}`));
        });
        // A write may fail because the run has ended: its terminal frame, or Died, says how.
        this.#child.stdin.on("error", () => { });
        this.#frames = this.#read();
        this.#child.stdin.write(first);
    }
    [Symbol.asyncIterator]() {
        // Leaving a `for await` early must not close the stream, so this iterator has no `return`.
        return { next: () => this.#frames.next() };
    }
    /** Reads the remaining frames and returns the terminal one. */
    async wait() {
        for await (const _ of this)
            ;
        if (this.#error !== undefined)
            throw this.#error;
        if (!this.#last)
            throw new Died("the run was closed");
        return this.#last;
    }
    /** Answers an open question. Does nothing if the question is resolved, for example by its timeout. */
    reply(questionId, reply) {
        if (this.#open.has(questionId))
            this.#input({ question_id: questionId, ...reply });
    }
    /** Sends a further message of the user: after the turn, or with "now" while the agent works, where it can. */
    prompt(text, when = "next", images = []) {
        this.#input({ prompt: text, when, ...(images.length > 0 && { images }) });
    }
    /** Puts the files back to a checkpoint of a conversation with `checkpoints`. */
    rewind(checkpointId) {
        this.#input({ rewind: checkpointId });
    }
    /** Ends a conversation: the running turn and waiting prompts are finished first. */
    end() {
        this.#input({ end: true });
    }
    /** Cancels the run. Its terminal frame follows within 4 seconds. */
    cancel(reason) {
        this.#send({ v: "1", type: "run.cancel", payload: reason ? { reason } : {} });
    }
    /** Interrupts the running turn of a conversation, which goes on. Cancels a run that is no conversation. */
    cancelTurn() {
        this.#send({ v: "1", type: "run.cancel", payload: { scope: "turn" } });
    }
    async *#read() {
        const decoder = new StringDecoder("utf8");
        let pieces = [];
        // Not readline, which also splits at U+2028 and U+2029, and JSON texts may contain those.
        for await (const chunk of this.#child.stdout) {
            const [rest = "", ...beginnings] = decoder.write(chunk).split("\n");
            pieces.push(rest);
            for (const next of beginnings) {
                const frame = JSON.parse(pieces.join(""));
                pieces = [next];
                this.#handle(frame);
                yield frame;
            }
        }
        this.#resolve();
        const exit = await this.#exited;
        // A last line without LF was not delivered.
        if (!this.#last)
            throw new Died(`spektacular ended without a terminal frame: ${exit}`);
    }
    #handle(frame) {
        if (frame.type === "run.question") {
            this.#ask(frame.payload);
        }
        else if (frame.type === "run.progress" && frame.payload.kind === "question_resolved") {
            this.#resolve(frame.payload.question_id);
        }
        else if (frame.type === "run.completed" || frame.type === "run.failed" || frame.type === "run.cancelled") {
            this.#last = frame;
            this.#resolve();
            this.#child.stdin.end();
        }
    }
    async #ask(question) {
        this.#resolve(question.question_id);
        const controller = new AbortController();
        this.#open.set(question.question_id, controller);
        try {
            const reply = await this.#answer?.(question, controller.signal);
            // A late answer must not go to a further attempt at the same question.
            if (reply && !controller.signal.aborted)
                this.reply(question.question_id, reply);
        }
        catch (error) {
            if (controller.signal.aborted)
                return;
            this.#error = error;
            this.cancel("the answer callback failed");
        }
    }
    /** Drops one question, or all. */
    #resolve(questionId) {
        for (const id of questionId === undefined ? [...this.#open.keys()] : [questionId]) {
            this.#open.get(id)?.abort();
            this.#open.delete(id);
        }
    }
    #input(payload) {
        this.#send({ v: "1", type: "run.input", payload });
    }
    #send(message) {
        if (this.#child.stdin.writable)
            this.#child.stdin.write(line(message));
    }
}
function line(message) {
    return `${JSON.stringify(message)}\n`;
}

import { type SpawnOptions } from "node:child_process";
export type Last = RunCompleted | RunFailed | RunCancelled;
/** The payload of a run.input that answers a question, without its question_id. */
export type Reply = {
    value: unknown;
    message?: string;
} | {
    value_from: {
        env: string;
    } | {
        file: string;
    };
} | {
    declined: true;
    message?: string;
};
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
export type Options = SpawnOptions & {
    runId?: string;
    command?: string[];
    flags?: string[];
    subcommand?: string;
};
/** spektacular ended without a terminal frame, for example because it was killed. */
export declare class Died extends Error {
}
/**
 * One run. Iterate over it to read the frames up to the terminal one, which `wait` returns. Frames are read on while a
 * question waits for its answer. If the answer callback fails, the run is cancelled and `wait` throws the error. Without a
 * callback, the run is headless.
 */
export declare class Run implements AsyncIterable<Frame> {
    #private;
    constructor(start: Start, answer?: OnQuestion, { runId, command, flags, subcommand, ...spawnOptions }?: Options);
    [Symbol.asyncIterator](): AsyncIterator<Frame>;
    /** Reads the remaining frames and returns the terminal one. */
    wait(): Promise<Last>;
    /** Answers an open question. Does nothing if the question is resolved, for example by its timeout. */
    reply(questionId: string, reply: Reply): void;
    /** Sends a further message of the user: after the turn, or with "now" while the agent works, where it can. */
    prompt(text: string, when?: "next" | "now", images?: string[]): void;
    /** Puts the files back to a checkpoint of a conversation with `checkpoints`. */
    rewind(checkpointId: string): void;
    /** Ends a conversation: the running turn and waiting prompts are finished first. */
    end(): void;
    /** Cancels the run. Its terminal frame follows within 4 seconds. */
    cancel(reason?: string): void;
    /** Interrupts the running turn of a conversation, which goes on. Cancels a run that is no conversation. */
    cancelTurn(): void;
}

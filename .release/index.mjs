// The client, which runs the program of this package unless it is given another command.
import { createRequire } from "node:module";
import { Run as Client } from "./client.mjs";

export { Died } from "./client.mjs";

const program = createRequire(import.meta.url)("../bin/program.js");

export class Run extends Client {
  constructor(start, answer, options = {}) {
    super(start, answer, { command: [program()], ...options });
  }
}

#!/usr/bin/env node
// Runs the program, which the npm package for this system holds.
"use strict";

const { spawn } = require("node:child_process");

function fail(code, message) {
  process.stderr.write(`spektacular: ${message}\n`);
  process.exit(code);
}

let file;
try {
  file = require("./program.js")();
} catch (error) {
  fail(error.code, error.message);
}
const args = process.argv.slice(2);
if (process.execve) {
  // Node 22.15 and later: the program takes the place of this process, with its pid and its terminal.
  process.execve(file, [file, ...args]);
}

// A terminal sends these to the program itself. A second one would end the run at once.
const onTerminal = [0, 1, 2].some((stream) => require("node:tty").isatty(stream));
const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"];
let child;
for (const signal of signals) {
  process.on(signal, () => {
    if (signal === "SIGTERM" || !onTerminal) child.kill(signal);
  });
}
child = spawn(file, args, { stdio: "inherit" });
child.on("error", (error) => fail(126, `the program cannot be started: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

#!/usr/bin/env node
// Runs the program, which the npm package for this system holds.
"use strict";

const fs = require("node:fs");
const { spawn } = require("node:child_process");
const { version, optionalDependencies } = require("../package.json");

function fail(code, message) {
  process.stderr.write(`spektacular: ${message}\n`);
  process.exit(code);
}

function program() {
  const name = `@spektacular/${process.platform}-${process.arch}`;
  if (!(name in optionalDependencies)) {
    fail(127, `no program for ${process.platform}-${process.arch}. npm has ${Object.keys(optionalDependencies).join(", ")}.`);
  }
  try {
    return require.resolve(`${name}/bin/spektacular`);
  } catch {
    return fail(
      127,
      `the package ${name} is missing, because npm was told to omit optional packages, or ran on another system. ` +
        `Install it: npm install ${name}@${version} (with -g, if spektacular is installed so)`,
    );
  }
}

const file = program();
const args = process.argv.slice(2);
try {
  fs.accessSync(file, fs.constants.X_OK);
} catch (error) {
  fail(126, `the program cannot be started: ${error.message}`);
}
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

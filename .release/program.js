// Finds the program, which the npm package for this system holds.
"use strict";

const fs = require("node:fs");
const { version, optionalDependencies } = require("../package.json");

/** The path of the program. Throws an Error with the exit code `code` of a shell for a command that cannot be run. */
module.exports = function program() {
  const system = `${process.platform}-${process.arch}`;
  const name = `@spektacular/${system}`;
  if (!(name in optionalDependencies)) {
    throw failure(127, `no program for ${system}. npm has ${Object.keys(optionalDependencies).join(", ")}.`);
  }
  let file;
  try {
    file = require.resolve(`${name}/bin/spektacular`);
  } catch {
    throw failure(
      127,
      `the package ${name} is missing, because npm was told to omit optional packages, or ran on another system. ` +
        `Install it: npm install ${name}@${version} (with -g, if spektacular is installed so)`,
    );
  }
  try {
    fs.accessSync(file, fs.constants.X_OK);
  } catch (error) {
    throw failure(126, `the program cannot be started: ${error.message}`);
  }
  return file;
};

function failure(code, message) {
  return Object.assign(new Error(message), { code });
}

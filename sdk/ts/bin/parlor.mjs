#!/usr/bin/env node
// Runs the program `parlor` of this machine, which npm installed beside this package as an optional dependency.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

const name = `parlor-${process.platform}-${process.arch}`;

function program() {
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/parlor`);
  } catch {
    console.error(`parlor: the package ${name} is not installed, so there is no program for ${process.platform} on ${process.arch}.`);
    console.error("Was npm told to leave out optional dependencies? Otherwise build it, with Rust: cargo install parlor-cli");
    process.exit(1);
  }
}

const running = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both, and the program decides when it ends. Other signals come to this process alone.
process.on("SIGINT", () => process.stdin.isTTY || running.kill("SIGINT"));
for (const signal of ["SIGHUP", "SIGTERM"]) process.on(signal, () => running.kill(signal));
running.on("error", (error) => {
  console.error(`parlor: ${name} could not be started: ${error.message}`);
  process.exitCode = 1;
});
running.on("exit", (code, signal) => {
  process.exitCode = code ?? 128 + constants.signals[signal];
});

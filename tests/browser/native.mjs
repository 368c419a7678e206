// Native players: `parlor play` and `parlor bots` without a screen.

import { spawn } from "node:child_process";
import { BINARY } from "./server.mjs";

/** Starts a command that plays on a server. It is killed with the test's process at the latest. */
export function startNative(command, port, ...options) {
  const child = spawn(BINARY, [command, "--headless", "--server", `127.0.0.1:${port}`, "--seconds", "600", ...options], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = { out: "", err: "" };
  const waiting = new Set();
  const look = () => {
    for (const one of waiting) one();
  };
  for (const [name, stream] of [["out", child.stdout], ["err", child.stderr]]) {
    stream.on("data", (bytes) => {
      printed[name] += bytes;
      look();
    });
  }
  const ended = new Promise((resolve) => {
    child.once("exit", (code) => {
      resolve(code);
      look();
    });
  });
  /** The rest of the first line of standard error that begins so. */
  const says = (start) =>
    new Promise((resolve, reject) => {
      const one = () => {
        const line = printed.err.split("\n").slice(0, -1).find((it) => it.startsWith(start));
        const isOver = child.exitCode !== null || child.signalCode !== null;
        if (line === undefined && !isOver) return;
        waiting.delete(one);
        if (line === undefined) reject(new Error(`${command} ended without ${start}: ${printed.err}`));
        else resolve(line.slice(start.length));
      };
      waiting.add(one);
      one();
    });
  /** Ends it as Ctrl-C does; what it reports. */
  const report = async () => {
    child.kill("SIGTERM");
    await ended;
    return JSON.parse(printed.out);
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return { says, report, kill, ended };
}

// A server for one test: the built `parlor serve` on a free port, for this machine alone.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The binary: what PARLOR_BIN names, else the development build. */
export const BINARY = process.env.PARLOR_BIN ?? fileURLToPath(new URL("../../target/debug/parlor", import.meta.url));

const STARTS_WITHIN_MS = 60_000;

/** Starts a server on this machine's IPv4 address alone. Returns its port, what it printed, `stop`, and `kill`, which leaves it no time for a goodbye. */
export function startServer(...options) {
  return startEverywhere("--listen", "127.0.0.1", ...options);
}

/** Starts a server on all addresses, as who gives no option does. */
export async function startEverywhere(...options) {
  const child = spawn(BINARY, ["serve", ...(options.includes("--port") ? [] : ["--port", "0"]), ...options], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  // A test that fails before its `stop` leaves no server behind.
  process.once("exit", () => child.kill("SIGKILL"));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const printed = { out: "", err: "" };
  child.stderr.on("data", (bytes) => (printed.err += bytes));
  const port = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no port within ${STARTS_WITHIN_MS} ms: ${printed.out}`)), STARTS_WITHIN_MS);
    const over = (why) => {
      clearTimeout(late);
      reject(new Error(`${BINARY} ${why}: ${printed.out}${printed.err}`));
    };
    child.once("error", (error) => over(`did not start (${error.message}); build it with cargo build`));
    child.once("exit", (code) => over(`ended with ${code}`));
    child.stdout.on("data", (bytes) => {
      printed.out += bytes;
      const found = /listens on port (\d+)/.exec(printed.out);
      if (found) {
        clearTimeout(late);
        resolve(Number(found[1]));
      }
    });
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  // Of a name with several addresses, Chromium tries only the first by WebTransport.
  return { port, url: `http://127.0.0.1:${port}`, printed, stop, kill };
}

// The OpenAPI document of the built server.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const BINARY = process.env.PARLOR_BIN ?? fileURLToPath(new URL("../../../target/debug/parlor", import.meta.url));

/** Starts the server with a store of its own, asks, and ends it. */
export async function documentOf() {
  const folder = mkdtempSync(join(tmpdir(), "parlor-openapi-"));
  const child = spawn(BINARY, ["serve", "--listen", "127.0.0.1", "--port", "0", "--data", folder], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    const port = await new Promise((resolve, reject) => {
      let said = "";
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`${BINARY} ended with ${code}: ${said}`)));
      child.stdout.on("data", (bytes) => {
        said += bytes;
        const port = /listens on port (\d+)/.exec(said)?.[1];
        if (port !== undefined) resolve(port);
      });
    });
    return await (await fetch(`http://127.0.0.1:${port}/v1/openapi.json`)).json();
  } finally {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

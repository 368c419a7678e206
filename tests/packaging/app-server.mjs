// Serves built apps, and starts the servers that tools bring.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { environmentOf } from "./install.mjs";

const STARTS_WITHIN_MS = 120_000;
const LOOKS_EVERY_MS = 100;
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

/** A port that is free now. */
export async function freePort() {
  const server = createServer();
  await listen(server, 0);
  const { port } = server.address();
  await close(server);
  return port;
}

/** Serves the files of a folder. Returns what stops it. */
export async function serveFiles(folder, port) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://app");
    const path = normalize(pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    const bytes = await readFile(join(folder, path)).catch(() => undefined);
    if (bytes === undefined) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(bytes);
  });
  await listen(server, port);
  return () => {
    server.closeAllConnections();
    return close(server);
  };
}

/** Starts a tool's server, and waits until it answers. Returns what stops it. */
export async function serveByCommand(command, folder, port) {
  const [program, ...args] = command.replaceAll("PORT", String(port)).split(" ");
  // In a group of its own: tools start children that outlive them.
  const child = spawn(program, args, { cwd: folder, env: environmentOf(folder), detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (printed += bytes));
  const kill = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It is gone.
    }
  };
  process.once("exit", kill);
  let over;
  const ended = new Promise((resolve) => {
    child.once("error", (error) => resolve((over = error.message)));
    child.once("exit", (code) => resolve((over = `it ended with ${code}`)));
  });
  const giveUpAt = performance.now() + STARTS_WITHIN_MS;
  while (!(await answers(`http://127.0.0.1:${port}/`))) {
    if (over !== undefined || performance.now() > giveUpAt) {
      kill();
      throw new Error(`${command} does not serve: ${over ?? "it is late"}\n${printed}`);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOKS_EVERY_MS));
  }
  return async () => {
    kill();
    await ended;
  };
}

async function answers(url) {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

function listen(server, port) {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}

function close(server) {
  return new Promise((resolve) => server.close(resolve));
}

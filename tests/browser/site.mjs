// A site of a game: pages that play with the built SDK, from another origin than the server's.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const DIST = new URL("../../sdk/ts/dist/", import.meta.url);
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".map": "application/json" };

/** What a strict page may do, and the SDK needs. */
export const STRICT =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; connect-src http://127.0.0.1:* https://127.0.0.1:* ws://127.0.0.1:*";

/** Serves `/`, a page without anything, and the SDK below `/sdk/`. `csp` is the page's policy. */
export async function startSite({ csp } = {}) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://site");
    if (!pathname.startsWith("/sdk/")) {
      response.writeHead(200, { "content-type": "text/html", ...(csp === undefined ? {} : { "content-security-policy": csp }) });
      return response.end("<!doctype html><title>game</title><canvas></canvas>");
    }
    try {
      const name = pathname.slice("/sdk/".length);
      const bytes = await readFile(fileURLToPath(new URL(name, DIST)));
      response.writeHead(200, { "content-type": TYPES[name.slice(name.lastIndexOf("."))] ?? "text/plain" });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => new Promise((resolve) => server.close(resolve)) };
}

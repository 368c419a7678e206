#!/usr/bin/env node
// Plays the games of this folder that browsers play: cards, four and sumo. One command builds them, starts a server with accounts,
// turn rooms and the matchmaker, and shows the pages.
//
//   node examples/play.mjs [--pages PORT] [OPTIONS OF `parlor serve`]
//
// Default: pages on port 5173, and `--port 7700 --data target/play`. PARLOR_BIN names a `parlor` that is built; else cargo builds it.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SDK = join(ROOT, "sdk/ts");
const GAMES = { cards: "two lay cards: lockstep", four: "four in a row, for days: a turn room", sumo: "an opponent is found for you: matchmaking" };
const [HTML, CSS, SCRIPT] = ["html", "css", "javascript"].map((kind) => `text/${kind}; charset=utf-8`);

/** Builds the package `parlor` of this checkout, if it is not built. */
function buildSdk() {
  if (existsSync(join(SDK, "dist/index.js"))) return;
  console.log("building the TypeScript SDK, once");
  const run = (command, ...args) => execFileSync(command, args, { cwd: ROOT, stdio: "inherit" });
  if (!existsSync(join(SDK, "node_modules"))) run("npm", "ci", "--no-fund", "--no-audit", "--prefix", "sdk/ts");
  run("cargo", "xtask", "web");
  run("node", "sdk/ts/build.mjs");
}

/** What browsers ask for, by path. The programs get the address of the server as `SERVER`. */
async function build(server) {
  const { build } = createRequire(join(SDK, "package.json"))("esbuild");
  const { outputFiles } = await build({
    entryPoints: Object.keys(GAMES).map((game) => join(ROOT, `examples/${game}/main.ts`)),
    alias: { parlor: join(SDK, "dist/index.js"), "parlor/online": join(SDK, "dist/online.js") },
    define: { SERVER: JSON.stringify(server) },
    bundle: true, splitting: true, format: "esm", target: "es2022", write: false, outdir: "/", outbase: join(ROOT, "examples"),
    // The SDK in a checkout is a package without side effects: what it leaves out is not missed.
    logOverride: { "ignored-bare-import": "silent" },
  });
  const text = (path) => readFileSync(join(ROOT, "examples", path), "utf8");
  const list = Object.entries(GAMES).map(([game, what]) => `<p><a href="/${game}/">${game}</a>: ${what}</p>`).join("\n");
  return new Map([
    ["/", [HTML, `<!doctype html><title>Games</title><link rel="stylesheet" href="/style.css"><h1>Games</h1>${list}`]],
    ["/style.css", [CSS, text("style.css")]],
    ...Object.keys(GAMES).map((game) => [`/${game}/`, [HTML, text(`${game}/index.html`).replace("main.ts", "main.js")]]),
    ...outputFiles.map(({ path, contents }) => [path.replaceAll("\\", "/"), [SCRIPT, contents]]),
  ]);
}

/** Serves the pages, once they are built. Gives the port. */
async function serve(port, files) {
  const server = createServer(async ({ url }, response) => {
    const [type, content] = (await files).get(new URL(url, "http://pages").pathname) ?? [];
    response.writeHead(content === undefined ? 404 : 200, type && { "content-type": type });
    response.end(content ?? "there is no such page");
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "localhost", resolve));
  server.unref();
  return server.address().port;
}

/** What is asked of this program, and what of the server. */
function options([...given]) {
  const at = given.indexOf("--pages");
  const port = at < 0 ? 5173 : Number(given.splice(at, 2)[1]);
  const defaults = { "--port": "7700", "--data": join(ROOT, "target/play") };
  return { port, others: [...Object.entries(defaults).filter(([name]) => !given.includes(name)).flat(), ...given] };
}

buildSdk();
const { port, others } = options(process.argv.slice(2));
let built;
const files = new Promise((resolve) => (built = resolve));
const pages = `http://localhost:${await serve(port, files)}`;
const [program, ...args] = process.env.PARLOR_BIN ? [process.env.PARLOR_BIN] : ["cargo", "run", "--release", "--quiet", "--manifest-path", join(ROOT, "Cargo.toml"), "--"];
const server = spawn(program, [...args, "serve", "--web-origins", pages, ...others], { stdio: ["inherit", "pipe", "inherit"] });
// What ends this ends the server, which takes leave of its rooms.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => server.kill("SIGTERM"));
server.on("exit", (code) => (process.exitCode = code ?? 1));
for await (const line of createInterface({ input: server.stdout })) {
  const [, port] = /listens on port (\d+)/.exec(line) ?? [];
  if (port === undefined) continue;
  built(await build(`localhost:${port}`));
  console.log(`a server listens on port ${port}`);
  console.log(Object.entries(GAMES).map(([game, what]) => `play ${pages}/${game}/    ${what}`).join("\n"));
}

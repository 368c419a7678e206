#!/usr/bin/env node
// Plays the games of this folder that browsers play: cards, four and sumo. One command builds them, and serves them on a server
// of their own, which has accounts, turn rooms and the matchmaker.
//
//   node examples/play.mjs [OPTIONS OF `parlor serve`]      default: --port 7700 --data target/play/data
//
// PARLOR_BIN names a `parlor` that is built; else cargo builds it.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SDK = join(ROOT, "sdk/ts");
const GAMES = { cards: "two lay cards: lockstep", four: "four in a row, for days: a turn room", sumo: "an opponent is found for you: matchmaking" };

/** Runs a command at the root of the repository. */
const run = (command, ...args) => execFileSync(command, args, { cwd: ROOT, stdio: "inherit" });

/** Builds the package `parlor` of this checkout, if it is not built. */
function buildSdk() {
  if (existsSync(join(SDK, "dist/index.js"))) return;
  console.log("building the TypeScript SDK, once");
  if (!existsSync(join(SDK, "node_modules"))) run("npm", "ci", "--no-fund", "--no-audit", "--prefix", "sdk/ts");
  run("cargo", "xtask", "web");
  run("node", "sdk/ts/build.mjs");
}

/** The pages of the games: HTML, style and a script for each. */
async function pages() {
  const { build } = createRequire(join(SDK, "package.json"))("esbuild");
  const { outputFiles } = await build({
    entryPoints: Object.keys(GAMES).map((game) => join(ROOT, `examples/${game}/main.ts`)),
    alias: { parlor: join(SDK, "dist/index.js"), "parlor/online": join(SDK, "dist/online.js") },
    bundle: true, splitting: true, format: "esm", target: "es2022", write: false, outdir: "/games", outbase: join(ROOT, "examples"),
    // The SDK in a checkout is a package without side effects: what it leaves out is not missed.
    logOverride: { "ignored-bare-import": "silent" },
  });
  const text = (path) => readFileSync(join(ROOT, "examples", path), "utf8");
  const html = (game) => text(`${game}/index.html`).replace("../style.css", "/style.css").replace("main.ts", `/games/${game}/main.js`);
  const list = Object.entries(GAMES).map(([game, what]) => `<p><a href="/${game}">${game}</a>: ${what}</p>`).join("\n");
  return [
    ["/", "text/html; charset=utf-8", `<!doctype html><title>Games</title><link rel="stylesheet" href="/style.css"><h1>Games</h1>${list}`],
    ["/style.css", "text/css; charset=utf-8", text("style.css")],
    ...Object.keys(GAMES).map((game) => [`/${game}`, "text/html; charset=utf-8", html(game)]),
    ...outputFiles.map(({ path, contents }) => [path.replaceAll("\\", "/"), "text/javascript; charset=utf-8", contents]),
  ];
}

/** Writes pages into a folder that `parlor serve --pages` reads. */
function write(folder, pages) {
  const list = pages.map(([path, contentType, content], i) => {
    writeFileSync(join(folder, `${i}.gz`), gzipSync(content));
    return { path, contentType, file: `${i}.gz` };
  });
  writeFileSync(join(folder, "pages.json"), JSON.stringify(list));
}

buildSdk();
mkdirSync(join(ROOT, "target/play"), { recursive: true });
const folder = mkdtempSync(join(ROOT, "target/play/pages-"));
write(folder, await pages());
const given = process.argv.slice(2);
const defaults = { "--port": "7700", "--data": join(ROOT, "target/play/data") };
const options = Object.entries(defaults).filter(([name]) => !given.includes(name)).flat();
const serve = ["serve", "--pages", folder, ...options, ...given];
const [program, ...args] = process.env.PARLOR_BIN ? [process.env.PARLOR_BIN] : ["cargo", "run", "--release", "--quiet", "--package", "parlor-cli", "--"];
const server = spawn(program, [...args, ...serve], { cwd: process.env.PARLOR_BIN ? undefined : ROOT, stdio: ["inherit", "pipe", "inherit"] });
// What ends this ends the server, which takes leave of its rooms.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => server.kill("SIGTERM"));
server.on("exit", (code) => {
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = code ?? 1;
});
for await (const line of createInterface({ input: server.stdout })) {
  console.log(line);
  const [, port] = /listens on port (\d+)/.exec(line) ?? [];
  if (port) console.log(Object.entries(GAMES).map(([game, what]) => `play http://localhost:${port}/${game}    ${what}`).join("\n"));
}

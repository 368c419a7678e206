// The programs of docs/web.md, as they stand there.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { promisify } from "node:util";
import { startPlace } from "./place.mjs";
import { BINARY } from "./server.mjs";

const HANG_MS = 120_000;
const limit = { timeout: HANG_MS };
const SDK = fileURLToPath(new URL("../../sdk/ts/", import.meta.url));
const { build } = createRequire(join(SDK, "package.json"))("esbuild");
/** The package's entries, by the names that programs import. */
const ENTRIES = Object.entries(createRequire(import.meta.url)(join(SDK, "package.json")).exports)
  .filter(([, { default: path }]) => path !== undefined)
  .map(([name, { default: path }]) => [`parlor${name.slice(1)}`, join(SDK, path)]);

let place;
let browser;
let site;
let server;
let programs;
/** What the server keeps. */
let data;

before(async () => {
  const text = await readFile(new URL("../../docs/web.md", import.meta.url), "utf8");
  programs = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, program]) => program);
  data = await mkdtemp(join(tmpdir(), "parlor-docs-"));
  place = await startPlace("--data", data);
  ({ browser, site, server } = place);
}, limit);

after(async () => {
  await place?.stop();
  if (data) await rm(data, { recursive: true, force: true });
});

/** The program that has a text of its own. */
function having(text) {
  const found = programs.filter((program) => program.includes(text));
  assert.equal(found.length, 1, `programs with ${text}`);
  return found[0];
}

/** Bundles a program, with the address of this test's server. */
async function bundled(program, more = {}) {
  const contents = program.replaceAll("localhost:7700", `127.0.0.1:${server.port}`);
  assert.notEqual(contents, program, "it names its server");
  const { outputFiles } = await build({
    stdin: { contents, loader: "ts", resolveDir: SDK },
    bundle: true,
    format: "esm",
    write: false,
    alias: Object.fromEntries(ENTRIES),
    ...more,
  });
  return outputFiles[0].text;
}

/** A page that runs a program. */
async function run(program, url = site.url) {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(HANG_MS);
  page.logged = [];
  page.on("console", (message) => message.type() === "log" && page.logged.push(message.text()));
  page.on("pageerror", (error) => page.logged.push(String(error)));
  await page.goto(url);
  await page.evaluate(() => {
    const canvas = document.querySelector("canvas");
    [canvas.width, canvas.height] = [320, 240];
  });
  await page.addScriptTag({ type: "module", content: await bundled(program) });
  return page;
}

/** Where something is drawn: the columns that are not empty. */
const drawn = (page) =>
  page.evaluate(() => {
    const { data, width } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 320, 240);
    const columns = new Set();
    for (let i = 3; i < data.length; i += 4) if (data[i] > 0) columns.add(((i - 3) / 4) % width);
    return columns.size;
  });

/** Where the last of what is drawn ends. */
const lastDrawn = (page) =>
  page.evaluate(() => {
    const { data, width } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 320, 240);
    let last = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i] > 0) last = Math.max(last, ((i - 3) / 4) % width);
    return last;
  });

/** How many rows have something drawn. */
const rowsDrawn = (page) =>
  page.evaluate(() => {
    const { data, width } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 320, 240);
    const rows = new Set();
    for (let i = 3; i < data.length; i += 4) if (data[i] > 0) rows.add(Math.floor((i - 3) / 4 / width));
    return rows.size;
  });

/** Looks in each frame until `holds` is true. */
async function until(page, holds) {
  while (!(await holds())) await page.evaluate(() => new Promise(requestAnimationFrame));
}

test("the smallest game is hosted, and joined by the link that it shows", limit, async () => {
  const a = await run(having('dot/${player}'));
  await a.waitForFunction(() => document.title.startsWith("join with "));
  const link = (await a.title()).slice("join with ".length);
  assert.match(link, /\?join=[A-Z0-9]+/);
  await until(a, async () => (await drawn(a)) === 10);
  const b = await run(having('dot/${player}'), link);
  await until(b, async () => (await drawn(b)) === 10);
  await b.keyboard.down("ArrowRight");
  // Its own dot has left the host's.
  for (const page of [a, b]) await until(page, async () => (await drawn(page)) >= 20);
  await b.keyboard.up("ArrowRight");
  await Promise.all([a.context().close(), b.context().close()]);
});

test("the chat hears what is said", limit, async () => {
  const a = await run(having('"chat", { server'));
  await until(a, () => a.logged.some((line) => line === "ada is here"));
  assert.deepEqual(a.logged, ["ada is here"]);
  await a.context().close();
});

test("the game that says its types opens its room", limit, async () => {
  const page = await run(`${having("export const tanks = defineGame").replace("export const", "const")}\nconsole.log(room.tickHz, tank);`);
  await until(page, () => page.logged.length > 0);
  assert.match(page.logged[0], /^30 /);
  await page.context().close();
});

test("tanks drive in circles, at host and guest", limit, async () => {
  const a = await run(having("predict: [Tank]"));
  await a.waitForFunction(() => document.title.startsWith("join with "));
  const b = await run(having("predict: [Tank]"), (await a.title()).slice("join with ".length));
  const seen = new Set();
  await until(b, async () => seen.add(await drawn(b)).size > 3);
  for (const page of [a, b]) assert.deepEqual(page.logged, []);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("a page takes its seat again", limit, async () => {
  const host = await run(`import { host } from "parlor";\nconst room = await host("dots", { server: "localhost:7700", code: "K7QM" });\nconsole.log(room.code);`);
  await until(host, () => host.logged.length > 0);
  const program = `${having("rejoin(")}\nconsole.log(room.me, sessionStorage.length);`;
  const page = await run(program);
  await until(page, () => page.logged.length > 0);
  await page.waitForFunction(() => sessionStorage.length === 1);
  await page.reload();
  await page.addScriptTag({ type: "module", content: await bundled(program) });
  await until(page, () => page.logged.length > 1);
  assert.deepEqual(page.logged.map((line) => line.split(" ")[0]), ["1", "1"]);
  await Promise.all([page.context().close(), host.context().close()]);
});

test("the page that hosts is told of who watches, and hands its part over", limit, async () => {
  const a = await run(having("spectate: true"));
  await until(a, () => a.logged.length > 0);
  const link = a.logged[0].slice("watch at ".length);
  const b = await run(having("spectate: true"), link);
  await until(b, () => b.logged.includes("1 watch"));
  await until(a, () => a.logged.includes("1 watch"));
  const code = /join\/(\w+)/.exec(link)?.[1] ?? new URL(link).searchParams.get("join");
  const player = await run(
    `import { join } from "parlor";\nconst room = await join("duel", ${JSON.stringify(code)}, { server: "localhost:7700" });\nconsole.log(room.me);`,
  );
  await until(player, () => player.logged.length > 0);
  await a.click("canvas");
  await until(a, () => a.logged.includes(`player ${player.logged[0]} hosts`));
  await until(b, () => b.logged.includes(`player ${player.logged[0]} hosts`));
  await Promise.all([a, b, player].map((page) => page.context().close()));
});

test("an action shows at once, until the gun is empty", limit, async () => {
  const a = await run(having("parlor/actions"));
  await a.waitForFunction(() => document.title.startsWith("join with "));
  const b = await run(having("parlor/actions"), (await a.title()).slice("join with ".length));
  for (const page of [a, b]) await page.waitForFunction(() => document.title === "refused: no_shells");
  // The guest's shots are heard at the host, too; the refused ones nowhere.
  await until(a, () => a.logged.length === 6);
  assert.deepEqual([a.logged, b.logged], [Array(6).fill("bang"), Array(3).fill("bang")]);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("the net graph shows the network that is changed", limit, async () => {
  const page = await run(having("parlor/netgraph"));
  await page.waitForFunction(() => document.querySelector("parlor-netgraph")?.latest?.rttMs >= 150);
  assert.deepEqual(page.logged, []);
  await page.context().close();
});

test("a program in Node joins a page's room", limit, async () => {
  const page = await run(having('"chat", { server'));
  const host = await run(`import { host } from "parlor";\nconst room = await host("dots", { server: "localhost:7700", name: "ada" });\nconsole.log(room.code);`);
  await until(host, () => host.logged.length > 0);
  const folder = await mkdtemp(join(SDK, "node_modules/.docs-"));
  const file = join(folder, "program.mjs");
  await writeFile(file, await bundled(having("process.argv"), { platform: "node", external: ["ws"] }));
  const said = await new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, host.logged[0]], { stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (bytes) => (out += bytes));
    child.on("exit", (code) => (code === 0 ? resolve(out) : reject(new Error(`the program ended with ${code}`))));
  });
  assert.equal(said.trim(), "[ 'ada', '' ]");
  await rm(folder, { recursive: true });
  await Promise.all([page.context().close(), host.context().close()]);
});

test("two players' marks move by rollback, and each page shows both", limit, async () => {
  const a = await run(having('"parlor/rollback"'));
  await a.waitForFunction(() => document.title.startsWith("join with "));
  const b = await run(having('"parlor/rollback"'), (await a.title()).slice("join with ".length));
  for (const page of [a, b]) await until(page, async () => (await drawn(page)) === 20);
  await b.keyboard.down("ArrowRight");
  const seen = new Map([[a, new Set()], [b, new Set()]]);
  for (const page of [a, b]) await until(page, async () => seen.get(page).add(await lastDrawn(page)).size > 2);
  await b.keyboard.up("ArrowRight");
  for (const page of [a, b]) assert.deepEqual(page.logged, []);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("cars of their own drive on both pages", limit, async () => {
  const a = await run(having('"parlor/own"'));
  await a.waitForFunction(() => document.title.startsWith("join with "));
  const b = await run(having('"parlor/own"'), (await a.title()).slice("join with ".length));
  for (const page of [a, b]) await until(page, async () => (await rowsDrawn(page)) === 20);
  for (const page of [a, b]) {
    const seen = new Set();
    await until(page, async () => seen.add(await lastDrawn(page)).size > 3);
    assert.deepEqual(page.logged, []);
  }
  await Promise.all([a.context().close(), b.context().close()]);
});

test("a recording that a page saved is played by `parlor replay`", limit, async () => {
  // Two hashes of the world are in it, of which the second has the score.
  const page = await run(`${having('"parlor/recording"').replace("document.body.append(button)", "globalThis.recording = recording, $&")}`);
  await page.waitForFunction(() => globalThis.recording?.figures.marks >= 2);
  await page.click("button");
  await page.waitForSelector("a[download$='.prec']");
  const bytes = await page.evaluate(async () => [...new Uint8Array(await (await fetch(document.querySelector("a").href)).arrayBuffer())]);
  const folder = await mkdtemp(join(tmpdir(), "parlor-docs-"));
  const file = join(folder, "page.prec");
  await writeFile(file, Uint8Array.from(bytes));
  const { stdout } = await promisify(execFile)(BINARY, ["replay", file]);
  assert.match(stdout, /ada is here[^]*1 key[^]*recording was stopped[^]*all agree/);
  await rm(folder, { recursive: true });
  await page.context().close();
});

test("two accounts play draughts", limit, async () => {
  const program = having('"parlor/online"');
  const pages = [await run(program), await run(program)];
  const said = (page, line) => until(page, () => page.logged.includes(line));
  // Whoever begins makes the first move; both are told of both.
  await Promise.all(pages.map((page) => until(page, () => page.logged.filter((line) => line.includes('{"path":')).length === 2)));
  const first = pages.find((page) => page.logged.includes('I {"path":[11,15]}'));
  const second = pages.find((page) => page !== first);
  await Promise.all([said(first, 'they {"path":[22,18]}'), said(second, 'they {"path":[11,15]}'), said(second, 'I {"path":[22,18]}')]);
  await Promise.all(pages.map((page) => page.context().close()));
});

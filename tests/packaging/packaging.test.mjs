// The package as npm packs it, in a small app of each bundler and runtime: it builds, and two players meet.
//
//   node --test packaging.test.mjs                                  what `cargo xtask test --all` runs
//   PACKAGING_LEVEL=weekly node --test packaging.test.mjs              all apps
//   PACKAGING_APPS=vite,deno node --test packaging.test.mjs            these

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "../browser/chromium.mjs";
import { startServer } from "../browser/server.mjs";
import { freePort, serveByCommand, serveFiles } from "./app-server.mjs";
import { appsOf } from "./apps.mjs";
import { environmentOf, install, pack, run } from "./install.mjs";

/** Only a hang takes this long. */
const HANG_MS = 300_000;
const limit = { timeout: HANG_MS };
const named = (process.env.PACKAGING_APPS ?? "").split(",").filter((name) => name !== "");
const apps = appsOf(process.env.PACKAGING_LEVEL, named);

let browser;
let sdk;
// Each process that is started is killed with this one at the latest.
process.setMaxListeners(100);

before(async () => {
  [browser, sdk] = await Promise.all([launch(), pack("sdk/ts")]);
}, limit);

after(() => browser?.close());

for (const app of apps) {
  test(app.name, limit, async () => {
    const folder = await install(app.from ?? app.name, sdk);
    for (const command of [...(app.build ?? []), ...(app.checks ?? [])]) {
      const [program, ...args] = command.replaceAll("PACKAGE", sdk).split(" ");
      await run(program, args, folder);
    }
    if (app.pages !== undefined) await playInPages(app, folder);
    if (app.run !== undefined) await playInPrograms(app.run, folder);
  });
}

async function playInPages(app, folder) {
  const port = await freePort();
  const server = await startServer("--web-origins", `http://127.0.0.1:${port}`);
  const stop = app.serve === undefined ? await serveFiles(join(folder, app.folder), port) : await serveByCommand(app.serve, folder, port);
  try {
    for (const page of app.pages) await meet(`http://127.0.0.1:${port}${page}?server=127.0.0.1:${server.port}`);
  } finally {
    await Promise.all([stop(), server.stop()]);
  }
}

/** A page hosts, another joins by the link that the first one shows, and each hears of the other. */
async function meet(url) {
  const context = await browser.newContext();
  const open = async (at) => {
    const page = await context.newPage();
    page.errors = [];
    page.on("pageerror", (error) => page.errors.push(String(error)));
    await page.goto(at);
    return page;
  };
  const first = await open(url);
  const link = await shows(first, "link");
  assert.match(link, /[?&]join=[A-Z0-9]+/);
  const second = await open(link);
  assert.equal(await shows(second, "players"), "ada ben");
  assert.equal(await shows(first, "players"), "ada ben");
  assert.equal(await shows(second, "greeted"), "hello from ben");
  for (const page of [first, second]) assert.deepEqual(page.errors, []);
  await context.close();
}

/** What the game shows under a name, once it is there. A game that failed says so. */
async function shows(page, name) {
  const shown = page.waitForFunction(
    (name) => document.body.dataset.error ?? document.body.dataset[name],
    name,
    { timeout: HANG_MS },
  );
  const text = await (await shown).jsonValue();
  assert.equal(await page.evaluate(() => document.body.dataset.error), undefined);
  return text;
}

/** A process hosts, another joins, and both end by themselves once they left. */
async function playInPrograms(command, folder) {
  const server = await startServer();
  try {
    const host = start(command, folder, [`127.0.0.1:${server.port}`]);
    const code = await host.says("code ");
    const guest = start(command, folder, [`127.0.0.1:${server.port}`, code]);
    assert.equal(await guest.says("greeted "), "hello from ben");
    assert.deepEqual(await Promise.all([host.says("players "), guest.says("players ")]), ["ada ben", "ada ben"]);
    assert.deepEqual(await Promise.all([host.ended, guest.ended]), [0, 0]);
  } finally {
    await server.stop();
  }
}

function start(command, folder, more) {
  const [program, ...args] = [...command.split(" "), ...more];
  const child = spawn(program, args, { cwd: folder, env: environmentOf(folder), stdio: ["ignore", "pipe", "pipe"] });
  process.once("exit", () => child.kill("SIGKILL"));
  let printed = "";
  let errors = "";
  let look = () => {};
  child.stderr.on("data", (bytes) => (errors += bytes));
  child.stdout.on("data", (bytes) => {
    printed += bytes;
    look();
  });
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  /** The rest of the first line that begins so. */
  const says = (begin) =>
    new Promise((resolve, reject) => {
      const looks = () => {
        const line = printed.split("\n").slice(0, -1).find((it) => it.startsWith(begin));
        if (line !== undefined) resolve(line.slice(begin.length));
        return line !== undefined;
      };
      const others = look;
      look = () => {
        others();
        looks();
      };
      if (looks()) return;
      ended.then((code) => looks() || reject(new Error(`${command} ended with ${code} before it said "${begin}": ${printed}${errors}`)), reject);
    });
  return { says, ended };
}

// The games of examples/ that browsers play: built and served by the command that a person types, and played by two on a bad
// network until one has won.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { launch } from "./chromium.mjs";
import { BINARY } from "./server.mjs";

/** Only a hang takes so long. */
const limit = { timeout: 120_000 };
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

let data;
let command;
let browser;
let base;

before(async () => {
  data = await mkdtemp(join(tmpdir(), "parlor-games-"));
  const args = ["--pages", "0", "--port", "0", "--listen", "127.0.0.1", "--data", data, "--impair", "latency=40ms,loss=2%,seed=7"];
  command = spawn(process.execPath, [join(ROOT, "examples/play.mjs"), ...args], { env: { ...process.env, PARLOR_BIN: BINARY }, stdio: ["ignore", "pipe", "inherit"] });
  process.once("exit", () => command.kill("SIGTERM"));
  let printed = "";
  base = await new Promise((resolve, reject) => {
    command.once("exit", (code) => reject(new Error(`examples/play.mjs ended with ${code}: ${printed}`)));
    command.stdout.on("data", (bytes) => {
      printed += bytes;
      const [, url] = /play (http:\/\/localhost:\d+\/)sumo/.exec(printed) ?? [];
      if (url) resolve(url);
    });
  });
  browser = await launch();
}, limit);

after(async () => {
  await browser?.close();
  const ended = new Promise((resolve) => command?.once("exit", resolve));
  command?.kill("SIGTERM");
  if (command) await ended;
  if (data) await rm(data, { recursive: true, force: true });
});

/** A page of a player of its own. */
async function open(path) {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(limit.timeout);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  await page.goto(new URL(path, base).href);
  return page;
}

const status = (page) => page.textContent("#status");
const untilStatus = (page, pattern) => page.waitForFunction((source) => new RegExp(source).test(document.getElementById("status").textContent), pattern.source);

async function leave(...pages) {
  for (const page of pages) {
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
}

test("the games have no errors of types", limit, async () => {
  const compiler = join(ROOT, "sdk/ts/node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [compiler, "--project", join(ROOT, "examples/tsconfig.json")]).catch(({ stdout, stderr }) => assert.fail(stdout + stderr));
});

test("cards: two play nine rounds in lockstep, and agree who has won", limit, async () => {
  const a = await open("cards/");
  const b = await open(await a.getAttribute("#status a", "href"));
  // Round by round: b takes the prize but for its last card, and the third round is a tie.
  const rounds = [[1, 2], [2, 3], [4, 4], [3, 5], [5, 6], [6, 7], [7, 8], [8, 9], [9, 1]];
  for (const [i, [mine, theirs]] of rounds.entries()) {
    await Promise.all([[a, mine], [b, theirs]].map(([page, card]) => page.click(`#hand button:enabled:text-is("${card}")`)));
    for (const page of [a, b]) await untilStatus(page, i === rounds.length - 1 ? /You win|You lose|A draw/ : new RegExp(`${mine} against ${theirs}`));
  }
  const [left, right] = await Promise.all([a, b].map(async (page) => (await page.textContent("#scores")).match(/\d+/g).map(Number)));
  assert.deepEqual(left, right.reverse());
  assert.equal(left[0] + left[1], 45);
  assert.match(await status(left[0] > left[1] ? a : b), /You win!/);
  await leave(a, b);
});

test("four: the one with the first disc has four in a row, and both see it, also after a reload", limit, async () => {
  const a = await open("four/?name=ada");
  const b = await open(new URL(await a.getAttribute("#more a", "href"), a.url()).href);
  const turn = (page) => untilStatus(page, /Your turn/);
  const first = await Promise.any([a, b].map((page) => turn(page).then(() => page)));
  const second = first === a ? b : a;
  for (const round of [1, 2, 3]) {
    for (const [page, column] of [[first, "3"], [second, "5"]]) {
      await turn(page);
      if (round === 2) await page.reload().then(() => turn(page));
      await page.keyboard.press(column);
    }
  }
  await turn(first);
  await first.keyboard.press("3");
  await untilStatus(first, /You win: four in a row/);
  await untilStatus(second, /You lose: four in a row/);
  await leave(a, b);
});

test("sumo: two strangers are matched, and one pushes the other off the ring three times", limit, async () => {
  const [a, b] = await Promise.all([open("sumo/"), open("sumo/")]);
  await Promise.all([a, b].map((page) => untilStatus(page, /You are/)));
  const red = (await status(a)).includes("red") ? a : b;
  const blue = red === a ? b : a;
  // Blue runs off the ring by itself, and then red pushes it off.
  await blue.keyboard.down("ArrowRight");
  await untilStatus(red, /you [1-9]/);
  await blue.keyboard.up("ArrowRight");
  await red.keyboard.down("ArrowRight");
  await untilStatus(red, /you 3 : \d You win!/);
  await untilStatus(blue, /you \d : 3 You lose\./);
  await leave(a, b);
});

// Rollback between two pages and a process in Node: 20 s of play, and the same state everywhere.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { duel } from "./duel.mjs";
import { startPlace } from "./place.mjs";

const limit = { timeout: 120_000 };
const HZ = 60;
/** 20 s of the room's time. */
const TICKS = 20 * HZ;

let place;

before(async () => {
  place = await startPlace();
}, limit);

after(() => place?.stop());

/** A page with the SDK, and the duel. */
async function openPage() {
  const page = await (await place.browser.newContext()).newPage();
  page.setDefaultTimeout(limit.timeout);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  await page.goto(place.site.url);
  await page.evaluate(async (text) => {
    const [parlor, { rollback }, math] = await Promise.all(["index", "rollback", "math"].map((name) => import(`/sdk/${name}.js`)));
    const duel = new Function(`return ${text}`)();
    globalThis.parlor = parlor;
    globalThis.playTo = (ticks) => {
      globalThis.playing = duel(room, { rollback, math }, ticks);
    };
  }, String(duel));
  return page;
}

/** The process in Node; resolves with what it saw. */
function playInNode(code) {
  const script = fileURLToPath(new URL("duel-node.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, `127.0.0.1:${place.server.port}`, code, String(TICKS)], { stdio: ["ignore", "pipe", "inherit"] });
  process.once("exit", () => child.kill("SIGKILL"));
  let out = "";
  child.stdout.on("data", (bytes) => (out += bytes));
  return new Promise((resolve, reject) => {
    child.on("exit", (status) => (status === 0 ? resolve(JSON.parse(out)) : reject(new Error(`the player in Node ended with ${status}: ${out}`))));
  });
}

test("two pages and a process in Node have the same state after 20 s, and at each step before", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const options = { server: place.server.url };
  const code = await a.evaluate(async ([options, tickHz]) => {
    globalThis.room = await parlor.host("duel", { ...options, tickHz });
    return room.code;
  }, [options, HZ]);
  await b.evaluate(async ([options, code]) => {
    globalThis.room = await parlor.join("duel", code, options);
  }, [options, code]);
  const inNode = playInNode(code);
  for (const page of [a, b]) await page.evaluate((ticks) => playTo(ticks), TICKS);
  await a.waitForFunction(() => room.players.size === 3);
  await a.evaluate(() => room.set("match", { players: [...room.players.keys()], begin: room.tickNumber + 30, inputDelay: 0 }));
  const seen = await Promise.all([inNode, ...[a, b].map((page) => page.evaluate(() => playing))]);
  assert.deepEqual([...a.faults, ...b.faults], []);
  assert.deepEqual(seen.map(({ desyncs, counted }) => [desyncs, counted]), [[0, 0], [0, 0], [0, 0]]);
  const [first, ...others] = seen.map(({ checks }) => checks);
  for (const other of others) {
    const common = Object.keys(first).filter((tick) => tick in other);
    // A process that steps at another moment settles other steps in one call.
    assert.ok(common.length > TICKS / 10, `${common.length} steps were settled at both`);
    for (const tick of common) assert.equal(other[tick], first[tick], `the state before step ${tick}`);
  }
  assert.ok(seen.some(({ rollbacks }) => rollbacks > 0), "somebody guessed wrong, or nothing was tested");
  const moved = seen[0].state.cars.filter(({ x, y }) => Math.hypot(x, y) > 3);
  assert.ok(moved.length >= 2, JSON.stringify(seen[0].state));
  console.log(`rollbacks: ${seen.map(({ rollbacks }) => rollbacks).join(", ")}`);
  await Promise.all([a.context().close(), b.context().close()]);
});

// The arena's page: two players shoot at each other, its switches do what they say, and a native room has the same game.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./chromium.mjs";
import { startServer } from "./server.mjs";

const HANG_MS = 180_000;
/** Where pictures are left for people, if this is set. */
const PICTURES = process.env.PARLOR_PICTURES;
const WIDE = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

let browser;
let folder;
let server;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "parlor-arena-"));
  [browser, server] = await Promise.all([launch(), startServer("--data", join(folder, "data"))]);
  if (PICTURES) await mkdir(PICTURES, { recursive: true });
});

after(async () => {
  await Promise.all([browser?.close(), server?.stop()]);
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Opens an address in a browser of its own. What goes wrong in the page fails the test. */
async function open(address, device = WIDE) {
  const page = await (await browser.newContext(device)).newPage();
  page.setDefaultTimeout(HANG_MS);
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.wrong.push(message.text()));
  await page.goto(address);
  return page;
}

async function enter(page, name) {
  await page.fill("#name", name);
  await page.click("#go");
  await page.waitForSelector("body[data-stage=playing]");
  return page.evaluate(() => globalThis.arena.room.code);
}

async function picture(page, name) {
  if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}.png` });
}

/** Waits in the page until a function of it gives something. */
const until = (page, ask, arg) => page.waitForFunction(ask, arg, { timeout: HANG_MS });

test("two players shoot at each other, and both see the hits", { timeout: HANG_MS }, async (t) => {
  const ada = await open(`${server.url}/arena`);
  await picture(ada, "arena-start-wide");
  const code = await enter(ada, "Ada");
  const bo = await open(`${server.url}/join/${code}`, PHONE);
  assert.equal(await bo.textContent("#go"), `Join game ${code}`);
  await picture(bo, "arena-start-phone");
  await enter(bo, "Bo");
  // Bots, which the host's page brought along, play too.
  for (const page of [ada, bo]) await until(page, () => globalThis.arena.room.players.size === 4);
  const players = await bo.$$eval("#ranking .name", (all) => all.map((it) => it.textContent));
  assert.ok(players.some((name) => /★ Ada/.test(name)) && players.some((name) => /^Bo \(you\)/.test(name)), players.join());

  // Each drives to a free place, aims at the other, and fires.
  const duel = (page) =>
    page.evaluate(() => {
      const { room, seen } = globalThis.arena;
      const enemyName = room.isHost ? "Bo" : "Ada";
      const enemy = () => {
        const id = [...room.players.values()].find(({ name }) => name === enemyName)?.id;
        return seen().find(({ owner }) => owner === id)?.tank.position;
      };
      globalThis.arena.pilot = (own) => {
        const at = enemy();
        if (!own || !at) return { east: 0, south: 0, aim: 0, fire: false, from: null };
        const aim = Math.round((Math.atan2(at.y - own.position.y, at.x - own.position.x) / (2 * Math.PI)) * 1024 + 1024) % 1024;
        const middle = { x: room.isHost ? 34 : 62, y: 10 };
        const to = (from, goal) => (Math.abs(goal - from) < 1 ? 0 : Math.sign(goal - from));
        return { east: to(own.position.x, middle.x), south: to(own.position.y, middle.y), aim, fire: true, from: null };
      };
    });
  await Promise.all([duel(ada), duel(bo)]);
  const hitsOf = (name) => {
    const { room, seen } = globalThis.arena;
    const id = [...room.players.values()].find((player) => player.name === name)?.id;
    return (seen().find(({ owner }) => owner === id)?.life?.hits ?? 0) >= 3;
  };
  for (const page of [ada, bo]) for (const name of ["Ada", "Bo"]) await until(page, hitsOf, name);
  // Whoever hits is on the board of this server.
  for (const name of ["Ada", "Bo"]) await until(ada, (name) => document.querySelector("#best").textContent.includes(name), name);
  await picture(ada, "arena-play-wide");
  await picture(bo, "arena-play-phone");
  const figures = await bo.evaluate(() => globalThis.arena.figures());
  t.diagnostic(`the guest fired ${figures.fired}, saw ${figures.seenHits} hits, and ${figures.counted} were counted`);
  assert.ok(figures.seenHits > 0);

  // A bad network shows in the graph; without prediction nothing is foreseen.
  await bo.selectOption("#network", "awful");
  await until(bo, () => document.querySelector("#net").latest.rttMs > 250);
  await bo.uncheck("#prediction");
  const confirmed = await bo.evaluate(() => globalThis.arena.room.diagnostics.prediction.confirmed);
  await bo.evaluate(() => new Promise((resolve) => setTimeout(resolve, 1_000)));
  await picture(bo, "arena-bad-phone");
  // Steps that are on their way are still confirmed: not a whole second's.
  const later = await bo.evaluate(() => globalThis.arena.room.diagnostics.prediction.confirmed);
  assert.ok(later - confirmed <= 40, `${later - confirmed} steps were confirmed without prediction`);
  // Only the host sets how hits are judged.
  assert.deepEqual([await bo.isDisabled("#lag"), await ada.isDisabled("#lag")], [true, false]);
  await ada.uncheck("#lag");
  await until(bo, () => !document.querySelector("#lag").checked);
  assert.deepEqual([ada.wrong, bo.wrong], [[], []]);
  await Promise.all([ada, bo].map((page) => page.context().close()));
});

test("a page's links lead to the server's other pages, and back", { timeout: HANG_MS }, async () => {
  const page = await open(`${server.url}/arena`);
  await page.click("#games a[href='/']");
  await page.waitForURL(`${server.url}/`);
  await page.click("#games a[href='/arena']");
  await page.waitForURL(`${server.url}/arena`);
  assert.equal(await page.title(), "Arena");
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

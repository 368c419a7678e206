// Magpies on the page that the server shows: alone with others' pages, and in one room with native players.

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./chromium.mjs";
import { startNative } from "./native.mjs";
import { startEverywhere, startServer } from "./server.mjs";

const HANG_MS = 120_000;
/** Where pictures are left for people, if this is set. */
const PICTURES = process.env.PARLOR_PICTURES;

let browser;
let server;

before(async () => {
  [browser, server] = await Promise.all([launch(), startServer()]);
  if (PICTURES) await mkdir(PICTURES, { recursive: true });
});

after(async () => {
  await Promise.all([browser?.close(), server?.stop()]);
});

const WIDE = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

/** Opens an address as somebody with a browser of their own does. What goes wrong in the page fails the test. */
async function open(address, device = WIDE) {
  const page = await (await browser.newContext(device)).newPage();
  page.setDefaultTimeout(HANG_MS);
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.wrong.push(message.text()));
  await page.goto(address);
  return page;
}

/** Gives a name and presses the large button. */
async function enter(page, name) {
  await page.fill("#name", name);
  await page.click("#go");
  await page.waitForSelector("body[data-stage=playing]");
  return page.evaluate(() => globalThis.magpies.room.code);
}

async function picture(page, name) {
  if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}.png` });
}

/** Asks again and again until the answer is true. */
async function until(what, ask) {
  const end = performance.now() + HANG_MS;
  while (!(await ask())) {
    assert.ok(performance.now() < end, `not so within ${HANG_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const names = (page) => page.$$eval("#ranking .name", (all) => all.map((it) => it.textContent));

/** What the page knows of its room. */
const known = (page) =>
  page.evaluate(() => {
    const { room } = globalThis.magpies;
    return {
      me: room.me, host: room.host, isHost: room.isHost, tick: room.tickNumber, status: room.status, players: [...room.players.keys()],
      birds: Object.fromEntries(room.entries("p/").map(([key, { x, y, score }]) => [key, { x, y, score }])),
    };
  });

/** The magpie of a player flies in a direction until it is seen elsewhere on another page. */
async function seenToFly(page, other) {
  const { me, birds } = await known(page);
  const { x } = birds[`p/${me}`];
  await page.keyboard.press(x < 30 ? "ArrowRight" : "ArrowLeft");
  await until("the magpie flies", async () => Math.abs((await known(other)).birds[`p/${me}`].x - x) > 5);
}

/** Keeps the hash of the state at each sequence that a page has whole, in `hashes`: of the first host that it knew. */
const keepHashes = (page) =>
  page.evaluate(() => {
    const hashes = (globalThis.hashes = new Map());
    const { room } = globalThis.magpies;
    const { host } = room;
    room.on("state", () => {
      const it = room.host === host ? room.stateHash : undefined;
      if (it) hashes.set(Number(it.sequence), it.hash.toString(16).padStart(16, "0"));
    });
  });

/** Waits until a page has hashes of sequences that native players report: each hundredth. A busy page has not all. */
const comparable = (page) =>
  until("there are hashes", () => page.evaluate(() => [...globalThis.hashes.keys()].filter((it) => it % 100 === 0).length >= 2));

/** Where a page and a native player report the state of the same sequence, it is the same. */
async function compareHashes(page, reports) {
  const ours = new Map(await page.evaluate(() => [...globalThis.hashes]));
  let compared = 0;
  for (const { state_hashes: theirs } of reports) {
    for (const [sequence, hash] of Object.entries(theirs)) {
      const own = ours.get(Number(sequence));
      if (own === undefined) continue;
      compared += 1;
      assert.equal(own, hash, `at ${sequence}`);
    }
  }
  assert.ok(compared > 0, `no sequence in common: ${JSON.stringify(reports.map((it) => it.state_hashes))}`);
}

test("the server shows the pages that it was built with, or those of the folder that it was given", { timeout: HANG_MS }, async () => {
  const folder = process.env.PARLOR_PAGES;
  const list = folder === undefined ? new URL("../../web/dist/table.rs", import.meta.url) : join(folder, "pages.json");
  const script = /\/assets\/play\.\w+\.js/.exec(await readFile(list, "utf8"))[0];
  const page = await open(server.url);
  assert.deepEqual(await page.$$eval("script", (all) => all.map(({ src }) => new URL(src).pathname)), [script]);
  await page.context().close();
});

test("a fresh server's page hosts, its link leads a second browser in, and both see each other", { timeout: HANG_MS }, async () => {
  const ada = await open(server.url);
  await picture(ada, "start-wide");
  const code = await enter(ada, "Ada");
  await ada.waitForSelector("#alone:not([hidden])");
  await ada.click("#alone-invite");
  await ada.waitForSelector("#dialog[open]");
  await picture(ada, "invite-wide");
  const link = await ada.inputValue("#link");
  assert.match(link, new RegExp(`/join/${code}(#|$)`));
  await ada.click("#dialog-close");

  const bo = await open(link, PHONE);
  await picture(bo, "start-phone");
  assert.equal(await bo.textContent("#go"), `Join game ${code}`);
  assert.equal(await enter(bo, "Bo"), code);
  for (const page of [ada, bo]) {
    await until("both are listed", async () => (await names(page)).length === 2);
    const listed = (await names(page)).join();
    assert.match(listed, /★ Ada/);
    assert.match(listed, /Bo/);
  }
  await seenToFly(ada, bo);
  await bo.touchscreen.tap(60, 700);
  await picture(ada, "play-wide");
  await picture(bo, "play-phone");
  assert.deepEqual([ada.wrong, bo.wrong], [[], []]);
  await Promise.all([ada.context().close(), bo.context().close()]);
});

test("a page is the guest of a native host, and has the same state as native bots", { timeout: HANG_MS }, async () => {
  const host = startNative("play", server.port, "--name", "Grace", "--json");
  const code = await host.says("room ");
  const bots = startNative("bots", server.port, "--join", code, "--count", "2", "--json");
  const page = await open(`${server.url}/join/${code}`);
  await enter(page, "Ada");
  await keepHashes(page);
  await until("all four are there", async () => (await names(page)).length === 4);
  await seenToFly(page, page);
  await comparable(page);
  await picture(page, "guest-wide");
  await compareHashes(page, [...(await bots.report()).bots, await host.report()]);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("a page hosts native bots, and they score", { timeout: HANG_MS }, async () => {
  const page = await open(server.url);
  const code = await enter(page, "Ada");
  const bots = startNative("bots", server.port, "--join", code, "--count", "3", "--json");
  await until("they score", async () => Object.values((await known(page)).birds).filter(({ score }) => score > 0).length > 1);
  await picture(page, "host-wide");
  assert.ok((await known(page)).isHost);
  assert.equal((await bots.report()).bots.length, 3);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("from the printed URL a page joins a native host, steers, and goes on when the host's process is killed", { timeout: HANG_MS }, async () => {
  const server = await startEverywhere();
  let printed;
  // The port is said in an earlier line.
  await until("the URL is printed", async () => ([printed] = /http:\/\/localhost:\d+\/(?=\s)/.exec(server.printed.out) ?? []).length > 0);
  const host = startNative("play", server.port, "--name", "Grace", "--json");
  const code = await host.says("room ");
  // A process that is killed reports nothing. What it published, the bot reports.
  const bot = startNative("bots", server.port, "--join", code, "--count", "1", "--json");
  const page = await open(printed);
  await page.fill("#name", "Ada");
  await page.fill("#code-in", code);
  await page.click("#join");
  await page.waitForSelector("body[data-stage=playing]");
  await keepHashes(page);
  await until("all fly", async () => Object.keys((await known(page)).birds).length === 3);
  await seenToFly(page, page);
  await comparable(page);
  const before = await known(page);
  await host.kill();
  await until("there is another host", async () => ![undefined, before.host].includes((await known(page)).host));
  await until("the room goes on", async () => (await known(page)).tick > before.tick + 30);
  await seenToFly(page, page);
  await compareHashes(page, (await bot.report()).bots);
  await until("the page is the host", async () => (await known(page)).isHost);
  await seenToFly(page, page);
  assert.equal((await known(page)).status, "open");
  assert.deepEqual(page.wrong, []);
  await page.context().close();
  await server.stop();
});

test("the tab of the page that hosts is closed, and a native bot goes on", { timeout: HANG_MS }, async () => {
  const page = await open(server.url);
  const code = await enter(page, "Ada");
  const bots = startNative("bots", server.port, "--join", code, "--count", "2", "--json");
  await until("all fly", async () => Object.keys((await known(page)).birds).length === 3);
  await page.close();
  await bots.says("host ");
  const again = await open(`${server.url}/join/${code}`);
  await enter(again, "Bo");
  await until("the bots fly on", async () => Object.keys((await known(again)).birds).length >= 3);
  assert.ok(!(await known(again)).isHost);
  await bots.report();
  await again.context().close();
});

// Draughts on the page that the server shows: two browsers, a server that is killed between moves, reloads and links.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./chromium.mjs";
import { startServer } from "./server.mjs";

const HANG_MS = 120_000;
const limit = { timeout: 2 * HANG_MS };
/** Where pictures are left for people, if this is set. */
const PICTURES = process.env.PARLOR_PICTURES;
const WIDE = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

let browser;
let folder;
let server;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "parlor-draughts-"));
  [browser, server] = await Promise.all([launch(), startServer("--data", join(folder, "data"))]);
  if (PICTURES) await mkdir(PICTURES, { recursive: true });
}, limit);

after(async () => {
  await Promise.all([browser?.close(), server?.stop()]);
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Opens the page as somebody with a browser of their own does. What goes wrong in the page fails the test. */
async function open(address = "/draughts", device = WIDE) {
  const page = await (await browser.newContext(device)).newPage();
  page.setDefaultTimeout(HANG_MS);
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(error.message));
  page.on("dialog", (dialog) => void dialog.accept());
  await page.goto(new URL(address, server.url).href);
  return page;
}

async function enter(page, name, button = "#go") {
  await page.fill("#name", name);
  await page.click(button);
  await page.waitForSelector("body[data-stage=playing]");
}

const picture = async (page, name) => PICTURES && page.screenshot({ path: `${PICTURES}/draughts-${name}.png` });
const text = (page, selector) => page.textContent(selector);
const says = (page, selector, words) => page.waitForFunction(([selector, words]) => document.querySelector(selector).textContent.includes(words), [selector, words]);

/** The pieces as the page shows them, square by square. */
const board = (page) =>
  page.$$eval(".square", (all) => all.sort((a, b) => a.dataset.square - b.dataset.square).map((it) => it.ariaLabel.replace(/,.*/, "")));

/** The page of two whose player is on turn. */
async function onTurn(pages) {
  const found = await Promise.race(pages.map((page) => page.waitForSelector(".square.movable").then(() => page)));
  return [found, pages.find((page) => page !== found)];
}

/** Makes the first move that the page offers; the other one sees it. */
async function move(page, other) {
  const before = await page.locator("#moves li").count();
  await page.locator(".square.movable").first().click();
  while (await page.locator(".square.chosen").count()) await page.locator(".square.target").last().click();
  await says(other, "#turn", "Your move");
  assert.ok((await page.locator("#moves li").count()) > before, await text(page, "#wrong"));
  assert.deepEqual(await board(page), await board(other), "both see the same");
}

test("two find each other, and play on after the server was killed between moves", limit, async () => {
  const pages = [await open(), await open("/draughts", PHONE)];
  await picture(pages[0], "start-wide");
  await picture(pages[1], "start-phone");
  await enter(pages[0], "Ada");
  await says(pages[0], "#banner-text", "Waiting");
  await picture(pages[0], "waiting-wide");
  await enter(pages[1], "Bob");
  for (let turn = 0; turn < 6; turn++) {
    const [mover, other] = await onTurn(pages);
    if (turn === 3) {
      // Between two moves: both see that it is gone, and come back by themselves.
      const { port } = server;
      await server.kill();
      await Promise.all(pages.map((page) => says(page, "#turn", "No connection")));
      await picture(other, "lost");
      server = await startServer("--data", join(folder, "data"), "--port", String(port));
      await Promise.all([says(mover, "#turn", "Your move"), says(other, "#turn", "is thinking")]);
    }
    await move(mover, other);
  }
  await picture(pages[0], "game-wide");
  await picture(pages[1], "game-phone");
  // A page that begins anew is in the same game.
  const shown = await board(pages[0]);
  await pages[0].reload();
  await pages[0].waitForSelector("body[data-stage=playing]");
  assert.deepEqual(await board(pages[0]), shown);
  const [mover, other] = await onTurn(pages);
  await move(mover, other);
  await other.click("#resign");
  await says(mover, "#banner-text", "You won");
  await says(other, "#banner-text", "you gave up");
  await picture(mover, "over");
  assert.deepEqual(pages.flatMap((page) => page.wrong), []);
  await Promise.all(pages.map((page) => page.context().close()));
});

test("a friend comes by the link, plays with the keyboard, and a stranger is refused", limit, async () => {
  const one = await open();
  await enter(one, "Ada", "#friend");
  await one.click("#banner-go");
  const link = await one.inputValue("#link");
  await one.click("#dialog-close");
  const code = new URL(link).searchParams.get("join");
  const other = await open(`/draughts?join=${code}`);
  await says(other, "#go", code);
  await enter(other, "Bob");
  const [mover, waits] = await onTurn([one, other]);
  // Each piece that may move is reached by arrows.
  await mover.focus(".square[tabindex='0']");
  for (let step = 0; !(await mover.evaluate(() => document.activeElement.matches(".movable"))); step++) {
    assert.ok(step < 32, "a piece is found");
    await mover.keyboard.press(step % 5 === 4 ? "ArrowUp" : "ArrowRight");
  }
  await mover.keyboard.press("Enter");
  assert.equal(await mover.locator(".square.chosen").count(), 1);
  await mover.keyboard.press("Escape");
  assert.equal(await mover.locator(".square.chosen").count(), 0);
  await mover.keyboard.press("Enter");
  await mover.keyboard.press("ArrowUp");
  if (!(await mover.evaluate(() => document.activeElement.matches(".target")))) await mover.keyboard.press("ArrowLeft");
  await mover.keyboard.press("Enter");
  await says(waits, "#turn", "Your move");
  assert.deepEqual(await board(mover), await board(waits));
  const third = await open(`/draughts?join=${code}`);
  await third.fill("#name", "Eve");
  await third.click("#go");
  await third.waitForSelector("#trouble:not([hidden])");
  assert.notEqual(await text(third, "#trouble"), "");
  await third.goto(new URL("/draughts?join=ZZZZZZ", server.url).href);
  await third.click("#go");
  await says(third, "#trouble", "room");
  await Promise.all([one, other, third].map((page) => page.context().close()));
});

test("a server that keeps no accounts says so", limit, async () => {
  const plain = await startServer();
  const page = await open(new URL("/draughts", plain.url).href);
  await page.fill("#name", "Ada");
  await page.click("#go");
  await says(page, "#trouble", "keeps no accounts");
  await Promise.all([page.context().close(), plain.stop()]);
});

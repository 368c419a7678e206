// The page of operators: what a running server shows, a token that is good for nothing, and names that strangers chose.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { launch } from "./chromium.mjs";
import { BINARY, startServer } from "./server.mjs";

const HANG_MS = 120_000;
const limit = { timeout: 2 * HANG_MS };
/** Where pictures are left for people, if this is set. */
const PICTURES = process.env.PARLOR_PICTURES;
const WIDE = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
/** A name that a page would run if it took it for HTML. */
const HOSTILE = "<img src=x onerror=alert(1)>";

const run = promisify(execFile);
let browser;
let folder;
let server;
let key;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "parlor-admin-"));
  key = join(folder, "operator");
  await run(BINARY, ["token", "--new-key", key]);
  [browser, server] = await Promise.all([
    launch(),
    startServer("--data", join(folder, "data"), "--operator-key", `${key}.pub`),
  ]);
  if (PICTURES) await mkdir(PICTURES, { recursive: true });
}, limit);

after(async () => {
  await Promise.all([browser?.close(), server?.stop()]);
  if (folder) await rm(folder, { recursive: true, force: true });
});

const token = async (app, role = "admin") => (await run(BINARY, ["token", "--key", key, "--role", role, "--app", app, "--user", "me"])).stdout.trim();

/** Opens a page; what goes wrong in it is kept. */
async function open(address, device = WIDE) {
  const page = await (await browser.newContext(device)).newPage();
  page.setDefaultTimeout(HANG_MS);
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(error.message));
  page.on("dialog", (dialog) => {
    page.wrong.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(new URL(address, server.url).href);
  return page;
}

async function enter(page, text) {
  await page.fill("#token", text);
  await page.click("#go");
}

const picture = async (page, name) => PICTURES && page.screenshot({ path: `${PICTURES}/admin-${name}.png`, fullPage: true });
async function says(page, selector, words) {
  const waited = page.waitForFunction(([selector, words]) => document.querySelector(selector).textContent.includes(words), [selector, words]);
  await waited.catch(async (error) => assert.fail(`${selector} says ${JSON.stringify(await page.textContent(selector))} and not ${words}: ${error.message}`));
}

async function call(account, path, body) {
  const headers = { "content-type": "application/json", ...(account && { authorization: `Bearer ${account.access_token}` }) };
  const answer = await fetch(`${server.url}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const said = await answer.json();
  assert.ok(answer.ok, JSON.stringify(said));
  return said;
}

test("an operator sees rooms, members, boards and accounts as they come and go", limit, async () => {
  // A game on a page: its room is in memory.
  const player = await open("/");
  await player.fill("#name", "Ada");
  await player.click("#go");
  await player.waitForSelector("body[data-stage=playing]");
  const magpies = await open("/admin");
  await picture(magpies, "start");
  await enter(magpies, await token("magpies"));
  await says(magpies, "#where", "me, admin");
  await says(magpies, "#live", "player-hosted");
  await magpies.click("#live button");
  await says(magpies, "#members", "Ada");
  await says(magpies, "#members", " ms");
  await picture(magpies, "wide");
  await player.context().close();
  await says(magpies, "#members", ", lost");
  await magpies.click("#room-close");

  // A game with accounts, on another page: each token shows its own game alone.
  const account = await call(undefined, "/auth/guest", { app: "tanks", name: "Bo" });
  await call(account, "/boards/kills/scores", { score: 1234567, extra: {} });
  await call(account, "/rooms", { name: HOSTILE });
  const tanks = await open("/admin", PHONE);
  await enter(tanks, await token("tanks"));
  await says(tanks, "#turn", HOSTILE);
  await says(tanks, "#boards", "kills");
  await tanks.click("#boards button");
  await says(tanks, "#entries", "1,234,567");
  await says(tanks, "#rows", "accounts");
  await tanks.fill("#account", account.account.id);
  await tanks.click("#look-up button");
  await says(tanks, "#stored", "Bo");
  await picture(tanks, "phone");
  assert.equal(await tanks.locator("#turn img").count(), 0, "a name is no HTML");
  assert.ok(!(await magpies.textContent("main")).includes("kills"), "another game's board");
  // A reload keeps the token, another tab has none, and who signs out has none either.
  await tanks.reload();
  await says(tanks, "#boards", "kills");
  assert.equal(await (await open("/admin")).getAttribute("body", "data-stage"), "start");
  await tanks.click("#leave");
  await tanks.reload();
  assert.equal(await tanks.getAttribute("body", "data-stage"), "start");
  assert.deepEqual([...player.wrong, ...magpies.wrong, ...tanks.wrong], []);
});

test("a token that is good for nothing says so, and less is shown to who may see less", limit, async () => {
  const page = await open("/admin");
  await page.click("#go");
  await says(page, "#trouble", "Paste a token");
  await enter(page, "nonsense");
  await page.waitForSelector("#trouble:not([hidden])");
  assert.equal(await page.getAttribute("body", "data-stage"), "start");
  const account = await call(undefined, "/auth/guest", { app: "tanks" });
  await enter(page, account.access_token);
  await says(page, "#trouble", "role");
  assert.equal(await page.getAttribute("body", "data-stage"), "start", "players see nothing of it");
  await enter(page, await token("tanks", "server"));
  await says(page, "#where", "server");
  await says(page, "#bans", "role");
  await page.waitForSelector("#figures div");
  assert.deepEqual(page.wrong, []);
});

test("a server that is gone for a while is shown again when it is back", limit, async () => {
  const page = await open("/admin");
  await enter(page, await token("tanks"));
  await page.waitForSelector("#figures div");
  const { port } = server;
  await server.kill();
  await says(page, "#wrong", "cannot be reached");
  server = await startServer("--port", String(port), "--data", join(folder, "data"), "--operator-key", `${key}.pub`);
  await page.waitForSelector("#wrong", { state: "hidden" });
  assert.deepEqual(page.wrong, []);
});

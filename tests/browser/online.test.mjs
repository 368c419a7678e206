// Accounts on pages of a game: the same player in a realtime room, and tabs that refresh at once.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./chromium.mjs";
import { startServer } from "./server.mjs";
import { startSite } from "./site.mjs";

const HANG_MS = 120_000;
const limit = { timeout: HANG_MS };

let browser;
let folder;
let server;
let site;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "parlor-online-"));
  [browser, site] = await Promise.all([launch(), startSite()]);
  server = await startServer("--data", folder, "--web-origins", site.url.slice(0, -1));
}, limit);

after(async () => {
  await Promise.all([browser?.close(), server?.stop(), site?.stop()]);
  if (folder) await rm(folder, { recursive: true, force: true });
});

async function open(context) {
  const page = await context.newPage();
  page.setDefaultTimeout(HANG_MS);
  await page.goto(site.url);
  await page.evaluate(async (server) => {
    globalThis.parlor = await import("/sdk/index.js");
    globalThis.online = await import("/sdk/online.js");
    globalThis.server = server;
    globalThis.signIn = async (name) => (globalThis.account = await online.signIn(server, { app: "dots", name })).id;
  }, server.url);
  return page;
}

test("an account is the same player in a realtime room", limit, async () => {
  const [a, b] = await Promise.all([open(await browser.newContext()), open(await browser.newContext())]);
  const id = await a.evaluate(() => signIn("ada"));
  const code = await a.evaluate(async () => {
    // The account knows the server.
    globalThis.room = await parlor.host("dots", { account, name: "ada" });
    return room.code;
  });
  const other = await b.evaluate(() => signIn("bob"));
  assert.notEqual(other, id);
  const users = await b.evaluate(async (code) => {
    globalThis.room = await parlor.join("dots", code, { account, name: "bob" });
    return [...room.players.values()].map(({ name, user }) => [name, user]);
  }, code);
  assert.deepEqual(users, [["ada", id], ["bob", other]]);
  const refused = await a.evaluate(async () => {
    await account.signOut();
    return parlor.host("dots", { account }).then(() => "opened", (why) => [why instanceof parlor.ParlorError, why.code]);
  });
  assert.deepEqual(refused, [true, "signed_out"]);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("two tabs that refresh at once both stay signed in", limit, async () => {
  const context = await browser.newContext();
  const first = await open(context);
  const id = await first.evaluate(() => signIn("ada"));
  const kept = () => first.evaluate(() => JSON.parse(Object.entries(localStorage).find(([key]) => key.startsWith("parlor-sign-in:"))[1]));
  const before = await kept();
  // Each tab that begins anew uses the refresh token up that all of them find.
  const tabs = await Promise.all(Array.from({ length: 4 }, () => open(context)));
  assert.deepEqual(await Promise.all(tabs.map((tab) => tab.evaluate(() => signIn("ada")))), [id, id, id, id]);
  const after = await kept();
  assert.equal(after.device, before.device);
  assert.notEqual(after.refresh, before.refresh);
  const me = (tab) => tab.evaluate(async () => (await account.call("account.me", {})).account.id);
  assert.deepEqual(await Promise.all([first, ...tabs].map(me)), [id, id, id, id, id]);
  // Nobody had to sign in by the device again: there is one sign-in, and it is still good.
  const exported = await first.evaluate(async () => {
    const parts = [];
    for (let after; ; ) {
      const part = await account.call("account.export", after === undefined ? {} : { after });
      parts.push(part);
      if (!part.next) return parts.filter(({ kind }) => kind === "sign_ins").flatMap(({ entries }) => entries);
      after = part.next;
    }
  });
  assert.equal(exported.length, 1, JSON.stringify(exported));
  await context.close();
});

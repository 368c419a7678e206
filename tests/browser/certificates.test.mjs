// The short-lived certificates that browsers are shown: they are replaced while pages play, between two joins, and
// while a server was away. Certificates in the folder of the server's identity have the age that a test needs.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { prepareIdentity } from "./certificate.mjs";
import { launch } from "./chromium.mjs";
import { startServer } from "./server.mjs";
import { startSite } from "./site.mjs";

const HANG_MS = 120_000;
const limit = { timeout: HANG_MS };
const DAY_S = 24 * 60 * 60;

let browser;
let site;

before(async () => {
  [browser, site] = await Promise.all([launch(), startSite()]);
}, limit);

after(() => Promise.all([browser?.close(), site?.stop()]));

/** A server whose certificate for browsers is used for so long from now. Returns it, and both hashes. */
async function serverWith(usedForS) {
  const folder = mkdtempSync(path(tmpdir(), "parlor-identity-"));
  const hashes = prepareIdentity(folder, usedForS);
  const server = await startServer("--identity", folder, "--web-origins", site.url.slice(0, -1));
  const stop = async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  };
  return { ...server, hashes, stop };
}

async function hashesOf(server) {
  return (await (await fetch(`${server.url}/web.json`)).json()).webtransport.hashes;
}

async function openPage() {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(HANG_MS);
  await page.goto(site.url);
  await page.evaluate(async () => (globalThis.parlor = await import("/sdk/index.js")));
  return page;
}

/** Hosts, or joins if there is an invite, over WebTransport alone. Resolves with the code, or what went wrong. */
const play = (page, server, invite) =>
  page.evaluate(async ([server, invite]) => {
    const options = { via: "webtransport", worker: false, ...(server === undefined ? {} : { server }) };
    try {
      globalThis.room = await (invite === undefined ? parlor.host("dots", options) : parlor.join("dots", invite, options));
      return room.code;
    } catch ({ code, message, hint }) {
      return { code, message, hint };
    }
  }, [server, invite]);

/** The paths that a page asks for. */
function asked(page) {
  const paths = [];
  page.on("request", (request) => paths.push(new URL(request.url()).pathname));
  return paths;
}

test("a certificate is replaced while a page plays, and between two joins", limit, async () => {
  const server = await serverWith(15);
  const [old, next] = server.hashes;
  assert.deepEqual(await hashesOf(server), [old, next], "the server took what was in the folder");
  const host = await openPage();
  const code = await play(host, server.url);
  assert.equal(typeof code, "string", JSON.stringify(code));
  await host.evaluate(() => {
    globalThis.lost = [];
    room.on("connectionLost", () => lost.push("lost"));
    room.run({ tick: () => room.set("beats", (room.get("beats") ?? 0) + 1) });
  });
  while ((await hashesOf(server))[0] === old) await sleep(100);
  assert.equal((await hashesOf(server))[0], next, "the one that was known before");

  // The room goes on.
  const beats = await host.evaluate(() => room.get("beats"));
  await host.waitForFunction((beats) => room.get("beats") > beats + 30, beats);
  assert.deepEqual(await host.evaluate(() => [room.link, lost]), ["webtransport", []]);

  // An invite from before knows both: nothing is asked. One that knows the old one alone asks for the present ones.
  for (const [hashes, asks] of [[[old, next], false], [[old], true]]) {
    const guest = await openPage();
    const paths = asked(guest);
    assert.equal(await play(guest, undefined, `${server.url}/join/${code}#w=${hashes}`), code);
    assert.equal(paths.includes("/web.json"), asks, hashes.join());
    await guest.waitForFunction(() => room.get("beats") > 0);
    await guest.context().close();
  }

  // Where the server cannot be asked, the page says what to do.
  const stranded = await openPage();
  await stranded.route("**/web.json", (route) => route.abort());
  const why = await play(stranded, undefined, `${server.url}/join/${code}#w=${old}`);
  assert.equal(why.code, "unreachable");
  assert.match(why.message, /certificate may have been replaced/);
  assert.match(why.hint, /ask for a new invite/);
  await Promise.all([host, stranded].map((page) => page.context().close()));
  await server.stop();
});

test("certificates that expired while the server was away are replaced at its start", limit, async () => {
  const server = await serverWith(-20 * DAY_S);
  const present = await hashesOf(server);
  assert.ok(!server.hashes.some((hash) => present.includes(hash)));
  const host = await openPage();
  const code = await play(host, server.url);
  const guest = await openPage();
  const paths = asked(guest);
  assert.equal(await play(guest, undefined, `${server.url}/join/${code}#w=${server.hashes}`), code);
  assert.ok(paths.includes("/web.json"));
  await Promise.all([host, guest].map((page) => page.context().close()));
  await server.stop();
});

// Pages of the SDK over WebTransport: by the hashes of /web.json or of an invite, beside WebSocket, and without UDP.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { after, before, test } from "node:test";
import { startProxy } from "./proxy.mjs";
import { startPlace } from "./place.mjs";

const HANG_MS = 120_000;
const limit = { timeout: HANG_MS };
/** A page whose UDP leads nowhere has its room over WebSocket within so long. */
const FALLBACK_MS = 1_500;

let place;
let browser;
let site;
let server;

before(async () => {
  place = await startPlace();
  ({ browser, site, server } = place);
}, limit);

after(() => place?.stop());

async function openPage() {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(HANG_MS);
  await page.goto(site.url);
  await page.evaluate(async () => {
    globalThis.parlor = await import("/sdk/index.js");
    await parlor.load();
  });
  return page;
}

/** Hosts or joins, and says how it went. */
const host = (page, options = {}) =>
  page.evaluate(async (options) => {
    globalThis.room = await parlor.host("dots", options);
    return { code: room.code, link: room.link, invite: room.inviteUrl() };
  }, { server: server.url, ...options });
const join = (page, invite, options = {}) =>
  page.evaluate(async ([invite, options]) => {
    const began = performance.now();
    globalThis.room = await parlor.join("dots", invite, options);
    return { link: room.link, ms: performance.now() - began };
  }, [invite, { server: server.url, ...options }]);

test("a page plays over WebTransport, by the hashes that the server gives, with one over WebSocket", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const opened = await host(a, { name: "ada" });
  assert.equal(opened.link, "webtransport");
  assert.equal((await join(b, opened.code, { via: "websocket" })).link, "websocket");
  await b.waitForFunction(() => room.players.size === 2);
  const links = await b.evaluate(() => [...room.players.values()].map(({ link }) => link));
  assert.deepEqual(links, ["webtransport", "websocket"]);
  await a.evaluate(() => {
    room.run({
      tick() {
        for (const [player, { n }] of room.inputs()) room.set(`n/${player}`, n);
      },
    });
  });
  await b.evaluate(() => {
    let n = 0;
    room.run({ tick: () => room.sendInput({ n: ++n }) });
  });
  await b.waitForFunction(() => room.get("n/1") > 30);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("messages on every lane arrive over WebTransport, large ones too", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const { code } = await host(a);
  assert.equal((await join(b, code)).link, "webtransport");
  await b.evaluate(() => {
    globalThis.heard = [];
    room.on("message", ({ kind, value }) => heard.push([kind, value.length ?? value]));
  });
  await a.waitForFunction(() => room.players.size === 2);
  await a.evaluate(() => {
    for (let i = 0; i < 100; i++) room.broadcast("ordered", i);
    for (const lane of ["reliable", "ordered"]) room.broadcast(lane === "ordered" ? "large" : lane, new Uint8Array(60_000), { lane });
  });
  await b.waitForFunction(() => heard.length === 102);
  const ordered = await b.evaluate(() => heard.filter(([kind]) => kind === "ordered").map(([, i]) => i));
  assert.deepEqual(ordered, Array.from({ length: 100 }, (_, i) => i));
  const rtts = await a.evaluate(async () => {
    const all = [];
    for (let i = 0; i < 100; i++) {
      const began = performance.now();
      room.send("all", "echo", i);
      await room.next("message");
      all.push(performance.now() - began);
    }
    return all.sort((x, y) => x - y);
  });
  console.log(`a message to all and back over WebTransport: p50 ${rtts[50].toFixed(1)} ms, p99 ${rtts[98].toFixed(1)} ms`);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("an invite has the hashes, so that nothing is asked before", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const { webtransport } = await (await fetch(`${server.url}/web.json`)).json();
  const { code } = await host(a);
  const asked = [];
  b.on("request", (request) => asked.push(new URL(request.url()).pathname));
  const invite = `${server.url}/join/${code}#w=${webtransport.hashes.join(",")}`;
  assert.equal((await join(b, invite, { server: undefined, worker: false })).link, "webtransport");
  assert.deepEqual(asked.filter((path) => path === "/web.json"), []);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("a page whose UDP leads nowhere, or whose hash is wrong, is in the room soon", limit, async () => {
  const a = await openPage();
  const { code } = await host(a);
  const proxy = await startProxy(server.port);
  const silent = createSocket("udp4");
  await new Promise((resolve) => silent.bind(Number(new URL(proxy.url).port), "127.0.0.1", resolve));
  const wrong = "A".repeat(43);
  // The server's own port gives its present hashes. In the head start they may be late.
  for (const [url, links] of [[proxy.url, ["websocket"]], [server.url, ["webtransport", "websocket"]]]) {
    const b = await openPage();
    const { link, ms } = await join(b, `${url}/join/${code}#w=${wrong}`, { server: undefined });
    console.log(`over ${link} after ${ms.toFixed(0)} ms`);
    assert.ok(links.includes(link), link);
    assert.ok(ms <= FALLBACK_MS, `${ms} ms`);
    await b.context().close();
  }
  silent.close();
  await proxy.stop();
  await a.context().close();
});

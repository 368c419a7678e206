// What becomes of a host whose tab is reloaded, frozen or hidden, and of who watches only.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launchBare } from "./bare.mjs";
import { dotsIn, eventsOf, HANG_MS, withSdk } from "./dots.mjs";
import { startPlace } from "./place.mjs";

const limit = { timeout: HANG_MS };
const FROZEN_MS = 5_000;

let place;
let openPage;
let host;
let join;
let rejoin;

before(async () => {
  place = await startPlace();
  ({ openPage, host, join, rejoin } = dotsIn(place));
}, limit);

after(() => place?.stop());

test("a host that is alone reloads: the same room, code and player, and its world is there", limit, async () => {
  const a = await openPage();
  const { code, me } = await host(a);
  await a.evaluate(() => room.run({ tick: () => room.set("round", { n: 7 }) }));
  await a.waitForFunction(() => sessionStorage.length > 0 && room.get("round")?.n === 7);
  // What another page was told of the state, the server has.
  const b = await openPage();
  await join(b, code);
  await b.waitForFunction(() => room.get("round")?.n === 7);
  await b.evaluate(() => room.leave());
  await a.waitForFunction(() => room.players.size === 1);
  await a.reload();
  await withSdk(a);
  const again = await rejoin(a);
  assert.deepEqual([again.code, again.me], [code, me]);
  await a.waitForFunction(() => room.isHost && room.status === "open");
  assert.deepEqual(await a.evaluate(() => room.get("round")), { n: 7 });
  await a.evaluate(() => room.set("round", { n: 8 }));
  await join(b, code);
  await b.waitForFunction(() => room.get("round")?.n === 8);
  assert.deepEqual([...a.faults, ...b.faults], []);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("a host that is frozen for 5 s finds another host, and is a player again", limit, async () => {
  const { site, server } = place;
  // Playwright's pages are never hidden, and what is not hidden is not frozen.
  const bare = await launchBare();
  const a = await bare.newPage(site.url);
  const { code, me } = await a.evaluate(async (server) => {
    const parlor = await import("/sdk/index.js");
    globalThis.room = await parlor.host("dots", { server, via: "websocket" });
    globalThis.ends = [];
    room.on("closed", ({ code }) => ends.push(code));
    room.run({ tick: () => room.isHost && room.set("n", room.tickNumber) });
    return { code: room.code, me: room.me };
  }, server.url);
  const b = await openPage();
  const { me: heir } = await join(b, code);
  await b.waitForFunction(() => room.get("n") > 0);
  await a.setLifecycle("frozen");
  const since = Date.now();
  await b.waitForFunction(() => room.isHost && room.status === "open");
  console.log(`a frozen host had an heir after ${Date.now() - since} ms`);
  await b.evaluate(() => room.run({ tick: () => room.set("n", -room.tickNumber) }));
  await b.waitForTimeout(Math.max(0, FROZEN_MS - (Date.now() - since)));
  await a.setLifecycle("active");
  await a.evaluate(async (heir) => {
    while (room.status !== "open" || room.host !== heir || !(room.get("n") < 0)) await room.next("state");
  }, heir);
  assert.deepEqual(await a.evaluate(() => [room.me, room.isHost, room.players.size, ends]), [me, false, 2, []]);
  await a.evaluate(() => room.broadcast("back", 1));
  await b.waitForFunction(() => events.some(({ type, kind }) => type === "message" && kind === "back"));
  await Promise.all([bare.close(), b.context().close()]);
});

test("a hidden host that is asked to hands its part over, and stays as a player", limit, async () => {
  const { site, server } = place;
  // Playwright's pages are never hidden.
  const bare = await launchBare();
  const a = await bare.newPage(site.url);
  const code = await a.evaluate(async (server) => {
    const parlor = await import("/sdk/index.js");
    globalThis.room = await parlor.host("dots", { server, via: "websocket", whenHidden: "hand-over" });
    room.run({ tick: () => room.isHost && room.set("n", 1) });
    return room.code;
  }, server.url);
  const b = await openPage();
  const { me } = await join(b, code);
  await b.waitForFunction(() => room.get("n") === 1);
  assert.deepEqual(await a.evaluate(() => [document.hidden, room.isHost]), [false, true]);
  await (await bare.newPage(site.url)).bringToFront();
  await b.waitForFunction(() => room.isHost && room.status === "open");
  assert.deepEqual((await eventsOf(b, "playerLost")).concat(await eventsOf(b, "playerLeft")), []);
  await a.evaluate(async (me) => {
    while (room.host !== me) await room.next("hostChanged");
  }, me);
  assert.deepEqual(await a.evaluate(() => [document.hidden, room.isHost, room.status]), [true, false, "open"]);
  assert.equal(await b.evaluate(() => room.get("n")), 1);
  await Promise.all([bare.close(), b.context().close()]);
});

test("a host hands its part over by name; who watches is no player, takes no seat and is told of", limit, async () => {
  const [a, b, c] = [await openPage(), await openPage(), await openPage()];
  const { code } = await host(a, { maxPlayers: 2, spectators: 1 });
  const { me } = await join(b, code, { name: "bob" });
  const joined = a.evaluate(() => room.next("spectatorJoined").then(({ name }) => name));
  await join(c, code, { name: "wei", spectate: true });
  assert.equal(await joined, "wei");
  const who = () => [room.players.size, [...room.spectators.values()].map(({ name, isSpectator }) => [name, isSpectator]), room.isSpectator];
  assert.deepEqual(await a.evaluate(who), [2, [["wei", true]], false]);
  assert.deepEqual(await c.evaluate(who), [2, [["wei", true]], true]);
  const refusal = (page, run) => page.evaluate(`(async () => ${run})().then(() => "nothing", ({ code, hint }) => [code, hint !== ""])`);
  assert.deepEqual(await refusal(c, "room.sendInput(1)"), ["spectator", true]);
  assert.deepEqual(await refusal(b, "room.handOver()"), ["not_host", true]);
  const d = await openPage();
  const full = await d.evaluate(
    ([server, code]) => parlor.join("dots", code, { server, via: "websocket", spectate: true }).catch(({ code, hint }) => [code, hint !== ""]),
    [place.server.url, code],
  );
  assert.deepEqual(full, ["spectators_full", true]);
  await a.evaluate(() => room.run({ tick: () => room.isHost && room.set("n", 1) }));
  await c.waitForFunction(() => room.get("n") === 1);
  await a.evaluate((me) => room.handOver(me), me);
  await b.waitForFunction(() => room.isHost && room.status === "open");
  await c.waitForFunction((me) => room.host === me, me);
  await a.waitForFunction((me) => room.host === me && !room.isHost && room.status === "open", me);
  const left = b.evaluate(() => room.next("spectatorLeft").then(({ name }) => name));
  await c.evaluate(() => room.leave());
  assert.equal(await left, "wei");
  await Promise.all([a, b, c, d].map((page) => page.context().close()));
});

test("a host sees its own round trip to the server", limit, async () => {
  const a = await openPage();
  await host(a);
  await a.waitForFunction(() => room.pingMs > 0);
  await a.context().close();
});

// Worlds in Chromium: a crowd, prediction over a bad network, and the net graph that shows it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startPlace } from "./place.mjs";
import { startServer } from "./server.mjs";
import { startSite, STRICT } from "./site.mjs";

const HANG_MS = 180_000;
const limit = { timeout: HANG_MS };

let place;

before(async () => {
  place = await startPlace();
}, limit);

after(() => place?.stop());

/** A page with the SDK and what the tests share, in a context of its own. What goes wrong in it fails the test. */
async function openPage(url = place.site.url) {
  const page = await (await place.browser.newContext({ viewport: { width: 800, height: 600 } })).newPage();
  page.setDefaultTimeout(HANG_MS);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  await page.goto(url);
  await page.evaluate(async () => {
    globalThis.parlor = await import("/sdk/index.js");
    const { component, vec2, angle, defineGame, type } = parlor;
    globalThis.Walker = component("walker", { position: vec2(-512, 512, 1 / 64), heading: angle(256) });
    globalThis.walkers = defineGame("walkers", { tickHz: 30, world: { components: [Walker] } });
    globalThis.Tank = component("tank", { position: vec2(-256, 256, 1 / 512) });
    globalThis.tanks = defineGame("tanks", {
      tickHz: 30, world: { components: [Tank] }, predict: [Tank], input: type(),
    });
  });
  return page;
}

const close = (...pages) => Promise.all(pages.map((page) => page.context().close()));

/** The value below which this part of the numbers lies. */
function quantile(numbers, part) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

test("a page sees a crowd of 1,000 walk", limit, async (t) => {
  const [a, b] = [await openPage(), await openPage()];
  const { url } = place.server;
  const code = await a.evaluate(async (server) => {
    const room = await walkers.host({ server });
    const { world } = room;
    for (let i = 0; i < 1_000; i++) {
      const position = { x: ((i * 37) % 800) - 400, y: ((i * 53) % 600) - 300 };
      world.set(world.spawn(), Walker, { position, heading: (i % 256) / 40 });
    }
    room.run({
      tick() {
        const columns = world.columns(Walker);
        const { position, heading } = columns.fields;
        for (let i = 0; i < columns.length; i++) {
          // One that reaches the edge turns around.
          if (Math.abs(position.x[i]) > 390 || Math.abs(position.y[i]) > 290) heading[i] = Math.atan2(-position.y[i], -position.x[i]);
          position.x[i] += Math.cos(heading[i]);
          position.y[i] += Math.sin(heading[i]);
        }
        world.write(Walker, columns);
      },
    });
    return room.code;
  }, url);
  const times = await b.evaluate(async ([server, code]) => {
    const room = await walkers.join(code, { server });
    const canvas = document.querySelector("canvas");
    [canvas.width, canvas.height] = [800, 600];
    const pen = canvas.getContext("2d");
    const took = { takeIn: [], show: [] };
    let decoded = 0;
    const places = new Set();
    // As many frames as it takes: a busy machine draws many of the same state.
    for (let frames = 0; frames < 150 || places.size <= 10 || took.takeIn.length <= 10; ) {
      await new Promise(requestAnimationFrame);
      const began = performance.now();
      room.update();
      while (room.tick());
      const taken = performance.now();
      const { length, fields } = room.world.columns(Walker, { shown: true });
      const shown = performance.now();
      pen.fillStyle = "#123";
      pen.fillRect(0, 0, 800, 600);
      pen.fillStyle = "#fd6";
      for (let i = 0; i < length; i++) pen.fillRect(400 + fields.position.x[i], 300 + fields.position.y[i], 2, 2);
      if (length < 1_000) continue;
      frames += 1;
      places.add(fields.position.x[0]);
      took.show.push(shown - taken);
      const { updatesDecoded } = room.diagnostics;
      if (updatesDecoded > decoded) took.takeIn.push(taken - began);
      decoded = updatesDecoded;
    }
    globalThis.room = room;
    return { ...took, seen: room.world.entities.length };
  }, [url, code]);
  assert.equal(times.seen, 1_000);
  const picture = await b.screenshot({ path: process.env.PARLOR_PICTURES && `${process.env.PARLOR_PICTURES}/walkers.png` });
  assert.ok(picture.length > 5_000, "the picture has something in it");
  const lit = await b.evaluate(() => {
    const { data } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 800, 600);
    let lit = 0;
    for (let i = 0; i < data.length; i += 4) lit += Number(data[i] > 200);
    return lit;
  });
  assert.ok(lit > 1_000, `${lit} pixels are of walkers`);
  // A loaded machine is no fault of the page: the aims are told, and docs/performance.md has them measured.
  for (const [what, numbers] of [["taking in the changes of a frame", times.takeIn], ["showing 1,000", times.show]]) {
    t.diagnostic(`${what}: p50 ${quantile(numbers, 0.5).toFixed(2)} ms, p95 ${quantile(numbers, 0.95).toFixed(2)} ms, aim 1.00 ms`);
  }
  assert.deepEqual([a.faults, b.faults], [[], []]);
  await close(a, b);
});

test("over a bad network a player's own input shows in the same tick, and what the host changes is corrected", limit, async (t) => {
  const server = await startServer("--web-origins", place.site.url.slice(0, -1), "--impair", "latency=75ms,jitter=20ms,loss=2%");
  const [a, b] = [await openPage(), await openPage()];
  for (const page of [a, b]) {
    await page.evaluate(() => {
      globalThis.step = (room) => {
        for (const [entity, { position }] of room.world.simulated(Tank)) {
          const go = room.input(room.world.owner(entity))?.go ?? 0;
          room.world.set(entity, Tank, { position: { ...position, x: position.x + go / 8 } });
        }
      };
    });
  }
  const code = await a.evaluate(async (server) => {
    const room = await tanks.host({ server });
    room.on("playerJoined", ({ id, isMe }) => {
      if (!isMe) room.world.set(room.world.spawn(id), Tank, { position: { x: 0, y: 0 } });
    });
    room.run({
      tick() {
        step(room);
        // What nobody can foresee.
        if (room.tickNumber % 45 !== 0) return;
        for (const [entity, { position }] of room.world.each(Tank)) {
          room.world.set(entity, Tank, { position: { x: position.x, y: ((position.y + 3 + 100) % 200) - 100 } });
        }
      },
    });
    return room.code;
  }, server.url);
  const seen = await b.evaluate(async ([server, code]) => {
    const room = await tanks.join(code, { server });
    const seen = { steps: 0, wrong: [], corrections: 0, replays: 0 };
    const x = () => [...room.world.each(Tank)][0]?.[1].position.x;
    room.run({
      tick() {
        // It goes right and left, so that a late answer would show.
        const go = Math.floor(room.tickNumber / 10) % 2 === 0 ? 1 : -1;
        room.sendInput({ go });
        const before = x();
        step(room);
        const moved = x() - before;
        if (room.isReplay) seen.replays += 1;
        else if (before !== undefined) {
          seen.steps += 1;
          if (Math.abs(moved - go / 8) > 0.01) seen.wrong.push([room.tickNumber, go, moved]);
        }
      },
    });
    globalThis.room = room;
    globalThis.seen = seen;
    while (seen.steps < 150 || seen.corrections === 0) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      seen.corrections = room.diagnostics.prediction.corrections;
    }
    return { ...seen, rttMs: room.diagnostics.rttMs, leadMs: room.diagnostics.leadMs, link: room.link };
  }, [server.url, code]);
  assert.deepEqual(seen.wrong, []);
  assert.ok(seen.corrections > 0 && seen.replays > 0, JSON.stringify(seen));
  t.diagnostic(`${seen.steps} steps over ${seen.link} with a round trip of ${Math.round(seen.rttMs)} ms: ${seen.corrections} corrections, ${seen.replays} steps again`);
  assert.deepEqual([a.faults, b.faults], [[], []]);
  await close(a, b);
  await server.stop();
});

test("the net graph measures a room on a page with a strict policy, and a bad network shows there", limit, async () => {
  const site = await startSite({ csp: STRICT });
  const server = await startServer("--web-origins", site.url.slice(0, -1));
  const page = await openPage(site.url);
  const text = await page.evaluate(async (server) => {
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => violations.push(effectiveDirective));
    const { defineNetGraph } = await import("/sdk/netgraph.js");
    const { badNetwork } = await import("/sdk/impair.js");
    globalThis.network = badNetwork();
    globalThis.graph = document.createElement("parlor-netgraph");
    const room = await parlor.host("dots", { server, network });
    // A property that is set before the element is defined counts, too.
    graph.room = room;
    document.body.append(graph);
    defineNetGraph();
    defineNetGraph();
    while (graph.latest?.rttMs === undefined) await new Promise((resolve) => setTimeout(resolve, 50));
    return graph.shadowRoot.textContent;
  }, server.url);
  assert.match(text, /WebTransport|WebSocket/);
  const looks = await page.evaluate(() => {
    const canvas = graph.shadowRoot.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return { height: getComputedStyle(canvas).height, isDrawn: data.some((it) => it > 0), violations };
  });
  assert.deepEqual(looks, { height: "40px", isDrawn: true, violations: [] });
  // The round trip is the best of the last measurements, so that it takes a while to grow.
  const rtt = await page.evaluate(async () => {
    network.impairment = { latencyMs: 400 };
    while (!(graph.latest.rttMs >= 800)) await new Promise((resolve) => setTimeout(resolve, 50));
    graph.remove();
    const { latest } = graph;
    graph.room = undefined;
    return latest;
  });
  assert.equal(rtt, undefined, "an element that is not in the page measures nothing");
  await close(page);
  await Promise.all([server.stop(), site.stop()]);
});

// Pages that play with the SDK, in Chromium: over its worker and WebSocket, hidden, busy, reloaded, duplicated, cut off.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launchBare } from "./bare.mjs";
import { dotsIn, eventsOf, HANG_MS, withSdk } from "./dots.mjs";
import { startPlace } from "./place.mjs";
import { startProxy } from "./proxy.mjs";
import { startServer } from "./server.mjs";
import { startSite, STRICT } from "./site.mjs";

const limit = { timeout: HANG_MS };

let place;
let browser;
let site;
let server;
let openPage;
let host;
let join;
let rejoin;

before(async () => {
  place = await startPlace();
  ({ browser, site, server } = place);
  ({ openPage, host, join, rejoin } = dotsIn(place));
}, limit);

after(() => place?.stop());

test("two pages play with each other", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const opened = await host(a, { name: "ada" });
  assert.deepEqual([opened.me, opened.link, opened.isHost], [0, "websocket", true]);
  await join(b, opened.code, { name: "bob" });
  await a.evaluate(() => {
    room.run({
      tick() {
        room.sendInput({ dx: 0 });
        for (const [player, { dx }] of room.inputs()) {
          room.set(`dot/${player}`, { x: (room.get(`dot/${player}`)?.x ?? 0) + dx });
        }
      },
    });
  });
  await b.evaluate(() => {
    globalThis.drawn = 0;
    room.run({
      tick: () => room.sendInput({ dx: 1 }),
      draw: () => {
        drawn = room.interpolated("dot/1")?.x ?? 0;
      },
    });
  });
  await b.waitForFunction(() => drawn > 10);
  await b.evaluate(() => room.leave());
  await a.waitForFunction(() => room.players.size === 1);
  assert.deepEqual([...a.faults, ...b.faults], []);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("a script of everything opens a room, without modules", limit, async () => {
  const page = await openPage();
  await page.addScriptTag({ url: "/sdk/parlor.global.js" });
  const code = await page.evaluate(async (server) => {
    globalThis.room = await parlor.host("dots", { server, via: "websocket" });
    return room.code;
  }, server.url);
  assert.match(code, /^[A-Z2-9]+$/);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a package without a bundler is few files: itself, what rooms share, and the WebAssembly", limit, async () => {
  const page = await openPage();
  const files = await page.evaluate(async () => {
    await Promise.all(["index", "own", "actions", "rollback", "netgraph"].map((entry) => import(`/sdk/${entry}.js`)));
    return performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.includes("/sdk/"));
  });
  const chunks = files.filter((name) => name.includes("/chunks/"));
  assert.ok(chunks.length <= 3 && chunks.some((name) => /wasm-\w+\.js$/.test(name)), files.join("\n"));
  await page.context().close();
});

test("a hidden host runs its ticks, and nobody migrates", limit, async () => {
  // Playwright's pages are never hidden.
  const bare = await launchBare();
  const a = await bare.newPage(site.url);
  const code = await a.evaluate(async (server) => {
    const parlor = await import("/sdk/index.js");
    globalThis.ticks = 0;
    globalThis.drawn = 0;
    globalThis.room = await parlor.host("dots", { server, via: "websocket" });
    room.run({
      tick: () => {
        ticks += 1;
        room.set("tick", ticks);
      },
      draw: () => void (drawn += 1),
    });
    return room.code;
  }, server.url);
  const b = await openPage();
  await join(b, code);
  await b.waitForFunction(() => room.get("tick") > 0);
  await (await bare.newPage(site.url)).bringToFront();
  await a.evaluate(
    () => new Promise((resolve) => (document.hidden ? resolve() : document.addEventListener("visibilitychange", resolve))),
  );
  const measure = () => a.evaluate(() => ({ ticks, drawn, at: performance.now(), isHidden: document.hidden }));
  const began = await measure();
  // The room's own clock says when 20 s are over.
  await b.evaluate(async () => {
    const until = room.serverTimeMs + 20_000;
    while (room.serverTimeMs < until) await room.next("state");
  });
  const ended = await measure();
  const due = ((ended.at - began.at) / 1_000) * 30;
  const share = (ended.ticks - began.ticks) / due;
  console.log(`a hidden host ran ${(share * 100).toFixed(1)}% of its ticks`);
  assert.deepEqual([began.isHidden, ended.isHidden], [true, true]);
  assert.ok(share >= 0.95, `${share} of the ticks were run`);
  assert.equal(ended.drawn, began.drawn, "nothing is drawn");
  assert.deepEqual(await eventsOf(b, "hostMigration"), []);
  await Promise.all([bare.close(), b.context().close()]);
});

test("a page that is busy for 2 s loses nothing, and nobody migrates", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const { code } = await host(a);
  await a.evaluate(() => room.run({ tick: () => room.set("tick", room.tickNumber) }));
  await join(b, code);
  await b.waitForFunction(() => room.get("tick") > 0);
  await a.evaluate(() => {
    const until = performance.now() + 2_000;
    while (performance.now() < until);
  });
  const before = await b.evaluate(() => room.get("tick"));
  await b.waitForFunction((before) => room.get("tick") > before + 10, before);
  for (const type of ["hostMigration", "playerLost", "connectionLost"]) assert.deepEqual(await eventsOf(b, type), []);
  assert.deepEqual(await eventsOf(a, "connectionLost"), []);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("a page that reloads is the same player, and gets what was sent meanwhile", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const { code } = await host(a);
  const { me } = await join(b, code);
  await b.waitForFunction(() => sessionStorage.length > 0);
  await b.reload();
  await a.waitForFunction(() => events.some(({ type }) => type === "playerLost"));
  await a.evaluate(() => room.broadcast("meanwhile", 7));
  await withSdk(b);
  const again = await rejoin(b);
  assert.deepEqual([again.me, again.code], [me, code]);
  await b.waitForFunction(() => events.some(({ type, value }) => type === "message" && value === 7));
  assert.equal(await a.evaluate(() => room.players.size), 2);
  await Promise.all([a.context().close(), b.context().close()]);
});

test("a duplicated tab is somebody new, and the first keeps its seat", limit, async () => {
  const a = await openPage();
  const { code } = await host(a);
  const context = await browser.newContext();
  const b = await openPage({ context });
  await join(b, code);
  await b.waitForFunction(() => sessionStorage.length > 0);
  // A tab that a page opens has a copy of its session storage, as a duplicated one has.
  const [copy] = await Promise.all([context.waitForEvent("page"), b.evaluate((url) => void window.open(url), site.url)]);
  await copy.waitForLoadState();
  assert.equal(await copy.evaluate(() => sessionStorage.length), 1, "it has the copy");
  await withSdk(copy);
  const seat = await copy.evaluate(async (options) => (await parlor.rejoin("dots", options)) === undefined, { via: "websocket" });
  assert.equal(seat, true, "there is no seat for it");
  assert.equal(await copy.evaluate(() => sessionStorage.length), 0);
  const other = await join(copy, code);
  assert.equal(other.me, 2);
  await a.waitForFunction(() => room.players.size === 3);
  await a.evaluate(() => room.broadcast("still", 1));
  await b.waitForFunction(() => events.some(({ kind }) => kind === "still"));
  for (const page of [b, copy]) assert.deepEqual(await eventsOf(page, "closed"), []);
  await Promise.all([a.context().close(), context.close()]);
});

test("a page whose connection is cut resumes, and nothing reliable is lost", limit, async () => {
  const proxy = await startProxy(server.port);
  const [a, b] = [await openPage(), await openPage()];
  const { code } = await host(a);
  await join(b, code, { server: proxy.url });
  proxy.cut();
  await a.waitForFunction(() => events.some(({ type }) => type === "playerLost"));
  await a.evaluate(() => {
    for (let i = 0; i < 20; i++) room.broadcast("number", i);
  });
  await b.waitForFunction(() => room.status === "reconnecting");
  proxy.mend();
  await b.waitForFunction(() => events.filter(({ type }) => type === "message").length === 20);
  const values = (await eventsOf(b, "message")).map(({ value }) => value);
  assert.deepEqual(values, Array.from({ length: 20 }, (_, i) => i));
  assert.deepEqual(await eventsOf(b, "reconnected"), [{ type: "reconnected", stateResynced: false }]);
  await Promise.all([a.context().close(), b.context().close()]);
  await proxy.stop();
});

test("when the host's tab is closed another page goes on with its state", limit, async () => {
  const [a, b] = [await openPage(), await openPage()];
  const { code } = await host(a);
  await a.evaluate(() => room.run({ tick: () => room.set("round", { n: 7 }) }));
  await join(b, code);
  await b.waitForFunction(() => room.get("round")?.n === 7);
  const closed = Date.now();
  await a.close({ runBeforeUnload: false });
  await b.waitForFunction(() => room.isHost && room.status === "open");
  console.log(`another page was the host ${Date.now() - closed} ms after the tab was closed`);
  assert.deepEqual(await b.evaluate(() => room.get("round")), { n: 7 });
  await b.evaluate(() => room.set("round", { n: 8 }));
  const c = await openPage();
  await join(c, code);
  await c.waitForFunction(() => room.get("round")?.n === 8);
  await Promise.all([a.context().close(), b.context().close(), c.context().close()]);
});

test("a strict policy is kept, and one that refuses WebAssembly or workers is told or done without", limit, async () => {
  const strict = await startSite({ csp: STRICT });
  const noWorker = await startSite({ csp: STRICT.replace("worker-src blob:", "worker-src 'none'") });
  const noWasm = await startSite({ csp: STRICT.replace(" 'wasm-unsafe-eval'", "") });
  const own = await startServer("--web-origins", [strict, noWorker, noWasm].map(({ url }) => url.slice(0, -1)).join(","));
  const open = async (to) => {
    const page = await (await browser.newContext({ bypassCSP: false })).newPage();
    await page.goto(to.url);
    await page.evaluate(() => {
      globalThis.violations = [];
      document.addEventListener("securitypolicyviolation", ({ violatedDirective }) => violations.push(violatedDirective));
    });
    await withSdk(page);
    return page;
  };
  const a = await open(strict);
  const { code } = await host(a, { server: own.url });
  assert.deepEqual(await a.evaluate(() => violations), []);
  const b = await open(noWorker);
  assert.equal((await join(b, code, { server: own.url })).me, 1);
  const again = await open(noWorker);
  assert.equal((await join(again, code, { server: own.url, worker: false })).me, 2);
  assert.deepEqual(await again.evaluate(() => violations), []);
  const c = await open(noWasm);
  const error = await c.evaluate(
    (server) => parlor.host("dots", { server }).catch(({ code, hint }) => ({ code, hint })),
    own.url,
  );
  assert.equal(error.code, "wasm_refused");
  assert.match(error.hint, /wasm-unsafe-eval/);
  await Promise.all([a, b, again, c].map((page) => page.context().close()));
  await Promise.all([own, strict, noWorker, noWasm].map((it) => it.stop()));
});

test("a server that does not name the page's origin is not reached, and the hint says what to do", limit, async () => {
  const closed = await startServer();
  const page = await openPage();
  const error = await page.evaluate(
    (server) => parlor.host("dots", { server }).catch(({ code, message, hint }) => ({ code, message, hint })),
    closed.url,
  );
  assert.equal(error.code, "unreachable");
  assert.match(error.hint, new RegExp(`--web-origins ${site.url.slice(0, -1)}`));
  await page.context().close();
  await closed.stop();
});

test("50 rooms that were opened and closed leave nothing behind", limit, async () => {
  const page = await openPage();
  const session = await page.context().newCDPSession(page);
  // Each room has an instance of its own; its memory goes when nobody holds it any more.
  await page.evaluate(() => {
    globalThis.memories = [];
    const instantiate = WebAssembly.instantiate.bind(WebAssembly);
    WebAssembly.instantiate = async (...given) => {
      const instance = await instantiate(...given);
      memories.push(new WeakRef(instance.exports.memory));
      return instance;
    };
  });
  const used = async () => {
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    return { heap: usedSize, memories: await page.evaluate(() => memories.filter((it) => it.deref() !== undefined).length) };
  };
  const rounds = (count) =>
    page.evaluate(
      async ([count, server]) => {
        for (let i = 0; i < count; i++) {
          const room = await parlor.host("dots", { server, via: "websocket", remember: "never" });
          room.set("x", i);
          await room.leave();
        }
      },
      [count, server.url],
    );
  await rounds(5);
  const before = await used();
  await rounds(50);
  // The browser collects when it likes: what is held by nobody is gone in the end.
  let after = await used();
  for (let i = 0; i < 60 && after.memories > 5; i++) {
    await page.waitForTimeout(200);
    after = await used();
  }
  console.log(`after 50 rooms: ${((after.heap - before.heap) / 1e6).toFixed(2)} MB more, ${after.memories} memories`);
  assert.ok(after.heap - before.heap < 2e6, `${after.heap - before.heap} bytes more`);
  assert.ok(after.memories <= 5, `${after.memories} memories of ${await page.evaluate(() => memories.length)} are still there`);
  assert.equal(await page.evaluate(() => memories.length), 55);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

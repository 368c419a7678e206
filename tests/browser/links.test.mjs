// Links of pages: cut for a while, of all kinds in one room, refused by the browser, and to servers that talk nonsense.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { dotsIn, eventsOf, HANG_MS } from "./dots.mjs";
import { startNative } from "./native.mjs";
import { startPlace } from "./place.mjs";
import { startBothProxy } from "./udp.mjs";

const limit = { timeout: HANG_MS };
const OFFLINE_MS = 3_000;
const NUMBERS = Array.from({ length: 20 }, (_, i) => i);

let place;
let server;
let openPage;
let host;
let join;

before(async () => {
  place = await startPlace();
  ({ server } = place);
  ({ openPage, host, join } = dotsIn(place));
}, limit);

after(() => place?.stop());

const hashes = async () => (await (await fetch(`${server.url}/web.json`)).json()).webtransport.hashes.join(",");
const values = async (page) => (await eventsOf(page, "message")).map(({ value }) => value);

for (const via of ["websocket", "webtransport"]) {
  test(`a page that is offline for 3 s resumes over ${via}, and nothing reliable is lost`, limit, async () => {
    const proxy = await startBothProxy(server.port);
    const [a, b] = [await openPage(), await openPage()];
    const { code } = await host(a);
    const { link, me } = await join(b, `${proxy.url}/join/${code}#w=${await hashes()}`, { server: undefined, via });
    assert.equal(link, via);
    await a.waitForFunction(() => room.players.size === 2);
    const offline = b.evaluate((ms) => new Promise((resolve) => {
      addEventListener("offline", () => setTimeout(resolve, ms), { once: true });
    }), OFFLINE_MS);
    await b.context().setOffline(true);
    proxy.cut();
    for (const page of [a, b]) {
      await page.evaluate((numbers) => {
        for (const i of numbers) room.broadcast("number", i);
      }, NUMBERS);
    }
    await offline;
    assert.deepEqual(await values(b), [], "nothing came through");
    proxy.mend();
    await b.context().setOffline(false);
    for (const page of [a, b]) {
      await page.waitForFunction((count) => events.filter(({ type }) => type === "message").length >= count, NUMBERS.length);
      assert.deepEqual(await values(page), NUMBERS);
      assert.deepEqual(await eventsOf(page, "playerLeft"), []);
    }
    assert.ok((await eventsOf(b, "reconnected")).every(({ stateResynced }) => !stateResynced));
    assert.equal(await b.evaluate(() => room.me), me);
    await Promise.all([a.context().close(), b.context().close()]);
    await proxy.stop();
  });
}

test("one room has members over WebTransport, WebSocket, QUIC and a direct path, and each has what its lane promises", limit, async () => {
  const native = startNative("play", server.port, "--name", "Grace", "--path", "auto");
  const code = await native.says("room ");
  const direct = startNative("bots", server.port, "--join", code, "--count", "1", "--path", "auto");
  const pages = [await openPage(), await openPage()];
  for (const [i, via] of ["webtransport", "websocket"].entries()) {
    const link = await pages[i].evaluate(async ([server, code, via]) => {
      globalThis.room = await parlor.join("magpies", code, { server, via, name: via });
      globalThis.heard = [];
      room.on("message", ({ kind, value }) => heard.push([kind, value]));
      return room.link;
    }, [server.url, code, via]);
    assert.equal(link, via);
  }
  const [overTransport, overSocket] = pages;
  for (const page of pages) {
    await page.waitForFunction(() => {
      const links = [...room.players.values()].map(({ link }) => link).sort().join();
      return links === "quic,quic,websocket,webtransport";
    });
    // The bot's path to the host is none of the server's: the room knows of it all the same.
    await page.waitForFunction(() => [...room.players.values()].some(({ direct }) => direct));
    // Native state comes to each.
    await page.waitForFunction(() => room.keys("p/").length >= 2);
  }
  for (const [from, to] of [[overTransport, overSocket], [overSocket, overTransport]]) {
    await from.evaluate(() => {
      for (let i = 0; i < 200; i++) for (const lane of ["ordered", "reliable", "sequenced", "unreliable"]) room.broadcast(lane, i, { lane });
    });
    await to.waitForFunction(() => heard.filter(([kind]) => kind === "ordered" || kind === "reliable").length === 400);
    const lanes = await to.evaluate(() => Object.groupBy(heard, ([kind]) => kind));
    const numbers = (kind) => (lanes[kind] ?? []).map(([, i]) => i);
    const all = Array.from({ length: 200 }, (_, i) => i);
    assert.deepEqual(numbers("ordered"), all);
    assert.deepEqual(numbers("reliable").sort((x, y) => x - y), all);
    // The newest alone: never an older one behind a newer one. What no lane promises may be lost, and comes once.
    const newest = numbers("sequenced");
    assert.ok(newest.every((n, i) => i === 0 || n > newest[i - 1]), newest.join());
    assert.equal(new Set(numbers("unreliable")).size, numbers("unreliable").length);
  }
  await Promise.all([native.kill(), direct.kill(), ...pages.map((page) => page.context().close())]);
});

test("a browser without WebTransport plays over WebSocket, and one that is told to use it alone says why not", limit, async () => {
  const page = await openPage();
  await page.evaluate(() => delete globalThis.WebTransport);
  assert.equal((await host(page, { via: "auto", worker: false })).link, "websocket");
  const error = await page.evaluate(
    (server) => parlor.host("dots", { server, via: "webtransport", worker: false }).catch(({ code, message, hint }) => ({ code, message, hint })),
    server.url,
  );
  assert.equal(error.code, "no_webtransport");
  assert.match(error.hint, /via/);
  await page.context().close();
});

/** A server that greets as Parlor's WebSocket does, and then sends what it is told. */
async function startNonsense(frames) {
  const nonsense = createServer((_, response) => response.writeHead(404, { "access-control-allow-origin": "*" }).end());
  const sockets = new Set();
  nonsense.on("upgrade", (request, socket) => {
    sockets.add(socket);
    const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: parlor\r\n\r\n`,
    );
    socket.on("error", () => {});
    socket.once("data", () => frames.forEach((frame) => socket.write(frame)));
  });
  await new Promise((resolve) => nonsense.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${nonsense.address().port}`,
    stop() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => nonsense.close(resolve));
    },
  };
}

/** A binary message of a server, of less than 126 bytes. */
const message = (bytes) => Buffer.concat([Buffer.from([0x82, bytes.length]), bytes]);

test("a server that talks nonsense ends the opening with an error, and the page's other rooms go on", limit, async () => {
  const page = await openPage();
  await host(page);
  const cases = {
    "flags that there are none of": [message(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"))],
    "a welcome that ends too soon": [message(Buffer.from([0, 2, 60, 1, 0]))],
    "an empty packet": [message(Buffer.alloc(0))],
    "nothing at all": [],
    "the longest length": [message(Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))],
  };
  for (const [what, frames] of Object.entries(cases)) {
    const nonsense = await startNonsense(frames);
    const error = await page.evaluate(
      (server) => parlor.join("dots", "AAAA", { server, via: "websocket", reconnect: false }).then(() => "open", ({ code, message, hint }) => ({ code, message, hint })),
      nonsense.url,
    );
    assert.equal(error.code, frames.length === 0 ? "timed_out" : "misbehaved", `${what}: ${JSON.stringify(error)}`);
    assert.ok(error.hint !== "", `${what}: ${JSON.stringify(error)}`);
    await nonsense.stop();
  }
  assert.equal(await page.evaluate(() => (room.set("x", 1), `${room.status} ${room.get("x")}`)), "open 1");
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a core that traps ends its room with `defect`, and the page opens the next", limit, async () => {
  const page = await openPage();
  await page.evaluate(() => {
    globalThis.memories = [];
    const instantiate = WebAssembly.instantiate.bind(WebAssembly);
    WebAssembly.instantiate = async (...given) => {
      const instance = await instantiate(...given);
      memories.push(instance.exports.memory);
      return instance;
    };
  });
  await host(page, { name: "ada" });
  const result = await page.evaluate(async (server) => {
    const [doomed] = [room];
    const other = await parlor.host("dots", { server, via: "websocket", remember: "never" });
    other.set("x", 1);
    // As a broken pointer would: all that the instance knows is written over.
    new Uint8Array(memories[0].buffer).fill(0xff);
    const { code, hint } = await doomed.closed;
    const next = await parlor.host("dots", { server, via: "websocket", remember: "never" });
    next.set("y", 2);
    return { code, hint, status: doomed.status, x: other.get("x"), y: next.get("y"), other: other.status };
  }, server.url);
  assert.deepEqual(result, {
    code: "defect", hint: "report it with the message; the page and its other rooms go on", status: "closed", x: 1, y: 2, other: "open",
  });
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

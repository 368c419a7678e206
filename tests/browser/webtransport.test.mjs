// A page in Chromium reaches the server by WebTransport, with a certificate that it knows by its hash alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch } from "./chromium.mjs";
import { greet, install } from "./page.mjs";
import { startServer } from "./server.mjs";

const WELCOME = 2;
const DONE = 0;
const GOING_AWAY = 1;
const NOT_PARLOR = 2;
const HANG_MS = 60_000;

let browser;
let server;

before(async () => {
  [browser, server] = await Promise.all([launch(), startServer()]);
});

after(async () => {
  await Promise.all([browser?.close(), server?.stop()]);
});

/** A page of the server's own origin: a text, which may connect to anywhere. */
async function openPage(to = server) {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(HANG_MS);
  await page.goto(`${to.url}/health`);
  await page.evaluate(install);
  return page;
}

test("a page is welcomed over the record stream, and datagrams go both ways", { timeout: HANG_MS }, async () => {
  const page = await openPage();
  const { welcome, code, heardTime } = await page.evaluate(greet);
  assert.equal(welcome[0], WELCOME);
  assert.ok(heardTime >= 3);
  const room = await (await fetch(`${server.url}/rooms/${code}`)).json();
  assert.equal(room.app, "browser");
  assert.equal(room.players, 1);
  await page.context().close();
});

test("the server says the code and the reason of a close", { timeout: HANG_MS }, async () => {
  const own = await startServer();
  const page = await openPage(own);
  await page.evaluate(async () => (globalThis.parlor.silent = await globalThis.parlor.open()));
  await page.evaluate(greet);
  const closing = page.evaluate(() => Promise.all([globalThis.parlor.silent.closed, globalThis.parlor.transport.closed]));
  await own.stop();
  const [silent, greeted] = await closing;
  assert.equal(silent.closeCode, GOING_AWAY);
  assert.match(silent.reason, /going down/);
  assert.equal(greeted.closeCode, DONE, "the session said why");
  await page.context().close();
});

test("a stream of a type that is none is closed as not Parlor", { timeout: HANG_MS }, async () => {
  const page = await openPage();
  const closed = await page.evaluate(async () => {
    const transport = await globalThis.parlor.open();
    const writer = (await transport.createUnidirectionalStream()).getWriter();
    await writer.write(Uint8Array.from([9]));
    return transport.closed;
  });
  assert.equal(closed.closeCode, NOT_PARLOR);
  assert.match(closed.reason, /unknown type 9/);
  await page.context().close();
});

test("another hash, and another path, open nothing", { timeout: HANG_MS }, async () => {
  const page = await openPage();
  const refused = (how) =>
    page.evaluate(
      ({ path, wrong }) => {
        const value = new Uint8Array(32);
        const serverCertificateHashes = wrong ? [{ algorithm: "sha-256", value }] : undefined;
        return globalThis.parlor.open({ path, serverCertificateHashes }).then(
          () => "open",
          (error) => error.name,
        );
      },
      how,
    );
  assert.equal(await refused({ wrong: true }), "WebTransportError");
  assert.equal(await refused({ path: "/elsewhere" }), "WebTransportError");
  await page.context().close();
});

test("a page of another origin is refused, unless the operator names it", { timeout: HANG_MS }, async () => {
  const elsewhere = await startServer();
  const named = await startServer("--web-origins", elsewhere.url);
  const page = await openPage(elsewhere);
  const reach = (port) =>
    page.evaluate(async (port) => {
      const own = await (await fetch("/web.json")).json();
      const info = await fetch(`http://127.0.0.1:${port}/web.json`).then(
        (answer) => answer.json(),
        () => undefined,
      );
      const hashes = (info ?? own).webtransport.hashes.map((hash) => ({
        algorithm: "sha-256",
        value: Uint8Array.from(atob(hash.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)),
      }));
      const transport = new WebTransport(`https://127.0.0.1:${port}/wt`, { serverCertificateHashes: hashes });
      transport.closed.catch(() => {});
      const ready = await transport.ready.then(
        () => "open",
        (error) => error.name,
      );
      return { answered: info !== undefined, ready };
    }, port);
  assert.deepEqual(await reach(server.port), { answered: false, ready: "WebTransportError" });
  assert.deepEqual(await reach(named.port), { answered: true, ready: "open" });
  await page.context().close();
  await Promise.all([elsewhere.stop(), named.stop()]);
});

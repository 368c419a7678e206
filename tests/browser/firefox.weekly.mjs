// Firefox ESR plays: over WebTransport by hash, with datagrams both ways, and Magpies from a fresh server's own page.
// Firefox is not among what each run installs, so this is part of `cargo xtask test --weekly`.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launchFirefox } from "./firefox.mjs";
import { greet, install } from "./page.mjs";
import { startServer } from "./server.mjs";
import { startSite } from "./site.mjs";

const HANG_MS = 240_000;
const limit = { timeout: HANG_MS };
const WELCOME = 2;
/** Where pictures are left for people, if this is set. */
const PICTURES = process.env.PARLOR_PICTURES;

let firefox;
let site;
let server;

before(async () => {
  [firefox, site] = await Promise.all([launchFirefox(), startSite()]);
  server = await startServer("--web-origins", site.url.slice(0, -1));
  console.log(`Firefox ${firefox.version}`);
}, limit);

after(() => Promise.all([firefox?.close(), site?.stop(), server?.stop()]));

test("a page is welcomed over the record stream, and datagrams go both ways", limit, async () => {
  const page = await firefox.open(`${server.url}/health`);
  await page.evaluate(install);
  const { welcome, heardTime } = await page.evaluate(greet);
  assert.equal(welcome[0], WELCOME);
  assert.ok(heardTime >= 3);
  await page.close();
});

test("pages of the SDK play over WebTransport, by the hashes that the server gives", limit, async () => {
  const [a, b] = [await firefox.open(site.url), await firefox.open(site.url)];
  const enter = (page, code) =>
    page.evaluate(async (server, code) => {
      const parlor = await import("/sdk/index.js");
      // Alone, so that no WebSocket hides why there is no WebTransport.
      const options = { server, via: "webtransport" };
      globalThis.room = await (code === null ? parlor.host("dots", options) : parlor.join("dots", code, options));
      return [room.link, room.code];
    }, server.url, code);
  const [link, code] = await enter(a, null);
  assert.equal(link, "webtransport");
  assert.deepEqual(await enter(b, code), ["webtransport", code]);
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
  await b.waitFor(() => room.get("n/1") > 30);
  await Promise.all([a.close(), b.close()]);
});

test("a fresh server's page hosts, its link leads a second one in, and both see each other", limit, async () => {
  const play = async (page, name) => {
    await page.evaluate((name) => {
      document.querySelector("#name").value = name;
      document.querySelector("#name").dispatchEvent(new Event("input", { bubbles: true }));
      document.querySelector("#go").click();
    }, name);
    await page.waitFor(() => document.body.dataset.stage === "playing");
  };
  const ada = await firefox.open(server.url);
  await play(ada, "Ada");
  await ada.waitFor(() => !document.querySelector("#alone").hidden);
  await ada.evaluate(() => document.querySelector("#alone-invite").click());
  await ada.waitFor(() => document.querySelector("#link").value !== "");
  const link = await ada.evaluate(() => document.querySelector("#link").value);
  await ada.evaluate(() => document.querySelector("#dialog-close").click());
  assert.match(link, /\/join\/[A-Z0-9]+/);
  const bo = await firefox.open(link);
  await play(bo, "Bo");
  for (const page of [ada, bo]) {
    await page.waitFor(() => {
      const names = [...document.querySelectorAll("#ranking .name")].map((it) => it.textContent).join();
      return names.includes("Ada") && names.includes("Bo");
    });
    // On a busy machine WebTransport may not stand within its head start.
    console.log(`Magpies over ${await page.evaluate(() => globalThis.magpies.room.link)}`);
  }
  if (PICTURES) {
    await mkdir(PICTURES, { recursive: true });
    for (const [name, page] of Object.entries({ ada, bo })) await writeFile(`${PICTURES}/firefox-${name}.png`, await page.screenshot());
  }
  await Promise.all([ada.close(), bo.close()]);
});

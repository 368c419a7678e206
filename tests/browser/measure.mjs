// Figures of pages in Chromium: docs/performance.md has them, and the command.
//
//   PARLOR_BIN=target/release/parlor node tests/browser/measure.mjs [open] [trip] [age] [--runs 20] [--seconds 20]

import { parseArgs } from "node:util";
import { launch } from "./chromium.mjs";
import { startServer } from "./server.mjs";
import { startSite } from "./site.mjs";

/** A round trip of 50 ms, and of 100 packets two lost: see docs/impair.md. */
const BAD_NETWORK = "latency=25ms,loss=2%";
const LINKS = ["webtransport", "websocket"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: "string", default: "20" }, seconds: { type: "string", default: "20" } },
});
const [runs, seconds] = [Number(values.runs), Number(values.seconds)];
const what = positionals.length > 0 ? positionals : ["open", "trip", "age"];

const browser = await launch();
const site = await startSite();

/** Runs `measure` with a server of its own. */
async function withServer(options, measure) {
  const server = await startServer("--web-origins", site.url.slice(0, -1), ...options);
  try {
    return await measure(server.url);
  } finally {
    await server.stop();
  }
}

/** A page in a context of its own: nothing of another page is in its caches. */
async function openPage() {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(site.url);
  return page;
}

async function enter(page, server, via, code) {
  return page.evaluate(async ([server, via, code]) => {
    globalThis.parlor = await import("/sdk/index.js");
    const options = { server, via };
    globalThis.room = await (code === undefined ? parlor.host("measure", options) : parlor.join("measure", code, options));
    return room.code;
  }, [server, via, code]);
}

const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
function row(name, figures) {
  const sorted = figures.toSorted((a, b) => a - b);
  const [p50, p99, max] = [at(sorted, 0.5), at(sorted, 0.99), sorted.at(-1)].map((ms) => ms.toFixed(1));
  console.log(`${name}: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms, of ${sorted.length}`);
}

/** From import to open room, and its parts, each on a page of its own. */
async function open() {
  const figures = { "import to open room": [], "of it import": [], "compiled before: open room": [], "compile alone": [] };
  await withServer([], async (server) => {
    for (let run = 0; run < runs; run++) {
      for (const isLoaded of [false, true]) {
        const page = await openPage();
        const [imported, loaded, opened] = await page.evaluate(async ([server, isLoaded]) => {
          const began = performance.now();
          const parlor = await import("/sdk/index.js");
          const imported = performance.now();
          if (isLoaded) await parlor.load();
          const loaded = performance.now();
          await parlor.host("measure", { server, via: "webtransport" });
          return [imported - began, loaded - imported, performance.now() - loaded];
        }, [server, isLoaded]);
        if (isLoaded) {
          figures["compile alone"].push(loaded);
          figures["compiled before: open room"].push(opened);
        } else {
          figures["of it import"].push(imported);
          figures["import to open room"].push(imported + opened);
        }
        await page.context().close();
      }
    }
  });
  for (const [name, of] of Object.entries(figures)) row(name, of);
}

/** A message from page to page and the answer, by link and lane. */
async function trip() {
  for (const via of LINKS) {
    await withServer([], async (server) => {
      const [a, b] = [await openPage(), await openPage()];
      await enter(b, server, via, await enter(a, server, via));
      await b.evaluate(() => room.on("message", ({ kind, value, from }) => room.send(from, kind, value, { lane: kind })));
      for (const lane of ["unreliable", "ordered"]) {
        const trips = await a.evaluate(async ([lane, seconds]) => {
          const trips = [];
          const heard = new Map();
          const off = room.on("message", ({ value }) => heard.get(value)?.());
          const end = performance.now() + seconds * 1_000;
          for (let number = 0; performance.now() < end; number++) {
            const began = performance.now();
            const back = new Promise((resolve) => heard.set(number, resolve));
            room.send("others", lane, number, { lane });
            // An unreliable message may be lost.
            const isBack = await Promise.race([back.then(() => true), new Promise((resolve) => setTimeout(resolve, 1_000))]);
            if (isBack === true) trips.push(performance.now() - began);
            heard.delete(number);
            // Not in step with anything.
            await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 20));
          }
          off();
          return trips;
        }, [lane, seconds / 2]);
        row(`${via}, ${lane}: page to page and back`, trips);
      }
      await Promise.all([a, b].map((page) => page.context().close()));
    });
  }
}

/** How old the newest state is at a member, on a bad network: when it comes, and whenever one looks. */
async function age() {
  for (const via of LINKS) {
    await withServer(["--impair", BAD_NETWORK], async (server) => {
      const [a, b] = [await openPage(), await openPage()];
      await enter(b, server, via, await enter(a, server, via));
      await a.evaluate(() => {
        room.run({ tick: () => room.set("stamp", performance.timeOrigin + performance.now()) });
      });
      await b.waitForFunction(() => room.get("stamp") !== undefined);
      const [came, looked] = await b.evaluate(async (seconds) => {
        const [came, looked] = [[], []];
        const age = () => performance.timeOrigin + performance.now() - room.get("stamp");
        const off = room.on("state", ({ changed }) => changed.includes("stamp") && came.push(age()));
        const looks = setInterval(() => looked.push(age()), 7);
        await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
        clearInterval(looks);
        off();
        return [came, looked];
      }, seconds);
      row(`${via} at ${BAD_NETWORK}: age of a state when it comes`, came);
      row(`${via} at ${BAD_NETWORK}: age of the newest state at any moment`, looked);
      await Promise.all([a, b].map((page) => page.context().close()));
    });
  }
}

try {
  for (const one of what) await { open, trip, age }[one]();
} finally {
  await Promise.all([browser.close(), site.stop()]);
}

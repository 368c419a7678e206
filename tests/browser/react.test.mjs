// The React program of docs/web.md, under StrictMode: one connection, one player.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startPlace } from "./place.mjs";

const HANG_MS = 120_000;
const limit = { timeout: HANG_MS };
const SDK = fileURLToPath(new URL("../../sdk/ts/", import.meta.url));
const { build } = createRequire(`${SDK}package.json`)("esbuild");

let place;
let script;

before(async () => {
  place = await startPlace();
  const text = await readFile(new URL("../../docs/web.md", import.meta.url), "utf8");
  const [, program] = /^```tsx\n(.*?)^```$/ms.exec(text);
  assert.match(program, /<StrictMode>/);
  // One socket of the page itself, which the test can count.
  const contents = program
    .replaceAll("localhost:7700", `127.0.0.1:${place.server.port}`)
    .replaceAll("{ server, signal }", '{ server, signal, via: "websocket", worker: false }');
  assert.equal(contents.split("worker: false").length, 3);
  const { outputFiles } = await build({
    stdin: { contents, loader: "tsx", resolveDir: SDK },
    bundle: true,
    format: "esm",
    write: false,
    jsx: "automatic",
    alias: { "parlor/react": `${SDK}dist/react.js`, parlor: `${SDK}dist/index.js` },
    // StrictMode mounts twice in React's development build alone.
    define: { "process.env.NODE_ENV": '"development"' },
  });
  script = outputFiles[0].text;
}, limit);

after(() => place?.stop());

async function run(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(HANG_MS);
  page.sockets = [];
  page.faults = [];
  page.on("websocket", (socket) => page.sockets.push(socket));
  page.on("pageerror", (error) => page.faults.push(String(error)));
  await page.goto(url);
  await page.addScriptTag({ type: "module", content: script });
  await page.waitForSelector("button");
  return page;
}

const shows = (page, text) => page.waitForFunction((text) => document.querySelector("button")?.textContent === text, text);

test("a component under StrictMode has one connection and is one player", limit, async () => {
  const context = await place.browser.newContext();
  const a = await run(context, place.site.url);
  await shows(a, "0 clicks of 1");
  const b = await run(context, await a.getAttribute("a", "href"));
  for (const page of [a, b]) await shows(page, "0 clicks of 2");
  await a.click("button");
  await b.click("button");
  for (const page of [a, b]) await shows(page, "2 clicks of 2");
  for (const page of [a, b]) {
    assert.equal(page.sockets.length, 1);
    assert.equal(page.sockets[0].isClosed(), false);
    assert.deepEqual(page.faults, []);
  }
  await context.close();
});

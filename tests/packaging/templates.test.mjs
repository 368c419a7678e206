// `npm create parlor` from the packed package, with the packed SDK, and `parlor new`, with the SDK of this checkout: each game
// builds, passes its own test, and two players play it.
//
//   node --test templates.test.mjs                              what `cargo xtask test --all` runs
//   PACKAGING_LEVEL=weekly node --test templates.test.mjs       all templates
//   PACKAGING_APPS=react,react18 node --test templates.test.mjs  these; screenshots stand beside them

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "../browser/chromium.mjs";
import { BINARY, startServer } from "../browser/server.mjs";
import { create, TEMPLATES } from "../../sdk/create-parlor/create.mjs";
import { freePort, serveFiles } from "./app-server.mjs";
import { pack, run, TARGET } from "./install.mjs";

/** Only a hang takes this long. */
const HANG_MS = 300_000;
const limit = { timeout: HANG_MS };
/** What most people begin with; the others weekly. */
const ALWAYS = ["vanilla", "browser"];
/** The same templates in `parlor new`. */
const NATIVE = { browser: "vanilla", phaser: "phaser", react: "react" };
const named = (process.env.PACKAGING_APPS ?? "").split(",").filter((name) => name !== "");
const games = [
  ...Object.keys(TEMPLATES).map((template) => ({ name: template, template })),
  { name: "browser", template: "vanilla", isNative: true },
  // The oldest React that the SDK names as its peer.
  { name: "react18", template: "react", instead: ["react@18.3.1", "react-dom@18.3.1", "@types/react@18.3.31", "@types/react-dom@18.3.7"] },
];
const isWanted = ({ name }) => (named.length > 0 ? named.includes(name) : process.env.PACKAGING_LEVEL === "weekly" || ALWAYS.includes(name));
const MOVED_PIXELS = 40;

let browser;
let packages;

before(async () => {
  browser = await launch();
  packages = { sdk: await pack("sdk/ts"), create: await pack("sdk/create-parlor") };
  await mkdir(GAMES, { recursive: true });
}, limit);

after(() => browser?.close());

const GAMES = join(TARGET, "games");
const PROGRAM = fileURLToPath(new URL("../../sdk/create-parlor/index.mjs", import.meta.url));
/** Runs `create-parlor` as npm does. */
const createParlor = (...args) => run("npm", ["exec", "--yes", `--package=${packages.create}`, "--", "create-parlor", ...args], GAMES);
/** The same without npm, for what is refused before anything is made. */
const refused = (...args) => run(process.execPath, [PROGRAM, ...args], GAMES);

test("a folder with files, an unknown template and unknown options are refused", limit, async () => {
  const full = join(GAMES, "full");
  await mkdir(full, { recursive: true });
  await writeFile(join(full, "mine.txt"), "mine");
  await assert.rejects(refused("full"), /full is not empty: it has mine\.txt/);
  await assert.rejects(refused("other", "--template", "cobol"), /no template "cobol"; there are vanilla, phaser, react/);
  await assert.rejects(refused("other", "--colour", "red"), /--colour/);
  await assert.rejects(refused("one", "two"), /one folder, not 2/);
  await rm(full, { recursive: true });
});

test("parlor new writes the same files", limit, async () => {
  for (const [native, template] of Object.entries(NATIVE)) {
    const [there, here] = ["there", "here"].map((side) => join(GAMES, side, "game"));
    for (const folder of [there, here]) await rm(folder, { recursive: true, force: true });
    await create({ folder: there, template, sdk: `file:${fileURLToPath(new URL("../../sdk/ts", import.meta.url))}` });
    await run(BINARY, ["new", here, "--template", native], GAMES);
    const [expected, written] = [await filesOf(there), await filesOf(here)];
    assert.equal(written[".npmrc"], "install-links=true\n");
    delete written[".npmrc"];
    assert.deepEqual(written, expected, native);
  }
});

/** What a folder's files contain, JSON as its value. */
async function filesOf(folder) {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((it) => it.isFile());
  const read = async (it) => {
    const path = join(it.parentPath ?? it.path, it.name);
    const text = await readFile(path, "utf8");
    return [relative(folder, path), it.name === "package.json" ? JSON.parse(text) : text];
  };
  return Object.fromEntries(await Promise.all(names.map(read)));
}

for (const { name, template, isNative, instead } of games.filter(isWanted)) {
  test(name, limit, async () => {
    const folder = join(GAMES, name);
    await rm(folder, { recursive: true, force: true });
    const said = isNative ? await run(BINARY, ["new", name, "--template", name], GAMES) : await createParlor(name, "--template", template, "--sdk", packages.sdk);
    assert.match(said, new RegExp(`cd ${name}\n  npm install\n  npm run dev`));
    const install = ["install", "--no-fund", "--no-audit", "--loglevel=error"];
    await run("npm", install, folder);
    if (instead !== undefined) await run("npm", [...install, ...instead], folder);
    const port = await freePort();
    const server = await startServer("--web-origins", `http://127.0.0.1:${port}`);
    const at = { VITE_SERVER: `127.0.0.1:${server.port}` };
    await run("npm", ["run", "build"], folder, at);
    await run("npm", ["test"], folder, at);
    const stop = await serveFiles(join(folder, "dist"), port);
    try {
      await play(template, `http://127.0.0.1:${port}/`, folder);
    } finally {
      await Promise.all([stop(), server.stop()]);
    }
  });
}

async function play(template, url, folder) {
  // Each in a context of its own: both pages are in front.
  const open = async (at, viewport) => {
    const page = await (await browser.newContext({ viewport })).newPage();
    page.setDefaultTimeout(HANG_MS);
    page.faults = [];
    page.on("pageerror", (error) => page.faults.push(String(error)));
    await page.goto(at);
    return page;
  };
  const a = await open(url, { width: 900, height: 700 });
  const b = await open(await a.locator("#invite[data-link]").getAttribute("data-link"), { width: 390, height: 760 });
  for (const page of [a, b]) await page.waitForFunction(() => document.querySelectorAll("#scores li").length === 2);
  await (template === "react" ? paint(a, b) : fly(a, b));
  for (const [page, name] of [[a, "wide"], [b, "phone"]]) {
    await page.screenshot({ path: join(folder, `${name}.png`) });
    assert.deepEqual(page.faults, []);
  }
  await Promise.all([a, b].map((page) => page.context().close()));
}

/** A tile that the guest paints is the guest's, at both. */
async function paint(a, b) {
  await b.getByLabel("tile 12", { exact: true }).click();
  for (const page of [a, b]) await page.waitForFunction(() => /1$/.test(document.querySelectorAll("#scores li")[1].textContent));
  const colours = await Promise.all([a, b].map((page) => page.getByLabel("tile 12", { exact: true }).evaluate((tile) => tile.style.background)));
  assert.notEqual(colours[0], "");
  assert.equal(colours[0], colours[1]);
  await a.getByLabel("tile 13", { exact: true }).click();
  for (const page of [a, b]) await page.waitForFunction(() => /1$/.test(document.querySelectorAll("#scores li")[0].textContent));
}

/** The guest's flyer flies where its key says, in the host's page. */
async function fly(a, b) {
  const seen = async () => {
    for (;;) {
      const at = await flyerIn(a);
      if (at !== undefined) return at;
    }
  };
  const from = await seen();
  const key = from.x > from.width / 2 ? "ArrowLeft" : "ArrowRight";
  const sign = key === "ArrowLeft" ? -1 : 1;
  await b.keyboard.down(key);
  while (((await seen()).x - from.x) * sign < MOVED_PIXELS);
  await b.keyboard.up(key);
}

/** The middle of what has the guest's colour on the field; undefined while nothing has. */
async function flyerIn(page) {
  const png = await page.locator(".field").screenshot();
  return page.evaluate(async (base64) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
    const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
    const line = getComputedStyle(document.querySelectorAll("#scores li")[1]).getPropertyValue("--colour");
    pen.fillStyle = line;
    pen.fillRect(0, 0, 1, 1);
    const wanted = pen.getImageData(0, 0, 1, 1).data;
    pen.drawImage(image, 0, 0);
    const { data, width } = pen.getImageData(0, 0, image.width, image.height);
    let [sum, count] = [0, 0];
    for (let i = 0; i < data.length; i += 4) {
      if ([0, 1, 2].some((k) => Math.abs(data[i + k] - wanted[k]) > 8)) continue;
      sum += (i / 4) % width;
      count += 1;
    }
    return count < 20 ? undefined : { x: sum / count, width };
  }, png.toString("base64"));
}

// Builds the pages, compressed, with the table that the server embeds, and the list that `parlor serve --pages` reads:
//
//   cargo xtask test --only wasm --only sdk --only web     builds the SDK, and the pages into target/web
//   node web/build.mjs [FOLDER]                            default: web/dist, which is in git
//
// A page is a folder with an `index.html`, a `style.css` and a `src/main.ts`. What several pages import is built once.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { gzipSync } from "node:zlib";
import { compress } from "lzma1";

const here = (path) => new URL(path, import.meta.url).pathname;
const SDK = here("../sdk/ts/dist");
const CORE = here("../target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm");
const DIST = process.argv[2] ?? here("dist");
/** Folders of the pages, and where the server shows them; tools/cli/src/web.rs has their games. */
const PAGES = { play: "/", arena: "/arena", draughts: "/draughts", admin: "/admin" };
/** Entries of the SDK that pages import beside `parlor`. */
const ENTRIES = Object.fromEntries(["impair", "netgraph", "online"].map((name) => [`parlor/${name}`, `${SDK}/${name}.js`]));
/** What one page loads as scripts, with the SDK and without the core; all files together. */
const SCRIPT_BYTES_MAX = 60_000;
const ALL_BYTES_MAX = 400_000;

const files = [];

function take(name, path, contentType, content) {
  // A name on disk stays from one build to the next. Of shared scripts there may be several.
  const taken = files.filter((file) => file.name.replace(/\d*\./, ".") === name).length;
  files.push({ name: taken === 0 ? name : name.replace(".", `${taken + 1}.`), path, contentType, gzip: gzipSync(content, { level: 9 }) });
}

/** Takes a file into the table. Its path has the hash of its content. */
function asset(name, contentType, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  const path = `/assets/${name.replace(".", `.${hash}.`)}`;
  take(name, path, contentType, content);
  return path;
}

/** The WebAssembly without its custom sections: names of functions are for profilers. */
function code(module) {
  const kept = [module.subarray(0, 8)];
  for (let at = 8; at < module.length; ) {
    const start = at;
    const isCustom = module[at++] === 0;
    let [length, shift, byte] = [0, 0, 0x80];
    for (; byte & 0x80; shift += 7) {
      byte = module[at++];
      length |= (byte & 0x7f) << shift;
    }
    at += length;
    if (!isCustom) kept.push(module.subarray(start, at));
  }
  return new Uint8Array(Buffer.concat(kept));
}

/** Bundles all pages' scripts. Returns by page the address of its script and the addresses of all that it loads. */
async function scripts(wasm) {
  const { outputFiles, metafile } = await build({
    entryPoints: Object.fromEntries(Object.keys(PAGES).map((page) => [page, here(`${page}/src/main.ts`)])),
    bundle: true, minify: true, write: false, splitting: true, metafile: true, format: "esm", target: "es2022",
    outdir: "assets", entryNames: "[name].[hash]", chunkNames: "shared.[hash]", absWorkingDir: here("."),
    alias: { ...ENTRIES, parlor: `${SDK}/slim.js` }, define: { PARLOR_WASM: JSON.stringify(wasm) },
    legalComments: "none",
    // The SDK in source checkouts is a package without side effects: what it leaves out is not missed.
    logOverride: { "ignored-bare-import": "silent" },
  });
  for (const { path, contents } of outputFiles) {
    const file = basename(path);
    take(file.replace(/\.[A-Z0-9]+\./, "."), `/assets/${file}`, "text/javascript; charset=utf-8", contents);
  }
  const outputs = Object.entries(metafile.outputs);
  const loads = (output) => {
    const all = new Set([output]);
    // What a page may need later is not loaded with it.
    const now = ({ kind }) => kind !== "dynamic-import";
    for (const one of all) for (const { path } of metafile.outputs[one].imports.filter(now)) all.add(path);
    return [...all].map((path) => `/${path}`);
  };
  return new Map(Object.keys(PAGES).map((page) => {
    const [output] = outputs.find(([, { entryPoint }]) => entryPoint === `${page}/src/main.ts`);
    return [page, { script: `/${output}`, all: loads(output) }];
  }));
}

async function style(page) {
  const { outputFiles } = await build({
    entryPoints: [here(`${page}/style.css`)], bundle: true, minify: true, write: false, target: "es2022",
  });
  return asset(`${page}.css`, "text/css; charset=utf-8", outputFiles[0].contents);
}

/** The HTML of a page, with the parts of `shared` that it names as `<!-- dialog.html -->`. */
function html(page) {
  const text = (path) => readFileSync(here(path), "utf8");
  return text(`${page}/index.html`).replace(/^<!-- (\S+\.html) -->$/gm, (_, part) => text(`shared/${part}`).trimEnd());
}

const wasm = asset("parlor.lzma", "application/octet-stream", compress(code(readFileSync(CORE)), 9));
const built = await scripts(wasm);
for (const [page, path] of Object.entries(PAGES)) {
  const { script, all } = built.get(page);
  // The browser asks for all scripts at once, and not for one after it has read the other.
  const preloads = all.slice(1).map((it) => `<link rel="modulepreload" href="${it}">\n`).join("");
  const linked = html(page)
    .replace(`<script type="module" src="/assets/${page}.js">`, `${preloads}<script type="module" src="${script}">`)
    .replace(`/assets/${page}.css`, await style(page));
  take(page === "play" ? "index.html" : `${page}.html`, path, "text/html; charset=utf-8", linked);
}

rmSync(DIST, { recursive: true, force: true });
mkdirSync(DIST, { recursive: true });
files.sort((a, b) => a.path.localeCompare(b.path));
for (const { name, gzip } of files) writeFileSync(`${DIST}/${name}.gz`, gzip);
const rows = files.map(({ name, path, contentType }) =>
  `    WebFile { path: "${path}", content_type: "${contentType}", gzip: include_bytes!("${name}.gz") },\n`);
const list = files.map(({ name, path, contentType }) => ({ path, contentType, file: `${name}.gz` }));
writeFileSync(`${DIST}/pages.json`, `${JSON.stringify(list, null, 1)}\n`);
writeFileSync(`${DIST}/table.rs`, `// Made by web/build.mjs.\n[\n${rows.join("")}]\n`);

const sizes = new Map(files.map(({ path, gzip }) => [path, gzip.length]));
const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
for (const { name, gzip } of files) console.log(`${name.padEnd(14)} ${String(gzip.length).padStart(7)} bytes`);
console.log(`${"all".padEnd(14)} ${String(total).padStart(7)} bytes of ${ALL_BYTES_MAX}`);
let isTooLarge = total > ALL_BYTES_MAX;
for (const [page, { all }] of built) {
  const size = all.reduce((sum, path) => sum + sizes.get(path), 0);
  console.log(`${`${page}: scripts`.padEnd(14)} ${String(size).padStart(7)} bytes of ${SCRIPT_BYTES_MAX}`);
  isTooLarge ||= size > SCRIPT_BYTES_MAX;
}
if (isTooLarge) {
  console.error("the pages are too large: web/build.mjs has their limits");
  process.exit(1);
}

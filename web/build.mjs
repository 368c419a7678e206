// Builds the pages, compressed, with the table that the server embeds:
//
//   cargo xtask test --only wasm --only sdk --only web     builds the SDK, and the pages into target/web
//   node web/build.mjs [FOLDER]                            default: web/dist, which is in git

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { compress } from "lzma1";

const here = (path) => new URL(path, import.meta.url).pathname;
const SDK = here("../sdk/ts/dist");
const CORE = here("../target/wasm/wasm32-unknown-unknown/page/parlor_wasm.wasm");
const DIST = process.argv[2] ?? here("dist");
/** The page's own script, with the SDK and without the core; all files together. */
const SCRIPT_BYTES_MAX = 60_000;
const ALL_BYTES_MAX = 400_000;

const files = [];

/** Takes a file into the table. Its name on disk stays from one build to the next; its path has the hash of its content. */
function asset(name, contentType, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  const path = `/assets/${name.replace(".", `.${hash}.`)}`;
  files.push({ name, path, contentType, gzip: gzipSync(content, { level: 9 }) });
  return path;
}

async function bundle(entry, options) {
  const { outputFiles } = await build({ entryPoints: [here(entry)], bundle: true, minify: true, write: false, ...options });
  return Buffer.from(outputFiles[0].contents);
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

const wasm = asset("parlor.lzma", "application/octet-stream", compress(code(readFileSync(CORE)), 9));
const script = asset("play.js", "text/javascript; charset=utf-8", await bundle("play/src/main.ts", {
  format: "esm", target: "es2022", alias: { parlor: `${SDK}/slim.js` }, define: { PARLOR_WASM: JSON.stringify(wasm) },
  legalComments: "none",
}));
const style = asset("play.css", "text/css; charset=utf-8", await bundle("play/style.css", { target: "es2022" }));
const page = readFileSync(here("play/index.html"), "utf8").replaceAll("/assets/play.css", style).replaceAll("/assets/play.js", script);
files.unshift({ name: "index.html", path: "/", contentType: "text/html; charset=utf-8", gzip: gzipSync(page, { level: 9 }) });

rmSync(DIST, { recursive: true, force: true });
mkdirSync(DIST, { recursive: true });
for (const { name, gzip } of files) writeFileSync(`${DIST}/${name}.gz`, gzip);
const rows = files.map(({ name, path, contentType }) =>
  `    WebFile { path: "${path}", content_type: "${contentType}", gzip: include_bytes!("${name}.gz") },\n`);
writeFileSync(`${DIST}/table.rs`, `// Made by web/build.mjs.\n[\n${rows.join("")}]\n`);

const size = (name) => files.find((file) => file.name === name).gzip.length;
const all = files.reduce((sum, { gzip }) => sum + gzip.length, 0);
for (const { name, gzip } of files) console.log(`${name.padEnd(12)} ${String(gzip.length).padStart(7)} bytes`);
console.log(`${"all".padEnd(12)} ${String(all).padStart(7)} bytes of ${ALL_BYTES_MAX}`);
if (all > ALL_BYTES_MAX || size("play.js") > SCRIPT_BYTES_MAX) {
  console.error(`web/dist is too large: play.js may have ${SCRIPT_BYTES_MAX} bytes, all files ${ALL_BYTES_MAX}`);
  process.exit(1);
}

// Builds the package: entries bundled by esbuild, types by tsc, the wasm inlined; and reports sizes against their aims.
// Does nothing if what it last built was made of the same files.
//
//   node build.mjs [--wasm PATH]    default: what `cargo xtask web` makes

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "dist");
const wasmAt = process.argv.indexOf("--wasm");
const wasmPath = wasmAt > 0 ? process.argv[wasmAt + 1] : (process.env.PARLOR_WASM ?? join(here, "../../target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm"));

/** The package's entries: what `exports` of package.json names. */
const ENTRIES = {
  index: "src/index.ts",
  slim: "src/slim.ts",
  rollback: "src/rollback/index.ts",
  own: "src/own/index.ts",
  recording: "src/recording/index.ts",
  math: "src/math/index.ts",
  react: "src/react/index.ts",
  online: "src/online/index.ts",
  actions: "src/actions/index.ts",
  impair: "src/impair.ts",
  netgraph: "src/netgraph.ts",
};
const named = Object.keys(JSON.parse(readFileSync(join(here, "package.json"), "utf8")).exports).filter((name) => !/\.\w+$/.test(name));
const built = Object.keys(ENTRIES).map((name) => (name === "index" ? "." : `./${name}`));
if (String(named.sort()) !== String(built.sort())) {
  console.error(`package.json exports ${named}, and this script builds ${built}: name an entry in both`);
  process.exit(1);
}
/** Entries that have all of a room already, and those that programs without a room use. */
const ALONE = ["index", "slim", "math", "online"];
/** Entries that a game ships beside `index`. */
const BESIDE = ["actions", "rollback", "own", "recording", "online"];

/** Aims in bytes of gzip. What is larger fails the build; the step that builds the wasm has its limit. */
const AIMS = {
  "index.js without its wasm": 30_000,
  "worker.js": 6_200,
  "actions.js beside index.js": 1_000,
  "rollback.js beside index.js": 2_000,
  "own.js beside index.js": 1_000,
  "recording.js beside index.js": 1_000,
  "online.js beside index.js": 10_000,
  "math.js": 5_500,
  "react.js": 2_000,
  "netgraph.js": 3_000,
};

function readWasm() {
  try {
    return readFileSync(wasmPath);
  } catch (error) {
    console.error(`There is no WebAssembly at ${wasmPath}: ${error.message}\nBuild it first: cargo xtask web`);
    process.exit(1);
  }
}

/** A hash of the files that the package is made of. */
function hashOfInputs(wasm) {
  const sources = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true }).filter((it) => it.isFile());
  const paths = sources.map((it) => join(it.parentPath, it.name)).sort();
  const others = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"].map((name) => join(here, name));
  const hash = createHash("sha256").update(wasm);
  for (const path of [...others, ...paths]) hash.update(`\n${path}\n`).update(readFileSync(path));
  return hash.digest("hex");
}
const wasm = readWasm();
const hash = hashOfInputs(wasm);
const stamp = join(here, "node_modules/.built-from");
if (existsSync(out) && existsSync(stamp) && readFileSync(stamp, "utf8") === hash) process.exit(0);
rmSync(stamp, { force: true });

const gzipped = (bytes) => gzipSync(bytes, { level: 9 });
const common = { bundle: true, external: ["react"], format: "esm", target: "es2022", platform: "neutral", absWorkingDir: here, logLevel: "warning" };

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
writeFileSync(join(out, "parlor.wasm"), wasm);

const workerOptions = { ...common, format: "iife", minify: true, entryPoints: ["src/worker/worker.ts"] };
const worker = await build({ ...workerOptions, write: false });
const workerScript = worker.outputFiles[0].text;
writeFileSync(join(out, "worker.js"), workerScript);

const define = { __PARLOR_WORKER__: JSON.stringify(workerScript) };
const packed = gzipped(wasm).toString("base64");
const full = { ...define, __PARLOR_WASM__: JSON.stringify(packed) };
const wasmChunk = `./chunks/wasm-${createHash("sha256").update(packed).digest("hex").slice(0, 8).toUpperCase()}.js`;

/**
 * Makes few files of the package, because each is a request of a page without a bundler. The WebAssembly is a file of its
 * own. Entries of a game with rooms count as ones that need all of a room, so what they share with it is in one chunk.
 */
const fewFiles = {
  name: "few-files",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /\/wasm\/packed\.js$/ }, () => ({ path: wasmChunk, external: true }));
    onResolve({ filter: /^beside:/ }, ({ path }) => ({ path: path.slice("beside:".length), namespace: "beside" }));
    // The first import counts for chunks alone: esbuild leaves it out of the file, as it says by a warning.
    onLoad({ filter: /./, namespace: "beside" }, ({ path }) => ({
      contents: `import "./src/api.ts"; export * from "./${path}";`, resolveDir: here,
    }));
  },
};
const besideRoom = ([name, path]) => [name, ALONE.includes(name) ? path : `beside:${path}`];
const entryPoints = Object.fromEntries(Object.entries(ENTRIES).map(besideRoom));
// What entries share is in chunks, so that a page has one `ParlorError` and one WebAssembly.
const chunked = { logOverride: { "ignored-bare-import": "silent" }, outdir: out, chunkNames: "chunks/[name]-[hash]", splitting: true, sourcemap: true };
await build({ ...common, ...chunked, entryPoints, define, plugins: [fewFiles] });
writeFileSync(join(out, wasmChunk), `export const packed = () => ${JSON.stringify(packed)};\n`);
// For <script>: everything in one global.
const global = { format: "iife", globalName: "parlor", minify: true, define: full };
await build({ ...common, ...global, entryPoints: ["src/global.ts"], outfile: join(out, "parlor.global.js") });

execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"], { cwd: here, stdio: "inherit" });
copyFileSync(join(here, "../../LICENSE-MIT"), join(out, "LICENSE-MIT"));
copyFileSync(join(here, "../../LICENSE-APACHE"), join(out, "LICENSE-APACHE"));

/** The size of what a game ships that uses these entries. Its bundler minifies: so is what is measured. */
async function shipped(...names) {
  const contents = names.map((name) => `export * from "./${ENTRIES[name]}";`).join("\n");
  const stdin = { contents, resolveDir: here, sourcefile: "game.ts", loader: "ts" };
  const { outputFiles } = await build({ ...common, stdin, minify: true, write: false, define: { ...define, __PARLOR_WASM__: '""' } });
  return gzipped(outputFiles[0].contents).length;
}
const bare = await shipped("index");
const beside = await Promise.all(BESIDE.map(async (name) => [`${name}.js beside index.js`, (await shipped("index", name)) - bare]));
const sizes = {
  "index.js without its wasm": bare,
  ...Object.fromEntries(beside),
  "math.js": await shipped("math"),
  "react.js": await shipped("react"),
  "worker.js": gzipped(Buffer.from(workerScript)).length,
  "netgraph.js": await shipped("netgraph"),
  "parlor.wasm": gzipped(wasm).length,
};
let tooLarge = false;
for (const [name, size] of Object.entries(sizes)) {
  const aim = AIMS[name] ?? Number.POSITIVE_INFINITY;
  tooLarge ||= size > aim;
  const verdict = size > aim ? ` - TOO LARGE, at most ${aim / 1000} kB` : Number.isFinite(aim) ? `, at most ${aim / 1000} kB` : "";
  console.log(`${name}: ${(size / 1000).toFixed(1)} kB gzip${verdict}`);
}
if (!tooLarge) writeFileSync(stamp, hash);
process.exit(tooLarge ? 1 : 0);

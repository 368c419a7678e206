// Packs the SDK, and installs it into copies of the apps outside of the repository's own packages.

import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "../..");
/** Where apps are built. A second run installs nothing that is there. */
export const TARGET = process.env.PACKAGING_TARGET ?? join(ROOT, "target/packaging");
const QUIET = ["--no-fund", "--no-audit", "--loglevel=error"];
/** Builds report their errors on either stream. */
const OUTPUT_BYTES_MAX = 64 << 20;

const execute = promisify(execFile);

/** Runs a program to its end. The error is all that it printed. */
export async function run(program, args, folder, more = {}) {
  try {
    return (await execute(program, args, { cwd: folder, env: { ...environmentOf(folder), ...more }, maxBuffer: OUTPUT_BYTES_MAX })).stdout;
  } catch (error) {
    throw new Error(`${[program, ...args].join(" ")} in ${folder}: ${error.message}\n${error.stdout ?? ""}${error.stderr ?? ""}`);
  }
}

/** Commands of an app see its tools. Tools report nothing to their makers. */
export function environmentOf(folder) {
  const tools = join(folder, "node_modules/.bin");
  const silent = { NEXT_TELEMETRY_DISABLED: "1", PARCEL_WORKER_BACKEND: "process", CI: "true", NODE_OPTIONS: "" };
  return { ...process.env, ...silent, PATH: `${tools}${delimiter}${process.env.PATH}` };
}

/** Packs a package of the repository as npm publishes it. Returns the file. */
export async function pack(folder) {
  const to = join(TARGET, "packed");
  await mkdir(to, { recursive: true });
  const [{ filename }] = JSON.parse(await run("npm", ["pack", "--json", "--pack-destination", to, ...QUIET], join(ROOT, folder)));
  return join(to, filename);
}

/** Copies an app, installs what its lock file names, and the packed SDK. Returns its folder. */
export async function install(name, sdk) {
  const folder = join(TARGET, name);
  const source = join(HERE, "apps", name);
  const lock = await readFile(join(source, "package-lock.json"), "utf8");
  const installed = await readFile(join(folder, "node_modules/installed-lock.json"), "utf8").catch(() => undefined);
  if (installed !== lock) await rm(folder, { recursive: true, force: true });
  await cp(join(HERE, "shared"), folder, { recursive: true });
  await cp(source, folder, { recursive: true });
  if (installed !== lock) {
    await run("npm", ["ci", ...QUIET], folder);
    await writeFile(join(folder, "node_modules/installed-lock.json"), lock);
  }
  await run("npm", ["install", "--no-save", ...QUIET, sdk], folder);
  return folder;
}

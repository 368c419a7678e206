// Makes the folder of a game from a template.

import { readFileSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("templates/", import.meta.url));

/** The templates, and the folders that each is laid over another from. `parlor new` reads the same files. */
export const TEMPLATES = JSON.parse(readFileSync(join(HERE, "templates.json"), "utf8"));

/** What the user can mend: its message is shown without a stack. */
export class CreateError extends Error {}

/** Makes a game. `sdk` is what package.json asks for as `parlor`: a version, or a path. Returns the game's folder. */
export async function create({ folder, template, sdk }) {
  if (!Object.hasOwn(TEMPLATES, template)) {
    throw new CreateError(`there is no template ${JSON.stringify(template)}; there are ${Object.keys(TEMPLATES).join(", ")}`);
  }
  const target = resolve(folder);
  await makeEmpty(target);
  // Each layer may have a package.json: what all of them need is in the game's.
  const game = { name: packageName(basename(target)) };
  for (const layer of TEMPLATES[template].layers) {
    await cp(join(HERE, layer), target, { recursive: true });
    merge(game, JSON.parse(await readFile(join(target, "package.json"), "utf8")));
  }
  game.dependencies.parlor = sdk ?? (await ownVersion());
  await writeFile(join(target, "package.json"), `${JSON.stringify(game, null, 2)}\n`);
  // npm leaves a .gitignore out of packages.
  await rename(join(target, "gitignore"), join(target, ".gitignore"));
  return target;
}

async function makeEmpty(target) {
  try {
    await mkdir(target, { recursive: true });
    const files = (await readdir(target)).filter((name) => name !== ".git");
    if (files.length === 0) return;
    throw new CreateError(`${target} is not empty: it has ${files[0]}; name another folder`);
  } catch (error) {
    if (error instanceof CreateError) throw error;
    throw new CreateError(`${target} cannot be made: ${error.message}`);
  }
}

/** A name that npm takes. */
function packageName(folder) {
  const name = folder.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, "-").replace(/^[._-]+/, "");
  return name === "" ? "game" : name;
}

function merge(into, from) {
  for (const [key, value] of Object.entries(from)) {
    if (typeof value === "object") merge((into[key] ??= {}), value);
    else into[key] = value;
  }
}

/** Both packages have one version. */
async function ownVersion() {
  const { version } = JSON.parse(await readFile(new URL("package.json", import.meta.url), "utf8"));
  return `^${version}`;
}

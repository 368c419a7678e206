#!/usr/bin/env node
// npm create parlor: asks for what the command line leaves out, makes the game, and says what to do next.

import { createInterface } from "node:readline/promises";
import { relative } from "node:path";
import { parseArgs } from "node:util";
import { create, CreateError, TEMPLATES } from "./create.mjs";

const NAMES = Object.keys(TEMPLATES);
const DEFAULTS = { folder: "my-game", template: "vanilla" };
const HELP = `npm create parlor [FOLDER] [-- --template TEMPLATE] [--sdk VERSION]

  FOLDER                 the folder to make; default: ${DEFAULTS.folder}
  --template TEMPLATE    ${NAMES.map((name) => `${name}: ${TEMPLATES[name].what}`).join("\n                         ")}
  --sdk VERSION          the version of \`parlor\`, or a path to a package of it; default: this one's
`;

async function main() {
  const { values, positionals } = read();
  if (values.help) return console.log(HELP);
  if (positionals.length > 1) throw new CreateError(`one folder, not ${positionals.length}: ${positionals.join(", ")}`);
  const asked = await ask({ folder: positionals[0], template: values.template });
  const folder = await create({ ...asked, sdk: values.sdk });
  const there = relative(process.cwd(), folder);
  console.log(`
${folder} has a game. Next:

${there === "" ? "" : `  cd ${there}\n`}  npm install
  npm run dev          # the page: its invite is for the second player
  npm test             # two players over a bad network

Both need a server in another terminal, which takes pages of other origins by name:

  npx parlor serve --web-origins http://localhost:5173
`);
}

function read() {
  const options = { template: { type: "string" }, sdk: { type: "string" }, help: { type: "boolean", short: "h" } };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new CreateError(`${error.message}\n\n${HELP}`);
  }
}

/** Asks for what was not given, where somebody can answer. */
async function ask({ folder, template }) {
  if (!process.stdin.isTTY) return { folder: folder ?? DEFAULTS.folder, template: template ?? DEFAULTS.template };
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = async (question, other) => (await lines.question(`${question} (${other}): `)).trim() || other;
    return {
      folder: folder ?? (await answer("folder", DEFAULTS.folder)),
      template: template ?? (await answer(`template: ${NAMES.join(", ")}`, DEFAULTS.template)),
    };
  } finally {
    lines.close();
  }
}

try {
  await main();
} catch (error) {
  if (!(error instanceof CreateError)) throw error;
  console.error(`create-parlor: ${error.message}`);
  process.exitCode = 1;
}

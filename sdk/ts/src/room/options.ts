// Options in the words of the core, after what only the page can check.

import { badArgument, ParlorError } from "../error.js";
import type { Data } from "../value/data.js";
import { utf8Length } from "../value/names.js";
import type { HostOptions, JoinOptions, MatchOptions } from "./types.js";

/** The options of all intents. */
export type AnyOptions = HostOptions & MatchOptions & JoinOptions;

/** How a process comes into a room. */
export type Intent =
  | { intent: "host" }
  | { intent: "join"; code: string; secret?: string | undefined }
  | { intent: "match" }
  | { intent: "resume"; ticket: string };

/** The host's silence after which another player goes on: a browser's whole process may be descheduled for a while. */
const HOST_SILENCE_MS = 750;

const NAME_BYTES_MAX = 48;

/** Settings that belong together, as in Rust. */
const PRESETS: Record<string, { tickHz: number; simulationDelay?: number; resimulate?: number; lead?: boolean }> = {
  action: { tickHz: 60, simulationDelay: 4, resimulate: 8, lead: true },
  calm: { tickHz: 10 },
};

/** The options that the core opens a room with. What it does not know of is taken out before. */
export function coreOptions(app: string, intent: Intent, options: AnyOptions, token?: string, world: Record<string, Data> = {}): Data {
  checkName("the app id", app, 64, 1);
  const { name, preset = "" } = options;
  if (name !== undefined) checkName("`name`", name, NAME_BYTES_MAX, 0);
  if (preset !== "" && !Object.hasOwn(PRESETS, preset)) {
    throw badArgument(`there is no preset ${JSON.stringify(preset)}`, `the presets are ${Object.keys(PRESETS).join(", ")}`);
  }
  const given: Record<string, unknown> = { ...PRESETS[preset], ...options };
  const names = CORE_NAMES[intent.intent];
  const known = Object.fromEntries(names.map((name) => [name, given[name] as Data | undefined]));
  const migrates = intent.intent === "host" ? { hostMigration: migration(options) } : {};
  const secret = "secret" in intent && intent.secret !== undefined ? { secret: intent.secret } : {};
  return { app, ...intent, ...known, token, ...migrates, ...world, ...secret };
}

/** How long the host of this room may be silent; undefined without migration. */
export function silenceMs(options: HostOptions): number | undefined {
  const given = migration(options);
  return given === false ? undefined : given.silenceMs;
}

function migration({ hostMigration: given, dedicated }: HostOptions): false | { silenceMs: number } {
  // No player takes the part of a dedicated host.
  if (given === false || (given === undefined && dedicated === true)) return false;
  return typeof given === "object" ? { silenceMs: given.silenceMs } : { silenceMs: HOST_SILENCE_MS };
}

function checkName(what: string, text: unknown, max: number, min: number): void {
  if (typeof text !== "string") throw badArgument(`${what} is a ${typeof text}`, "pass text");
  const length = utf8Length(text);
  if (length < min || length > max) {
    throw badArgument(`${what} has ${length} bytes`, `it may have ${min} to ${max}`);
  }
}

/** Options that this version does not take are mistakes of spelling, or meant for another one. */
export function checkNames(given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) {
      throw new ParlorError("bad_argument", `there is no option \`${name}\``, `the options are ${known.join(", ")}`);
    }
  }
}

/** For the page alone. */
const PAGE = ["server", "token", "account", "via", "remember", "whenPageHides", "whenHidden", "preset", "signal", "WebSocket", "network", "worker"];
const OPEN = [
  "name", "secret", "environment", "reconnect", "lead", "channels", "protocol", "renderDelay", "simulationDelay", "resimulate",
  "rewindMaxMs", "migrationGraceMs",
];
const NEW = [...OPEN, "maxPlayers", "tickHz", "spectators", "spectatorDelayMs", "presenceMs", "graceMs"];

/** The names of the core's options, by what they are for. */
const CORE_NAMES: Record<Intent["intent"], readonly string[]> = {
  host: [...NEW, "code", "dedicated", "hostMigration"],
  match: [...NEW, "label", "keep"],
  join: [...OPEN, "spectate"],
  resume: OPEN,
};

/** The names of options that a game may pass. */
export function optionNames(intent: Intent["intent"]): readonly string[] {
  return [...PAGE, ...CORE_NAMES[intent]];
}

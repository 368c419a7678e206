// Options in the words of the core, after what only the page can check.

import { badArgument, ParlorError } from "../error.js";
import type { Data } from "../value/data.js";
import { utf8Length } from "../value/names.js";
import type { HostOptions, MatchOptions, OpenOptions } from "./types.js";

/** How a process comes into a room. */
export type Intent =
  | { intent: "host" }
  | { intent: "join"; code: string; secret?: string | undefined }
  | { intent: "match" }
  | { intent: "resume"; ticket: string };

/** The host's silence after which another player goes on: a browser's whole process may be descheduled for a while. */
const HOST_SILENCE_MS = 750;

const NAME_BYTES_MAX = 48;

/** The options that the core opens a room with. What it does not know of is taken out before. */
export function coreOptions(app: string, intent: Intent, options: OpenOptions & HostOptions & MatchOptions, token?: string, world: Record<string, Data> = {}): Data {
  checkName("the app id", app, 64, 1);
  if (options.name !== undefined) checkName("`name`", options.name, NAME_BYTES_MAX, 0);
  const common: Record<string, Data | undefined> = {
    app,
    environment: options.environment,
    name: options.name,
    secret: ("secret" in intent ? intent.secret : undefined) ?? options.secret,
    token,
    reconnect: options.reconnect,
    lead: options.lead,
    channels: options.channels as Record<string, Data> | undefined,
    ...world,
  };
  switch (intent.intent) {
    case "host":
      return {
        ...common,
        intent: "host",
        code: options.code,
        maxPlayers: options.maxPlayers,
        tickHz: options.tickHz,
        dedicated: options.dedicated,
        hostMigration: migration(options),
        simulationDelay: options.simulationDelay,
        resimulate: options.resimulate,
        rewindMaxMs: options.rewindMaxMs,
      };
    case "match":
      return {
        ...common,
        intent: "match",
        maxPlayers: options.maxPlayers,
        tickHz: options.tickHz,
        label: options.label,
        keep: options.keep,
      };
    case "join":
      return { ...common, intent: "join", code: intent.code };
    case "resume":
      return { ...common, intent: "resume", ticket: intent.ticket };
  }
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

const OPEN = [
  "server", "name", "secret", "token", "account", "environment", "via", "reconnect", "remember", "whenPageHides", "lead", "channels",
  "signal", "WebSocket", "network", "worker",
] as const;
const HOST = ["maxPlayers", "tickHz", "code", "dedicated", "hostMigration", "simulationDelay", "resimulate", "rewindMaxMs"] as const;
const MATCH = ["maxPlayers", "tickHz", "label", "keep"] as const;

/** The names of options, by what they are for. */
export const OPTION_NAMES: Record<Intent["intent"], readonly string[]> = {
  host: [...OPEN, ...HOST],
  match: [...OPEN, ...MATCH],
  join: OPEN,
  resume: OPEN,
};

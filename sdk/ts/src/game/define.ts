// A game that says once what its state, inputs and messages are, so that every call of its rooms knows.

import { checkNames } from "../room/options.js";
import { type Defined, openAgain, openJoined, openNew } from "../room/open.js";
import type { HostOptions, JoinOptions, Lane, Match, MatchOptions, OpenOptions, Room } from "../room/types.js";
import { checkOf, KeyChecks, type Shape, type ShapeOf } from "./shape.js";

/** What a game says of itself. */
export interface GameDefinition extends Defined {
  /** Steps per second of rooms and matches. Default: 30. */
  tickHz?: number;
  /** Which of the game's worlds. Default: none. */
  environment?: string;
  /** Its own channels of bytes, by number from 16 to 63. */
  channels?: Readonly<Record<number, Lane>>;
}

/** The types of a definition. */
export interface TypesOf<D extends GameDefinition> {
  state: D["state"] extends Readonly<Record<string, Shape>> ? { [K in keyof D["state"] & string]: ShapeOf<D["state"][K]> } : Record<never, never>;
  input: D["input"] extends Shape ? ShapeOf<D["input"]> : never;
  messages: D["messages"] extends Readonly<Record<string, Shape>>
    ? { [K in keyof D["messages"] & string]: ShapeOf<D["messages"][K]> }
    : Record<never, never>;
  actions: D["actions"] extends Readonly<Record<string, Shape>>
    ? { [K in keyof D["actions"] & string]: ShapeOf<D["actions"][K]> }
    : Record<never, never>;
}

/** A game whose rooms know their types. */
export interface Game<D extends GameDefinition> {
  readonly app: string;
  /** Opens a room, of which this player is the host. */
  host(options?: HostOptions): Promise<Room<TypesOf<D>>>;
  /** Joins a room by its code or an invite. */
  join(invite: string | URL, options?: JoinOptions): Promise<Room<TypesOf<D>>>;
  /** Takes the seat that this tab had before it was reloaded. Undefined if it had none, or another page has it. */
  rejoin(options?: OpenOptions): Promise<Room<TypesOf<D>> | undefined>;
  /** Creates a match, which the server runs. */
  createMatch(options?: MatchOptions): Promise<Match<TypesOf<D>>>;
  /** Joins a match by its id. */
  joinMatch(id: string | URL, options?: JoinOptions): Promise<Match<TypesOf<D>>>;
}

const NAMES = ["tickHz", "environment", "state", "input", "messages", "actions", "world", "predict", "own", "smoothing", "channels"];

/** Defines a game. It is pure data: safe at the top of a module, on a server that renders pages, and in workers. */
export function defineGame<const D extends GameDefinition>(app: string, definition: D): Game<D> {
  checkNames(definition, NAMES);
  // What is wrong with the definition is told here, not in the first room.
  new KeyChecks(definition.state);
  checkOf(definition.input);
  const { tickHz, environment, channels } = definition;
  const common = { ...(environment === undefined ? {} : { environment }), ...(channels === undefined ? {} : { channels }) };
  const opens = { ...common, ...(tickHz === undefined ? {} : { tickHz }) };
  const game = {
    app,
    host: (options: HostOptions = {}) => openNew(app, "host", { ...opens, ...options }, definition),
    join: (invite: string | URL, options: JoinOptions = {}) => openJoined(app, invite, { ...common, ...options }, definition),
    rejoin: (options: OpenOptions = {}) => openAgain(app, { ...common, ...options }, definition),
    createMatch: (options: MatchOptions = {}) => openNew(app, "match", { ...opens, ...options }, definition),
    joinMatch: (id: string | URL, options: JoinOptions = {}) => openJoined(app, id, { ...common, ...options }, definition),
  };
  return game as unknown as Game<D>;
}

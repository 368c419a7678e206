// A player's account for one game at one server.

import { ParlorError } from "../error.js";
import type { WebSocketConstructor } from "../link/websocket.js";
import type { AccountOfRoom, Admission } from "../room/types.js";
import { type Address, parseAddress, placeOf } from "../server/address.js";
import { abortReason } from "../thrown.js";
import { type Board, BoardImpl, type BoardInfo } from "./boards.js";
import { camel, type Camel } from "./camel.js";
import { Connection, type News } from "./connection.js";
import type { RoomEvent } from "./events.js";
import { Follower, type Want } from "./follower.js";
import { given } from "./given.js";
import type { Config, EntryView, Json, JsonObject, KeptView, LiveMatch, Operations, Summary } from "./operations.js";
import { randomId, Repeater } from "./repeat.js";
import { type TurnRoom, TurnRoomImpl } from "./room.js";
import { type Saves, SavesImpl } from "./saves.js";
import { type How, PlayerSigner } from "./sign-in.js";
import { type KeyValue, SignInStore } from "./store.js";
import { ticketFrom } from "./ticket.js";

/** With which a player signs in. */
export interface SignInOptions {
  /** The game. */
  app: string;
  /** Which of the game's worlds. Default: `"production"`. */
  environment?: string;
  /** What others see, if the account is made by this. */
  name?: string;
  /** Where the sign-in is kept. Its values are secrets. Default: `localStorage`; in Node it ends with the process. */
  store?: KeyValue;
  /** How. Default: as this page's player did before, else by the device. */
  how?: How;
  /** Ends the sign-in. A signed-in account does not listen to it. */
  signal?: AbortSignal;
  /** The constructor to use instead of the global one: in Node 20, that of the package `ws`. */
  WebSocket?: WebSocketConstructor;
}

/** A room to open. Where the server has games of its operator's, leave the fields of `config` out. */
export interface TurnConfig {
  /** The rule set that judges moves, such as `"draughts"`. */
  rules?: string;
  /** The game's mode, one of those in its operator's file. */
  mode?: string;
  /** The room's name. */
  name?: string;
  /** Not on lists, and closed to search. Default: false. */
  private?: boolean;
  /** Seats. */
  maxPlayers?: number;
  metadata?: JsonObject;
  /** The code to join by, where the game lets its creator choose one. */
  code?: string;
  /** Other fields of the configuration, as docs/turn-rooms.md has them. */
  config?: Config;
}

/** What a room must be to be found. One that is opened is so, too. */
export interface Criteria {
  name?: string;
  maxPlayers?: number;
  metadata?: JsonObject;
}

/** How long a player waits for a room. */
export interface EnterOptions {
  /** Ends the wait. The room may be entered all the same: then it is on the list `turnRooms`. */
  signal?: AbortSignal;
}

/** Which live matches are listed. */
export interface MatchFilter {
  label?: string;
  minMembers?: number;
  maxMembers?: number;
  openSeats?: boolean;
}

/** A turn room on a list. */
export type RoomSummary = Camel<Summary>;
/** A match that can be joined by its id: `joinMatch`. */
export type LiveMatchInfo = Camel<LiveMatch>;
/** A match that the server kept. */
export type KeptMatch = Camel<KeptView>;
/** What happened in a match. */
export type LogEntry = Camel<EntryView>;

/** A signed-in player. Any number of rooms may use it at once. */
export interface Account extends AccountOfRoom {
  /** What others see as `player.user` in realtime rooms, and as `player` in turn rooms. */
  readonly id: string;
  readonly name: string;
  readonly app: string;

  /** Opens a turn room. */
  create<S = JsonObject>(config?: TurnConfig, options?: EnterOptions): Promise<TurnRoom<S>>;
  /** Joins the turn room with this code or id. */
  join<S = JsonObject>(codeOrId: string, options?: EnterOptions): Promise<TurnRoom<S>>;
  /** Goes on in the room with this id, in which the player has a seat. */
  resume<S = JsonObject>(id: string, options?: EnterOptions): Promise<TurnRoom<S>>;
  /** Follows the room with this id without a seat, where its game admits spectators or this player played in it and all have left. */
  watch<S = JsonObject>(id: string, options?: EnterOptions): Promise<TurnRoom<S>>;
  /** Enters a room of this game that meets the criteria: one in which the player sits, else one with a seat, else a new one. */
  joinOrCreate<S = JsonObject>(config?: TurnConfig, criteria?: Criteria, options?: EnterOptions): Promise<TurnRoom<S>>;
  /** The turn rooms in which the player has a seat. */
  turnRooms(): AsyncIterable<RoomSummary>;
  /** The live matches of the game, without hidden ones. */
  matches(filter?: MatchFilter): AsyncIterable<LiveMatchInfo>;
  /** The kept matches that the player was in, newest first. */
  keptMatches(): AsyncIterable<KeptMatch>;
  /** What happened in a match that the player was in. */
  matchLog(id: string): AsyncIterable<LogEntry>;
  /** A board of the game. The server is not asked yet. */
  board(name: string): Board;
  /** What the player saves in slots. */
  readonly saves: Saves;
  /** The boards of the game. */
  boards(): AsyncIterable<BoardInfo>;

  /** Listens for what is so now: friends who come, lobbies, searches. After each `connected` read what you show. Returns how to end it. */
  news(listener: (news: News) => void): () => void;

  /** Adds a way to sign in: this device, or an address and a password. */
  link(how: { device: true } | { email: string; password: string }): Promise<void>;
  /** Removes one, but never the last. */
  unlink(how: { device: true } | { email: string }): Promise<void>;
  /** Ends this sign-in, or all of the account, and closes its rooms here. The next sign-in of this page is by the device. */
  signOut(options?: { everywhere?: boolean }): Promise<void>;
  /** Asks for any operation, as the server's `/v1/openapi.json` has it. It is not repeated if the connection is lost. */
  call<O extends keyof Operations>(op: O, input: Operations[O]["in"]): Promise<Operations[O]["out"]>;
  /** Closes its rooms and its connection here. The player stays signed in. */
  close(): void;
}

const ENVIRONMENT = "production";
const CODE_CHARS_MAX = 12;

/** Signs a player in. Rejects with `unreachable`, `no_accounts`, `wrong_password`, `closed`, … */
export async function signIn(server: string | URL, options: SignInOptions): Promise<Account> {
  const address = parseAddress(server);
  const { app, environment, name, store, how } = options;
  const key = `parlor-sign-in:${placeOf(address)}/${app}/${environment ?? ENVIRONMENT}`;
  const signer = new PlayerSigner({ app, environment, name: name?.trim() || undefined }, how, new SignInStore(key, store));
  const connection = new Connection(address, signer, options.WebSocket);
  await abortable(options.signal, connection.open(), () => connection.close());
  return new AccountImpl(connection, signer, options);
}

class AccountImpl implements Account {
  readonly #repeater = new Repeater();
  readonly saves: Saves = new SavesImpl((op, input) => this.call(op, input), this.#repeater);

  constructor(
    private readonly connection: Connection,
    private readonly signer: PlayerSigner,
    private readonly options: SignInOptions,
  ) {}

  get id(): string {
    return this.connection.me;
  }

  get name(): string {
    return this.connection.account?.name ?? "";
  }

  get app(): string {
    return this.options.app;
  }

  get address(): Address {
    return this.connection.address;
  }

  create<S>(config: TurnConfig = {}, options?: EnterOptions): Promise<TurnRoom<S>> {
    return this.#enter({ op: "turn.create", input: { ...wanted(config), id: randomId() } }, options);
  }

  join<S>(codeOrId: string, options?: EnterOptions): Promise<TurnRoom<S>> {
    const text = codeOrId.trim();
    // Ids are longer than any code.
    const isCode = text.length <= CODE_CHARS_MAX && /^[A-Za-z0-9]+$/.test(text);
    const byCode = { op: "turn.join_by_code", input: { code: text.toUpperCase() } };
    return this.#enter(isCode ? byCode : { op: "turn.join", input: { room: text } }, options);
  }

  resume<S>(id: string, options?: EnterOptions): Promise<TurnRoom<S>> {
    return this.#enter({ room: id }, options);
  }

  watch<S>(id: string, options?: EnterOptions): Promise<TurnRoom<S>> {
    return this.#enter({ watch: id }, options);
  }

  joinOrCreate<S>(config: TurnConfig = {}, { maxPlayers, ...others }: Criteria = {}, options?: EnterOptions): Promise<TurnRoom<S>> {
    const criteria = given({ ...others, max_players: maxPlayers });
    // Left out for servers that do not know it.
    const input = { ...wanted(config), ...given({ criteria: Object.keys(criteria).length > 0 ? criteria : undefined }) };
    return this.#enter({ op: "turn.join_or_create", input }, options);
  }

  turnRooms(): AsyncIterable<RoomSummary> {
    return this.#pages("turn.mine", {}, ({ rooms }) => rooms);
  }

  matches({ label, minMembers, maxMembers, openSeats }: MatchFilter = {}): AsyncIterable<LiveMatchInfo> {
    const filter = given({ label, min_members: minMembers, max_members: maxMembers, open_seats: openSeats });
    return this.#pages("match.list", filter, ({ matches }) => matches);
  }

  keptMatches(): AsyncIterable<KeptMatch> {
    return this.#pages("match.kept", {}, ({ matches }) => matches);
  }

  async *matchLog(id: string): AsyncIterable<LogEntry> {
    for (let from: number | null | undefined = 0; typeof from === "number"; ) {
      const part: Operations["match.log"]["out"] = await this.call("match.log", { match: id, from });
      yield* part.entries.map((entry) => camel(entry));
      from = part.next;
    }
  }

  board(name: string): Board {
    return new BoardImpl((op, input) => this.call(op, input), this.#repeater, name);
  }

  boards(): AsyncIterable<BoardInfo> {
    return this.#pages("board.list", {}, ({ boards }) => boards);
  }

  news(listener: (news: News) => void): () => void {
    return this.connection.hear(listener);
  }

  async link(how: { device: true } | { email: string; password: string }): Promise<void> {
    await this.call("account.link", "email" in how ? how : { device: (await this.signer.secrets()).device });
  }

  async unlink(how: { device: true } | { email: string }): Promise<void> {
    await this.call("account.unlink", "email" in how ? how : { device: (await this.signer.secrets()).device });
  }

  async signOut({ everywhere = false }: { everywhere?: boolean } = {}): Promise<void> {
    const { refresh } = await this.signer.secrets();
    const { app, environment } = this.options;
    // The connection is this sign-in's: it ends with it, perhaps before the answer.
    if (everywhere) await this.#ended(this.call("account.sign_out_everywhere", {}));
    else if (refresh !== undefined) await this.#ended(this.call("auth.sign_out", { app, refresh_token: refresh, ...given({ environment }) }));
    await this.signer.forget();
    this.connection.close(new ParlorError("signed_out", "this player signed out", "sign in again"));
  }

  async call<O extends keyof Operations>(op: O, input: Operations[O]["in"]): Promise<Operations[O]["out"]> {
    const output = (await this.connection.call(op, input as JsonObject)) as unknown as Operations[O]["out"];
    if (op === "account.rename") this.connection.renamed((input as Operations["account.rename"]["in"]).name);
    if (op === "account.delete") {
      this.signer.isDeleted = true;
      await this.signer.forget();
      this.connection.close(new ParlorError("no_such_account", "this account was deleted", "sign in anew for another one"));
    }
    return output;
  }

  close(): void {
    this.connection.close();
  }

  check(app: string, environment: string | undefined, at: Address): void {
    const own = this.options.environment ?? ENVIRONMENT;
    if (app !== this.app) throw new ParlorError("bad_options", `the account is one of ${this.app}, and the room is of ${app}`);
    if (own !== (environment ?? ENVIRONMENT)) {
      throw new ParlorError("bad_options", `the account is one of ${own}, and the room's environment is ${environment ?? ENVIRONMENT}`);
    }
    if (at.host !== this.address.host) {
      // Whoever wrote the invite would get the account.
      const message = `the room is at ${placeOf(at)}, and the account at ${placeOf(this.address)}`;
      throw new ParlorError("bad_options", message, `sign in at ${placeOf(at)}, or leave the account out`);
    }
  }

  async ticket(at: Address, { create, room }: Admission): Promise<string> {
    const input = given({ create, room });
    const isHere = at.host === this.address.host && at.port === this.address.port;
    if (isHere) return (await this.call("admission.ticket", input)).token;
    return ticketFrom(at, await this.connection.accessToken(), input, this.options.WebSocket);
  }

  /** Waits for a call with whose doing the connection may end. */
  async #ended(call: Promise<unknown>): Promise<void> {
    await call.catch((thrown: unknown) => {
      const isGone = thrown instanceof ParlorError && ["connection_lost", "signed_out", "bad_refresh_token"].includes(thrown.code);
      if (!isGone) throw thrown;
    });
  }

  /** Enters a room: resolves once it was read. */
  #enter<S>(want: Want, { signal }: EnterOptions = {}): Promise<TurnRoom<S>> {
    const follower = new Follower(this.connection, want);
    const entered = new Promise<TurnRoom<S>>((resolve, reject) => {
      const room = new TurnRoomImpl<S>(follower, () => this.id, (input) => this.call("turn.messages", input));
      let told = (event: RoomEvent) => {
        if (event.type === "closed") return reject(event.it);
        if (event.type !== "connected") return;
        const early: RoomEvent[] = [event];
        told = (it) => void early.push(it);
        resolve(room);
        // A program that listens right after `await` misses nothing.
        setTimeout(() => {
          told = (it) => room.tell(it);
          for (const it of early) room.tell(it);
        }, 0);
      };
      this.connection.follow(follower, (event) => told(event));
    });
    return abortable(signal, entered, () => follower.close(new ParlorError("aborted", "the wait for the room was ended")));
  }

  async *#pages<O extends "turn.mine" | "match.list" | "match.kept" | "board.list", T>(
    op: O,
    input: Operations[O]["in"],
    items: (output: Operations[O]["out"]) => T[],
  ): AsyncIterable<Camel<T>> {
    for (let after: string | null | undefined; after !== null; ) {
      const part: Operations[O]["out"] = await this.call(op, after === undefined ? input : { ...input, after });
      for (const item of items(part)) yield camel(item);
      after = part.next ?? null;
    }
  }
}

/** Waits until the signal: `end` then stops what is under way. */
async function abortable<T>(signal: AbortSignal | undefined, work: Promise<T>, end: () => void): Promise<T> {
  if (signal?.aborted === true) end();
  signal?.addEventListener("abort", end, { once: true });
  try {
    return await work;
  } catch (thrown) {
    throw signal?.aborted === true ? abortReason(signal) : thrown;
  } finally {
    signal?.removeEventListener("abort", end);
  }
}

/** A room to open, in the words of the server. */
function wanted({ rules, mode, name, private: isPrivate, maxPlayers, metadata, code, config }: TurnConfig): JsonObject {
  const whole = { ...config, ...given({ rules }) };
  return given({
    config: Object.keys(whole).length === 0 ? undefined : (whole as Json),
    mode,
    name,
    visibility: isPrivate === true ? "private" : undefined,
    max_players: maxPlayers,
    metadata,
    code,
  });
}

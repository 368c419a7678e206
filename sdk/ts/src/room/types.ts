/// <reference lib="esnext.disposable" preserve="true" />
// What a room is to a game: its interface, its events, and the options it is opened with.

import type { ErrorCode } from "../error.js";
import type { Claim, GameTypes, Key, Kind, PrefixOf, Read, StateOf, StateUnder, Untyped, Write } from "../game/types.js";
import type { Network } from "../impair.js";
import type { ViaOption } from "../link/dial.js";
import type { WebSocketConstructor } from "../link/websocket.js";
import type { TicketStore } from "../page/seat.js";
import type { Address } from "../server/address.js";
import type { Data } from "../value/data.js";
import type { WorkerLike } from "../worker/channel.js";
import type { Entity, World } from "../world/types.js";

/** A member's number in its room. 0 is the member that opened it. */
export type PlayerId = number & { readonly "~player"?: never };

/** How messages travel: in order, each once, the newest alone, or as they come. */
export type Lane = "ordered" | "reliable" | "sequenced" | "unreliable";

/**
 * To whom a message goes. `others` are all but the sender, `all` and `except` the sender too, `primary` is the member
 * that does what one must do.
 */
export type To = PlayerId | readonly PlayerId[] | "host" | "others" | "all" | "primary" | { except: readonly PlayerId[] };

/** Who sent something: a member, or the server. */
export type From = PlayerId | "hub";

/** An account, as rooms use it: `signIn` of `parlor/online` gives one. */
export interface AccountOfRoom {
  /** Its server. No other is told of it, unless this one sends the room there. */
  readonly address: Address;
  /** Throws if a room of this game, environment and server is not for this account. */
  check(app: string, environment: string | undefined, at: Address): void;
  /** What admits the player to one room, once. */
  ticket(at: Address, admission: Admission): Promise<string>;
}

/** What a connection asks to be admitted to: a new room, perhaps under a code of its choice, or the room with a code. */
export interface Admission {
  create: boolean;
  room?: string;
}

/** With which a room is opened or joined. */
export interface OpenOptions {
  /** `HOST`, `HOST:PORT` or a URL. Default: the server that an invite names, or that this page came from. */
  server?: string | URL;
  /** This player's display name, at most 48 bytes. Default: none. */
  name?: string;
  /** What a joining player must know beside the code. */
  secret?: string;
  /** What admits this player to a server that asks for it, or a function that gets it anew for each connection. */
  token?: string | (() => Promise<string>);
  /** The account to join as: the others see its id as `user`. From `parlor/online`. Default server: the account's own. */
  account?: AccountOfRoom;
  /** Which of the game's worlds, such as `"development"`. Default: none. */
  environment?: string;
  /** Which links are tried. Default: `"auto"`, WebTransport first and WebSocket as the fallback. */
  via?: ViaOption;
  /** Whether a lost connection is made again. Default: true. */
  reconnect?: boolean;
  /** Where this tab keeps what gets its seat back after a reload. Default: `"tab"`, its session storage. */
  remember?: "tab" | "never" | TicketStore;
  /** What closing or reloading the tab does: keeps the seat for the server's grace, or leaves. Default: `"keep-seat"`. */
  whenPageHides?: "keep-seat" | "leave";
  /** What hiding the tab of the host does: the tab plays on, or another player becomes the host. Default: `"keep-playing"`, and `"hand-over"` on devices with nothing but a touch screen, which may stop hidden tabs at any time. */
  whenHidden?: "keep-playing" | "hand-over";
  /** Whether a guest runs its steps ahead of the room's time, so that its inputs come in time. Default: false. */
  lead?: boolean;
  /** Settings that belong together; others beside it count more. `action`: 60 steps per second, `simulationDelay` 4, `resimulate` 8 and `lead`. `calm`: 10 steps per second. Default: none. */
  preset?: "action" | "calm";
  /** How inputs and messages without a lane travel. Default: `"both"`, inputs unreliably and messages reliably. */
  protocol?: "reliable" | "unreliable" | "both";
  /** How far behind the newest state others are drawn, in ms. Within these bounds it follows the network. */
  renderDelay?: { minMs?: number; maxMs?: number };
  /** Steps that the host runs behind the room's time, 0 to 32. Here and below: what this process does as the host, also after a migration. Default: 0. */
  simulationDelay?: number;
  /** Steps that the host runs again for late inputs, 0 to 32. Default: 0. */
  resimulate?: number;
  /** How far back the host looks when it judges what a player saw, 0 to 250 ms. Default: 250. */
  rewindMaxMs?: number;
  /** How long this process waits for a new host before the room is over for it, 500 to 60,000 ms. Default: 3,000. */
  migrationGraceMs?: number;
  /** The game's own channels of bytes, by number from 16 to 63. */
  channels?: Readonly<Record<number, Lane>>;
  /** Ends the opening. An open room does not listen to it. */
  signal?: AbortSignal;
  /** The constructor to use instead of the global one: in Node 20, that of the package `ws`. */
  WebSocket?: WebSocketConstructor;
  /** For development: a network that is worse than the real one. `badNetwork` of `parlor/impair` makes one. */
  network?: Network;
  /** Whether links and timers live in a worker; a factory for a page whose policy forbids Blob URLs. Default: true. */
  worker?: boolean | (() => WorkerLike);
}

/** With which a room is joined. */
export interface JoinOptions extends OpenOptions {
  /** Whether to watch only: a spectator takes no player's seat and sends nothing. Default: false. */
  spectate?: boolean;
}

/** What rooms and matches are opened with. */
export interface TermsOptions {
  /** Spectators at once, 0 to 64. Default: 8. */
  spectators?: number;
  /** How much later than its players spectators see the room, 1,000 to 300,000 ms. Default: no later. */
  spectatorDelayMs?: number;
  /** Silence after which a player counts as lost, 1,000 to 8,000 ms. Default: the server's. */
  presenceMs?: number;
  /** How long a lost player has its seat, in ms; at most as long as the server keeps it. Default: the server's. */
  graceMs?: number;
}

/** With which a room is opened. */
export interface HostOptions extends OpenOptions, TermsOptions {
  /** Players at once: 2 to 16, dedicated 2 to 255. Default: 4. */
  maxPlayers?: number;
  /** Steps per second, 1 to 240. Default: 30. */
  tickHz?: number;
  /** The room's code, 4 to 12 letters and digits. Default: the server draws one. */
  code?: string;
  /** Whether this process hosts without playing. Default: false. */
  dedicated?: boolean;
  /** Whether another player goes on when the host is gone, and after which silence, 100 to 10,000 ms. Default: true, after 750 ms; false if dedicated. */
  hostMigration?: boolean | { silenceMs: number };
}

/** With which a match is created. */
export interface MatchOptions extends OpenOptions, TermsOptions {
  /** Players at once, 2 to 256. Default: 16. */
  maxPlayers?: number;
  /** Steps per second of the match's clock, 1 to 240. Default: 30. */
  tickHz?: number;
  /** What the server's list shows it under. Default: none. */
  label?: string;
  /** Whether the server keeps the match's log. Default: false. */
  keep?: boolean;
}

/** A participant. */
export interface Player {
  readonly id: PlayerId;
  readonly name: string;
  /** Its account, which the server vouches for. */
  readonly user?: string;
  readonly isHost: boolean;
  readonly isMe: boolean;
  readonly isSpectator: boolean;
  readonly connected: boolean;
  /** Whether its connection is slower than the room's traffic to it. */
  readonly slow: boolean;
  readonly rttMs?: number;
  /** Its link to the server: `quic`, `websocket`, `webtransport` or `memory`. */
  readonly link: string;
  /** Its player data under a key. */
  data<T = Data>(key: string): T | undefined;
  /** All of its player data. */
  readonly allData: Readonly<Record<string, Data>>;
}

/** Why a room is over for this process. */
export interface Closed {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  /** When the server asks to try again, in ms. */
  readonly retryAfterMs?: number;
}

/** A state update. */
export interface StateUpdate {
  readonly sequence: number;
  readonly serverTick: number;
  readonly serverTimeMs: number;
  readonly tickIntervalMs: number;
  readonly inputAckTick?: number;
  readonly source: "delta" | "complete" | "transfer";
  readonly jitterMs: number;
  readonly bufferDelayMs: number;
  readonly historyDepth: number;
  readonly bufferedMs: number;
  /** Keys that changed, in ascending order. */
  readonly changed: readonly string[];
}

/** A message of any kind of the game. */
export type AnyMessage<G extends GameTypes> = {
  [K in Kind<G>]: {
    readonly from: From;
    readonly kind: K;
    readonly order?: number;
    /** When it happened, in `serverTimeMs`, if its sender said so with `timed`. */
    readonly eventTimeMs?: number;
    readonly value: G["messages"][K];
  };
}[Kind<G>];

/** An action of any name of the game. */
export type AnyAction<G extends GameTypes> = {
  [K in keyof G["actions"] & string]: {
    readonly from: PlayerId;
    readonly entity: Entity;
    readonly name: K;
    readonly value: G["actions"][K];
  };
}[keyof G["actions"] & string];

/** What happens in a room. */
export interface Events<G extends GameTypes = Untyped> {
  playerJoined: Player;
  playerLeft: { readonly id: PlayerId; readonly name: string; readonly reason: string };
  spectatorJoined: Player;
  spectatorLeft: { readonly id: PlayerId; readonly name: string; readonly reason: string };
  playerLost: { readonly id: PlayerId; readonly reason: string };
  playerBack: { readonly id: PlayerId };
  playerData: { readonly id: PlayerId; readonly key: string; readonly value?: Data };
  state: StateUpdate;
  message: AnyMessage<G>;
  bytes: { readonly from: From; readonly channel: number; readonly order?: number; readonly bytes: Uint8Array };
  data: { readonly from: PlayerId; readonly op: number; readonly order?: number; readonly bytes: Uint8Array };
  spawned: { readonly entity: Entity };
  despawned: { readonly entity: Entity };
  /** At the host: a player asks for an action on an entity of its own. */
  action: AnyAction<G>;
  actionRefused: { readonly entity: Entity; readonly name: string; readonly why: string };
  connectionLost: { readonly reason: string; readonly detail: string };
  reconnecting: { readonly attempt: number };
  reconnected: { readonly stateResynced: boolean };
  /** The room's server is gone, and another one has reopened the room: the game goes on. `gap`: messages may have been lost. */
  reopened: { readonly gap: boolean };
  hostMigration: { readonly previous?: PlayerId; readonly next: PlayerId; readonly isMe: boolean };
  hostChanged: { readonly host: PlayerId; readonly previous?: PlayerId };
  /** This process stays the host: the server refused the hand-over. */
  handOverRefused: { readonly why: string };
  slow: { readonly id: PlayerId; readonly slow: boolean };
  throttled: Record<string, never>;
  primary: { readonly player?: PlayerId };
  /** A validator of the game refused what another member sent. */
  unreadable: { readonly what: string; readonly why: string; readonly from?: From };
  /** Something changed that can be read, by others or by this process; once a task at most. It is for views: React, Vue, Svelte. */
  changed: { readonly version: number };
  closed: Closed;
}

/** What `run` calls. */
export interface Loop<R> {
  /** One fixed step, also while the tab is hidden. */
  tick?(room: R): void;
  /** Each animation frame while the tab is visible. `alpha` says how far the next step is, from 0 to 1. */
  draw?(frame: { timeMs: number; deltaMs: number; alpha: number }): void;
}

/** What rooms and matches share. */
export interface Gathering<G extends GameTypes = Untyped> extends AsyncDisposable {
  readonly code: string;
  /** This player's id. */
  readonly me: PlayerId;
  /** A new map when it changes. */
  readonly players: ReadonlyMap<PlayerId, Player>;
  /** Who watches only. A new map when it changes. */
  readonly spectators: ReadonlyMap<PlayerId, Player>;
  /** Whether this process watches only. */
  readonly isSpectator: boolean;
  readonly status: "open" | "reconnecting" | "migrating" | "closed";
  /** Resolves when the room is over for this process; never rejects. */
  readonly closed: Promise<Closed>;
  /** Equal for as long as nothing changed that can be read. */
  readonly version: number;
  readonly tickNumber: number;
  readonly tickHz: number;
  readonly serverTimeMs: number;
  /** The round trip to the server, once it was measured. */
  readonly pingMs: number | undefined;
  /** What carries the packets; undefined while there is no connection. */
  readonly link: "webtransport" | "websocket" | undefined;
  readonly info: Readonly<Record<string, Data>>;
  readonly diagnostics: Readonly<Record<string, Data>> & {
    /** What validators of the game refused. */
    readonly refused: number;
  };

  /** The https link of the room's page, or of the game's own page if that is given. Hashes and secret stand in its fragment. */
  inviteUrl(base?: string | URL): string;
  /** The link for a game's own scheme. Default: `parlor`. */
  inviteLink(scheme?: string): string;

  /** Lets events happen; reads change only in here. `run` calls it. */
  update(): void;
  /** Whether a fixed step is due, and begins it: `while (room.tick()) …`. */
  tick(): boolean;
  /** How long it is until the next step is due, in ms. */
  untilNextTickMs(): number;

  /** Listens, until the returned function is called. A listener that throws is reported and disturbs nobody. */
  on<E extends keyof Events<G>>(
    event: E,
    listener: (it: Events<G>[E]) => void,
    options?: { signal?: AbortSignal; once?: boolean },
  ): () => void;
  /** The next event of a kind. Rejects with a `ParlorError` if the room closes first. */
  next<E extends keyof Events<G>>(event: E, options?: { signal?: AbortSignal }): Promise<Events<G>[E]>;

  /** Sends a message. `inOrder`: all receivers see it in the same order; `timed`: they learn when it was sent. */
  send<K extends Kind<G>>(to: To, kind: K, value: Write<G, G["messages"][K]>, options?: SendOptions): void;
  /** Sends a message to all but this player. */
  broadcast<K extends Kind<G>>(kind: K, value: Write<G, G["messages"][K]>, options?: SendOptions): void;
  /** Sends bytes on a channel of the game's own. */
  sendBytes(channel: number, to: To, bytes: Uint8Array, options?: { inOrder?: boolean }): void;

  /** Sets a value of a player's data, or removes it. Only the host sets another player's. */
  setData(key: string, value: Data | undefined, player?: PlayerId): void;

  /** Leaves. Resolves when the goodbye is out, or after 1 s. */
  leave(): Promise<void>;
}

/** How a message travels. */
export interface SendOptions {
  /** Default: `"ordered"`. */
  lane?: Lane;
  /** Default: false. */
  inOrder?: boolean;
  /** It carries the time of this call: the receivers read `eventTimeMs`. Default: false. */
  timed?: boolean;
}

/** A room with a host. */
export interface Room<G extends GameTypes = Untyped> extends Gathering<G> {
  readonly host: PlayerId | undefined;
  readonly isHost: boolean;
  /** Whether the running step is run again, because of a correction. */
  readonly isReplay: boolean;
  /** Entities with components. */
  readonly world: World<G["actions"]>;

  /** Runs the game: events, fixed steps, and drawing. Returns what stops it. */
  run(loop: Loop<Room<G>>): () => void;

  /** Writes state, at the host. */
  set<K extends Key<G>>(key: K, value: Write<G, StateOf<G, K>>): void;
  /** Writes state that only some players see. */
  setFor<K extends Key<G>>(players: Iterable<PlayerId>, key: K, value: Write<G, StateOf<G, K>>): void;
  /** Removes state, at the host. Says whether it was there. */
  delete(key: Key<G>): boolean;
  /** The value of a key, as the host wrote it. */
  get<T extends Claim<G> = never, const K extends Key<G> = Key<G>>(key: K): Read<T, StateOf<G, K>> | undefined;
  /** The same for the eye: between updates, a moment in the past. */
  interpolated<T extends Claim<G> = never, const K extends Key<G> = Key<G>>(key: K): Read<T, StateOf<G, K>> | undefined;
  /** All keys with a prefix, in ascending order. */
  entries<T extends Claim<G> = never, const P extends string = string>(
    prefix: PrefixOf<G, P>,
    options?: { interpolated?: boolean },
  ): [key: string, value: Read<T, StateUnder<G, P>>][];
  /** All keys with a prefix, in ascending order. Default: all keys. */
  keys(prefix?: string): string[];
  /** Says at the host how numbers under keys with a prefix move between updates: angles turn, what snaps does not move. */
  declare(prefix: string, hints: Hints): void;
  /** Shows a value of this player's own making until the host's comes. */
  setPredicted<K extends Key<G>>(key: K, value: Write<G, StateOf<G, K>>): void;
  /** The value that `setPredicted` shows, or else the host's. */
  predicted<T extends Claim<G> = never, const K extends Key<G> = Key<G>>(key: K): Read<T, StateOf<G, K>> | undefined;
  /** The newest tick whose state is whole here, and its hash; equal at all who have it. */
  readonly stateHash: { readonly sequence: bigint; readonly hash: bigint } | undefined;

  /** Sends what this player wants in this step. In a replay it does nothing. */
  sendInput(input: Write<G, G["input"]>): void;
  /** The input of a player in this step: the host asks of anybody, a member of itself. */
  input<T extends Claim<G> = never>(player: PlayerId): Read<T, G["input"]> | undefined;
  /** All inputs of this step, at the host. */
  inputs<T extends Claim<G> = never>(): [PlayerId, Read<T, G["input"]>][];
  /** Whether an effect is to be shown: once, however often its step runs. */
  once(effect: string, number: number): boolean;

  /** Removes a player, at the host. */
  kick(player: PlayerId, reason?: string): void;
  /** At the host: another player goes on as the host, at the end of this step, and this one stays as a guest. Default: the player that the server names. */
  handOver(to?: PlayerId): void;
  /** Ends the room for all, at the host; another member leaves. */
  stop(): Promise<void>;
}

/** How numbers of a value move, by path: `"heading"`, `"arms.*.angle"`. */
export interface Hints {
  /** Angles in radians. */
  angle?: readonly string[];
  snap?: readonly string[];
  linear?: readonly string[];
  /** Angles of another period. */
  period?: Readonly<Record<string, number>>;
}

/** A match: the server runs it, and its members are equal. */
export interface Match<G extends GameTypes = Untyped> extends Gathering<G> {
  /** Runs the game: events, the match's ticks, and drawing. Returns what stops it. */
  run(loop: Loop<Match<G>>): () => void;
  /** Sends data under the game's op code. Default: reliably. */
  sendData(op: number, to: To, bytes: Uint8Array, options?: { reliably?: boolean }): void;
}

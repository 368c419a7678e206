// A turn room as a game has it.

import { ParlorError } from "../error.js";
import { Emitter } from "../room/emitter.js";
import { camel, type Camel } from "./camel.js";
import type { RoomEvent, TurnRoomEvents } from "./events.js";
import type { Follower } from "./follower.js";
import { given } from "./given.js";
import type { Json, JsonObject, Operations, Phase, RoomMessage as RawMessage, RoomView as Raw } from "./operations.js";

/** What a player may read of a room; docs/turn-rooms.md has each field, there written as `state_version`. */
export type RoomView<S = JsonObject> = Omit<Camel<Raw>, "state" | "optimisticState"> & { readonly state: S; readonly optimisticState: S | null };

/** A message of a room's history. */
export type RoomMessage = Camel<RawMessage>;

/** An event of the game itself, with its name. */
export type GameEvent = Extract<RoomEvent, { type: (typeof GAME)[number] }>;

const DATA = ["playerJoined", "playerLeft", "updated"] as const;
const GAME = ["gameStarted", "turnStarted", "moveProposed", "moveMade", "moveRejected", "paused", "gameOver"] as const;

/** What is wanted of a room, by topic. */
export interface Subscription<S = JsonObject> {
  /** Who is in the room, or what is said about it, has changed. */
  data?(view: RoomView<S>): void;
  /** A player said something. */
  messages?(message: TurnRoomEvents["message"]): void;
  /** The game has begun, goes on, or is over. */
  game?(event: GameEvent): void;
}

type Options = { signal?: AbortSignal; once?: boolean };

/**
 * A room that the server runs, in which players move when they have time. It outlives pages, connections and the
 * server's process. A lost connection is made again by itself; what was asked meanwhile waits.
 */
export interface TurnRoom<S = JsonObject> {
  /** Its id, for `account.resume`. */
  readonly id: string;
  /** What others join by. */
  readonly code: string | undefined;
  /** This player's account. */
  readonly me: string;
  /** The room as it is. The same object as long as nothing changed; never older than the events. */
  readonly view: RoomView<S>;
  /** The accepted state. */
  readonly state: S;
  readonly phase: Phase;
  /** Whether this player may move: it is its turn, and no move of it is under way. */
  readonly myTurn: boolean;
  /** Whether the room is connected. If not, the view is the last one. */
  readonly isConnected: boolean;
  /** Equal for as long as nothing changed that can be read. */
  readonly version: number;

  /**
   * Makes a move for the state that the view has. Resolves when it stands; rejects with the reason if not. It is never
   * made twice, and never for a state that this page has not seen (`stale_state`). Without rules `state` is the patch.
   */
  move(kind: string, data?: Json, state?: JsonObject): Promise<void>;
  /** Judges another player's move, where players do. */
  validate(proposal: number, accept: boolean, reason?: string): Promise<void>;
  /** Starts the game, as the host: the order of turns is drawn if it is left out, and so are the roles. */
  start(options?: { order?: string[]; roles?: Record<string, string> }): Promise<void>;
  /** Gives the game up. The player stays in the room. */
  resign(): Promise<void>;
  /** Leaves the room, which then closes for this page. In a game with turns this resigns. */
  leave(): Promise<void>;
  /** As the host. */
  kick(player: string, reason?: string): Promise<void>;
  /** Ends the game, as the host of a room without rules. */
  end(options?: { winner?: string; reason?: string }): Promise<void>;
  /** Tells all players something. It is not repeated if the connection is lost meanwhile. */
  say(kind: string, body?: Json): Promise<void>;
  /** What was said in the room, the newest first: the last 256 messages. */
  messages(): AsyncIterable<RoomMessage>;
  /** Merges into the room's data, where null removes a field, or takes its place. */
  setData(part: JsonObject, options?: { replace?: boolean }): Promise<void>;
  /** The same for the room's metadata, as the host or one of its admins. */
  setMetadata(part: JsonObject, options?: { replace?: boolean }): Promise<void>;
  /** As the host or one of its admins. */
  rename(name: string): Promise<void>;
  /** Whether the room is on lists and found by search; as the host or one of its admins. */
  setPublic(isPublic: boolean): Promise<void>;
  /** Names who, beside the host, may pause the room and change what is said about it; as the host. */
  setAdmins(admins: string[]): Promise<void>;
  /** Lets all clocks of the room stand still, as the host or one of its admins, where no rules decide. Nobody moves, starts or joins then. */
  pause(): Promise<void>;
  /** Ends the pause. */
  resume(): Promise<void>;

  /** Listens by topic, until the returned function is called. */
  subscribe(wanted: Subscription<S>): () => void;

  /** Listens, until the returned function is called. */
  on<E extends keyof TurnRoomEvents>(event: E, listener: (it: TurnRoomEvents[E]) => void, options?: Options): () => void;
  /** The next event of a kind. Rejects when the room closes first. */
  next<E extends keyof TurnRoomEvents>(event: E, options?: { signal?: AbortSignal }): Promise<TurnRoomEvents[E]>;
  /** Stops following it. The player keeps its seat. */
  close(): void;
}

/** The handle of a follower. */
export class TurnRoomImpl<S> implements TurnRoom<S> {
  readonly #emitter = new Emitter();
  #shown: { of: Raw; view: RoomView<S> } | undefined;
  #changes = 0;
  #isChangeDue = false;

  constructor(
    private readonly follower: Follower,
    private readonly account: () => string,
    private readonly history: (input: Operations["turn.messages"]["in"]) => Promise<Operations["turn.messages"]["out"]>,
  ) {
    follower.touched = () => this.#touched();
  }

  get id(): string {
    return this.#raw.id;
  }

  get code(): string | undefined {
    return this.#raw.code ?? undefined;
  }

  get me(): string {
    return this.account();
  }

  get view(): RoomView<S> {
    const raw = this.#raw;
    if (this.#shown?.of !== raw) this.#shown = { of: raw, view: camel(raw) as unknown as RoomView<S> };
    return this.#shown!.view;
  }

  get state(): S {
    return this.#raw.state as S;
  }

  get phase(): Phase {
    return this.#raw.phase;
  }

  get myTurn(): boolean {
    return this.phase === "playing" && this.#raw.current_player === this.me && !this.follower.hasMove;
  }

  get isConnected(): boolean {
    return this.follower.isFollowing;
  }

  get version(): number {
    return this.#changes;
  }

  move(kind: string, data: Json = {}, state?: JsonObject): Promise<void> {
    return this.follower.propose({ type: kind, data, ...(state === undefined ? {} : { state }) });
  }

  validate(proposal: number, accept: boolean, reason?: string): Promise<void> {
    return this.#ask("turn.validate", { proposal, accept, ...given({ reason }) });
  }

  start({ order, roles }: { order?: string[]; roles?: Record<string, string> } = {}): Promise<void> {
    return this.#ask("turn.start", given({ turn_order: order, roles }));
  }

  resign(): Promise<void> {
    return this.#ask("turn.resign", {});
  }

  leave(): Promise<void> {
    return this.follower.leave();
  }

  kick(player: string, reason?: string): Promise<void> {
    return this.#ask("turn.kick", { player, ...given({ reason }) });
  }

  end({ winner, reason }: { winner?: string; reason?: string } = {}): Promise<void> {
    return this.#ask("turn.end", given({ winner, reason }));
  }

  say(kind: string, body: Json = null): Promise<void> {
    return this.#ask("turn.say", { type: kind, body }, false);
  }

  async *messages(): AsyncIterable<RoomMessage> {
    for (let after: string | null | undefined; after !== null; ) {
      const part: Operations["turn.messages"]["out"] = await this.history({ room: this.id, ...(after === undefined ? {} : { after }) });
      for (const message of part.messages) yield camel(message);
      after = part.next ?? null;
    }
  }

  setData(part: JsonObject, { replace }: { replace?: boolean } = {}): Promise<void> {
    return this.#ask("turn.update", { data: part, ...given({ replace }) });
  }

  setMetadata(part: JsonObject, { replace }: { replace?: boolean } = {}): Promise<void> {
    return this.#ask("turn.update", { metadata: part, ...given({ replace }) });
  }

  setAdmins(admins: string[]): Promise<void> {
    return this.#ask("turn.update", { admins });
  }

  pause(): Promise<void> {
    return this.#ask("turn.pause", {});
  }

  resume(): Promise<void> {
    return this.#ask("turn.resume", {});
  }

  subscribe({ data, messages, game }: Subscription<S>): () => void {
    const ends = [
      ...DATA.map((event) => data && this.on(event, () => data(this.view))),
      messages && this.on("message", messages),
      ...GAME.map((type) => game && this.on(type, (it) => game({ type, it } as GameEvent))),
    ];
    return () => ends.forEach((end) => end?.());
  }

  rename(name: string): Promise<void> {
    return this.#ask("turn.update", { name });
  }

  setPublic(isPublic: boolean): Promise<void> {
    return this.#ask("turn.update", { visibility: isPublic ? "public" : "private" });
  }

  on<E extends keyof TurnRoomEvents>(event: E, listener: (it: TurnRoomEvents[E]) => void, options?: Options): () => void {
    return this.#emitter.on(event, listener as (it: never) => void, options);
  }

  next<E extends keyof TurnRoomEvents>(event: E, { signal }: { signal?: AbortSignal } = {}): Promise<TurnRoomEvents[E]> {
    return this.#emitter.next(event, signal) as Promise<TurnRoomEvents[E]>;
  }

  close(): void {
    this.follower.close(new ParlorError("left", "this page stopped following the room"));
  }

  /** Takes in what the follower tells. */
  tell({ type, it }: RoomEvent): void {
    this.#emitter.emit(type, it);
    if (type === "closed") this.#emitter.end({ code: String(it.code), message: it.message, hint: it.hint });
  }

  #touched(): void {
    this.#changes += 1;
    if (this.#isChangeDue) return;
    this.#isChangeDue = true;
    setTimeout(() => {
      this.#isChangeDue = false;
      this.#emitter.emit("changed", { version: this.#changes });
    }, 0);
  }

  get #raw(): Raw {
    // A handle is given out once its room was read.
    return this.follower.view!;
  }

  #ask(op: string, input: JsonObject, again = true): Promise<void> {
    return this.follower.request(op, { ...input, room: this.id }, again);
  }
}

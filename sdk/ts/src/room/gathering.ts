// What rooms and matches share: events, the loop, messages and players, over the core and its driver.

import { ParlorError, badArgument } from "../error.js";
import type { Driver } from "../driver/driver.js";
import type { Check, KeyChecks } from "../game/shape.js";
import type { Seat } from "../page/seat.js";
import { inviteLink, inviteUrl } from "../server/invite.js";
import type { Data } from "../value/data.js";
import type { Action } from "../world/action.js";
import type { Core } from "../wasm/core.js";
import type { Exports } from "../wasm/exports.js";
import type { Component } from "../world/component.js";
import { Changes } from "./changes.js";
import { Emitter } from "./emitter.js";
import { LoopRunner } from "./loop.js";
import { PlayerList, playerOf } from "./players.js";
import type { Closed, Lane, Loop, Player, PlayerId, SendOptions, To } from "./types.js";

/** What is checked of others' values, if the game has validators. */
export interface Checks {
  state: KeyChecks;
  input: Check | undefined;
  messages: ReadonlyMap<string, Check>;
  actions: ReadonlyMap<string, Check>;
}

/** What a room is made of. */
export interface Parts {
  core: Core;
  driver: Driver;
  seat: Seat;
  checks: Checks;
  secret: string | undefined;
  /** How long the host may be silent, where another goes on after it. */
  silenceMs: number | undefined;
  /** Whether the host's part is handed over when the page is hidden. */
  handsOver: boolean;
  /** Names of the components that the game predicts. */
  predicted: ReadonlySet<string>;
  /** The component of players' own states. */
  own: Component | undefined;
  /** Actions that the game predicts, by name. */
  predictedActions: ReadonlyMap<string, Action<unknown>>;
  /** Stops the listeners for the page. */
  unwatch: () => void;
}

/** Bits of the core's flags. */
export const FLAG = { open: 1, host: 2, migrating: 4, lost: 8, closed: 16, match: 32, replay: 64, spectator: 128 } as const;
const LANES: readonly (Lane | undefined)[] = [undefined, "unreliable", "sequenced", "reliable", "ordered"];
/** A goodbye has so long. */
const GOODBYE_PATIENCE_MS = 1_000;
/** How often a link shows that the page lives: a fifth of what its room waits for. */
const HEARTBEATS_PER_SILENCE = 5;
const GUEST_SILENCE_MS = 5_000;
/** After these the map of players is another one. */
const OF_PLAYERS = new Set([
  "open", "playerJoined", "playerLeft", "spectatorJoined", "spectatorLeft", "playerLost", "playerBack", "playerData", "slow", "hostMigration", "hostChanged", "reconnected",
]);

type Event = { type: string } & Record<string, Data>;

/** The class behind `Match`, and the base of `RoomImpl`. */
export class GatheringImpl {
  readonly closed: Promise<Closed>;
  protected readonly core: Core;
  protected readonly driver: Driver;
  readonly #events = new Emitter();
  readonly #changes = new Changes({
    version: () => this.version,
    isHeard: () => this.#events.hears("changed"),
    tell: (version) => this.#events.emit("changed", { version }),
  });
  readonly #list: PlayerList;
  readonly #watching: PlayerList;
  #resolveClosed!: (why: Closed) => void;
  protected why: Closed | undefined;
  #loop: LoopRunner | undefined;
  /** Whether the game polls, by `run` or by itself. */
  #isPolledByGame = false;
  #mayPollItself = false;
  #isUpdating = false;
  #ticket = "";
  #isTicketDue = true;
  #refused = 0;
  #openCode = "";
  #isSaid: Promise<void> | undefined;

  constructor(protected readonly parts: Parts) {
    this.core = parts.core;
    this.driver = parts.driver;
    this.#list = new PlayerList(parts.core, (it) => it.players());
    this.#watching = new PlayerList(parts.core, (it) => it.spectators());
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  // ── for who opens it

  /** Polls until the room is open. Later events wait for the game's listeners. */
  pollOpen(): "open" | "waits" | Closed {
    for (;;) {
      const event = this.#nextEvent();
      if (event === undefined) return this.why ?? "waits";
      this.#handle(event);
      if (event.type === "open") return "open";
      if (this.why !== undefined) return this.why;
    }
  }

  /** The game has had its turn to listen: from here on the room polls itself, until the game does. */
  pollsItself(): void {
    this.#mayPollItself = true;
    this.changed();
  }

  /** Packets or time changed something. */
  changed(): void {
    if (this.#isTicketDue) this.#saveTicket();
    if (!this.#mayPollItself || this.why !== undefined) return;
    if (this.#isPolledByGame) return this.#loop?.beat();
    this.#poll();
    while (this.isHost && this.#step()) this.#poll();
  }

  /** In how many µs of the clock the game wants a beat. */
  gameDue(now: number): number {
    if (this.#loop !== undefined) return now + this.#loop.beatInMs() * 1_000;
    const stepsItself = this.#mayPollItself && !this.#isPolledByGame && this.why === undefined && this.isHost;
    return stepsItself ? now + this.untilNextTickMs() * 1_000 : Number.POSITIVE_INFINITY;
  }

  /** The room ended by what the page or the core did, not by an event. */
  fail(error: ParlorError): void {
    this.#finish({ code: error.code, message: error.message, hint: error.hint });
  }

  /** The opening was given up: nothing of the room stays. */
  abandon(): void {
    this.parts.unwatch();
    this.parts.seat.letGo();
  }

  /** The page is being left. */
  leaveNow(): void {
    if (this.why !== undefined) return;
    this.core.call((it) => it.leave(this.now()));
    this.driver.flush();
  }

  // ── what it is

  get code(): string {
    return this.#openCode;
  }

  get me(): PlayerId {
    return this.ask((it) => it.me(), -2);
  }

  get host(): PlayerId | undefined {
    const host = this.ask((it) => it.host(), -2);
    return host < 0 ? undefined : host;
  }

  get isHost(): boolean {
    return this.has(FLAG.host);
  }

  get players(): ReadonlyMap<PlayerId, Player> {
    return this.#list.get();
  }

  get spectators(): ReadonlyMap<PlayerId, Player> {
    return this.#watching.get();
  }

  get isSpectator(): boolean {
    return this.has(FLAG.spectator);
  }

  get status(): "open" | "reconnecting" | "migrating" | "closed" {
    if (this.why !== undefined) return "closed";
    if (this.has(FLAG.lost)) return "reconnecting";
    return this.has(FLAG.migrating) ? "migrating" : "open";
  }

  get version(): number {
    // The end changes the status, and nothing follows it.
    return this.ask((it) => it.version(), 0) + (this.why === undefined ? 0 : 0.5);
  }

  get tickNumber(): number {
    return this.ask((it) => it.tick_number(), -1);
  }

  get tickHz(): number {
    return this.ask((it) => it.tick_hz(), 0);
  }

  get serverTimeMs(): number {
    return this.ask((it) => it.server_time(this.now()), 0) / 1_000;
  }

  get pingMs(): number | undefined {
    const us = this.ask((it) => it.ping(), -1);
    return us < 0 ? undefined : us / 1_000;
  }

  get link(): "webtransport" | "websocket" | undefined {
    return this.driver.link;
  }

  get info(): Record<string, Data> {
    return this.#figures((it) => it.info());
  }

  get diagnostics(): Record<string, Data> & { refused: number } {
    return { ...this.#figures((it) => it.diagnostics()), refused: this.#refused };
  }

  inviteUrl(base?: string | URL): string {
    return inviteUrl(this.code, this.driver.address, this.parts.secret, base);
  }

  inviteLink(scheme = "parlor"): string {
    return inviteLink(this.code, this.driver.address, this.parts.secret, scheme);
  }

  // ── the loop

  run(loop: Loop<never>): () => void {
    this.#takeOver();
    this.#loop?.stop();
    const { tick, draw } = loop;
    const steps = {
      update: () => this.#poll(),
      tick: () => this.#step(),
      untilNextTickMs: () => this.untilNextTickMs(),
      rearm: () => this.driver.soon(),
      tickHz: this.tickHz,
      isOver: () => this.why !== undefined,
    };
    const game = {
      tick: tick === undefined ? undefined : () => tick.call(loop, this as never),
      draw: draw === undefined ? undefined : draw.bind(loop),
    };
    const runner = new LoopRunner(steps, game);
    this.#loop = runner;
    return () => {
      runner.stop();
      if (this.#loop === runner) this.#loop = undefined;
    };
  }

  update(): void {
    this.#takeOver();
    this.#poll();
  }

  tick(): boolean {
    this.#takeOver();
    return this.#step();
  }

  untilNextTickMs(): number {
    return this.ask((it) => it.until_next_tick(this.now()), Number.POSITIVE_INFINITY) / 1_000;
  }

  /** The page is hidden or shown: who runs the steps is another. */
  visibilityChanged(): void {
    this.driver.flush();
  }

  // ── events

  on(event: string, listener: (it: never) => void, options?: { signal?: AbortSignal; once?: boolean }): () => void {
    return this.#events.on(event, listener, options);
  }

  next(event: string, options?: { signal?: AbortSignal }): Promise<never> {
    return this.#events.next(event, options?.signal) as Promise<never>;
  }

  // ── messages

  send(to: To, kind: string, value: unknown, options: SendOptions = {}): void {
    const lane = LANES.indexOf(options.lane);
    if (lane < 0) throw badArgument(`there is no lane ${JSON.stringify(options.lane)}`, `the lanes are ${LANES.slice(1).join(", ")}`);
    const flags = (options.inOrder === true ? 1 : 0) | (options.timed === true ? 2 : 0);
    this.write([to as Data, kind, value as Data], (it, length) => it.send(lane, flags, length, this.now()));
  }

  broadcast(kind: string, value: unknown, options?: SendOptions): void {
    this.send("others", kind, value, options);
  }

  sendBytes(channel: number, to: To, bytes: Uint8Array, options: { inOrder?: boolean } = {}): void {
    const stamp = options.inOrder === true ? 1 : 0;
    this.write([to as Data, bytes], (it, length) => it.send_bytes(channel, stamp, length, this.now()));
  }

  sendData(op: number, to: To, bytes: Uint8Array, options: { reliably?: boolean } = {}): void {
    const reliably = options.reliably === false ? 0 : 1;
    this.write([to as Data, bytes], (it, length) => it.send_data(op, reliably, length, this.now()));
  }

  // ── players

  setData(key: string, value: Data | undefined, player: PlayerId = this.me): void {
    const values = value === undefined ? [key] : [key, value];
    this.write(values, (it, length) => it.set_player_data(player, length));
    this.#list.changed();
  }

  leave(): Promise<void> {
    return this.goodbye((it) => it.leave(this.now()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  // ── inside

  protected now(): number {
    return this.driver.clock.now();
  }

  protected has(flag: number): boolean {
    return (this.ask((it) => it.flags(), 0) & flag) !== 0;
  }

  /** A figure; what it is for a room that is over. */
  protected ask(run: (exports: Exports) => number, over: number): number {
    return this.core.isDead ? over : this.core.ask(run);
  }

  #figures(run: (exports: Exports) => number): Record<string, Data> {
    if (this.core.isDead) return {};
    this.core.call(run);
    return this.core.value() as Record<string, Data>;
  }

  protected write(values: (Data | undefined)[], run: (exports: Exports, length: number) => number): number {
    this.assertOpen();
    const length = this.core.putValues(...values);
    const result = this.core.call((it) => run(it, length));
    this.soon();
    return result;
  }

  /** The core was told or asked something: what follows is sent and said when this task is over. */
  protected soon(): void {
    this.driver.soon();
    this.#changes.soon();
  }

  protected accepted(check: Check | undefined, value: Data, what: string, from: PlayerId | "hub" | undefined): Data | undefined {
    if (check === undefined) return value;
    const result = check(value);
    if ("value" in result) return result.value as Data;
    this.#refused += 1;
    this.#events.emit("unreadable", { what, why: result.why, ...(from === undefined ? {} : { from }) });
    return undefined;
  }

  #takeOver(): void {
    this.#isPolledByGame = true;
    this.#mayPollItself = true;
  }

  #poll(): void {
    // A listener that calls `update` has its events in the call that is running.
    if (this.#isUpdating || this.why !== undefined) return;
    this.#isUpdating = true;
    try {
      for (let event = this.#nextEvent(); event !== undefined; event = this.#nextEvent()) this.#handle(event);
    } finally {
      this.#isUpdating = false;
    }
    this.soon();
  }

  #step(): boolean {
    if (this.why !== undefined || this.core.isDead) return false;
    try {
      if (this.core.call((it) => it.tick(this.now())) === 1) {
        this.stepBegan();
        return true;
      }
    } catch (thrown) {
      this.#died(thrown);
    }
    this.driver.soon();
    return false;
  }

  /** A step begins: before the game's own code. */
  protected stepBegan(): void {}

  #nextEvent(): Event | undefined {
    if (this.why !== undefined) return undefined;
    try {
      return this.core.call((it) => it.poll(this.now())) === 0 ? undefined : (this.core.value() as Event);
    } catch (thrown) {
      this.#died(thrown);
      return undefined;
    }
  }

  #died(thrown: unknown): void {
    if (!this.core.isDead) throw thrown;
    this.driver.end();
    this.fail(thrown as ParlorError);
  }

  #handle({ type, ...it }: Event): void {
    if (OF_PLAYERS.has(type)) for (const list of [this.#list, this.#watching]) list.changed();
    switch (type) {
      case "open":
        this.#openCode = it["code"] as string;
        return this.#heart();
      case "closed":
        return this.#finish(closedOf(it));
      case "playerJoined":
        return this.#events.emit(type, playerOf(it["player"]!));
      case "spectatorJoined":
        return this.#events.emit(type, playerOf(it["spectator"]!));
      case "message":
        return this.#heard(type, it, "kind", this.parts.checks.messages);
      case "action":
        return this.#heard(type, it, "name", this.parts.checks.actions);
      case "hostChanged":
      case "reconnected":
        this.#heart();
        return this.#events.emit(type, it);
      default:
        this.#events.emit(type, it);
    }
  }

  /** A message or an action, whose value is checked. */
  #heard(type: string, it: Record<string, Data>, naming: string, checks: ReadonlyMap<string, Check>): void {
    const name = it[naming] as string;
    const what = `${type === "message" ? "a" : "an"} ${type} ${JSON.stringify(name)}`;
    const value = this.accepted(checks.get(name), it["value"]!, what, it["from"] as PlayerId);
    if (value !== undefined) this.#events.emit(type, { ...it, value });
  }

  /** A host is missed sooner than a guest. */
  #heart(): void {
    const { silenceMs } = this.parts;
    const silence = this.isHost && silenceMs !== undefined ? silenceMs : GUEST_SILENCE_MS;
    this.driver.keepAlive(Math.round(silence / HEARTBEATS_PER_SILENCE));
  }

  #saveTicket(): void {
    if (this.core.isDead || this.driver.link === undefined || this.core.ask((it) => it.ticket()) !== 1) return;
    const ticket = this.core.value() as string;
    if (ticket === this.#ticket) return;
    this.#ticket = ticket;
    this.#isTicketDue = false;
    this.parts.seat.remember(ticket, this.driver.address, this.parts.secret);
  }

  /** A new link brings a new ticket. */
  linked(): void {
    this.#isTicketDue = true;
  }

  #finish(why: Closed): void {
    if (this.why !== undefined) return;
    this.why = why;
    this.#loop?.stop();
    this.parts.unwatch();
    this.parts.seat.forget();
    this.#events.emit("closed", why);
    this.#events.end(why);
    this.#changes.soon();
    this.#resolveClosed(why);
    this.#isSaid = this.#endWhenSaid();
  }

  /** What ends a room may have a goodbye to send. */
  async #endWhenSaid(): Promise<void> {
    this.driver.soon();
    await this.driver.whenFinished(GOODBYE_PATIENCE_MS);
    this.driver.end();
  }

  protected async goodbye(say: (exports: Exports) => number): Promise<void> {
    if (this.why === undefined && !this.core.isDead) {
      this.core.call(say);
      this.driver.flush();
      this.#poll();
    }
    await this.closed;
    await this.#isSaid;
  }

  protected assertOpen(): void {
    if (this.why === undefined) return;
    const { code, message } = this.why;
    throw new ParlorError("not_open", `the room is over: ${message} (${code})`);
  }
}

function closedOf(it: Record<string, Data>): Closed {
  const { code, message, retryAfterMs } = it as { code: string; message: string; retryAfterMs?: number };
  const { hint } = new ParlorError(code, message);
  return { code, message, hint, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}


// A rollback lane over the core: serves what the core asks for, and carries inputs and states.

import { badArgument } from "../error.js";
import { Emitter } from "../room/emitter.js";
import type { RoomInside } from "../room/inside.js";
import type { PlayerId } from "../room/types.js";
import type { Data } from "../value/data.js";
import { encode } from "../value/encode.js";
import type {
  InputStatus, KeptGame, PlayerInput, PlayerInputs, RollbackConfig, RollbackDiagnostics, RollbackStep, StateGame,
} from "./types.js";

/** What the core asks for. */
const REQUEST = { save: 1, load: 2, advance: 3, replay: 4 } as const;
const STATUS: readonly InputStatus[] = ["none", "known", "predicted", "missed"];
/** The lane's key under which plain data stands. */
const STATE_KEY = "state";
/** The largest window that the core allows. */
const WINDOW_MAX = 48;

/** The lane that runs in each core: a new one takes its place. */
const running = new WeakMap<object, LaneImpl>();

/** What all lanes have. */
export abstract class LaneImpl {
  readonly players: readonly PlayerId[];
  isOver = false;
  readonly #events = new Emitter();
  #isAdvancing = false;

  constructor(
    protected readonly room: RoomInside,
    config: RollbackConfig,
  ) {
    this.players = [...config.players];
    room.assertOpen();
    const length = room.core.putValues({ ...config, players: [...config.players] } as Data);
    room.core.call((it) => it.lane_begin(length));
    const before = running.get(room.core);
    if (before !== undefined) before.isOver = true;
    running.set(room.core, this);
  }

  advance(input?: unknown): number {
    const { room } = this;
    if (this.isOver) return 0;
    if (this.#isAdvancing) throw badArgument("`advance` was called within a step of its lane", "call it once in each tick or frame");
    if (room.isClosed) return this.#isGone();
    if (input === undefined && this.players.includes(room.me)) {
      throw badArgument("a player's `advance` has no input", "pass one in each call; only spectators have none");
    }
    const bytes = encode((input ?? null) as Data);
    let steps = 0;
    let isWithinStep = false;
    this.#isAdvancing = true;
    try {
      // A step of the game may end its lane, or begin another in its place.
      while (!this.isOver && this.#begins(bytes)) {
        isWithinStep = true;
        steps += this.#serve();
        isWithinStep = false;
      }
    } catch (thrown) {
      // What is left to do of this step would be done with another state than that of the other members.
      if (!this.isOver && (isWithinStep || room.core.isDead)) {
        this.end();
        this.#isGone();
      }
      throw thrown;
    } finally {
      this.#isAdvancing = false;
    }
    room.soon();
    if (steps > 0) this.advanced();
    this.#tell();
    // A core whose room has another host has dropped the lane.
    return steps > 0 || this.isOver || this.diagnostics !== undefined ? steps : this.#isGone();
  }

  on(event: string, listener: (it: never) => void, options?: { signal?: AbortSignal; once?: boolean }): () => void {
    return this.#events.on(event, listener, options);
  }

  get diagnostics(): RollbackDiagnostics | undefined {
    const { core } = this.room;
    if (this.isOver || core.isDead || core.call((it) => it.lane_diagnostics()) === 0) return undefined;
    return core.value() as unknown as RollbackDiagnostics;
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    const { core } = this.room;
    if (!core.isDead) core.call((it) => it.lane_end());
  }

  /** Keeps the state before a step. */
  protected abstract save(tick: number): void;
  /** Goes back to the state before a step. */
  protected abstract load(tick: number): void;
  /** Runs a step. */
  protected abstract run(inputs: PlayerInputs<never>, step: RollbackStep): void;
  /** Steps were run. */
  protected abstract advanced(): void;

  protected setKey(key: string, value: unknown): void {
    this.assertRuns();
    const length = this.room.core.putValues(key, value as Data);
    this.room.core.call((it) => it.lane_set(length));
  }

  protected getKey(key: string): Data | undefined {
    if (this.isOver || this.room.core.isDead) return undefined;
    const length = this.room.core.putValues(key);
    return this.room.core.call((it) => it.lane_get(length)) === 0 ? undefined : this.room.core.value();
  }

  protected settledKey(key: string): { tick: number; value: Data } | undefined {
    if (this.isOver || this.room.core.isDead) return undefined;
    const length = this.room.core.putValues(key);
    if (this.room.core.call((it) => it.lane_settled(length)) === 0) return undefined;
    const [tick, value] = this.room.core.values();
    return { tick: tick as number, value: value! };
  }

  protected assertRuns(): void {
    this.room.assertOpen();
    if (this.isOver) throw badArgument("the rollback lane is over", "begin another one");
  }

  #begins(input: Uint8Array): boolean {
    const length = this.room.core.put(input);
    return this.room.core.call((it) => it.lane_step(length, this.room.now())) === 1;
  }

  /** Does what the core asks for. Returns how many steps were new. */
  #serve(): number {
    const { core } = this.room;
    let steps = 0;
    for (;;) {
      const request = core.call((it) => it.lane_request());
      if (request === 0) return steps;
      const tick = core.ask((it) => it.lane_tick());
      if (request === REQUEST.save) {
        this.save(tick);
      } else if (request === REQUEST.load) {
        this.load(tick);
      } else {
        this.run(this.#inputs() as PlayerInputs<never>, { tick, isReplay: request === REQUEST.replay });
        if (this.isOver) return steps;
        if (request === REQUEST.advance) steps += 1;
      }
    }
  }

  #inputs(): PlayerInputs<Data> {
    return new Map(this.players.map((player) => [player, this.#input(player)]));
  }

  #input(player: PlayerId): PlayerInput<Data> {
    const { core } = this.room;
    const status = STATUS[core.call((it) => it.lane_input(player))]!;
    if (status === "none") return { status, input: undefined };
    // A validator is asked of this player's own input, too: all members must use the same.
    const input = this.room.acceptedInput(player, core.value());
    return input === undefined ? { status: "none", input } : { status, input };
  }

  #tell(): void {
    const { core } = this.room;
    while (!this.isOver && core.call((it) => it.lane_event()) === 1) {
      const { type, ...it } = core.value() as { type: string; player?: number };
      // The core counts the lane's players.
      this.#events.emit(type, it.player === undefined ? it : { ...it, player: this.players[it.player] });
    }
  }

  /** It ended by itself. */
  #isGone(): number {
    this.isOver = true;
    this.#events.emit("over", {});
    return 0;
  }
}

/** A lane whose state is plain data, under one key. */
export class StateLaneImpl extends LaneImpl {
  state: unknown;

  constructor(
    room: RoomInside,
    config: RollbackConfig,
    private readonly game: StateGame<never, unknown>,
  ) {
    super(room, config);
    try {
      this.setKey(STATE_KEY, game.state);
    } catch (thrown) {
      this.end();
      throw thrown;
    }
    this.state = this.getKey(STATE_KEY);
  }

  get settled(): { tick: number; state: unknown } | undefined {
    const found = this.settledKey(STATE_KEY);
    return found === undefined ? undefined : { tick: found.tick, state: found.value };
  }

  // What is under a key is saved and loaded by the core.
  protected save(): void {}
  protected load(): void {}

  protected run(inputs: PlayerInputs<never>, step: RollbackStep): void {
    // Each step begins with what was encoded: an order of keys, a −0 or a missing field of the live object would not be there
    // after a rollback, and the next state could be another one.
    const before = this.getKey(STATE_KEY);
    const after = this.game.step(before, inputs, step);
    if (this.isOver) return;
    this.setKey(STATE_KEY, after === undefined ? before : after);
  }

  protected advanced(): void {
    // Of a lane that its game ended within a step, the last state stays.
    if (!this.isOver) this.state = this.getKey(STATE_KEY);
  }
}

/** A lane of a game that keeps its state itself, or under keys. */
export class KeptLaneImpl extends LaneImpl {
  readonly #saved: { tick: number; state: unknown }[] = [];
  readonly #savedMax: number;

  constructor(
    room: RoomInside,
    config: RollbackConfig,
    private readonly game: KeptGame<never, unknown>,
  ) {
    super(room, config);
    // All states of the window, and the one that is being saved.
    this.#savedMax = (config.window ?? WINDOW_MAX) + 2;
  }

  get(key: string): Data | undefined {
    return this.getKey(key);
  }

  set(key: string, value: unknown): void {
    this.setKey(key, value);
  }

  remove(key: string): boolean {
    this.assertRuns();
    const length = this.room.core.putValues(key);
    return this.room.core.call((it) => it.lane_remove(length)) === 1;
  }

  states(): [string, Data][] {
    if (this.isOver || this.room.core.isDead) return [];
    this.room.core.call((it) => it.lane_states());
    const read = this.room.core.values();
    return Array.from({ length: read.length / 2 }, (_, i) => [read[2 * i] as string, read[2 * i + 1]!]);
  }

  settled(key: string): { tick: number; value: Data } | undefined {
    return this.settledKey(key);
  }

  protected save(tick: number): void {
    if (this.game.save === undefined) return;
    const state = this.game.save();
    this.#saved[tick % this.#savedMax] = { tick, state };
    if (this.game.checksum === undefined) return;
    const sum = BigInt.asUintN(64, BigInt(this.game.checksum(state)));
    this.room.core.call((it) => it.lane_saved(tick, Number(sum & 0xffff_ffffn) | 0, Number(sum >> 32n) | 0));
  }

  protected load(tick: number): void {
    if (this.game.save === undefined) return;
    const saved = this.#saved[tick % this.#savedMax];
    if (saved?.tick !== tick) throw new Error(`the core goes back to step ${tick}, whose state it did not ask for`);
    this.game.load?.(saved.state);
  }

  protected run(inputs: PlayerInputs<never>, step: RollbackStep): void {
    this.game.advance(inputs, step);
  }

  protected advanced(): void {}
}

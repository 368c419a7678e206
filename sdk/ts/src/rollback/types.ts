// What a rollback lane is to a game. The names are those of the crate `parlor`.

import type { GameTypes, Write } from "../game/types.js";
import type { PlayerId } from "../room/types.js";

/** With which a lane begins. All members pass the same players, in the same order, and the same `begin`, `session` and `window`. */
export interface RollbackConfig {
  /** The players, 2 to 8. All other members are spectators. The host settles inputs, whether it plays or not. */
  players: readonly PlayerId[];
  /** The first step, a number as `room.tickNumber` has it. */
  begin: number;
  /** Tells lanes that follow each other in one room apart, 0 to 65,535. Default: 0. */
  session?: number;
  /** Steps from an input to the one that uses it, 0 to 16. Default: 2. */
  inputDelay?: number;
  /** How many steps a member may be ahead of what is settled, 1 to 48. Default: 24. */
  window?: number;
  /** How many steps the host waits for a late input, 0 to 4,096. Default: 8. */
  patience?: number;
  /** How many steps a spectator is behind, 0 to 4,096. Default: 60. */
  spectatorDelay?: number;
}

/**
 * How sure an input is: it came, it is guessed from the player's last one until it comes, or it came too late and the
 * guess stands for all. `none`: the player has sent no input yet, or the game's validator refuses it.
 */
export type InputStatus = "none" | "known" | "predicted" | "missed";

/** What a player does in a step. */
export type PlayerInput<I> =
  | { readonly status: "none"; readonly input: undefined }
  | { readonly status: "known" | "predicted" | "missed"; readonly input: I };

/**
 * The inputs of a step, in the order of the lane's players. The next state may depend on `input` alone: `status` is not
 * the same at all members.
 */
export type PlayerInputs<I> = ReadonlyMap<PlayerId, PlayerInput<I>>;

/** The step that runs. */
export interface RollbackStep {
  readonly tick: number;
  /** Whether it ran before, with other inputs: its sounds were heard. */
  readonly isReplay: boolean;
}

/** A game whose state is plain data of up to 16 KiB: it is saved, restored and compared by itself. */
export interface StateGame<I, S> {
  /** The state before the first step. */
  readonly state: S;
  /**
   * One step. It must give the same at all members: no time, no randomness, no `Math.sin` (`parlor/math` has one). `state` is a
   * copy: change it, or return another.
   */
  step(state: S, inputs: PlayerInputs<I>, step: RollbackStep): S | void;
}

/** A game that keeps its state itself, or under keys of the lane, which are saved, restored and compared by themselves. */
export interface KeptGame<I, S> {
  /** One step, for which the rules of `StateGame.step` hold. */
  advance(inputs: PlayerInputs<I>, step: RollbackStep): void;
  /** A copy of what the game keeps beside the lane's keys. Default: nothing. */
  save?(): S;
  /** Goes back to what `save` gave. The same copy may be loaded again. */
  load?(saved: S): void;
  /** A whole number of up to 64 bits that is the same for the same state, by which members are compared. Default: they are not. */
  checksum?(saved: S): number | bigint;
}

/** What a lane tells. */
export interface RollbackEvents {
  /** A player has another state than this member, though all inputs were the same: a step is not the same everywhere. */
  desync: {
    readonly player?: PlayerId;
    /** The first step before which they differed. */
    readonly tick: number;
    /** Whether they were still equal one step before that. */
    readonly isExact: boolean;
  };
  /**
   * This member was away for longer than the host remembers, or began the lane again so long after its first step. All have to
   * begin another lane, with another `session`, from the settled state of a member that goes on.
   */
  lost: {
    /** The oldest step that the host has. */
    readonly oldest: number;
  };
  /**
   * The lane ended by itself: the room has another host or is closed, this member was away for so long that it joined anew, or a
   * step of the game threw.
   */
  over: Record<string, never>;
}

/** What a lane counted. */
export interface RollbackDiagnostics {
  /** The next step. */
  readonly next: number;
  /** The inputs of all steps before this one are settled. */
  readonly settled: number;
  /** Steps that ran for the first time. */
  readonly steps: number;
  /** Steps that ran again. */
  readonly replayed: number;
  readonly rollbacks: number;
  /** Steps of the longest rollback. */
  readonly deepest: number;
  /** Ticks in which a step was due and the window was full. */
  readonly stalled: number;
  /** Late inputs of this member. */
  readonly missed: number;
  readonly missedByAll: number;
  /** Inputs too far ahead. */
  readonly refused: number;
  /** Messages of other sessions, malformed, or not allowed from their sender. */
  readonly ignored: number;
  /** Members whose states differ from this one's. */
  readonly desyncs: number;
}

/** What all lanes have. */
export interface RollbackLane<G extends GameTypes> {
  readonly players: readonly PlayerId[];
  /**
   * Whether it has ended: by `end`, because another lane began in its room, or by itself. An ended lane runs no steps. What it had
   * last can be read of a lane whose state is plain data.
   */
  readonly isOver: boolean;
  /**
   * Runs the steps that are due, with this player's input, at most 16 at a time. Call it in each tick or frame, also as a
   * spectator, without an input. Returns how many steps were new. An input may have 64 encoded bytes.
   */
  advance(input?: Write<G, G["input"]>): number;
  /** Listens, until the returned function is called. */
  on<E extends keyof RollbackEvents>(event: E, listener: (it: RollbackEvents[E]) => void, options?: { signal?: AbortSignal; once?: boolean }): () => void;
  /** Undefined once it is over. */
  readonly diagnostics: RollbackDiagnostics | undefined;
  /** Ends the lane. The room goes on. */
  end(): void;
}

/** A lane whose state is plain data. */
export interface StateLane<G extends GameTypes, S> extends RollbackLane<G> {
  /** The state at present, guesses included. It is a copy. */
  readonly state: S;
  /** The newest state without guesses, and the step that comes after it: the same at all members. */
  readonly settled: { readonly tick: number; readonly state: S } | undefined;
}

/** A lane of a game that keeps its state, with the lane's keys. Keys are written in `advance`, or before the first step. */
export interface KeptLane<G extends GameTypes> extends RollbackLane<G> {
  /** The value of a key of the lane, guesses included. */
  get<T = unknown>(key: string): T | undefined;
  /** Sets a key of the lane. */
  set(key: string, value: unknown): void;
  /** Removes a key of the lane. Says whether it was there. */
  remove(key: string): boolean;
  /** All keys with their values, in ascending order. */
  states(): [key: string, value: unknown][];
  /** The value of a key in the newest state without guesses, and the step that comes after that state. */
  settled<T = unknown>(key: string): { readonly tick: number; readonly value: T } | undefined;
}

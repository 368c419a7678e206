// The entry `parlor/rollback`: players make a state together from their inputs alone, without waiting for each other.

import { badArgument } from "../error.js";
import type { GameTypes } from "../game/types.js";
import { insideOf } from "../room/inside.js";
import type { Room } from "../room/types.js";
import { KeptLaneImpl, StateLaneImpl } from "./lane.js";
import type { KeptGame, KeptLane, RollbackConfig, StateGame, StateLane } from "./types.js";

export type {
  InputStatus, KeptGame, KeptLane, PlayerInput, PlayerInputs, RollbackConfig, RollbackDiagnostics, RollbackEvents, RollbackLane, RollbackStep,
  StateGame, StateLane,
} from "./types.js";

/**
 * Begins a rollback lane in a room, in place of the one that there may have been. All members begin it with the same
 * players and first step: agree on them by state or a message.
 */
export function rollback<G extends GameTypes, S>(room: Room<G>, config: RollbackConfig, game: StateGame<G["input"], S>): StateLane<G, S>;
/** The same for a game that keeps its state itself, or under keys of the lane. */
export function rollback<G extends GameTypes, S>(room: Room<G>, config: RollbackConfig, game: KeptGame<G["input"], S>): KeptLane<G>;
export function rollback(room: object, config: RollbackConfig, game: object): object {
  const inside = insideOf(room);
  if ("state" in game && "step" in game) return new StateLaneImpl(inside, config, game as StateGame<never, unknown>);
  const { advance, save, load } = game as Partial<KeptGame<never, unknown>>;
  if (advance === undefined) throw badArgument("the game of a rollback lane has no `step` and no `advance`", "pass { state, step } or { advance }");
  if ((save === undefined) !== (load === undefined)) throw badArgument("the game of a rollback lane saves or loads alone", "give it both");
  return new KeptLaneImpl(inside, config, game as KeptGame<never, unknown>);
}

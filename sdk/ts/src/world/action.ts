// What a room knows of predicted actions. `parlor/actions` has the rest, so that other games do not ship it.

import type { Shape, Typed } from "../game/shape.js";
import type { PlayerId } from "../room/types.js";
import type { Entity } from "./types.js";
import type { WorldImpl } from "./world.js";

/** An action that its player sees at once, and that the host decides in the same step: `action` of `parlor/actions` makes it. */
export interface Action<T = unknown> extends Typed<T> {
  readonly value: Shape;
  /** Applies it, or undoes it and returns why it is refused. @internal */
  run(room: ActingRoom, request: ActionRequest, isFirst: boolean, value: unknown): string | undefined;
}

/** Whether a shape of an action brings its function along. */
export function isPredicted(shape: Shape): shape is Action {
  return "run" in shape;
}

/** What the core asks for. */
export interface ActionRequest {
  readonly from: PlayerId;
  readonly number: number;
  readonly tick: number;
  readonly entity: Entity;
  readonly name: string;
  readonly value: unknown;
}

/** What an application needs of its room. */
export interface ActingRoom {
  readonly world: WorldImpl;
  readonly isHost: boolean;
  readonly me: PlayerId;
  readonly predicted: ReadonlySet<string>;
  /** Whether a defect ended the room's core. */
  readonly isDead: boolean;
  once(effect: string, number: number): boolean;
}

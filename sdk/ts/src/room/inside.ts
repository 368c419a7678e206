// What the package's other entries use of a room: `parlor/rollback`, `parlor/own` and `parlor/recording` are no methods of it, so
// that a game that does not use them does not ship them.

import { badArgument } from "../error.js";
import type { Data } from "../value/data.js";
import type { Component } from "../world/component.js";
import type { WorldRoom } from "../world/world.js";
import type { PlayerId } from "./types.js";

/** A room from within. */
export interface RoomInside extends WorldRoom {
  /** The component of players' own states, if the game has one. */
  readonly own: Component | undefined;
  readonly isClosed: boolean;
  /** An input after the game's validator; undefined if that refuses it. */
  acceptedInput(player: PlayerId, input: Data): Data | undefined;
}

const insides = new WeakMap<object, RoomInside>();

/** Makes a room known to the package's other entries. */
export function share(room: object, inside: RoomInside): void {
  insides.set(room, inside);
}

/** The inside of a room. */
export function insideOf(room: object): RoomInside {
  const inside = insides.get(room);
  if (inside === undefined) {
    throw badArgument("this is no room of this copy of the package", "pass what `host` or `join` gave, and install `parlor` once: `npm ls parlor`");
  }
  return inside;
}

// The entry `parlor/own`: states that players send of themselves, without a host.

import { badArgument } from "../error.js";
import type { GameTypes } from "../game/types.js";
import { insideOf, type RoomInside } from "../room/inside.js";
import type { PlayerId, Room } from "../room/types.js";
import type { Component, Infer } from "../world/component.js";
import { readRow, writeRow } from "../world/rows.js";

/** The present, in place of a moment. */
const NOW = -1;

/** States that players send of themselves: each sets its own, and reads those of all. */
export interface OwnState<C extends Component> {
  /** Sets this player's own state, as often as the game likes. With each step it is decided whether others must be told. */
  set(state: Infer<C>): void;
  /** Says that what is set next does not follow from what was before: others see it there at once, and nothing in between. */
  teleport(): void;
  /**
   * The state of a player now: extrapolated beyond what came, and where that proves wrong, the error is blended away. The own
   * state is as it was set last. Undefined until something came, or if the player's state is of another component.
   */
  of(player: PlayerId): Infer<C> | undefined;
  /** The state of a player at a moment of `room.serverTimeMs`. */
  at(player: PlayerId, serverTimeMs: number): Infer<C> | undefined;
  /** The present states of all players who have one. */
  all(): Iterable<[player: PlayerId, state: Infer<C>]>;
  /** The player whom messages to `"primary"` reach. The event `primary` tells of another. */
  readonly primary: PlayerId | undefined;
}

/** The own states of a room, whose game was defined with this component as `own`. */
export function ownState<G extends GameTypes, C extends Component>(room: Room<G>, component: C): OwnState<C> {
  const inside = insideOf(room);
  if (inside.own?.name !== component.name) {
    const has = inside.own === undefined ? "no own state" : `the own state ${inside.own.name}`;
    throw badArgument(`the room's game has ${has}, and not ${component.name}`, "define the game with this component as `own`: defineGame(app, { own })");
  }
  return new OwnStateImpl(room, inside, component);
}

class OwnStateImpl<C extends Component> implements OwnState<C> {
  constructor(
    private readonly room: { readonly players: ReadonlyMap<PlayerId, unknown> },
    private readonly inside: RoomInside,
    private readonly component: C,
  ) {}

  set(state: Infer<C>): void {
    const { core } = this.inside;
    this.inside.assertOpen();
    const length = core.put(writeRow(this.component, state as Record<string, unknown>));
    core.call((it) => it.set_own(length));
  }

  teleport(): void {
    this.inside.assertOpen();
    this.inside.core.call((it) => it.teleport_own());
  }

  of(player: PlayerId): Infer<C> | undefined {
    return this.#read(player, NOW);
  }

  at(player: PlayerId, serverTimeMs: number): Infer<C> | undefined {
    return this.#read(player, Math.max(0, serverTimeMs * 1_000));
  }

  *all(): Iterable<[PlayerId, Infer<C>]> {
    for (const player of this.room.players.keys()) {
      const state = this.of(player);
      if (state !== undefined) yield [player, state];
    }
  }

  get primary(): PlayerId | undefined {
    const { core } = this.inside;
    const primary = core.isDead ? -1 : core.ask((it) => it.own_primary());
    return primary < 0 ? undefined : primary;
  }

  #read(player: PlayerId, at: number): Infer<C> | undefined {
    const { core } = this.inside;
    if (core.isDead || core.call((it) => it.remote_state(player, at, this.inside.now())) === 0) return undefined;
    return readRow(this.component.fields, core.bytes()) as Infer<C>;
  }
}

// The world of a room, as a game sees it.

import type { PlayerId } from "../room/types.js";
import type { Data } from "../value/data.js";
import type { Component, Infer } from "./component.js";
import type { Columns } from "./rows.js";

/** A thing in the world. Its number is used again after it is gone, with another generation. */
export type Entity = number & { readonly "~entity"?: never };

/** What a player saw. */
export interface Past<C extends Component> {
  /** How far back that is. */
  backMs: number;
  /** Whether it was farther back than the room allows, and this is as far as it does. */
  isCut: boolean;
  columns: Columns<C>;
}

/** The actions of a game, by name. */
export type Actions = { [name: string]: unknown };

/** Entities with components. The host writes all; a member what it predicts of its own. */
export interface World<A extends Actions = { [name: string]: Data }> {
  readonly entities: readonly Entity[];
  /** Whether an entity is in the world, as far as this member sees it. */
  has(entity: Entity): boolean;
  /** The player that owns an entity; undefined if none does, or there is no such entity. */
  owner(entity: Entity): PlayerId | undefined;
  /** A component as the host wrote it, rounded to its resolution; or as it is predicted here. */
  get<C extends Component>(entity: Entity, component: C): Infer<C> | undefined;
  /** The same for the eye: interpolated, and with corrections smoothed. */
  shown<C extends Component>(entity: Entity, component: C): Infer<C> | undefined;
  /** All entities that have a component. */
  each<C extends Component>(component: C, options?: { shown?: boolean }): Iterable<[Entity, Infer<C>]>;
  /** Those whose step this process runs: all at the host, at a member its own if it predicts the component. */
  simulated<C extends Component>(component: C): Iterable<[Entity, Infer<C>]>;
  /** All entities that have a component, in one crossing. */
  columns<C extends Component>(component: C, options?: { shown?: boolean }): Columns<C>;
  /** Makes an entity, at the host. Default: nobody owns it. */
  spawn(owner?: PlayerId): Entity;
  /** Removes an entity with its components, at the host. */
  despawn(entity: Entity): void;
  /** Sets a component. Numbers are rounded to its resolution. */
  set<C extends Component>(entity: Entity, component: C, value: Infer<C>): void;
  /** Changes some fields of what is there. */
  patch<C extends Component>(entity: Entity, component: C, part: Partial<Infer<C>>): void;
  /** Removes a component. Says whether it was there. */
  remove(entity: Entity, component: Component): boolean;
  /** Writes many at once, at the host. */
  write<C extends Component>(component: C, columns: Columns<C>): void;
  /** Gives an entity to another owner, or to none, at the host. */
  transfer(entity: Entity, owner?: PlayerId): void;
  /** Which members may know of it. */
  audience(entity: Entity, who: "all" | readonly PlayerId[]): void;
  /** The interest zone that it is in; 0 is everywhere. */
  zone(entity: Entity, zone: number): void;
  /** At the host: all entities that have a component, as a player saw them when it gave its input of this step. */
  rewind<C extends Component>(player: PlayerId, component: C): Past<C>;
  /**
   * Makes an action on an entity of this player's own. One that the game defines by `action` of `parlor/actions` is applied at once, in a
   * step, and at the host in the same step; make it before the step writes anything else. Returns why it is refused
   * here. Any other is asked of the host, whose event `action` has it.
   */
  act<K extends keyof A & string>(entity: Entity, name: K, value: A[K]): string | undefined;
  /**
   * The entities that changed since the last call, and which of these components of them did. A component that was removed
   * counts too; entities that are gone do not. Empty at the host, which changes them itself.
   */
  changes<const C extends readonly Component[]>(...components: C): [Entity, C[number][]][];
}

// Predicted actions: what a game defines once, and its player's process and the host apply alike.

import type { Shape, ShapeOf } from "../game/shape.js";
import { report } from "../room/emitter.js";
import type { PlayerId } from "../room/types.js";
import type { Action, ActingRoom, ActionRequest } from "../world/action.js";
import type { Component, Infer } from "../world/component.js";
import type { Entity, Past } from "../world/types.js";

export type { Action } from "../world/action.js";

/** The world while an action is applied. What is written is undone if the action is refused. */
export interface Acting {
  /** The entity that the action is made with. The player owns it. */
  readonly entity: Entity;
  /** Who made the action. */
  readonly player: PlayerId;
  /** The running step. */
  readonly tick: number;
  /** Whether this process is the host, which decides. At the player it is a prediction. */
  readonly isHost: boolean;
  /** The player that owns an entity. */
  owner(entity: Entity): PlayerId | undefined;
  /** A component, as the running step has it. */
  get<C extends Component>(entity: Entity, component: C): Infer<C> | undefined;
  /** All entities that have a component. */
  each<C extends Component>(component: C): Iterable<[Entity, Infer<C>]>;
  /**
   * Sets a component. Says whether this process writes it: the host writes all, a player what it predicts of its own
   * entities. The rest is left to the host.
   */
  set<C extends Component>(entity: Entity, component: C, value: Infer<C>): boolean;
  /** Removes a component, where `set` would write it. */
  remove(entity: Entity, component: Component): boolean;
  /** Spawns an entity, at the host when the action is decided; elsewhere undefined. */
  spawn(owner?: PlayerId): Entity | undefined;
  /** Despawns an entity at the end of the action, at the host. */
  despawn(entity: Entity): void;
  /** At the host: all entities that have a component, as the player saw them. Elsewhere undefined. */
  rewind<C extends Component>(component: C): Past<C> | undefined;
  /** Whether to show an effect of this action: once in each process, however often it is applied. */
  once(effect: string): boolean;
}

/**
 * Defines a predicted action: a shape of its values, and a function that applies it. What that returns is why the action
 * is refused, a word of at most 64 bytes. The function runs at the player
 * when it acts, at the host in that step, and again at both when steps run again: it depends on the world and on its
 * value, not on the clock.
 */
export function action<const S extends Shape>(
  value: S,
  apply: (acting: Acting, value: ShapeOf<S>) => string | void,
): Action<ShapeOf<S>> {
  return {
    value,
    run(room, request, isFirst, read) {
      const acting = new ActingImpl(room, request, isFirst);
      let why: string | undefined;
      try {
        why = apply(acting, read as ShapeOf<S>) ?? undefined;
      } catch (thrown) {
        if (room.isDead) throw thrown;
        report(thrown);
        why = FAILED;
      }
      acting.end(why === undefined);
      return why;
    },
  };
}

/** Why an action is refused whose function threw. */
const FAILED = "failed";

/** The class behind `Acting`. */
class ActingImpl implements Acting {
  readonly #undo: (() => void)[] = [];
  readonly #gone: Entity[] = [];

  constructor(
    private readonly room: ActingRoom,
    private readonly request: ActionRequest,
    private readonly isFirst: boolean,
  ) {}

  get entity(): Entity {
    return this.request.entity;
  }

  get player(): PlayerId {
    return this.request.from;
  }

  get tick(): number {
    return this.request.tick;
  }

  get isHost(): boolean {
    return this.room.isHost;
  }

  owner(entity: Entity): PlayerId | undefined {
    return this.room.world.owner(entity);
  }

  get<C extends Component>(entity: Entity, component: C): Infer<C> | undefined {
    return this.room.world.get(entity, component);
  }

  each<C extends Component>(component: C): Iterable<[Entity, Infer<C>]> {
    return this.room.world.each(component);
  }

  set<C extends Component>(entity: Entity, component: C, value: Infer<C>): boolean {
    if (!this.#writes(entity, component)) return false;
    const before = this.get(entity, component);
    this.room.world.set(entity, component, value);
    this.#undo.push(() => {
      if (before === undefined) this.room.world.remove(entity, component);
      else this.room.world.set(entity, component, before);
    });
    return true;
  }

  remove(entity: Entity, component: Component): boolean {
    const before = this.get(entity, component);
    if (before === undefined || !this.#writes(entity, component)) return false;
    this.#undo.push(() => this.room.world.set(entity, component, before));
    return this.room.world.remove(entity, component);
  }

  spawn(owner?: PlayerId): Entity | undefined {
    if (!this.isHost || !this.isFirst) return undefined;
    const entity = this.room.world.spawn(owner);
    this.#undo.push(() => this.room.world.despawn(entity));
    return entity;
  }

  despawn(entity: Entity): void {
    this.#gone.push(entity);
  }

  rewind<C extends Component>(component: C): Past<C> | undefined {
    return this.isHost ? this.room.world.rewind(this.player, component) : undefined;
  }

  once(effect: string): boolean {
    return this.room.once(effect, this.player * 2 ** 32 + this.request.number);
  }

  /** Keeps what was done, or undoes it. */
  end(isKept: boolean): void {
    if (!isKept) {
      for (const undo of this.#undo.reverse()) undo();
    } else if (this.isHost) {
      for (const entity of this.#gone) if (this.room.world.has(entity)) this.room.world.despawn(entity);
    }
  }

  #writes(entity: Entity, { name }: Component): boolean {
    return this.isHost || (this.room.predicted.has(name) && this.owner(entity) === this.room.me);
  }
}

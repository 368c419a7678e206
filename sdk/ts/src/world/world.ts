// The world over the core: rows and columns cross, values are made here.

import { ParlorError } from "../error.js";
import type { PlayerId } from "../room/types.js";
import type { Data } from "../value/data.js";
import type { Core } from "../wasm/core.js";
import type { Exports } from "../wasm/exports.js";
import type { Component, Infer } from "./component.js";
import { type AnyColumns, type Columns, places, readColumns, readRow, rowAt, writeColumns, writeRow } from "./rows.js";
import type { Entity, Past, World } from "./types.js";

/** What the world needs of its room. */
export interface WorldRoom {
  readonly core: Core;
  readonly isHost: boolean;
  readonly me: PlayerId;
  /** Names of the components that this game predicts. */
  readonly predicted: ReadonlySet<string>;
  /** Whether the game defines an action by a function. */
  predictsAction(name: string): boolean;
  /** Applies the actions that wait. Returns why this player's own is refused. */
  applyActions(): string | undefined;
  now(): number;
  /** Throws if the room is over. */
  assertOpen(): void;
  /** Something was written that has to be sent. */
  soon(): void;
}

const WRITTEN = 0;
const SHOWN = 1;
const NO_OWNER = -2;
const EMPTY: AnyColumns = { length: 0, entity: new Uint32Array(0), owner: new Int32Array(0), fields: {} };

/** The class behind `World`. */
export class WorldImpl implements World {
  readonly #numbers = new Map<string, number>();

  constructor(private readonly room: WorldRoom) {}

  // Of a room that a defect ended there is nothing to read.

  get entities(): readonly Entity[] {
    if (this.room.core.isDead) return [];
    this.room.core.call((it) => it.entities());
    const bytes = this.room.core.bytes();
    return Array.from(new Uint32Array(bytes.buffer, 0, bytes.length / 4));
  }

  has(entity: Entity): boolean {
    return !this.room.core.isDead && this.room.core.call((it) => it.has_entity(entity)) === 1;
  }

  owner(entity: Entity): PlayerId | undefined {
    if (this.room.core.isDead) return undefined;
    const owner = this.room.core.ask((it) => it.owner(entity));
    return owner < 0 ? undefined : owner;
  }

  get<C extends Component>(entity: Entity, component: C): Infer<C> | undefined {
    return this.#row(entity, component, WRITTEN);
  }

  shown<C extends Component>(entity: Entity, component: C): Infer<C> | undefined {
    return this.#row(entity, component, SHOWN);
  }

  *each<C extends Component>(component: C, options?: { shown?: boolean }): Iterable<[Entity, Infer<C>]> {
    const columns = this.#read(component, options);
    for (const [index, entity] of places(columns)) yield [entity, rowAt(columns, index) as Infer<C>];
  }

  *simulated<C extends Component>(component: C): Iterable<[Entity, Infer<C>]> {
    const { isHost, me, predicted } = this.room;
    if (!isHost && !predicted.has(component.name)) return;
    const columns = this.#read(component);
    for (const [index, entity, owner] of places(columns)) {
      if (isHost || owner === me) yield [entity, rowAt(columns, index) as Infer<C>];
    }
  }

  columns<C extends Component>(component: C, options?: { shown?: boolean }): Columns<C> {
    return this.#read(component, options) as unknown as Columns<C>;
  }

  spawn(owner?: PlayerId): Entity {
    return this.#change((it) => it.spawn(owner ?? NO_OWNER));
  }

  despawn(entity: Entity): void {
    this.#change((it) => it.despawn(entity));
  }

  set<C extends Component>(entity: Entity, component: C, value: Infer<C>): void {
    const number = this.#number(component);
    const length = this.room.core.put(writeRow(component, value as Record<string, unknown>));
    this.#change((it) => it.write_row(entity, number, length, this.room.now()));
  }

  patch<C extends Component>(entity: Entity, component: C, part: Partial<Infer<C>>): void {
    const whole = this.get(entity, component);
    if (whole === undefined) {
      throw new ParlorError("bad_argument", `the entity ${entity} has no ${component.name} to patch`, "set it whole first");
    }
    this.set(entity, component, { ...whole, ...part });
  }

  remove(entity: Entity, component: Component): boolean {
    const number = this.#number(component);
    return this.#change((it) => it.remove_row(entity, number)) === 1;
  }

  write<C extends Component>(component: C, columns: Columns<C>): void {
    const number = this.#number(component);
    const length = this.room.core.put(writeColumns(component, columns as unknown as AnyColumns));
    this.#change((it) => it.write_columns(number, length, this.room.now()));
  }

  transfer(entity: Entity, owner?: PlayerId): void {
    this.#change((it) => it.transfer(entity, owner ?? NO_OWNER));
  }

  audience(entity: Entity, who: "all" | readonly PlayerId[]): void {
    const length = this.room.core.putValues(who as Data);
    this.#change((it) => it.audience(entity, length));
  }

  zone(entity: Entity, zone: number): void {
    this.#change((it) => it.zone(entity, zone));
  }

  rewind<C extends Component>(player: PlayerId, component: C): Past<C> {
    const number = this.#number(component);
    this.room.core.call((it) => it.rewind(player, number, this.room.now()));
    const bytes = this.room.core.bytes();
    const view = new DataView(bytes.buffer);
    const columns = readColumns(component.fields, bytes.subarray(16)) as unknown as Columns<C>;
    return { backMs: view.getFloat64(0, true) / 1_000, isCut: view.getFloat64(8, true) !== 0, columns };
  }

  act(entity: Entity, name: string, value: Data): string | undefined {
    const length = this.room.core.putValues(name, value);
    if (!this.room.predictsAction(name)) {
      this.#change((it) => it.act(entity, length));
      return undefined;
    }
    const isToApply = this.#change((it) => it.act_predicted(entity, length, this.room.now())) === 1;
    return isToApply ? this.room.applyActions() : undefined;
  }

  changes<const C extends readonly Component[]>(...components: C): [Entity, C[number][]][] {
    if (this.room.core.isDead) return [];
    const numbered = components.map((component) => [component, this.#number(component)] as const);
    this.room.core.call((it) => it.changes());
    const bytes = this.room.core.bytes();
    const view = new DataView(bytes.buffer);
    const changes: [Entity, C[number][]][] = [];
    for (let at = 0; at < bytes.length; at += 12) {
      const bit = (number: number) => (view.getUint32(at + 4 + 4 * (number >> 5), true) >>> (number & 31)) & 1;
      const changed = numbered.filter(([, number]) => bit(number) === 1).map(([component]) => component);
      if (changed.length > 0) changes.push([view.getUint32(at, true) as Entity, changed]);
    }
    return changes;
  }

  #read(component: Component, options?: { shown?: boolean }): AnyColumns {
    if (this.room.core.isDead) return EMPTY;
    const which = options?.shown === true ? SHOWN : WRITTEN;
    const number = this.#number(component);
    this.room.core.call((it) => it.columns(number, which, this.room.now()));
    return readColumns(component.fields, this.room.core.bytes());
  }

  #row<C extends Component>(entity: Entity, component: C, which: number): Infer<C> | undefined {
    if (!this.has(entity)) return undefined;
    const number = this.#number(component);
    if (this.room.core.call((it) => it.row(entity, number, which, this.room.now())) === 0) return undefined;
    return readRow(component.fields, this.room.core.bytes()) as Infer<C>;
  }

  #change(run: (exports: Exports) => number): number {
    this.room.assertOpen();
    const result = this.room.core.call(run);
    this.room.soon();
    return result;
  }

  /** A component's number in this room. */
  #number({ name }: Component): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const length = this.room.core.putValues(name);
    const number = this.room.core.call((it) => it.component(length));
    this.#numbers.set(name, number);
    return number;
  }
}

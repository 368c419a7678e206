/** One seat of the arena: the step that the host and every member run, over the room's world. */

import { defineGame, type Entity, type Room, type, type TypesOf, type Vec2 } from "parlor";
import {
  aimed, drive, HEALTH, HZ, Life, meets, type Order, readOrder, REST, SIDES, type Shot, Tank, tankAt,
} from "./rules.ts";

const definition = {
  tickHz: HZ,
  world: { components: [Tank, Life] },
  predict: [Tank],
  input: type<Order>(),
  state: { lagCompensation: type<boolean>() },
} as const;

/** The game. Its name and its components are those of the terminal's arena. */
export const arena = defineGame("arena", definition);
export type ArenaRoom = Room<TypesOf<typeof definition>>;

/** Where tanks begin. */
const STARTS: readonly Vec2[] = [
  { x: 10, y: 10 }, { x: 86, y: 54 }, { x: 10, y: 54 }, { x: 86, y: 10 }, { x: 48, y: 8 }, { x: 48, y: 56 }, { x: 10, y: 32 }, { x: 86, y: 32 },
];
/** Drones are targets without a driver. They fly in circles around the middle, each a little farther out. */
const DRONES = 3;
const DRONE_STEPS = 12 * HZ;
const DRONE_RADIUS = 16;
const DRONE_APART = 5;
/** By how much a hit changes the velocity of what was hit, in metres per second. */
const KNOCK_MPS = 6;

/** A shot of this player, as it saw it. */
export interface Seen {
  shot: Shot;
  met: Entity | undefined;
}

export class Game {
  readonly room: ArenaRoom;
  /** Whether a member runs its own tank at once, and does not wait for what the host says. */
  isPredicting = true;
  /** Shots of this player since they were taken, each once. */
  shots: Seen[] = [];

  constructor(room: ArenaRoom) {
    this.room = room;
  }

  /** This player's tank. */
  get own(): [Entity, Tank] | undefined {
    const { world, me } = this.room;
    for (const [entity, tank] of world.each(Tank)) if (world.owner(entity) === me) return [entity, tank];
    return undefined;
  }

  /** Whether the host judges shots by what their shooters saw. */
  get compensatesLag(): boolean {
    return this.room.get("lagCompensation") ?? true;
  }

  /** One step of this player, who wants `order`. In one that is run again, what was recorded counts. */
  step(order: () => Order): void {
    const { room } = this;
    const own = this.own;
    if (!room.isReplay) {
      const wants = order();
      room.sendInput(own && (this.isPredicting || room.isHost) ? aimed(own[1], wants) : wants);
    }
    if (room.isHost) this.#decide();
    else if (own && this.isPredicting) this.#predict(...own);
  }

  /** A member's own tank, by its own recorded order. */
  #predict(entity: Entity, tank: Tank): void {
    const { room } = this;
    const after = drive(tank, readOrder(room.input(room.me)) ?? REST);
    room.world.set(entity, Tank, after.tank);
    this.#saw(entity, after.shot);
  }

  #saw(entity: Entity, shot: Shot | undefined): void {
    if (shot === undefined || !this.room.once("shot", shot.number)) return;
    const shown = [...this.room.world.each(Tank, { shown: true })].filter(([it]) => it !== entity);
    this.shots.push({ shot, met: meets(shot, shown.map(([it, tank]) => [it, tank.position] as const)) });
  }

  /** The host's step: all tanks, and the hits. */
  #decide(): void {
    const { world, players } = this.room;
    const tanks = new Map<number, Entity>();
    const drones: Entity[] = [];
    for (const [entity] of world.each(Tank)) {
      const owner = world.owner(entity);
      if (owner === undefined) drones.push(entity);
      else if (players.has(owner)) tanks.set(owner, entity);
      else world.despawn(entity);
    }
    this.#flyDrones(drones);
    const fired: [player: number, entity: Entity, shot: Shot][] = [];
    for (const player of players.keys()) {
      const entity = tanks.get(player) ?? this.#spawn(player);
      const tank = world.get(entity, Tank);
      if (tank === undefined) continue;
      // An order that cannot be read is its sender's fault, and as good as none.
      const after = drive(tank, readOrder(this.room.input(player)) ?? REST);
      world.set(entity, Tank, after.tank);
      if (after.shot) fired.push([player, entity, after.shot]);
      if (player === this.room.me) this.#saw(entity, after.shot);
    }
    for (const [player, entity, shot] of fired) {
      const met = meets(shot, this.#targets(player, entity));
      if (met !== undefined) this.#hit(entity, met, shot);
    }
  }

  /** All tanks but the shooter's: where it saw them, or where they are. */
  #targets(player: number, but: Entity): [Entity, Vec2][] {
    const { world } = this.room;
    const { length, entity, fields } = this.compensatesLag ? world.rewind(player, Tank).columns : world.columns(Tank);
    const all = Array.from({ length }, (_, i): [Entity, Vec2] => [entity[i]!, { x: fields.position.x[i]!, y: fields.position.y[i]! }]);
    return all.filter(([it]) => it !== but);
  }

  #hit(by: Entity, met: Entity, shot: Shot): void {
    const { world } = this.room;
    const shooter = world.get(by, Life);
    if (shooter) world.set(by, Life, { ...shooter, hits: Math.min(65_535, shooter.hits + 1) });
    // Shot at as it was a moment ago, it may be gone; and a drone takes no harm.
    const [tank, life] = world.has(met) ? [world.get(met, Tank), world.get(met, Life)] : [];
    if (!tank || !life || world.owner(met) === undefined) return;
    if (life.health > 1) {
      const velocity = { x: tank.velocity.x + Math.cos(shot.aim) * KNOCK_MPS, y: tank.velocity.y + Math.sin(shot.aim) * KNOCK_MPS };
      world.set(met, Tank, { ...tank, velocity: { x: within(velocity.x, 32), y: within(velocity.y, 32) } });
      world.set(met, Life, { ...life, health: life.health - 1 });
      return;
    }
    const start = STARTS[(life.deaths + 1 + (met & 0xffff)) % STARTS.length]!;
    world.set(met, Tank, { ...tankAt(start), shots: tank.shots });
    world.set(met, Life, { ...life, health: HEALTH, deaths: Math.min(65_535, life.deaths + 1) });
  }

  #spawn(player: number): Entity {
    const { world } = this.room;
    const entity = world.spawn(player);
    world.set(entity, Tank, tankAt(STARTS[player % STARTS.length]!));
    world.set(entity, Life, { health: HEALTH, hits: 0, deaths: 0 });
    return entity;
  }

  #flyDrones(drones: Entity[]): void {
    const { world, tickNumber } = this.room;
    while (drones.length < DRONES) {
      const drone = world.spawn();
      world.set(drone, Life, { health: 0, hits: 0, deaths: 0 });
      drones.push(drone);
    }
    const turned = (tickNumber % DRONE_STEPS) / DRONE_STEPS;
    drones.forEach((drone, index) => {
      const angle = (turned + index / DRONES) * 2 * Math.PI;
      const radius = DRONE_RADIUS + DRONE_APART * index;
      const speed = (radius * 2 * Math.PI * HZ) / DRONE_STEPS;
      const position = { x: SIDES.x / 2 + Math.cos(angle) * radius, y: SIDES.y / 2 + Math.sin(angle) * radius };
      world.set(drone, Tank, { ...tankAt(position), velocity: { x: -Math.sin(angle) * speed, y: Math.cos(angle) * speed }, reload: 0 });
    });
  }
}

function within(value: number, most: number): number {
  return Math.min(most, Math.max(-most, value));
}

/**
 * The rules: driving, firing, and hits. Pure, and the same code at the host, which decides, and at every member, which
 * predicts its own tank. They and the components are those of the terminal's arena, so that both play in one room.
 */

import { angle, component, type Infer, int, type Vec2, vec2 } from "parlor";

/** Steps per second. */
export const HZ = 30;
/** The arena, in metres, from its north-west corner. */
export const SIDES = { x: 96, y: 64 } as const;
/** A tank is a disc. */
export const TANK_RADIUS = 1.5;
/** Discs that nothing passes. */
export const PILLARS: readonly (Vec2 & { radius: number })[] = [
  { x: 24, y: 20, radius: 3 }, { x: 72, y: 20, radius: 3 }, { x: 48, y: 32, radius: 5 }, { x: 24, y: 44, radius: 3 }, { x: 72, y: 44, radius: 3 },
];
/** How far a shot reaches. */
export const RANGE = 60;
/** Hits that a tank takes before it begins anew. */
export const HEALTH = 5;
/** Parts of a turn that can be aimed at. */
export const AIM_STEPS = 1_024;
/** Steps from one shot to the next: four in a second. */
export const RELOAD_STEPS = 8;

/**
 * How far from where its tank is at the host a player may have fired. Whoever was pushed does not know it yet, and its
 * shot shall fly from where it aimed.
 */
const LENIENCE = TANK_RADIUS;
const SPEED = 9;
const ACCELERATION = 45;
const STEP_S = 1 / HZ;
/** Resolution of places, in parts of a metre. */
const PARTS_PER_M = 512;
const TURN = 2 * Math.PI;

/** The shared state of a tank. A member predicts its own. */
export const Tank = component("tank", {
  position: vec2(0, SIDES.x, 1 / PARTS_PER_M),
  velocity: vec2(-32, 32, 1 / 256),
  aim: angle(AIM_STEPS),
  reload: int(0, RELOAD_STEPS),
  shots: int(0, 65_535),
});
export type Tank = Infer<typeof Tank>;

/** What only the host decides about a tank. */
export const Life = component("life", { health: int(0, HEALTH), hits: int(0, 65_535), deaths: int(0, 65_535) });
export type Life = Infer<typeof Life>;

/** What a player wants in one step. */
export interface Order {
  /** -1, 0 or 1: west, no way, east. */
  east: number;
  /** -1, 0 or 1: north, no way, south. */
  south: number;
  /** Where the gun points, in parts of a turn: 0 is east, a quarter is south. */
  aim: number;
  /** Whether it fires as soon as it can. */
  fire: boolean;
  /** In a step in which it fires: from where, as its player sees it, in parts of a metre. */
  from: [number, number] | null;
}

/** A shot, which hits in the step in which it is fired. */
export interface Shot {
  from: Vec2;
  /** In radians. */
  aim: number;
  /** The shooter's count of its shots, this one included. */
  number: number;
}

export const REST: Order = { east: 0, south: 0, aim: 0, fire: false, from: null };

/** Reads an order. It comes from other machines. */
export function readOrder(it: unknown): Order | undefined {
  if (typeof it !== "object" || it === null) return undefined;
  const { east, south, aim, fire, from } = it as Record<string, unknown>;
  const isWhole = (value: unknown, least: number, most: number) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
  if (!isWhole(east, -128, 127) || !isWhole(south, -128, 127) || !isWhole(aim, 0, 65_535) || typeof fire !== "boolean") return undefined;
  if (from !== null && !(Array.isArray(from) && from.length === 2 && from.every((part) => isWhole(part, 0, 65_535)))) return undefined;
  return it as Order;
}

/** Radians of parts of a turn. */
export function radians(aim: number): number {
  return ((aim % AIM_STEPS) / AIM_STEPS) * TURN;
}

/** Parts of a turn of radians. */
export function aimOf(angle: number): number {
  const parts = Math.round((angle / TURN) * AIM_STEPS) % AIM_STEPS;
  return parts < 0 ? parts + AIM_STEPS : parts;
}

/** A tank at rest that is as far from reloaded as can be. */
export function tankAt(position: Vec2): Tank {
  return { position: { ...position }, velocity: { x: 0, y: 0 }, aim: 0, reload: RELOAD_STEPS, shots: 0 };
}

/** One step as ordered: the tank after it, and the shot, if one is fired. */
export function drive(tank: Tank, order: Order): { tank: Tank; shot?: Shot } {
  const velocity = accelerated(tank.velocity, { x: Math.sign(order.east), y: Math.sign(order.south) });
  const moved = inside({ x: tank.position.x + velocity.x * STEP_S, y: tank.position.y + velocity.y * STEP_S }, velocity);
  const after: Tank = { ...moved, aim: radians(order.aim), reload: Math.max(0, tank.reload - 1), shots: tank.shots };
  if (!order.fire || after.reload > 0) return { tank: after };
  after.reload = RELOAD_STEPS;
  after.shots = (tank.shots + 1) % 65_536;
  const claimed = order.from === null ? undefined : legal(order.from);
  const from = claimed !== undefined && apart(claimed, after.position) <= LENIENCE ? claimed : after.position;
  return { tank: after, shot: { from: { ...from }, aim: after.aim, number: after.shots } };
}

/** The order as it is sent: if this tank fires in the step that obeys it, it says from where. */
export function aimed(tank: Tank, order: Order): Order {
  const { shot } = drive(tank, { ...order, from: null });
  if (shot === undefined) return { ...order, from: null };
  return { ...order, from: [Math.round(shot.from.x * PARTS_PER_M), Math.round(shot.from.y * PARTS_PER_M)] };
}

/** What a shot meets first, if no pillar is before it. */
export function meets<T>(shot: Shot, targets: Iterable<readonly [T, Vec2]>): T | undefined {
  let until = Math.min(RANGE, ...PILLARS.map((pillar) => reaches(shot, pillar, pillar.radius) ?? RANGE));
  let met: T | undefined;
  for (const [target, at] of targets) {
    const away = reaches(shot, at, TANK_RADIUS);
    if (away !== undefined && away <= until) [until, met] = [away, target];
  }
  return met;
}

/** How far a shot flies until it meets a disc. */
export function reaches(shot: Shot, at: Vec2, radius: number): number | undefined {
  const [east, south] = [Math.cos(shot.aim), Math.sin(shot.aim)];
  const to = { x: at.x - shot.from.x, y: at.y - shot.from.y };
  const along = to.x * east + to.y * south;
  const aside = to.x * south - to.y * east;
  const half = radius * radius - aside * aside;
  if (half < 0) return undefined;
  // Whoever stands in a disc does not shoot at it.
  const away = along - Math.sqrt(half);
  return away >= 0 && away <= RANGE ? away : undefined;
}

/** Length of a vector. Without `hypot`, whose last bits differ between machines. */
export function norm({ x, y }: Vec2): number {
  return Math.sqrt(x * x + y * y);
}

function apart(a: Vec2, b: Vec2): number {
  return norm({ x: a.x - b.x, y: a.y - b.y });
}

function accelerated(velocity: Vec2, way: Vec2): Vec2 {
  const speed = way.x !== 0 && way.y !== 0 ? SPEED * Math.SQRT1_2 : SPEED;
  const lacks = { x: way.x * speed - velocity.x, y: way.y * speed - velocity.y };
  const length = norm(lacks);
  const part = length > 0 ? Math.min(1, (ACCELERATION * STEP_S) / length) : 0;
  return { x: velocity.x + lacks.x * part, y: velocity.y + lacks.y * part };
}

/** Out of pillars, and within the arena. */
function inside(at: Vec2, velocity: Vec2): { position: Vec2; velocity: Vec2 } {
  let position = { ...at };
  let going = { ...velocity };
  for (const { x, y, radius } of PILLARS) {
    const off = { x: position.x - x, y: position.y - y };
    const [away, least] = [norm(off), radius + TANK_RADIUS];
    if (away >= least) continue;
    // In the very middle any way out is as good.
    const out = away > 0 ? { x: off.x / away, y: off.y / away } : { x: 1, y: 0 };
    position = { x: x + out.x * least, y: y + out.y * least };
    const into = Math.min(0, going.x * out.x + going.y * out.y);
    going = { x: going.x - out.x * into, y: going.y - out.y * into };
  }
  for (const axis of ["x", "y"] as const) {
    const kept = Math.min(Math.max(position[axis], TANK_RADIUS), SIDES[axis] - TANK_RADIUS);
    if (kept !== position[axis]) [position[axis], going[axis]] = [kept, 0];
  }
  return { position, velocity: going };
}

/** A received place, within the arena and outside of pillars. */
function legal(parts: readonly [number, number]): Vec2 {
  return inside({ x: parts[0] / PARTS_PER_M, y: parts[1] / PARTS_PER_M }, { x: 0, y: 0 }).position;
}

/**
 * The rules: a magpie flies on in the direction last pressed and picks up the gems that it touches. A dash is a short
 * burst; dashing into another magpie scatters a third of what it carries. After a minute the richest wins.
 *
 * Only the host has a World. It calls `step` once per tick, and `publish` gives the values for the room's keyed state.
 * The same seed and calls give the same values as the terminal's rules in Rust (`tools/cli/src/game`), to the last bit:
 * so each sum is rounded by `f32`.
 */

import { f32, Rng } from "./rng.ts";
import type { Scene } from "./scene.ts";
import {
  after, type Badge, type Dir, FIELD_HEIGHT, FIELD_WIDTH, type GemState, HZ, type Input, NO_ROUND, type PlayerState,
  type RoundState, ticksUntil, type Value, vector,
} from "./state.ts";

/** How near a magpie's middle comes to the edge, and half of how near two must come for a knock. */
const RADIUS = f32(1.3);
/** How near a magpie picks up a gem. */
const REACH = f32(1.9);
/** Units per tick. */
const SPEED = f32(15 / HZ);
const DASH_SPEED = f32(44 / HZ);
/** How much of the way to the wished speed a magpie gains per tick: its turns are round. */
const AGILITY = f32(0.28);
/** What a dizzy magpie and a flying gem keep of their speed per tick. */
const SLIDE = f32(0.86);
const DASH_TICKS = HZ / 5;
const DASH_EVERY = (HZ * 8) / 5;
const DIZZY_TICKS = HZ / 2;
const SAFE_TICKS = (HZ * 3) / 2;
/** Ticks that a knocked-off gem cannot be picked up. */
const AIR_TICKS = (HZ * 2) / 5;
const ROUND_TICKS = HZ * 60;
const OVER_TICKS = HZ * 5;
/** Most gems that one knock scatters, and that a leaver leaves. */
const SCATTERED_MOST = 8;
/** Most gems on the field; beyond it, what is dropped is one gem that is worth the more. */
const GEMS_MOST = 120;
/** Gems have few numbers, so that the room's keys stay bounded; none is used again soon. */
const GEM_NUMBERS = 256;
const SCORE_MOST = 0xffff_ffff;

type Place = { x: number; y: number };
type Vector = readonly [number, number];

/** A magpie and what only the host knows of it. */
type Body = {
  state: PlayerState;
  badge: Badge;
  velocity: Vector;
  /** The direction of its last input; it holds when an input is late. */
  wish: Dir;
  motionUntil: number;
  safeUntil: number;
};

type Gem = { state: GemState; velocity: Vector; looseAt: number };

/** What to do to the room's keyed state. */
export type Publication = { gone: string[]; set: [key: string, value: Value][] };

export class World {
  #rng: Rng;
  #tick = 0;
  /** By id, in ascending order. */
  #bodies = new Map<number, Body>();
  /** By number, in ascending order. */
  #gems = new Map<number, Gem>();
  #round: RoundState = { ...NO_ROUND };
  #nextGem = 0;
  #spawnAt = 0;
  #published = new Set<string>();

  constructor(seed: bigint) {
    this.#rng = new Rng(seed);
  }

  /**
   * A world in the middle of a game, from what everybody sees of it: so a new host goes on with another's. Who flew begins
   * anew to fly; who was dashing, dizzy or safe is so for the whole time again.
   */
  static resume(seed: bigint, { tick, players, gems, round }: Scene): World {
    const world = new World(seed);
    world.#tick = tick;
    world.#spawnAt = tick;
    world.#round = { ...round, winners: [...round.winners] };
    for (const [id, { state, badge }] of sorted(players)) {
      const motionUntil = after(tick, state.motion === "Dashing" ? DASH_TICKS : DIZZY_TICKS);
      const safeUntil = after(tick, SAFE_TICKS);
      const body = { state: { ...state }, badge, velocity: [0, 0] as const, wish: state.heading, motionUntil, safeUntil };
      world.#bodies.set(id, body);
      world.#published.add(`p/${id}`).add(`n/${id}`);
    }
    for (const [number, state] of sorted(gems)) {
      world.#gems.set(number, { state: { ...state }, velocity: [0, 0], looseAt: tick });
      world.#nextGem = Math.max(world.#nextGem, number + 1);
      world.#published.add(`g/${number}`);
    }
    world.#published.add("round");
    return world;
  }

  /** Sets the tick of the last step: the room counts its own ticks, and may have skipped some. */
  setTick(tick: number): void {
    this.#tick = tick >>> 0;
  }

  get ids(): number[] {
    return [...this.#bodies.keys()];
  }

  /** Puts a player on the field, away from the others. A second time it changes nothing. */
  join(id: number, name: string): void {
    if (this.#bodies.has(id)) return;
    const { x, y } = this.#freePlace();
    const badge = { name, slot: this.#freeSlot(), glyph: this.#freeGlyph(name) };
    const tick = this.#tick;
    const state = { x, y, heading: "Stay", motion: "Gliding", safe: false, score: 0, dash_ready_at: tick } as const;
    this.#bodies.set(id, { state, badge, velocity: [0, 0], wish: "Stay", motionUntil: tick, safeUntil: tick });
    this.#bodies = sorted(this.#bodies);
  }

  /** Takes a player from the field; its gems stay on it. */
  leave(id: number): void {
    const body = this.#bodies.get(id);
    if (this.#bodies.delete(id) && body && this.#round.phase !== "Over") this.#scatter(body.state, body.state.score);
  }

  /** One tick. A player without an input flies on; inputs of strangers are ignored. */
  step(inputs: ReadonlyMap<number, Input>): void {
    this.#tick = after(this.#tick, 1);
    for (const [id, body] of this.#bodies) {
      steer(body, inputs.get(id) ?? { dir: body.wish, dash: false }, this.#tick);
    }
    this.#knock();
    this.#flyGems();
    this.#collect();
    this.#turnRound();
    this.#spawn();
  }

  /** What the room's keyed state should be now, and which keys of the last call are gone. */
  publish(): Publication {
    const set: [string, Value][] = [];
    for (const [id, body] of this.#bodies) set.push([`p/${id}`, shown(body.state)]);
    for (const [id, { badge }] of this.#bodies) set.push([`n/${id}`, badge]);
    for (const [number, gem] of this.#gems) set.push([`g/${number}`, shown(gem.state)]);
    set.push(["round", this.#round]);
    const keys = new Set(set.map(([key]) => key));
    const gone = [...this.#published].filter((key) => !keys.has(key));
    this.#published = keys;
    return { gone, set };
  }

  /** What a member sees that lost nothing. */
  scene(): Scene {
    const bird = ({ state, badge }: Body) => ({ state: shown(state), badge });
    return {
      tick: this.#tick,
      players: new Map([...this.#bodies].map(([id, body]) => [id, bird(body)])),
      gems: new Map([...this.#gems].map(([number, gem]) => [number, shown(gem.state)])),
      round: this.#round,
    };
  }

  /** Every magpie in its burst knocks all that it touches; two that dash into each other are both knocked. */
  #knock(): void {
    const knocks: [Body, Dir][] = [];
    for (const dasher of this.#bodies.values()) {
      for (const victim of this.#bodies.values()) {
        const touch = near(dasher.state, victim.state, f32(2 * RADIUS));
        if (dasher !== victim && dasher.state.motion === "Dashing" && !victim.state.safe && touch) {
          knocks.push([victim, dasher.state.heading]);
        }
      }
    }
    for (const [body, heading] of knocks) {
      if (body.state.safe) continue;
      const [x, y] = vector(heading);
      body.velocity = [f32(x * DASH_SPEED), f32(y * DASH_SPEED)];
      body.motionUntil = after(this.#tick, DIZZY_TICKS);
      body.safeUntil = after(this.#tick, SAFE_TICKS);
      body.state = { ...body.state, motion: "Dizzy", safe: true };
      if (this.#round.phase === "Over") continue;
      const lost = Math.min(Math.ceil(body.state.score / 3), SCATTERED_MOST);
      body.state.score -= lost;
      this.#scatter(body.state, lost);
    }
  }

  /** Throws gems that are worth `amount` together from a place. */
  #scatter({ x, y }: Place, amount: number): void {
    const room = Math.max(GEMS_MOST - this.#gems.size, 1);
    const pieces = Math.min(amount, SCATTERED_MOST, room);
    for (let piece = 0; piece < pieces; piece++) {
      // The remainder goes to the first pieces, so that nothing is lost.
      const worth = Math.floor(amount / pieces) + (piece < amount % pieces ? 1 : 0);
      const [dx, dy] = this.#rng.direction();
      const speed = this.#rng.between(0.5, f32(1.3));
      const velocity = [f32(dx * speed), f32(dy * speed)] as const;
      this.#addGem({ state: { x, y, worth }, velocity, looseAt: after(this.#tick, AIR_TICKS) });
    }
  }

  #addGem(gem: Gem): void {
    for (let tries = 0; tries < GEM_NUMBERS; tries++) {
      const number = this.#nextGem % GEM_NUMBERS;
      this.#nextGem = (number + 1) % GEM_NUMBERS;
      if (!this.#gems.has(number)) {
        this.#gems.set(number, gem);
        // A number is mostly the highest; where it is not, the order is made anew.
        if (number < this.#highestGem()) this.#gems = sorted(this.#gems);
        return;
      }
    }
    const [other] = this.#gems.values();
    if (other) other.state.worth = Math.min(other.state.worth + gem.state.worth, SCORE_MOST);
  }

  #highestGem(): number {
    return Math.max(...this.#gems.keys());
  }

  #flyGems(): void {
    for (const gem of this.#gems.values()) {
      const [vx, vy] = gem.velocity;
      if (vx === 0 && vy === 0) continue;
      const [x, bounceX] = reflect(f32(gem.state.x + vx), FIELD_WIDTH);
      const [y, bounceY] = reflect(f32(gem.state.y + vy), FIELD_HEIGHT);
      gem.state.x = x;
      gem.state.y = y;
      gem.velocity = settle(f32(f32(vx * bounceX) * SLIDE), f32(f32(vy * bounceY) * SLIDE));
    }
  }

  /** Each gem goes to the nearest magpie in reach. */
  #collect(): void {
    if (this.#round.phase === "Over") return;
    for (const [number, gem] of this.#gems) {
      if (ticksUntil(gem.looseAt, this.#tick) > 0) continue;
      let taker: Body | undefined;
      let nearest = Infinity;
      for (const body of this.#bodies.values()) {
        const distance = distanceSquared(gem.state, body.state);
        if (body.state.motion === "Dizzy" || distance > f32(REACH * REACH) || distance >= nearest) continue;
        taker = body;
        nearest = distance;
      }
      if (!taker) continue;
      taker.state.score = Math.min(taker.state.score + gem.state.worth, SCORE_MOST);
      this.#gems.delete(number);
    }
  }

  #turnRound(): void {
    const { phase, ends_at, number } = this.#round;
    const ended = ticksUntil(ends_at, this.#tick) === 0;
    const enough = this.#bodies.size >= 2;
    if (phase === "Waiting" ? enough : phase === "Over" && ended && enough) this.#startRound();
    else if (phase === "Playing" && ended) this.#endRound();
    else if (phase === "Over" && ended) {
      this.#round = { ...NO_ROUND, number };
      this.#clearScores();
    }
  }

  #startRound(): void {
    const number = after(this.#round.number, 1);
    this.#round = { ...NO_ROUND, number, phase: "Playing", ends_at: after(this.#tick, ROUND_TICKS) };
    this.#clearScores();
    for (let gems = this.#gemsWanted(); gems > 0; gems--) this.#addLyingGem();
  }

  #endRound(): void {
    const best = Math.max(0, ...[...this.#bodies.values()].map((body) => body.state.score));
    const winners = [...this.#bodies].filter(([, body]) => best > 0 && body.state.score === best).map(([id]) => id);
    this.#round = { ...this.#round, phase: "Over", ends_at: after(this.#tick, OVER_TICKS), winners, best };
    this.#gems.clear();
  }

  #clearScores(): void {
    this.#gems.clear();
    for (const body of this.#bodies.values()) body.state.score = 0;
  }

  #gemsWanted(): number {
    return Math.min(6 + 2 * this.#bodies.size, GEMS_MOST / 2);
  }

  #spawn(): void {
    const due = ticksUntil(this.#spawnAt, this.#tick) === 0;
    if (this.#round.phase === "Over" || this.#gems.size >= this.#gemsWanted() || !due) return;
    this.#spawnAt = after(this.#tick, Math.floor(HZ / Math.min(1 + this.#bodies.size, HZ / 3)));
    this.#addLyingGem();
  }

  #addLyingGem(): void {
    const { x, y } = this.#freePlace();
    const worth = this.#rng.chance(0.08) ? 5 : 1;
    this.#addGem({ state: { x, y, worth }, velocity: [0, 0], looseAt: this.#tick });
  }

  /** A place inside the field, away from all magpies if a few tries find one. */
  #freePlace(): Place {
    let place = { x: 0, y: 0 };
    for (let tries = 0; tries < 6; tries++) {
      place = { x: this.#rng.between(2, FIELD_WIDTH - 2), y: this.#rng.between(2, FIELD_HEIGHT - 2) };
      if (![...this.#bodies.values()].some((body) => near(place, body.state, 6))) break;
    }
    return place;
  }

  #freeSlot(): number {
    const taken = new Set([...this.#bodies.values()].map((body) => body.badge.slot));
    let slot = 0;
    while (taken.has(slot) && slot < 255) slot++;
    return slot;
  }

  /** An unused letter of the name, else any unused one. */
  #freeGlyph(name: string): string {
    const taken = new Set([...this.#bodies.values()].map((body) => body.badge.glyph));
    const own = name.replace(/[^a-zA-Z0-9]/g, "").toUpperCase();
    return [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"].reduce((all, glyph) => all + glyph, own)
      .split("").find((glyph) => !taken.has(glyph)) ?? "?";
  }
}

/** Moves a magpie by one tick: the input counts unless it is dizzy. */
function steer(body: Body, input: Input, tick: number): void {
  body.wish = input.dir;
  const state = { ...body.state };
  body.state = state;
  if (state.motion !== "Gliding" && ticksUntil(body.motionUntil, tick) === 0) state.motion = "Gliding";
  if (state.safe && ticksUntil(body.safeUntil, tick) === 0) state.safe = false;
  if (state.motion === "Gliding") obey(body, state, input, tick);
  const [vx, vy] = body.velocity;
  if (state.motion === "Gliding") {
    const [x, y] = vector(body.wish);
    const toward = (v: number, wish: number) => f32(v + f32(f32(f32(wish * SPEED) - v) * AGILITY));
    body.velocity = settle(toward(vx, x), toward(vy, y));
  } else if (state.motion === "Dashing") {
    const [x, y] = vector(state.heading);
    body.velocity = settle(f32(x * DASH_SPEED), f32(y * DASH_SPEED));
  } else {
    body.velocity = settle(f32(vx * SLIDE), f32(vy * SLIDE));
  }
  state.x = clamp(f32(state.x + body.velocity[0]), RADIUS, f32(FIELD_WIDTH - RADIUS));
  state.y = clamp(f32(state.y + body.velocity[1]), RADIUS, f32(FIELD_HEIGHT - RADIUS));
}

function obey(body: Body, state: PlayerState, input: Input, tick: number): void {
  if (input.dir !== "Stay") state.heading = input.dir;
  if (input.dash && ticksUntil(state.dash_ready_at, tick) === 0 && state.heading !== "Stay") {
    state.motion = "Dashing";
    body.motionUntil = after(tick, DASH_TICKS);
    state.dash_ready_at = after(tick, DASH_EVERY);
  }
}

/** What of a place is published: 1/64 unit is finer than any screen, and a magpie that has all but stopped costs nothing. */
function shown<P extends Place>(it: P): P {
  return { ...it, x: grain(it.x), y: grain(it.y) };
}

/** Rounds half away from zero, as Rust does. */
function grain(place: number): number {
  const scaled = place * 64;
  return (Math.sign(scaled) * Math.floor(Math.abs(scaled) + 0.5)) / 64;
}

/** A speed that no one sees is none. */
function settle(vx: number, vy: number): Vector {
  return f32(f32(vx * vx) + f32(vy * vy)) < f32(0.0004) ? [0, 0] : [vx, vy];
}

/** Keeps a place within 0.5 of the walls, and says which way its speed goes on. */
function reflect(place: number, end: number): Vector {
  const high = end - 0.5;
  if (place < 0.5) return [Math.min(f32(1 - place), high), -1];
  if (place > high) return [Math.max(f32(2 * high - place), 0.5), -1];
  return [place, 1];
}

function distanceSquared(a: Place, b: Place): number {
  const [dx, dy] = [f32(a.x - b.x), f32(a.y - b.y)];
  return f32(f32(dx * dx) + f32(dy * dy));
}

function near(a: Place, b: Place, distance: number): boolean {
  return distanceSquared(a, b) <= f32(distance * distance);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

function sorted<V>(map: ReadonlyMap<number, V>): Map<number, V> {
  return new Map([...map].sort(([a], [b]) => a - b));
}

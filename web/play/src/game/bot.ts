/** A player that plays by itself, from what a person would see. */

import { Rng } from "./rng.ts";
import type { Bird, Scene } from "./scene.ts";
import { after, type Dir, FIELD_HEIGHT, FIELD_WIDTH, type Input, ticksUntil, vector } from "./state.ts";

/** How far ahead of a dasher it is dangerous, and how far a dash at a rich magpie carries. */
const DASH_REACH = 8;
/** How far from the line of a dash one is still hit. */
const DASH_BREADTH = 2.2;
/** The fewest gems that are worth a dash at who carries them. */
const RICH = 4;
const DIRS = ["Up", "Right", "Down", "Left"] as const;

type Place = { x: number; y: number };

/**
 * It goes for near gems to which no other player is nearer, steps out of the way of dashers, and dashes at the rich.
 */
export class Bot {
  #rng: Rng;
  #skill: number;
  #dir: Dir = "Stay";
  #thinkAt = 0;
  #wander: Place;

  /** `skill` from 0 (slow, overlooks much) to 1 (quick, misses nothing). */
  constructor(seed: bigint, skill: number) {
    this.#rng = new Rng(seed);
    this.#skill = skill;
    this.#wander = this.#anywhere();
  }

  /** What it wants in the tick of this scene. Between two thoughts it flies on. */
  think(scene: Scene, myId: number): Input {
    const me = scene.players.get(myId);
    if (!me) return { dir: "Stay", dash: false };
    const pause = this.#dir !== "Stay" && ticksUntil(this.#thinkAt, scene.tick) > 0;
    if (pause) return { dir: this.#dir, dash: false };
    const rest = this.#rng.between(1, 3) + (1 - this.#skill) * this.#rng.between(2, 12);
    this.#thinkAt = after(scene.tick, Math.floor(rest));
    const others = [...scene.players].filter(([id]) => id !== myId).map(([, bird]) => bird);
    if (this.#rng.chance(0.3 + 0.7 * this.#skill)) {
      const away = dodge(me, others, scene.tick);
      const hunt = away ? undefined : prey(me, others, scene.tick);
      this.#dir = away ?? hunt ?? this.#dir;
      if (away || hunt) return { dir: this.#dir, dash: !away };
    }
    this.#dir = steer(me.state, this.#target(scene, me, others), this.#dir);
    return { dir: this.#dir, dash: false };
  }

  /** Where to fly: the gem, or the rich magpie, that promises most for its distance; else about the field. */
  #target(scene: Scene, me: Bird, others: readonly Bird[]): Place {
    let best = { promise: 0, place: undefined as Place | undefined };
    const offer = (promise: number, place: Place) => {
      if (promise > best.promise) best = { promise, place };
    };
    for (const gem of scene.gems.values()) {
      // Who is not attentive overlooks some.
      if (this.#rng.chance(0.25 * (1 - this.#skill))) continue;
      const way = distance(me.state, gem);
      const contested = others.some((other) => distance(other.state, gem) < way - 2);
      offer((gem.worth / (way + 2)) * (contested ? 0.4 : 1), gem);
    }
    const armed = ticksUntil(me.state.dash_ready_at, scene.tick) === 0;
    for (const { state } of others.filter(({ state }) => armed && state.score >= RICH && !state.safe)) {
      offer((Math.floor(state.score / 3) * this.#skill) / (2 * distance(me.state, state) + 6), state);
    }
    if (distance(me.state, this.#wander) < 4) this.#wander = this.#anywhere();
    return best.place ?? this.#wander;
  }

  #anywhere(): Place {
    return { x: this.#rng.between(3, FIELD_WIDTH - 3), y: this.#rng.between(3, FIELD_HEIGHT - 3) };
  }
}

/** The way out of the line of a magpie that dashes at it, or could. */
function dodge(me: Bird, others: readonly Bird[], tick: number): Dir | undefined {
  if (me.state.score < 2 || me.state.safe) return undefined;
  const threat = others.find(({ state }) => {
    const ready = ticksUntil(state.dash_ready_at, tick) === 0 && state.motion !== "Dizzy";
    return (state.motion === "Dashing" || ready) && inLine(state, state.heading, me.state);
  });
  if (!threat) return undefined;
  const { x, y } = me.state;
  // At a wall the other side is the only one.
  if (threat.state.heading === "Up" || threat.state.heading === "Down") {
    const right = x >= threat.state.x ? x <= FIELD_WIDTH - 4 : x < 4;
    return right ? "Right" : "Left";
  }
  const down = y >= threat.state.y ? y <= FIELD_HEIGHT - 4 : y < 4;
  return down ? "Down" : "Up";
}

/** The direction in which a dash now would hit a rich magpie. */
function prey(me: Bird, others: readonly Bird[], tick: number): Dir | undefined {
  if (ticksUntil(me.state.dash_ready_at, tick) > 0) return undefined;
  const rich = others.filter(({ state }) => state.score >= RICH && !state.safe);
  return [me.state.heading, ...DIRS].find((dir) => rich.some(({ state }) => inLine(me.state, dir, state)));
}

/** Whether a dash from here in this direction hits there. */
function inLine(from: Place, dir: Dir, to: Place): boolean {
  const [x, y] = vector(dir);
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const along = dx * x + dy * y;
  return dir !== "Stay" && along >= 0 && along <= DASH_REACH && Math.abs(dx * y - dy * x) < DASH_BREADTH;
}

/** The next direction towards a place: along the longer way, but not back and forth between two that are alike. */
function steer(from: Place, to: Place, last: Dir): Dir {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const across = dx < 0 ? "Left" : "Right";
  const down = dy < 0 ? "Up" : "Down";
  if ((last === across && Math.abs(dx) > 1) || (last === down && Math.abs(dy) > 1)) return last;
  return Math.abs(dx) > Math.abs(dy) ? across : down;
}

function distance(a: Place, b: Place): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

/** A bot's driving: it turns several times a second, and shoots at the nearest tank on its screen. */

import type { Vec2 } from "parlor";
import { AIM_STEPS, aimOf, norm, type Order, REST, type Tank } from "./rules.ts";

/** Steps after which it may choose another way: three times a second. */
const WAY_STEPS = 10;
/** How far off it aims at most, in parts of a turn. */
const OFF_MAX = 40;
/** How far it sees, in metres. */
const SIGHT = 45;

export class Bot {
  readonly #random: () => number;
  #steps = 0;
  #order: Order = REST;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** What it wants, given its own tank and where it sees the others. */
  order(me: Tank | undefined, others: readonly Vec2[]): Order {
    if (this.#steps++ % WAY_STEPS === 0) this.#order = { ...this.#order, east: this.#way(), south: this.#way() };
    if (!me) return this.#order;
    const away = others.map(({ x, y }) => ({ x: x - me.position.x, y: y - me.position.y }));
    const nearest = away.filter((it) => norm(it) < SIGHT).sort((a, b) => norm(a) - norm(b))[0];
    if (!nearest) return (this.#order = { ...this.#order, fire: false });
    const off = Math.round((2 * this.#random() - 1) * OFF_MAX);
    const aim = (aimOf(Math.atan2(nearest.y, nearest.x)) + off + AIM_STEPS) % AIM_STEPS;
    return (this.#order = { ...this.#order, aim, fire: true });
  }

  #way(): number {
    return Math.floor(this.#random() * 3) - 1;
  }
}

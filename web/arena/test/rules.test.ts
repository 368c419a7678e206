/** The rules of the arena: tanks keep inside, guns reload, shots meet what is before them. */

import { describe, expect, test } from "vitest";
import { Bot } from "../src/bot.ts";
import { AIM_STEPS, aimed, aimOf, drive, meets, type Order, PILLARS, radians, readOrder, REST, SIDES, TANK_RADIUS, tankAt } from "../src/rules.ts";

/** Random numbers from a seed, from 0 to 1. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("what was aimed at is read back", () => {
  for (let aim = 0; aim < AIM_STEPS; aim++) expect(aimOf(radians(aim))).toBe(aim);
  expect(aimOf(-Math.PI / 2)).toBe(768);
});

test("an order shows in its step, and a gun reloads", () => {
  let tank = tankAt({ x: 48, y: 10 });
  let fired = 0;
  for (let step = 0; step < 24; step++) {
    const after = drive(tank, { ...REST, east: 1, aim: 256, fire: true });
    if (step === 0) expect(after.tank.velocity.x).toBeGreaterThan(0);
    tank = after.tank;
    fired += after.shot ? 1 : 0;
  }
  expect([fired, tank.shots, aimOf(tank.aim)]).toEqual([3, 3, 256]);
});

test("a shot flies from where it was seen, and from nowhere else", () => {
  const order: Order = { ...REST, aim: 256, fire: true };
  const loaded = (x: number, y: number) => ({ ...tankAt({ x, y }), reload: 1 });
  const sent = aimed(loaded(40, 10), order);
  expect(sent.from).toEqual([40 * 512, 10 * 512]);
  expect(aimed(tankAt({ x: 40, y: 10 }), order).from).toBeNull();
  // It was pushed, and did not know.
  expect(drive(loaded(41, 10.5), sent).shot?.from).toEqual({ x: 40, y: 10 });
  expect(drive(loaded(42, 10.5), sent).shot?.from).toEqual({ x: 42, y: 10.5 });
  // Nobody shoots out of a pillar: those do not stop what begins in them.
  const inside = drive(loaded(24, 15.4), { ...order, from: [24 * 512, 15 * 512 + 400] }).shot!;
  expect(inside.from.y).toBeLessThanOrEqual(20 - 3 - TANK_RADIUS);
});

test("a shot meets the first, and not what a pillar hides", () => {
  const shot = { from: { x: 10, y: 32 }, aim: 0, number: 1 };
  const at = (name: string, x: number, y: number) => [name, { x, y }] as const;
  expect(meets(shot, [at("far", 35, 32), at("near", 20, 33), at("behind", 5, 32)])).toBe("near");
  expect(meets(shot, [at("hidden", 60, 32)])).toBeUndefined();
  expect(meets(shot, [at("beside", 20, 34)])).toBeUndefined();
});

test("nobody leaves the arena or enters a pillar", () => {
  const random = numbers(7);
  // How far a tank was from the nearest edge, and from the nearest pillar, at the least.
  const least = { edge: Number.POSITIVE_INFINITY, pillar: Number.POSITIVE_INFINITY };
  for (let game = 0; game < 60; game++) {
    let tank = { ...tankAt({ x: 2 + 92 * random(), y: 2 + 60 * random() }), velocity: { x: 64 * random() - 32, y: 64 * random() - 32 } };
    for (let step = 0; step < 100; step++) {
      tank = drive(tank, { ...REST, east: Math.floor(3 * random()) - 1, south: Math.floor(3 * random()) - 1 }).tank;
      const { x, y } = tank.position;
      least.edge = Math.min(least.edge, x, y, SIDES.x - x, SIDES.y - y);
      least.pillar = Math.min(least.pillar, ...PILLARS.map((it) => Math.hypot(x - it.x, y - it.y) - it.radius));
    }
  }
  expect(least.edge).toBeGreaterThanOrEqual(TANK_RADIUS);
  expect(least.pillar).toBeGreaterThan(TANK_RADIUS - 1e-3);
});

describe("an order from another machine", () => {
  test("is read if it is one", () => {
    expect(readOrder({ ...REST, from: [1, 65_535] })).toEqual({ ...REST, from: [1, 65_535] });
  });

  test.each([
    null, 7, {}, { ...REST, east: 0.5 }, { ...REST, south: 1_000 }, { ...REST, aim: -1 }, { ...REST, aim: Number.NaN }, { ...REST, fire: 1 },
    { ...REST, from: [1] }, { ...REST, from: [1, 70_000] }, { ...REST, from: "x" }, { ...REST, east: "1" },
  ])("is none otherwise: %j", (it) => {
    expect(readOrder(it)).toBeUndefined();
  });
});

test("a bot turns, aims at the nearest, and holds its fire at nobody", () => {
  const bot = new Bot(numbers(1));
  const me = tankAt({ x: 48, y: 10 });
  const orders = Array.from({ length: 300 }, () => bot.order(me, [{ x: 60, y: 10 }, { x: 48, y: 40 }]));
  expect(orders.every(({ fire, aim }) => fire && (aim <= 40 || aim >= AIM_STEPS - 40))).toBe(true);
  expect(new Set(orders.map(({ east, south }) => `${east} ${south}`)).size).toBeGreaterThan(5);
  expect(bot.order(me, []).fire).toBe(false);
});

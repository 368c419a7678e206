import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { angle, bool, component, defineGame, float, type Gathering, type Infer, vec2 } from "../../src/api.js";
import { type OwnState, ownState } from "../../src/own/index.js";
import { hosting, options, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

const Car = component("car", { place: vec2(-512, 512, 1 / 64), heading: angle(1024), horn: bool() });
const race = defineGame("race", { tickHz: 60, own: { component: Car, tolerance: { place: { offBy: 0.1 }, heading: { turnedBy: 0.05 } } } });
const at = (x: number, more: Partial<Infer<typeof Car>> = {}): Infer<typeof Car> => ({ place: { x, y: 0 }, heading: 0, horn: false, ...more });

let server: TestServer;
const open: Gathering<never>[] = [];
const kept = <R extends Gathering<never>>(room: R): R => (open.push(room), room);

beforeAll(async () => {
  useBuiltWasm();
  server = await TestServer.start();
});
afterAll(() => server.stop());
afterEach(async () => {
  await Promise.all(open.splice(0).map((room) => room.leave()));
});

/** A host and a guest, both of whom step. */
async function rooms() {
  const host = kept(await race.host(hosting(server)));
  const guest = kept(await race.join(host.code, options(server)));
  for (const room of [host, guest]) room.run({});
  return { host, guest, a: ownState(host, Car), b: ownState(guest, Car) };
}

describe("a state of a player's own", () => {
  it("is what all others see of it, from member to member", async () => {
    const { host, guest, a, b } = await rooms();
    expect([a.of(guest.me), [...a.all()], b.of(0)]).toEqual([undefined, [], undefined]);
    a.set(at(10, { horn: true }));
    b.set(at(-3.25, { heading: Math.PI }));
    expect(b.of(guest.me)).toMatchObject({ place: { x: -3.25, y: 0 }, horn: false });
    await until(() => a.of(1)?.place.x === -3.25 && b.of(0)?.place.x === 10);
    expect(b.of(0)).toEqual({ place: { x: 10, y: 0 }, heading: 0, horn: true });
    expect(Math.abs(a.of(1)!.heading)).toBeCloseTo(Math.PI, 1);
    expect([...b.all()].map(([player, { place }]) => [player, place.x])).toEqual([[0, 10], [1, -3.25]]);
    const seen = b.at(0, guest.serverTimeMs);
    expect(seen?.place.x).toBe(10);
    await until(() => a.primary !== undefined && a.primary === b.primary);
    await host.leave();
    await until(() => b.of(0) === undefined);
  });

  it("is seen at its new place at once after a teleport, and nowhere in between", async () => {
    const { a, b } = await rooms();
    a.set(at(0));
    await until(() => b.of(0) !== undefined);
    const seen: number[] = [];
    a.teleport();
    a.set(at(400));
    await until(() => {
      const x = b.of(0)!.place.x;
      seen.push(x);
      return x === 400;
    });
    expect(seen.filter((x) => x > 0.2 && x < 399.8)).toEqual([]);
  });

  it("moves on between what was sent", async () => {
    const { guest, host, a, b } = await rooms();
    let x = 0;
    host.run({ tick: () => a.set(at((x += 1) % 400)) });
    const seen = new Set<number>();
    guest.run({ tick: () => void seen.add(b.of(0)?.place.x ?? 0) });
    await until(() => seen.size > 20);
    // Steady motion is told rarely, and seen in each step.
    expect([...seen].some((x) => !Number.isInteger(x))).toBe(true);
  });

  it("is refused with what is wrong", async () => {
    const { host, a } = await rooms();
    const Other = component("plane", { height: float(0, 1, 0.5) });
    expect(() => ownState(host, Other)).toThrow("has the own state car, and not plane");
    expect(() => a.set(at(Number.NaN))).toThrow("car.place.x is NaN");
    const plain = kept(await defineGame("race", {}).host(hosting(server)));
    expect(() => ownState(plain, Car)).toThrow("no own state");
    const wrong = defineGame("race", { own: { component: Car, tolerance: { plaice: { offBy: 1 } } } });
    await expect(wrong.host(hosting(server))).rejects.toMatchObject({ code: "bad_schema", message: expect.stringContaining("plaice") });
    const mistyped = defineGame("race", { own: { component: Car, tolerance: { place: { ofBy: 1 } as object } } });
    await expect(mistyped.host(hosting(server))).rejects.toThrow("ofBy");
    await host.leave();
    expect(() => a.set(at(1))).toThrow("the room is over");
    expect(() => a.teleport()).toThrow("the room is over");
  });

  it("of the simplest form needs no tolerances", async () => {
    const simple = defineGame("race", { own: Car });
    const room = kept(await simple.host(hosting(server)));
    const own: OwnState<typeof Car> = ownState(room, Car);
    own.set(at(1));
    expect(own.of(room.me)?.place.x).toBe(1);
  });
});

// Predicted actions: made at a guest, applied there at once, decided by the host with the same function.

import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { action } from "../../src/actions/index.js";
import { component, defineGame, type Entity, type Gathering, int, type } from "../../src/api.js";
import { hosting, options, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

const Tank = component("tank", { shells: int(0, 20), armour: int(0, 100) });
const Hut = component("hut", { rooms: int(0, 9) });
let sounds: string[] = [];

const game = defineGame("actions", {
  tickHz: 60,
  world: { components: [Tank, Hut] },
  predict: [Tank],
  actions: {
    shoot: action(type<{ target: Entity }>(), (acting, { target }) => {
      const tank = acting.get(acting.entity, Tank);
      if (tank === undefined) return "no_tank";
      acting.set(acting.entity, Tank, { ...tank, shells: Math.max(0, tank.shells - 1) });
      // Refused late, so that what was written is undone.
      if (tank.shells === 0) return "no_shells";
      const hit = acting.get(target, Tank);
      if (hit === undefined) throw new Error("there is no such target");
      acting.set(target, Tank, { ...hit, armour: hit.armour - 10 });
      if (acting.once("shot")) sounds.push(acting.isHost ? "host" : "guest");
      return undefined;
    }),
    build: action(type<{ rooms: number }>(), (acting, { rooms }) => {
      const hut = acting.spawn(acting.player);
      if (hut !== undefined) acting.set(hut, Hut, { rooms });
      if (acting.isHost && rooms > 5) return "too_large";
      return undefined;
    }),
    salute: type<string>(),
  },
});
type Room = Awaited<ReturnType<typeof game.host>>;

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

/** A host, a guest with a tank of so many shells, and another tank. Code is run within a step of the guest. */
async function field(shells: number) {
  sounds = [];
  const host = kept(await game.host(hosting(server)));
  const guest = kept(await game.join(host.code, options(server)));
  await until(() => host.players.size === 2);
  const [mine, target] = [host.world.spawn(guest.me), host.world.spawn()];
  host.world.set(mine, Tank, { shells, armour: 100 });
  host.world.set(target, Tank, { shells: 0, armour: 100 });
  host.run({ tick() {} });
  let job: ((room: Room) => void) | undefined;
  guest.run({
    tick(room) {
      if (room.isReplay) return;
      job?.(room);
      job = undefined;
    },
  });
  await until(() => guest.world.has(mine) && guest.world.has(target));
  const inStep = <R>(run: (room: Room) => R) => new Promise<R>((resolve) => (job = (room) => resolve(run(room))));
  return { host, guest, mine, target, inStep };
}

it("shows at its player in the same step, and at the host with all that it does, once", async () => {
  const { host, guest, mine, target, inStep } = await field(3);
  const seen = await inStep(({ world }) => {
    const why = world.act(mine, "shoot", { target });
    return { why, shells: world.get(mine, Tank)?.shells, armour: world.get(target, Tank)?.armour };
  });
  // The target is not this player's: it is the host's to change.
  expect(seen).toEqual({ why: undefined, shells: 2, armour: 100 });
  await until(() => host.world.get(mine, Tank)?.shells === 2);
  expect(host.world.get(target, Tank)?.armour).toBe(90);
  await until(() => guest.world.get(target, Tank)?.armour === 90);
  await until(() => guest.diagnostics["actionsPending"] === 0);
  expect([guest.world.get(mine, Tank)?.shells, sounds]).toEqual([2, ["guest", "host"]]);
});

it("is undone whole where it is refused, and not sent", async () => {
  const { host, guest, mine, target, inStep } = await field(0);
  const seen = await inStep(({ world, diagnostics }) => [
    world.act(mine, "shoot", { target }), world.get(mine, Tank)?.shells, diagnostics["actionsPending"],
  ]);
  expect(seen).toEqual(["no_shells", 0, 0]);
  await expect(inStep(({ world }) => {
    try {
      return world.act(target, "shoot", { target });
    } catch (thrown) {
      return (thrown as { code: string }).code;
    }
  })).resolves.toBe("refused");
  expect(host.diagnostics["actionsRefused"]).toBe(0);
  expect(guest.world.get(target, Tank)?.armour).toBe(100);
});

it("is refused by the host, which undoes what it spawned, and its player hears why", async () => {
  const { host, guest, mine, inStep } = await field(3);
  const refused = guest.next("actionRefused");
  expect(await inStep(({ world }) => world.act(mine, "build", { rooms: 7 }))).toBeUndefined();
  expect(await refused).toEqual({ entity: mine, name: "build", why: "by_game", reason: "too_large" });
  expect([...host.world.each(Hut)]).toEqual([]);
  await inStep(({ world }) => world.act(mine, "build", { rooms: 2 }));
  await until(() => [...guest.world.each(Hut)].length === 1);
  expect([...host.world.each(Hut)].map(([entity, hut]) => [host.world.owner(entity), hut.rooms])).toEqual([[guest.me, 2]]);
});

it("is refused if its function throws, and the fault is reported", async () => {
  const { guest, mine, inStep } = await field(3);
  // Node has no `reportError`.
  const reported = vi.spyOn(console, "error").mockImplementation(() => {});
  const seen = await inStep(({ world }) => [world.act(mine, "shoot", { target: 12345 }), world.get(mine, Tank)?.shells]);
  expect(reported).toHaveBeenCalledOnce();
  reported.mockRestore();
  expect(seen).toEqual(["failed", 3]);
  expect(guest.status).toBe("open");
});

it("is asked of the host where the game has no function for it", async () => {
  const { host, mine, guest, inStep } = await field(3);
  const asked = host.next("action");
  await inStep(({ world }) => world.act(mine, "salute", "hello"));
  expect(await asked).toEqual({ from: guest.me, entity: mine, name: "salute", value: "hello" });
});

it("tells a guest which components of which entities changed", async () => {
  const { host, guest, mine, target } = await field(3);
  guest.world.changes(Tank, Hut);
  host.world.set(mine, Tank, { shells: 1, armour: 50 });
  const changed = await until(() => {
    const found = guest.world.changes(Tank, Hut);
    return found.length > 0 && found;
  });
  expect(changed).toEqual([[mine, [Tank]]]);
  host.world.set(target, Hut, { rooms: 1 });
  expect(await until(() => guest.world.changes(Hut).map(([entity]) => entity)[0])).toBe(target);
  expect([guest.world.changes(Tank, Hut), host.world.changes(Tank)]).toEqual([[], []]);
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  angle, any, body, bool, bytes, component, defineGame, float, floatBits, type Gathering, int, near, oneOf, rotation, text, transform, type,
  unitVector, vec2, vec3,
} from "../../src/api.js";
import { hosting, options, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

const Tank = component("tank", { position: vec2(-256, 256, 1 / 512), heading: angle(1024), shells: int(0, 20) });
const tanks = defineGame("tanks", {
  tickHz: 60,
  world: { components: [Tank] },
  predict: [Tank],
  input: type<{ turn: -1 | 0 | 1; go: boolean }>(),
  actions: { reload: type<{ shells: number }>() },
});

const range = { min: -64, max: 64, step: 1 / 64 };
const All = component("all", {
  flag: bool(),
  count: int(-5, 300),
  price: float(0, 100, 0.25),
  ratio: floatBits(0, 1, 8),
  turn: angle(64),
  flat: vec2(-10, 10, 0.5),
  deep: vec3(-10, 10, 0.5).interpolate("none"),
  up: unitVector(12),
  spin: rotation(12),
  place: transform({ position: range, rotationBits: 10 }),
  thing: body({ position: range, rotationBits: 10, velocity: range, spin: range }),
  mood: oneOf("idle", "walk", "jump"),
  name: text(32),
  blob: bytes(8),
  extra: any<{ a: number[] }>(64).interpolate("none"),
}, { priority: 2 });
const everything = defineGame("everything", { world: { components: [All] } });
const none = { x: 0, y: 0, z: 0 };
const unturned = { ...none, w: 1 };
const one = {
  flag: true, count: 300, price: 12.25, ratio: 1, turn: 0, flat: { x: 1.5, y: -2 }, deep: { x: 1, y: 2, z: -3.5 }, up: { x: 0, y: 0, z: 1 },
  spin: unturned, place: { position: { x: 1, y: 2, z: 3 }, rotation: unturned },
  thing: { position: none, rotation: unturned, velocity: { x: 1, y: 0, z: 0 }, spin: none },
  mood: "walk" as const, name: "é 1", blob: new Uint8Array([1, 2]), extra: { a: [1, 2] },
};

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

describe("a world", () => {
  it("has what the host wrote, of every kind of field, rounded to its resolution", async () => {
    const a = kept(await everything.host(hosting(server)));
    const b = kept(await everything.join(a.code, options(server)));
    const entity = a.world.spawn();
    a.world.set(entity, All, one);
    a.world.set(a.world.spawn(b.me), All, { ...one, mood: "jump", name: "", count: -5 });
    const rounded = a.world.get(entity, All)!;
    await until(() => b.world.columns(All).length === 2);
    expect(b.world.get(entity, All)).toEqual(rounded);
    for (const key of ["flag", "count", "price", "ratio", "flat", "deep", "mood", "name", "blob", "extra"] as const) {
      expect(rounded[key]).toEqual(one[key]);
    }
    expect(rounded.up.z).toBeCloseTo(1, 2);
    expect(rounded.place.rotation.w).toBeCloseTo(1, 2);
    expect(rounded.thing.velocity).toEqual({ x: 1, y: 0, z: 0 });
    expect([...b.world.each(All)].map(([, all]) => all.mood)).toEqual(["walk", "jump"]);
    expect(b.world.shown(entity, All)?.name).toBe("é 1");
  });

  it("is read and written by columns as by rows", async () => {
    const a = kept(await everything.host(hosting(server)));
    for (let i = 0; i < 50; i++) a.world.set(a.world.spawn(), All, { ...one, count: i, name: `${i}` });
    const columns = a.world.columns(All);
    expect(columns.length).toBe(50);
    expect([...columns.entity]).toEqual([...a.world.entities]);
    columns.fields.price.fill(7.5);
    columns.fields.flat.x.fill(-10);
    columns.fields.mood.fill("idle");
    columns.fields.flag[3] = false;
    a.world.write(All, columns);
    const third = a.world.get(columns.entity[3]! as never, All)!;
    expect([third.price, third.flat.x, third.mood, third.flag, third.name]).toEqual([7.5, -10, "idle", false, "3"]);
    // Columns are the game's: they stay as they were.
    a.world.despawn(columns.entity[0]!);
    expect(columns.fields.name[0]).toBe("0");
    expect(a.world.columns(All).length).toBe(49);
  });

  it("knows owners, audiences and what is gone", async () => {
    const a = kept(await everything.host(hosting(server)));
    const b = kept(await everything.join(a.code, options(server)));
    await until(() => a.players.size === 2);
    const [shared, secret] = [a.world.spawn(b.me), a.world.spawn()];
    a.world.set(shared, All, one);
    a.world.set(secret, All, one);
    a.world.audience(secret, [a.me]);
    await until(() => b.world.has(shared));
    expect([b.world.owner(shared), b.world.has(secret), b.world.owner(secret)]).toEqual([b.me, false, undefined]);
    a.world.patch(shared, All, { count: 7 });
    a.world.transfer(shared);
    await until(() => b.world.owner(shared) === undefined && b.world.get(shared, All)?.count === 7);
    const despawned = b.next("despawned");
    a.world.despawn(shared);
    expect((await despawned).entity).toBe(shared);
    expect(b.world.get(shared, All)).toBeUndefined();
  });

  it("is not written by others, nor with what a field does not take", async () => {
    const a = kept(await everything.host(hosting(server)));
    const b = kept(await everything.join(a.code, options(server)));
    expect(() => b.world.spawn()).toThrow(expect.objectContaining({ code: "not_host" }));
    const entity = a.world.spawn();
    const set = (part: object) => () => a.world.set(entity, All, { ...one, ...part } as never);
    expect(set({ price: Number.NaN })).toThrow("all.price is NaN");
    expect(set({ mood: "sad" })).toThrow('all.mood is "sad"');
    expect(set({ place: { position: none } })).toThrow("all.place.rotation is undefined");
    expect(set({ name: 7 })).toThrow("all.name is 7");
    expect(() => a.world.remove(entity, Tank)).toThrow(expect.objectContaining({ code: "no_such_component" }));
    expect(() => a.world.patch(entity, All, {})).toThrow("to patch");
  });

  it("is a part of what host and guest must share", async () => {
    const a = kept(await everything.host(hosting(server)));
    const other = defineGame("everything", { world: { components: [component("all", { flag: bool() })] } });
    await expect(other.join(a.code, options(server))).rejects.toMatchObject({ code: "schema" });
    expect(() => component("x", { 7: bool() })).toThrow("is a number");
  });

  it("shows a member what is near its own", async () => {
    const Place = component("place", { at: vec2(-1_000, 1_000, 0.5) });
    const game = defineGame("near", { world: { components: [Place], interest: near(Place, "at", 50, 60) } });
    const a = kept(await game.host(hosting(server)));
    const b = kept(await game.join(a.code, options(server)));
    await until(() => a.players.size === 2);
    const put = (x: number, owner?: number) => {
      const entity = a.world.spawn(owner);
      a.world.set(entity, Place, { at: { x, y: 0 } });
      return entity;
    };
    const [own, close, far] = [put(0, b.me), put(40), put(500)];
    await until(() => b.world.has(own) && b.world.has(close));
    expect(b.world.has(far)).toBe(false);
    a.world.set(far, Place, { at: { x: 30, y: 0 } });
    await until(() => b.world.has(far));
  });
});

describe("prediction", () => {
  it("shows a player what its input does before the host has said so, and the host agrees", async () => {
    const a = kept(await tanks.host(hosting(server)));
    a.on("playerJoined", ({ id, isMe }) => {
      if (!isMe) a.world.set(a.world.spawn(id), Tank, { position: { x: 0, y: 0 }, heading: 0, shells: 20 });
    });
    const b = kept(await tanks.join(a.code, options(server)));
    const step = (room: typeof a) => {
      for (const [entity, tank] of room.world.simulated(Tank)) {
        const input = room.input(room.world.owner(entity)!) ?? { turn: 0, go: false };
        const x = tank.position.x + (input.go ? 0.5 : 0);
        room.world.set(entity, Tank, { ...tank, position: { x, y: 0 } });
      }
    };
    a.run({ tick: step });
    let stepped: { before: number; after: number } | undefined;
    b.run({
      tick(room) {
        room.sendInput({ turn: 0, go: true });
        const before = [...room.world.each(Tank)][0]?.[1].position.x;
        step(room);
        const after = [...room.world.each(Tank)][0]?.[1].position.x;
        if (!room.isReplay && before !== undefined && after !== undefined) stepped ??= { before, after };
      },
    });
    await until(() => stepped);
    // Its own input shows within the same step.
    expect(stepped!.after - stepped!.before).toBe(0.5);
    await until(() => [...a.world.each(Tank)][0]![1].position.x > 10);
  });

  it("is judged by what a player saw", async () => {
    const a = kept(await tanks.host(hosting(server)));
    const b = kept(await tanks.join(a.code, options(server)));
    const entity = a.world.spawn();
    let seen: { back: number; x: number; now: number } | undefined;
    a.run({
      tick(room) {
        const x = (room.tickNumber % 400) / 4;
        room.world.set(entity, Tank, { position: { x, y: 0 }, heading: 0, shells: 0 });
        if (room.input(b.me) === undefined || !room.players.has(b.me)) return;
        const { backMs, columns } = room.world.rewind(b.me, Tank);
        if (backMs > 0 && columns.length === 1) seen ??= { back: backMs, x: columns.fields.position.x[0]!, now: x };
      },
    });
    b.run({
      tick: (room) => {
        for (const [entity] of room.world.each(Tank)) room.world.shown(entity, Tank);
        room.sendInput({ turn: 0, go: false });
      },
    });
    const { back, x, now } = await until(() => seen);
    expect(back).toBeLessThanOrEqual(250);
    expect(x).not.toBe(now);
  });

  it("asks the host for actions, whose values are known by their name", async () => {
    const a = kept(await tanks.host(hosting(server)));
    const b = kept(await tanks.join(a.code, options(server)));
    await until(() => a.players.size === 2);
    const entity = a.world.spawn(b.me);
    a.world.set(entity, Tank, { position: { x: 0, y: 0 }, heading: 0, shells: 0 });
    await until(() => b.world.has(entity));
    const action = a.next("action");
    b.world.act(entity, "reload", { shells: 3 });
    expect(await action).toEqual({ from: b.me, entity, name: "reload", value: { shells: 3 } });
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Gathering, host, type HostOptions, join, type JoinOptions } from "../../src/api.js";
import { hosting, options, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

let server: TestServer;
const open: Gathering<never>[] = [];

beforeAll(async () => {
  useBuiltWasm();
  server = await TestServer.start();
});
afterAll(() => server.stop());
afterEach(async () => {
  await Promise.all(open.splice(0).map((room) => room.leave()));
});

function kept<R extends Gathering<never>>(room: R): R {
  open.push(room);
  return room;
}

const hosts = async (more: HostOptions = {}) => kept(await host("dots", { ...hosting(server), ...more }));
const joins = async (code: string, more: JoinOptions = {}) => kept(await join("dots", code, { ...options(server), ...more }));

describe("a spectator", () => {
  it("watches, and is no player", async () => {
    const a = await hosts({ maxPlayers: 2, spectators: 1 });
    const told: string[] = [];
    a.on("spectatorJoined", ({ name, isSpectator }) => void told.push(`${name} ${isSpectator}`));
    a.on("spectatorLeft", ({ name, reason }) => void told.push(`${name} ${reason}`));
    await joins(a.code, { name: "bob" });
    const watcher = await joins(a.code, { name: "wei", spectate: true });
    await until(() => told.length === 1);
    a.set("x", 1);
    await until(() => watcher.get("x") === 1);
    for (const room of [a, watcher]) {
      expect([room.players.size, [...room.spectators.keys()]]).toEqual([2, [watcher.me]]);
    }
    expect([a.isSpectator, watcher.isSpectator]).toEqual([false, true]);
    expect(() => watcher.sendInput(1)).toThrow(expect.objectContaining({ code: "spectator" }));
    expect(() => watcher.broadcast("chat", 1)).toThrow(expect.objectContaining({ code: "spectator" }));
    await expect(joins(a.code, { spectate: true })).rejects.toMatchObject({ code: "spectators_full" });
    await watcher.leave();
    await until(() => told.length === 2);
    expect(told).toEqual(["wei true", "wei left"]);
    expect(a.spectators.size).toBe(0);
  });

  it("sees a room later, where its host says so", async () => {
    const a = await hosts({ spectatorDelayMs: 1_000 });
    const watcher = await joins(a.code, { spectate: true });
    const began = performance.now();
    a.set("x", 1);
    await until(() => watcher.get("x") === 1);
    expect(performance.now() - began).toBeGreaterThan(990);
    expect([a.players.size, a.spectators.size, watcher.players.size, watcher.spectators.size]).toEqual([1, 0, 1, 1]);
    await expect(hosts({ spectatorDelayMs: 5 })).rejects.toThrow(/1000 to 300000 ms/);
  });
});

describe("a host", () => {
  it("hands its part over and stays, with all the state", async () => {
    const a = await hosts();
    const [b, c] = [await joins(a.code), await joins(a.code)];
    a.set("x", 7);
    await until(() => c.get("x") === 7);
    expect(() => b.handOver()).toThrow(expect.objectContaining({ code: "not_host" }));
    expect(() => a.handOver(99)).toThrow(expect.objectContaining({ code: "not_handed_over" }));
    a.handOver(c.me);
    await until(() => c.isHost && c.status === "open");
    await until(() => a.host === c.me && b.host === c.me && a.status === "open");
    expect([a.isHost, a.status, c.get("x")]).toEqual([false, "open", 7]);
    c.set("x", 8);
    await until(() => a.get("x") === 8);
  });

  it("that is alone has nobody to hand its part to, and without migration none", async () => {
    const alone = await hosts();
    expect(() => alone.handOver()).toThrow(expect.objectContaining({ code: "not_handed_over" }));
    const fixed = await hosts({ hostMigration: false });
    await joins(fixed.code);
    expect(() => fixed.handOver()).toThrow(expect.objectContaining({ code: "not_handed_over" }));
  });

  it("sees its own round trip to the server", async () => {
    const a = await hosts();
    expect(await until(() => a.pingMs)).toBeGreaterThan(0);
  });
});

describe("options", () => {
  it("are taken by the core, and what is out of bounds is named", async () => {
    const a = await hosts({ preset: "action", presenceMs: 1_500, graceMs: 0, protocol: "reliable", renderDelay: { minMs: 20, maxMs: 200 } });
    expect(a.tickHz).toBe(60);
    const b = await joins(a.code, { preset: "action", migrationGraceMs: 1_000, rewindMaxMs: 100 });
    expect(b.tickHz).toBe(60);
    for (const [wrong, name] of [
      [{ presenceMs: 10 }, /presence/],
      [{ spectators: 300 }, /spectators/],
      [{ renderDelay: { minMs: 9, least: 1 } }, /least/],
      [{ protocol: "tcp" }, /protocol/],
    ] as [HostOptions, RegExp][]) {
      await expect(hosts(wrong)).rejects.toMatchObject({ code: "bad_options", message: expect.stringMatching(name) });
    }
  });
});

import { afterAll, beforeAll, expect, it } from "vitest";
import { host, join, type Room } from "../../src/api.js";
import { hosting, options, TestServer, useBuiltWasm } from "../support/server.js";

let server: TestServer;

beforeAll(async () => {
  useBuiltWasm();
  server = await TestServer.start();
});
afterAll(() => server.stop());

/** Waits for what views wait for, until it holds. */
async function changesUntil(room: Room, holds: () => boolean): Promise<void> {
  while (!holds()) await room.next("changed");
}

it("a room says what views wait for: others' writes, its own, players and the end", async () => {
  const a = await host("dots", hosting(server));
  const b = await join("dots", a.code, options(server));
  await changesUntil(a, () => a.players.size === 2);

  const own = a.next("changed");
  const before = a.version;
  a.set("score", 1);
  expect(a.version).not.toBe(before);
  expect(await own).toEqual({ version: a.version });

  await changesUntil(b, () => b.get("score") === 1);
  const version = b.version;
  b.get("score");
  b.entries("s");
  expect(b.version).toBe(version);

  await a.stop();
  await changesUntil(b, () => b.status === "closed").catch(() => {});
  expect(b.status).toBe("closed");
  expect(b.version).not.toBe(version);
});

it("the end of a room is told to views, too", async () => {
  const a = await host("dots", hosting(server));
  const told: string[] = [];
  a.on("changed", () => void told.push(a.status));
  await a.leave();
  expect(told.at(-1)).toBe("closed");
});

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { host, join } from "../../src/api.js";
import { options, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

let server: TestServer;
beforeAll(async () => {
  useBuiltWasm();
  server = await TestServer.start();
});
afterAll(() => server.stop());
afterEach(() => void vi.restoreAllMocks());

/** Instances from here on trap in `name` once the test says so. */
function trapsIn(name: string): { now: boolean } {
  const trap = { now: false };
  const instantiate = WebAssembly.instantiate.bind(WebAssembly) as (module: WebAssembly.Module, imports: object) => Promise<WebAssembly.Instance>;
  vi.spyOn(WebAssembly, "instantiate").mockImplementation((async (module: WebAssembly.Module, imports: object) => {
    const { exports } = await instantiate(module, imports);
    const real = exports[name] as (...args: number[]) => number;
    const trapping = (...args: number[]) => {
      if (trap.now) throw new WebAssembly.RuntimeError("unreachable");
      return real(...args);
    };
    return { exports: { ...exports, [name]: trapping } };
  }) as never);
  return trap;
}

describe("a defect of the core", () => {
  it.each(["poll", "tick", "next_packet", "packet", "set"])("in %s ends its room, and no other", async (name) => {
    const trap = trapsIn(name);
    const a = await host("dots", options(server));
    vi.restoreAllMocks();
    const other = await host("dots", options(server));
    await until(() => a.tickNumber > 10);
    const guest = await join("dots", a.code, options(server));
    a.run({});
    trap.now = true;
    if (name === "set") expect(() => a.set("x", 1)).toThrow(expect.objectContaining({ code: "defect" }));
    const why = await a.closed;
    expect([why.code, a.status]).toEqual(["defect", "closed"]);
    expect(why.message).toContain("unreachable");
    // What is left of it is harmless.
    expect([a.get("x"), a.keys(), a.isHost, [...a.world.entities]]).toEqual([undefined, [], false, []]);
    expect(() => a.set("x", 1)).toThrow();
    await a.leave();
    other.set("x", 1);
    expect(other.get("x")).toBe(1);
    const next = await host("dots", options(server));
    // The others do not wait for a silence: its connection was closed.
    await until(() => guest.isHost || guest.status === "closed");
    for (const room of [other, next, guest]) await room.leave();
  });
});

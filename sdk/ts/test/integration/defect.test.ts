import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { component, defineGame, host, int, join } from "../../src/api.js";
import { ownState } from "../../src/own/index.js";
import { record } from "../../src/recording/index.js";
import { rollback } from "../../src/rollback/index.js";
import { hosting, options, TestServer, useBuiltWasm } from "../support/server.js";
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
    const a = await host("dots", hosting(server));
    vi.restoreAllMocks();
    const other = await host("dots", hosting(server));
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
    const next = await host("dots", hosting(server));
    // The others do not wait for a silence: its connection was closed.
    await until(() => guest.isHost || guest.status === "closed");
    for (const room of [other, next, guest]) await room.leave();
  });

  it("in a step of a lane ends the room with its recording and own states, and what is left of them is harmless", async () => {
    const trap = trapsIn("lane_step");
    const Own = component("own", { n: int(0, 9) });
    const room = await defineGame("dots", { own: Own }).host(hosting(server));
    room.run({});
    const own = ownState(room, Own);
    own.set({ n: 1 });
    const recording = record(room);
    const read = new Response(recording.stream).blob().then(() => "read", (thrown: unknown) => thrown);
    const lane = rollback(room, { players: [0, 1], begin: room.tickNumber + 1 }, { state: 1, step: (state: number) => state + 1 });
    let over = 0;
    lane.on("over", () => void (over += 1));
    await until(() => lane.advance(0 as never) > 0);
    trap.now = true;
    expect(() => lane.advance(0 as never)).toThrow(expect.objectContaining({ code: "defect" }));
    expect([lane.isOver, over, lane.advance(0 as never), lane.diagnostics, lane.settled]).toEqual([true, 1, 0, undefined, undefined]);
    expect(lane.state).toBeGreaterThan(1);
    lane.end();
    expect((await room.closed).code).toBe("defect");
    expect(await read).toMatchObject({ code: "defect" });
    recording.stop();
    expect(recording.figures.packets).toBeGreaterThanOrEqual(0);
    expect([own.of(0), [...own.all()], own.primary]).toEqual([undefined, [], undefined]);
    expect(() => own.set({ n: 2 })).toThrow("the room is over");
  });
});

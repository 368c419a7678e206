// What a lane does with what its core says, where a room would take long to bring it about.

import { describe, expect, it } from "vitest";
import { share, type RoomInside } from "../../src/room/inside.js";
import { type KeptGame, rollback } from "../../src/rollback/index.js";
import type { Room } from "../../src/room/types.js";
import type { Data } from "../../src/value/data.js";

/** A core that asks for what its test says. */
class ScriptedCore {
  readonly isDead = false;
  /** What each step asks for: `[request, tick]`. */
  readonly steps: [request: number, tick: number][][] = [];
  readonly events: Data[] = [];
  readonly sums: number[][] = [];
  hasLane = true;
  private requests: [number, number][] = [];
  private tick = 0;
  private out: Data = null;

  private readonly exports: Record<string, (...args: number[]) => number> = {
    lane_begin: () => 0,
    lane_step: () => {
      this.requests = this.steps.shift() ?? [];
      return this.requests.length > 0 ? 1 : 0;
    },
    lane_request: () => {
      const [request, tick] = this.requests.shift() ?? [0, 0];
      this.tick = tick;
      return request;
    },
    lane_tick: () => this.tick,
    lane_input: (player) => this.gives(player === 0 ? 7 : undefined, 1),
    lane_saved: (...sum) => this.sums.push(sum),
    lane_event: () => this.gives(this.events.shift(), 1),
    lane_diagnostics: () => this.gives(this.hasLane ? { next: 1 } : undefined, 1),
    lane_end: () => 0,
  };

  call = (run: (exports: never) => number) => run(this.exports as never);
  ask = this.call;
  put = (bytes: Uint8Array) => bytes.length;
  putValues = () => 0;
  value = () => this.out;

  private gives(value: Data | undefined, result: number): number {
    this.out = value ?? null;
    return value === undefined ? 0 : result;
  }
}

function laneOf(game: Partial<KeptGame<Data, number>> = {}) {
  const core = new ScriptedCore();
  const room = {} as Room;
  const inside = { core, me: 0, isClosed: false, now: () => 0, soon() {}, assertOpen() {}, acceptedInput: (_: number, input: Data) => input };
  share(room, inside as unknown as RoomInside);
  return { core, lane: rollback(room, { players: [0, 9], begin: 1 }, { advance() {}, ...game }) };
}

const [SAVE, LOAD, ADVANCE, REPLAY] = [1, 2, 3, 4];

describe("a lane", () => {
  it("tells that this member was away for too long, and of a player by its id", () => {
    const { core, lane } = laneOf();
    const told: unknown[] = [];
    lane.on("lost", (it) => void told.push(it));
    lane.on("desync", (it) => void told.push(it));
    core.events.push({ type: "lost", oldest: 70 }, { type: "desync", player: 1, tick: 5, isExact: true }, { type: "desync", tick: 6, isExact: false });
    expect(lane.advance(1)).toBe(0);
    expect(told).toEqual([{ oldest: 70 }, { player: 9, tick: 5, isExact: true }, { tick: 6, isExact: false }]);
  });

  it("does what is asked in order, and counts steps that are new", () => {
    const done: unknown[] = [];
    let state = 0;
    const { core, lane } = laneOf({
      advance: (inputs, { tick, isReplay }) => {
        state += 1;
        done.push([tick, isReplay, [...inputs.values()].map(({ status, input }) => [status, input])]);
      },
      save: () => state,
      load: (saved) => void (state = saved),
      checksum: (saved) => 2n ** 63n + BigInt(saved),
    });
    core.steps.push([[SAVE, 1], [ADVANCE, 1]], [[SAVE, 2], [ADVANCE, 2]], [[LOAD, 2], [REPLAY, 2], [SAVE, 3], [ADVANCE, 3]]);
    expect(lane.advance(1)).toBe(3);
    const inputs = [["known", 7], ["none", undefined]];
    expect(done).toEqual([[1, false, inputs], [2, false, inputs], [2, true, inputs], [3, false, inputs]]);
    expect(state).toBe(3);
    // The 64 bits of a checksum cross in two halves.
    expect(core.sums).toEqual([[1, 0, -0x80000000], [2, 1, -0x80000000], [3, 2, -0x80000000]]);
  });

  it("ends when a state is asked for that it does not have, and when the core has dropped it", () => {
    const { core, lane } = laneOf({ save: () => 1, load() {} });
    core.steps.push([[LOAD, 4]]);
    let over = 0;
    lane.on("over", () => void (over += 1));
    expect(() => lane.advance(1)).toThrow("step 4");
    expect([lane.isOver, over]).toEqual([true, 1]);
    const other = laneOf();
    other.lane.on("over", () => void (over += 1));
    other.core.hasLane = false;
    expect([other.lane.advance(1), other.lane.advance(1), other.lane.isOver, over]).toEqual([0, 0, true, 2]);
  });
});

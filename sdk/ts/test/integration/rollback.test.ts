import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { defineGame, type Gathering, type PlayerId, type StandardSchema, type TicketStore, type } from "../../src/api.js";
import { type KeptGame, type PlayerInputs, rollback, type RollbackConfig, type StateGame } from "../../src/rollback/index.js";
import { hosting, options, TestNetwork, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

/** What a player presses: a number that its score takes in. */
const duel = defineGame("duel", { tickHz: 60, input: type<number>() });

type Duel = { sums: { [player: string]: number }; steps: number };
/** A state that depends on each input and on the order of steps. */
const game = (heard: (inputs: PlayerInputs<number>, isReplay: boolean) => void = () => {}): StateGame<number, Duel> => ({
  state: { sums: {}, steps: 0 },
  step(state, inputs, { isReplay }) {
    heard(inputs, isReplay);
    for (const [player, { input = 0 }] of inputs) state.sums[player] = ((state.sums[player] ?? 0) * 31 + input + state.steps) % 1_000_003;
    state.steps += 1;
  },
});

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

/** A host and guests, and what their lanes begin with. */
async function rooms(guests: number, more: Partial<RollbackConfig> = {}) {
  const host = kept(await duel.host(hosting(server)));
  const others = [];
  for (let i = 0; i < guests; i++) others.push(kept(await duel.join(host.code, options(server))));
  const all = [host, ...others];
  await until(() => all.every((room) => room.players.size === all.length));
  const config: RollbackConfig = { players: [0, 1], begin: host.tickNumber + 5, inputDelay: 0, ...more };
  return { host, others, config };
}

interface Advances {
  advance(input?: number): number;
}

/** Plays until something holds. Each player presses another number in each call. */
async function play(lanes: readonly Advances[], holds: () => boolean): Promise<void> {
  let pressed = 0;
  await until(() => {
    lanes.forEach((lane, i) => lane.advance((pressed += i + 1) % 97));
    return holds();
  });
}

/** Waits until all have the same settled step, and gives what they have at it. */
async function agreed<S>(lanes: readonly (Advances & { readonly settled: { tick: number; state: S } | undefined })[], from: number): Promise<S[]> {
  const seen = lanes.map(() => new Map<number, S>());
  let found: S[] | undefined;
  await play(lanes, () => {
    lanes.forEach(({ settled }, i) => settled !== undefined && seen[i]!.set(settled.tick, structuredClone(settled.state)));
    const tick = [...seen[0]!.keys()].find((tick) => tick >= from && seen.every((states) => states.has(tick)));
    if (tick !== undefined) found = seen.map((states) => states.get(tick)!);
    return tick !== undefined;
  });
  return found!;
}

describe("a rollback lane", () => {
  it("goes back when a guess was wrong, and all have the same settled state", async () => {
    const { host, others: [guest], config } = await rooms(1);
    const statuses = new Set<string>();
    let replays = 0;
    const a = rollback(host, config, game());
    const b = rollback(guest!, config, game((inputs, isReplay) => {
      for (const { status } of inputs.values()) statuses.add(status);
      if (isReplay) replays += 1;
    }));
    expect([a.state, a.settled?.tick, a.isOver]).toEqual([{ sums: {}, steps: 0 }, config.begin, false]);
    await play([a, b], () => [a, b].every(({ diagnostics }) => diagnostics!.rollbacks > 3));
    const [at, there] = await agreed([a, b], config.begin + 60);
    expect(at).toEqual(there);
    expect(at!.steps).toBeGreaterThanOrEqual(60);
    expect(Object.keys(at!.sums)).toEqual(["0", "1"]);
    expect([...statuses]).toEqual(expect.arrayContaining(["predicted", "known"]));
    expect(replays).toBe(b.diagnostics!.replayed);
    expect([a.diagnostics!.desyncs, b.diagnostics!.desyncs]).toEqual([0, 0]);
    expect(a.state.steps).toBe(a.diagnostics!.next - config.begin);
  });

  it("gives the guess in place of an input that came too late, to all and for good", async () => {
    const { host, others: [guest], config } = await rooms(1, { window: 12, patience: 0 });
    const statuses = new Set<string>();
    const a = rollback(host, config, game());
    const b = rollback(guest!, config, game((inputs) => statuses.add(inputs.get(1)!.status)));
    await play([a, b], () => statuses.has("known"));
    // The guest hangs: the host plays on without it.
    const hung = a.settled!.tick;
    await play([a], () => a.settled!.tick > hung + 20);
    const [at, there] = await agreed([a, b], a.settled!.tick + 10);
    expect(at).toEqual(there);
    expect(statuses).toContain("missed");
    expect(b.diagnostics!.missed).toBeGreaterThan(0);
  });

  it("gives each step what a member that went back has, too: no order of keys, no -0, and nobody's changes in between", async () => {
    const { host, config } = await rooms(1, { patience: 0, window: 4 });
    const keys: string[] = [];
    const zeros: number[] = [];
    const a = rollback(host, config, {
      state: { z: 0, count: 0 } as Record<string, number>,
      step(state) {
        keys.push(Object.keys(state).join(""));
        zeros.push(state["a"]!);
        return { z: 0, count: state["count"]! + 1, a: -0, left: undefined as never };
      },
    });
    await play([a], () => {
      a.state["count"] = 1_000;
      return keys.length > 3;
    });
    expect(keys.slice(0, 3)).toEqual(["countz", "acountz", "acountz"]);
    expect(zeros.slice(1).every((zero) => Object.is(zero, 0))).toBe(true);
    a.advance(1);
    expect(a.settled!.state["count"]).toBeLessThan(1_000);
  });

  it("says `none` of a player that has sent nothing yet", async () => {
    const { host, others: [guest], config } = await rooms(1, { patience: 0, window: 4 });
    const first: unknown[] = [];
    const a = rollback(host, config, game((inputs) => first.push(inputs.get(1))));
    await play([a], () => first.length > 3);
    expect(first[0]).toEqual({ status: "none", input: undefined });
    expect(guest!.status).toBe("open");
  });

  it("tells both players of a step that is not the same everywhere", async () => {
    // The order of players is that of the lane: the guest is the first.
    const { host, others: [guest], config } = await rooms(1, { players: [1, 0] });
    const told: [string, PlayerId | undefined, number][] = [];
    const a = rollback(host, config, game());
    const b = rollback(guest!, config, {
      ...game(),
      step(state: Duel, inputs: PlayerInputs<number>) {
        for (const [player, { input = 0 }] of inputs) state.sums[player] = (state.sums[player] ?? 0) + input;
        return { ...state, steps: state.steps + 1, ...(state.steps > 20 ? { own: Math.random() } : {}) };
      },
    });
    a.on("desync", ({ player, tick }) => void told.push(["host", player, tick]));
    b.on("desync", ({ player, tick }) => void told.push(["guest", player, tick]));
    await play([a, b], () => told.length >= 2);
    expect(told.map(([at, player]) => [at, player]).sort()).toEqual([["guest", 0], ["host", 1]]);
    for (const [, , tick] of told) expect(tick).toBeGreaterThanOrEqual(config.begin);
    expect(a.diagnostics!.desyncs).toBe(1);
  });

  it("goes on when a player left, and is watched by who is none", async () => {
    const { host, others: [guest, watcher], config } = await rooms(2, { spectatorDelay: 10 });
    const a = rollback(host, config, game());
    const b = rollback(guest!, config, game());
    const c = rollback(watcher!, config, game());
    const watch = { advance: () => c.advance() };
    await play([a, b, watch], () => c.state.steps > 10);
    await guest!.leave();
    expect(b.advance(1)).toBe(0);
    expect([b.isOver, b.diagnostics]).toEqual([true, undefined]);
    const left = a.settled!.tick;
    const states = new Map<number, Duel>();
    const watched: [Duel, Duel | undefined][] = [];
    await play([a, watch], () => {
      states.set(a.settled!.tick - config.begin, structuredClone(a.settled!.state));
      if (c.state.steps > left - config.begin && states.has(c.state.steps)) watched.push([c.state, states.get(c.state.steps)]);
      return watched.length > 3;
    });
    for (const [seen, there] of watched) expect(seen).toEqual(there);
  });

  it("lets a player that begins late catch up, and goes on after its connection was lost", async () => {
    const network = new TestNetwork();
    const host = kept(await duel.host(hosting(server)));
    const guest = kept(await duel.join(host.code, options(server, network)));
    await until(() => host.players.size === 2);
    const config: RollbackConfig = { players: [0, 1], begin: host.tickNumber + 2, inputDelay: 0 };
    const a = rollback(host, config, game());
    await play([a], () => a.settled!.tick > config.begin + 60);
    const b = rollback(guest, config, game());
    const late = a.settled!.tick;
    const [at, there] = await agreed([a, b], late + 5);
    expect(at).toEqual(there);
    expect(b.diagnostics!.missed).toBeGreaterThan(50);
    const before = network.dialled;
    network.cut();
    await play([a, b], () => network.dialled > before && guest.status === "open");
    const [after, alike] = await agreed([a, b], a.settled!.tick + 20);
    expect(after).toEqual(alike);
    expect([a.isOver, b.isOver, a.diagnostics!.desyncs, b.diagnostics!.desyncs]).toEqual([false, false, 0, 0]);
  });

  it("lets a page that was reloaded begin the lane again, and catch up with what it missed", async () => {
    const tickets = new Map<string, string>();
    const remember: TicketStore = { get: (key) => tickets.get(key), set: (key, value) => void tickets.set(key, value), remove: () => {} };
    const network = new TestNetwork();
    const host = kept(await duel.host(hosting(server)));
    const guest = kept(await duel.join(host.code, { ...options(server, network), remember, reconnect: false }));
    await until(() => host.players.size === 2 && tickets.size === 1);
    const config: RollbackConfig = { players: [0, 1], begin: host.tickNumber + 5 };
    let isHeard = false;
    const a = rollback(host, config, game((inputs) => void (isHeard = inputs.get(1)!.status === "known")));
    const b = rollback(guest, config, game());
    await play([a, b], () => b.settled!.tick > config.begin + 60);
    network.cut();
    await guest.closed;
    const again = kept((await duel.rejoin({ ...options(server), remember }))!);
    expect(again.me).toBe(1);
    const away = a.settled!.tick;
    const c = rollback(again, config, game());
    let lost = 0;
    c.on("lost", () => void (lost += 1));
    const [at, there] = await agreed([a, c], away + 30);
    expect(there).toEqual(at);
    // What it presses counts.
    isHeard = false;
    await play([a, c], () => isHeard);
    expect([lost, a.diagnostics!.desyncs, c.diagnostics!.desyncs]).toEqual([0, 0, 0]);
  });

  it("is followed by another, from its settled state: for a page that was away too long, or under another host", async () => {
    const { host, others: [guest], config } = await rooms(1);
    const a = rollback(host, config, game());
    const b = rollback(guest!, config, game());
    await play([a, b], () => b.settled!.tick > config.begin + 10);
    const { state } = a.settled!;
    const next = { ...config, session: 1, begin: host.tickNumber + 5 };
    const [c, d] = [rollback(host, next, { ...game(), state }), rollback(guest!, next, { ...game(), state })];
    expect([a.isOver, b.isOver]).toEqual([true, true]);
    const [at, there] = await agreed([c, d], next.begin + 20);
    expect(at).toEqual(there);
    expect(at!.steps).toBeGreaterThanOrEqual(state.steps + 20);
  });

  it("ends by `end`, by another lane, by a step that throws, and with its host", async () => {
    const { host, others: [guest], config } = await rooms(1);
    const ended = rollback(host, config, game());
    ended.end();
    ended.end();
    expect([ended.advance(1), ended.isOver, ended.settled, ended.state.steps]).toEqual([0, true, undefined, 0]);

    const first = rollback(host, config, game());
    const second = rollback(host, { ...config, session: 1, begin: host.tickNumber + 2 }, { ...game(), step: () => { throw new Error("a bug of the game"); } });
    expect([first.isOver, first.advance(1)]).toEqual([true, 0]);
    first.end();
    expect(second.isOver).toBe(false);
    let isOver = false;
    second.on("over", () => void (isOver = true));
    await expect(play([second], () => false)).rejects.toThrow("a bug of the game");
    expect([isOver, second.isOver, second.advance(1)]).toEqual([true, true, 0]);

    // An end that its game wants is told by nothing.
    let told = 0;
    const endsBy = (ends: () => void) => {
      const lane = rollback(host, { ...config, session: 7, begin: host.tickNumber + 2 }, {
        ...game(),
        step: (state: Duel) => {
          ends();
          return state;
        },
      });
      lane.on("over", () => void (told += 1));
      return lane;
    };
    const itself = endsBy(() => itself.end());
    await play([itself], () => itself.isOver);
    const another = endsBy(() => rollback(host, { ...config, session: 8, begin: host.tickNumber + 500 }, game()));
    await play([another], () => another.isOver);
    for (const lane of [itself, another]) expect([told, lane.state.steps, lane.diagnostics, lane.advance(1)]).toEqual([0, 0, undefined, 0]);

    const last = rollback(guest!, { ...config, session: 2, begin: guest!.tickNumber + 2 }, game());
    let over = 0;
    last.on("over", () => void (over += 1));
    await play([last], () => last.state.steps > 2);
    const { state } = last;
    await host.leave();
    await play([last], () => over > 0);
    await until(() => guest!.isHost);
    expect([over, last.isOver, last.advance(1)]).toEqual([1, true, 0]);
    expect(last.state.steps).toBeGreaterThanOrEqual(state.steps);
  });

  it("refuses what would go wrong later, and says what", async () => {
    const { host, config } = await rooms(1);
    const begins = (more: object, of: object = game()) => () => rollback(host, { ...config, ...more }, of as StateGame<number, Duel>);
    expect(begins({ players: [0] })).toThrow("players");
    expect(begins({ players: [0, 1], window: 49 })).toThrow("window");
    expect(begins({ widow: 4 })).toThrow("widow");
    expect(begins({}, {})).toThrow("has no `step`");
    expect(begins({}, { advance() {}, save: () => 1 })).toThrow("saves or loads alone");
    expect(begins({}, { ...game(), state: { x: Number.NaN } })).toThrow("x is NaN");
    expect(begins({}, { ...game(), state: "x".repeat(17_000) })).toThrow("16384");
    expect(() => rollback({} as typeof host, config, game())).toThrow("no room of this copy");

    const lane = rollback(host, { ...config, begin: host.tickNumber + 2 }, {
      ...game(),
      step: (state: Duel) => {
        lane.advance(1);
        return state;
      },
    });
    expect(() => lane.advance()).toThrow("has no input");
    // An input that cannot be sent ends nothing.
    expect(() => lane.advance("x".repeat(64) as never)).toThrow("64");
    expect(() => lane.advance(Number.NaN)).toThrow("NaN");
    expect(lane.isOver).toBe(false);
    await expect(play([lane], () => false)).rejects.toThrow("within a step of its lane");
    expect(lane.isOver).toBe(true);
  });

  it("asks the game's validator of inputs, and lets none through that it refuses", async () => {
    const small: StandardSchema<number> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => (typeof value === "number" && value < 10 ? { value } : { issues: [{ message: "too large" }] }),
      },
    };
    const checked = defineGame("duel", { tickHz: 60, input: small });
    const host = kept(await checked.host(hosting(server)));
    const guest = kept(await duel.join(host.code, options(server)));
    await until(() => host.players.size === 2);
    const inputs: unknown[] = [];
    const config = { players: [0, 1], begin: host.tickNumber + 3 };
    const a = rollback(host, config, game((given) => inputs.push(given.get(1)!.input)));
    const b = rollback(guest, config, game());
    await play([{ advance: () => a.advance(1) }, { advance: () => b.advance(50) }], () => host.diagnostics.refused > 0);
    expect(inputs.every((input) => input === undefined)).toBe(true);
    await play([{ advance: () => a.advance(1) }, { advance: () => b.advance(5) }], () => inputs.includes(5));
  });
});

describe("a lane of a game that keeps its state", () => {
  it("saves, loads and compares it, and what is under keys", async () => {
    const { host, others: [guest], config } = await rooms(1);
    /** Half of the state is the game's own, half is under a key. */
    const keeps = () => {
      const own = { sums: [0, 0], steps: 0 };
      let loads = 0;
      const of: KeptGame<number, typeof own> = {
        advance(inputs) {
          own.sums = [...inputs.values()].map(({ input = 0 }, i) => (own.sums[i]! * 31 + input + own.steps) % 1_000_003);
          own.steps += 1;
          lane.set("total", (lane.get<number>("total") ?? 0) + own.sums[0]! + own.sums[1]!);
        },
        save: () => structuredClone(own),
        load: (saved) => {
          loads += 1;
          Object.assign(own, structuredClone(saved));
        },
        checksum: ({ sums, steps }) => BigInt(sums[0]!) * 2n ** 40n + BigInt(sums[1]! * 1_000 + steps),
      };
      const room = lanes.length === 0 ? host : guest!;
      const lane = rollback(room, config, of);
      lanes.push(lane);
      return { lane, own, loads: () => loads };
    };
    const lanes: unknown[] = [];
    const [a, b] = [keeps(), keeps()];
    await play([a.lane, b.lane], () => a.loads() > 3 && b.loads() > 3);
    const totals = [new Map<number, number>(), new Map<number, number>()];
    const common = () => [...totals[0]!.keys()].find((tick) => tick > config.begin + 60 && totals[1]!.has(tick));
    await play([a.lane, b.lane], () => {
      [a, b].forEach(({ lane }, i) => {
        const settled = lane.settled<number>("total");
        if (settled !== undefined) totals[i]!.set(settled.tick, settled.value);
      });
      return common() !== undefined;
    });
    expect(totals[0]!.get(common()!)).toBe(totals[1]!.get(common()!));
    expect(a.own.steps).toBe(a.lane.diagnostics!.next - config.begin);
    expect(a.lane.states()).toEqual([["total", a.lane.get("total")]]);
    expect([a.lane.diagnostics!.desyncs, b.lane.diagnostics!.desyncs]).toEqual([0, 0]);
    expect([a.lane.remove("total"), a.lane.remove("total"), a.lane.get("total")]).toEqual([true, false, undefined]);
    a.lane.end();
    expect(() => a.lane.set("total", 1)).toThrow("over");
    expect(a.lane.states()).toEqual([]);
  });

  it("tells of one whose own state differs, by its checksum alone", async () => {
    const { host, others: [guest], config } = await rooms(1);
    const counts = (by: number): KeptGame<number, number> => {
      let steps = 0;
      return { advance: () => void (steps += by), save: () => steps, load: (saved) => void (steps = saved), checksum: (saved) => saved };
    };
    const a = rollback(host, config, counts(1));
    const b = rollback(guest!, config, counts(2));
    let told: PlayerId | undefined;
    a.on("desync", ({ player }) => void (told = player));
    await play([a, b], () => told !== undefined);
    expect(told).toBe(1);
  });
});

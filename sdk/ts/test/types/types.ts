import type { Account } from "../../src/online/index.js";
import { describe, expectTypeOf, it } from "vitest";
import {
  bool, component, type Data, defineGame, host, type Infer, int, oneOf, type PlayerId, type StandardSchema, type, vec2, type Vec2,
} from "../../src/api.js";
import { WebSocket } from "ws";
import { ownState } from "../../src/own/index.js";
import { record } from "../../src/recording/index.js";
import { type PlayerInputs, rollback } from "../../src/rollback/index.js";

type Tank = { x: number; y: number; name: string };
declare const round: StandardSchema<{ n: number }>;

const game = defineGame("tanks", {
  state: { round, "tank/*": type<Tank>(), "tank/*/aim": type<number>() },
  input: type<{ turn: -1 | 0 | 1 }>(),
  messages: { chat: type<string>(), hit: type<{ by: number }>() },
});

describe("a game's types", async () => {
  const room = await game.host();

  it("take the WebSocket of the package ws", () => {
    void game.join("K7QM", { WebSocket });
  });

  it("are known by key", () => {
    expectTypeOf(room.get("round")).toEqualTypeOf<{ n: number } | undefined>();
    expectTypeOf(room.interpolated(`tank/${1 as number}`)).toEqualTypeOf<Tank | undefined>();
    expectTypeOf(room.entries("tank/")).toExtend<[string, Tank | number][]>();
    expectTypeOf(room.entries("rou")).toEqualTypeOf<[key: string, value: { n: number }][]>();
    room.set("tank/1", { x: 0, y: 0, name: "a" });
    // @ts-expect-error a misspelt key
    room.get("tnak/1");
    // @ts-expect-error a prefix that no key has
    room.entries("bird/");
    // @ts-expect-error a field is missing
    room.set("tank/1", { x: 0, y: 0 });
    // @ts-expect-error a typed room takes no claims
    room.get<{ n: string }>("round");
  });

  it("are known of inputs", () => {
    room.sendInput({ turn: 1 });
    // @ts-expect-error out of its range
    room.sendInput({ turn: 2 });
    expectTypeOf(room.input(0)).toEqualTypeOf<{ turn: -1 | 0 | 1 } | undefined>();
    expectTypeOf(room.inputs()).toEqualTypeOf<[PlayerId, { turn: -1 | 0 | 1 }][]>();
  });

  it("are known of messages, and narrowed by their kind", () => {
    room.send("host", "chat", "hi");
    room.broadcast("hit", { by: 1 });
    // @ts-expect-error another kind's value
    room.send("host", "chat", { by: 1 });
    // @ts-expect-error no such kind
    room.broadcast("shout", "hi");
    room.on("message", (message) => {
      if (message.kind === "hit") expectTypeOf(message.value).toEqualTypeOf<{ by: number }>();
      else expectTypeOf(message.value).toEqualTypeOf<string>();
    });
  });

  it("are those of events", () => {
    room.on("playerLeft", ({ id, reason }) => {
      expectTypeOf(id).toEqualTypeOf<PlayerId>();
      expectTypeOf(reason).toEqualTypeOf<string>();
    });
    // @ts-expect-error no such event
    room.on("playerGone", () => {});
    expectTypeOf(room.next("hostChanged")).resolves.toHaveProperty("host");
  });
});

describe("an untyped room", async () => {
  const room = await host("dots");

  it("takes types as arguments, and is Data without", () => {
    expectTypeOf(room.get("any")).toEqualTypeOf<Data | undefined>();
    expectTypeOf(room.get<Tank>("tank/1")).toEqualTypeOf<Tank | undefined>();
    expectTypeOf(room.entries<Tank>("tank/")).toEqualTypeOf<[key: string, value: Tank][]>();
    expectTypeOf(room.inputs<{ dx: number }>()).toEqualTypeOf<[PlayerId, { dx: number }][]>();
    room.sendInput({ dx: 1 });
    room.set("any", { a: [1, "b"] });
    room.send("all", "whatever", 1);
  });
});

it("a definition with a misspelt part does not compile", () => {
  // @ts-expect-error `inputs` is not `input`
  expectTypeOf(defineGame("x", { inputs: type<number>() })).toBeObject();
});

describe("a world's types", async () => {
  const Tank = component("tank", { at: vec2(-1, 1, 0.5), mood: oneOf("idle", "walk"), alive: bool(), shells: int(0, 20) });
  const room = await defineGame("tanks", { world: { components: [Tank] }, actions: { shoot: type<{ at: number }>() } }).host();
  const entity = room.world.spawn();

  it("are those of its schema literals", () => {
    expectTypeOf<Infer<typeof Tank>>().toEqualTypeOf<{ at: Vec2; mood: "idle" | "walk"; alive: boolean; shells: number }>();
    room.world.set(entity, Tank, { at: { x: 0, y: 0 }, mood: "idle", alive: true, shells: 1 });
    // @ts-expect-error no such mood
    room.world.patch(entity, Tank, { mood: "sad" });
    // @ts-expect-error a field is missing
    room.world.set(entity, Tank, { at: { x: 0, y: 0 } });
    const { fields } = room.world.columns(Tank);
    expectTypeOf(fields.at).toEqualTypeOf<{ x: Float64Array; y: Float64Array }>();
    expectTypeOf(fields.shells).toEqualTypeOf<Float64Array>();
    expectTypeOf(fields.mood).toEqualTypeOf<("idle" | "walk")[]>();
  });

  it("are known of actions", () => {
    room.world.act(entity, "shoot", { at: 1 });
    // @ts-expect-error no such action
    room.world.act(entity, "jump", 1);
    room.on("action", ({ name, value }) => {
      expectTypeOf(name).toEqualTypeOf<"shoot">();
      expectTypeOf(value).toEqualTypeOf<{ at: number }>();
    });
  });
});

describe("a rollback lane's types", async () => {
  const room = await game.host();
  const config = { players: [0, 1], begin: 1 };

  it("are those of the game's input and of the state", () => {
    const lane = rollback(room, config, {
      state: { at: [0, 0], round: 1 },
      step(state, inputs, { tick, isReplay }) {
        expectTypeOf(state).toEqualTypeOf<{ at: number[]; round: number }>();
        expectTypeOf([tick, isReplay]).toEqualTypeOf<(number | boolean)[]>();
        for (const [player, given] of inputs) {
          expectTypeOf(player).toEqualTypeOf<PlayerId>();
          if (given.status === "none") expectTypeOf(given.input).toEqualTypeOf<undefined>();
          else expectTypeOf(given.input).toEqualTypeOf<{ turn: -1 | 0 | 1 }>();
        }
      },
    });
    lane.advance({ turn: 1 });
    // @ts-expect-error out of its range
    lane.advance({ turn: 2 });
    expectTypeOf(lane.state).toEqualTypeOf<{ at: number[]; round: number }>();
    expectTypeOf(lane.settled).toEqualTypeOf<{ readonly tick: number; readonly state: { at: number[]; round: number } } | undefined>();
    lane.on("desync", ({ player, isExact }) => {
      expectTypeOf(player).toEqualTypeOf<PlayerId | undefined>();
      expectTypeOf(isExact).toEqualTypeOf<boolean>();
    });
    // @ts-expect-error no such event
    lane.on("desynced", () => {});
    // @ts-expect-error a step gives the state back
    rollback(room, config, { state: { at: 1 }, step: () => ({ at: "1" }) });
  });

  it("are claimed where the room has none", async () => {
    const lane = rollback(await host("dots"), config, {
      state: 1,
      step: (state, inputs: PlayerInputs<{ dx: number }>) => state + (inputs.get(0)?.input?.dx ?? 0),
    });
    lane.advance({ dx: 1 });
    expectTypeOf(lane.state).toEqualTypeOf<number>();
  });

  it("are those of what a game saves", () => {
    const lane = rollback(room, config, {
      advance: (inputs) => expectTypeOf(inputs.get(0)!.input).toEqualTypeOf<{ turn: -1 | 0 | 1 } | undefined>(),
      save: () => new Float64Array(4),
      load: (saved) => expectTypeOf(saved).toExtend<Float64Array>(),
      checksum: (saved) => saved[0]!,
    });
    expectTypeOf(lane.get<number>("x")).toEqualTypeOf<number | undefined>();
    // @ts-expect-error only plain data has a state
    lane.state;
  });
});

describe("an own state's types", async () => {
  const Car = component("car", { place: vec2(-1, 1, 0.5), gear: int(0, 6) });
  const room = await defineGame("race", { own: Car }).host();
  const own = ownState(room, Car);

  it("are those of its component", () => {
    own.set({ place: { x: 0, y: 0 }, gear: 1 });
    // @ts-expect-error a field is missing
    own.set({ gear: 1 });
    expectTypeOf(own.of(0)).toEqualTypeOf<{ place: Vec2; gear: number } | undefined>();
    for (const [player, { gear }] of own.all()) expectTypeOf([player, gear]).toEqualTypeOf<number[]>();
    expectTypeOf(record(room).stream).toExtend<ReadableStream<Uint8Array>>();
  });
});

describe("an account's types", () => {
  const me = {} as Account;

  it("are those of the server's operations", () => {
    expectTypeOf(me.call("account.me", {})).resolves.toHaveProperty("account").toHaveProperty("id").toEqualTypeOf<string>();
    expectTypeOf(me.call("turn.mine", { limit: 3 })).resolves.toHaveProperty("rooms").toExtend<{ player_count: number }[]>();
    // @ts-expect-error no such operation
    void me.call("turn.steal", {});
    // @ts-expect-error a field is missing
    void me.call("turn.join", {});
    // @ts-expect-error operators alone may
    void me.call("admin.ban", { account: "p1" });
  });

  it("are the game's in its rooms, with the names of TypeScript", async () => {
    const room = await me.joinOrCreate<{ board: string }>({ rules: "draughts" }, { metadata: { mode: "blitz" } });
    expectTypeOf(room.state).toEqualTypeOf<{ board: string }>();
    expectTypeOf(room.view.state).toEqualTypeOf<{ board: string }>();
    expectTypeOf(room.view.stateVersion).toEqualTypeOf<number>();
    expectTypeOf(room.view.currentPlayer).toEqualTypeOf<string | null>();
    expectTypeOf(room.view.players[0]!.status).toEqualTypeOf<"active" | "resigned" | "timed_out">();
    room.on("turnStarted", ({ isMe, turn }) => expectTypeOf([isMe, turn]).toEqualTypeOf<(boolean | number)[]>());
    // @ts-expect-error no such event
    room.on("turnEnded", () => {});
    // @ts-expect-error a date is not JSON
    void room.move("move", { at: new Date() });
    for await (const { playerCount, phase } of me.turnRooms()) {
      expectTypeOf(playerCount).toEqualTypeOf<number>();
      expectTypeOf(phase).toEqualTypeOf<"waiting" | "playing" | "ended">();
    }
  });

  it("come into a realtime room", () => {
    void host("tanks", { account: me });
    // @ts-expect-error not an account
    void host("tanks", { account: { id: "p1" } });
  });
});

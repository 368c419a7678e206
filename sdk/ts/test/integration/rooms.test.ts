import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  createMatch, defineGame, float, type Gathering, host, type HostOptions, join, joinMatch, type OpenOptions, ParlorError, rejoin,
  type Room, type StandardSchema, type TicketStore, type,
} from "../../src/api.js";
import { hosting, options, TestNetwork, TestServer, useBuiltWasm } from "../support/server.js";
import { record, until } from "../support/waits.js";

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

const hosts = async (more: HostOptions = {}, network?: TestNetwork) => kept(await host("dots", { ...hosting(server, network), ...more }));
const joins = async (code: string, more: OpenOptions = {}, network?: TestNetwork) =>
  kept(await join("dots", code, { ...options(server, network), ...more }));

async function refusal(opening: Promise<unknown>): Promise<ParlorError> {
  const thrown = await opening.then(() => undefined, (thrown: unknown) => thrown);
  expect(thrown).toBeInstanceOf(ParlorError);
  return thrown as ParlorError;
}

describe("a room", () => {
  it("is open at once for who awaited it: code, players, its own id", async () => {
    const a = await hosts({ name: "ada" });
    expect(a.code).toMatch(/^[A-Z0-9]{4}$/);
    expect([a.me, a.host, a.isHost, a.status, a.tickHz, a.link]).toEqual([0, 0, true, "open", 30, "websocket"]);
    const b = await joins(a.code.toLowerCase(), { name: "bob" });
    expect([b.me, b.host, b.isHost]).toEqual([1, 0, false]);
    expect([...b.players.values()].map(({ name, isHost, isMe }) => [name, isHost, isMe])).toEqual([
      ["ada", true, false],
      ["bob", false, true],
    ]);
    await until(() => a.players.size === 2);
    const before = a.players;
    expect(a.players).toBe(before);
    await b.leave();
    await until(() => a.players.size === 1);
    expect(a.players).not.toBe(before);
    expect(b.status).toBe("closed");
    expect(await b.closed).toMatchObject({ code: "left" });
  });

  it("tells a listener that came right after `await` of all who were there", async () => {
    const a = await hosts();
    const b = await joins(a.code);
    const joined: number[] = [];
    b.on("playerJoined", ({ id }) => void joined.push(id));
    await until(() => joined.length === 2);
    expect(joined.sort()).toEqual([0, 1]);
  });

  it("has the same 200 keys at host and guest", async () => {
    const a = await hosts();
    const b = await joins(a.code);
    for (let i = 0; i < 200; i++) {
      a.set(`key/${i}`, { i, half: i + 0.5, text: `é${i}`, list: [i, null, true], bytes: new Uint8Array([i]), float: float(i) });
    }
    await until(() => b.keys("key/").length === 200);
    expect(b.get("key/7")).toEqual({ i: 7, half: 7.5, text: "é7", list: [7, null, true], bytes: new Uint8Array([7]), float: 7 });
    expect(b.entries("key/").map(([key]) => key)).toEqual([...b.keys("key/")]);
    expect(b.entries("key/")).toEqual(a.entries("key/"));
    const hash = await until(() => {
      const [here, there] = [a.stateHash, b.stateHash];
      return here !== undefined && here.hash === there?.hash && here;
    });
    expect(hash.hash).toBe(b.stateHash!.hash);
    expect(a.delete("key/7")).toBe(true);
    expect(a.delete("key/7")).toBe(false);
    await until(() => b.get("key/7") === undefined);
    expect(b.keys("key/")).toHaveLength(199);
  });

  it("shows a key to those alone for whom it was set", async () => {
    const a = await hosts();
    const [b, c] = [await joins(a.code), await joins(a.code)];
    a.setFor([b.me], "hand", [1, 2]);
    a.set("end", true);
    await until(() => b.get("end") === true && c.get("end") === true);
    expect(b.get("hand")).toEqual([1, 2]);
    expect(c.get("hand")).toBeUndefined();
  });

  it("is written by its host alone", async () => {
    const a = await hosts();
    const b = await joins(a.code);
    expect(() => b.set("x", 1)).toThrow(ParlorError);
    try {
      b.set("x", 1);
    } catch (thrown) {
      expect((thrown as ParlorError).code).toBe("not_host");
      expect((thrown as ParlorError).hint).not.toBe("");
    }
    expect(() => a.set("x", Number.NaN)).toThrow("the value is NaN");
    expect(() => a.set("x".repeat(65), 1)).toThrow(`the key "${"x".repeat(65)}" has 65 bytes`);
    expect(a.keys()).toEqual([]);
  });

  it("runs steps of its game: inputs go up, state comes down", async () => {
    const a = await hosts({ tickHz: 60 });
    const b = await joins(a.code);
    a.run({
      tick(room) {
        room.sendInput({ dx: 0 });
        for (const [player, { dx }] of room.inputs<{ dx: number }>()) {
          const dot = room.get<{ x: number }>(`dot/${player}`) ?? { x: 0 };
          room.set(`dot/${player}`, { x: dot.x + dx });
        }
      },
    });
    let steps = 0;
    const stop = b.run({
      tick(room) {
        steps += 1;
        room.sendInput({ dx: 2 });
        expect(room.input(room.me)).toEqual({ dx: 2 });
      },
    });
    const dot = await until(() => {
      const dot = b.interpolated<{ x: number }>("dot/1");
      return dot !== undefined && dot.x > 20 && dot;
    });
    expect(dot.x).toBeLessThanOrEqual(2 * (a.tickNumber + 1));
    stop();
    await Promise.resolve();
    const stopped = steps;
    await until(() => (b.update(), a.tickNumber > 60));
    expect(steps).toBe(stopped);
  });

  it("carries messages on every lane, and to whom they are for", async () => {
    const a = await hosts({ channels: { 16: "reliable" } });
    const [b, c] = [await joins(a.code, { channels: { 16: "reliable" } }), await joins(a.code, { channels: { 16: "reliable" } })];
    const [atA, atB, atC] = [record(a), record(b), record(c)];
    await until(() => a.players.size === 3 && b.players.size === 3);
    for (const lane of ["ordered", "reliable", "sequenced", "unreliable"] as const) b.send("host", "lane", lane, { lane });
    b.send(c.me, "whisper", { to: "c" });
    b.send([a.me, c.me], "both", 1);
    b.broadcast("chat", "hi");
    b.send("all", "stamped", 1, { inOrder: true, timed: true });
    c.send({ except: [a.me] }, "except", 2);
    b.sendBytes(16, "host", new Uint8Array([1, 2, 3]));
    const kinds = (all: typeof atA) => all.filter(({ type }) => type === "message").map(({ it }) => (it as { kind: string }).kind);
    await until(() => kinds(atA).length === 7 && atA.some(({ type }) => type === "bytes"));
    await until(() => kinds(atC).length === 5 && kinds(atB).length === 2);
    expect(kinds(atA).filter((kind) => kind === "lane")).toHaveLength(4);
    expect(kinds(atB).sort()).toEqual(["except", "stamped"]);
    expect(kinds(atC).sort()).toEqual(["both", "chat", "except", "stamped", "whisper"]);
    const stamped = atA.find(({ it }) => (it as { kind?: string }).kind === "stamped")!.it as { from: number; order: number };
    expect([stamped.from, typeof stamped.order]).toEqual([b.me, "number"]);
    const { eventTimeMs } = stamped as { eventTimeMs?: number };
    expect(Math.abs(a.serverTimeMs - eventTimeMs!)).toBeLessThan(10_000);
    expect(atA.filter(({ it }) => "eventTimeMs" in (it as object))).toHaveLength(1);
    expect(atA.find(({ type }) => type === "bytes")!.it).toMatchObject({ from: b.me, channel: 16, bytes: new Uint8Array([1, 2, 3]) });
    expect(() => b.send("host", "x", 1, { lane: "fast" as never })).toThrow("no lane");
    expect(() => b.send(99, "x", 1)).toThrow(ParlorError);
  });

  it("shares what players say of themselves", async () => {
    const a = await hosts();
    const b = await joins(a.code);
    b.setData("colour", "red");
    await until(() => a.players.get(1)?.data("colour") === "red");
    b.setData("colour", undefined);
    await until(() => a.players.get(1)?.data("colour") === undefined);
  });

  it("removes a player, with the host's reason", async () => {
    const a = await hosts();
    const b = await joins(a.code);
    await until(() => a.players.size === 2);
    a.kick(b.me, "rude");
    const why = await b.closed;
    expect(why.code).toBe("kicked");
    expect(why.message).toContain("rude");
    await until(() => a.players.size === 1);
    expect(() => b.send("host", "x", 1)).toThrow("the room is over");
    await expect(b.next("message")).rejects.toMatchObject({ code: "kicked" });
  });

  it("goes on where it was when its connection was cut: nothing reliable is lost", async () => {
    const network = new TestNetwork();
    const a = await hosts();
    const b = await joins(a.code, {}, network);
    const events = record(b);
    await until(() => a.players.size === 2);
    network.cut();
    await until(() => a.players.get(1)?.connected === false);
    for (let i = 0; i < 10; i++) a.broadcast("number", i);
    a.set("round", 3);
    await until(() => events.filter(({ type }) => type === "message").length === 10);
    const types = events.map(({ type }) => type).filter((type) => type.startsWith("conn") || type.startsWith("reconn"));
    expect(types).toEqual(["connectionLost", "reconnecting", "reconnected"]);
    expect(events.find(({ type }) => type === "reconnected")!.it).toEqual({ stateResynced: false });
    expect(events.filter(({ type }) => type === "message").map(({ it }) => (it as { value: number }).value)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await until(() => b.get("round") === 3);
    expect([b.me, network.dialled]).toEqual([1, 2]);
  });

  it("tries again while the network is down", async () => {
    const network = new TestNetwork();
    const a = await hosts();
    const b = await joins(a.code, {}, network);
    const events = record(b);
    network.isDown = true;
    network.cut();
    await until(() => events.filter(({ type }) => type === "reconnecting").length === 2);
    expect(b.status).toBe("reconnecting");
    network.isDown = false;
    await until(() => b.status === "open");
    expect(b.me).toBe(1);
  });

  it("has another host when its host is gone, with all its state", async () => {
    const network = new TestNetwork();
    const a = await hosts({ hostMigration: { silenceMs: 300 }, reconnect: false }, network);
    const b = await joins(a.code);
    a.run({ tick: (room) => room.set("round", { n: 7 }) });
    const events = record(b);
    await until(() => b.get<{ n: number }>("round")?.n === 7);
    network.cut();
    await until(() => b.isHost);
    expect(events.find(({ type }) => type === "hostMigration")!.it).toMatchObject({ previous: 0, next: 1, isMe: true });
    expect(b.get("round")).toEqual({ n: 7 });
    await until(() => b.status === "open");
    b.set("round", { n: 8 });
    const c = await joins(a.code);
    await until(() => c.get<{ n: number }>("round")?.n === 8);
    expect((await a.closed).code).toBe("connection_lost");
  });

  it("ends for all when its host stops it", async () => {
    const a = await hosts();
    const b = await joins(a.code);
    await a.stop();
    expect((await b.closed).code).toBe("host_left");
  });

  it("gets its seat back in another process with what was remembered", async () => {
    const kept = new Map<string, string>();
    const store: TicketStore = {
      get: (key) => kept.get(key),
      set: (key, value) => void kept.set(key, value),
      remove: (key) => void kept.delete(key),
    };
    const network = new TestNetwork();
    const a = await hosts();
    const b = await join("dots", a.code, { ...options(server, network), remember: store, reconnect: false, name: "bob" });
    b.setData("score", 3);
    await until(() => a.players.get(1)?.data("score") === 3);
    await until(() => kept.size === 1);
    const ticket = new Map(kept);
    network.cut();
    await b.closed;
    expect(kept.size).toBe(0);
    // The page was reloaded: it had no time to forget.
    for (const [key, value] of ticket) kept.set(key, value);
    a.broadcast("meanwhile", 1);
    const again = (await rejoin("dots", { ...options(server), remember: store }))!;
    open.push(again);
    const message = await again.next("message");
    expect([again.me, message.kind, again.players.get(1)!.data("score")]).toEqual([1, "meanwhile", 3]);
    await again.leave();
    expect(await rejoin("dots", { ...options(server), remember: store })).toBeUndefined();
  });
});

describe("a host alone whose page begins anew", () => {
  async function beginsAnew(hostMigration: boolean): Promise<{ code: string; again: Room | undefined }> {
    const kept = new Map<string, string>();
    const store: TicketStore = { get: (key) => kept.get(key), set: (key, value) => void kept.set(key, value), remove: () => {} };
    const network = new TestNetwork();
    const a = await host("dots", { ...options(server, network), hostMigration, remember: store, reconnect: false });
    a.run({ tick: (room) => room.set("round", { n: 7 }) });
    const b = await joins(a.code);
    await until(() => b.get<{ n: number }>("round")?.n === 7);
    await b.leave();
    await until(() => a.players.size === 1 && kept.size === 1);
    network.cut();
    await a.closed;
    const again = await rejoin("dots", { ...options(server), remember: store });
    if (again) open.push(again);
    return { code: a.code, again };
  }

  it("hosts its room again, with the server's copy of the state", async () => {
    const { code, again } = await beginsAnew(true);
    expect([again!.code, again!.me]).toEqual([code, 0]);
    await until(() => again!.isHost && again!.status === "open");
    expect(again!.get("round")).toEqual({ n: 7 });
    const guest = await joins(code);
    again!.set("round", { n: 8 });
    await until(() => guest.get<{ n: number }>("round")?.n === 8);
  });

  it("has no seat to get back without host migration: its world was lost with it", async () => {
    expect((await beginsAnew(false)).again).toBeUndefined();
  });
});

describe("a server of several shards", () => {
  it("sends who joins to the shard of the room", async () => {
    const several = await TestServer.start("--shards", "2");
    try {
      const rooms = await Promise.all([0, 1, 2, 3].map(() => host("dots", options(several))));
      for (const room of rooms) {
        const guest = await join("dots", room.code, options(several));
        expect(guest.code).toBe(room.code);
        await guest.leave();
        await room.leave();
      }
    } finally {
      await several.stop();
    }
  });
});

describe("who is not let in is told why and what to do", () => {
  it.each<[string, (a: Room) => Promise<unknown>, string]>([
    ["no_such_room", () => join("dots", "ZZZZ", options(server)), "no room"],
    ["no_such_room", (a) => join("dots", a.code, { ...options(server), secret: "wrong" }), "secret"],
    ["room_full", async (a) => (await joins(a.code, { secret: "s" }), join("dots", a.code, { ...options(server), secret: "s" })), "2 seats"],
    ["code_taken", (a) => host("dots", { ...options(server), code: a.code }), "another"],
    ["app", (a) => join("chess", a.code, { ...options(server), secret: "s" }), "dots"],
    ["channels", (a) => join("dots", a.code, { ...options(server), secret: "s", channels: { 17: "ordered" } }), "channel"],
    ["room_kind", () => host("dots", { ...options(server), dedicated: true, maxPlayers: 32 }), "dedicated"],
    ["unreachable", () => host("dots", { ...options(server), server: "127.0.0.1:1" }), "127.0.0.1:1"],
    ["bad_address", () => host("dots", { ...options(server), server: "not a host" }), "not a host"],
    ["bad_invite", () => join("dots", "K7", options(server)), "4 to 12"],
    ["bad_argument", () => host("dots", { ...options(server), maxplayers: 3 } as never), "maxplayers"],
    ["bad_argument", () => host("", options(server)), "app id"],
    ["bad_argument", () => host("dots", { ...options(server), name: "x".repeat(49) }), "49 bytes"],
    ["bad_options", () => host("dots", { ...options(server), tickHz: 1_000 }), "tickHz: it may be 1 to 240"],
    ["unauthorized", () => host("dots", { ...options(server), token: "none" }), "token"],
    ["no_server", () => host("dots", { WebSocket: options(server).WebSocket }), "no server"],
    ["no_websocket", () => host("dots", { server: server.address }), "no WebSocket"],
  ])("%s", async (code, opening, message) => {
    const a = await hosts({ secret: "s", maxPlayers: 2 });
    const error = await refusal(opening(a));
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
    expect(error.hint).not.toBe("");
  });

  it("and who gave up before is told so", async () => {
    const end = new AbortController();
    const opening = host("dots", { ...options(server), signal: end.signal });
    end.abort(new Error("changed my mind"));
    await expect(opening).rejects.toThrow("changed my mind");
    await expect(host("dots", { ...options(server), signal: end.signal })).rejects.toThrow("changed my mind");
  });

  it("and who asks for a token that is not to be had", async () => {
    const token = () => Promise.reject(new Error("the account is closed"));
    const a = await refusal(host("dots", { ...options(server), token }));
    expect([a.code, a.message]).toEqual(["unauthorized", "no token: the account is closed"]);
  });
});

describe("an invite", () => {
  it("has all that is needed to join: server and secret", async () => {
    const a = await hosts({ secret: "sésame & co" });
    for (const link of [a.inviteUrl(), a.inviteLink("dots"), a.inviteUrl("https://game.example/play?x=1")]) {
      const b = kept(await join("dots", link, { WebSocket: new TestNetwork().WebSocket }));
      expect(b.code).toBe(a.code);
      await b.leave();
    }
    expect(a.inviteUrl()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/join\/[A-Z0-9]+#s=/);
  });
});

describe("a match", () => {
  it("has equal members who send each other data", async () => {
    const a = kept(await createMatch("duel", { ...options(server), label: "quick" }));
    const b = kept(await joinMatch("duel", a.code, options(server)));
    expect([a.me, b.me, a.code.length]).toEqual([0, 1, 16]);
    await until(() => a.players.size === 2);
    const data = b.next("data");
    a.sendData(7, "others", new Uint8Array([1]));
    expect(await data).toMatchObject({ from: 0, op: 7, bytes: new Uint8Array([1]) });
    const chat = a.next("message");
    b.send("others", "chat", "gg");
    expect(await chat).toMatchObject({ from: 1, kind: "chat", value: "gg" });
  });
});

describe("a game that says its types", () => {
  it("has what others send checked by its validators, and counts what they refuse", async () => {
    const percent: StandardSchema<number> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => (typeof value === "number" && value <= 100 ? { value } : { issues: [{ message: "above 100" }] }),
      },
    };
    const game = defineGame("percents", {
      tickHz: 60,
      state: { "load/*": percent, free: type<string>() },
      input: percent,
      messages: { load: percent },
    });
    const a = kept(await game.host(hosting(server)));
    // A peer of another build.
    const b = kept(await join("percents", a.code, options(server)));
    const c = kept(await game.join(a.code, options(server)));
    expect(a.tickHz).toBe(60);
    const events = record(a as unknown as Gathering);
    b.send("host", "load", 101);
    b.send("host", "load", 100);
    await until(() => events.some(({ type }) => type === "message"));
    expect(events.filter(({ type }) => type === "message")).toEqual([{ type: "message", it: { from: 1, kind: "load", value: 100 } }]);
    expect(events.filter(({ type }) => type === "unreadable")).toEqual([
      { type: "unreadable", it: { what: 'a message "load"', why: "above 100", from: 1 } },
    ]);
    expect(a.diagnostics.refused).toBe(1);
    a.set("load/1", 300);
    a.set("load/2", 30);
    await until(() => c.get("load/2") === 30);
    expect(c.get("load/1")).toBeUndefined();
    expect(c.entries("load/")).toEqual([["load/2", 30]]);
    expect(c.diagnostics.refused).toBe(2);
  });
});

it("a listener that throws disturbs nobody", async () => {
  const a = await hosts();
  const b = await joins(a.code);
  const reported: unknown[] = [];
  const report = console.error;
  console.error = (thrown) => void reported.push(thrown);
  try {
    const heard: unknown[] = [];
    b.on("message", () => {
      throw new Error("the game's own fault");
    });
    b.on("message", ({ value }) => void heard.push(value));
    a.broadcast("chat", 1);
    a.broadcast("chat", 2);
    await until(() => heard.length === 2);
    expect(reported.map(String)).toEqual(["Error: the game's own fault", "Error: the game's own fault"]);
  } finally {
    console.error = report;
  }
});

// The connection to a server's services, and its rooms, without a network and in virtual time.

import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Account, type KeyValue, ParlorError, signIn, type SignInOptions, type TurnRoom } from "../../src/online/index.js";
import type { WebSocketConstructor } from "../../src/link/websocket.js";

type Message = { id: number; op: string; input: Record<string, unknown>; token?: string };

/** A socket that its test opens, answers and closes. */
class FakeSocket {
  static made: FakeSocket[] = [];
  readonly sent: Message[] = [];
  isClosed = false;
  private readonly listeners = new Map<string, ((event: object) => void)[]>();

  constructor(readonly url: string) {
    FakeSocket.made.push(this);
  }

  static get last(): FakeSocket {
    return FakeSocket.made.at(-1)!;
  }

  addEventListener(type: string, listener: (event: object) => void): void {
    this.listeners.set(type, [...(this.listeners.get(type) ?? []), listener]);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Message);
  }

  close(): void {
    this.isClosed = true;
  }

  fire(type: string, event: object = {}): void {
    for (const listener of this.listeners.get(type) ?? []) listener(event);
  }

  say(it: object | string): void {
    this.fire("message", { data: typeof it === "string" ? it : JSON.stringify(it) });
  }

  answer({ id }: Message, output: object): void {
    this.say({ id, output });
  }

  refuse({ id }: Message, code: string, more: object = {}): void {
    this.say({ id, error: { code, sentence: "no", ...more } });
  }
}

const WebSocket = FakeSocket as unknown as WebSocketConstructor;
const signedIn = { account: { id: "p1", name: "ada" }, access_token: "t", refresh_token: "s1", expires_in_s: 900 };

function memory(): KeyValue & { all: Map<string, string> } {
  const all = new Map<string, string>();
  return { all, get: (key) => all.get(key), set: (key, value) => void all.set(key, value), remove: (key) => void all.delete(key) };
}

/** Lets all that is due happen, without time. */
const settled = () => vi.advanceTimersByTimeAsync(0);

/** The client's next message that was not looked at yet. */
let looked: WeakMap<FakeSocket, number>;
async function says(): Promise<Message> {
  await settled();
  const socket = FakeSocket.last;
  const at = looked.get(socket) ?? 0;
  expect(socket.sent.length, "it says something").toBeGreaterThan(at);
  looked.set(socket, at + 1);
  return socket.sent[at]!;
}

async function isQuiet(): Promise<void> {
  await settled();
  expect(FakeSocket.last.sent.slice(looked.get(FakeSocket.last) ?? 0)).toEqual([]);
}

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.made = [];
  looked = new WeakMap();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** An account whose connection is ready. */
async function ready(more: Partial<SignInOptions> = {}): Promise<Account> {
  const account = signIn("127.0.0.1", { app: "noughts", name: "ada", store: memory(), WebSocket, ...more });
  await settled();
  FakeSocket.last.fire("open");
  FakeSocket.last.answer(await says(), signedIn);
  FakeSocket.last.answer(await says(), { notices: [], newest: 4 });
  return account;
}

async function thrown(by: Promise<unknown>): Promise<ParlorError> {
  const it = await by.then(() => undefined, (why: unknown) => why);
  expect(it).toBeInstanceOf(ParlorError);
  return it as ParlorError;
}

type Step = Record<string, unknown>;
const scenes = JSON.parse(readFileSync(new URL("../../../../testdata/turn-room.json", import.meta.url), "utf8")) as {
  room: object;
  start: Step[];
  scenes: { name: string; steps: Step[] }[];
};

/** Plays the scenes that the Rust client plays, too. */
class Scene {
  private account: Promise<Account> | undefined;
  private room: TurnRoom | undefined;
  private last: Message | undefined;
  private told: string[] = [];
  private moved = "waits";

  async play(steps: Step[]): Promise<void> {
    for (const [at, step] of steps.entries()) {
      for (const [what, how] of Object.entries(step)) await this.step(what, how, step, `step ${at}, ${JSON.stringify(step)}`);
    }
  }

  private async step(what: string, how: unknown, step: Step, place: string): Promise<void> {
    const socket = FakeSocket.last as FakeSocket | undefined;
    switch (what) {
      case "open":
        if (this.account === undefined) {
          this.account = signIn("127.0.0.1", { app: "noughts", name: "ada", store: memory(), WebSocket });
          this.account.then((account) => this.enter(account), () => {});
          await settled();
        } else {
          await vi.advanceTimersByTimeAsync(10_000);
        }
        return FakeSocket.last.fire("open");
      case "lost":
        await settled();
        return socket!.fire("close", { code: 1006 });
      case "says":
        this.last = await says();
        expect(this.last, place).toMatchObject({ op: how, input: step["input"] ?? {}, ...("token" in step ? { token: step["token"] } : {}) });
        return;
      case "answer":
        return socket!.answer(this.last!, expand(how as Step));
      case "refuse":
        return socket!.refuse(this.last!, String(how));
      case "notice":
        return socket!.say({ event: noticed(how as Step) });
      case "raw":
        return socket!.say(String(how));
      case "move":
        this.room!.move((how as { type: string }).type).then(() => (this.moved = "stands"), (why: ParlorError) => (this.moved = why.code));
        return;
      case "ask":
        expect(how).toBe("turn.resign");
        return void this.room!.resign().catch(() => {});
      case "told":
        await settled();
        expect(this.told.splice(0), place).toEqual(how);
        return;
      case "moved":
        expect(this.moved, place).toBe(how);
        return;
      case "name":
        expect(this.room!.view.name, place).toBe(how);
        return;
      case "quiet":
        return isQuiet();
      case "input":
      case "token":
        return;
      default:
        throw new Error(`there is no step ${what}`);
    }
  }

  private async enter(account: Account): Promise<void> {
    const room = await account.joinOrCreate();
    this.room = room;
    const on = <E extends Parameters<TurnRoom["on"]>[0]>(event: E, words: (it: never) => unknown[]) =>
      room.on(event, (it) => void this.told.push([event, ...words(it as never)].join(" ")));
    on("connected", ({ room: id }: { room: string }) => [id]);
    on("lost", () => []);
    on("turnStarted", ({ player, turn }: { player: string; turn: number }) => [player, turn]);
    on("moveMade", ({ player, stateVersion }: { player: string; stateVersion: number }) => [player, stateVersion]);
    on("moveRejected", ({ player, error }: { player: string; error: ParlorError }) => [player, error.code]);
    on("message", ({ player, kind }: { player: string; kind: string }) => [player, kind]);
    on("gameStarted", () => []);
    on("closed", ({ code }: ParlorError) => [code]);
  }
}

function noticed({ body, ...head }: Step): object {
  return { at_ms: 0, ...head, notice: { room: "r1", seq: head["seq"], body } };
}

function expand(output: Step): object {
  const notices = output["notices"] as Step[] | undefined;
  return {
    ...output,
    ...("room" in output ? { room: { ...scenes.room, ...(output["room"] as object) } } : {}),
    ...(notices === undefined ? {} : { notices: notices.map(noticed) }),
  };
}

describe("a turn room does what the Rust client does", () => {
  for (const { name, steps } of scenes.scenes) {
    it(name, async () => {
      const scene = new Scene();
      await scene.play(scenes.start);
      await scene.play(steps);
    });
  }
});

describe("a room that is watched", () => {
  const room = { id: "r1", name: "noughts", game: "noughts", phase: "playing", players: [], turn_order: [], turn_count: 1, state: {}, state_version: 1, metadata: {}, data: {} };
  const watched = (kind: string, body: object = {}) => ({ watched: { kind, at_ms: 0, notice: { room: "r1", seq: 7, body } } });

  it("r2: is subscribed to anew after an outage, and given up once nobody follows it", async () => {
    const account = await ready();
    const entering = [account.watch("r1"), account.watch("r1")];
    const asked = [await says(), await says()];
    expect(asked.map(({ op, input }) => [op, input])).toEqual([["turn.subscribe", { room: "r1" }], ["turn.subscribe", { room: "r1" }]]);
    for (const one of asked) FakeSocket.last.answer(one, { room: { ...room, version: 1, current_player: "p1" } });
    const [one, other] = await Promise.all(entering);
    const told: string[] = [];
    one!.on("turnStarted", ({ turn }) => told.push(`turn ${turn}`));
    one!.subscribe({ messages: ({ body, number }) => told.push(`${number} ${String(body)}`) });
    await settled();
    expect(told).toEqual(["turn 2"]);

    FakeSocket.last.say(watched("message", { player: "p2", type: "chat", body: "hi", number: 3 }));
    const reads = [await says(), await says()];
    expect(told, "the room is read first").toEqual(["turn 2"]);
    for (const read of reads) {
      expect(read.op).toBe("turn.read");
      FakeSocket.last.answer(read, { room: { ...room, version: 2, current_player: "p1" } });
    }
    await settled();
    expect(told).toEqual(["turn 2", "3 hi"]);

    other!.close();
    await isQuiet();
    FakeSocket.last.fire("close", { code: 1006 });
    await vi.advanceTimersByTimeAsync(10_000);
    FakeSocket.last.fire("open");
    FakeSocket.last.answer(await says(), { notices: [], newest: 4 });
    const again = await says();
    expect([again.op, again.input]).toEqual(["turn.subscribe", { room: "r1" }]);
    FakeSocket.last.answer(again, { room: { ...room, version: 5, turn_count: 4, current_player: "p2" } });
    await settled();
    expect(told, "nobody kept what happened meanwhile").toEqual(["turn 2", "3 hi", "turn 5"]);

    one!.close();
    const ends = await says();
    expect([ends.op, ends.input]).toEqual(["turn.unsubscribe", { room: "r1" }]);
    account.close();
  });

  it("r2: closes when the server ends the subscription", async () => {
    const account = await ready();
    const entering = account.watch("r1");
    FakeSocket.last.answer(await says(), { room: { ...room, version: 1 } });
    const entered = await entering;
    await settled();
    const closed = entered.next("closed");
    FakeSocket.last.say(watched("unsubscribed"));
    expect((await closed).code).toBe("not_in_room");
    account.close();
  });
});

describe("a connection", () => {
  it("is made again after waits that grow, and at once when the page is back", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const page = new Map<string, () => void>();
    vi.stubGlobal("addEventListener", (type: string, listener: () => void) => void page.set(type, listener));
    vi.stubGlobal("removeEventListener", () => {});
    const room = (await ready()).joinOrCreate();
    FakeSocket.last.answer(await says(), { room: scenes.room });
    await room;
    const waits: number[] = [];
    for (let attempt = 0; attempt < 7; attempt++) {
      FakeSocket.last.fire("close", { code: 1006 });
      const before = Date.now();
      const made = FakeSocket.made.length;
      while (FakeSocket.made.length === made) await vi.advanceTimersByTimeAsync(10);
      waits.push(Date.now() - before);
    }
    expect(waits).toEqual([200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    FakeSocket.last.fire("close", { code: 1006 });
    const made = FakeSocket.made.length;
    page.get("online")!();
    expect(FakeSocket.made.length).toBe(made + 1);
  });

  it("asks for a new token at three quarters of the old one's time, and keeps the newest", async () => {
    const store = memory();
    const room = (await ready({ store })).joinOrCreate();
    FakeSocket.last.answer(await says(), { room: scenes.room });
    await room;
    await vi.advanceTimersByTimeAsync(674_000);
    await isQuiet();
    await vi.advanceTimersByTimeAsync(1_000);
    const asked = await says();
    expect([asked.op, asked.input["refresh_token"]]).toEqual(["auth.refresh", "s1"]);
    FakeSocket.last.answer(asked, { ...signedIn, access_token: "u", refresh_token: "s2" });
    await settled();
    expect([...store.all.values()][0]).toContain('"refresh":"s2"');
    // The next connection has the new one.
    FakeSocket.last.fire("close", { code: 1008 });
    await vi.advanceTimersByTimeAsync(300);
    FakeSocket.last.fire("open");
    expect((await says()).token).toBe("u");
  });

  it("of two pages refreshes one after the other, each with the token that the other left", async () => {
    const store = memory();
    store.set("parlor-sign-in:127.0.0.1:7700/noughts/production", JSON.stringify({ device: "d".repeat(64), refresh: "s0", by: "device" }));
    const both = [0, 1].map(() => signIn("127.0.0.1", { app: "noughts", store, WebSocket }));
    await settled();
    const [a, b] = FakeSocket.made as [FakeSocket, FakeSocket];
    a.fire("open");
    b.fire("open");
    await settled();
    expect([a.sent.length, b.sent.length], "one at a time").toEqual([1, 0]);
    expect(a.sent[0]!.input["refresh_token"]).toBe("s0");
    a.answer(a.sent[0]!, signedIn);
    await settled();
    expect(b.sent[0]!.input["refresh_token"], "not the one that was used up").toBe("s1");
    b.answer(b.sent[0]!, { ...signedIn, refresh_token: "s2" });
    await settled();
    for (const socket of [a, b]) socket.answer(socket.sent[1]!, { notices: [], newest: 0 });
    expect((await Promise.all(both)).map(({ id }) => id)).toEqual(["p1", "p1"]);
    expect([...store.all.values()][0]).toContain('"refresh":"s2"');
  });

  it("that nobody needs is closed, and made again for the next call", async () => {
    const account = await ready();
    const first = FakeSocket.last;
    await vi.advanceTimersByTimeAsync(14_000);
    expect(first.isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(first.isClosed).toBe(true);
    const me = account.call("account.me", {});
    FakeSocket.last.fire("open");
    expect((await says()).op).toBe("inbox.read");
    FakeSocket.last.answer(FakeSocket.last.sent[0]!, { notices: [], newest: 4 });
    FakeSocket.last.answer(await says(), { account: {}, credentials: [] });
    await me;
    const lost = account.call("account.me", {});
    await says();
    FakeSocket.last.fire("close", { code: 1006 });
    expect((await thrown(lost)).code, "it may have been done").toBe("connection_lost");
    const unreachable = account.call("account.me", {});
    FakeSocket.last.fire("close", { code: 1006 });
    expect((await thrown(unreachable)).code).toBe("unreachable");
  });

  it("t3: a score whose answer is lost is sent again as the same submission", async () => {
    const account = await ready();
    const submitted = account.board("laps").submit({ score: 71, extra: { best_lap: 3 } });
    const first = await says();
    expect([first.op, first.input]).toEqual(["board.submit", { board: "laps", id: expect.any(String) as string, score: 71, extra: { best_lap: 3 } }]);
    FakeSocket.last.fire("close", { code: 1006 });
    await settled();
    FakeSocket.last.fire("open");
    FakeSocket.last.answer(await says(), { notices: [], newest: 4 });
    const second = await says();
    expect(second.op).toBe("board.submit");
    expect(second.input).toEqual(first.input);
    FakeSocket.last.answer(second, { board: "laps", account: "p1", season: 0, score: 71, sub: 0, at_ms: 5, improved: true, again: true, rank: 1, entries: 2 });
    expect(await submitted).toEqual({ board: "laps", account: "p1", season: 0, score: 71, sub: 0, atMs: 5, improved: true, again: true, rank: 1, entries: 2 });
  });

  it("t3: scores go one after another, and one that may be stored is sent again", async () => {
    const account = await ready();
    const answer = { board: "laps", account: "p1", season: 0, score: 1, sub: 0, at_ms: 5, improved: true, again: false };
    const both = [account.board("laps").submit(1), account.board("kills").submit(2)];
    const first = await says();
    await isQuiet();
    FakeSocket.last.refuse(first, "unavailable", { retry_after_ms: 70 });
    await isQuiet();
    await vi.advanceTimersByTimeAsync(70);
    const again = await says();
    expect(again.input).toEqual(first.input);
    FakeSocket.last.answer(again, answer);
    const second = await says();
    expect(second.input).toMatchObject({ board: "kills", score: 2 });
    FakeSocket.last.refuse(second, "out_of_range");
    expect((await thrown(both[1]!)).code).toBe("out_of_range");
    const third = account.board("kills").submit(1);
    FakeSocket.last.answer(await says(), answer);
    await Promise.all([both[0], third]);
  });

  it("t3: a page of a board has the names of TypeScript, and what games put in stays as it is", async () => {
    const board = (await ready()).board("laps").season(7);
    const asked = board.top({ from: 2 });
    const message = await says();
    expect([message.op, message.input]).toEqual(["board.top", { board: "laps", season: 7, from: 2 }]);
    const entry = { account: "p1", rank: 2, position: 2, score: 71, sub: 0, at_ms: 5, extra: { best_lap: 3 } };
    FakeSocket.last.answer(message, { season: 7, entries_total: 2, entries: [entry] });
    const { at_ms: atMs, ...rest } = entry;
    expect(await asked).toEqual({ season: 7, entriesTotal: 2, entries: [{ ...rest, atMs }] });
  });

  it("creates one room though the answer is lost, and another one with the next call", async () => {
    const account = await ready();
    const creating = account.create();
    const first = await says();
    FakeSocket.last.fire("close", { code: 1006 });
    await vi.advanceTimersByTimeAsync(10_000);
    FakeSocket.last.fire("open");
    FakeSocket.last.answer(await says(), { notices: [], newest: 4 });
    const again = await says();
    expect([first.op, again.op, again.input["id"]]).toEqual(["turn.create", "turn.create", first.input["id"]]);
    FakeSocket.last.answer(again, { room: scenes.room });
    await creating;
    void account.create().catch(() => {});
    const next = await says();
    expect(next.input["id"]).toMatch(/^[0-9a-f]{24}$/);
    expect(next.input["id"]).not.toBe(first.input["id"]);
  });

  it("is given up where the server does not answer, and made again", async () => {
    const room = (await ready()).joinOrCreate();
    FakeSocket.last.answer(await says(), { room: scenes.room });
    const lost = (await room).next("lost");
    const said = (await room).say("chat", "hi").catch((why: ParlorError) => why.code);
    const first = FakeSocket.last;
    await vi.advanceTimersByTimeAsync(21_000);
    expect([(await lost).why, await said, first.isClosed]).toEqual(["the server does not answer", "connection_lost", true]);
    expect(FakeSocket.last).not.toBe(first);
  });

  it("waits as long as the server says, and reads the room before a move is made again", async () => {
    const entering = (await ready()).joinOrCreate();
    FakeSocket.last.answer(await says(), { room: scenes.room });
    const room = await entering;
    const moved = room.move("put");
    FakeSocket.last.refuse(await says(), "unavailable", { retry_after_ms: 70 });
    await isQuiet();
    await vi.advanceTimersByTimeAsync(70);
    expect((await says()).op).toBe("turn.read");
    FakeSocket.last.answer(FakeSocket.last.sent.at(-1)!, { room: scenes.room });
    expect((await says()).op).toBe("turn.propose");
    expect((await thrown(room.move("put"))).code).toBe("move_pending");
    FakeSocket.last.answer(FakeSocket.last.sent.at(-1)!, { room: { ...scenes.room, version: 4, state_version: 2 } });
    await moved;
  });

  it("counts what changed that can be read, and tells it once a task", async () => {
    const entering = (await ready()).joinOrCreate();
    FakeSocket.last.answer(await says(), { room: scenes.room });
    const room = await entering;
    await settled();
    const told: number[] = [];
    room.on("changed", ({ version }) => void told.push(version));
    const before = room.version;
    await isQuiet();
    expect([room.version, room.myTurn]).toEqual([before, true]);
    void room.move("put").catch(() => {});
    expect([room.version > before, room.myTurn]).toEqual([true, false]);
    FakeSocket.last.answer(await says(), { room: { ...scenes.room, version: 4, state_version: 2 } });
    await settled();
    FakeSocket.last.fire("close", { code: 1006 });
    await settled();
    expect([told.length, told.at(-1)]).toEqual([3, room.version]);
  });

  it("lets the inbox forget what was told", async () => {
    const entering = (await ready()).joinOrCreate();
    FakeSocket.last.answer(await says(), { room: scenes.room });
    await entering;
    for (let seq = 5; seq < 37; seq++) FakeSocket.last.say({ event: noticed({ seq, kind: "message", body: { player: "p2", type: "x" } }) });
    FakeSocket.last.answer(await says(), { room: scenes.room });
    FakeSocket.last.answer(await says(), { room: scenes.room });
    const asked = await says();
    expect([asked.op, asked.input["up_to"]]).toEqual(["inbox.acknowledge", 36]);
    await isQuiet();
  });

  it("refuses more than it may hold", async () => {
    const account = await ready();
    const calls = Array.from({ length: 300 }, () => thrown(account.call("account.me", {})));
    account.close();
    const codes = (await Promise.all(calls)).map(({ code }) => code);
    expect([codes.filter((code) => code === "left").length, codes.filter((code) => code === "busy").length]).toEqual([256, 44]);
  });

  it("and the wait for a room end with their signals", async () => {
    const reason = new Error("enough");
    const signing = new AbortController();
    const signed = signIn("127.0.0.1", { app: "noughts", store: memory(), WebSocket, signal: signing.signal }).catch((why: unknown) => why);
    await settled();
    signing.abort(reason);
    expect([await signed, FakeSocket.last.isClosed]).toEqual([reason, true]);
    await expect(signIn("127.0.0.1", { app: "noughts", store: memory(), WebSocket, signal: signing.signal })).rejects.toBe(reason);
    const entering = new AbortController();
    const account = await ready();
    const entered = account.joinOrCreate({}, {}, { signal: entering.signal }).catch((why: unknown) => why);
    const asked = await says();
    entering.abort(reason);
    expect(await entered).toBe(reason);
    FakeSocket.last.answer(asked, { room: scenes.room });
    await isQuiet();
  });

  it("says why there is none", async () => {
    const fetch = vi.fn(() => Promise.resolve(new Response('{"services":null}')));
    vi.stubGlobal("fetch", fetch);
    const refused = thrown(signIn("play.example.com", { app: "noughts", store: memory(), WebSocket }));
    await settled();
    expect(FakeSocket.last.url).toBe("wss://play.example.com:7700/v1/socket");
    FakeSocket.last.fire("close", { code: 1006 });
    expect((await refused).code).toBe("no_accounts");
    fetch.mockResolvedValue(new Response('{"services":"/v1/socket"}'));
    const elsewhere = thrown(signIn("play.example.com", { app: "noughts", store: memory(), WebSocket }));
    await settled();
    FakeSocket.last.fire("close", { code: 1006 });
    expect(await elsewhere).toMatchObject({ code: "unreachable", hint: expect.stringContaining("--web-origins") });
  });
});

describe("the store", () => {
  it("of a page that may not write is its memory", async () => {
    const store: KeyValue = { get: () => null, set: () => { throw new Error("full"); }, remove: () => {} };
    const account = await ready({ store });
    const room = account.joinOrCreate();
    FakeSocket.last.answer(await says(), { room: scenes.room });
    await room;
    await vi.advanceTimersByTimeAsync(675_000);
    expect((await says()).input["refresh_token"]).toBe("s1");
  });
});

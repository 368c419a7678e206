import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { host, join, ParlorError } from "../../src/api.js";
import { type Account, currentSave, type KeyValue, type News, signIn, type SignInOptions, type TurnRoom } from "../../src/online/index.js";
import { operationsOf } from "../../scripts/operations.mjs";
import { documentOf } from "../../scripts/openapi.mjs";
import { readFileSync } from "node:fs";
import { options, TestNetwork, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

let server: TestServer;
let plain: TestServer;
const open: Account[] = [];

beforeAll(async () => {
  useBuiltWasm();
  [server, plain] = await Promise.all([TestServer.startWithStore(), TestServer.start()]);
});
afterAll(() => Promise.all([server.stop(), plain.stop()]));
afterEach(() => {
  for (const account of open.splice(0)) account.close();
});

/** A store of one browser. */
class Store implements KeyValue {
  readonly all = new Map<string, string>();
  get(key: string) {
    return this.all.get(key) ?? null;
  }
  set(key: string, value: string) {
    this.all.set(key, value);
  }
  remove(key: string) {
    this.all.delete(key);
  }
  get kept(): { device?: string; refresh?: string } {
    return JSON.parse([...this.all.values()][0] ?? "{}") as { device?: string; refresh?: string };
  }
}

async function signed(name: string, more: Partial<SignInOptions> = {}, network = new TestNetwork()): Promise<Account> {
  const account = await signIn(server.address, { app: "draughts", name, store: new Store(), WebSocket: network.WebSocket, ...more });
  open.push(account);
  return account;
}

async function refusal(asked: Promise<unknown>): Promise<ParlorError> {
  const thrown = await asked.then(() => undefined, (thrown: unknown) => thrown);
  expect(thrown).toBeInstanceOf(ParlorError);
  return thrown as ParlorError;
}

type Draughts = { board: string; turn: string; black: string; white: string };

/** Two players in a game of draughts: the one on turn first. */
async function draughts(a: Account, b: Account): Promise<[TurnRoom<Draughts>, TurnRoom<Draughts>]> {
  const one = await a.create<Draughts>({ rules: "draughts" });
  const other = await b.join<Draughts>(one.code!);
  await until(() => one.phase === "playing" && other.phase === "playing");
  await until(() => one.myTurn || other.myTurn);
  return one.myTurn ? [one, other] : [other, one];
}

describe("an account", () => {
  it("is the same player again from the same store, and another one from another", async () => {
    const store = new Store();
    const first = await signed("ada", { store });
    expect([first.name, first.app]).toEqual(["ada", "draughts"]);
    const again = await signed("ada", { store });
    expect(again.id).toBe(first.id);
    expect((await signed("bob")).id).not.toBe(first.id);
    expect(await again.call("account.me", {})).toMatchObject({ account: { id: first.id, kind: "device" }, credentials: [{ kind: "device" }] });
  });

  it("survives two pages that refresh at once, and a copied token that was used", async () => {
    const store = new Store();
    const { id } = await signed("ada", { store });
    const pages = await Promise.all([signed("ada", { store }), signed("ada", { store }), signed("ada", { store })]);
    expect(new Set(pages.map((page) => page.id))).toEqual(new Set([id]));
    // Each used up another token, and none of them ended the sign-in of the others.
    expect(await Promise.all(pages.map((page) => page.call("account.me", {})))).toHaveLength(3);
    await pages[0]!.signOut();
    expect(store.kept).toEqual({ device: store.kept.device });
    expect((await signed("ada", { store })).id).toBe(id);
  });

  it("signs in by an address, which it can link, and says what is wrong", async () => {
    const store = new Store();
    const ada = await signed("ada", { store });
    const password = "correct horse battery";
    const email = `ada-${Math.random()}@example.com`;
    await ada.link({ email, password });
    const elsewhere = await signed("ada", { how: { email, password } });
    expect(elsewhere.id).toBe(ada.id);
    expect((await refusal(signed("eve", { how: { email, password: "wrong password" } }))).code).toBe("wrong_password");
    await ada.unlink({ device: true });
    expect((await refusal(ada.unlink({ email }))).code).toBe("last_credential");
    await ada.signOut({ everywhere: true });
    expect((await refusal(ada.call("account.me", {}))).code).not.toBe("");
  });

  it("that was signed in by an address does not become another player when that is over", async () => {
    const store = new Store();
    const how = { email: `bob-${Math.random()}@example.com`, password: "correct horse battery", create: true };
    const bob = await signed("bob", { store, how });
    expect((await signed("bob", { store })).id).toBe(bob.id);
    const { refresh } = store.kept;
    await bob.signOut({ everywhere: true });
    const key = `parlor-sign-in:${server.address}/draughts/production`;
    store.set(key, JSON.stringify({ refresh, by: "email" }));
    expect((await refusal(signed("bob", { store }))).code).toBe("signed_out");
    expect((await signed("bob", { store })).id).not.toBe(bob.id);
  });

  it("is refused by name: no accounts there, nobody there, no such thing", async () => {
    expect((await refusal(signIn(plain.address, { app: "draughts", WebSocket: new TestNetwork().WebSocket }))).code).toBe("no_accounts");
    expect((await refusal(signIn("127.0.0.1:1", { app: "draughts", WebSocket: new TestNetwork().WebSocket }))).code).toBe("unreachable");
    const ada = await signed("ada");
    expect((await refusal(ada.join("ZZZZ"))).code).toBe("no_such_room");
    expect((await refusal(ada.create({ rules: "chess" }))).code).toBe("bad_config");
    expect((await refusal(ada.call("turn.read", { room: "nowhere" }))).code).toBe("no_such_room");
  });

  it("is the same player in a realtime room, and comes back to it", async () => {
    const network = new TestNetwork();
    const [ada, bob] = await Promise.all([signed("ada"), signed("bob")]);
    const room = await host("draughts", { ...options(server, network), server: undefined, account: ada, name: "ada" });
    const other = await join("draughts", room.code, { ...options(server), account: bob, name: "bob" });
    await until(() => [...room.players.values()].some(({ name, user }) => name === "bob" && user === bob.id));
    expect([...other.players.values()].find(({ name }) => name === "ada")?.user).toBe(ada.id);
    expect((await refusal(host("magpies", { ...options(server), account: ada }))).code).toBe("bad_options");
    expect((await refusal(join("draughts", `http://localhost:1/join/${room.code}`, { ...options(server), server: undefined, account: ada }))).message).toContain("localhost:1");
    expect((await refusal(join("draughts", "ZZZZ", { ...options(server), account: ada }))).code).toBe("no_such_room");
    await ada.signOut();
    expect((await refusal(host("draughts", { ...options(server), account: ada }))).code).toBe("signed_out");
    await Promise.all([room.leave(), other.leave()]);
  });
});

describe("a turn room", () => {
  it("is played by its rules: moves resolve, illegal ones are refused, both see the same", async () => {
    const [first, second] = await draughts(await signed("ada"), await signed("bob"));
    expect([first.state.turn, first.view.currentPlayer, second.myTurn]).toEqual(["black", first.me, false]);
    const turns: { turn: number }[] = [];
    second.on("turnStarted", (turn) => void turns.push(turn));
    await first.move("move", { path: [11, 15] });
    await until(() => turns.at(-1)?.turn === 2);
    expect(turns.at(-1)).toEqual({ player: second.me, isMe: true, turn: 2 });
    expect(second.state.board[14]).toBe("b");
    expect(second.myTurn).toBe(true);
    const wrong = await refusal(second.move("move", { path: [22, 15] }));
    expect([wrong.code, wrong.message]).toEqual(["illegal_move", expect.stringContaining("you can move")]);
    expect((await refusal(first.move("move", { path: [10, 14] }))).code).toBe("not_your_turn");
    await second.move("move", { path: [22, 18] });
    await until(() => first.state.board === second.state.board);
  });

  it("goes on after its server was killed: a move under way is made once", async () => {
    const own = await TestServer.startWithStore();
    const players = await Promise.all(
      ["ada", "bob"].map((name) => signIn(own.address, { app: "draughts", name, store: new Store(), WebSocket: new TestNetwork().WebSocket })),
    );
    const [first, second] = await draughts(players[0]!, players[1]!);
    const lost = Promise.all([first.next("lost"), second.next("lost")]);
    await own.kill();
    await lost;
    expect([first.isConnected, first.view.phase]).toEqual([false, "playing"]);
    const moved = first.move("move", { path: [11, 15] });
    expect(first.myTurn).toBe(false);
    await own.startAgain();
    await moved;
    await until(() => second.myTurn);
    expect([second.view.turnCount, second.state.board]).toEqual([1, first.state.board]);
    expect(second.view.stateVersion).toBe(first.view.stateVersion);
    await second.move("move", { path: [22, 18] });
    for (const player of players) player.close();
    await own.stop();
  });

  it("tells what happened during an outage, and is found again by id, by list and by search", async () => {
    const network = new TestNetwork();
    const ada = await signed("ada", {}, network);
    const bob = await signed("bob");
    const mode = `m${Math.random()}`;
    const one = await ada.joinOrCreate<{ n?: number }>({ config: { players: { min: 2, max: 2 }, turn_based: true } }, { metadata: { mode } });
    const other = await bob.joinOrCreate<{ n?: number }>({ config: { players: { min: 2, max: 2 }, turn_based: true } }, { metadata: { mode } });
    expect(other.id).toBe(one.id);
    await until(() => one.phase === "playing");
    const heard: string[] = [];
    one.on("message", ({ kind, body }) => void heard.push(`${kind} ${String(body)}`));
    const lost = one.next("lost");
    network.isDown = true;
    network.cut();
    await lost;
    await other.say("chat", "hello");
    await other.setData({ ready: true });
    network.isDown = false;
    await until(() => heard.length > 0);
    expect([heard, one.view.data]).toEqual([["chat hello"], { ready: true }]);
    const mine = [];
    for await (const room of ada.turnRooms()) mine.push(room);
    expect(mine).toMatchObject([{ id: one.id, phase: "playing", playerCount: 2, maxPlayers: 2 }]);
    const again = await ada.resume<{ n?: number }>(one.id);
    const turn = await again.next("turnStarted");
    const [mover, waits] = turn.isMe ? [again, other] : [other, again];
    const made = waits.next("moveMade");
    await mover.move("put", { cell: 4 }, { n: 1 });
    expect(await made).toMatchObject({ player: mover.me, kind: "put", data: { cell: 4 } });
    expect(waits.state).toEqual({ n: 1 });
    const closed = other.next("closed");
    await other.leave();
    expect((await closed).code).toBe("left");
    expect((await again.next("gameOver")).winner).toBe(again.me);
  });

  it("lets the players judge moves: a move resolves when they agree", async () => {
    const [ada, bob] = await Promise.all([signed("ada"), signed("bob")]);
    const one = await ada.create({ config: { players: { min: 2, max: 2 }, turn_based: true, quorum: "all" } });
    const other = await bob.join(one.id);
    await until(() => (one.phase === "playing" && other.phase === "playing") && (one.myTurn || other.myTurn));
    const [mover, judge] = one.myTurn ? [one, other] : [other, one];
    let proposed = judge.next("moveProposed");
    const doubted = refusal(mover.move("put", { cell: 4 }, { n: 1 }));
    await judge.validate((await proposed).proposal, false, "the cell is taken");
    expect(await doubted).toMatchObject({ code: "disputed", message: expect.stringContaining("taken") });
    proposed = judge.next("moveProposed");
    const moved = mover.move("put", { cell: 5 }, { n: 2 });
    await judge.validate((await proposed).proposal, true);
    await moved;
    expect(mover.state).toEqual({ n: 2 });
  });

  it("r2: is watched by topic, has a history, and its data is merged or replaced", async () => {
    const [ada, bob, eve] = await Promise.all(["ada", "bob", "eve"].map((name) => signed(name)));
    const hers = await ada!.create({ config: { auto_start: false, spectators: true } });
    const watched = await eve!.watch(hers.id);
    const told: string[] = [];
    const stop = watched.subscribe({
      data: ({ players }) => told.push(`data ${players.length}`),
      messages: ({ body, number }) => told.push(`message ${number} ${String(body)}`),
      game: ({ type }) => told.push(type),
    });
    const his = await bob!.join(hers.id);
    await until(() => told.length === 1);
    await his.say("chat", "hello");
    await until(() => told.length === 2);
    await hers.start();
    await until(() => told.length === 3);
    expect(told).toEqual(["data 2", "message 1 hello", "gameStarted"]);
    stop();
    await his.setData({ a: 1 });
    await his.setData({ b: 2 });
    await until(() => watched.view.data["b"] === 2);
    expect(watched.view.data).toEqual({ a: 1, b: 2 });
    await his.setData({ c: 3 }, { replace: true });
    await until(() => watched.view.data["c"] === 3);
    expect(watched.view.data).toEqual({ c: 3 });
    await hers.say("chat", "bye");
    const said = [];
    for await (const { number, name, body } of watched.messages()) said.push(`${number} ${name} ${String(body)}`);
    expect(said).toEqual(["2 ada bye", "1 bob hello"]);
    expect(told.length, "nothing is told after the end of a subscription").toBe(3);
    expect((await refusal(watched.say("chat", "me, too"))).code).toBe("not_in_room");
    watched.close();
    // The same connection goes on, and may watch the room again.
    const again = await eve!.watch(hers.id);
    await Promise.all([again.next("message"), his.say("chat", "still here")]);
  });

  it("r4, r9: has admins who pause it, and says which check refused a move", async () => {
    const [ada, bob] = await Promise.all(["ada", "bob"].map((name) => signed(name)));
    const hers = await ada!.create({ config: { auto_start: false, turn_based: true } });
    const his = await bob!.join(hers.id);
    await hers.setAdmins([bob!.id]);
    await until(() => his.view.admins.length === 2);
    const paused = hers.next("paused");
    await his.pause();
    expect(await paused).toEqual({ isPaused: true, player: bob!.id });
    expect([hers.view.status, (await refusal(hers.start())).code]).toEqual(["paused", "paused"]);
    await his.resume();
    await hers.start();
    await until(() => hers.myTurn || his.myTurn);
    const mover = hers.myTurn ? hers : his;
    const rejected = mover.next("moveRejected");
    await refusal(mover.move("put", {}, { isGameOver: true, winner: "nobody" }));
    expect((await rejected).checks).toEqual({ server: "invalid", rules: "not_applicable", peers: "not_applicable" });
  });

  it("has a host who starts, renames, kicks and ends", async () => {
    const [ada, bob] = await Promise.all([signed("ada"), signed("bob")]);
    const room = await ada.create({ private: true, name: "den", config: { players: { max: 4 } } });
    const other = await bob.join(room.code!);
    await room.rename("lair");
    await room.setMetadata({ level: 3 });
    await room.setPublic(true);
    await until(() => other.view.name === "lair" && other.view.visibility === "public" && other.view.metadata["level"] === 3);
    expect((await refusal(other.rename("mine"))).code).toBe("not_host");
    await room.start();
    await until(() => other.phase === "playing");
    const kicked = other.next("closed");
    await room.kick(bob.id, "spam");
    expect((await kicked).code).toBe("not_in_room");
    await room.end({ winner: ada.id, reason: "won" });
    expect(room.view.result).toMatchObject({ winner: ada.id, reason: "won" });
    room.close();
    expect((await refusal(room.rename("x"))).code).toBe("not_open");
  });
});

it("t3: a board takes scores, and gives ranks and pages", async () => {
  const [ada, bob] = await Promise.all([signed("ada"), signed("bob")]);
  const [hers, his] = [ada.board("points"), bob.board("points")];
  await hers.submit(5);
  const score = { score: 9, sub: 2, extra: { best_lap: 3 }, id: "one" };
  expect(await his.submit(score)).toMatchObject({ score: 9, sub: 2, improved: true, again: false, rank: 1, entries: 2 });
  expect((await his.submit(score)).again).toBe(true);
  const { entries, entriesTotal } = await hers.top();
  expect(entries.map(({ rank, score, name, extra }) => [rank, score, name, extra])).toEqual([[1, 9, "bob", { best_lap: 3 }], [2, 5, "ada", undefined]]);
  expect(entriesTotal).toBe(2);
  expect((await hers.around({ count: 1 })).entries).toEqual(entries.slice(1));
  expect((await hers.of([bob.id, "nobody"])).entries).toEqual(entries.slice(0, 1));
  expect((await hers.friends()).entries).toEqual(entries.slice(1));
  expect((await refusal(hers.submit({ score: 1, receipt: "forged" }))).code).toBe("bad_receipt");
  expect(await hers.seasons()).toEqual([{ season: 0, entries: 2 }]);
  const boards = [];
  for await (const board of ada.boards()) boards.push(board);
  expect(boards).toMatchObject([{ board: "points", keep: "best", writers: "players" }]);
  await hers.remove();
  expect((await refusal(hers.around())).code).toBe("no_such_entry");
});

it("t4: a player saves, and chooses between two devices", async () => {
  const [ada, bob] = await Promise.all([signed("ada"), signed("bob")]);
  const first = await ada.saves.set("slot-1", { gold: 7 }, { title: "Castle", device: "laptop", replace: false });
  expect(first).toMatchObject({ save: { slot: "slot-1", title: "Castle", size: 10 }, again: false });
  expect((await ada.saves.set("slot-1", { gold: 7 }, { title: "Castle", device: "laptop", replace: false })).again).toBe(true);
  const bytes = Uint8Array.of(0, 255, 128);
  const phone = await ada.saves.set("slot-1", bytes, { device: "phone", version: first.save.version });
  const conflict = await ada.saves.set("slot-1", { gold: 9 }, { version: first.save.version }).catch((why: unknown) => why);
  expect(conflict).toMatchObject({ code: "stale" });
  expect(currentSave(conflict)).toEqual(phone.save);
  expect((await ada.saves.get("slot-1")).bytes).toEqual(bytes);
  const before = await ada.saves.before("slot-1");
  expect(before.map(({ version }) => version)).toEqual([first.save.version]);
  expect((await ada.saves.get("slot-1", { version: first.save.version })).json()).toEqual({ gold: 7 });
  expect(await ada.saves.list()).toEqual([phone.save]);
  expect((await refusal(bob.saves.get("slot-1"))).code).toBe("no_such_save");
  await ada.saves.remove("slot-1", { version: phone.save.version });
  expect(await ada.saves.list()).toEqual([]);
  expect((await refusal(ada.saves.set("a b", 1))).code).toBe("bad_input");
  expect((await refusal(ada.saves.set("a", undefined))).code).toBe("bad_argument");
});

it("t2, t4: a player unlocks achievements and hears of friends", async () => {
  const [ada, bob] = await Promise.all([signed("ada"), signed("bob")]);
  const { unlocked } = await ada.call("achievement.write", { achievement: "first-blood", unlock: true });
  expect(unlocked).toBe(true);
  const { statistics } = await ada.call("statistic.write", { writes: [{ statistic: "kills", add: 3, id: "one" }] });
  expect(statistics).toEqual([{ statistic: "kills", value: 3, again: false }]);
  const heard: News[] = [];
  const hears = (topic: string, is: (news: News) => boolean = () => true) => until(() => heard.some((news) => news.topic === topic && is(news)));
  const end = ada.news((news) => heard.push(news));
  await hears("connected");
  await bob.call("friend.ask", { account: ada.id });
  await hears("friends");
  await ada.call("friend.accept", { account: bob.id });
  const quiet = bob.news(() => {});
  await hears("presence", ({ friends }) => JSON.stringify(friends).includes(bob.id));
  quiet();
  end();
});

it("t5, n5: players gather in a lobby and find a match", async () => {
  const [ada, bob] = await Promise.all([signed("ada"), signed("bob")]);
  const heard: News[] = [];
  const ends = [ada.news((news) => heard.push(news)), bob.news(() => {})];
  const { lobby } = await ada.call("lobby.create", { max: 4, bucket: `coop-${ada.id}`, properties: { level: 7 } });
  const { lobbies } = await bob.call("lobby.find", { bucket: `coop-${ada.id}`, filter: { level: { ge: 5 } } });
  expect(lobbies.map(({ id }) => id)).toEqual([lobby.id]);
  await bob.call("lobby.join", { lobby: lobby.id });
  const size = (news: News) => (news as unknown as { lobby?: { size: number } }).lobby?.size;
  await until(() => heard.some((news) => news.topic === `lobby/${lobby.id}` && size(news) === 2));
  const queue = `duel-${ada.id}`;
  const [{ ticket }] = await Promise.all([ada.call("matchmaking.enter", { queue }), bob.call("matchmaking.enter", { queue })]);
  const state = (news: News) => (news as unknown as { search?: { state: string } }).search?.state;
  await until(() => heard.some((news) => news.topic === `search/${ticket}` && state(news) === "opening"));
  for (const end of ends) end();
});

it("the types of operations are the server's", async () => {
  const kept = readFileSync(new URL("../../src/online/operations.ts", import.meta.url), "utf8");
  expect(kept, "run: npm run operations").toBe(operationsOf(await documentOf()));
});

// @vitest-environment happy-dom
import { act, createElement, Fragment, type ReactNode, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Emitter } from "../../src/room/emitter.js";
import { RoomProvider, useEvent, useKey, useKeys, usePlayers, useRoom, useRoomContext, useRoomStatus, useTurnRoom } from "../../src/react/index.js";
import type { RoomState } from "../../src/react/index.js";
import type { TurnRoom } from "../../src/online/room.js";
import type { Closed, Player, Room } from "../../src/room/types.js";

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

/** What the hooks use of a room. */
class FakeRoom {
  version = 0;
  status: Room["status"] = "open";
  players: ReadonlyMap<number, Player> = new Map();
  readonly state = new Map<string, unknown>();
  readonly leave = vi.fn(() => Promise.resolve());
  end!: (why: Closed) => void;
  readonly closed = new Promise<Closed>((resolve) => (this.end = resolve));
  readonly emitter = new Emitter();

  on(event: string, listener: (it: never) => void): () => void {
    return this.emitter.on(event, listener);
  }

  get(key: string): unknown {
    return structuredClone(this.state.get(key));
  }

  entries(prefix: string): [string, unknown][] {
    return [...this.state].filter(([key]) => key.startsWith(prefix)).map(([key, value]) => [key, structuredClone(value)]);
  }

  change(how: () => void): void {
    how();
    this.version += 1;
    this.emitter.emit("changed", { version: this.version });
  }
}

const asRoom = (room: FakeRoom) => room as unknown as Room;
const player = (id: number, name: string) => [id, { id, name } as Player] as const;

let root: Root;
let page: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  page = document.createElement("div");
  root = createRoot(page);
});

afterEach(async () => {
  await act(async () => root.unmount());
  vi.useRealTimers();
});

const render = (node: ReactNode) => act(async () => root.render(node));
const strict = (node: ReactNode) => render(createElement(StrictMode, null, node));
/** Time passes, and what it sets off. */
const wait = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));

/** A component with a room, which notes what it was told. */
function opening() {
  const opened: { room: FakeRoom; signal: AbortSignal; open: () => void; fail: (why: unknown) => void }[] = [];
  const states: RoomState<Room>[] = [];
  const open = (signal: AbortSignal) =>
    new Promise<Room>((resolve, reject) => {
      const room = new FakeRoom();
      opened.push({ room, signal, open: () => resolve(asRoom(room)), fail: reject });
    });
  function Game({ code }: { code: string }) {
    const state = useRoom(open, [code]);
    states.push(state);
    return createElement("p", null, state.status);
  }
  return { opened, states, game: (code = "A") => createElement(Game, { code }) };
}

it("opens one room under StrictMode, which the second mount gets", async () => {
  const { opened, states, game } = opening();
  await strict(game());
  expect(page.textContent).toBe("connecting");
  await act(async () => opened[0]!.open());
  expect(page.textContent).toBe("open");
  await wait(10_000);
  expect(opened).toHaveLength(1);
  expect(opened[0]!.signal.aborted).toBe(false);
  expect(opened[0]!.room.leave).not.toHaveBeenCalled();
  expect(states.at(-1)!.room).toBe(opened[0]!.room);
});

it("leaves 500 ms after the component is gone, and not before", async () => {
  const { opened, game } = opening();
  await render(game());
  await act(async () => opened[0]!.open());
  await render(null);
  await wait(499);
  expect(opened[0]!.room.leave).not.toHaveBeenCalled();
  await wait(1);
  expect(opened[0]!.room.leave).toHaveBeenCalledTimes(1);
});

it("ends an opening that nobody waits for, and leaves what opens all the same", async () => {
  const { opened, game } = opening();
  await render(game());
  await render(null);
  expect(opened[0]!.signal.aborted).toBe(false);
  await wait(500);
  expect(opened[0]!.signal.aborted).toBe(true);
  await act(async () => opened[0]!.open());
  expect(opened[0]!.room.leave).toHaveBeenCalledTimes(1);
});

it("leaves at once for other dependencies, and never shows the old room under them", async () => {
  const { opened, states, game } = opening();
  await render(game("A"));
  await act(async () => opened[0]!.open());
  states.length = 0;
  await render(game("B"));
  expect(states.map(({ status }) => status)).not.toContain("open");
  expect(opened[0]!.room.leave).toHaveBeenCalledTimes(1);
  await act(async () => opened[1]!.open());
  expect(states.at(-1)!.room).toBe(opened[1]!.room);
  // The old room ends later: that is nobody's state.
  await act(async () => opened[0]!.room.end({ code: "left", message: "left", hint: "" }));
  expect(page.textContent).toBe("open");
});

it("has errors as state, and tries again with other dependencies alone", async () => {
  const { opened, states, game } = opening();
  await strict(game("A"));
  await act(async () => opened[0]!.fail(new Error("no such room")));
  expect(states.at(-1)).toMatchObject({ status: "closed", error: { message: "no such room" } });
  await strict(game("A"));
  expect(opened).toHaveLength(1);
  await strict(game("B"));
  await act(async () => opened[1]!.fail("a text"));
  expect(states.at(-1)!.error).toBeInstanceOf(Error);
  expect(states.at(-1)!.error!.message).toBe("a text");
});

it("says why an open room ended, and keeps it for what it had", async () => {
  const { opened, states, game } = opening();
  await render(game());
  await act(async () => opened[0]!.open());
  await act(async () => opened[0]!.room.end({ code: "kicked", message: "rude", hint: "" }));
  expect(states.at(-1)).toMatchObject({ status: "closed", closed: { code: "kicked" } });
  expect(states.at(-1)!.room).toBe(opened[0]!.room);
  await render(null);
  await wait(500);
  expect(opened[0]!.room.leave).not.toHaveBeenCalled();
});

it("draws state again when its value is another one, and not for others' changes", async () => {
  const room = new FakeRoom();
  room.state.set("score", { red: 1 });
  const drawn: unknown[] = [];
  function Score() {
    drawn.push(useKey<{ red: number }>(asRoom(room), "score"));
    return null;
  }
  await render(createElement(Score));
  expect(drawn).toEqual([{ red: 1 }]);
  await act(async () => room.change(() => room.state.set("other", 1)));
  expect(drawn).toHaveLength(1);
  await act(async () => room.change(() => room.state.set("score", { red: 2 })));
  expect(drawn).toEqual([{ red: 1 }, { red: 2 }]);
  await act(async () => room.change(() => room.state.delete("score")));
  expect(drawn.at(-1)).toBeUndefined();
});

it("reads another key and another room when it is given them", async () => {
  const [a, b] = [new FakeRoom(), new FakeRoom()];
  a.state.set("x", 1).set("y", 2);
  b.state.set("x", 3);
  function Value({ room, name }: { room: FakeRoom | undefined; name: string }) {
    return String(useKey<number>(room === undefined ? undefined : asRoom(room), name));
  }
  const shows = async (room: FakeRoom | undefined, name: string) => {
    await render(createElement(Value, { room, name }));
    return page.textContent;
  };
  expect(await shows(undefined, "x")).toBe("undefined");
  expect(await shows(a, "x")).toBe("1");
  expect(await shows(a, "y")).toBe("2");
  expect(await shows(b, "x")).toBe("3");
  expect(a.emitter.hears("changed")).toBe(false);
});

it("gives entries under a prefix, of which those that did not change stay the same objects", async () => {
  const room = new FakeRoom();
  room.state.set("dot/1", { x: 1 }).set("dot/2", { x: 2 }).set("round", 1);
  const drawn: ReadonlyMap<string, { x: number }>[] = [];
  function Dots() {
    drawn.push(useKeys<{ x: number }>(asRoom(room), "dot/"));
    return null;
  }
  await render(createElement(Dots));
  await act(async () => room.change(() => room.state.set("dot/2", { x: 5 })));
  expect(drawn.map((it) => [...it])).toEqual([
    [["dot/1", { x: 1 }], ["dot/2", { x: 2 }]],
    [["dot/1", { x: 1 }], ["dot/2", { x: 5 }]],
  ]);
  expect(drawn[1]!.get("dot/1")).toBe(drawn[0]!.get("dot/1"));
});

it("gives players and status of the room of the context", async () => {
  const room = new FakeRoom();
  room.players = new Map([player(0, "ada")]);
  let drawn = 0;
  function Names() {
    drawn += 1;
    const status = useRoomStatus();
    return `${usePlayers().map(({ name }) => name)} ${status} ${useRoomContext() === asRoom(room)}`;
  }
  const tree = createElement(RoomProvider, { room }, createElement(Names));
  await render(tree);
  expect(page.textContent).toBe("ada open true");
  await act(async () => room.change(() => {}));
  expect(drawn).toBe(1);
  await act(async () => room.change(() => (room.players = new Map([player(0, "ada"), player(1, "ben")]))));
  expect(page.textContent).toBe("ada,ben open true");
  await act(async () => room.change(() => (room.status = "reconnecting")));
  expect(page.textContent).toBe("ada,ben reconnecting true");
});

it("hears events with the newest listener, until the component is gone", async () => {
  const room = new FakeRoom();
  const heard: string[] = [];
  function Ears({ mark }: { mark: string }) {
    useEvent(asRoom(room), "playerBack", ({ id }) => void heard.push(mark + id));
    return null;
  }
  await strict(createElement(Ears, { mark: "a" }));
  await act(async () => room.emitter.emit("playerBack", { id: 1 }));
  await strict(createElement(Ears, { mark: "b" }));
  await act(async () => room.emitter.emit("playerBack", { id: 2 }));
  await render(null);
  room.emitter.emit("playerBack", { id: 3 });
  expect(heard).toEqual(["a1", "b2"]);
});

it("is drawn by a server as a page that has no room yet", () => {
  const open = vi.fn();
  function Game() {
    const { status, room } = useRoom<Room>(open, []);
    const inside = `${status} ${usePlayers(room).length} ${useKeys(room, "dot/").size} ${String(useKey(room, "round"))} ${String(useRoomStatus(room))}`;
    return createElement(Fragment, null, inside);
  }
  expect(renderToString(createElement(Game))).toBe("idle 0 0 undefined undefined");
  expect(open).not.toHaveBeenCalled();
});

it("a turn room is drawn again when anything of it changes, and at no other time", async () => {
  const room = { version: 1, myTurn: true, view: { name: "den" }, emitter: new Emitter(), on: (event: string, listener: () => void) => room.emitter.on(event, listener) };
  const drawn: string[] = [];
  function Board({ of }: { of: typeof room | undefined }) {
    const view = useTurnRoom(of as unknown as TurnRoom | undefined);
    drawn.push(`${view?.name} ${of?.myTurn}`);
    return null;
  }
  await render(createElement(Board, { of: undefined }));
  await render(createElement(Board, { of: room }));
  const change = (how: () => void) =>
    act(async () => {
      how();
      room.version += 1;
      room.emitter.emit("changed", { version: room.version });
    });
  await change(() => (room.myTurn = false));
  await change(() => (room.view = { name: "lair" }));
  await act(async () => room.emitter.emit("changed", { version: room.version }));
  expect(drawn).toEqual(["undefined undefined", "den true", "den false", "lair false"]);
});

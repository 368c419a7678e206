import { describe, expect, it } from "vitest";
import { merge, type Readable, Snapshot } from "../../src/react/snapshot.js";

/** A room whose only state is a value. */
class FakeRoom implements Readable {
  version = 0;
  reads = 0;
  listeners = new Set<() => void>();

  constructor(public value: unknown) {}

  on(_: "changed", listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  read(): unknown {
    this.reads += 1;
    return structuredClone(this.value);
  }
}

describe("a snapshot", () => {
  it("is the same object until the contents change, and read once per version", () => {
    const room = new FakeRoom({ score: 1, at: { x: 2 } });
    const snapshot = new Snapshot(room, (it) => it.read(), undefined);
    const first = snapshot.get();
    expect(first).toEqual({ score: 1, at: { x: 2 } });
    expect(snapshot.get()).toBe(first);
    expect(room.reads).toBe(1);
    room.version += 1;
    expect(snapshot.get()).toBe(first);
    expect(room.reads).toBe(2);
    room.version += 1;
    room.value = { score: 3, at: { x: 2 } };
    const second = snapshot.get() as { at: object };
    expect(second).toEqual({ score: 3, at: { x: 2 } });
    expect(second.at).toBe((first as { at: object }).at);
    expect(first).toEqual({ score: 1, at: { x: 2 } });
  });

  it("of no room is empty, and listens to nothing", () => {
    const empty: number[] = [];
    const snapshot = new Snapshot<FakeRoom, unknown>(undefined, (it) => it.read(), empty);
    expect(snapshot.get()).toBe(empty);
    expect(snapshot.getServer()).toBe(empty);
    snapshot.subscribe(() => {})();
  });

  it("listens until it is told to stop", () => {
    const room = new FakeRoom(1);
    const stop = new Snapshot(room, (it) => it.read(), undefined).subscribe(() => {});
    expect(room.listeners.size).toBe(1);
    stop();
    expect(room.listeners.size).toBe(0);
  });
});

describe("merged values", () => {
  it("are the old ones where they are equal", () => {
    const old = { list: [1, { a: 2n }], bytes: Uint8Array.of(1, 2), map: new Map([["k", { v: 1 }]]), nothing: null };
    expect(merge(old, structuredClone(old))).toBe(old);
  });

  it.each<[string, unknown, unknown]>([
    ["a value", { a: 1 }, { a: 2 }],
    ["a key less", { a: 1, b: undefined }, { a: 1 }],
    ["a key more", { a: 1 }, { a: 1, b: undefined }],
    ["another key", { a: undefined }, { b: undefined }],
    ["a shorter list", [1, 2], [1]],
    ["a longer list", [1], [1, 2]],
    ["bytes", Uint8Array.of(1), Uint8Array.of(2)],
    ["fewer bytes", Uint8Array.of(1, 2), Uint8Array.of(1)],
    ["a list for an object", {}, []],
    ["an entry less", new Map([["a", 1], ["b", 2]]), new Map([["a", 1]])],
    ["what a validator made", new Date(1), new Date(2)],
    ["a number for a bigint", 1n, 1],
  ])("differ by %s", (_, old, now) => {
    const merged = merge(old, now);
    expect(merged).not.toBe(old);
    expect(merged).toEqual(now);
  });

  it("keep the entries that are equal, in the new order", () => {
    const old = new Map([["a", { v: 1 }], ["b", { v: 2 }]]);
    const merged = merge(old, new Map([["b", { v: 2 }], ["a", { v: 3 }]])) as typeof old;
    expect([...merged.keys()]).toEqual(["b", "a"]);
    expect(merged.get("b")).toBe(old.get("b"));
  });

  it("take a field of any name as data", () => {
    const now = JSON.parse('{"__proto__": {"x": 1}, "y": 2}') as object;
    const merged = merge({ y: 1 }, now) as object;
    expect(Object.keys(merged)).toEqual(["__proto__", "y"]);
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
  });
});

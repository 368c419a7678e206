import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watchPage } from "../../src/page/lifecycle.js";
import { Seat, type TicketStore } from "../../src/page/seat.js";

/** Web Locks of one browser, for all pages of a test. */
class FakeLocks {
  private readonly held = new Map<string, Promise<void>>();

  async request(name: string, { signal }: { signal?: AbortSignal }, run: () => Promise<void>): Promise<void> {
    while (this.held.has(name)) {
      const aborted = new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(new Error("AbortError"))));
      await Promise.race([this.held.get(name), aborted]);
    }
    const done = run();
    this.held.set(name, done);
    await done;
    this.held.delete(name);
  }

  get names(): string[] {
    return [...this.held.keys()];
  }
}

function storage(): TicketStore & { map: Map<string, string> } {
  const map = new Map<string, string>();
  return { map, get: (key) => map.get(key), set: (key, value) => void map.set(key, value), remove: (key) => void map.delete(key) };
}

const server = { host: "localhost", port: 7700, secure: false };
let locks: FakeLocks;

beforeEach(() => {
  vi.useFakeTimers();
  locks = new FakeLocks();
  vi.stubGlobal("navigator", { locks });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("the seat of a tab", () => {
  it("is got back by the page that follows it", async () => {
    const store = storage();
    const first = await Seat.open("dots", store);
    first.remember("ticket 1", server, "secret");
    first.remember("ticket 2", server, "secret");
    expect([...store.map.keys()]).toEqual(["parlor/dots"]);
    // The page is gone, and its locks with it; what it remembered stays.
    first.letGo();
    const again = await Seat.reclaim("dots", store);
    expect(again!.record).toMatchObject({ ticket: "ticket 2", server, secret: "secret" });
    again!.seat.remember("ticket 3", server, undefined);
    expect(store.get("parlor/dots")).toContain("ticket 3");
  });

  it("stays the first page's when its tab is duplicated, and the copy is thrown away", async () => {
    const store = storage();
    const first = await Seat.open("dots", store);
    first.remember("ticket", server, undefined);
    const copy = storage();
    for (const [key, value] of store.map) copy.set(key, value);
    const second = Seat.reclaim("dots", copy);
    await vi.advanceTimersByTimeAsync(500);
    expect(await second).toBeUndefined();
    expect(copy.map.size).toBe(0);
    expect(store.map.size).toBe(1);
    // A reload of the second tab finds nothing either.
    expect(await Seat.reclaim("dots", copy)).toBeUndefined();
  });

  it("is waited for while the page before is going", async () => {
    const store = storage();
    const first = await Seat.open("dots", store);
    first.remember("ticket", server, undefined);
    const again = Seat.reclaim("dots", store);
    await vi.advanceTimersByTimeAsync(100);
    first.letGo();
    await vi.advanceTimersByTimeAsync(0);
    expect((await again)!.record.ticket).toBe("ticket");
  });

  it("is one page's alone when two ask at once", async () => {
    const store = storage();
    const first = await Seat.open("dots", store);
    first.remember("ticket", server, undefined);
    first.letGo();
    const both = Promise.all([Seat.reclaim("dots", store), Seat.reclaim("dots", store)]);
    await vi.advanceTimersByTimeAsync(500);
    expect((await both).filter((seat) => seat !== undefined)).toHaveLength(1);
  });

  it("is forgotten with its room, and only its own", async () => {
    const store = storage();
    const first = await Seat.open("dots", store);
    first.remember("ticket 1", server, undefined);
    const second = await Seat.open("dots", store);
    second.remember("ticket 2", server, undefined);
    first.forget();
    expect(store.get("parlor/dots")).toContain("ticket 2");
    second.forget();
    expect(store.map.size).toBe(0);
    second.remember("too late", server, undefined);
    expect(store.map.size).toBe(0);
    await vi.advanceTimersByTimeAsync(0);
    expect(locks.names).toEqual([]);
  });

  it("holds a lock as long as its room lives, so that the page is not frozen", async () => {
    const seat = await Seat.open("dots", "never");
    expect(locks.names).toHaveLength(1);
    seat.forget();
    await vi.advanceTimersByTimeAsync(0);
    expect(locks.names).toEqual([]);
  });

  it.each([undefined, "", "{", "{}", '{"ticket":1}', '{"ticket":"t","lock":"l"}'])("is none if what was kept is %s", async (kept) => {
    const store = storage();
    if (kept !== undefined) store.set("parlor/dots", kept);
    expect(await Seat.reclaim("dots", store)).toBeUndefined();
  });

  it("is not remembered by a tab without locks", async () => {
    vi.stubGlobal("navigator", {});
    const kept = storage();
    vi.stubGlobal("sessionStorage", { getItem: kept.get, setItem: kept.set, removeItem: kept.remove });
    const seat = await Seat.open("dots", "tab");
    seat.remember("ticket", server, undefined);
    expect(kept.map.size).toBe(0);
  });
});

describe("a page", () => {
  function fakePage() {
    const document = Object.assign(new EventTarget(), { hidden: false });
    const window = new EventTarget();
    vi.stubGlobal("document", document);
    for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"] as const) {
      vi.stubGlobal(name, window[name].bind(window));
    }
    const told: string[] = [];
    const stop = watchPage({
      visibility: () => void told.push("visibility"),
      back: () => void told.push("back"),
      hidden: () => void told.push("hidden"),
    });
    return { document, window, told, stop };
  }

  it("that is back or online again says so, whichever event the browser has for it", () => {
    const { document, window, told, stop } = fakePage();
    for (const type of ["online", "pageshow", "focus"]) window.dispatchEvent(new Event(type));
    document.dispatchEvent(new Event("resume"));
    expect(told).toEqual(["back", "back", "back", "back"]);
    stop();
    window.dispatchEvent(new Event("online"));
    expect(told).toHaveLength(4);
  });

  it("that is hidden or shown has its steps run by another", () => {
    const { document, told } = fakePage();
    document.hidden = true;
    document.dispatchEvent(new Event("visibilitychange"));
    expect(told).toEqual(["visibility"]);
    document.hidden = false;
    document.dispatchEvent(new Event("visibilitychange"));
    expect(told).toEqual(["visibility", "visibility", "back"]);
  });

  it("that is left says so, and is not listened to where that harms it", () => {
    const { window, told } = fakePage();
    for (const type of ["beforeunload", "unload", "freeze"]) window.dispatchEvent(new Event(type));
    expect(told).toEqual([]);
    window.dispatchEvent(new Event("pagehide"));
    expect(told).toEqual(["hidden"]);
  });
});

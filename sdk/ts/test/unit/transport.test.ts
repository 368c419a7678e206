import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Carrier } from "../../src/link/link.js";
import { LocalTransport, sharedNow, type TransportEvents } from "../../src/link/transport.js";
import { startWorker, WorkerTransport, type WorkerLike, WORKER_PATIENCE_MS } from "../../src/worker/channel.js";
import type { ToPage, ToWorker } from "../../src/worker/messages.js";
import { FakeWebSocket, settled } from "../support/fakes.js";

const address = { host: "localhost", port: 7700, secure: false };
const request = { address, via: "websocket", headStartMs: 0 } as const;

function events() {
  const told: [string, ...unknown[]][] = [];
  const tell = (name: string) => (...args: unknown[]) => void told.push([name, ...args]);
  const all: TransportEvents = {
    opened: tell("opened"), failed: tell("failed"), packets: tell("packets"), drained: tell("drained"), carries: tell("carries"),
    wrote: tell("wrote"), closed: tell("closed"), beat: tell("beat"),
  };
  return { told, all, names: () => told.map(([name]) => name) };
}

beforeEach(() => {
  vi.useFakeTimers();
  FakeWebSocket.made = [];
});
afterEach(() => void vi.useRealTimers());

describe("the transport", () => {
  async function open() {
    const it = events();
    const transport = new LocalTransport({ WebSocket: FakeWebSocket }, it.all);
    transport.dial(request);
    FakeWebSocket.last.fire("open");
    await settled();
    return { ...it, transport, socket: FakeWebSocket.last };
  }

  it("opens, carries, and closes", async () => {
    const { told, transport, socket } = await open();
    expect(told).toEqual([["opened", "websocket"]]);
    transport.send([{ carrier: Carrier.Stream, bytes: Uint8Array.of(1) }]);
    expect(socket.sent).toEqual([Uint8Array.of(1)]);
    socket.fire("message", { data: Uint8Array.of(2).buffer });
    expect(told.at(-1)![0]).toBe("packets");
    transport.close("done", "over");
    expect(socket.closedWith).toMatchObject({ code: 1000 });
    socket.fire("close", { code: 1000 });
    expect(told.at(-1)![0]).toBe("packets");
  });

  it("tells of a link that is over before it was told that it stands", async () => {
    const it = events();
    new LocalTransport({ WebSocket: FakeWebSocket }, it.all).dial(request);
    FakeWebSocket.last.fire("open");
    FakeWebSocket.last.fire("close", { code: 4006, reason: "too slow" });
    await settled();
    expect(it.told).toEqual([
      ["opened", "websocket"],
      ["closed", "the server closed the connection (4006): too slow"],
    ]);
  });

  it("says why there is no link, as words that cross to a page", async () => {
    const it = events();
    new LocalTransport({ WebSocket: FakeWebSocket }, it.all).dial(request);
    FakeWebSocket.last.fire("close", { code: 1006 });
    await settled();
    expect(it.told).toEqual([["failed", { code: "unreachable", message: "no WebSocket to ws://localhost:7700/ws", hint: "" }]]);
    expect(structuredClone(it.told)).toEqual(it.told);
  });

  it("gives up an attempt that is not wanted any more", async () => {
    const it = events();
    const transport = new LocalTransport({ WebSocket: FakeWebSocket }, it.all);
    transport.dial(request);
    const first = FakeWebSocket.last;
    transport.dial(request);
    first.fire("open");
    await settled();
    expect(first.closedWith).toBeDefined();
    FakeWebSocket.last.fire("open");
    await settled();
    expect(it.names()).toEqual(["opened"]);
  });

  it("beats at the instant that was set last", () => {
    const it = events();
    const transport = new LocalTransport({}, it.all);
    transport.beatAt(sharedNow() + 100);
    transport.beatAt(sharedNow() + 50);
    vi.advanceTimersByTime(50);
    expect(it.names()).toEqual(["beat"]);
    transport.beatAt(sharedNow() + 50);
    transport.beatAt(undefined);
    vi.advanceTimersByTime(1_000);
    expect(it.names()).toEqual(["beat"]);
  });

  it("shows that the page lives while it is busy, and not one that hangs for good", async () => {
    const { transport, socket } = await open();
    transport.heart(150);
    vi.advanceTimersByTime(300);
    expect(socket.sent.map((bytes) => [...bytes])).toEqual([[0], [0]]);
    // What the page hands over is a sign of life itself.
    transport.send([{ carrier: Carrier.Stream, bytes: Uint8Array.of(5) }]);
    vi.advanceTimersByTime(149);
    expect(socket.sent).toHaveLength(3);
    vi.advanceTimersByTime(20_000);
    const signs = socket.sent.length;
    expect(signs).toBeLessThan(75);
    vi.advanceTimersByTime(20_000);
    expect(socket.sent).toHaveLength(signs);
    // It answers again.
    transport.beatAt(undefined);
    vi.advanceTimersByTime(300);
    expect(socket.sent.length).toBeGreaterThan(signs);
  });

  it("has no heart on a new link: its first packet is the room's", async () => {
    const { transport } = await open();
    transport.heart(150);
    transport.dial(request);
    FakeWebSocket.last.fire("open");
    await settled();
    vi.advanceTimersByTime(5_000);
    expect(FakeWebSocket.last.sent).toEqual([]);
  });

  it("leaves nothing behind", async () => {
    const { transport } = await open();
    transport.heart(150);
    transport.beatAt(sharedNow() + 1_000);
    transport.end();
    expect(vi.getTimerCount()).toBe(0);
  });
});

/** A worker whose messages its test sees. */
class FakeWorker implements WorkerLike {
  readonly got: ToWorker[] = [];
  isTerminated = false;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onerror: ((event: ErrorEvent) => void) | null = null;

  postMessage(message: unknown): void {
    this.got.push(message as ToWorker);
  }
  terminate(): void {
    this.isTerminated = true;
  }
  say(message: ToPage): void {
    this.onmessage?.({ data: message } as MessageEvent);
  }
}

describe("the transport worker", () => {
  it("is there once it says so", async () => {
    const worker = new FakeWorker();
    const started = startWorker(() => worker);
    worker.say({ type: "ready" });
    expect(await started).toBe(worker);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is not there if a policy refuses it, or it does not start", async () => {
    const refused = new FakeWorker();
    const starting = startWorker(() => refused);
    refused.onerror!({ message: "" } as ErrorEvent);
    await expect(starting).rejects.toThrow("transport worker");
    const silent = new FakeWorker();
    const waiting = expect(startWorker(() => silent)).rejects.toThrow("did not start");
    vi.advanceTimersByTime(WORKER_PATIENCE_MS);
    await waiting;
    expect(silent.isTerminated).toBe(true);
    await expect(
      startWorker(() => {
        throw new Error("SecurityError");
      }),
    ).rejects.toThrow("SecurityError");
  });

  it("dials at its start what it is given, and does not again when it is asked for that", async () => {
    const worker = new FakeWorker();
    const starting = startWorker(() => worker, request);
    expect(worker.got, "the worker has it before it says anything").toEqual([{ type: "dial", request }]);
    worker.say({ type: "ready" });
    const transport = new WorkerTransport(await starting, events().all, request);
    transport.dial(request);
    expect(worker.got).toHaveLength(1);
    transport.dial(request);
    expect(worker.got, "another attempt at the same place").toHaveLength(2);
    const other = new FakeWorker();
    new WorkerTransport(other, events().all, request).dial({ ...request, via: "websocket" });
    expect(other.got, "not what it was started with").toHaveLength(1);
  });

  it("is the same to a page as a transport in place", () => {
    const worker = new FakeWorker();
    const { told, all } = events();
    const transport = new WorkerTransport(worker, all);
    transport.dial(request);
    transport.send([{ carrier: Carrier.Stream, bytes: Uint8Array.of(1) }]);
    transport.beatAt(5);
    transport.heart(150);
    transport.close("done", "over");
    expect(worker.got.map(({ type }) => type)).toEqual(["dial", "send", "beatAt", "heart", "close"]);
    const said: ToPage[] = [
      { type: "opened", via: "webtransport" },
      { type: "failed", why: { code: "unreachable", message: "m", hint: "" } },
      { type: "packets", batch: [], at: 7 },
      { type: "drained", streamBytes: 1, datagrams: 2 },
      { type: "carries", bytesPerSecond: 3 },
      { type: "wrote", bytes: 1, began: 2, ended: 3, waits: true },
      { type: "closed", why: "w" },
      { type: "beat" },
    ];
    for (const message of said) worker.say(message);
    expect(told.map(([name]) => name)).toEqual(said.map(({ type }) => type));
    transport.end();
    worker.say({ type: "beat" });
    expect(told).toHaveLength(said.length);
    vi.advanceTimersByTime(1_000);
    expect(worker.isTerminated).toBe(true);
  });

  it("that fails is a lost link", () => {
    const worker = new FakeWorker();
    const { told, all } = events();
    new WorkerTransport(worker, all);
    worker.onerror!({ message: "out of memory" } as ErrorEvent);
    expect(told).toEqual([["closed", "the transport worker failed: out of memory"]]);
  });
});

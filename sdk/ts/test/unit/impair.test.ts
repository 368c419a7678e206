// A bad network over a transport that only notes what it is given, in virtual time.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { badNetwork, type Impairment } from "../../src/impair.js";
import { type Arrived, Carrier, type Via } from "../../src/link/link.js";
import type { Transport, TransportEvents } from "../../src/link/transport.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A room's transport through a network, and what came out at both ends: the first byte of each packet, and when. */
function through(impairment: Impairment, via: Via = "webtransport") {
  const out = { up: [] as [number, number][], down: [] as [number, number][], drained: 0, ended: [] as string[] };
  const start = performance.now();
  const at = () => performance.now() - start;
  let inner!: TransportEvents;
  const network = badNetwork(impairment);
  const transport = network.wrap((events): Transport => {
    inner = events;
    return {
      dial: () => {}, beatAt: () => {}, heart: () => {}, end: () => out.ended.push("end"),
      send: (packets) => packets.forEach(({ bytes }) => out.up.push([bytes[0]!, at()])),
      close: (word) => out.ended.push(word),
    };
  })({
    opened() {}, failed() {}, carries() {}, wrote() {}, beat() {},
    closed: (why) => out.ended.push(why),
    packets: (batch) => batch.forEach(({ bytes }) => out.down.push([bytes[0]!, at()])),
    drained: (_, datagrams) => (out.drained += datagrams),
  });
  inner.opened(via);
  const packet = (number: number, carrier: Carrier = Carrier.Datagram): Arrived => ({ carrier, bytes: Uint8Array.of(number) });
  return { network, transport, inner, out, packet };
}

describe("a bad network", () => {
  test("delays both directions", () => {
    const { transport, inner, out, packet } = through({ latencyMs: 75 });
    transport.send([packet(1)]);
    inner.packets([packet(2)], 0);
    vi.advanceTimersByTime(74);
    expect([out.up, out.down]).toEqual([[], []]);
    vi.advanceTimersByTime(2);
    expect([out.up, out.down]).toEqual([[[1, 75]], [[2, 75]]]);
  });

  test("lets datagrams overtake, within latency and jitter, and no packet of a stream", () => {
    const { transport, out, packet } = through({ latencyMs: 50, jitterMs: 40, seed: 7 });
    for (let number = 0; number < 100; number++) transport.send([packet(number), packet(100 + number, Carrier.Stream)]);
    vi.advanceTimersByTime(1_000);
    const [datagrams, stream] = [out.up.filter(([number]) => number < 100), out.up.filter(([number]) => number >= 100)];
    expect([datagrams.length, stream.length]).toEqual([100, 100]);
    expect(datagrams.every(([, at]) => at >= 50 && at <= 91)).toBe(true);
    expect(datagrams.map(([number]) => number)).not.toEqual([...Array(100).keys()]);
    expect(stream.map(([number]) => number - 100)).toEqual([...Array(100).keys()]);
  });

  test("loses as many datagrams as it was told, and gives their credit back; of a stream it loses nothing", () => {
    const { transport, out, packet } = through({ latencyMs: 10, loss: 0.2, seed: 3 });
    for (let number = 0; number < 300; number++) transport.send([packet(number % 100), packet(200, Carrier.Stream)]);
    vi.advanceTimersByTime(10_000);
    const lost = 300 - out.up.filter(([number]) => number < 200).length;
    expect(lost).toBeGreaterThan(35);
    expect(lost).toBeLessThan(85);
    expect(out.drained).toBe(lost);
    const stream = out.up.filter(([number]) => number === 200);
    expect(stream.length).toBe(300);
    // A loss makes what is behind it late.
    expect(stream.some(([, at]) => at >= 60)).toBe(true);
  });

  test("makes one stream of a WebSocket", () => {
    const { transport, out, packet } = through({ latencyMs: 10, jitterMs: 50, loss: 0.5, seed: 1 }, "websocket");
    for (let number = 0; number < 50; number++) transport.send([packet(number)]);
    vi.advanceTimersByTime(10_000);
    expect(out.up.map(([number]) => number)).toEqual([...Array(50).keys()]);
  });

  test("can be changed while it is used, and keeps the order of a stream then", () => {
    const { network, transport, out, packet } = through({ latencyMs: 100 });
    transport.send([packet(1, Carrier.Stream)]);
    network.impairment = {};
    transport.send([packet(2, Carrier.Stream), packet(3)]);
    vi.advanceTimersByTime(200);
    expect(out.up).toEqual([[3, 0], [1, 100], [2, 100]]);
  });

  test("without an impairment lets everything through at once", () => {
    const { transport, inner, out, packet } = through({});
    transport.send([packet(1), packet(2, Carrier.Stream)]);
    inner.packets([packet(3)], 0);
    expect([out.up, out.down]).toEqual([[[1, 0], [2, 0]], [[3, 0]]]);
  });

  test("sends a goodbye out before it closes, and tells of an end after what came before it", () => {
    const { transport, inner, out, packet } = through({ latencyMs: 50 });
    transport.send([packet(1, Carrier.Stream)]);
    transport.close("done", "left");
    expect([out.up, out.ended]).toEqual([[[1, 0]], ["done"]]);
    inner.packets([packet(2, Carrier.Stream)], 0);
    inner.closed("gone");
    vi.advanceTimersByTime(60);
    expect([out.down, out.ended]).toEqual([[[2, 50]], ["done", "gone"]]);
  });
});

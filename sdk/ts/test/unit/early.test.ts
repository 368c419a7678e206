import { describe, expect, it, vi } from "vitest";
import { HEAD_START_MS } from "../../src/link/dial.js";
import { EarlyTransport } from "../../src/link/early.js";
import type { Transport, TransportEvents } from "../../src/link/transport.js";
import { settled } from "../support/fakes.js";

const request = { address: { host: "localhost", port: 7700, secure: false }, via: "auto" as const, headStartMs: HEAD_START_MS };

/** A transport that records what it is asked, and the events that it would tell. */
function made() {
  let events!: TransportEvents;
  const transport = { dial: vi.fn(), send: vi.fn(), close: vi.fn(), beatAt: vi.fn(), heart: vi.fn(), end: vi.fn() } satisfies Transport;
  return { transport, make: (of: TransportEvents) => ((events = of), transport), tells: () => events };
}

/** Who listens, and what it heard. */
function listener() {
  const heard: unknown[][] = [];
  const names = ["opened", "failed", "packets", "drained", "carries", "wrote", "closed", "beat"] as const;
  const hears = names.map((name) => [name, (...what: unknown[]) => void heard.push([name, ...what])]);
  return { heard, events: Object.fromEntries(hears) as unknown as TransportEvents };
}

describe("a transport that dials before there is a core", () => {
  it("dials at once, and tells later what came meanwhile, and the rest directly", async () => {
    const { transport, make, tells } = made();
    const early = new EarlyTransport(make, request);
    expect(transport.dial).toHaveBeenCalledExactlyOnceWith(request);
    tells().opened("webtransport");
    const { heard, events } = listener();
    expect(early.handOver(events)).toEqual({ transport, dials: true });
    expect(heard, "not before whoever listens is ready").toEqual([]);
    await settled();
    tells().beat();
    expect(heard).toEqual([["opened", "webtransport"], ["beat"]]);
  });

  it("tells that nobody was reached", async () => {
    const { make, tells } = made();
    const early = new EarlyTransport(make, request);
    const why = { code: "unreachable", message: "nobody is there", hint: "" };
    tells().failed(why);
    const { heard, events } = listener();
    expect(early.handOver(events).dials).toBe(true);
    await settled();
    expect(heard).toEqual([["failed", why]]);
  });

  it("forgets a link that was lost before the core was there", async () => {
    const { make, tells } = made();
    const early = new EarlyTransport(make, request);
    tells().opened("webtransport");
    tells().closed("the server waited for a greeting");
    const { heard, events } = listener();
    expect(early.handOver(events).dials).toBe(false);
    await settled();
    expect(heard).toEqual([]);
  });

  it("does not dial without a request, and ends", () => {
    const { transport, make } = made();
    const early = new EarlyTransport(make, undefined);
    expect(transport.dial).not.toHaveBeenCalled();
    expect(early.handOver(listener().events).dials).toBe(false);
    early.end();
    expect(transport.end).toHaveBeenCalledOnce();
  });
});

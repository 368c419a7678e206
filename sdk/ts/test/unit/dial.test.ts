import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { dial, type DialRequest, type DialTools, HEAD_START_MS } from "../../src/link/dial.js";
import { FakeWebSocket, FakeWebTransport, settled, Told } from "../support/fakes.js";

const hashes = ["AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA"];
const request = (more: Partial<DialRequest> = {}): DialRequest => ({
  address: { host: "localhost", port: 7700, secure: false, hashes },
  via: "auto",
  headStartMs: HEAD_START_MS,
  ...more,
});
const tools: DialTools = { WebSocket: FakeWebSocket, WebTransport: FakeWebTransport };
const never = new AbortController().signal;

beforeEach(() => {
  vi.useFakeTimers();
  FakeWebSocket.made = [];
  FakeWebTransport.made = [];
});
afterEach(() => void vi.useRealTimers());

describe("dialling", () => {
  it("takes WebTransport if it stands within its head start", async () => {
    const dialled = dial(request(), tools, new Told(), never);
    await settled();
    FakeWebTransport.last.becomeReady();
    expect((await dialled).via).toBe("webtransport");
    vi.advanceTimersByTime(60_000);
    expect(FakeWebSocket.made).toHaveLength(0);
  });

  it("begins WebSocket when the head start is over, and gives WebTransport up if that wins", async () => {
    const dialled = dial(request(), tools, new Told(), never);
    vi.advanceTimersByTime(HEAD_START_MS - 1);
    await settled();
    expect(FakeWebSocket.made).toHaveLength(0);
    vi.advanceTimersByTime(1);
    expect(FakeWebSocket.last.url).toBe("ws://localhost:7700/ws");
    FakeWebSocket.last.fire("open");
    expect((await dialled).via).toBe("websocket");
    await settled();
    expect(FakeWebTransport.last.isClosed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("begins WebSocket at once when WebTransport fails", async () => {
    const dialled = dial(request(), tools, new Told(), never);
    await settled();
    FakeWebTransport.last.fail(new Error("Opening handshake failed."));
    await settled();
    expect(FakeWebSocket.made).toHaveLength(1);
    FakeWebSocket.last.fire("open");
    expect((await dialled).via).toBe("websocket");
  });

  it("closes a link that stands too late", async () => {
    const dialled = dial(request({ headStartMs: 0 }), tools, new Told(), never);
    await settled();
    vi.advanceTimersByTime(0);
    FakeWebSocket.last.fire("open");
    FakeWebTransport.last.becomeReady();
    await dialled;
    await settled();
    expect(FakeWebTransport.last.isClosed).toBe(true);
  });

  it("gives up WebTransport that says nothing for 4 s, and says of both what was wrong", async () => {
    const dialled = dial(request(), tools, new Told(), never);
    const failed = expect(dialled).rejects.toMatchObject({ code: "unreachable", message: expect.stringMatching(/no answer within 4 s.*|.*ECONNREFUSED.*/) });
    vi.advanceTimersByTime(HEAD_START_MS);
    FakeWebSocket.last.fire("error", { message: "ECONNREFUSED" });
    FakeWebSocket.last.fire("close", { code: 1006 });
    await settled();
    vi.advanceTimersByTime(4_000);
    await failed;
    expect(FakeWebTransport.last.isClosed).toBe(true);
  });

  it("has one attempt of WebTransport at a time, and none over a way that was not asked for", async () => {
    const dialled = dial(request({ via: "websocket" }), tools, new Told(), never);
    expect(FakeWebTransport.made).toHaveLength(0);
    FakeWebSocket.last.fire("open");
    await dialled;
    const only = dial(request({ via: "webtransport" }), tools, new Told(), never);
    await settled();
    vi.advanceTimersByTime(3_000);
    expect(FakeWebTransport.made).toHaveLength(1);
    expect(FakeWebSocket.made).toHaveLength(1);
    FakeWebTransport.last.becomeReady();
    expect((await only).via).toBe("webtransport");
  });

  it("asks the server where it takes WebTransport if no invite said so", async () => {
    const fetch = vi.fn(async () => new Response(JSON.stringify({ webtransport: { port: 7701, path: "/x", hashes } })));
    const address = { host: "localhost", port: 7700, secure: false };
    const dialled = dial(request({ address }), { ...tools, fetch: fetch as never }, new Told(), never);
    await settled();
    expect(fetch.mock.calls[0]).toEqual(["http://localhost:7700/web.json", expect.objectContaining({ cache: "no-store" })]);
    expect(FakeWebTransport.last.url).toBe("https://localhost:7701/x");
    expect(FakeWebTransport.last.options).toHaveProperty("serverCertificateHashes");
    FakeWebTransport.last.becomeReady();
    expect((await dialled).via).toBe("webtransport");
  });

  const elsewhere = ["ZQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA"];
  const told = (hashes: string[]) => vi.fn(async () => new Response(JSON.stringify({ webtransport: { port: 7700, path: "/wt", hashes } })));

  it("asks the server for its present hashes when those of an invite open nothing", async () => {
    const fetch = told(elsewhere);
    const dialled = dial(request({ via: "webtransport" }), { ...tools, fetch: fetch as never }, new Told(), never);
    await settled();
    expect(fetch).not.toHaveBeenCalled();
    FakeWebTransport.last.fail(new Error("Opening handshake failed."));
    await settled();
    expect(fetch).toHaveBeenCalledOnce();
    expect(FakeWebTransport.made).toHaveLength(2);
    const hash = expect.objectContaining({ value: Uint8Array.from(atob("ZQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="), (c) => c.charCodeAt(0)) });
    expect(FakeWebTransport.last.options).toMatchObject({ serverCertificateHashes: [hash] });
    FakeWebTransport.last.becomeReady();
    expect((await dialled).via).toBe("webtransport");
  });

  it.each([
    ["the same hashes", told(hashes), ""],
    ["no answer", vi.fn(() => Promise.reject(new TypeError("Failed to fetch"))), "ask for a new invite"],
  ])("fails with what the browser said when the server gives %s", async (_, fetch, hint) => {
    const dialled = dial(request({ via: "webtransport" }), { ...tools, fetch: fetch as never }, new Told(), never);
    const failed = expect(dialled).rejects.toMatchObject({
      code: "unreachable",
      message: expect.stringContaining("Opening handshake failed."),
      hint: expect.stringContaining(hint),
    });
    await settled();
    FakeWebTransport.last.fail(new Error("Opening handshake failed."));
    await failed;
    expect(FakeWebTransport.made).toHaveLength(1);
  });

  it.each([
    ["unreachable", async () => new Response(JSON.stringify({ parlor: "0.2.0" })), "no WebTransport"],
    ["not_parlor", async () => new Response("<html>"), "web.json"],
    ["not_parlor", async () => new Response("", { status: 404 }), "404"],
    ["unreachable", () => Promise.reject(new TypeError("Failed to fetch")), "Failed to fetch"],
  ])("says %s when /web.json does not help", async (code, fetch, why) => {
    const address = { host: "localhost", port: 7700, secure: false };
    const dialled = dial(request({ address, via: "webtransport" }), { ...tools, fetch: fetch as never }, new Told(), never);
    await expect(dialled).rejects.toMatchObject({ code, message: expect.stringContaining(why) });
  });

  it("ends both when its signal does", async () => {
    const end = new AbortController();
    const dialled = dial(request({ headStartMs: 0 }), tools, new Told(), end.signal);
    await settled();
    vi.advanceTimersByTime(0);
    end.abort(new Error("enough"));
    await expect(dialled).rejects.toThrow("enough");
    await settled();
    expect(FakeWebTransport.last.isClosed).toBe(true);
    expect(FakeWebSocket.last.closedWith).toBeDefined();
  });

  it("says to a page of another origin what its server must name", async () => {
    vi.stubGlobal("origin", "http://localhost:5173");
    const dialled = dial(request({ via: "websocket" }), tools, new Told(), never);
    FakeWebSocket.last.fire("close", { code: 1006 });
    await expect(dialled).rejects.toMatchObject({ hint: expect.stringContaining("--web-origins http://localhost:5173") });
    vi.stubGlobal("origin", "http://localhost:7700");
    const own = dial(request({ via: "websocket" }), tools, new Told(), never);
    FakeWebSocket.last.fire("close", { code: 1006 });
    await expect(own).rejects.toMatchObject({ hint: "" });
    vi.unstubAllGlobals();
  });

  it("says what is missing where there is nothing to dial with", async () => {
    await expect(dial(request(), {}, new Told(), never)).rejects.toMatchObject({ code: "no_websocket" });
    await expect(dial(request({ via: "webtransport" }), { WebSocket: FakeWebSocket }, new Told(), never)).rejects.toMatchObject({ code: "no_webtransport" });
  });
});

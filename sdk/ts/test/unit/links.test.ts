import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Carrier } from "../../src/link/link.js";
import { record, StreamFault, StreamReader } from "../../src/link/records.js";
import { openWebSocket } from "../../src/link/websocket.js";
import { openWebTransport } from "../../src/link/webtransport.js";
import { FakeWebSocket, FakeWebTransport, settled, Told } from "../support/fakes.js";


beforeEach(() => {
  vi.useFakeTimers();
  FakeWebSocket.made = [];
  FakeWebTransport.made = [];
});
afterEach(() => void vi.useRealTimers());

describe("a stream of records", () => {
  const packets = [new Uint8Array([7]), new Uint8Array(0), new Uint8Array(300).fill(1), new Uint8Array(67_584).fill(2)];
  const bytes = Uint8Array.from([0, ...packets.flatMap((packet) => [...record(packet)])]);

  it("is read however it is cut", () => {
    for (const size of [1, 2, 3, 1_000, 70_000]) {
      const reader = new StreamReader();
      const read: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += size) read.push(...reader.push(bytes.slice(at, at + size)));
      expect(read).toEqual(packets);
      expect(reader.end()).toBeUndefined();
    }
  });

  it.each([
    ["malformed", [2], "unknown type"],
    ["malformed", [0, 0xc0], "too long"],
    ["malformed", [0, 0x40, 0x01], "shortest"],
    ["tooLarge", [0, 0x80, 0x01, 0x08, 0x01], "67585"],
  ])("is refused as %s: %o", (word, start, why) => {
    const read = () => new StreamReader().push(Uint8Array.from(start));
    expect(read).toThrow(StreamFault);
    expect(read).toThrow(why);
    try {
      read();
    } catch (thrown) {
      expect((thrown as StreamFault).word).toBe(word);
    }
  });

  it("may end after a whole record alone", () => {
    const reader = new StreamReader();
    reader.push(Uint8Array.of(0, 2, 1));
    expect(() => reader.end()).toThrow("within a record");
  });

  it("is one packet to its end if it is isolated", () => {
    const reader = new StreamReader();
    expect(reader.push(Uint8Array.of(1, 5))).toEqual([]);
    expect(reader.push(Uint8Array.of(6))).toEqual([]);
    expect(reader.end()).toEqual(Uint8Array.of(5, 6));
    const large = new StreamReader();
    large.push(Uint8Array.of(1));
    expect(() => large.push(new Uint8Array(67_585))).toThrow("too large");
  });
});

describe("a link over WebSocket", () => {
  async function open() {
    const told = new Told();
    const opening = openWebSocket("ws://localhost:7700/ws", FakeWebSocket, told, new AbortController().signal);
    FakeWebSocket.last.fire("open");
    return { told, socket: FakeWebSocket.last, link: await opening };
  }

  it("asks for the subprotocol, and carries packets as messages", async () => {
    const { told, socket, link } = await open();
    expect(socket.protocol).toBe("parlor");
    expect(socket.binaryType).toBe("arraybuffer");
    link.send(Carrier.Stream, Uint8Array.of(1));
    expect(socket.sent).toEqual([Uint8Array.of(1)]);
    socket.fire("message", { data: Uint8Array.of(2, 3).buffer });
    expect(told.packetsOf).toEqual([{ carrier: Carrier.Stream, bytes: Uint8Array.of(2, 3) }]);
    expect(told.streamBytes).toBe(1);
  });

  it("says that bytes have drained once the socket's queue is short, and how long it took", async () => {
    const { told, socket, link } = await open();
    socket.bufferedAmount = 100_000;
    link.send(Carrier.Stream, new Uint8Array(100_000));
    expect(told.streamBytes).toBe(0);
    socket.bufferedAmount = 60_000;
    vi.advanceTimersByTime(20);
    expect(told.streamBytes).toBe(40_000);
    expect(told.writes).toEqual([{ bytes: 40_000, ms: 20, waits: true }]);
    socket.bufferedAmount = 0;
    vi.advanceTimersByTime(20);
    expect(told.streamBytes).toBe(100_000);
    expect(told.writes.at(-1)).toEqual({ bytes: 60_000, ms: 20, waits: false });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("tells its end once, and not if this end closed it", async () => {
    const { told, socket } = await open();
    socket.fire("close", { code: 1001, reason: "restart" });
    socket.fire("close", { code: 1001 });
    expect(told.ends).toEqual(["the server closed the connection (1001): restart"]);
    const other = await open();
    other.link.close("done", "over");
    expect(other.socket.closedWith).toEqual({ code: 1000, reason: "over" });
    other.socket.fire("close", { code: 1000 });
    other.socket.fire("message", { data: new ArrayBuffer(1) });
    expect(other.told.ends).toEqual([]);
    expect(other.told.packetsOf).toEqual([]);
  });

  it("ends where the server sends text or too much", async () => {
    const { told, socket } = await open();
    socket.fire("message", { data: "hello" });
    expect(told.ends[0]).toContain("no packet");
    expect(socket.closedWith?.code).toBe(1000);
    const large = await open();
    large.socket.fire("message", { data: new ArrayBuffer(67_585) });
    expect(large.told.ends[0]).toContain("too large");
  });

  it("is not there if the constructor throws, the socket fails, or the wait is aborted", async () => {
    class Throws {
      constructor() {
        throw new Error("mixed content");
      }
    }
    await expect(openWebSocket("ws://x/ws", Throws as never, new Told(), new AbortController().signal)).rejects.toMatchObject({ code: "blocked_by_browser" });
    const failing = openWebSocket("ws://x/ws", FakeWebSocket, new Told(), new AbortController().signal);
    FakeWebSocket.last.fire("error", { message: "ECONNREFUSED" });
    FakeWebSocket.last.fire("close", { code: 1006 });
    await expect(failing).rejects.toThrow(/no WebSocket to ws:\/\/x\/ws: ECONNREFUSED/);
    const end = new AbortController();
    const waiting = openWebSocket("ws://x/ws", FakeWebSocket, new Told(), end.signal);
    end.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(FakeWebSocket.last.closedWith).toEqual({});
  });
});

describe("a link over WebTransport", () => {
  async function open(hashes: string[] = []) {
    const told = new Told();
    const opening = openWebTransport("https://localhost:7700/wt", hashes, FakeWebTransport, told, new AbortController().signal);
    const session = FakeWebTransport.last;
    session.becomeReady();
    return { told, session, link: await opening };
  }

  it("pins the certificates of an invite, and asks for a connection of its own", async () => {
    const hash = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";
    const { session } = await open([hash]);
    expect(session.options).toMatchObject({ allowPooling: false, requireUnreliable: true, congestionControl: "low-latency" });
    const [pinned] = session.options!["serverCertificateHashes"] as { algorithm: string; value: Uint8Array }[];
    expect(pinned!.algorithm).toBe("sha-256");
    expect([...pinned!.value]).toEqual(Array.from({ length: 32 }, (_, i) => i + 1));
    expect(session.datagrams.outgoingMaxAge).toBe(100);
  });

  it("sends datagrams as they are, and all else as records on one stream", async () => {
    const { told, session, link } = await open();
    link.send(Carrier.Datagram, Uint8Array.of(9));
    link.send(Carrier.Stream, Uint8Array.of(1, 2));
    link.send(Carrier.Isolated, Uint8Array.of(3));
    await settled();
    expect(session.datagramsSent).toEqual([Uint8Array.of(9)]);
    expect(session.streamBytes).toEqual([0, 2, 1, 2, 1, 3]);
    expect([told.streamBytes, told.datagrams]).toEqual([3, 1]);
  });

  it("says that bytes have drained when the stream took them", async () => {
    const { told, session, link } = await open();
    await settled();
    session.holdsStream = true;
    link.send(Carrier.Stream, new Uint8Array(500));
    await settled();
    expect(told.streamBytes).toBe(0);
    vi.advanceTimersByTime(150);
    session.release();
    await settled();
    expect(told.streamBytes).toBe(500);
    expect(told.writes).toEqual([{ bytes: 502, ms: 150, waits: false }]);
  });

  it("reads datagrams, records and isolated packets", async () => {
    const { told, session } = await open();
    session.receiveDatagram(Uint8Array.of(5));
    const records = session.receiveStream();
    records.enqueue(Uint8Array.of(0, 1, 6, 2, 7));
    records.enqueue(Uint8Array.of(8));
    const isolated = session.receiveStream();
    isolated.enqueue(Uint8Array.of(1, 9));
    isolated.close();
    await settled();
    expect(told.packetsOf).toEqual([
      { carrier: Carrier.Datagram, bytes: Uint8Array.of(5) },
      { carrier: Carrier.Stream, bytes: Uint8Array.of(6) },
      { carrier: Carrier.Isolated, bytes: Uint8Array.of(9) },
      { carrier: Carrier.Stream, bytes: Uint8Array.of(7, 8) },
    ].sort((a, b) => told.packetsOf.findIndex((it) => it.carrier === a.carrier) - told.packetsOf.findIndex((it) => it.carrier === b.carrier)));
  });

  it.each([
    ["a stream of an unknown type", [[2]], "unknown type"],
    ["a second stream of records", [[0], [0]], "second stream"],
    ["a record that is too large", [[0, 0x80, 0x01, 0x08, 0x01]], "67585"],
  ])("ends at %s", async (_, streams, why) => {
    const { told, session } = await open();
    for (const bytes of streams) session.receiveStream().enqueue(Uint8Array.from(bytes));
    await settled();
    expect(told.ends).toHaveLength(1);
    expect(told.ends[0]).toContain(why);
    expect(session.closedWith?.closeCode).toBeGreaterThan(0);
  });

  it("holds no more than a mebibyte of what has begun and not ended", async () => {
    const { told, session } = await open();
    for (let i = 0; i < 16; i++) session.receiveStream().enqueue(new Uint8Array(67_000).fill(1));
    await settled();
    expect(told.ends[0]).toContain("too much has begun");
  });

  it("tells its end once, with what the server said", async () => {
    const { told, session } = await open();
    session.endWith({ closeCode: 1, reason: "going away" });
    await settled();
    expect(told.ends).toEqual(["the server closed the connection (1): going away"]);
    const broken = await open();
    broken.session.breakWith(new Error("net::ERR_QUIC_PROTOCOL_ERROR"));
    await settled();
    expect(broken.told.ends[0]).toContain("ERR_QUIC");
  });

  it("closes after what was written", async () => {
    const { session, link } = await open();
    link.send(Carrier.Stream, Uint8Array.of(4));
    link.close("done", "over");
    expect(session.isClosed).toBe(false);
    await settled();
    expect(session.streamBytes).toEqual([0, 1, 4]);
    expect(session.closedWith).toEqual({ closeCode: 0, reason: "over" });
  });

  it("is not there without datagrams of 1,000 bytes", async () => {
    const opening = openWebTransport("https://x/wt", [], FakeWebTransport, new Told(), new AbortController().signal);
    FakeWebTransport.last.datagrams.maxDatagramSize = 900;
    FakeWebTransport.last.becomeReady();
    await expect(opening).rejects.toThrow("datagrams of 900 bytes");
    expect(FakeWebTransport.last.isClosed).toBe(true);
  });

  it("does without options that an older browser refuses", async () => {
    class Old extends FakeWebTransport {
      constructor(url: string, options: Record<string, unknown> = {}) {
        if ("congestionControl" in options) throw new TypeError("no such option");
        super(url, options);
      }
    }
    const opening = openWebTransport("https://x/wt", [], Old, new Told(), new AbortController().signal);
    FakeWebTransport.last.becomeReady();
    expect((await opening).via).toBe("webtransport");
  });
});

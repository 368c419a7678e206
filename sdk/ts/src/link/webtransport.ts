// A link over WebTransport: datagrams, one stream of records up, and records and isolated packets down.
//
// Browsers differ. What is only in some of them is looked for, and what is in none (credit for further streams) is
// not needed: isolated packets go on the stream of records.

import { abortReason, sentence } from "../thrown.js";
import { LinkFault } from "./fault.js";
import { Carrier, CLOSE, type CloseWord, DATAGRAM_BYTES_MAX, type Link, type LinkEvents } from "./link.js";
import { RECORDS, record, StreamFault, StreamReader, UNFINISHED_BYTES_MAX } from "./records.js";

/** What the SDK uses of a `WebTransport`. */
export interface WebTransportLike {
  readonly ready: Promise<unknown>;
  readonly closed: Promise<{ closeCode?: number; reason?: string } | undefined>;
  readonly datagrams: Datagrams;
  readonly incomingUnidirectionalStreams: ReadableStream<ReadableStream<Uint8Array>>;
  createUnidirectionalStream(): Promise<WritableStream<Uint8Array>>;
  close(info?: { closeCode: number; reason: string }): void;
  getStats?(): Promise<{ estimatedSendRate?: number | null }>;
}

interface Datagrams {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable?: WritableStream<Uint8Array>;
  createWritable?(): WritableStream<Uint8Array>;
  readonly maxDatagramSize: number;
  incomingMaxAge?: number | null;
  outgoingMaxAge?: number | null;
  incomingHighWaterMark?: number;
  outgoingHighWaterMark?: number;
  incomingMaxBufferedDatagrams?: number;
  outgoingMaxBufferedDatagrams?: number;
}

/** Its constructor. */
export type WebTransportConstructor = new (url: string, options?: Record<string, unknown>) => WebTransportLike;

const OUTGOING_MAX_AGE_MS = 100;
const INCOMING_MAX_AGE_MS = 1_000;
const INCOMING_DATAGRAMS = 512;
const OUTGOING_DATAGRAMS = 8;
/** How often the browser is asked what the path carries. */
const STATS_EVERY_MS = 500;

/** Opens a session. `hashes` are the certificates' SHA-256, base64url; none for a certificate that an authority vouches for. */
export async function openWebTransport(
  url: string,
  hashes: readonly string[],
  WebTransport: WebTransportConstructor,
  events: LinkEvents,
  signal: AbortSignal,
): Promise<Link> {
  if (signal.aborted) throw abortReason(signal);
  const session = construct(url, hashes, WebTransport);
  // Rejections that nobody waits for are no faults of the page.
  session.closed.catch(() => {});
  session.ready.catch(() => {});
  try {
    await Promise.race([session.ready, aborted(signal)]);
    if (session.datagrams.maxDatagramSize < DATAGRAM_BYTES_MAX) {
      throw new LinkFault("unreachable", `the path takes datagrams of ${session.datagrams.maxDatagramSize} bytes alone`);
    }
    const stream = await Promise.race([session.createUnidirectionalStream(), aborted(signal)]);
    return new WebTransportLink(session, stream, events);
  } catch (thrown) {
    try {
      session.close();
    } catch {
      // It never stood.
    }
    if (signal.aborted) throw abortReason(signal);
    throw thrown instanceof LinkFault
      ? thrown
      : new LinkFault("unreachable", `no WebTransport to ${url}: ${sentence(thrown)}`);
  }
}

function construct(url: string, hashes: readonly string[], WebTransport: WebTransportConstructor): WebTransportLike {
  const pinned =
    hashes.length === 0
      ? {}
      : { serverCertificateHashes: hashes.map((hash) => ({ algorithm: "sha-256", value: fromBase64Url(hash) })) };
  try {
    return new WebTransport(url, { allowPooling: false, requireUnreliable: true, congestionControl: "low-latency", ...pinned });
  } catch {
    // An older browser refuses options that it does not know.
  }
  try {
    return new WebTransport(url, pinned);
  } catch (thrown) {
    throw new LinkFault("blocked_by_browser", `the browser opens no WebTransport to ${url}: ${sentence(thrown)}`);
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
  });
}

function fromBase64Url(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    throw new LinkFault("bad_invite", `${JSON.stringify(text)} is no hash of a certificate`, "copy the invite again, whole");
  }
}

class WebTransportLink implements Link {
  readonly via = "webtransport";
  #isOver = false;
  readonly #records: WritableStreamDefaultWriter<Uint8Array>;
  readonly #datagrams: WritableStreamDefaultWriter<Uint8Array>;
  readonly #stats: ReturnType<typeof setInterval> | undefined;
  /** Bytes that the stream of records has not taken, since when, and what it took since. */
  #waiting = 0;
  #busySince = 0;
  #unfinished = 0;
  #hasRecords = false;

  constructor(
    private readonly session: WebTransportLike,
    stream: WritableStream<Uint8Array>,
    private readonly events: LinkEvents,
  ) {
    const { datagrams } = session;
    configure(datagrams);
    this.#records = stream.getWriter();
    this.#datagrams = (datagrams.createWritable?.() ?? datagrams.writable!).getWriter();
    this.#records.closed.catch(() => {});
    this.#datagrams.closed.catch(() => {});
    this.#records.write(Uint8Array.of(RECORDS)).catch(() => {});
    session.closed.then(
      (info) => this.#ended(closeSentence(info)),
      (thrown: unknown) => this.#ended(`the connection was lost: ${sentence(thrown)}`),
    );
    void this.#readDatagrams(datagrams.readable);
    void this.#readStreams(session.incomingUnidirectionalStreams);
    if (session.getStats !== undefined) this.#stats = setInterval(() => void this.#measure(), STATS_EVERY_MS);
  }

  send(carrier: Carrier, packet: Uint8Array): void {
    if (this.#isOver) return;
    if (carrier === Carrier.Datagram) return this.#sendDatagram(packet);
    const bytes = record(packet);
    if (this.#waiting === 0) this.#busySince = performance.now();
    this.#waiting += bytes.length;
    this.#records.write(bytes).then(
      () => this.#wrote(bytes.length, packet.length),
      () => {},
    );
  }

  close(word: CloseWord, reason: string): void {
    if (this.#isOver) return;
    this.#over();
    // What was written before leaves first.
    this.#records.close().catch(() => {});
    const close = () => {
      try {
        this.session.close({ closeCode: CLOSE[word].quic, reason: reason.slice(0, 100) });
      } catch {
        // It is over already.
      }
    };
    this.#records.closed.then(close, close);
  }

  #sendDatagram(packet: Uint8Array): void {
    // A full queue drops the oldest by itself; the promise only says when this one left it.
    const left = () => {
      if (!this.#isOver) this.events.drained(0, 1);
    };
    this.#datagrams.write(packet).then(left, left);
  }

  #wrote(bytes: number, packet: number): void {
    if (this.#isOver) return;
    this.#waiting -= bytes;
    const now = performance.now();
    if (this.#stats === undefined) this.events.wrote(bytes, this.#busySince, now, this.#waiting > 0);
    this.#busySince = now;
    this.events.drained(packet, 0);
  }

  async #readDatagrams(readable: ReadableStream<Uint8Array>): Promise<void> {
    const reader = readable.getReader();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done || this.#isOver) return;
        this.events.packets([{ carrier: Carrier.Datagram, bytes: value }]);
      }
    } catch {
      // The session's `closed` tells why.
    }
  }

  async #readStreams(streams: ReadableStream<ReadableStream<Uint8Array>>): Promise<void> {
    const reader = streams.getReader();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done || this.#isOver) return;
        void this.#readStream(value);
      }
    } catch {
      // The session's `closed` tells why.
    }
  }

  async #readStream(stream: ReadableStream<Uint8Array>): Promise<void> {
    const reader = stream.getReader();
    const packets = new StreamReader();
    let held = 0;
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (this.#isOver) return;
        if (done) break;
        const first = packets.isRecords === undefined;
        const complete = packets.push(value);
        if (first && packets.isRecords === true) this.#onlyRecords();
        this.#unfinished += packets.unfinished - held;
        held = packets.unfinished;
        if (this.#unfinished > UNFINISHED_BYTES_MAX) throw new StreamFault("tooLarge", "too much has begun and not ended");
        if (complete.length > 0) this.events.packets(complete.map((bytes) => ({ carrier: Carrier.Stream, bytes })));
      }
      const last = packets.end();
      if (last !== undefined) this.events.packets([{ carrier: Carrier.Isolated, bytes: last }]);
    } catch (thrown) {
      // A stream that breaks with the session is told by the session.
      if (thrown instanceof StreamFault) this.#fault(thrown.word, thrown.message);
    } finally {
      this.#unfinished -= held;
      reader.releaseLock();
    }
  }

  #onlyRecords(): void {
    if (this.#hasRecords) throw new StreamFault("malformed", "there is a second stream of records");
    this.#hasRecords = true;
  }

  async #measure(): Promise<void> {
    try {
      const stats = await this.session.getStats!();
      const bits = stats.estimatedSendRate;
      if (typeof bits === "number" && bits > 0 && !this.#isOver) this.events.carries(bits / 8);
    } catch {
      // Some browsers have the call and no answer.
    }
  }

  #fault(word: CloseWord, why: string): void {
    if (this.#isOver) return;
    this.close(word, why);
    this.events.closed(`the server's packets are not Parlor's: ${why}`);
  }

  #ended(why: string): void {
    if (this.#isOver) return;
    this.#over();
    this.events.closed(why);
  }

  #over(): void {
    this.#isOver = true;
    clearInterval(this.#stats);
  }
}

/** Incoming datagrams are dropped beyond a mark, which is set before the first is read; outgoing ones wait unless told how long. */
function configure(datagrams: Datagrams): void {
  const set = (name: keyof Datagrams, value: number) => {
    if (name in datagrams) {
      try {
        (datagrams as unknown as Record<string, number>)[name] = value;
      } catch {
        // Some browsers have it to be read alone.
      }
    }
  };
  set("outgoingMaxAge", OUTGOING_MAX_AGE_MS);
  set("incomingMaxAge", INCOMING_MAX_AGE_MS);
  set("incomingHighWaterMark", INCOMING_DATAGRAMS);
  set("incomingMaxBufferedDatagrams", INCOMING_DATAGRAMS);
  set("outgoingHighWaterMark", OUTGOING_DATAGRAMS);
  set("outgoingMaxBufferedDatagrams", OUTGOING_DATAGRAMS);
}

function closeSentence(info: { closeCode?: number; reason?: string } | undefined): string {
  const reason = info?.reason === undefined || info.reason === "" ? "" : `: ${info.reason}`;
  return `the server closed the connection (${info?.closeCode ?? 0})${reason}`;
}

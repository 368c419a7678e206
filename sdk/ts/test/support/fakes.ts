// A WebSocket and a WebTransport without a network.

import type { Arrived, LinkEvents } from "../../src/link/link.js";
import type { WebSocketLike } from "../../src/link/websocket.js";
import type { WebTransportLike } from "../../src/link/webtransport.js";

type Listener = (event: never) => void;

/** A WebSocket that its test opens, fills and closes. */
export class FakeWebSocket implements WebSocketLike {
  static made: FakeWebSocket[] = [];
  binaryType = "blob";
  bufferedAmount = 0;
  readonly sent: Uint8Array[] = [];
  closedWith: { code?: number; reason?: string } | undefined;
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(
    readonly url: string,
    readonly protocol: string,
  ) {
    FakeWebSocket.made.push(this);
  }

  static get last(): FakeWebSocket {
    return FakeWebSocket.made.at(-1)!;
  }

  send(data: Uint8Array): void {
    this.sent.push(data);
  }

  close(code?: number, reason?: string): void {
    this.closedWith = { ...(code === undefined ? {} : { code }), ...(reason === undefined ? {} : { reason }) };
  }

  addEventListener(type: string, listener: Listener): void {
    const all = this.listeners.get(type) ?? new Set();
    this.listeners.set(type, all.add(listener));
  }

  removeEventListener(type: string, listener: Listener): void {
    this.listeners.get(type)?.delete(listener);
  }

  fire(type: string, event: object = {}): void {
    for (const listener of [...(this.listeners.get(type) ?? [])]) listener(event as never);
  }
}

/** A WebTransport that its test readies, feeds and closes. */
export class FakeWebTransport implements WebTransportLike {
  static made: FakeWebTransport[] = [];
  ready: Promise<void>;
  closed: Promise<{ closeCode?: number; reason?: string }>;
  becomeReady!: () => void;
  fail!: (why: unknown) => void;
  endWith!: (info: { closeCode?: number; reason?: string }) => void;
  breakWith!: (why: unknown) => void;
  closedWith: { closeCode: number; reason: string } | undefined;
  isClosed = false;
  readonly datagramsSent: Uint8Array[] = [];
  readonly streamBytes: number[] = [];
  /** Whether the stream of records takes what is written. */
  holdsStream = false;
  private releases: (() => void)[] = [];
  private datagramIn!: ReadableStreamDefaultController<Uint8Array>;
  private streamsIn!: ReadableStreamDefaultController<ReadableStream<Uint8Array>>;
  readonly datagrams;
  readonly incomingUnidirectionalStreams: ReadableStream<ReadableStream<Uint8Array>>;

  constructor(
    readonly url: string,
    readonly options?: Record<string, unknown>,
  ) {
    FakeWebTransport.made.push(this);
    this.ready = new Promise((resolve, reject) => {
      this.becomeReady = () => resolve();
      this.fail = reject;
    });
    this.closed = new Promise((resolve, reject) => {
      this.endWith = resolve;
      this.breakWith = reject;
    });
    this.datagrams = {
      readable: new ReadableStream<Uint8Array>({ start: (controller) => void (this.datagramIn = controller) }),
      writable: new WritableStream<Uint8Array>({ write: (chunk) => void this.datagramsSent.push(chunk) }),
      maxDatagramSize: 1_200,
      outgoingMaxAge: null as number | null,
    };
    this.incomingUnidirectionalStreams = new ReadableStream({ start: (controller) => void (this.streamsIn = controller) });
  }

  static get last(): FakeWebTransport {
    return FakeWebTransport.made.at(-1)!;
  }

  createUnidirectionalStream(): Promise<WritableStream<Uint8Array>> {
    return Promise.resolve(
      new WritableStream<Uint8Array>({
        write: (chunk) => {
          this.streamBytes.push(...chunk);
          return this.holdsStream ? new Promise<void>((resolve) => this.releases.push(resolve)) : undefined;
        },
      }),
    );
  }

  release(): void {
    this.holdsStream = false;
    for (const release of this.releases.splice(0)) release();
  }

  close(info?: { closeCode: number; reason: string }): void {
    this.isClosed = true;
    this.closedWith = info;
  }

  receiveDatagram(bytes: Uint8Array): void {
    this.datagramIn.enqueue(bytes);
  }

  /** Opens a stream towards the page. */
  receiveStream(): ReadableStreamDefaultController<Uint8Array> {
    let stream!: ReadableStreamDefaultController<Uint8Array>;
    this.streamsIn.enqueue(new ReadableStream<Uint8Array>({ start: (controller) => void (stream = controller) }));
    return stream;
  }
}

/** What a link told. */
export class Told implements LinkEvents {
  readonly packetsOf: Arrived[] = [];
  streamBytes = 0;
  datagrams = 0;
  readonly writes: { bytes: number; ms: number; waits: boolean }[] = [];
  readonly ends: string[] = [];
  rate = 0;

  packets(batch: Arrived[]): void {
    this.packetsOf.push(...batch);
  }
  drained(streamBytes: number, datagrams: number): void {
    this.streamBytes += streamBytes;
    this.datagrams += datagrams;
  }
  carries(rate: number): void {
    this.rate = rate;
  }
  wrote(bytes: number, began: number, ended: number, waits: boolean): void {
    this.writes.push({ bytes, ms: ended - began, waits });
  }
  closed(why: string): void {
    this.ends.push(why);
  }
}

/** Lets all that is due in microtasks happen. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 40; i++) await Promise.resolve();
}

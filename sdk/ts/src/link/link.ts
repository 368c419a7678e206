// A link: what carries packets to a server. WebTransport, WebSocket, and a fake one for tests are its makers.

/** How a packet travels. */
export const Carrier = { Datagram: 1, Stream: 2, Isolated: 3 } as const;
export type Carrier = (typeof Carrier)[keyof typeof Carrier];

/** What carries the packets. */
export type Via = "webtransport" | "websocket";

/** A packet that arrived, and when: ms since the time origin of whoever reads the clock. */
export interface Arrived {
  carrier: Carrier;
  bytes: Uint8Array;
}

/** One packet on the stream may be this large (PROTOCOL.md, limits). */
export const STREAM_PACKET_BYTES_MAX = 64 * 1024 + 2 * 1024;
/** And one in a datagram. */
export const DATAGRAM_BYTES_MAX = 1_000;
/** So much may be on its way into a link's stream before its sender waits. */
export const STREAM_BYTES_UNDER_WAY_MAX = 64 * 1024;
/** And so many datagrams. */
export const DATAGRAMS_UNDER_WAY_MAX = 32;

/** Close codes of PROTOCOL.md. */
export const CLOSE = {
  done: { quic: 0, websocket: 1000 },
  goingAway: { quic: 1, websocket: 1001 },
  notParlor: { quic: 2, websocket: 1003 },
  tooLarge: { quic: 3, websocket: 1009 },
  malformed: { quic: 4, websocket: 1002 },
} as const;
export type CloseWord = keyof typeof CLOSE;

/** What a link tells. */
export interface LinkEvents {
  packets(batch: Arrived[]): void;
  /** So much of what was sent has left, in bytes of the stream and in datagrams. */
  drained(streamBytes: number, datagrams: number): void;
  /** The path carries this many bytes per second. */
  carries(bytesPerSecond: number): void;
  /** The socket took `bytes` of the stream from `began` to `ended`, in ms; `waits` if more was queued. */
  wrote(bytes: number, began: number, ended: number, waits: boolean): void;
  /** The link is over, and this end did not close it. Told once. */
  closed(why: string): void;
}

/** A link that stands. Only one who counts what has drained sends on it. */
export interface Link {
  readonly via: Via;
  send(carrier: Carrier, packet: Uint8Array): void;
  /** Closes it. Nothing is told after it. */
  close(word: CloseWord, reason: string): void;
}

/** Makes a link: resolves once it stands, and rejects with what stood in the way. */
export type LinkMaker = (events: LinkEvents, signal: AbortSignal) => Promise<Link>;

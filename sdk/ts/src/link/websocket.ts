// A link over WebSocket: one message is one packet, and all carriers are its one stream.

import { abortReason, sentence } from "../thrown.js";
import { LinkFault } from "./fault.js";
import { CLOSE, Carrier, type CloseWord, type Link, type LinkEvents, STREAM_BYTES_UNDER_WAY_MAX, STREAM_PACKET_BYTES_MAX } from "./link.js";

/** What the SDK uses of a `WebSocket`: the browser's, Node's, or the one of the package `ws`. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  readonly protocol: string;
  /** Sends a binary message. */
  send(data: Uint8Array): void;
  /** Closes the connection. */
  close(code?: number, reason?: string): void;
  /** Listens to an event. Of `any` type: `ws` takes a listener only if it takes all events. */
  addEventListener(type: "open" | "close" | "error" | "message", listener: (event: any) => void): void;
  /** Listens no more. */
  removeEventListener(type: "open" | "close" | "error" | "message", listener: (event: any) => void): void;
}

/** Its constructor. */
export type WebSocketConstructor = new (url: string, protocols: string) => WebSocketLike;

const SUBPROTOCOL = "parlor";
/** How often a socket that is full is looked at. */
const LOOK_EVERY_MS = 20;

/** Opens a WebSocket. */
export function openWebSocket(
  url: string,
  WebSocket: WebSocketConstructor,
  events: LinkEvents,
  signal: AbortSignal,
): Promise<Link> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortReason(signal));
    let socket: WebSocketLike;
    try {
      socket = new WebSocket(url, SUBPROTOCOL);
    } catch (thrown) {
      return reject(new LinkFault("blocked_by_browser", `the browser does not open ${url}: ${sentence(thrown)}`));
    }
    socket.binaryType = "arraybuffer";
    let why = "";
    const done = () => {
      socket.removeEventListener("open", opened);
      socket.removeEventListener("close", closed);
      signal.removeEventListener("abort", aborted);
    };
    const opened = () => {
      done();
      resolve(new WebSocketLink(socket, events));
    };
    const closed = (event: { code?: number }) => {
      done();
      const code = event.code === undefined || event.code === 1006 ? "" : ` (${event.code})`;
      reject(new LinkFault("unreachable", `no WebSocket to ${url}${code}${why === "" ? "" : `: ${why}`}`));
    };
    const aborted = () => {
      done();
      socket.close();
      reject(abortReason(signal));
    };
    // A browser says nothing here, Node what was wrong. The listener stays: an error without one ends a Node process.
    socket.addEventListener("error", (event: { message?: string; error?: unknown }) => {
      why = event.message || (event.error instanceof Error ? event.error.message : "");
    });
    socket.addEventListener("open", opened);
    socket.addEventListener("close", closed);
    signal.addEventListener("abort", aborted, { once: true });
  });
}

class WebSocketLink implements Link {
  readonly via = "websocket";
  #isOver = false;
  /** Bytes that were sent, and those of them that were told to have drained. */
  #sent = 0;
  #told = 0;
  /** Since when the socket has something to send, and what it had taken then. */
  #busy: { since: number; taken: number } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly socket: WebSocketLike,
    private readonly events: LinkEvents,
  ) {
    socket.addEventListener("message", (event: { data: unknown }) => this.#received(event.data));
    socket.addEventListener("close", (event: { code?: number; reason?: string }) => {
      const reason = event.reason === undefined || event.reason === "" ? "" : `: ${event.reason}`;
      this.#ended(event.code === 1006 || event.code === undefined ? "the connection was lost" : `the server closed the connection (${event.code})${reason}`);
    });
  }

  send(_: Carrier, packet: Uint8Array): void {
    if (this.#isOver) return;
    this.#sent += packet.length;
    this.socket.send(packet);
    this.#look();
  }

  close(word: CloseWord, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    try {
      this.socket.close(mayClose(CLOSE[word].websocket), reason.slice(0, 100));
    } catch {
      this.socket.close();
    }
  }

  /** Tells what has drained, and looks again soon while something waits. */
  #look(): void {
    const waiting = this.socket.bufferedAmount;
    const taken = Math.max(this.#sent - waiting, this.#told);
    const now = performance.now();
    if (this.#busy !== undefined && (waiting === 0 || now - this.#busy.since >= LOOK_EVERY_MS)) {
      this.events.wrote(taken - this.#busy.taken, this.#busy.since, now, waiting > 0);
      this.#busy = undefined;
    }
    if (waiting > 0) this.#busy ??= { since: now, taken };
    // What the socket holds counts as sent while it is little: only a queue that stands holds the sender back.
    const drained = waiting < STREAM_BYTES_UNDER_WAY_MAX / 2 ? this.#sent : taken;
    if (drained > this.#told) {
      const bytes = drained - this.#told;
      this.#told = drained;
      this.events.drained(bytes, 0);
    }
    if (waiting > 0) this.#timer ??= setTimeout(() => this.#lookAgain(), LOOK_EVERY_MS);
  }

  #lookAgain(): void {
    this.#timer = undefined;
    if (!this.#isOver) this.#look();
  }

  #received(data: unknown): void {
    if (this.#isOver) return;
    if (!(data instanceof ArrayBuffer)) {
      this.close("notParlor", "text is no packet");
      return this.events.closed("the server sent what is no packet");
    }
    if (data.byteLength > STREAM_PACKET_BYTES_MAX) {
      this.close("tooLarge", "a packet is too large");
      return this.events.closed("the server sent a packet that is too large");
    }
    this.events.packets([{ carrier: Carrier.Stream, bytes: new Uint8Array(data) }]);
  }

  #ended(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.events.closed(why);
  }
}

/** A page may close with 1000 or 3000 to 4999 alone. */
function mayClose(code: number): number {
  return code === 1000 || code >= 3000 ? code : 1000;
}

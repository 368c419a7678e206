// Links and timers in one place: on the calling thread, or in the transport worker, whose own timers go on when the
// page is hidden.

import { sentence } from "../thrown.js";
import { LinkFault } from "./fault.js";
import { dial, type DialRequest, type DialTools } from "./dial.js";
import { type Arrived, Carrier, type CloseWord, type Link, type LinkEvents, type Via } from "./link.js";

/** What crosses of an error. */
export interface Failure {
  code: string;
  message: string;
  hint: string;
}

/** What a transport tells. Instants are ms of `performance.timeOrigin + performance.now()`, which threads share. */
export interface TransportEvents {
  opened(via: Via): void;
  failed(why: Failure): void;
  packets(batch: Arrived[], at: number): void;
  drained(streamBytes: number, datagrams: number): void;
  carries(bytesPerSecond: number): void;
  wrote(bytes: number, began: number, ended: number, waits: boolean): void;
  closed(why: string): void;
  /** The instant of `beatAt` has come. */
  beat(): void;
}

/** One link at a time, and one timer. */
export interface Transport {
  /** Gives up the link or the attempt there is, and dials. */
  dial(request: DialRequest): void;
  send(packets: Arrived[]): void;
  /** Closes the link, or gives the attempt up. */
  close(word: CloseWord, reason: string): void;
  /** Sets the timer, in ms as events have them; undefined stops it. */
  beatAt(at: number | undefined): void;
  /** While the page hands nothing over, sends a sign of life this often; 0 stops it. */
  heart(everyMs: number): void;
  /** Ends it all. */
  end(): void;
}

/** Instants that all threads of a page share. */
export function sharedNow(): number {
  return performance.timeOrigin + performance.now();
}

/** A header without fields, and no frames: valid on an open session, and heard. */
const SIGN_OF_LIFE = Uint8Array.of(0);
/** A page that did not answer for so long is given up: its room shall miss it, as it would miss a process that hangs. */
const HANGS_AFTER_MS = 10_000;

/** The transport on this thread. */
export class LocalTransport implements Transport {
  #link: Link | undefined;
  #dialling: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pulse: { every: number; timer: ReturnType<typeof setInterval> } | undefined;
  /** When the page last handed a packet over, and when it last did anything. */
  #lastSent = 0;
  #lastHeard = 0;

  constructor(
    private readonly tools: DialTools,
    private readonly events: TransportEvents,
  ) {}

  dial(request: DialRequest): void {
    this.close("done", "another link is dialled");
    const end = new AbortController();
    this.#dialling = end;
    // A link can be over before the promise of it has told that it stands.
    let over: string | undefined;
    let link: Link | undefined;
    const events: LinkEvents = {
      packets: (batch) => this.events.packets(batch, sharedNow()),
      drained: (bytes, datagrams) => this.events.drained(bytes, datagrams),
      carries: (rate) => this.events.carries(rate),
      wrote: (bytes, began, ended, waits) => {
        this.events.wrote(bytes, performance.timeOrigin + began, performance.timeOrigin + ended, waits);
      },
      closed: (why) => {
        over = why;
        if (link !== undefined && this.#link === link) this.#lost(why);
      },
    };
    dial(request, this.tools, events, end.signal).then(
      (stands) => {
        if (end.signal.aborted) return stands.close("done", "the page went on");
        link = stands;
        this.#dialling = undefined;
        this.#link = link;
        this.events.opened(link.via);
        if (over !== undefined) this.#lost(over);
      },
      (thrown: unknown) => {
        if (end.signal.aborted) return;
        this.#dialling = undefined;
        this.events.failed(failureOf(thrown));
      },
    );
  }

  send(packets: Arrived[]): void {
    this.#heard();
    this.#lastSent = this.#lastHeard;
    for (const { carrier, bytes } of packets) this.#link?.send(carrier, bytes);
  }

  close(word: CloseWord, reason: string): void {
    this.heart(0);
    this.#dialling?.abort(new LinkFault("aborted", reason));
    this.#dialling = undefined;
    this.#link?.close(word, reason);
    this.#link = undefined;
  }

  beatAt(at: number | undefined): void {
    this.#heard();
    clearTimeout(this.#timer);
    this.#timer = at === undefined ? undefined : setTimeout(() => this.events.beat(), Math.max(0, at - sharedNow()));
  }

  heart(everyMs: number): void {
    this.#heard();
    if (this.#pulse?.every === everyMs) return;
    clearInterval(this.#pulse?.timer);
    this.#pulse = everyMs > 0 ? { every: everyMs, timer: setInterval(() => this.#beatHeart(everyMs), everyMs) } : undefined;
  }

  end(): void {
    this.close("done", "the room is over");
    this.beatAt(undefined);
  }

  #heard(): void {
    this.#lastHeard = performance.now();
  }

  #beatHeart(everyMs: number): void {
    const now = performance.now();
    if (this.#link === undefined || now - this.#lastSent < everyMs || now - this.#lastHeard > HANGS_AFTER_MS) return;
    this.#link.send(this.#link.via === "webtransport" ? Carrier.Datagram : Carrier.Stream, SIGN_OF_LIFE);
  }

  #lost(why: string): void {
    this.heart(0);
    this.#link = undefined;
    this.events.closed(why);
  }
}

function failureOf(thrown: unknown): Failure {
  if (thrown instanceof LinkFault) return { code: thrown.code, message: thrown.message, hint: thrown.hint };
  return { code: "unreachable", message: sentence(thrown), hint: "" };
}

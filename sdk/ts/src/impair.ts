// A bad network for development: packets of a room are late, uneven and lost, as `--impair` does it at a server.

import { Carrier, type Arrived, type Via } from "./link/link.js";
import { sharedNow, type Transport, type TransportEvents } from "./link/transport.js";

/** What the network does, in each direction. */
export interface Impairment {
  /** How long a packet is on its way, in ms. Default: 0. */
  latencyMs?: number;
  /** How much longer it may be, evenly spread, in ms. Default: 0. */
  jitterMs?: number;
  /** Part of the datagrams that are lost, 0 to 1. A stream loses nothing: there a loss makes all behind it late. Default: 0. */
  loss?: number;
  /** Of the random numbers. Default: another one each time. */
  seed?: number;
}

/** A network between a room and its server: the option `network`. One for each room. */
export interface Network {
  /** Makes a transport that goes through this network. */
  wrap(make: (events: TransportEvents) => Transport): (events: TransportEvents) => Transport;
}

/** A network that may be changed while a room goes through it. */
export interface BadNetwork extends Network {
  impairment: Impairment;
}

/** Time in which a stream's sender notices a loss, beside a round trip. */
const RETRANSMISSION_MS = 30;
/** Most losses of the same part of a stream. */
const LOSSES_MAX = 8;
/** Bytes of a stream that are lost together. */
const SEGMENT_BYTES = 1_400;

/** Makes a bad network. */
export function badNetwork(impairment: Impairment = {}): BadNetwork {
  const network: BadNetwork = {
    impairment,
    wrap: (make) => (events) => new BadTransport(make, events, network),
  };
  return network;
}

/** One direction: what is on its way. */
class Direction {
  readonly #waiting = new Map<ReturnType<typeof setTimeout>, () => void>();
  /** When the last of the stream arrives: nothing overtakes there. */
  #until = 0;

  constructor(
    private readonly network: BadNetwork,
    private readonly random: () => number,
  ) {}

  /** Takes a packet. `arrive` is called when it arrives, and `lose` in its stead if it is lost. */
  offer(isStream: boolean, isOrdered: boolean, bytes: number, arrive: () => void, lose: () => void): void {
    const { latencyMs = 0, jitterMs = 0, loss = 0 } = this.network.impairment;
    const delay = latencyMs + this.random() * jitterMs;
    if (!isStream) {
      const isLost = this.random() < loss;
      return this.#after(delay, isLost ? lose : arrive);
    }
    let losses = 0;
    for (let segment = 0; segment < Math.max(1, bytes / SEGMENT_BYTES); segment++) {
      let inARow = 0;
      while (inARow < LOSSES_MAX && this.random() < loss) inARow += 1;
      losses = Math.max(losses, inARow);
    }
    const now = performance.now();
    const arrives = now + delay + losses * (2 * latencyMs + RETRANSMISSION_MS);
    if (!isOrdered) return this.#after(arrives - now, arrive);
    this.#until = Math.max(this.#until, arrives);
    this.#after(this.#until - now, arrive);
  }

  /** Calls when all of the stream has arrived. */
  atEnd(then: () => void): void {
    this.#after(this.#until - performance.now(), then);
  }

  /** All that is on its way arrives now. */
  flush(): void {
    for (const [timer, arrive] of [...this.#waiting]) {
      clearTimeout(timer);
      this.#waiting.delete(timer);
      arrive();
    }
    this.#until = 0;
  }

  /** Nothing of it arrives. */
  clear(): void {
    for (const timer of this.#waiting.keys()) clearTimeout(timer);
    this.#waiting.clear();
    this.#until = 0;
  }

  #after(ms: number, then: () => void): void {
    if (ms <= 0) return then();
    const timer = setTimeout(() => {
      this.#waiting.delete(timer);
      then();
    }, Math.max(0, ms));
    this.#waiting.set(timer, then);
  }
}

class BadTransport implements Transport {
  readonly #inner: Transport;
  readonly #up: Direction;
  readonly #down: Direction;
  #via: Via = "websocket";

  constructor(make: (events: TransportEvents) => Transport, private readonly events: TransportEvents, network: BadNetwork) {
    const random = numbers(network.impairment.seed ?? Math.floor(Math.random() * 2 ** 32));
    this.#up = new Direction(network, random);
    this.#down = new Direction(network, random);
    this.#inner = make({
      ...forwarded(events),
      opened: (via) => {
        this.#via = via;
        events.opened(via);
      },
      packets: (batch) => this.#arrived(batch),
      closed: (why) => {
        this.#up.clear();
        this.#down.atEnd(() => events.closed(why));
      },
    });
  }

  send(packets: Arrived[]): void {
    for (const packet of packets) {
      // The buffer of a batch moves to the worker with the first packet that goes.
      const copy = { carrier: packet.carrier, bytes: packet.bytes.slice() };
      this.#pass(this.#up, copy, () => this.#inner.send([copy]), () => this.events.drained(0, 1));
    }
  }

  dial(request: Parameters<Transport["dial"]>[0]): void {
    this.#up.clear();
    this.#down.clear();
    this.#inner.dial(request);
  }

  close(...how: Parameters<Transport["close"]>): void {
    // A goodbye that is on its way goes out before.
    this.#up.flush();
    this.#down.clear();
    this.#inner.close(...how);
  }

  beatAt(at: number | undefined): void {
    this.#inner.beatAt(at);
  }

  heart(everyMs: number): void {
    this.#inner.heart(everyMs);
  }

  end(): void {
    this.#up.flush();
    this.#down.clear();
    this.#inner.end();
  }

  #arrived(batch: Arrived[]): void {
    for (const packet of batch) {
      this.#pass(this.#down, packet, () => this.events.packets([packet], sharedNow()), () => {});
    }
  }

  #pass(direction: Direction, { carrier, bytes }: Arrived, arrive: () => void, lose: () => void): void {
    // A WebSocket is one stream, whatever a packet asks for.
    const isStream = this.#via === "websocket" || carrier !== Carrier.Datagram;
    const isOrdered = this.#via === "websocket" || carrier === Carrier.Stream;
    direction.offer(isStream, isOrdered, bytes.length, arrive, lose);
  }
}

/** Events that are passed on as they are, also where they are methods of a class. */
function forwarded(events: TransportEvents): TransportEvents {
  return {
    opened: (via) => events.opened(via),
    failed: (why) => events.failed(why),
    packets: (batch, at) => events.packets(batch, at),
    drained: (bytes, datagrams) => events.drained(bytes, datagrams),
    carries: (rate) => events.carries(rate),
    wrote: (...write) => events.wrote(...write),
    closed: (why) => events.closed(why),
    beat: () => events.beat(),
  };
}

/** Random numbers from a seed, from 0 to 1: mulberry32. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Moves packets between a room's core and its link, keeps the core's time, and dials as often as the core wants.
//
//           dial            opened              is finished, or the link is lost
//   idle ───────▶ dialling ────────▶ linked ───────────────────────────────────▶ idle: redirected, or an attempt is due
//                    └── failed: the room closes if it was never open, else the next attempt
//
// A room whose server is lost is also asked for at other servers, over the one link that a page has: a claim. A granted
// claim's link is the room's.

import { ParlorError } from "../error.js";
import { sentence } from "../thrown.js";
import { HEAD_START_MS, type ViaOption } from "../link/dial.js";
import type { EarlyTransport } from "../link/early.js";
import { type Arrived, Carrier, DATAGRAMS_UNDER_WAY_MAX, STREAM_BYTES_UNDER_WAY_MAX, type Via } from "../link/link.js";
import type { Failure, Transport, TransportEvents } from "../link/transport.js";
import { type Address, isLoopback, placeOf, redirected } from "../server/address.js";
import type { Admission } from "../room/types.js";
import type { Data } from "../value/data.js";
import type { Core } from "../wasm/core.js";
import { Clock } from "./clock.js";

/** What a driver tells. */
export interface DriverEvents {
  /** Packets or time changed what the core has: there may be events to poll. */
  changed(): void;
  /** No server was reached for the first time, or the core died: the room is over. */
  failed(why: ParlorError): void;
  /** A link stands. */
  linked(): void;
  /** When the game wants a beat, in µs; Infinity for never. */
  gameDue(now: number): number;
}

/** Gives what admits one connection at a server to one room. */
export type TokenSource = (at: Address, admission: Admission) => Promise<string>;

/** Where to, and how. */
export interface DriverOptions {
  address: Address;
  via: ViaOption;
  token: TokenSource | undefined;
  joins: boolean;
}

const LINK_NUMBER: Record<Via, number> = { websocket: 1, webtransport: 3 };
/** How often a server may say that a room is elsewhere. */
const REDIRECTS_MAX = 3;
/** A link that was lost so soon after it stood was no good choice. */
const SHORT_LIVED_US = 10_000_000;
/** For so long a server where WebSocket won is dialled by both at once. */
const WINNER_REMEMBERED_US = 180_000_000;
/** A core knows these kinds of failure; the page has finer ones. */
const FAILURE_KINDS = ["no_server", "bad_address", "unknown_host", "unreachable", "untrusted", "not_parlor"];

/** Why a token is not to be had at the moment; all else is a refusal. */
const PASSING: readonly string[] = ["unreachable", "connection_lost", "unavailable", "too_often", "busy"];

export class Driver {
  readonly clock = new Clock();
  #transport!: Transport;
  #phase: "idle" | "dialling" | "linked" | "over" = "idle";
  #isFirstVisit = true;
  #redirects = 0;
  /** The server that is asked to reopen the room, while the link is for that. */
  #claims: Address | undefined;
  #held: Arrived | undefined;
  #streamUnderWay = 0;
  #datagramsUnderWay = 0;
  #armed = Number.POSITIVE_INFINITY;
  #isTurning = false;
  /** The first dial was begun before there was a core. */
  #isDialled = false;
  #turnIsDue = false;
  #openedAt = 0;
  #bothUntil = 0;
  #via: Via | undefined;
  #finished: (() => void)[] = [];

  constructor(
    private readonly core: Core,
    private readonly options: DriverOptions,
    private readonly events: DriverEvents,
  ) {}

  /** What the transport tells this driver. */
  readonly transportEvents: TransportEvents = {
    opened: (via) => this.#guarded(() => this.#opened(via)),
    failed: (why) => this.#guarded(() => this.#dialFailed(why)),
    packets: (batch, at) => this.#guarded(() => this.#packets(batch, at)),
    drained: (bytes, datagrams) => this.#guarded(() => this.#drained(bytes, datagrams)),
    carries: (rate) => this.#guarded(() => this.core.call((it) => it.path_carries(rate))),
    wrote: (bytes, began, ended, waits) =>
      this.#guarded(() => {
        const { clock } = this;
        this.core.call((it) => it.wrote(bytes, clock.us(began), clock.us(ended), waits ? 1 : 0));
      }),
    closed: (why) => this.#guarded(() => this.#lost(why)),
    beat: () => this.#guarded(() => this.#beat()),
  };

  /** The address where the room is, or is looked for. */
  get address(): Address {
    return this.options.address;
  }

  /** What carries the packets; undefined without a link. */
  get link(): Via | undefined {
    return this.#phase === "linked" ? this.#via : undefined;
  }

  /** Begins to dial, or takes over what dials already. */
  begin(early: EarlyTransport): void {
    const { transport, dials } = early.handOver(this.transportEvents);
    this.#transport = transport;
    this.#isDialled = dials;
    this.#guarded(() => this.#dial());
  }

  /** Something was said to the core that may have to be sent: once this task is over. */
  soon(): void {
    if (this.#turnIsDue) return;
    this.#turnIsDue = true;
    queueMicrotask(() => {
      this.#turnIsDue = false;
      this.#guarded(() => {});
    });
  }

  /** Sends what waits, now: a page that is being closed has no later. */
  flush(): void {
    this.#guarded(() => {});
  }

  /** The network may be back, or the page was away: time passes, and the next attempt is made now. */
  hurry(): void {
    this.#guarded(() => {
      const now = this.clock.now();
      this.#passTime(now);
      if (this.#phase === "idle" && Number.isFinite(this.core.ask((it) => it.next_attempt()))) this.#attempt(now);
    });
  }

  /** How often the link shows that this page lives while the page is busy; from the moment that the room is open. */
  keepAlive(everyMs: number): void {
    this.#guarded(() => {
      if (this.#phase === "linked") this.#transport.heart(everyMs);
    });
  }

  /** Ends all: the room is over, and its goodbye is out or was given up. */
  end(): void {
    if (this.#phase === "over") return;
    this.#unlinked();
    this.#phase = "over";
    this.#transport?.end();
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** Resolves when nothing is left to send, or the time is over. */
  whenFinished(patienceMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#phase !== "linked") return resolve();
      const timer = setTimeout(resolve, patienceMs);
      this.#finished.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Runs a step and then a turn. A core that dies ends the driver. */
  #guarded(step: () => void): void {
    if (this.#phase === "over") return;
    if (this.#isTurning) return step();
    this.#isTurning = true;
    try {
      step();
      this.#turn();
    } catch (thrown) {
      this.#isTurning = false;
      const why = thrown instanceof ParlorError ? thrown : new ParlorError("defect", sentence(thrown), undefined, { cause: thrown });
      this.end();
      return this.events.failed(why);
    }
    this.#isTurning = false;
  }

  #turn(): void {
    if (this.#phase === "linked") this.#sendAll();
    if (this.#phase === "linked" && this.#held === undefined && this.core.ask((it) => it.is_finished()) === 1) {
      this.#transport.close("done", "session over, or goes on elsewhere");
      this.#unlinked();
    }
    if (this.#phase === "idle") this.#goOn();
    this.#arm();
  }

  #sendAll(): void {
    const batch: Arrived[] = [];
    for (;;) {
      const packet = this.#held ?? this.#nextPacket();
      this.#held = undefined;
      if (packet === undefined) break;
      if (!this.#hasCredit(packet.carrier)) {
        this.#held = packet;
        break;
      }
      if (packet.carrier === Carrier.Datagram && this.#via === "webtransport") this.#datagramsUnderWay += 1;
      else this.#streamUnderWay += packet.bytes.length;
      batch.push(packet);
    }
    if (batch.length > 0) this.#transport.send(batch);
  }

  #nextPacket(): Arrived | undefined {
    const now = this.clock.now();
    const carrier = this.core.call((it) => it.next_packet(now));
    return carrier === 0 ? undefined : { carrier: carrier as Carrier, bytes: this.core.bytes() };
  }

  #hasCredit(carrier: Carrier): boolean {
    return carrier === Carrier.Datagram && this.#via === "webtransport"
      ? this.#datagramsUnderWay < DATAGRAMS_UNDER_WAY_MAX
      : this.#streamUnderWay < STREAM_BYTES_UNDER_WAY_MAX;
  }

  #drained(streamBytes: number, datagrams: number): void {
    this.#streamUnderWay = Math.max(0, this.#streamUnderWay - streamBytes);
    this.#datagramsUnderWay = Math.max(0, this.#datagramsUnderWay - datagrams);
  }

  #packets(batch: Arrived[], sharedMs: number): void {
    if (this.#phase !== "linked") return;
    const at = this.clock.at(sharedMs);
    for (const { carrier, bytes } of batch) {
      const length = this.core.put(bytes);
      this.core.call((it) => it.packet(carrier, length, at));
    }
    if (this.#claims !== undefined && this.core.ask((it) => it.claimed()) === 1) {
      this.options.address = this.#claims;
      this.#claims = undefined;
    }
    this.events.changed();
  }

  #beat(): void {
    this.#armed = Number.POSITIVE_INFINITY;
    this.#passTime(this.clock.now());
    this.events.changed();
  }

  #passTime(now: number): void {
    if (this.core.ask((it) => it.next_timeout()) <= now) this.core.call((it) => it.timeout(now));
  }

  /** Sets the timer, unless an earlier beat will set it. */
  #arm(): void {
    const now = this.clock.now();
    const isIdle = this.#phase === "idle";
    const attempt = isIdle ? Math.min(this.core.ask((it) => it.next_attempt()), this.core.ask((it) => it.next_claim())) : Number.POSITIVE_INFINITY;
    const due = Math.min(this.core.ask((it) => it.next_timeout()), attempt, this.events.gameDue(now));
    if (due >= this.#armed || this.#phase === "over") return;
    this.#armed = due;
    this.#transport.beatAt(this.clock.shared(due));
  }

  #opened(via: Via): void {
    if (this.#phase !== "dialling") return;
    const now = this.clock.now();
    this.#phase = "linked";
    this.#via = via;
    this.#openedAt = now;
    this.#held = undefined;
    this.#streamUnderWay = 0;
    this.#datagramsUnderWay = 0;
    if (via === "websocket") this.#bothUntil = now + WINNER_REMEMBERED_US;
    this.core.call((it) => it.connected(LINK_NUMBER[via], now));
    this.events.linked();
  }

  #lost(why: string): void {
    if (this.#phase !== "linked") return;
    const now = this.clock.now();
    if (now - this.#openedAt < SHORT_LIVED_US) this.#bothUntil = now + WINNER_REMEMBERED_US;
    this.#unlinked();
    const length = this.core.putValues(why);
    this.core.call((it) => it.disconnected(length, now));
    this.events.changed();
  }

  #unlinked(): void {
    this.#phase = "idle";
    this.#claims = undefined;
    this.#held = undefined;
    for (const resolve of this.#finished.splice(0)) resolve();
  }

  /** Without a link: where the room wants to go on, and when. */
  #goOn(): void {
    const { core } = this;
    if (core.ask((it) => it.redirect()) === 1) {
      const redirect = core.value() as string;
      this.#redirects += 1;
      if (this.#redirects > REDIRECTS_MAX) {
        return this.#dialFailed({ code: "unreachable", message: "the servers sent this room from one to the other in circles", hint: "" });
      }
      this.options.address = redirected(redirect, this.options.address);
      if (this.#isFirstVisit) return this.#dial();
    }
    this.#isFirstVisit = false;
    const now = this.clock.now();
    if (core.ask((it) => it.next_attempt()) <= now) return this.#attempt(now);
    if (core.ask((it) => it.next_claim()) <= now) this.#claim();
  }

  /** Asks another server to reopen the room. */
  #claim(): void {
    if (this.core.ask((it) => it.claim_begins()) !== 1) return;
    const server = this.core.value() as string;
    this.#phase = "dialling";
    try {
      this.#claims = server === "" ? this.options.address : redirected(server, this.options.address);
    } catch (thrown) {
      return this.#dialFailed({ code: "unreachable", message: sentence(thrown), hint: "" });
    }
    this.#dialNow();
  }

  #attempt(now: number): void {
    this.core.call((it) => it.attempt_begins(now));
    this.events.changed();
    this.#dial();
  }

  #dial(): void {
    this.#phase = "dialling";
    const { address, joins } = this.options;
    if (this.#isFirstVisit) {
      const place = placeOf(address);
      const found: Data = {
        server: place,
        asked: place,
        scope: isLoopback(address.host) ? "local" : "internet",
        ...(joins ? { joinPath: "internet_explicit" } : {}),
      };
      const length = this.core.putValues(found);
      this.core.call((it) => it.found(length, 0));
    }
    const asks = this.options.token === undefined ? 0 : this.core.ask((it) => it.admission());
    if (asks === 0 || this.options.token === undefined) return this.#dialNow();
    const code = this.core.value() as string | null;
    void this.#dialWithToken(this.options.token, { create: asks === 1, ...(code === null ? {} : { room: code }) });
  }

  async #dialWithToken(get: TokenSource, admission: Admission): Promise<void> {
    try {
      const token = await get(this.options.address, admission);
      this.#guarded(() => {
        const length = this.core.putValues(token);
        this.core.call((it) => it.token(length));
        this.#dialNow();
      });
    } catch (thrown) {
      this.#guarded(() => this.#noToken(thrown));
    }
  }

  /** Without a token there is no connection: the room is refused, put off, or tried again. */
  #noToken(thrown: unknown): void {
    if (!(thrown instanceof ParlorError)) {
      const message = `no token: ${sentence(thrown)}`;
      return this.#dialFailed({ code: "unauthorized", message, hint: "see why the function `token` rejected" });
    }
    const { code, message, hint, retryAfterMs } = thrown;
    if (this.#isFirstVisit || PASSING.includes(code)) {
      if (this.#isFirstVisit || retryAfterMs === undefined) return this.#dialFailed({ code, message, hint });
      this.#phase = "idle";
      const length = this.core.putValues(message);
      this.core.call((it) => it.attempt_put_off(length, retryAfterMs, this.clock.now()));
    } else {
      this.#phase = "idle";
      const length = this.core.putValues({ code, message });
      this.core.call((it) => it.attempt_refused(length, this.clock.now()));
    }
    this.events.changed();
  }

  #dialNow(): void {
    const { via } = this.options;
    const address = this.#claims ?? this.options.address;
    if (this.#isDialled) {
      this.#isDialled = false;
      return;
    }
    const headStartMs = this.clock.now() < this.#bothUntil ? 0 : HEAD_START_MS;
    this.#transport.dial({ address, via, headStartMs });
  }

  #dialFailed({ code, message, hint }: Failure): void {
    const now = this.clock.now();
    this.#phase = "idle";
    this.#claims = undefined;
    if (!this.#isFirstVisit) {
      const length = this.core.putValues(message);
      this.core.call((it) => it.attempt_failed(length, now));
      return this.events.changed();
    }
    const kind = FAILURE_KINDS.includes(code) ? code : "unreachable";
    const length = this.core.putValues({ kind, detail: message });
    this.core.call((it) => it.failed(length));
    this.end();
    this.events.failed(new ParlorError(code, message, hint === "" ? undefined : hint));
  }
}

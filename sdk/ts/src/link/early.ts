// A transport that dials before there is a core to tell: a page reaches its server while it compiles the WebAssembly.

import type { DialRequest } from "./dial.js";
import type { Transport, TransportEvents } from "./transport.js";

type Told = (to: TransportEvents) => void;

/** Dials at once if there is a request. What is told waits for a listener. */
export class EarlyTransport {
  #told: Told[] = [];
  #isLost = false;
  readonly #events: TransportEvents;
  readonly #transport: Transport;

  constructor(
    make: (events: TransportEvents) => Transport,
    private readonly request: DialRequest | undefined,
  ) {
    const wait = (told: Told) => void this.#told.push(told);
    // Without a core nothing is sent: a link that waits stands, or is over.
    const never = () => {};
    this.#events = {
      opened: (via) => wait((to) => to.opened(via)),
      failed: (why) => wait((to) => to.failed(why)),
      closed: () => void (this.#isLost = true),
      packets: never, drained: never, carries: never, wrote: never, beat: never,
    };
    this.#transport = make(this.#events);
    if (request !== undefined) this.#transport.dial(request);
  }

  /**
   * Hands the transport over to its listener. `dials` says whether it dials or has a link already; what it told is told
   * in a moment. A link that was lost meanwhile counts for nothing.
   */
  handOver(listener: TransportEvents): { transport: Transport; dials: boolean } {
    Object.assign(this.#events, listener);
    const dials = this.request !== undefined && !this.#isLost;
    if (dials) queueMicrotask(() => this.#told.forEach((tell) => tell(listener)));
    return { transport: this.#transport, dials };
  }

  /** Ends it all. */
  end(): void {
    this.#transport.end();
  }
}

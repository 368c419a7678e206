// A transport that dials before there is a core to tell: a page reaches its server while it compiles the WebAssembly.

import type { DialRequest } from "./dial.js";
import type { Transport, TransportEvents } from "./transport.js";

type Told = (to: TransportEvents) => void;

/** A transport that dials before it has a listener. It keeps its events until then. */
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
   * Gives the transport its listener. The kept events follow in a microtask. `dials`: whether it is dialling or has a
   * link. A link that was lost before does not count.
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

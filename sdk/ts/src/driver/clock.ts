// The clock of the core: microseconds of this page's life. It never goes back, and is never the wall clock.

/** One second in front, so that no instant of a worker's clock is negative. */
const HEAD_START_US = 1_000_000;

/** Instants for the core. */
export class Clock {
  #last = 0;
  readonly #origin = performance.timeOrigin;

  /** Now, in µs. */
  now(): number {
    return this.at(performance.timeOrigin + performance.now());
  }

  /** An instant that another thread read, in µs; never before one that was given. */
  at(sharedMs: number): number {
    this.#last = Math.max(this.#last, Math.round(this.us(sharedMs)));
    return this.#last;
  }

  /** The same without an order among instants: for spans. */
  us(sharedMs: number): number {
    return Math.max(0, (sharedMs - this.#origin) * 1_000 + HEAD_START_US);
  }

  /** When an instant of the core is, in ms as threads share them. */
  shared(us: number): number {
    return (us - HEAD_START_US) / 1_000 + this.#origin;
  }
}

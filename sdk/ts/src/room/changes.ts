// Says once a task that something changed which a game reads: what views of a framework draw themselves by.

/** What is watched. */
export interface Watched {
  /** Counts changes; equal means that nothing to read changed. */
  version(): number;
  /** Whether anybody listens. */
  isHeard(): boolean;
  tell(version: number): void;
}

/** Compares the version at the end of a task, and tells if it is another one. */
export class Changes {
  #told = Number.NaN;
  #isDue = false;

  constructor(private readonly watched: Watched) {}

  /** Something was read from the network, written, or ended: looks when this task is over. */
  soon(): void {
    if (this.#isDue || !this.watched.isHeard()) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      const version = this.watched.version();
      if (version === this.#told) return;
      this.#told = version;
      this.watched.tell(version);
    });
  }
}

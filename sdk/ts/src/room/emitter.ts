// Listeners of a room, and waits for events.

import { ParlorError } from "../error.js";
import { abortReason } from "../thrown.js";

type Listener = (it: never) => void;

/** Why waits end without their event. */
interface End {
  code: string;
  message: string;
  hint: string;
}

/** Calls listeners. One that throws is reported as an uncaught error would be, and disturbs nobody. */
export class Emitter {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #waits = new Set<(why: End) => void>();
  #ended: End | undefined;

  on(event: string, listener: Listener, options: { signal?: AbortSignal | undefined; once?: boolean | undefined } = {}): () => void {
    const { signal, once = false } = options;
    if (signal?.aborted === true) return () => {};
    // Each call is a listener of its own, even of the same function.
    const called: Listener = (it) => {
      if (once) stop();
      listener(it);
    };
    const all = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, all.add(called));
    const stop = () => {
      all.delete(called);
      signal?.removeEventListener("abort", stop);
    };
    signal?.addEventListener("abort", stop, { once: true });
    return stop;
  }

  /** The next event of a kind. Rejects when `end` is called first, and when the signal ends the wait. */
  next(event: string, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(abortReason(signal));
      if (this.#ended !== undefined) return reject(errorOf(this.#ended));
      const done = () => {
        stop();
        this.#waits.delete(over);
        signal?.removeEventListener("abort", aborted);
      };
      const aborted = () => {
        done();
        reject(abortReason(signal!));
      };
      const over = (why: End) => {
        done();
        reject(errorOf(why));
      };
      const stop = this.on(event, (it) => {
        done();
        resolve(it);
      });
      this.#waits.add(over);
      signal?.addEventListener("abort", aborted, { once: true });
    });
  }

  /** Whether anybody listens to an event. */
  hears(event: string): boolean {
    return (this.#listeners.get(event)?.size ?? 0) > 0;
  }

  emit(event: string, it: unknown): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        listener(it as never);
      } catch (thrown) {
        report(thrown);
      }
    }
  }

  /** No event follows: all waits reject. */
  end(why: End): void {
    this.#ended = why;
    for (const over of [...this.#waits]) over(why);
  }
}

function errorOf({ code, message, hint }: End): ParlorError {
  return new ParlorError(code, message, hint);
}

/** Reports what a callback of the game threw, as the platform reports uncaught errors. */
export function report(thrown: unknown): void {
  const { reportError } = globalThis as { reportError?: (thrown: unknown) => void };
  if (reportError !== undefined) reportError(thrown);
  else console.error(thrown);
}

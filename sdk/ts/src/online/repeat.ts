// Requests that are sent again when their answer is lost, because the server knows the repetition.

import { ParlorError } from "../error.js";

/** Attempts at a request whose answer is lost. */
const ATTEMPTS = 3;

/** A random name for a request that may be sent again. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sends the requests of an account that count once, one after another. */
export class Repeater {
  #last: Promise<unknown> = Promise.resolve();

  send<T>(ask: () => Promise<T>): Promise<T> {
    const sent = this.#last.then(() => untilAnswered(ask));
    this.#last = sent.catch(() => {});
    return sent;
  }
}

async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof ParlorError) || attempt === ATTEMPTS) throw thrown;
      const { code, retryAfterMs = 0 } = thrown;
      // What was refused as unavailable may have been stored all the same.
      if (code !== "connection_lost" && code !== "unavailable") throw thrown;
      await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
    }
  }
}

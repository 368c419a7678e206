// The page's side of the transport worker: the same interface as the transport on this thread.

import type { DialRequest } from "../link/dial.js";
import type { Arrived, CloseWord } from "../link/link.js";
import type { Transport, TransportEvents } from "../link/transport.js";
import { buffersOf, type ToPage, type ToWorker } from "./messages.js";

/** What the SDK uses of a `Worker`. */
export interface WorkerLike {
  /** Sends a message to the worker. */
  postMessage(message: unknown, transfer?: ArrayBuffer[]): void;
  /** Ends the worker. */
  terminate(): void;
  /** Gets the worker's messages. */
  onmessage: ((event: MessageEvent) => void) | null;
  /** Gets errors of the worker. */
  onerror: ((event: ErrorEvent) => void) | null;
}

/** How long a worker may take to start before the links are made on the calling thread. */
export const WORKER_PATIENCE_MS = 1_500;

/**
 * Starts the worker: resolves once it runs, and rejects if the page may not have it. `early` is what it dials as soon as it
 * runs, without waiting for the page's thread, which is busy with the WebAssembly then.
 */
export function startWorker(make: () => WorkerLike, early?: DialRequest): Promise<WorkerLike> {
  return new Promise((resolve, reject) => {
    const worker = make();
    if (early !== undefined) worker.postMessage({ type: "dial", request: early } satisfies ToWorker);
    const timer = setTimeout(() => failed(new Error("the transport worker did not start")), WORKER_PATIENCE_MS);
    const failed = (why: unknown) => {
      clearTimeout(timer);
      worker.terminate();
      reject(why);
    };
    worker.onerror = (event) => {
      event.preventDefault?.();
      failed(new Error(`the transport worker failed: ${event.message ?? "refused"}`));
    };
    worker.onmessage = ({ data }) => {
      if ((data as ToPage).type !== "ready") return;
      clearTimeout(timer);
      worker.onmessage = null;
      resolve(worker);
    };
  });
}

/** How long a worker has to close its link properly. */
const END_PATIENCE_MS = 1_000;

/** A transport in a worker. */
export class WorkerTransport implements Transport {
  /** `dials`: what the worker was started with. */
  constructor(
    private readonly worker: WorkerLike,
    events: TransportEvents,
    private dials?: DialRequest,
  ) {
    worker.onmessage = ({ data }) => tell(data as ToPage, events);
    worker.onerror = (event) => {
      event.preventDefault?.();
      events.closed(`the transport worker failed: ${event.message ?? "it is gone"}`);
    };
  }

  dial(request: DialRequest): void {
    const isDialled = request === this.dials;
    this.dials = undefined;
    if (!isDialled) this.#post({ type: "dial", request });
  }

  send(packets: Arrived[]): void {
    this.#post({ type: "send", packets }, buffersOf(packets));
  }

  close(word: CloseWord, reason: string): void {
    this.#post({ type: "close", word, reason });
  }

  beatAt(at: number | undefined): void {
    this.#post({ type: "beatAt", at });
  }

  heart(everyMs: number): void {
    this.#post({ type: "heart", everyMs });
  }

  end(): void {
    this.#post({ type: "end" });
    this.worker.onmessage = null;
    // It closes itself; one that hangs is ended.
    const timer = setTimeout(() => this.worker.terminate(), END_PATIENCE_MS);
    (timer as { unref?(): void }).unref?.();
  }

  #post(message: ToWorker, transfer?: ArrayBuffer[]): void {
    this.worker.postMessage(message, transfer);
  }
}

function tell(message: ToPage, events: TransportEvents): void {
  switch (message.type) {
    case "opened":
      return events.opened(message.via);
    case "failed":
      return events.failed(message.why);
    case "packets":
      return events.packets(message.batch, message.at);
    case "drained":
      return events.drained(message.streamBytes, message.datagrams);
    case "carries":
      return events.carries(message.bytesPerSecond);
    case "wrote":
      return events.wrote(message.bytes, message.began, message.ended, message.waits);
    case "closed":
      return events.closed(message.why);
    case "beat":
      return events.beat();
    case "ready":
      return;
  }
}

// The transport worker as a Blob, so that no bundler has to find a file of it.

import { LocalTransport, type Transport, type TransportEvents } from "../link/transport.js";
import type { DialRequest, DialTools } from "../link/dial.js";
import { startWorker, type WorkerLike, WorkerTransport } from "./channel.js";

/** The script of worker.ts; the build puts it here. Where there is none, as in unit tests, links are made in place. */
declare const __PARLOR_WORKER__: string | undefined;
const script = typeof __PARLOR_WORKER__ === "string" ? __PARLOR_WORKER__ : undefined;

type WorkerConstructor = new (url: string) => WorkerLike;

/** Makes the worker from its script. */
function blobWorker(Worker: WorkerConstructor, text: string): WorkerLike {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return new Worker(url);
  } finally {
    // The worker has begun to read it.
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}

/**
 * Starts what a room is carried by: a worker, or this thread where there is none or the page may not have it. Resolves
 * with what makes the transport. A worker dials `early` when it starts; the transport is to be asked for it all the same.
 */
export async function startTransport(
  worker: boolean | (() => WorkerLike),
  tools: DialTools,
  early: DialRequest | undefined,
): Promise<(events: TransportEvents) => Transport> {
  const { Worker } = globalThis as { Worker?: WorkerConstructor };
  const make =
    typeof worker === "function"
      ? worker
      : worker && Worker !== undefined && script !== undefined
        ? () => blobWorker(Worker, script)
        : undefined;
  if (make !== undefined) {
    try {
      const started = await startWorker(make, early);
      return (events) => new WorkerTransport(started, events, early);
    } catch {
      // A policy (worker-src), or a page that embeds this one, refuses it: hidden tabs then tick slower, nothing else.
    }
  }
  return (events) => new LocalTransport(tools, events);
}

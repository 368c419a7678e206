// What crosses between a page and its transport worker.

import type { DialRequest } from "../link/dial.js";
import type { Arrived, CloseWord, Via } from "../link/link.js";
import type { Failure } from "../link/transport.js";

/** From the page. */
export type ToWorker =
  | { type: "dial"; request: DialRequest }
  | { type: "send"; packets: Arrived[] }
  | { type: "close"; word: CloseWord; reason: string }
  | { type: "beatAt"; at: number | undefined }
  | { type: "heart"; everyMs: number }
  | { type: "end" };

/** To the page. */
export type ToPage =
  | { type: "ready" }
  | { type: "opened"; via: Via }
  | { type: "failed"; why: Failure }
  | { type: "packets"; batch: Arrived[]; at: number }
  | { type: "drained"; streamBytes: number; datagrams: number }
  | { type: "carries"; bytesPerSecond: number }
  | { type: "wrote"; bytes: number; began: number; ended: number; waits: boolean }
  | { type: "closed"; why: string }
  | { type: "beat" };

/** The buffers of packets, which move to the other thread instead of being copied. */
export function buffersOf(packets: Arrived[]): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { bytes } of packets) buffers.add(bytes.buffer as ArrayBuffer);
  return [...buffers];
}

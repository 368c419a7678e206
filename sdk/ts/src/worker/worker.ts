// The transport worker: the links and the timers of one room, off the page's thread. The build makes it one script.

import type { DialTools } from "../link/dial.js";
import type { Arrived } from "../link/link.js";
import { LocalTransport } from "../link/transport.js";
import { buffersOf, type ToPage, type ToWorker } from "./messages.js";

/** What a worker's scope gives. */
interface Scope {
  postMessage(message: ToPage, transfer?: ArrayBuffer[]): void;
  onmessage: ((event: { data: ToWorker }) => void) | null;
  close(): void;
}

/** Time that the last packets have to leave. */
const GOODBYE_PATIENCE_MS = 500;

const scope = globalThis as unknown as Scope & DialTools;
/** Packets of one task go to the page in one message. */
let batch: { packets: Arrived[]; at: number } | undefined;

function post(message: ToPage): void {
  flush();
  scope.postMessage(message);
}

function flush(): void {
  if (batch === undefined) return;
  const { packets, at } = batch;
  batch = undefined;
  scope.postMessage({ type: "packets", batch: packets, at }, buffersOf(packets));
}

const transport = new LocalTransport(
  { WebSocket: scope.WebSocket, WebTransport: scope.WebTransport, fetch: scope.fetch?.bind(globalThis) },
  {
    packets(packets, at) {
      if (batch === undefined) {
        batch = { packets: [], at };
        queueMicrotask(flush);
      }
      batch.packets.push(...packets);
    },
    opened: (via) => post({ type: "opened", via }),
    failed: (why) => post({ type: "failed", why }),
    drained: (streamBytes, datagrams) => post({ type: "drained", streamBytes, datagrams }),
    carries: (bytesPerSecond) => post({ type: "carries", bytesPerSecond }),
    wrote: (bytes, began, ended, waits) => post({ type: "wrote", bytes, began, ended, waits }),
    closed: (why) => post({ type: "closed", why }),
    beat: () => post({ type: "beat" }),
  },
);

scope.onmessage = ({ data }) => {
  switch (data.type) {
    case "dial":
      return transport.dial(data.request);
    case "send":
      return transport.send(data.packets);
    case "close":
      return transport.close(data.word, data.reason);
    case "beatAt":
      return transport.beatAt(data.at);
    case "heart":
      return transport.heart(data.everyMs);
    case "end":
      transport.end();
      // What was written leaves first.
      setTimeout(() => scope.close(), GOODBYE_PATIENCE_MS);
  }
};
scope.postMessage({ type: "ready" });

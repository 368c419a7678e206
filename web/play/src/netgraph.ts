/** A small net graph: the kind of the link, and the round trip of the last half minute. */

import type { Room } from "parlor";
import { byId, setText } from "../../shared/page.ts";

/** Bars in the graph, one each half second. */
const BARS = 58;
const EVERY_MS = 500;
/** The round trip, in ms, at which a bar has full height. */
const FULL_MS = 200;

const NAMES: Record<string, string> = { webtransport: "WebTransport", websocket: "WebSocket", quic: "QUIC", memory: "local" };

export class NetGraph {
  readonly #canvas = byId("net-graph", HTMLCanvasElement);
  readonly #text = byId("net-text");
  readonly #box = byId("net");
  #pings: (number | undefined)[] = [];
  #next = 0;

  update(room: Room, timeMs: number): void {
    if (timeMs < this.#next) return;
    this.#next = timeMs + EVERY_MS;
    const { status } = room;
    const { rttMs } = room.diagnostics;
    const pingMs = typeof rttMs === "number" ? rttMs : undefined;
    const link = NAMES[room.players.get(room.me)?.link ?? ""] ?? "connected";
    this.#pings.push(status === "open" || status === "migrating" ? pingMs : undefined);
    if (this.#pings.length > BARS) this.#pings.shift();
    this.#box.classList.toggle("bad", status === "reconnecting");
    const ping = pingMs === undefined ? "" : ` · ${pingMs < 10 ? pingMs.toFixed(1) : Math.round(pingMs)} ms`;
    setText(this.#text, status === "reconnecting" ? "reconnecting…" : `${link}${ping}`);
    this.#draw();
  }

  #draw(): void {
    const pen = this.#canvas.getContext("2d");
    if (!pen) return;
    const { width, height } = this.#canvas;
    pen.clearRect(0, 0, width, height);
    this.#pings.forEach((ping, bar) => {
      const part = ping === undefined ? 1 : Math.min(1, ping / FULL_MS);
      pen.fillStyle = ping === undefined ? "#ff6b6b66" : ping < 60 ? "#69db7c" : ping < 130 ? "#ffd166" : "#ff6b6b";
      const high = Math.max(2, part * height);
      pen.fillRect((bar * width) / BARS, height - high, width / BARS - 1, high);
    });
  }
}

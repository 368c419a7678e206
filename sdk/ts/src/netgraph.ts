// A net graph: how the connection of a room is, measured twice a second, as data, on a canvas, and as an element.

/** What is measured of a room. Every room and match is one. */
export interface MeasuredRoom {
  readonly status: "open" | "reconnecting" | "migrating" | "closed";
  readonly link: string | undefined;
  readonly diagnostics: Readonly<Record<string, unknown>>;
}

/** One measurement. What is not known is undefined. */
export interface NetSample {
  /** Of the clock that the meter was given, in ms. */
  readonly timeMs: number;
  readonly status: MeasuredRoom["status"];
  readonly link: string | undefined;
  /** Round trip to the server. */
  readonly rttMs: number | undefined;
  /** How unevenly state arrives. */
  readonly jitterMs: number;
  /** Part of the packets sent since the last measurement that were lost, 0 to 1. */
  readonly loss: number;
  /** How old state is when it arrives, in the mean of the last updates. The host has none. */
  readonly stateAgeMs: number | undefined;
  /** How far in the past others are drawn. */
  readonly bufferMs: number;
  readonly bytesDownPerSecond: number;
  readonly bytesUpPerSecond: number;
  /** Mispredictions that were corrected since the last measurement. */
  readonly corrections: number;
}

/** How a meter measures. */
export interface MeterOptions {
  /** Time between two measurements. Default: 500 ms. */
  everyMs?: number;
  /** How many are kept. Default: 60. */
  samples?: number;
}

const EVERY_MS = 500;
const SAMPLES = 60;

const number = (of: unknown, name: string): number => {
  const value = (of as Record<string, unknown> | undefined)?.[name];
  return typeof value === "number" ? value : 0;
};

/** Measures a room. */
export class NetMeter {
  readonly #room: MeasuredRoom;
  readonly #everyMs: number;
  readonly #most: number;
  readonly #samples: NetSample[] = [];
  #next = Number.NEGATIVE_INFINITY;
  #before: { timeMs: number; sent: number; lost: number; down: number; up: number; corrections: number } | undefined;

  constructor(room: MeasuredRoom, { everyMs = EVERY_MS, samples = SAMPLES }: MeterOptions = {}) {
    this.#room = room;
    this.#everyMs = everyMs;
    this.#most = samples;
  }

  /** The measurements, oldest first. */
  get samples(): readonly NetSample[] {
    return this.#samples;
  }

  /** The newest measurement. */
  get latest(): NetSample | undefined {
    return this.#samples.at(-1);
  }

  /** Measures if it is time to: call it in each frame. Says whether it did. */
  update(timeMs: number): boolean {
    if (timeMs < this.#next) return false;
    this.#next = timeMs + this.#everyMs;
    const { status, link, diagnostics } = this.#room;
    const { session, prediction, rttMs, latencyDown } = diagnostics;
    const now = {
      timeMs,
      sent: number(session, "packetsSent"),
      lost: number(session, "packetsLost"),
      down: number(session, "bytesReceived"),
      up: number(session, "bytesSent"),
      corrections: number(prediction, "corrections"),
    };
    const before = this.#before ?? now;
    this.#before = now;
    // A new session counts from zero again.
    const since = (name: "sent" | "lost" | "down" | "up" | "corrections") => Math.max(0, now[name] - before[name]);
    const seconds = (timeMs - before.timeMs) / 1_000;
    const perSecond = (count: number) => (seconds > 0 ? count / seconds : 0);
    const sent = since("sent");
    this.#samples.push({
      timeMs,
      status,
      link,
      rttMs: typeof rttMs === "number" ? rttMs : undefined,
      jitterMs: number(diagnostics, "jitterMs"),
      loss: sent > 0 ? Math.min(1, since("lost") / sent) : 0,
      stateAgeMs: latencyDown === undefined ? undefined : number(latencyDown, "meanMs"),
      bufferMs: number(diagnostics, "bufferDelayMs"),
      bytesDownPerSecond: perSecond(since("down")),
      bytesUpPerSecond: perSecond(since("up")),
      corrections: since("corrections"),
    });
    if (this.#samples.length > this.#most) this.#samples.shift();
    return true;
  }
}

const LINKS: Record<string, string> = { webtransport: "WebTransport", websocket: "WebSocket" };

/** A measurement as names and texts, for who draws them. */
export function describeSample(sample: NetSample): [name: string, text: string][] {
  const ms = (value: number | undefined) => (value === undefined ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`);
  const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} kB/s`;
  return [
    ["link", sample.status === "open" ? (LINKS[sample.link ?? ""] ?? sample.link ?? "–") : `${sample.status}…`],
    ["round trip", ms(sample.rttMs)],
    ["jitter", ms(sample.jitterMs)],
    ["lost", `${(sample.loss * 100).toFixed(1)}%`],
    ["state age", ms(sample.stateAgeMs)],
    ["buffer", ms(sample.bufferMs)],
    ["in", kilobytes(sample.bytesDownPerSecond)],
    ["out", kilobytes(sample.bytesUpPerSecond)],
    ["corrections", String(sample.corrections)],
  ];
}

/** Where and how the graph is drawn. */
export interface GraphOptions {
  x?: number;
  y?: number;
  width: number;
  height: number;
  /** Measurements side by side. Default: 60. */
  samples?: number;
  /** The round trip at which a bar has full height. Default: 200 ms. */
  fullMs?: number;
  /** Colours of a good, a middling and a bad round trip, and of corrections. */
  colours?: readonly [good: string, middling: string, bad: string, correction: string];
}

const COLOURS = ["#69db7c", "#ffd166", "#ff6b6b", "#74c0fc"] as const;
/** Round trips from which on they are middling, and bad. */
const MIDDLING_MS = 60;
const BAD_MS = 130;

/** Draws round trips as bars, with the newest at the right, and a mark where there were corrections. */
export function drawNetGraph(
  pen: Pick<CanvasRenderingContext2D, "fillStyle" | "fillRect" | "clearRect" | "globalAlpha">,
  all: readonly NetSample[],
  { x = 0, y = 0, width, height, samples = SAMPLES, fullMs = 200, colours = COLOURS }: GraphOptions,
): void {
  const shown = all.slice(-samples);
  const wide = width / samples;
  pen.clearRect(x, y, width, height);
  shown.forEach(({ status, rttMs, corrections }, index) => {
    const left = x + width - (shown.length - index) * wide;
    const isThere = status !== "reconnecting" && rttMs !== undefined;
    const high = Math.max(2, Math.min(1, isThere ? rttMs / fullMs : 1) * height);
    pen.globalAlpha = isThere ? 1 : 0.4;
    pen.fillStyle = colours[!isThere || rttMs >= BAD_MS ? 2 : rttMs >= MIDDLING_MS ? 1 : 0];
    pen.fillRect(left, y + height - high, Math.max(1, wide - 1), high);
    pen.globalAlpha = 1;
    if (corrections > 0) {
      pen.fillStyle = colours[3];
      pen.fillRect(left, y, Math.max(1, wide - 1), 3);
    }
  });
}

/** The element `<parlor-netgraph>`: set its `room`. The attribute `compact` leaves all but the link, the round trip and the graph out. */
export interface NetGraphElement extends HTMLElement {
  /** What is measured; undefined for nothing. */
  room: MeasuredRoom | undefined;
  /** The newest measurement. */
  readonly latest: NetSample | undefined;
}

const STYLE = `
:host { display: block; font: 12px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
canvas { display: block; width: 100%; height: 40px; }
dl { display: grid; grid-template-columns: auto 1fr auto auto; gap: 0 0.7em; margin: 0; white-space: nowrap; }
dd:first-of-type { grid-column: 2 / -1; }
dt { opacity: 0.6; }
dd { margin: 0; }
p { margin: 0; }
:host([compact]) dl, :host(:not([compact])) p { display: none; }`;

/**
 * Defines the element, under another name if one is given. To be called in a page, once; again it does nothing. The element
 * has its style in a sheet of its own, which every content security policy allows.
 */
export function defineNetGraph(name = "parlor-netgraph"): void {
  if (customElements.get(name) !== undefined) return;
  customElements.define(
    name,
    class extends HTMLElement implements NetGraphElement {
      readonly #canvas = document.createElement("canvas");
      readonly #line = document.createElement("p");
      readonly #list = document.createElement("dl");
      #room: MeasuredRoom | undefined;
      #meter: NetMeter | undefined;
      #timer: ReturnType<typeof setInterval> | undefined;

      constructor() {
        super();
        const root = this.attachShadow({ mode: "open" });
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(STYLE);
        root.adoptedStyleSheets = [sheet];
        this.#canvas.part.add("graph");
        root.append(this.#line, this.#list, this.#canvas);
      }

      get room(): MeasuredRoom | undefined {
        return this.#room;
      }

      set room(room: MeasuredRoom | undefined) {
        this.#room = room;
        this.#begin();
      }

      get latest(): NetSample | undefined {
        return this.#meter?.latest;
      }

      connectedCallback(): void {
        // A property that was set before the element was defined hides the setter.
        if (Object.hasOwn(this, "room")) {
          const { room } = this;
          Reflect.deleteProperty(this, "room");
          this.#room = room;
        }
        this.#begin();
      }

      disconnectedCallback(): void {
        this.#end();
      }

      #begin(): void {
        this.#end();
        this.#line.textContent = "";
        this.#list.replaceChildren();
        if (this.#room === undefined || !this.isConnected) return;
        this.#meter = new NetMeter(this.#room);
        this.#timer = setInterval(() => this.#show(), EVERY_MS);
        this.#show();
      }

      #end(): void {
        clearInterval(this.#timer);
        this.#meter = undefined;
      }

      #show(): void {
        // The timer is the clock: one that is a little early must not skip a measurement.
        const meter = this.#meter;
        if (meter === undefined) return;
        meter.update(performance.now() + EVERY_MS / 4);
        const { latest } = meter;
        if (latest === undefined) return;
        const rows = describeSample(latest);
        this.#line.textContent = latest.status === "open" ? `${rows[0]![1]} · ${rows[1]![1]}` : rows[0]![1];
        this.#list.replaceChildren(...rows.flatMap(([term, text]) => [element("dt", term), element("dd", text)]));
        const { clientWidth, clientHeight } = this.#canvas;
        const scale = Math.min(2, globalThis.devicePixelRatio ?? 1);
        // Setting a canvas's size empties it: only another one is set.
        const [width, height] = [Math.round(clientWidth * scale), Math.round(clientHeight * scale)];
        if (this.#canvas.width !== width) this.#canvas.width = width;
        if (this.#canvas.height !== height) this.#canvas.height = height;
        const pen = this.#canvas.getContext("2d");
        if (pen !== null) drawNetGraph(pen, meter.samples, { width, height });
      }
    },
  );
}

function element(kind: "dt" | "dd", text: string): HTMLElement {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

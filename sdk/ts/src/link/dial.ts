// Reaching a server: WebTransport first, WebSocket a moment later or at once if the first failed; the winner stays.
//
//   t = 0                     headStart                    first that stands
//   ask /web.json, dial ─────────────── WebSocket ────────▶ the other is given up
//   WebTransport        └─ failed: WebSocket at once

import { abortReason, sentence } from "../thrown.js";
import { LinkFault } from "./fault.js";
import { type Address, baseUrl, isLoopback, placeOf } from "../server/address.js";
import type { Link, LinkEvents, Via } from "./link.js";
import { openWebSocket, type WebSocketConstructor } from "./websocket.js";
import { openWebTransport, type WebTransportConstructor } from "./webtransport.js";

/** Which links may be tried. */
export type ViaOption = "auto" | Via;

/** What to reach, and how. It crosses to the transport worker. */
export interface DialRequest {
  address: Address;
  via: ViaOption;
  /** How long WebTransport has for itself; 0 starts both at once. */
  headStartMs: number;
}

/** What the platform gives to dial with. */
export interface DialTools {
  WebSocket?: WebSocketConstructor;
  WebTransport?: WebTransportConstructor;
  fetch?: typeof fetch;
}

/** WebTransport's start over WebSocket. */
export const HEAD_START_MS = 500;
const WEBTRANSPORT_PATIENCE_MS = 4_000;
const WEBSOCKET_PATIENCE_MS = 5_000;
const WEBTRANSPORT_PATH = "/wt";
const WEBSOCKET_PATH = "/ws";

/** What `/web.json` says of WebTransport. */
interface WebInfo {
  port: number;
  path: string;
  hashes: readonly string[];
}

/** Dials, and resolves with the first link that stands. */
export async function dial(request: DialRequest, tools: DialTools, events: LinkEvents, signal: AbortSignal): Promise<Link> {
  const attempts = new Attempts(signal, request.address);
  const WebSocket = request.via === "webtransport" ? undefined : tools.WebSocket;
  const WebTransport = request.via === "websocket" ? undefined : tools.WebTransport;
  if (WebSocket === undefined && WebTransport === undefined) throw noWay(request.via);
  const overWebSocket = () => {
    if (WebSocket === undefined) return;
    void attempts.add(WEBSOCKET_PATIENCE_MS, (end) => {
      const url = `${baseUrl(request.address, "ws")}${WEBSOCKET_PATH}`;
      const mixed = mixedContent(url);
      return mixed === undefined ? openWebSocket(url, WebSocket, events, end) : Promise.reject(mixed);
    });
  };
  if (WebTransport !== undefined) {
    const first = attempts.add(WEBTRANSPORT_PATIENCE_MS, async (end) => {
      const { address } = request;
      const open = (info: WebInfo) => {
        const url = `${baseUrl({ ...address, port: info.port, secure: true }, "http")}${info.path}`;
        return openWebTransport(url, info.hashes, WebTransport, events, end);
      };
      const told = toldBefore(address);
      if (told === undefined) return open(await webInfo(address, tools, end));
      return open(told).catch(async (thrown: unknown) => {
        if (end.aborted || !(thrown instanceof LinkFault) || tools.fetch === undefined) throw thrown;
        return open(await renewed(told, thrown, address, tools, end));
      });
    });
    if (WebSocket !== undefined) attempts.after(request.headStartMs, first, overWebSocket);
  } else {
    overWebSocket();
  }
  return attempts.winner;
}

/** Attempts that race: the first link that stands wins, and ends the others. */
class Attempts {
  readonly winner: Promise<Link>;
  #settle!: { resolve(link: Link): void; reject(why: unknown): void };
  readonly #ends: AbortController[] = [];
  readonly #failures: unknown[] = [];
  #running = 0;
  #waiting = 0;
  #isOver = false;

  constructor(
    private readonly signal: AbortSignal,
    private readonly address: Address,
  ) {
    this.winner = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    if (signal.aborted) this.#aborted();
    else signal.addEventListener("abort", this.#aborted, { once: true });
  }

  readonly #aborted = () => this.#over(() => this.#settle.reject(abortReason(this.signal)));

  /** Begins an attempt. What it returns resolves when the attempt is over. */
  add(patienceMs: number, open: (signal: AbortSignal) => Promise<Link>): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    const end = new AbortController();
    this.#ends.push(end);
    this.#running += 1;
    const timer = setTimeout(() => {
      end.abort(new LinkFault("unreachable", `no answer within ${patienceMs / 1000} s`));
    }, patienceMs);
    return open(end.signal).then(
      (link) => {
        clearTimeout(timer);
        if (this.#isOver) link.close("done", "another link was first");
        else this.#over(() => this.#settle.resolve(link));
      },
      (thrown: unknown) => {
        clearTimeout(timer);
        this.#running -= 1;
        this.#failures.push(thrown);
        this.#failIfAll();
      },
    );
  }

  /** Begins something when the time is over or `first` is, whichever comes first. */
  after(ms: number, first: Promise<void>, begin: () => void): void {
    this.#waiting += 1;
    let begun = false;
    const once = () => {
      if (begun) return;
      begun = true;
      clearTimeout(timer);
      this.#waiting -= 1;
      if (!this.#isOver) begin();
      this.#failIfAll();
    };
    const timer = setTimeout(once, ms);
    void first.then(once);
  }

  #failIfAll(): void {
    if (this.#isOver || this.#running > 0 || this.#waiting > 0) return;
    this.#over(() => this.#settle.reject(worst(this.#failures, this.address)));
  }

  #over(settle: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.signal.removeEventListener("abort", this.#aborted);
    settle();
    for (const end of this.#ends) end.abort(new LinkFault("aborted", "another link was first"));
  }
}

/** Where a server takes WebTransport by what an invite or the page said before; undefined if they said nothing. */
function toldBefore({ port, hashes }: Address): WebInfo | undefined {
  return hashes === undefined || hashes.length === 0 ? undefined : { port, path: WEBTRANSPORT_PATH, hashes };
}

/**
 * A browser does not say why a handshake failed. Certificates are replaced every few days, so hashes that were told long
 * ago may be those of none that is left: the server is asked for the present ones. Throws if that does not help.
 */
async function renewed(told: WebInfo, failed: LinkFault, address: Address, tools: DialTools, signal: AbortSignal): Promise<WebInfo> {
  const info = await webInfo(address, tools, signal).catch((thrown: unknown) => {
    const why = `${failed.message}; its certificate may have been replaced, and ${sentence(thrown)}`;
    throw new LinkFault("unreachable", why, "ask for a new invite");
  });
  // None at all are those of an authority's certificate.
  const isKnown = info.hashes.length > 0 && info.hashes.every((hash) => told.hashes.includes(hash));
  if (isKnown && info.port === told.port) throw failed;
  return info;
}

/** Asks a server where it takes WebTransport, and for its certificates' hashes. */
async function webInfo(address: Address, tools: DialTools, signal: AbortSignal): Promise<WebInfo> {
  const known = { port: address.port, path: WEBTRANSPORT_PATH };
  if (tools.fetch === undefined) return { ...known, hashes: [] };
  const url = `${baseUrl(address, "http")}/web.json`;
  let said: unknown;
  try {
    const response = await tools.fetch(url, { cache: "no-store", signal, credentials: "omit" });
    if (!response.ok) throw new LinkFault("not_parlor", `${url} answers ${response.status}`);
    said = await response.json();
  } catch (thrown) {
    if (signal.aborted) throw abortReason(signal);
    if (thrown instanceof LinkFault) throw thrown;
    const code = thrown instanceof SyntaxError ? "not_parlor" : "unreachable";
    throw new LinkFault(code, `${url} could not be read: ${sentence(thrown)}`);
  }
  const { webtransport } = said as { webtransport?: Partial<WebInfo> | null };
  if (webtransport === undefined || webtransport === null) {
    throw new LinkFault("unreachable", `${placeOf(address)} speaks no WebTransport`, "connect `via: \"websocket\"`");
  }
  const { port = address.port, path = WEBTRANSPORT_PATH, hashes = [] } = webtransport;
  return { port, path, hashes };
}

/** A page that came over TLS may not open a plain socket but to its own machine. */
function mixedContent(url: string): LinkFault | undefined {
  if (globalThis.location?.protocol !== "https:" || !url.startsWith("ws://")) return undefined;
  if (isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ""))) return undefined;
  return new LinkFault(
    "blocked_by_browser",
    `a page from https:// may not open ${url}`,
    "give the server a certificate, and use its https:// address",
  );
}

function noWay(via: ViaOption): LinkFault {
  if (via === "webtransport") {
    return new LinkFault("no_webtransport", "this browser has no WebTransport here", "use `via: \"auto\"`; WebTransport needs https:// or localhost");
  }
  return new LinkFault("no_websocket", "there is no WebSocket in this environment");
}

/** Of all that failed, what says most: what the browser blocks, then who answered but is no Parlor server. */
function worst(failures: unknown[], address: Address): LinkFault {
  const faults = failures.map((thrown) => (thrown instanceof LinkFault ? thrown : new LinkFault("unreachable", sentence(thrown))));
  const rank = ["blocked_by_browser", "not_parlor"];
  const worst = rank.map((code) => faults.find((fault) => fault.code === code)).find((fault) => fault !== undefined);
  const { code, hint } = worst ?? faults.at(-1)!;
  const message = faults.map((fault) => fault.message).join("; ");
  return new LinkFault(code, message, hint === "" && code === "unreachable" ? hintForStranger(address) : hint);
}

/** A server takes pages of its own origin and of those that its operator names; a browser does not say that it refused. */
function hintForStranger(address: Address): string {
  const { origin } = globalThis as { origin?: string };
  if (origin === undefined || !/^https?:/.test(origin) || origin === new URL(baseUrl(address, "http")).origin) return "";
  return `check that the server runs, its address and port, and that it takes pages of this origin: parlor serve --web-origins ${origin}`;
}

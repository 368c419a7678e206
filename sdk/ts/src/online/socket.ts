// The JSON socket of a server as texts: `/v1/socket`. Browsers send what it needs as it is.

import { ParlorError } from "../error.js";
import type { WebSocketConstructor } from "../link/websocket.js";
import { type Address, baseUrl, placeOf } from "../server/address.js";
import { sentence } from "../thrown.js";

/** What a socket tells. */
export interface SocketEvents {
  opened(): void;
  text(text: string): void;
  closed(why: string): void;
}

/** A socket of texts. */
export interface TextSocket {
  send(text: string): void;
  close(): void;
}

/** What is used of a `WebSocket` here. */
interface WebSocketOfTexts {
  send(text: string): void;
  close(code?: number): void;
  addEventListener(type: string, listener: (event: { data?: unknown; code?: number; reason?: string; message?: string }) => void): void;
}

/** How long a server may take to accept. */
const OPENS_WITHIN_MS = 10_000;
const NO_WEBSOCKET = "this platform has no WebSocket";

/** Opens a socket. What it tells comes later, and nothing after `closed` or `close`. */
export function openSocket(address: Address, given: WebSocketConstructor | undefined, events: SocketEvents): TextSocket {
  const WebSocket = given ?? (globalThis as { WebSocket?: unknown }).WebSocket;
  if (WebSocket === undefined) throw new ParlorError("no_websocket", NO_WEBSOCKET);
  const url = `${baseUrl(address, "ws")}/v1/socket`;
  let socket: WebSocketOfTexts;
  try {
    socket = new (WebSocket as new (url: string) => WebSocketOfTexts)(url);
  } catch (thrown) {
    throw new ParlorError("blocked_by_browser", `the browser does not open ${url}: ${sentence(thrown)}`);
  }
  let isOver = false;
  let detail = "";
  const over = (why?: string) => {
    if (isOver) return;
    isOver = true;
    clearTimeout(patience);
    if (why !== undefined) events.closed(why);
  };
  const patience = setTimeout(() => {
    over(`${url} did not open within ${OPENS_WITHIN_MS / 1_000} s`);
    socket.close();
  }, OPENS_WITHIN_MS);
  socket.addEventListener("open", () => {
    clearTimeout(patience);
    if (!isOver) events.opened();
  });
  socket.addEventListener("message", ({ data }) => {
    if (!isOver && typeof data === "string") events.text(data);
  });
  // A browser says nothing here, Node what was wrong. An error without a listener ends a Node process.
  socket.addEventListener("error", ({ message }) => void (detail = message ?? detail));
  socket.addEventListener("close", ({ code, reason }) => {
    const said = [code === undefined || code === 1006 ? "" : `(${code})`, reason ?? "", detail].filter((part) => part !== "");
    over(`the connection to ${placeOf(address)} is closed${said.length === 0 ? "" : `: ${said.join(" ")}`}`);
  });
  return {
    send: (text) => socket.send(text),
    close: () => {
      over();
      socket.close(1000);
    },
  };
}

/** Why no socket could be opened, as far as the server itself says. */
export async function whyNot(address: Address, why: string, fetch = globalThis.fetch): Promise<ParlorError> {
  try {
    const answer = await fetch(`${baseUrl(address, "http")}/web.json`, { signal: AbortSignal.timeout(5_000) });
    const { services } = (await answer.json()) as { services?: string | null };
    if (services === null) {
      const hint = "use another server, or start this one with a folder for its data: `parlor serve --data FOLDER`";
      return new ParlorError("no_accounts", `the server at ${placeOf(address)} keeps no accounts`, hint);
    }
    const hint = "if this page is of another origin than the server's, start the server with `--web-origins` and that origin";
    return new ParlorError("unreachable", `the server at ${placeOf(address)} answers, but not here: ${why}`, hint);
  } catch {
    return new ParlorError("unreachable", why);
  }
}

// A ticket from another server than the account's own: one that the account's server sent a room to. It has the same
// store, and gets the access token alone.

import { ParlorError } from "../error.js";
import type { WebSocketConstructor } from "../link/websocket.js";
import type { Address } from "../server/address.js";
import type { JsonObject } from "./operations.js";
import { errorOf, refusalOf } from "./refusal.js";
import { openSocket } from "./socket.js";

/** How long the server may take. */
const ANSWERS_WITHIN_MS = 10_000;

/** Asks for a ticket over a socket of its own. */
export function ticketFrom(at: Address, token: string, input: JsonObject, WebSocket: WebSocketConstructor | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const failed = (why: ParlorError) => {
      clearTimeout(patience);
      socket.close();
      reject(why);
    };
    const patience = setTimeout(() => failed(new ParlorError("unreachable", "the server does not answer")), ANSWERS_WITHIN_MS);
    const socket = openSocket(at, WebSocket, {
      opened: () => socket.send(JSON.stringify({ id: 1, op: "admission.ticket", input, token })),
      text: (text) => {
        const { id, output, error } = JSON.parse(text) as { id?: unknown; output?: { token?: string }; error?: unknown };
        const why = refusalOf(error);
        if (why !== undefined) return failed(errorOf(why));
        if (id !== 1) return;
        clearTimeout(patience);
        socket.close();
        resolve(output?.token ?? "");
      },
      closed: (why) => failed(new ParlorError("unreachable", why)),
    });
  });
}

// Two players over a bad network. They play on the server of the page: start it before.

import { badNetwork } from "parlor/impair";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { type SparksRoom, sparks, step, WIDTH } from "./game.js";
import { server } from "./place.js";

/** Only a fault takes this long. */
const timeout = 30_000;

/** Runs the steps that are due. */
function play(room: SparksRoom, dx: number): void {
  room.update();
  while (room.tick()) {
    room.sendInput({ dx, dy: 0 });
    if (room.isHost) step(room);
  }
}

test("both see the same over a bad network", { timeout }, async () => {
  const host = await sparks.host({ server, WebSocket });
  const network = badNetwork({ latencyMs: 75, loss: 0.05, seed: 7 });
  const guest = await sparks.join(host.code, { server, WebSocket, network });
  try {
    // The guest flies to the right edge.
    const flyers = () => [host, guest].map((room) => room.get(`flyer/${guest.me}`));
    await expect.poll(() => (play(host, 0), play(guest, 1), flyers().map((flyer) => flyer?.x)), { timeout, interval: 5 }).toEqual([WIDTH, WIDTH]);
    expect(guest.pingMs).toBeGreaterThan(100);
  } finally {
    await Promise.all([guest.leave(), host.leave()]);
  }
});

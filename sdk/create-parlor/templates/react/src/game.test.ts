// Two players over a bad network. They play on the server of the page: start it before.

import { badNetwork } from "parlor/impair";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { paint, tiles } from "./game.js";
import { server } from "./place.js";

/** Only a fault takes this long. */
const timeout = 30_000;

test("both see the same over a bad network", { timeout }, async () => {
  const host = await tiles.host({ server, WebSocket });
  host.on("message", ({ from, value }) => from !== "hub" && paint(host, from, value));
  const network = badNetwork({ latencyMs: 75, loss: 0.05, seed: 7 });
  const guest = await tiles.join(host.code, { server, WebSocket, network });
  try {
    guest.send("all", "paint", 12);
    guest.send("all", "paint", 1_000);
    await expect.poll(() => [host, guest].map((room) => room.get("tile/12")), { timeout, interval: 5 }).toEqual([guest.me, guest.me]);
    expect([...host.keys("tile/")]).toEqual(["tile/12"]);
  } finally {
    await Promise.all([guest.leave(), host.leave()]);
  }
});

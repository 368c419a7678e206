/** Bots that play behind the start screen, so that a newcomer sees what the game is. There is no room. */

import { Bot } from "./game/bot.ts";
import { HZ, type Input } from "./game/state.ts";
import { World } from "./game/world.ts";
import type { Painter } from "./draw.ts";

const NAMES = ["Pica", "Elster", "Urraca", "Gazza", "Ekster"];

/** Plays until the signal. */
export function attract(painter: Painter, signal: AbortSignal): void {
  const world = new World(BigInt(Math.floor(Math.random() * 2 ** 32)));
  const bots = NAMES.map((name, id) => {
    world.join(id, name);
    return new Bot(BigInt(id), 0.4 + 0.1 * id);
  });
  let began: number | undefined;
  let ticks = 0;
  const frame = (timeMs: number) => {
    if (signal.aborted) return;
    began ??= timeMs;
    // A page that was hidden does not catch up.
    const due = Math.floor(((timeMs - began) / 1000) * HZ);
    ticks = Math.max(ticks, due - 3);
    for (; ticks < due; ticks++) {
      const scene = world.scene();
      world.step(new Map(bots.map((bot, id): [number, Input] => [id, bot.think(scene, id)])));
    }
    painter.draw({ scene: world.scene(), timeMs });
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** Bots that play behind the start screen. There is no room: tanks drive by the rules alone. */

import { Bot } from "./bot.ts";
import type { Painter, Piece } from "./draw.ts";
import { drive, HEALTH, HZ, SIDES, type Tank, tankAt } from "./rules.ts";

const COUNT = 5;

/** Plays until the signal. */
export function attract(painter: Painter, signal: AbortSignal): void {
  const bots = Array.from({ length: COUNT }, () => new Bot());
  let tanks: Tank[] = bots.map((_, i) => tankAt({ x: SIDES.x * (0.15 + 0.175 * i), y: i % 2 === 0 ? 12 : 52 }));
  let ticks = 0;
  let began: number | undefined;
  const frame = (timeMs: number) => {
    if (signal.aborted) return;
    began ??= timeMs;
    // A page that was hidden does not catch up.
    const due = Math.floor(((timeMs - began) / 1000) * HZ);
    ticks = Math.max(ticks, due - 3);
    for (; ticks < due; ticks++) {
      tanks = tanks.map((tank, i) => {
        const others = tanks.filter((it) => it !== tank).map((it) => it.position);
        return drive(tank, bots[i]!.order(tank, others)).tank;
      });
    }
    const life = { health: HEALTH, hits: 0, deaths: 0 };
    painter.draw(tanks.map((tank, i): Piece => ({ entity: i, tank, life, owner: i, name: "", isMe: false })), timeMs);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

// The rules: players fly, and catch sparks. The host runs them; all it needs is in the room, so any player can go on as
// the host.

import { defineGame, inviteFrom, type } from "parlor";
import { name, server } from "./place.js";

export const WIDTH = 640;
export const HEIGHT = 400;
const SPEED = 5;
const SPARKS = 5;
const REACH = 22;

export type Flyer = { x: number; y: number; score: number };
export type Spark = { x: number; y: number };
/** Where a player flies: each from −1 to 1. */
export type Move = { dx: number; dy: number };

export const sparks = defineGame("sparks", {
  tickHz: 30,
  state: { "flyer/*": type<Flyer>(), "spark/*": type<Spark>() },
  input: type<Move>(),
});

export type SparksRoom = Awaited<ReturnType<typeof sparks.host>>;

/** Joins the room of the page's invite, or hosts one. */
export async function open(): Promise<SparksRoom> {
  const invite = inviteFrom();
  const room = invite ? await sparks.join(invite, { server, name }) : await sparks.host({ server, name, maxPlayers: 8 });
  // A caught spark is elsewhere at once; all else glides. The host says it for all.
  if (room.isHost) room.declare("spark/", { snap: ["x", "y"] });
  return room;
}

/** One step of the host. */
export function step(room: SparksRoom): void {
  for (let i = 0; i < SPARKS; i++) if (!room.get(`spark/${i}`)) room.set(`spark/${i}`, somewhere());
  for (const key of room.keys("flyer/")) if (!room.players.has(Number(key.slice(6)))) room.delete(`flyer/${key.slice(6)}`);
  for (const [player, { dx, dy }] of room.inputs()) {
    const flyer = room.get(`flyer/${player}`) ?? { ...somewhere(), score: 0 };
    const x = clamp(flyer.x + SPEED * clamp(dx, -1, 1), 0, WIDTH);
    const y = clamp(flyer.y + SPEED * clamp(dy, -1, 1), 0, HEIGHT);
    let { score } = flyer;
    for (const [key, spark] of room.entries("spark/")) {
      if (Math.hypot(spark.x - x, spark.y - y) > REACH) continue;
      score += 1;
      room.set(key as `spark/${string}`, somewhere());
    }
    room.set(`flyer/${player}`, { x, y, score });
  }
}

const clamp = (n: number, min: number, max: number) => Math.min(max, Math.max(min, n));
const somewhere = (): Spark => ({ x: Math.round(30 + Math.random() * (WIDTH - 60)), y: Math.round(30 + Math.random() * (HEIGHT - 60)) });

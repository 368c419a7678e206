// The game: each player paints tiles, one at a time, and paints over those of others. The host keeps the board.

import { defineGame, inviteFrom, type } from "parlor";
import { name, server } from "./place.js";

export const SIZE = 8;

export const tiles = defineGame("tiles", {
  // By its place: the player who painted it last.
  state: { "tile/*": type<number>() },
  messages: { paint: type<number>() },
});

export type TilesRoom = Awaited<ReturnType<typeof tiles.host>>;

/** Joins the room of the page's invite, or hosts one. */
export function open(signal: AbortSignal): Promise<TilesRoom> {
  const invite = inviteFrom();
  return invite ? tiles.join(invite, { server, name, signal }) : tiles.host({ server, name, signal, maxPlayers: 8 });
}

/** At the host: a player paints a tile. A player may send anything, so the tile is checked. */
export function paint(room: TilesRoom, player: number, tile: number): void {
  if (Number.isInteger(tile) && tile >= 0 && tile < SIZE * SIZE) room.set(`tile/${tile}`, player);
}

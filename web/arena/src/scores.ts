/** The list of players beside the arena. */

import { colour, type Piece } from "./draw.ts";
import type { ArenaRoom } from "./game.ts";

/** Shows who plays, with the most hits first. Elements are made anew only when a text differs. */
export function showScores(list: HTMLElement, room: ArenaRoom, pieces: readonly Piece[]): void {
  const of = new Map(pieces.flatMap(({ owner, life }) => (owner === undefined ? [] : [[owner, life] as const])));
  const players = [...room.players.values()].map((player) => ({ player, life: of.get(player.id) }));
  players.sort((a, b) => (b.life?.hits ?? 0) - (a.life?.hits ?? 0) || a.player.id - b.player.id);
  const rows = players.map(({ player: { id, name, isHost, isMe, connected }, life }) => {
    const row = document.createElement("li");
    row.className = `${isMe ? "me" : ""} ${connected ? "" : "away"}`.trim();
    const dot = document.createElement("i");
    dot.style.background = colour(id);
    const shown = name.trim() === "" ? `player ${id}` : name;
    row.append(dot, span("name", `${isHost ? "★ " : ""}${shown}${isMe ? " (you)" : ""}`), span("score", `${life?.hits ?? 0}`));
    row.append(span("lost", `${life?.deaths ?? 0} lost`));
    return row;
  });
  const text = rows.map((row) => `${row.className}${row.textContent}`).join("\n");
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  list.replaceChildren(...rows);
}

function span(kind: string, text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = kind;
  element.textContent = text;
  return element;
}

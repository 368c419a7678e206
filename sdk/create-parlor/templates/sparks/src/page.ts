// What stands around the field: who plays, the invite, and what is wrong.

import type { SparksRoom } from "./game.js";
import { colour } from "./place.js";

const element = (id: string) => document.getElementById(id)!;
const say = (text: string) => (element("status").textContent = text);

/** Shows a room, for as long as it is open. */
export function showRoom(room: SparksRoom): void {
  const invite = element("invite");
  const link = room.inviteUrl(location.href);
  invite.hidden = false;
  invite.dataset["link"] = link;
  invite.addEventListener("click", () => navigator.clipboard.writeText(link).then(() => say("The link is copied."), () => say(link)));
  room.on("changed", () => showScores(room));
  showScores(room);
  say("Fly with the arrow keys or a finger, and catch sparks.");
  room.on("connectionLost", () => say("The connection is lost: trying again…"));
  room.on("reconnected", () => say("Here again."));
  room.on("hostChanged", ({ host }) => say(`${room.players.get(host)?.name ?? "Another player"} is the host now.`));
  room.closed.then(({ message }) => say(message));
}

/** Shows why there is no room. */
export function showError(error: unknown): void {
  const { message, hint } = error as { message: string; hint?: string };
  say(hint ? `${message} (${hint})` : message);
}

let shown = "";

function showScores(room: SparksRoom): void {
  const lines = [...room.players.values()].map(({ id, name }) => ({ id, text: `${name} ${room.get(`flyer/${id}`)?.score ?? 0}` }));
  const now = JSON.stringify(lines);
  if (now === shown) return;
  shown = now;
  element("scores").replaceChildren(
    ...lines.map(({ id, text }) => {
      const line = document.createElement("li");
      line.style.setProperty("--colour", colour(id));
      line.textContent = text;
      return line;
    }),
  );
}

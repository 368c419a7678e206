/** What stands around the field: the players, the clock, and what just happened. */

import type { Player, Room } from "parlor";
import { colour } from "./draw.ts";
import { type Bird, ranking, type Scene } from "./game/scene.ts";
import { HZ, ticksUntil } from "./game/state.ts";
import { shownName } from "./member.ts";
import { byId, setText } from "../../shared/page.ts";

const EVERY_MS = 200;
const NOTICE_MS = 4_000;
const LATE_SECONDS = 10;

const LINKS: Record<string, string> = { webtransport: "browser", websocket: "browser", quic: "quic", memory: "with the server" };

export class Hud {
  readonly #ranking = byId("ranking");
  readonly #banner = byId("banner");
  readonly #notice = byId("notice");
  readonly #alone = byId("alone");
  readonly #clock = byId("clock");
  readonly #round = byId("round");
  #next = 0;
  #shown = "";
  #noticeUntil = 0;

  update(room: Room, scene: Scene, timeMs: number): void {
    if (timeMs < this.#next) return;
    this.#next = timeMs + EVERY_MS;
    this.#notice.classList.toggle("on", timeMs < this.#noticeUntil);
    this.#players(room, scene);
    const { phase, number, ends_at } = scene.round;
    const seconds = Math.ceil(ticksUntil(ends_at, scene.tick) / HZ);
    setText(this.#round, phase === "Waiting" ? "" : `round ${number}`);
    setText(this.#clock, phase === "Playing" ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : "");
    this.#clock.classList.toggle("late", phase === "Playing" && seconds <= LATE_SECONDS);
    const banner = bannerText(room, scene, seconds);
    this.#banner.hidden = banner === "";
    setText(this.#banner, banner);
    this.#alone.hidden = banner !== "" || room.players.size > 1;
    setText(byId("code"), room.code);
  }

  /** Says what just happened. */
  tell(text: string): void {
    setText(this.#notice, text);
    this.#noticeUntil = performance.now() + NOTICE_MS;
    this.#notice.classList.add("on");
  }

  clear(): void {
    this.#ranking.replaceChildren();
    for (const element of [this.#round, this.#clock, this.#banner, this.#notice]) setText(element, "");
    this.#banner.hidden = this.#alone.hidden = true;
    this.#shown = "";
  }

  #players(room: Room, scene: Scene): void {
    const rows = ranking(scene).flatMap(([id, bird]) => {
      const player = [...room.players.values()].find((it) => it.id === id);
      return player ? [row(player, bird, player.id === room.me)] : [];
    });
    // Elements are made anew only when a text differs, so that a pointer on them does not flicker.
    const shown = rows.map((it) => `${it.className} ${it.textContent}`).join("\n");
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#ranking.replaceChildren(...rows);
  }
}

function bannerText(room: Room, { round, players }: Scene, seconds: number): string {
  if (room.status === "reconnecting") return "The connection is lost. Trying again…";
  if (room.status === "migrating") return "The host is gone. Another player goes on…";
  if (round.phase !== "Over") return "";
  const names = round.winners.map((id) => {
    const isMe = id === (room.me as number);
    return isMe ? "you" : (players.get(id)?.badge.name ?? `player ${id}`);
  });
  const gems = round.best === 1 ? "1 gem" : `${round.best} gems`;
  const won = names.length === 1 && names[0] !== "you" ? "wins" : "win";
  const who = names.length === 0 ? "Nobody found a gem" : `${names.join(" and ")} ${won} with ${gems}!`;
  return `${who[0]!.toUpperCase()}${who.slice(1)} Next round in ${seconds}…`;
}

function row(player: Player, { badge, state }: Bird, isMe: boolean): HTMLElement {
  const line = document.createElement("li");
  line.className = `${isMe ? "me" : ""} ${player.connected ? "" : "away"}`.trim();
  const ping = player.rttMs === undefined ? "" : `${Math.round(player.rttMs)} ms`;
  const link = [player.isHost ? "host" : "", player.connected ? ping : "away", LINKS[player.link] ?? ""];
  const who = span("who", "");
  const name = `${player.isHost ? "★ " : ""}${shownName(player.name, player.id)}${isMe ? " (you)" : ""}`;
  who.append(span("name", name), span("link", link.filter((it) => it !== "").join(" · ")));
  line.append(glyph(badge.glyph, badge.slot), who, span("score", String(state.score)));
  return line;
}

/** A disc in a player's colour with its letter. */
function glyph(letter: string, slot: number): SVGElement {
  const make = (name: string, attributes: Record<string, string>) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const disc = make("svg", { viewBox: "0 0 20 20" });
  const text = make("text", { x: "10", y: "14.5", "text-anchor": "middle", "font-size": "12", "font-weight": "700", fill: "#10141f" });
  text.textContent = letter;
  disc.append(make("circle", { cx: "10", cy: "10", r: "10", fill: colour(slot) }), text);
  return disc;
}

function span(kind: string, text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = kind;
  element.textContent = text;
  return element;
}

/** A room that is open: its loop, what is drawn and told of it, and the bots of this page. */

import type { Closed, Entity } from "parlor";
import type { BadNetwork } from "parlor/impair";
import type { NetGraphElement } from "parlor/netgraph";
import { InviteDialog } from "../../shared/invite.ts";
import { byId, setText } from "../../shared/page.ts";
import { Best, board } from "./best.ts";
import { Bot } from "./bot.ts";
import type { Controls } from "./controls.ts";
import type { Painter, Piece } from "./draw.ts";
import { arena, type ArenaRoom, Game } from "./game.ts";
import { showScores } from "./scores.ts";
import { Life, type Order, Tank } from "./rules.ts";
import type { Switches } from "./switches.ts";

/** Most bots that one page adds. */
const BOTS_MOST = 5;
/** Bots that a page adds to a room that it opens. */
const BOTS_FIRST = 2;
const EVERY_MS = 250;
const NOTICE_MS = 4_000;

export interface Seat {
  room: ArenaRoom;
  painter: Painter;
  controls: Controls;
  switches: Switches;
  network: BadNetwork;
}

/** What the browser's console, and tests, have of the game: `arena`. */
interface Hands {
  room: ArenaRoom;
  network: BadNetwork;
  /** All tanks as they are drawn. */
  seen(): Piece[];
  figures(): Table["figures"];
  /** Drives in this player's stead, if it is set. */
  pilot: ((own: Tank | undefined) => Order) | undefined;
}

export class Table {
  readonly #seat: Seat;
  readonly #game: Game;
  readonly #hands: Hands;
  readonly #bots = new Set<ArenaRoom>();
  readonly #over = new AbortController();
  readonly #addBot = byId("add-bot", HTMLButtonElement);
  readonly #net = byId("net") as NetGraphElement;
  readonly #best: Best;
  #nextHud = 0;
  #noticeUntil = 0;
  /** Shots of this player, and how many of them met something on its screen. */
  #fired = 0;
  #seenHits = 0;

  constructor(seat: Seat) {
    const { room, painter, controls, switches, network } = seat;
    this.#seat = seat;
    this.#game = new Game(room);
    this.#best = new Best(byId("best"), () => board(room.players.get(room.me)?.name.trim() ?? ""));
    this.#hands = { room, network, seen: () => this.#pieces(true), figures: () => this.figures, pilot: undefined };
    const { signal } = this.#over;
    const invite = new InviteDialog({ title: "Arena", command: (code) => `arena --join ${code}` }, signal);
    byId("invite").addEventListener("click", () => void invite.show(room), { signal });
    byId("leave").addEventListener("click", () => void room.leave(), { signal });
    this.#addBot.disabled = false;
    this.#addBot.addEventListener("click", () => void this.#bot(), { signal });
    controls.keys(signal);
    controls.mouse(byId("canvas"), (x, y) => painter.toArena(x, y), signal);
    controls.driveStick(byId("drive"), signal);
    controls.aimStick(byId("aim"), signal);
    network.impairment = switches.impairment;
    switches.listen({
      network: () => {
        network.impairment = switches.impairment;
      },
      lag: (isOn) => {
        if (room.isHost) room.set("lagCompensation", isOn);
      },
    }, signal);
    this.#listen(signal);
    this.#net.room = room;
    const stop = room.run({
      tick: () => this.#tick(),
      draw: ({ timeMs }) => this.#draw(timeMs),
    });
    // For the curious and for tests: the room in the browser's console.
    Object.assign(globalThis, { arena: this.#hands });
    signal.addEventListener("abort", () => {
      stop();
      invite.close();
      this.#net.room = undefined;
      byId("ranking").replaceChildren();
      this.#best.close();
    });
    if (room.isHost && room.players.size === 1) void this.#firstBots();
  }

  /** Waits until the room is closed for this player. The page's bots leave with it. */
  async end(): Promise<Closed> {
    const closed = await this.#seat.room.closed;
    this.#over.abort();
    await Promise.all([...this.#bots].map((bot) => bot.leave()));
    return closed;
  }

  /** How this player shoots: what it saw, and what the host counted. */
  get figures(): { fired: number; seenHits: number; counted: number } {
    const own = this.#game.own;
    const counted = own ? (this.#seat.room.world.get(own[0], Life)?.hits ?? 0) : 0;
    return { fired: this.#fired, seenHits: this.#seenHits, counted };
  }

  #tick(): void {
    const { controls, switches, room } = this.#seat;
    this.#game.isPredicting = switches.prediction;
    this.#game.step(() => {
      const own = this.#game.own;
      const seen = own && (room.world.shown(own[0], Tank) ?? own[1]);
      return this.#hands.pilot?.(seen) ?? controls.order(seen);
    });
    for (const { met } of this.#game.shots.splice(0)) {
      this.#fired += 1;
      if (met !== undefined) this.#seenHits += 1;
    }
  }

  #draw(timeMs: number): void {
    const { room, painter, switches } = this.#seat;
    const pieces = this.#pieces(switches.interpolation);
    painter.draw(pieces, timeMs);
    if (timeMs < this.#nextHud) return;
    this.#nextHud = timeMs + EVERY_MS;
    byId("notice").classList.toggle("on", timeMs < this.#noticeUntil);
    setText(byId("code"), room.code);
    switches.showLag(this.#game.compensatesLag, room.isHost);
    showScores(byId("ranking"), room, pieces);
    const { fired, seenHits, counted } = this.figures;
    this.#best.note(counted, timeMs);
    setText(byId("hits"), `${fired} shots · ${seenHits} hits seen · ${counted} counted`);
    const banner = { reconnecting: "The connection is lost. Trying again…", migrating: "The host is gone. Another player goes on…" };
    const text = banner[room.status as keyof typeof banner] ?? "";
    byId("banner").hidden = text === "";
    setText(byId("banner"), text);
  }

  #pieces(isSmooth: boolean): Piece[] {
    const { world, me } = this.#seat.room;
    const pieces: Piece[] = [];
    for (const [entity, tank] of world.each(Tank, { shown: isSmooth })) {
      const owner = world.owner(entity);
      pieces.push({ entity, tank, life: world.get(entity, Life), owner, name: this.#name(owner), isMe: owner === me });
    }
    return pieces;
  }

  #name(owner: number | undefined): string {
    if (owner === undefined) return "";
    const name = this.#seat.room.players.get(owner)?.name.trim() ?? "";
    return name === "" ? `player ${owner}` : name;
  }

  /** Tells the player what happens to the others. */
  #listen(signal: AbortSignal): void {
    const { room } = this.#seat;
    room.on("playerJoined", ({ id }) => id !== room.me && this.#tell(`${this.#name(id)} is here`), { signal });
    room.on("playerLeft", ({ id, name }) => this.#tell(`${name.trim() || `player ${id}`} left`), { signal });
    room.on("playerLost", ({ id }) => this.#tell(`${this.#name(id)} lost the connection`), { signal });
    room.on("reconnected", () => this.#tell("connected again"), { signal });
    room.on("hostChanged", ({ host }) => this.#tell(host === room.me ? "you are the host now" : `${this.#name(host)} is the host now`), { signal });
  }

  #tell(text: string): void {
    setText(byId("notice"), text);
    this.#noticeUntil = performance.now() + NOTICE_MS;
    byId("notice").classList.add("on");
  }

  async #firstBots(): Promise<void> {
    for (let bot = 0; bot < BOTS_FIRST; bot++) await this.#bot();
  }

  /** A bot is one more member, with a connection and a core of its own. */
  async #bot(): Promise<void> {
    if (this.#bots.size >= BOTS_MOST || this.#over.signal.aborted) return;
    this.#addBot.disabled = true;
    try {
      const room = await arena.join(this.#seat.room.inviteUrl(), {
        name: `bot ${this.#bots.size + 1}`, remember: "never", signal: this.#over.signal,
      });
      this.#bots.add(room);
      const game = new Game(room);
      const bot = new Bot();
      room.run({
        tick: () => {
          game.step(() => {
            const own = game.own;
            const others = [...room.world.each(Tank, { shown: true })].filter(([entity]: [Entity, Tank]) => entity !== own?.[0]);
            return bot.order(own?.[1], others.map(([, tank]) => tank.position));
          });
          game.shots.length = 0;
        },
      });
      void room.closed.then(() => this.#bots.delete(room));
    } catch (error) {
      if (!this.#over.signal.aborted) this.#tell(error instanceof Error ? error.message : String(error));
    }
    this.#addBot.disabled = this.#bots.size >= BOTS_MOST || this.#over.signal.aborted;
  }
}

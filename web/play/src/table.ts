/** A room that is open: its loop, what is drawn and told of it, and the bots of this page. */

import { type Closed, join, type Room } from "parlor";
import type { NetGraphElement } from "parlor/netgraph";
import type { Controls } from "./controls.ts";
import type { Painter } from "./draw.ts";
import { Bot } from "./game/bot.ts";
import type { Hud } from "./hud.ts";
import { InviteDialog } from "../../shared/invite.ts";
import { APP, Member, shownName } from "./member.ts";
import { byId } from "../../shared/page.ts";

/** Most bots that one page adds. */
const BOTS_MOST = 5;

export class Table {
  readonly #room: Room;
  readonly #hud: Hud;
  readonly #bots = new Set<Room>();
  readonly #over = new AbortController();
  readonly #addBot = byId("add-bot", HTMLButtonElement);

  constructor(room: Room, { painter, controls, hud }: { painter: Painter; controls: Controls; hud: Hud }) {
    this.#room = room;
    this.#hud = hud;
    const { signal } = this.#over;
    const invite = new InviteDialog({ title: "Magpies", command: (invite) => `parlor play --join ${invite}` }, signal);
    for (const id of ["invite", "alone-invite"]) {
      byId(id).addEventListener("click", () => void invite.show(room), { signal });
    }
    this.#addBot.disabled = false;
    for (const id of ["add-bot", "alone-bot"]) byId(id).addEventListener("click", () => void this.#bot(), { signal });
    byId("leave").addEventListener("click", () => void room.leave(), { signal });
    controls.listen(signal);
    this.#touch(controls, signal);
    this.#listen(signal);
    const member = new Member(room, () => controls.nextInput());
    const net = byId("net") as NetGraphElement;
    net.room = room;
    const stop = room.run({
      tick: () => member.tick(),
      draw: ({ timeMs }) => {
        const scene = member.shown();
        painter.draw({ scene, me: room.me, host: room.host, timeMs });
        hud.update(room, scene, timeMs);
      },
    });
    // For the curious and for tests: the room in the browser's console.
    Object.assign(globalThis, { magpies: { room } });
    signal.addEventListener("abort", () => {
      stop();
      invite.close();
      hud.clear();
      net.room = undefined;
    });
  }

  /** Waits until the room is closed for this player. The page's bots leave with it. */
  async end(): Promise<Closed> {
    const closed = await this.#room.closed;
    this.#over.abort();
    await Promise.all([...this.#bots].map((bot) => bot.leave()));
    return closed;
  }

  #touch(controls: Controls, signal: AbortSignal): void {
    const [stick, knob] = [byId("stick"), byId("knob")];
    const tilts = { Stay: [0, 0], Up: [0, -1], Down: [0, 1], Left: [-1, 0], Right: [1, 0] } as const;
    controls.stick(stick, signal, (at) => {
      knob.hidden = !at;
      if (!at) return;
      const { left, top } = stick.getBoundingClientRect();
      const [dx, dy] = tilts[at.dir];
      knob.style.left = `${at.x - left}px`;
      knob.style.top = `${at.y - top}px`;
      knob.style.setProperty("--dx", `${24 * dx}px`);
      knob.style.setProperty("--dy", `${24 * dy}px`);
    });
    controls.stick(byId("canvas"), signal, () => {});
    controls.button(byId("dash"), signal);
  }

  /** Tells the player what happens to the others. */
  #listen(signal: AbortSignal): void {
    const room = this.#room;
    const nameOf = (id: number) => {
      const player = [...room.players.values()].find((it) => (it.id as number) === id);
      return shownName(player?.name ?? "", id);
    };
    const tell = (text: string) => this.#hud.tell(text);
    room.on("playerJoined", ({ id, name }) => id !== room.me && tell(`${shownName(name, id)} is here`), { signal });
    room.on("playerLeft", ({ id, name }) => tell(`${shownName(name, id)} left`), { signal });
    room.on("playerLost", ({ id }) => tell(`${nameOf(id)} lost the connection`), { signal });
    room.on("playerBack", ({ id }) => tell(`${nameOf(id)} is back`), { signal });
    room.on("reconnected", () => tell("connected again"), { signal });
    room.on("hostChanged", ({ host }) => {
      tell(host === room.me ? "you are the host now" : `${nameOf(host)} is the host now`);
    }, { signal });
  }

  /** A bot is one more member, with a connection and a core of its own. */
  async #bot(): Promise<void> {
    if (this.#bots.size >= BOTS_MOST) return;
    this.#addBot.disabled = true;
    const number = this.#bots.size + 1;
    try {
      const room = await join(APP, this.#room.inviteUrl(), {
        name: `bot ${number}`, lead: true, remember: "never", signal: this.#over.signal,
      });
      this.#bots.add(room);
      const bot = new Bot(BigInt(number + (this.#room.me as number) * BOTS_MOST), 0.3 + 0.1 * number);
      const member = new Member(room, (scene, me) => bot.think(scene(), me));
      room.run({ tick: () => member.tick() });
      void room.closed.then(() => this.#bots.delete(room));
    } catch (error) {
      this.#hud.tell(error instanceof Error ? error.message : String(error));
    }
    this.#addBot.disabled = this.#bots.size >= BOTS_MOST || this.#over.signal.aborted;
  }
}

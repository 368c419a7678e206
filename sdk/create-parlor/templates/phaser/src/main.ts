import { AUTO, Game, type GameObjects, Scale, Scene } from "phaser";
import { controls } from "./controls.js";
import { HEIGHT, open, type SparksRoom, step, WIDTH } from "./game.js";
import { showError, showRoom } from "./page.js";
import { colour } from "./place.js";

/** Phaser's own loop drives the room: `update` lets events happen, `tick` says that a step is due. */
class Field extends Scene {
  private readonly sprites = new Map<string, GameObjects.Container>();

  constructor(
    private readonly room: SparksRoom,
    private readonly move: ReturnType<typeof controls>["move"],
  ) {
    super("field");
  }

  override update(timeMs: number): void {
    const { room } = this;
    room.update();
    while (room.tick()) {
      room.sendInput(this.move(room.get(`flyer/${room.me}`)));
      if (room.isHost) step(room);
    }
    const seen = new Set<string>();
    for (const [key, { x, y }] of room.entries("spark/", { interpolated: true })) {
      seen.add(key);
      this.spriteOf(key, () => this.spark()).setPosition(x, y).setScale(1 + 0.15 * Math.sin(timeMs / 200 + x));
    }
    for (const [key, { x, y }] of room.entries("flyer/", { interpolated: true })) {
      seen.add(key);
      this.spriteOf(key, () => this.flyer(Number(key.slice("flyer/".length)))).setPosition(x, y);
    }
    for (const [key, sprite] of this.sprites) {
      if (seen.has(key)) continue;
      sprite.destroy();
      this.sprites.delete(key);
    }
  }

  private spriteOf(key: string, make: () => GameObjects.Container): GameObjects.Container {
    const sprite = this.sprites.get(key) ?? make();
    this.sprites.set(key, sprite);
    return sprite;
  }

  private spark(): GameObjects.Container {
    return this.add.container(0, 0, [this.add.circle(0, 0, 11, 0xffd166, 0.25), this.add.circle(0, 0, 5, 0xffd166)]);
  }

  private flyer(player: number): GameObjects.Container {
    const name = this.room.players.get(player)?.name ?? "";
    return this.add.container(0, 0, [
      this.add.circle(0, 0, 18, number(colour(player)), 0.25),
      this.add.circle(0, 0, 13, number(colour(player))),
      this.add.circle(0, 0, 6, number(colour(player, 88))),
      this.add.text(0, -28, name, { fontFamily: "system-ui", fontSize: "12px", color: "#e8e9f3", resolution: 2 }).setOrigin(0.5),
    ]);
  }
}

/** A colour as the browser computes it, for Phaser. */
function number(css: string): number {
  const pen = document.createElement("canvas").getContext("2d")!;
  pen.fillStyle = css;
  return Number.parseInt(String(pen.fillStyle).slice(1), 16);
}

try {
  const room = await open();
  const field = document.getElementById("field")!;
  const { move } = controls(field);
  showRoom(room);
  new Game({
    type: AUTO,
    parent: field,
    backgroundColor: "#1b1e2e",
    scale: { mode: Scale.FIT, width: WIDTH, height: HEIGHT },
    banner: false,
    audio: { noAudio: true },
    scene: new Field(room, move),
  });
} catch (error) {
  showError(error);
}

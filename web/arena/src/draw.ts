/** Draws the arena on a canvas. */

import type { Entity, Vec2 } from "parlor";
import { HEALTH, type Life, PILLARS, RANGE, reaches, SIDES, type Tank, TANK_RADIUS } from "./rules.ts";

/** A tank as it is drawn. */
export interface Piece {
  entity: Entity;
  tank: Tank;
  life: Life | undefined;
  /** The driver; undefined for a drone. */
  owner: number | undefined;
  name: string;
  isMe: boolean;
}

const COLOURS = ["#ff5c57", "#4fa3ff", "#ffd54f", "#58e08c", "#b266ff", "#ff9833", "#f48fbe", "#3cd6d6", "#c8e63c", "#ff40aa"] as const;
const DRONE = "#7d88a8";
/** Metres around the arena: a tank at its edge is seen whole. */
const MARGIN = 1;
const WIDE = SIDES.x + 2 * MARGIN;
const HIGH = SIDES.y + 2 * MARGIN;
/** How long a shot and a hit are seen. */
const SHOT_MS = 160;
const HIT_MS = 260;

export function colour(player: number | undefined): string {
  return player === undefined ? DRONE : COLOURS[player % COLOURS.length]!;
}

interface Flash {
  from: Vec2;
  to: Vec2;
  colour: string;
  since: number;
}

export class Painter {
  readonly #canvas: HTMLCanvasElement;
  readonly #pen: CanvasRenderingContext2D;
  /** Device pixels per metre. */
  #scale = 1;
  /** What was seen of each tank in the picture before. */
  #before = new Map<Entity, { shots: number; health: number; hurtAt: number }>();
  #flashes: Flash[] = [];

  constructor(canvas: HTMLCanvasElement) {
    const pen = canvas.getContext("2d", { alpha: false });
    if (!pen) throw new Error("this browser has no canvas to draw on");
    this.#canvas = canvas;
    this.#pen = pen;
    const fit = () => {
      const { width } = canvas.getBoundingClientRect();
      this.#scale = Math.max(1, (width * Math.min(devicePixelRatio, 2)) / WIDE);
      canvas.width = Math.round(this.#scale * WIDE);
      canvas.height = Math.round(this.#scale * HIGH);
    };
    new ResizeObserver(fit).observe(canvas);
    fit();
  }

  /** The place in the arena under a place on the page. */
  toArena(x: number, y: number): Vec2 {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    return { x: ((x - left) / width) * WIDE - MARGIN, y: ((y - top) / height) * HIGH - MARGIN };
  }

  draw(pieces: readonly Piece[], timeMs: number): void {
    const pen = this.#pen;
    pen.setTransform(this.#scale, 0, 0, this.#scale, this.#scale * MARGIN, this.#scale * MARGIN);
    this.#watch(pieces, timeMs);
    this.#ground();
    for (const flash of this.#flashes) this.#shot(flash, timeMs);
    // One's own tank is on top.
    for (const piece of [...pieces].sort((a, b) => Number(a.isMe) - Number(b.isMe))) this.#tank(piece, timeMs);
  }

  /** Sees who fired and who was hit since the last picture: a tank counts its shots, and its health falls. */
  #watch(pieces: readonly Piece[], timeMs: number): void {
    const seen = new Map<Entity, { shots: number; health: number; hurtAt: number }>();
    for (const { entity, tank, life, owner } of pieces) {
      const before = this.#before.get(entity);
      const health = life?.health ?? 0;
      const isHurt = before !== undefined && health !== before.health && owner !== undefined;
      seen.set(entity, { shots: tank.shots, health, hurtAt: isHurt ? timeMs : (before?.hurtAt ?? Number.NEGATIVE_INFINITY) });
      if (before !== undefined && tank.shots !== before.shots && owner !== undefined) {
        const targets = pieces.filter((it) => it.entity !== entity).map((it) => it.tank.position);
        this.#flashes.push({ ...flight(tank, targets), colour: colour(owner), since: timeMs });
      }
    }
    this.#before = seen;
    this.#flashes = this.#flashes.filter(({ since }) => timeMs - since < SHOT_MS);
  }

  #ground(): void {
    const pen = this.#pen;
    pen.fillStyle = "#111a29";
    pen.fillRect(-MARGIN, -MARGIN, WIDE, HIGH);
    pen.fillStyle = "#16223a";
    for (let x = 0; x < SIDES.x; x += 8) {
      for (let y = 0; y < SIDES.y; y += 8) if ((x + y) % 16 === 0) pen.fillRect(x, y, 8, 8);
    }
    for (const { x, y, radius } of PILLARS) {
      pen.fillStyle = "#0a0f19";
      disc(pen, x + 0.5, y + 0.7, radius);
      pen.fillStyle = "#3b4766";
      disc(pen, x, y, radius);
      pen.fillStyle = "#4d5b80";
      disc(pen, x - radius * 0.12, y - radius * 0.16, radius * 0.78);
    }
  }

  #shot({ from, to, colour: tint, since }: Flash, timeMs: number): void {
    const pen = this.#pen;
    pen.globalAlpha = 1 - (timeMs - since) / SHOT_MS;
    pen.strokeStyle = tint;
    pen.lineWidth = 0.45;
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
    pen.fillStyle = "#fff4c2";
    disc(pen, to.x, to.y, 0.7);
    pen.globalAlpha = 1;
  }

  #tank({ entity, tank, life, owner, name, isMe }: Piece, timeMs: number): void {
    const pen = this.#pen;
    const { x, y } = tank.position;
    const tint = colour(owner);
    const hurt = timeMs - (this.#before.get(entity)?.hurtAt ?? Number.NEGATIVE_INFINITY);
    pen.save();
    pen.translate(x, y);
    pen.fillStyle = "#00000060";
    disc(pen, 0.3, 0.4, TANK_RADIUS);
    if (owner === undefined) {
      pen.strokeStyle = tint;
      pen.lineWidth = 0.35;
      ring(pen, TANK_RADIUS - 0.2, 0, 1);
      pen.fillStyle = `${tint}80`;
      disc(pen, 0, 0, 0.6);
      pen.restore();
      return;
    }
    pen.fillStyle = hurt < HIT_MS ? "#ffffff" : tint;
    disc(pen, 0, 0, TANK_RADIUS);
    pen.save();
    pen.rotate(tank.aim);
    pen.fillStyle = "#0b0f18";
    pen.fillRect(0, -0.38, 2.3, 0.76);
    disc(pen, 0, 0, 0.8);
    pen.fillStyle = tint;
    disc(pen, 0, 0, 0.5);
    pen.restore();
    pen.lineWidth = 0.3;
    pen.strokeStyle = "#00000080";
    ring(pen, TANK_RADIUS + 0.5, 0, 1);
    pen.strokeStyle = isMe ? "#ffffff" : tint;
    ring(pen, TANK_RADIUS + 0.5, 0, (life?.health ?? 0) / HEALTH);
    pen.restore();
    label(pen, name, x, y > SIDES.y - 5 ? y - 3.1 : y + 3.3, isMe ? "#ffffff" : tint);
  }
}

/** From a tank's barrel to what is in its way. */
function flight(tank: Tank, targets: readonly Vec2[]): { from: Vec2; to: Vec2 } {
  const shot = { from: tank.position, aim: tank.aim, number: 0 };
  const obstacles = [...PILLARS.map((it) => reaches(shot, it, it.radius)), ...targets.map((it) => reaches(shot, it, TANK_RADIUS))];
  const away = Math.min(RANGE, ...obstacles.map((it) => it ?? RANGE));
  const at = (distance: number) => ({
    x: tank.position.x + Math.cos(tank.aim) * distance,
    y: tank.position.y + Math.sin(tank.aim) * distance,
  });
  return { from: at(TANK_RADIUS), to: at(away) };
}

function disc(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

function ring(pen: CanvasRenderingContext2D, radius: number, from: number, to: number): void {
  if (to <= from) return;
  pen.beginPath();
  pen.arc(0, 0, radius, 2 * Math.PI * (from - 0.25), 2 * Math.PI * (to - 0.25));
  pen.stroke();
}

function label(pen: CanvasRenderingContext2D, text: string, x: number, y: number, fill: string): void {
  const shown = text.length > 14 ? `${text.slice(0, 13)}…` : text;
  pen.font = "600 1.7px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const half = pen.measureText(shown).width / 2;
  const at = Math.min(Math.max(x, half + 0.3), SIDES.x - half - 0.3);
  pen.strokeStyle = "#0b141ccc";
  pen.lineWidth = 0.5;
  pen.lineJoin = "round";
  pen.strokeText(shown, at, y);
  pen.fillStyle = fill;
  pen.fillText(shown, at, y);
}

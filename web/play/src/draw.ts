/** Draws the field on a canvas. */

import { FIELD_HEIGHT, FIELD_WIDTH, type GemState, HZ, ticksUntil, vector } from "./game/state.ts";
import { type Bird, ranking, type Scene } from "./game/scene.ts";

/** The colours of players by slot: those of the terminal's game. */
const COLOURS = [
  [255, 92, 87], [79, 163, 255], [255, 213, 79], [88, 224, 140],
  [178, 102, 255], [255, 152, 51], [244, 143, 190], [60, 214, 214],
  [200, 230, 60], [255, 64, 170], [150, 165, 190], [196, 138, 90],
  [0, 150, 136], [104, 104, 255], [235, 235, 220], [140, 150, 50],
] as const;

/** Ticks from one dash to the next. */
const DASH_EVERY = (HZ * 8) / 5;
const TRAIL_MOST = 9;
/** Units around the field: a magpie at its edge is seen whole. */
const MARGIN = 1.2;
const WIDE = FIELD_WIDTH + 2 * MARGIN;
const HIGH = FIELD_HEIGHT + 2 * MARGIN;

export function colour(slot: number): string {
  const [r, g, b] = COLOURS[slot % COLOURS.length]!;
  return `rgb(${r} ${g} ${b})`;
}

/** What is remembered of a magpie from one picture to the next. */
type Trace = { x: number; y: number; angle: number; trail: { x: number; y: number }[] };

export type View = { scene: Scene; me?: number | undefined; host?: number | undefined; timeMs: number };

export class Painter {
  readonly #pen: CanvasRenderingContext2D;
  readonly #traces = new Map<number, Trace>();
  /** Device pixels per unit of the field. */
  #scale = 1;

  constructor(canvas: HTMLCanvasElement) {
    const pen = canvas.getContext("2d", { alpha: false });
    if (!pen) throw new Error("this browser has no canvas to draw on");
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

  draw({ scene, me, host, timeMs }: View): void {
    const pen = this.#pen;
    pen.setTransform(this.#scale, 0, 0, this.#scale, this.#scale * MARGIN, this.#scale * MARGIN);
    this.#ground();
    for (const [number, gem] of scene.gems) this.#gem(gem, timeMs + number * 331);
    const best = ranking(scene)[0];
    const leader = best && best[1].state.score > 0 ? best[0] : undefined;
    for (const id of this.#traces.keys()) if (!scene.players.has(id)) this.#traces.delete(id);
    // One's own magpie is on top.
    const order = [...scene.players].sort(([a], [b]) => Number(a === me) - Number(b === me));
    for (const [id, bird] of order) {
      this.#bird(id, bird, { scene, timeMs, isMe: id === me, isHost: id === host, leads: id === leader });
    }
  }

  #ground(): void {
    const pen = this.#pen;
    const ground = pen.createLinearGradient(0, 0, 0, FIELD_HEIGHT);
    ground.addColorStop(0, "#16263a");
    ground.addColorStop(1, "#12202b");
    pen.fillStyle = ground;
    pen.fillRect(-MARGIN, -MARGIN, WIDE, HIGH);
    pen.fillStyle = "#ffffff12";
    for (let x = 5; x < FIELD_WIDTH; x += 5) {
      for (let y = 5; y < FIELD_HEIGHT; y += 5) circle(pen, x, y, 0.12);
    }
  }

  #gem({ x, y, worth }: GemState, timeMs: number): void {
    const pen = this.#pen;
    const isRich = worth >= 5;
    const size = (isRich ? 1 : 0.68) * (1 + 0.08 * Math.sin(timeMs / 260));
    pen.save();
    pen.translate(x, y);
    pen.fillStyle = isRich ? "#ffc84a30" : "#6fe3ff1c";
    circle(pen, 0, 0, size * 1.6);
    pen.fillStyle = isRich ? "#ffc84a" : "#6fe3ff";
    polygon(pen, [[0, -size], [size * 0.8, 0], [0, size], [-size * 0.8, 0]]);
    pen.fillStyle = "#ffffffb0";
    polygon(pen, [[0, -size], [size * 0.8, 0], [0, 0], [-size * 0.3, 0]]);
    pen.restore();
    if (worth > 1) label(pen, String(worth), x, y + size + 1, 0.95, isRich ? "#ffdf94" : "#a9efff");
  }

  #bird(id: number, { state, badge }: Bird, how: { scene: Scene; timeMs: number; isMe: boolean; isHost: boolean; leads: boolean }): void {
    const pen = this.#pen;
    const trace = this.#follow(id, state);
    const tint = colour(badge.slot);
    if (state.motion === "Dashing") {
      pen.fillStyle = tint;
      trace.trail.forEach(({ x, y }, at) => {
        pen.globalAlpha = (0.4 * (at + 1)) / trace.trail.length;
        circle(pen, x, y, 0.4 + (0.6 * at) / TRAIL_MOST);
      });
      pen.globalAlpha = 1;
    }
    pen.save();
    pen.translate(state.x, state.y);
    if (how.isMe) {
      pen.strokeStyle = "#ffffff50";
      pen.lineWidth = 0.16;
      arc(pen, 2.1, 0, 1);
      // How far the next dash is.
      const ready = 1 - Math.min(1, ticksUntil(state.dash_ready_at, how.scene.tick) / DASH_EVERY);
      pen.strokeStyle = ready === 1 ? "#ffffff" : tint;
      pen.lineWidth = 0.26;
      arc(pen, 2.1, 0, ready);
    }
    if (state.safe && Math.floor(how.timeMs / 110) % 2 === 0) pen.globalAlpha = 0.45;
    const dizzy = state.motion === "Dizzy";
    pen.rotate(trace.angle + (dizzy ? how.timeMs / 90 : 0));
    const pace = state.motion === "Dashing" ? 45 : 95;
    const flap = state.heading === "Stay" ? 0.5 : 0.5 + 0.5 * Math.sin(how.timeMs / pace + id * 2);
    magpie(pen, tint, flap);
    pen.restore();
    if (dizzy) this.#stars(state.x, state.y, how.timeMs);
    if (how.leads) crown(pen, state.x, state.y - 2.5);
    const name = badge.name.length > 16 ? `${badge.name.slice(0, 15)}…` : badge.name;
    const below = state.y > FIELD_HEIGHT - 5 ? state.y - (how.leads ? 4.2 : 2.7) : state.y + 3;
    label(pen, how.isHost ? `★ ${name}` : name, state.x, below, 1.15, how.isMe ? "#ffffff" : tint);
  }

  /** Follows a magpie: it turns to where it goes, and leaves a trail. */
  #follow(id: number, { x, y, heading }: Bird["state"]): Trace {
    const [vx, vy] = vector(heading);
    const known = this.#traces.get(id);
    const trace = known ?? { x, y, angle: Math.atan2(vy, vx), trail: [] };
    this.#traces.set(id, trace);
    const [dx, dy] = [x - trace.x, y - trace.y];
    const moved = Math.hypot(dx, dy);
    if (moved > 0.01 && moved < 4) {
      const turn = Math.atan2(Math.sin(Math.atan2(dy, dx) - trace.angle), Math.cos(Math.atan2(dy, dx) - trace.angle));
      trace.angle += turn * 0.3;
    }
    if (moved >= 4) trace.trail = [];
    trace.x = x;
    trace.y = y;
    trace.trail.push({ x, y });
    if (trace.trail.length > TRAIL_MOST) trace.trail.shift();
    return trace;
  }

  #stars(x: number, y: number, timeMs: number): void {
    const pen = this.#pen;
    pen.fillStyle = "#ffe27a";
    for (let star = 0; star < 3; star++) {
      const angle = timeMs / 220 + (star * 2 * Math.PI) / 3;
      circle(pen, x + 1.7 * Math.cos(angle), y - 1.6 + 0.55 * Math.sin(angle), 0.26);
    }
  }
}

/** A bird that looks to the right, seen from above: black and white, with its player's colour on the wings. */
function magpie(pen: CanvasRenderingContext2D, tint: string, flap: number): void {
  const span = 0.75 + 1.15 * flap;
  pen.fillStyle = "#0b0f14";
  polygon(pen, [[-0.6, 0.25], [-2.5, 0.42], [-2.5, -0.42], [-0.6, -0.25]]);
  for (const side of [-1, 1]) {
    pen.fillStyle = tint;
    polygon(pen, [[0.7, 0.3 * side], [0.1, span * 1.15 * side], [-1.15, span * side], [-0.75, 0.25 * side]]);
    pen.fillStyle = "#ffffffd0";
    polygon(pen, [[0.45, 0.35 * side], [0.1, span * 0.62 * side], [-0.4, span * 0.55 * side], [-0.3, 0.3 * side]]);
  }
  pen.fillStyle = "#0b0f14";
  ellipse(pen, 0, 0, 1.2, 0.62);
  circle(pen, 1.05, 0, 0.55);
  pen.fillStyle = "#f4f7fa";
  ellipse(pen, -0.15, 0, 0.62, 0.4);
  pen.fillStyle = "#f2a33c";
  polygon(pen, [[1.5, 0.2], [2.15, 0], [1.5, -0.2]]);
  pen.fillStyle = "#ffffff";
  circle(pen, 1.2, 0.26, 0.13);
  circle(pen, 1.2, -0.26, 0.13);
}

function crown(pen: CanvasRenderingContext2D, x: number, y: number): void {
  pen.fillStyle = "#ffd24a";
  polygon(pen, [[x - 0.9, y + 0.5], [x - 1, y - 0.5], [x - 0.4, y], [x, y - 0.75], [x + 0.4, y], [x + 1, y - 0.5], [x + 0.9, y + 0.5]]);
}

function label(pen: CanvasRenderingContext2D, text: string, x: number, y: number, size: number, fill: string): void {
  pen.font = `600 ${size}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  // A name at the edge stays readable.
  const half = pen.measureText(text).width / 2;
  const at = Math.min(Math.max(x, half + 0.3), FIELD_WIDTH - half - 0.3);
  pen.strokeStyle = "#0b141ccc";
  pen.lineWidth = 0.35;
  pen.lineJoin = "round";
  pen.strokeText(text, at, y);
  pen.fillStyle = fill;
  pen.fillText(text, at, y);
}

function circle(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  ellipse(pen, x, y, radius, radius);
}

function ellipse(pen: CanvasRenderingContext2D, x: number, y: number, wide: number, high: number): void {
  pen.beginPath();
  pen.ellipse(x, y, wide, high, 0, 0, 2 * Math.PI);
  pen.fill();
}

function arc(pen: CanvasRenderingContext2D, radius: number, from: number, to: number): void {
  pen.beginPath();
  pen.arc(0, 0, radius, 2 * Math.PI * (from - 0.25), 2 * Math.PI * (to - 0.25));
  pen.stroke();
}

function polygon(pen: CanvasRenderingContext2D, points: readonly (readonly [number, number])[]): void {
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.closePath();
  pen.fill();
}

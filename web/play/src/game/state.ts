/** The values of the room's keyed state, as the terminal's game has them. */

/** Steps per second. All durations of the game are counted in steps. */
export const HZ = 30;
/** Size of the field in units; a magpie's middle stays 1.3 away from its edge. */
export const FIELD_WIDTH = 60;
export const FIELD_HEIGHT = 40;

export type Dir = "Stay" | "Up" | "Down" | "Left" | "Right";
export type Motion = "Gliding" | "Dashing" | "Dizzy";
export type Phase = "Waiting" | "Playing" | "Over";

/** What a player wants in a step. */
export type Input = { dir: Dir; dash: boolean };

/** Under `p/ID`. What grows or shrinks with time is stored as the tick at which it ends. */
export type PlayerState = {
  x: number;
  y: number;
  heading: Dir;
  motion: Motion;
  /** It was just knocked and cannot be knocked again yet. */
  safe: boolean;
  score: number;
  dash_ready_at: number;
};

/** Under `n/ID`: what of a player never changes. */
export type Badge = { name: string; slot: number; glyph: string };

/** Under `g/N`. */
export type GemState = { x: number; y: number; worth: number };

/** Under `round`. */
export type RoundState = { number: number; phase: Phase; ends_at: number; winners: number[]; best: number };

export type Value = PlayerState | Badge | GemState | RoundState;

export const NO_ROUND: RoundState = { number: 0, phase: "Waiting", ends_at: 0, winners: [], best: 0 };

const VECTORS: Record<Dir, readonly [number, number]> = {
  Stay: [0, 0],
  Up: [0, -1],
  Down: [0, 1],
  Left: [-1, 0],
  Right: [1, 0],
};

/** The step of length 1 in a direction; `y` grows downwards. */
export const vector = (dir: Dir): readonly [number, number] => VECTORS[dir];

export const isDir = (it: unknown): it is Dir => typeof it === "string" && Object.hasOwn(VECTORS, it);

/** Ticks from `now` until `tick`, 0 once it has come. Ticks wrap around. */
export const ticksUntil = (tick: number, now: number): number => Math.max((tick - now) | 0, 0);

/** The tick that is `ticks` after another. */
export const after = (tick: number, ticks: number): number => (tick + ticks) >>> 0;

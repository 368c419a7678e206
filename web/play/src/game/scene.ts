/** The game as a member sees it: the published values, read back for drawing, for bots and for the next host. */

import {
  type Badge, FIELD_HEIGHT, FIELD_WIDTH, type GemState, isDir, type Motion, NO_ROUND, type Phase, type PlayerState,
  type RoundState,
} from "./state.ts";

/** A magpie together with its badge. */
export type Bird = { state: PlayerState; badge: Badge };

export type Scene = {
  /** The room's tick, as well as the reader knows it. */
  tick: number;
  players: ReadonlyMap<number, Bird>;
  gems: ReadonlyMap<number, GemState>;
  round: RoundState;
};

/**
 * Reads everything from keys and values. They come from another machine: what is not the game's, or no number where one
 * must be, counts as missing.
 */
export function readScene(entries: Iterable<readonly [string, unknown]>, tick: number): Scene {
  const states = new Map<number, PlayerState>();
  const badges = new Map<number, Badge>();
  const gems = new Map<number, GemState>();
  let round: RoundState = NO_ROUND;
  for (const [key, value] of entries) {
    const [kind, number] = split(key);
    if (kind === "round") round = readRound(value) ?? NO_ROUND;
    else if (kind === "p") keep(states, number, readPlayer(value));
    else if (kind === "n") keep(badges, number, readBadge(value));
    else if (kind === "g" && number <= 0xffff) keep(gems, number, readGem(value));
  }
  const players = new Map([...states].map(([id, state]) => [id, { state, badge: badges.get(id) ?? nameless(id) }]));
  return { tick, players, gems, round };
}

/** The players, richest first; among equals the one who came first. */
export function ranking({ players }: Scene): [number, Bird][] {
  return [...players].sort(([a, one], [b, other]) => other.state.score - one.state.score || a - b);
}

function split(key: string): [kind: string, number: number] {
  if (key === "round") return [key, 0];
  const match = /^([png])\/(\d{1,10})$/.exec(key);
  return match && isU32(Number(match[2])) ? [match[1]!, Number(match[2])] : ["", 0];
}

function keep<V>(map: Map<number, V>, number: number, value: V | undefined): void {
  if (value) map.set(number, value);
}

/** Stands in until the badge has come: the two keys may arrive apart. */
function nameless(id: number): Badge {
  const slot = id % 16;
  return { name: `player ${id}`, slot, glyph: String.fromCharCode(97 + slot) };
}

type Fields = Record<string, unknown>;

const isFields = (it: unknown): it is Fields => typeof it === "object" && it !== null && !Array.isArray(it);
const isU32 = (it: unknown): it is number => Number.isInteger(it) && (it as number) >= 0 && (it as number) <= 0xffff_ffff;
/** A whole number, which may be drawn between two: interpolation moves all numbers. */
const whole = (it: unknown): number => (typeof it === "number" ? Math.round(it) : NaN);
const isMotion = (it: unknown): it is Motion => it === "Gliding" || it === "Dashing" || it === "Dizzy";
const isPhase = (it: unknown): it is Phase => it === "Waiting" || it === "Playing" || it === "Over";

/** A place on the field. */
function place({ x, y }: Fields): { x: number; y: number } | undefined {
  if (typeof x !== "number" || typeof y !== "number" || !Number.isFinite(x) || !Number.isFinite(y)) return undefined;
  return { x: Math.min(Math.max(x, 0), FIELD_WIDTH), y: Math.min(Math.max(y, 0), FIELD_HEIGHT) };
}

function readPlayer(it: unknown): PlayerState | undefined {
  if (!isFields(it)) return undefined;
  const { heading, motion, safe } = it;
  const [score, dash_ready_at] = [whole(it.score), whole(it.dash_ready_at)];
  const at = place(it);
  if (!at || !isDir(heading) || !isMotion(motion) || typeof safe !== "boolean") return undefined;
  if (!isU32(score) || !isU32(dash_ready_at)) return undefined;
  return { ...at, heading, motion, safe, score, dash_ready_at };
}

function readBadge(it: unknown): Badge | undefined {
  if (!isFields(it) || typeof it.name !== "string" || !isU32(it.slot) || typeof it.glyph !== "string") return undefined;
  const [glyph] = it.glyph;
  return glyph === undefined ? undefined : { name: it.name, slot: it.slot & 255, glyph };
}

function readGem(it: unknown): GemState | undefined {
  if (!isFields(it)) return undefined;
  const [at, worth] = [place(it), whole(it.worth)];
  return at && isU32(worth) ? { ...at, worth } : undefined;
}

function readRound(it: unknown): RoundState | undefined {
  if (!isFields(it) || !isPhase(it.phase) || !isU32(it.number) || !isU32(it.ends_at) || !isU32(it.best)) return undefined;
  const winners = Array.isArray(it.winners) ? it.winners.filter(isU32) : [];
  return { number: it.number, phase: it.phase, ends_at: it.ends_at, winners, best: it.best };
}

// Randomness that one seed repeats, and random values.

import type { Data } from "../../src/value/data.js";

/** The seed of this run; `PARLOR_SEED` repeats one. */
export const seed = Number(process.env["PARLOR_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** A generator of numbers from 0 to below 1 (mulberry32). */
export function random(from: number): () => number {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const EDGES = [0, 1, 31, 32, 127, 128, 255, 32_767, 32_768, 65_535, 2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 0.5, 0.1, 1e300];

/** A random value, as it comes back from a decoder. */
export function randomValue(next: () => number, depth = 0): Data {
  const below = (n: number) => Math.floor(next() * n);
  switch (below(depth < 4 ? 10 : 7)) {
    case 0:
      return null;
    case 1:
      return next() < 0.5;
    case 2: {
      const edge = EDGES[below(EDGES.length)]!;
      return next() < 0.5 || edge === 0 ? edge : -edge;
    }
    case 3:
      return (next() - 0.5) * 2 ** below(70);
    case 4: {
      const large = BigInt(below(2 ** 31)) * 2n ** 32n + BigInt(below(2 ** 32));
      return Number.isSafeInteger(Number(large)) ? Number(large) : next() < 0.5 ? large : -large;
    }
    case 5:
      return randomText(next, below(4) === 0 ? 80 : 12);
    case 6:
      return Uint8Array.from({ length: below(40) }, () => below(256));
    case 7:
      return Array.from({ length: below(depth === 0 ? 20 : 4) }, () => randomValue(next, depth + 1));
    default: {
      const map: Record<string, Data> = {};
      for (let i = below(depth === 0 ? 20 : 4); i > 0; i--) map[randomText(next, 8)] = randomValue(next, depth + 1);
      return map;
    }
  }
}

function randomText(next: () => number, lengthMax: number): string {
  const alphabet = ["a", "b", "z", "0", "7", "_", "é", "ł", "€", "\uffff", "\ue000", "\ufeff", "😀", "𝒳", "\u0000"];
  const length = Math.floor(next() * lengthMax);
  return Array.from({ length }, () => alphabet[Math.floor(next() * alphabet.length)]).join("");
}

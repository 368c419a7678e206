/** Pseudorandom numbers from a seed: SplitMix64, with the draws of the terminal's game. */

const MASK = (1n << 64n) - 1n;
const GAMMA = 0x9e3779b97f4a7c15n;

export class Rng {
  #state: bigint;

  constructor(seed: bigint) {
    this.#state = seed & MASK;
  }

  draw(): bigint {
    this.#state = (this.#state + GAMMA) & MASK;
    let z = this.#state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
    return z ^ (z >> 31n);
  }

  /** From `low` up to, and not including, `high`. */
  between(low: number, high: number): number {
    const part = Number(this.draw() >> 40n) / (1 << 24);
    return f32(low + f32(part * f32(high - low)));
  }

  chance(probability: number): boolean {
    return this.between(0, 1) < f32(probability);
  }

  /** A unit vector, without sine and cosine: their last bits differ between machines. */
  direction(): [number, number] {
    for (;;) {
      const x = this.between(-1, 1);
      const y = this.between(-1, 1);
      const length = f32(Math.sqrt(f32(f32(x * x) + f32(y * y))));
      if (length >= f32(0.1) && length <= 1) return [f32(x / length), f32(y / length)];
    }
  }
}

/** Rounds as the terminal's game calculates, so that both give the same places: with 24 bits. */
export const f32 = Math.fround;

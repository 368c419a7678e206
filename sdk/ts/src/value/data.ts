// What a value may be: the types of keyed state, inputs, messages and player data.

/** A value that can travel. Fields that are `undefined` are left out. */
export type Data = null | boolean | number | bigint | string | Uint8Array | Data[] | { [key: string]: Data | undefined };

/** A number that travels as a Float though it is whole. */
export class Float {
  constructor(readonly value: number) {}
  valueOf(): number {
    return this.value;
  }
}

/**
 * Boxes a number that must travel as a Float though it is whole: Rust's `f32` and `f64` take either, a Rust
 * program that reads a bare `Value` may not.
 */
export function float(value: number): number {
  return new Float(value) as unknown as number;
}

/** How deep lists and maps may nest (PROTOCOL.md). */
export const VALUE_DEPTH_MAX = 32;

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

/** How deep lists and maps may nest (PROTOCOL.md). */
export const VALUE_DEPTH_MAX = 32;

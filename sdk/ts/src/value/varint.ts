// Variable-length integers of RFC 9000 §16, in their shortest form.

/** How many bytes a varint has. */
export function varintBytes(value: number): number {
  return value < 0x40 ? 1 : value < 0x4000 ? 2 : value < 0x40000000 ? 4 : 8;
}

/** Writes a varint in its shortest form. Returns its end. */
export function writeVarint(value: number, view: DataView, at: number): number {
  if (value < 0x40) view.setUint8(at, value);
  else if (value < 0x4000) view.setUint16(at, 0x4000 | value);
  else if (value < 0x40000000) view.setUint32(at, (0x80000000 | value) >>> 0);
  else view.setBigUint64(at, 0xc000000000000000n | BigInt(value));
  return at + varintBytes(value);
}

/** Reads a varint at `at`: its value and its end, or an end of −1 if it is cut off, not shortest, or above 2^53. */
export function readVarint(bytes: Uint8Array, at: number): [value: number, end: number] {
  const first = bytes[at];
  if (first === undefined) return [0, -1];
  const width = 1 << (first >> 6);
  if (at + width > bytes.length) return [0, -1];
  let value = first & 0x3f;
  for (let i = 1; i < width; i++) value = value * 256 + bytes[at + i]!;
  const least = width === 1 ? 0 : width === 2 ? 0x40 : width === 4 ? 0x4000 : 0x40000000;
  return value >= least && Number.isSafeInteger(value) ? [value, at + width] : [0, -1];
}

// Text in UTF-8, field names in the order of their bytes, and caches that make both cheap.

// Without `ignoreBOM` it would leave out a U+FEFF that a text begins with.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Compares two texts by their UTF-8 bytes. JavaScript's own order is by UTF-16 units and puts U+E000 to U+FFFF last. */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x !== y) {
      // Surrogates stand for code points above all others.
      if (x >= 0xd800 && y >= 0xd800) {
        x = x >= 0xe000 ? x - 0x2000 : x + 0x2000;
        y = y >= 0xe000 ? y - 0x2000 : y + 0x2000;
      }
      return x - y;
    }
  }
  return a.length - b.length;
}

/** Shapes that are remembered, by their first key. */
const shapes = new Map<string, Shape[]>();
const SHAPES_MAX = 512;
const SHAPES_OF_KEY_MAX = 16;
let shapeCount = 0;

/** The keys of an object as it has them, and sorted. */
interface Shape {
  keys: readonly string[];
  order: readonly string[];
}

/** The keys of an object in the order of their bytes. Objects of one shape share the sorting. */
export function sortedKeys(value: object): readonly string[] {
  const keys = Object.keys(value);
  let sorted = true;
  for (let i = 1; i < keys.length && sorted; i++) {
    sorted = compareUtf8(keys[i - 1]!, keys[i]!) < 0;
  }
  if (sorted) return keys;
  const known = shapes.get(keys[0]!)?.find((shape) => isSame(shape.keys, keys));
  if (known !== undefined) return known.order;
  const order = [...keys].sort(compareUtf8);
  remember({ keys, order });
  return order;
}

function remember(shape: Shape): void {
  if (shapeCount >= SHAPES_MAX) {
    shapes.clear();
    shapeCount = 0;
  }
  const first = shape.keys[0]!;
  const others = shapes.get(first) ?? [];
  if (others.length >= SHAPES_OF_KEY_MAX) return;
  shapeCount += 1;
  shapes.set(first, [...others, shape]);
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * Writes `text` as UTF-8 at `at`, which must have three bytes for each UTF-16 unit. Returns the end, or −1 if the
 * text has half a surrogate pair.
 */
export function writeUtf8(text: string, into: Uint8Array, at: number): number {
  for (let i = 0; i < text.length; i++) {
    let c = text.charCodeAt(i);
    if (c < 0x80) {
      into[at++] = c;
    } else if (c < 0x800) {
      into[at++] = 0xc0 | (c >> 6);
      into[at++] = 0x80 | (c & 0x3f);
    } else if (c < 0xd800 || c >= 0xe000) {
      into[at++] = 0xe0 | (c >> 12);
      into[at++] = 0x80 | ((c >> 6) & 0x3f);
      into[at++] = 0x80 | (c & 0x3f);
    } else {
      const low = c < 0xdc00 ? text.charCodeAt(++i) : Number.NaN;
      if (!(low >= 0xdc00 && low < 0xe000)) return -1;
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
      into[at++] = 0xf0 | (c >> 18);
      into[at++] = 0x80 | ((c >> 12) & 0x3f);
      into[at++] = 0x80 | ((c >> 6) & 0x3f);
      into[at++] = 0x80 | (c & 0x3f);
    }
  }
  return at;
}

/** The length of `text` in UTF-8. */
export function utf8Length(text: string): number {
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    length += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0xd800 || c >= 0xe000 ? 3 : 2;
  }
  return length;
}

const NAMES = 1024;
const NAME_BYTES_MAX = 32;
const names: ({ bytes: Uint8Array; text: string } | undefined)[] = new Array(NAMES).fill(undefined);

/** Reads a field's name, with a cache of short ones: most names come again and again. */
export function readName(bytes: Uint8Array, from: number, to: number): string {
  const length = to - from;
  if (length > NAME_BYTES_MAX) return readUtf8(bytes, from, to);
  let hash = length;
  for (let i = from; i < to; i++) hash = (Math.imul(hash, 31) + bytes[i]!) | 0;
  const slot = (hash ^ (hash >>> 12)) & (NAMES - 1);
  const known = names[slot];
  if (known !== undefined && known.bytes.length === length) {
    let i = 0;
    while (i < length && known.bytes[i] === bytes[from + i]) i++;
    if (i === length) return known.text;
  }
  const text = readUtf8(bytes, from, to);
  names[slot] = { bytes: bytes.slice(from, to), text };
  return text;
}

/** Reads text. Throws a `TypeError` if it is not UTF-8. */
export function readUtf8(bytes: Uint8Array, from: number, to: number): string {
  // Short ASCII text is quicker by hand than by a call into the platform.
  if (to - from <= 24) {
    let text = "";
    let i = from;
    for (; i < to && bytes[i]! < 0x80; i++) text += String.fromCharCode(bytes[i]!);
    if (i === to) return text;
  }
  return decoder.decode(bytes.subarray(from, to));
}

// Reads a value (PROTOCOL.md, "Values" of keyed state). Whatever is not in its one form is refused.

import { ParlorError } from "../error.js";
import { type Data, VALUE_DEPTH_MAX } from "./data.js";
import { compareUtf8, readName, readUtf8 } from "./names.js";
import { readVarint } from "./varint.js";

class Decoder {
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #at = 0;
  #depthMax = VALUE_DEPTH_MAX;

  begin(bytes: Uint8Array, depthMax: number): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = 0;
    this.#depthMax = depthMax;
  }

  hasMore(): boolean {
    return this.#at < this.#bytes.length;
  }

  value(depth: number): Data {
    const tag = this.#take(1);
    const first = this.#bytes[tag]!;
    if (first < 0x80) return first;
    if (first < 0x90) return this.#map(first & 15, depth);
    if (first < 0xa0) return this.#list(first & 15, depth);
    if (first < 0xc0) return this.#text(first & 31);
    if (first >= 0xe0) return first - 0x100;
    return this.#tagged(first, depth);
  }

  #tagged(tag: number, depth: number): Data {
    switch (tag) {
      case 0xc0:
        return null;
      case 0xc1:
        return false;
      case 0xc2:
        return true;
      case 0xc3:
        return shortest(this.#view.getInt8(this.#take(1)), -32, 0x7f);
      case 0xc4:
        return shortest(this.#view.getInt16(this.#take(2), true), -0x80, 0x7f);
      case 0xc5:
        return shortest(this.#view.getInt32(this.#take(4), true), -0x8000, 0x7fff);
      case 0xc6:
        return this.#int64();
      case 0xc7:
        return finite(this.#view.getFloat32(this.#take(4), true));
      case 0xc8: {
        const value = finite(this.#view.getFloat64(this.#take(8), true));
        if (Math.fround(value) === value) throw malformed("a number is longer than it needs to be");
        return value;
      }
      case 0xc9: {
        const length = this.#length();
        if (length <= 31) throw malformed("a text's length is longer than it needs to be");
        return this.#text(length);
      }
      case 0xca: {
        const length = this.#length();
        const from = this.#take(length);
        return this.#bytes.slice(from, from + length);
      }
      case 0xcb:
        return this.#list(this.#long(), depth);
      case 0xcc:
        return this.#map(this.#long(), depth);
      default:
        throw malformed(`the tag ${tag.toString(16)} is of no kind`);
    }
  }

  #int64(): number | bigint {
    const value = this.#view.getBigInt64(this.#take(8), true);
    if (value >= -0x80000000n && value < 0x80000000n) throw malformed("a number is longer than it needs to be");
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }

  #text(length: number): string {
    const from = this.#take(length);
    try {
      return readUtf8(this.#bytes, from, from + length);
    } catch {
      throw malformed("a text is not UTF-8");
    }
  }

  #name(): string {
    const length = this.#length();
    const from = this.#take(length);
    try {
      return readName(this.#bytes, from, from + length);
    } catch {
      throw malformed("the name of a field is not UTF-8");
    }
  }

  #list(count: number, depth: number): Data[] {
    this.#holds(count, depth);
    const list: Data[] = [];
    for (let i = 0; i < count; i++) list.push(this.value(depth + 1));
    return list;
  }

  #map(count: number, depth: number): Data {
    this.#holds(count * 2, depth);
    const map: Record<string, Data> = {};
    let before: string | undefined;
    for (let i = 0; i < count; i++) {
      const name = this.#name();
      if (before !== undefined && compareUtf8(before, name) >= 0) throw malformed("field names do not ascend");
      before = name;
      const value = this.value(depth + 1);
      if (name === "__proto__") {
        // An assignment would change what the object inherits from.
        Object.defineProperty(map, name, { value, enumerable: true, writable: true, configurable: true });
      } else {
        map[name] = value;
      }
    }
    return map;
  }

  /** Each item has a byte at least: a count beyond what is there is found before anything is made. */
  #holds(items: number, depth: number): void {
    if (items > this.#bytes.length - this.#at) throw malformed("it ends too early");
    if (depth >= this.#depthMax) throw malformed(`it nests deeper than ${this.#depthMax}`);
  }

  #long(): number {
    const count = this.#length();
    if (count <= 15) throw malformed("a count is longer than it needs to be");
    return count;
  }

  #length(): number {
    const [value, end] = readVarint(this.#bytes, this.#at);
    if (end < 0) throw malformed("a length is cut off or not in its shortest form");
    this.#at = end;
    return value;
  }

  #take(length: number): number {
    const from = this.#at;
    if (length > this.#bytes.length - from) throw malformed("it ends too early");
    this.#at = from + length;
    return from;
  }
}

function shortest(value: number, min: number, max: number): number {
  if (value >= min && value <= max) throw malformed("a number is longer than it needs to be");
  return value;
}

function finite(value: number): number {
  if (!Number.isFinite(value) || Object.is(value, -0)) throw malformed(`a Float is ${Object.is(value, -0) ? "-0" : value}`);
  return value;
}

function malformed(why: string): ParlorError {
  return new ParlorError("bad_value", `the bytes are no value: ${why}`, "both ends must speak the same version of Parlor");
}

const decoder = new Decoder();

/** Reads a value that fills `bytes`. Throws `bad_value` if it does not. */
export function decode(bytes: Uint8Array, depthMax = VALUE_DEPTH_MAX): Data {
  decoder.begin(bytes, depthMax);
  const value = decoder.value(0);
  if (decoder.hasMore()) throw malformed("bytes follow it");
  return value;
}

/** Reads values one behind the other, to the end of `bytes`. */
export function decodeAll(bytes: Uint8Array, depthMax = VALUE_DEPTH_MAX): Data[] {
  decoder.begin(bytes, depthMax);
  const values: Data[] = [];
  while (decoder.hasMore()) values.push(decoder.value(0));
  return values;
}

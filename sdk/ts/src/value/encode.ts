// Writes a value in the one form that PROTOCOL.md gives it ("Values" of keyed state).

import { ParlorError } from "../error.js";
import { type Data, Float, VALUE_DEPTH_MAX } from "./data.js";
import { sortedKeys, writeUtf8 } from "./names.js";
import { varintBytes, writeVarint } from "./varint.js";

const INT_MIN = -(2n ** 63n);
const INT_MAX = 2n ** 63n - 1n;

class Encoder {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;
  #path: (string | number)[] = [];

  encode(value: unknown): Uint8Array {
    this.#at = 0;
    this.#path.length = 0;
    this.#value(value, 0);
    const encoded = this.#bytes.slice(0, this.#at);
    // A huge value must not hold its memory for ever.
    if (this.#bytes.length > 1 << 20) this.#resize(1024);
    return encoded;
  }

  #value(value: unknown, depth: number): void {
    switch (typeof value) {
      case "number":
        return this.#number(value);
      case "string":
        return this.#text(value);
      case "boolean":
        return this.#byte(value ? 0xc2 : 0xc1);
      case "bigint":
        return this.#bigint(value);
      case "object":
        return value === null ? this.#byte(0xc0) : this.#object(value, depth);
      default:
        throw this.#refused(
          `${typeof value === "undefined" ? "is undefined" : `is a ${typeof value}`}`,
          "send null, booleans, numbers, bigints, text, Uint8Array, arrays and plain objects",
        );
    }
  }

  #number(value: number): void {
    if (!Number.isFinite(value)) {
      throw this.#refused(`is ${value}`, "send a finite number: find the division by zero that made it");
    }
    if (Number.isSafeInteger(value)) this.#int(value);
    else this.#float(value);
  }

  #int(value: number): void {
    if (value >= 0 && value < 0x80) return this.#byte(value);
    if (value < 0 && value >= -32) return this.#byte(value + 0x100);
    this.#room(9);
    if (value >= -0x80 && value < 0x80) {
      this.#bytes[this.#at] = 0xc3;
      this.#view.setInt8(this.#at + 1, value);
      this.#at += 2;
    } else if (value >= -0x8000 && value < 0x8000) {
      this.#bytes[this.#at] = 0xc4;
      this.#view.setInt16(this.#at + 1, value, true);
      this.#at += 3;
    } else if (value >= -0x80000000 && value < 0x80000000) {
      this.#bytes[this.#at] = 0xc5;
      this.#view.setInt32(this.#at + 1, value, true);
      this.#at += 5;
    } else {
      this.#int64(BigInt(value));
    }
  }

  #int64(value: bigint): void {
    this.#room(9);
    this.#bytes[this.#at] = 0xc6;
    this.#view.setBigInt64(this.#at + 1, value, true);
    this.#at += 9;
  }

  #bigint(value: bigint): void {
    if (value < INT_MIN || value > INT_MAX) {
      throw this.#refused(`is ${value}n`, "an Int has 64 bits: send larger numbers as text");
    }
    if (value >= -0x80000000n && value < 0x80000000n) this.#int(Number(value));
    else this.#int64(value);
  }

  #float(value: number): void {
    this.#room(9);
    if (Math.fround(value) === value) {
      this.#bytes[this.#at] = 0xc7;
      // −0 and 0 are one number, and it is written as 0.
      this.#view.setFloat32(this.#at + 1, value + 0, true);
      this.#at += 5;
    } else {
      this.#bytes[this.#at] = 0xc8;
      this.#view.setFloat64(this.#at + 1, value, true);
      this.#at += 9;
    }
  }

  #text(text: string): void {
    const start = this.#utf8(text);
    const length = this.#at - start;
    if (length <= 31) {
      this.#bytes[start - 1] = 0xa0 | length;
      return;
    }
    this.#at = start - 1;
    this.#lengthen(start, length, 1);
    this.#bytes[start - 1] = 0xc9;
  }

  /** A field's name: text with its length as a varint. */
  #name(name: string): void {
    const start = this.#utf8(name);
    const length = this.#at - start;
    if (length < 0x40) {
      this.#bytes[start - 1] = length;
      return;
    }
    this.#at = start - 1;
    this.#lengthen(start, length, 0);
  }

  /** Writes text behind room for one byte: most lengths have one. Returns where it starts. */
  #utf8(text: string): number {
    this.#room(text.length * 3 + 10);
    const start = this.#at + 1;
    const end = writeUtf8(text, this.#bytes, start);
    if (end < 0) {
      throw this.#refused("has half of a surrogate pair", "cut texts between characters: Array.from(text), not slice");
    }
    this.#at = end;
    return start;
  }

  /** Moves text that starts at `start` behind a longer head, and writes its length there, after `skip` bytes. */
  #lengthen(start: number, length: number, skip: number): void {
    const at = this.#at + skip;
    this.#bytes.copyWithin(at + varintBytes(length), start, start + length);
    this.#at = writeVarint(length, this.#view, at) + length;
  }

  #object(value: object, depth: number): void {
    if (value instanceof Float) {
      if (!Number.isFinite(value.value)) throw this.#refused(`is ${value.value}`, "send a finite number");
      return this.#float(value.value);
    }
    if (value instanceof Uint8Array) return this.#blob(value);
    if (depth >= VALUE_DEPTH_MAX) {
      throw this.#refused(
        `nests deeper than ${VALUE_DEPTH_MAX}`,
        "flatten it; if an object contains itself, send what tells it apart instead",
      );
    }
    if (Array.isArray(value)) return this.#list(value, depth);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null && !isPlain(prototype)) {
      const name = (value as { constructor?: { name?: string } }).constructor?.name ?? "class";
      throw this.#refused(`is a ${name}`, hintFor(name));
    }
    this.#map(value as Record<string, unknown>, depth);
  }

  #blob(value: Uint8Array): void {
    this.#room(10 + value.length);
    this.#bytes[this.#at++] = 0xca;
    this.#varint(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  #list(value: unknown[], depth: number): void {
    this.#head(value.length, 0x90, 0xcb);
    this.#path.push(0);
    for (let i = 0; i < value.length; i++) {
      this.#path[this.#path.length - 1] = i;
      this.#value(value[i], depth + 1);
    }
    this.#path.pop();
  }

  #map(value: Record<string, unknown>, depth: number): void {
    const keys = sortedKeys(value);
    let count = 0;
    for (let i = 0; i < keys.length; i++) if (value[keys[i]!] !== undefined) count++;
    this.#head(count, 0x80, 0xcc);
    this.#path.push("");
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const field = value[key];
      if (field === undefined) continue;
      this.#path[this.#path.length - 1] = key;
      this.#name(key);
      this.#value(field, depth + 1);
    }
    this.#path.pop();
  }

  #head(count: number, short: number, long: number): void {
    if (count <= 15) return this.#byte(short | count);
    this.#byte(long);
    this.#varint(count);
  }

  #byte(byte: number): void {
    this.#room(1);
    this.#bytes[this.#at++] = byte;
  }

  #varint(value: number): void {
    this.#room(8);
    this.#at = writeVarint(value, this.#view, this.#at);
  }

  #room(more: number): void {
    if (this.#at + more > this.#bytes.length) this.#resize(Math.max(this.#bytes.length * 2, this.#at + more));
  }

  #resize(length: number): void {
    const old = this.#bytes;
    this.#bytes = new Uint8Array(length);
    this.#bytes.set(old.subarray(0, Math.min(this.#at, length)));
    this.#view = new DataView(this.#bytes.buffer);
  }

  #refused(what: string, hint: string): ParlorError {
    const path = this.#path.reduce<string>((text, part) => {
      if (typeof part === "number") return `${text}[${part}]`;
      return text === "" ? part : `${text}.${part}`;
    }, "");
    return new ParlorError("bad_value", `${path === "" ? "the value" : path} ${what}`, hint);
  }
}

/** An object of another realm (an iframe, a vm context) has another `Object.prototype`. */
function isPlain(prototype: unknown): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, "hasOwnProperty");
}

function hintFor(name: string): string {
  switch (name) {
    case "Date":
      return "send date.getTime()";
    case "Map":
      return "send Object.fromEntries(map)";
    case "Set":
      return "send [...set]";
    case "ArrayBuffer":
      return "send new Uint8Array(buffer)";
    default:
      return "send a plain object: { ...it }";
  }
}

const encoder = new Encoder();

/** Writes a value. Throws `bad_value` with the path of what cannot travel. */
export function encode(value: Data | undefined): Uint8Array {
  return encoder.encode(value);
}

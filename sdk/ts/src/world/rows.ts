// Rows and columns as they cross to the core, and the values that a game sees.
//
//   row      f64 for each number, in the order of the fields · for each blob: length u32, bytes
//   columns  count u32 · 0 u32 · count × entity u32 · count × owner i32 · for each number: count × f64
//            · for each blob: count × (length u32, bytes)

import { badArgument } from "../error.js";
import type { Data } from "../value/data.js";
import { decode } from "../value/decode.js";
import { encode } from "../value/encode.js";
import { readUtf8 } from "../value/names.js";
import type { Component, Fields, ValueOf } from "./component.js";
import type { Layout } from "./fields.js";
import type { Entity } from "./types.js";

/** A field's values of all entities: numbers in typed arrays, vectors by part, all else in lists. */
export type Column<T> = [T] extends [number]
  ? Float64Array
  : [T] extends [boolean | string | Uint8Array]
    ? T[]
    : [T] extends [{ x: number }]
      ? { [P in keyof T]: Float64Array }
      : [T] extends [{ position: unknown }]
        ? { [P in keyof T]: Column<T[P]> }
        : T[];

/** All entities of a component, column by column. The game owns them: they stay valid for ever. */
export type Columns<C> = C extends Component<string, infer F>
  ? { length: number; entity: Uint32Array; owner: Int32Array; fields: { [K in keyof F]: Column<ValueOf<F[K]>> } }
  : never;

type AnyColumn = Float64Array | unknown[] | { [part: string]: AnyColumn };

/** Columns as they are read, of any component. */
export interface AnyColumns {
  length: number;
  entity: Uint32Array;
  owner: Int32Array;
  fields: Record<string, AnyColumn>;
}

const isBlob = (layout: Layout) => layout.form === "text" || layout.form === "bytes" || layout.form === "any";

/** Reads a row. */
export function readRow(fields: Fields, row: Uint8Array): Record<string, unknown> {
  const reader = new Reader(row);
  const read: Record<string, unknown> = {};
  const entries = Object.entries(fields);
  for (const [name, { layout }] of entries) if (!isBlob(layout)) read[name] = reader.value(layout);
  for (const [name, { layout }] of entries) if (isBlob(layout)) read[name] = reader.blob(layout);
  return read;
}

/** Writes a row. */
export function writeRow(of: Component, value: Record<string, unknown>): Uint8Array {
  const writer = new Writer(of.name);
  const entries = Object.entries(of.fields);
  for (const [name, { layout }] of entries) if (!isBlob(layout)) writer.value(layout, value[name], name);
  for (const [name, { layout }] of entries) if (isBlob(layout)) writer.blob(layout, value[name], name);
  return writer.bytes();
}

/** Reads columns. */
export function readColumns(fields: Fields, bytes: Uint8Array): AnyColumns {
  const reader = new Reader(bytes);
  const length = reader.u32();
  reader.u32();
  const entity = Uint32Array.from({ length }, () => reader.u32());
  const owner = Int32Array.from({ length }, () => reader.i32());
  const read: Record<string, AnyColumn> = {};
  const entries = Object.entries(fields);
  for (const [name, { layout }] of entries) if (!isBlob(layout)) read[name] = reader.column(layout, length);
  for (const [name, { layout }] of entries) {
    if (isBlob(layout)) read[name] = Array.from({ length }, () => reader.blob(layout));
  }
  return { length, entity, owner, fields: read };
}

/** Writes columns. */
export function writeColumns(of: Component, columns: AnyColumns): Uint8Array {
  const writer = new Writer(of.name);
  const { length } = columns;
  writer.u32(length);
  writer.u32(0);
  for (let i = 0; i < length; i++) writer.u32(columns.entity[i]!);
  for (let i = 0; i < length; i++) writer.u32(columns.owner[i]! >>> 0);
  const entries = Object.entries(of.fields);
  for (const [name, { layout }] of entries) if (!isBlob(layout)) writer.column(layout, columns.fields[name]!, length, name);
  for (const [name, { layout }] of entries) {
    if (isBlob(layout)) for (let i = 0; i < length; i++) writer.blob(layout, (columns.fields[name] as unknown[])[i], name);
  }
  return writer.bytes();
}

/** The value of one entity, out of columns. */
export function rowAt(columns: AnyColumns, index: number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(columns.fields).map(([name, column]) => [name, at(column, index)]));
}

function at(column: AnyColumn, index: number): unknown {
  if (column instanceof Float64Array || Array.isArray(column)) return column[index];
  return Object.fromEntries(Object.entries(column).map(([part, inner]) => [part, at(inner, index)]));
}

/** The entity and owner of each place. */
export function* places(columns: AnyColumns): Iterable<[index: number, entity: Entity, owner: number]> {
  for (let i = 0; i < columns.length; i++) yield [i, columns.entity[i]! as Entity, columns.owner[i]!];
}

class Reader {
  #at = 0;
  readonly #view: DataView;

  constructor(private readonly from: Uint8Array) {
    this.#view = new DataView(from.buffer, from.byteOffset, from.byteLength);
  }

  u32(): number {
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4, true);
  }

  i32(): number {
    return this.u32() | 0;
  }

  value(layout: Layout): unknown {
    switch (layout.form) {
      case "number":
        return this.#f64();
      case "bool":
        return this.#f64() !== 0;
      case "names":
        return layout.names[this.#f64()];
      case "parts":
        return Object.fromEntries(layout.parts.map(([name, part]) => [name, this.value(part)]));
      default:
        return undefined;
    }
  }

  column(layout: Layout, length: number): AnyColumn {
    if (layout.form === "parts") {
      return Object.fromEntries(layout.parts.map(([name, part]) => [name, this.column(part, length)]));
    }
    if (layout.form === "number") return Float64Array.from({ length }, () => this.#f64());
    return Array.from({ length }, () => this.value(layout));
  }

  blob(layout: Layout): unknown {
    const length = this.u32();
    const bytes = this.from.slice(this.#at, this.#at + length);
    this.#at += length;
    if (layout.form === "text") return readUtf8(bytes, 0, length);
    return layout.form === "any" ? decode(bytes) : bytes;
  }

  #f64(): number {
    this.#at += 8;
    return this.#view.getFloat64(this.#at - 8, true);
  }
}

const utf8 = new TextEncoder();

class Writer {
  #into = new Uint8Array(256);
  #view = new DataView(this.#into.buffer);
  #at = 0;

  constructor(private readonly component: string) {}

  bytes(): Uint8Array {
    return this.#into.subarray(0, this.#at);
  }

  u32(value: number): void {
    this.#room(4);
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
  }

  value(layout: Layout, value: unknown, path: string): void {
    switch (layout.form) {
      case "number":
        if (typeof value !== "number" || !Number.isFinite(value)) throw this.#refused(path, value, "a finite number");
        return this.#f64(value);
      case "bool":
        if (typeof value !== "boolean") throw this.#refused(path, value, "true or false");
        return this.#f64(value ? 1 : 0);
      case "names": {
        const index = layout.names.indexOf(value as string);
        if (index < 0) throw this.#refused(path, value, `one of ${layout.names.join(", ")}`);
        return this.#f64(index);
      }
      case "parts":
        if (typeof value !== "object" || value === null) throw this.#refused(path, value, `{ ${layout.parts.map(([name]) => name).join(", ")} }`);
        for (const [name, part] of layout.parts) this.value(part, (value as Record<string, unknown>)[name], `${path}.${name}`);
    }
  }

  column(layout: Layout, column: AnyColumn, length: number, path: string): void {
    if (layout.form === "parts") {
      for (const [name, part] of layout.parts) this.column(part, (column as Record<string, AnyColumn>)[name]!, length, `${path}.${name}`);
      return;
    }
    const list = column as ArrayLike<unknown>;
    for (let i = 0; i < length; i++) this.value(layout, list[i], path);
  }

  blob(layout: Layout, value: unknown, path: string): void {
    const bytes = this.#blobOf(layout, value, path);
    this.u32(bytes.length);
    this.#room(bytes.length);
    this.#into.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #blobOf(layout: Layout, value: unknown, path: string): Uint8Array {
    if (layout.form === "any") return encode(value as Data);
    if (layout.form === "bytes") {
      if (value instanceof Uint8Array) return value;
      throw this.#refused(path, value, "a Uint8Array");
    }
    if (typeof value === "string") return utf8.encode(value);
    throw this.#refused(path, value, "text");
  }

  #f64(value: number): void {
    this.#room(8);
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
  }

  #room(more: number): void {
    if (this.#at + more <= this.#into.length) return;
    const old = this.#into;
    this.#into = new Uint8Array(Math.max(old.length * 2, this.#at + more));
    this.#into.set(old);
    this.#view = new DataView(this.#into.buffer);
  }

  #refused(path: string, value: unknown, wanted: string): Error {
    return badArgument(`${this.component}.${path} is ${typeof value === "string" ? JSON.stringify(value) : String(value)}`, `give it ${wanted}`);
  }
}

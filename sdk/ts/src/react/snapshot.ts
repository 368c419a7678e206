// What a component reads of a room: the same object for as long as it has the same contents.

/** What a snapshot needs of a room. */
export interface Readable {
  readonly version: number;
  on(event: "changed", listener: () => void): () => void;
}

const nothing = (): void => {};

/** Reads anew when the room's version is another one, and gives what it gave before where the contents are equal. */
export class Snapshot<R extends Readable, T> {
  #version = Number.NaN;
  #value: T;

  constructor(
    private readonly room: R | undefined,
    private readonly read: (room: R) => T,
    private readonly empty: T,
  ) {
    this.#value = empty;
  }

  readonly subscribe = (changed: () => void): (() => void) => this.room?.on("changed", changed) ?? nothing;

  readonly get = (): T => {
    const { room } = this;
    if (room !== undefined && room.version !== this.#version) {
      this.#version = room.version;
      this.#value = merge(this.#value, this.read(room)) as T;
    }
    return this.#value;
  };

  /** A server that renders pages has no rooms. */
  readonly getServer = (): T => this.empty;
}

/**
 * The new value, made of the old one's parts where they are equal; the old one if all are. What is neither plain data
 * nor a map is compared by identity: a validator of the game may make anything.
 */
export function merge(old: unknown, now: unknown): unknown {
  if (Object.is(old, now)) return old;
  if (Array.isArray(old) && Array.isArray(now)) {
    const merged = now.map((value, i) => merge(old[i], value));
    return old.length === merged.length && merged.every((value, i) => Object.is(value, old[i])) ? old : merged;
  }
  if (old instanceof Uint8Array && now instanceof Uint8Array) {
    return old.length === now.length && now.every((byte, i) => byte === old[i]) ? old : now;
  }
  if (old instanceof Map && now instanceof Map) return mergeEntries(old, now, (merged) => merged);
  if (isPlain(old) && isPlain(now)) return mergeEntries(new Map(Object.entries(old)), new Map(Object.entries(now)), Object.fromEntries, old);
  return now;
}

/** `old` is what the entries of `before` stand for. */
function mergeEntries<K>(before: Map<K, unknown>, now: Map<K, unknown>, made: (merged: Map<K, unknown>) => unknown, old: unknown = before): unknown {
  const merged = new Map([...now].map(([key, value]) => [key, merge(before.get(key), value)]));
  const isSame = merged.size === before.size && [...merged].every(([key, value]) => before.has(key) && Object.is(before.get(key), value));
  return isSame ? old : made(merged);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

// Saves: what a player keeps in slots, with the versions before.

import { badArgument, ParlorError } from "../error.js";
import type { Call } from "./boards.js";
import { camel, type Camel } from "./camel.js";
import { given } from "./given.js";
import type { Operations, SaveView } from "./operations.js";
import type { Repeater } from "./repeat.js";

/** What belongs to a save, and what it may replace. Default: whatever the slot has. */
export interface SaveOptions {
  /** For players, up to 256 bytes. */
  title?: string;
  /** For players, up to 1 KiB. */
  description?: string;
  /** The name of this device, for players. */
  device?: string;
  /** False: rejects with `taken` if the slot has a save. */
  replace?: boolean;
  /** The version that it replaces, and no other: rejects with `stale` if another device has saved meanwhile. */
  version?: number;
}

/** A save without what the game saved. */
export type SaveInfo = Camel<SaveView>;
/** A save that was written or removed; `again` if the slot had exactly this already. */
export type Saved = Camel<Operations["save.set"]["out"]>;

/** A save. */
export interface WholeSave {
  readonly save: SaveInfo;
  /** What the game saved. */
  readonly bytes: Uint8Array;
  /** What `set` has saved as JSON. Throws a `SyntaxError` if it is not JSON. */
  json<T = unknown>(): T;
}

/** The saves of the player. */
export interface Saves {
  /**
   * Saves bytes, or any other value as JSON, up to 40 KiB. What the slot had stays among the versions before. If its answer is lost, it is
   * sent again. Those of an account go one after another.
   */
  set(slot: string, value: unknown, options?: SaveOptions): Promise<Saved>;
  /** Reads what a slot has, or one of the versions before. Rejects with `no_such_save` if it is free. */
  get(slot: string, options?: { version?: number }): Promise<WholeSave>;
  /** What the slots have, in the order of their names. */
  list(): Promise<readonly SaveInfo[]>;
  /** Up to four versions of a slot before the present one, the newest first. */
  before(slot: string): Promise<readonly SaveInfo[]>;
  /** Removes what a slot has; with `version`, only that. It stays among the versions before. */
  remove(slot: string, options?: { version?: number }): Promise<Saved>;
}

/** The save that the slot has instead, if `set` or `remove` was refused as `stale` or `taken`. */
export function currentSave(thrown: unknown): SaveInfo | undefined {
  if (!(thrown instanceof ParlorError) || (thrown.code !== "stale" && thrown.code !== "taken")) return undefined;
  return thrown.current == null ? undefined : camel(thrown.current as SaveView);
}

export class SavesImpl implements Saves {
  constructor(
    private readonly call: Call,
    private readonly repeater: Repeater,
  ) {}

  async set(slot: string, value: unknown, options: SaveOptions = {}): Promise<Saved> {
    const { title, description, device, replace, version } = options;
    const input = { slot, bytes: toBase64(bytesOf(value)), ...given({ title, description, device, replace, version }) };
    return camel(await this.repeater.send(() => this.call("save.set", input)));
  }

  async get(slot: string, { version }: { version?: number } = {}): Promise<WholeSave> {
    const { save, bytes: text } = await this.call("save.get", { slot, ...given({ version }) } as Operations["save.get"]["in"]);
    const bytes = fromBase64(text);
    return { save: camel(save), bytes, json: <T>() => JSON.parse(new TextDecoder().decode(bytes)) as T };
  }

  async list(): Promise<readonly SaveInfo[]> {
    return camel((await this.call("save.list", {})).saves);
  }

  async before(slot: string): Promise<readonly SaveInfo[]> {
    return camel((await this.call("save.before", { slot })).saves);
  }

  async remove(slot: string, { version }: { version?: number } = {}): Promise<Saved> {
    return camel(await this.call("save.remove", { slot, ...given({ version }) } as Operations["save.remove"]["in"]));
  }
}

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw badArgument("a save is bytes or a value that JSON can hold");
  return new TextEncoder().encode(text);
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

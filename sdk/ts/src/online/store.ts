// What a player's sign-in leaves behind: the device's id and the newest refresh token. Both are secrets.
//
// A refresh token is good once. It is read and replaced only by the page that holds the sign-in's lock, so that two
// pages that refresh at once do not look like a thief.

import { ParlorError } from "../error.js";
import { lock } from "../page/lock.js";

/** Where a sign-in is kept: `localStorage`, or what a game passes. Its values are secrets. */
export interface KeyValue {
  /** The value of a key, if there is one. */
  get(key: string): string | null | undefined | Promise<string | null | undefined>;
  /** Sets the value of a key. */
  set(key: string, value: string): void | Promise<void>;
  /** Removes a key. */
  remove(key: string): void | Promise<void>;
}

/** What is kept. */
export interface Kept {
  /** The id of this device: it gives access to the account that was made by it. */
  device?: string;
  /** The next refresh token. */
  refresh?: string;
  /** How the player signed in whose token that is. */
  by?: "device" | "email" | "custom";
}

/** How long a page waits for another one that signs in. */
const LOCK_PATIENCE_MS = 20_000;

/** The sign-in of one game at one server. */
export class SignInStore {
  /** What could not be written: it is known as long as the page lives. */
  #unwritten: Kept | undefined;

  constructor(
    private readonly key: string,
    private readonly store: KeyValue = localStore(),
  ) {}

  /** Runs `work` while no other page reads or replaces the sign-in. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const release = await lock(this.key, LOCK_PATIENCE_MS);
    if (release === undefined) {
      throw new ParlorError("busy", "another page of this player is signing in and does not come to its end", "close that page, or reload it");
    }
    try {
      return await work();
    } finally {
      release();
    }
  }

  async read(): Promise<Kept> {
    if (this.#unwritten !== undefined) return this.#unwritten;
    try {
      const kept = JSON.parse((await this.store.get(this.key)) ?? "{}") as Kept | null;
      return typeof kept === "object" && kept !== null ? kept : {};
    } catch {
      // Not readable is like not there: the player is somebody new.
      return {};
    }
  }

  async write(kept: Kept): Promise<void> {
    try {
      if (Object.keys(kept).length === 0) await this.store.remove(this.key);
      else await this.store.set(this.key, JSON.stringify(kept));
      this.#unwritten = undefined;
    } catch {
      this.#unwritten = kept;
    }
  }
}

/** The page's own store; where there is none, what is kept ends with the process. */
function localStore(): KeyValue {
  try {
    const { localStorage, document } = globalThis as { localStorage?: Storage; document?: Document };
    // Node has one of that name that it warns of.
    if (document !== undefined && localStorage !== undefined) {
      return {
        get: (key) => localStorage.getItem(key),
        set: (key, value) => localStorage.setItem(key, value),
        remove: (key) => localStorage.removeItem(key),
      };
    }
  } catch {
    // A sandboxed page may not touch it.
  }
  const kept = new Map<string, string>();
  return { get: (key) => kept.get(key), set: (key, value) => void kept.set(key, value), remove: (key) => void kept.delete(key) };
}

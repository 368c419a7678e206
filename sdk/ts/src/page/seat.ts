// The seat that a tab had: what gets it back after a reload, and the lock that keeps two pages out of one seat.
//
// A duplicated tab has a copy of the session storage. The server ends a session whose ticket is used twice, for both.
// So a ticket is read only by the page that holds its lock, and the lock is held as long as the room lives. A page
// that holds a Web Lock is not frozen either.

import type { Address } from "../server/address.js";
import { hasLocks, lock } from "./lock.js";

/** Where tickets are kept: `sessionStorage`, or what a game passes. Tickets are secrets. */
export interface TicketStore {
  /** The value of a key, if there is one. */
  get(key: string): string | null | undefined;
  /** Sets the value of a key. */
  set(key: string, value: string): void;
  /** Removes a key. */
  remove(key: string): void;
}

/** What is remembered of a seat. */
export interface SeatRecord {
  ticket: string;
  /** The lock's name, the same for all pages that have a copy of this. */
  lock: string;
  server: Address;
  secret?: string;
}

/** How long a page that begins waits for the one before it to be gone. A duplicated tab waits in vain. */
const LOCK_PATIENCE_MS = 500;

/** Takes the lock of a seat. Without Web Locks there are no tabs that could be duplicated: the store is a program's own. */
function lockSeat(name: string): Promise<(() => void) | undefined> {
  return hasLocks() ? lock(name, LOCK_PATIENCE_MS) : Promise.resolve(() => {});
}

/** The store of a tab; undefined where a page has none, or no locks to guard it. */
function tabStore(): TicketStore | undefined {
  try {
    const { sessionStorage } = globalThis;
    if (sessionStorage === undefined || !hasLocks()) return undefined;
    return {
      get: (key) => sessionStorage.getItem(key),
      set: (key, value) => sessionStorage.setItem(key, value),
      remove: (key) => sessionStorage.removeItem(key),
    };
  } catch {
    // A sandboxed page may not touch it.
    return undefined;
  }
}

/** A seat of this page. */
export class Seat {
  #release: (() => void) | undefined;
  #isOver = false;

  private constructor(
    private readonly key: string,
    private readonly store: TicketStore | undefined,
    private readonly lockName: string,
  ) {}

  /** A seat for a room that is being opened. */
  static async open(app: string, remember: "tab" | "never" | TicketStore): Promise<Seat> {
    const store = storeOf(remember);
    const name = `parlor:${crypto.randomUUID()}`;
    const seat = new Seat(keyOf(app), store, name);
    seat.#release = await lockSeat(name);
    return seat;
  }

  /** The seat that this tab had, if no other page has it. */
  static async reclaim(app: string, remember: "tab" | "never" | TicketStore): Promise<{ seat: Seat; record: SeatRecord } | undefined> {
    const store = storeOf(remember);
    const key = keyOf(app);
    const known = readRecord(store?.get(key));
    if (store === undefined || known === undefined) return undefined;
    const release = await lockSeat(known.lock);
    if (release === undefined) {
      // It is another page's: this one's copy would end the session of both.
      store.remove(key);
      return undefined;
    }
    const record = readRecord(store.get(key));
    if (record === undefined || record.lock !== known.lock) {
      release();
      return undefined;
    }
    const seat = new Seat(key, store, known.lock);
    seat.#release = release;
    return { seat, record };
  }

  /** Keeps what gets the seat back. */
  remember(ticket: string, server: Address, secret: string | undefined): void {
    if (this.#isOver) return;
    const record: SeatRecord = { ticket, lock: this.lockName, server, ...(secret === undefined ? {} : { secret }) };
    try {
      this.store?.set(this.key, JSON.stringify(record));
    } catch {
      // A full store: the seat is lost with the page.
    }
  }

  /** The room is over: nothing is to be got back. */
  forget(): void {
    const record = readRecord(this.store?.get(this.key));
    if (record?.lock === this.lockName) this.store?.remove(this.key);
    this.letGo();
  }

  /** This page does not play on; what was remembered stays for another attempt. */
  letGo(): void {
    this.#isOver = true;
    this.#release?.();
    this.#release = undefined;
  }
}

function storeOf(remember: "tab" | "never" | TicketStore): TicketStore | undefined {
  if (remember === "never") return undefined;
  return remember === "tab" ? tabStore() : remember;
}

function keyOf(app: string): string {
  return `parlor/${app}`;
}

function readRecord(text: string | null | undefined): SeatRecord | undefined {
  try {
    const record = JSON.parse(text ?? "") as SeatRecord;
    const isWhole = typeof record.ticket === "string" && typeof record.lock === "string" && typeof record.server?.host === "string";
    return isWhole ? record : undefined;
  } catch {
    return undefined;
  }
}

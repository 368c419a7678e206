// The players of a room, as a map that is another one when it changed.

import type { Data } from "../value/data.js";
import type { Core } from "../wasm/core.js";
import type { Exports } from "../wasm/exports.js";
import type { Player, PlayerId } from "./types.js";

/** How long round trips may be old before they are read again. */
const STALE_MS = 1_000;

/** A player as it was when it was read. */
class PlayerSnapshot implements Player {
  declare readonly id: PlayerId;
  declare readonly name: string;
  declare readonly user?: string;
  declare readonly isHost: boolean;
  declare readonly isMe: boolean;
  declare readonly isSpectator: boolean;
  declare readonly connected: boolean;
  declare readonly slow: boolean;
  declare readonly rttMs?: number;
  declare readonly link: string;
  readonly allData: Readonly<Record<string, Data>>;

  constructor(read: Record<string, Data>) {
    const { data, ...rest } = read;
    Object.assign(this, rest);
    this.allData = (data ?? {}) as Record<string, Data>;
  }

  data<T = Data>(key: string): T | undefined {
    return Object.hasOwn(this.allData, key) ? (this.allData[key] as T) : undefined;
  }
}

/** A player that an event carries. */
export function playerOf(read: Data): Player {
  return new PlayerSnapshot(read as Record<string, Data>);
}

/** Reads players, or spectators, when they may have changed, and keeps the map while they have not. */
export class PlayerList {
  #map: ReadonlyMap<PlayerId, Player> = new Map();
  #bytes: Uint8Array = new Uint8Array(0);
  #isStale = true;
  #readAt = 0;

  constructor(
    private readonly core: Core,
    private readonly list: (exports: Exports) => number,
  ) {}

  /** Something of them changed. */
  changed(): void {
    this.#isStale = true;
  }

  get(): ReadonlyMap<PlayerId, Player> {
    const now = performance.now();
    if ((this.#isStale || now - this.#readAt > STALE_MS) && !this.core.isDead) {
      this.#isStale = false;
      this.#readAt = now;
      this.#read();
    }
    return this.#map;
  }

  #read(): void {
    this.core.call(this.list);
    const bytes = this.core.bytes();
    if (equal(bytes, this.#bytes)) return;
    this.#bytes = bytes;
    this.#map = new Map(this.core.values().map((read) => playerOf(read)).map((player) => [player.id, player]));
  }
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

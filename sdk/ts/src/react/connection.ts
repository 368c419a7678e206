// One opened room and who holds it: a component may let it go and take it again before it is closed.

import type { ErrorCode } from "../error.js";
import type { Closed } from "../room/types.js";

/** How long nobody may hold a room before it is left. React unmounts and mounts again within one task in StrictMode. */
const LET_GO_MS = 500;

/** What `useRoom` opens: a room, a match, or what is left and ends like one. */
export interface Openable {
  readonly closed: Promise<Closed>;
  /** Leaves it. */
  leave(): Promise<unknown>;
}

/** Why a room could not be opened: a `ParlorError`, or what the function `open` threw itself. */
export type RoomError = Error & { readonly code?: ErrorCode; readonly hint?: string };

/** Where a room of `useRoom` is. */
export type RoomState<R> =
  /** Not begun: the component was not mounted yet, as on a server that renders pages. */
  | { readonly status: "idle"; readonly room?: undefined; readonly error?: undefined; readonly closed?: undefined }
  | { readonly status: "connecting"; readonly room?: undefined; readonly error?: undefined; readonly closed?: undefined }
  | { readonly status: "open"; readonly room: R; readonly error?: undefined; readonly closed?: undefined }
  /** Over: `closed` says why an open room ended, `error` why none was opened. What the room had can still be read. */
  | { readonly status: "closed"; readonly room?: R; readonly error?: RoomError; readonly closed?: Closed };

export const IDLE = { status: "idle" } as const;
export const CONNECTING = { status: "connecting" } as const;

/** Opens a room, and leaves it when nobody holds it any more. */
export class Connection<R extends Openable> {
  /** Whether it was given up: whoever mounts opens another. */
  isGone = false;
  #current: RoomState<R> = CONNECTING;
  readonly #aborting = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    open: (signal: AbortSignal) => Promise<R>,
    private readonly changed: (state: RoomState<R>) => void,
  ) {
    void this.#run(open);
  }

  get state(): RoomState<R> {
    return this.#current;
  }

  hold(): void {
    clearTimeout(this.#timer);
  }

  letGo(): void {
    this.#timer = setTimeout(() => this.close(), LET_GO_MS);
  }

  /** Gives up the opening, or leaves the room. */
  close(): void {
    if (this.isGone) return;
    clearTimeout(this.#timer);
    this.isGone = true;
    this.#aborting.abort();
    if (this.#current.status === "open") leave(this.#current.room);
  }

  async #run(open: (signal: AbortSignal) => Promise<R>): Promise<void> {
    try {
      const room = await open(this.#aborting.signal);
      // Whoever does not pass the signal on has opened it all the same.
      if (this.isGone) return leave(room);
      this.#become({ status: "open", room });
      this.#become({ status: "closed", room, closed: await room.closed });
    } catch (thrown) {
      this.#become({ status: "closed", error: thrown instanceof Error ? thrown : new Error(String(thrown)) });
    }
  }

  #become(state: RoomState<R>): void {
    this.#current = state;
    if (!this.isGone) this.changed(state);
  }
}

function leave(room: Openable): void {
  room.leave().catch((thrown: unknown) => console.error("leaving the room:", thrown));
}

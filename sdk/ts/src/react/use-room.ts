// Opens a room for as long as a component is mounted.

import { type DependencyList, useEffect, useRef, useState } from "react";
import { CONNECTING, Connection, IDLE, type Openable, type RoomState } from "./connection.js";

/** What a component's state is of: another dependency makes it stale. */
interface Kept<R> {
  readonly deps: DependencyList;
  readonly state: RoomState<R>;
}

/**
 * Opens a room when the component is mounted, and leaves it 500 ms after it is unmounted, unless it is mounted again
 * by then: StrictMode and Fast Refresh keep their room. Other `deps` leave the room at once and open another.
 *
 * `open` is called with a signal that ends the opening; pass it on. Errors are state, and nothing is tried again until
 * `deps` change. An event that comes before the component shows the room is heard by listeners that `open` adds.
 */
export function useRoom<R extends Openable>(open: (signal: AbortSignal) => Promise<R>, deps: DependencyList): RoomState<R> {
  const [kept, setKept] = useState<Kept<R>>({ deps, state: IDLE });
  const held = useRef<{ readonly deps: DependencyList; readonly connection: Connection<R> } | undefined>(undefined);
  useEffect(() => {
    const before = held.current;
    let connection = before?.connection;
    if (before === undefined || connection === undefined || connection.isGone || !areEqual(before.deps, deps)) {
      connection?.close();
      connection = new Connection(open, (state) => setKept({ deps, state }));
      held.current = { deps, connection };
    }
    const mine = connection;
    mine.hold();
    setKept({ deps, state: mine.state });
    return () => mine.letGo();
  }, deps);
  // Between new dependencies and the effect that opens for them the old room is nobody's.
  return areEqual(kept.deps, deps) ? kept.state : CONNECTING;
}

function areEqual(a: DependencyList, b: DependencyList): boolean {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
}

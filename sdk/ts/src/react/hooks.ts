// What components read and hear of a room. Each takes `undefined` for a room that is not open yet.

import { useContext, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { Claim, GameTypes, Key, PrefixOf, Read, StateOf, StateUnder, Untyped } from "../game/types.js";
import type { RoomView, TurnRoom } from "../online/room.js";
import type { Events, Gathering, Match, Player, Room } from "../room/types.js";
import { RoomContext } from "./context.js";
import { Snapshot } from "./snapshot.js";

const NO_PLAYERS: readonly Player[] = [];
const NO_ENTRIES: ReadonlyMap<string, unknown> = new Map();

type AnyGathering = Gathering<GameTypes>;

/** The room that is given, or that of the context. */
function useGiven(room: object | undefined): AnyGathering | undefined {
  const around = useContext(RoomContext);
  return (room ?? around) as AnyGathering | undefined;
}

function useSnapshot<R extends AnyGathering, T>(room: R | undefined, read: (room: R) => T, empty: T, key?: string): T {
  // What is read depends on the room and the key alone.
  const snapshot = useMemo(() => new Snapshot<R, T>(room, read, empty), [room, key]);
  return useSyncExternalStore(snapshot.subscribe, snapshot.get, snapshot.getServer);
}

/** The players of a room, by default of the nearest `RoomProvider`, in the order of their ids. */
export function usePlayers<G extends GameTypes = GameTypes>(room?: Gathering<G>): readonly Player[] {
  return useSnapshot(useGiven(room), ({ players }) => [...players.values()], NO_PLAYERS);
}

/**
 * The state under a key; undefined if there is none. The component is drawn again when the value is another one: this
 * is for scores and turns. What moves in each step is drawn in `draw` of `room.run`.
 */
export function useKey<T extends Claim<G> = never, G extends GameTypes = Untyped, const K extends Key<G> = Key<G>>(
  room: Room<G> | undefined,
  key: K,
): Read<T, StateOf<G, K>> | undefined {
  const given = room as Room | undefined;
  return useSnapshot(given as AnyGathering | undefined, (it) => (it as Room).get(key), undefined, key) as Read<T, StateOf<G, K>> | undefined;
}

/** The state under all keys with a prefix, by key in ascending order. Values that did not change stay the same objects. */
export function useKeys<T extends Claim<G> = never, G extends GameTypes = Untyped, const P extends string = string>(
  room: Room<G> | undefined,
  prefix: PrefixOf<G, P>,
): ReadonlyMap<string, Read<T, StateUnder<G, P>>> {
  const given = room as AnyGathering | undefined;
  return useSnapshot(given, (it) => new Map<string, unknown>((it as Room).entries(prefix as string)), NO_ENTRIES, prefix) as never;
}

/** Whether a room is open, by default that of the nearest `RoomProvider`; undefined while there is none. */
export function useRoomStatus<G extends GameTypes = GameTypes>(room?: Gathering<G>): Gathering["status"] | undefined {
  return useSnapshot(useGiven(room), ({ status }) => status, undefined);
}

/** Listens to an event for as long as the component is mounted; to the newest `listener`, which need not be memoized. */
export function useEvent<G extends GameTypes, E extends keyof Events<G>>(
  room: Room<G> | Match<G> | undefined,
  event: E,
  listener: (it: Events<G>[E]) => void,
): void {
  const newest = useRef(listener);
  useEffect(() => {
    newest.current = listener;
  });
  useEffect(() => (room as Gathering<G> | undefined)?.on(event, (it) => newest.current(it)), [room, event]);
}

/**
 * What a turn room (`parlor/online`) is now; undefined without one. The component is drawn again when anything of the room
 * changes, also `myTurn` and `isConnected`.
 */
export function useTurnRoom<S>(room: TurnRoom<S> | undefined): RoomView<S> | undefined {
  const store = useMemo(() => ({ subscribe: (draw: () => void) => room?.on("changed", draw) ?? (() => {}), version: () => room?.version }), [room]);
  useSyncExternalStore(store.subscribe, store.version, store.version);
  return room?.view;
}

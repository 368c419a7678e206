// Waits for what a test is about. Only a hang takes long: the runner's limit ends it.

import type { Gathering } from "../../src/api.js";

/** Resolves once `holds` gives something. It is asked again whenever the room had something to tell. */
export async function until<T>(holds: () => T | undefined | false): Promise<T> {
  for (;;) {
    const found = holds();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** All events of a room, as they come. */
export function record(room: Gathering): { type: string; it: unknown }[] {
  const all: { type: string; it: unknown }[] = [];
  const types = [
    "playerJoined", "playerLeft", "playerLost", "playerBack", "playerData", "message", "bytes", "data", "connectionLost", "reconnecting",
    "reconnected", "hostMigration", "hostChanged", "unreadable", "closed",
  ] as const;
  for (const type of types) room.on(type, (it) => void all.push({ type, it }));
  return all;
}

/** A member of a room of Magpies: the host runs the world, the others see its published state. */

import { float, type Room } from "parlor";
import { readScene, type Scene } from "./game/scene.ts";
import { type Input, isDir, type Value } from "./game/state.ts";
import { World } from "./game/world.ts";

/** The game's name towards the server: that of the terminal's game, so that both meet. */
export const APP = "magpies";

/** What steers a magpie: a person's hands or a bot. `scene` is the newest that is known. */
export type Pilot = (scene: () => Scene, me: number) => Input;

export class Member {
  readonly room: Room;
  readonly #pilot: Pilot;
  /** At the host. */
  #world: World | undefined;

  constructor(room: Room, pilot: Pilot) {
    this.room = room;
    this.#pilot = pilot;
  }

  /** One step of the room. */
  tick(): void {
    const { room } = this;
    const scene = () => this.#world?.scene() ?? readScene(room.entries(""), room.tickNumber);
    room.sendInput(this.#pilot(scene, room.me));
    // Who was the host goes on with another's world if it is the host again.
    if (!room.isHost) this.#world = undefined;
    else this.#world = simulate(room, this.#world);
  }

  /** What is to be drawn. */
  shown(): Scene {
    return readScene(this.room.entries("", { interpolated: true }), this.room.tickNumber);
  }
}

/** The host's part: one step of the world, and its publication. */
function simulate(room: Room, running: World | undefined): World {
  const world = running ?? begin(room);
  const players = new Map([...room.players.values()].map(({ id, name }) => [id as number, shownName(name, id)]));
  for (const id of world.ids) if (!players.has(id)) world.leave(id);
  for (const [id, name] of players) world.join(id, name);
  // `step` counts on by one itself; steps that the room dropped are made up for here.
  world.setTick(room.tickNumber - 1);
  world.step(new Map([...room.inputs()].flatMap(([id, input]) => (isInput(input) ? [[id as number, input]] : []))));
  const { gone, set } = world.publish();
  for (const key of gone) room.delete(key);
  for (const [key, value] of set) room.set(key, onWire(value));
  return world;
}

/** The world of a new room, or of one that another member hosted until now. */
function begin(room: Room): World {
  const [seed] = crypto.getRandomValues(new BigUint64Array(1)) as unknown as [bigint];
  // A magpie that is knocked away or comes in anew must not be smeared across the field.
  room.declare("p/", { snap: ["score", "dash_ready_at"] });
  const entries = room.entries("");
  return entries.length === 0 ? new World(seed) : World.resume(seed, readScene(entries, room.tickNumber));
}

/** Places are numbers with a fraction to the terminal's game, also where they happen to be whole. */
function onWire(value: Value): Value {
  return "x" in value ? { ...value, x: float(value.x), y: float(value.y) } : value;
}

/** Inputs come from other machines. */
function isInput(it: unknown): it is Input {
  if (typeof it !== "object" || it === null) return false;
  const { dir, dash } = it as Record<string, unknown>;
  return isDir(dir) && typeof dash === "boolean";
}

/** A name to show for a player that may have given none. */
export function shownName(name: string, id: number): string {
  return name.trim() === "" ? `player ${id}` : name;
}

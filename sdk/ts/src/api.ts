// What the entries of the package have in common.

import { openAgain, openJoined, openNew } from "./room/open.js";
import type { HostOptions, JoinOptions, Match, MatchOptions, OpenOptions, Room } from "./room/types.js";

export { ParlorError, type ErrorCode } from "./error.js";
export { defineGame, type Game, type GameDefinition, type TypesOf } from "./game/define.js";
export { type, type Shape, type ShapeOf, type StandardSchema, type Typed } from "./game/shape.js";
export type { GameTypes, Key, StateOf, Untyped } from "./game/types.js";
export type { ViaOption } from "./link/dial.js";
export type { WebSocketConstructor, WebSocketLike } from "./link/websocket.js";
export type { TicketStore } from "./page/seat.js";
export { load } from "./room/open.js";
export type {
  AnyMessage,
  Closed,
  Events,
  From,
  Gathering,
  Hints,
  HostOptions,
  JoinOptions,
  Lane,
  Loop,
  Match,
  MatchOptions,
  OpenOptions,
  Player,
  PlayerId,
  Room,
  SendOptions,
  StateUpdate,
  To,
} from "./room/types.js";
export { inviteFrom } from "./server/invite.js";
export { float } from "./float.js";
export type { Data } from "./value/data.js";
export { component, type Component, type ComponentOptions, type Infer, type Interest, near, type OwnDefinition, type Tolerance } from "./world/component.js";
export {
  angle, any, body, type Body, bool, bytes, type Field, floatBits, int, type Interpolation, oneOf, type Quat, type Range, rotation, text,
  transform, type Transform, unitVector, vec2, type Vec2, vec3, type Vec3,
} from "./world/fields.js";
export type { Column, Columns } from "./world/rows.js";
export type { Entity, Past, World } from "./world/types.js";
export type { WorkerLike } from "./worker/channel.js";

/** Opens a room, of which this player is the host. */
export async function host(app: string, options: HostOptions = {}): Promise<Room> {
  return (await openNew(app, "host", options)) as unknown as Room;
}

/** Joins a room by its code or an invite. */
export async function join(app: string, invite: string | URL, options: JoinOptions = {}): Promise<Room> {
  return (await openJoined(app, invite, options)) as unknown as Room;
}

/** Takes the seat that this tab had before it was reloaded. Undefined if it had none, or another page has it. */
export async function rejoin(app: string, options: OpenOptions = {}): Promise<Room | undefined> {
  return (await openAgain(app, options)) as unknown as Room | undefined;
}

/** Creates a match, which the server runs. */
export async function createMatch(app: string, options: MatchOptions = {}): Promise<Match> {
  return (await openNew(app, "match", options)) as unknown as Match;
}

/** Joins a match by its id. */
export async function joinMatch(app: string, id: string | URL, options: JoinOptions = {}): Promise<Match> {
  return (await openJoined(app, id, options)) as unknown as Match;
}

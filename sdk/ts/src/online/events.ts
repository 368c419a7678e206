// The events of a turn room.

import type { ParlorError } from "../error.js";
import type { Checks, Json, JsonObject, RoomView } from "./operations.js";

/** The events of a turn room, by their names. */
export interface TurnRoomEvents {
  /** The room is connected, for the first time or again. Its view is up to date. */
  connected: { readonly room: string; readonly code?: string };
  /** The connection was lost. It is made again by itself. */
  lost: { readonly why: string };
  /** A player took a seat. */
  playerJoined: { readonly player: string; readonly name: string };
  /** A player left, was kicked, resigned or ran out of time: `how` is the kind of notice, as docs/turn-rooms.md lists them. */
  playerLeft: { readonly player: string; readonly how: string };
  /** The game has begun. */
  gameStarted: Record<never, never>;
  /** A turn has begun; they are counted from 1. */
  turnStarted: { readonly player: string; readonly isMe: boolean; readonly turn: number };
  /** A move waits for the judgement of the other players: `room.validate`. */
  moveProposed: { readonly proposal: number; readonly player: string; readonly kind: string; readonly data: Json };
  /** A move was accepted, and the state has it. */
  moveMade: { readonly player: string; readonly kind: string; readonly data: Json; readonly stateVersion: number };
  /** A move was rejected, by the server or by the other players. `checks` say by which check. */
  moveRejected: { readonly player: string; readonly error: ParlorError; readonly checks?: Checks };
  /** The room was paused, or goes on. Without a player it was the operator. */
  paused: { readonly isPaused: boolean; readonly player?: string };
  /** The game is over. */
  gameOver: { readonly winner?: string; readonly reason: string };
  /** A player said something. Messages of a room are counted from 1. */
  message: { readonly player: string; readonly kind: string; readonly body: Json; readonly number: number };
  /** A player changed the room's name, visibility, admins, metadata or data; `replaces` if the latter two were not merged. */
  updated: { readonly player: string; readonly changed: JsonObject; readonly replaces: boolean };
  /** Something changed that can be read; once a task at most. It is for views: React, Vue, Svelte. */
  changed: { readonly version: number };
  /** The room is closed for this page: the last event. `left` if this page closed it. */
  closed: ParlorError;
}

/** An event of the server with its name. The room itself emits `changed`. */
export type RoomEvent = { [E in keyof Omit<TurnRoomEvents, "changed">]: { type: E; it: TurnRoomEvents[E] } }[keyof Omit<TurnRoomEvents, "changed">];

/** A notice from the server. */
export interface Notice {
  /** Its number in the inbox; missing of a room that is only watched. */
  seq?: number;
  kind: string;
  notice: { room: string; body: JsonObject };
}

/** The event for a notice; undefined if a game has no use for it. */
export function eventOf({ kind, notice: { body } }: Notice, me: string, disputed: (reason: string) => ParlorError): RoomEvent | undefined {
  const text = (field: string): string => (typeof body[field] === "string" ? body[field] : "");
  const count = (field: string): number => (typeof body[field] === "number" ? body[field] : 0);
  const move = { player: text("player"), kind: text("type"), data: body["data"] ?? null };
  switch (kind) {
    case "player_joined":
      return { type: "playerJoined", it: { player: text("player"), name: text("name") } };
    case "player_left":
    case "player_kicked":
    case "player_forfeited":
      return { type: "playerLeft", it: { player: text("player"), how: kind } };
    case "game_started":
      return { type: "gameStarted", it: {} };
    case "turn_started":
      return { type: "turnStarted", it: { player: text("player"), isMe: text("player") === me, turn: count("turn") } };
    case "move_proposed":
      return { type: "moveProposed", it: { proposal: count("proposal"), ...move } };
    case "move_made":
      return { type: "moveMade", it: { ...move, stateVersion: count("state_version") } };
    case "move_rejected":
      return { type: "moveRejected", it: { player: text("player"), error: disputed(text("reason")), ...checked(body["checks"]) } };
    case "room_paused":
    case "room_resumed":
      return { type: "paused", it: { isPaused: kind === "room_paused", ...(text("player") === "" ? {} : { player: text("player") }) } };
    case "game_over":
      return { type: "gameOver", it: over(text("winner"), text("reason")) };
    case "room_updated":
      return { type: "updated", it: { player: text("player"), changed: (body["changed"] ?? {}) as JsonObject, replaces: body["replaces"] === true } };
    case "message":
      return { type: "message", it: { player: text("player"), kind: text("type"), body: body["body"] ?? null, number: count("number") } };
    default:
      // Of all else the view is enough.
      return undefined;
  }
}

/** The event that tells a newcomer how far a game is; undefined before it has begun. */
export function standingOf(view: RoomView, me: string): RoomEvent | undefined {
  if (view.result) return { type: "gameOver", it: over(view.result.winner ?? "", view.result.reason) };
  const player = view.current_player;
  if (!player) return undefined;
  return { type: "turnStarted", it: { player, isMe: player === me, turn: view.turn_count + 1 } };
}

/** The checks of a refused move, if there are any. */
export function checked(checks: unknown): { checks?: Checks } {
  return typeof checks === "object" && checks !== null ? { checks: checks as Checks } : {};
}

function over(winner: string, reason: string): TurnRoomEvents["gameOver"] {
  return winner === "" ? { reason } : { winner, reason };
}

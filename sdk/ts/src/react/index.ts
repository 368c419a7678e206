"use client";

// Rooms in React: `parlor/react`. It imports React alone, and nothing of a room but types.

export { RoomProvider, useRoomContext } from "./context.js";
export { useEvent, useKey, useKeys, usePlayers, useRoomStatus, useTurnRoom } from "./hooks.js";
export type { Openable, RoomError, RoomState } from "./connection.js";
export { useRoom } from "./use-room.js";

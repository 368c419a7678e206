// `parlor/online`: accounts and turn rooms. It needs no WebAssembly.

export { ParlorError, type ErrorCode } from "../error.js";
export {
  type Account, type Criteria, type EnterOptions, type KeptMatch, type LiveMatchInfo, type LogEntry, type MatchFilter, type RoomSummary, signIn,
  type SignInOptions, type TurnConfig,
} from "./account.js";
export type { Board, BoardEntry, BoardInfo, BoardPage, BoardSeason, Score, Submitted } from "./boards.js";
export type { News } from "./connection.js";
export type { TurnRoomEvents } from "./events.js";
export type { Config, Json, JsonObject, Operations, Phase } from "./operations.js";
export type { GameEvent, RoomMessage, RoomView, Subscription, TurnRoom } from "./room.js";
export { currentSave, type SaveInfo, type SaveOptions, type Saved, type Saves, type WholeSave } from "./saves.js";
export type { How } from "./sign-in.js";
export type { KeyValue } from "./store.js";

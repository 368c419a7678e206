// The room of a part of the page, for components that are not passed it.

import { createContext, createElement, type FunctionComponentElement, type ProviderProps, type ReactNode, useContext } from "react";
import type { GameTypes, Untyped } from "../game/types.js";
import type { Gathering, Room } from "../room/types.js";

export const RoomContext = createContext<unknown>(undefined);

/** Gives the components in it a room or a match; `undefined` while it is not open. */
export function RoomProvider(props: { readonly room: object | undefined; readonly children?: ReactNode }): FunctionComponentElement<ProviderProps<unknown>> {
  return createElement(RoomContext.Provider, { value: props.room }, props.children);
}

/** The room of the nearest `RoomProvider`: undefined while it is not open, or where there is none. `R` is a claim. */
export function useRoomContext<R extends Gathering<GameTypes> = Room<Untyped>>(): R | undefined {
  return useContext(RoomContext) as R | undefined;
}

// Types of a game: what its state, inputs and messages are, and what follows for the calls of a room.

import type { Data } from "../value/data.js";

/** The types of a game, as `defineGame` infers them. */
export interface GameTypes {
  /** By pattern of the key: `"round"`, or `"tank/*"`. */
  state: { [pattern: string]: unknown };
  input: unknown;
  messages: { [kind: string]: unknown };
  actions: { [name: string]: unknown };
}

/** A game that says nothing of its types: calls take them as an argument, `room.get<Tank>("tank/1")`. */
export interface Untyped extends GameTypes {
  untyped: true;
  state: { "*": Data };
  input: Data;
  messages: { [kind: string]: Data };
  actions: { [name: string]: Data };
}

/** The keys that a pattern stands for. */
export type KeysOf<Pattern extends string> = Pattern extends `${infer Before}*${infer After}`
  ? `${Before}${string}${After}`
  : Pattern;

type Patterns<G extends GameTypes> = keyof G["state"] & string;

/** A key of the game's state. */
export type Key<G extends GameTypes> = KeysOf<Patterns<G>>;

/** What stands under a key. */
export type StateOf<G extends GameTypes, K extends string> = {
  [P in Patterns<G>]: K extends KeysOf<P> ? G["state"][P] : never;
}[Patterns<G>];

/** What stands under the keys that begin with a prefix. */
export type StateUnder<G extends GameTypes, Prefix extends string> = {
  [P in Patterns<G>]: KeysOf<P> extends `${Prefix}${string}`
    ? G["state"][P]
    : `${Prefix}${string}` extends KeysOf<P>
      ? G["state"][P]
      : never;
}[Patterns<G>];

/** A prefix under which there may be keys. */
export type PrefixOf<G extends GameTypes, Prefix extends string> = [StateUnder<G, Prefix>] extends [never] ? never : Prefix;

/** A kind of message. */
export type Kind<G extends GameTypes> = keyof G["messages"] & string;

/** What an untyped room may be told to read. A typed one knows. */
export type Claim<G extends GameTypes> = G extends { untyped: true } ? unknown : never;

/** What is read: the claimed type, or the known one. */
export type Read<T, Known> = [T] extends [never] ? Known : T;

/** What may be written. An untyped room takes all, and says at run time what cannot travel. */
export type Write<G extends GameTypes, Known> = G extends { untyped: true } ? unknown : Known;

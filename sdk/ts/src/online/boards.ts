// Boards: scores, ranks and pages for an account.

import { camel, type Camel } from "./camel.js";
import { given } from "./given.js";
import type { JsonObject, Operations } from "./operations.js";
import { randomId, type Repeater } from "./repeat.js";

/** A score with what belongs to it. */
export interface Score {
  /** The score; on a board of sums, what is added. */
  score: number;
  /** Decides between equal scores. Default: 0. */
  sub?: number;
  /** Data to show with the score, up to 1 KiB. */
  extra?: JsonObject;
  /** Names the submission: one that is sent again with the same id counts once. Default: a random one. */
  id?: string;
  /** What the game's own service signed: with it a player submits to a board that the service writes. Good once, for exactly this score. */
  receipt?: string;
}

/** What a score has made of the player's entry. */
export type Submitted = Camel<Operations["board.submit"]["out"]>;
/** Entries of a board, the best first. */
export type BoardPage = Camel<Operations["board.top"]["out"]>;
/** An entry of a board. */
export type BoardEntry = BoardPage["entries"][number];
/** A board on a list. */
export type BoardInfo = Camel<Operations["board.list"]["out"]["boards"][number]>;
/** A season of a board: its beginning in milliseconds since 1970, or 0, and the number of its entries. */
export type BoardSeason = Camel<Operations["board.seasons"]["out"]["seasons"][number]>;

/** A board of the account's game. */
export interface Board {
  readonly name: string;
  /** Submits a score. If its answer is lost, it is sent again, and counts once. Those of an account go one after another. */
  submit(score: number | Score): Promise<Submitted>;
  /** Up to 100 entries from a position on; the best entry has position 1. */
  top(options?: { from?: number; count?: number }): Promise<BoardPage>;
  /** Up to 100 entries with the player's own in their middle. Rejects with `no_such_entry` without one. */
  around(options?: { count?: number }): Promise<BoardPage>;
  /** The entries of up to 100 accounts, such as friends. Those without an entry are left out. */
  of(accounts: readonly string[]): Promise<BoardPage>;
  /** The player's own entry and those of its friends: up to 100, with their ranks among all. */
  friends(): Promise<BoardPage>;
  /** The seasons that have or had entries, the newest first. */
  seasons(): Promise<readonly BoardSeason[]>;
  /** The same board in a past season. Scores still count in the current one. */
  season(season: number): Board;
  /** Removes the player's own entry from a board to which players submit. */
  remove(): Promise<void>;
}

/** Asks for an operation, as `Account.call` does. */
export type Call = <O extends keyof Operations>(op: O, input: Operations[O]["in"]) => Promise<Operations[O]["out"]>;

export class BoardImpl implements Board {
  readonly #call: Call;
  readonly #repeater: Repeater;
  readonly #where: { board: string; season?: number };

  constructor(call: Call, repeater: Repeater, readonly name: string, season?: number) {
    this.#call = call;
    this.#repeater = repeater;
    this.#where = season === undefined ? { board: name } : { board: name, season };
  }

  async submit(score: number | Score): Promise<Submitted> {
    const { id = randomId(), ...rest } = typeof score === "number" ? { score } : score;
    const input = { board: this.name, id, ...given({ ...rest }) } as Operations["board.submit"]["in"];
    return camel(await this.#repeater.send(() => this.#call("board.submit", input)));
  }

  async top({ from, count }: { from?: number; count?: number } = {}): Promise<BoardPage> {
    return camel(await this.#call("board.top", { ...this.#where, ...given({ from, count }) }));
  }

  async around({ count }: { count?: number } = {}): Promise<BoardPage> {
    return camel(await this.#call("board.around", { ...this.#where, ...given({ count }) }));
  }

  async of(accounts: readonly string[]): Promise<BoardPage> {
    return camel(await this.#call("board.of", { ...this.#where, accounts: [...accounts] }));
  }

  async friends(): Promise<BoardPage> {
    return camel(await this.#call("board.friends", { ...this.#where }));
  }

  async seasons(): Promise<readonly BoardSeason[]> {
    return camel((await this.#call("board.seasons", { board: this.name })).seasons);
  }

  season(season: number): Board {
    return new BoardImpl(this.#call, this.#repeater, this.name, season);
  }

  async remove(): Promise<void> {
    await this.#call("board.remove", this.#where);
  }
}

/** One game on the page: what the room says is shown, and what the player chooses is sent. */

import type { JsonObject, TurnRoom } from "parlor/online";
import { InviteDialog } from "../../shared/invite.ts";
import { byId, setText } from "../../shared/page.ts";
import { after, BEGIN, type Move, notation, type Side } from "./board.ts";
import { moveBetween, Table, takenOf } from "./table.ts";
import { told } from "./told.ts";

/** The state of a room with the rules `draughts`. */
export interface State {
  board: string;
  turn: Side;
  black: string;
  white: string;
}

/** How the game was left. */
export type Left = "again" | "left" | Error;

const NOTICE_MS = 4_000;

export class Game {
  readonly #room: TurnRoom<State>;
  readonly #over = new AbortController();
  readonly #table: Table;
  readonly #dialog: InviteDialog;
  #left!: (how: Left) => void;
  /** The own move that is under way. */
  #sent: Move | undefined;
  /** The board that was shown last, and the move that led to it. */
  #board = "";
  #last: readonly number[] = [];
  #noticeUntil: ReturnType<typeof setTimeout> | undefined;

  constructor(room: TurnRoom<State>) {
    this.#room = room;
    const { signal } = this.#over;
    this.#table = new Table((move) => void this.#move(move), signal);
    this.#dialog = new InviteDialog({
      title: "Draughts",
      command: (code) => `parlor draughts --join ${code}`,
      localHint: "This link works on this machine only. For others, open this page by an address of the network.",
    }, signal);
  }

  /** Plays until the player leaves, or the room is closed. */
  async play(): Promise<Left> {
    const room = this.#room;
    const { signal } = this.#over;
    const left = new Promise<Left>((resolve) => (this.#left = resolve));
    room.on("changed", () => this.#show(), { signal });
    room.on("playerJoined", ({ name }) => this.#notice(`${name} is here`), { signal });
    room.on("playerLeft", ({ player, how }) => {
      if (player !== room.me) this.#notice(`${this.#nameOf(player)} ${how === "player_forfeited" ? "gave up" : "has left"}`);
    }, { signal });
    room.on("closed", (why) => this.#left(why), { signal });
    byId("invite").addEventListener("click", () => void this.#invite(), { signal });
    byId("leave").addEventListener("click", () => this.#left("left"), { signal });
    byId("resign").addEventListener("click", () => void this.#resign(), { signal });
    byId("banner-go").addEventListener("click", () => (room.phase === "ended" ? this.#left("again") : void this.#invite()), { signal });
    byId("moves").replaceChildren();
    this.#wrong(undefined);
    this.#show();
    const how = await left;
    this.#over.abort();
    this.#dialog.close();
    room.close();
    return how;
  }

  async #move(move: Move): Promise<void> {
    this.#sent = move;
    this.#wrong(undefined);
    this.#show();
    try {
      await this.#room.move("move", { path: [...move.path] });
    } catch (error) {
      this.#wrong(told(error));
    }
    this.#sent = undefined;
    this.#show();
  }

  async #resign(): Promise<void> {
    if (this.#room.phase !== "playing") return;
    if (!confirm("Give this game up?")) return;
    await this.#room.resign().catch((error: unknown) => this.#wrong(told(error)));
    this.#show();
  }

  async #invite(): Promise<void> {
    const { code } = this.#room;
    if (code !== undefined) await this.#dialog.show({ code, inviteUrl: () => new URL(`/draughts?join=${code}`, location.href).href });
  }

  #show(): void {
    const room = this.#room;
    const { phase } = room;
    const state = phase === "waiting" ? undefined : room.state;
    const own: Side = state?.white === room.me ? "white" : "black";
    const sent = this.#sent !== undefined && state !== undefined && room.view.currentPlayer === room.me ? this.#sent : undefined;
    const stands = state?.board ?? BEGIN;
    const board = sent === undefined ? stands : after(stands, sent);
    this.#record(board, own, state?.turn);
    const mover = room.myTurn && this.#sent === undefined && room.isConnected ? own : undefined;
    this.#table.show({ board, own, mover, last: this.#last });
    this.#seats(board, own, state);
    setText(byId("turn"), this.#turn());
    setText(byId("code"), room.code ?? "");
    byId("invite").hidden = phase !== "waiting";
    byId("resign").hidden = phase !== "playing";
    this.#banner();
  }

  /** Writes the move down that led to this board. */
  #record(board: string, own: Side, turn: Side | undefined): void {
    if (board === this.#board) return;
    const made = this.#board === "" ? undefined : moveBetween(this.#board, board);
    this.#board = board;
    this.#last = made?.path ?? [];
    if (made === undefined || turn === undefined) return;
    const item = document.createElement("li");
    item.textContent = notation(made);
    // The board knows whose piece it is that moved.
    const isBlack = board[made.path.at(-1)! - 1]!.toLowerCase() === "b";
    if (isBlack === (own === "black")) item.className = "mine";
    byId("moves").append(item);
    item.scrollIntoView({ block: "nearest" });
  }

  #seats(board: string, own: Side, state: State | undefined): void {
    const other: Side = own === "black" ? "white" : "black";
    for (const [id, side, player] of [["own", own, this.#room.me], ["other", other, state?.[other]]] as const) {
      const seat = byId(id);
      const waits = this.#room.phase === "playing" && this.#room.view.currentPlayer === player;
      seat.className = waits ? "seat on" : "seat";
      seat.querySelector("i")!.className = side;
      setText(seat.querySelector<HTMLElement>(".name")!, player === undefined ? "nobody yet" : this.#nameOf(player));
      const lost = takenOf(board, side);
      setText(seat.querySelector<HTMLElement>(".taken")!, lost === 0 ? "" : `${lost} taken`);
    }
  }

  #turn(): string {
    const room = this.#room;
    if (room.phase === "ended") return "The game is over";
    if (!room.isConnected) return "No connection. It is made again by itself.";
    if (room.phase === "waiting") return "Waiting for an opponent";
    if (this.#sent !== undefined) return "Sending your move";
    return room.myTurn ? "Your move" : `${this.#nameOf(room.view.currentPlayer ?? "")} is thinking`;
  }

  #banner(): void {
    const { phase, view, me } = this.#room;
    const { result } = view;
    byId("banner").hidden = phase === "playing";
    if (phase === "waiting") {
      setText(byId("banner-text"), "Waiting for an opponent.\nSend somebody the link.");
      setText(byId("banner-go"), "Invite");
    } else if (result) {
      const won = result.winner === null ? "A draw" : result.winner === me ? "You won" : `${this.#nameOf(result.winner)} won`;
      const loser = result.winner === me ? "the other one" : "you";
      setText(byId("banner-text"), `${won}${(REASONS[result.reason] ?? "").replace("LOSER", loser)}.`);
      setText(byId("banner-go"), "New game");
    }
  }

  #nameOf(player: string): string {
    const name = this.#room.view.players.find(({ id }) => id === player)?.name ?? "Your opponent";
    return player === this.#room.me ? `${name} (you)` : name;
  }

  #wrong(text: string | undefined): void {
    setText(byId("wrong"), text ?? "");
    byId("wrong").hidden = text === undefined;
  }

  #notice(text: string): void {
    const notice = byId("notice");
    setText(notice, text);
    notice.classList.add("on");
    clearTimeout(this.#noticeUntil);
    this.#noticeUntil = setTimeout(() => notice.classList.remove("on"), NOTICE_MS);
  }
}

/** Why a game is over, by the words of docs/turn-rooms.md. */
const REASONS: Record<string, string> = {
  no_moves_left: ": no moves were left",
  draw_without_progress: ": 80 moves without progress",
  resignation: ": LOSER gave up",
  player_left: ": LOSER left",
  abandoned: ": nobody was left",
};

/** The state of a waiting room is not one of the game. */
export function isGame(room: TurnRoom<State> | TurnRoom<JsonObject>): boolean {
  return room.view.rules === "draughts";
}

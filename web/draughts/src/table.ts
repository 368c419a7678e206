/** The board on the page: pieces, legal moves to choose from by mouse, finger or keyboard, and the last move. */

import { byId } from "../../shared/page.ts";
import { after, isKing, type Move, movesOf, place, type Side, sideAt, squareAt, SQUARES } from "./board.ts";

/** What the table shows. */
export interface Position {
  board: string;
  /** The side at the bottom. */
  own: Side;
  /** Whose moves may be chosen; undefined for nobody's. */
  mover: Side | undefined;
  /** The squares of the last move. */
  last: readonly number[];
}

const CROWN = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M3 8l4.5 4L12 4l4.5 8L21 8l-2 11H5z"/></svg>';
const SLIDE_MS = 180;
/** How pieces look on this board. */
const COLOUR: Record<Side, string> = { black: "red", white: "white" };

export class Table {
  readonly #board = byId("board");
  readonly #squares = new Map<number, HTMLButtonElement>();
  readonly #made: (move: Move) => void;
  #position: Position | undefined;
  #moves: Move[] = [];
  /** The squares that were chosen so far. */
  #path: number[] = [];
  #focus = 1;

  constructor(made: (move: Move) => void, signal: AbortSignal) {
    this.#made = made;
    this.#board.addEventListener("click", ({ target }) => {
      const square = (target as Element).closest<HTMLButtonElement>(".square")?.dataset.square;
      if (square !== undefined) this.#choose(Number(square));
    }, { signal });
    this.#board.addEventListener("keydown", (event) => this.#key(event), { signal });
  }

  show(position: Position): void {
    const before = this.#position;
    if (before?.own !== position.own) this.#lay(position.own);
    this.#position = position;
    const isNew = before === undefined || before.board !== position.board || before.mover !== position.mover;
    if (isNew) {
      this.#path = [];
      this.#moves = position.mover === undefined ? [] : movesOf(position.board, position.mover);
    }
    this.#draw();
    if (before !== undefined && before.board !== position.board && before.own === position.own) this.#slide(position.last);
  }

  /** Lays the squares, with the own side below. */
  #lay(own: Side): void {
    this.#squares.clear();
    const rows = Array.from({ length: 8 }, (_, y) => {
      const row = document.createElement("div");
      row.setAttribute("role", "row");
      row.append(...Array.from({ length: 8 }, (_, x) => this.#cell(own === "white" ? y : 7 - y, own === "white" ? x : 7 - x)));
      return row;
    });
    this.#board.replaceChildren(...rows);
    this.#focus = own === "white" ? 24 : 9;
  }

  #cell(row: number, column: number): HTMLElement {
    const square = squareAt(row, column);
    const cell = document.createElement(square === undefined ? "span" : "button");
    cell.className = square === undefined ? "light" : "square";
    cell.setAttribute("role", "gridcell");
    if (square !== undefined) {
      cell.dataset.square = String(square);
      this.#squares.set(square, cell as HTMLButtonElement);
    }
    return cell;
  }

  /** The moves that begin as was chosen. */
  #open(): Move[] {
    return this.#moves.filter(({ path }) => this.#path.every((square, at) => path[at] === square));
  }

  /** Where the chosen piece may be sent: the next square, and the last one of a move that no other shares. */
  #targets(): Set<number> {
    const open = this.#path.length === 0 ? [] : this.#open();
    const ends = open.filter(({ path }) => open.filter((other) => other.path.at(-1) === path.at(-1)).length === 1);
    return new Set([...open.map(({ path }) => path[this.#path.length]!), ...ends.map(({ path }) => path.at(-1)!)]);
  }

  #choose(square: number): void {
    this.#focus = square;
    if (this.#path.length > 0 && this.#targets().has(square)) {
      const open = this.#open();
      const ends = open.filter(({ path }) => path.at(-1) === square);
      const next = open.filter(({ path }) => path[this.#path.length] === square);
      const whole = ends.length === 1 ? ends[0] : next.length === 1 && next[0]!.path.length === this.#path.length + 1 ? next[0] : undefined;
      if (whole !== undefined) {
        this.#path = [];
        this.#moves = [];
        return this.#made(whole);
      }
      this.#path.push(square);
    } else {
      this.#path = this.#moves.some(({ path }) => path[0] === square) && this.#path[0] !== square ? [square] : [];
    }
    this.#draw();
  }

  #key(event: KeyboardEvent): void {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") this.#path = [];
    else if (step === undefined || this.#position === undefined) return;
    else {
      const turned = this.#position.own === "white" ? 1 : -1;
      const { row, column } = place(this.#focus);
      const [down, right] = [step[0]! * turned, step[1]! * turned];
      // Rows have their dark squares at odd or even columns; sideways the next one is two columns away.
      const to = right === 0 ? (squareAt(row + down, column + 1) ?? squareAt(row + down, column - 1)) : squareAt(row, column + 2 * right);
      if (to !== undefined) this.#focus = to;
    }
    event.preventDefault();
    this.#draw();
    this.#squares.get(this.#focus)?.focus();
  }

  #draw(): void {
    const { board, last } = this.#position!;
    const targets = this.#targets();
    for (const [square, cell] of this.#squares) {
      const side = sideAt(board, square);
      const isMovable = this.#moves.some(({ path }) => path[0] === square);
      const classes = ["square"];
      if (last.includes(square)) classes.push("last");
      if (isMovable && this.#path.length === 0) classes.push("movable");
      if (this.#path[0] === square) classes.push("chosen");
      if (targets.has(square) || this.#path.slice(1).includes(square)) classes.push("target");
      cell.className = classes.join(" ");
      cell.tabIndex = square === this.#focus ? 0 : -1;
      const king = side !== undefined && isKing(board, square);
      const shown = `${side ?? ""}${king}`;
      if (cell.dataset.shown !== shown) {
        cell.dataset.shown = shown;
        cell.innerHTML = `<span class="number">${square}</span>${side === undefined ? "" : `<span class="piece ${side}">${king ? CROWN : ""}</span>`}`;
      }
      const piece = side === undefined ? "empty" : `${COLOUR[side]} ${king ? "king" : "man"}`;
      const may = targets.has(square) ? ", may go here" : this.#path[0] === square ? ", chosen" : isMovable ? ", may move" : "";
      cell.setAttribute("aria-label", `${square}: ${piece}${may}`);
    }
  }

  /** Lets the piece that moved come along its path. */
  #slide(path: readonly number[]): void {
    const piece = this.#squares.get(path.at(-1) ?? 0)?.querySelector<HTMLElement>(".piece");
    if (!piece || path.length < 2 || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const to = piece.getBoundingClientRect();
    const frames = path.map((square) => {
      const at = this.#squares.get(square)!.getBoundingClientRect();
      const [x, y] = [at.x + at.width / 2 - to.x - to.width / 2, at.y + at.height / 2 - to.y - to.height / 2];
      return { transform: `translate(${x}px, ${y}px)` };
    });
    piece.animate(frames, { duration: SLIDE_MS * (path.length - 1), easing: "ease-out" });
  }
}

/** The move that leads from one board to another. */
export function moveBetween(before: string, now: string): Move | undefined {
  const moves = [...movesOf(before, "black"), ...movesOf(before, "white")];
  return moves.find((move) => after(before, move) === now);
}

/** How many pieces of a side are off the board. */
export function takenOf(board: string, side: Side): number {
  const left = Array.from({ length: SQUARES }, (_, index) => index + 1).filter((square) => sideAt(board, square) === side).length;
  return 12 - left;
}

/**
 * English draughts, as the server judges it (crates/turn/src/draughts.rs): what a player may do. Squares have the numbers
 * 1 to 32, the dark ones, row by row from Black's side. A board is a letter for each: `b` `w` men, `B` `W` kings, `.` empty.
 */

export type Side = "black" | "white";

/** A legal move: the square where it begins and each one that it comes to, and what it takes. */
export interface Move {
  readonly path: readonly number[];
  readonly takes: readonly number[];
}

export const SQUARES = 32;
export const BEGIN = `${"b".repeat(12)}${".".repeat(8)}${"w".repeat(12)}`;

/** Row and column of a square. Dark squares begin at column 1 in even rows and at 0 in odd ones. */
export function place(square: number): { row: number; column: number } {
  const row = Math.floor((square - 1) / 4);
  return { row, column: 2 * ((square - 1) % 4) + (1 - (row % 2)) };
}

/** The square at a row and a column; undefined beside the board and for light ones. */
export function squareAt(row: number, column: number): number | undefined {
  const isDark = row >= 0 && row < 8 && column >= 0 && column < 8 && (row + column) % 2 === 1;
  return isDark ? row * 4 + Math.floor(column / 2) + 1 : undefined;
}

/** Whose piece stands there. */
export function sideAt(board: string, square: number): Side | undefined {
  const letter = board[square - 1]?.toLowerCase();
  return letter === "b" ? "black" : letter === "w" ? "white" : undefined;
}

export function isKing(board: string, square: number): boolean {
  return "BW".includes(board[square - 1] ?? " ");
}

/** All moves of a side. Who can take must, so other moves are left out then. None: the side has lost. */
export function movesOf(board: string, side: Side): Move[] {
  const own = Array.from({ length: SQUARES }, (_, index) => index + 1).filter((square) => sideAt(board, square) === side);
  const captures = own.flatMap((from) => capturesFrom(board, { path: [from], takes: [] }));
  if (captures.length > 0) return captures;
  return own.flatMap((from) =>
    directions(board, from).flatMap((way) => {
      const to = beside(from, way);
      return to !== undefined && sideAt(board, to) === undefined ? [{ path: [from, to], takes: [] }] : [];
    }),
  );
}

/** The board after a legal move. */
export function after(board: string, { path, takes }: Move): string {
  const [from, to] = [path[0]!, path.at(-1)!];
  const letters = [...board];
  const letter = letters[from - 1]!;
  for (const square of [from, ...takes]) letters[square - 1] = ".";
  const crownRow = letter === "b" ? 7 : 0;
  letters[to - 1] = place(to).row === crownRow ? letter.toUpperCase() : letter;
  return letters.join("");
}

/** In the usual notation: `11-15`, and `22x15x8` for captures. */
export function notation({ path, takes }: Move): string {
  return path.join(takes.length === 0 ? "-" : "x");
}

type Way = readonly [rows: number, columns: number];

function directions(board: string, square: number): Way[] {
  const forward = sideAt(board, square) === "black" ? 1 : -1;
  const rows = isKing(board, square) ? [forward, -forward] : [forward];
  return rows.flatMap((row): Way[] => [[row, -1], [row, 1]]);
}

function beside(square: number, [rows, columns]: Way): number | undefined {
  const { row, column } = place(square);
  return squareAt(row + rows, column + columns);
}

/** A capture must be finished. The piece keeps its rank until then, so a man that is crowned stops there. */
function capturesFrom(board: string, begun: Move): Move[] {
  const { path, takes } = begun;
  const from = path[0]!;
  const found = directions(board, from).flatMap((way) => {
    const over = beside(path.at(-1)!, way);
    const to = over === undefined ? undefined : beside(over, way);
    if (over === undefined || to === undefined || takes.includes(over)) return [];
    const side = sideAt(board, over);
    const isPrey = side !== undefined && side !== sideAt(board, from);
    const isFree = sideAt(board, to) === undefined || to === from;
    return isPrey && isFree ? capturesFrom(board, { path: [...path, to], takes: [...takes, over] }) : [];
  });
  return found.length > 0 || takes.length === 0 ? found : [begun];
}

import { describe, expect, it } from "vitest";
import { after, BEGIN, movesOf, notation, type Side } from "../src/board.ts";

const empty = ".".repeat(32);
const put = (pieces: Record<number, string>) => [...empty].map((dot, index) => pieces[index + 1] ?? dot).join("");
const names = (board: string, side: Side) => movesOf(board, side).map(notation).sort();

/** How many games of so many moves there are. */
function games(board: string, side: Side, moves: number): number {
  const all = movesOf(board, side);
  if (moves === 1) return all.length;
  return all.reduce((sum, move) => sum + games(after(board, move), side === "black" ? "white" : "black", moves - 1), 0);
}

describe("the rules", () => {
  it("allow as many games as is known of English draughts", () => {
    expect([1, 2, 3, 4, 5].map((moves) => games(BEGIN, "black", moves))).toEqual([7, 49, 302, 1_469, 7_361]);
  }, 60_000);

  it("make captures compulsory, and have them finished", () => {
    const board = put({ 11: "b", 15: "w", 22: "w", 1: "b" });
    expect(names(board, "black")).toEqual(["11x18x25"]);
    expect(after(board, movesOf(board, "black")[0]!)).toBe(put({ 25: "b", 1: "b" }));
  });

  it("let a man that is crowned stop, and a king go back", () => {
    const crowned = put({ 22: "b", 26: "w", 27: "w" });
    expect(names(crowned, "black")).toEqual(["22x31"]);
    const board = after(crowned, movesOf(crowned, "black")[0]!);
    expect(board).toBe(put({ 31: "B", 27: "w" }));
    expect(names(board, "black")).toEqual(["31x24"]);
  });

  it("let a king come back to where it began, and take nobody twice", () => {
    const board = put({ 22: "W", 17: "b", 9: "b", 10: "b", 18: "b" });
    expect(names(board, "white")).toEqual(["22x13x6x15x22", "22x15x6x13x22"]);
  });

  it("end with who has no move", () => {
    expect(movesOf(put({ 13: "w", 9: "b", 6: "b" }), "white")).toEqual([]);
    expect(movesOf(put({ 5: "b" }), "white")).toEqual([]);
  });
});

// Four: four in a row, in a turn room. The server keeps the room and whose turn it is; players move when they have time, also
// after days, with another browser session, or after the server was started anew.
//
// A move brings the board that it makes, as the server does not know the game. A server with a rule set would judge it.

import { type JsonObject, signIn, type TurnRoom } from "parlor/online";

/** The address of the server: examples/play.mjs fills it in. */
declare const SERVER: string;

const COLUMNS = 7;
const ROWS = 6;
const COLOURS: Record<string, string> = { a: "#e2533f", b: "#f2b632", ".": "#0000" };

/** The board from the top left, row by row: a disc of the first or the second player, or none. */
type Four = { cells: string };

/** The board after a disc fell into a column, and its cell; undefined if the column is full. */
function drop(cells: string, column: number, disc: string): { cells: string; cell: number } | undefined {
  for (let cell = (ROWS - 1) * COLUMNS + column; cell >= 0; cell -= COLUMNS) {
    if (cells[cell] === ".") return { cells: cells.slice(0, cell) + disc + cells.slice(cell + 1), cell };
  }
  return undefined;
}

/** Whether the disc in a cell is one of four in a row. */
function wins(cells: string, cell: number): boolean {
  const [x, y] = [cell % COLUMNS, Math.floor(cell / COLUMNS)];
  const isEqual = (x: number, y: number) => x >= 0 && x < COLUMNS && y >= 0 && y < ROWS && cells[y * COLUMNS + x] === cells[cell];
  const reach = (dx: number, dy: number): number => {
    let steps = 0;
    while (isEqual(x + (steps + 1) * dx, y + (steps + 1) * dy)) steps += 1;
    return steps;
  };
  const lines = [[1, 0], [0, 1], [1, 1], [1, -1]] as const;
  return lines.some(([dx, dy]) => reach(dx, dy) + reach(-dx, -dy) >= 3);
}

const canvas = document.querySelector("canvas")!;
const pen = canvas.getContext("2d")!;
const element = (id: string) => document.getElementById(id)!;
const say = (text: string) => void (element("status").textContent = text);
const page = new URL(location.href);
// Two tabs are two players if they have two names.
const name = page.searchParams.get("name") ?? "player";
const key = (text: string) => `${name} ${text}`;
const store = {
  get: (text: string) => localStorage.getItem(key(text)),
  set: (text: string, value: string) => localStorage.setItem(key(text), value),
  remove: (text: string) => localStorage.removeItem(key(text)),
};

const me = await signIn(SERVER, { app: "four", name, store });
const code = page.searchParams.get("join");
const room: TurnRoom<Four> = code
  ? await me.join<Four>(code)
  : await me.joinOrCreate<Four>({
      config: {
        players: { min: 2, max: 2 },
        turn_based: true,
        turn_timeout_ms: 3 * 24 * 60 * 60 * 1_000,
        moves: { playing: { drop: { required_fields: ["column"] } } },
        state: { cells: ".".repeat(COLUMNS * ROWS) },
      },
    });

/** The disc of a player: who has the first turn has the first one. */
const disc = (player: string) => (room.view.turnOrder[0] === player ? "a" : "b");

async function move(column: number): Promise<void> {
  const dropped = drop(room.state.cells, column, disc(room.me));
  if (!room.myTurn || dropped === undefined) return;
  const { cells, cell } = dropped;
  const board: JsonObject = { cells };
  if (wins(cells, cell)) Object.assign(board, { isGameOver: true, winner: room.me, endReason: "four in a row" });
  else if (!cells.includes(".")) Object.assign(board, { isGameOver: true, endReason: "the board is full" });
  await room.move("drop", { column }, board).catch((why: Error) => say(why.message));
}

function show(): void {
  const { phase, players, result } = room.view;
  const other = players.find(({ id }) => id !== room.me)?.name ?? "the other player";
  if (phase === "waiting") say("Waiting for another player.");
  else if (result) say(`${result.winner === room.me ? "You win" : result.winner ? "You lose" : "A draw"}: ${result.reason}.`);
  else say(room.myTurn ? "Your turn: choose a column." : `${other} moves.`);
  canvas.dataset["disc"] = phase === "waiting" ? "" : disc(room.me);
  pen.fillStyle = "#2b5fb3";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  [...room.state.cells].forEach((cell, i) => {
    const [x, y] = [50 + 100 * (i % COLUMNS), 50 + 100 * Math.floor(i / COLUMNS)];
    for (const [radius, fill] of [[42, "#17386b"], [40, COLOURS[cell]!]] as const) {
      pen.fillStyle = fill;
      pen.beginPath();
      pen.arc(x, y, radius, 0, 2 * Math.PI);
      pen.fill();
    }
  });
  const again = Object.assign(document.createElement("a"), { href: `?name=${encodeURIComponent(name)}`, textContent: "Another game" });
  const link = Object.assign(document.createElement("a"), { href: `?join=${room.code}&name=friend`, textContent: "The link for the other player" });
  element("more").replaceChildren(...(phase === "ended" ? [again] : phase === "waiting" ? [link] : []));
}

canvas.addEventListener("click", ({ offsetX }) => void move(Math.floor((offsetX / canvas.clientWidth) * COLUMNS)));
addEventListener("keydown", ({ key }) => key >= "1" && key <= "7" && void move(Number(key) - 1));
room.on("changed", show);
room.on("lost", ({ why }) => say(`${why}; it comes back by itself`));
show();

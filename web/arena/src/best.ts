/** The best players of this server: a page submits its player's own hits to a board, and shows the first of it. */

import type { Board, BoardEntry } from "parlor/online";

const BOARD = "hits";
const SHOWN = 5;
/** Least time between two submissions: hits come faster. */
const EVERY_MS = 5_000;

/** What it needs of a board. */
type Hits = Pick<Board, "submit" | "top">;

export class Best {
  readonly #list: HTMLElement;
  readonly #open: () => Promise<Hits>;
  #board: Promise<Hits> | undefined;
  #most = 0;
  #nextAt = 0;
  #isOver = false;

  constructor(list: HTMLElement, open: () => Promise<Hits>) {
    this.#list = list;
    this.#open = open;
  }

  /** Submits the hits of the present game, if they are more than before. Nobody who hits nothing has an account. */
  note(hits: number, nowMs: number): void {
    if (this.#isOver || hits <= this.#most || nowMs < this.#nextAt) return;
    this.#most = hits;
    this.#nextAt = nowMs + EVERY_MS;
    void this.#submit(hits).catch(() => {
      // A server without accounts has no boards, and the arena is played without them.
      this.#isOver = true;
      this.close();
    });
  }

  close(): void {
    this.#isOver = true;
    this.#list.hidden = true;
    this.#list.replaceChildren();
  }

  async #submit(hits: number): Promise<void> {
    const board = await (this.#board ??= this.#open());
    const { rank } = await board.submit(hits);
    const { entries } = await board.top({ count: SHOWN });
    if (!this.#isOver) this.#show(entries, rank);
  }

  #show(entries: readonly BoardEntry[], own: number | null | undefined): void {
    const rows = entries.map(({ rank, score, name }) => {
      const row = document.createElement("li");
      row.className = rank === own ? "me" : "";
      row.append(...[`${rank}.`, name?.trim() || "somebody", `${score}`].map((text) => Object.assign(document.createElement("span"), { textContent: text })));
      return row;
    });
    this.#list.replaceChildren(...rows);
    this.#list.hidden = rows.length === 0;
  }
}

/** The board of the page's own server, for a player of this name. */
export async function board(name: string): Promise<Hits> {
  const { signIn } = await import("parlor/online");
  const account = await signIn(location.origin, { app: "arena", ...(name === "" ? {} : { name }) });
  if (name !== "" && account.name !== name) await account.call("account.rename", { name });
  return account.board(BOARD);
}

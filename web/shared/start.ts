/** The start screen of a realtime game: a name, a new room or one's code, and the room that it leads to. */

import { type Closed, type HostOptions, inviteFrom, type OpenOptions, ParlorError } from "parlor";
import { byId, setText } from "./page.ts";
import { showGames } from "./games.ts";

/** A room as far as the screen knows it. */
export interface Opened {
  readonly code: string;
}

/** A game that is played on a page. */
export interface PlayedGame<R extends Opened> {
  /** Its name, to people. */
  title: string;
  /** The path of its page. */
  path: string;
  /** How it is played, in a sentence; `isTouch` on a screen for fingers. */
  how(isTouch: boolean): string;
  host(options: HostOptions): Promise<R>;
  join(invite: string, options: OpenOptions): Promise<R>;
  rejoin(options: OpenOptions): Promise<R | undefined>;
  /** Draws something behind the screen, until the signal. */
  attract(signal: AbortSignal): void;
  /** Plays until the room is closed. */
  play(room: R): Promise<Closed>;
}

export const isTouch = matchMedia("(pointer: coarse)").matches;

/** The screen of a game. */
export class StartScreen<R extends Opened> {
  readonly #game: PlayedGame<R>;
  readonly #nameField = byId("name", HTMLInputElement);
  readonly #codeField = byId("code-in", HTMLInputElement);
  readonly #go = byId("go", HTMLButtonElement);

  constructor(game: PlayedGame<R>) {
    this.#game = game;
  }

  /** Starts the page: goes back to the seat that this tab had, or asks. */
  async start(): Promise<void> {
    this.#nameField.value = this.#remembered();
    setText(byId("how"), this.#game.how(isTouch));
    showGames(byId("games"), this.#game.path);
    const invite = inviteFrom();
    if (invite !== undefined) {
      const back = await this.#game.rejoin({}).catch(() => undefined);
      if (back) return this.#play(back);
    }
    this.#ask(invite);
  }

  /** Shows the screen until a room is open. */
  #ask(invite: string | undefined, trouble?: string): void {
    const { title, host, join } = this.#game;
    document.body.dataset.stage = "start";
    const over = new AbortController();
    const { signal } = over;
    this.#game.attract(signal);
    setText(byId("trouble"), trouble ?? "");
    byId("trouble").hidden = trouble === undefined;
    const code = invite === undefined ? undefined : (/([A-Z0-9]{4,12})(?:$|[?#])/i.exec(invite)?.[1] ?? "").toUpperCase();
    setText(this.#go, code === undefined ? "Start a game" : `Join game ${code}`);
    const other = byId("other");
    other.replaceChildren(...(code === undefined ? ["or join one"] : [this.#link("Start a game of your own")]));
    byId("join-row").hidden = code !== undefined;
    document.title = title;
    if (!isTouch) this.#nameField.focus();

    const attempt = async (open: (options: { name: string }) => Promise<R>) => {
      const name = this.#nameField.value.trim();
      this.#remember(name);
      const buttons = [...document.querySelectorAll<HTMLButtonElement>("#form button")];
      for (const button of buttons) button.disabled = true;
      byId("trouble").hidden = true;
      try {
        const room = await open({ name });
        over.abort();
        void this.#play(room);
      } catch (error) {
        setText(byId("trouble"), told(error));
        byId("trouble").hidden = false;
      } finally {
        for (const button of buttons) button.disabled = false;
      }
    };
    byId("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const typed = this.#codeField.value.trim();
      if (invite !== undefined) void attempt((options) => join(invite, options));
      else if (typed !== "" && document.activeElement === this.#codeField) void attempt((options) => join(typed, options));
      else void attempt(host);
    }, { signal });
    byId("join").addEventListener("click", () => {
      const typed = this.#codeField.value.trim();
      if (typed === "") this.#codeField.focus();
      else void attempt((options) => join(typed, options));
    }, { signal });
    other.addEventListener("click", (event) => {
      event.preventDefault();
      if (code !== undefined) void attempt(host);
    }, { signal });
  }

  /** Plays in a room until it is closed, then asks again. */
  async #play(room: R): Promise<void> {
    const { title, path, play } = this.#game;
    document.body.dataset.stage = "playing";
    // Whoever copies the address invites to this room.
    history.replaceState(null, "", `/join/${room.code}`);
    document.title = `${title} ${room.code}`;
    const closed = await play(room);
    history.replaceState(null, "", path);
    this.#ask(undefined, closed.code === "left" ? undefined : closed.message);
  }

  #link(text: string): HTMLAnchorElement {
    const anchor = document.createElement("a");
    anchor.href = this.#game.path;
    anchor.textContent = text;
    return anchor;
  }

  #remembered(): string {
    try {
      return localStorage.getItem(NAME_KEY) ?? "";
    } catch {
      return "";
    }
  }

  #remember(name: string): void {
    try {
      localStorage.setItem(NAME_KEY, name);
    } catch {
      // A browser that keeps nothing asks again.
    }
  }
}

/** All pages of a server know a player by one name. */
const NAME_KEY = "parlor/name";

/** What went wrong, in a sentence for a player. */
export function told(error: unknown): string {
  if (error instanceof ParlorError) return error.hint ? `${error.message} ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}

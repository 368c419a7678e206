/** The page: a start screen, and the room that it leads to. */

import { host, inviteFrom, join, ParlorError, rejoin, type Room } from "parlor";
import { attract } from "./attract.ts";
import { Controls } from "./controls.ts";
import { Painter } from "./draw.ts";
import { Hud } from "./hud.ts";
import { APP } from "./member.ts";
import { byId, setText } from "./page.ts";
import { Table } from "./table.ts";

const PLAYERS_MOST = 16;
const NAME_KEY = "magpies/name";

const painter = new Painter(byId("canvas", HTMLCanvasElement));
const hud = new Hud();
const nameField = byId("name", HTMLInputElement);
const codeField = byId("code-in", HTMLInputElement);
const go = byId("go", HTMLButtonElement);
const isTouch = matchMedia("(pointer: coarse)").matches;

/** Starts the page: goes back to the seat that this tab had, or asks. */
export async function start(): Promise<void> {
  nameField.value = remembered();
  setText(byId("how"), isTouch ? "Slide a finger to steer, tap Dash to dash." : "Arrow keys or WASD steer, Space dashes.");
  const invite = inviteFrom();
  if (invite !== undefined) {
    const back = await rejoin(APP).catch(() => undefined);
    if (back) return play(back);
  }
  ask(invite);
}

/** Shows the start screen until a room is open. */
function ask(invite: string | undefined, trouble?: string): void {
  document.body.dataset.stage = "start";
  const over = new AbortController();
  const { signal } = over;
  attract(painter, signal);
  setText(byId("trouble"), trouble ?? "");
  byId("trouble").hidden = trouble === undefined;
  const code = invite === undefined ? undefined : (/([A-Z0-9]{4,12})(?:$|[?#])/i.exec(invite)?.[1] ?? "").toUpperCase();
  setText(go, code === undefined ? "Start a game" : `Join game ${code}`);
  const other = byId("other");
  other.replaceChildren(...(code === undefined ? ["or join one"] : [link("Start a game of your own")]));
  byId("join-row").hidden = code !== undefined;
  if (!isTouch) nameField.focus();

  const attempt = async (open: (options: { name: string; lead: boolean }) => Promise<Room>) => {
    const name = nameField.value.trim();
    remember(name);
    const buttons = [...document.querySelectorAll<HTMLButtonElement>("#form button")];
    for (const button of buttons) button.disabled = true;
    byId("trouble").hidden = true;
    try {
      const room = await open({ name, lead: true });
      over.abort();
      void play(room);
    } catch (error) {
      setText(byId("trouble"), told(error));
      byId("trouble").hidden = false;
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  };
  const begin = () => attempt(({ name }) => host(APP, { name, maxPlayers: PLAYERS_MOST, hostMigration: true }));
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = codeField.value.trim();
    if (invite !== undefined) void attempt((options) => join(APP, invite, options));
    else if (typed !== "" && document.activeElement === codeField) void attempt((options) => join(APP, typed, options));
    else void begin();
  }, { signal });
  byId("join").addEventListener("click", () => {
    const typed = codeField.value.trim();
    if (typed === "") codeField.focus();
    else void attempt((options) => join(APP, typed, options));
  }, { signal });
  other.addEventListener("click", (event) => {
    event.preventDefault();
    if (code !== undefined) void begin();
  }, { signal });
}

/** Plays in a room until it is closed, then asks again. */
async function play(room: Room): Promise<void> {
  document.body.dataset.stage = "playing";
  // Whoever copies the address invites to this room.
  history.replaceState(null, "", `/join/${room.code}`);
  document.title = `Magpies ${room.code}`;
  const table = new Table(room, { painter, controls: new Controls(), hud });
  const closed = await table.end();
  document.title = "Magpies";
  history.replaceState(null, "", "/");
  ask(undefined, closed.code === "left" ? undefined : closed.message);
}

function told(error: unknown): string {
  if (error instanceof ParlorError) return error.hint ? `${error.message} ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}

function link(text: string): HTMLAnchorElement {
  const anchor = document.createElement("a");
  anchor.href = "/";
  anchor.textContent = text;
  return anchor;
}

function remembered(): string {
  try {
    return localStorage.getItem(NAME_KEY) ?? "";
  } catch {
    return "";
  }
}

function remember(name: string): void {
  try {
    localStorage.setItem(NAME_KEY, name);
  } catch {
    // A browser that keeps nothing asks again.
  }
}

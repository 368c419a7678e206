/** The page of draughts: who plays, in which game, and back to it after a reload. */

import { type Account, ParlorError, signIn, type TurnRoom } from "parlor/online";
import { showGames } from "../../shared/games.ts";
import { byId, setText } from "../../shared/page.ts";
import { BEGIN } from "./board.ts";
import { Game, isGame, type State } from "./game.ts";
import { Table } from "./table.ts";
import { told } from "./told.ts";

const PATH = "/draughts";
/** Of this tab: the room to go back to. */
const ROOM_KEY = "parlor/draughts";
/** Of all pages of this server: the player's name. */
const NAME_KEY = "parlor/name";

type Open = (account: Account) => Promise<TurnRoom<State>>;

const nameField = byId("name", HTMLInputElement);
const codeField = byId("code-in", HTMLInputElement);
let account: Account | undefined;
/** The game that the address invites to. */
let invited: string | undefined;

function kept(store: () => Storage, key: string): string {
  try {
    return store().getItem(key) ?? "";
  } catch {
    // A browser that keeps nothing asks again.
    return "";
  }
}

function keep(store: () => Storage, key: string, value: string): void {
  try {
    if (value === "") store().removeItem(key);
    else store().setItem(key, value);
  } catch {
    // See above.
  }
}

const tab = () => sessionStorage;
const browser = () => localStorage;

/** The player of this browser, under the name in the field. */
async function player(): Promise<Account> {
  const name = nameField.value.trim();
  keep(browser, NAME_KEY, name);
  account ??= await signIn(location.origin, { app: "draughts", ...(name === "" ? {} : { name }) });
  if (name !== "" && account.name !== name) await account.call("account.rename", { name });
  return account;
}

/** What is joined by a code, or by a link with one. */
function codeIn(text: string): string {
  const link = URL.canParse(text) ? new URL(text) : undefined;
  return link?.searchParams.get("join") ?? link?.pathname.match(/\/join\/(\w+)/)?.[1] ?? text.trim();
}

/** Enters a game from the start screen, and says what went wrong. */
async function enter(open: Open): Promise<void> {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>("#form button")];
  for (const button of buttons) button.disabled = true;
  byId("trouble").hidden = true;
  try {
    void play(await open(await player()));
  } catch (error) {
    trouble(error);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

async function play(room: TurnRoom<State>): Promise<void> {
  if (!isGame(room)) {
    room.close();
    return trouble(new ParlorError("bad_options", "the room with this code is of another game"));
  }
  stage("playing");
  document.title = "Draughts";
  keep(tab, ROOM_KEY, room.id);
  history.replaceState(null, "", room.code === undefined ? PATH : `${PATH}?join=${room.code}`);
  const how = await new Game(room).play();
  keep(tab, ROOM_KEY, "");
  history.replaceState(null, "", PATH);
  ask(undefined);
  if (how === "again") void enter(find);
  else if (how !== "left") trouble(how);
}

const find: Open = (me) => me.joinOrCreate<State>({ rules: "draughts" });
const withFriend: Open = (me) => me.create<State>({ rules: "draughts", private: true });

function trouble(error: unknown): void {
  // Who is closed for good signs in again next time.
  if (error instanceof ParlorError && ["signed_out", "banned", "no_such_account"].includes(error.code)) account = undefined;
  setText(byId("trouble"), told(error));
  byId("trouble").hidden = false;
}

function stage(name: "start" | "playing"): void {
  document.body.dataset.stage = name;
  document.querySelector("main")!.inert = name === "start";
}

function ask(code: string | undefined): void {
  invited = code;
  stage("start");
  // What lies behind the screen.
  byId("banner").hidden = true;
  new Table(() => {}, AbortSignal.abort()).show({ board: BEGIN, own: "black", mover: undefined, last: [] });
  setText(byId("go"), code === undefined ? "Find an opponent" : `Join game ${code}`);
  byId("join-row").hidden = code !== undefined;
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = codeField.value.trim();
  const isTyped = typed !== "" && document.activeElement === codeField;
  const code = isTyped ? codeIn(typed) : invited;
  void enter(code === undefined ? find : (me) => me.join<State>(code));
});
byId("join").addEventListener("click", () => {
  const typed = codeField.value.trim();
  if (typed === "") codeField.focus();
  else void enter((me) => me.join<State>(codeIn(typed)));
});
byId("friend").addEventListener("click", () => void enter(withFriend));

nameField.value = kept(browser, NAME_KEY);
showGames(byId("games"), PATH);
const asked = new URL(location.href).searchParams.get("join");
const before = kept(tab, ROOM_KEY);
ask(asked === null ? undefined : asked.toUpperCase());
if (before !== "") void enter((me) => me.resume<State>(before));
else if (!matchMedia("(pointer: coarse)").matches) nameField.focus();

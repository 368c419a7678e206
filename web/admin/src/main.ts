/** The page of operators: asks the server every two seconds, and shows what it says. */

import { byId, setText } from "../../shared/page.ts";
import { ask, claims, Refusal } from "./api.ts";
import { ago, figures, type Status } from "./figures.ts";
import { button, type Column, showFigures, showTable } from "./show.ts";

/** Of this tab: a token is nothing to keep longer. */
const TOKEN_KEY = "parlor/operator";
const PERIOD_MS = 2_000;
/** Rows of each table. */
const ROWS = 50;

interface LiveRoom { code: string; kind: string; app: string; environment: string; opened_at_ms: number; members: number; away: number; players: number; max_players: number; spectators: number; has_secret: boolean }
interface Member { id: number; name: string; user: string | null; link: string; connected: boolean; rtt_ms: number | null; is_host: boolean; is_spectator: boolean }
interface TurnRoom { id: string; name: string; game: string; status: string; phase: string; player_count: number; max_players: number; updated: number }
interface Lobby { id: string; kind: string; access: string; name: string; bucket: string; owner: string; max: number; size: number; ready: number }
interface Queue { queue: string; title: string; min_players: number; max_players: number; waiting: number; found: number; wait_ms?: number; offers: number }
interface Board { board: string; title: string; order: string; keep: string; writers: string; season: number; ends_ms?: number }
interface Entry { rank: number; account: string; name?: string; score: number; at_ms: number }
interface Ban { account: string; reason: string; by: string; at_ms: number; until_ms: number | null }

let token = kept();
/** Ends the present round of questions. */
let asking = new AbortController();
/** The status before, and when it came. */
let before: { status: Status; at: number } | undefined;
let openRoom: string | undefined;
let openBoard: string | undefined;

function kept(): string {
  try {
    return sessionStorage.getItem(TOKEN_KEY) ?? "";
  } catch {
    return "";
  }
}

function keep(text: string): void {
  token = text;
  try {
    if (text === "") sessionStorage.removeItem(TOKEN_KEY);
    else sessionStorage.setItem(TOKEN_KEY, text);
  } catch {
    // A browser that keeps nothing asks again after a reload.
  }
}

const since = (ms: number) => ago(Date.now() - ms);
const yes = (it: boolean, word: string) => (it ? word : "");

const LIVE: Column<LiveRoom>[] = [
  { head: "code", cell: (it) => button(it.code, () => show("room", it.code)) },
  { head: "kind", cell: (it) => it.kind.replace("_", "-") },
  { head: "players", cell: (it) => `${it.players} of ${it.max_players}` },
  { head: "spectators", cell: (it) => it.spectators },
  { head: "away", cell: (it) => it.away },
  { head: "open for", cell: (it) => since(it.opened_at_ms) },
  { head: "", cell: (it) => yes(it.has_secret, "secret") },
];
const MEMBERS: Column<Member>[] = [
  { head: "member", cell: (it) => it.id },
  { head: "name", cell: (it) => it.name },
  { head: "account", cell: (it) => it.user ?? "–" },
  { head: "link", cell: (it) => (it.connected ? it.link : `${it.link}, lost`) },
  { head: "round trip", cell: (it) => (it.rtt_ms === null ? "–" : `${it.rtt_ms} ms`) },
  { head: "", cell: (it) => yes(it.is_host, "host") || yes(it.is_spectator, "spectator") },
];
const TURN: Column<TurnRoom>[] = [
  { head: "room", cell: (it) => it.id },
  { head: "name", cell: (it) => it.name || "–" },
  { head: "game", cell: (it) => it.game || "–" },
  { head: "phase", cell: (it) => (it.status === "active" ? it.phase : it.status) },
  { head: "players", cell: (it) => `${it.player_count} of ${it.max_players}` },
  { head: "changed", cell: (it) => `${since(it.updated)} ago` },
];
const LOBBIES: Column<Lobby>[] = [
  { head: "lobby", cell: (it) => it.id },
  { head: "kind", cell: (it) => it.kind },
  { head: "access", cell: (it) => it.access },
  { head: "name", cell: (it) => it.name || "–" },
  { head: "bucket", cell: (it) => it.bucket || "–" },
  { head: "owner", cell: (it) => it.owner },
  { head: "members", cell: (it) => `${it.size} of ${it.max}` },
  { head: "ready", cell: (it) => it.ready },
];
const QUEUES: Column<Queue>[] = [
  { head: "queue", cell: (it) => it.queue },
  { head: "title", cell: (it) => it.title || "–" },
  { head: "players", cell: (it) => (it.min_players === it.max_players ? `${it.max_players}` : `${it.min_players} to ${it.max_players}`) },
  { head: "waiting", cell: (it) => it.waiting },
  { head: "found", cell: (it) => it.found },
  { head: "median wait", cell: (it) => (it.wait_ms === undefined ? "–" : `${(it.wait_ms / 1000).toFixed(1)} s`) },
  { head: "offers", cell: (it) => it.offers },
];
const BOARDS: Column<Board>[] = [
  { head: "board", cell: (it) => button(it.board, () => show("board", it.board)) },
  { head: "title", cell: (it) => it.title || "–" },
  { head: "better", cell: (it) => it.order },
  { head: "keeps", cell: (it) => it.keep },
  { head: "written by", cell: (it) => it.writers },
  { head: "season ends in", cell: (it) => (it.ends_ms === undefined ? "–" : ago(it.ends_ms - Date.now())) },
];
const ENTRIES: Column<Entry>[] = [
  { head: "rank", cell: (it) => it.rank },
  { head: "name", cell: (it) => it.name ?? "–" },
  { head: "account", cell: (it) => it.account },
  { head: "score", cell: (it) => it.score },
  { head: "reached", cell: (it) => `${since(it.at_ms)} ago` },
];
const BANS: Column<Ban>[] = [
  { head: "account", cell: (it) => it.account },
  { head: "reason", cell: (it) => it.reason },
  { head: "by", cell: (it) => it.by },
  { head: "since", cell: (it) => since(it.at_ms) },
  { head: "ends in", cell: (it) => (it.until_ms === null ? "never" : ago(it.until_ms - Date.now())) },
];
const STORED: Column<[string, number]>[] = [
  { head: "of", cell: ([name]) => name.replaceAll("_", " ") },
  { head: "rows", cell: ([, count]) => count },
];

/** Opens the members of a room, or the best of a board; nothing closes them. */
function show(what: "room" | "board", name: string | undefined): void {
  if (what === "room") openRoom = name;
  else openBoard = name;
  byId(what).hidden = name === undefined;
  if (name === undefined) return;
  setText(byId(what === "room" ? "room-code" : "board-name"), name);
  byId(what === "room" ? "members" : "entries").replaceChildren();
  void refresh();
}

/** Fills a table with the list of an answer. What the token's role may not read says so in its place. */
async function list<T>(id: string, path: string, name: string, columns: Column<T>[], signal: AbortSignal): Promise<void> {
  try {
    const answer = await ask<Record<string, unknown>>(token, path, signal);
    showTable(byId(id), columns, (answer[name] ?? []) as T[], answer["next"] !== undefined);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status === 401 || error.status === 0) throw error;
    const refused = document.createElement("p");
    refused.className = "none";
    refused.textContent = error.message;
    byId(id).replaceChildren(refused);
  }
}

/** Asks everything once. */
async function round(signal: AbortSignal): Promise<void> {
  const status = await ask<Status>(token, "/admin/status", signal);
  const at = performance.now();
  showFigures(byId("figures"), figures(status, before?.status, at - (before?.at ?? at)));
  before = { status, at };
  showTable(byId("rows"), STORED, Object.entries(status.store_rows).sort(([a], [b]) => a.localeCompare(b)));
  const page = `limit=${ROWS}`;
  await list("live", `/admin/live?${page}`, "rooms", LIVE, signal);
  if (openRoom !== undefined) await list("members", `/admin/live/${encodeURIComponent(openRoom)}`, "members", MEMBERS, signal);
  await list("turn", `/admin/rooms?${page}`, "rooms", TURN, signal);
  await list("lobbies", `/admin/lobbies?${page}`, "lobbies", LOBBIES, signal);
  await list("queues", "/matchmaking/queues", "queues", QUEUES, signal);
  await list("boards", `/boards?${page}`, "boards", BOARDS, signal);
  if (openBoard !== undefined) await list("entries", `/boards/${encodeURIComponent(openBoard)}?count=10`, "entries", ENTRIES, signal);
  await list("bans", `/admin/bans?${page}`, "bans", BANS, signal);
}

/** Asks anew, and then again and again while somebody looks. */
async function refresh(): Promise<void> {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  while (token !== "" && !signal.aborted) {
    try {
      if (!document.hidden) await round(signal);
      if (signal.aborted) return;
      stage("shown");
      byId("wrong").hidden = true;
      setText(byId("state"), document.hidden ? "" : `as of ${new Date().toLocaleTimeString()}`);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && error.isOfToken) return leave(error.message);
      trouble(error instanceof Error ? error.message : String(error));
    }
    await new Promise((done) => setTimeout(done, PERIOD_MS));
  }
}

function trouble(text: string): void {
  for (const id of ["trouble", "wrong"]) {
    setText(byId(id), text);
    byId(id).hidden = text === "";
  }
}

function stage(name: "start" | "shown"): void {
  document.body.dataset.stage = name;
}

function enter(text: string): void {
  const { aud: app, env, role, sub } = claims(text);
  keep(text);
  before = undefined;
  setText(byId("where"), app === undefined ? "" : `${app}${env ? `, ${env}` : ""}: ${sub ?? "?"}, ${role ?? "player"}`);
  void refresh();
}

function leave(why = ""): void {
  asking.abort();
  keep("");
  show("room", undefined);
  show("board", undefined);
  setText(byId("where"), "");
  setText(byId("state"), "");
  trouble(why);
  stage("start");
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = byId("token", HTMLInputElement);
  const text = field.value.trim();
  field.value = "";
  if (text === "") return trouble("Paste a token: the line below says how it is made.");
  trouble("");
  enter(text);
});
byId("leave").addEventListener("click", () => leave());
byId("room-close").addEventListener("click", () => show("room", undefined));
byId("board-close").addEventListener("click", () => show("board", undefined));
byId("look-up").addEventListener("submit", (event) => {
  event.preventDefault();
  const place = byId("stored");
  const account = byId("account", HTMLInputElement).value.trim();
  if (account === "") return;
  void ask(token, `/admin/accounts/export?account=${encodeURIComponent(account)}`, AbortSignal.timeout(30_000))
    .then((said) => JSON.stringify(said, null, 2), (error: unknown) => (error instanceof Error ? error.message : String(error)))
    .then((text) => {
      setText(place, text);
      place.hidden = false;
    });
});

if (token !== "") enter(token);

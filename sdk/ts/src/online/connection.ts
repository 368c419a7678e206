// A player's connection to a server's services: requests, answers and notices of all its rooms over one JSON socket.
//
//            needed          opened           tokens        inbox read
//   idle ───────────▶ dialling ─────▶ signing ──────▶ catching ──────▶ ready
//    ▲                   │    ▲          ▲                               │
//    │                   ▼    └─ back-off│                    the token is over
//    └─ not needed ── waiting ◀──────────┴──────── lost ─────────────────┘
//
// What is asked before it is ready waits. A connection that nobody needs is closed after a while.

import { ParlorError } from "../error.js";
import type { WebSocketConstructor } from "../link/websocket.js";
import { watchPage } from "../page/lifecycle.js";
import type { Address } from "../server/address.js";
import { sentence } from "../thrown.js";
import type { Notice, RoomEvent } from "./events.js";
import { type Asker, Follower, type Line } from "./follower.js";
import type { AccountView, JsonObject } from "./operations.js";
import { errorOf, isTokenOver, pauseOf, type Refusal, refusalOf } from "./refusal.js";
import { openSocket, type TextSocket, whyNot } from "./socket.js";

/** What a sign-in gives. */
export interface SignedIn {
  account: AccountView;
  access_token: string;
  refresh_token: string;
  expires_in_s: number;
}

/** Asks over the socket, whatever its stage. Rejects with a `ParlorError`. */
export type Ask = (op: string, input: JsonObject) => Promise<JsonObject>;

/** Something that is so now, as docs/friends.md, docs/lobbies.md and docs/matchmaking.md have it. `connected` comes after each outage. */
export type News = JsonObject & { topic: string };

/** What a connection needs of the sign-in. `isRenewal` while the access token is still good. */
export interface Signer {
  signIn(ask: Ask, isRenewal: boolean): Promise<SignedIn>;
}

/** Waits before attempts, as the Rust client has them: doubled each time, a quarter longer or shorter by chance. */
const DELAY_FIRST_MS = 200;
const DELAY_MAX_MS = 5_000;
const JITTER = 0.25;
/** Requests that wait for an answer or for the connection. */
const WAITING_MAX = 256;
/** Notices read at once after an outage: a full inbox. */
const INBOX_PAGE = 256;
/** After so many notices the inbox forgets them. */
const ACKNOWLEDGE_EVERY = 32;
/** A server that does not answer for so long is not there any more. */
const ANSWERS_WITHIN_MS = 20_000;
/** How long a connection that nobody needs stays. */
const IDLE_MS = 15_000;
/** After so long without a word a page that comes back asks whether the connection lives. */
const QUIET_MS = 10_000;

type Stage = "idle" | "waiting" | "dialling" | "signing" | "catching" | "ready" | "closed";

interface Asked extends Asker {
  op: string;
  input: JsonObject;
  /** Called if no answer will come. */
  lost(): void;
}

/** A connection. Its rooms are followers. */
export class Connection implements Line {
  account: AccountView | undefined;
  #stage: Stage = "idle";
  #socket: TextSocket | undefined;
  readonly #rooms = new Set<Follower>();
  readonly #listeners = new WeakMap<Follower, (event: RoomEvent) => void>();
  readonly #hearers = new Set<(news: News) => void>();
  readonly #asked = new Map<number, Asked>();
  #queued: Asked[] = [];
  #nextId = 0;
  #access: string | undefined;
  #seq: number | undefined;
  #acknowledged: number | undefined;
  #attempts = 0;
  #heardAt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #unwatch: (() => void) | undefined;
  #closedBy: ParlorError | undefined;
  /** Whether it was ready at some time: from then on it is made again. */
  #wasReady = false;
  #awaiting: { done(): void; failed(why: ParlorError): void } | undefined;

  constructor(
    readonly address: Address,
    private readonly signer: Signer,
    private readonly WebSocket?: WebSocketConstructor,
  ) {}

  get me(): string {
    return this.account?.id ?? "";
  }

  /** Connects and signs in for the first time. It is tried once. */
  open(): Promise<void> {
    return new Promise((done, failed) => {
      this.#awaiting = { done, failed };
      this.#unwatch = watchPage({ visibility: () => {}, hidden: () => {}, back: () => this.#back() });
      this.#need();
    });
  }

  /** Follows a room. */
  follow(room: Follower, told: (event: RoomEvent) => void): void {
    this.#listeners.set(room, told);
    if (this.#closedBy !== undefined) return room.close(this.#closedBy);
    this.#rooms.add(room);
    if (this.#stage === "ready") room.begin();
    else this.#need();
  }

  /** Listens for news until the returned function is called. */
  hear(told: (news: News) => void): () => void {
    if (this.#closedBy !== undefined) throw this.#closedBy;
    this.#hearers.add(told);
    if (this.#stage === "ready") told({ topic: "connected" });
    else this.#need();
    return () => {
      this.#hearers.delete(told);
      this.#rest();
    };
  }

  #tell(news: News): void {
    for (const told of [...this.#hearers]) told(news);
  }

  /** Rooms and listeners, for whom a lost connection is made again. */
  get #followers(): number {
    return this.#rooms.size + this.#hearers.size;
  }

  /** Asks as soon as the connection is ready. It is not asked twice: who loses the answer learns that. */
  call(op: string, input: JsonObject): Promise<JsonObject> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy);
    if (this.#asked.size + this.#queued.length >= WAITING_MAX) {
      return Promise.reject(new ParlorError("busy", `${WAITING_MAX} requests wait for an answer`, "await some of them first"));
    }
    return new Promise((resolve, reject) => {
      const asked: Asked = {
        op,
        input,
        answered: resolve,
        refused: (why) => reject(errorOf(why)),
        again: () => void this.#queued.push(asked),
        lost: () => reject(new ParlorError("connection_lost", `the connection was lost before the answer to ${op} came`, "look whether it was done, and ask again")),
      };
      if (this.#stage === "ready") this.#sendAsked(asked);
      else this.#queued.push(asked);
      this.#need();
    });
  }

  ask(op: string, input: JsonObject, asker: Asker): void {
    const { answered, refused, again } = asker;
    this.#sendAsked({ op, input, answered, refused, again, lost: nothing });
  }

  later(pauseMs: number, work: () => void): void {
    const socket = this.#socket;
    setTimeout(() => {
      if (this.#socket === socket && this.#stage === "ready") work();
    }, pauseMs);
  }

  emit(room: Follower, event: RoomEvent): void {
    this.#listeners.get(room)?.(event);
  }

  over(room: Follower): void {
    this.#rooms.delete(room);
    const { watches } = room;
    const others = [...this.#rooms].some((other) => watches !== undefined && other.watches === watches);
    if (watches !== undefined && !others && this.#stage === "ready") {
      // A refusal is of no consequence: then there is no subscription.
      this.ask("turn.unsubscribe", { room: watches }, { answered: nothing, refused: nothing, again: nothing });
    }
    this.#rest();
  }

  /** The account has another name from now on. */
  renamed(name: string): void {
    if (this.account !== undefined) this.account = { ...this.account, name };
  }

  /** A token for another server that shares this one's store. */
  async accessToken(): Promise<string> {
    // Any answer shows that the token is good.
    if (this.#access === undefined || this.#stage !== "ready") await this.call("account.me", {});
    return this.#access ?? "";
  }

  /** Ends all. Rooms close with `why`. */
  close(why: ParlorError = closedError()): void {
    if (this.#stage === "closed") return;
    this.#drop();
    this.#stage = "closed";
    this.#closedBy = why;
    clearTimeout(this.#renewal);
    this.#unwatch?.();
    for (const room of [...this.#rooms]) room.close(why);
    this.#tell({ topic: "closed" });
    this.#hearers.clear();
    for (const asked of [...this.#takeAsked(), ...this.#queued.splice(0)]) asked.refused({ code: String(why.code), sentence: why.message });
    this.#awaiting?.failed(why);
    this.#awaiting = undefined;
  }

  #need(): void {
    clearTimeout(this.#idle);
    if (this.#stage === "idle") this.#dial();
    else this.#rest();
  }

  /** Closes the connection once nobody has needed it for a while. */
  #rest(): void {
    clearTimeout(this.#idle);
    if (this.#stage === "closed") return;
    const isNeeded = () => this.#followers + this.#asked.size + this.#queued.length > 0 || this.#awaiting !== undefined;
    if (isNeeded()) return;
    this.#idle = setTimeout(() => {
      if (isNeeded() || this.#stage === "closed") return;
      this.#drop();
      this.#stage = "idle";
    }, IDLE_MS);
    (this.#idle as { unref?: () => void }).unref?.();
  }

  #dial(): void {
    clearTimeout(this.#retry);
    this.#stage = "dialling";
    const is = (socket: TextSocket | undefined) => socket === this.#socket;
    let socket: TextSocket | undefined;
    try {
      socket = openSocket(this.address, this.WebSocket, {
        opened: () => is(socket) && this.#opened(),
        text: (text) => is(socket) && this.#text(text),
        closed: (why) => is(socket) && this.#lost(why),
      });
      this.#socket = socket;
    } catch (thrown) {
      this.#fail(thrown as ParlorError);
    }
  }

  #opened(): void {
    this.#heardAt = Date.now();
    if (this.#access === undefined) void this.#signIn();
    else this.#catchUp();
  }

  /** Signs in over the socket. A connection that was lost meanwhile signs in anew. */
  async #signIn(): Promise<void> {
    this.#stage = "signing";
    this.#access = undefined;
    const socket = this.#socket;
    try {
      const signed = await this.signer.signIn(this.#raw(socket), false);
      if (socket !== this.#socket) return;
      this.#take(signed);
      this.#catchUp();
    } catch (thrown) {
      if (socket !== this.#socket || this.#stage !== "signing") return;
      const why = thrown instanceof ParlorError ? thrown : new ParlorError("defect", sentence(thrown), undefined, { cause: thrown });
      if (why.code === "unavailable" || why.code === "too_often" || why.code === "busy") this.#lost(why.message, why.retryAfterMs ?? 1_000);
      else this.#fail(why);
    }
  }

  /** Gets another access token before this one is over: the server would close the connection with it. */
  async #renew(): Promise<void> {
    if (this.#stage !== "ready") {
      // The next connection signs in.
      this.#access = undefined;
      return;
    }
    const socket = this.#socket;
    try {
      const signed = await this.signer.signIn(this.#raw(socket), true);
      if (socket === this.#socket) this.#take(signed);
    } catch {
      // Then the server closes the connection when the token is over, and the sign-in says what is wrong.
    }
  }

  #take({ account, access_token, expires_in_s }: SignedIn): void {
    if (this.account !== undefined && this.account.id !== account.id) {
      // Notices of the account before are not this one's.
      this.#seq = undefined;
    }
    this.account = account;
    this.#access = access_token;
    clearTimeout(this.#renewal);
    this.#renewal = setTimeout(() => void this.#renew(), expires_in_s * 750);
    (this.#renewal as { unref?: () => void }).unref?.();
  }

  /** Asks over a socket, as long as it is this connection's. */
  #raw(socket: TextSocket | undefined): Ask {
    return (op, input) =>
      new Promise((resolve, reject) => {
        const lost = () => reject(new ParlorError("connection_lost", `the connection was lost before the answer to ${op} came`));
        if (socket === undefined || socket !== this.#socket) return lost();
        this.#sendAsked({ op, input, answered: resolve, refused: (why) => reject(errorOf(why)), again: lost, lost });
      });
  }

  #sendAsked(asked: Asked, token?: string): void {
    const id = ++this.#nextId;
    this.#asked.set(id, asked);
    this.#watchSilence();
    this.#socket?.send(JSON.stringify({ id, op: asked.op, input: asked.input, ...(token === undefined ? {} : { token }) }));
  }

  /** A request that gets no answer in time shows that the connection is dead. */
  #watchSilence(): void {
    if (this.#silence !== undefined) return;
    this.#silence = setTimeout(() => this.#lost("the server does not answer"), ANSWERS_WITHIN_MS);
  }

  /** The server lives: for what it has not answered yet the time begins anew. */
  #heard(): void {
    clearTimeout(this.#silence);
    this.#silence = undefined;
    if (this.#asked.size > 0) this.#watchSilence();
  }

  /** Reads the notices since the last one. The first time only their newest number. */
  #catchUp(): void {
    this.#stage = "catching";
    this.#readInbox(this.#seq === undefined ? { after: 0, limit: 1 } : { after: this.#seq, limit: INBOX_PAGE }, this.#access);
  }

  #readInbox(input: { after: number; limit: number }, token?: string): void {
    this.#sendAsked(
      {
        op: "inbox.read",
        input,
        answered: (output) => this.#inbox(output as { notices?: unknown; newest?: unknown }),
        refused: (why) => {
          const pauseMs = pauseOf(why);
          if (pauseMs === undefined) this.#fail(errorOf(why));
          else this.#lost(why.sentence, pauseMs);
        },
        again: nothing,
        lost: nothing,
      },
      token,
    );
  }

  #inbox({ notices, newest }: { notices?: unknown; newest?: unknown }): void {
    if (!Array.isArray(notices) || typeof newest !== "number") {
      return this.#fail(new ParlorError("not_parlor", "the server speaks another version", "update the older of the game and the server"));
    }
    if (this.#seq !== undefined) {
      const read = (notices as unknown[]).filter(isNotice);
      const isNext = read.length === 0 || read[0]!.seq === this.#seq + 1;
      const isLast = (read.at(-1)?.seq ?? this.#seq) >= newest;
      if (!isNext || !isLast) for (const room of this.#rooms) room.missedNotices();
      for (const notice of read) this.#takeIn(notice);
      for (const room of [...this.#rooms]) room.readHeld();
    }
    // Also if the oldest were dropped from a full inbox.
    this.#seq = Math.max(this.#seq ?? 0, newest);
    if (this.#stage === "catching") this.#becomeReady();
    this.#acknowledge();
  }

  #becomeReady(): void {
    this.#stage = "ready";
    this.#attempts = 0;
    this.#wasReady = true;
    for (const room of [...this.#rooms]) room.begin();
    this.#tell({ topic: "connected" });
    for (const asked of this.#queued.splice(0)) this.#sendAsked(asked);
    this.#awaiting?.done();
    this.#awaiting = undefined;
    this.#rest();
  }

  #text(text: string): void {
    this.#heardAt = Date.now();
    this.#heard();
    let heard: { id?: unknown; output?: unknown; error?: unknown; event?: unknown; watched?: unknown; news?: unknown };
    try {
      heard = JSON.parse(text) as typeof heard;
    } catch {
      // Not a message of this version.
      return;
    }
    if (typeof heard !== "object" || heard === null) return;
    if (isNotice(heard.event)) return this.#live(heard.event);
    if (isNotice(heard.watched)) {
      for (const room of [...this.#rooms]) room.watched(heard.watched);
      return;
    }
    if (isNews(heard.news)) return this.#tell(heard.news);
    const error = refusalOf(heard.error);
    if (typeof heard.id !== "number") {
      // An error that answers no request is about the token.
      if (error !== undefined) this.#tokenIsOver();
      return;
    }
    const asked = this.#asked.get(heard.id);
    if (asked === undefined) return;
    this.#asked.delete(heard.id);
    if (this.#asked.size === 0) this.#heard();
    if (error === undefined) asked.answered((heard.output ?? {}) as JsonObject);
    else this.#refusal(asked, error);
    this.#acknowledge();
    this.#rest();
  }

  #refusal(asked: Asked, error: Refusal): void {
    // A sign-in's own refusal is its answer.
    if (asked.op.startsWith("auth.") || !isTokenOver(error.code)) return asked.refused(error);
    asked.again();
    this.#tokenIsOver();
  }

  #tokenIsOver(): void {
    if (this.#stage === "signing" || this.#stage === "closed") return;
    this.#access = undefined;
    for (const room of this.#rooms) room.interrupted();
    void this.#signIn();
  }

  #live(notice: Notice): void {
    const seq = this.#seq;
    if (seq === undefined || notice.seq === undefined) return;
    if (notice.seq === seq + 1) {
      this.#takeIn(notice);
      for (const room of [...this.#rooms]) room.readHeld();
      this.#acknowledge();
    } else if (notice.seq > seq + 1 && ![...this.#asked.values()].some(({ op }) => op === "inbox.read")) {
      this.#readInbox({ after: seq, limit: INBOX_PAGE });
    }
  }

  #takeIn(notice: Notice): void {
    this.#seq = Math.max(this.#seq ?? 0, notice.seq ?? 0);
    for (const room of this.#rooms) room.notice(notice);
  }

  /** Lets the inbox forget what all rooms have told, so that it does not fill up. */
  #acknowledge(): void {
    if (this.#stage !== "ready" || this.#seq === undefined || [...this.#rooms].some((room) => room.holds)) return;
    this.#acknowledged ??= this.#seq;
    if (this.#seq - this.#acknowledged < ACKNOWLEDGE_EVERY) return;
    this.#acknowledged = this.#seq;
    // A refusal is of no consequence: the next one says it, too.
    this.#sendAsked({ op: "inbox.acknowledge", input: { up_to: this.#seq }, answered: nothing, refused: nothing, again: nothing, lost: nothing });
  }

  /** The page or the network is back: the next attempt is made now, and a quiet connection is tried. */
  #back(): void {
    if (this.#stage === "waiting") this.#dial();
    else if (this.#stage === "ready" && this.#seq !== undefined && Date.now() - this.#heardAt > QUIET_MS) {
      this.#readInbox({ after: this.#seq, limit: INBOX_PAGE });
    }
  }

  /** The connection was lost, or was not made. It is made again after a pause. */
  #lost(why: string, atLeastMs = 0): void {
    if (this.#stage === "closed" || this.#stage === "idle") return;
    const wasDialling = this.#stage === "dialling";
    this.#drop();
    this.#stage = "waiting";
    if (!this.#wasReady && this.#awaiting !== undefined && wasDialling) {
      this.#stage = "idle";
      return void whyNot(this.address, why).then((error) => this.close(error));
    }
    for (const asked of this.#takeAsked()) asked.lost();
    for (const room of [...this.#rooms]) room.lost(why);
    if (this.#followers === 0 && this.#wasReady) {
      // Calls do not wait for a server that is away.
      for (const asked of this.#queued.splice(0)) asked.refused({ code: "unreachable", sentence: why });
      this.#stage = "idle";
      return;
    }
    const even = Math.min(DELAY_FIRST_MS * 2 ** Math.min(this.#attempts, 16), DELAY_MAX_MS);
    this.#attempts += 1;
    const wait = even * (1 - JITTER + 2 * JITTER * Math.random());
    this.#retry = setTimeout(() => this.#dial(), Math.max(wait, atLeastMs));
  }

  /** No other attempt would help. */
  #fail(why: ParlorError): void {
    if (this.#wasReady && this.#followers === 0) {
      this.#drop();
      for (const asked of [...this.#takeAsked(), ...this.#queued.splice(0)]) asked.refused({ code: String(why.code), sentence: why.message });
      this.#stage = "idle";
      return;
    }
    this.close(why);
  }

  #takeAsked(): Asked[] {
    const all = [...this.#asked.values()];
    this.#asked.clear();
    return all;
  }

  #drop(): void {
    for (const timer of [this.#retry, this.#silence, this.#idle]) clearTimeout(timer);
    this.#silence = undefined;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }
}

const nothing = () => {};

function isNotice(given: unknown): given is Notice {
  const { seq, kind, notice } = (given ?? {}) as Partial<Notice>;
  return (seq === undefined || typeof seq === "number") && typeof kind === "string" && typeof notice?.room === "string" && typeof notice.body === "object" && notice.body !== null;
}

function isNews(given: unknown): given is News {
  return typeof (given as { topic?: unknown } | null | undefined)?.topic === "string";
}

function closedError(): ParlorError {
  return new ParlorError("left", "this account was closed", "sign in again");
}

// What a page knows of a turn room, as a machine: answers and notices go in, requests and events come out.
//
//            connection ready       found or read
//    away ───────────────▶ finding ──────────────▶ following
//     ▲                       └──── refused ──▶ closed │
//     └──────────────────────── lost ──────────────────┘
//
// A notice says that something happened. The room is read before the game gets the event, so that its view is never
// older than its events. What the Rust client does (crates/client/src/online/core.rs) is done here, too:
// testdata/turn-room.json has what both must do.

import { ParlorError } from "../error.js";
import { checked, eventOf, type Notice, type RoomEvent, standingOf } from "./events.js";
import type { JsonObject, RoomView } from "./operations.js";
import { errorOf, pauseOf, type Refusal } from "./refusal.js";

/** Requests of one room that wait for an answer or for the connection. */
const WAITING_MAX = 64;
const LEAVE = "turn.leave";

/** Who gets the answer to a request. */
export interface Asker {
  answered(output: JsonObject): void;
  refused(why: Refusal): void;
  /** It was not done, because the access token was over: `begin` follows. */
  again(): void;
}

/** The connection, as its rooms use it. */
export interface Line {
  /** The player's account. */
  readonly me: string;
  ask(op: string, input: JsonObject, asker: Asker): void;
  /** Calls `work` after a pause, unless the connection is lost before. */
  later(pauseMs: number, work: () => void): void;
  emit(room: Follower, event: RoomEvent): void;
  /** The room is over for this page. */
  over(room: Follower): void;
}

/** The room to follow: the result of an operation, the room with this id, or the same without a seat. */
export type Want = { op: string; input: JsonObject } | { room: string } | { watch: string };

interface Waiting {
  op: string;
  input: JsonObject;
  /** Whether it is repeated if its answer was lost. */
  again: boolean;
  done(): void;
  failed(why: ParlorError): void;
}

/** A move that does not stand yet. */
interface Move {
  input: JsonObject;
  stateVersion: number;
  /** Its number, once the other players judge it. */
  proposal: number | undefined;
  done(): void;
  failed(why: ParlorError): void;
}

export class Follower {
  view: RoomView | undefined;
  #stage: "away" | "finding" | "following" | "closed" = "away";
  #queued: Waiting[] = [];
  #asked = new Set<Waiting>();
  #move: Move | undefined;
  /** Events that wait for the next reading. */
  #held: RoomEvent[] = [];
  /** Whether there were notices since the newest reading was asked for. */
  #isStale = false;
  /** How many of them there were when the reading was asked for. */
  #reading: number | undefined;
  #isFirst = true;
  #missed = false;
  #toldStart = false;
  #toldTurn = 0;
  #toldOver = false;
  #toldLost = false;

  /** Called when something changed that can be read. */
  touched: () => void = () => {};

  constructor(
    private readonly line: Line,
    private want: Want,
  ) {}

  get isFollowing(): boolean {
    return this.#stage === "following";
  }

  get isClosed(): boolean {
    return this.#stage === "closed";
  }

  get hasMove(): boolean {
    return this.#move !== undefined;
  }

  /** Whether events wait for a reading: then what happened is not to be forgotten yet. */
  get holds(): boolean {
    return this.#held.length > 0;
  }

  /** The connection is ready, and notices of meanwhile were taken in. */
  begin(): void {
    if (this.#stage === "closed") return;
    this.#stage = "finding";
    if ("room" in this.want) this.#read(this.want.room);
    else if ("watch" in this.want) this.#read(this.want.watch, "turn.subscribe");
    else this.line.ask(this.want.op, this.want.input, this.#finder());
  }

  /** The connection was lost. */
  lost(why: string): void {
    if (this.#stage === "closed") return;
    this.interrupted();
    const asked = [...this.#asked];
    this.#asked.clear();
    for (const waiting of asked) {
      if (waiting.again) this.#queued.push(waiting);
      else waiting.failed(new ParlorError("connection_lost", `the connection was lost before the answer to ${waiting.op} came`, "look whether it was done, and ask again"));
    }
    this.#tellLost(why);
  }

  /** What is asked from now on waits for `begin`. */
  interrupted(): void {
    if (this.#stage === "closed") return;
    this.#stage = "away";
    this.#reading = undefined;
    this.touched();
  }

  #tellLost(why: string): void {
    if (this.#toldLost) return;
    this.#toldLost = true;
    this.#tell({ type: "lost", it: { why } });
  }

  /** The server dropped notices of a full inbox. The room is read again, and events follow from its view. */
  missedNotices(): void {
    this.#missed = true;
  }

  /** The room that is followed without a seat. */
  get watches(): string | undefined {
    return "watch" in this.want ? this.want.watch : undefined;
  }

  /** Takes in a notice of a room that is watched, whatever room it is of. */
  watched(notice: Notice): void {
    if (this.#stage !== "following" || this.watches !== notice.notice.room) return;
    if (notice.kind === "unsubscribed") return this.close(new ParlorError("not_in_room", "this player may not read the room any more"));
    this.notice(notice);
    this.readHeld();
  }

  /** Takes in a notice of this player, whatever room it is of. */
  notice(notice: Notice): void {
    const room = this.view?.id ?? ("room" in this.want ? this.want.room : this.watches);
    if (this.#stage === "closed" || room !== notice.notice.room) return;
    const { body } = notice.notice;
    if (body["player"] === this.line.me && this.#stage !== "following") this.#moveWas(notice.kind, body);
    const event = eventOf(notice, this.line.me, (reason) => disputed(reason));
    if (event !== undefined) this.#held.push(event);
    this.#isStale = true;
  }

  /** Reads the room, if something happened in it. */
  readHeld(): void {
    if (this.#isStale) this.#readAgain();
  }

  /** Asks for something in this room, as soon as the room is there. `again` if it may be repeated. */
  request(op: string, input: JsonObject, again: boolean): Promise<void> {
    if (this.#queued.length + this.#asked.size >= WAITING_MAX) {
      return Promise.reject(new ParlorError("busy", `${WAITING_MAX} requests wait for an answer`, "await some of them first"));
    }
    return new Promise((done, failed) => this.#send({ op, input, again, done, failed }));
  }

  get #isLeaving(): boolean {
    return [...this.#asked, ...this.#queued].some(({ op }) => op === LEAVE);
  }

  /** Leaves the room, which closes. */
  leave(): Promise<void> {
    return this.request(LEAVE, { room: this.view?.id ?? "" }, true);
  }

  /** Makes a move for the state that the view has. */
  propose(input: JsonObject): Promise<void> {
    const { view } = this;
    if (this.#stage === "closed" || view === undefined) return Promise.reject(new ParlorError("not_open", "this room is closed"));
    if (this.#move !== undefined) {
      return Promise.reject(new ParlorError("move_pending", "a move of this player waits for its answer", "await it before the next one"));
    }
    const { id: room, state_version: stateVersion } = view;
    return new Promise((done, failed) => {
      this.#move = { input: { ...input, room, state_version: stateVersion }, stateVersion, proposal: undefined, done, failed };
      this.touched();
      if (this.#stage === "following") this.#sendMove();
    });
  }

  /** Ends it. All that waits is rejected. */
  close(why: ParlorError): void {
    if (this.#stage === "closed") return;
    this.#stage = "closed";
    const waiting = [...this.#asked, ...this.#queued];
    this.#asked.clear();
    this.#queued = [];
    const move = this.#move;
    this.#move = undefined;
    this.#tell({ type: "closed", it: why });
    this.line.over(this);
    for (const one of waiting) {
      // Whoever is not in the room any more has left it.
      if (one.op === LEAVE) one.done();
      else one.failed(why);
    }
    move?.failed(why);
  }

  #send(waiting: Waiting): void {
    if (this.#stage === "closed") return waiting.failed(new ParlorError("not_open", "this room is closed"));
    if (this.#stage !== "following") return void this.#queued.push(waiting);
    this.#asked.add(waiting);
    this.line.ask(waiting.op, waiting.input, {
      answered: (output) => {
        this.#asked.delete(waiting);
        this.#see(output);
        waiting.done();
        if (waiting.op === LEAVE) this.close(left());
      },
      refused: (why) => {
        this.#asked.delete(waiting);
        if (this.#pausedBy(why, waiting)) return;
        waiting.failed(errorOf(why));
      },
      again: () => {
        if (this.#asked.delete(waiting)) this.#queued.push(waiting);
      },
    });
  }

  #sendMove(): void {
    const move = this.#move;
    if (move === undefined) return;
    this.line.ask("turn.propose", move.input, {
      answered: (output) => {
        this.#see(output);
        const newest = this.view?.proposals?.find(({ id, player }) => id === this.view?.last_proposal && player === this.line.me);
        if (newest === undefined) this.#moveStands();
        else move.proposal = newest.id;
      },
      refused: (why) => {
        if (this.#pausedBy(why)) return;
        this.#moveFails(errorOf(why), false, why.checks);
        this.#readAgain();
      },
      again: () => {},
    });
  }

  #finder(): Asker {
    return {
      answered: (output) => this.#found(output),
      refused: (why) => {
        if (this.#pausedBy(why)) return;
        for (const event of this.#held.splice(0)) this.#tellOnce(event);
        this.close(this.#isLeaving ? left() : errorOf(why));
      },
      again: () => {},
    };
  }

  #read(room: string, op = "turn.read"): void {
    this.#reading = this.#held.length;
    this.#isStale = false;
    this.line.ask(op, { room }, this.#finder());
  }

  /** Reads the room again. What happens while a reading is under way is followed by another one. */
  #readAgain(): void {
    if (this.#stage === "following" && this.#reading === undefined && this.view !== undefined) this.#read(this.view.id);
  }

  #found(output: JsonObject): void {
    if (this.#stage === "closed") return;
    const held = this.#reading ?? this.#held.length;
    this.#reading = undefined;
    if (!this.#see(output)) {
      return this.close(this.#isLeaving ? left() : new ParlorError("not_in_room", "this player is not in the room any more", "join it again, or open another one"));
    }
    const view = this.view!;
    const isNew = this.#stage === "finding";
    // Nobody keeps notices for those who watch.
    const isAlone = (isNew && (this.#isFirst || this.watches !== undefined)) || this.#missed;
    this.#missed = false;
    if (isNew) {
      this.#stage = "following";
      this.#toldLost = false;
      this.#isFirst = false;
      if (this.watches === undefined) this.want = { room: view.id };
      this.#tell({ type: "connected", it: { room: view.id, ...(view.code ? { code: view.code } : {}) } });
    }
    // Otherwise the notices tell it in order: the room may be ahead of those that are still under way.
    const standing = isAlone ? standingOf(view, this.line.me) : undefined;
    for (const event of [...this.#held.splice(0, held), ...(standing === undefined ? [] : [standing])]) this.#tellOnce(event);
    this.#toldStart ||= isAlone && view.phase !== "waiting";
    if (isNew) {
      this.#settleMove();
      for (const waiting of this.#queued.splice(0)) this.#send(waiting);
    } else {
      this.#settleProposal();
    }
    this.readHeld();
  }

  /** Takes in a reading of the room. False if it is none. */
  #see(output: JsonObject): boolean {
    const view = output["room"] as unknown as RoomView | null | undefined;
    if (typeof view?.id !== "string" || typeof view.version !== "number") return false;
    if (this.view === undefined || this.view.id !== view.id || this.view.version <= view.version) {
      this.view = view;
      this.touched();
    }
    return true;
  }

  /** The server cannot do it now: the room is read again after the pause, since it may have been done all the same. */
  #pausedBy(why: Refusal, waiting?: Waiting): boolean {
    const pauseMs = pauseOf(why);
    if (pauseMs === undefined || this.#stage === "closed") return false;
    if (waiting !== undefined) this.#queued.push(waiting);
    if (this.#stage !== "away") {
      this.interrupted();
      this.#tellLost(why.sentence);
      this.line.later(pauseMs, () => this.begin());
    }
    return true;
  }

  /** A move whose answer was lost is made again if the state is the same; otherwise nobody knows what became of it. */
  #settleMove(): void {
    const move = this.#move;
    if (move === undefined || move.proposal !== undefined) return this.#settleProposal();
    if (this.view?.state_version === move.stateVersion) return this.#sendMove();
    this.#moveFails(new ParlorError("stale_state", "the room changed before this move came", "look at the room, and move again"));
  }

  /** A move that the others judge stands or falls once it waits no more. */
  #settleProposal(): void {
    const [move, view] = [this.#move, this.view];
    if (move?.proposal === undefined || view?.proposals?.some(({ id }) => id === move.proposal)) return;
    const decided = view?.decided?.find(({ id }) => id === move.proposal);
    if (decided?.why === null) return this.#moveStands();
    this.#moveFails(disputed(decided?.why ?? "it is not known any more"), true);
  }

  /** What a notice of meanwhile says of a move whose answer was lost. One of a move before it says nothing. */
  #moveWas(kind: string, body: JsonObject): void {
    const [move, view] = [this.#move, this.view];
    if (move === undefined) return;
    if (kind === "move_made" && Number(body["state_version"]) > move.stateVersion) this.#moveStands();
    else if (kind === "move_proposed" && Number(body["proposal"]) > (view?.last_proposal ?? 0)) move.proposal = Number(body["proposal"]);
  }

  #moveStands(): void {
    const move = this.#move;
    this.#move = undefined;
    this.touched();
    move?.done();
  }

  /** `isTold` if a notice tells of it. */
  #moveFails(error: ParlorError, isTold = false, checks?: unknown): void {
    const move = this.#move;
    this.#move = undefined;
    if (move === undefined) return;
    this.touched();
    if (!isTold) this.#tell({ type: "moveRejected", it: { player: this.line.me, error, ...checked(checks) } });
    move.failed(error);
  }

  /** Tells of the game's start, each turn and the end once, whether a notice or a reading says it first. */
  #tellOnce(event: RoomEvent): void {
    if (event.type === "gameStarted") {
      if (this.#toldStart) return;
      this.#toldStart = true;
    } else if (event.type === "turnStarted") {
      if (event.it.turn <= this.#toldTurn) return;
      this.#toldTurn = event.it.turn;
    } else if (event.type === "gameOver") {
      if (this.#toldOver) return;
      this.#toldOver = true;
    }
    this.#tell(event);
  }

  #tell(event: RoomEvent): void {
    this.touched();
    this.line.emit(this, event);
  }
}

function left(): ParlorError {
  return new ParlorError("left", "this player left the room");
}

function disputed(reason: string): ParlorError {
  return new ParlorError("disputed", reason === "" ? "the other players rejected the move" : reason, "make another move");
}

// Cards: the game of Goofspiel, at a table without a dealer and without a host. Lockstep: the server gives all pages the same
// messages in the same order, each page plays the same table with them, and nobody goes on until everyone has laid a card.
//
// A card is sealed first, by the SHA-256 of it and a salt, and opened when all seals are on the table. So nobody gains by
// waiting for the other's card: what is opened must be what was sealed.

import { createMatch, inviteFrom, joinMatch, type PlayerId } from "parlor";

/** The address of the server: examples/play.mjs fills it in. */
declare const SERVER: string;

const CARDS = 9;
/** What a message is: its op code. */
const SEAL = 1;
const OPEN = 2;

type Seat = { id: PlayerId; hand: Set<number>; points: number; seal?: string; open?: Uint8Array };

const numbers = () => Array.from({ length: CARDS }, (_, i) => i + 1);
const digest = async (bytes: Uint8Array<ArrayBuffer>) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** The table, as every page has it: the same messages in the same order make the same of it. */
class Table {
  readonly seats: Seat[];
  /** Prizes that are to come, and those at stake. */
  readonly prizes = numbers();
  stake: number[] = [];
  news = "";

  constructor(players: Iterable<PlayerId>) {
    this.seats = [...players].sort((a, b) => a - b).map((id) => ({ id, hand: new Set(numbers()), points: 0 }));
  }

  get isOver(): boolean {
    return this.stake.length === 0;
  }

  get areAllSealed(): boolean {
    return this.seats.every(({ seal }) => seal !== undefined);
  }

  /** Puts the next prize up. It depends on all salts, so no player chooses it. */
  async turn(by: Uint8Array<ArrayBuffer>): Promise<void> {
    const [chance] = await digest(by);
    this.stake.push(...this.prizes.splice(chance! % this.prizes.length, 1));
  }

  /** Takes what a player has laid down. Throws if that breaks the rules. */
  async take(from: PlayerId, op: number, bytes: Uint8Array): Promise<void> {
    const seat = this.seats.find(({ id }) => id === from);
    if (seat === undefined || this.isOver) return;
    if (op === SEAL) seat.seal ??= String(bytes);
    if (op !== OPEN || !this.areAllSealed) return;
    const isSealed = String(await digest(bytes.slice())) === seat.seal;
    if (!isSealed || !seat.hand.delete(bytes[0]!)) throw new Error(`player ${from} has opened another card than it sealed`);
    seat.open = bytes;
    if (this.seats.every(({ open }) => open !== undefined)) await this.#settle();
  }

  /** Gives the prize to the highest card. Of equal ones none takes it: it stays at stake. */
  async #settle(): Promise<void> {
    const cards = this.seats.map(({ open }) => open![0]!);
    const highest = Math.max(...cards);
    const takers = this.seats.filter((_, i) => cards[i] === highest);
    const salts = this.seats.flatMap(({ open }) => [...open!]);
    this.news = `${cards.join(" against ")}: ${takers.length > 1 ? "the prize stays" : `${this.stake.join(" and ")} taken`}. `;
    if (takers.length === 1) {
      takers[0]!.points += this.stake.reduce((sum, prize) => sum + prize, 0);
      this.stake = [];
    }
    for (const seat of this.seats) seat.seal = seat.open = undefined;
    if (this.prizes.length > 0) await this.turn(Uint8Array.from(salts));
    else this.stake = [];
  }
}

const element = (id: string) => document.getElementById(id)!;
const say = (text: string) => void (element("status").textContent = text);

const invite = inviteFrom();
const match = invite ? await joinMatch("cards", invite) : await createMatch("cards", { server: SERVER, maxPlayers: 2 });
let table: Table | undefined;
/** The card that this player has sealed, with its salt. */
let laid: Uint8Array<ArrayBuffer> | undefined;
/** What comes is taken one after another: a digest takes a moment. */
let queue: Promise<void> = Promise.resolve();

async function lay(card: number): Promise<void> {
  laid = Uint8Array.of(card, ...crypto.getRandomValues(new Uint8Array(16)));
  show();
  match.sendData(SEAL, "all", await digest(laid));
}

async function begin(): Promise<void> {
  if (table !== undefined || match.players.size < 2) return;
  table = new Table(match.players.keys());
  await table.turn(new TextEncoder().encode(match.code));
  show();
}

async function take(from: PlayerId, op: number, bytes: Uint8Array): Promise<void> {
  await table?.take(from, op, bytes);
  if (laid && op === SEAL && table?.areAllSealed) {
    match.sendData(OPEN, "all", laid);
    laid = undefined;
  }
  show();
}

function show(): void {
  if (table === undefined) return;
  const own = table.seats.find(({ id }) => id === match.me)!;
  const [other] = table.seats.filter((seat) => seat !== own).map(({ points }) => points);
  const result = own.points > other! ? "You win!" : own.points < other! ? "You lose." : "A draw.";
  const isWaiting = laid !== undefined || own.seal !== undefined;
  element("prize").textContent = table.isOver ? "♛" : table.stake.join(" + ");
  element("scores").textContent = `you ${own.points} : ${other} the other`;
  say(table.news + (table.isOver ? result : isWaiting ? "The other chooses." : "Choose a card."));
  const hand = numbers().map((card) => {
    const button = document.createElement("button");
    button.textContent = String(card);
    button.disabled = isWaiting || table!.isOver || !own.hand.has(card);
    button.onclick = () => void lay(card);
    return button;
  });
  element("hand").replaceChildren(...hand);
}

const inOrder = (work: () => Promise<void>) => (queue = queue.then(work).catch((why: Error) => say(why.message)));
const link = Object.assign(document.createElement("a"), { href: match.inviteUrl(location.href), textContent: "this link" });
element("status").replaceChildren("The other player opens ", link, ".");
match.on("data", ({ from, op, bytes }) => void inOrder(() => take(from, op, bytes)));
match.on("playerJoined", () => void inOrder(begin));
match.on("playerLeft", () => table?.isOver || say("The other player has left: you win."));
match.on("closed", ({ message }) => say(message));
void inOrder(begin);

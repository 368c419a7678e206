// Opening a room: where it is, its core, its transport, and the wait until it is open.

// First: the script of the worker has the code of the links again, and gzip sees that only within 32 KiB.
import { startTransport } from "../worker/source.js";
import { Driver, type TokenSource } from "../driver/driver.js";
import { ParlorError } from "../error.js";
import { abortReason } from "../thrown.js";
import { type Check, checkOf, KeyChecks, type Shape } from "../game/shape.js";
import { type DialRequest, type DialTools, HEAD_START_MS } from "../link/dial.js";
import { EarlyTransport } from "../link/early.js";
import { watchPage } from "../page/lifecycle.js";
import { Seat } from "../page/seat.js";
import { type Address, parseAddress, parseHashes } from "../server/address.js";
import { type Invite, parseInvite } from "../server/invite.js";
import type { Data } from "../value/data.js";
import { Core } from "../wasm/core.js";
import { compiledModule } from "../wasm/module.js";
import { type Action, isPredicted } from "../world/action.js";
import { type Component, type Interest, type OwnDefinition, ownOf, schemaOf } from "../world/component.js";
import { type AnyOptions, checkNames, coreOptions, type Intent, optionNames, silenceMs } from "./options.js";
import type { Checks } from "./gathering.js";
import { RoomImpl } from "./room.js";
import type { OpenOptions } from "./types.js";

/** What a game says of itself, for the room that it opens. */
export interface Defined {
  /** Its keyed state, by key or pattern: `"round"`, `"tank/*"`. */
  state?: Readonly<Record<string, Shape>>;
  /** What a player wants in one step. */
  input?: Shape;
  /** Its messages, by kind. */
  messages?: Readonly<Record<string, Shape>>;
  /** What players ask for on entities of their own, by name; predicted, if it is made by `action`. */
  actions?: Readonly<Record<string, Shape>>;
  /** What its entities are made of, and which of them a member receives. */
  world?: { readonly components: readonly Component[]; readonly interest?: Interest };
  /** Components that a member predicts on its own entities: its steps run ahead of the host's. */
  predict?: readonly Component[];
  /** What each player says of itself, without a host: `parlor/own` sets and reads it. */
  own?: Component | OwnDefinition;
  /** How corrections of mispredictions fade: within so many ms, and not beyond a leap. */
  smoothing?: { readonly fadeMs?: number; readonly leap?: number };
}

/** Answers that say that a seat is not there any more. */
const GONE = ["resume", "no_such_room", "resume_token_reused"];


/** Hosts, or creates a match. */
export async function openNew(app: string, intent: "host" | "match", options: AnyOptions, defined: Defined = {}): Promise<RoomImpl> {
  checkNames(options, optionNames(intent));
  const address = addressOf(options, undefined);
  return open(app, { intent }, address, options, defined, () => Seat.open(app, options.remember ?? "tab"));
}

/** Joins the room of an invite. */
export async function openJoined(app: string, invite: string | URL, options: AnyOptions, defined: Defined = {}): Promise<RoomImpl> {
  checkNames(options, optionNames("join"));
  const read = parseInvite(invite);
  const address = addressOf(options, read);
  const secret = options.secret ?? read.secret;
  const intent: Intent = { intent: "join", code: read.code, secret };
  return open(app, intent, address, { ...options, secret }, defined, () => Seat.open(app, options.remember ?? "tab"));
}

/** Takes the seat that this tab had, if there is one and no other page has it. */
export async function openAgain(app: string, options: AnyOptions, defined: Defined = {}): Promise<RoomImpl | undefined> {
  checkNames(options, optionNames("resume"));
  const reclaimed = await Seat.reclaim(app, options.remember ?? "tab");
  if (reclaimed === undefined) return undefined;
  const { seat, record } = reclaimed;
  const intent: Intent = { intent: "resume", ticket: record.ticket };
  const secret = options.secret ?? record.secret;
  try {
    return await open(app, intent, record.server, { ...options, secret }, defined, () => Promise.resolve(seat));
  } catch (thrown) {
    // The seat was given up: that is an answer. All else is the caller's.
    if (thrown instanceof ParlorError && GONE.includes(thrown.code)) {
      seat.forget();
      return undefined;
    }
    throw thrown;
  }
}

async function open(
  app: string,
  intent: Intent,
  address: Address,
  options: AnyOptions,
  defined: Defined,
  seatOf: () => Promise<Seat>,
): Promise<RoomImpl> {
  const { signal } = options;
  if (signal?.aborted === true) throw abortReason(signal);
  const token = typeof options.token === "string" ? options.token : undefined;
  options.account?.check(app, options.environment, address);
  const given = coreOptions(app, intent, options, token, worldOptions(defined));
  const predicted = new Set((defined.predict ?? []).map(({ name }) => name));
  const predictedActions = new Map(predictedOf(defined));
  const checks = checksOf(defined);
  const via = options.via ?? "auto";
  // A server that wants a token is told from the core's first word on, so who fetches one dials then.
  const fetched = tokenOf(options);
  const early = fetched !== undefined ? undefined : { address, via, headStartMs: HEAD_START_MS };
  const { core, seat, transport } = await parts(seatOf, options, early);
  let room: RoomImpl | undefined;
  let wake: () => void = () => {};
  let failed: ParlorError | undefined;
  const driver = new Driver(
    core,
    {
      address,
      via,
      token: fetched,
      joins: intent.intent === "join" || intent.intent === "resume",
    },
    {
      linked: () => room?.linked(),
      changed: () => {
        wake();
        room?.changed();
      },
      failed: (why) => {
        failed = why;
        room?.fail(why);
        wake();
      },
      gameDue: (now) => room?.gameDue(now) ?? Number.POSITIVE_INFINITY,
    },
  );
  try {
    const length = core.putValues(given);
    core.call((it) => it.open(length));
    const unwatch = watchPage({
      visibility: () => room?.visibilityChanged(),
      back: () => driver.hurry(),
      hidden: () => {
        if (options.whenPageHides === "leave") room?.leaveNow();
      },
    });
    const { secret, whenHidden = isTouched() ? "hand-over" : "keep-playing" } = options;
    const handsOver = whenHidden === "hand-over";
    const own = defined.own && ownOf(defined.own).component;
    room = new RoomImpl({
      core, driver, seat, checks, secret, silenceMs: silenceMs(options), handsOver, predicted, predictedActions, own, unwatch,
    });
    driver.begin(transport);
    const opened = room;
    await new Promise<void>((resolve, reject) => {
      const aborted = () => reject(abortReason(signal!));
      wake = () => {
        const state = failed === undefined ? opened.pollOpen() : failed;
        if (state === "waits") return;
        signal?.removeEventListener("abort", aborted);
        wake = () => {};
        if (state === "open") resolve();
        else reject(state instanceof ParlorError ? state : new ParlorError(state.code, state.message, state.hint, { retryAfterMs: state.retryAfterMs }));
      };
      signal?.addEventListener("abort", aborted, { once: true });
      if (signal?.aborted === true) aborted();
      wake();
    });
    // A program that listens right after `await` misses nothing: events wait for the next task.
    setTimeout(() => opened.pollsItself(), 0);
    return opened;
  } catch (thrown) {
    driver.end();
    if (room === undefined) {
      seat.letGo();
      transport.end();
    } else {
      room.abandon();
    }
    throw thrown;
  }
}

/**
 * What a room is made of, all begun at once; the way to the server, too, if there is a request. What was made is let go
 * again if the core is not to be had.
 */
async function parts(seatOf: () => Promise<Seat>, options: OpenOptions, early: DialRequest | undefined) {
  const { network } = options;
  const started = startTransport(workerOf(options), toolsOf(options), early);
  const starting = started.then((make) => new EarlyTransport(network === undefined ? make : network.wrap(make), early));
  const making = [seatOf(), starting] as const;
  const core = await Core.create().catch(async (thrown: unknown) => {
    const [seat, transport] = await Promise.all(making);
    seat.letGo();
    transport.end();
    throw thrown;
  });
  const [seat, transport] = await Promise.all(making);
  return { core, seat, transport };
}

/** Whether this is a device with nothing but a touch screen, such as a phone. */
function isTouched(): boolean {
  return globalThis.matchMedia?.("(hover: none) and (pointer: coarse)").matches ?? false;
}

/** What admits each connection: the game's function, or the account. */
function tokenOf({ token, account }: OpenOptions): TokenSource | undefined {
  if (account === undefined) return typeof token === "function" ? token : undefined;
  if (token !== undefined) throw new ParlorError("bad_options", "a player comes in by an account or by a token", "leave one of them out");
  return (at, admission) => account.ticket(at, admission);
}

/** Where to go: what the game says, then the invite, then the account's server, then the page's own. */
function addressOf(options: OpenOptions, invite: Invite | undefined): Address {
  const hashes = invite?.server?.hashes ?? invite?.hashes;
  const pinned = hashes === undefined ? {} : { hashes };
  if (options.server !== undefined) {
    const address = parseAddress(options.server);
    const isSame = invite?.server === undefined || invite.server.host === address.host;
    return isSame ? { ...pinned, ...address } : address;
  }
  if (invite?.server !== undefined) return invite.server;
  if (options.account !== undefined) return { ...pinned, ...options.account.address };
  const here = pageServer();
  if (here === undefined) {
    throw new ParlorError("no_server", "there is no server to go to: no `server` was given, and no page came from one");
  }
  return { ...here, ...pinned };
}

/** The server that the page came from: it may say so itself, with its certificates' hashes. */
function pageServer(): Address | undefined {
  const { document, location } = globalThis as { document?: Document; location?: Location };
  const said = document?.querySelector?.("meta[name=parlor]")?.getAttribute("content");
  if (said !== undefined && said !== null && said !== "") {
    const { server, hashes } = Object.fromEntries(new URLSearchParams(said)) as { server?: string; hashes?: string };
    const address = server === undefined ? originOf(location) : parseAddress(server);
    if (address !== undefined) return hashes === undefined ? address : { ...address, hashes: parseHashes(hashes) };
  }
  return originOf(location);
}

function originOf(location: Location | undefined): Address | undefined {
  return location !== undefined && /^https?:$/.test(location.protocol) ? parseAddress(location.origin) : undefined;
}

function toolsOf(options: OpenOptions): DialTools {
  const platform = globalThis as DialTools;
  const { WebSocket = platform.WebSocket } = options;
  // A game that brings its own WebSocket runs outside of a browser, or in a test.
  const WebTransport = options.WebSocket === undefined ? platform.WebTransport : undefined;
  return {
    ...(WebSocket === undefined ? {} : { WebSocket }),
    ...(WebTransport === undefined ? {} : { WebTransport }),
    ...(platform.fetch === undefined ? {} : { fetch: platform.fetch.bind(globalThis) }),
  };
}

function workerOf(options: OpenOptions): NonNullable<OpenOptions["worker"]> {
  return options.worker ?? options.WebSocket === undefined;
}

/** The world in the words of the core. */
function worldOptions(defined: Defined): Record<string, Data> {
  const { world, predict, own, smoothing } = defined;
  const actions = predictedOf(defined).map(([name]) => name);
  return {
    ...(actions.length === 0 ? {} : { actions }),
    ...(world === undefined ? {} : { schema: schemaOf(world.components, world.interest) }),
    ...(predict === undefined ? {} : { predict: predict.map(({ name }) => name) }),
    ...(own === undefined ? {} : { own: ownOf(own).given }),
    ...(smoothing === undefined ? {} : { smoothing: { ...smoothing } }),
  };
}

/** The actions that a game predicts. */
function predictedOf({ actions = {} }: Defined): [string, Action<unknown>][] {
  return Object.entries(actions).filter((entry): entry is [string, Action<unknown>] => isPredicted(entry[1]));
}

function checksOf(defined: Defined): Checks {
  const messages = checksByName(defined.messages);
  return { state: new KeyChecks(defined.state), input: checkOf(defined.input), messages, actions: checksByName(shapesOf(defined)) };
}

/** The shapes of actions, of those that bring a function along too. */
function shapesOf({ actions = {} }: Defined): Record<string, Shape> {
  return Object.fromEntries(Object.entries(actions).map(([name, shape]) => [name, isPredicted(shape) ? shape.value : shape]));
}

function checksByName(shapes: Readonly<Record<string, Shape>> = {}): Map<string, Check> {
  const all = Object.entries(shapes).map(([name, shape]) => [name, checkOf(shape)] as const);
  return new Map(all.filter((entry): entry is [string, Check] => entry[1] !== undefined));
}

/** Compiles the WebAssembly before it is needed. */
export async function load(): Promise<void> {
  await compiledModule();
}

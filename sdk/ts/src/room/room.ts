// A room with a host: keyed state, inputs, and a world of entities.

import type { Data } from "../value/data.js";
import type { Exports } from "../wasm/exports.js";
import type { ActionRequest } from "../world/action.js";
import { WorldImpl } from "../world/world.js";
import { share } from "./inside.js";
import { FLAG, GatheringImpl, type Parts } from "./gathering.js";
import type { Hints, PlayerId } from "./types.js";

/** Which entries: as written, for the eye, or keys alone. */
const ENTRIES = { written: 0, shown: 1, keys: 3 } as const;

/** No member, in the words of the core. */
const NOBODY = -2;
/** What the core says of an action that is applied for the first time. */
const FIRST_TIME = 1;
/** Ends an action that was applied. */
const NOTHING = new Uint8Array(0);

/** The class behind `Room`. */
export class RoomImpl extends GatheringImpl {
  readonly world: WorldImpl;

  constructor(parts: Parts) {
    super(parts);
    const room = this;
    const inside = {
      core: parts.core,
      predicted: parts.predicted,
      own: parts.own,
      get isHost() {
        return room.isHost;
      },
      get me() {
        return room.me;
      },
      predictsAction: (name: string) => parts.predictedActions.has(name),
      applyActions: () => this.#applyActions(),
      now: () => this.now(),
      assertOpen: () => this.assertOpen(),
      soon: () => this.soon(),
      get isClosed() {
        return room.why !== undefined;
      },
      acceptedInput: (player: PlayerId, input: Data) => this.accepted(parts.checks.input, input, "an input", player),
    };
    this.world = new WorldImpl(inside);
    share(this, inside);
  }

  get isReplay(): boolean {
    return this.has(FLAG.replay);
  }

  // ── keyed state

  set(key: string, value: unknown): void {
    this.write([key, value as Data], (it, length) => it.set(length));
  }

  setFor(players: Iterable<PlayerId>, key: string, value: unknown): void {
    this.write([[...players], key, value as Data], (it, length) => it.set_for(length));
  }

  delete(key: string): boolean {
    return this.write([key], (it, length) => it.remove(length)) === 1;
  }

  get(key: string): never {
    return this.#read(key, (it, length) => it.get(length));
  }

  interpolated(key: string): never {
    return this.#read(key, (it, length) => it.interpolated(length, this.now()));
  }

  predicted(key: string): never {
    return this.#read(key, (it, length) => it.predicted(length));
  }

  setPredicted(key: string, value: unknown): void {
    this.write([key, value as Data], (it, length) => it.set_predicted(length));
  }

  entries(prefix: string, options?: { interpolated?: boolean }): never {
    const what = options?.interpolated === true ? ENTRIES.shown : ENTRIES.written;
    const read = this.#all(prefix, what);
    const entries: [string, Data][] = [];
    for (let i = 0; i + 1 < read.length; i += 2) {
      const key = read[i] as string;
      const value = this.#checked(key, read[i + 1]!);
      if (value !== undefined) entries.push([key, value]);
    }
    return entries as never;
  }

  keys(prefix = ""): string[] {
    return this.#all(prefix, ENTRIES.keys) as string[];
  }

  declare(prefix: string, hints: Hints): void {
    this.write([prefix, hints as Data], (it, length) => it.declare(length));
  }

  get stateHash(): { sequence: bigint; hash: bigint } | undefined {
    if (this.why !== undefined || this.core.call((it) => it.state_hash()) === 0) return undefined;
    const bytes = this.core.bytes();
    const view = new DataView(bytes.buffer);
    return { sequence: view.getBigUint64(0, true), hash: view.getBigUint64(8, true) };
  }

  // ── inputs

  sendInput(input: unknown): void {
    this.write([input as Data], (it, length) => it.send_input(length));
  }

  input(player: PlayerId): never {
    if (this.why !== undefined || this.core.call((it) => it.input(player)) === 0) return undefined as never;
    return this.#checkedInput(player, this.core.value()) as never;
  }

  inputs(): never {
    if (this.why !== undefined) return [] as never;
    this.core.call((it) => it.inputs());
    const read = this.core.values();
    const inputs: [PlayerId, Data][] = [];
    for (let i = 0; i + 1 < read.length; i += 2) {
      const player = read[i] as PlayerId;
      const input = this.#checkedInput(player, read[i + 1]!);
      if (input !== undefined) inputs.push([player, input]);
    }
    return inputs as never;
  }

  once(effect: string, number: number): boolean {
    return this.write([effect], (it, length) => it.once(length, number)) === 1;
  }

  // ── the host

  kick(player: PlayerId, reason = ""): void {
    this.write([reason], (it, length) => it.kick(player, length));
  }

  handOver(to: PlayerId = NOBODY): void {
    this.write([], (it) => it.hand_over(to, this.now()));
  }

  override visibilityChanged(): void {
    const { hidden } = globalThis.document ?? {};
    if (hidden === true && this.parts.handsOver && this.isHost) {
      try {
        this.handOver();
      } catch {
        // There is nobody to go on: this page does, as far as it is let.
      }
    }
    super.visibilityChanged();
  }

  stop(): Promise<void> {
    return this.goodbye((it) => it.stop(this.now()));
  }

  // ── inside

  protected override stepBegan(): void {
    // What a step runs first are the actions of its players.
    if (this.parts.predictedActions.size > 0) this.#applyActions();
  }

  /** Applies the predicted actions that wait. Returns why one that this player made is refused. */
  #applyActions(): string | undefined {
    let refused: string | undefined;
    for (;;) {
      const kind = this.core.call((it) => it.action_request());
      if (kind === 0) return refused;
      const request = this.core.value() as unknown as ActionRequest;
      const why = this.#applied(request, kind === FIRST_TIME);
      const length = why === undefined ? this.core.put(NOTHING) : this.core.putValues(why);
      if (this.core.call((it) => it.action_done(length, this.now())) === 1) refused = why ?? undefined;
      this.driver.soon();
    }
  }

  /** Applies one, or undoes it. Returns why it is refused; null if its value cannot be read. */
  #applied(request: ActionRequest, isFirst: boolean): string | null | undefined {
    const { name, from } = request;
    const check = from === this.me ? undefined : this.parts.checks.actions.get(name);
    const value = this.accepted(check, request.value as Data, `an action ${JSON.stringify(name)}`, from);
    if (value === undefined) return null;
    const room = this;
    const acting = {
      world: this.world, isHost: this.isHost, me: this.me, predicted: this.parts.predicted,
      get isDead() {
        return room.core.isDead;
      },
      once: (effect: string, number: number) => this.once(effect, number),
    };
    return this.parts.predictedActions.get(name)?.run(acting, request, isFirst, value);
  }

  #read(key: string, run: (exports: Exports, length: number) => number): never {
    if (this.core.isDead) return undefined as never;
    const length = this.core.putValues(key);
    if (this.core.call((it) => run(it, length)) === 0) return undefined as never;
    return this.#checked(key, this.core.value()) as never;
  }

  #all(prefix: string, what: number): Data[] {
    if (this.core.isDead) return [];
    const length = this.core.putValues(prefix);
    this.core.call((it) => it.entries(length, what, this.now()));
    return this.core.values();
  }

  #checked(key: string, value: Data): Data | undefined {
    const check = this.isHost ? undefined : this.parts.checks.state.of(key);
    return this.accepted(check, value, `the state ${key}`, this.host);
  }

  #checkedInput(player: PlayerId, value: Data): Data | undefined {
    return this.accepted(player === this.me ? undefined : this.parts.checks.input, value, "an input", player);
  }
}

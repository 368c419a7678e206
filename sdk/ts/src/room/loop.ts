// Runs a game: fixed steps from animation frames while the page shows, and from the transport's beats while it does
// not, so that a hidden host keeps its room going.

import { report } from "./emitter.js";

/** What a loop drives. */
export interface Steps {
  update(): void;
  tick(): boolean;
  untilNextTickMs(): number;
  readonly tickHz: number;
  isOver(): boolean;
  /** The loop wants a beat at another time than before. */
  rearm(): void;
}

/** What a loop calls. */
export interface Game {
  tick?: (() => void) | undefined;
  draw?: ((frame: { timeMs: number; deltaMs: number; alpha: number }) => void) | undefined;
}

/** Frames stop without a word where a window is covered or an iframe is off the screen. */
const FRAME_LATE_MS = 100;

interface Frames {
  requestAnimationFrame?(callback: (time: number) => void): number;
  cancelAnimationFrame?(id: number): void;
  document?: { hidden: boolean };
}

/** A running game. */
export class LoopRunner {
  readonly #frames = globalThis as Frames;
  #frame: number | undefined;
  #lastFrame: number | undefined;
  #isStopped = false;

  constructor(
    private readonly steps: Steps,
    private readonly game: Game,
  ) {
    this.#ask();
    steps.rearm();
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#frame !== undefined) this.#frames.cancelAnimationFrame?.(this.#frame);
    this.steps.rearm();
  }

  /** In how many ms it wants a beat; Infinity for never. */
  beatInMs(): number {
    if (this.#isStopped || this.steps.isOver()) return Number.POSITIVE_INFINITY;
    const due = this.steps.untilNextTickMs();
    return this.#framesRun() ? Math.max(due, FRAME_LATE_MS) : due;
  }

  /** A beat came, or packets: steps are run if frames do not run them. */
  beat(): void {
    if (this.#isStopped || this.#framesRun()) return;
    this.#step();
  }

  #step(): void {
    this.steps.update();
    if (this.game.tick === undefined) {
      // Who has no step of its own lets the room's steps pass, so that what was written is committed.
      while (!this.#isStopped && this.steps.tick()) this.steps.update();
      return;
    }
    while (!this.#isStopped && this.steps.tick()) this.#guarded(this.game.tick);
  }

  #ask(): void {
    this.#frame = this.#frames.requestAnimationFrame?.((time) => this.#draw(time));
  }

  #draw(time: number): void {
    if (this.#isStopped) return;
    this.#ask();
    const deltaMs = this.#lastFrame === undefined ? 0 : time - this.#lastFrame;
    this.#lastFrame = time;
    this.#step();
    const { draw } = this.game;
    if (draw === undefined || this.#isStopped || this.steps.isOver()) return;
    const untilNext = this.steps.untilNextTickMs();
    const alpha = Number.isFinite(untilNext) ? Math.min(1, Math.max(0, 1 - (untilNext * this.steps.tickHz) / 1_000)) : 0;
    this.#guarded(() => draw({ timeMs: time, deltaMs, alpha }));
  }

  /** Whether frames come, so that they run the steps. */
  #framesRun(): boolean {
    if (this.#lastFrame === undefined || this.#frames.document?.hidden === true) return false;
    return performance.now() - this.#lastFrame < FRAME_LATE_MS;
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (thrown) {
      report(thrown);
    }
  }
}

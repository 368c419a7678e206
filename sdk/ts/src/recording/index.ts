// The entry `parlor/recording`: a host's room as a file, which `parlor replay` plays again.

import type { GameTypes } from "../game/types.js";
import { insideOf, type RoomInside } from "../room/inside.js";
import type { Closed, Room } from "../room/types.js";

/** How often it is looked whether there is more to write. The core keeps 16 MiB meanwhile. */
const LOOK_EVERY_MS = 250;

/** What was recorded. */
export interface RecordingFigures {
  /** Of the file, what was not read yet included. */
  readonly bytes: number;
  readonly packets: number;
  /** Hashes of the whole world, by which the player of the file compares its own. */
  readonly marks: number;
  /** Why it ended, once it has. */
  readonly ended?: string;
}

/** A recording that runs, or has ended. */
export interface Recording {
  /**
   * The bytes of the file, to be read as they come: if 16 MiB wait, the recording ends there. It ends with the room, by `stop`, or
   * when another player becomes the host. Cancelling it is `stop`, too.
   */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly figures: RecordingFigures;
  /** Ends the recording. The stream ends after what was recorded until then. */
  stop(): void;
}

/**
 * Records the room from here on, at its host: all state that it writes, and who comes and goes. The file has everything, also what
 * only some players may see.
 */
export function record<G extends GameTypes>(room: Room<G>): Recording {
  const inside = insideOf(room);
  inside.assertOpen();
  inside.core.call((it) => it.recording_start());
  return new RecordingImpl(inside, room.closed);
}

class RecordingImpl implements Recording {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  #wake: () => void = () => {};
  #known: RecordingFigures = { bytes: 0, packets: 0, marks: 0 };

  constructor(
    private readonly inside: RoomInside,
    closed: Promise<Closed>,
  ) {
    this.stream = new ReadableStream({ pull: (controller) => this.#pull(controller), cancel: () => this.stop() }, { highWaterMark: 0 });
    void closed.then(() => this.#wake());
  }

  get figures(): RecordingFigures {
    const { core } = this.inside;
    if (!core.isDead && core.call((it) => it.recording_figures()) === 1) this.#known = core.value() as unknown as RecordingFigures;
    return this.#known;
  }

  stop(): void {
    if (!this.inside.core.isDead) this.inside.core.call((it) => it.recording_stop());
    this.#wake();
  }

  /** Gives what was recorded since the last time, as soon as there is something. A defect of the core is the stream's error. */
  async #pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
    const { core } = this.inside;
    for (;;) {
      const isOver = this.inside.isClosed || this.figures.ended !== undefined;
      if (core.call((it) => it.recording_take()) > 0) return controller.enqueue(core.bytes() as Uint8Array<ArrayBuffer>);
      if (isOver) return controller.close();
      await this.#pause();
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, LOOK_EVERY_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

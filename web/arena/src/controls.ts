/** Keys, a mouse, and two sticks for fingers: one drives, the other aims and fires. */

import type { Vec2 } from "parlor";
import { aimOf, type Order, type Tank } from "./rules.ts";

/** How far a finger moves, in CSS pixels, before it points. */
const DEAD = 12;
const KEYS: Record<string, readonly [east: number, south: number]> = {
  ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0],
  KeyW: [0, -1], KeyS: [0, 1], KeyA: [-1, 0], KeyD: [1, 0],
};

export class Controls {
  readonly #down = new Set<string>();
  #way: Vec2 = { x: 0, y: 0 };
  #aim = 0;
  /** Where the mouse points in the arena, if it was used last. */
  #target: Vec2 | undefined;
  #isFiring = false;

  /** What the player wants in this step. */
  order(me: Tank | undefined): Order {
    const held = [...this.#down].map((code) => KEYS[code]).filter((it) => it !== undefined);
    const [east, south] = held.reduce(([x, y], [dx, dy]) => [x + dx, y + dy] as const, [0, 0] as readonly [number, number]);
    if (me && this.#target) this.#aim = aimOf(Math.atan2(this.#target.y - me.position.y, this.#target.x - me.position.x));
    return {
      east: Math.sign(east || this.#way.x),
      south: Math.sign(south || this.#way.y),
      aim: this.#aim,
      fire: this.#isFiring || this.#down.has("Space"),
      from: null,
    };
  }

  /** Listens to the keyboard, but not while a text is typed or a dialog is open. */
  keys(signal: AbortSignal): void {
    addEventListener("keydown", (event) => {
      const { target } = event;
      const types = target instanceof HTMLInputElement && target.type !== "checkbox";
      if (types || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (!(event.code in KEYS) && event.code !== "Space") return;
      this.#down.add(event.code);
      event.preventDefault();
    }, { signal });
    addEventListener("keyup", (event) => void this.#down.delete(event.code), { signal });
    // A key that is let go elsewhere is not heard of.
    addEventListener("blur", () => this.#down.clear(), { signal });
  }

  /** The mouse aims on the canvas, and fires while its button is down. `toArena` reads a place on the page. */
  mouse(canvas: HTMLElement, toArena: (x: number, y: number) => Vec2, signal: AbortSignal): void {
    const isMouse = (event: PointerEvent) => event.pointerType === "mouse";
    canvas.addEventListener("pointermove", (event) => {
      if (isMouse(event)) this.#target = toArena(event.clientX, event.clientY);
    }, { signal });
    canvas.addEventListener("pointerdown", (event) => {
      if (!isMouse(event) || event.button !== 0) return;
      this.#target = toArena(event.clientX, event.clientY);
      this.#isFiring = true;
      canvas.setPointerCapture(event.pointerId);
    }, { signal });
    for (const end of ["pointerup", "pointercancel"] as const) {
      canvas.addEventListener(end, (event) => {
        if (isMouse(event)) this.#isFiring = false;
      }, { signal });
    }
  }

  /** An element on which a finger drives. */
  driveStick(element: HTMLElement, signal: AbortSignal): void {
    stick(element, signal, (tilt) => {
      // Eight ways: a part of less than 0.38 of the tilt is none.
      const part = (value: number, length: number) => (Math.abs(value) > 0.38 * length ? Math.sign(value) : 0);
      const length = tilt ? Math.hypot(tilt.x, tilt.y) : 0;
      this.#way = tilt && length > DEAD ? { x: part(tilt.x, length), y: part(tilt.y, length) } : { x: 0, y: 0 };
    });
  }

  /** An element on which a finger aims, and fires while it does. */
  aimStick(element: HTMLElement, signal: AbortSignal): void {
    stick(element, signal, (tilt) => {
      const points = tilt !== undefined && Math.hypot(tilt.x, tilt.y) > DEAD;
      if (points) [this.#aim, this.#target] = [aimOf(Math.atan2(tilt.y, tilt.x)), undefined];
      this.#isFiring = points;
    });
  }
}

/** Follows a finger from where it was put down; undefined when it is gone. The element's knob shows it. */
function stick(element: HTMLElement, signal: AbortSignal, tell: (tilt: Vec2 | undefined) => void): void {
  const knob = element.querySelector<HTMLElement>(".knob");
  let finger: { id: number; x: number; y: number } | undefined;
  const show = (tilt: Vec2 | undefined) => {
    tell(tilt);
    if (!knob) return;
    const length = Math.max(1, Math.hypot(tilt?.x ?? 0, tilt?.y ?? 0));
    const part = Math.min(1, 40 / length);
    knob.style.setProperty("--dx", `${(tilt?.x ?? 0) * part}px`);
    knob.style.setProperty("--dy", `${(tilt?.y ?? 0) * part}px`);
  };
  element.addEventListener("pointerdown", (event) => {
    finger = { id: event.pointerId, x: event.clientX, y: event.clientY };
    element.setPointerCapture(event.pointerId);
    show({ x: 0, y: 0 });
    event.preventDefault();
  }, { signal });
  element.addEventListener("pointermove", (event) => {
    if (event.pointerId === finger?.id) show({ x: event.clientX - finger.x, y: event.clientY - finger.y });
  }, { signal });
  const up = (event: PointerEvent) => {
    if (event.pointerId !== finger?.id) return;
    finger = undefined;
    show(undefined);
  };
  for (const end of ["pointerup", "pointercancel"] as const) element.addEventListener(end, up, { signal });
}

/** Keys, touches and a gamepad. A direction holds until another one is given: a magpie never stops. */

import type { Dir, Input } from "./game/state.ts";

/**
 * For how many ticks a pressed dash is sent: of two inputs in one tick only the newest counts, and one may be lost. A dash
 * that is sent again does nothing.
 */
const DASH_HELD_TICKS = 4;
/** How far a finger moves, in CSS pixels, before it points. */
const SWIPE_MIN = 14;

const KEYS: Record<string, Dir> = {
  ArrowUp: "Up", ArrowDown: "Down", ArrowLeft: "Left", ArrowRight: "Right",
  KeyW: "Up", KeyS: "Down", KeyA: "Left", KeyD: "Right",
};
/** Buttons of the standard gamepad's cross. */
const CROSS: readonly (readonly [button: number, dir: Dir])[] = [[12, "Up"], [13, "Down"], [14, "Left"], [15, "Right"]];

export class Controls {
  #dir: Dir = "Stay";
  #dashHeld = 0;
  #padDashes = false;

  turn(dir: Dir): void {
    this.#dir = dir;
  }

  dash(): void {
    this.#dashHeld = DASH_HELD_TICKS;
  }

  get dir(): Dir {
    return this.#dir;
  }

  /** The input of the next tick; to be called once per tick. */
  nextInput(): Input {
    this.#readGamepad();
    const dash = this.#dashHeld > 0;
    this.#dashHeld = Math.max(0, this.#dashHeld - 1);
    return { dir: this.#dir, dash };
  }

  /** Listens to the keyboard, but not while a text is typed or a dialog is open. */
  listen(signal: AbortSignal): void {
    addEventListener("keydown", (event) => {
      const busy = event.target instanceof HTMLInputElement || document.querySelector("dialog[open]") !== null;
      if (busy || event.ctrlKey || event.metaKey || event.altKey) return;
      const dir = KEYS[event.code];
      if (dir) this.turn(dir);
      else if (event.code === "Space" && !event.repeat) this.dash();
      else if (event.code !== "Space") return;
      event.preventDefault();
    }, { signal });
  }

  /**
   * Makes an element a stick: a finger that moves on it points from where it was put down. `show` is told where the stick
   * stands, and undefined when the finger is gone.
   */
  stick(element: HTMLElement, signal: AbortSignal, show: (at?: { x: number; y: number; dir: Dir }) => void): void {
    let finger: { id: number; x: number; y: number } | undefined;
    element.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button !== 0) return;
      finger = { id: event.pointerId, x: event.clientX, y: event.clientY };
      element.setPointerCapture(event.pointerId);
      show({ x: finger.x, y: finger.y, dir: "Stay" });
      event.preventDefault();
    }, { signal });
    element.addEventListener("pointermove", (event) => {
      if (event.pointerId !== finger?.id) return;
      const [dx, dy] = [event.clientX - finger.x, event.clientY - finger.y];
      if (Math.hypot(dx, dy) < SWIPE_MIN) return;
      this.turn(Math.abs(dx) > Math.abs(dy) ? (dx < 0 ? "Left" : "Right") : dy < 0 ? "Up" : "Down");
      show({ x: finger.x, y: finger.y, dir: this.#dir });
      // The stick follows a finger that goes far, so that it turns back at once.
      const reach = 3 * SWIPE_MIN;
      const beyond = Math.hypot(dx, dy) - reach;
      if (beyond > 0) {
        const part = beyond / (beyond + reach);
        finger = { id: finger.id, x: finger.x + dx * part, y: finger.y + dy * part };
      }
    }, { signal });
    const up = (event: PointerEvent) => {
      if (event.pointerId !== finger?.id) return;
      finger = undefined;
      show();
    };
    element.addEventListener("pointerup", up, { signal });
    element.addEventListener("pointercancel", up, { signal });
  }

  button(element: HTMLElement, signal: AbortSignal): void {
    element.addEventListener("pointerdown", (event) => {
      this.dash();
      event.preventDefault();
    }, { signal });
  }

  #readGamepad(): void {
    const pad = navigator.getGamepads?.().find((it) => it?.connected && it.mapping === "standard");
    if (!pad) return;
    const [x = 0, y = 0] = pad.axes;
    const cross = CROSS.find(([button]) => pad.buttons[button]?.pressed)?.[1];
    if (cross) this.turn(cross);
    else if (Math.max(Math.abs(x), Math.abs(y)) > 0.5) {
      this.turn(Math.abs(x) > Math.abs(y) ? (x < 0 ? "Left" : "Right") : y < 0 ? "Up" : "Down");
    }
    const pressed = pad.buttons.slice(0, 4).some((button) => button.pressed);
    if (pressed && !this.#padDashes) this.dash();
    this.#padDashes = pressed;
  }
}

// Arrow keys or WASD, or a finger that is held where to fly.

import { HEIGHT, type Move, WIDTH } from "./game.js";

/** Listens to keys and to an element that shows the field. `move` says where a flyer at a place wants to go. */
export function controls(field: HTMLElement): { move(at: { x: number; y: number } | undefined): Move } {
  const down = new Set<string>();
  let finger: { x: number; y: number } | undefined;
  addEventListener("keydown", ({ code }) => down.add(code));
  addEventListener("keyup", ({ code }) => down.delete(code));
  addEventListener("blur", () => down.clear());
  const follow = (event: PointerEvent) => {
    if (event.buttons === 0) return;
    const { left, top, width, height } = field.getBoundingClientRect();
    finger = { x: ((event.clientX - left) / width) * WIDTH, y: ((event.clientY - top) / height) * HEIGHT };
  };
  field.addEventListener("pointerdown", follow);
  field.addEventListener("pointermove", follow);
  addEventListener("pointerup", () => (finger = undefined));
  const axis = (less: string[], more: string[]) => Number(more.some((it) => down.has(it))) - Number(less.some((it) => down.has(it)));
  return {
    move(at) {
      if (finger && at) return { dx: toward(finger.x - at.x), dy: toward(finger.y - at.y) };
      return { dx: axis(["ArrowLeft", "KeyA"], ["ArrowRight", "KeyD"]), dy: axis(["ArrowUp", "KeyW"], ["ArrowDown", "KeyS"]) };
    },
  };
}

const toward = (distance: number) => Math.max(-1, Math.min(1, distance / 20));

import { describe, expect, it } from "vitest";
import { defectOf } from "../../src/wasm/trap.js";

/** A module whose function `f` calls another, which traps. */
const TRAPPING = new Uint8Array([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // version 1
  ...[1, 4, 1, 0x60, 0, 0], // a type without arguments and results
  ...[3, 3, 2, 0, 0], // two functions
  ...[7, 5, 1, 1, 0x66, 0, 1], // the second is `f`
  ...[10, 10, 2, 3, 0, 0, 0x0b, 4, 0, 0x10, 0, 0x0b], // unreachable; call 0
]);

function thrownBy(run: () => void): unknown {
  try {
    run();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("it threw nothing");
}

describe("a trap", () => {
  it("names the functions that led to it", () => {
    const { f } = new WebAssembly.Instance(new WebAssembly.Module(TRAPPING), {}).exports as { f: () => void };
    const trap = thrownBy(f);
    const defect = defectOf(trap);
    expect([defect.code, defect.cause]).toEqual(["defect", trap]);
    expect(defect.message).toMatch(/unreachable in wasm-function\[0\]:0x[0-9a-f]+, called by wasm-function\[1\]:0x[0-9a-f]+/);
  });

  it.each([
    ["Firefox", "f@http://a/p.js:1:2\nwasm-function[7]@http://a/p.js line 3 > wasm:wasm-function[7]:0x1f\n", "[7]:0x1f"],
    ["Safari", "<?>.wasm-function[7]@[wasm code]\nf@http://a/p.js:1:2", "[7]"],
  ])("is read from the stack of %s", (_, stack, place) => {
    const trap = Object.assign(new Error("unreachable"), { stack });
    expect(defectOf(trap).message).toContain(`: unreachable in wasm-function${place}`);
    expect(defectOf(trap).message.split("wasm-function")).toHaveLength(2);
  });

  it("has at most four functions, and may have none", () => {
    const stack = Array.from({ length: 9 }, (_, at) => `at wasm-function[${at}]:0x1`).join("\n");
    expect(defectOf(Object.assign(new Error("e"), { stack })).message.split("wasm-function")).toHaveLength(5);
    expect(defectOf("odd").message).toMatch(/ended this room: odd/);
  });
});

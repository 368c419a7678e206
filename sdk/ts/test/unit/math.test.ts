// `parlor/math` gives the bits of the crate `libm`: both compute the hashes of testdata/math.txt, in the same way.
// crates/wasm/tests/math.rs is the other one, and says what the arguments are.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as math from "../../src/math/index.js";

const COUNT = 120_000;
const text = readFileSync(new URL("../../../../testdata/math.txt", import.meta.url), "utf8");
const lines = text.split("\n").filter((line) => /^\w/.test(line)).map((line) => line.split(" "));
const SPECIAL = lines.filter(([name]) => name === "special").map(([, bits]) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${bits}`));
  return view.getFloat64(0);
});
const vectors = new Map(lines.filter(([name]) => name !== "special").map(([name, hash]) => [name!, hash!]));

class Random {
  private readonly view = new DataView(new ArrayBuffer(8));

  constructor(private state: number) {}

  word(): number {
    this.state = (this.state + 0x9e3779b9) >>> 0;
    let t = this.state ^ (this.state >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return (t ^ (t >>> 15)) >>> 0;
  }

  argument(): number {
    const [kind, high, low] = [this.word(), this.word(), this.word()];
    const within = (high * 2_097_152 + (low >>> 11)) / 9_007_199_254_740_992 - 0.5;
    switch (kind % 4) {
      case 0:
        this.view.setUint32(0, high);
        this.view.setUint32(4, low);
        return this.view.getFloat64(0);
      case 1:
        return within * 16;
      case 2:
        return within * 2;
      default:
        return within * 2 ** (((kind >>> 2) % 64) - 24);
    }
  }
}

class Hash {
  private readonly view = new DataView(new ArrayBuffer(8));
  private a = 0;
  private b = 0;

  add(result: number): void {
    this.view.setFloat64(0, Number.isNaN(result) ? Number.NaN : result);
    this.a = rotate(Math.imul(this.a ^ this.view.getInt32(0), 0x85ebca6b), 13);
    this.b = rotate(Math.imul(((this.b ^ this.view.getInt32(4)) + this.a) | 0, 0xc2b2ae35), 15);
  }

  toString(): string {
    return [this.a, this.b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }
}

const rotate = (x: number, by: number) => (x << by) | (x >>> (32 - by));

function ofOne(run: (x: number) => number): string {
  const [hash, random] = [new Hash(), new Random(1)];
  for (const x of SPECIAL) hash.add(run(x));
  for (let i = 0; i < COUNT; i++) hash.add(run(random.argument()));
  return String(hash);
}

function ofTwo(run: (x: number, y: number) => number): string {
  const [hash, random] = [new Hash(), new Random(2)];
  for (const x of SPECIAL) for (const y of SPECIAL) hash.add(run(x, y));
  for (let i = 0; i < COUNT; i++) hash.add(run(random.argument(), random.argument()));
  return String(hash);
}

describe("functions with the same bits everywhere", () => {
  const { acos, asin, atan, atan2, cos, exp, hypot, log, pow, sin, tan } = math;
  const ones = { acos, asin, atan, cos, exp, log, sin, tan, sqrt: Math.sqrt };
  const twos = { atan2, hypot, pow };

  it("are those of libm in Rust, in 120,000 results each", () => {
    expect(SPECIAL).toHaveLength(36);
    const found = [
      ...Object.entries(ones).map(([name, run]) => [name, ofOne(run)] as const),
      ...Object.entries(twos).map(([name, run]) => [name, ofTwo(run)] as const),
    ];
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(vectors));
  });

  it("are all compared", () => {
    expect([...Object.keys(math), "sqrt"].sort()).toEqual([...vectors.keys()].sort());
  });

  it("are what they are called, within a unit or two of the engine's own", () => {
    for (const [name, run] of Object.entries(ones)) {
      for (const x of [-0.9, -0.3, 1e-9, 0.2, 0.7, 0.99]) {
        const own = (Math as unknown as Record<string, (x: number) => number>)[name]!(x);
        if (Number.isNaN(own)) expect(run(x)).toBeNaN();
        else expect(Math.abs(run(x) - own)).toBeLessThanOrEqual(Math.abs(own) * 2 ** -51);
      }
    }
    expect([hypot(3, 4), pow(2, 0.5) ** 2, atan2(-1, -1)].map((x) => x.toFixed(9))).toEqual(["5.000000000", "2.000000000", "-2.356194490"]);
  });
});

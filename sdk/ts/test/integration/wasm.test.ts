import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { ParlorError } from "../../src/error.js";
import type { Data } from "../../src/value/data.js";
import { decode } from "../../src/value/decode.js";
import { encode } from "../../src/value/encode.js";
import { Core } from "../../src/wasm/core.js";
import { moduleFrom, setModuleSource } from "../../src/wasm/module.js";
import { random, randomValue, seed } from "../support/random.js";
import { useBuiltWasm, wasmPath } from "../support/server.js";

beforeAll(useBuiltWasm);

describe("the core's reader of values and this one", () => {
  it("take and refuse the same bytes, 10,000 of them, whole and changed", async () => {
    console.log(`PARLOR_SEED=${seed}`);
    const core = await Core.create();
    const next = random(seed + 2);
    const taken = (bytes: Uint8Array) => {
      const length = core.put(bytes);
      return core.ask((it) => it.value_check(length)) === 0;
    };
    let changedTaken = 0;
    for (let i = 0; i < 10_000; i++) {
      const bytes = encode(randomValue(next));
      expect(taken(bytes), `value ${i} of seed ${seed}`).toBe(true);
      const changed = bytes.slice();
      changed[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
      const there = taken(changed);
      expect(decodes(changed), `${Buffer.from(changed).toString("hex")} of seed ${seed}`).toBe(there);
      if (there) changedTaken += 1;
    }
    expect(changedTaken).toBeGreaterThan(100);
  });
});

function decodes(bytes: Uint8Array): boolean {
  try {
    decode(bytes);
    return true;
  } catch (thrown) {
    if (thrown instanceof ParlorError) return false;
    throw thrown;
  }
}

describe("the module", () => {
  it("imports nothing: a page gives it no power", async () => {
    expect(WebAssembly.Module.imports(await WebAssembly.compile(readFileSync(wasmPath)))).toEqual([]);
  });

  it("has the interface that the package calls", async () => {
    const module = await WebAssembly.compile(readFileSync(wasmPath));
    const names = WebAssembly.Module.exports(module).map(({ name }) => name);
    const source = readFileSync(new URL("../../src/wasm/exports.ts", import.meta.url), "utf8");
    const called = [...source.matchAll(/^ {2}(\w+)\(.*\): Num;$/gm)].map(([, name]) => name!);
    expect(called.length).toBeGreaterThan(50);
    expect(called.filter((name) => !names.includes(name))).toEqual([]);
  });

  it("says in full what it refuses", async () => {
    const component = (name: string, field: string) => ({ name, fields: [{ name: field, kind: "bool" }] });
    const twice = component("walker \"a\"", "on");
    const refused: [string, Record<string, Data>][] = [
      ['the component "walker \\"a\\"" is registered twice', { schema: { components: [twice, twice] } }],
      [`the name "${"x".repeat(65)}" is not 1 to`, { schema: { components: [component("walker", "x".repeat(65))] } }],
      ['the component "none" has no fields', { schema: { components: [{ name: "none", fields: [] }] } }],
      ["presence is 1 ms; it may be 1000 ms to 8000 ms", { presenceMs: 1 }],
      ["the control character U+0007", { name: "bell\u0007" }],
      ['this has "?"', { intent: "join", code: "WHAT?" }],
    ];
    for (const [text, options] of refused) {
      const core = await Core.create();
      const length = core.putValues({ app: "game", intent: "host", ...options });
      expect(() => core.call((it) => it.open(length))).toThrow(text);
    }
  });

  it("comes from bytes, a response or a module", async () => {
    const bytes = readFileSync(wasmPath);
    const module = await moduleFrom(bytes);
    expect(await moduleFrom(module)).toBe(module);
    expect(await moduleFrom(Promise.resolve(new Response(bytes)))).toBeInstanceOf(WebAssembly.Module);
    await expect(moduleFrom(new Response("", { status: 404 }))).rejects.toMatchObject({ code: "wasm_missing" });
  });

  it("that is none is named as what is missing", async () => {
    setModuleSource(() => WebAssembly.compile(new Uint8Array([1, 2, 3])));
    await expect(Core.create()).rejects.toMatchObject({ code: "wasm_missing" });
    setModuleSource(() => Promise.reject(new EvalError("Refused to compile because 'unsafe-eval' is not allowed")));
    await expect(Core.create()).rejects.toMatchObject({ code: "wasm_refused", hint: expect.stringContaining("wasm-unsafe-eval") });
    useBuiltWasm();
    expect((await Core.create()).isDead).toBe(false);
  });
});

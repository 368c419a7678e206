// One room's core: an instance of the module, and the crossing of bytes and values into it and out of it.

import { ParlorError } from "../error.js";
import type { Data } from "../value/data.js";
import { decode, decodeAll } from "../value/decode.js";
import { encode } from "../value/encode.js";
import { ABI_VERSION, type Exports } from "./exports.js";
import { compileError, compiledModule } from "./module.js";
import { defectOf } from "./trap.js";

/** Events and lists of players nest deeper than what travels. */
const OUT_DEPTH_MAX = 40;

/** An instance of the core. After a defect it is dead: each call throws the defect. */
export class Core {
  readonly #exports: Exports;
  #defect: ParlorError | undefined;

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** Compiles the module if this is the first room of the page, and makes an instance of it. */
  static async create(): Promise<Core> {
    const module = await compiledModule();
    let instance: WebAssembly.Instance;
    try {
      instance = await WebAssembly.instantiate(module, {});
    } catch (thrown) {
      throw compileError(thrown);
    }
    const core = new Core(instance.exports as unknown as Exports);
    const version = core.#exports.abi_version?.();
    if (version !== ABI_VERSION) {
      throw new ParlorError("wasm_mismatch", `this parlor.wasm has the interface ${version}, and the package ${ABI_VERSION}`);
    }
    return core;
  }

  /** Whether a defect ended this core. */
  get isDead(): boolean {
    return this.#defect !== undefined;
  }

  /**
   * Calls a function. Its result is ≥ 0; an error of the core is thrown. A trap kills the instance, whose state may
   * be half changed.
   */
  call(run: (exports: Exports) => number): number {
    if (this.#defect !== undefined) throw this.#defect;
    let result: number;
    try {
      result = run(this.#exports);
    } catch (trap) {
      this.#defect = defectOf(trap);
      throw this.#defect;
    }
    if (result === -1) throw this.#error();
    return result;
  }

  /** Calls a function whose −1 is no error. */
  ask(run: (exports: Exports) => number): number {
    if (this.#defect !== undefined) throw this.#defect;
    try {
      return run(this.#exports);
    } catch (trap) {
      this.#defect = defectOf(trap);
      throw this.#defect;
    }
  }

  /** Puts bytes into the in buffer. Returns their length, for the call that follows. */
  put(bytes: Uint8Array): number {
    const address = this.ask((it) => it.in_reserve(bytes.length));
    if (address === 0 && bytes.length > 0) {
      throw new ParlorError("too_large", `${bytes.length} bytes are too much for one call`, "send less at once");
    }
    new Uint8Array(this.#exports.memory.buffer, address, bytes.length).set(bytes);
    return bytes.length;
  }

  /** Puts values, one behind the other, into the in buffer. Returns their length. */
  putValues(...values: (Data | undefined)[]): number {
    if (values.length === 1) return this.put(encode(values[0]));
    return this.put(concat(values.map((value) => encode(value))));
  }

  /** A copy of the out buffer. */
  bytes(): Uint8Array {
    return this.#view().slice();
  }

  /** The value in the out buffer. */
  value(): Data {
    return decode(this.#view(), OUT_DEPTH_MAX);
  }

  /** The values in the out buffer. */
  values(): Data[] {
    return decodeAll(this.#view(), OUT_DEPTH_MAX);
  }

  // Valid until the next call: memory that grows leaves its views without a buffer.
  #view(): Uint8Array {
    return new Uint8Array(this.#exports.memory.buffer, this.#exports.out_ptr(), this.#exports.out_len());
  }

  #error(): ParlorError {
    const { code, message, path } = this.value() as { code: string; message: string; path?: string };
    return new ParlorError(code, path === undefined || message.includes(path) ? message : `${path}: ${message}`);
  }
}

function concat(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

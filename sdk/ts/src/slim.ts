// The package without its WebAssembly, for who serves parlor.wasm as a file.

import { moduleFrom, setModuleSource } from "./wasm/module.js";

export * from "./api.js";

/** Sets where the WebAssembly comes from: a module, its bytes, a response, or a URL. It is loaded at the first room, or by `load`. */
export function init(module: Parameters<typeof moduleFrom>[0]): void {
  setModuleSource(() => moduleFrom(module));
}

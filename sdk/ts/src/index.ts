// The package: it carries its WebAssembly, which is compiled at the first room.

import { setModuleSource, unpackModule } from "./wasm/module.js";

export * from "./api.js";

/** gzip, in base64; the build puts it here. */
declare const __PARLOR_WASM__: string;

setModuleSource(() => unpackModule(__PARLOR_WASM__));

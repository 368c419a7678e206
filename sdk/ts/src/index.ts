// The package: it carries its WebAssembly, which is compiled at the first room.

import { setModuleSource, unpackModule } from "./wasm/module.js";
import { packed } from "./wasm/packed.js";

export * from "./api.js";

setModuleSource(() => unpackModule(packed()));

/** Where the page begins. */

import { init } from "parlor";
import { start } from "./app.ts";
import { fetchCore } from "./core.ts";
import { byId, setText } from "./page.ts";

/** The address of the core, with the hash of its content: the build puts it in. */
declare const PARLOR_WASM: string;

init(fetchCore(PARLOR_WASM));
start().catch((error: unknown) => {
  const trouble = byId("trouble");
  setText(trouble, error instanceof Error ? error.message : String(error));
  trouble.hidden = false;
});

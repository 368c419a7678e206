/** Where the page begins. */


import { defineNetGraph } from "parlor/netgraph";
import { start } from "./app.ts";
import { loadCore } from "../../shared/core.ts";
import { byId, setText } from "../../shared/page.ts";

defineNetGraph();
loadCore();
start().catch((error: unknown) => {
  const trouble = byId("trouble");
  setText(trouble, error instanceof Error ? error.message : String(error));
  trouble.hidden = false;
});

/** Where the page begins. */

import { badNetwork } from "parlor/impair";
import { defineNetGraph } from "parlor/netgraph";
import { loadCore } from "../../shared/core.ts";
import { byId, setText } from "../../shared/page.ts";
import { StartScreen } from "../../shared/start.ts";
import { attract } from "./attract.ts";
import { Controls } from "./controls.ts";
import { Painter } from "./draw.ts";
import { arena, type ArenaRoom } from "./game.ts";
import { Switches } from "./switches.ts";
import { Table } from "./table.ts";

const PLAYERS_MOST = 9;

defineNetGraph();
loadCore();
async function start(): Promise<void> {
  const painter = new Painter(byId("canvas", HTMLCanvasElement));
  const switches = new Switches();
  const network = badNetwork();
  const screen = new StartScreen<ArenaRoom>({
    title: "Arena",
    path: "/arena",
    how: (isTouch) => (isTouch ? "The left stick drives, the right one aims and fires." : "WASD or arrow keys drive, the mouse aims and fires."),
    host: (options) => arena.host({ ...options, network, maxPlayers: PLAYERS_MOST }),
    join: (invite, options) => arena.join(invite, { ...options, network }),
    rejoin: (options) => arena.rejoin({ ...options, network }),
    attract: (signal) => attract(painter, signal),
    play: (room) => new Table({ room, painter, controls: new Controls(), switches, network }).end(),
  });
  await screen.start();
}

start().catch((error: unknown) => {
  const trouble = byId("trouble");
  setText(trouble, error instanceof Error ? error.message : String(error));
  trouble.hidden = false;
});

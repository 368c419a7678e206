/** The page: a start screen, and the room that it leads to. */

import { host, join, rejoin, type Room } from "parlor";
import { byId } from "../../shared/page.ts";
import { StartScreen } from "../../shared/start.ts";
import { attract } from "./attract.ts";
import { Controls } from "./controls.ts";
import { Painter } from "./draw.ts";
import { Hud } from "./hud.ts";
import { APP } from "./member.ts";
import { Table } from "./table.ts";

const PLAYERS_MOST = 16;

/** Starts the page. */
export function start(): Promise<void> {
  const painter = new Painter(byId("canvas", HTMLCanvasElement));
  const hud = new Hud();
  const screen = new StartScreen<Room>({
    title: "Magpies",
    path: "/",
    how: (isTouch) => (isTouch ? "Slide a finger to steer, tap Dash to dash." : "Arrow keys or WASD steer, Space dashes."),
    host: (options) => host(APP, { ...options, lead: true, maxPlayers: PLAYERS_MOST, hostMigration: true }),
    join: (invite, options) => join(APP, invite, { ...options, lead: true }),
    rejoin: (options) => rejoin(APP, options),
    attract: (signal) => attract(painter, signal),
    play: (room) => new Table(room, { painter, controls: new Controls(), hud }).end(),
  });
  return screen.start();
}

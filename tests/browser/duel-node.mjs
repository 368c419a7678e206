// A process in Node that plays the duel: node duel-node.mjs SERVER CODE TICKS. It prints what it saw.

import { createRequire } from "node:module";
import { join } from "../../sdk/ts/dist/index.js";
import * as math from "../../sdk/ts/dist/math.js";
import { rollback } from "../../sdk/ts/dist/rollback.js";
import { duel } from "./duel.mjs";

const { WebSocket } = createRequire(new URL("../../sdk/ts/package.json", import.meta.url))("ws");
const [server, code, ticks] = process.argv.slice(2);
const room = await join("duel", code, { server, WebSocket });
const seen = await duel(room, { rollback, math }, Number(ticks));
console.log(JSON.stringify(seen));
await room.leave();

import { host, join } from "parlor";
import { WebSocket } from "ws";
import { main } from "./main.js";

// Node 20 has no WebSocket of its own.
await main({ host, join }, globalThis.WebSocket === undefined ? { WebSocket } : {});

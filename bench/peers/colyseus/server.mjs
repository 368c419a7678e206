// A Colyseus server with two kinds of rooms. `relay` passes bytes on to the others and does nothing else: no state, no
// patches. `game` is a world that moves in steps of 30 Hz and is sent after each of them.
import { Room, Server } from "@colyseus/core";
import { schema, t } from "@colyseus/schema";
import { WebSocketTransport } from "@colyseus/ws-transport";

const MEMBERS_MAX = 16;
const STEP_MS = 1_000 / 30;
const WALKERS = 24;

class Relay extends Room {
  maxClients = MEMBERS_MAX;
  // Without state there is nothing to patch.
  patchRate = null;

  onCreate() {
    this.onMessageBytes("m", (client, bytes) => {
      this.broadcast("m", bytes, { except: client });
    });
  }
}

const place = { x: t.float32(), y: t.float32(), z: t.float32() };
const rotation = { qx: t.float32(), qy: t.float32(), qz: t.float32(), qw: t.float32() };
const Walker = schema({ ...place, ...rotation }, "Walker");

const World = schema({ tick: t.uint32(), writtenAt: t.float64(), walkers: t.map(Walker) }, "World");

class Game extends Room {
  maxClients = MEMBERS_MAX;
  // Each step sends its patch itself: with a timer of its own a patch would be up to a step older.
  patchRate = null;
  inputs = new Map();

  onCreate() {
    const world = new World();
    world.tick = 0;
    for (let number = 0; number < WALKERS; number += 1) {
      const walker = new Walker();
      Object.assign(walker, { x: number, y: number * 8, z: 1, qx: 0, qy: 0, qz: 0, qw: 1 });
      world.walkers.set(`${number}`, walker);
    }
    this.state = world;
    this.onMessageBytes("input", (client, bytes) => this.inputs.set(client.sessionId, bytes));
    this.onMessageBytes("chat", (client, bytes) => this.broadcast("chat", bytes, { except: client }));
    this.setSimulationInterval(() => this.step(), STEP_MS);
  }

  step() {
    const world = this.state;
    world.tick += 1;
    let number = 0;
    for (const walker of world.walkers.values()) {
      walker.x = (world.tick % 4_096) / 16 + number;
      number += 1;
    }
    world.writtenAt = performance.timeOrigin + performance.now();
    this.broadcastPatch();
  }
}

const transport = new WebSocketTransport();
const server = new Server({ transport, greet: false });
server.define("relay", Relay);
server.define("game", Game);
await server.listen(0, "127.0.0.1");
console.log(`listens on ${transport.server.address().port}`);
// To see that it starts.
if (process.argv.includes("--once")) process.exit(0);

// A Colyseus server with one kind of room, which passes bytes on to the others and does nothing else: no state, no patches.
import { Room, Server } from "@colyseus/core";
import { WebSocketTransport } from "@colyseus/ws-transport";

class Relay extends Room {
  maxClients = 16;
  // Without state there is nothing to patch.
  patchRate = null;

  onCreate() {
    this.onMessageBytes("m", (client, bytes) => {
      this.broadcast("m", bytes, { except: client });
    });
  }
}

const transport = new WebSocketTransport();
const server = new Server({ transport, greet: false });
server.define("relay", Relay);
await server.listen(0, "127.0.0.1");
console.log(`listens on ${transport.server.address().port}`);
// To see that it starts.
if (process.argv.includes("--once")) process.exit(0);

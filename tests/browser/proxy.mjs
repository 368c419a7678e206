// A way to a server that a test can cut: TCP, byte for byte.

import { connect, createServer } from "node:net";

/** Forwards to a port of this machine. `cut` breaks all connections, and refuses others until `mend`. */
export async function startProxy(port) {
  const pairs = new Set();
  let isCut = false;
  const server = createServer((inside) => {
    if (isCut) return inside.destroy();
    const outside = connect(port, "127.0.0.1");
    const pair = { inside, outside };
    pairs.add(pair);
    for (const [from, to] of [[inside, outside], [outside, inside]]) {
      from.on("data", (bytes) => to.write(bytes));
      from.on("error", () => {});
      from.on("close", () => {
        to.destroy();
        pairs.delete(pair);
      });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut() {
      isCut = true;
      for (const { inside, outside } of pairs) {
        inside.destroy();
        outside.destroy();
      }
    },
    mend() {
      isCut = false;
    },
    stop() {
      this.cut();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

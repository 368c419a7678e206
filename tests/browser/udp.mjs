// A way to a server that a test can cut: datagrams, and TCP beside them on the same port.

import { createSocket } from "node:dgram";
import { startProxy } from "./proxy.mjs";

/** Forwards both to a port of this machine. What is cut loses datagrams, and breaks TCP. */
export async function startBothProxy(port) {
  const tcp = await startProxy(port);
  const outside = createSocket("udp4");
  const inside = new Map();
  let isCut = false;
  outside.on("message", (bytes, { address, port: from }) => {
    if (isCut) return;
    const key = `${address}:${from}`;
    let socket = inside.get(key);
    if (socket === undefined) {
      inside.set(key, (socket = createSocket("udp4")));
      socket.on("error", () => {});
      socket.on("message", (answer) => isCut || outside.send(answer, from, address));
    }
    socket.send(bytes, port, "127.0.0.1");
  });
  await new Promise((resolve) => outside.bind(Number(new URL(tcp.url).port), "127.0.0.1", resolve));
  return {
    url: tcp.url,
    cut() {
      isCut = true;
      tcp.cut();
    },
    mend() {
      isCut = false;
      tcp.mend();
    },
    async stop() {
      for (const socket of [outside, ...inside.values()]) socket.close();
      await tcp.stop();
    },
  };
}

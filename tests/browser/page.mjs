// What runs in the page: WebTransport by hand, without the SDK. Each function is sent as text, so it uses nothing
// from outside.

/** Puts `parlor` into the page: just enough of the protocol to greet a server. */
export function install() {
  const varint = (n) => (n < 64 ? [n] : [0x40 | (n >> 8), n & 0xff]);
  const text = (s) => [s.length, ...new TextEncoder().encode(s)];
  /** A packet with an empty header, as a record. */
  const record = (frame) => [...varint(frame.length + 1), 0, ...frame];
  const frame = (kind, body) => [...varint(kind), ...varint(body.length), ...body];

  /** A Hello that creates a match: the hub itself is its authority. */
  const hello = (app, name) =>
    frame(1, [
      ...[1, 0, 1, 0], // versions
      ...text(app), // app
      0, // environment
      ...[0, 0, 0, 0, 0, 0, 0, 0], // capabilities
      0, // anonymous
      0, // no key
      ...text(name), // name
      0, // no channels
      ...[0, 0, 0, 0, 0, 0, 0, 0], // schema
      ...[0, 2], // create a match
      ...[0, 0], // no code, no secret
      ...[8, 0, 30, 0], // players, ticks per second
      ...[0, 0, 0, 0, 0], // no host timeout, no schema, no label, not kept, no spectator delay
    ]);

  const hashes = (info) =>
    info.webtransport.hashes.map((hash) => ({
      algorithm: "sha-256",
      value: Uint8Array.from(atob(hash.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)),
    }));

  /** Opens a session with the server of this page. */
  async function open({ path, serverCertificateHashes } = {}) {
    const info = await (await fetch("/web.json")).json();
    const { port } = info.webtransport;
    const transport = new WebTransport(`https://${location.hostname}:${port}${path ?? info.webtransport.path}`, {
      allowPooling: false,
      requireUnreliable: true,
      congestionControl: "low-latency",
      serverCertificateHashes: serverCertificateHashes ?? hashes(info),
    });
    transport.closed.catch(() => {});
    await transport.ready;
    return transport;
  }

  /** Reads records from the first stream of type 0. */
  async function* records(transport) {
    const streams = transport.incomingUnidirectionalStreams.getReader();
    const { value: stream } = await streams.read();
    const reader = stream.getReader();
    let bytes = [];
    const need = async (count) => {
      while (bytes.length < count) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the stream of records ended");
        bytes.push(...value);
      }
      return bytes.splice(0, count);
    };
    const [type] = await need(1);
    if (type !== 0) throw new Error(`a stream of type ${type}`);
    for (;;) {
      const [first] = await need(1);
      const rest = await need((1 << (first >> 6)) - 1);
      yield need(rest.reduce((n, byte) => n * 256 + byte, first & 0x3f));
    }
  }

  function datagramWriter(transport) {
    const { datagrams } = transport;
    return (datagrams.createWritable?.() ?? datagrams.writable).getWriter();
  }

  /** Reads numbers and texts of a packet. */
  const cursorOf = (packet, at) => ({
    at,
    number() {
      const width = 1 << (packet[this.at] >> 6);
      let n = packet[this.at] & 0x3f;
      for (let i = 1; i < width; i++) n = n * 256 + packet[this.at + i];
      this.at += width;
      return n;
    },
    text() {
      const length = this.number();
      this.at += length;
      return new TextDecoder().decode(Uint8Array.from(packet.slice(this.at - length, this.at)));
    },
  });

  /** The kinds of a packet's frames. */
  function kinds(packet) {
    const flags = packet[0];
    const cursor = cursorOf(packet, 1 + (flags & 1 ? 2 : 0) + (flags & 2 ? 6 : 0));
    if (flags & 4) cursor.number();
    if (flags & 8) cursor.at += 2;
    if (flags & 16) cursor.number();
    const found = [];
    while (cursor.at < packet.length) {
      found.push(cursor.number());
      const length = cursor.number();
      cursor.at += length;
    }
    return found;
  }

  globalThis.parlor = { open, records, record, frame, hello, datagramWriter, cursorOf, kinds };
}

/** Greets the server, and exchanges clocks over datagrams. */
export async function greet() {
  const { open, records, record, frame, hello, datagramWriter, cursorOf, kinds } = globalThis.parlor;
  const transport = await open();
  const writer = (await transport.createUnidirectionalStream()).getWriter();
  await writer.write(Uint8Array.from([0, ...record(hello("browser", "ada"))]));
  const answers = records(transport);
  const { value: welcome } = await answers.next();
  // Behind the header, the frame's kind and length, and of its body the version, session and capabilities.
  const cursor = cursorOf(welcome, 1);
  cursor.number();
  cursor.number();
  cursor.at += 2 + 16 + 8;
  cursor.number(); // room
  const code = cursor.text();

  const datagrams = transport.datagrams.readable.getReader();
  const up = datagramWriter(transport);
  let heardTime = 0;
  for (let sequence = 0; heardTime < 3; sequence++) {
    // The sign of life, and Time in a numbered packet.
    await up.write(Uint8Array.from([0]));
    await up.write(Uint8Array.from([1, sequence & 0xff, sequence >> 8, ...frame(7, [5, 0])]));
    const { value } = await datagrams.read();
    heardTime += kinds(value).filter((kind) => kind === 7).length;
  }
  globalThis.parlor.transport = transport;
  return { welcome: kinds(welcome), code, heardTime };
}

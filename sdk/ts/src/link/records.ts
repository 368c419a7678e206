// How packets stand on the unidirectional streams of a link (PROTOCOL.md, "Transports").
//
//   stream   type: 1 byte · 0: a length (varint of at most 4 bytes) and a packet, again and again · 1: one packet to the end

import { readVarint, writeVarint } from "../value/varint.js";
import { STREAM_PACKET_BYTES_MAX } from "./link.js";

/** The first byte of a stream of records. */
export const RECORDS = 0;
/** The first byte of a stream of one packet. */
export const ISOLATED = 1;
/** Bytes of packets that have begun on all streams of a connection. */
export const UNFINISHED_BYTES_MAX = 1024 * 1024;

/** A record: the packet with its length in front. */
export function record(packet: Uint8Array): Uint8Array {
  const head = new Uint8Array(8);
  const length = writeVarint(packet.length, new DataView(head.buffer), 0);
  const bytes = new Uint8Array(length + packet.length);
  bytes.set(head.subarray(0, length));
  bytes.set(packet, length);
  return bytes;
}

/** Why a stream is not what PROTOCOL.md says. */
export class StreamFault extends Error {
  constructor(
    readonly word: "tooLarge" | "malformed",
    message: string,
  ) {
    super(message);
  }
}

/** Reads the packets of one incoming stream from its chunks. */
export class StreamReader {
  #kind: number | undefined;
  #held: Uint8Array = new Uint8Array(0);
  /** The bytes of `held` that wait for more. */
  get unfinished(): number {
    return this.#held.length;
  }

  /** Whether it is the stream of records; undefined before its first byte. */
  get isRecords(): boolean | undefined {
    return this.#kind === undefined ? undefined : this.#kind === RECORDS;
  }

  /** The packets that a chunk completes. */
  push(chunk: Uint8Array): Uint8Array[] {
    let bytes = chunk;
    if (this.#kind === undefined) {
      if (bytes.length === 0) return [];
      this.#kind = bytes[0]!;
      if (this.#kind !== RECORDS && this.#kind !== ISOLATED) {
        throw new StreamFault("malformed", `a stream is of the unknown type ${this.#kind}`);
      }
      bytes = bytes.subarray(1);
    }
    this.#held = this.#held.length === 0 ? bytes : joined(this.#held, bytes);
    if (this.#kind === ISOLATED) {
      if (this.#held.length > STREAM_PACKET_BYTES_MAX) throw new StreamFault("tooLarge", "an isolated packet is too large");
      this.#held = this.#held.slice();
      return [];
    }
    const packets: Uint8Array[] = [];
    for (;;) {
      const packet = this.#record();
      if (packet === undefined) break;
      packets.push(packet);
    }
    // A chunk belongs to whoever gave it: only what is left of it is kept.
    this.#held = this.#held.slice();
    return packets;
  }

  /** The packet that the end of the stream completes. */
  end(): Uint8Array | undefined {
    if (this.#kind === ISOLATED) return this.#held;
    if (this.#held.length > 0) throw new StreamFault("malformed", "the stream of records ends within a record");
    return undefined;
  }

  #record(): Uint8Array | undefined {
    const first = this.#held[0];
    if (first === undefined) return undefined;
    const width = 1 << (first >> 6);
    if (width > 4) throw new StreamFault("malformed", "the length of a record is too long");
    if (this.#held.length < width) return undefined;
    const [length, end] = readVarint(this.#held, 0);
    if (end < 0) throw new StreamFault("malformed", "the length of a record is not in its shortest form");
    if (length > STREAM_PACKET_BYTES_MAX) throw new StreamFault("tooLarge", `a record has ${length} bytes`);
    if (this.#held.length < end + length) return undefined;
    const packet = this.#held.slice(end, end + length);
    this.#held = this.#held.subarray(end + length);
    return packet;
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

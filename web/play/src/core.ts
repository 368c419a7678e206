/** Loads the core. The server keeps it as LZMA, which is a quarter smaller than the gzip that browsers unpack themselves. */

import { Decoder } from "../../node_modules/lzma1/lib/decoder.js";
import { InputBuffer, OutputBuffer } from "../../node_modules/lzma1/lib/streams.js";

/** Fetches and unpacks it. */
export async function fetchCore(address: string): Promise<Response> {
  const packed = await fetch(address);
  if (!packed.ok) return packed;
  const output = new OutputBuffer();
  new Decoder().decompress(new InputBuffer(new Uint8Array(await packed.arrayBuffer())), output);
  return new Response(new Uint8Array(output.toArray()));
}

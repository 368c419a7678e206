/** Loads the core. The server keeps it as LZMA, which is a quarter smaller than the gzip that browsers unpack themselves. */

import { init } from "parlor";
import { Decoder } from "../node_modules/lzma1/lib/decoder.js";
import { InputBuffer, OutputBuffer } from "../node_modules/lzma1/lib/streams.js";

/** The address of the core, with the hash of its content: the build puts it in. */
declare const PARLOR_WASM: string;

/** Starts to fetch the core, which each page of a realtime room needs. All pages have the same. */
export function loadCore(): void {
  init(fetchCore(PARLOR_WASM));
}

/** Fetches and unpacks it. */
 async function fetchCore(address: string): Promise<Response> {
  const packed = await fetch(address);
  if (!packed.ok) return packed;
  const output = new OutputBuffer();
  new Decoder().decompress(new InputBuffer(new Uint8Array(await packed.arrayBuffer())), output);
  return new Response(new Uint8Array(output.toArray()));
}

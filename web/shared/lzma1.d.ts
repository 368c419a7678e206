/** Of `lzma1` the decoder alone: its entry brings the encoder along. */

declare module "*/lzma1/lib/decoder.js" {
  import type { InputBuffer, OutputBuffer } from "*/lzma1/lib/streams.js";
  export class Decoder {
    decompress(input: InputBuffer, output: OutputBuffer): void;
  }
}

declare module "*/lzma1/lib/streams.js" {
  export class InputBuffer {
    constructor(data: Uint8Array);
  }
  export class OutputBuffer {
    toArray(): Uint8Array;
  }
}

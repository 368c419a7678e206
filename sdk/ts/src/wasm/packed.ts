// What the full entry carries. A package that is not bundled has it as a file of its own: a browser then asks for all
// files at once, instead of for the others after it has read this large one.

/** gzip, in base64; the build puts it here. */
declare const __PARLOR_WASM__: string;

/** The WebAssembly, packed. */
export const packed = (): string => __PARLOR_WASM__;

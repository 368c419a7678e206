// The compiled WebAssembly: made once for a page, at the first room or by `load`, and never at import.

import { ParlorError } from "../error.js";
import { sentence } from "../thrown.js";

/** Where an entry of the package gets its module from. */
export type ModuleSource = () => Promise<WebAssembly.Module>;

let source: ModuleSource | undefined;
let compiled: Promise<WebAssembly.Module> | undefined;

/** Sets where the module comes from. The first caller of `compiledModule` has it compiled. */
export function setModuleSource(get: ModuleSource): void {
  source = get;
  compiled = undefined;
}

/** The module, compiled at most once. A failed compilation is tried again by the next call. */
export function compiledModule(): Promise<WebAssembly.Module> {
  compiled ??= compile().catch((thrown: unknown) => {
    compiled = undefined;
    throw thrown;
  });
  return compiled;
}

async function compile(): Promise<WebAssembly.Module> {
  if (source === undefined) throw new ParlorError("wasm_missing", "there is no WebAssembly module to play with");
  if (typeof WebAssembly !== "object") {
    throw new ParlorError("wasm_refused", "this browser runs no WebAssembly", "use another browser, or switch its lockdown mode off");
  }
  try {
    return await source();
  } catch (thrown) {
    throw compileError(thrown);
  }
}

/** Names what a browser throws when it compiles or instantiates no WebAssembly. */
export function compileError(thrown: unknown): ParlorError {
  if (thrown instanceof ParlorError) return thrown;
  const why = sentence(thrown);
  if (/unsafe-eval|content security|blocked by csp/i.test(why)) {
    return new ParlorError("wasm_refused", `the page's content security policy refuses WebAssembly: ${why}`, undefined, { cause: thrown });
  }
  return new ParlorError(
    "wasm_missing",
    `the WebAssembly module could not be loaded: ${why}`,
    "serve parlor.wasm of this version of the package as it is, or use the entry `parlor`, which carries it",
    { cause: thrown },
  );
}

/** Unpacks base64 of a gzip file, as the full entry carries the module. */
export async function unpackModule(base64: string): Promise<WebAssembly.Module> {
  const unpacked = new Blob([fromBase64(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const response = new Response(unpacked, { headers: { "content-type": "application/wasm" } });
  // It compiles what is unpacked while the rest is.
  return "compileStreaming" in WebAssembly ? WebAssembly.compileStreaming(response) : compileWhole(response);
}

function fromBase64(base64: string): Uint8Array<ArrayBuffer> {
  // A loop over half a million letters, before anything has made it fast, is ten milliseconds of the page's thread.
  const { fromBase64 } = Uint8Array as { fromBase64?(text: string): Uint8Array<ArrayBuffer> };
  if (fromBase64 !== undefined) return fromBase64.call(Uint8Array, base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** Compiles what `init` of the slim entry was given. */
export async function moduleFrom(
  given: WebAssembly.Module | BufferSource | Response | string | URL | Promise<Response>,
): Promise<WebAssembly.Module> {
  const from = await given;
  if (from instanceof WebAssembly.Module) return from;
  if (from instanceof ArrayBuffer || ArrayBuffer.isView(from)) return WebAssembly.compile(from as BufferSource);
  const response = from instanceof Response ? from : await fetch(from as string | URL);
  if (!response.ok) {
    throw new ParlorError("wasm_missing", `${response.url} answers ${response.status}`, "check the address that `init` was given");
  }
  return compileWhole(response);
}

async function compileWhole(response: Response): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await response.arrayBuffer());
}

// A trap of the core: a defect of Parlor, as what its room is closed with.

import { ParlorError } from "../error.js";
import { sentence } from "../thrown.js";

/** So many functions lead from a trap to what the core was doing. */
const FUNCTIONS_MAX = 4;

/**
 * The defect that a trap stands for. The core has no text of its panics, which would be a large part of it. The
 * functions and offsets of the stack name the place: a build of the same version with its names tells what they are.
 */
export function defectOf(trap: unknown): ParlorError {
  const stack = trap instanceof Error ? (trap.stack ?? "") : "";
  const functions = stack.match(/wasm-function\[\d+\]:0x[0-9a-f]+/g) ?? stack.match(/wasm-function\[\d+\]/g) ?? [];
  const place = functions.length === 0 ? "" : ` in ${functions.slice(0, FUNCTIONS_MAX).join(", called by ")}`;
  return new ParlorError("defect", `a defect of Parlor ended this room: ${sentence(trap)}${place}`, undefined, { cause: trap });
}

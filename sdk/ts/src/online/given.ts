import type { Json, JsonObject } from "./operations.js";

/** The fields that were passed: a server refuses what it does not know, and `undefined` is not JSON. */
export function given(fields: Record<string, Json | undefined>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, it]) => it !== undefined)) as JsonObject;
}

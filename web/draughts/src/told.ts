import { ParlorError } from "parlor/online";

/** What went wrong, in a sentence for a player. */
export function told(error: unknown): string {
  if (error instanceof ParlorError) return error.hint ? `${error.message}: ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}

// A server's refusals, and which of them mean what.

import { ParlorError } from "../error.js";

/** What a server says when it does not do something. */
export interface Refusal {
  /** For programs; docs/online.md and docs/turn-rooms.md list them. */
  code: string;
  /** For people; says what to do. */
  sentence: string;
  /** The field of the input that is wrong. */
  path?: string;
  retry_after_ms?: number;
  /** What is stored instead, where the player must choose. */
  current?: unknown;
  /** Of a refused move: the checks `server`, `rules` and `peers`. */
  checks?: unknown;
}

/** The wait, if a server names none. */
const PAUSE_MS = 1_000;

/** Reads a refusal; undefined if it is none. */
export function refusalOf(given: unknown): Refusal | undefined {
  const { code, sentence } = (given ?? {}) as Partial<Refusal>;
  return typeof code === "string" && typeof sentence === "string" ? (given as Refusal) : undefined;
}

/** The error that a program gets. The server's sentence says what to do. */
export function errorOf({ code, sentence, path, retry_after_ms, current }: Refusal): ParlorError {
  const hint = path === undefined ? undefined : `correct \`${path}\``;
  return new ParlorError(code, sentence, hint, { retryAfterMs: retry_after_ms, current });
}

/** How long to wait before asking again; undefined if asking again is of no use. */
export function pauseOf({ code, retry_after_ms }: Refusal): number | undefined {
  return code === "unavailable" || code === "too_often" ? (retry_after_ms ?? PAUSE_MS) : undefined;
}

/** Whether an access token is over, so that a new one is needed. */
export function isTokenOver(code: string): boolean {
  return ["token_expired", "bad_token", "signed_out"].includes(code);
}

/** Whether a refresh token is over, or was used by another page of this player. */
export function isSignInOver(code: string): boolean {
  return ["bad_refresh_token", "refresh_token_reused", "no_such_account", "bad_input"].includes(code);
}

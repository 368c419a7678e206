import { expect, it } from "vitest";
import { ParlorError } from "../../src/error.js";

it("an error says what to do for each answer of a server, and when to try again", () => {
  const refusals = [
    "version", "app", "no_such_room", "room_full", "code_taken", "channels", "unauthorized", "bad_request", "server_full", "schema",
    "room_kind", "resume", "not_kept", "keep_needs_user", "keep_quota", "retry_after", "unreachable", "untrusted", "not_parlor",
  ];
  for (const code of refusals) expect(new ParlorError(code, "m").hint, code).not.toBe("");
  const error = new ParlorError("retry_after", "in 3 s", undefined, { retryAfterMs: 3_000, cause: 7 });
  expect([error.retryAfterMs, error.cause, error.name]).toEqual([3_000, 7, "ParlorError"]);
  expect(new ParlorError("app", "m", "").hint).toBe("");
  expect(error).toBeInstanceOf(Error);
});

// What stands in the way of a link. The transport worker has these alone: the page makes them errors with hints.

/** Why there is no link. */
export class LinkFault extends Error {
  constructor(
    readonly code: "unreachable" | "not_parlor" | "blocked_by_browser" | "no_websocket" | "no_webtransport" | "bad_invite" | "aborted",
    message: string,
    /** What to do, where it is not what the code says to do anyway. */
    readonly hint = "",
  ) {
    super(message);
  }
}

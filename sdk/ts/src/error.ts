// Errors of the SDK. Each has a code for programs, a message that says what happened, and a hint that says what to do.

/** What can go wrong. Refusals of a server have the same words as in Rust. */
export type ErrorCode =
  // What the program passed in.
  | "bad_argument"
  | "bad_options"
  | "bad_value"
  | "bad_invite"
  | "bad_address"
  | "not_host"
  | "not_open"
  | "not_handed_over"
  | "spectator"
  | "too_large"
  // What the server answered.
  | "version"
  | "app"
  | "no_such_room"
  | "room_full"
  | "spectators_full"
  | "code_taken"
  | "channels"
  | "unauthorized"
  | "bad_request"
  | "server_full"
  | "schema"
  | "room_kind"
  | "resume"
  | "not_kept"
  | "keep_needs_user"
  | "keep_quota"
  | "retry_after"
  // The way there.
  | "no_server"
  | "unknown_host"
  | "unreachable"
  | "untrusted"
  | "not_parlor"
  | "no_websocket"
  | "no_webtransport"
  | "blocked_by_browser"
  // How an open room ended.
  | "left"
  | "kicked"
  | "host_left"
  | "host_gone"
  | "room_ended"
  | "server_shutdown"
  | "timed_out"
  | "connection_lost"
  | "misbehaved"
  | "too_slow"
  | "not_polled"
  | "resume_token_reused"
  // This page.
  | "wasm_refused"
  | "wasm_missing"
  | "wasm_mismatch"
  | "defect"
  | "aborted"
  // A word of a newer core.
  | (string & {});

const HINTS: Record<string, string> = {
  bad_options: "correct the option that the message names",
  no_such_room: "check the code and the secret, and that host and guest use the same server",
  room_full: "wait for a seat, or open another room",
  spectators_full: "wait for a seat, or ask the host to open its next room with more `spectators`",
  not_handed_over: "hand over once another player is connected, in a room with `hostMigration`",
  spectator: "join without `spectate` to play",
  code_taken: "choose another code, or leave `code` out and let the server draw one",
  unauthorized: "get a new token for this room and pass it as `token`",
  version: "update the older of the game and the server",
  app: "use the app id that the room was opened with",
  channels: "declare the same channels in host and guest",
  schema: "build host and guest from the same schema",
  room_kind: "ask the operator of the server, or open a room of another kind",
  server_full: "try again later, or use another server",
  bad_request: "correct what the message names",
  not_kept: "leave `keep` out, or start the server with a folder for its data: `parlor serve --data`",
  keep_needs_user: "leave `keep` out, or pass a token that names a player",
  keep_quota: "let old kept matches go first",
  retry_after: "wait for as long as the message says; the server slows down whoever guesses codes",
  resume: "join the room again by its code",
  no_server: "pass `server`, such as \"play.example.com\"",
  unreachable: "check that the server runs, its address and port, and that no firewall is in between",
  untrusted: "use the address that the certificate is for, or an invite that has the certificate's hash",
  not_parlor: "pass the address of a Parlor server as `server`",
  no_websocket: "pass a constructor as `WebSocket`: on Node 20 the one of the package `ws`",
  blocked_by_browser:
    "look into the browser's console: a content security policy (connect-src), mixed content, or access to the local network that was denied",
  timed_out: "check the network; the room tried to reconnect for as long as it may",
  connection_lost: "check the network; open or join again",
  host_left: "open a room yourself; with `hostMigration: true` the next room outlives its host",
  host_gone: "open a room yourself; with `hostMigration: true` the next room outlives its host",
  server_shutdown: "the server is being restarted or stopped: try again in a minute",
  misbehaved: "update the older of the game and the server; report it if they are of one version",
  too_slow: "send less, or over a better network",
  not_polled: "call `room.run`, or `room.update` in each frame",
  resume_token_reused: "two pages used one seat: keep the seat in one of them, and join as somebody new in the other",
  wasm_refused: "allow WebAssembly in the page's content security policy: script-src 'wasm-unsafe-eval'",
  wasm_missing: "call `init` with a module or its URL before the first room: `parlor/slim` brings no WebAssembly of its own",
  wasm_mismatch: "use the parlor.wasm of the same version of the package",
  defect: "report it with the message; the page and its other rooms go on",
  not_host: "test `room.isHost` first: the host writes the room's state",
  not_open: "await `host` or `join`, and stop using a room once it is closed",
};

/** Whatever the SDK throws or rejects with. */
export class ParlorError extends Error {
  override readonly name = "ParlorError";
  /** For programs. */
  readonly code: ErrorCode;
  /** What to do. */
  readonly hint: string;

  /** When the server asks to try again, in ms. */
  readonly retryAfterMs: number | undefined;

  /** What the server stores instead, where the player must choose: `currentSave` reads it. */
  readonly current: unknown;

  constructor(code: ErrorCode, message: string, hint?: string, options?: { cause?: unknown; retryAfterMs?: number | undefined; current?: unknown }) {
    super(message, options);
    this.retryAfterMs = options?.retryAfterMs;
    this.current = options?.current;
    this.code = code;
    this.hint = hint ?? HINTS[code] ?? "";
  }
}

/** An error for an argument that is out of its bounds. */
export function badArgument(message: string, hint = ""): ParlorError {
  return new ParlorError("bad_argument", message, hint);
}

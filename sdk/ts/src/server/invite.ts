// Invites: a room's code, or a link with all that is needed to join.
//
//   K7QM
//   SCHEME://join/CODE?server=HOST:PORT&secret=S        a game's own scheme
//   https://HOST[:PORT]/join/CODE#w=HASH,HASH&s=SECRET  the server's page of the room
//   https://GAME/any/path?join=CODE&server=HOST:PORT#…  a page of the game
//
// Hashes and secret stand in the fragment of a web link, so that no server's log has them.

import { ParlorError } from "../error.js";
import { type Address, baseUrl, isLoopback, parseAddress, parseHashes, placeOf, splitOnce } from "./address.js";

/** What an invite says. */
export interface Invite {
  code: string;
  server?: Address;
  secret?: string;
  /** Hashes without a server: they are for the server that the joiner uses anyway. */
  hashes?: readonly string[];
}

const CODE = /^[A-Za-z0-9]{4,16}$/;

/** Reads an invite. Throws `bad_invite`. */
export function parseInvite(given: string | URL): Invite {
  const text = String(given).trim();
  if (!text.includes("://")) return { code: codeOf(text, text) };
  const [link, fragment] = splitOnce(text, "#");
  const [scheme, rest] = splitOnce(link, "://");
  const [path, query] = splitOnce(rest, "?");
  const fields = new URLSearchParams(query);
  const hidden = new URLSearchParams(fragment);
  const hashes = parseHashes(hidden.get("w") ?? "");
  const secret = hidden.get("s") ?? fields.get("secret") ?? undefined;
  const isWeb = /^https?$/i.test(scheme);
  const asked = fields.get("join");
  const [place, inside] = isWeb ? splitOnce(path, "/join/") : ["", path.replace(/^join\//, "")];
  const code = codeOf(asked ?? inside.replace(/\/$/, ""), text);
  const named = fields.get("server");
  // The page of a room is at its server; a page of the game names the server, or the joiner knows it.
  const server = named ?? (isWeb && asked === null ? `${scheme.toLowerCase()}://${place}` : undefined);
  const pinned = hashes.length === 0 ? {} : { hashes };
  return {
    code,
    ...(secret === undefined ? {} : { secret }),
    ...(server === undefined ? pinned : { server: { ...parseAddress(server), ...pinned } }),
  };
}

function codeOf(text: string, invite: string): string {
  if (CODE.test(text)) return text.toUpperCase();
  throw new ParlorError(
    "bad_invite",
    `${JSON.stringify(invite)} is no invite: a room code has 4 to 12 letters and digits, this one is ${JSON.stringify(text)}`,
    "pass a code such as K7QM, or the link that the host shared",
  );
}

/** The link of the room's page at its server, or of the game's own page if that is given. */
export function inviteUrl(code: string, server: Address, secret: string | undefined, base?: string | URL): string {
  const hidden = new URLSearchParams();
  if (server.hashes !== undefined && server.hashes.length > 0) hidden.set("w", server.hashes.join(","));
  if (secret !== undefined) hidden.set("s", secret);
  let url: URL;
  if (base === undefined) {
    url = new URL(`${baseUrl(server, "http")}/join/${code}`);
  } else {
    url = new URL(base);
    url.searchParams.set("join", code);
    if (url.host !== new URL(baseUrl(server, "http")).host) url.searchParams.set("server", serverField(server));
  }
  // Commas need no escape in a fragment.
  url.hash = hidden.toString().replaceAll("%2C", ",");
  return url.href;
}

/** The link for a game's own scheme. */
export function inviteLink(code: string, server: Address, secret: string | undefined, scheme: string): string {
  const fields = [`server=${encodeURIComponent(placeOf(server))}`];
  if (secret !== undefined) fields.push(`secret=${encodeURIComponent(secret)}`);
  return `${scheme}://join/${code}?${fields.join("&")}`;
}

/** An address as the field of a link: a URL where HOST:PORT would mean something else. */
function serverField(server: Address): string {
  return server.secure === !isLoopback(server.host) ? placeOf(server) : baseUrl(server, "http");
}

/** Secrets that were taken out of the address bar, by the address that was left. */
const taken = new Map<string, string>();

/**
 * The invite in a URL, by default that of this page: `?join=CODE`, or `/join/CODE`. A secret is taken out of the
 * address bar, so that nobody reads it there or in the history. Undefined if there is none.
 */
export function inviteFrom(given?: string | URL): string | undefined {
  const here = given === undefined;
  const href = here ? globalThis.location?.href : String(given);
  if (href === undefined) return undefined;
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return CODE.test(href) ? href.toUpperCase() : undefined;
  }
  if (!url.searchParams.has("join") && !/\/join\/[^/]+\/?$/.test(url.pathname)) return undefined;
  return here ? withoutSecret(url) : url.href;
}

function withoutSecret(url: URL): string {
  const fragment = url.hash.slice(1);
  const hidden = new URLSearchParams(fragment);
  const invite = taken.get(url.href) ?? url.href;
  if (hidden.has("s") && typeof history === "object") {
    hidden.delete("s");
    url.hash = hidden.toString().replaceAll("%2C", ",");
    taken.set(url.href, invite);
    history.replaceState(history.state, "", url.href);
  }
  return invite;
}

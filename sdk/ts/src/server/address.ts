// Addresses of servers, as people write them: HOST, HOST:PORT, or a URL.

import { ParlorError } from "../error.js";

/** The port of a server, if an address names none. */
export const DEFAULT_PORT = 7700;

/** Where a server is. */
export interface Address {
  /** A name or an address; IPv6 without brackets. */
  host: string;
  port: number;
  /** Whether HTTP and WebSocket use TLS there. */
  secure: boolean;
  /** SHA-256 of its certificates for WebTransport, base64url: from an invite, or `HOST#hash,hash`. */
  hashes?: readonly string[];
}

/** Whether a host is this machine. Browsers take plain HTTP from there for safe, and servers serve it there alone. */
export function isLoopback(host: string): boolean {
  return /^(localhost|.+\.localhost|127(\.\d+){3}|::1)$/i.test(host);
}

/** Reads an address. Throws `bad_address`. */
export function parseAddress(given: string | URL): Address {
  const text = String(given).trim();
  const [place, print] = splitOnce(text, "#");
  const hashes = print === "" ? {} : { hashes: parseHashes(print) };
  const url = urlOf(place, text);
  if (!["http:", "https:", "ws:", "wss:"].includes(url.protocol)) {
    throw bad(text, `its scheme is ${url.protocol}`);
  }
  const hasScheme = place.includes("://");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const secure = hasScheme ? ["https:", "wss:"].includes(url.protocol) : !isLoopback(host);
  const standard = ["https:", "wss:"].includes(url.protocol) ? 443 : 80;
  const port = url.port !== "" ? Number(url.port) : hasScheme ? standard : (portOf(place) ?? DEFAULT_PORT);
  return { host, port, secure, ...hashes };
}

function urlOf(place: string, text: string): URL {
  // An IPv6 address without brackets has more than one colon.
  const bare = /^[0-9a-f:.]+$/i.test(place) && place.split(":").length > 2 ? `[${place}]` : place;
  try {
    if (bare === "") throw new Error("it is empty");
    return new URL(bare.includes("://") ? bare : `https://${bare}`);
  } catch {
    throw bad(text, "it is no host");
  }
}

/** `https://HOST:443` has no port as a URL, but it was written. */
function portOf(place: string): number | undefined {
  const port = /:(\d+)\/?$/.exec(place)?.[1];
  return port === undefined || place.split(":").length > 2 && !place.includes("]") ? undefined : Number(port);
}

/** `HOST:PORT`, for a person to read. */
export function placeOf(address: Address): string {
  return `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
}

/** The base of URLs at a server. */
export function baseUrl(address: Address, scheme: "http" | "ws"): string {
  const standard = address.secure ? 443 : 80;
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `${scheme}${address.secure ? "s" : ""}://${host}${address.port === standard ? "" : `:${address.port}`}`;
}

/** Where a redirect leads: `HOST:PORT[#…]`, or `:PORT` for another port of the same host. */
export function redirected(redirect: string, from: Address): Address {
  const [place] = splitOnce(redirect, "#");
  const port = /^:(\d+)$/.exec(place)?.[1];
  // Hashes are those of the machine's certificates, which all its ports share.
  if (port !== undefined) return { ...from, port: Number(port) };
  return parseAddress(place);
}

/** Reads hashes in base64url, separated by commas. */
export function parseHashes(text: string): string[] {
  const hashes = text.split(",").filter((hash) => hash !== "");
  const wrong = hashes.find((hash) => !/^[A-Za-z0-9_-]{43}$/.test(hash));
  if (wrong !== undefined) {
    throw new ParlorError(
      "bad_invite",
      `${JSON.stringify(wrong)} is no hash of a certificate: it has 43 letters of base64url`,
      "copy the invite again, whole",
    );
  }
  return hashes;
}

/** Splits at the first `at`. */
export function splitOnce(text: string, at: string): [string, string] {
  const index = text.indexOf(at);
  return index < 0 ? [text, ""] : [text.slice(0, index), text.slice(index + at.length)];
}

function bad(text: string, why: string): ParlorError {
  return new ParlorError(
    "bad_address",
    `${JSON.stringify(text)} is not the address of a server: ${why}`,
    "pass HOST, HOST:PORT or a URL, such as \"play.example.com\"",
  );
}

// Certificates as the server makes them for browsers, with a validity that a test chooses, so that it need not wait for days.

import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const DAY_S = 24 * 60 * 60;
/** The server shows a certificate for so long, and then the next one. */
const USED_S = 6 * DAY_S;
const VALID_BEFORE_S = DAY_S;
const VALID_AFTER_S = 12 * DAY_S;

// DER (X.690), as much of it as a certificate needs.
const der = (tag, ...parts) => {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const { length } = body;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
};
const sequence = (...parts) => der(0x30, ...parts);
const name = (text) => sequence(der(0x31, sequence(der(6, [0x55, 4, 3]), der(0x0c, Buffer.from(text)))));
const time = (unixS) => der(0x17, Buffer.from(`${new Date(unixS * 1000).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14)}Z`));
/** The extension subjectAltName with the name `localhost`. */
const NAMES = der(0xa3, sequence(sequence(der(6, [0x55, 0x1d, 0x11]), der(4, sequence(der(0x82, Buffer.from("localhost")))))));
const ECDSA_WITH_SHA256 = sequence(der(6, [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));

/** A certificate that the server uses from `beginS` on, and its key, as a file has them; and its hash. */
function makeCertificate(beginS) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const version = der(0xa0, der(2, [2]));
  // Positive, and as short as it can be.
  const serial = der(2, [0x40], randomBytes(8));
  const validity = sequence(time(beginS - VALID_BEFORE_S), time(beginS + VALID_AFTER_S));
  const key = publicKey.export({ type: "spki", format: "der" });
  const content = sequence(version, serial, ECDSA_WITH_SHA256, name("parlor web"), validity, name("parlor web"), key, NAMES);
  const certificate = sequence(content, ECDSA_WITH_SHA256, der(3, [0], sign("sha256", content, privateKey)));
  const lines = certificate.toString("base64").replaceAll(/.{1,64}/g, "$&\n");
  const pem = `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n${privateKey.export({ type: "pkcs8", format: "pem" })}`;
  return { pem, hash: createHash("sha256").update(certificate).digest("base64url") };
}

/**
 * Puts two certificates into the folder of an identity. The first is used for `usedForS` seconds from now, or was until
 * so long ago if that is negative. Returns their hashes, the present one first.
 */
export function prepareIdentity(folder, usedForS) {
  const endS = Math.floor(Date.now() / 1000) + usedForS;
  const made = [endS - USED_S, endS].map(makeCertificate);
  for (const [at, file] of ["web.pem", "web-next.pem"].entries()) {
    writeFileSync(join(folder, file), made[at].pem, { mode: 0o600 });
  }
  return made.map(({ hash }) => hash);
}

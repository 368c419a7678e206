// Rooms of 8 members, each of which sends 64 bytes to the 7 others 30 times a second: the load of `parlor-bench relay`,
// counted in the same way. Prints one line of JSON.
import { Client } from "@colyseus/sdk";
import { MEMBERS, PERIOD_MS, account, fill, options, percentile, seeded, sleep } from "./measure.mjs";

const DRIFT = 0.005;
const MESSAGE_BYTES = 64;
const WARM_UP_MS = 500;
const DRAIN_MS = 500;

const values = options("port", "pid", "rooms", "seconds", "seed", "pace");
const isAligned = values.pace === "aligned";

let isCounting = false;
let sent = 0;
const latenciesUs = [];

function hear(bytes) {
  if (bytes.byteLength !== MESSAGE_BYTES || bytes[0] !== 1) return;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  latenciesUs.push(Math.round((performance.now() - view.getFloat64(1)) * 1_000));
}

function speak(member) {
  const bytes = new Uint8Array(MESSAGE_BYTES);
  bytes[0] = isCounting ? 1 : 0;
  new DataView(bytes.buffer).setFloat64(1, performance.now());
  member.room.sendBytes("m", bytes);
  if (isCounting) sent += 1;
}

/** Sends whenever it is due. Node's timers count in milliseconds; what was sent late bears the time at which it left. */
function keepSpeaking(member) {
  const now = performance.now();
  while (member.nextAt <= now) {
    member.nextAt += member.period;
    speak(member);
  }
  member.timer = setTimeout(keepSpeaking, member.nextAt - performance.now(), member);
}

const random = seeded(Number(values.seed));
const members = [];
for (const rooms of await fill(new Client(`ws://127.0.0.1:${values.port}`), "relay", Number(values.rooms))) {
  const phase = random();
  for (const room of rooms) {
    room.onMessage("m", hear);
    const period = isAligned ? PERIOD_MS : PERIOD_MS * (1 - DRIFT + 2 * DRIFT * random());
    members.push({ room, period, phase: isAligned ? phase : random() });
  }
}
const start = performance.now();
for (const member of members) {
  member.nextAt = start + member.phase * member.period;
  keepSpeaking(member);
}
await sleep(WARM_UP_MS);
isCounting = true;
const spent = account(values.pid);
await sleep(Number(values.seconds) * 1_000);
isCounting = false;
const usage = spent();
await sleep(DRAIN_MS);
members.forEach((member) => clearTimeout(member.timer));
console.log(
  JSON.stringify({
    sent,
    expected: sent * (MEMBERS - 1),
    delivered: latenciesUs.length,
    latency_us_p50: percentile(latenciesUs, 50),
    latency_us_p99: percentile(latenciesUs, 99),
    ...usage,
  }),
);
process.exit(0);

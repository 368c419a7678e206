// Rooms of 8 members, each of which sends 64 bytes to the 7 others 30 times a second: the load of `parlor-bench relay`,
// counted in the same way. Prints one line of JSON.
import { Client } from "@colyseus/sdk";
import { readFileSync, readdirSync } from "node:fs";
import { parseArgs } from "node:util";

const MEMBERS = 8;
const PERIOD_MS = 1_000 / 30;
const DRIFT = 0.005;
const MESSAGE_BYTES = 64;
const WARM_UP_MS = 500;
const DRAIN_MS = 500;

const { values } = parseArgs({
  options: Object.fromEntries(
    ["port", "pid", "rooms", "seconds", "seed", "pace"].map((name) => [name, { type: "string" }]),
  ),
});
for (const name of ["port", "pid", "rooms", "seconds", "seed", "pace"]) {
  if (values[name] === undefined) throw new Error(`--${name} is missing`);
}
const isAligned = values.pace === "aligned";

/** Even numbers from 0 to 1 from a seed (mulberry32). */
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** How long the threads of a process were on a core, and how long they waited for one, in µs. */
function cpuUs(pid) {
  let [ran, waited] = [0n, 0n];
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    let text;
    try {
      text = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8");
    } catch {
      continue; // it has ended since
    }
    const [onCore, ready] = text.split(" ");
    ran += BigInt(onCore);
    waited += BigInt(ready);
  }
  return { ran: Number(ran / 1_000n), waited: Number(waited / 1_000n) };
}

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

function percentile(percent) {
  if (latenciesUs.length === 0) return null;
  latenciesUs.sort((a, b) => a - b);
  return latenciesUs[Math.ceil((latenciesUs.length * percent) / 100) - 1];
}

const client = new Client(`ws://127.0.0.1:${values.port}`);
const random = seeded(Number(values.seed));
const members = [];
for (let number = 0; number < Number(values.rooms); number += 1) {
  const first = await client.create("relay");
  const others = await Promise.all(
    Array.from({ length: MEMBERS - 1 }, () => client.joinById(first.roomId)),
  );
  const phase = random();
  for (const room of [first, ...others]) {
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
const [began, server, own] = [performance.now(), cpuUs(values.pid), cpuUs(process.pid)];
await sleep(Number(values.seconds) * 1_000);
isCounting = false;
const took_us = Math.round((performance.now() - began) * 1_000);
const [serverNow, ownNow] = [cpuUs(values.pid), cpuUs(process.pid)];
await sleep(DRAIN_MS);
members.forEach((member) => clearTimeout(member.timer));
console.log(
  JSON.stringify({
    sent,
    expected: sent * (MEMBERS - 1),
    delivered: latenciesUs.length,
    latency_us_p50: percentile(50),
    latency_us_p99: percentile(99),
    server_cpu_us: serverNow.ran - server.ran,
    server_waited_us: serverNow.waited - server.waited,
    generator_cpu_us: ownNow.ran - own.ran,
    generator_waited_us: ownNow.waited - own.waited,
    took_us,
  }),
);
process.exit(0);

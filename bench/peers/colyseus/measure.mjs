// What the loads on Colyseus have in common: their options, even numbers from a seed, processor time, percentiles.
import { readFileSync, readdirSync } from "node:fs";
import { parseArgs } from "node:util";

/** Members of a room, and how often each of them sends or steps. */
export const MEMBERS = 8;
export const PERIOD_MS = 1_000 / 30;

/** The options with these names, all of which must be there. */
export function options(...names) {
  const { values } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  });
  for (const name of names) {
    if (values[name] === undefined) throw new Error(`--${name} is missing`);
  }
  return values;
}

/** Even numbers from 0 to 1 from a seed (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

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

/** Measures the processor time of the server and of this process from now on; the result says how much it was. */
export function account(pid) {
  const [began, server, own] = [performance.now(), cpuUs(pid), cpuUs(process.pid)];
  return () => {
    const [serverNow, ownNow] = [cpuUs(pid), cpuUs(process.pid)];
    return {
      server_cpu_us: serverNow.ran - server.ran,
      server_waited_us: serverNow.waited - server.waited,
      generator_cpu_us: ownNow.ran - own.ran,
      generator_waited_us: ownNow.waited - own.waited,
      took_us: Math.round((performance.now() - began) * 1_000),
    };
  };
}

/** The time in a list that so many of 100 do not exceed. Sorts the list. */
export function percentile(times, percent) {
  if (times.length === 0) return null;
  times.sort((a, b) => a - b);
  return times[Math.ceil((times.length * percent) / 100) - 1];
}

/** Opens rooms of a kind on a server, and fills them with members. */
export async function fill(client, kind, rooms) {
  const filled = [];
  for (let number = 0; number < rooms; number += 1) {
    const first = await client.create(kind);
    const others = Array.from({ length: MEMBERS - 1 }, () => client.joinById(first.roomId));
    filled.push([first, ...(await Promise.all(others))]);
  }
  return filled;
}

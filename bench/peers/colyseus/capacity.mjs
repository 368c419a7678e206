// Rooms of 8 players as `parlor-bench capacity` has them: a world of 24 entities that all move 30 times a second, an input
// of each player in each step, and a line of chat from each every ten seconds. Prints one line of JSON.
import { Client } from "@colyseus/sdk";
import { MEMBERS, PERIOD_MS, account, fill, options, percentile, sleep } from "./measure.mjs";

const STEPS_A_LINE = 300;
const LINE_BYTES = 17;
const WARM_UP_MS = 2_000;
const DRAIN_MS = 500;

const values = options("port", "pid", "rooms", "seconds");

/** The clock that all processes of this machine share, in ms. */
const now = () => performance.timeOrigin + performance.now();

let isCounting = false;
let lost = 0;
const states = { got: 0, of: 0 };
const chat = { got: 0, of: 0 };
const agesUs = [];

/** A state came: of the steps since the last one, all should have. */
function see(member, state) {
  const missed = state.tick - member.tick;
  member.tick = state.tick;
  if (!isCounting || missed <= 0) return;
  states.of += missed;
  states.got += 1;
  agesUs.push(Math.round((now() - state.writtenAt) * 1_000));
}

function hear(bytes) {
  if (bytes[0] === 1) chat.got += 1;
}

/** Sends what a player sends in a step. */
function play(member) {
  const input = new Uint8Array(4);
  new DataView(input.buffer).setUint32(0, member.step);
  member.room.sendBytes("input", input);
  if (member.step % STEPS_A_LINE === member.saysAt) {
    const line = new Uint8Array(LINE_BYTES);
    line[0] = isCounting ? 1 : 0;
    if (isCounting) chat.of += MEMBERS - 1;
    member.room.sendBytes("chat", line);
  }
  member.step += 1;
}

/** Node's timers count in milliseconds, so the players of a room, who follow its step, are due together. */
function keepPlaying(room) {
  while (room.nextAt <= performance.now()) {
    room.nextAt += PERIOD_MS;
    room.members.forEach(play);
  }
  setTimeout(keepPlaying, room.nextAt - performance.now(), room);
}

const rooms = await fill(new Client(`ws://127.0.0.1:${values.port}`), "game", Number(values.rooms));
rooms.forEach((seats, number) => {
  const members = seats.map((room, seat) => {
    const member = { room, tick: 0, step: 0, saysAt: Math.floor((seat * STEPS_A_LINE) / MEMBERS) };
    room.onStateChange((state) => see(member, state));
    room.onMessage("chat", hear);
    room.onLeave(() => (lost += 1));
    return member;
  });
  keepPlaying({ members, nextAt: performance.now() + (number * PERIOD_MS) / rooms.length });
});
await sleep(WARM_UP_MS);
isCounting = true;
const spent = account(values.pid);
await sleep(Number(values.seconds) * 1_000);
const usage = spent();
// What is written from here on does not count; what counts already may still arrive.
isCounting = false;
const members_lost = lost;
await sleep(DRAIN_MS);
console.log(
  JSON.stringify({
    states,
    chat,
    state_age_us_p50: percentile(agesUs, 50),
    state_age_us_p99: percentile(agesUs, 99),
    members_lost,
    ...usage,
  }),
);
process.exit(0);

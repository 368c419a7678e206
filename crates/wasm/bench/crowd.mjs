// How long a page takes for a crowd: `node crates/wasm/bench/crowd.mjs [WASM] [RECORD]`.
//
// It plays back what `record_crowd` recorded: a member that sees 1,000 entities, all of which move in every tick. Two
// times are taken: what a page needs to take in the changes of a tick (packets, then events until there are none), and
// to show all of them in a frame (columns, copied and read). It says them, and fails only if it sees something else.

import { readFileSync } from "node:fs";

const [wasm = "target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm", record = "target/crowd.bin"] = process.argv.slice(2);
const text = new TextEncoder();

/** The bytes of a typed array of one number. */
const bytesOf = (Type, number) => [...new Uint8Array(new Type([number]).buffer)];

/** Encodes a Value of what this script passes: short texts, lists and maps, numbers. */
function encode(value) {
    if (typeof value === "string") return [0xa0 + value.length, ...text.encode(value)];
    if (Array.isArray(value)) return [0x90 + value.length, ...value.flatMap(encode)];
    if (typeof value === "object") {
        const names = Object.keys(value).sort();
        return [0x80 + names.length, ...names.flatMap((name) => [name.length, ...text.encode(name), ...encode(value[name])])];
    }
    if (!Number.isInteger(value)) return [0xc7, ...bytesOf(Float32Array, value)];
    if (value >= -32 && value < 128) return [value & 0xff];
    return value >= -128 && value < 128 ? [0xc3, ...bytesOf(Int8Array, value)] : [0xc4, ...bytesOf(Int16Array, value)];
}

const { instance } = await WebAssembly.instantiate(readFileSync(wasm));
const core = instance.exports;

function give(bytes) {
    const at = core.in_reserve(bytes.length);
    new Uint8Array(core.memory.buffer, at, bytes.length).set(bytes);
    return bytes.length;
}

function taken() {
    const at = core.out_ptr();
    return core.memory.buffer.slice(at, at + core.out_len());
}

function ok(result) {
    if (result === -1) throw new Error(new TextDecoder().decode(taken()));
    return result;
}

const fields = [
    { name: "position", kind: "vec2", min: -512, max: 512, step: 1 / 64 },
    { name: "heading", kind: "angle", steps: 256 },
];
const schema = { components: [{ name: "walker", fields }] };
ok(core.open(give(encode({ app: "crowd", code: "CROWD", intent: "join", schema }))));
ok(core.found(give(encode({ server: "a record" })), 0));

const file = readFileSync(record);
const view = new DataView(file.buffer, file.byteOffset, file.length);
/** Times of a figure, in ms: by the clock, and of the processor. */
const times = () => ({ wall: [], cpu: [] });
const clock = () => ({ wall: performance.now(), cpu: process.cpuUsage() });
function add(sum, begin) {
    const { user, system } = process.cpuUsage(begin.cpu);
    sum.wall += performance.now() - begin.wall;
    sum.cpu += (user + system) / 1000;
}
function keep(times, sum) {
    times.wall.push(sum.wall);
    times.cpu.push(sum.cpu);
}

const taking = times();
const showing = times();
let tookIn = { wall: 0, cpu: 0 };
let changes = 0;
let shown = 0;
let sum = 0;
for (let at = 0; at < file.length; ) {
    const kind = view.getUint8(at);
    const carrier = view.getUint8(at + 1);
    const now = view.getFloat64(at + 8, true);
    const length = Number(view.getBigUint64(at + 16, true));
    const bytes = file.subarray(at + 24, at + 24 + length);
    at += 24 + length;
    if (kind === 2) {
        ok(core.connected(1, now));
        continue;
    }
    let begin = clock();
    if (kind === 0) {
        ok(core.packet(carrier, give(bytes), now));
        add(tookIn, begin);
        continue;
    }
    if (core.next_timeout() <= now) ok(core.timeout(now));
    while (ok(core.poll(now)) === 1);
    add(tookIn, begin);
    const changed = core.changes();
    // The first one brings the whole world, and some bring a part of a tick.
    if (changed >= 900 && changes > 0) keep(taking, tookIn);
    changes += Math.max(changed, 0);
    tookIn = { wall: 0, cpu: 0 };
    while (ok(core.tick(now)) === 1);
    while (ok(core.next_packet(now)) > 0);
    if ((core.flags() & 1) === 0 || core.entities() < 1000) continue;
    begin = clock();
    while (ok(core.poll(now)) === 1);
    const count = ok(core.columns(ok(core.component(give(encode("walker")))), 1, now));
    const numbers = new Float64Array(taken(), 8 + 8 * count);
    for (let index = 0; index < count; index++) sum += numbers[index] + numbers[count + index] + numbers[2 * count + index];
    const frame = { wall: 0, cpu: 0 };
    add(frame, begin);
    keep(showing, frame);
    shown = Math.max(shown, count);
}

function figures(what, { wall, cpu }) {
    // The first tenth compiles and fills caches.
    const sorted = (times) => times.slice(Math.floor(times.length / 10)).sort((a, b) => a - b);
    const at = (times, part) => sorted(times)[Math.floor((sorted(times).length - 1) * part)].toFixed(2);
    const said = (times) => `p50 ${at(times, 0.5)}, p95 ${at(times, 0.95)}`;
    console.log(`${what}, ms: processor ${said(cpu)}; clock ${said(wall)}; of ${sorted(wall).length}`);
}
if (shown !== 1000 || !Number.isFinite(sum)) throw new Error(`${shown} entities were shown`);
figures("1,000 changes taken in", taking);
figures("a frame with 1,000 shown", showing);
console.log(`memory: ${core.memory.buffer.byteLength >> 10} KiB`);

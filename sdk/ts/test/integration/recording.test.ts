import { execFile } from "node:child_process";
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { Writable } from "node:stream";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { component, defineGame, type Gathering, int, type, vec2 } from "../../src/api.js";
import { record } from "../../src/recording/index.js";
import { binary, hosting, options, TestServer, useBuiltWasm } from "../support/server.js";
import { until } from "../support/waits.js";

const Tank = component("tank", { position: vec2(-256, 256, 1 / 512), shells: int(0, 20) });
const tanks = defineGame("tanks", { state: { score: type<number>() }, world: { components: [Tank] } });

let server: TestServer;
let folder: string;
const open: Gathering<never>[] = [];
const kept = <R extends Gathering<never>>(room: R): R => (open.push(room), room);

beforeAll(async () => {
  useBuiltWasm();
  server = await TestServer.start();
  folder = mkdtempSync(path(tmpdir(), "parlor-recording-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.stop();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((room) => room.leave()));
});

const hosts = async () => kept(await tanks.host({ ...hosting(server), name: "ada" }));

/** What the program of a server says of a file. */
async function replay(file: string): Promise<string> {
  const { stdout } = await promisify(execFile)(binary, ["replay", file]);
  return stdout;
}

describe("a recording of a host's room", () => {
  it("is a file that `parlor replay` plays, and agrees with", async () => {
    const room = await hosts();
    const recording = record(room);
    const file = path(folder, "tanks.prec");
    const written = recording.stream.pipeTo(Writable.toWeb(createWriteStream(file)) as WritableStream<Uint8Array>);
    const guest = kept(await tanks.join(room.code, { ...options(server), name: "bob" }));
    const entity = room.world.spawn();
    room.run({
      tick() {
        room.set("score", room.tickNumber);
        room.world.set(entity, Tank, { position: { x: room.tickNumber % 200, y: 0 }, shells: 7 });
      },
    });
    await until(() => recording.figures.marks >= 2);
    await guest.leave();
    await until(() => room.players.size === 1);
    expect(recording.figures.ended).toBeUndefined();
    recording.stop();
    await written;
    expect(recording.figures.ended).toBeDefined();
    expect(readFileSync(file)).toHaveLength(recording.figures.bytes);
    const said = await replay(file);
    expect(said).toContain(`recording of room ${room.code} of "tanks", 30 Hz`);
    expect(said).toMatch(/ada is here[^]*bob is here[^]*1 entity, 1 key[^]*player 1 left[^]*recording was stopped[^]*hashes compared: all agree/);
    // Another may begin now.
    const again = record(room);
    await again.stream.cancel();
    expect(again.figures.ended).toBeDefined();
  });

  it("ends with the room, and is whole", async () => {
    const room = await hosts();
    const recording = record(room);
    const file = path(folder, "over.prec");
    const written = recording.stream.pipeTo(Writable.toWeb(createWriteStream(file)) as WritableStream<Uint8Array>);
    room.set("score", 1);
    await until(() => recording.figures.packets > 0);
    await room.leave();
    await written;
    expect(await replay(file)).toMatch(/the room is over[^]*all agree/);
  });

  it("is the host's, once at a time", async () => {
    const room = await hosts();
    const guest = kept(await tanks.join(room.code, options(server)));
    expect(() => record(guest)).toThrow("host");
    const recording = record(room);
    expect(() => record(room)).toThrow("is being recorded");
    recording.stop();
    recording.stop();
    await room.leave();
    expect(() => record(room)).toThrow("the room is over");
  });
});

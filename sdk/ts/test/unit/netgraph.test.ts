// The net graph's measurements and drawing, with a room that says what the test says.

import { expect, test } from "vitest";
import { describeSample, drawNetGraph, type MeasuredRoom, NetMeter, type NetSample } from "../../src/netgraph.js";

class FakeRoom implements MeasuredRoom {
  status: MeasuredRoom["status"] = "open";
  link: string | undefined = "webtransport";
  ageMs: number | undefined;
  session = { packetsSent: 0, packetsLost: 0, bytesReceived: 0, bytesSent: 0 };
  corrections = 0;
  rttMs: number | undefined = 30;

  get diagnostics() {
    const { rttMs, corrections, ageMs } = this;
    const latencyDown = ageMs === undefined ? {} : { latencyDown: { meanMs: ageMs, worstMs: 2 * ageMs } };
    return {
      ...latencyDown, ...(rttMs === undefined ? {} : { rttMs }), session: { ...this.session }, prediction: { corrections }, jitterMs: 4,
      bufferDelayMs: 70,
    };
  }
}

test("it measures when it is time, and counts what happened since", () => {
  const room = new FakeRoom();
  const meter = new NetMeter(room);
  room.session = { packetsSent: 1_000, packetsLost: 50, bytesReceived: 9_000, bytesSent: 900 };
  expect(meter.update(1_000)).toBe(true);
  expect(meter.latest).toMatchObject({ rttMs: 30, jitterMs: 4, bufferMs: 70, loss: 0, bytesDownPerSecond: 0, stateAgeMs: undefined });
  expect(meter.update(1_499)).toBe(false);
  room.ageMs = 90;
  room.session = { packetsSent: 1_100, packetsLost: 52, bytesReceived: 19_000, bytesSent: 1_400 };
  room.corrections = 3;
  expect(meter.update(1_500)).toBe(true);
  expect(meter.latest).toMatchObject({ loss: 0.02, bytesDownPerSecond: 20_000, bytesUpPerSecond: 1_000, corrections: 3, stateAgeMs: 90 });
  expect(meter.update(2_000)).toBe(true);
  expect(meter.latest).toMatchObject({ loss: 0, corrections: 0, stateAgeMs: 90 });
});

test("a session that counts from zero again makes no negative figures", () => {
  const room = new FakeRoom();
  const meter = new NetMeter(room);
  room.session = { packetsSent: 1_000, packetsLost: 50, bytesReceived: 9_000, bytesSent: 900 };
  meter.update(0);
  room.session = { packetsSent: 2, packetsLost: 0, bytesReceived: 100, bytesSent: 100 };
  meter.update(500);
  expect(meter.latest).toMatchObject({ loss: 0, bytesDownPerSecond: 0, bytesUpPerSecond: 0 });
});

test("it keeps as many measurements as it was told", () => {
  const meter = new NetMeter(new FakeRoom(), { everyMs: 10, samples: 3 });
  for (let timeMs = 0; timeMs < 100; timeMs += 10) meter.update(timeMs);
  expect(meter.samples.map(({ timeMs }) => timeMs)).toEqual([70, 80, 90]);
});

test("what is not known is told as such", () => {
  const room = new FakeRoom();
  room.rttMs = undefined;
  room.status = "reconnecting";
  const meter = new NetMeter(room);
  meter.update(0);
  const rows = Object.fromEntries(describeSample(meter.latest!));
  expect(rows).toMatchObject({ link: "reconnecting…", "round trip": "–", "state age": "–", lost: "0.0%" });
});

test("a bar is as high as its round trip, within its box, and corrections are marked", () => {
  const room = new FakeRoom();
  const meter = new NetMeter(room, { everyMs: 1 });
  for (const rttMs of [20, 100, 1_000, undefined]) {
    room.rttMs = rttMs;
    room.corrections += rttMs === 100 ? 1 : 0;
    meter.update(meter.samples.length);
  }
  const drawn: (string | number)[][] = [];
  const pen = { fillStyle: "", globalAlpha: 1, clearRect: () => {}, fillRect: (...at: number[]) => drawn.push([pen.fillStyle, pen.globalAlpha, ...at]) };
  const colours = ["good", "middling", "bad", "mark"] as const;
  drawNetGraph(pen as never, meter.samples as NetSample[], { x: 100, y: 10, width: 80, height: 40, samples: 8, fullMs: 200, colours });
  expect(drawn).toEqual([
    ["good", 1, 140, 46, 9, 4],
    ["middling", 1, 150, 30, 9, 20],
    ["mark", 1, 150, 10, 9, 3],
    ["bad", 1, 160, 10, 9, 40],
    ["bad", 0.4, 170, 10, 9, 40],
  ]);
});

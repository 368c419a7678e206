import { expect, it } from "vitest";
import { Changes } from "../../src/room/changes.js";

function watched() {
  const it = { now: 1, heard: true, told: [] as number[] };
  const changes = new Changes({ version: () => it.now, isHeard: () => it.heard, tell: (version) => void it.told.push(version) });
  return { it, changes };
}

it("tells once a task, at its end, what the version is then", async () => {
  const { it, changes } = watched();
  changes.soon();
  changes.soon();
  it.now = 2;
  expect(it.told).toEqual([]);
  await Promise.resolve();
  expect(it.told).toEqual([2]);
});

it("tells nothing while the version is the same, or nobody listens", async () => {
  const { it, changes } = watched();
  changes.soon();
  await Promise.resolve();
  changes.soon();
  await Promise.resolve();
  it.now = 2;
  it.heard = false;
  changes.soon();
  await Promise.resolve();
  expect(it.told).toEqual([1]);
});

/** `testdata/magpies.txt`: the rules here give what the terminal's rules gave, to the last bit. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Dir, Input, Value } from "../src/game/state.ts";
import { World } from "../src/game/world.ts";

const DIRS: Record<string, Dir> = { S: "Stay", U: "Up", D: "Down", L: "Left", R: "Right" };

function line([key, it]: [string, Value]): string {
  if ("heading" in it) {
    const { x, y, heading, motion, safe, score, dash_ready_at } = it;
    return `${key} ${x * 64} ${y * 64} ${heading} ${motion} ${safe} ${score} ${dash_ready_at}`;
  }
  if ("glyph" in it) return `${key} ${it.slot} ${it.glyph} ${it.name}`;
  if ("worth" in it) return `${key} ${it.x * 64} ${it.y * 64} ${it.worth}`;
  return `${key} ${it.number} ${it.phase} ${it.ends_at} [${it.winners.join(", ")}] ${it.best}`;
}

function read(text: string): [number, Input] {
  const [id, input] = text.split("=") as [string, string];
  return [Number(id), { dir: DIRS[input[0]!]!, dash: input.endsWith("*") }];
}

function fnv(hash: number, text: string): number {
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}

const games = readFileSync(new URL("../../../testdata/magpies.txt", import.meta.url), "utf8")
  .split("\n").filter((it) => it && !it.startsWith("#")).join("\n").split(/^(?=world )/m);

test("the games are there", () => expect(games.length).toBeGreaterThanOrEqual(2));

test.each(games)("a game goes as in the terminal: %.20s", (game) => {
  let world = new World(0n);
  let hash = 0x811c9dc5;
  const values: string[] = [];
  const wanted: string[] = [];
  for (const text of game.trim().split("\n")) {
    const [call, ...words] = text.split(" ") as [string, ...string[]];
    if (call === "world") world = new World(BigInt(words[0]!));
    else if (call === "resume") world = World.resume(BigInt(words[0]!), world.scene());
    else if (call === "tick") world.setTick(Number(words[0]));
    else if (call === "join") world.join(Number(words[0]), words.slice(1).join(" "));
    else if (call === "leave") world.leave(Number(words[0]));
    else if (call === "hash") {
      values.push(`hash ${(hash >>> 0).toString(16).padStart(8, "0")}`, ...world.publish().set.map(line));
      wanted.push(text);
    } else if (call === "step") {
      const inputs = new Map(words.slice(1).map(read));
      for (let count = Number(words[0]); count > 0; count--) {
        world.step(inputs);
        for (const value of world.publish().set) hash = fnv(hash, `${line(value)}\n`);
      }
    } else wanted.push(text);
  }
  expect(values).toEqual(wanted);
});

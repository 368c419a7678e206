// The pictures of the site, taken anew with each build: what the programs of this checkout show. One that does not come to show
// what it should fails the build.
//
//   node site/pictures.mjs [FOLDER]      default: target/site/pictures; needs target/debug/parlor, the SDK and Chromium

import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { Terminal } from "./terminal.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PARLOR = process.env.PARLOR_BIN ?? join(ROOT, "target/debug/parlor");
const EXAMPLES = join(ROOT, "target/examples");
const CODE = /room\s+((?:[A-Z0-9] ?){4,})/;

/** What all pictures share: a folder, an environment without servers of others, and what is to be stopped at the end. */
class Studio {
  #stops = [];
  folder = mkdtempSync(join(tmpdir(), "parlor-pictures-"));

  constructor(out) {
    this.out = out;
    const others = Object.entries(process.env).filter(([name]) => !name.startsWith("PARLOR_"));
    this.env = { ...Object.fromEntries(others), PARLOR_REGISTRY: join(this.folder, "registry"), XDG_STATE_HOME: this.folder };
  }

  terminal(command, options = {}) {
    const terminal = new Terminal(command, { env: this.env, ...options });
    this.#stops.push(() => terminal.stop());
    return terminal;
  }

  /** Starts a server, and gives what it prints. */
  async serve(shows, command, ...args) {
    const child = spawn(command, args, { cwd: ROOT, env: { ...this.env, PARLOR_BIN: PARLOR }, stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    this.#stops.push(() => (child.kill("SIGTERM"), ended));
    let printed = "";
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`${command} ${args.join(" ")} ended with ${code}: ${printed}`)));
      child.stdout.on("data", (bytes) => {
        printed += bytes;
        const found = shows.exec(printed);
        if (found) resolve(found[1]);
      });
    });
  }

  save(name, content) {
    writeFileSync(join(this.out, name), content);
  }

  async close() {
    for (const stop of this.#stops.reverse()) await stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Magpies in a terminal, with bots. */
async function play(studio) {
  const host = studio.terminal([PARLOR, "play", "--name", "Ada"], { columns: 92, rows: 28 });
  const code = (await host.until(CODE))[1].replaceAll(" ", "");
  studio.terminal([PARLOR, "bots", "--join", code, "--count", "3"]);
  await host.until(/players 4/);
  host.press(" ");
  // The bots collect gems, and the graphs of the link begin.
  await host.until(/bot \d\s+[4-9]/);
  studio.save("play.svg", host.svg());
}

/** A lobby, and a board that was played for. */
async function beyond(studio, port) {
  const call = (name, ...args) => [PARLOR, ...args.slice(0, 1), "--server", `127.0.0.1:${port}`, "--app", "tanks", "--name", name, ...args.slice(1)];
  const shown = (...words) => `\x1b[1m$ parlor ${words.join(" ")}\x1b[0m\r\n`;
  const ada = studio.terminal(call("ada", "lobby", "open", "Ada's mill"), { rows: 14, shown: shown("lobby open \"Ada's mill\"") });
  const [, code] = await ada.until(/lobby join (\w+)/);
  const bob = studio.terminal(call("bob", "lobby", "join", code));
  await ada.until(/bob/);
  bob.press("hello! is there a seat left?\r");
  await ada.until(/seat left/);
  ada.press("there is, get ready\r");
  await bob.until(/get ready/);
  studio.save("lobby.svg", ada.svg());
  for (const [name, kills] of [["ada", 12], ["bob", 31], ["cleo", 27], ["dan", 8]]) {
    execFileSync(PARLOR, call(name, "board", "submit", "kills", String(kills)).slice(1), { env: studio.env, stdio: "ignore" });
  }
  const board = studio.terminal(call("ada", "board", "top", "kills"), { columns: 60, rows: 10, shown: shown("board top kills") });
  await board.end();
  await board.until(/4 of 4/);
  studio.save("board.svg", board.svg());
}

/** Builds the games that a terminal plays. */
async function buildExamples() {
  for (const name of ["dots", "tanks", "duel"]) {
    const folder = join(ROOT, "examples", name);
    // The versions that everything else is tested with.
    copyFileSync(join(ROOT, "Cargo.lock"), join(folder, "Cargo.lock"));
    execFileSync("cargo", ["build", "--quiet"], { cwd: folder, env: { ...process.env, CARGO_TARGET_DIR: EXAMPLES }, stdio: "inherit" });
  }
}

/** One of them: a host and a guest, who press keys over and over until the host's screen shows what it should. */
async function example(studio, name, columns, keys, shows) {
  const program = join(EXAMPLES, "debug", name);
  const host = studio.terminal([program], { columns, rows: 20 });
  const [, code] = await host.until(/room (\w{4,})/);
  const guest = studio.terminal([program, code]);
  await host.until(/players 2/);
  let [seen, turn] = [undefined, 0];
  const playing = host.until(shows).then((found) => (seen = found));
  for (; seen === undefined; turn++) {
    host.press(keys.host(turn));
    guest.press(keys.guest(turn));
    await Promise.race([playing, pause(50)]);
  }
  studio.save(`${name}.svg`, host.svg());
}


const [LEFT, RIGHT, UP, DOWN] = ["D", "C", "A", "B"].map((letter) => `\x1b[${letter}`);

/** Whether a screen shows two of some signs below its title, far from each other. */
function apart(sign) {
  return (text) => {
    const places = text.split("\n").slice(1).flatMap((line, y) => [...line.matchAll(sign)].map(({ index }) => [index, y]));
    return places.length === 2 && Math.abs(places[0][0] - places[1][0]) > 12 && places[1][1] - places[0][1] > 4;
  };
}

async function examples(studio) {
  await example(studio, "dots", 52, { host: (turn) => (turn % 3 === 0 ? UP : LEFT), guest: (turn) => (turn % 3 === 0 ? DOWN : RIGHT) }, apart(/[AB]/g));
  await example(studio, "tanks", 62, { host: (turn) => (turn < 8 ? LEFT : UP), guest: (turn) => (turn < 2 ? RIGHT : UP) }, apart(/[→↘↓↙←↖↑↗]/g));
  await example(studio, "duel", 64, { host: () => RIGHT, guest: (turn) => (turn % 4 === 3 ? UP : LEFT) }, /touches 0 : [1-9][^]*────/);
}

/** The pages of the server, and the games that a browser plays. */
async function browser(studio, port, games) {
  const chrome = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const open = async (url, size = { width: 960, height: 600 }) => {
      const context = await chrome.newContext({ viewport: size, colorScheme: "dark" });
      const page = await context.newPage();
      await page.goto(url);
      return page;
    };
    const shoot = async (page, name) => studio.save(name, await page.screenshot({ type: "png" }));
    await Promise.all([magpies(studio, port, open, shoot), cards(games, open, shoot)]);
    await Promise.all([four(games, open, shoot), sumo(games, open, shoot)]);
  } finally {
    await chrome.close();
  }
}

async function magpies(studio, port, open, shoot) {
  const page = await open(`http://localhost:${port}/`);
  await page.fill("#name", "Ada");
  await page.click("#go");
  await page.waitForSelector("#code:not(:empty)");
  const code = (await page.textContent("#code")).replaceAll(" ", "");
  studio.terminal([PARLOR, "bots", "--server", `127.0.0.1:${port}`, "--join", code, "--count", "3"]);
  await page.waitForFunction(() => /bot \d/.test(document.body.innerText));
  await pause(4_000);
  await shoot(page, "magpies.png");
}

async function cards(games, open, shoot) {
  const a = await open(`${games}cards/`);
  const b = await open(await a.getAttribute("#status a", "href"));
  for (const [mine, theirs] of [[3, 7], [9, 1]]) {
    await Promise.all([[a, mine], [b, theirs]].map(([page, card]) => page.click(`#hand button:enabled:text-is("${card}")`)));
    await a.waitForFunction((card) => document.getElementById("status").textContent.includes(`${card} against`), mine);
  }
  await shoot(a, "cards.png");
}

async function four(games, open, shoot) {
  const a = await open(`${games}four/?name=ada`);
  const b = await open(new URL(await a.getAttribute("#more a", "href"), a.url()).href);
  await b.waitForFunction(() => document.querySelector("canvas").dataset.disc);
  for (const column of [4, 3, 4, 4, 5, 6, 3, 5]) {
    const page = await Promise.any([a, b].map((page) => page.waitForFunction(() => /Your turn/.test(document.body.innerText)).then(() => page)));
    await page.keyboard.press(String(column));
    await page.waitForFunction(() => !/Your turn/.test(document.body.innerText));
  }
  await shoot(a, "four.png");
}

async function sumo(games, open, shoot) {
  const [a, b] = await Promise.all([open(`${games}sumo/`), open(`${games}sumo/`)]);
  await Promise.all([a, b].map((page) => page.waitForFunction(() => /you \d/.test(document.body.innerText))));
  const isRed = await a.evaluate(() => document.body.innerText.includes("red"));
  // They meet in the middle.
  await Promise.all([a.keyboard.down(isRed ? "ArrowRight" : "ArrowLeft"), b.keyboard.down(isRed ? "ArrowLeft" : "ArrowRight")]);
  await pause(700);
  await shoot(a, "sumo.png");
}

/** Waits for some work, and says how long that took. */
async function timed(what, work) {
  const began = performance.now();
  await work;
  console.log(`${what}: ${((performance.now() - began) / 1_000).toFixed(1)} s`);
}

/** Takes all pictures, and the server's OpenAPI document, into a folder. */
export async function takePictures(out) {
  mkdirSync(out, { recursive: true });
  await timed("games built", buildExamples());
  const studio = new Studio(out);
  try {
    const [port, games] = await Promise.all([
      studio.serve(/listens on port (\d+)/, PARLOR, "serve", "--port", "0", "--data", join(studio.folder, "data"), "--listen", "127.0.0.1"),
      studio.serve(/play (\S+)sumo/, process.execPath, join(ROOT, "examples/play.mjs"), "--pages", "0", "--port", "0", "--data", join(studio.folder, "games"), "--listen", "127.0.0.1"),
    ]);
    studio.save("openapi.json", await (await fetch(`http://127.0.0.1:${port}/v1/openapi.json`)).text());
    await Promise.all([timed("play", play(studio)), timed("lobby and board", beyond(studio, port)), timed("games in terminals", examples(studio))]);
    await timed("pages", browser(studio, port, games));
  } finally {
    await studio.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await takePictures(process.argv[2] ?? join(ROOT, "target/site/pictures"));

// A program in a terminal, and its screen as SVG.

import { spawn } from "node:child_process";
import xterm from "@xterm/headless";
import { escape } from "./markdown.mjs";

const PATIENCE_MS = 60_000;
/** The size of a character, and the margin around the screen. */
const [WIDTH, HEIGHT, MARGIN] = [8.4, 18, 14];
const [INK, PAPER] = ["#d9dee8", "#141821"];
/** The sixteen colours of a terminal. */
const SIXTEEN = [
  "#2b303b", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
  "#5c6370", "#ff7b86", "#b5e08f", "#ffd580", "#7cc7ff", "#dd9bf5", "#6fd3de", "#ffffff",
];

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

export class Terminal {
  #screen;
  #child;
  #ended;
  #written = Promise.resolve();

  /** Runs a command. `shown` is what stands above its output, such as how it was called. */
  constructor(command, { columns = 90, rows = 26, env = process.env, shown = "" } = {}) {
    this.name = command.join(" ");
    this.#screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
    this.#write(shown);
    // `script` gives the program a terminal.
    const line = `stty rows ${rows} cols ${columns}; exec ${command.map(quoted).join(" ")}`;
    this.#child = spawn("script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"], {
      env: { ...env, TERM: "xterm-256color", COLORTERM: "truecolor" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout.on("data", (bytes) => this.#write(bytes));
    this.#ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", resolve);
    });
  }

  #write(what) {
    this.#written = this.#written.then(() => new Promise((resolve) => this.#screen.write(what, resolve)));
  }

  /** The lines of the screen. */
  get lines() {
    const { active } = this.#screen.buffer;
    return Array.from({ length: this.#screen.rows }, (_, y) => active.getLine(active.viewportY + y).translateToString(true));
  }

  /** Waits until the screen shows something; gives what `shows` finds there. Only a fault takes long. */
  async until(shows) {
    const test = shows instanceof RegExp ? (text) => shows.exec(text) : shows;
    for (const until = Date.now() + PATIENCE_MS; Date.now() < until; ) {
      const found = test(this.lines.join("\n"));
      if (found) return found;
      if (this.#child.exitCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`\`${this.name}\` never shows ${shows}; its screen:\n${this.lines.join("\n")}`);
  }

  press(keys) {
    this.#child.stdin.write(keys);
  }

  /** Waits until the program has ended by itself. */
  async end() {
    await this.#ended;
    await this.#written;
  }

  /** Takes the terminal away, which ends the program. `script` takes seconds for it if it is asked. */
  async stop() {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** The screen as SVG, without empty lines at its end. */
  svg() {
    const { active } = this.#screen.buffer;
    const height = this.lines.findLastIndex((line) => line !== "") + 1;
    const cell = active.getNullCell();
    const parts = [];
    for (let y = 0; y < height; y++) {
      const line = active.getLine(active.viewportY + y);
      for (const run of runs(line, this.#screen.cols, cell)) parts.push(drawn(run, y));
    }
    const [w, h] = [this.#screen.cols * WIDTH + 2 * MARGIN, height * HEIGHT + 2 * MARGIN];
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" fill="${INK}">
<rect width="100%" height="100%" rx="10" fill="${PAPER}"/>
<g transform="translate(${MARGIN} ${MARGIN})">
${parts.join("")}</g>
</svg>
`;
  }
}

/** Cells side by side that look alike. */
function runs(line, columns, cell) {
  const all = [];
  for (let x = 0; x < columns; x++) {
    line.getCell(x, cell);
    const [ink, paper] = [colour(cell, "Fg") ?? INK, colour(cell, "Bg") ?? PAPER];
    const look = cell.isInverse() ? { ink: paper, paper: ink } : { ink, paper };
    Object.assign(look, { bold: cell.isBold() !== 0, dim: cell.isDim() !== 0 });
    const text = cell.getChars() || " ";
    const last = all.at(-1);
    if (last && JSON.stringify(last.look) === JSON.stringify(look)) last.text += text;
    else all.push({ x, look, text });
  }
  return all;
}

/** A cell's colour as CSS; undefined for the default. */
function colour(cell, which) {
  const value = cell[`get${which}Color`]();
  if (cell[`is${which}RGB`]()) return `#${value.toString(16).padStart(6, "0")}`;
  if (!cell[`is${which}Palette`]()) return undefined;
  if (value < 16) return SIXTEEN[value];
  const grey = 8 + 10 * (value - 232);
  if (value >= 232) return `rgb(${grey} ${grey} ${grey})`;
  const level = (n) => (n === 0 ? 0 : 55 + 40 * n);
  const n = value - 16;
  return `rgb(${level(Math.floor(n / 36))} ${level(Math.floor(n / 6) % 6)} ${level(n % 6)})`;
}

function drawn({ x, look: { ink, paper, bold, dim }, text }, y) {
  const width = (it) => ([...it].length * WIDTH).toFixed(1);
  const top = y * HEIGHT;
  const back = paper === PAPER ? "" : `<rect x="${(x * WIDTH).toFixed(1)}" y="${top}" width="${width(text)}" height="${HEIGHT}" fill="${paper}"/>\n`;
  // Not all that draw SVG keep spaces: those at the ends are left out, and those between do not shrink.
  const shown = text.trim().replaceAll(" ", "\u00a0");
  if (shown === "") return back;
  const left = (x + text.length - text.trimStart().length) * WIDTH;
  const marks = `${ink === INK ? "" : ` fill="${ink}"`}${bold ? ' font-weight="bold"' : ""}${dim ? ' opacity="0.65"' : ""}`;
  // Whatever font draws it, a run is as wide as its cells.
  return `${back}<text x="${left.toFixed(1)}" y="${top + 13}" textLength="${width(shown)}"${marks}>${escape(shown)}</text>\n`;
}

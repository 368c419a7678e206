// The gallery: a page for each game with its picture, its command and its whole program.

import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { GAMES } from "./contents.mjs";
import { between, pageOf } from "./links.mjs";
import { code, escape } from "./markdown.mjs";

/** Lines of code that a game may have: it is read in one sitting. */
const LINES_MAX = 150;

/** A program without its tests, and its lines of code: neither empty ones nor comments. */
function program(root, source) {
  const text = readFileSync(join(root, source), "utf8").split("\n#[cfg(test)]\n")[0];
  const lines = (it) => it.split("\n").filter((line) => line.trim() !== "" && !/^\s*(\/\/|<!--)/.test(line)).length;
  const page = source.endsWith(".ts") ? readFileSync(join(root, posix.dirname(source), "index.html"), "utf8") : "";
  return { text, lines: lines(text) + lines(page) };
}

const picture = (name) => (["cards", "four", "sumo"].includes(name) ? `pictures/${name}.png` : `pictures/${name}.svg`);

/** A figure at the top of a page. */
export function figure(page, image, caption) {
  return `<figure><img src="${escape(between(page, image))}" alt="${escape(caption)}" loading="lazy"><figcaption>${escape(caption)}</figcaption></figure>\n`;
}

/** All games as cards. */
export function gameCards(page) {
  const cards = GAMES.map(({ name, title, what }) => `<a class="card" href="${escape(between(page, `games/${name}.html`))}"><img src="${escape(between(page, picture(name)))}" alt="" loading="lazy"><b>${title}</b><span>${escape(what)}</span></a>`);
  return `<div class="cards">${cards.join("\n")}</div>`;
}

/** The pages of the gallery. `titleOf` gives the title of a document. Throws if a game is too long to be read. */
export function galleryPages(root, titleOf) {
  const index = {
    address: "games/index.html",
    title: "Six small games",
    headings: [],
    body: `<p>Each is a whole game of at most ${LINES_MAX} lines of code, with its test over a bad network. Begin with Dots in Rust, or with Cards in the browser.</p>${gameCards("games/index.html")}`,
    sections: GAMES.map(({ name, title, what }) => ({ page: `games/${name}.html`, title, text: what })),
  };
  return [index, ...GAMES.map((game) => gamePage(root, game, titleOf))];
}

function gamePage(root, game, titleOf) {
  const address = `games/${game.name}.html`;
  const { text, lines } = program(root, game.source);
  if (lines > LINES_MAX) throw new Error(`${game.source} has ${lines} lines of code; a game of the gallery has at most ${LINES_MAX}`);
  const language = game.source.endsWith(".ts") ? "ts" : "rust";
  const then = game.page
    ? `<p>It prints where to play: open <code>http://localhost:5173/${game.page}/</code> in two windows.</p>`
    : `<p>It shows the code of its room. A second player joins with it, in another terminal:</p><pre><code>${escape(game.second)}</code></pre>`;
  const more = game.more.map((target) => {
    const [path, anchor] = target.split("#");
    return `<a href="${escape(between(address, pageOf(path)) + (anchor ? `#${anchor}` : ""))}">${escape(titleOf(path))}</a>`;
  });
  return {
    address,
    title: game.title,
    headings: [],
    sections: [],
    body: `<p>${escape(game.what)}</p>
${figure(address, picture(game.name), `${game.title}, played by two`)}
<h2 id="play">Play it</h2><p>From a checkout of the repository:</p><pre><code>${escape(game.command)}</code></pre>${then}
<p>Read on: ${more.join(", ")}.</p>
<h2 id="program">The program</h2><p><code>${game.source}</code>, ${lines} lines of code${game.page ? " with its page" : ""}:</p><pre><code>${code(text, language)}</code></pre>`,
  };
}

// The frame of every page: its head, the navigation by task, the contents of the page, and the search.

import { SECTIONS } from "./contents.mjs";
import { between } from "./links.mjs";
import { escape } from "./markdown.mjs";

/** The whole page. `page` has an `address`, a `title`, `body` (HTML), and `headings` for its contents. */
export function layout(page, titles) {
  const to = (address) => escape(between(page.address, address));
  const deep = page.headings.filter(({ level }) => level <= 3);
  const contents = deep.length < 3 ? "" : `<nav class="contents" aria-label="On this page"><p>On this page</p><ul>${deep
    .map(({ level, id, title }) => `<li class="level-${level}"><a href="#${escape(id)}">${escape(title)}</a></li>`)
    .join("")}</ul></nav>`;
  const title = page.address === "index.html" ? "Parlor: realtime multiplayer for any game" : `${page.title} · Parlor`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<link rel="icon" href="${to("static/icon.svg")}">
<link rel="stylesheet" href="${to("static/style.css")}">
<script src="${to("static/theme.js")}"></script>
<script src="${to("static/site.js")}" defer data-top="${to("index.html").replace(/index\.html$/, "")}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header>
<button id="menu" aria-expanded="false" aria-controls="tasks">☰<span class="hidden"> Menu</span></button>
<a class="logo" href="${to("index.html")}">Parlor</a>
<search><input id="search" type="search" placeholder="Search  (press /)" aria-label="Search" autocomplete="off" spellcheck="false">
<ol id="found" hidden></ol></search>
<button id="theme" title="Dark or light">◐<span class="hidden"> Dark or light</span></button>
</header>
<div class="frame">
<nav id="tasks" aria-label="By task">${SECTIONS.map((section) => group(section, page, titles, to)).join("\n")}</nav>
<main id="main"><h1>${escape(page.title)}</h1>
${page.body}</main>
${contents}</div>
</body>
</html>
`;
}

function group({ title, pages }, page, titles, to) {
  const item = (path) => {
    if (typeof path === "object") return `<li><b>${escape(path.into)}</b><ul>${path.pages.map(item).join("")}</ul></li>`;
    const { address, title } = titles.get(path);
    const here = address === page.address ? ' aria-current="page"' : "";
    return `<li><a href="${to(address)}"${here}>${escape(title)}</a></li>`;
  };
  return `<h2>${escape(title)}</h2><ul>${pages.map(item).join("")}</ul>`;
}

/** The tasks as cards, each with the first page of its section. */
export function cards(page, titles) {
  const to = (address) => escape(between(page.address, address));
  const first = ([path]) => (typeof path === "object" ? path.pages[0] : path);
  // The first section is this page itself.
  return `<div class="cards">${SECTIONS.map(({ title, what, pages }, i) => {
    const { address } = titles.get(i === 0 ? pages[1] : first(pages));
    return `<a class="card" href="${to(address)}"><b>${escape(title)}</b><span>${escape(what)}</span></a>`;
  }).join("\n")}</div>`;
}

// The theme, the menu of small screens, the search, and what copies a block of code.
"use strict";

const top_ = document.currentScript.dataset.top;
const root = document.documentElement;

document.getElementById("theme").addEventListener("click", () => {
  const isDark = getComputedStyle(root).getPropertyValue("--is-dark").trim() === "1";
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

const menu = document.getElementById("menu");
menu.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", String(document.body.classList.toggle("with-menu")));
});
const tasks = document.getElementById("tasks");
const here = tasks.querySelector("[aria-current]");
if (here) tasks.scrollTop = here.offsetTop - tasks.clientHeight / 2;

const field = document.getElementById("search");
const list = document.getElementById("found");
let index;

/** Loads a script of the site. As scripts, the library and the index load from a disk, too. */
function load(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${top_}static/${name}`;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${name} could not be loaded`));
    document.head.append(script);
  });
}

async function loadIndex() {
  await Promise.all([load("minisearch.js"), load("search-index.js")]);
  const { options, data } = globalThis.SEARCH;
  return MiniSearch.loadJS(data, options);
}

/** Who searches wants to do something more often than to read the protocol. */
const boostDocument = (address) => (/^(protocol|state-machines|architecture|changelog)\.html/.test(address) ? 0.5 : 1);

/** Shows what is found. Words of a title count most, and the last word may be unfinished. */
async function search() {
  const words = field.value.trim();
  index ??= loadIndex();
  const found = words === "" ? [] : (await index).search(words, { prefix: true, fuzzy: 0.15, combineWith: "AND", boost: { title: 4, page: 2 }, boostDocument }).slice(0, 12);
  if (field.value.trim() !== words) return;
  list.replaceChildren(...found.map(entry), ...(words !== "" && found.length === 0 ? [nothing(words)] : []));
  list.hidden = words === "";
}

function entry({ id, title, page, start }) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: top_ + id });
  const where = Object.assign(document.createElement("span"), { textContent: page === title ? page : `${page} › ${title}` });
  link.append(where, Object.assign(document.createElement("small"), { textContent: start }));
  item.append(link);
  return item;
}

function nothing(words) {
  return Object.assign(document.createElement("li"), { textContent: `nothing has all of: ${words}` });
}

const fail = (why) => {
  list.replaceChildren(Object.assign(document.createElement("li"), { textContent: why.message }));
  list.hidden = false;
};
field.addEventListener("input", () => search().catch(fail));
field.addEventListener("focus", () => (index ??= loadIndex()).catch(fail), { once: true });
addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) field.focus();
  else if (event.key === "Escape") {
    list.hidden = true;
    field.blur();
  } else if (event.key === "ArrowDown" && !list.hidden) (links[at + 1] ?? links[0])?.focus();
  else if (event.key === "ArrowUp" && at >= 0) (links[at - 1] ?? field).focus();
  else if (event.key === "Enter" && document.activeElement === field) return links[0]?.click();
  else return;
  event.preventDefault();
});
addEventListener("click", ({ target }) => {
  if (!target.closest("search")) list.hidden = true;
});

for (const block of document.querySelectorAll("pre")) {
  const button = Object.assign(document.createElement("button"), { className: "copy", textContent: "copy", title: "Copy this" });
  button.addEventListener("click", () => {
    // Of a dialogue in a terminal only what is typed.
    const lines = block.querySelector("code").textContent.split("\n");
    const typed = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    navigator.clipboard.writeText((typed.length > 0 ? typed : lines).join("\n")).then(() => (button.textContent = "copied"), () => (button.textContent = "not allowed"));
    setTimeout(() => (button.textContent = "copy"), 2_000);
  });
  block.append(button);
}

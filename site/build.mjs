// Builds the site from the documents of this repository, with pictures and references, and checks every link in it.
//
//   node site/build.mjs [--without-pictures] [--without-references] [FOLDER]      default: target/site
//
// Pictures need target/debug/parlor, the games in target/examples, the SDK and Chromium; references are what `cargo doc` and
// sdk/reference have made. `cargo xtask test --only site` makes all of that first. Links to what is left out are not checked.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import MiniSearch from "minisearch";
import { deadLinks } from "./check.mjs";
import { FOLDERS, PICTURES, SECTIONS } from "./contents.mjs";
import { figure, galleryPages, gameCards } from "./gallery.mjs";
import { cards, layout } from "./layout.mjs";
import { linker, pageOf, repositoryOf } from "./links.mjs";
import { render } from "./markdown.mjs";
import { operationsPage } from "./operations.mjs";
import { takePictures } from "./pictures.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(HERE);
const { values, positionals } = parseArgs({ options: { "without-pictures": { type: "boolean" }, "without-references": { type: "boolean" } }, allowPositionals: true });
const OUT = positionals[0] ?? join(ROOT, "target/site");
/** What `cargo doc` and TypeDoc have made, and where the site has it. */
const REFERENCES = [
  { path: "api/rust", from: "target/doc", title: "Rust: the crate parlor", start: "api/rust/parlor/index.html", make: "cargo doc --no-deps --workspace --all-features --exclude parlor-cli" },
  { path: "api/ts", from: "target/reference", title: "TypeScript: the package parlor", start: "api/ts/index.html", make: "npm run build --prefix sdk/reference" },
];
/** How much of a section the search shows. */
const START_LENGTH = 160;

const faults = [];
const pathsOf = (pages) => pages.flatMap((it) => (typeof it === "object" ? pathsOf(it.pages) : [it]));

/** The documents of the contents. Tells of those that are missing there. */
function documents() {
  const listed = pathsOf(SECTIONS.flatMap(({ pages }) => pages)).filter((path) => path.endsWith(".md"));
  const twice = listed.filter((path, i) => listed.indexOf(path) !== i);
  faults.push(...twice.map((path) => `site/contents.mjs lists ${path} twice`));
  for (const folder of FOLDERS) {
    const there = readdirSync(join(ROOT, folder)).filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
    faults.push(...there.filter((path) => !listed.includes(path)).map((path) => `${path} is in no section of site/contents.mjs: give it a place there`));
  }
  return new Set(listed);
}

function documentPage(path, all, repository) {
  const dead = (sentence) => faults.push(sentence);
  const link = linker({ root: ROOT, document: path, documents: all, repository, dead });
  const { title, html, headings, sections } = render(readFileSync(join(ROOT, path), "utf8"), link);
  const address = pageOf(path);
  const pictures = (PICTURES[path] ?? []).map(([file, caption]) => figure(address, `pictures/${file}`, caption)).join("");
  return {
    path,
    address,
    title,
    headings,
    body: pictures + html,
    sections: sections.map(({ level, id, title: heading, text }) => ({ page: level === 1 ? address : `${address}#${id}`, title: heading, text })),
  };
}

/** The search: an index of all sections, as a script that sets `SEARCH`. */
function searchIndex(pages) {
  const options = { fields: ["title", "page", "text"], storeFields: ["title", "page", "start"] };
  const index = new MiniSearch(options);
  index.addAll(pages.flatMap(({ title: page, sections }) => sections.map(({ page: id, title, text }) => ({ id, page, title, text, start: text.slice(0, START_LENGTH) }))));
  return `globalThis.SEARCH = ${JSON.stringify({ options, data: index })};\n`;
}

function write(path, content) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  writeFileSync(join(OUT, path), content);
}

function copyReferences() {
  for (const { path, from, make } of REFERENCES) {
    if (existsSync(join(ROOT, from, "index.html")) || existsSync(join(ROOT, from, "parlor/index.html"))) cpSync(join(ROOT, from), join(OUT, path), { recursive: true });
    else faults.push(`there is no ${from}: \`${make}\`, or pass --without-references`);
  }
}

const began = performance.now();
rmSync(OUT, { recursive: true, force: true });
const pictures = values["without-pictures"] ? undefined : takePictures(join(OUT, "pictures"));
const all = documents();
const repository = repositoryOf(ROOT);
if (repository === undefined) console.log("Cargo.toml names no `repository` for all packages: links to source files are text without an address");
const pages = [...all].map((path) => documentPage(path, all, repository));
const titleOf = (path) => pages.find((page) => page.path === path).title;
pages.push(...galleryPages(ROOT, titleOf));
await pictures;
const document = values["without-pictures"] ? { paths: {} } : JSON.parse(readFileSync(join(OUT, "pictures/openapi.json"), "utf8"));
pages.push(operationsPage(document));
write("api/openapi.json", JSON.stringify(document));
if (!values["without-references"]) copyReferences();

const titles = new Map(pages.map(({ path, address, title }) => [path ?? address.replace(/(\/index)?\.html$/, ""), { address, title }]));
for (const { path, start, title } of REFERENCES) titles.set(path, { address: start, title });
const [home] = pages;
home.body = home.body.replace("</p>\n", `</p>\n${cards(home, titles)}`) + `<h2 id="six-small-games">Six small games</h2>${gameCards(home.address)}`;
for (const page of pages) write(page.address, layout(page, titles));
cpSync(join(HERE, "static"), join(OUT, "static"), { recursive: true });
cpSync(createRequire(import.meta.url).resolve("minisearch").replace(/dist\/.*/, "dist/umd/index.js"), join(OUT, "static/minisearch.js"));
write("static/search-index.js", searchIndex(pages));

const isLeftOut = (sentence) => (values["without-pictures"] && /pictures\//.test(sentence)) || (values["without-references"] && /\b(rust|ts)\/(parlor\/)?index\.html/.test(sentence));
faults.push(...deadLinks(OUT).filter((sentence) => !isLeftOut(sentence)));
for (const fault of faults) console.error(fault);
console.log(`${pages.length} pages in ${OUT}, ${((performance.now() - began) / 1000).toFixed(1)} s`);
if (faults.length > 0) {
  console.error(`${faults.length} faults: the site is not whole`);
  process.exitCode = 1;
}

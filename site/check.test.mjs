// The check of links finds what is dead, and nothing else.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { deadLinks } from "./check.mjs";
import { render } from "./markdown.mjs";

function site(pages) {
  const folder = mkdtempSync(join(tmpdir(), "parlor-site-"));
  for (const [path, text] of Object.entries(pages)) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

test("a link to a page, to a section and to another site is alive", () => {
  const folder = site({
    "index.html": '<a href="docs/a.html#one">a</a><a href="https://example.com/x">b</a><h1 id="top"></h1><a href="#top">c</a>',
    "docs/a.html": '<h2 id="one"></h2><a href="../index.html">up</a>',
  });
  assert.deepEqual(deadLinks(folder), []);
});

test("a dead page, section, picture or folder is found", () => {
  const folder = site({
    "index.html": '<a href="docs/b.html">a</a><a href="docs/a.html#two">b</a><img src="no.svg"><a href="#no">c</a><a href="docs/">d</a><a href="../x.html">e</a>',
    "docs/a.html": '<h2 id="one"></h2>',
  });
  assert.equal(deadLinks(folder).length, 6);
});

test("anchors are those of repository hosts", () => {
  const { title, headings, html } = render("# A title\n\n## `join`: who's in?\n\n[a](b.md#c) and [d](e.rs)\n\n## Values\n\n## Values\n", (to) => (to === "b.md#c" ? "b.html#c" : undefined));
  assert.equal(title, "A title");
  assert.deepEqual(headings.map(({ id }) => id), ["join-whos-in", "values", "values-1"]);
  assert.match(html, /<a href="b.html#c">a<\/a> and <span class="file">d<\/span>/);
});
